//! The core of `fastdx.numbers`: numbers in arrays. Dates are numbers, of days since 1970-01-01.

use numpy::{PyArray1, PyArrayDyn, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::arguments::{Text, seed, shaped};
use super::run::run;
use crate::numbers::{Date, Figures, Line, Number};
use crate::support::random::Randomness;
use crate::{Error, Result};

/// Numbers of a call above which it goes to the pool.
const LONG: usize = 1 << 14;

/// A number or a date by a law of its own: the core of `fastdx.numbers.Number` and `Date`.
#[pyclass(frozen, name = "NumberCore", module = "fastdx._core")]
pub(super) struct PyNumber {
    /// One of both.
    figures: Figures,
    line: Line,
    randomness: Randomness,
}

#[pymethods]
impl PyNumber {
    /// Creates the law from its settings as JSON.
    #[new]
    #[pyo3(signature = (json, is_date, seed_of = None))]
    fn new(json: &str, is_date: bool, seed_of: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let value = serde_json::from_str(json)
            .map_err(|error| Error::parameter("settings", "JSON", error.to_string()))?;
        let mut figures = Figures::default();
        let line = match is_date {
            true => (**figures.dates.insert(Date::of_value(&value)?)).clone(),
            false => (**figures.numbers.insert(Number::of_value(&value)?)).clone(),
        };
        Ok(PyNumber {
            figures,
            line,
            randomness: Randomness::new(seed(seed_of)?),
        })
    }

    /// All settings as JSON.
    fn settings(&self) -> String {
        let number = self.figures.numbers.as_ref().map(Number::value_of);
        let value = number.or_else(|| self.figures.dates.as_ref().map(Date::value_of));
        value.unwrap_or_default().to_string()
    }

    /// The first and the last place of the grid.
    #[getter]
    fn ends(&self) -> (i64, i64) {
        self.line.ends()
    }

    /// The place of a number, clamped.
    fn place(&self, x: f64) -> PyResult<i64> {
        let place = self.line.place(x);
        place.ok_or_else(|| Error::parameter("x", "a number", "NaN").into())
    }

    /// The places of numbers, clamped; that of NaN is the first.
    fn places<'py>(
        &self,
        py: Python<'py>,
        numbers: PyReadonlyArrayDyn<'py, f64>,
    ) -> PyResult<Bound<'py, PyArrayDyn<i64>>> {
        let first = self.line.ends().0;
        let places = numbers.as_slice()?.iter();
        let places = places.map(|&x| self.line.place(x).unwrap_or(first));
        shaped(py, places.collect(), numbers.shape())
    }

    /// The values of places.
    fn values<'py>(
        &self,
        py: Python<'py>,
        places: PyReadonlyArrayDyn<'py, i64>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let values = places.as_slice()?.iter();
        let values = values.map(|&place| self.line.value(place));
        shaped(py, values.collect(), places.shape())
    }

    /// The bound on the log-ratio of two places.
    fn bound(&self, a: i64, b: i64) -> f64 {
        self.line.bound(a, b)
    }

    /// The probability of every place, from the first.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        place: i64,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, self.line.probabilities(place)?))
    }

    /// The integers that are drawn: R, V(0) … V(J).
    fn integers<'py>(&self, py: Python<'py>) -> (u64, Bound<'py, PyArray1<u64>>) {
        let (ratio, weights) = self.line.law().integers();
        (ratio, PyArray1::from_vec(py, weights))
    }

    /// The largest log-ratio of a step that they have.
    fn certify(&self) -> PyResult<f64> {
        Ok(self.line.law().certify()?)
    }

    /// Draws for every number; NaN stays.
    fn privatize<'py>(
        &self,
        py: Python<'py>,
        numbers: PyReadonlyArrayDyn<'py, f64>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let shape = numbers.shape().to_vec();
        let mut drawn = numbers.as_slice()?.to_vec();
        let drawn = run(py, drawn.len() > LONG, |_| {
            self.line
                .privatize(&mut drawn, &self.randomness.next_key()?);
            Result::Ok(drawn)
        })?;
        shaped(py, drawn, &shape)
    }

    /// The numbers or days of a text, or of a released one.
    fn find(&self, text: Text, released: bool) -> Vec<f64> {
        self.figures.values_of(&text, released)
    }
}
