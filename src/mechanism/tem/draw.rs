//! Drawing from a Tem: which of four ways a word takes, and the words of a call grouped.

use rand::rngs::ChaCha12Rng;

use super::alias::AliasTable;
use super::covered::Found;
use super::law::Law;
use super::neighborhoods::{List, Row};
use super::rejection::{ListLaw, Terms};
use super::shells::ShellLaw;
use super::{Sampler, Tem, gumbel};
use crate::cover::Cover;
use crate::error::Result;
use crate::mechanism::grouped::{Grouped, PIECE};
use crate::neighbors::Grid;
use crate::parallel::{Control, install};
use crate::random::Key;

/// Calls of at most so many words are drawn one by one, larger ones grouped by word.
const FEW: usize = 64;
/// How often draws that fell on an excluded word are made again before the whole row is looked at.
const ROUNDS: usize = 64;
/// Positions that are grouped by word at a time.
const BLOCK: usize = 1 << 20;

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
            let mut rng = key.stream(0);
            let mut work = Work::default();
            for (&id, out) in ids.iter().zip(out) {
                self.draw_word(id, 1, &mut rng, &mut work, |y| *out = y);
            }
            return Ok(());
        }
        install(ids.len(), FEW, || {
            let blocks = ids.chunks(BLOCK).zip(out.chunks_mut(BLOCK));
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
        rng: &mut ChaCha12Rng,
        work: &mut Work,
        mut drawn: impl FnMut(u32),
    ) {
        // A word that is released itself has the largest weight, so few draws are vain.
        let only_excludes = |cover: &&Cover| cover.is_identity() && cover.rank(id).is_some();
        let cover = self.cover.as_deref();
        let Some(excluding) = cover.filter(only_excludes) else {
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
        rng: &mut ChaCha12Rng,
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
        rng: &mut ChaCha12Rng,
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
        rng: &mut ChaCha12Rng,
        work: &mut Work,
        mut drawn: impl FnMut(u32),
    ) {
        let Work { row, whole, .. } = work;
        self.fill_law(cover, id, row, whole);
        let bytes = AliasTable::bytes(whole.len());
        let fits = self.cache.rows.free_bytes() > bytes;
        // Without room for the table, it pays for many draws; with a seed what is drawn may not
        // depend on the room.
        if !fits && count < whole.len() / 4 && self.randomness.seed().is_none() {
            let released = |rank| cover.map_or(rank, |cover| cover.id(rank));
            return (0..count).for_each(|_| drawn(released(whole.sample(rng))));
        }
        let table = AliasTable::new(whole);
        // A row that was kept meanwhile is of the same law.
        match self.cache.rows.keep(id, table, bytes) {
            Ok(table) => {
                self.cache.settle(id);
                self.sample_table(cover, id, table, count, rng, drawn);
            }
            Err(table) => self.sample_table(cover, id, &table, count, rng, drawn),
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
        rng: &mut ChaCha12Rng,
        work: &mut Work,
        mut drawn: impl FnMut(u32),
    ) {
        let cache = &*self.cache;
        let space = &*self.space;
        let terms = Terms {
            eta: self.epsilon / 2.0,
            gamma: self.gamma,
            grid,
            cover,
            outputs: cover.map_or(space.vocabulary().len(), |c| c.released().len()) as u32,
        };
        let Work {
            row,
            list_law,
            found,
            ..
        } = work;
        let (law, list) = match cover {
            None => {
                let list = self.neighborhoods.list(space, id, row);
                let fill = |law: &mut ListLaw| law.fill(list, terms);
                let law = self.list_law(id, list_law, Some(list), terms, fill);
                (law, list)
            }
            Some(cover) => {
                let law = self.list_law(id, list_law, None, terms, |law| {
                    let list = self.neighborhoods.list(space, id, row);
                    let mut head = std::mem::take(&mut law.head);
                    head.fill(cover, list, grid, found);
                    law.fill(head.list(), terms);
                    law.head = head;
                });
                (law, law.head.list())
            }
        };
        let least = |y, cover: &Cover| {
            let each = cover.set(y).iter().map(|&a| space.distance(id, a));
            each.fold(f64::INFINITY, f64::min)
        };
        let distance = |y| cover.map_or_else(|| space.distance(id, y), |cover| least(y, cover));
        let beyond = |y, limit| match cover {
            None => space.is_beyond(id, y, limit),
            Some(cover) => space.are_beyond(id, cover.set(y), limit),
        };
        let most = cache.tries_a_row();
        let (mut tries, mut left) = (0, count);
        while left > 0 && tries < most {
            let (y, made) = law.sample(list, terms, rng, most - tries, distance, beyond);
            tries += made;
            if let Some(y) = y {
                drawn(cover.map_or(y, |cover| cover.id(y)));
                left -= 1;
            }
        }
        cache.charge(id, tries);
        if left > 0 {
            // The list says little of this word, or it is drawn often.
            self.draw_from_row(cover, id, left, rng, work, drawn);
        }
    }

    /// The law of a word's list: kept, or made by `fill` in `spare`. A word that comes a second time is
    /// worth keeping. With a seed what is drawn may not depend on that.
    fn list_law<'a>(
        &'a self,
        id: u32,
        spare: &'a mut ListLaw,
        list: Option<List>,
        terms: Terms,
        fill: impl FnOnce(&mut ListLaw),
    ) -> &'a ListLaw {
        let cache = &*self.cache;
        let length = list.map_or(self.neighborhoods.k(), |list| list.entries.len());
        if cache.seen(id) && cache.lists.free_bytes() > ListLaw::bytes_of(length) {
            return cache.lists.get_or_keep(id, spare, |law| {
                fill(law);
                law.index(list, terms);
                law.bytes()
            });
        }
        cache.lists.get(id).unwrap_or_else(|| {
            fill(spare);
            if self.randomness.seed().is_some() {
                spare.index(list, terms);
            }
            spare
        })
    }

    fn draw_block(
        &self,
        block: u64,
        ids: &[u32],
        key: &Key,
        out: &mut [u32],
        control: &Control,
    ) -> Result<()> {
        let grouped = Grouped::new(ids, self.space.vocabulary().len());
        if self.sampler == Sampler::Exact && self.grid().is_some() {
            self.neighborhoods
                .prepare(&*self.space, grouped.words(), control)?;
        }
        let first = block * (BLOCK / PIECE) as u64;
        let draw = |work: &mut Work, word, rng: &mut ChaCha12Rng, place: &mut [u32]| {
            let count = place.len();
            let mut place = place.iter_mut();
            let drawn = |y| place.next().into_iter().for_each(|slot| *slot = y);
            self.draw_word(word, count, rng, work, drawn);
            Ok(())
        };
        grouped.draw(first, key, out, control, Work::default, draw)
    }
}

/// Working memory of a thread.
#[derive(Default)]
struct Work {
    row: Row,
    list_law: ListLaw,
    shell_law: ShellLaw,
    whole: Law,
    found: Found,
}
