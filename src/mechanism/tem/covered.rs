//! Finds a word's nearest outputs under a cover, from the word's nearest words.
//!
//! Go through w's nearest words a in order of distance; each stands in the sets of its outputs
//! C(a). An output y first appears at distance d(w, A_y), because every nearer word has been
//! visited before. Distances to a few outputs are computed here, too.

use super::neighborhoods::List;
use crate::cover::Cover;
use crate::distance::neighbors::{Grid, NeighborLists};
use crate::words::space::MetricSpace;

/// The length of the lists of nearest words that suits a cover, at most that without one. With sets
/// of 20 and 40 words, 27 and 13 words have [`MIN_OUTPUTS`] outputs on average: a quarter of this.
pub(super) fn list_length(words: usize, cover: Option<&Cover>) -> usize {
    let longest = NeighborLists::default_k(words);
    let each = cover.map_or(1.0, Cover::mean_set).max(1.0);
    longest.min((8 * MIN_OUTPUTS) / each as usize).max(1)
}

/// The search stops once it has this many outputs. More outputs cost time and memory, and save
/// tries outside the list.
const MIN_OUTPUTS: usize = 256;

/// The outputs nearest to a word: entries of their ranks, by distance.
#[derive(Debug, Default)]
pub(super) struct NearestOutputs {
    entries: Vec<u64>,
    end: u64,
}

/// Marks the outputs that were found: working memory.
#[derive(Default)]
pub(super) struct FoundOutputs {
    stamps: Vec<u32>,
    stamp: u32,
}

impl NearestOutputs {
    /// Fills the head from the list of a word's nearest words.
    pub(super) fn fill(&mut self, cover: &Cover, list: List, grid: Grid, found: &mut FoundOutputs) {
        found.begin(cover.released().len());
        self.entries.clear();
        self.end = u64::MAX;
        let mut last = 0;
        for &entry in list.entries {
            let start = grid.first_at(entry);
            // Take all words at one distance or none: an output's distance is the least of its
            // words'. Words at the list's last distance may be missing from it.
            let unsure = list.entries.len() < cover.words()
                && start == grid.first_at(list.end.saturating_sub(1));
            if unsure || (start > last && self.entries.len() >= MIN_OUTPUTS) {
                self.end = start;
                break;
            }
            last = start;
            // A damaged file that was not verified may hold any id.
            for &rank in cover.outputs(grid.id(entry).min(cover.words() as u32 - 1)) {
                if found.is_new(rank) {
                    self.entries.push(start | u64::from(rank));
                }
            }
        }
    }

    pub(super) fn list(&self) -> List<'_> {
        List {
            entries: &self.entries,
            end: self.end,
        }
    }
}

/// Writes the distances from a word to some outputs: to words, or to the sets of a cover's ranks.
pub(super) fn output_distances(
    space: &dyn MetricSpace,
    id: u32,
    cover: Option<&Cover>,
    outputs: &[u32],
    out: &mut [f64],
) {
    let Some(cover) = cover else {
        return space.distances_to(id, outputs, out);
    };
    outputs.iter().for_each(|&y| cover.prefetch(y));
    let mut each = [0.0; 64];
    for (&y, out) in outputs.iter().zip(out) {
        *out = f64::INFINITY;
        let set = cover.set(y);
        if set.contains(&id) {
            let own = std::slice::from_mut(out);
            space.distances_to(id, &[id], own);
            if own == [0.0] {
                // No other word is nearer.
                continue;
            }
        }
        for some in set.chunks(each.len()) {
            let each = &mut each[..some.len()];
            space.distances_to(id, some, each);
            *out = each.iter().copied().fold(*out, f64::min);
        }
    }
}

impl FoundOutputs {
    fn begin(&mut self, outputs: usize) {
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamps.len() != outputs || self.stamp == 0 {
            self.stamps.clear();
            self.stamps.resize(outputs, 0);
            self.stamp = 1;
        }
    }

