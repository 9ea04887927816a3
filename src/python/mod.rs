//! The Python face: a thin layer that checks arguments, leaves the interpreter, calls the core.

mod arguments;
mod embedding;
mod errors;
mod mechanism;
mod run;

use numpy::PyArrayDyn;
use pyo3::prelude::*;

use crate::{Randomness, noise};

/// Noise of density ∝ exp(-ε‖z‖₂) in n dimensions, independent rows (WSDM'20 §2.6).
///
/// The radius is Gamma(n, 1/ε), the direction uniform.
///
/// Parameters
/// ----------
/// n : int
///     Dimensions, at least 1.
/// epsilon : float
///     Positive; the mean radius is n/ε.
/// size : int
///     How many vectors.
/// seed : int, optional
///     For tests only: makes the noise reproducible.
///
/// Returns
/// -------
/// numpy.ndarray of float64, shape (size, n)
///
/// Raises
/// ------
/// ParameterError
///     A parameter outside its domain.
///
/// Examples
/// --------
/// >>> from fastdx.noise import multivariate_laplace
/// >>> multivariate_laplace(50, 5.0, 3).shape
/// (3, 50)
#[pyfunction]
#[pyo3(signature = (n, epsilon, size, seed = None))]
fn multivariate_laplace<'py>(
    py: Python<'py>,
    n: &Bound<'py, PyAny>,
    epsilon: &Bound<'py, PyAny>,
    size: &Bound<'py, PyAny>,
    seed: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let (n, size) = (arguments::count("n", n)?, arguments::count("size", size)?);
    let law = noise::MultivariateLaplace::new(n, arguments::real("epsilon", epsilon)?)?;
    let randomness = Randomness::new(arguments::seed(seed)?);
    let rows = run::run(py, size > 256, |control| {
        law.sample_many(size, &randomness.next_key()?, control)
    })?;
    arguments::shaped(py, rows, &[size, n])
}

#[pymodule(gil_used = false)]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<embedding::PyEmbedding>()?;
    m.add_class::<mechanism::PyMechanism>()?;
    m.add_class::<mechanism::PyTem>()?;
    m.add_class::<mechanism::PyMultivariateLaplace>()?;
    m.add_class::<mechanism::PyGuarantee>()?;
    m.add_function(wrap_pyfunction!(multivariate_laplace, m)?)
}
