//! The one place where a call leaves the interpreter.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

use crate::parallel::{Control, pool};
use crate::{Error, Result};

/// How often a long call looks for Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(50);

/// Runs `work` detached from the interpreter. Long work runs in the pool while this thread
/// looks for signals and cancels it on Ctrl-C; short work runs right here.
pub(super) fn run<T: Send>(
    py: Python<'_>,
    long: bool,
    work: impl FnOnce(&Control) -> Result<T> + Send,
) -> PyResult<T> {
    let control = Control::new();
    if !long {
        return py.detach(|| work(&control)).map_err(PyErr::from);
    }
    py.detach(|| {
        let mut result = None;
        let mut signal = None;
        let (done, wait) = channel();
        pool()?.in_place_scope(|scope| {
            scope.spawn(|_| {
                result = Some(work(&control));
                // The receiver outlives the scope.
                let _ = done.send(());
            });
            while let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(PATIENCE) {
                if signal.is_none()
                    && let Err(e) = Python::attach(|py| py.check_signals())
                {
                    control.cancel();
                    signal = Some(e);
                }
            }
        });
        match (signal, result) {
            (Some(signal), _) => Err(signal),
            (None, Some(result)) => result.map_err(PyErr::from),
            (None, None) => Err(Error::Interrupted.into()),
        }
    })
}
