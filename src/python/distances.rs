//! Distances of all pairs of words that a caller gives: a matrix, or a function of two words.

use pyo3::prelude::*;

use super::arguments::{matrix_with, shape_text};
use super::errors::wrong_type;
use crate::Error;
use crate::words::graph::MAX_TABLE_WORDS;

/// Calls `used` with the distances, row by row. A function is called once for each two words.
pub(super) fn with_distances<R>(
    name: &'static str,
    value: &Bound<'_, PyAny>,
    words: &[&str],
    used: impl FnOnce(&[f64]) -> PyResult<R>,
) -> PyResult<R> {
    let count = words.len();
    if !value.is_callable() {
        return matrix_with(name, value, |numbers: &[f64], rows, columns| {
            if (rows, columns) != (count, count) {
                let expected = format!("{}, a row a word", shape_text(&[count, count]));
                let got = shape_text(&[rows, columns]);
                let what = name;
                return Err(Error::Shape {
                    what,
                    expected,
                    got,
                }
                .into());
            }
            used(numbers)
        });
    }
    if count > MAX_TABLE_WORDS {
        let expected = format!("a matrix or a space of more than {MAX_TABLE_WORDS} words");
        return Err(Error::parameter(name, expected, "a function").into());
    }
    let mut numbers = vec![0.0; count * count];
    for (i, a) in words.iter().enumerate() {
        for (j, b) in words[..i].iter().enumerate() {
            let distance = value.call1((*a, *b))?;
            let distance: f64 = distance.extract().map_err(|_| {
                wrong_type(format!(
                    "{name} must return a number, not for words {i} and {j}"
                ))
            })?;
            numbers[i * count + j] = distance;
            numbers[j * count + i] = distance;
        }
    }
    used(&numbers)
}
