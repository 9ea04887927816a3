//! Covers: each output stands for a public set of words.
//!
//! A cover gives every output y a fixed public set A_y of words and a weight q_y > 0. A mechanism
//! may then score y by d(w, A_y) = min over a in A_y of d(w, a) instead of d(w, y). It stays as
//! private, because |d(w, A) - d(w', A)| ≤ d(w, w') for every set A (take the a nearest to w'). The
//! proof uses nothing else about the sets, except that they do not depend on the text. So a *set*
//! may come from anywhere, including approximate search; a *distance* may not.
//!
//! C(w) is the outputs whose sets hold w; they are at distance 0 from w. If every word has at least
//! k of them, no output is likelier than 1/k ([`Cover::floor`]). An output with an empty set is
//! never released: its word remains a protected input.

mod build;
mod stored;

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3Default;

use crate::law::base::BaseMeasure;
use crate::support::error::{Error, Result};
use crate::support::prefetch::prefetch;
use crate::support::simd::vectorised;
use crate::words::space::MetricSpace;

pub use build::{Balance, Build};

/// One set of words and one weight per output. Outputs are numbered by *rank*: the released words
/// in the order of their ids.
///
/// ```
/// use fastdx::{Cover, Embedding};
/// let embedding = Embedding::default_english()?;
/// let mut sets = vec![Vec::new(); embedding.len()];
/// sets[7] = vec![7, 8]; // by id: the words with other numbers are never released
/// assert_eq!(Cover::from_members(&embedding, sets)?.released(), [7]);
/// # Ok::<(), fastdx::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cover {
    /// The number of words and the fingerprint of the space.
    words: usize,
    space: u64,
    /// The ids of the outputs, ascending.
    released: Vec<u32>,
    /// A: the start of each rank's set, and the words, ascending in every set.
    set_starts: Vec<u32>,
    set_words: Vec<u32>,
    /// C: the start of each word's outputs, and their ranks, ascending for every word.
    output_starts: Vec<u32>,
    outputs: Vec<u32>,
    /// q_y of every rank as given; empty if all are equal.
    weights: Vec<f64>,
    /// The same as the integers that laws have.
    base: Option<Arc<BaseMeasure>>,
    /// Whether every output stands for itself alone.
    identity: bool,
    /// Computed once, because every guarantee shows it.
    k: usize,
    floor: f64,
    fingerprint: u64,
}

/// Offensive words in lower case, for `exclude="offensive"`. See NOTICE.
pub fn offensive() -> Vec<&'static str> {
    let lines = include_str!("../../data/offensive.txt").lines();
    lines.filter(|line| !line.is_empty()).collect()
}

/// Rows of distances whose minima are computed together.
const LANES: usize = 8;

/// The distances of one word in several rows: a whole cache line, so that every fetched byte is
/// used.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Column([f64; LANES]);

impl Cover {
    /// Creates a cover from one set per word as an output, by id; an output with an empty set is
    /// never released.
    ///
    /// # Errors
    /// [`Error::WordId`]; [`Error::Parameter`] for another number of sets than words, or if all
    /// sets are empty; [`Error::TooLarge`].
    pub fn from_members(space: &dyn MetricSpace, mut sets: Vec<Vec<u32>>) -> Result<Self> {
        let words = space.vocabulary().len();
        if sets.len() != words {
            let expected = format!("one for each of the {words} words");
            return Err(Error::parameter("sets", expected, sets.len()));
        }
        for set in &mut sets {
            space.vocabulary().check_ids(set)?;
            set.sort_unstable();
            set.dedup();
        }
        let total: usize = sets.iter().map(Vec::len).sum();
        if total > u32::MAX as usize {
            return Err(Error::TooLarge {
                what: "the sets of a cover".into(),
                needed: 8 * total as u64,
                limit: 8 * u64::from(u32::MAX),
            });
        }
        let (mut released, mut set_starts, mut set_words) = (Vec::new(), vec![0], Vec::new());
        for (set, id) in sets.iter().zip(0u32..) {
            if !set.is_empty() {
                released.push(id);
                set_words.extend_from_slice(set);
                set_starts.push(set_words.len() as u32);
            }
        }
        Self::from_parts(
            words,
            space.fingerprint(),
            released,
            set_starts,
            set_words,
            Vec::new(),
        )
        .map_err(|reason| Error::parameter("sets", "those of a cover", reason))
    }