    fn is_new(&mut self, rank: u32) -> bool {
        std::mem::replace(&mut self.stamps[rank as usize], self.stamp) != self.stamp
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::distance::neighbors::smallest;
    use crate::{Embedding, Metric, Vocabulary};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        /// With the k nearest words and many ties: the head holds exactly the outputs below its end, at
        /// their distances. It is as long as the list allows.
        #[test]
        fn a_head_holds_the_nearest_outputs(
            places in proptest::collection::vec(0u8..9, 1..60),
            sets in proptest::collection::vec(0u64..1 << 60, 60),
            share in 0.0..=1.0f64,
            word in 0usize..60,
        ) {
            let count = places.len();
            let words = Vocabulary::new((0..count).map(|i| i.to_string())).expect("distinct");
            let vectors: Vec<f32> = places.iter().map(|&x| f32::from(x)).collect();
            let e = Embedding::new(words, vectors, 1, Metric::Euclidean).expect("points");
            let holds = |y: usize, a: u32| sets[y] & sets[a as usize] & 7 == 7;
            let mut members: Vec<Vec<u32>> = (0..count)
                .map(|y| (0..count as u32).filter(|&a| holds(y, a)).collect())
                .collect();
            members[0].push(0);
            let cover = Cover::from_members(&e, members).expect("a cover");
            let id = (word % count) as u32;
            let grid = Grid::of(&e);
            let mut row = vec![0.0; count];
            e.distances(id, &mut row);
            let mut entries = Vec::new();
            smallest(grid, &row, count, &mut entries);
            let end = entries[((count - 1) as f64 * share) as usize] + 1;
            entries.retain(|&entry| entry < end);
            let complete = entries.len() == count;
            let mut head = NearestOutputs::default();
            let mut found = FoundOutputs::default();
            // The second round reuses memory that another word left behind.
            for _ in 0..2 {
                head.fill(&cover, List { entries: &entries, end }, grid, &mut found);
            }
            let mut scores = Vec::new();
            cover.scores(&row, &mut scores);
            let all: Vec<u64> = scores.iter().zip(0u32..).map(|(&d, y)| grid.entry(d, y)).collect();
            let mut expected: Vec<u64> = all.iter().copied().filter(|&entry| entry < head.end).collect();
            expected.sort_unstable();
            let mut got = head.entries.clone();
            got.sort_unstable();
            prop_assert_eq!(got, expected);
            let steps: Vec<u64> = head.entries.iter().map(|&entry| grid.first_at(entry)).collect();
            prop_assert!(steps.is_sorted());
            // The head ends before the list's last distance, whose words may be incomplete.
            match complete {
                true => prop_assert_eq!(head.end, u64::MAX),
                false => prop_assert_eq!(head.end, grid.first_at(end - 1)),
            }
        }

        /// The search stops after enough outputs, but never in the middle of one distance.
        #[test]
        fn a_head_ends_where_it_is_long_enough(apart in 1usize..9, more in 0usize..9) {
            let count = MIN_OUTPUTS + apart * more + 1;
            let words = Vocabulary::new((0..count).map(|i| i.to_string())).expect("distinct");
            let vectors = (0..count).map(|i| (i / apart) as f32).collect();
            let e = Embedding::new(words, vectors, 1, Metric::Euclidean).expect("points");
            let cover = Cover::identity(&e, &[]).expect("a cover");
            let mut row = vec![0.0; count];
            e.distances(0, &mut row);
            let (grid, mut entries) = (Grid::of(&e), Vec::new());
            smallest(grid, &row, count, &mut entries);
            let mut head = NearestOutputs::default();
            let list = List { entries: &entries, end: u64::MAX };
            head.fill(&cover, list, grid, &mut FoundOutputs::default());
            let whole = MIN_OUTPUTS.div_ceil(apart) * apart;
            prop_assert_eq!(head.entries.len(), whole.min(count));
            let expected = entries.get(whole).map_or(u64::MAX, |&entry| grid.first_at(entry));
            prop_assert_eq!(head.end, expected);
        }
    }
}
