//! Laws kept ready for words that are drawn often, at one ε and γ.
//!
//! A word costs what its tries outside the list cost; once that passes the price of its whole
//! row, the row is made and kept, and the word has no tries any more. So no word costs more than
//! about twice what it would have cost had its use been known from the start.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use super::alias::AliasTable;
use super::rejection::ListTable;
use super::shells::ShellLaw;
use crate::cover::Cover;
use crate::prefetch::prefetch;
use crate::word_cache::{CacheBudget, WordCache};

/// Eighths of the budget that rows, and laws of lists, may take, as long as there is room: the lists
/// themselves may take half.
const ROWS: usize = 4;
const LISTS: usize = 3;

/// A try outside the list, in sixteenths of [`LawCache::row_price`]'s unit.
const TRY: u32 = 16;
/// A row and its table cost as much as a try for every so many words, about: between 1 and 2 a first pass over
/// text and a warm one took the same time at n = 50.
const WORDS_A_TRY: usize = 2;

/// Counters of what words cost; words that share one only share the decision when to keep a law, which is made too
/// soon then.
const COUNTERS: usize = 1 << 17;

/// Laws of one Tem.
pub(super) struct LawCache {
    words: usize,
    words_a_try: usize,
    pub(super) rows: WordCache<AliasTable>,
    pub(super) lists: WordCache<ListTable>,
    pub(super) shells: WordCache<ShellLaw>,
    /// What words have cost so far. The system gives zeros where they are touched, so that a Tem at another ε costs
    /// nothing to begin with.
    spent: OnceLock<Box<[AtomicU32]>>,
}

impl LawCache {
    pub(super) fn new(words: usize, cover: Option<&Cover>, budget: &Arc<CacheBudget>) -> Self {
        let eighths = |eighths| budget.limit() / 8 * eighths;
        let words_a_try = cover.map_or(WORDS_A_TRY, |cover| {
            // Every try takes a distance to each word of a set, a row one distance a word and a look
            // at each.
            let each = cover.mean_set();
            (WORDS_A_TRY as f64 * each * 1.1 / (1.0 + 0.1 * each)) as usize
        });
        LawCache {
            words,
            words_a_try: words_a_try.max(1),
            rows: WordCache::new(words, budget.clone(), eighths(ROWS)),
            lists: WordCache::new(words, budget.clone(), eighths(LISTS)),
            shells: WordCache::new(words, budget.clone(), eighths(8)),
            spent: OnceLock::new(),
        }
    }

    /// Whether something is kept that a word is drawn from.
    pub(super) fn has(&self, id: u32) -> bool {
        self.rows.get(id).is_some() || self.lists.get(id).is_some()
    }

    /// Fetches what is kept for a word from memory, which is soon drawn.
    #[inline]
    pub(super) fn soon(&self, id: u32) {
        match self.rows.get(id) {
            Some(table) => prefetch(table),
            None => self.lists.get(id).into_iter().for_each(ListTable::soon),
        }
    }

    fn spent_slot(&self, id: u32) -> &AtomicU32 {
        let count = self.words.next_power_of_two().min(COUNTERS);
        let made = || bytemuck::zeroed_slice_box(count);
        &self.spent.get_or_init(made)[id as usize & (count - 1)]
    }

    /// Whether a word has been drawn before.
    pub(super) fn seen(&self, id: u32) -> bool {
        self.spent_slot(id).load(Ordering::Relaxed) > 0
    }

    /// Whether `count` more draws of a word are better made from its whole row; only those
    /// count if `forget`.
    pub(super) fn row_pays(&self, id: u32, count: usize, forget: bool) -> bool {
        // Three tries a draw is usual where the tail matters.
        let now = count.saturating_mul(3 * TRY as usize);
        let before = match !forget && self.rows.free_bytes() > self.row_bytes() {
            // Without room to keep it, only this call counts.
            true => self.spent_slot(id).load(Ordering::Relaxed) as usize,
            false => 0,
        };
        before.saturating_add(now) >= self.row_price() as usize
    }

    /// Tries outside a list that cost as much as a row.
    pub(super) fn tries_a_row(&self) -> u32 {
        // At most 2²⁷ words.
        self.words.div_ceil(self.words_a_try).max(16) as u32
    }

    fn row_price(&self) -> u32 {
        self.tries_a_row().saturating_mul(TRY).min(1 << 30)
    }

    fn row_bytes(&self) -> usize {
        AliasTable::bytes(self.words)
    }

    /// Charges a word with a call and its tries.
    pub(super) fn charge(&self, id: u32, tries: u32) {
        let price = tries.saturating_mul(TRY).min(1 << 30) + 1;
        self.spent_slot(id).fetch_add(price, Ordering::Relaxed);
    }

    /// A word's row has been kept.
    pub(super) fn settle(&self, id: u32) {
        self.spent_slot(id).store(0, Ordering::Relaxed);
    }
}
