//! The words that a mechanism works on: `fastdx.Embedding` and `fastdx.WordGraph`.

use std::ops::Deref;
use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyTuple};

use super::arguments::{Text, numbers, strings, type_of};
use super::embedding::PyEmbedding;
use super::errors::wrong_type;
use super::graph::PyWordGraph;
use super::run::run;
use super::source::{Origin, Reduced};
use crate::words::embedding::format::native;
use crate::words::index::Index;
use crate::{Cover, Embedding, Error, Hidden, MetricSpace, Vocabulary, WordGraph};

/// Words and a metric on them: the base of `Embedding` and `WordGraph`.
#[pyclass(frozen, subclass, name = "Space", module = "fastdx._core")]
pub(super) struct PySpace {
    /// The words, their metric, and the data computed for them.
    pub(super) index: Index,
    /// Where it came from, if it need not be pickled whole.
    pub(super) origin: Option<Origin>,
    words: PyOnceLock<Py<PyTuple>>,
}

/// An Embedding or a WordGraph, as an argument and as a result.
#[derive(IntoPyObject)]
#[pyo3(transparent)]
pub(super) struct Space(Py<PySpace>);

impl<'py> FromPyObject<'_, 'py> for Space {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match given.cast::<PySpace>() {
            Ok(space) => Ok(Space(space.to_owned().unbind())),
            Err(_) => Err(wrong_type(format!(
                "embedding must be a fastdx.Embedding (or, for Tem, a WordGraph), not {}",
                type_of(&given)
            ))),
        }
    }
}

impl Deref for Space {
    type Target = PySpace;

    fn deref(&self) -> &PySpace {
        self.0.get()
    }
}

impl From<Embedding> for Index {
    fn from(embedding: Embedding) -> Self {
        Index::Embedding(Arc::new(embedding))
    }
}

impl From<WordGraph> for Index {
    fn from(graph: WordGraph) -> Self {
        Index::Graph(Arc::new(graph))
    }
}

impl Space {
    /// Wraps words and their metric; with their origin they need not be pickled whole.
    pub(super) fn new(
        py: Python<'_>,
        index: impl Into<Index>,
        origin: Option<Origin>,
    ) -> PyResult<Self> {
        let index = index.into();
        let base = PyClassInitializer::from(PySpace {
            index: index.clone(),
            origin,
            words: PyOnceLock::new(),
        });
        let object = match index {
            Index::Embedding(inner) => {
                Bound::new(py, base.add_subclass(PyEmbedding(inner)))?.into_super()
            }
            Index::Graph(inner) => {
                Bound::new(py, base.add_subclass(PyWordGraph(inner)))?.into_super()
            }
        };
        Ok(Space(object.unbind()))
    }

    pub(super) fn clone_ref(&self, py: Python<'_>) -> Self {
        Space(self.0.clone_ref(py))
    }
}

impl PySpace {
    /// Whether it is pickled as a reference to its index file, which holds a cover of its own.
    pub(super) fn is_referenced(&self) -> bool {
        matches!(self.origin, Some(Origin::Index { .. }))
    }

    pub(super) fn space(&self) -> Arc<dyn MetricSpace> {
        self.index.space()
    }

