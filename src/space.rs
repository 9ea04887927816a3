//! A finite metric space of words: all that the truncated exponential mechanism needs.
//!
//! An [`Embedding`](crate::Embedding) is one; a word graph with shortest paths is another. The
//! noise mechanisms need more (vectors to add noise to) and take an embedding.

use std::sync::Arc;

use crate::error::Result;
use crate::guarantee::Certificate;
use crate::neighbors::{Grid, NeighborLists, smallest};
use crate::vocabulary::Vocabulary;

/// Words and a metric on them.
///
/// Implementations must be *metrics* in the arithmetic they compute in: `distance` is
/// non-negative, 0 on equal ids, bit-for-bit symmetric, and `distances` gives bit for bit the
/// values of `distance`. The privacy proofs rest on this.
pub trait MetricSpace: Send + Sync {
    /// The words.
    fn vocabulary(&self) -> &Vocabulary;

    /// The metric's name, for guarantees and messages.
    fn metric_name(&self) -> &'static str;

    /// Distance between two words, by id.
    fn distance(&self, a: u32, b: u32) -> f64;

    /// Distances of the pairs of words with the same place in `a` and in `b`, bit for bit those of
    /// `distance`; the three are of one length.
    fn pairs(&self, a: &[u32], b: &[u32], out: &mut [f64]) {
        for ((&a, &b), out) in a.iter().zip(b).zip(out) {
            *out = self.distance(a, b);
        }
    }

    /// What can be said of the distances between `a` and the words `b`, at most 64, sooner than they are
    /// computed; by default nothing.
    fn seen(&self, a: u32, b: &[u32], limits: &Limits) -> Seen {
        let _ = (a, b, limits);
        Seen::default()
    }

    /// Between which two numbers the least distance from `a` to one of the words `b` lies, where that can be
    /// said sooner than distances are computed.
    fn nearest_seen(&self, a: u32, b: &[u32]) -> Option<(f64, f64)> {
        let _ = (a, b);
        None
    }

    /// Distances from word `a` to every word; `out.len()` is the size of the vocabulary.
    fn distances(&self, a: u32, out: &mut [f64]);

    /// Distances from word `a` to the words `b`, bit for bit those of `distance`.
    fn distances_to(&self, a: u32, b: &[u32], out: &mut [f64]) {
        for (&b, out) in b.iter().zip(out) {
            *out = self.distance(a, b);
        }
    }

    /// Distances between every word of `a` and every word of `b`: row i of `out` starts at
    /// i · `stride`. The last bits may differ from those of `distance`.
    fn block(&self, a: &[u32], b: &[u32], out: &mut [f64], stride: usize) {
        let mut row = match self.distances_by_row() {
            true => vec![0.0; self.vocabulary().len()],
            false => Vec::new(),
        };
        for (&a, out) in a.iter().zip(out.chunks_mut(stride)) {
            if self.distances_by_row() {
                self.distances(a, &mut row);
            }
            for (&b, out) in b.iter().zip(out) {
                *out = match self.distances_by_row() {
                    true => row[b as usize],
                    false => self.distance(a, b),
                };
            }
        }
    }

    /// Distances in f32 between every word of `a` and every word of `b`, where these are had much
    /// sooner than exact ones: row i of `out` starts at i · `stride`, a multiple of 16, and is filled up
    /// with +∞ to a whole 16. Each is off by at most a relative error that is returned.
    fn screen(&self, a: &[u32], b: &[u32], out: &mut [f32], stride: usize) -> Option<f64> {
        let _ = (a, b, out, stride);
        None
    }

    /// Distances of every word of `words` to all words, row by row. The last bits may differ
    /// from those of `distance`.
    fn rows(&self, words: &[u32], out: &mut [f64]) {
        let count = self.vocabulary().len();
        if self.distances_by_row() {
            let rows = words.iter().zip(out.chunks_exact_mut(count));
            return rows.for_each(|(&word, row)| self.distances(word, row));
        }
        // Blocks of columns that stay in the cache.
        const COLUMNS: usize = 256;
        let all: Vec<u32> = (0..count as u32).collect();
        for (i, some) in all.chunks(COLUMNS).enumerate() {
            self.block(words, some, &mut out[i * COLUMNS..], count);
        }
    }

