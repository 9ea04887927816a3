//! `fastdx.HyperbolicLaplace`.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{HyperbolicLaplace, Mechanism};

/// nominal (the parameter of the noise), base, sampler.
pub(in crate::python) fn details(
    mechanism: &dyn Mechanism,
    details: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let Some(laplace) = mechanism.downcast_ref::<HyperbolicLaplace>() else {
        return Ok(());
    };
    let noise = laplace.noise();
    details.set_item("nominal", noise.law().epsilon())?;
    details.set_item("base", noise.law().base().name())?;
    details.set_item("sampler", noise.sampler().name())
}
