//! `fastdx.lab.hyperbolic` and hyperbolic noise: geometry of the ball, samplers.

use numpy::{PyArray1, PyArrayDyn};
use pyo3::prelude::*;

use super::arguments::{count, matrix, real, seed as seed_of, shape_text, shaped};
use super::run::run;
use crate::noise::hyperbolic::noise::HyperbolicLaplace as Noise;
use crate::noise::hyperbolic::walk::Walk;
use crate::noise::hyperbolic::{self, LAMBDA};
use crate::{Error, Randomness};

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

/// Two matrices of one shape; the rows are points of the ball if `inside` says so.
type Pair = (Vec<f64>, Vec<f64>, [usize; 2]);

fn pair(
    (name_x, x): (&'static str, &Bound<'_, PyAny>),
    (name_y, y): (&'static str, &Bound<'_, PyAny>),
    y_inside: bool,
) -> PyResult<Pair> {
    let (x, m, n) = matrix::<f64>(name_x, x)?;
    let (y, m_y, n_y) = matrix::<f64>(name_y, y)?;
    if (m, n) != (m_y, n_y) {
        let error = Error::Shape {
            what: name_y,
            expected: shape_text(&[m, n]),
            got: shape_text(&[m_y, n_y]),
        };
        return Err(error.into());
    }
    inside(name_x, &x, n)?;
    if y_inside {
        inside(name_y, &y, n)?;
    }
    Ok((x, y, [m, n]))
}

fn inside(name: &str, points: &[f64], n: usize) -> PyResult<()> {
    for (i, x) in points.chunks_exact(n.max(1)).enumerate() {
        if let Some(reason) = crate::Metric::Poincare.refuse(x) {
            let owner = format!("{name}, row {i},");
            return Err(Error::Vector { owner, reason }.into());
        }
    }
    Ok(())
}

/// Hyperbolic distances of the rows of two matrices of points of the Poincaré ball.
///
/// Parameters
/// ----------
/// x, y : array_like of float, shape (m, n)
///     Norms below 1.
///
/// Returns
/// -------
/// numpy.ndarray of float64, shape (m,)
///
/// Examples
/// --------
/// >>> from fastdx.lab.hyperbolic import distance
/// >>> round(float(distance([[0.0, 0.0]], [[0.5, 0.0]])[0]), 6)   # ln 3
/// 1.098612
#[pyfunction]
#[pyo3(name = "distance")]
pub(super) fn ball_distance<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let pair = pair(("x", x), ("y", y), true)?;
    numbers_of_rows(py, pair, hyperbolic::distance)
}

fn numbers_of_rows<'py>(
    py: Python<'py>,
    (x, y, [_, n]): Pair,
    number: fn(&[f64], &[f64]) -> f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let rows = x.chunks_exact(n.max(1)).zip(y.chunks_exact(n.max(1)));
    let numbers = rows.map(|(x, y)| number(x, y));
    let numbers = run(py, false, |_| Ok(numbers.collect()))?;
    Ok(PyArray1::from_vec(py, numbers))
}

fn by_rows<'py>(
    py: Python<'py>,
    (x, y, shape): Pair,
    map: fn(&[f64], &[f64], &mut [f64]),
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let n = shape[1].max(1);
    let out = run(py, false, |_| {
        let mut out = vec![0.0; x.len()];
        let rows = x.chunks_exact(n).zip(y.chunks_exact(n));
        rows.zip(out.chunks_exact_mut(n))
            .for_each(|((x, y), out)| map(x, y, out));
        Ok(out)
    })?;
    shaped(py, out, &shape)
}

/// Möbius addition of rows, a ⊕ b: the isometry that takes the origin to a, applied to b.
///
/// Both are points of the ball, shape (m, n); so is the result, in float64.
#[pyfunction]
pub(super) fn mobius_add<'py>(
    py: Python<'py>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    by_rows(py, pair(("a", a), ("b", b), true)?, hyperbolic::mobius_add)
}

/// The points reached from rows of x by tangent vectors v, of hyperbolic length 2‖v‖/(1-‖x‖²).
///
/// x are points of the ball, v vectors, both of shape (m, n); the result is float64 of that shape.
#[pyfunction]
pub(super) fn exp_map<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    v: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    by_rows(py, pair(("x", x), ("v", v), false)?, hyperbolic::exp_map)
}

/// The tangent vectors at rows of x that lead to rows of y: the inverse of `exp_map`.
///
/// x and y are points of the ball, shape (m, n); the result is float64 of that shape.
#[pyfunction]
pub(super) fn log_map<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    by_rows(py, pair(("x", x), ("y", y), true)?, hyperbolic::log_map)
}

/// proj(θ) = θ/‖θ‖·(1-λ) for rows of x outside the ball of radius 1 - λ; other rows stay.
///
/// x are vectors, shape (m, n), and `lam` is λ, between 0 and 1; the result is float64 of that shape.
#[pyfunction]
#[pyo3(signature = (x, lam = LAMBDA), text_signature = "(x, lam=1e-05)")]
pub(super) fn clamp<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    lam: f64,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    if !(lam > 0.0 && lam < 1.0) {
        return Err(Error::parameter("lam", "between 0 and 1", lam).into());
    }
    let (mut x, m, n) = matrix::<f64>("x", x)?;
    x.chunks_exact_mut(n.max(1))
        .for_each(|x| hyperbolic::clamp(x, lam));
    shaped(py, x, &[m, n])
}