    /// The largest distance from the first word: no two words are more than twice as far apart.
    fn farthest(&self) -> f64 {
        let mut row = vec![0.0; self.vocabulary().len()];
        self.distances(0, &mut row);
        row.into_iter().fold(0.0, f64::max)
    }

    /// XXH3-64 of the words and what their distances come from.
    fn fingerprint(&self) -> u64;

    /// What has been certified of Tem on these words.
    fn certificates(&self) -> &[Certificate] {
        &[]
    }

    /// The certificate of the Tem of this ε, γ and cover (its fingerprint, 0 without one) on these words, if one is carried.
    fn certificate(&self, epsilon: f64, gamma: f64, cover: u64) -> Option<Certificate> {
        let mut carried = self.certificates().iter();
        let found = carried.find(|c| c.covers(|| self.fingerprint(), epsilon, gamma, cover));
        found.copied()
    }

    /// The same words with one more certificate.
    fn with_certificate(&self, certificate: Certificate) -> Arc<dyn MetricSpace>;

    /// How far a distance may be off absolutely, beyond a relative (n/8 + 8)·2⁻⁵³: it becomes
    /// part of a guarantee's slack.
    fn distance_error(&self) -> f64 {
        0.0
    }

    /// The entries of the `k` nearest words of each of `words`, ascending, by exact
    /// distances; `lists.len()` is `k` a word.
    fn neighbors(&self, words: &[u32], grid: Grid, k: usize, lists: &mut [u64]) {
        let mut distances = vec![0.0; self.vocabulary().len()];
        let mut row = Vec::new();
        for (&word, list) in words.iter().zip(lists.chunks_exact_mut(k)) {
            self.distances(word, &mut distances);
            smallest(grid, &distances, k, &mut row);
            list.copy_from_slice(&row);
        }
    }

    /// About the `k` nearest words of each of `words`, nearest first, maybe fewer, where there is a
    /// graph to find them by. Never for distances of a mechanism.
    ///
    /// # Errors
    /// A graph that cannot be searched.
    fn approximate_neighbors(&self, words: &[u32], k: usize) -> Result<Option<Vec<Vec<u32>>>> {
        let _ = (words, k);
        Ok(None)
    }

    /// Whether one distance costs about as much as all distances of a word.
    fn distances_by_row(&self) -> bool {
        false
    }

    /// The words by their distance from `word`, where few distances occur.
    fn shells(&self, word: u32) -> Option<Box<dyn Shells + '_>> {
        let _ = word;
        None
    }

    /// Neighbour lists that are there already.
    fn lists(&self) -> Option<&NeighborLists> {
        None
    }
}

/// What is asked of the distance d to each of some words: whether d > `far`, whether d ≤ `near`, whether
/// d > `least`.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// From here on a word is of no interest; a number for every word.
    pub far: &'a [f64],
    /// Up to here it is of interest for certain; a number for every word.
    pub near: &'a [f64],
    /// Up to here it is dealt with otherwise.
    pub least: f64,
}

/// What has been seen of up to 64 words, a bit each, that is set where it is certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// d > `far`.
    pub beyond: u64,
    /// d ≤ `near`.
    pub within: u64,
    /// d > `least`.
    pub outside: u64,
}

/// All words by their distance from one word.
pub trait Shells {
    /// The distances that occur, each once, and how many words have each. A distance may be
    /// listed with no word.
    fn fill(&self, shells: &mut Vec<(f64, u32)>);

    /// One of the words of the shell at `distance`, which [`fill`](Self::fill) gave at place
    /// `shell`, by its number below their count: always the same one.
    fn pick(&self, shell: usize, distance: f64, index: u32) -> u32;
}

/// Words whose rows are computed together: what fits a cache, and no more than 64.
pub(crate) fn rows_together(words: usize) -> usize {
    ((1 << 21) / words.max(1)).clamp(1, 64)
}
