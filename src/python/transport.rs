//! `fastdx.optimal_transport` and the Earth Mover's distances of bags of words.

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayDyn};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping, PyString};

use super::arguments::{Text, count, matrix_with, numbers, real, shaped};
use super::errors::{parameter_error, wrong_type};
use super::run::{run, run_with};
use super::space::{Space, known};
use crate::Vocabulary;
use crate::transport::bags::{self, Bag};
use crate::transport::documents;
use crate::transport::{self, CostMatrix};

/// An optimal plan and its proof; see ``fastdx.optimal_transport``.
#[pyclass(frozen, name = "Transport", module = "fastdx")]
pub(super) struct PyTransport(transport::Transport);

#[pymethods]
impl PyTransport {
    /// Σ mass · cost over the plan.
    #[getter]
    fn cost(&self) -> f64 {
        self.0.cost
    }

    /// The mass that moves from every row to every column: float64, shape (m, k).
    #[getter]
    fn plan<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        let mut plan = Array2::zeros((self.0.u.len(), self.0.v.len()));
        for &(i, j, mass) in &self.0.plan {
            plan[(i as usize, j as usize)] = mass;
        }
        plan.into_pyarray(py)
    }

    /// The dual potentials of rows and columns, float64, shapes (m,) and (k,). u + v never exceeds
    /// the cost, so Σ a·u + Σ b·v proves the plan optimal.
    #[getter]
    #[allow(clippy::type_complexity)]
    fn dual_potentials<'py>(
        &self,
        py: Python<'py>,
    ) -> (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>) {
        let array = |potentials: &[f64]| PyArray1::from_slice(py, potentials);
        (array(&self.0.u), array(&self.0.v))
    }

    /// The cost less the lower bound of the dual potentials: rounding only.
    #[getter]
    fn gap(&self) -> f64 {
        self.0.gap
    }

    fn __repr__(&self) -> String {
        let t = &self.0;
        let (m, k) = (t.u.len(), t.v.len());
        format!("Transport(cost={}, {m} × {k}, gap={:.1e})", t.cost, t.gap)
    }
}

/// Finds the cheapest way to move masses, exactly.
///
/// Parameters
/// ----------
/// weights_a : array_like of float, shape (m,)
///     The masses to move, ≥ 0.
/// weights_b : array_like of float, shape (k,)
///     The masses to arrive, ≥ 0, of the same sum up to a relative 1e-6, which weights in float32 may
///     be off.
/// cost : array_like of float, shape (m, k)
///     Cost of moving a unit of mass, finite.
///
/// Returns
/// -------
/// Transport
///     The cost, the plan, and the dual potentials that prove it optimal.
///
/// Raises
/// ------
/// ParameterError
///     Weights that are negative, not finite, not as many as costs, or of different sums; costs
///     that are not finite.
///
/// Examples
/// --------
/// >>> import fastdx
/// >>> t = fastdx.optimal_transport([0.5, 0.5], [0.25, 0.75], [[0.0, 2.0], [1.0, 1.0]])
/// >>> t.cost
/// 1.0
#[pyfunction]
pub(super) fn optimal_transport(
    weights_a: &Bound<'_, PyAny>,
    weights_b: &Bound<'_, PyAny>,
    cost: &Bound<'_, PyAny>,
) -> PyResult<PyTransport> {
    let py = cost.py();
    let a = numbers("weights_a", weights_a)?;
    let b = numbers("weights_b", weights_b)?;
    let cost = matrix_with("cost", cost, |costs: &[f64], rows, columns| {
        Ok(CostMatrix::new(costs, rows, columns)?)
    })?;
    let long = cost.rows().saturating_mul(cost.columns()) > 1 << 16;
    let inner = run(py, long, |control| {
        transport::optimal_transport(&a, &b, cost, control)
    })?;
    Ok(PyTransport(inner))
}

