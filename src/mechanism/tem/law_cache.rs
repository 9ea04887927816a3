//! Keeps the laws of words that are drawn often, at one ε and γ.
//!
//! The cache adds up what a word's tries outside its list cost. Once they have cost as much as the
//! word's whole row, it builds and keeps the row, and the word needs no tries any more. So no word
//! costs more than about twice the best choice in hindsight. Behind a cover, rows that are made
//! together are made sooner than that: words that have come often mostly come again. There it can be
//! four times.

use std::sync::Arc;

use super::rejection::ListTable;
use super::row_table::RowTable;
use super::shells::ShellLaw;
use crate::cover::Cover;
use crate::law::word_cache::{CacheBudget, Spent, WordCache};
use crate::support::prefetch::prefetch;
use crate::words::space::MetricSpace;

/// Eighths of the budget that rows may take while there is room, without a cover and behind one, and
/// those of list laws. The lists themselves may take half. Where rows leave no room for lists, these
/// are made anew each time.
const ROW_EIGHTHS: usize = 3;
const ROW_EIGHTHS_BY_SETS: usize = 4;
const LIST_EIGHTHS: usize = 3;

/// The cost of a try outside the list, in sixteenths of the unit of a row's price.
const TRY_COST: u32 = 16;
/// A row with its table, made alone, costs about as much as one try per this many words. Measured at
/// n = 50: 170 µs, beside tries that wait for memory. Behind a cover, a try and a row both look at each
/// word of a set: with sets of 40 words 480 ns and 600 µs.
const WORDS_PER_TRY: usize = 16;
/// A row that is made with those of other words counts as this part of a row. Measured, it costs a
/// half or, behind a cover, a fifth. The lower price there was the best from a million words on.
const ROWS_TOGETHER: u32 = 2;
const ROWS_TOGETHER_BY_SETS: u32 = 16;

/// The cached laws of one Tem.
pub(super) struct LawCache {
    words: usize,
    rows_together: u32,
    row_bytes: usize,
    pub(super) rows: WordCache<RowTable>,
    pub(super) lists: WordCache<ListTable>,
    pub(super) shells: WordCache<ShellLaw>,
    spent: Spent,
}

impl LawCache {
    pub(super) fn new(
        space: &dyn MetricSpace,
        cover: Option<&Cover>,
        budget: &Arc<CacheBudget>,
    ) -> Self {
        let words = space.vocabulary().len();
        let outputs = cover.map_or(words, |cover| cover.released().len());
        let eighths = |eighths| budget.limit() / 8 * eighths;
        let (rows_together, row_eighths) = match cover.is_some_and(|cover| cover.mean_set() > 2.0) {
            true => (ROWS_TOGETHER_BY_SETS, ROW_EIGHTHS_BY_SETS),
            false => (ROWS_TOGETHER, ROW_EIGHTHS),
        };
        LawCache {
            words,
            rows_together,
            row_bytes: RowTable::bytes(space, outputs),
            rows: WordCache::new(words, budget.clone(), eighths(row_eighths)),
            lists: WordCache::new(words, budget.clone(), eighths(LIST_EIGHTHS)),
            shells: WordCache::new(words, budget.clone(), eighths(8)),
            spent: Spent::new(words),
        }
    }

    /// Whether a row or a list law is kept for a word.
    pub(super) fn has(&self, id: u32) -> bool {
        self.rows.get(id).is_some() || self.lists.get(id).is_some()
    }

    /// Prefetches the kept law of a word that is drawn soon.
    #[inline]
    pub(super) fn prefetch(&self, id: u32) {
        match self.rows.get(id) {
            Some(table) => prefetch(table),
            None => self.lists.get(id).into_iter().for_each(ListTable::prefetch),
        }
    }

    /// Whether a word has been drawn before.
    pub(super) fn was_drawn(&self, id: u32) -> bool {
        self.spent.on(id) > 0
    }

    /// Whether it pays to draw `count` more outputs of a word from its whole row, made for this draw:
    /// alone, or together with the rows of other words.
    pub(super) fn row_pays(&self, id: u32, count: usize, together: bool) -> bool {
        let price = self.tries_per_row().saturating_mul(TRY_COST).min(1 << 30);
        let price = price / if together { self.rows_together } else { 1 };
        // Three tries per draw are usual where the tail matters.
        let now = count.saturating_mul(3 * TRY_COST as usize);
        let before = match self.rows.free_bytes() > self.row_bytes {
            // Earlier draws count only if there is room to keep the row.
            true => self.spent.on(id),
            false => 0,
        };
        before.saturating_add(now) >= price as usize
    }

    /// Number of tries outside a list that cost as much as a row.
    pub(super) fn tries_per_row(&self) -> u32 {
        // At most 2²⁷ words.
        self.words.div_ceil(WORDS_PER_TRY).max(16) as u32
    }

    /// Charges a word with one call and its tries.
    pub(super) fn charge(&self, id: u32, tries: u32) {
        self.spent.add(id, tries as usize * TRY_COST as usize + 1);
    }

    /// Keeps a word's row, and begins its account anew; gives it back if there is no room.
    pub(super) fn keep_row(
        &self,
        id: u32,
        table: RowTable,
        bytes: usize,
    ) -> Result<&RowTable, RowTable> {
        let kept = self.rows.keep(id, table, bytes)?;
        self.spent.settle(id);
        Ok(kept)
    }
}
