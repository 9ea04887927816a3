//! Features that only one mechanism has.

pub(super) mod multivariate_laplace;
pub(super) mod tem;

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;

use super::cover::PyCover;
use super::mechanism::PyMechanism;
use crate::mechanism::contextual::ContextualTem;
use crate::mechanism::remapped::Remapped;
use crate::{Error, Mechanism, NeighborResponse, Tem};

/// The cover of a mechanism's outputs, or None.
#[pyfunction]
pub(super) fn mechanism_cover(py: Python<'_>, core: PyRef<'_, PyMechanism>) -> Option<PyCover> {
    let mechanism = &**core.mechanism();
    let cover = match tem_within(mechanism) {
        Some(tem) => tem.cover(),
        None => mechanism.downcast_ref().map(NeighborResponse::cover),
    };
    cover.map(|cover| PyCover::new(cover.clone(), core.space.clone_ref(py)))
}

/// The Tem that a mechanism is, or the one whose base measure goes by what was released before.
pub(super) fn tem_within(mechanism: &dyn Mechanism) -> Option<&Tem> {
    let tem = mechanism.in_order().map(ContextualTem::tem);
    tem.or_else(|| mechanism.downcast_ref())
}

/// Q of every word in the law of a Tem, whatever was released before, or None if it is uniform.
#[pyfunction]
pub(super) fn mechanism_base<'py>(
    py: Python<'py>,
    core: PyRef<'py, PyMechanism>,
) -> Option<Bound<'py, PyArray1<u32>>> {
    let tem = tem_within(&**core.mechanism())?;
    Some(PyArray1::from_slice(py, tem.base()?.weights()))
}

/// Wraps `made`, from a core's mechanism, in the core's remapping.
fn remapped(core: &PyMechanism, made: Arc<dyn Mechanism>) -> crate::Result<Arc<dyn Mechanism>> {
    Ok(match core.mechanism().downcast_ref::<Remapped>() {
        None => made,
        Some(remapped) => Arc::new(Remapped::new(made, remapped.cover().clone())?),
    })
}

/// Returns the mechanism as its concrete type.
fn as_kind<'a, M: Mechanism>(core: &'a PyMechanism, name: &'static str) -> PyResult<&'a M> {
    let mechanism = &**core.mechanism();
    let found = mechanism.downcast_ref::<M>();
    let got = || mechanism.guarantee().mechanism;
    Ok(found.ok_or_else(|| Error::parameter("mechanism", name, got()))?)
}