/// A bag from a mapping of words to counts, or a list of words.
fn bag(name: &str, given: &Bound<'_, PyAny>, vocabulary: &Vocabulary) -> PyResult<Bag> {
    let wrong = |what: &str| wrong_type(format!("{name}: a bag{what}"));
    let wrong_bag = |e| parameter_error(format!("{name}: {e}"));
    let id = |at: usize, token: &Bound<'_, PyAny>| -> PyResult<u32> {
        let token = token.cast::<PyString>();
        let token = Text::of(token.map_err(|_| wrong("'s words are str"))?)?;
        Ok(known(vocabulary, &token, || format!("{name}: word {at}"))?)
    };
    if given.is_instance_of::<PyString>() {
        return Err(wrong(" is a mapping or a list of words, not str"));
    }
    // A list first: testing for a mapping takes longer than reading many words.
    if !given.is_instance_of::<PyList>()
        && let Ok(mapping) = given.cast::<PyMapping>()
    {
        let items = mapping.items()?;
        let words = items.iter().enumerate().map(|(at, item)| {
            let (word, times): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            let times = count("count", &times).map_err(|e| {
                let reason = e.value(times.py()).to_string();
                parameter_error(format!("{name}: the count of word {at}: {reason}"))
            });
            Ok((id(at, &word)?, times? as u64))
        });
        let words: Vec<(u32, u64)> = words.collect::<PyResult<_>>()?;
        return Bag::new(words).map_err(wrong_bag);
    }
    // With its capacity, which a collected `Result` would not reserve.
    let mut ids = Vec::with_capacity(given.len().unwrap_or(0));
    let tokens = given.try_iter();
    let tokens = tokens.map_err(|_| wrong(" is a mapping or a list of words"))?;
    for (at, token) in tokens.enumerate() {
        ids.push(id(at, &token?)?);
    }
    Bag::of_words(ids).map_err(wrong_bag)
}

fn bags_of(name: &str, given: &Bound<'_, PyAny>, vocabulary: &Vocabulary) -> PyResult<Vec<Bag>> {
    let refused = given.is_instance_of::<PyString>() || given.is_instance_of::<PyDict>();
    let items = if refused { None } else { given.try_iter().ok() };
    let Some(items) = items else {
        let message = format!("{name} must be a list of bags");
        return Err(wrong_type(message));
    };
    items
        .enumerate()
        .map(|(i, item)| bag(&format!("{name}[{i}]"), &item?, vocabulary))
        .collect()
}

/// Computes the exact Earth Mover's distance of two bags of words.
///
/// A bag of size N gives every occurrence of a word the mass 1/N. The distance is the least mean
/// distance of words at which one bag is moved into the other (POST'19, section 3).
///
/// Parameters
/// ----------
/// bag_a, bag_b : mapping of str to int, or iterable of str
///     The bags, not empty.
/// embedding : Embedding or WordGraph
///     Words and their metric.
///
/// Returns
/// -------
/// float
///     In units of the metric.
///
/// Raises
/// ------
/// UnknownWordError
///     Names the word that is not in the vocabulary.
/// ParameterError
///     An empty bag.
///
/// Examples
/// --------
/// >>> import fastdx
/// >>> line = fastdx.Embedding(["a", "b", "c"], [[0.0], [1.0], [3.0]])
/// >>> fastdx.earth_movers_distance(["a", "b"], {"b": 1, "c": 1}, line)
/// 1.5
#[pyfunction]
pub(super) fn earth_movers_distance(
    py: Python<'_>,
    bag_a: &Bound<'_, PyAny>,
    bag_b: &Bound<'_, PyAny>,
    embedding: Space,
) -> PyResult<f64> {
    let space = embedding.space();
    let a = bag("bag_a", bag_a, space.vocabulary())?;
    let b = bag("bag_b", bag_b, space.vocabulary())?;
    let long = a.ids().len().saturating_mul(b.ids().len()) > 1 << 16;
    run(py, long, |control| bags::distance(&*space, &a, &b, control))
}

/// The Earth Mover's distances of many bags.
///
/// Parameters
/// ----------
/// bags : iterable of bags
///     As for `earth_movers_distance`.
/// embedding : Embedding or WordGraph
///     Words and their metric.
/// others : iterable of bags, optional
///     By default `bags` again, every pair computed once.
/// progress : callable, optional
///     Called now and then with the number of rows done.
///
/// Returns
/// -------
/// numpy.ndarray of float64, shape (len(bags), len(others))
///     Row by row.
#[pyfunction]
#[pyo3(signature = (bags, embedding, others = None, *, progress = None))]
pub(super) fn pairwise_emd<'py>(
    py: Python<'py>,
    bags: &Bound<'py, PyAny>,
    embedding: Space,
    others: Option<&Bound<'py, PyAny>>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let space = embedding.space();
    let a = bags_of("bags", bags, space.vocabulary())?;
    let b = others
        .map(|b| bags_of("others", b, space.vocabulary()))
        .transpose()?;
    let out = run_with(py, true, progress, |control| {
        documents::pairwise(&*space, &a, b.as_deref(), control)
    })?;
    shaped(py, out, &[a.len(), b.map_or(a.len(), |b| b.len())])
}

