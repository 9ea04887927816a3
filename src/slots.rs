//! Things kept for single words, filled in as they are needed, within a bound, without locks.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// At most one `T` for every word.
pub(crate) struct Slots<T> {
    words: usize,
    limit: usize,
    used: AtomicUsize,
    /// Made when something is kept: a Tem that is only configured costs nothing.
    slots: OnceLock<Box<[AtomicPtr<T>]>>,
}

impl<T> Slots<T> {
    /// For `words` words and `limit` bytes.
    pub(crate) fn new(words: usize, limit: usize) -> Self {
        Slots {
            words,
            limit,
            used: AtomicUsize::new(0),
            slots: OnceLock::new(),
        }
    }

    fn slot(&self, id: u32) -> &AtomicPtr<T> {
        // Zeroed by the system when it is touched, so that many words cost nothing.
        let made = || bytemuck::zeroed_slice_box(self.words);
        &self.slots.get_or_init(made)[id as usize]
    }

    /// What is kept for a word.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        let slot = &self.slots.get()?[id as usize];
        // SAFETY: a non-null slot came from Box::into_raw in `keep`, and is freed only with
        // `self`; what it points to is never changed.
        unsafe { slot.load(Ordering::Acquire).as_ref() }
    }

    /// Bytes that are still free.
    pub(crate) fn room(&self) -> usize {
        self.limit.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    /// Keeps `value`, of so many bytes, for a word; gives it back where the bound does not
    /// allow that. Where another thread was faster, its value stays.
    pub(crate) fn keep(&self, id: u32, value: T, bytes: usize) -> Result<&T, T> {
        if self.used.fetch_add(bytes, Ordering::Relaxed) + bytes > self.limit {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(value);
        }
        let made = Box::into_raw(Box::new(value));
        let placed = self.slot(id).compare_exchange(
            std::ptr::null_mut(),
            made,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        match placed {
            // SAFETY: just published, and freed only with `self`.
            Ok(_) => Ok(unsafe { &*made }),
            Err(other) => {
                self.used.fetch_sub(bytes, Ordering::Relaxed);
                // SAFETY: `made` was not published, so it is ours to free.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: as in `get`.
                Ok(unsafe { &*other })
            }
        }
    }
}

impl<T: Default> Slots<T> {
    /// What is kept for a word, or what `make` makes of `spare`, of so many bytes as it returns: it
    /// is kept where the bound allows that, and stands in `spare` where not.
    pub(crate) fn get_or_keep<'a>(
        &'a self,
        id: u32,
        spare: &'a mut T,
        make: impl FnOnce(&mut T) -> usize,
    ) -> &'a T {
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

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        for slot in self.slots.take().into_iter().flatten() {
            let kept = slot.into_inner();
            if !kept.is_null() {
                // SAFETY: made by `keep` from a box; nobody else holds it any more.
                drop(unsafe { Box::from_raw(kept) });
            }
        }
    }
}

// SAFETY: a slot hands out shared references and frees its boxes on whichever thread drops it.
unsafe impl<T: Send + Sync> Sync for Slots<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Send for Slots<T> {}
