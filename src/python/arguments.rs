//! Checks Python arguments and converts them to core types, with errors that name them.

use std::path::PathBuf;

use numpy::ndarray::{Dimension, Ix1, Ix2, IxDyn};
use numpy::{
    PyArray, PyArray1, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBool, PyBytes, PyDict, PyString};

use super::errors::wrong_type;
use crate::Error;
use crate::policy::Exclude;

/// The name of a value's type, for errors.
pub(super) fn type_of(value: &Bound<'_, PyAny>) -> String {
    let name = value.get_type().qualname();
    name.map_or_else(|_| "?".into(), |name| name.to_string())
}

pub(super) fn count(name: &'static str, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let index = value.call_method0("__index__").ok();
    let index = index.filter(|_| !value.is_instance_of::<PyBool>());
    let Some(index) = index else {
        let got = type_of(value);
        return Err(wrong_type(format!("{name} must be an int, not {got}")));
    };
    index.extract::<usize>().map_err(|_| {
        let shown = index.str().map_or_else(|_| "?".into(), |s| s.to_string());
        Error::parameter(name, "a whole number from 0 to 2^64 - 1", shown).into()
    })
}

pub(super) fn seed(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<u64>> {
    value
        .map(|v| count("seed", v).map(|s| s as u64))
        .transpose()
}

pub(super) fn real(name: &'static str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let number = value.extract::<f64>().ok();
    number
        .filter(|_| !value.is_instance_of::<PyBool>())
        .ok_or_else(|| wrong_type(format!("{name} must be a number, not {}", type_of(value))))
}

/// A text or a word. Python's own error for half of a surrogate pair contains the whole text; this
/// type's error only its position.
pub(super) struct Text(PyBackedStr);

impl Text {
    pub(super) fn of(given: &Bound<'_, PyString>) -> PyResult<PyBackedStr> {
        PyBackedStr::try_from(given.clone()).map_err(|error| {
            let start = error.value(given.py()).getattr("start");
            let start = start.and_then(|start| start.extract::<usize>());
            let at = start.map_or_else(|_| "?".to_owned(), |start| start.to_string());
            wrong_type(format!(
                "a text holds a lone surrogate, character {at} of it"
            ))
        })
    }
}

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let given = given.cast::<PyString>()?.to_owned();
        Ok(Text(Text::of(&given)?))
    }
}

/// Strings from any iterable of them; a single string or bytes is refused.
pub(super) fn strings(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<PyBackedStr>> {
    let refused = value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyDict>();
    let items = if refused { None } else { value.try_iter().ok() };
    let Some(items) = items else {
        let got = type_of(value);
        return Err(wrong_type(format!(
            "{name} must be a list of str, not {got}"
        )));
    };
    items
        .enumerate()
        .map(|(i, item)| {
            let item = item?;
            let text = item.cast::<PyString>().map_err(|_| {
                let got = type_of(&item);
                wrong_type(format!("{name}[{i}] must be a str, not {got}"))
            })?;
            Text::of(text)
        })
        .collect()
}

pub(super) fn as_strs(strings: &[PyBackedStr]) -> Vec<&str> {
    strings.iter().map(|s| &**s).collect()
}

/// `numpy.asarray(value)`, with the kind of its dtype ('f', 'i', 'u', …).
fn as_array<'py>(value: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyUntypedArray>, char)> {
    let array = value
        .py()
        .import("numpy")?
        .call_method1("asarray", (value,))?;
    let array = array.cast_into::<PyUntypedArray>()?;
    let kind: char = array.dtype().getattr("kind")?.extract()?;
    Ok((array, kind))
}

/// Calls `used` with the numbers of an array that already has the right type and dimensions,
/// without calling numpy. Gives `used` back for other arrays.
fn ready<T: numpy::Element, D: Dimension, R, F: FnOnce(&[T], &[usize]) -> R>(
    value: &Bound<'_, PyAny>,
    used: F,
) -> Result<R, F> {
    let array = value.cast::<PyArray<T, D>>().ok();
    let array = array.filter(|a| a.is_c_contiguous());
    let Some(array) = array.and_then(|a| a.try_readonly().ok()) else {
        return Err(used);
    };
    match array.as_slice() {
        Ok(numbers) => Ok(used(numbers, array.shape())),
        Err(_) => Err(used),
    }
}

