//! The words of a call in groups of equal ones, so that what was made for a word serves all its
//! draws.

use rand::rngs::ChaCha12Rng;
use rayon::prelude::*;

use crate::error::Result;
use crate::parallel::Control;
use crate::random::Key;

/// Draws of one word in one task, from one stream.
pub(super) const PIECE: usize = 1 << 14;

/// The positions of a call, by word; those of a word in the order they come.
pub(super) struct Grouped {
    /// The word, and below it 32 bits of the position.
    order: Vec<u64>,
}

fn word(entry: u64) -> u32 {
    (entry >> 32) as u32
}

impl Grouped {
    /// At most 2³² ids, of so many words.
    pub(super) fn new(ids: &[u32], words: usize) -> Self {
        let entries = (0u64..).zip(ids).map(|(at, &id)| u64::from(id) << 32 | at);
        let order = match ids.len() > words {
            true => counted(ids, words, entries),
            false => {
                let mut order: Vec<u64> = entries.collect();
                // Few are not worth a pool, and there may be none.
                match rayon::current_thread_index() {
                    Some(_) => order.par_sort_unstable(),
                    None => order.sort_unstable(),
                }
                order
            }
        };
        Grouped { order }
    }

    /// The distinct words, ascending.
    pub(super) fn words(&self) -> impl Iterator<Item = u32> {
        let groups = self.order.chunk_by(|&a, &b| word(a) == word(b));
        groups.map(|group| word(group[0]))
    }

    /// Lets `draw` fill in the draws of each word, a piece at a time, with the memory of a thread that
    /// `work` makes. Every word and piece has a stream of its own, pieces counted from `first`: the
    /// outcome does not depend on threads.
    ///
    /// # Errors
    /// Those of `draw`; [`Error::Interrupted`](crate::Error::Interrupted).
    pub(super) fn draw<W>(
        &self,
        first: u64,
        key: &Key,
        out: &mut [u32],
        control: &Control,
        work: impl Fn() -> W + Send + Sync,
        draw: impl Fn(&mut W, u32, &mut ChaCha12Rng, &mut [u32]) -> Result<()> + Sync,
    ) -> Result<()> {
        let mut drawn = vec![0; self.order.len()];
        let mut rest = &mut *drawn;
        let groups = self.order.chunk_by(|&a, &b| word(a) == word(b));
        let pieces = groups.flat_map(|group| (first..).zip(group.chunks(PIECE)));
        let pieces = pieces.map(|(piece, entries)| {
            let (place, after) = std::mem::take(&mut rest).split_at_mut(entries.len());
            rest = after;
            (word(entries[0]), piece, place)
        });
        let pieces: Vec<(u32, u64, &mut [u32])> = pieces.collect();
        let each = |work: &mut W, (word, piece, place): (u32, u64, &mut [u32])| {
            control.check()?;
            let mut rng = key.stream(u64::from(word) << 32 | piece);
            draw(work, word, &mut rng, place)?;
            control.advance(place.len());
            Ok(())
        };
        match rayon::current_thread_index() {
            Some(_) => pieces.into_par_iter().try_for_each_init(&work, each)?,
            None => {
                let mut work = work();
                pieces
                    .into_iter()
                    .try_for_each(|piece| each(&mut work, piece))?;
            }
        }
        for (&entry, y) in self.order.iter().zip(drawn) {
            out[entry as u32 as usize] = y;
        }
        Ok(())
    }
}

/// Entries in order of their words, by counting.
fn counted(ids: &[u32], words: usize, entries: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut starts = vec![0u32; words + 1];
    ids.iter().for_each(|&id| starts[id as usize + 1] += 1);
    for word in 0..words {
        starts[word + 1] += starts[word];
    }
    let mut order = vec![0; ids.len()];
    for (entry, &id) in entries.zip(ids) {
        let start = &mut starts[id as usize];
        order[*start as usize] = entry;
        *start += 1;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Randomness;

    #[test]
    fn every_position_gets_a_draw_of_its_word() {
        let key = Randomness::new(Some(2)).next_key().unwrap();
        for (count, words) in [(0, 5), (1, 5), (5, 5), (6, 5), (100, 7), (40_000, 2)] {
            let ids: Vec<u32> = (0..count).map(|i| (i * i + 3) % words).collect();
            let grouped = Grouped::new(&ids, words as usize);
            let mut distinct = ids.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert!(grouped.words().eq(distinct));
            let mut out = vec![u32::MAX; ids.len()];
            let draw = |_: &mut (), word: u32, _: &mut ChaCha12Rng, place: &mut [u32]| {
                assert!(place.len() <= PIECE);
                place.fill(word + 10);
                Ok(())
            };
            let control = Control::new();
            grouped
                .draw(0, &key, &mut out, &control, || (), draw)
                .unwrap();
            assert!(out.iter().zip(&ids).all(|(y, id)| *y == id + 10));
            assert_eq!(control.done(), u64::from(count));
        }
    }
}
