//! Things kept for single words, filled in as they are needed, within a bound, without locks.
//!
//! What is kept stays until its owner goes: nothing is evicted, since a draw may be reading it. So
//! the words that come first and often are served; what comes when the bound is reached is made
//! anew each time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use once_cell::race::OnceBox;

use crate::error::{Error, Result as Outcome};

/// Bytes that one mechanism keeps where nothing else is said.
pub(crate) const DEFAULT_BYTES: usize = 128 << 20;

/// How many bytes several caches may keep together.
#[derive(Debug)]
pub(crate) struct CacheBudget {
    limit: usize,
    used: AtomicUsize,
}

impl CacheBudget {
    /// Of so many bytes.
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        let used = AtomicUsize::new(0);
        Arc::new(CacheBudget { limit, used })
    }

    /// Of `FASTDX_CACHE_BYTES` bytes, or 128 MiB.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the variable is no whole number.
    pub(crate) fn standard() -> Outcome<Arc<Self>> {
        const NAME: &str = "FASTDX_CACHE_BYTES";
        let Ok(text) = std::env::var(NAME) else {
            return Ok(Self::new(DEFAULT_BYTES));
        };
        let bytes = text.trim().parse();
        let bytes = bytes.map_err(|_| Error::parameter(NAME, "a number of bytes", &text))?;
        Ok(Self::new(bytes))
    }

    /// The bound.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes that are still free.
    pub(crate) fn free(&self) -> usize {
        self.limit.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    fn take(&self, bytes: usize) -> bool {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = before
            .checked_add(bytes)
            .is_some_and(|all| all <= self.limit);
        if !fits {
            self.give(bytes);
        }
        fits
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// At most one `T` for every word.
pub(crate) struct WordCache<T> {
    words: usize,
    budget: Arc<CacheBudget>,
    /// Of the budget at most so much, so that one kind does not crowd out the others.
    share: usize,
    used: AtomicUsize,
    /// Made when something is kept: a Tem that is only configured costs nothing.
    kept: OnceLock<Option<Box<[OnceBox<T>]>>>,
}

impl<T> Drop for WordCache<T> {
    fn drop(&mut self) {
        self.budget.give(*self.used.get_mut());
    }
}

impl<T> WordCache<T> {
    /// For `words` words, within the budget and at most `share` bytes of it.
    pub(crate) fn new(words: usize, budget: Arc<CacheBudget>, share: usize) -> Self {
        WordCache {
            words,
            budget,
            share,
            used: AtomicUsize::new(0),
            kept: OnceLock::new(),
        }
    }

    /// What is kept for a word.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        self.kept.get()?.as_ref()?[id as usize].get()
    }

    /// Bytes that are still free.
    pub(crate) fn free_bytes(&self) -> usize {
        let own = self.share.saturating_sub(self.used.load(Ordering::Relaxed));
        own.min(self.budget.free())
    }

    /// How many things of so many bytes still fit.
    pub(crate) fn room(&self, each: usize) -> usize {
        self.places().map_or(0, |_| self.free_bytes() / each.max(1))
    }

    fn take(&self, bytes: usize) -> bool {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = before
            .checked_add(bytes)
            .is_some_and(|all| all <= self.share);
        if fits && self.budget.take(bytes) {
            return true;
        }
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        false
    }

    /// The places of all words, if the bound has room for them.
    fn places(&self) -> Option<&[OnceBox<T>]> {
        let made = || {
            let bytes = self.words.checked_mul(size_of::<OnceBox<T>>())?;
            let fits = self.take(bytes);
            fits.then(|| (0..self.words).map(|_| OnceBox::new()).collect())
        };
        self.kept.get_or_init(made).as_deref()
    }

    /// Keeps `value`, of so many bytes, for a word; gives it back where the bound does not
    /// allow that. Where another thread was faster, its value stays.
    pub(crate) fn keep(&self, id: u32, value: T, bytes: usize) -> Result<&T, T> {
        let Some(places) = self.places() else {
            return Err(value);
        };
        if !self.take(bytes) {
            return Err(value);
        }
        let mut made = false;
        let kept = places[id as usize].get_or_init(|| {
            made = true;
            Box::new(value)
        });
        // Where two threads make one at the same time, both count: the bound is reached sooner.
        if !made {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            self.budget.give(bytes);
        }
        Ok(kept)
    }

    /// What is kept for a word, or what `make` makes of `spare`, of so many bytes as it returns: it
    /// is kept where the bound allows that, and stands in `spare` where not.
    pub(crate) fn get_or_keep<'a>(
        &'a self,
        id: u32,
        spare: &'a mut T,
        make: impl FnOnce(&mut T) -> usize,
    ) -> &'a T
    where
        T: Default,
    {
        if let Some(kept) = self.get(id) {
            return kept;
        }
        let bytes = make(spare);
        match self.keep(id, std::mem::take(spare), bytes) {
            Ok(kept) => kept,
            Err(unkept) => {
                *spare = unkept;
                spare
            }
        }
    }
}
