//! `fastdx.SearchQuality`.

use pyo3::prelude::*;

use crate::mechanism::quality::SearchQuality;

/// How far an approximate search is from the exact one on a mechanism's own noisy points.
///
/// Made by ``MultivariateLaplace.search_quality``.
#[pyclass(frozen, name = "SearchQuality", module = "fastdx")]
pub(super) struct PySearchQuality {
    pub(super) quality: SearchQuality,
    pub(super) worst_word: String,
}

#[pymethods]
impl PySearchQuality {
    /// Words measured.
    #[getter]
    fn words(&self) -> usize {
        self.quality.words
    }

    /// Noisy points a word.
    #[getter]
    fn draws(&self) -> usize {
        self.quality.draws
    }

    /// Share of points whose nearest word was found.
    #[getter]
    fn recall(&self) -> f64 {
        self.quality.recall
    }

    /// Mean of the distance found over the true one.
    #[getter]
    fn distance_ratio(&self) -> f64 {
        self.quality.distance_ratio
    }

    /// Total-variation distance between the output laws of a word with the two searches, mean
    /// over the words, estimated from common noise.
    #[getter]
    fn total_variation(&self) -> f64 {
        self.quality.total_variation
    }

    /// The word whose law is distorted most, and by how much.
    #[getter]
    fn worst(&self) -> (&str, f64) {
        (&self.worst_word, self.quality.worst.0)
    }

    /// In plain words what is wrong, or None where the law is not distorted.
    #[getter]
    fn warning(&self) -> Option<String> {
        self.quality.warning()
    }

    fn __repr__(&self) -> String {
        let q = &self.quality;
        format!(
            "SearchQuality(recall={:.4}, distance_ratio={:.4}, total_variation={:.4}, worst={:?}: \
             {:.4}; {} words × {} draws)",
            q.recall,
            q.distance_ratio,
            q.total_variation,
            self.worst_word,
            q.worst.0,
            q.words,
            q.draws
        )
    }
}