/// The nearest documents, and statistics of the pruning; see ``fastdx.nearest_documents``.
#[pyclass(frozen, get_all, name = "NearestDocuments", module = "fastdx")]
pub(super) struct PyNearestDocuments {
    /// Indices of the documents, nearest first: uint32, shape (queries, k).
    ids: Py<PyArrayDyn<u32>>,
    /// Their Earth Mover's distances: float64, shape (queries, k).
    distances: Py<PyArrayDyn<f64>>,
    /// How many of the 'pairs' were ruled out 'by_relaxation' and 'by_dual_bound', and how many
    /// distances were computed, 'exact'.
    pruning: Py<PyDict>,
}

/// Finds the nearest documents under the Earth Mover's distance, exactly.
///
/// Rigorous lower bounds rule out distances that need not be computed: a relaxed matching that moves
/// every word to its nearest word, and dual potentials.
///
/// Parameters
/// ----------
/// query_bags, bags : iterable of bags
///     As for `earth_movers_distance`.
/// embedding : Embedding or WordGraph
///     Words and their metric.
/// k : int
///     Documents a query.
/// progress : callable, optional
///     Called now and then with the number of queries done.
///
/// Returns
/// -------
/// NearestDocuments
///     ``ids``, ``distances``, and ``pruning``.
///
/// Raises
/// ------
/// ParameterError
///     `k` outside 1..len(bags), an empty bag.
#[pyfunction]
#[pyo3(signature = (query_bags, bags, embedding, k, *, progress = None))]
pub(super) fn nearest_documents<'py>(
    py: Python<'py>,
    query_bags: &Bound<'py, PyAny>,
    bags: &Bound<'py, PyAny>,
    embedding: Space,
    k: &Bound<'py, PyAny>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<PyNearestDocuments> {
    let space = embedding.space();
    let k = count("k", k)?;
    let queries = bags_of("query_bags", query_bags, space.vocabulary())?;
    let bags = bags_of("bags", bags, space.vocabulary())?;
    let inner = run_with(py, true, progress, |control| {
        documents::nearest(&*space, &queries, &bags, k, control)
    })?;
    let pruning = PyDict::new(py);
    pruning.set_item("pairs", inner.pairs)?;
    pruning.set_item("by_relaxation", inner.by_relaxation)?;
    pruning.set_item("by_dual_bound", inner.by_dual_bound)?;
    pruning.set_item("exact", inner.exact)?;
    let shape = [queries.len(), k];
    Ok(PyNearestDocuments {
        ids: shaped(py, inner.ids, &shape)?.unbind(),
        distances: shaped(py, inner.distances, &shape)?.unbind(),
        pruning: pruning.unbind(),
    })
}

/// A lower bound on the probability that a privatised bag is near the original.
///
/// Every word of a bag of N words gets n-dimensional Laplace noise of ε per unit before the nearest
/// word is taken. With probability at least Pr[Gamma(nN, 1/ε) ≤ NΔ], the noisy points are within an
/// Earth Mover's distance of Δ of the bag. (POST'19's Theorem 3 states a larger bound that does not
/// hold for N > 1.) This concerns the points; the words nearest to them are at most twice as far.
///
/// Parameters
/// ----------
/// n : int
///     Dimensions.
/// epsilon : float
///     ε per unit of distance.
/// size : int
///     Words in the bag, N.
/// distance : float
///     Δ, ≥ 0.
///
/// Returns
/// -------
/// float
///     The probability.
///
/// Examples
/// --------
/// >>> import fastdx
/// >>> round(fastdx.utility_bound(10, 1.0, 3, 12.0), 3)
/// 0.862
#[pyfunction]
pub(super) fn utility_bound(
    n: &Bound<'_, PyAny>,
    epsilon: &Bound<'_, PyAny>,
    size: &Bound<'_, PyAny>,
    distance: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    Ok(bags::utility_bound(
        count("n", n)?,
        real("epsilon", epsilon)?,
        count("size", size)?,
        real("distance", distance)?,
    )?)
}