    /// Checks the stored parts and derives the other fields.
    fn from_parts(
        words: usize,
        space: u64,
        released: Vec<u32>,
        set_starts: Vec<u32>,
        set_words: Vec<u32>,
        weights: Vec<f64>,
    ) -> std::result::Result<Self, String> {
        let ascending = |ids: &[u32]| ids.windows(2).all(|w| w[0] < w[1]);
        let known = |ids: &[u32]| ids.iter().all(|&id| (id as usize) < words);
        if released.is_empty() {
            return Err("no set that holds a word: nothing could be released".into());
        }
        if !ascending(&released) || !known(&released) || !known(&set_words) {
            return Err("a cover's ids are out of order or of no word".into());
        }
        if set_starts.len() != released.len() + 1
            || set_starts[0] != 0
            || set_starts.last().map(|&end| end as usize) != Some(set_words.len())
            || !ascending(&set_starts)
        {
            return Err("a cover's sets do not fit its outputs".into());
        }
        let mut sets = set_starts.windows(2);
        if !sets.all(|w| ascending(&set_words[w[0] as usize..w[1] as usize])) {
            return Err("a cover's set is out of order".into());
        }
        let mut output_starts = vec![0u32; words + 1];
        for &word in &*set_words {
            output_starts[word as usize + 1] += 1;
        }
        for i in 0..words {
            output_starts[i + 1] += output_starts[i];
        }
        let mut next = output_starts.clone();
        let mut outputs = vec![0u32; set_words.len()];
        for (set, rank) in set_starts.windows(2).zip(0u32..) {
            for &word in &set_words[set[0] as usize..set[1] as usize] {
                let at = &mut next[word as usize];
                outputs[*at as usize] = rank;
                *at += 1;
            }
        }
        let mut cover = Cover {
            words,
            space,
            released,
            set_starts,
            set_words,
            output_starts,
            outputs,
            weights: Vec::new(),
            base: None,
            identity: false,
            k: 0,
            floor: 1.0,
            fingerprint: 0,
        };
        cover.weigh(weights)?;
        Ok(cover)
    }

    /// Sets the weights, and the fingerprint of the whole.
    fn weigh(&mut self, weights: Vec<f64>) -> std::result::Result<(), String> {
        let all_alike = weights.windows(2).all(|w| w[0] == w[1]);
        self.base = None;
        self.weights = weights;
        if !self.weights.is_empty() {
            if self.weights.len() != self.released.len() {
                return Err("a cover's weights do not fit its outputs".into());
            }
            let mut all = vec![self.weights[0]; self.words];
            for (&id, &q) in self.released.iter().zip(&self.weights) {
                all[id as usize] = q;
            }
            let base = BaseMeasure::new(&all).map_err(|error| error.to_string())?;
            self.base = base.map(|base| Arc::new(base.of_released(&self.released)));
        }
        if all_alike {
            self.weights = Vec::new();
        }
        self.identity = self.set_words == self.released;
        let starts = self.output_starts.windows(2);
        self.k = starts.map(|w| w[1] - w[0]).min().unwrap_or(0) as usize;
        self.floor = self.largest_probability();
        let mut hash = Xxh3Default::new();
        hash.update(&(self.words as u64).to_le_bytes());
        hash.update(&self.space.to_le_bytes());
        for ids in [&self.released, &self.set_starts, &self.set_words] {
            hash.update(&(ids.len() as u64).to_le_bytes());
            hash.update(bytemuck::cast_slice(ids));
        }
        hash.update(bytemuck::cast_slice(&self.weights));
        self.fingerprint = hash.digest().max(1);
        Ok(())
    }

    /// Returns the same sets with weights, a function of each output's id.
    ///
    /// # Errors
    /// [`Error::Parameter`] for weights that are not positive or whose ratio is too large.
    pub fn weighted(&self, weight: impl Fn(u32) -> f64) -> Result<Self> {
        let mut cover = self.clone();
        let weights: Vec<f64> = self.released.iter().map(|&id| weight(id)).collect();
        cover
            .weigh(weights)
            .map_err(|reason| Error::parameter("weights", "those of a cover", reason))?;
        Ok(cover)
    }

    /// Whether these are words, and none of them is an output.
    pub(crate) fn excludes(&self, ids: &[u32]) -> bool {
        let mut ids = ids.iter();
        ids.all(|&id| (id as usize) < self.words && self.rank(id).is_none())
    }

