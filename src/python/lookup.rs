//! Look-ups that an Embedding and a WordGraph share.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use super::arguments::strings;
use super::run::run;
use crate::{Error, Hidden, MetricSpace, Vocabulary};

/// The id of a word of a text or list, or an error with its position but not the word.
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

/// All words, in the order of their ids; `kept` holds them after the first call.
pub(super) fn words<'py>(
    py: Python<'py>,
    kept: &PyOnceLock<Py<PyTuple>>,
    vocabulary: &Vocabulary,
) -> PyResult<Bound<'py, PyTuple>> {
    if let Some(words) = kept.get(py) {
        return Ok(words.bind(py).clone());
    }
    // Made outside the lock: a child that is forked meanwhile would wait for it for ever.
    let words: Vec<&str> = vocabulary.iter().collect();
    let words = PyTuple::new(py, words)?;
    let _ = kept.set(py, words.clone().unbind());
    Ok(words)
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
