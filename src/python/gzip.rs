//! Unpacks gzip data for the command, outside of the interpreter.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::gzip::{Damaged, Gunzip};

/// Unpacks the data that it is fed.
#[pyclass(frozen, name = "Gunzip", module = "fastdx._core")]
pub(super) struct PyGunzip(Mutex<State>);

#[derive(Default)]
struct State {
    gunzip: Gunzip,
    packed: Option<PyBackedBytes>,
    taken: usize,
}

impl PyGunzip {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyGunzip {
    #[new]
    fn new() -> Self {
        PyGunzip(Mutex::default())
    }

    /// Takes more packed bytes, after all earlier ones were read.
    fn feed(&self, packed: PyBackedBytes) {
        let mut state = self.state();
        (state.packed, state.taken) = (Some(packed), 0);
    }

    /// Returns at most `size` unpacked bytes, `size` above 0; none if it needs more packed bytes.
    /// ValueError for data that is no gzip.
    fn read<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, PyBytes>> {
        let read = py.detach(|| {
            let mut state = self.state();
            let mut out = vec![0; size];
            let mut written = 0;
            loop {
                let State {
                    gunzip,
                    packed,
                    taken,
                } = &mut *state;
                let left = packed.as_ref().map_or(&[][..], |packed| &packed[*taken..]);
                let (took, made) = gunzip.unpack(left, &mut out[written..])?;
                *taken += took;
                written += made;
                let wants_more = took == left.len() && made == 0;
                if wants_more || written == size {
                    out.truncate(written);
                    return Ok(out);
                }
            }
        });
        let read = read.map_err(|e: Damaged| PyValueError::new_err(e.to_string()))?;
        Ok(PyBytes::new(py, &read))
    }

    /// Whether the data may end here.
    #[getter]
    fn complete(&self) -> bool {
        self.state().gunzip.is_complete()
    }
}
