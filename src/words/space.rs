//! Finite metric spaces of words, as the truncated exponential mechanism needs them.
//!
//! An [`Embedding`](crate::Embedding) is one; a word graph with shortest paths is another. Noise
//! mechanisms need more (vectors to add noise to) and take an embedding.

use std::sync::Arc;

use crate::distance::neighbors::{Grid, NeighborLists, smallest};
use crate::distance::search::batch_size;
use crate::guarantee::Certificate;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, for_all, install};
use crate::words::vocabulary::Vocabulary;

/// Words and a metric on them.
///
/// Implementations must be *metrics* in the arithmetic they compute in: `distance` is
/// non-negative, 0 on equal ids, bit-for-bit symmetric, and obeys the triangle inequality. The
/// privacy proofs rest on this.
///
/// Four methods are required:
///
/// ```
/// use std::sync::Arc;
///
/// use fastdx::{MetricSpace, Randomness, Tem, Vocabulary};
///
/// /// Words are as far apart as their lengths.
/// struct Lengths(Vocabulary);
///
/// impl MetricSpace for Lengths {
///     fn vocabulary(&self) -> &Vocabulary {
///         &self.0
///     }
///
///     fn metric_name(&self) -> &'static str {
///         "lengths"
///     }
///
///     fn distance(&self, a: u32, b: u32) -> f64 {
///         let length = |id| self.0.word(id).chars().count();
///         length(a).abs_diff(length(b)) as f64
///     }
///
///     fn fingerprint(&self) -> u64 {
///         self.0.fingerprint() // the words determine the distances
///     }
/// }
///
/// let space = Lengths(Vocabulary::new(["tea", "coffee", "water"])?);
/// let tem = Tem::new(Arc::new(space), 2.0, Default::default(), Randomness::new(None))?;
/// assert_eq!(tem.probabilities(0).len(), 3);
/// # Ok::<(), fastdx::Error>(())
/// ```
///
/// The others have defaults, which a faster implementation may override:
///
/// | to | one may implement |
/// |---|---|
/// | compute many distances at a time | [`distances`](Self::distances), [`distances_to`](Self::distances_to), [`block`](Self::block), [`rows`](Self::rows), [`farthest`](Self::farthest) |
/// | tell what distances cost, and how exact they are | [`distances_by_row`](Self::distances_by_row), [`distance_error`](Self::distance_error) |
/// | bound distances sooner than compute them | [`bounded_distances`](Self::bounded_distances) |
/// | find near words | [`neighbors`](Self::neighbors), [`has_few_distances`](Self::has_few_distances), [`lists`](Self::lists) |
/// | carry certificates | [`certificates`](Self::certificates), [`with_certificate`](Self::with_certificate) |
///
/// Methods that return distances return those of [`distance`](Self::distance) bit for bit,
/// unless their documentation says otherwise.
pub trait MetricSpace: Send + Sync {
    /// The words.
    fn vocabulary(&self) -> &Vocabulary;

    /// The metric's name, for guarantees and messages.
    fn metric_name(&self) -> &'static str;

    /// Distance between two words, by id.
    fn distance(&self, a: u32, b: u32) -> f64;

    /// XXH3-64 of the words and of the data that determines their distances.
    fn fingerprint(&self) -> u64;

    // Many distances at a time.

    /// Distances from word `a` to every word, bit for bit those of [`distance`](Self::distance);
    /// `out.len()` is the size of the vocabulary.
    fn distances(&self, a: u32, out: &mut [f64]) {
        for (out, b) in out.iter_mut().zip(0..) {
            *out = self.distance(a, b);
        }
    }

