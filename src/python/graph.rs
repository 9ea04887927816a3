//! `fastdx.WordGraph`.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyString;

use super::arguments::{as_strs, count, numbers, square_with, strings};
use super::errors::{format_error, warn_unreadable, wrong_type};
use super::run::run;
use super::space::{PySpace, Space};
use crate::words::graph::{Edges, MAX_TABLE_WORDS, ThirdColumn, WordGraph};
use crate::{Error, MetricSpace};

/// Edges from a file, an iterable of pairs, or an array of strings of shape (m, 2).
pub(super) fn edges_of(
    given: &Bound<'_, PyAny>,
    lengths: bool,
    min_count: Option<&Bound<'_, PyAny>>,
) -> PyResult<Edges> {
    let py = given.py();
    let least = min_count.map(|least| count("min_count", least));
    let third = ThirdColumn::of(lengths, least.transpose()?.map(|least| least as u64))?;
    let is_path = given.is_instance_of::<PyString>() || given.hasattr("__fspath__")?;
    if is_path {
        let path: PathBuf = given.extract()?;
        return run(py, true, |_| Edges::read(&path, third));
    }
    if third != ThirdColumn::Absent {
        let expected = "a file, where lengths or min_count says what its third column holds";
        return Err(Error::parameter("edges", expected, "pairs").into());
    }
    let mut edges = Edges::new();
    for (i, edge) in given.try_iter()?.enumerate() {
        let edge = edge?;
        let pair = pair(&edge).and_then(|(u, v)| edges.push(&u, &v));
        pair.map_err(|reason| format_error(format!("edge {i}: {reason}")))?;
    }
    Ok(edges)
}

/// The two words of a tuple, list or array.
fn pair(edge: &Bound<'_, PyAny>) -> Result<(PyBackedStr, PyBackedStr), String> {
    let wrong = || "an edge has two words".to_owned();
    // A string is a sequence too, of letters.
    if edge.is_instance_of::<PyString>() {
        return Err(wrong());
    }
    let mut words = Vec::new();
    for word in edge.try_iter().map_err(|_| wrong())? {
        let word = word.ok().and_then(|w| w.cast_into::<PyString>().ok());
        let word = word.and_then(|w| PyBackedStr::try_from(w).ok());
        words.push(word.ok_or_else(wrong)?);
    }
    match <[PyBackedStr; 2]>::try_from(words) {
        Ok([u, v]) => Ok((u, v)),
        Err(_) => Err(wrong()),
    }
}

/// Words in order of first appearance, and the edges between them: uint32, shape (m, 2).
#[pyfunction]
#[pyo3(signature = (edges, min_count = None))]
pub(super) fn read_edges<'py>(
    edges: &Bound<'py, PyAny>,
    min_count: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Vec<String>, Bound<'py, PyArray2<u32>>)> {
    let py = edges.py();
    let edges = edges_of(edges, false, min_count)?;
    let words = edges.words().iter().map(|w| w.to_string()).collect();
    let ids: Vec<u32> = edges.pairs().iter().flat_map(|&(u, v)| [u, v]).collect();
    let ids = PyArray1::from_vec(py, ids).reshape([edges.pairs().len(), 2])?;
    Ok((words, ids))
}

/// Calls `used` with the distances of all pairs of words, row by row, that a caller gives: a matrix,
/// or a function of two words, which is called once for each two words.
pub(super) fn with_distances<R>(
    name: &'static str,
    value: &Bound<'_, PyAny>,
    words: &[&str],
    used: impl FnOnce(&[f64]) -> PyResult<R>,
) -> PyResult<R> {
    let count = words.len();
    if !value.is_callable() {
        return square_with(name, value, count, used);
    }
    if count > MAX_TABLE_WORDS {
        let expected = format!("a matrix or a space of more than {MAX_TABLE_WORDS} words");
        return Err(Error::parameter(name, expected, "a function").into());
    }
    let mut numbers = vec![0.0; count * count];
    for (i, a) in words.iter().enumerate() {
        for (j, b) in words[..i].iter().enumerate() {
            let distance = value.call1((*a, *b))?;
            let distance: f64 = distance.extract().map_err(|_| {
                wrong_type(format!(
                    "{name} must return a number, not for words {i} and {j}"
                ))
            })?;
            numbers[i * count + j] = distance;
            numbers[j * count + i] = distance;
        }
    }
    used(&numbers)
}

