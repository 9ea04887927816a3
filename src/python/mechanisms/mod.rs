//! What only one mechanism can do.

pub(super) mod finite_law;
pub(super) mod multivariate_laplace;
pub(super) mod tem;

use std::sync::Arc;

use pyo3::prelude::*;

use super::cover::PyCover;
use super::mechanism::PyMechanism;
use crate::mechanism::remapped::Remapped;
use crate::{Error, Mechanism, NeighborResponse, Tem};

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
