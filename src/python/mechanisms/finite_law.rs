//! `fastdx.FiniteLaw`.

use std::sync::Arc;

use pyo3::prelude::*;

use super::{as_kind, remapped};

use crate::mechanism::finite_law::FiniteLaw;
use crate::policy::{Spec, certified_law};
use crate::python::mechanism::PyMechanism;
use crate::python::run::run_with;

/// Returns the same law with the losses computed from it.
#[pyfunction]
#[pyo3(signature = (core, progress = None))]
pub(in crate::python) fn certify_law(
    py: Python<'_>,
    core: PyRef<'_, PyMechanism>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyMechanism> {
    let law: &FiniteLaw = as_kind(&core, "a FiniteLaw")?;
    let law = run_with(py, true, progress, |control| {
        certified_law(law.clone(), control)
    })?;
    let certified = remapped(&core, Arc::new(law))?;
    let spec = Spec {
        certified: Some(true),
        ..core.built.given().clone()
    };
    core.around(core.space.clone_ref(py), certified, spec)
}
