//! The words that a mechanism works on: an Embedding or a WordGraph.

use std::path::Path;
use std::sync::Arc;

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;

use super::arguments::type_of;
use super::embedding::PyEmbedding;
use super::errors::wrong_type;
use super::graph::PyWordGraph;
use super::run::run;
use super::source::Origin;
use crate::words::index::Index;
use crate::{Cover, Embedding, MetricSpace};

/// Words and a metric on them, as Python objects.
pub(super) enum Space {
    Embedding(Py<PyEmbedding>),
    Graph(Py<PyWordGraph>),
}

impl Space {
    /// Converts an argument that must be one of the two.
    pub(super) fn of(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(embedding) = given.cast::<PyEmbedding>() {
            return Ok(Space::Embedding(embedding.clone().unbind()));
        }
        if let Ok(graph) = given.cast::<PyWordGraph>() {
            return Ok(Space::Graph(graph.clone().unbind()));
        }
        let got = type_of(given);
        Err(wrong_type(format!(
            "embedding must be a fastdx.Embedding (or, for Tem, a WordGraph), not {got}"
        )))
    }

    /// Opens a file in fastdx's format.
    pub(super) fn open(py: Python<'_>, path: &Path, verify: bool) -> PyResult<Self> {
        Self::from_file(py, run(py, true, |_| Index::open(path, verify))?, None)
    }

    /// Wraps the contents of a file; with its origin it need not be pickled whole.
    pub(super) fn from_file(
        py: Python<'_>,
        index: Index,
        origin: Option<Origin>,
    ) -> PyResult<Self> {
        Ok(match index {
            Index::Embedding(inner) => {
                let mut embedding = PyEmbedding::from(inner);
                embedding.origin = origin;
                Space::Embedding(Py::new(py, embedding)?)
            }
            Index::Graph(inner) => {
                let mut graph = PyWordGraph::from(inner);
                graph.origin = origin;
                Space::Graph(Py::new(py, graph)?)
            }
        })
    }

    pub(super) fn origin(&self) -> Option<&Origin> {
        match self {
            Space::Embedding(embedding) => embedding.get().origin.as_ref(),
            Space::Graph(graph) => graph.get().origin.as_ref(),
        }
    }

    /// Whether it is pickled as a reference to its index file, which holds a cover of its own.
    pub(super) fn is_referenced(&self) -> bool {
        matches!(self.origin(), Some(Origin::Index(_)))
    }

    pub(super) fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Space::Embedding(embedding) => Space::Embedding(embedding.clone_ref(py)),
            Space::Graph(graph) => Space::Graph(graph.clone_ref(py)),
        }
    }

    pub(super) fn object(&self, py: Python<'_>) -> Py<PyAny> {
        match self {
            Space::Embedding(embedding) => embedding.clone_ref(py).into_any(),
            Space::Graph(graph) => graph.clone_ref(py).into_any(),
        }
    }

    pub(super) fn space(&self) -> Arc<dyn MetricSpace> {
        match self {
            Space::Embedding(embedding) => embedding.get().inner.clone(),
            Space::Graph(graph) => graph.get().inner.clone(),
        }
    }

    /// The words, their metric, and the data computed for them.
    pub(super) fn index(&self) -> Index {
        match self {
            Space::Embedding(embedding) => Index::Embedding(embedding.get().inner.clone()),
            Space::Graph(graph) => Index::Graph(graph.get().inner.clone()),
        }
    }

    /// Whether this object belongs to exactly this index.
    pub(super) fn is(&self, index: &Index) -> bool {
        match (self, index) {
            (Space::Embedding(a), Index::Embedding(b)) => Arc::ptr_eq(&a.get().inner, b),
            (Space::Graph(a), Index::Graph(b)) => Arc::ptr_eq(&a.get().inner, b),
            _ => false,
        }
    }

    /// The cover in its file.
    pub(super) fn cover(&self) -> Option<Arc<Cover>> {
        match self {
            Space::Embedding(embedding) => embedding.get().inner.cover().cloned(),
            Space::Graph(graph) => graph.get().inner.cover().cloned(),
        }
    }

    /// The embedding, for features that need vectors.
    pub(super) fn vectors(&self) -> PyResult<Arc<Embedding>> {
        match self {
            Space::Embedding(embedding) => Ok(embedding.get().inner.clone()),
            Space::Graph(_) => Err(wrong_type(
                "embedding must be a fastdx.Embedding: a WordGraph has no vectors, only Tem \
                 works on it"
                    .into(),
            )),
        }
    }

    /// The embedding as an attribute.
    pub(super) fn embedding(&self, py: Python<'_>) -> PyResult<Py<PyEmbedding>> {
        match self {
            Space::Embedding(embedding) => Ok(embedding.clone_ref(py)),
            Space::Graph(_) => Err(PyAttributeError::new_err(
                "the mechanism works on a WordGraph: see .space",
            )),
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Space::Embedding(embedding) => {
                let e = &embedding.get().inner;
                format!("{} words × {}, {}", e.len(), e.dim(), e.metric())
            }
            Space::Graph(graph) => {
                let g = &graph.get().inner;
                format!(
                    "{} words, {} edges, {}",
                    g.len(),
                    g.edges(),
                    g.metric_name()
                )
            }
        }
    }
}
