//! `fastdx.MultivariateLaplace`.

use numpy::PyArrayDyn;
use pyo3::prelude::*;

use super::as_kind;
use crate::distance::search::Search;
use crate::mechanism::quality;
use crate::python::arguments::strings;
use crate::python::arguments::{count, matrix, shape_text, shaped};
use crate::python::errors::{FastdxWarning, warn};
use crate::python::lookup::known;
use crate::python::mechanism::PyMechanism;
use crate::python::quality::PySearchQuality;
use crate::python::run::run;
use crate::{Error, Mechanism, MultivariateLaplace};

/// Returns noisy vectors.
#[pyfunction]
pub(in crate::python) fn laplace_perturb<'py>(
    py: Python<'py>,
    core: PyRef<'py, PyMechanism>,
    vectors: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let laplace: &MultivariateLaplace = as_kind(&core, "a MultivariateLaplace")?;
    let (numbers, m, n) = matrix::<f64>("vectors", vectors)?;
    let dim = laplace.embedding().dim();
    if n != dim {
        let error = Error::Shape {
            what: "vectors",
            expected: format!("(m, {dim})"),
            got: shape_text(&[m, n]),
        };
        return Err(error.into());
    }
    let noisy = run(py, m > 256, |control| laplace.perturb(&numbers, control))?;
    shaped(py, noisy, &[m, n])
}

/// Measures how the embedding's graph changes the mechanism's law.
#[pyfunction]
pub(in crate::python) fn laplace_search_quality(
    py: Python<'_>,
    core: PyRef<'_, PyMechanism>,
    words: Option<&Bound<'_, PyAny>>,
    draws: &Bound<'_, PyAny>,
    ef: Option<&Bound<'_, PyAny>>,
) -> PyResult<PySearchQuality> {
    let laplace: &MultivariateLaplace = as_kind(&core, "a MultivariateLaplace")?;
    let Some(hnsw) = laplace.embedding().hnsw() else {
        let expected = "on an embedding with an HNSW graph (build_hnsw)";
        return Err(Error::parameter("mechanism", expected, "one without").into());
    };
    let vocabulary = laplace.vocabulary();
    let ids: Vec<u32> = match words {
        Some(words) => {
            let words = strings("words", words)?;
            let ids = words.iter().enumerate();
            ids.map(|(i, word)| known(vocabulary, word, || format!("words[{i}]")))
                .collect::<crate::Result<_>>()?
        }
        None => {
            let count = vocabulary.len().min(100);
            let spread = (0..count).map(|i| (i * vocabulary.len() / count) as u32);
            spread.collect()
        }
    };
    let draws = count("draws", draws)?;
    let ef = match (ef, laplace.search()) {
        (Some(ef), _) => count("ef", ef)?,
        (None, Search::Hnsw { ef }) => ef,
        (None, Search::Exact) => 256,
    };
    let quality = run(py, true, |control| {
        quality::measure(laplace, hnsw, ef, &ids, draws, control)
    })?;
    let found = PySearchQuality::new(&quality, vocabulary.word(quality.worst.1));
    if let Some(warning) = &found.warning {
        warn::<FastdxWarning>(py, warning)?;
    }
    Ok(found)
}
