//! Groups the words of a call, so that one table serves all draws of a word.

use rand::rngs::ChaCha12Rng;

use crate::support::error::Result;
use crate::support::parallel::{Control, for_all, for_all_with};
use crate::support::random::Key;

/// Most draws of one word between two checks for Ctrl-C.
const DRAWS_PER_CHUNK: usize = 1 << 14;
/// Approximate number of draws in one parallel task; each task has its own random stream.
const DRAWS_PER_TASK: usize = 512;

/// The positions of a call, sorted by word; the positions of one word keep their order.
pub(super) struct Grouped {
    /// The rank of each position in the order of the words.
    ranks: Vec<u32>,
    /// The distinct words, ascending, with their counts.
    groups: Vec<(u32, usize)>,
}

/// A chunk of the draws of one word.
#[derive(Clone, Copy)]
pub(super) struct Chunk {
    pub(super) word: u32,
    pub(super) count: usize,
}

impl Grouped {
    /// Groups at most 2³² - 1 ids below `words`.
    pub(super) fn new(ids: &[u32], words: usize) -> Self {
        match ids.len() > words {
            true => Self::counted(ids, words),
            false => Self::sorted(ids, words),
        }
    }

    /// Sorts by the digits of the ids, the last digit first: each pass keeps the order of equal
    /// digits.
    fn sorted(ids: &[u32], words: usize) -> Self {
        let entries = (0u64..).zip(ids);
        let mut entries: Vec<u64> = entries.map(|(at, &id)| u64::from(id) << 32 | at).collect();
        let mut other = vec![0; entries.len()];
        let bits = words
            .saturating_sub(1)
            .checked_ilog2()
            .map_or(0, |log| log + 1);
        for shift in (32..32 + bits).step_by(8) {
            let digit = |entry: u64| (entry >> shift & 0xFF) as usize;
            let mut starts = [0u32; 257];
            entries
                .iter()
                .for_each(|&entry| starts[digit(entry) + 1] += 1);
            for i in 0..256 {
                starts[i + 1] += starts[i];
            }
            for &entry in &entries {
                let at = &mut starts[digit(entry)];
                other[*at as usize] = entry;
                *at += 1;
            }
            std::mem::swap(&mut entries, &mut other);
        }
        let mut ranks = vec![0; ids.len()];
        for (rank, &entry) in (0..).zip(&entries) {
            ranks[entry as u32 as usize] = rank;
        }
        let groups = entries.chunk_by(|a, b| a >> 32 == b >> 32);
        let groups = groups.map(|group| ((group[0] >> 32) as u32, group.len()));
        let groups = groups.collect();
        Grouped { ranks, groups }
    }

    fn counted(ids: &[u32], words: usize) -> Self {
        let mut ends = vec![0u32; words + 1];
        ids.iter().for_each(|&id| ends[id as usize + 1] += 1);
        for word in 0..words {
            ends[word + 1] += ends[word];
        }
        // Each slot holds the start of its word's range, and its end after the loop.
        let rank = |&id: &u32| {
            let end = &mut ends[id as usize];
            *end += 1;
            *end - 1
        };
        let ranks = ids.iter().map(rank).collect();
        let mut start = 0;
        let groups = (0..).zip(&ends[..words]).filter_map(|(word, &end)| {
            let times = (end - start) as usize;
            start = end;
            (times > 0).then_some((word, times))
        });
        let groups = groups.collect();
        Grouped { ranks, groups }
    }

    /// The number of positions.
    pub(super) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// The distinct words, ascending, with their counts.
    pub(super) fn words(&self) -> impl Iterator<Item = (u32, usize)> {
        self.groups.iter().copied()
    }

