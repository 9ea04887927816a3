//! Drawing from a Tem: which of four ways a word takes, and the words of a call grouped.

use rand::rngs::ChaCha12Rng;

use super::alias::AliasTable;
use super::covered::Found;
use super::law::Law;
use super::neighborhoods::{List, Row};
use super::rejection::{ListLaw, TRIES, Terms};
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

    /// Draws of one word, in order, by the first of four ways that fits:
    ///
    /// 1. Gumbel noise over the whole row, where that sampler is asked for;
    /// 2. a distance, then a word there, where few distances occur (`Shells`);
    /// 3. the whole row tabulated, where the word is drawn so often that it pays, or no grid is
    ///    fine enough for lists;
    /// 4. the word's list, and rejection outside it.
    ///
    /// All but the first draw from the same integer law.
    fn draw_word(
        &self,
        id: u32,
        count: usize,
        rng: &mut ChaCha12Rng,
        work: &mut Work,
        mut drawn: impl FnMut(u32),
    ) {
        if self.sampler == Sampler::Gumbel {
            let distances = work.row.distances(&*self.space, id);
            let gumbel = match &self.cover {
                None => gumbel::Gumbel::new(self.epsilon, self.gamma, distances),
                Some(cover) => {
                    let Row {
                        distances, scores, ..
                    } = &mut work.row;
                    cover.exponents(0.5 * self.epsilon, self.gamma, distances, scores);
                    gumbel::Gumbel::new(2.0, f64::INFINITY, scores)
                }
            };
            return (0..count).for_each(|_| drawn(self.released(gumbel.sample(rng))));
        }
        let own = self.cover.as_ref().is_none_or(|cover| cover.is_identity());
        if let Some(around) = self.space.shells(id).filter(|_| own) {
            let shells = &self.cache.shells;
            let law = shells.get_or_keep(id, &mut work.shell_law, |law| {
                law.fill(self.epsilon / 2.0, self.gamma, &*around);
                law.bytes()
            });
            let Some(cover) = &self.cover else {
                return (0..count).for_each(|_| drawn(law.sample(&*around, rng)));
            };
            // Without the words that are never released the law is that of the others: what is
            // one of them is drawn again, a few times.
            let mut spare = None;
            return (0..count).for_each(|_| {
                let mut tries = (0..TRIES).map(|_| law.sample(&*around, rng));
                let found = tries.find(|&y| cover.rank(y).is_some());
                drawn(found.unwrap_or_else(|| {
                    let whole = spare.get_or_insert_with(|| Tem::law(self, id));
                    cover.id(whole.sample(rng))
                }));
            });
        }
        // With a seed the draws may not depend on what was drawn before, or by which thread.
        let seeded = self.randomness.seed().is_some();
        let row_pays = self.cache.row_pays(id, count, seeded);
        if let Some(law) = self.cache.rows.get(id).filter(|_| row_pays || !seeded) {
            return self.sample_table(id, law, count, rng, drawn);
        }
        match self.grid().filter(|_| !row_pays) {
            Some(grid) => self.draw_from_list(id, count, grid, rng, work, drawn),
            None => self.draw_from_row(id, count, rng, work, drawn),
        }
    }

    /// Draws from the table of a word's whole law.
    fn sample_table(
        &self,
        id: u32,
        table: &AliasTable,
        count: usize,
        rng: &mut ChaCha12Rng,
        mut drawn: impl FnMut(u32),
    ) {
        let law = || Tem::law(self, id);
        // Two loops: without a cover a draw is the word itself.
        match &self.cover {
            None => table.sample_many(count, rng, law, drawn),
            Some(cover) => table.sample_many(count, rng, law, |rank| drawn(cover.id(rank))),
        }
    }

    /// Draws from the word's whole law, whose table is kept.
    fn draw_from_row(
        &self,
        id: u32,
        count: usize,
        rng: &mut ChaCha12Rng,
        work: &mut Work,
        mut drawn: impl FnMut(u32),
    ) {
        let Work { row, whole, .. } = work;
        self.fill_law(id, row, whole);
        self.cache.settle(id);
        let bytes = AliasTable::bytes(whole.len());
        let fits = self.cache.rows.free_bytes() > bytes;
        // Without room for the table, it pays for many draws; with a seed what is drawn may not
        // depend on the room.
        if !fits && count < whole.len() / 4 && self.randomness.seed().is_none() {
            return (0..count).for_each(|_| drawn(self.released(whole.sample(rng))));
        }
        let table = AliasTable::new(whole);
        // A row that was kept meanwhile is of the same law.
        match self.cache.rows.keep(id, table, bytes) {
            Ok(table) => self.sample_table(id, table, count, rng, drawn),
            Err(table) => self.sample_table(id, &table, count, rng, drawn),
        }
    }

    /// Draws from the word's list, by rejection outside it.
    fn draw_from_list(
        &self,
        id: u32,
        count: usize,
        grid: Grid,
        rng: &mut ChaCha12Rng,
        work: &mut Work,
        mut drawn: impl FnMut(u32),
    ) {
        let cache = &*self.cache;
        let space = &*self.space;
        let cover = self.cover.as_deref();
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
        let mut spare = None;
        let mut tries = 0u32;
        for _ in 0..count {
            let (y, made) = law.sample(list, terms, rng, distance, beyond);
            tries = tries.saturating_add(made);
            let y = y.unwrap_or_else(|| {
                // Rare words whose lists say little: the whole row, once for all draws.
                let whole = spare.get_or_insert_with(|| Tem::law(self, id));
                whole.sample(rng)
            });
            drawn(self.released(y));
        }
        cache.charge(id, tries);
        if spare.is_some() {
            cache.charge_row(id);
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
        if cache.seen(id) && cache.lists.free_bytes() > 0 {
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
