//! What it takes to be a mechanism that Python can make, and which there are.

use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;

use super::arguments::{count, real};
use super::space::Space;
use crate::{Error, Mechanism, Randomness};

/// The mechanisms, told of when the module is made: what stands above says what there is.
static REGISTERED: OnceLock<&'static [Registered]> = OnceLock::new();

/// Says which mechanisms there are.
pub(super) fn register(mechanisms: &'static [Registered]) {
    REGISTERED.get_or_init(|| mechanisms);
}

/// A kind of mechanism: how it is made from what Python gives, and what it tells of itself.
pub(super) struct Registered {
    name: &'static str,
    pub(super) make: fn(&mut Given<'_>) -> PyResult<Arc<dyn Mechanism>>,
    pub(super) details: fn(&dyn Mechanism, &Bound<'_, PyDict>) -> PyResult<()>,
}

impl Registered {
    pub(super) const fn new(
        name: &'static str,
        make: fn(&mut Given<'_>) -> PyResult<Arc<dyn Mechanism>>,
        details: fn(&dyn Mechanism, &Bound<'_, PyDict>) -> PyResult<()>,
    ) -> Self {
        Registered {
            name,
            make,
            details,
        }
    }
}

/// The mechanism of a name.
pub(super) fn registered(name: &str) -> PyResult<&'static Registered> {
    let all = REGISTERED.get().copied().unwrap_or_default();
    let found = all.iter().find(|known| known.name == name);
    Ok(found.ok_or_else(|| Error::parameter("kind", "a registered mechanism", name))?)
}

/// What a mechanism is made from.
pub(super) struct Given<'py> {
    /// May be replaced by the same words with more computed for them.
    pub(super) space: Space,
    pub(super) epsilon: f64,
    pub(super) randomness: Randomness,
    /// Ids of words that are never to be released. The mechanism made without them is made to
    /// exclude them afterwards.
    pub(super) exclude: Vec<u32>,
    /// Bytes of what it keeps at most, where given.
    pub(super) cache_bytes: Option<usize>,
    /// Its own parameters; None stands for the default.
    pub(super) parameters: Bound<'py, PyDict>,
}

impl<'py> Given<'py> {
    /// A parameter, if one is given.
    pub(super) fn parameter(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.parameters.get_item(name)?.filter(|v| !v.is_none()))
    }

    pub(super) fn real(&self, name: &'static str) -> PyResult<Option<f64>> {
        self.parameter(name)?.map(|v| real(name, &v)).transpose()
    }

    pub(super) fn count(&self, name: &'static str) -> PyResult<Option<usize>> {
        self.parameter(name)?.map(|v| count(name, &v)).transpose()
    }

    pub(super) fn flag(&self, name: &'static str) -> PyResult<bool> {
        self.parameter(name)?.map_or(Ok(false), |v| v.extract())
    }

    /// A variant by its name, the default where none is given.
    pub(super) fn variant<T>(&self, name: &'static str) -> PyResult<T>
    where
        T: std::str::FromStr<Err = Error> + Default,
    {
        Ok(match self.parameter(name)? {
            Some(given) => given.extract::<PyBackedStr>()?.parse()?,
            None => T::default(),
        })
    }
}
