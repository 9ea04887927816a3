//! The tables of words that are drawn often.
//!
//! A row costs time each time it is read, a table once. Once a word's rows have cost as much time as
//! its table, this is built and kept, whether a row takes microseconds or milliseconds.

use std::sync::Arc;
use std::time::Duration;

use rand::Rng;

use super::integers::Scale;
use crate::law::Law;
use crate::law::alias::AliasTable;
use crate::law::word_cache::{CacheBudget, Spent, WordCache};

/// From this many draws of a word in a call on, its table is built at once if there is room.
pub(super) const MIN_TABLE_DRAWS: usize = 64;
/// A table costs about this many nanoseconds for each possible output: an estimate from rows of
/// 20,000 outputs. It decides when a table is made, and no output.
const NANOS_PER_OUTPUT: usize = 13;
/// A draw without a table costs about this many nanoseconds more than one with it.
const NANOS_PER_DRAW: usize = 100;

/// A word's law as an alias table for many draws. It covers all words, or only the possible outputs
/// where these are few.
#[derive(Debug)]
pub(super) struct DrawTable {
    table: AliasTable,
    /// The outputs with positive probability, ascending; `None` if the table covers all words.
    outputs: Option<Box<[u32]>>,
}

impl DrawTable {
    /// The table of a row with this many possible outputs.
    pub(super) fn of(row: &[f64], scale: Scale, possible: usize) -> Self {
        if !few(possible, row.len()) {
            let table = AliasTable::new(&scale.law(row));
            return DrawTable {
                table,
                outputs: None,
            };
        }
        // A positive probability has a positive integer.
        let outputs = (0u32..).zip(row).filter(|(_, p)| **p > 0.0);
        let outputs: Box<[u32]> = outputs.map(|(y, _)| y).collect();
        let weights = outputs.iter().map(|&y| scale.integer(row[y as usize]));
        DrawTable {
            table: AliasTable::new(&Law::of_weights(weights)),
            outputs: Some(outputs),
        }
    }

    /// The bytes of a table on this many words, with this many possible outputs.
    fn bytes(possible: usize, words: usize) -> usize {
        let table = match few(possible, words) {
            true => AliasTable::bytes(possible) + possible * size_of::<u32>(),
            false => AliasTable::bytes(words),
        };
        size_of::<Self>() + table
    }

    fn size(&self) -> usize {
        let outputs = self.outputs.as_deref().map_or(0, size_of_val);
        size_of::<Self>() + self.table.size() + outputs
    }

    /// Draws `count` outputs; `law` recomputes the whole law when a draw needs further bits.
    pub(super) fn sample_many(
        &self,
        count: usize,
        rng: &mut impl Rng,
        law: impl Fn() -> Law,
        mut drawn: impl FnMut(u32),
    ) {
        match &self.outputs {
            None => self.table.sample_many(count, rng, law, drawn),
            Some(outputs) => {
                let law = || positive(&law());
                let drawn = |at: u32| drawn(outputs[at as usize]);
                self.table.sample_many(count, rng, law, drawn);
            }
        }
    }
}

/// Whether a table covers the possible outputs alone: at most half of the words.
fn few(possible: usize, words: usize) -> bool {
    possible <= words / 2
}

/// Restricts a law to the outputs with positive probability.
fn positive(law: &Law) -> Law {
    Law::of_weights(law.weights().filter(|weight| *weight > 0))
}

/// The tables that are kept, and what the rows of other words have cost.
pub(super) struct Tables {
    words: usize,
    kept: WordCache<DrawTable>,
    /// Nanoseconds that each word's rows and draws have cost.
    spent: Spent,
}

impl Tables {
    pub(super) fn new(words: usize, budget: Arc<CacheBudget>) -> Self {
        let share = budget.limit();
        Tables {
            words,
            kept: WordCache::new(words, budget, share),
            spent: Spent::new(words),
        }
    }

    /// The table of a word, if it is kept.
    #[inline]
    pub(super) fn get(&self, id: u32) -> Option<&DrawTable> {
        self.kept.get(id)
    }

    /// Whether a word's table pays now: the word has this many possible outputs, its row took
    /// `row`, and `count` outputs are drawn.
    pub(super) fn pays(&self, id: u32, count: usize, possible: usize, row: Duration) -> bool {
        let price = possible * NANOS_PER_OUTPUT;
        let draws = count.saturating_mul(NANOS_PER_DRAW);
        if self.kept.room(DrawTable::bytes(possible, self.words)) == 0 {
            // It is built for this call alone.
            return draws >= price;
        }
        let now = (row.as_nanos() as usize).saturating_add(draws);
        self.spent.add(id, now) >= price || count >= MIN_TABLE_DRAWS
    }

    /// Keeps a table; gives it back if there is no room.
    pub(super) fn keep(&self, id: u32, table: DrawTable) -> Result<&DrawTable, DrawTable> {
        let bytes = table.size();
        self.kept.keep(id, table, bytes)
    }
}
