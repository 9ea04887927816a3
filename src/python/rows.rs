//! The law of a `fastdx.FiniteLaw`, from Python.

use std::sync::Arc;

use pyo3::prelude::*;

use super::arguments::{matrix, numbers, shape_text};
use super::errors::wrong_type;
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

/// Returns the rows of a law and its fingerprint (none for a function). The law is an array, or
/// a function of a word's id.
pub(super) fn rows_of(law: &Bound<'_, PyAny>, words: usize) -> PyResult<(Arc<Rows>, Option<u64>)> {
    if law.is_callable() {
        let function = law.clone().unbind();
        let rows: Arc<Rows> = Arc::new(move |id: u32, out: &mut [f64]| {
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
    let (law, rows, columns) = matrix::<f64>("law", law)?;
    if (rows, columns) != (words, words) {
        return Err(shape_error(words, shape_text(&[rows, columns])));
    }
    let rows: Arc<Rows> = Arc::new(move |id: u32, out: &mut [f64]| {
        out.copy_from_slice(&law[id as usize * words..][..words]);
        Ok(())
    });
    let print = fingerprint_of_rows(&rows, words)?;
    Ok((rows, Some(print)))
}

fn row_of(function: &Bound<'_, PyAny>, id: u32, out: &mut [f64]) -> PyResult<()> {
    let row = numbers("law", &function.call1((id,))?)?;
    if row.len() != out.len() {
        return Err(wrong_type(format!("{} numbers", row.len())));
    }
    out.copy_from_slice(&row);
    Ok(())
}
