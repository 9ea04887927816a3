//! Forks: what one thread holds while another forks is held for ever in the child, whose other
//! threads do not exist. So locks know in which process they were taken.
//!
//! A process is known by the number of forks before it. (Its id would not do: in a new namespace a
//! child may have its parent's id.)

use std::fmt;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

use crate::support::error::Result;

/// Counts the forks between the first process and this one.
#[cfg(unix)]
mod forks {
    use std::ffi::c_int;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use super::Result;
    use crate::support::error::Error;

    static COUNT: AtomicU64 = AtomicU64::new(0);
    static WATCHED: AtomicBool = AtomicBool::new(false);

    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<unsafe extern "C" fn()>,
            parent: Option<unsafe extern "C" fn()>,
            child: Option<unsafe extern "C" fn()>,
        ) -> c_int;
    }

    /// Runs in every child before `fork` returns there.
    unsafe extern "C" fn forked() {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of forks. Counting starts at the first call, before which nothing is locked.
    pub(crate) fn count() -> Result<u64> {
        if !WATCHED.load(Ordering::Acquire) {
            // Two threads may both register: a fork then counts twice, which also distinguishes
            // processes. A lock could be held while another thread forks. SAFETY: the function
            // lives as long as the process and only adds to a number.
            let refused = unsafe { pthread_atfork(None, None, Some(forked)) };
            if refused != 0 {
                let reason = std::io::Error::from_raw_os_error(refused);
                return Err(Error::system("a watch for forks")(reason));
            }
            WATCHED.store(true, Ordering::Release);
        }
        Ok(COUNT.load(Ordering::Relaxed))
    }
}

/// For systems without fork.
#[cfg(not(unix))]
mod forks {
    pub(crate) fn count() -> super::Result<u64> {
        Ok(0)
    }
}

pub(crate) use forks::count;

/// No thread holds the lock.
const FREE: u64 = 0;
/// Time between two looks at a lock that another thread holds.
const WAIT: Duration = Duration::from_micros(50);

/// A value that is computed once, like `OnceLock`. If the thread that computes it is lost by a
/// fork, the child computes it anew.
pub(crate) struct Once<T> {
    /// The value, once it is complete; it does not change any more.
    value: AtomicPtr<T>,
    /// [`FREE`], or one more than the forks before the process that computes the value.
    lock: AtomicU64,
    /// Shared and sent as a `OnceLock` is.
    like: PhantomData<OnceLock<T>>,
}

/// Frees a lock, also after a panic.
struct Release<'a>(&'a AtomicU64);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.store(FREE, Ordering::Release);
    }
}

impl<T> Once<T> {
    pub(crate) const fn new() -> Self {
        Once {
            value: AtomicPtr::new(std::ptr::null_mut()),
            lock: AtomicU64::new(FREE),
            like: PhantomData,
        }
    }

    /// The value, if it has been computed.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: null, or from `Box::into_raw`, and freed only with `self`.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }

    /// The value, computed by `make` if it is not there. Other threads of the process wait.
    #[inline]
    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            None => self.init(make),
        }
    }

    #[cold]
    fn init(&self, make: impl FnOnce() -> T) -> &T {
        // Where the system refuses the watch, forks are not noticed: as with the locks of std.
        let held = 1 + count().unwrap_or(0);
        loop {
            let lock = self.lock.load(Ordering::Acquire);
            if let Some(value) = self.get() {
                return value;
            }
            let taken = |lock| {
                let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
                self.lock.compare_exchange(lock, held, success, failure)
            };
            if lock == held {
                std::thread::sleep(WAIT);
            } else if taken(lock).is_ok() {
                break;
            }
        }
        let _release = Release(&self.lock);
        // Another thread may have held the lock since.
        self.get().unwrap_or_else(|| {
            let value = Box::into_raw(Box::new(make()));
            self.value.store(value, Ordering::Release);
            // SAFETY: just made.
            unsafe { &*value }
        })
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        let value = *self.value.get_mut();
        if !value.is_null() {
            // SAFETY: from `Box::into_raw`, and no reference to it is left.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone> Clone for Once<T> {
    fn clone(&self) -> Self {
        let once = Self::new();
        if let Some(value) = self.get() {
            once.get_or_init(|| value.clone());
        }
        once
    }
}

impl<T: fmt::Debug> fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Once").field(&self.get()).finish()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::ffi::c_int;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc::channel;

    use super::*;

    /// Whether `child` returns true in a forked child within some seconds.
    fn in_child(child: impl FnOnce() -> bool) -> bool {
        unsafe extern "C" {
            fn fork() -> c_int;
            fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
            fn _exit(status: c_int) -> !;
            fn alarm(seconds: u32) -> u32;
        }
        // SAFETY: the child uses atomics and memory of its own, and exits.
        let (process, mut status) = (unsafe { fork() }, 0);
        if process == 0 {
            // SAFETY: a child that hangs is killed.
            unsafe { alarm(5) };
            let failed = !child();
            // SAFETY: as above.
            unsafe { _exit(c_int::from(failed)) };
        }
        assert!(process > 0);
        // SAFETY: it writes one number.
        assert_eq!(unsafe { waitpid(process, &raw mut status, 0) }, process);
        status == 0
    }

    #[test]
    fn a_value_is_computed_once_and_dropped_once() {
        let (made, dropped) = (AtomicUsize::new(0), AtomicUsize::new(0));
        struct Counted<'a>(&'a AtomicUsize);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let once = Once::new();
        assert!(once.get().is_none());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    once.get_or_init(|| {
                        made.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_millis(5));
                        Counted(&dropped)
                    });
                });
            }
        });
        assert!(once.get().is_some());
        drop(once);
        drop(Once::<Counted<'_>>::new());
        assert_eq!((made.into_inner(), dropped.into_inner()), (1, 1));
    }

    #[test]
    fn after_a_panic_the_next_one_computes() {
        let once = Once::new();
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            once.get_or_init(|| panic!("planted"));
        }));
        assert!(failed.is_err());
        assert_eq!(*once.get_or_init(|| 7), 7);
        assert_eq!(*once.clone().get_or_init(|| 8), 7);
    }

    #[test]
    fn a_child_computes_what_was_being_computed() {
        let (once, parents) = (Once::new(), count().unwrap());
        std::thread::scope(|scope| {
            let (started, wait) = channel();
            let (end, ended) = channel::<()>();
            let once = &once;
            scope.spawn(move || {
                once.get_or_init(|| {
                    started.send(()).unwrap();
                    ended.recv().unwrap();
                    1
                });
            });
            wait.recv().unwrap();
            assert!(in_child(|| *once.get_or_init(|| 2) == 2));
            end.send(()).unwrap();
        });
        assert_eq!(once.get(), Some(&1));
        assert!(in_child(|| once.get() == Some(&1)));
        assert_eq!(count().unwrap(), parents);
    }
}
