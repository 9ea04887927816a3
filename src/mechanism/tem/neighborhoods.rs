//! The neighbour lists a Tem works from: those of the space where it has them, else computed on
//! first use and kept, within a bound, without locks.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::error::Result;
use crate::neighbors::{Grid, NeighborLists};
use crate::parallel::Control;
use crate::search::BATCH;
use crate::space::MetricSpace;

/// Bytes of lists that one Tem (with all its `with_epsilon` siblings) keeps at most.
const CACHE_BYTES: usize = 1 << 30;

/// Lists of one space, filled in as they are needed.
pub(super) struct Neighborhoods {
    grid: Grid,
    k: usize,
    slots: Vec<AtomicPtr<u64>>,
    used: AtomicUsize,
}

impl Neighborhoods {
    pub(super) fn new(space: &dyn MetricSpace) -> Self {
        let words = space.vocabulary().len();
        let (grid, k, slots) = match space.lists() {
            Some(lists) => (lists.grid(), lists.k(), 0),
            None => (Grid::of(space), NeighborLists::default_k(words), words),
        };
        Neighborhoods {
            grid,
            k,
            slots: (0..slots).map(|_| AtomicPtr::default()).collect(),
            used: AtomicUsize::new(0),
        }
    }

    pub(super) fn grid(&self) -> Grid {
        self.grid
    }

    /// The list of a word; `scratch` holds it where it is not kept.
    #[inline]
    pub(super) fn list<'a>(
        &'a self,
        space: &'a dyn MetricSpace,
        id: u32,
        scratch: &'a mut Row,
    ) -> &'a [u64] {
        if let Some(lists) = space.lists() {
            return lists.list(id);
        }
        let slot = &self.slots[id as usize];
        let kept = slot.load(Ordering::Acquire);
        if !kept.is_null() {
            // SAFETY: a non-null slot holds k entries from `keep`, freed only with `self`.
            return unsafe { std::slice::from_raw_parts(kept, self.k) };
        }
        scratch.entries.resize(self.k, 0);
        space.neighbors(&[id], self.grid, self.k, &mut scratch.entries);
        self.keep(slot, &scratch.entries)
            .unwrap_or(&scratch.entries)
    }

    /// Makes the lists of those of `ids` that have none yet, many at a time.
    pub(super) fn prepare(
        &self,
        space: &dyn MetricSpace,
        ids: impl Iterator<Item = u32>,
        control: &Control,
    ) -> Result<()> {
        if self.slots.is_empty() {
            return Ok(());
        }
        let room = CACHE_BYTES.saturating_sub(self.used.load(Ordering::Relaxed)) / (8 * self.k);
        let missing = |id: &u32| self.slots[*id as usize].load(Ordering::Acquire).is_null();
        let missing: Vec<u32> = ids.filter(missing).take(room).collect();
        missing
            .par_chunks(BATCH)
            .try_for_each_init(Vec::new, |lists, ids| {
                control.check()?;
                lists.resize(ids.len() * self.k, 0);
                space.neighbors(ids, self.grid, self.k, lists);
                for (&id, list) in ids.iter().zip(lists.chunks_exact(self.k)) {
                    self.keep(&self.slots[id as usize], list);
                }
                Ok(())
            })
    }

    /// Copies a list into its slot, if the bound allows and no other thread was faster.
    fn keep<'a>(&'a self, slot: &'a AtomicPtr<u64>, list: &[u64]) -> Option<&'a [u64]> {
        let bytes = size_of_val(list);
        if self.used.fetch_add(bytes, Ordering::Relaxed) + bytes > CACHE_BYTES {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        }
        let made = Box::into_raw(Box::<[u64]>::from(list)).cast::<u64>();
        let placed = slot.compare_exchange(
            std::ptr::null_mut(),
            made,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        match placed {
            // SAFETY: just made from k entries, and freed only with `self`.
            Ok(_) => Some(unsafe { std::slice::from_raw_parts(made, self.k) }),
            Err(other) => {
                self.used.fetch_sub(bytes, Ordering::Relaxed);
                // SAFETY: `made` was not published, so it is ours to free.
                drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(made, self.k)) });
                // SAFETY: as for a kept list above.
                Some(unsafe { std::slice::from_raw_parts(other, self.k) })
            }
        }
    }
}

impl Drop for Neighborhoods {
    fn drop(&mut self) {
        for slot in &mut self.slots {
            let kept = *slot.get_mut();
            if !kept.is_null() {
                // SAFETY: made by `keep` from a boxed slice of k entries; nobody else holds it.
                drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(kept, self.k)) });
            }
        }
    }
}

/// Working memory for one row.
#[derive(Default)]
pub(super) struct Row {
    distances: Vec<f64>,
    entries: Vec<u64>,
}

impl Row {
    /// All distances of a word.
    pub(super) fn distances(&mut self, space: &dyn MetricSpace, id: u32) -> &mut [f64] {
        self.distances.resize(space.vocabulary().len(), 0.0);
        space.distances(id, &mut self.distances);
        &mut self.distances
    }
}
