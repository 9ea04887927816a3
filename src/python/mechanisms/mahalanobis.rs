//! `fastdx.Mahalanobis`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::Mechanism;
use crate::mechanism::mahalanobis::Mahalanobis;
use crate::python::registry::Given;
use crate::python::run::run;

/// λ where none is given.
const MIXING: f64 = 0.2;

/// The mechanism at a provable ε, or with the parameter `paper` at the paper's nominal one.
pub(in crate::python) fn make(given: &mut Given<'_>) -> PyResult<Arc<dyn Mechanism>> {
    let py = given.parameters.py();
    let embedding = given.space.vectors()?;
    let (epsilon, randomness) = (given.epsilon, given.randomness.clone());
    let mixing = given.real("mixing")?.unwrap_or(MIXING);
    let make = match given.flag("paper")? {
        true => Mahalanobis::from_paper,
        false => Mahalanobis::new,
    };
    Ok(Arc::new(run(py, true, |control| {
        make(embedding, epsilon, mixing, randomness, control)
    })?))
}

/// nominal (per unit of the Mahalanobis norm), mixing.
pub(in crate::python) fn details(
    mechanism: &dyn Mechanism,
    details: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let Some(mahalanobis) = mechanism.downcast_ref::<Mahalanobis>() else {
        return Ok(());
    };
    details.set_item("nominal", mahalanobis.noise().nominal())?;
    details.set_item("mixing", mahalanobis.noise().mixing())
}