    /// Whether this object belongs to exactly this index.
    pub(super) fn is(&self, index: &Index) -> bool {
        match (&self.index, index) {
            (Index::Embedding(a), Index::Embedding(b)) => Arc::ptr_eq(a, b),
            (Index::Graph(a), Index::Graph(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    pub(super) fn cover(&self) -> Option<Arc<Cover>> {
        match &self.index {
            Index::Embedding(embedding) => embedding.cover().cloned(),
            Index::Graph(graph) => graph.cover().cloned(),
        }
    }

    /// The words and their metric, in a few words.
    pub(super) fn describe(&self) -> String {
        match &self.index {
            Index::Embedding(e) => format!("{} words × {}, {}", e.len(), e.dim(), e.metric()),
            Index::Graph(g) => {
                let (words, edges) = (g.vocabulary().len(), g.edges());
                format!("{words} words, {edges} edges, {}", g.metric_name())
            }
        }
    }
}

/// The id of a word of a text or list, or an error with its position but not the word.
pub(super) fn known(
    vocabulary: &Vocabulary,
    word: &str,
    place: impl Fn() -> String,
) -> crate::Result<u32> {
    vocabulary.id(word).ok_or_else(|| Error::UnknownInText {
        place: format!("{},", place()),
        length: word.chars().count(),
        at: None,
        word: Hidden::new(word),
    })
}

#[pymethods]
impl PySpace {
    /// All words, in the order of their ids.
    #[getter]
    fn words<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        if let Some(words) = self.words.get(py) {
            return Ok(words.bind(py).clone());
        }
        // Made outside the lock: a child that is forked meanwhile would wait for it for ever.
        let space = self.space();
        let words: Vec<&str> = space.vocabulary().iter().collect();
        let words = PyTuple::new(py, words)?;
        let _ = self.words.set(py, words.clone().unbind());
        Ok(words)
    }

    /// The metric's name; of a WordGraph 'shortest-path', or 'given' with `from_distances`.
    #[getter]
    fn metric(&self) -> &'static str {
        self.space().metric_name()
    }

    fn __len__(&self) -> usize {
        self.space().vocabulary().len()
    }

    fn __contains__(&self, word: &Bound<'_, PyAny>) -> bool {
        let word = word.extract::<&str>();
        word.is_ok_and(|word| self.space().vocabulary().id(word).is_some())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(format!(
            "{}({})",
            slf.get_type().name()?,
            slf.get().describe()
        ))
    }

    /// The ids of words, as a uint32 array.
    ///
    /// Raises
    /// ------
    /// UnknownWordError
    ///     Names the first word that is not in the vocabulary.
    fn ids<'py>(
        &self,
        py: Python<'py>,
        words: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let (words, space) = (strings("words", words)?, self.space());
        let ids = run(py, false, |_| {
            let ids = words.iter().enumerate();
            let ids = ids.map(|(i, w)| known(space.vocabulary(), w, || format!("words[{i}]")));
            ids.collect::<crate::Result<Vec<_>>>()
        })?;
        Ok(PyArray1::from_vec(py, ids))
    }

    /// The distance between two words in the metric: of a WordGraph, the length of the shortest path.
    ///
    /// Raises
    /// ------
    /// UnknownWordError
    ///     Names the word that is not in the vocabulary.
    fn distance(&self, a: Text, b: Text) -> PyResult<f64> {
        let space = self.space();
        let words = space.vocabulary();
        Ok(space.distance(words.require(&a)?, words.require(&b)?))
    }

    /// Distances from a word to every word: float64, shape (V,).
    ///
    /// Raises
    /// ------
    /// UnknownWordError
    ///     The word is not in the vocabulary.
    fn distances<'py>(&self, py: Python<'py>, word: Text) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let space = self.space();
        let id = space.vocabulary().require(&word)?;
        let row = run(py, false, |_| {
            let mut row = vec![0.0; space.vocabulary().len()];
            space.distances(id, &mut row);
            Ok(row)
        })?;
        Ok(PyArray1::from_vec(py, row))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        if let Some(origin) = &self.origin
            && let Some(reduced) = origin.reduced(py, &self.index)?
        {
            return Ok(reduced);
        }
        let core = py.import("fastdx._core")?;
        let bytes = match &self.index {
            Index::Graph(graph) if graph.is_table() => {
                let rows = table(&**graph);
                let given = (self.words(py)?, PyArray1::from_vec(py, rows));
                return Ok((core.getattr("checked_graph")?, given.into_pyobject(py)?));
            }
            Index::Graph(graph) => graph.to_bytes(),
            Index::Embedding(embedding) => native::to_bytes(embedding),
        };
        let bytes = PyBytes::new(py, &bytes);
        Ok((core.getattr("unpacked_space")?, PyTuple::new(py, [bytes])?))
    }
}

fn table(space: &dyn MetricSpace) -> Vec<f64> {
    let count = space.vocabulary().len();
    let mut rows = vec![0.0; count * count];
    let each = rows.chunks_exact_mut(count).zip(0..);
    each.for_each(|(row, id)| space.distances(id, row));
    rows
}

/// The Embedding or WordGraph of a pickle.
#[pyfunction]
pub(super) fn unpacked_space(py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<Space> {
    let data = data.as_bytes();
    Space::new(py, run(py, false, |_| Index::from_bytes(data))?, None)
}

/// The WordGraph of a pickled table of distances, float64, shape (V·V,), which was checked before.
#[pyfunction]
pub(super) fn checked_graph(
    py: Python<'_>,
    words: &Bound<'_, PyAny>,
    distances: &Bound<'_, PyAny>,
) -> PyResult<Space> {
    let (words, rows) = (strings("words", words)?, numbers("distances", distances)?);
    let words: Vec<&str> = words.iter().map(|word| &**word).collect();
    Space::new(py, WordGraph::from_checked(&words, &rows)?, None)
}