/// Calls `used` with the numbers of an array of real numbers, row-major, and its shape.
fn reals<T: numpy::Element + Copy, D: Dimension, R>(
    name: &'static str,
    value: &Bound<'_, PyAny>,
    used: impl FnOnce(&[T], &[usize]) -> PyResult<R>,
) -> PyResult<R> {
    let used = match ready::<T, D, _, _>(value, used) {
        Ok(result) => return result,
        Err(used) => used,
    };
    let py = value.py();
    let (array, kind) = as_array(value)?;
    if !"fiu".contains(kind) {
        let got = array.dtype();
        let message = format!("{name} must hold real numbers, not dtype {got}");
        return Err(wrong_type(message));
    }
    let shape = array.shape();
    if D::NDIM != Some(shape.len()) {
        let expected = match D::NDIM {
            Some(1) => "one dimension",
            _ => "two dimensions",
        };
        return Err(wrong_shape(name, expected, shape));
    }
    let dtype = numpy::dtype::<T>(py);
    let converted = py
        .import("numpy")?
        .call_method("ascontiguousarray", (array, dtype), None)?
        .cast_into::<PyArrayDyn<T>>()?;
    used(converted.readonly().as_slice()?, converted.shape())
}

/// A one-dimensional array of real numbers.
pub(super) fn numbers(name: &'static str, value: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    reals::<f64, Ix1, _>(name, value, |numbers, _| Ok(numbers.to_vec()))
}

/// A two-dimensional array of real numbers, row-major: its numbers, rows and columns.
pub(super) fn matrix<T: numpy::Element + Copy>(
    name: &'static str,
    value: &Bound<'_, PyAny>,
) -> PyResult<(Vec<T>, usize, usize)> {
    matrix_with(name, value, |numbers, rows, columns| {
        Ok((numbers.to_vec(), rows, columns))
    })
}

/// [`matrix`] without a copy: calls `used` with the numbers, rows and columns.
pub(super) fn matrix_with<T: numpy::Element + Copy, R>(
    name: &'static str,
    value: &Bound<'_, PyAny>,
    used: impl FnOnce(&[T], usize, usize) -> PyResult<R>,
) -> PyResult<R> {
    reals::<T, Ix2, _>(name, value, |numbers, shape| {
        used(numbers, shape[0], shape[1])
    })
}

/// [`matrix_with`] for float64 of shape (words, words).
pub(super) fn square_with<R>(
    name: &'static str,
    value: &Bound<'_, PyAny>,
    words: usize,
    used: impl FnOnce(&[f64]) -> PyResult<R>,
) -> PyResult<R> {
    matrix_with(name, value, |numbers, rows, columns| {
        if (rows, columns) != (words, words) {
            let expected = format!("({words}, {words}), a row a word");
            return Err(wrong_shape(name, expected, &[rows, columns]));
        }
        used(numbers)
    })
}

/// [`matrix`] as float32; numbers beyond float32 become infinities, which are then refused by name.
pub(super) fn matrix_f32(
    name: &'static str,
    value: &Bound<'_, PyAny>,
) -> PyResult<(Vec<f32>, usize, usize)> {
    let (array, _) = as_array(value)?;
    if array.dtype().itemsize() <= 4 {
        return matrix(name, &array);
    }
    // Converted here, because numpy would warn of the overflow.
    let (wide, rows, columns) = matrix::<f64>(name, &array)?;
    Ok((wide.into_iter().map(|x| x as f32).collect(), rows, columns))
}

