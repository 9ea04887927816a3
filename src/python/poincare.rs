//! `fastdx._core.PoincareTraining`: the core of `fastdx.poincare`.

use pyo3::prelude::*;

use super::arguments::{
    as_strs, count, matrix_f32, real, seed as seed_of, strings, word_ids, wrong_shape,
};
use super::embedding::PyEmbedding;
use super::run::run;
use super::space::Space;
use crate::support::random::Key;
use crate::words::embedding::poincare::{Training, TrainingParameters, reconstruction};
use crate::{Embedding, Error, Metric, Randomness, Vocabulary};

/// A run of Poincaré training. See ``fastdx.poincare.train``.
#[pyclass(name = "PoincareTraining", module = "fastdx._core")]
pub(super) struct PyTraining {
    vocabulary: Vocabulary,
    dim: usize,
    key: Key,
    training: Training,
}

fn pairs(edges: &Bound<'_, PyAny>, nodes: usize) -> PyResult<Vec<(u32, u32)>> {
    let (ids, shape) = word_ids(edges, nodes)?;
    if shape.len() != 2 || shape[1] != 2 {
        return Err(wrong_shape("edges", "(m, 2)", &shape));
    }
    Ok(ids.chunks_exact(2).map(|e| (e[0], e[1])).collect())
}

#[pymethods]
impl PyTraining {
    #[new]
    #[pyo3(signature = (words, edges, dim, *, epochs, negatives, burn_in, lr, threads, seed = None, vectors = None, epoch = None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        words: &Bound<'_, PyAny>,
        edges: &Bound<'_, PyAny>,
        dim: &Bound<'_, PyAny>,
        epochs: &Bound<'_, PyAny>,
        negatives: &Bound<'_, PyAny>,
        burn_in: &Bound<'_, PyAny>,
        lr: &Bound<'_, PyAny>,
        threads: &Bound<'_, PyAny>,
        seed: Option<&Bound<'_, PyAny>>,
        vectors: Option<&Bound<'_, PyAny>>,
        epoch: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let words = strings("words", words)?;
        let vocabulary = Vocabulary::new(as_strs(&words))?;
        let parameters = TrainingParameters {
            dim: count("dim", dim)?,
            epochs: count("epochs", epochs)?,
            negatives: count("negatives", negatives)?,
            burn_in: count("burn_in", burn_in)?,
            rate: real("lr", lr)?,
            threads: count("threads", threads)?,
        };
        let from = match vectors {
            None => None,
            Some(vectors) => {
                let (vectors, ..) = matrix_f32("vectors", vectors)?;
                Some((vectors, epoch.map_or(Ok(0), |e| count("epoch", e))?))
            }
        };
        let edges = pairs(edges, vocabulary.len())?;
        let key = Randomness::new(seed_of(seed)?).next_key()?;
        let training = Training::new(vocabulary.len(), edges, parameters, from, &key)?;
        Ok(PyTraining {
            vocabulary,
            dim: parameters.dim,
            key,
            training,
        })
    }

    /// Epochs done.
    #[getter]
    fn epoch(&self) -> usize {
        self.training.epoch()
    }

    /// Makes one pass over the edges; returns the mean loss per edge.
    fn run_epoch(&mut self, py: Python<'_>) -> PyResult<f64> {
        let PyTraining { training, key, .. } = self;
        run(py, true, |control| training.run_epoch(key, control))
    }

    /// The current embedding.
    fn embedding(&self, py: Python<'_>) -> PyResult<Space> {
        let vectors = self.training.vectors();
        let words = self.vocabulary.clone();
        let embedding = Embedding::new(words, vectors, self.dim, Metric::Poincare)?;
        Space::new(py, embedding, None)
    }
}

/// Mean rank and mean average precision with which an embedding's distances reconstruct the edges.
#[pyfunction]
pub(super) fn poincare_reconstruction(
    py: Python<'_>,
    embedding: PyRef<'_, PyEmbedding>,
    edges: &Bound<'_, PyAny>,
) -> PyResult<(f64, f64)> {
    let space = embedding.0.clone();
    let edges = pairs(edges, space.len())?;
    if edges.is_empty() {
        return Err(Error::parameter("edges", "at least one", "none").into());
    }
    let found = run(py, true, |control| reconstruction(&*space, &edges, control))?;
    Ok((found.mean_rank, found.map))
}
