//! Converts core errors to Python exceptions from `fastdx.exceptions`, in one exhaustive match.

use std::ffi::CString;

use pyo3::PyTypeInfo;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::Error;
use crate::Vocabulary;
use crate::text::unreadable;

/// The Python classes, imported once.
mod classes {
    macro_rules! imported {
        ($($name:ident)*) => { $(pyo3::import_exception!(fastdx.exceptions, $name);)* };
    }
    imported! {
        CorruptFileError DuplicateWordError FastdxWarning FileError FormatError InputTypeError
        MissingFileError ParameterError ShapeError SystemResourceError TooLargeError
        UnchangedWarning UnknownWordError UnknownWordsWarning VectorError WordIdError
    }
}

pub(super) use classes::{FastdxWarning, UnchangedWarning, UnknownWordsWarning};

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        Python::attach(|py| to_python(py, error).unwrap_or_else(|e| e))
    }
}

fn to_python(py: Python<'_>, error: Error) -> PyResult<PyErr> {
    let message = error.to_string();
    let error = match error {
        // A model in Python raised it.
        Error::Model { source } => match source.downcast::<PyErr>() {
            Ok(raised) => return Ok(*raised),
            Err(source) => Error::Model { source },
        },
        error => error,
    };
    let raised = match &error {
        Error::Parameter { .. } | Error::Model { .. } => classes::ParameterError::new_err(message),
        Error::UnknownWord { .. } | Error::UnknownInText { .. } => {
            classes::UnknownWordError::new_err(message)
        }
        Error::WordId { .. } => classes::WordIdError::new_err(message),
        Error::Shape { .. } => classes::ShapeError::new_err(message),
        Error::Vector { .. } => classes::VectorError::new_err(message),
        Error::DuplicateWord { .. } => classes::DuplicateWordError::new_err(message),
        Error::Format { .. } => classes::FormatError::new_err(message),
        Error::Corrupt { .. } => classes::CorruptFileError::new_err(message),
        Error::Io { path, source } => {
            // OSError's own form: (errno, message, file name).
            let name = path.as_os_str().to_owned();
            let arguments = (source.raw_os_error(), source.to_string(), name);
            match source.kind() {
                std::io::ErrorKind::NotFound => classes::MissingFileError::new_err(arguments),
                _ => classes::FileError::new_err(arguments),
            }
        }
        Error::TooLarge { .. } => classes::TooLargeError::new_err(message),
        Error::System { .. } => classes::SystemResourceError::new_err(message),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
    };
    // The hidden part of the message, for the program that catches the error.
    let value = raised.value(py);
    match &error {
        Error::UnknownWord { word } | Error::DuplicateWord { word, .. } => {
            value.setattr("word", word)?;
        }
        Error::UnknownInText { word, at, .. } => {
            value.setattr("word", word.reveal())?;
            value.setattr("text", at.map(|at| at.0))?;
            value.setattr("start", at.map(|at| at.1))?;
        }
        Error::Format { line, offender, .. } => {
            value.setattr("line", line)?;
            value.setattr("word", offender.as_ref().map(|o| o.reveal()))?;
        }
        _ => {}
    }
    Ok(raised)
}

/// Says how many words of a new space are never released in text.
pub(super) fn warn_unreadable(py: Python<'_>, vocabulary: &Vocabulary) -> PyResult<()> {
    let unreadable = unreadable(vocabulary);
    let Some(&first) = unreadable.first() else {
        return Ok(());
    };
    let message = format!(
        "{} of the {} words are never released: read in a text, they would not be found as these \
         words (the first one: {:?}). They stay protected inputs",
        unreadable.len(),
        vocabulary.len(),
        vocabulary.word(first)
    );
    warn::<FastdxWarning>(py, &message)
}

/// Says how many words of a file were left out because they are repeated.
pub(super) fn warn_repeated(py: Python<'_>, repeated: usize) -> PyResult<()> {
    match repeated {
        0 => Ok(()),
        _ => warn::<FastdxWarning>(
            py,
            &format!(
                "{repeated} entries of the file repeat a word: the first vector of each counts"
            ),
        ),
    }
}

/// Issues a warning of a class, which is no error.
pub(super) fn warn<C: PyTypeInfo>(py: Python<'_>, message: &str) -> PyResult<()> {
    let message = CString::new(message).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<C>(), &message, 1)
}

/// An input that cannot be read in its format.
pub(super) fn format_error(message: String) -> PyErr {
    classes::FormatError::new_err(message)
}

pub(super) fn wrong_type(message: String) -> PyErr {
    classes::InputTypeError::new_err(message)
}

/// A parameter outside its domain, named in the message.
pub(super) fn parameter_error(message: String) -> PyErr {
    classes::ParameterError::new_err(message)
}