/// Converts the whole numbers of an array, each with its position in C order, and so wide that none
/// wraps around; also returns the shape.
fn whole<R>(
    name: &'static str,
    value: &Bound<'_, PyAny>,
    of: impl Fn((usize, i128)) -> Result<R, Error>,
) -> PyResult<(Vec<R>, Vec<usize>)> {
    fn each<T: numpy::Element + Copy + Into<i128>, R>(
        array: &Bound<'_, PyUntypedArray>,
        of: impl Fn((usize, i128)) -> Result<R, Error>,
    ) -> PyResult<Vec<R>> {
        let dtype = numpy::dtype::<T>(array.py());
        let numpy = array.py().import("numpy")?;
        let array = numpy.call_method1("ascontiguousarray", (array, dtype))?;
        let array = array.cast_into::<PyArrayDyn<T>>()?.readonly();
        let numbers = array.as_slice()?.iter().map(|&number| number.into());
        Ok(numbers.enumerate().map(of).collect::<Result<_, _>>()?)
    }
    let (array, kind) = as_array(value)?;
    let numbers = match kind {
        _ if array.is_empty() => Vec::new(),
        'i' => each::<i64, R>(&array, of)?,
        'u' => each::<u64, R>(&array, of)?,
        _ => {
            let got = array.dtype();
            let message = format!("{name} must be whole numbers, not dtype {got}");
            return Err(wrong_type(message));
        }
    };
    Ok((numbers, array.shape().to_vec()))
}

/// An array of word ids of any shape: returns the ids in C order, and the shape.
pub(super) fn word_ids(value: &Bound<'_, PyAny>, words: usize) -> PyResult<(Vec<u32>, Vec<usize>)> {
    let copied = |ids: &[u32], shape: &[usize]| (ids.to_vec(), shape.to_vec());
    if let Ok(ids) = ready::<u32, IxDyn, _, _>(value, copied) {
        return Ok(ids);
    }
    whole("ids", value, |(position, id)| {
        u32::try_from(id).map_err(|_| match u64::try_from(id) {
            Ok(id) => Error::WordId {
                id,
                position,
                len: words,
            },
            Err(_) => Error::parameter("ids", "at least 0", id),
        })
    })
}

/// An array of non-negative integers of any shape: returns them in C order, and the shape.
pub(super) fn counts(
    name: &'static str,
    value: &Bound<'_, PyAny>,
) -> PyResult<(Vec<u64>, Vec<usize>)> {
    whole(name, value, |(_, number)| {
        u64::try_from(number).map_err(|_| Error::parameter(name, "at least 0", number))
    })
}

pub(super) fn wrong_shape(what: &'static str, expected: impl Into<String>, got: &[usize]) -> PyErr {
    let numbers: Vec<String> = got.iter().map(ToString::to_string).collect();
    let got = match &numbers[..] {
        [n] => format!("({n},)"),
        _ => format!("({})", numbers.join(", ")),
    };
    let expected = expected.into();
    Error::Shape {
        what,
        expected,
        got,
    }
    .into()
}

/// An array of the given shape that owns `values`.
pub(super) fn shaped<'py, T: numpy::Element>(
    py: Python<'py>,
    values: Vec<T>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    PyArray1::from_vec(py, values).reshape(shape.to_vec())
}

/// Parses `exclude=`: words, a file of words, `"offensive"` or `"none"`.
pub(super) fn exclude(given: &Bound<'_, PyAny>) -> PyResult<Exclude> {
    if let Ok(name) = given.extract::<PyBackedStr>() {
        match &*name {
            "offensive" => return Ok(Exclude::Offensive),
            "none" => return Ok(Exclude::None),
            path if !std::path::Path::new(path).exists() => {
                let expected = "a list of words, the path of a file, 'offensive' or 'none'";
                let got = format!("{path:?}, and no file has this name (one word is ['…'])");
                return Err(Error::parameter("exclude", expected, got).into());
            }
            _ => {}
        }
    }
    if let Ok(path) = given.extract::<PathBuf>() {
        return Ok(Exclude::File(path));
    }
    let words = strings("exclude", given)?;
    Ok(Exclude::Words(
        words.iter().map(|word| word.to_string()).collect(),
    ))
}
