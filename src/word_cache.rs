//! Things kept for single words, filled in as they are needed, within a bound, without locks.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use once_cell::race::OnceBox;

/// At most one `T` for every word.
pub(crate) struct WordCache<T> {
    words: usize,
    limit: usize,
    used: AtomicUsize,
    /// Made when something is kept: a Tem that is only configured costs nothing.
    kept: OnceLock<Box<[OnceBox<T>]>>,
}

impl<T> WordCache<T> {
    /// For `words` words and `limit` bytes.
    pub(crate) fn new(words: usize, limit: usize) -> Self {
        WordCache {
            words,
            limit,
            used: AtomicUsize::new(0),
            kept: OnceLock::new(),
        }
    }

    /// What is kept for a word.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        self.kept.get()?[id as usize].get()
    }

    /// Bytes that are still free.
    pub(crate) fn free_bytes(&self) -> usize {
        self.limit.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    /// Keeps `value`, of so many bytes, for a word; gives it back where the bound does not
    /// allow that. Where another thread was faster, its value stays.
    pub(crate) fn keep(&self, id: u32, value: T, bytes: usize) -> Result<&T, T> {
        if self.used.fetch_add(bytes, Ordering::Relaxed) + bytes > self.limit {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(value);
        }
        let made = || (0..self.words).map(|_| OnceBox::new()).collect();
        let slot = &self.kept.get_or_init(made)[id as usize];
        let mut made = false;
        let kept = slot.get_or_init(|| {
            made = true;
            Box::new(value)
        });
        // Where two threads make one at the same time, both count: the bound is reached sooner.
        if !made {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
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
