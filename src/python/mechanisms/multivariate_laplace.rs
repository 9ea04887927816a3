//! `fastdx.MultivariateLaplace`.

use numpy::PyArrayDyn;
use pyo3::prelude::*;

use super::as_kind;
use crate::python::arguments::{matrix, shape_text, shaped};
use crate::python::mechanism::PyMechanism;
use crate::python::run::run;
use crate::{Error, MultivariateLaplace};

/// Returns noisy vectors.
#[pyfunction]
pub(in crate::python) fn laplace_perturb<'py>(
    py: Python<'py>,
    core: PyRef<'py, PyMechanism>,
    vectors: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let laplace: &MultivariateLaplace = as_kind(&core, "a MultivariateLaplace")?;
    let (numbers, m, n) = matrix::<f64>("vectors", vectors)?;
    let dim = laplace.embedding().dim();
    if n != dim {
        let error = Error::Shape {
            what: "vectors",
            expected: format!("(m, {dim})"),
            got: shape_text(&[m, n]),
        };
        return Err(error.into());
    }
    let noisy = run(py, m > 256, |control| laplace.perturb(&numbers, control))?;
    shaped(py, noisy, &[m, n])
}
