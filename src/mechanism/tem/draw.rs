//! Drawing from a Tem: which of four ways a word takes, and the words of a call grouped.

use rand::Rng;
use rayon::prelude::*;

use super::alias::{AliasTable, Thresholds};
use super::covered::{Found, Head};
use super::neighborhoods::Row;
use super::outside::Distances;
use super::rejection::{self, ListLaw, ListTable};
use super::shells::ShellLaw;
use super::terms::Terms;
use super::{Sampler, Tem, gumbel};
use crate::cover::Cover;
use crate::error::Result;
use crate::law::Law;
use crate::mechanism::grouped::{Grouped, WordDraws};
use crate::metric::{Limits, Seen};
use crate::neighbors::Grid;
use crate::parallel::{Control, install, map_all};
use crate::random::{Bulk, Key};
use crate::space::MetricSpace;

/// Calls of at most so many words are drawn one by one, larger ones grouped by word.
const FEW: usize = 64;
/// How often draws that fell on an excluded word are made again before the whole row is looked at.
const ROUNDS: usize = 64;
/// Positions that are grouped by word at a time: more of them visit a word less often, fewer stay in a cache.
const SHEET: usize = 1 << 19;
/// Sheets for which lists and rows are made together, before they are drawn.
const SHEETS: usize = 4;

impl Tem {
    /// Replaces ids: few of them one by one, many grouped by word.
    pub(super) fn draw_ids(
        &self,
        ids: &[u32],
        key: &Key,
        out: &mut [u32],
        control: &Control,
    ) -> Result<()> {
        if ids.len() <= FEW {
            // Few numbers: blocks made ahead would cost more than they save.
            let mut rng = key.stream(0);
            let mut work = Work::default();
            for (i, (&id, out)) in ids.iter().zip(out).enumerate() {
                if let Some(&later) = ids.get(i + 3) {
                    self.soon(later);
                }
                self.draw_word(id, 1, &mut rng, &mut work, |y| *out = y);
            }
            return Ok(());
        }
        install(ids.len(), FEW, || {
            let blocks = ids.chunks(SHEETS * SHEET);
            let blocks = blocks.zip(out.chunks_mut(SHEETS * SHEET));
            (0..)
                .zip(blocks)
                .try_for_each(|(block, (ids, out))| self.draw_block(block, ids, key, out, control))
        })?
    }

