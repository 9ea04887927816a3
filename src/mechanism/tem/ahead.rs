//! Draws the words of a call in turn, and lets the draws from tables wait for memory together.

use rand::Rng;

use super::Tem;
use super::draw::DrawScratch;
use super::row_table::{RowLaw, RowTable};
use crate::cover::word_of;
use crate::mechanism::grouped::Chunk;

/// Chunks whose columns are fetched together. More of them would not fit in the nearest cache
/// beside what the other draws read.
const CHUNKS_AHEAD: usize = 16;

impl Tem {
    /// Draws chunks of words in their order; `chunk` returns each by its index.
    ///
    /// The columns that draws read lie at random places of tables larger than the cache. So the
    /// random bits of several chunks are drawn first and their columns fetched together: draws are
    /// independent, so their order does not change the law. Without this, texts take a quarter more
    /// time, and ten words a third.
    pub(super) fn draw_in_turn(
        &self,
        chunk: impl Fn(usize) -> Option<Chunk>,
        rng: &mut impl Rng,
        scratch: &mut DrawScratch,
        mut out: &mut [u32],
    ) {
        let mut xs = [0; CHUNKS_AHEAD * RowTable::DRAWS_PER_BATCH];
        for first in (0..).step_by(CHUNKS_AHEAD) {
            let (mut tables, mut count) = ([None; CHUNKS_AHEAD], 0);
            for (i, table) in (first..).zip(&mut tables) {
                // Prefetch three chunks ahead: the data has arrived when that chunk is drawn.
                if let Some(later) = chunk(i + 3) {
                    self.prefetch(later.word);
                }
                let Some(chunk) = chunk(i) else { break };
                *table = self.kept_table(chunk);
                let Some(table) = table else { continue };
                let own = &mut xs[count..count + chunk.count];
                rng.fill_bytes(bytemuck::cast_slice_mut(own));
                own.iter().for_each(|&x| table.prefetch_first(x));
                count += chunk.count;
            }
            let mut next = xs[..count].iter();
            for (i, table) in (first..).zip(tables) {
                let Some(chunk) = chunk(i) else { break };
                let Some(table) = table else { continue };
                let own = next.by_ref().take(chunk.count);
                own.for_each(|&x| table.prefetch_next(x));
            }
            let mut xs = xs.iter();
            for (i, table) in (first..).zip(tables) {
                let Some(Chunk { word, count }) = chunk(i) else {
                    return;
                };
                let (part, after) = out.split_at_mut(count);
                match table {
                    Some(table) => self.look_up(word, table, &mut xs, rng, scratch, part),
                    None => {
                        let mut part = part.iter_mut();
                        let drawn = |y| part.next().into_iter().for_each(|slot| *slot = y);
                        self.draw_word(word, count, rng, scratch, drawn);
                    }
                }
                out = after;
            }
        }
    }

    /// The table that draws a chunk, if its random bits may be drawn ahead.
    fn kept_table(&self, chunk: Chunk) -> Option<&RowTable> {
        // A longer chunk fetches its own columns together.
        let ahead =
            chunk.count < RowTable::DRAWS_PER_BATCH && !self.randomness.takes_the_simple_draw();
        let table = self.cache.rows.get(chunk.word).filter(|_| ahead)?;
        let (cover, _) = self.drawn_by(chunk.word);
        (!self.draws_by_shells(cover)).then_some(table)
    }

    /// Fills `out` with draws of one word from the table of its law, by random bits that were drawn
    /// ahead.
    fn look_up<'a>(
        &self,
        id: u32,
        table: &RowTable,
        xs: &mut impl Iterator<Item = &'a u64>,
        rng: &mut impl Rng,
        scratch: &mut DrawScratch,
        out: &mut [u32],
    ) {
        let (cover, excluding) = self.drawn_by(id);
        let law = RowLaw {
            tem: self,
            cover,
            id,
        };
        for (slot, &x) in out.iter_mut().zip(xs) {
            let y = table.sample_by(x, rng, &law);
            *slot = word_of(cover, y);
            if excluding.is_some_and(|cover| cover.rank(*slot).is_none()) {
                self.draw_word(id, 1, rng, scratch, |y| *slot = y);
            }
        }
    }

    /// Prefetches the data of a word that is drawn soon.
    fn prefetch(&self, word: u32) {
        match self.cache.has(word) {
            true => self.cache.prefetch(word),
            false => self.neighborhoods.prefetch(&*self.space, word),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Truncation;
    use super::*;
    use crate::cover::Cover;
    use crate::testing::assert_law;
    use crate::{Metric, Randomness};

    const WORDS: u32 = 60;

    /// Keeps the tables of all words.
    fn with_tables(tem: Tem) -> Tem {
        (0..WORDS).for_each(|id| tem.keep_row(id, &mut DrawScratch::default()));
        tem
    }

    #[test]
    fn draws_ahead_have_the_law() {
        let e = crate::testing::embedding(WORDS as usize, 4, 0.5, Metric::Euclidean, 3);
        let (gamma, random) = (Truncation::Gamma(9.0), Randomness::known_keys(7));
        let plain = Tem::new(e.clone(), 6.0, gamma, random).expect("Tem");
        let near = |id: u32| vec![id, (id + 1) % WORDS, (id * 7 + 3) % WORDS];
        let members = (0..WORDS).map(near).collect();
        let cover = Cover::from_members(&*e, members).expect("a cover");
        let covered = plain.with_cover(Some(Arc::new(cover))).unwrap();
        let excluding = plain.excluding(&[0, 5, 9]).unwrap();
        for tem in [plain, covered, excluding].map(with_tables) {
            let mut rng = crate::testing::rng(8);
            let mut scratch = DrawScratch::default();
            let counts = [1, 3, 15, 2, 16, 7];
            let chunk = |i: usize| Chunk {
                word: [4, 5, 31][i % 3],
                count: counts[i % counts.len()],
            };
            let tables = (0..6).filter(|&i| tem.kept_table(chunk(i)).is_some());
            // The chunk of sixteen fetches its own columns.
            assert!(tables.count() >= 3);
            let mut found = [[0u32; WORDS as usize]; 3];
            // All numbers of chunks beside those that are fetched together.
            for run in 0..400 {
                let chunks = 80 + run % 17;
                let total: usize = (0..chunks).map(|i| chunk(i).count).sum();
                let mut out = vec![0; total];
                let each = |i| (i < chunks).then(|| chunk(i));
                tem.draw_in_turn(each, &mut rng, &mut scratch, &mut out);
                let words = (0..chunks).flat_map(|i| std::iter::repeat_n(i % 3, chunk(i).count));
                for (which, &y) in words.zip(&out) {
                    found[which][y as usize] += 1;
                }
            }
            for (found, word) in found.iter().zip([4, 5, 31]) {
                assert_law(found, &tem.probabilities(word), &format!("{word}"));
            }
        }
    }
}
