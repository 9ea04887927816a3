//! `fastdx.lab.noise`.

use numpy::PyArrayDyn;
use pyo3::prelude::*;

use super::arguments::{count, real, shaped};
use super::run::run;
use crate::noise::hyperbolic::noise::HyperbolicLaplace;
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

/// Hyperbolic Laplace noise: points of the Poincaré ball, independent rows.
///
/// Parameters
/// ----------
/// n : int
///     Dimensions, at least 1.
/// epsilon : float
///     The parameter of the density: more than n - 1 for base='volume', positive for 'ball'.
/// size : int
///     How many points.
/// base : str, optional
///     'volume' (default): density exp(-ερ) with respect to hyperbolic volume, ρ the distance from
///     the origin. 'ball': ((1-r)/(1+r))^ε with respect to Lebesgue measure on the ball (ICDM'19).
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
/// >>> from fastdx.lab.noise import hyperbolic_laplace
/// >>> hyperbolic_laplace(5, 6.0, 3).shape
/// (3, 5)
#[pyfunction]
#[pyo3(signature = (n, epsilon, size, *, base = "volume", seed = None))]
pub(super) fn hyperbolic_laplace<'py>(
    py: Python<'py>,
    n: &Bound<'py, PyAny>,
    epsilon: &Bound<'py, PyAny>,
    size: &Bound<'py, PyAny>,
    base: &str,
    seed: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let (n, size) = (count("n", n)?, count("size", size)?);
    let law = HyperbolicLaplace::new(n, real("epsilon", epsilon)?, base.parse()?)?;
    let randomness = Randomness::new(super::arguments::seed(seed)?);
    let rows = run(py, size > 256, |control| {
        law.sample_many(size, &randomness.next_key()?, control)
    })?;
    shaped(py, rows, &[size, n])
}
