//! Exact neighbour lists: the k nearest words of every word, sorted.
//!
//! **Always exact.** The distances are scores in TEM's privacy proof. If an approximate search
//! missed a neighbour, its score would change by up to γ for one word but not for another, and the
//! ε·d bound would fail. So lists are built by exhaustive products with a proved rounding margin,
//! and no approximate index can build one.
//!
//! An entry is one 64-bit number: the distance in multiples of the [`Grid`]'s step in the high
//! bits, the word's id in the low bits. Sorting entries sorts by distance, with ties by id. A word
//! is in a list exactly if its entry is at most the list's last entry.

use crate::support::buffer::Buffer;

/// Distances rounded to multiples of a power of two, so that distance and id fit in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    step: f64,
    id_bits: u32,
}

impl Grid {
    /// Returns the finest grid for `words` words at distances up to `diameter`.
    pub fn new(words: usize, diameter: f64) -> Self {
        let id_bits = usize::BITS - words.saturating_sub(1).leading_zeros();
        // Multiples up to 2^(64 - id_bits) - 1, with one bit of room for rounding. At most 51 bits,
        // so that `multiple` can round by an addition.
        let bits = (63 - id_bits).min(51) as i32;
        let exponent = if diameter > 0.0 {
            diameter.log2().ceil() as i32
        } else {
            0
        };
        Grid {
            step: 2f64.powi((exponent - bits).max(-1000)),
            id_bits,
        }
    }

    pub(crate) fn from_parts(step: f64, id_bits: u32) -> Option<Self> {
        let power = step.is_normal() && step > 0.0 && step.to_bits() << 12 == 0;
        (power && id_bits <= 32).then_some(Grid { step, id_bits })
    }

    /// Two distances closer than this may be rounded to the same multiple.
    pub fn step(&self) -> f64 {
        self.step
    }

    pub(crate) fn id_bits(&self) -> u32 {
        self.id_bits
    }

    /// The entry of a word at a distance.
    #[inline]
    pub fn entry(&self, distance: f64, id: u32) -> u64 {
        self.multiple(distance).to_bits() << 12 >> 12 << self.id_bits | u64::from(id)
    }

    /// 2⁵² + distance / step, rounded: the low bits hold the multiple. Distances beyond the
    /// diameter, from a damaged file, are limited to twice the diameter.
    #[inline(always)]
    fn multiple(&self, distance: f64) -> f64 {
        const ROUND: f64 = (1u64 << 52) as f64;
        const MAX_MULTIPLE: f64 = (1u64 << 52) as f64 - 1.0;
        // The step is a power of two, so its reciprocal and the product are exact.
        (distance * self.step.recip()).min(MAX_MULTIPLE) + ROUND
    }

    /// The distance of an entry, a multiple of the step.
    #[inline]
    pub fn distance(&self, entry: u64) -> f64 {
        (entry >> self.id_bits) as f64 * self.step
    }

    /// The word of an entry.
    #[inline]
    pub fn id(&self, entry: u64) -> u32 {
        (entry & ((1 << self.id_bits) - 1)) as u32
    }

    /// The smallest entry at an entry's distance: that of the first word.
    #[inline]
    pub(crate) fn first_at(&self, entry: u64) -> u64 {
        entry >> self.id_bits << self.id_bits
    }

    /// A distance rounded to the grid.
    #[inline]
    pub fn round(&self, distance: f64) -> f64 {
        (self.multiple(distance) - (1u64 << 52) as f64) * self.step
    }
}

/// For every word, the ascending entries of its nearest words, including itself.
#[derive(Clone, Debug)]
pub struct NeighborLists {
    pub(crate) grid: Grid,
    pub(crate) k: usize,
    pub(crate) entries: Buffer<u64>,
}

impl NeighborLists {
    /// A list length that suits V words: √V, between 256 and 1024.
    pub fn default_k(words: usize) -> usize {
        words.isqrt().clamp(256, 1024).min(words)
    }

    /// The length of every list.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The grid of the distances.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// The list of a word.
    pub fn list(&self, id: u32) -> &[u64] {
        &self.entries[id as usize * self.k..][..self.k]
    }
}

/// Computes the `k` smallest entries of a row of distances, ascending, in `row`.
pub(crate) fn smallest(grid: Grid, distances: &[f64], k: usize, row: &mut Vec<u64>) {
    row.clear();
    row.extend(distances.iter().zip(0..).map(|(&d, id)| grid.entry(d, id)));
    if k < row.len() {
        row.select_nth_unstable(k - 1);
        row.truncate(k);
    }
    row.sort_unstable();
}
