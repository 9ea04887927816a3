//! Core errors as Python exceptions: one exhaustive match, classes from `fastdx.exceptions`.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::Error;

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        Python::attach(|py| to_python(py, error).unwrap_or_else(|e| e))
    }
}

fn to_python(py: Python<'_>, error: Error) -> PyResult<PyErr> {
    let message = error.to_string();
    let class = match &error {
        Error::Parameter { .. } => "ParameterError",
        Error::UnknownWord { .. } | Error::UnknownInText { .. } => "UnknownWordError",
        Error::WordId { .. } => "WordIdError",
        Error::Shape { .. } => "ShapeError",
        Error::Vector { .. } => "VectorError",
        Error::DuplicateWord { .. } => "DuplicateWordError",
        Error::Format { .. } => "FormatError",
        Error::Corrupt { .. } => "CorruptFileError",
        Error::Io { path, source } => {
            let class = match source.kind() {
                std::io::ErrorKind::NotFound => "MissingFileError",
                _ => "FileError",
            };
            let class = exception(py, class)?;
            // OSError's own form: (errno, message, file name).
            let text = source.to_string();
            let arguments = (source.raw_os_error(), text, path.as_os_str());
            return Ok(PyErr::from_value(class.call1(arguments)?));
        }
        Error::TooLarge { .. } => "TooLargeError",
        Error::System { .. } => "SystemResourceError",
        Error::Interrupted => return Ok(PyKeyboardInterrupt::new_err(())),
    };
    let raised = exception(py, class)?.call1((message,))?;
    // What the message does not show, for the program that catches it.
    match &error {
        Error::UnknownWord { word } | Error::DuplicateWord { word, .. } => {
            raised.setattr("word", word)?;
        }
        Error::UnknownInText { word, at, .. } => {
            raised.setattr("word", word.reveal())?;
            raised.setattr("text", at.map(|at| at.0))?;
            raised.setattr("start", at.map(|at| at.1))?;
        }
        Error::Format { line, offender, .. } => {
            raised.setattr("line", line)?;
            raised.setattr("word", offender.as_ref().map(|o| o.reveal()))?;
        }
        _ => {}
    }
    Ok(PyErr::from_value(raised))
}

/// Warns of something that the caller should know of and that is no error.
pub(super) fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    let message = std::ffi::CString::new(message).unwrap_or_default();
    PyErr::warn(py, &exception(py, "FastdxWarning")?, &message, 1)
}

fn exception<'py>(py: Python<'py>, class: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("fastdx.exceptions")?.getattr(class)
}

/// Input that cannot be read as what it is to be.
pub(super) fn format_error(py: Python<'_>, message: String) -> PyErr {
    raised(py, "FormatError", message)
}

/// An argument of a type that cannot be meant.
pub(super) fn wrong_type(py: Python<'_>, message: String) -> PyErr {
    raised(py, "InputTypeError", message)
}

/// A parameter outside its domain, named in the message.
pub(super) fn parameter_error(py: Python<'_>, message: String) -> PyErr {
    raised(py, "ParameterError", message)
}

fn raised(py: Python<'_>, class: &str, message: String) -> PyErr {
    match exception(py, class).and_then(|class| class.call1((message,))) {
        Ok(value) => PyErr::from_value(value),
        Err(e) => e,
    }
}
