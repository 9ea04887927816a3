//! Draws from a Tem: chooses one of three ways for each word, and groups the words of a call.

use rand::Rng;

use super::Tem;
use super::covered::output_distances;
use super::covered::{FoundOutputs, NearestOutputs};
use super::level_bins::{BinBuilder, LANES};
use super::level_cuts::Bins;
use super::levels::LevelTable;
use super::neighborhoods::Row;
use super::parameters::Parameters;
use super::rejection::{self, ListLaw, ListTable};
use super::row_table::{RowLaw, RowTable};
use super::shells::ShellLaw;
use crate::cover::{Cover, word_of};
use crate::distance::neighbors::Grid;
use crate::law::Law;
use crate::law::alias::AliasTable;
use crate::mechanism::grouped::{Chunk, Grouped};
use crate::support::error::Result;
use crate::support::parallel::{Control, for_all, for_all_with, install, map_all};
use crate::support::random::Key;

/// Calls of up to this many words are drawn one by one; larger calls are grouped by word.
const MAX_UNGROUPED: usize = 64;
/// How often draws of excluded words are repeated before the whole row is used.
const MAX_REDRAWS: usize = 64;
/// Positions that are grouped by word at a time. More positions visit each word less often; fewer
/// stay in the cache.
const SHEET: usize = 1 << 19;
/// Sheets whose lists and rows are prepared together before they are drawn.
const SHEETS: usize = 4;
/// Bins are as narrow as they may be if they reach to this penalty of the base measure: rarer words
/// have little of the mass.
const REACHED_PENALTY: f64 = 10.0;

impl Tem {
    /// Replaces ids: few are drawn one by one, many are grouped by word.
    pub(super) fn draw_ids(
        &self,
        ids: &[u32],
        key: &Key,
        out: &mut [u32],
        control: &Control,
    ) -> Result<()> {
        if ids.len() <= MAX_UNGROUPED {
            // Few random numbers are needed: generating blocks ahead would cost more than it saves.
            let mut rng = key.stream(0);
            let mut scratch = DrawScratch::default();
            let word = |i: usize| ids.get(i).map(|&word| Chunk { word, count: 1 });
            self.draw_in_turn(word, &mut rng, &mut scratch, out);
            return Ok(());
        }
        install(ids.len(), MAX_UNGROUPED, || {
            let blocks = ids.chunks(SHEETS * SHEET);
            let blocks = blocks.zip(out.chunks_mut(SHEETS * SHEET));
            (0..)
                .zip(blocks)
                .try_for_each(|(block, (ids, out))| self.draw_block(block, ids, key, out, control))
        })?
    }

    /// Draws one word `count` times, in order. If the cover only excludes words, it draws from the
    /// law without the cover and repeats draws of excluded words. The remaining outputs have the
    /// weights that the cover gives them.
    pub(super) fn draw_word(
        &self,
        id: u32,
        count: usize,
        rng: &mut impl Rng,
        scratch: &mut DrawScratch,
        mut drawn: impl FnMut(u32),
    ) {
        if self.randomness.takes_the_simple_draw() {
            return self.draw_simply(id, count, rng, scratch, drawn);
        }
        let (cover, excluding) = self.drawn_by(id);
        let Some(excluding) = excluding else {
            return self.draw_covered(cover, id, count, rng, scratch, drawn);
        };
        let mut missing = count;
        for _ in 0..MAX_REDRAWS {
            self.draw_covered(None, id, missing, rng, scratch, |y| {
                if excluding.rank(y).is_some() {
                    missing -= 1;
                    drawn(y);
                }
            });
            if missing == 0 {
                return;
            }
        }
        let law = self.law(id);
        (0..missing).for_each(|_| drawn(excluding.id(law.sample(rng))));
    }

    /// Draws from the word's whole law: the reference for all other ways, and the way of a seed,
    /// whose draws may not depend on what earlier draws have kept.
    fn draw_simply(
        &self,
        id: u32,
        count: usize,
        rng: &mut impl Rng,
        DrawScratch { row, whole, .. }: &mut DrawScratch,
        mut drawn: impl FnMut(u32),
    ) {
        let cover = self.cover.as_deref();
        self.fill_law(cover, id, row, whole);
        for _ in 0..count {
            drawn(word_of(cover, whole.sample(rng)));
        }
    }

    /// The number of outputs of a law.
    fn outputs(&self, cover: Option<&Cover>) -> usize {
        cover.map_or(self.space.vocabulary().len(), |cover| {
            cover.released().len()
        })
    }

