//! `fastdx.FiniteLaw`.

use std::sync::Arc;

use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::{as_kind, remapped};
use crate::mechanism::finite_law::{FiniteLaw, Rows};
use crate::python::arguments::{matrix, numbers, shape_text, word_ids};
use crate::python::errors::wrong_type;
use crate::python::mechanism::PyMechanism;
use crate::python::run::run_with;
use crate::spec::{Spec, certified_law, fingerprint_of_rows};
use crate::{Error, Mechanism};

fn shape_error(words: usize, got: String) -> PyErr {
    Error::Shape {
        what: "law",
        expected: format!("({words}, {words}), a row a word"),
        got,
    }
    .into()
}

/// The rows of a law that is an array, (indptr, indices, data) of a matrix in compressed rows, or a
/// function of a word's id; and its fingerprint, but of a function.
pub(in crate::python) fn rows_of(
    law: &Bound<'_, PyAny>,
    words: usize,
) -> PyResult<(Arc<Rows>, Option<u64>)> {
    if law.is_callable() {
        let function = law.clone().unbind();
        let rows: Arc<Rows> = Arc::new(move |id, out: &mut [f64]| {
            Python::attach(|py| row_of(function.bind(py), id, out)).map_err(|e| {
                // Its message may hold anything.
                let kind = Python::attach(|py| e.get_type(py).qualname().map(|q| q.to_string()));
                let expected = format!("a function of a word's id that returns {words} numbers");
                let got = format!("{} for word {id}", kind.unwrap_or_default());
                Error::parameter("law", expected, got)
            })
        });
        return Ok((rows, None));
    }
    if let Ok(parts) = law.cast::<PyTuple>() {
        let (starts, columns, data) =
            parts.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        let data = numbers("law", &data)?;
        let (columns, _) = word_ids(&columns, words)?;
        let starts: Vec<usize> = starts.extract()?;
        let whole = starts.len() == words + 1
            && starts[0] == 0
            && starts.is_sorted()
            && starts[words] == data.len()
            && columns.len() == data.len();
        if !whole {
            return Err(shape_error(
                words,
                "a sparse matrix of another shape".into(),
            ));
        }
        let rows: Arc<Rows> = Arc::new(move |id, out: &mut [f64]| {
            let row = starts[id as usize]..starts[id as usize + 1];
            for (&column, &p) in columns[row.clone()].iter().zip(&data[row]) {
                out[column as usize] += p;
            }
            Ok(())
        });
        let print = fingerprint_of_rows(&rows, words)?;
        return Ok((rows, Some(print)));
    }
    let (law, rows, columns) = matrix::<f64>("law", law)?;
    if (rows, columns) != (words, words) {
        return Err(shape_error(words, shape_text(&[rows, columns])));
    }
    let rows: Arc<Rows> = Arc::new(move |id, out: &mut [f64]| {
        out.copy_from_slice(&law[id as usize * words..][..words]);
        Ok(())
    });
    let print = fingerprint_of_rows(&rows, words)?;
    Ok((rows, Some(print)))
}

fn row_of(function: &Bound<'_, PyAny>, id: u32, out: &mut [f64]) -> PyResult<()> {
    let py = function.py();
    let row = function.call1((id,))?;
    let row = py
        .import("numpy")?
        .call_method("ascontiguousarray", (row, numpy::dtype::<f64>(py)), None)?
        .cast_into::<PyArray1<f64>>()?;
    let row = row.readonly();
    let row = row.as_slice()?;
    if row.len() != out.len() {
        return Err(wrong_type(format!("{} numbers", row.len())));
    }
    out.copy_from_slice(row);
    Ok(())
}

/// local: the ε of local differential privacy, None where nothing was computed.
pub(in crate::python) fn details(
    mechanism: &dyn Mechanism,
    details: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let law = mechanism.downcast_ref::<FiniteLaw>();
    details.set_item(
        "local",
        law.and_then(FiniteLaw::loss).map(|loss| loss.local),
    )
}

/// The same law with what it loses, computed from it.
#[pyfunction]
#[pyo3(signature = (core, progress = None))]
pub(in crate::python) fn certify_law(
    py: Python<'_>,
    core: PyRef<'_, PyMechanism>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyMechanism> {
    let law: &FiniteLaw = as_kind(&core, "a FiniteLaw")?;
    let law = run_with(py, true, progress, |control| {
        certified_law(law.clone(), control)
    })?;
    let certified = remapped(&core, Arc::new(law))?;
    let spec = Spec {
        certified: Some(true),
        ..core.built.given().clone()
    };
    Ok(core.around(core.space.clone_ref(py), certified, spec))
}
