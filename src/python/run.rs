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
    let control = Control::new();
    if !long {
        return py.detach(|| work(&control)).map_err(PyErr::from);
    }
    let mut work = Some(work);
    let mut result = None;
    let mut job = || result = work.take().map(|work| work(&control));
    supervise(py, threads, progress, &control, &mut job)?;
    result
        .unwrap_or(Err(Error::Interrupted))
        .map_err(PyErr::from)
}

/// Runs `job` in the pool, detached, and looks for signals meanwhile. It does not depend on the type
/// of the result: a channel for each type would be a tenth of the code of the library.
fn supervise(
    py: Python<'_>,
    threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    control: &Control,
    job: &mut (dyn FnMut() + Send),
) -> PyResult<()> {
    let progress = progress.map(|p| p.clone().unbind());
    let look = |py: Python<'_>| {
        py.check_signals()?;
        progress
            .as_ref()
            .map_or(Ok(()), |p| p.call1(py, (control.done(),)).map(drop))
    };
    py.detach(|| {
        let mut signal = Ok(());
        let (done, wait) = channel::<()>();
        pool_of(threads)?.in_place_scope(|scope| {
            // The closure owns the sender, which it drops when `job` ends, also by a panic.
            scope.spawn(move |_| {
                let _done = done;
                job();
            });
            while let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(PATIENCE) {
                if signal.is_ok() {
                    signal = Python::attach(look).inspect_err(|_| control.cancel());
                }
            }
        });
        signal
    })
}
