//! The law of TEM as integers, so that what is sampled is exactly what is computed.
//!
//! A word at distance d has the weight W(d) = max(2⁴⁰, ⌊2¹⁰⁰·exp(-η·min(d,γ))⌋), η = ε/2. The
//! word itself has 2¹⁰⁰; no word has less than 2⁴⁰, that is 2⁻⁶⁰ of it.
//!
//! **The floor costs no privacy.** ln max(c, ·) changes by no more than ln · does, so no ratio
//! of two weights grows.
//!
//! **Rounding costs at most 2⁻³⁰ in a log-ratio of the output law** ([`SLACK`]). A computed
//! distance is off by at most a relative (n/8 + 8)·2⁻⁵³; above the floor η·min(d,γ) ≤
//! 60 ln 2 < 42, so the exponent is off by at most 2⁻³⁴ for n = 10⁵ (2⁻⁴² for n = 300). The
//! exponential is off by a relative 2⁻⁵⁰, the truncation to an integer by 2⁻⁴⁰. A log-ratio of
//! the law holds two weights and two sums of weights, hence at most four such errors: 2⁻³¹·⁹.
//! (On the Poincaré ball the error of a distance also has a term n·2⁻⁵³/(1 - max‖u‖²), which
//! stays within the same slack for norms up to 0.999.)
//!
//! f64 Gumbels have no such bound: -ln(-ln u) never exceeds 36.7, so a word more than 41 scales
//! below the best has probability 0 instead of a small one.

use rand::Rng;

use crate::random::uniform_below_u128;

/// log₂ of the largest weight, that of the word itself.
pub const LOG2_LARGEST: u32 = 100;
/// log₂ of the smallest weight.
pub const LOG2_FLOOR: u32 = 40;
/// What rounding adds to a log-ratio at most.
pub const SLACK: f64 = 1.0 / (1u64 << 30) as f64;

/// W(d) for an exponent η·min(d,γ) ≥ 0.
#[inline]
pub fn weight(exponent: f64) -> u128 {
    const LARGEST: f64 = (1u128 << LOG2_LARGEST) as f64;
    // Both factors are exact powers of two times a 53-bit number, so the product is exact and
    // the cast truncates what is below one quantum.
    ((-exponent).exp() * LARGEST).max((1u64 << LOG2_FLOOR) as f64) as u128
}

/// The output law of one word: running sums of integer weights.
#[derive(Clone, Debug, Default)]
pub struct Law {
    cumulative: Vec<u128>,
}

impl Law {
    /// Fills the law in from the distances to every word; η = ε/2.
    pub fn fill(&mut self, eta: f64, gamma: f64, distances: &[f64]) {
        self.cumulative.clear();
        let mut sum = 0;
        self.cumulative.extend(distances.iter().map(|&d| {
            // 2³¹ words of at most 2¹⁰⁰: no overflow.
            sum += weight(eta * d.min(gamma));
            sum
        }));
    }

    /// Number of words.
    #[allow(clippy::len_without_is_empty)] // there is always a word
    pub fn len(&self) -> usize {
        self.cumulative.len()
    }

    /// The sum of all weights.
    pub fn total(&self) -> u128 {
        self.cumulative.last().copied().unwrap_or(0)
    }

    /// The weight of word `y`.
    pub fn weight(&self, y: u32) -> u128 {
        let y = y as usize;
        self.cumulative[y] - if y == 0 { 0 } else { self.cumulative[y - 1] }
    }

    /// The probability of every word.
    pub fn probabilities(&self) -> Vec<f64> {
        let total = self.total() as f64;
        (0..self.len() as u32)
            .map(|y| self.weight(y) as f64 / total)
            .collect()
    }

    /// One word, with probability weight / total exactly.
    #[inline]
    pub fn sample(&self, rng: &mut impl Rng) -> u32 {
        let u = uniform_below_u128(rng, self.total());
        self.cumulative.partition_point(|&c| c <= u) as u32
    }
}
