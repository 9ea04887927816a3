//! `fastdx.tokenize`.

use pyo3::prelude::*;

use super::arguments::Text;
use super::space::Space;
use crate::text::{compounds_of, known_words, look_up, normalize};

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
pub(super) fn tokenize(text: Text, space: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let space = space.map(Space::of).transpose()?.map(|space| space.space());
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
