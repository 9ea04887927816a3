//! The words of a call in groups of equal ones, so that what was made for a word serves all its
//! draws.

use rayon::prelude::*;

use crate::error::Result;
use crate::parallel::Control;
use crate::random::{Bulk, Key};

/// Draws of one word at a time at most: where it goes on, so does the search for Ctrl-C.
const PIECE: usize = 1 << 14;
/// About so many draws are one task, from one stream.
const TASK: usize = 512;

/// How the draws of a word are made.
pub(super) trait WordDraws: Sync {
    /// Memory of a thread.
    type Work: Default;

    /// A word is drawn soon.
    fn soon(&self, word: u32) {
        let _ = word;
    }

    /// Fills in draws of a word.
    fn draw(
        &self,
        work: &mut Self::Work,
        word: u32,
        rng: &mut Bulk,
        place: &mut [u32],
    ) -> Result<()>;
}

/// The positions of a call, by word; those of a word in the order they come.
pub(super) struct Grouped {
    /// Where each position stands in the order of the words.
    ranks: Vec<u32>,
    /// The distinct words, ascending, and how often each comes.
    groups: Vec<(u32, usize)>,
}

/// A number of draws of one word.
struct Piece {
    word: u32,
    count: usize,
}

impl Grouped {
    /// Fewer than 2³² ids, of so many words.
    pub(super) fn new(ids: &[u32], words: usize) -> Self {
        match ids.len() > words {
            true => Self::counted(ids, words),
            false => Self::sorted(ids),
        }
    }

    fn sorted(ids: &[u32]) -> Self {
        let entries = (0u64..).zip(ids);
        let mut entries: Vec<u64> = entries.map(|(at, &id)| u64::from(id) << 32 | at).collect();
        // Few are not worth a pool, and there may be none.
        match rayon::current_thread_index() {
            Some(_) => entries.par_sort_unstable(),
            None => entries.sort_unstable(),
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
        // Each place holds where its word starts, and afterwards where it ends.
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

    /// The distinct words, ascending, and how often each comes.
    pub(super) fn words(&self) -> impl Iterator<Item = (u32, usize)> {
        self.groups.iter().copied()
    }

    /// Fills in the draws of each word, a piece at a time. Tasks, counted from `first`, have streams of
    /// their own and depend on the ids alone: the outcome does not depend on threads.
    ///
    /// # Errors
    /// Those of `draws`; [`Error::Interrupted`](crate::Error::Interrupted).
    pub(super) fn draw<D: WordDraws>(
        &self,
        first: u64,
        key: &Key,
        out: &mut [u32],
        control: &Control,
        draws: &D,
    ) -> Result<()> {
        let mut drawn = vec![0; self.ranks.len()];
        let mut rest = &mut *drawn;
        let pieces = self.words().flat_map(|(word, times)| {
            let starts = (0..times).step_by(PIECE);
            starts.map(move |start| Piece {
                word,
                count: PIECE.min(times - start),
            })
        });
        let (mut tasks, mut task, mut size) = (Vec::new(), Vec::new(), 0);
        for piece in pieces {
            size += piece.count;
            task.push(piece);
            if size >= TASK {
                let (place, after) = std::mem::take(&mut rest).split_at_mut(size);
                tasks.push((first + tasks.len() as u64, std::mem::take(&mut task), place));
                (rest, size) = (after, 0);
            }
        }
        tasks.push((first + tasks.len() as u64, task, rest));
        let each = |work: &mut D::Work,
                    (stream, pieces, mut rest): (u64, Vec<Piece>, &mut [u32])| {
            control.check()?;
            let mut rng = key.stream(stream);
            let mut rng = Bulk::of(&mut rng);
            let size = rest.len();
            for (i, piece) in pieces.iter().enumerate() {
                // What is fetched from memory meanwhile is there when the word's turn has come.
                if let Some(later) = pieces.get(i + 3) {
                    draws.soon(later.word);
                }
                let (place, after) = rest.split_at_mut(piece.count);
                draws.draw(work, piece.word, &mut rng, place)?;
                rest = after;
            }
            control.advance(size);
            Ok(())
        };
        let pooled = rayon::current_thread_index().is_some();
        if pooled {
            let tasks = tasks.into_par_iter();
            tasks.try_for_each_init(D::Work::default, each)?;
        } else {
            let (mut work, mut tasks) = (D::Work::default(), tasks.into_iter());
            tasks.try_for_each(|task| each(&mut work, task))?;
        }
        // Every position takes its own draw. Were each draw put where it belongs, the lines of `out` would go
        // to and fro between the threads' caches.
        let take = |(out, ranks): (&mut [u32], &[u32])| {
            for (y, &rank) in out.iter_mut().zip(ranks) {
                *y = drawn[rank as usize];
            }
        };
        if pooled {
            let places = out.par_chunks_mut(PIECE);
            places.zip(self.ranks.par_chunks(PIECE)).for_each(take);
        } else {
            take((out, &self.ranks));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Randomness;

    struct TenMore;

    impl WordDraws for TenMore {
        type Work = ();

        fn draw(&self, _: &mut (), word: u32, _: &mut Bulk, place: &mut [u32]) -> Result<()> {
            assert!(place.len() <= PIECE);
            place.fill(word + 10);
            Ok(())
        }
    }

    #[test]
    fn every_position_gets_a_draw_of_its_word() {
        let key = Randomness::new(Some(2)).next_key().unwrap();
        for (count, words) in [(0, 5), (1, 5), (5, 5), (6, 5), (100, 7), (40_000, 2)] {
            let ids: Vec<u32> = (0..count).map(|i| (i * i + 3) % words).collect();
            let grouped = Grouped::new(&ids, words as usize);
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
            grouped.draw(0, &key, &mut out, &control, &TenMore).unwrap();
            assert!(out.iter().zip(&ids).all(|(y, id)| *y == id + 10));
            assert_eq!(control.done(), u64::from(count));
        }
    }
}