    /// Returns the cover without some outputs; their words remain protected inputs.
    ///
    /// # Errors
    /// [`Error::WordId`]; [`Error::Parameter`] if no output is left.
    pub fn excluding(&self, ids: &[u32]) -> Result<Self> {
        let mut out = vec![false; self.words];
        for (&id, position) in ids.iter().zip(0..) {
            let len = self.words;
            let known = out.get_mut(id as usize);
            *known.ok_or(Error::WordId {
                id: id.into(),
                position,
                len,
            })? = true;
        }
        let kept: Vec<u32> = (0..self.released.len() as u32)
            .filter(|&rank| !out[self.released[rank as usize] as usize])
            .collect();
        let (mut set_starts, mut set_words) = (vec![0u32], Vec::new());
        for &rank in &kept {
            set_words.extend_from_slice(self.set(rank));
            set_starts.push(set_words.len() as u32);
        }
        let released: Vec<u32> = kept.iter().map(|&r| self.released[r as usize]).collect();
        let weights: Vec<f64> = match self.weights.is_empty() {
            true => Vec::new(),
            false => kept.iter().map(|&r| self.weights[r as usize]).collect(),
        };
        Self::from_parts(
            self.words, self.space, released, set_starts, set_words, weights,
        )
        .map_err(|reason| Error::parameter("exclude", "less than all outputs", reason))
    }

    /// Checks that the cover was made for this space: the same words, vectors (or edges) and
    /// metric.
    ///
    /// # Errors
    /// [`Error::Parameter`] if it was not.
    pub fn check_space(&self, space: &dyn MetricSpace) -> Result<()> {
        match self.words == space.vocabulary().len() && self.space == space.fingerprint() {
            true => Ok(()),
            false => Err(Error::parameter(
                "cover",
                "one of the mechanism's words and metric",
                "one of others",
            )),
        }
    }

    /// XXH3-64 of the sets, the weights and their space.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The number of words of the vocabulary.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// The ids of the outputs that are released, ascending.
    pub fn released(&self) -> &[u32] {
        &self.released
    }

    /// The number of words that are never released.
    pub fn excluded(&self) -> usize {
        self.words - self.released.len()
    }

    /// The ids of the words that are never released, ascending.
    pub fn excluded_ids(&self) -> Vec<u32> {
        let ids = 0..self.words as u32;
        ids.filter(|&id| self.rank(id).is_none()).collect()
    }

    /// Whether every output stands for itself alone: only words may be excluded.
    pub(crate) fn is_identity(&self) -> bool {
        self.identity
    }

    /// The rank of an output, if it is released.
    #[inline]
    pub fn rank(&self, id: u32) -> Option<u32> {
        if self.identity && (id as usize) < self.words {
            return self.outputs(id).first().copied();
        }
        self.released
            .binary_search(&id)
            .ok()
            .map(|rank| rank as u32)
    }

    /// The id of a rank.
    #[inline]
    pub(crate) fn id(&self, rank: u32) -> u32 {
        self.released[rank as usize]
    }

    /// A_y of a rank: word ids, ascending.
    #[inline]
    pub fn set(&self, rank: u32) -> &[u32] {
        let (from, to) = (rank as usize, rank as usize + 1);
        &self.set_words[self.set_starts[from] as usize..self.set_starts[to] as usize]
    }

    /// Prefetches the first words of a set.
    #[inline]
    pub(crate) fn prefetch(&self, rank: u32) {
        let first = self.set_starts[rank as usize] as usize;
        self.set_words[first..]
            .iter()
            .step_by(16)
            .take(3)
            .for_each(|at| prefetch(at));
    }

    /// C(w): the ranks of the outputs at distance 0 from a word, ascending.
    #[inline]
    pub fn outputs(&self, word: u32) -> &[u32] {
        let (from, to) = (word as usize, word as usize + 1);
        &self.outputs[self.output_starts[from] as usize..self.output_starts[to] as usize]
    }

    /// q_y of a rank, up to a common factor: an integer.
    pub fn weight(&self, rank: u32) -> f64 {
        let base = self.base.as_ref();
        base.map_or(1.0, |base| base.weight(self.id(rank)).into())
    }

    /// Whether outputs have different weights.
    pub fn is_weighted(&self) -> bool {
        self.base.is_some()
    }

