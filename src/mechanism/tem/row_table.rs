//! The table of a word's whole law, for words that are drawn often.

use rand::Rng;

use super::Tem;
use super::covered::output_distances;
use super::levels::{Asked, LevelTable};
use crate::cover::Cover;
use crate::law::Law;
use crate::law::alias::AliasTable;
use crate::words::space::MetricSpace;

/// The table of a whole law.
#[derive(Debug)]
pub(super) enum RowTable {
    /// Where a distance costs as much as a whole row, or there are few outputs.
    Columns(AliasTable),
    Levels(Box<LevelTable>),
}

/// A word's law, which its table does not hold in full.
pub(super) struct RowLaw<'a> {
    pub(super) tem: &'a Tem,
    pub(super) cover: Option<&'a Cover>,
    pub(super) id: u32,
}

impl RowTable {
    /// From so many draws of a word on, its table lets them wait for memory together.
    pub(super) const DRAWS_PER_BATCH: usize = AliasTable::DRAWS_PER_BATCH;

    /// Whether tables have levels, for so many outputs of a space.
    pub(super) fn has_levels(space: &dyn MetricSpace, outputs: usize) -> bool {
        // Fewer take no more memory with columns.
        const FEW: usize = 1 << 10;
        outputs > FEW && !space.distances_by_row()
    }

    /// Bytes of a table of so many outputs of a space.
    pub(super) fn bytes(space: &dyn MetricSpace, outputs: usize) -> usize {
        match Self::has_levels(space, outputs) {
            true => LevelTable::bytes(outputs),
            false => AliasTable::bytes(outputs),
        }
    }

    /// Prefetches what the draw with the bits x reads first.
    #[inline]
    pub(super) fn prefetch_first(&self, x: u64) {
        match self {
            RowTable::Columns(columns) => {
                columns.prefetch_at(x);
            }
            RowTable::Levels(levels) => levels.prefetch_part(x),
        }
    }

    /// Prefetches what it reads next, once the first has arrived.
    #[inline]
    pub(super) fn prefetch_next(&self, x: u64) {
        if let RowTable::Levels(levels) = self {
            levels.prefetch_at(x);
        }
    }

    /// Draws one output with x as the first 64 bits.
    #[inline]
    pub(super) fn sample_by(&self, x: u64, rng: &mut impl Rng, law: &RowLaw) -> u32 {
        match self {
            RowTable::Columns(columns) => columns.sample_by(x, rng, || law.law()),
            RowTable::Levels(levels) => levels.sample_by(x, rng, |asked| law.outweigh(asked)),
        }
    }

    /// Draws `count` outputs.
    pub(super) fn sample_many(
        &self,
        count: usize,
        rng: &mut impl Rng,
        law: &RowLaw,
        drawn: impl FnMut(u32),
    ) {
        match self {
            RowTable::Columns(columns) => columns.sample_many(count, rng, || law.law(), drawn),
            RowTable::Levels(levels) => {
                levels.sample_many(count, rng, |asked| law.outweigh(asked), drawn);
            }
        }
    }
}

impl RowLaw<'_> {
    fn law(&self) -> Law {
        self.tem.law_with(self.cover, self.id)
    }

    /// Compares weights; bit i is set if that of `asked[i]` is large enough.
    fn outweigh(&self, asked: &[Asked]) -> u64 {
        const MOST: usize = LevelTable::DRAWS_PER_BATCH;
        let grid = self.tem.grid();
        // The rounding is not the grid's where there is none.
        let parameters = self
            .tem
            .parameters(self.cover, self.tem.neighborhoods.grid());
        let (mut outputs, mut apart) = ([0; MOST], [0.0; MOST]);
        let outputs = &mut outputs[..asked.len()];
        for (each, output) in asked.iter().zip(&mut *outputs) {
            *output = each.output;
        }
        // At once: they wait for memory together.
        let (space, apart) = (&*self.tem.space, &mut apart[..asked.len()]);
        output_distances(space, self.id, self.cover, outputs, apart);
        let mut enough = 0;
        for (i, (each, &mut apart)) in asked.iter().zip(apart).enumerate() {
            let apart = grid.map_or(apart, |grid| grid.round(apart));
            let weight = parameters.share(each.output) * parameters.factor(apart);
            // At most 2¹²⁷.
            enough |= u64::from(weight * u128::from(each.times) > each.number) << i;
        }
        enough
    }
}
