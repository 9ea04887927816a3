//! How Python makes each mechanism, and what only that mechanism can do.

pub(super) mod finite_law;
pub(super) mod hyperbolic_laplace;
pub(super) mod mahalanobis;
pub(super) mod multivariate_laplace;
pub(super) mod neighbor_response;
pub(super) mod tem;
pub(super) mod vickrey;

use std::sync::Arc;

use pyo3::prelude::*;

use super::cover::PyCover;
use super::mechanism::PyMechanism;
use super::registry::Registered;
use crate::mechanism::remapped::Remapped;
use crate::{Error, Mechanism, NeighborResponse, Tem};

/// Every mechanism: its name, how it is made, what it tells of itself.
pub(super) static MECHANISMS: &[Registered] = &[
    Registered::new("tem", tem::make, tem::details),
    Registered::new(
        "laplace",
        multivariate_laplace::make,
        multivariate_laplace::details,
    ),
    Registered::new(
        "hyperbolic",
        hyperbolic_laplace::make,
        hyperbolic_laplace::details,
    ),
    Registered::new("law", finite_law::make, finite_law::details),
    Registered::new("mahalanobis", mahalanobis::make, mahalanobis::details),
    Registered::new(
        "response",
        neighbor_response::make,
        neighbor_response::details,
    ),
    Registered::new("vickrey", vickrey::make, vickrey::details),
];

/// What the outputs of a mechanism stand for, or None.
#[pyfunction]
pub(super) fn mechanism_cover(py: Python<'_>, core: PyRef<'_, PyMechanism>) -> Option<PyCover> {
    let mechanism = &**core.mechanism();
    let cover = match mechanism.downcast_ref::<Tem>() {
        Some(tem) => tem.cover(),
        None => mechanism.downcast_ref().map(NeighborResponse::cover),
    };
    cover.map(|cover| PyCover::new(cover.clone(), core.space.clone_ref(py)))
}

/// `made` of a core's mechanism, its outputs remapped as the core's are.
fn remapped(core: &PyMechanism, made: Arc<dyn Mechanism>) -> crate::Result<Arc<dyn Mechanism>> {
    Ok(match core.mechanism().downcast_ref::<Remapped>() {
        None => made,
        Some(remapped) => Arc::new(Remapped::new(made, remapped.cover().clone())?),
    })
}

/// The mechanism as what it is, for what only that can do.
fn as_kind<'a, M: Mechanism>(core: &'a PyMechanism, name: &'static str) -> PyResult<&'a M> {
    let mechanism = &**core.mechanism();
    let found = mechanism.downcast_ref::<M>();
    let got = || mechanism.guarantee().mechanism;
    Ok(found.ok_or_else(|| Error::parameter("mechanism", name, got()))?)
}
