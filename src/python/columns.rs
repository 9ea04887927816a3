//! Columns of text as Arrow holds them: the bytes of all texts, and where each begins.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::errors::wrong_type;
use super::mechanism::PyMechanism;
use super::text::{PyReplacements, dict_of};

/// Privatises the texts of an Arrow array of large strings, read in place: `offsets` has one more
/// number than there are texts. `first` is the number of texts before, for errors. Returns the new
/// offsets and bytes, and the counts of `privatize_counted`.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub(super) fn privatize_strings<'py>(
    py: Python<'py>,
    mechanism: PyRef<'py, PyMechanism>,
    offsets: PyReadonlyArray1<'py, i64>,
    bytes: PyReadonlyArray1<'py, u8>,
    replacements: &Bound<'py, PyReplacements>,
    first: usize,
) -> PyResult<(
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<u8>>,
    Bound<'py, PyDict>,
)> {
    let (offsets, bytes) = (offsets.as_slice()?, bytes.as_slice()?);
    let text = |ends: &[i64]| {
        let range = usize::try_from(ends[0]).ok()?..usize::try_from(ends[1]).ok()?;
        std::str::from_utf8(bytes.get(range)?).ok()
    };
    let texts: Option<Vec<&str>> = offsets.windows(2).map(text).collect();
    let texts =
        texts.ok_or_else(|| wrong_type("text is an Arrow column that is damaged".into()))?;
    let (out, counts) = mechanism.texts_with(py, &texts, replacements.get(), first)?;
    mechanism.warn(py, counts)?;
    let mut end = 0;
    let ends = out.iter().map(|text| {
        end += text.len() as i64;
        end
    });
    let offsets = PyArray1::from_iter(py, [0].into_iter().chain(ends));
    let bytes = PyArray1::from_vec(py, out.concat().into_bytes());
    Ok((offsets, bytes, dict_of(py, counts)?))
}
