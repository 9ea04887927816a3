//! The parts of a Tem's law for laws that multiply it by more than its base measure.

use std::sync::Arc;

use rand::Rng;

use super::Tem;
use super::covered::output_distances;
use super::draw::DrawScratch;
use super::neighborhoods::Row;
use crate::distance::neighbors::Grid;
use crate::law::word_cache::CacheBudget;

/// A word's nearest outputs, and a bound on all others.
#[derive(Default)]
pub(in crate::mechanism) struct Nearest {
    /// The outputs with their F.
    pub(in crate::mechanism) outputs: Vec<(u32, u128)>,
    /// Every word whose entry is at most this is among the nearest, whether an output or not.
    last: u64,
    /// A bound on F of all others.
    pub(in crate::mechanism) bound: u128,
}

impl Nearest {
    pub(in crate::mechanism) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.outputs)
    }
}

impl Tem {
    /// The grid, if draws may look at a few distances instead of the whole row.
    pub(in crate::mechanism) fn few_distances(&self) -> Option<Grid> {
        let simple = self.randomness.takes_the_simple_draw();
        self.grid().filter(|_| !simple)
    }

    pub(in crate::mechanism) fn budget(&self) -> &Arc<CacheBudget> {
        self.neighborhoods.budget()
    }

    /// Number of tries that cost as much as a row.
    pub(in crate::mechanism) fn tries_per_row(&self) -> u32 {
        self.cache.tries_per_row()
    }

    /// The rank of a word as an output: its id, without a cover.
    pub(in crate::mechanism) fn rank(&self, id: u32) -> Option<u32> {
        self.cover.as_ref().map_or(Some(id), |cover| cover.rank(id))
    }

    /// Draws one output of a word's law.
    pub(in crate::mechanism) fn draw_one(
        &self,
        id: u32,
        rng: &mut impl Rng,
        scratch: &mut DrawScratch,
    ) -> u32 {
        let mut y = id;
        self.draw_word(id, 1, rng, scratch, |drawn| y = drawn);
        y
    }

    /// F of some outputs, given by rank: the integers of the word's law.
    pub(in crate::mechanism) fn factors(&self, id: u32, grid: Grid, ranks: &[u32]) -> Vec<u128> {
        let cover = self.cover.as_deref();
        let (parameters, mut apart) = (self.parameters(cover, grid), vec![0.0; ranks.len()]);
        output_distances(&*self.space, id, cover, ranks, &mut apart);
        let factor = |&d: &f64| parameters.factor(grid.round(d));
        apart.iter().map(factor).collect()
    }

    /// Whether each output stands for itself alone.
    pub(in crate::mechanism) fn releases_words(&self) -> bool {
        self.cover.as_ref().is_none_or(|cover| cover.is_identity())
    }

    /// The nearest `count` words of a word, where outputs stand for themselves.
    pub(in crate::mechanism) fn nearest(&self, id: u32, grid: Grid, count: usize) -> Nearest {
        let parameters = self.parameters(None, grid);
        let mut row = Row::default();
        let list = self.neighborhoods.list(&*self.space, id, &mut row);
        let entries = &list.entries[..count.min(list.entries.len())];
        let last = entries.last().copied().unwrap_or(0);
        let released = |y: &u32| self.rank(*y).is_some();
        let factor = |entry| parameters.factor(grid.distance(entry));
        let each = entries.iter().map(|&entry| (grid.id(entry), factor(entry)));
        Nearest {
            outputs: each.filter(|(y, _)| released(y)).collect(),
            last,
            bound: parameters.most_factor(grid.distance(last)),
        }
    }

    /// F of a word; `None` if it is among the nearest.
    pub(in crate::mechanism) fn factor_outside(
        &self,
        id: u32,
        grid: Grid,
        y: u32,
        nearest: &Nearest,
    ) -> Option<u128> {
        let mut apart = [0.0];
        self.space.distances_to(id, &[y], &mut apart);
        let entry = grid.entry(apart[0], y);
        let outside = entry > nearest.last;
        outside.then(|| self.parameters(None, grid).factor(grid.distance(entry)))
    }
}