    /// The cover to draw a word's outputs from, and a cover whose excluded outputs are drawn again.
    pub(super) fn drawn_by(&self, id: u32) -> (Option<&Cover>, Option<&Cover>) {
        // If the word itself may be released, it has the largest weight, so few draws are repeated.
        let only_excludes = |cover: &Cover| cover.is_identity() && cover.rank(id).is_some();
        match self.cover.as_deref() {
            Some(cover) if only_excludes(cover) => (None, Some(cover)),
            cover => (cover, None),
        }
    }

    /// Draws one word's outputs under `cover`, from one integer law, by the first way that applies:
    ///
    /// 1. a distance, then a word at that distance, if few distances occur (`ShellLaw`);
    /// 2. the table of the whole row, if the word is drawn often enough, or no grid is fine enough
    ///    for lists;
    /// 3. the word's list, with rejection outside it.
    fn draw_covered(
        &self,
        cover: Option<&Cover>,
        id: u32,
        count: usize,
        rng: &mut impl Rng,
        scratch: &mut DrawScratch,
        mut drawn: impl FnMut(u32),
    ) {
        if self.draws_by_shells(cover) {
            let DrawScratch { row, shell_law, .. } = scratch;
            let law = self.cache.shells.get_or_keep(id, shell_law, |law| {
                let distances = row.distances(&*self.space, id);
                law.fill(self.epsilon / 2.0, self.gamma, distances)
            });
            return (0..count).for_each(|_| drawn(law.sample(rng)));
        }
        if let Some(table) = self.cache.rows.get(id) {
            return self.sample_table(cover, id, table, count, rng, drawn);
        }
        match self
            .grid()
            .filter(|_| !self.cache.row_pays(id, count, false))
        {
            Some(grid) => self.draw_from_list(cover, id, count, grid, rng, scratch, drawn),
            None => self.draw_from_row(cover, id, count, rng, scratch, drawn),
        }
    }

    /// Whether a distance is drawn first, and then a word.
    pub(super) fn draws_by_shells(&self, cover: Option<&Cover>) -> bool {
        self.space.has_few_distances() && cover.is_none() && self.base.is_none()
    }

    /// Draws from the table of a word's whole law.
    fn sample_table(
        &self,
        cover: Option<&Cover>,
        id: u32,
        table: &RowTable,
        count: usize,
        rng: &mut impl Rng,
        mut drawn: impl FnMut(u32),
    ) {
        let law = RowLaw {
            tem: self,
            cover,
            id,
        };
        table.sample_many(count, rng, &law, |rank| drawn(word_of(cover, rank)));
    }

    /// Draws from the word's whole law and keeps its table.
    fn draw_from_row(
        &self,
        cover: Option<&Cover>,
        id: u32,
        count: usize,
        rng: &mut impl Rng,
        scratch: &mut DrawScratch,
        mut drawn: impl FnMut(u32),
    ) {
        let (outputs, bytes) = (self.outputs(cover), self.row_bytes(cover));
        let fits = self.cache.rows.free_bytes() > bytes;
        // Without room for the table, building it pays only for many draws.
        if !fits && count < outputs / 4 {
            let DrawScratch { row, whole, .. } = scratch;
            self.fill_law(cover, id, row, whole);
            return (0..count).for_each(|_| drawn(word_of(cover, whole.sample(rng))));
        }
        let table = self.row_table(cover, id, scratch);
        // Another thread may have kept a row meanwhile: it has the same law.
        match self.cache.keep_row(id, table, bytes) {
            Ok(table) => self.sample_table(cover, id, table, count, rng, drawn),
            Err(table) => self.sample_table(cover, id, &table, count, rng, drawn),
        }
    }

    /// Bytes of the table of a word's whole law.
    fn row_bytes(&self, cover: Option<&Cover>) -> usize {
        RowTable::bytes(&*self.space, self.outputs(cover))
    }

    /// Makes the table of a word's whole law from exact distances.
    fn row_table(&self, cover: Option<&Cover>, id: u32, scratch: &mut DrawScratch) -> RowTable {
        let DrawScratch {
            row,
            whole,
            bins: each,
            ..
        } = scratch;
        if !RowTable::has_levels(&*self.space, self.outputs(cover)) {
            self.fill_law(cover, id, row, whole);
            return RowTable::Columns(AliasTable::new(whole));
        }
        let scores = self.distances_to_outputs(cover, id, row);
        let (eta, base) = (self.epsilon / 2.0, self.base.as_deref());
        let farthest = eta * scores.iter().copied().fold(0.0, f64::max);
        let bins = self.bins(farthest);
        each.clear();
        match base {
            None => each.extend(scores.iter().map(|d| bins.bin(eta * d, 0.0))),
            Some(base) => each.extend((0u32..).zip(scores).map(|(rank, d)| {
                let id = word_of(cover, rank);
                bins.bin(eta * *d, base.penalties()[id as usize])
            })),
        }
        RowTable::Levels(Box::new(LevelTable::new(&bins, each)))
    }

