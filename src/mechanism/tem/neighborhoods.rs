//! The neighbour lists that a Tem draws from: the space's lists if it has them. Otherwise they are
//! computed on first use and kept within a budget, without locks.

use std::sync::Arc;

use crate::distance::neighbors::{Grid, NeighborLists};
use crate::distance::search::BATCH;
use crate::law::word_cache::{CacheBudget, WordCache};
use crate::support::error::Result;
use crate::support::parallel::{Control, for_all_with};
use crate::support::prefetch::prefetch;
use crate::words::space::MetricSpace;

/// The lists of one space, computed when needed.
pub(super) struct Neighborhoods {
    grid: Grid,
    k: usize,
    kept: WordCache<Box<[u64]>>,
    /// The budget, shared by everything derived from these lists.
    budget: Arc<CacheBudget>,
}

impl Neighborhoods {
    /// Lists of the `k` nearest words, unless the space has lists.
    pub(super) fn new(space: &dyn MetricSpace, k: usize, budget: Arc<CacheBudget>) -> Self {
        let words = space.vocabulary().len();
        let grid = space
            .lists()
            .map_or_else(|| Grid::of(space), NeighborLists::grid);
        Neighborhoods {
            grid,
            k,
            kept: WordCache::new(words, budget.clone(), budget.limit() / 2),
            budget,
        }
    }

    /// Lists of another length within the same budget; these ones if they have it.
    pub(super) fn of_length(self: &Arc<Self>, space: &dyn MetricSpace, k: usize) -> Arc<Self> {
        match k == self.k {
            true => self.clone(),
            false => Arc::new(Self::new(space, k, self.budget.clone())),
        }
    }

    pub(super) fn budget(&self) -> &Arc<CacheBudget> {
        &self.budget
    }

    pub(super) fn grid(&self) -> Grid {
        self.grid
    }

    /// Returns the list of a word; `scratch` holds it if it is not kept.
    #[inline]
    pub(super) fn list<'a>(
        &'a self,
        space: &'a dyn MetricSpace,
        id: u32,
        scratch: &'a mut Row,
    ) -> List<'a> {
        let entries: &[u64] = match space.lists() {
            Some(lists) => lists.list(id),
            None => self.kept.get_or_keep(id, &mut scratch.list, |list| {
                *list = vec![0; self.k].into();
                space.neighbors(&[id], self.grid, self.k, list);
                8 * self.k
            }),
        };
        // A list holds at least the word itself. A file that was not verified may hold any number.
        let end = entries.last().map_or(0, |last| last.saturating_add(1));
        List { entries, end }
    }

    /// Prefetches the list, if it exists.
    #[inline]
    pub(super) fn prefetch(&self, space: &dyn MetricSpace, id: u32) {
        let list = match space.lists() {
            Some(lists) => lists.list(id),
            None => self.kept.get(id).map_or(&[][..], |list| list),
        };
        const PER_CACHE_LINE: usize = 8;
        list.iter()
            .step_by(PER_CACHE_LINE)
            .for_each(|at| prefetch(at));
    }

    /// Computes the missing lists of `ids`, many at a time.
    pub(super) fn prepare(
        &self,
        space: &dyn MetricSpace,
        ids: impl Iterator<Item = u32>,
        control: &Control,
    ) -> Result<()> {
        if space.lists().is_some() {
            return Ok(());
        }
        let fit = self.kept.room(8 * self.k);
        let missing = ids.filter(|&id| self.kept.get(id).is_none());
        let missing: Vec<u32> = missing.take(fit).collect();
        for_all_with(missing.chunks(BATCH), Vec::new, |lists, ids| {
            control.check()?;
            lists.resize(ids.len() * self.k, 0);
            space.neighbors(ids, self.grid, self.k, lists);
            for (&id, list) in ids.iter().zip(lists.chunks_exact(self.k)) {
                let _ = self.kept.keep(id, Box::from(list), 8 * self.k);
            }
            Ok(())
        })
    }
}

/// A word's neighbours, ascending by distance.
#[derive(Clone, Copy)]
pub(super) struct List<'a> {
    pub(super) entries: &'a [u64],
    /// Every word whose entry is below this is in the list, and no other word is.
    pub(super) end: u64,
}

/// Working memory for one row.
#[derive(Default)]
pub(super) struct Row {
    pub(super) distances: Vec<f64>,
    /// Scores by rank of a cover's outputs.
    pub(super) scores: Vec<f64>,
    list: Box<[u64]>,
}

impl Row {
    /// Computes all distances of a word.
    pub(super) fn distances(&mut self, space: &dyn MetricSpace, id: u32) -> &mut [f64] {
        self.distances.resize(space.vocabulary().len(), 0.0);
        space.distances(id, &mut self.distances);
        &mut self.distances
    }
}
