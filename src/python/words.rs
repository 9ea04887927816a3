//! What a mechanism works on: an Embedding or a WordGraph.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;

use super::arguments::strings;
use super::embedding::PyEmbedding;
use super::errors::wrong_type;
use super::graph::PyWordGraph;
use super::run::run;
use crate::mechanism::guarantee::Certificate;
use crate::{Embedding, Error, Hidden, MetricSpace, Vocabulary};

/// Words and a metric on them, as Python objects.
pub(super) enum Words {
    Embedding(Py<PyEmbedding>),
    Graph(Py<PyWordGraph>),
}

impl Words {
    /// An argument that is to be one of the two.
    pub(super) fn of(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(embedding) = given.cast::<PyEmbedding>() {
            return Ok(Words::Embedding(embedding.clone().unbind()));
        }
        if let Ok(graph) = given.cast::<PyWordGraph>() {
            return Ok(Words::Graph(graph.clone().unbind()));
        }
        let got = given.get_type().qualname()?;
        Err(wrong_type(
            given.py(),
            format!("embedding must be a fastdx.Embedding (or, for Tem, a WordGraph), not {got}"),
        ))
    }

    pub(super) fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Words::Embedding(embedding) => Words::Embedding(embedding.clone_ref(py)),
            Words::Graph(graph) => Words::Graph(graph.clone_ref(py)),
        }
    }

    pub(super) fn object(&self, py: Python<'_>) -> Py<PyAny> {
        match self {
            Words::Embedding(embedding) => embedding.clone_ref(py).into_any(),
            Words::Graph(graph) => graph.clone_ref(py).into_any(),
        }
    }

    pub(super) fn space(&self) -> Arc<dyn MetricSpace> {
        match self {
            Words::Embedding(embedding) => embedding.get().inner.clone(),
            Words::Graph(graph) => graph.get().inner.clone(),
        }
    }

    /// The embedding, for what needs vectors.
    pub(super) fn vectors(&self, py: Python<'_>) -> PyResult<Arc<Embedding>> {
        match self {
            Words::Embedding(embedding) => Ok(embedding.get().inner.clone()),
            Words::Graph(_) => Err(wrong_type(
                py,
                "embedding must be a fastdx.Embedding: a WordGraph has no vectors, only Tem \
                 works on it"
                    .into(),
            )),
        }
    }

    /// The embedding as an attribute.
    pub(super) fn embedding(&self, py: Python<'_>) -> PyResult<Py<PyEmbedding>> {
        match self {
            Words::Embedding(embedding) => Ok(embedding.clone_ref(py)),
            Words::Graph(_) => Err(PyAttributeError::new_err(
                "the mechanism works on a WordGraph: see .space",
            )),
        }
    }

    /// The same words with a certificate.
    pub(super) fn with_certificate(
        &self,
        py: Python<'_>,
        certificate: Certificate,
    ) -> PyResult<Self> {
        Ok(match self {
            Words::Embedding(embedding) => {
                let old = &embedding.get().inner;
                let mut all = old.certificates().to_vec();
                all.push(certificate);
                let new = (**old).clone().with_certificates(all);
                Words::Embedding(Py::new(py, PyEmbedding::from(new))?)
            }
            Words::Graph(graph) => {
                let new = graph.get().inner.certified(certificate);
                Words::Graph(Py::new(py, PyWordGraph::from(new))?)
            }
        })
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Words::Embedding(embedding) => {
                let e = &embedding.get().inner;
                format!("{} words × {}, {}", e.len(), e.dim(), e.metric())
            }
            Words::Graph(graph) => {
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

/// The id of a word of a text or list, or an error that says its place and not the word.
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

/// The ids of words.
pub(super) fn ids<'py>(
    py: Python<'py>,
    space: &dyn MetricSpace,
    words: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let words = strings("words", words)?;
    let ids = run(py, false, |_| {
        let ids = words.iter().enumerate();
        let ids = ids.map(|(i, word)| known(space.vocabulary(), word, || format!("words[{i}]")));
        ids.collect::<Result<Vec<_>, _>>()
    })?;
    Ok(PyArray1::from_vec(py, ids))
}

/// The distance between two words.
pub(super) fn distance(space: &dyn MetricSpace, a: &str, b: &str) -> PyResult<f64> {
    let words = space.vocabulary();
    Ok(space.distance(words.require(a)?, words.require(b)?))
}

/// The distances from a word to every word.
pub(super) fn distances<'py>(
    py: Python<'py>,
    space: &dyn MetricSpace,
    word: &str,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let id = space.vocabulary().require(word)?;
    let row = run(py, false, |_| {
        let mut row = vec![0.0; space.vocabulary().len()];
        space.distances(id, &mut row);
        Ok(row)
    })?;
    Ok(PyArray1::from_vec(py, row))
}
