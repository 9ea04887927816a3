//! `fastdx.NeighborResponse`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::python::cover::given_cover;
use crate::python::registry::Given;
use crate::{Error, Mechanism, NeighborResponse};

/// Likely outputs by default: so many, or a fiftieth of the words, if that is less.
const K: usize = 40;

pub(in crate::python) fn make(given: &mut Given<'_>) -> PyResult<Arc<dyn Mechanism>> {
    let space = given.space.space();
    let fiftieth = space.vocabulary().len() / 50;
    // Not topped up: every word has just k, and all of ε goes into the score.
    let cover = given_cover(given, Some(fiftieth.clamp(1, K)), 1)?;
    let Some(cover) = cover else {
        return Err(Error::parameter("cover", "given", "none").into());
    };
    let (epsilon, randomness) = (given.epsilon, given.randomness.clone());
    Ok(Arc::new(NeighborResponse::new(
        space, epsilon, cover, randomness,
    )?))
}

/// score: the log-ratio of a likely and another output.
pub(in crate::python) fn details(
    mechanism: &dyn Mechanism,
    details: &Bound<'_, PyDict>,
) -> PyResult<()> {
    match mechanism.downcast_ref::<NeighborResponse>() {
        Some(response) => details.set_item("score", response.score()),
        None => Ok(()),
    }
}
