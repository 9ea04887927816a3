//! JSON lines for the command: found, drawn and written outside of the interpreter.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use super::arguments::{as_strs, strings};
use super::mechanism::PyMechanism;
use super::text::dict_of;
use crate::records::{Fields, Strings};

/// The fields that are asked for.
#[pyclass(frozen, name = "JsonFields", module = "fastdx._core")]
pub(super) struct PyFields(Fields);

#[pymethods]
impl PyFields {
    #[new]
    fn new(places: Vec<(Vec<String>, usize)>) -> Self {
        PyFields(Fields::new(&places))
    }
}

/// A block of JSON lines, and the strings in it that are asked for.
#[pyclass(frozen, name = "JsonStrings", module = "fastdx._core")]
pub(super) struct PyStrings {
    block: String,
    strings: Strings,
}

#[pymethods]
impl PyStrings {
    /// The strings of a block, at most `texts` in a line, and at most so many names of other fields; None where the
    /// block may be wrong.
    #[staticmethod]
    fn find(
        py: Python<'_>,
        block: PyBackedBytes,
        fields: &Bound<'_, PyFields>,
        names: usize,
        texts: usize,
    ) -> Option<Self> {
        let fields = &fields.get().0;
        py.detach(|| {
            let block = String::from_utf8(block.to_vec()).ok()?;
            let strings = Strings::find(&block, fields, names, texts)?;
            Some(PyStrings { block, strings })
        })
    }

    fn __len__(&self) -> usize {
        self.strings.len()
    }

    /// What they say.
    fn texts(&self) -> Vec<&str> {
        self.strings.texts(&self.block)
    }

    /// In which line of the block one stands, from 0 on, and which column it belongs to.
    fn place(&self, text: usize) -> Option<(usize, usize)> {
        let (start, column) = self.strings.places().nth(text)?;
        let before = &self.block.as_bytes()[..start];
        Some((before.iter().filter(|&&b| b == b'\n').count(), column))
    }

    /// Names of other fields.
    #[getter]
    fn others(&self) -> &[String] {
        self.strings.others()
    }

    /// The block with other strings in their places; ValueError if there are more or fewer of them.
    fn replaced<'py>(
        &self,
        py: Python<'py>,
        new: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let out = match new.cast::<PyTexts>() {
            Ok(drawn) => {
                let drawn = &drawn.get().0;
                py.detach(|| self.strings.replaced(&self.block, drawn))
            }
            Err(_) => {
                let new = strings("new", new)?;
                self.strings.replaced(&self.block, &as_strs(&new))
            }
        };
        let out = out.ok_or_else(|| {
            let wanted = self.strings.len();
            PyValueError::new_err(format!(
                "new must hold {wanted} texts, one for every string"
            ))
        })?;
        Ok(PyBytes::new(py, &out))
    }
}

/// Texts that were drawn, for `JsonStrings.replaced`.
#[pyclass(frozen, name = "Texts", module = "fastdx._core")]
pub(super) struct PyTexts(Vec<String>);

/// As `privatize_counted` does with the texts of a block.
#[pyfunction]
pub(super) fn privatize_json<'py>(
    py: Python<'py>,
    mechanism: &Bound<'py, PyMechanism>,
    block: &Bound<'py, PyStrings>,
) -> PyResult<(PyTexts, Bound<'py, PyDict>)> {
    let (mechanism, block) = (mechanism.get(), block.get());
    let (out, counts) = mechanism.run(py, true, |control| {
        let texts = block.strings.texts(&block.block);
        mechanism.text().privatize_texts(&texts, control)
    })?;
    Ok((PyTexts(out), dict_of(py, counts)?))
}