    /// The bins of a word whose η·d are at most `reach`, mostly.
    fn bins(&self, reach: f64) -> Bins {
        let base = self.base.as_deref();
        let penalty = base.map_or(0.0, |_| REACHED_PENALTY);
        Bins::new(self.epsilon / 2.0, self.gamma, base, reach + penalty)
    }

    /// Keeps the table of a word's whole law if there is room for it.
    pub(super) fn keep_row(&self, id: u32, scratch: &mut DrawScratch) {
        let (cover, _) = self.drawn_by(id);
        let bytes = self.row_bytes(cover);
        if self.cache.rows.free_bytes() > bytes {
            let table = self.row_table(cover, id, scratch);
            let _ = self.cache.keep_row(id, table, bytes);
        }
    }

    /// Keeps the tables of the whole laws of up to [`LANES`] words if there is room for them.
    fn keep_rows(&self, ids: &[u32], scratch: &mut DrawScratch) {
        const FEW: usize = 4;
        let mut left = ids;
        let (cover, _) = ids.first().map_or((None, None), |&id| self.drawn_by(id));
        let (limit, _) = self.cache_bytes();
        let together = ids.len() >= FEW
            && RowTable::has_levels(&*self.space, self.outputs(cover))
            && (cover.is_none() || self.base.is_none())
            && BinBuilder::bytes(self.space.vocabulary().len()) <= limit / 8
            // Where words are only excluded, most words are drawn without the cover.
            && ids.iter().all(|&id| self.drawn_by(id).0.is_some() == cover.is_some());
        if together {
            let (eta, bytes) = (self.epsilon / 2.0, self.row_bytes(cover));
            let space = &*self.space;
            let bins = |far: f64| self.bins(eta * far);
            let one = |id, bins: &Bins, each: &[u8]| {
                let table = RowTable::Levels(Box::new(LevelTable::new(bins, each)));
                let _ = self.cache.keep_row(id, table, bytes);
            };
            let base = self.base.as_deref();
            if scratch
                .builder
                .build(space, cover, base, eta, bins, ids, one)
            {
                left = &[];
            }
        }
        left.iter().for_each(|&id| self.keep_row(id, scratch));
    }

    pub(super) fn parameters<'a>(&'a self, cover: Option<&'a Cover>, grid: Grid) -> Parameters<'a> {
        Parameters {
            eta: self.epsilon / 2.0,
            gamma: self.gamma,
            grid,
            cover,
            base: self.base.as_deref(),
            mass: match (&self.base, cover) {
                (None, cover) => self.outputs(cover) as u64,
                (Some(base), None) => base.total(),
                (Some(_), Some(_)) => self.released_mass,
            },
            outputs: self.outputs(cover) as u32,
        }
    }

    /// Draws from the word's list, by rejection outside it.
    #[allow(clippy::too_many_arguments)]
    fn draw_from_list(
        &self,
        cover: Option<&Cover>,
        id: u32,
        count: usize,
        grid: Grid,
        rng: &mut impl Rng,
        scratch: &mut DrawScratch,
        mut drawn: impl FnMut(u32),
    ) {
        let space = &*self.space;
        let parameters = self.parameters(cover, grid);
        let distances = |outputs: &[u32], out: &mut [f64]| {
            output_distances(space, id, cover, outputs, out);
        };
        let counts = (count, self.cache.tries_per_row());
        let again = || self.list_again(id, parameters);
        let drawn_rank = |y| drawn(word_of(cover, y));
        let (left, tries) = match self.cache.lists.get(id) {
            Some(table) => table.sample(again, parameters, rng, counts, &distances, drawn_rank),
            None => {
                let DrawScratch {
                    row,
                    list_law,
                    head,
                    found,
                    ..
                } = &mut *scratch;
                let mut list = self.neighborhoods.list(space, id, row);
                if let Some(cover) = cover {
                    head.fill(cover, list, grid, found);
                    list = head.list();
                }
                list_law.fill(list, parameters);
                // Keep the table of a word that comes a second time.
                let bytes = ListTable::bytes_of(list.entries.len());
                if self.cache.was_drawn(id) && self.cache.lists.free_bytes() > bytes {
                    let table = list_law.table(list, parameters);
                    match self.cache.lists.keep(id, table, bytes) {
                        Ok(table) => {
                            table.sample(again, parameters, rng, counts, &distances, drawn_rank)
                        }
                        Err(table) => {
                            table.sample(again, parameters, rng, counts, &distances, drawn_rank)
                        }
                    }
                } else {
                    list_law.sample(list, parameters, rng, counts, &distances, drawn_rank)
                }
            }
        };
        self.cache.charge(id, tries);
        if left > 0 {
            // The list covers little of this word's law, or the word is drawn often.
            self.draw_from_row(cover, id, left, rng, scratch, drawn);
        }
    }

