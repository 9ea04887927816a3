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

    /// The distinct words, ascending, and how often each comes.
    pub(super) fn words(&self) -> impl Iterator<Item = (u32, usize)> {
        let groups = self.order.chunk_by(|&a, &b| word(a) == word(b));
        groups.map(|group| (word(group[0]), group.len()))
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
        let mut drawn = vec![0; self.order.len()];
        let mut rest = &mut *drawn;
        let (mut tasks, mut task, mut size) = (Vec::new(), Vec::new(), 0);
        let groups = self.order.chunk_by(|&a, &b| word(a) == word(b));
        for entries in groups.flat_map(|group| group.chunks(PIECE)) {
            let (place, after) = std::mem::take(&mut rest).split_at_mut(entries.len());
            rest = after;
            task.push((word(entries[0]), place));
            size += entries.len();
            if size >= TASK {
                tasks.push((first + tasks.len() as u64, std::mem::take(&mut task)));
                size = 0;
            }
        }
        tasks.push((first + tasks.len() as u64, task));
        let each = |work: &mut D::Work, (stream, mut pieces): (u64, Vec<(u32, &mut [u32])>)| {
            control.check()?;
            let mut rng = key.stream(stream);
            let mut rng = Bulk::of(&mut rng);
            let mut done = 0;
            for i in 0..pieces.len() {
                // What is fetched from memory meanwhile is there when the word's turn has come.
                if let Some(&(later, _)) = pieces.get(i + 3) {
                    draws.soon(later);
                }
                let (word, place) = &mut pieces[i];
                draws.draw(work, *word, &mut rng, place)?;
                done += place.len();
            }
            control.advance(done);
            Ok(())
        };
        match rayon::current_thread_index() {
            Some(_) => tasks
                .into_par_iter()
                .try_for_each_init(D::Work::default, each)?,
            None => {
                let mut work = D::Work::default();
                tasks
                    .into_iter()
                    .try_for_each(|task| each(&mut work, task))?;
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
