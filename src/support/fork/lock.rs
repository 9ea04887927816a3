//! A lock that does not wait for a thread that a fork has lost.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{FREE, WAIT, held};
use crate::support::error::{Error, Result};

/// A value that one thread uses at a time, like `Mutex`. If the thread that used it was lost by a
/// fork, the value may be half changed: [`lock`](Self::lock) says so in the child instead of waiting
/// for ever.
#[derive(Default)]
pub(crate) struct Lock<T> {
    /// [`FREE`], or the process of the thread that holds it.
    state: AtomicU64,
    value: UnsafeCell<T>,
}

// SAFETY: as for `Mutex`: one thread at a time uses the value.
unsafe impl<T: Send> Send for Lock<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The value of a [`Lock`] while a thread holds it.
pub(crate) struct Guard<'a, T>(&'a Lock<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Lock {
            state: AtomicU64::new(FREE),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the value.
    ///
    /// # Errors
    /// [`Error::System`] if another thread used the value when this process was forked.
    pub(crate) fn lock(&self) -> Result<Guard<'_, T>> {
        let held = held();
        loop {
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            match self.state.compare_exchange(FREE, held, success, failure) {
                Ok(_) => return Ok(Guard(self)),
                Err(state) if state == held => std::thread::sleep(WAIT),
                Err(_) => {
                    return Err(Error::System {
                        what: "an object that another thread used while this process was forked",
                        reason: "create it anew in the forked process".into(),
                    });
                }
            }
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the lock.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.0.state.store(FREE, Ordering::Release);
    }
}
