//! JSON records for the command: found and written outside of the interpreter.

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::arguments::{as_strs, strings};
use crate::Hidden;
use crate::text::records::{self, Block, Document, Fields, Hint, Limits, RecordError, Step};

create_exception!(
    fastdx._core,
    JsonError,
    PyValueError,
    "A wrong record: where and what, and content of the input that explains it."
);

/// The message of the problem after `, line 3: ` or `: `, and the private content.
fn to_python(error: RecordError) -> PyErr {
    let line = error.line;
    let message = match error.hint {
        Hint::Encoding => format!(": {error} (line {line}): convert it, for example with iconv"),
        Hint::Limit => format!(", line {line}: {error} (--max-record allows more)"),
        Hint::Input => format!(", line {line}: {error}"),
    };
    let content = error.content.as_ref().map_or("", Hidden::reveal).to_owned();
    JsonError::new_err((message, content))
}

/// The steps of a path: names of fields, and "" for the items of a list.
#[pyfunction]
pub(super) fn field_steps(path: &str) -> Vec<&str> {
    let name = |step| match step {
        Step::Field(name) => name,
        Step::Items => "",
    };
    records::steps(path).into_iter().map(name).collect()
}

/// The requested fields, and the limits of records.
#[pyclass(frozen, name = "JsonFields", module = "fastdx._core")]
pub(super) struct PyFields {
    fields: Fields,
    limits: Limits,
}

#[pymethods]
impl PyFields {
    /// ValueError if two fields are the same.
    #[new]
    fn new(
        columns: Vec<String>,
        account: Option<&str>,
        longest: usize,
        names: usize,
    ) -> PyResult<Self> {
        let fields = Fields::new(&columns, account);
        let fields = fields.map_err(PyValueError::new_err)?;
        let limits = Limits {
            bytes: longest,
            names,
        };
        Ok(PyFields { fields, limits })
    }

    /// The records of some lines, with the number of the first line and its first byte in the
    /// input.
    fn lines(
        &self,
        py: Python<'_>,
        data: PyBackedBytes,
        line: usize,
        byte: usize,
    ) -> PyResult<PyBlock> {
        let PyFields { fields, limits } = self;
        let block = py.detach(|| Block::of_lines(&data, (line, byte), fields, limits));
        Ok(PyBlock(block.map_err(to_python)?))
    }

    /// A document that is read in parts.
    fn document(&self) -> PyDocument {
        PyDocument(Document::new(self.fields.clone(), self.limits))
    }
}

/// A document that is read in parts.
#[pyclass(name = "JsonDocument", module = "fastdx._core")]
pub(super) struct PyDocument(Document);

#[pymethods]
impl PyDocument {
    /// The records that end in the next bytes; empty bytes mark the end of the document.
    fn feed(&mut self, py: Python<'_>, data: PyBackedBytes) -> PyResult<PyBlock> {
        let block = py.detach(|| match data.is_empty() {
            true => self.0.end(),
            false => self.0.feed(&data),
        });
        Ok(PyBlock(block.map_err(to_python)?))
    }

    /// Number of bytes that wait for the end of their record.
    #[getter]
    fn pending(&self) -> usize {
        self.0.pending()
    }
}

/// Some JSON records, with their requested strings.
#[pyclass(frozen, name = "JsonBlock", module = "fastdx._core")]
pub(super) struct PyBlock(Block);

#[pymethods]
impl PyBlock {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The contents of the strings.
    fn texts(&self) -> Vec<&str> {
        self.0.texts()
    }

    /// The account of each string, if an account was requested.
    fn payers(&self) -> Vec<&str> {
        self.0.payers()
    }

    /// The input line of a string, and its column.
    fn place(&self, text: usize) -> Option<(usize, usize)> {
        self.0.place(text)
    }

    /// Names of other fields.
    #[getter]
    fn others(&self) -> &[String] {
        self.0.others()
    }

    /// The records with all strings replaced; ValueError if the number of strings differs.
    fn replaced<'py>(
        &self,
        py: Python<'py>,
        new: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let new = strings("new", new)?;
        let out = self.0.replaced(&as_strs(&new));
        let out = out.ok_or_else(|| {
            let wanted = self.0.len();
            PyValueError::new_err(format!(
                "new must hold {wanted} texts, one for every string"
            ))
        })?;
        Ok(PyBytes::new(py, &out))
    }
}