    /// Draws for every position, one chunk of a word at a time. Each task, counted from `first`,
    /// has its own stream. Tasks depend on the ids alone, so the output does not depend on the
    /// number of threads. `draws` fills the draws of some chunks in their order, with the working
    /// memory `S` of a thread.
    ///
    /// # Errors
    /// The errors of `draws`; [`Error::Interrupted`](crate::Error::Interrupted).
    pub(super) fn draw<S: Default + Send>(
        &self,
        first: u64,
        key: &Key,
        out: &mut [u32],
        control: &Control,
        draws: impl Fn(&mut S, &[Chunk], &mut ChaCha12Rng, &mut [u32]) -> Result<()> + Sync,
    ) -> Result<()> {
        let mut drawn = vec![0; self.ranks.len()];
        let mut rest = &mut *drawn;
        let chunks = self.words().flat_map(|(word, times)| {
            let starts = (0..times).step_by(DRAWS_PER_CHUNK);
            starts.map(move |start| Chunk {
                word,
                count: DRAWS_PER_CHUNK.min(times - start),
            })
        });
        let (mut tasks, mut task, mut size) = (Vec::new(), Vec::new(), 0);
        for chunk in chunks {
            size += chunk.count;
            task.push(chunk);
            if size >= DRAWS_PER_TASK {
                let (part, after) = std::mem::take(&mut rest).split_at_mut(size);
                tasks.push((first + tasks.len() as u64, std::mem::take(&mut task), part));
                (rest, size) = (after, 0);
            }
        }
        tasks.push((first + tasks.len() as u64, task, rest));
        let each = |scratch: &mut S, (stream, chunks, out): (u64, Vec<Chunk>, &mut [u32])| {
            control.check()?;
            let mut rng = key.stream(stream);
            let size = out.len();
            draws(scratch, &chunks, &mut rng, out)?;
            control.advance(size);
            Ok(())
        };
        for_all_with(tasks, S::default, each)?;
        // Every position reads its own draw. Writing each draw to its position instead would move
        // cache lines of `out` between threads.
        let parts = out.chunks_mut(DRAWS_PER_CHUNK);
        for_all(
            parts.zip(self.ranks.chunks(DRAWS_PER_CHUNK)),
            |(out, ranks)| {
                for (y, &rank) in out.iter_mut().zip(ranks) {
                    *y = drawn[rank as usize];
                }
                Ok(())
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Randomness;

    #[test]
    fn every_position_gets_a_draw_of_its_word() {
        let key = Randomness::new(Some(2)).next_key().unwrap();
        for (count, words) in [
            (0, 5),
            (1, 5),
            (5, 5),
            (6, 5),
            (100, 7),
            (40_000, 2),
            (1, 1),
            (2000, 300),
            (3000, 90_000),
        ] {
            let ids: Vec<u32> = (0..count).map(|i| (i * i + 3) % words).collect();
            let grouped = Grouped::new(&ids, words as usize);
            let mut places: Vec<usize> = (0..ids.len()).collect();
            places.sort_unstable_by_key(|&at| grouped.ranks[at]);
            assert!(places.is_sorted_by_key(|&at| (ids[at], at)));
            let mut distinct = ids.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert!(grouped.words().map(|(word, _)| word).eq(distinct));
            assert_eq!(
                grouped.words().map(|(_, times)| times).sum::<usize>(),
                ids.len()
            );
            let mut out = vec![u32::MAX; ids.len()];
            let control = Control::new();
            let ten_more = |(): &mut (), chunks: &[Chunk], _: &mut _, out: &mut [u32]| {
                assert!(chunks.iter().all(|chunk| chunk.count <= DRAWS_PER_CHUNK));
                let each = chunks.iter();
                let words = each.flat_map(|chunk| std::iter::repeat_n(chunk.word, chunk.count));
                out.iter_mut()
                    .zip(words)
                    .for_each(|(y, word)| *y = word + 10);
                Ok(())
            };
            let drawn = grouped.draw(0, &key, &mut out, &control, ten_more);
            drawn.unwrap();
            assert!(out.iter().zip(&ids).all(|(y, id)| *y == id + 10));
            assert_eq!(control.done(), u64::from(count));
        }
    }
}
