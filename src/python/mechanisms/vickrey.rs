//! `fastdx.Vickrey`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::Mechanism;
use crate::mechanism::vickrey::{EllipticalVickrey, Vickrey};
use crate::python::registry::Given;
use crate::python::run::run;

/// t where none is given: the paper's own choice.
const TUNING: f64 = 0.75;

/// The mechanism, with round noise unless `mixing` is above 0.
pub(in crate::python) fn make(given: &mut Given<'_>) -> PyResult<Arc<dyn Mechanism>> {
    let py = given.parameters.py();
    let embedding = given.space.vectors()?;
    let (epsilon, randomness) = (given.epsilon, given.randomness.clone());
    let tuning = given.real("tuning")?.unwrap_or(TUNING);
    Ok(match given.real("mixing")?.unwrap_or(0.0) {
        0.0 => Arc::new(Vickrey::new(embedding, epsilon, tuning, randomness)?),
        mixing => Arc::new(run(py, true, |control| {
            EllipticalVickrey::new(embedding, epsilon, mixing, tuning, randomness, control)
        })?),
    })
}

/// tuning, mixing.
pub(in crate::python) fn details(
    mechanism: &dyn Mechanism,
    details: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let (tuning, mixing) = match mechanism.downcast_ref::<EllipticalVickrey>() {
        Some(elliptical) => (elliptical.choice().tuning(), elliptical.noise().mixing()),
        None => match mechanism.downcast_ref::<Vickrey>() {
            Some(round) => (round.choice().tuning(), 0.0),
            None => return Ok(()),
        },
    };
    details.set_item("tuning", tuning)?;
    details.set_item("mixing", mixing)
}
