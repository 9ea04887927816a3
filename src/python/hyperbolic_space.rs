//! Hyperbolic noise of `fastdx.lab.noise`: samplers.

use numpy::PyArrayDyn;
use pyo3::prelude::*;

use super::arguments::{count, real, seed as seed_of, shaped};
use super::run::run;
use crate::Randomness;
use crate::noise::hyperbolic::noise::HyperbolicLaplace as Noise;
use crate::noise::hyperbolic::walk::Walk;

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
    let law = Noise::new(n, real("epsilon", epsilon)?, base.parse()?)?;
    let randomness = Randomness::new(seed_of(seed)?);
    let rows = run(py, size > 256, |control| {
        law.sample_many(size, &randomness.next_key()?, control)
    })?;
    shaped(py, rows, &[size, n])
}

/// Points and diagnostics of a Metropolis-Hastings walk on the hyperboloid.
#[pyclass(
    frozen,
    get_all,
    name = "MetropolisSample",
    module = "fastdx.lab.noise"
)]
pub(super) struct PyMetropolisSample {
    /// numpy.ndarray of float64, shape (size, n): points of the ball, clamped to 1 - 1e-5.
    points: Py<PyArrayDyn<f64>>,
    /// Share of proposals accepted after burn-in.
    acceptance: f64,
    /// Effective number of independent draws of the distance, over all chains.
    effective_size: f64,
    /// Split R̂ of the distance: near 1 if the chains agree.
    r_hat: f64,
    /// The tuned scale of a proposal, averaged over the chains.
    scale: f64,
}

#[pymethods]
impl PyMetropolisSample {
    fn __repr__(&self) -> String {
        format!(
            "MetropolisSample(acceptance={:.3}, effective_size={:.0}, r_hat={:.4}, scale={:.4})",
            self.acceptance, self.effective_size, self.r_hat, self.scale
        )
    }
}

/// ICDM'19's Algorithm 2 with the correct stationary law: a Metropolis-Hastings walk on the
/// hyperboloid.
///
/// Parameters
/// ----------
/// n, epsilon, size, base, seed
///     As for `hyperbolic_laplace`.
/// burn_in : int, optional
///     Steps before the first draw, in which alone the proposal is tuned (2000).
/// thin : int, optional
///     Steps from one draw to the next (500).
/// chains : int, optional
///     Independent chains (8).
///
/// Returns
/// -------
/// MetropolisSample
///     Points, acceptance rate, effective sample size, R̂.
#[pyfunction]
#[pyo3(signature = (n, epsilon, size, *, base = "ball", burn_in = None, thin = None, chains = None, seed = None))]
#[allow(clippy::too_many_arguments)]
pub(super) fn hyperbolic_metropolis<'py>(
    py: Python<'py>,
    n: &Bound<'py, PyAny>,
    epsilon: &Bound<'py, PyAny>,
    size: &Bound<'py, PyAny>,
    base: &str,
    burn_in: Option<&Bound<'py, PyAny>>,
    thin: Option<&Bound<'py, PyAny>>,
    chains: Option<&Bound<'py, PyAny>>,
    seed: Option<&Bound<'py, PyAny>>,
) -> PyResult<PyMetropolisSample> {
    let (n, size) = (count("n", n)?, count("size", size)?);
    let law = Noise::new(n, real("epsilon", epsilon)?, base.parse()?)?;
    let mut walk = Walk::new(law);
    let number = |name, value: Option<&Bound<'py, PyAny>>, default| {
        value.map_or(Ok(default), |value| count(name, value))
    };
    walk.burn_in = number("burn_in", burn_in, walk.burn_in)?;
    walk.thin = number("thin", thin, walk.thin)?;
    walk.chains = number("chains", chains, walk.chains)?;
    let randomness = Randomness::new(seed_of(seed)?);
    let (rows, seen) = run(py, true, |control| {
        walk.sample(size, &randomness.next_key()?, control)
    })?;
    Ok(PyMetropolisSample {
        points: shaped(py, rows, &[size, n])?.unbind(),
        acceptance: seen.acceptance,
        effective_size: seen.effective_size,
        r_hat: seen.r_hat,
        scale: seen.scale,
    })
}
