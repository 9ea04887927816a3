//! `fastdx.SearchQuality`.

use pyo3::prelude::*;

use crate::mechanism::quality::SearchQuality;

/// How closely an approximate search agrees with the exact one on a mechanism's own noisy points.
///
/// Made by ``MultivariateLaplace.search_quality``.
#[pyclass(frozen, get_all, name = "SearchQuality", module = "fastdx")]
pub(super) struct PySearchQuality {
    /// Words measured.
    words: usize,
    /// Noisy points per word.
    draws: usize,
    /// Share of points whose nearest word was found.
    recall: f64,
    /// Mean ratio of the found distance to the true nearest one.
    distance_ratio: f64,
    /// Total-variation distance between a word's output laws under the two searches, averaged over
    /// words and estimated from common noise.
    total_variation: f64,
    /// The word whose law is distorted most, and its total variation.
    worst: (String, f64),
    /// A warning in plain words, or None if the law is not distorted.
    pub(super) warning: Option<String>,
}

impl PySearchQuality {
    pub(super) fn new(found: &SearchQuality, worst: &str) -> Self {
        PySearchQuality {
            words: found.words,
            draws: found.draws,
            recall: found.recall,
            distance_ratio: found.distance_ratio,
            total_variation: found.total_variation,
            worst: (worst.to_owned(), found.worst.0),
            warning: found.warning(),
        }
    }
}

#[pymethods]
impl PySearchQuality {
    fn __repr__(&self) -> String {
        format!(
            "SearchQuality(recall={:.4}, distance_ratio={:.4}, total_variation={:.4}, worst={:?}: \
             {:.4}; {} words × {} draws)",
            self.recall,
            self.distance_ratio,
            self.total_variation,
            self.worst.0,
            self.worst.1,
            self.words,
            self.draws
        )
    }
}
