//! The one place where a call leaves the interpreter.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

use crate::support::parallel::{Control, pool_of};
use crate::{Error, Result};

/// Time between two checks for Ctrl-C in a long call.
const PATIENCE: Duration = Duration::from_millis(50);

/// Runs `work` detached from the interpreter. Long work runs in the pool, while this thread checks
/// for signals and cancels it on Ctrl-C. Short work runs on this thread.
pub(super) fn run<T: Send>(
    py: Python<'_>,
    long: bool,
    work: impl FnOnce(&Control) -> Result<T> + Send,
) -> PyResult<T> {
    run_in(py, 0, long, None, work)
}

/// [`run`] that reports to `progress` (a Python callable) how many items are done.
pub(super) fn run_with<T: Send>(
    py: Python<'_>,
    long: bool,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Control) -> Result<T> + Send,
) -> PyResult<T> {
    run_in(py, 0, long, progress, work)
}

/// [`run_with`] on this number of threads; 0 for the default.
pub(super) fn run_in<T: Send>(
    py: Python<'_>,
    threads: usize,
    long: bool,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Control) -> Result<T> + Send,
) -> PyResult<T> {
    let progress = progress.map(|p| p.clone().unbind());
    let control = Control::new();
    if !long {
        return py.detach(|| work(&control)).map_err(PyErr::from);
    }
    py.detach(|| {
        let mut signal = None;
        let (done, wait) = channel();
        let control = &control;
        let result = pool_of(threads)?.in_place_scope(|scope| {
            // The closure owns the sender: if `work` panics, it is dropped and the wait ends.
            scope.spawn(move |_| {
                let _ = done.send(work(control));
            });
            loop {
                match wait.recv_timeout(PATIENCE) {
                    Ok(result) => break Some(result),
                    Err(RecvTimeoutError::Disconnected) => break None,
                    Err(RecvTimeoutError::Timeout) => {}
                }
                let look = |py: Python<'_>| {
                    py.check_signals()?;
                    progress
                        .as_ref()
                        .map_or(Ok(()), |p| p.call1(py, (control.done(),)).map(drop))
                };
                if signal.is_none()
                    && let Err(e) = Python::attach(look)
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
