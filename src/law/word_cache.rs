//! A cache of one value per word, filled when needed, within a byte limit, without locks.
//!
//! A value stays until its owner is dropped: nothing is evicted, because a draw may be reading it.
//! So words that come early and often are cached; once the limit is reached, other values are
//! recomputed each time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::support::error::{Error, Result as Outcome};
use crate::support::fork::Once;

/// The default limit of one mechanism, in bytes.
pub(crate) const DEFAULT_BYTES: usize = 128 << 20;

/// The number of bytes that several caches may use together.
#[derive(Debug)]
pub(crate) struct CacheBudget {
    limit: usize,
    used: AtomicUsize,
    /// The budget that this one is a part of.
    whole: Option<Arc<CacheBudget>>,
}

impl CacheBudget {
    /// Creates a budget of `limit` bytes.
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self::part(limit, None))
    }

    fn part(limit: usize, whole: Option<Arc<CacheBudget>>) -> Self {
        let used = AtomicUsize::new(0);
        CacheBudget { limit, used, whole }
    }

    /// Creates a budget of `FASTDX_CACHE_BYTES` bytes, or 128 MiB.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the variable is not an integer.
    pub(crate) fn standard() -> Outcome<Arc<Self>> {
        const NAME: &str = "FASTDX_CACHE_BYTES";
        let Ok(text) = std::env::var(NAME) else {
            return Ok(Self::new(DEFAULT_BYTES));
        };
        let bytes = text.trim().parse();
        let bytes = bytes.map_err(|_| Error::parameter(NAME, "a number of bytes", &text))?;
        Ok(Self::new(bytes))
    }

    /// The limit.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// The remaining bytes.
    pub(crate) fn free(&self) -> usize {
        let own = self.limit.saturating_sub(self.used.load(Ordering::Relaxed));
        let whole = self.whole.as_ref();
        whole.map_or(own, |whole| own.min(whole.free()))
    }

    fn take(&self, bytes: usize) -> bool {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = before
            .checked_add(bytes)
            .is_some_and(|all| all <= self.limit)
            && self.whole.as_ref().is_none_or(|whole| whole.take(bytes));
        if !fits {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.whole.iter().for_each(|whole| whole.give(bytes));
    }
}

impl Drop for CacheBudget {
    fn drop(&mut self) {
        let used = *self.used.get_mut();
        self.whole.iter().for_each(|whole| whole.give(used));
    }
}

/// A cache with at most one `T` per word.
pub(crate) struct WordCache<T> {
    words: usize,
    budget: CacheBudget,
    /// One slot per word, created when the first value is kept: a Tem that is only configured costs
    /// nothing.
    kept: Once<Option<Box<[Once<T>]>>>,
}

impl<T> WordCache<T> {
    /// Creates a cache for `words` words, within the budget and with at most `share` bytes of it, so that
    /// one kind does not crowd out the others.
    pub(crate) fn new(words: usize, budget: Arc<CacheBudget>, share: usize) -> Self {
        WordCache {
            words,
            budget: CacheBudget::part(share, Some(budget)),
            kept: Once::new(),
        }
    }

    /// The cached value of a word.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        self.kept.get()?.as_ref()?[id as usize].get()
    }

    /// The remaining bytes.
    pub(crate) fn free_bytes(&self) -> usize {
        self.budget.free()
    }

    /// How many values of `each` bytes still fit.
    pub(crate) fn room(&self, each: usize) -> usize {
        self.slots().map_or(0, |_| self.free_bytes() / each.max(1))
    }

    /// The slots of all words, if the limit has room for them.
    fn slots(&self) -> Option<&[Once<T>]> {
        let made = || {
            let bytes = self.words.checked_mul(size_of::<Once<T>>())?;
            let slots = || (0..self.words).map(|_| Once::new()).collect();
            self.budget.take(bytes).then(slots)
        };
        self.kept.get_or_init(made).as_deref()
    }

    /// Caches `value`, of `bytes` bytes, for a word; gives it back if the limit does not allow
    /// that. If another thread was faster, that thread's value stays.
    pub(crate) fn keep(&self, id: u32, value: T, bytes: usize) -> Result<&T, T> {
        let Some(slots) = self.slots() else {
            return Err(value);
        };
        if !self.budget.take(bytes) {
            return Err(value);
        }
        let mut made = false;
        let kept = slots[id as usize].get_or_init(|| {
            made = true;
            value
        });
        if !made {
            self.budget.give(bytes);
        }
        Ok(kept)
    }

    /// Returns the cached value of a word, or the value that `make` puts into `spare`; `make`
    /// returns its size in bytes. The new value is cached if the limit allows it, and otherwise
    /// stays in `spare`.
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

/// Number of counters of what words have cost. Two words that share a counter share the decision to
/// keep a law, which then comes too early.
const COUNTERS: usize = 1 << 17;

/// What the draws of each word have cost so far. A cache that keeps a word's law once they have cost
/// as much never costs more than about twice the best choice in hindsight.
pub(crate) struct Spent {
    words: usize,
    /// The system supplies zeroed pages on first use: a mechanism that is only configured costs
    /// nothing.
    each: Once<Box<[AtomicU32]>>,
}

impl Spent {
    pub(crate) fn new(words: usize) -> Self {
        let each = Once::new();
        Spent { words, each }
    }

    fn slot(&self, id: u32) -> &AtomicU32 {
        let count = self.words.next_power_of_two().min(COUNTERS);
        let made = || bytemuck::zeroed_slice_box(count);
        &self.each.get_or_init(made)[id as usize & (count - 1)]
    }

    /// The cost of a word so far.
    pub(crate) fn on(&self, id: u32) -> usize {
        self.slot(id).load(Ordering::Relaxed) as usize
    }

    /// Adds a cost, limited so that no sum overflows before it is enough; returns the sum.
    pub(crate) fn add(&self, id: u32, cost: usize) -> usize {
        let cost = cost.min(1 << 30);
        self.slot(id).fetch_add(cost as u32, Ordering::Relaxed) as usize + cost
    }

    /// Begins anew, because the word's law is kept.
    pub(crate) fn settle(&self, id: u32) {
        self.slot(id).store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::parallel::{for_all, install};

    /// Counts when it is dropped.
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
        // Every word 64 times, in turn, so that threads meet.
        let keep_all = || {
            for_all(0..64 * WORDS, |i| {
                let id = i % WORDS;
                let Ok(kept) = cache.keep(id, Counted(i, &dropped), 16) else {
                    panic!("there is room");
                };
                assert_eq!(kept.0 % WORDS, id);
                assert!(cache.get(id).is_some_and(|got| std::ptr::eq(got, kept)));
                Ok(())
            })
        };
        install(usize::MAX, 1, keep_all).unwrap().unwrap();
        let slots = WORDS as usize * size_of::<Once<Counted<'_>>>();
        assert_eq!(dropped.load(Ordering::Relaxed) as u32, 63 * WORDS);
        assert_eq!(budget.free(), (1 << 20) - slots - 16 * WORDS as usize);
        drop(cache);
        assert_eq!(dropped.load(Ordering::Relaxed) as u32, 64 * WORDS);
        assert_eq!(budget.free(), 1 << 20);
    }

    #[test]
    fn values_beyond_the_limit_are_returned() {
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
        // Not even the slots fit.
        let none = WordCache::new(1000, budget, 100);
        assert_eq!(none.keep(7, 'd', 1), Err('d'));
    }
}
