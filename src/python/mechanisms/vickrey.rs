//! `fastdx.Vickrey`.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::Mechanism;
use crate::mechanism::vickrey::{EllipticalVickrey, Vickrey};

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
