//! `fastdx.SearchQuality`.

use pyo3::prelude::*;

use crate::mechanism::quality::SearchQuality;

/// How closely an approximate search agrees with the exact one on a mechanism's own noisy points.
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

    /// Noisy points per word.
    #[getter]
    fn draws(&self) -> usize {
        self.quality.draws
    }

    /// Share of points whose nearest word was found.
    #[getter]
    fn recall(&self) -> f64 {
        self.quality.recall
    }

    /// Mean ratio of the found distance to the true nearest one.
    #[getter]
    fn distance_ratio(&self) -> f64 {
        self.quality.distance_ratio
    }

    /// Total-variation distance between a word's output laws under the two searches, averaged over
    /// words and estimated from common noise.
    #[getter]
    fn total_variation(&self) -> f64 {
        self.quality.total_variation
    }

    /// The word whose law is distorted most, and its total variation.
    #[getter]
    fn worst(&self) -> (&str, f64) {
        (&self.worst_word, self.quality.worst.0)
    }

    /// A warning in plain words, or None if the law is not distorted.
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
