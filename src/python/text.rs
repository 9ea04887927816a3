//! Texts from Python, one or a column of them, and their related data: words found elsewhere,
//! replacements kept between calls, counts.

use std::sync::Mutex;

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyString};

use super::arguments::{Text, strings};
use super::errors::wrong_type;
use super::mechanism::PyMechanism;
use super::space::Space;
use crate::text::{Counts, Replacements, compounds_of, known_words, look_up, normalize};

/// A text, or a list of words found elsewhere.
pub(super) enum TextArgument {
    Text(PyBackedStr),
    Tokens(Vec<PyBackedStr>),
}

impl TextArgument {
    pub(super) fn of(name: &str, given: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(match given.cast::<PyString>() {
            Ok(text) => TextArgument::Text(Text::of(text)?),
            Err(_) => TextArgument::Tokens(strings(name, given)?),
        })
    }
}

/// The replacements of a text that arrives in parts: kept until the text ends.
#[pyclass(frozen, name = "Replacements", module = "fastdx._core")]
#[derive(Default)]
pub(super) struct PyReplacements(pub(super) Mutex<Replacements>);

#[pymethods]
impl PyReplacements {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}

pub(super) fn dict_of(py: Python<'_>, counts: Counts) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("words", counts.words)?;
    dict.set_item("replaced", counts.replaced)?;
    dict.set_item("unchanged", counts.unchanged)?;
    dict.set_item("unknown", counts.unknown)?;
    dict.set_item("skipped", counts.skipped)?;
    dict.set_item("numbers", counts.numbers)?;
    dict.set_item("dates", counts.dates)?;
    dict.set_item("misdecoded", counts.misdecoded)?;
    Ok(dict)
}

/// The words of a text, in lower case and NFC, as bags of words use them.
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
pub(super) fn tokenize(text: Text, space: Option<Space>) -> PyResult<Vec<String>> {
    let space = space.map(|space| space.space());
    let vocabulary = space.as_ref().map(|space| space.vocabulary());
    let known =
        |word: &str| vocabulary.is_some_and(|v| look_up(v, &normalize(word), word).is_some());
    let words = known_words(&text, known, |beginning| {
        vocabulary.is_some_and(|v| compounds_of(v).contains(beginning))
    });
    let form = |word: &str| {
        let form = normalize(word);
        let known = vocabulary.and_then(|v| look_up(v, &form, word).map(|id| v.word(id)));
        known.map_or_else(|| form.to_string(), str::to_owned)
    };
    Ok(words.map(|range| form(&text[range])).collect())
}

/// Privatises the texts of an Arrow array of large strings, read in place: `offsets` has one more
/// number than there are texts. `first` is the number of texts before, for errors. Returns the new
/// offsets and bytes, and the counts of `privatize_counted`.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub(super) fn privatize_strings<'py>(
    py: Python<'py>,
    mechanism: PyRef<'py, PyMechanism>,
    offsets: PyReadonlyArray1<'py, i64>,
    bytes: PyReadonlyArray1<'py, u8>,
    replacements: &Bound<'py, PyReplacements>,
    first: usize,
) -> PyResult<(
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<u8>>,
    Bound<'py, PyDict>,
)> {
    let (offsets, bytes) = (offsets.as_slice()?, bytes.as_slice()?);
    let text = |ends: &[i64]| {
        let range = usize::try_from(ends[0]).ok()?..usize::try_from(ends[1]).ok()?;
        std::str::from_utf8(bytes.get(range)?).ok()
    };
    let texts: Option<Vec<&str>> = offsets.windows(2).map(text).collect();
    let texts =
        texts.ok_or_else(|| wrong_type("text is an Arrow column that is damaged".into()))?;
    let (out, counts) = mechanism.texts_with(py, &texts, replacements.get(), first)?;
    mechanism.warn(py, counts)?;
    let mut end = 0;
    let ends = out.iter().map(|text| {
        end += text.len() as i64;
        end
    });
    let offsets = PyArray1::from_iter(py, [0].into_iter().chain(ends));
    let bytes = PyArray1::from_vec(py, out.concat().into_bytes());
    Ok((offsets, bytes, dict_of(py, counts)?))
}
