//! `fastdx._core.Attribution`: what `fastdx.attribution` is made of.

use numpy::PyArray1;
use pyo3::prelude::*;

use super::arguments::{as_strs, count, real, seed as seed_of, strings, word_ids};
use super::run::{run, run_with};
use super::space::Space;
use crate::attribution::{Attribution, AttributionParameters};
use crate::text::{known_words, look_up, normalize};

/// Known texts of some authors. See ``fastdx.attribution.Attribution``.
#[pyclass(frozen, name = "AttributionCore", module = "fastdx._core")]
pub(super) struct PyAttribution {
    inner: Attribution,
}

#[pymethods]
impl PyAttribution {
    #[new]
    #[pyo3(signature = (texts, authors, count_of_authors, *, features, rounds, fraction, seed))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        authors: &Bound<'_, PyAny>,
        count_of_authors: &Bound<'_, PyAny>,
        features: &Bound<'_, PyAny>,
        rounds: &Bound<'_, PyAny>,
        fraction: &Bound<'_, PyAny>,
        seed: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let texts = strings("texts", texts)?;
        let authors_count = count("authors", count_of_authors)?;
        let (authors, _) = word_ids(authors, authors_count)?;
        let parameters = AttributionParameters {
            features: count("features", features)?,
            rounds: count("rounds", rounds)?,
            fraction: real("fraction", fraction)?,
            seed: seed_of(Some(seed))?.unwrap_or(0),
        };
        let inner = run(py, true, |_| {
            Attribution::new(&as_strs(&texts), &authors, authors_count, parameters)
        })?;
        Ok(PyAttribution { inner })
    }

    #[pyo3(signature = (texts, progress = None))]
    #[allow(clippy::type_complexity)]
    fn attribute<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>)> {
        let texts = strings("texts", texts)?;
        let found = run_with(py, true, progress, |control| {
            self.inner.attribute(&as_strs(&texts), control)
        })?;
        let (authors, shares): (Vec<u32>, Vec<f64>) = found.into_iter().unzip();
        Ok((
            PyArray1::from_vec(py, authors),
            PyArray1::from_vec(py, shares),
        ))
    }
}

/// The words of a text, in lower case and NFC: what bags are made of.
///
/// Parameters
/// ----------
/// text : str
///     The text.
/// space : Embedding or WordGraph, optional
///     Words that punctuation splits ("e-mail") are one where its vocabulary knows them, as for a
///     mechanism on it.
///
/// Returns
/// -------
/// list of str
///
/// Examples
/// --------
/// >>> import fastdx
/// >>> fastdx.tokenize("Don't panic, it's 3.14!")
/// ["don't", 'panic', "it's", '3.14']
#[pyfunction]
#[pyo3(signature = (text, space = None))]
pub(super) fn tokenize(text: &str, space: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let space = space.map(Space::of).transpose()?.map(|space| space.space());
    let vocabulary = space.as_ref().map(|space| space.vocabulary());
    let words = known_words(text, |word| {
        vocabulary.is_some_and(|v| look_up(v, &normalize(word), word).is_some())
    });
    let form = |word: &str| {
        let form = normalize(word);
        let known = vocabulary.and_then(|v| look_up(v, &form, word).map(|id| v.word(id)));
        known.map_or_else(|| form.to_string(), str::to_owned)
    };
    Ok(words.map(|range| form(&text[range])).collect())
}
