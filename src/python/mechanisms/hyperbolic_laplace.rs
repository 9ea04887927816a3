//! `fastdx.HyperbolicLaplace`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::python::registry::Given;
use crate::{HyperbolicLaplace, Mechanism};

/// The mechanism at a provable ε, or with the parameter `paper` at the paper's nominal one.
pub(in crate::python) fn make(given: &mut Given<'_>) -> PyResult<Arc<dyn Mechanism>> {
    let embedding = given.space.vectors()?;
    let (epsilon, randomness) = (given.epsilon, given.randomness.clone());
    Ok(Arc::new(match given.flag("paper")? {
        true => HyperbolicLaplace::from_paper(embedding, epsilon, randomness)?,
        false => HyperbolicLaplace::new(
            embedding,
            epsilon,
            given.variant("base")?,
            given.variant("sampler")?,
            randomness,
        )?,
    }))
}

/// nominal (the parameter of the noise), base, sampler.
pub(in crate::python) fn details(
    mechanism: &dyn Mechanism,
    details: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let Some(laplace) = mechanism.downcast_ref::<HyperbolicLaplace>() else {
        return Ok(());
    };
    let noise = laplace.noise();
    details.set_item("nominal", noise.law().epsilon())?;
    details.set_item("base", noise.law().base().name())?;
    details.set_item("sampler", noise.sampler().name())
}