/// Words and the shortest paths between them: a metric for Tem.
///
/// The graph is undirected. Words that no path joins are at distance `unreachable_distance`. Any other
/// metric is a graph too: see `from_distances`.
///
/// Parameters
/// ----------
/// edges : str, os.PathLike or iterable of (str, str)
///     Pairs of words: a file of two columns separated by a tab, an iterable, or an array of
///     strings of shape (m, 2).
/// weights : array_like of float, shape (m,), optional
///     The length of each edge, ≥ 0; by default 1. Of several edges between two words the
///     shortest counts. Lengths that are no multiples of a common power of two within 60 bits
///     are rounded down, which only strengthens the guarantee.
/// words : iterable of str, optional
///     Only these words can be written and released, in this order; paths still go through
///     the others. By default all, in order of first appearance.
/// lengths : bool, optional
///     The file has a third column, of lengths. Without this and `min_count` it is refused: it
///     may hold counts.
/// min_count : int, optional
///     The file has a third column, of how often each pair was seen, as in WebIsADb. Pairs that
///     were seen fewer times are left out; the lengths are 1.
///
/// Raises
/// ------
/// FormatError
///     A line or pair that is no edge, by its line or number; a third column of which nothing was
///     said.
/// ParameterError
///     No edge; a word of `words` without one; a weight that is negative or not finite; not one weight an edge.
///
/// Examples
/// --------
/// >>> from fastdx import Tem, WordGraph
/// >>> graph = WordGraph([("dog", "animal"), ("cat", "animal"), ("animal", "thing")])
/// >>> graph.distance("dog", "cat")
/// 2.0
/// >>> tem = Tem(graph, 2.0)
/// >>> tem.guarantee.metric
/// 'shortest-path'
#[pyclass(frozen, extends = PySpace, name = "WordGraph", module = "fastdx")]
pub(super) struct PyWordGraph(pub(super) Arc<WordGraph>);

#[pymethods]
impl PyWordGraph {
    #[new]
    #[pyo3(signature = (edges, weights = None, *, words = None, lengths = false, min_count = None))]
    fn made(
        py: Python<'_>,
        edges: &Bound<'_, PyAny>,
        weights: Option<&Bound<'_, PyAny>>,
        words: Option<&Bound<'_, PyAny>>,
        lengths: bool,
        min_count: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Space> {
        let edges = edges_of(edges, lengths, min_count)?;
        let weights = weights.map(|w| numbers("weights", w)).transpose()?;
        let none = weights.as_ref().is_some_and(Vec::is_empty);
        if none && !edges.pairs().is_empty() {
            let expected = format!("one number an edge, {}", edges.pairs().len());
            return Err(Error::parameter("weights", expected, 0).into());
        }
        let words = words.map(|w| strings("words", w)).transpose()?;
        let words = words.as_ref().map(|w| as_strs(w));
        let graph = run(py, true, |_| {
            WordGraph::new(&edges, weights.as_deref(), words.as_deref())
        })?;
        warn_unreadable(py, graph.vocabulary())?;
        Space::new(py, graph, None)
    }

    /// Makes a graph with an edge between any two words: any metric at all.
    ///
    /// Each distance must be at most as long as any way round, which is the triangle inequality. It
    /// is checked for all triples of words: that takes V³/2 steps, seconds for 5,000 words.
    ///
    /// Parameters
    /// ----------
    /// words : iterable of str
    ///     At most 20,000 words; distances take 4·V² bytes.
    /// distances : array_like of float, shape (V, V), or callable
    ///     A row a word; or ``distances(a, b)`` of two words, which is called once for each two.
    ///     Numbers are rounded up to multiples of a power of two, less than 2⁻²⁹ of the largest.
    ///
    /// Raises
    /// ------
    /// ParameterError
    ///     A distance that is negative, infinite or NaN, not 0 from a word to itself, not the same both
    ///     ways, or longer than a way round: by the words. No word, or too many.
    /// ShapeError
    ///     The array is not of shape (V, V).
    /// DuplicateWordError
    ///     A word is there twice.
    ///
    /// Examples
    /// --------
    /// >>> from fastdx import Tem, WordGraph
    /// >>> graph = WordGraph.from_distances(
    /// ...     ["one", "two", "three"], lambda a, b: float(abs(len(a) - len(b)) + 1))
    /// >>> graph.distance("one", "three"), Tem(graph, 2.0).guarantee.metric
    /// (3.0, 'given')
    #[staticmethod]
    fn from_distances(
        py: Python<'_>,
        words: &Bound<'_, PyAny>,
        distances: &Bound<'_, PyAny>,
    ) -> PyResult<Space> {
        let words = strings("words", words)?;
        let words = as_strs(&words);
        let graph = with_distances("distances", distances, &words, |numbers| {
            run(py, true, |control| {
                WordGraph::from_distances(&words, numbers, control)
            })
        })?;
        warn_unreadable(py, graph.vocabulary())?;
        Space::new(py, graph, None)
    }

    /// Opens a file that `save` wrote.
    ///
    /// Raises
    /// ------
    /// CorruptFileError
    ///     A damaged, truncated, extended or foreign file.
    #[staticmethod]
    #[pyo3(signature = (path, *, verify = true))]
    fn load(py: Python<'_>, path: PathBuf, verify: bool) -> PyResult<Space> {
        Space::new(py, run(py, true, |_| WordGraph::open(&path, verify))?, None)
    }

    /// Writes the graph to a file: first beside the target, then renamed.
    ///
    /// Raises
    /// ------
    /// OSError
    ///     The file cannot be written.
    /// ParameterError
    ///     The graph is from `from_distances`, which no file holds.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        run(py, true, |_| self.0.save(&path))
    }

    /// The number of edges, each counted once.
    #[getter]
    fn edges(&self) -> usize {
        self.0.edges()
    }

    /// The distance between words that no path joins, larger than all others; None if all are
    /// joined.
    #[getter]
    fn unreachable_distance(&self) -> Option<f64> {
        self.0.unreachable_distance()
    }
}
