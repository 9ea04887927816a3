//! Threads, cancellation and progress.
//!
//! rayon's global pool does not survive `fork`: a child that uses it waits for threads that do
//! not exist. The pool is therefore keyed by the process id and made anew in a child. It is the
//! crate's only process-wide state, holds no data, and is never locked.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, Result};

/// Cancellation and progress of one long call, shared with whoever started it.
#[derive(Debug, Default)]
pub struct Control {
    cancelled: AtomicBool,
    done: AtomicU64,
}

impl Control {
    /// A call that nobody has cancelled yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the call to stop; it returns [`Error::Interrupted`] soon.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// To be asked between pieces of work.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once the call is cancelled.
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Reports `items` more items done.
    pub fn advance(&self, items: usize) {
        self.done.fetch_add(items as u64, Ordering::Relaxed);
    }

    /// Items done so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

struct ProcessPool {
    process: u32,
    pool: ThreadPool,
}

static POOL: AtomicPtr<ProcessPool> = AtomicPtr::new(std::ptr::null_mut());

/// The thread pool of this process: `FASTDX_NUM_THREADS` threads, or one for every core.
///
/// # Errors
/// [`Error::System`] if the operating system gives no threads, [`Error::Parameter`] if the
/// variable is not a positive number.
pub fn pool() -> Result<&'static ThreadPool> {
    let process = std::process::id();
    let seen = POOL.load(Ordering::Acquire);
    // SAFETY: a non-null pointer came from Box::into_raw below and is never freed.
    if let Some(current) = unsafe { seen.as_ref() }
        && current.process == process
    {
        return Ok(&current.pool);
    }
    let threads = match std::env::var("FASTDX_NUM_THREADS") {
        Err(_) => 0,
        Ok(text) => match text.trim().parse::<usize>() {
            Ok(n) if (1..=4096).contains(&n) => n,
            _ => {
                return Err(Error::parameter(
                    "FASTDX_NUM_THREADS",
                    "a number from 1 to 4096",
                    format!("{text:?}"),
                ));
            }
        },
    };
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|i| format!("fastdx-{i}"))
        .build()
        .map_err(|e| Error::System {
            what: "threads",
            reason: e.to_string(),
        })?;
    let made = Box::into_raw(Box::new(ProcessPool { process, pool }));
    match POOL.compare_exchange(seen, made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            // The parent's pool, if any, is leaked in a forked child: its threads do not exist
            // here, so dropping it would wait for them for ever.
            // SAFETY: just made, and from now on never freed.
            Ok(unsafe { &(*made).pool })
        }
        Err(other) => {
            // SAFETY: `made` was not published, so this thread alone owns it.
            drop(unsafe { Box::from_raw(made) });
            // SAFETY: published by another thread of this process, never freed.
            Ok(unsafe { &(*other).pool })
        }
    }
}

/// Runs `work` in this process's pool, so that rayon iterators in it use its threads; a small
/// job (`items` at most `small`) runs on the calling thread instead, where it is sooner done.
pub(crate) fn install<R: Send>(
    items: usize,
    small: usize,
    work: impl FnOnce() -> R + Send,
) -> Result<R> {
    if items <= small {
        Ok(work())
    } else {
        Ok(pool()?.install(work))
    }
}

/// Does `work` on every item, on as many threads as the pool has, without the pool: for what is
/// made inside a `OnceLock`, where a pool's thread that waits could take up another task that
/// waits for the lock it holds.
pub(crate) fn split<T: Send>(items: Vec<T>, work: impl Fn(T) + Sync) {
    let threads = pool().map_or(1, ThreadPool::current_num_threads);
    let queue = Mutex::new(items.into_iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let help = || std::iter::from_fn(next).for_each(&work);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // A thread that the system refuses is done without.
            let _ = std::thread::Builder::new().spawn_scoped(scope, help);
        }
        help();
    });
}
