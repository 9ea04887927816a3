//! How Python makes each mechanism, and what only that mechanism can do.

pub(super) mod hyperbolic_laplace;
pub(super) mod mahalanobis;
pub(super) mod multivariate_laplace;
pub(super) mod tem;

use pyo3::prelude::*;

use super::mechanism::PyMechanism;
use super::registry::Registered;
use crate::{Error, Mechanism};

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
    Registered::new("mahalanobis", mahalanobis::make, mahalanobis::details),
];

/// The mechanism as what it is, for what only that can do.
fn as_kind<'a, M: Mechanism>(core: &'a PyMechanism, name: &'static str) -> PyResult<&'a M> {
    let mechanism = &**core.mechanism();
    let found = mechanism.downcast_ref::<M>();
    let got = || mechanism.guarantee().mechanism;
    Ok(found.ok_or_else(|| Error::parameter("mechanism", name, got()))?)
}