    /// The weights as a base measure, which is 1 for all words that are no outputs.
    pub(crate) fn base(&self) -> Option<&Arc<BaseMeasure>> {
        self.base.as_ref()
    }

    /// The least number of outputs at distance 0 from any word.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The mean number of words in a set.
    pub(crate) fn mean_set(&self) -> f64 {
        self.set_words.len() as f64 / self.released.len() as f64
    }

    /// An upper bound on the probability of every output, for every word and ε: max q over the
    /// least sum of q in a C(w). It is 1/k if all weights are equal, and 1 if no output stands for
    /// some word.
    pub fn floor(&self) -> f64 {
        self.floor
    }

    fn largest_probability(&self) -> f64 {
        if self.weights.is_empty() {
            return 1.0 / self.k.max(1) as f64;
        }
        let ranks = 0..self.released.len() as u32;
        let most = ranks.map(|rank| self.weight(rank)).fold(0.0, f64::max);
        let sum = |word| {
            let each = self.outputs(word).iter();
            each.map(|&rank| self.weight(rank)).sum::<f64>()
        };
        let sums = (0..self.words as u32).map(sum);
        match sums.fold(f64::INFINITY, f64::min) {
            // A word that no output stands for may have an output of probability 1.
            least if least > 0.0 => (most / least).min(1.0),
            _ => 1.0,
        }
    }

    /// Writes d(w, A_y) for every rank, from the distances of w to all words.
    pub(crate) fn scores(&self, distances: &[f64], out: &mut Vec<f64>) {
        out.clear();
        if self.identity {
            return out.extend(self.released.iter().map(|&y| distances[y as usize]));
        }
        out.extend((0..self.released.len() as u32).map(|rank| {
            let distances = self.set(rank).iter().map(|&a| distances[a as usize]);
            distances.fold(f64::INFINITY, f64::min)
        }));
    }

    /// Writes d(w, A_y) for every rank, row by row, from rows of distances of several w to all
    /// words. It takes eight rows at a time, so that each word of a set is looked up once for eight
    /// w.
    pub(crate) fn scores_of_rows(&self, rows: &[f64], out: &mut Vec<f64>) {
        let ranks = self.released.len();
        if self.identity {
            let rows = rows.chunks_exact(self.words);
            out.clear();
            return rows.for_each(|row| out.extend(self.released.iter().map(|&y| row[y as usize])));
        }
        out.resize(rows.len() / self.words * ranks, 0.0);
        let mut columns = vec![Column([f64::INFINITY; LANES]); self.words];
        let eights = rows.chunks(LANES * self.words);
        for (rows, out) in eights.zip(out.chunks_mut(LANES * ranks)) {
            for (lane, row) in rows.chunks_exact(self.words).enumerate() {
                for (column, &d) in columns.iter_mut().zip(row) {
                    column.0[lane] = d;
                }
            }
            minima(self, &columns, out);
        }
    }

    /// Draws an output uniformly.
    pub(crate) fn draw_uniformly(&self, rng: &mut impl rand::Rng) -> u32 {
        self.id(crate::support::random::uniform_below(
            rng,
            self.released.len() as u32,
        ))
    }
}

/// The id of a rank, which without a cover it is itself.
#[inline]
pub(crate) fn word_of(cover: Option<&Cover>, rank: u32) -> u32 {
    cover.map_or(rank, |cover| cover.id(rank))
}

vectorised! {
    /// Writes the minimum of the columns of each set: one row of `out` per lane, as many as fit.
    fn minima = minima_portable(cover: &Cover, columns: &[Column], out: &mut [f64])
}

#[inline(always)]
fn minima_portable(cover: &Cover, columns: &[Column], out: &mut [f64]) {
    let ranks = cover.released.len();
    for (set, rank) in cover.set_starts.windows(2).zip(0..) {
        let mut least = [f64::INFINITY; LANES];
        for &a in &cover.set_words[set[0] as usize..set[1] as usize] {
            let Column(column) = &columns[a as usize];
            for lane in 0..LANES {
                // Like `f64::min` for non-NaN numbers, in a form that the vectoriser
                // recognises.
                if column[lane] < least[lane] {
                    least[lane] = column[lane];
                }
            }
        }
        for (lane, least) in least.into_iter().take(out.len() / ranks).enumerate() {
            out[lane * ranks + rank] = least;
        }
    }
}
