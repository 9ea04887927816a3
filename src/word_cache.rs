//! Things kept for single words, filled in as they are needed, within a bound, without locks.
//!
//! What is kept stays until its owner goes: nothing is evicted, since a draw may be reading it. So
//! the words that come first and often are served; what comes when the bound is reached is made
//! anew each time.

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

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

/// What is kept, and what was kept before it in another place.
struct Kept<T> {
    value: T,
    before: AtomicPtr<Kept<T>>,
}

/// A place for each word, each set once. Neither making nor dropping them looks at those that are empty: there are
/// many words, and few of them are drawn by a Tem that is made for one request.
struct Places<T> {
    /// Null, or a `Kept` that came from a box and stays till the end. The system gives zeros where they are touched.
    each: Box<[AtomicPtr<Kept<T>>]>,
    newest: AtomicPtr<Kept<T>>,
    owns: PhantomData<T>,
}

// SAFETY: a `Places` owns the `T`s that it points to; it gives them out only as shared references, to any thread that
// has one to itself, and may be dropped, with them, by another thread than the one that set them.
unsafe impl<T: Send> Send for Places<T> {}
// SAFETY: as above; `set` moves a `T` in through a shared reference.
unsafe impl<T: Send + Sync> Sync for Places<T> {}

impl<T> Places<T> {
    fn of(words: usize) -> Self {
        Places {
            each: bytemuck::zeroed_slice_box(words),
            newest: AtomicPtr::default(),
            owns: PhantomData,
        }
    }

    #[inline]
    fn get(&self, id: u32) -> Option<&T> {
        let kept = self.each[id as usize].load(Ordering::Acquire);
        // SAFETY: null, or a whole `Kept` (released by `set`) that lives as long as `self`.
        unsafe { kept.as_ref() }.map(|kept| &kept.value)
    }

    /// What the place holds from now on, and whether that is `value`: the first one stays.
    fn set(&self, id: u32, value: T) -> (&T, bool) {
        let made = Box::into_raw(Box::new(Kept {
            value,
            before: AtomicPtr::default(),
        }));
        let place = &self.each[id as usize];
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        if let Err(first) = place.compare_exchange(ptr::null_mut(), made, success, failure) {
            // SAFETY: `made` came from a box above and was given to nobody.
            drop(unsafe { Box::from_raw(made) });
            // SAFETY: as in `get`; a place that was not null stays as it is.
            return (unsafe { &(*first).value }, false);
        }
        // SAFETY: as in `get`.
        let kept = unsafe { &*made };
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            kept.before.store(newest, Ordering::Relaxed);
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            let pushed = self
                .newest
                .compare_exchange_weak(newest, made, success, failure);
            match pushed {
                Ok(_) => return (&kept.value, true),
                Err(other) => newest = other,
            }
        }
    }
}

impl<T> Drop for Places<T> {
    fn drop(&mut self) {
        let mut next = *self.newest.get_mut();
        while !next.is_null() {
            // SAFETY: each came from a box by `set` and is in this chain once; nobody has a reference any more.
            let kept = unsafe { Box::from_raw(next) };
            next = kept.before.into_inner();
        }
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
    kept: OnceLock<Option<Places<T>>>,
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
        self.kept.get()?.as_ref()?.get(id)
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
    fn places(&self) -> Option<&Places<T>> {
        let made = || {
            let bytes = self.words.checked_mul(size_of::<AtomicPtr<Kept<T>>>())?;
            self.take(bytes).then(|| Places::of(self.words))
        };
        self.kept.get_or_init(made).as_ref()
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
        let (kept, made) = places.set(id, value);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::install;
    use rayon::prelude::*;

    /// What is dropped is counted.
    struct Counted<'a>(u32, &'a AtomicUsize);

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn threads_that_keep_at_once_see_one_value_and_all_are_dropped_once() {
        const WORDS: u32 = 300;
        let dropped = AtomicUsize::new(0);
        let budget = CacheBudget::new(1 << 20);
        let cache = WordCache::new(WORDS as usize, budget.clone(), 1 << 20);
        // Every word 64 times, by turns, so that threads meet.
        let keep_all = || {
            (0..64 * WORDS).into_par_iter().for_each(|i| {
                let id = i % WORDS;
                let Ok(kept) = cache.keep(id, Counted(i, &dropped), 16) else {
                    panic!("there is room");
                };
                assert_eq!(kept.0 % WORDS, id);
                assert!(cache.get(id).is_some_and(|got| ptr::eq(got, kept)));
            });
        };
        install(usize::MAX, 1, keep_all).unwrap();
        let places = WORDS as usize * size_of::<usize>();
        assert_eq!(dropped.load(Ordering::Relaxed) as u32, 63 * WORDS);
        assert_eq!(budget.free(), (1 << 20) - places - 16 * WORDS as usize);
        drop(cache);
        assert_eq!(dropped.load(Ordering::Relaxed) as u32, 64 * WORDS);
        assert_eq!(budget.free(), 1 << 20);
    }

    #[test]
    fn what_the_bound_has_no_room_for_comes_back() {
        let budget = CacheBudget::new(100);
        let cache = WordCache::new(2, budget.clone(), 100);
        assert_eq!(cache.room(50), 1);
        assert_eq!(cache.keep(0, 'a', 50), Ok(&'a'));
        assert_eq!(cache.keep(1, 'b', 50), Err('b'));
        assert_eq!((cache.get(0), cache.get(1)), (Some(&'a'), None));
        let mut spare = ' ';
        let made = |spare: &mut char| {
            *spare = 'c';
            50
        };
        assert_eq!(*cache.get_or_keep(1, &mut spare, made), 'c');
        assert_eq!(cache.get(1), None);
        // Not even the places fit.
        let none = WordCache::new(1000, budget, 100);
        assert_eq!(none.keep(7, 'd', 1), Err('d'));
    }
}
