//! Texts from Python and their related data: words found elsewhere, replacements kept between
//! calls, counts, positions in characters.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBool, PyDict, PyString};

use super::arguments::{Text, strings};
use crate::Error;
use crate::text::{Consistent, Counts, Replacements};

/// Whether equal words share a draw: False, True or 'call'.
pub(super) fn consistency(value: &Bound<'_, PyAny>) -> PyResult<Consistent> {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(match flag.is_true() {
            true => Consistent::Text,
            false => Consistent::Never,
        });
    }
    match value.extract::<PyBackedStr>().as_deref() {
        Ok("call") => Ok(Consistent::Call),
        _ => Err(Error::parameter("consistent", "True, False or 'call'", value.repr()?).into()),
    }
}

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

/// The counts as a dict.
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
