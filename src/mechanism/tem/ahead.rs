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
