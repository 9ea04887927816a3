//! `fastdx.Mahalanobis`.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::Mechanism;
use crate::mechanism::mahalanobis::Mahalanobis;

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
