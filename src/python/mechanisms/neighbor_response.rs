//! `fastdx.NeighborResponse`.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{Mechanism, NeighborResponse};

/// score: the log-ratio of a likely and another output.
pub(in crate::python) fn details(
    mechanism: &dyn Mechanism,
    details: &Bound<'_, PyDict>,
) -> PyResult<()> {
    match mechanism.downcast_ref::<NeighborResponse>() {
        Some(response) => details.set_item("score", response.score()),
        None => Ok(()),
    }
}