    /// Distances from word `a` to the words `b`, bit for bit those of `distance`.
    fn distances_to(&self, a: u32, b: &[u32], out: &mut [f64]) {
        for (&b, out) in b.iter().zip(out) {
            *out = self.distance(a, b);
        }
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

    /// Distances between every word of `a` and every word of `b`: row i of `out` starts at
    /// i · `stride`. The last bits may differ from those of `distance`.
    fn block(&self, a: &[u32], b: &[u32], out: &mut [f64], stride: usize) {
        let mut row = Vec::new();
        for (&a, out) in a.iter().zip(out.chunks_mut(stride)) {
            if !self.distances_by_row() {
                self.distances_to(a, b, &mut out[..b.len()]);
                continue;
            }
            row.resize(self.vocabulary().len(), 0.0);
            self.distances(a, &mut row);
            for (&b, out) in b.iter().zip(out) {
                *out = row[b as usize];
            }
        }
    }

    /// The largest distance from the first word: no two words are more than twice as far apart.
    fn farthest(&self) -> f64 {
        let mut row = vec![0.0; self.vocabulary().len()];
        self.distances(0, &mut row);
        row.into_iter().fold(0.0, f64::max)
    }

    /// Whether one distance costs about as much as all distances of a word.
    fn distances_by_row(&self) -> bool {
        false
    }

    /// The absolute error of a distance beyond a relative (n/8 + 8)·2⁻⁵³. It becomes part of a
    /// guarantee's slack.
    fn distance_error(&self) -> f64 {
        0.0
    }

    // Bounds on distances, faster than distances.

    /// Bounded distances: f32 distances between every word of `a` and every word of `b`, each
    /// within a proved relative error. Row i of `out` starts at i · `stride`, a multiple of 16, and
    /// is padded with +∞ to a multiple of 16. Returns the relative error, or `None` if such
    /// distances are not much faster than exact ones.
    fn bounded_distances(
        &self,
        a: &[u32],
        b: &[u32],
        out: &mut [f32],
        stride: usize,
    ) -> Option<f64> {
        let _ = (a, b, out, stride);
        None
    }

    // Near words.

    /// Writes the entries of the `k` nearest words of each of `words`, ascending, by exact
    /// distances; `lists` holds `k` entries per word.
    fn neighbors(&self, words: &[u32], grid: Grid, k: usize, lists: &mut [u64]) {
        let mut distances = vec![0.0; self.vocabulary().len()];
        let mut row = Vec::new();
        for (&word, list) in words.iter().zip(lists.chunks_exact_mut(k)) {
            self.distances(word, &mut distances);
            smallest(grid, &distances, k, &mut row);
            list.copy_from_slice(&row);
        }
    }

    /// Whether so few distances occur that many words are at each.
    fn has_few_distances(&self) -> bool {
        false
    }

    /// The stored neighbour lists, if any.
    fn lists(&self) -> Option<&NeighborLists> {
        None
    }

    // Certificates.

    /// The certificates of Tems on these words.
    fn certificates(&self) -> &[Certificate] {
        &[]
    }

    /// The certificate of the Tem with this ε, γ and cover (its fingerprint, 0 without one) on
    /// these words, if present.
    fn certificate(&self, epsilon: f64, gamma: f64, cover: u64) -> Option<Certificate> {
        let mut carried = self.certificates().iter();
        let found = carried.find(|c| c.covers(|| self.fingerprint(), epsilon, gamma, cover));
        found.copied()
    }

    /// Adds a certificate to the words, if they can carry certificates; by default `None`.
    fn with_certificate(&self, certificate: Certificate) -> Option<Arc<dyn MetricSpace>> {
        let _ = certificate;
        None
    }
}

/// Words whose rows are computed together: as many as fit the cache, at most 64.
pub(crate) fn rows_together(words: usize) -> usize {
    ((1 << 21) / words.max(1)).clamp(1, 64)
}

impl Grid {
    /// Returns the grid of a space. Its diameter is at most twice the largest distance from one
    /// word.
    pub fn of(space: &dyn MetricSpace) -> Self {
        Grid::new(space.vocabulary().len(), 2.0 * space.farthest())
    }
}

impl NeighborLists {
    /// Builds the lists of a space, in parallel, exactly.
    ///
    /// `memory` limits the bytes of the result; it is checked before anything is allocated.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a `k` outside 1..=V, [`Error::TooLarge`], [`Error::Interrupted`].
    pub fn build(
        space: &dyn MetricSpace,
        k: usize,
        memory: u64,
        control: &Control,
    ) -> Result<NeighborLists> {
        let words = space.vocabulary().len();
        if k == 0 || k > words {
            let expected = format!("between 1 and the {words} words");
            return Err(Error::parameter("k", expected, k));
        }
        let needed = words as u64 * k as u64 * 8;
        let too_large = Error::TooLarge {
            what: format!("lists of {k} neighbours for {words} words"),
            needed,
            limit: memory,
        };
        let mut entries: Vec<u64> = Vec::new();
        if needed > memory || entries.try_reserve_exact(words * k).is_err() {
            return Err(too_large);
        }
        entries.resize(words * k, 0);
        let grid = Grid::of(space);
        install(words, 1, || {
            let block = batch_size(words, rayon::current_num_threads());
            for_all(entries.chunks_mut(block * k).enumerate(), |(i, lists)| {
                control.check()?;
                let first = (i * block) as u32;
                let count = lists.len() / k;
                let words: Vec<u32> = (first..first + count as u32).collect();
                space.neighbors(&words, grid, k, lists);
                control.advance(count);
                Ok(())
            })
        })??;
        Ok(NeighborLists {
            grid,
            k,
            entries: entries.into(),
        })
    }
}
