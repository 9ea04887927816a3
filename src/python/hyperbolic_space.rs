//! `fastdx.lab.hyperbolic` and hyperbolic noise: geometry of the ball, samplers.

use numpy::{PyArray1, PyArrayDyn};
use pyo3::prelude::*;

use super::arguments::{count, matrix, real, seed as seed_of, shape_text, shaped};
use super::run::run;
use crate::noise::hyperbolic::noise::HyperbolicLaplace as Noise;
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
