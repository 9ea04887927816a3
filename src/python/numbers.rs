//! The core of `fastdx.numbers`: numbers and days in arrays.

use numpy::{PyArray1, PyArrayDyn, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::arguments::{Text, count, seed, shaped};
use super::run::run;
use crate::numbers::{Date, Figures, Number};
use crate::support::random::Randomness;
use crate::{Error, Result};

/// Numbers of a call above which it goes to the pool.
const LONG: usize = 1 << 14;

/// The settings of a Number or Date from JSON.
fn settings(json: &str) -> Result<serde_json::Value> {
    serde_json::from_str(json)
        .map_err(|error| Error::parameter("settings", "JSON", error.to_string()))
}

/// R, V(0) … V(J), U(0) … U(I) of a law.
type Integers<'py> = (u64, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>);

/// Numbers by a law of their own: the core of `fastdx.numbers.Number`.
#[pyclass(frozen, name = "NumberCore", module = "fastdx._core")]
pub(super) struct PyNumber {
    number: Number,
    randomness: Randomness,
}

#[pymethods]
impl PyNumber {
    /// Creates the law from its settings as JSON.
    #[new]
    #[pyo3(signature = (json, seed_of = None))]
    fn new(json: &str, seed_of: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Ok(PyNumber {
            number: Number::of_value(&settings(json)?)?,
            randomness: Randomness::new(seed(seed_of)?),
        })
    }

    /// All settings as JSON.
    fn settings(&self) -> String {
        self.number.value_of().to_string()
    }

    /// The first and the last place of the grid.
    #[getter]
    fn ends(&self) -> (i64, i64) {
        self.number.ends()
    }

    /// The place of a number, clamped.
    fn place(&self, x: f64) -> PyResult<i64> {
        let place = self.number.place(x);
        place.ok_or_else(|| Error::parameter("x", "a number", "NaN").into())
    }

    /// The places of numbers, clamped; that of NaN is the first.
    fn places<'py>(
        &self,
        py: Python<'py>,
        numbers: PyReadonlyArrayDyn<'py, f64>,
    ) -> PyResult<Bound<'py, PyArrayDyn<i64>>> {
        let first = self.number.ends().0;
        let places = numbers.as_slice()?.iter();
        let places = places.map(|&x| self.number.place(x).unwrap_or(first));
        shaped(py, places.collect(), numbers.shape())
    }

    /// The values of places.
    fn values<'py>(
        &self,
        py: Python<'py>,
        places: PyReadonlyArrayDyn<'py, i64>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let values = places.as_slice()?.iter();
        let values = values.map(|&place| self.number.value(place));
        shaped(py, values.collect(), places.shape())
    }

    /// The bound on the log-ratio of two places.
    fn bound(&self, a: i64, b: i64) -> f64 {
        self.number.bound(a, b)
    }

    /// The probability of every place, from the first.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        place: i64,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, self.number.probabilities(place)?))
    }

    /// The integers that are drawn.
    fn integers<'py>(&self, py: Python<'py>) -> Integers<'py> {
        let (ratio, fine, coarse) = self.number.law().integers();
        let array = |weights| PyArray1::from_vec(py, weights);
        (ratio, array(fine), array(coarse))
    }

    /// The largest log-ratio of a step that they have.
    fn certify(&self) -> PyResult<f64> {
        Ok(self.number.law().certify()?)
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
            self.number
                .privatize(&mut drawn, &self.randomness.next_key()?);
            Ok(drawn)
        })?;
        shaped(py, drawn, &shape)
    }

    /// The numbers of a text, or of a released one.
    fn find(&self, text: Text, released: bool) -> Vec<f64> {
        let figures = Figures {
            numbers: Some(self.number.clone()),
            dates: None,
        };
        figures.numbers_of(&text, released)
    }

    /// Independent draws for one number.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        x: f64,
        size: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let size = count("size", size)?;
        let mut drawn = Vec::new();
        drawn
            .try_reserve_exact(size)
            .map_err(|_| Error::parameter("size", "small enough to fit in memory", size))?;
        drawn.resize(size, x);
        let drawn = run(py, size > LONG, |_| {
            self.number
                .privatize(&mut drawn, &self.randomness.next_key()?);
            Ok(drawn)
        })?;
        Ok(PyArray1::from_vec(py, drawn))
    }
}

/// Days by a law of their own: the core of `fastdx.numbers.Date`. Days count from 1970-01-01.
#[pyclass(frozen, name = "DateCore", module = "fastdx._core")]
pub(super) struct PyDate {
    date: Date,
    randomness: Randomness,
}

#[pymethods]
impl PyDate {
    /// Creates the law from its settings as JSON.
    #[new]
    #[pyo3(signature = (json, seed_of = None))]
    fn new(json: &str, seed_of: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Ok(PyDate {
            date: Date::of_value(&settings(json)?)?,
            randomness: Randomness::new(seed(seed_of)?),
        })
    }

    /// All settings as JSON.
    fn settings(&self) -> String {
        self.date.value_of().to_string()
    }

    /// The place of a day, clamped.
    fn place(&self, day: i64) -> i64 {
        self.date.place(day)
    }

    /// The day of a place.
    fn day(&self, place: i64) -> i64 {
        self.date.days(place)
    }

    /// The bound on the log-ratio of two places.
    fn bound(&self, a: i64, b: i64) -> f64 {
        self.date.bound(a, b)
    }

    /// The probability of every place, from the first.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        place: i64,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, self.date.probabilities(place)?))
    }

    /// The largest log-ratio of a step that the integers have.
    fn certify(&self) -> PyResult<f64> {
        Ok(self.date.law().certify()?)
    }

    /// The days of a text, those without a year of 2024.
    fn find(&self, text: Text) -> Vec<i64> {
        let figures = Figures {
            numbers: None,
            dates: Some(self.date.clone()),
        };
        figures.days_of(&text)
    }

    /// Draws for every day.
    fn privatize<'py>(
        &self,
        py: Python<'py>,
        days: PyReadonlyArrayDyn<'py, i64>,
    ) -> PyResult<Bound<'py, PyArrayDyn<i64>>> {
        let shape = days.shape().to_vec();
        let mut drawn = days.as_slice()?.to_vec();
        let drawn = run(py, drawn.len() > LONG, |_| {
            self.date
                .privatize(&mut drawn, &self.randomness.next_key()?);
            Ok(drawn)
        })?;
        shaped(py, drawn, &shape)
    }
}
