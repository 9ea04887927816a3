//! Unpacks gzip data for the command, outside of the interpreter.

use crate::support::fork::Lock;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::support::gzip::{Damaged, Gunzip};

/// Unpacks the data that it is fed.
#[pyclass(frozen, name = "Gunzip", module = "fastdx._core")]
pub(super) struct PyGunzip(Lock<State>);

#[derive(Default)]
struct State {
    gunzip: Gunzip,
    packed: Option<PyBackedBytes>,
    taken: usize,
}

#[pymethods]
impl PyGunzip {
    #[new]
    fn new() -> Self {
        PyGunzip(Lock::default())
    }

    /// Takes more packed bytes, after all earlier ones were read.
    fn feed(&self, packed: PyBackedBytes) -> PyResult<()> {
        let mut state = self.0.lock()?;
        (state.packed, state.taken) = (Some(packed), 0);
        Ok(())
    }

    /// Returns at most `size` unpacked bytes, `size` above 0; none if it needs more packed bytes.
    /// ValueError for data that is no gzip.
    fn read<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, PyBytes>> {
        let read = py.detach(|| {
            let mut state = self.0.lock()?;
            let mut out = vec![0; size];
            let mut written = 0;
            loop {
                let State {
                    gunzip,
                    packed,
                    taken,
                } = &mut *state;
                let left = packed.as_ref().map_or(&[][..], |packed| &packed[*taken..]);
                let (took, made) = gunzip
                    .unpack(left, &mut out[written..])
                    .map_err(|e: Damaged| PyValueError::new_err(e.to_string()))?;
                *taken += took;
                written += made;
                let wants_more = took == left.len() && made == 0;
                if wants_more || written == size {
                    out.truncate(written);
                    return PyResult::Ok(out);
                }
            }
        });
        Ok(PyBytes::new(py, &read?))
    }

    /// Whether the data may end here.
    #[getter]
    fn complete(&self) -> PyResult<bool> {
        Ok(self.0.lock()?.gunzip.is_complete())
    }
}