    /// Recomputes the law of a word's list over the list's outputs.
    #[cold]
    fn list_again(&self, id: u32, parameters: Parameters) -> Law {
        let (mut row, mut head, mut law) =
            (Row::default(), NearestOutputs::default(), Law::default());
        let mut list = self.neighborhoods.list(&*self.space, id, &mut row);
        if let Some(cover) = parameters.cover {
            head.fill(cover, list, parameters.grid, &mut FoundOutputs::default());
            list = head.list();
        }
        rejection::weigh(list, parameters, &mut law);
        law
    }

    fn draw_block(
        &self,
        block: u64,
        ids: &[u32],
        key: &Key,
        out: &mut [u32],
        control: &Control,
    ) -> Result<()> {
        let words = self.space.vocabulary().len();
        let sheets = map_all(ids.chunks(SHEET), |ids| Ok(Grouped::new(ids, words)))?;
        self.prepare(&sheets, control)?;
        let each = (0..).zip(sheets.iter().zip(out.chunks_mut(SHEET)));
        for_all(each, |(sheet, (grouped, out)): (u64, _)| {
            let first = (block * SHEETS as u64 + sheet) << 32;
            grouped.draw(first, key, out, control, |scratch, chunks, rng, out| {
                self.draw_in_turn(|i| chunks.get(i).copied(), rng, scratch, out);
                Ok(())
            })
        })
    }

    /// Prepares the lists and rows that several sheets need, so that no two threads build the same
    /// one.
    fn prepare(&self, sheets: &[Grouped], control: &Control) -> Result<()> {
        if self.randomness.takes_the_simple_draw() || self.grid().is_none() {
            return Ok(());
        }
        self.prepare_rows(sheets, control)?;
        let ids = words_of(sheets).into_iter().map(|(id, _)| id);
        let missing = ids.filter(|&id| !self.cache.has(id));
        self.neighborhoods.prepare(&*self.space, missing, control)
    }

    /// Makes the tables of the words for which they pay, many at a time.
    fn prepare_rows(&self, sheets: &[Grouped], control: &Control) -> Result<()> {
        const FEW: usize = 1 << 12;
        if sheets.iter().map(Grouped::len).sum::<usize>() < FEW {
            return Ok(());
        }
        let rows = &self.cache.rows;
        let mut words = words_of(sheets);
        words.retain(|&(id, count)| rows.get(id).is_none() && self.cache.row_pays(id, count, true));
        let room = rows.room(self.row_bytes(self.cover.as_deref()));
        if words.len() > room {
            words.sort_unstable_by_key(|&(_, count)| std::cmp::Reverse(count));
            words.truncate(room);
        }
        let ids: Vec<u32> = words.into_iter().map(|(id, _)| id).collect();
        for_all_with(ids.chunks(LANES), DrawScratch::default, |scratch, ids| {
            control.check()?;
            self.keep_rows(ids, scratch);
            Ok(())
        })
    }
}

/// The words of some sheets, ascending, with their counts.
fn words_of(sheets: &[Grouped]) -> Vec<(u32, usize)> {
    let mut words: Vec<_> = sheets.iter().flat_map(Grouped::words).collect();
    if sheets.len() > 1 {
        words.sort_unstable();
        words.dedup_by(|a, b| {
            let same = a.0 == b.0;
            b.1 += if same { a.1 } else { 0 };
            same
        });
    }
    words
}

/// Working memory of one thread.
#[derive(Default)]
pub(in crate::mechanism) struct DrawScratch {
    row: Row,
    list_law: ListLaw,
    head: NearestOutputs,
    shell_law: ShellLaw,
    whole: Law,
    bins: Vec<u8>,
    builder: BinBuilder,
    found: FoundOutputs,
}
