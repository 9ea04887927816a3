//! The law of a `fastdx.FiniteLaw`, from Python.

use std::sync::Arc;

use numpy::{PyArray1, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::arguments::{matrix, numbers, shape_text, word_ids};
use super::errors::wrong_type;
use super::law_rows::PyLawRows;
use crate::Error;
use crate::mechanism::finite_law::Rows;
use crate::policy::fingerprint_of_rows;

fn shape_error(words: usize, got: String) -> PyErr {
    Error::Shape {
        what: "law",
        expected: format!("({words}, {words}), a row a word"),
        got,
    }
    .into()
}

/// Returns the rows of a law and its fingerprint (none for a function). The law is an array,
/// (indptr, indices, data) of a sparse matrix by rows, or a function of a word's id.
pub(super) fn rows_of(
    law: &Bound<'_, PyAny>,
    words: usize,
) -> PyResult<(Arc<dyn Rows>, Option<u64>)> {
    if let Ok(known) = law.cast::<PyLawRows>() {
        let known = known.get();
        return match known.words == words {
            true => Ok((known.rows.clone(), None)),
            false => Err(shape_error(words, shape_text(&[known.words; 2]))),
        };
    }
    if law.is_callable() {
        let function = law.clone().unbind();
        let rows: Arc<dyn Rows> = Arc::new(move |id: u32, out: &mut [f64]| {
            Python::attach(|py| row_of(function.bind(py), id, out)).map_err(|e| {
                // The function's own message may contain anything.
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
        let rows: Arc<dyn Rows> = Arc::new(move |id: u32, out: &mut [f64]| {
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
    let rows: Arc<dyn Rows> = Arc::new(move |id: u32, out: &mut [f64]| {
        out.copy_from_slice(&law[id as usize * words..][..words]);
        Ok(())
    });
    let print = fingerprint_of_rows(&rows, words)?;
    Ok((rows, Some(print)))
}

fn row_of(function: &Bound<'_, PyAny>, id: u32, out: &mut [f64]) -> PyResult<()> {
    let py = function.py();
    let row = function.call1((id,))?;
    let ready = row.cast::<PyArray1<f64>>();
    let row = match ready.map(|row| row.is_c_contiguous()) {
        Ok(true) => row.cast_into::<PyArray1<f64>>()?,
        _ => py
            .import("numpy")?
            .call_method("ascontiguousarray", (row, numpy::dtype::<f64>(py)), None)?
            .cast_into::<PyArray1<f64>>()?,
    };
    let row = row.readonly();
    let row = row.as_slice()?;
    if row.len() != out.len() {
        return Err(wrong_type(format!("{} numbers", row.len())));
    }
    out.copy_from_slice(row);
    Ok(())
}
