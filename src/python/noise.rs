//! `fastdx.lab.noise`.

use numpy::PyArrayDyn;
use pyo3::prelude::*;

use super::arguments::{count, real, shaped};
use super::run::run;
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
/// >>> from fastdx.lab.noise import multivariate_laplace
/// >>> multivariate_laplace(50, 5.0, 3).shape
/// (3, 50)
#[pyfunction]
#[pyo3(signature = (n, epsilon, size, seed = None))]
pub(super) fn multivariate_laplace<'py>(
    py: Python<'py>,
    n: &Bound<'py, PyAny>,
    epsilon: &Bound<'py, PyAny>,
    size: &Bound<'py, PyAny>,
    seed: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let (n, size) = (count("n", n)?, count("size", size)?);
    let law = noise::MultivariateLaplace::new(n, real("epsilon", epsilon)?)?;
    let randomness = Randomness::new(super::arguments::seed(seed)?);
    let rows = run(py, size > 256, |control| {
        law.sample_many(size, &randomness.next_key()?, control)
    })?;
    shaped(py, rows, &[size, n])
}