    /// Draws of one word, in order. Where words are only excluded, draws of the others' law that fall on
    /// an excluded word are made again: what is left has the weights that the cover gives it.
    fn draw_word(
        &self,
        id: u32,
        count: usize,
        rng: &mut impl Rng,
        work: &mut Work,
        mut drawn: impl FnMut(u32),
    ) {
        let (cover, excluding) = self.drawn_by(id);
        let Some(excluding) = excluding else {
            return self.draw_covered(cover, id, count, rng, work, drawn);
        };
        let mut missing = count;
        for _ in 0..ROUNDS {
            self.draw_covered(None, id, missing, rng, work, |y| {
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

    /// Outputs of a law.
    fn outputs(&self, cover: Option<&Cover>) -> usize {
        cover.map_or(self.space.vocabulary().len(), |cover| {
            cover.released().len()
        })
    }

    /// The cover whose law is drawn from for a word, and one whose excluded outputs are drawn again.
    fn drawn_by(&self, id: u32) -> (Option<&Cover>, Option<&Cover>) {
        // A word that is released itself has the largest weight, so few draws are vain.
        let only_excludes = |cover: &Cover| cover.is_identity() && cover.rank(id).is_some();
        match self.cover.as_deref() {
            Some(cover) if only_excludes(cover) => (None, Some(cover)),
            cover => (cover, None),
        }
    }

    /// Draws of one word, the outputs being those of `cover`, by the first of four ways that fits:
    ///
    /// 1. Gumbel noise over the whole row, where that sampler is asked for;
    /// 2. a distance, then a word there, where few distances occur (`Shells`);
    /// 3. the whole row tabulated, where the word is drawn so often that it pays, or no grid is
    ///    fine enough for lists;
    /// 4. the word's list, and rejection outside it.
    ///
    /// All but the first draw from the same integer law.
    fn draw_covered(
        &self,
        cover: Option<&Cover>,
        id: u32,
        count: usize,
        rng: &mut impl Rng,
        work: &mut Work,
        mut drawn: impl FnMut(u32),
    ) {
        if self.sampler == Sampler::Gumbel {
            let distances = work.row.distances(&*self.space, id);
            let Some(cover) = cover else {
                let gumbel = gumbel::Gumbel::new(self.epsilon, self.gamma, distances);
                return (0..count).for_each(|_| drawn(gumbel.sample(rng)));
            };
            let scores = &mut work.row.scores;
            cover.exponents(0.5 * self.epsilon, self.gamma, &work.row.distances, scores);
            let gumbel = gumbel::Gumbel::new(2.0, f64::INFINITY, scores);
            return (0..count).for_each(|_| drawn(cover.id(gumbel.sample(rng))));
        }
        if let (Some(around), None) = (self.space.shells(id), cover) {
            let shells = &self.cache.shells;
            let law = shells.get_or_keep(id, &mut work.shell_law, |law| {
                law.fill(self.epsilon / 2.0, self.gamma, &*around);
                law.bytes()
            });
            return (0..count).for_each(|_| drawn(law.sample(&*around, rng)));
        }
        // With a seed the draws may not depend on what was drawn before, or by which thread.
        let seeded = self.randomness.seed().is_some();
        let row_pays = self.cache.row_pays(id, count, seeded);
        if let Some(law) = self.cache.rows.get(id).filter(|_| row_pays || !seeded) {
            return self.sample_table(cover, id, law, count, rng, drawn);
        }
        match self.grid().filter(|_| !row_pays) {
            Some(grid) => self.draw_from_list(cover, id, count, grid, rng, work, drawn),
            None => self.draw_from_row(cover, id, count, rng, work, drawn),
        }
    }

    /// Draws from the table of a word's whole law.
    fn sample_table(
        &self,
        cover: Option<&Cover>,
        id: u32,
        table: &AliasTable,
        count: usize,
        rng: &mut impl Rng,
        mut drawn: impl FnMut(u32),
    ) {
        let law = || self.law_with(cover, id);
        // Two loops: without a cover a draw is the word itself.
        match cover {
            None => table.sample_many(count, rng, law, drawn),
            Some(cover) => table.sample_many(count, rng, law, |rank| drawn(cover.id(rank))),
        }
    }

    /// Draws from the word's whole law, whose table is kept.
    fn draw_from_row(
        &self,
        cover: Option<&Cover>,
        id: u32,
        count: usize,
        rng: &mut impl Rng,
        work: &mut Work,
        mut drawn: impl FnMut(u32),
    ) {
        let Work {
            row,
            whole,
            thresholds,
            ..
        } = work;
        self.fill_law(cover, id, row, whole);
        let bytes = AliasTable::bytes(whole.len());
        let fits = self.cache.rows.free_bytes() > bytes;
        // Without room for the table, it pays for many draws; with a seed what is drawn may not
        // depend on the room.
        if !fits && count < whole.len() / 4 && self.randomness.seed().is_none() {
            let released = |rank| cover.map_or(rank, |cover| cover.id(rank));
            return (0..count).for_each(|_| drawn(released(whole.sample(rng))));
        }
        let table = AliasTable::made(whole, thresholds);
        // A row that was kept meanwhile is of the same law.
        match self.cache.rows.keep(id, table, bytes) {
            Ok(table) => {
                self.cache.settle(id);
                self.sample_table(cover, id, table, count, rng, drawn);
            }
            Err(table) => self.sample_table(cover, id, &table, count, rng, drawn),
        }
    }

    /// Makes the table of a word's whole law, where there is room for it.
    fn keep_row(&self, id: u32, work: &mut Work) {
        let (rows, bytes) = (
            &self.cache.rows,
            AliasTable::bytes(self.outputs(self.drawn_by(id).0)),
        );
        if rows.free_bytes() <= bytes {
            return;
        }
        self.fill_law(self.drawn_by(id).0, id, &mut work.row, &mut work.whole);
        let table = AliasTable::made(&work.whole, &mut work.thresholds);
        if rows.keep(id, table, bytes).is_ok() {
            self.cache.settle(id);
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
        work: &mut Work,
        mut drawn: impl FnMut(u32),
    ) {
        let space = &*self.space;
        let terms = Terms {
            eta: self.epsilon / 2.0,
            per_eta: 2.0 / self.epsilon,
            gamma: self.gamma,
            grid,
            cover,
            outputs: self.outputs(cover) as u32,
        };
        let distances = Apart { space, id, cover };
        let most = self.cache.tries_a_row();
        let (mut tries, mut left) = (0, count);
        let released = |y| cover.map_or(y, |cover| cover.id(y));
        let mut from_table = |table: &ListTable| {
            let again = || self.list_again(id, terms);
            let counts = (left, most);
            (left, tries) = table.sample(again, terms, rng, counts, &distances, |y| {
                drawn(released(y))
            });
        };
        match self.cache.lists.get(id) {
            Some(table) => from_table(table),
            None => {
                let Work {
                    row,
                    list_law,
                    head,
                    found,
                    ..
                } = &mut *work;
                let mut list = self.neighborhoods.list(space, id, row);
                if let Some(cover) = cover {
                    head.fill(cover, list, grid, found);
                    list = head.list();
                }
                list_law.fill(list, terms);
                // A word that comes a second time is worth keeping. With a seed what is drawn may not
                // depend on that.
                let room = self.cache.lists.free_bytes();
                let bytes = ListTable::bytes_of(list.entries.len());
                let worth = self.cache.seen(id) && room > bytes;
                if worth || self.randomness.seed().is_some() {
                    let table = list_law.table(list, terms);
                    let bytes = table.bytes();
                    let kept = match worth {
                        true => self.cache.lists.keep(id, table, bytes),
                        false => Err(table),
                    };
                    match kept {
                        Ok(table) => from_table(table),
                        Err(table) => from_table(&table),
                    }
                } else {
                    while left > 0 && tries < most {
                        let (y, made) = list_law.sample(list, terms, rng, most - tries, &distances);
                        tries += made;
                        if let Some(y) = y {
                            drawn(released(y));
                            left -= 1;
                        }
                    }
                }
            }
        }
        self.cache.charge(id, tries);
        if left > 0 {
            // The list says little of this word, or it is drawn often.
            self.draw_from_row(cover, id, left, rng, work, drawn);
        }
    }

    /// The law of a word's list among its outputs, computed anew.
    #[cold]
    fn list_again(&self, id: u32, terms: Terms) -> Law {
        let mut row = Row::default();
        let list = self.neighborhoods.list(&*self.space, id, &mut row);
        let Some(cover) = terms.cover else {
            return rejection::whole(list, terms);
        };
        let mut head = Head::default();
        head.fill(cover, list, terms.grid, &mut Found::default());
        rejection::whole(head.list(), terms)
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
        let sheets: Vec<&[u32]> = ids.chunks(SHEET).collect();
        let sheets = map_all(&sheets, |ids| Grouped::new(ids, words));
        self.prepare(&sheets, control)?;
        let draw_sheet = |(sheet, (grouped, out)): (u64, (&Grouped, &mut [u32]))| {
            let first = (block * SHEETS as u64 + sheet) << 32;
            grouped.draw(first, key, out, control, self)
        };
        let each = sheets.iter().zip(out.chunks_mut(SHEET));
        let mut each: Vec<_> = (0..).zip(each).collect();
        match each.len() {
            1 => draw_sheet(each.remove(0)),
            _ => each.into_par_iter().try_for_each(draw_sheet),
        }
    }

    /// Makes the lists and rows that are of use to several sheets, so that no two make the same.
    fn prepare(&self, sheets: &[Grouped], control: &Control) -> Result<()> {
        if self.sampler != Sampler::Exact || self.grid().is_none() {
            return Ok(());
        }
        // Words that have something are no trouble: they are few that become worth a row in two sheets.
        let words = sheets.iter().flat_map(Grouped::words);
        let mut words: Vec<_> = words.filter(|&(id, _)| !self.cache.has(id)).collect();
        if sheets.len() > 1 {
            words.sort_unstable();
            words.dedup_by(|a, b| {
                let same = a.0 == b.0;
                b.1 += if same { a.1 } else { 0 };
                same
            });
            let seeded = self.randomness.seed().is_some();
            let pays = |&&(id, count): &&(u32, usize)| self.cache.row_pays(id, count, seeded);
            let rows: Vec<u32> = words.iter().filter(pays).map(|&(id, _)| id).collect();
            rows.par_iter()
                .try_for_each_init(Work::default, |work, &id| {
                    control.check()?;
                    self.keep_row(id, work);
                    Ok(())
                })?;
        }
        let ids = words.into_iter().map(|(id, _)| id);
        let missing = ids.filter(|&id| !self.cache.has(id));
        self.neighborhoods.prepare(&*self.space, missing, control)
    }
}

impl WordDraws for Tem {
    type Work = Work;

    fn soon(&self, word: u32) {
        match self.cache.has(word) {
            true => self.cache.soon(word),
            false => self.neighborhoods.soon(&*self.space, word),
        }
    }

    fn draw(&self, work: &mut Work, word: u32, rng: &mut Bulk, place: &mut [u32]) -> Result<()> {
        let count = place.len();
        let mut place = place.iter_mut();
        let drawn = |y| place.next().into_iter().for_each(|slot| *slot = y);
        self.draw_word(word, count, rng, work, drawn);
        Ok(())
    }
}

/// How far a word is from the outputs: the words, or the ranks of a cover's.
struct Apart<'a> {
    space: &'a dyn MetricSpace,
    id: u32,
    cover: Option<&'a Cover>,
}

impl Apart<'_> {
    /// Whether all words are certainly farther.
    fn all_beyond(&self, words: &[u32], far: f64) -> bool {
        const SOME: usize = 64;
        words.chunks(SOME).all(|some| {
            let (far, near) = (&[far; SOME][..some.len()], &[-1.0; SOME][..some.len()]);
            let least = f64::INFINITY;
            let seen = self.space.seen(self.id, some, &Limits { far, near, least });
            seen.beyond.count_ones() as usize == some.len()
        })
    }
}

impl Distances for Apart<'_> {
    #[inline]
    fn seen(&self, outputs: &[u32], limits: &Limits) -> Seen {
        let Some(cover) = self.cover else {
            return self.space.seen(self.id, outputs, limits);
        };
        // An output's distance is the least of its set.
        outputs.iter().for_each(|&y| cover.soon(y));
        let mut seen = Seen::default();
        for (i, &y) in outputs.iter().enumerate() {
            let Some((least, most)) = self.space.nearest_seen(self.id, cover.set(y)) else {
                let beyond = self.all_beyond(cover.set(y), limits.far[i]);
                seen.beyond |= u64::from(beyond) << i;
                continue;
            };
            seen.beyond |= u64::from(least > limits.far[i]) << i;
            seen.within |= u64::from(most <= limits.near[i]) << i;
            seen.outside |= u64::from(least > limits.least) << i;
        }
        seen
    }

    fn distances(&self, outputs: &[u32], out: &mut [f64]) {
        let Some(cover) = self.cover else {
            return self.space.distances_to(self.id, outputs, out);
        };
        let mut each = [0.0; 64];
        for (&y, out) in outputs.iter().zip(out) {
            *out = f64::INFINITY;
            for some in cover.set(y).chunks(each.len()) {
                let each = &mut each[..some.len()];
                self.space.distances_to(self.id, some, each);
                *out = each.iter().copied().fold(*out, f64::min);
            }
        }
    }
}

/// Working memory of a thread.
#[derive(Default)]
pub(in crate::mechanism) struct Work {
    row: Row,
    list_law: ListLaw,
    head: Head,
    shell_law: ShellLaw,
    whole: Law,
    thresholds: Thresholds,
    found: Found,
}
