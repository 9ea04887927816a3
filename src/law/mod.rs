//! The law of TEM as integers, so that sampled and computed probabilities are identical.
//!
//! A word at distance d has the weight W(d) = max(2⁴⁰, ⌊2¹⁰⁰·exp(-η·min(d,γ))⌋) with η = ε/2. The
//! word itself has 2¹⁰⁰, and no word has less than 2⁴⁰, that is, 2⁻⁶⁰ of it. Distances are rounded
//! to the [`Grid`](crate::distance::neighbors::Grid) of the stored neighbour lists.
//!
//! **The floor costs no privacy.** ln max(c, ·) changes by no more than ln · does, so no ratio of
//! two weights grows.
//!
//! **Rounding costs at most 2⁻³⁰ in a log-ratio of the output law** ([`SLACK`]). A computed
//! distance has a relative error of at most (n/8 + 8)·2⁻⁵³. Above the floor, η·min(d,γ) ≤ 60 ln 2 <
//! 42, so the exponent's error is at most 2⁻³⁴ for n = 10⁵ (2⁻⁴² for n = 300). The exponential has
//! a relative error of 2⁻⁵⁰, the truncation to an integer one of 2⁻⁴⁰. A log-ratio of the law has
//! two weights and two sums of weights, hence at most four such errors: 2⁻³¹·⁹. (Angles and
//! distances on the Poincaré ball also have an absolute error,
//! [`MetricSpace::distance_error`](crate::MetricSpace::distance_error), which a guarantee adds.)
//! The grid rounds a distance by at most half a step, which adds 4·η·step/2 = ε·step. A grid is
//! used only if that is at most 2⁻³¹ ([`GRID_SLACK`]); otherwise distances are not rounded.
//!
//! f64 Gumbel noise has no such bound: -ln(-ln u) never exceeds 36.7, so a word more than 41 scales
//! below the best has probability 0 instead of a small one.

pub(crate) mod alias;
pub mod base;
pub(crate) mod word_cache;

use rand::Rng;

use crate::support::arithmetic::exp_minus;
use crate::support::random::{continued, uniform_below_u128};
use crate::support::simd::vectorised;

/// Maximum size of a vocabulary: sums of weights stay below 2¹²⁷.
pub const MOST_WORDS: usize = 1 << 27;
/// log₂ of the largest weight, that of the word itself.
pub const LOG2_LARGEST: u32 = 100;
/// log₂ of the smallest weight.
pub const LOG2_FLOOR: u32 = 40;
/// The largest effect of rounding on a log-ratio.
pub const SLACK: f64 = 1.0 / (1u64 << 30) as f64;
/// The part of [`SLACK`] that the grid may use.
pub const GRID_SLACK: f64 = SLACK / 2.0;
/// The exponent at which the floor is reached: 60 ln 2.
pub const FLOOR_EXPONENT: f64 = (LOG2_LARGEST - LOG2_FLOOR) as f64 * std::f64::consts::LN_2;

/// The integer weight of 2⁻⁶⁰ ≤ v ≤ 1, as its low and high 64 bits, so that many in a row are
/// vectorised.
#[inline(always)]
fn integer(v: f64) -> (u64, u64) {
    const FLOOR: f64 = 1.0 / (1u64 << (LOG2_LARGEST - LOG2_FLOOR)) as f64;
    let bits = v.clamp(FLOOR, 1.0).to_bits();
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    // v·2¹⁰⁰ = mantissa·2^(exponent + 48), with an exponent from -60 to 0. The mantissa is moved 11
    // bits up to the top, then up by `up` (0 to 60) and down by 23.
    let up = (bits >> 52).wrapping_sub(1023 - 60);
    let top = mantissa << 11;
    let (low, high) = (
        top.unbounded_shl(up as u32),
        top.unbounded_shr(64 - up as u32),
    );
    (low >> 23 | high << 41, high >> 23)
}

#[inline(always)]
fn joined((low, high): (u64, u64)) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

vectorised! {
    /// Appends the running sums of the weights of `items`; `exponent` gives their η·min(d,γ) ≥ 0.
    /// Returns the last sum.
    pub(crate) fn accumulate[T: Copy] = accumulate_portable(
        items: &[T],
        exponent: impl Fn(T) -> f64,
        cumulative: &mut Vec<u128>
    ) -> u128
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn accumulate_portable<T: Copy>(
    items: &[T],
    exponent: impl Fn(T) -> f64,
    cumulative: &mut Vec<u128>,
) -> u128 {
    const LANES: usize = 32;
    let done = cumulative.len();
    cumulative.resize(done + items.len(), 0);
    let (sums, sums_rest) = cumulative[done..].as_chunks_mut::<LANES>();
    let (items, items_rest) = items.as_chunks::<LANES>();
    let mut sum = 0;
    for (sums, items) in sums.iter_mut().zip(items) {
        let mut values = [(0, 0); LANES];
        for l in 0..LANES {
            values[l] = integer(exp_minus(exponent(items[l]).min(FLOOR_EXPONENT + 0.25)));
        }
        for l in 0..LANES {
            // At most 2²⁷ words of at most 2¹⁰⁰: no overflow.
            sum += joined(values[l]);
            sums[l] = sum;
        }
    }
    for (slot, &item) in sums_rest.iter_mut().zip(items_rest) {
        sum += weight(exponent(item));
        *slot = sum;
    }
    sum
}

vectorised! {
    /// Turns distances into the weights W(d) without their last `shift` bits (none below the floor),
    /// relative to the largest: integers of at most 53 bits, so the floats are exact. Returns their
    /// sum.
    pub(crate) fn weights = weights_portable(
        distances: &mut [f64],
        eta: f64,
        gamma: f64,
        shift: u32
    ) -> f64
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn weights_portable(distances: &mut [f64], eta: f64, gamma: f64, shift: u32) -> f64 {
    const LANES: usize = 32;
    // Powers of two: neither rounds.
    let largest = 2f64.powi((LOG2_LARGEST - shift) as i32);
    let floor = 2f64.powi(LOG2_FLOOR as i32) / largest;
    let relative = 1.0 / largest;
    let weight = |d: f64| {
        let exponent = (eta * d.min(gamma)).min(FLOOR_EXPONENT + 0.25);
        let v = exp_minus(exponent).max(floor).min(1.0);
        (v * largest).floor() * relative
    };
    let mut sums = [0.0; LANES];
    let (chunks, rest) = distances.as_chunks_mut::<LANES>();
    for chunk in chunks {
        for l in 0..LANES {
            chunk[l] = weight(chunk[l]);
            sums[l] += chunk[l];
        }
    }
    let mut sum: f64 = sums.iter().sum();
    for d in rest {
        *d = weight(*d);
        sum += *d;
    }
    sum
}

/// W(d) for an exponent η·min(d,γ) ≥ 0.
#[inline]
pub fn weight(exponent: f64) -> u128 {
    joined(integer(exp_minus(exponent.min(FLOOR_EXPONENT + 0.25))))
}

/// The output law of one word: running sums of integer weights over the whole vocabulary.
#[derive(Clone, Debug, Default)]
pub struct Law {
    cumulative: Vec<u128>,
}

impl Law {
    /// Computes the law from the distances to every word; η = ε/2.
    pub fn fill(&mut self, eta: f64, gamma: f64, distances: &[f64]) {
        self.fill_with(distances, |d| eta * d.min(gamma));
    }

    /// Creates a law from any weights of at most 2¹⁰⁰.
    pub(crate) fn of_weights(weights: impl Iterator<Item = u128>) -> Self {
        let mut sum = 0;
        let cumulative = weights.map(|weight| {
            sum += weight;
            sum
        });
        Law {
            cumulative: cumulative.collect(),
        }
    }

    /// Computes the law of any items; `exponent` gives their η·min(d,γ).
    pub(crate) fn fill_with<T: Copy>(&mut self, items: &[T], exponent: impl Fn(T) -> f64) {
        self.cumulative.clear();
        accumulate(items, exponent, &mut self.cumulative);
    }

    /// Changes the weights; `new` receives each one's position and weight.
    pub(crate) fn change(&mut self, new: impl Fn(usize, u128) -> u128) {
        let (mut before, mut sum) = (0, 0);
        for (place, reached) in self.cumulative.iter_mut().enumerate() {
            sum += new(place, *reached - before);
            before = std::mem::replace(reached, sum);
        }
    }

    /// Number of words.
    #[allow(clippy::len_without_is_empty)] // there is always a word
    pub fn len(&self) -> usize {
        self.cumulative.len()
    }

    /// The sum of all weights.
    #[inline]
    pub fn total(&self) -> u128 {
        self.cumulative.last().copied().unwrap_or(0)
    }

    /// The weights of all words.
    pub(crate) fn weights(&self) -> impl Iterator<Item = u128> {
        let before = std::iter::once(&0).chain(&self.cumulative);
        self.cumulative
            .iter()
            .zip(before)
            .map(|(sum, before)| sum - before)
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

    /// The word at `u`, a number below the total.
    #[inline]
    pub(crate) fn find(&self, u: u128) -> u32 {
        self.cumulative.partition_point(|&c| c <= u) as u32
    }

    /// Draws one word with 64 random bits, and further bits if these do not decide. It is as exact
    /// as [`sample`](Self::sample) and needs fewer bits, so a seed gives other words.
    #[inline]
    pub(crate) fn sample_short(&self, rng: &mut impl Rng) -> u32 {
        self.sample_by(rng.next_u64(), rng)
    }

    /// The same with x as the first 64 bits.
    #[inline]
    pub(crate) fn sample_by(&self, x: u64, rng: &mut impl Rng) -> u32 {
        // ⌊u·total⌋ lies between these two for every u in [0, 1) whose first 64 bits are x.
        let total = self.total();
        let word = self.find(continued(x, total, 0));
        match continued(x, total, total - 1) < self.cumulative[word as usize] {
            true => word,
            false => self.find(continued(x, total, uniform_below_u128(rng, total))),
        }
    }

    /// Draws one word, with probability weight / total exactly.
    #[inline]
    pub fn sample(&self, rng: &mut impl Rng) -> u32 {
        self.find(uniform_below_u128(rng, self.total()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_accurate_and_monotone() {
        let mut last = 1.0;
        for i in 0..=4_200_000 {
            let x = f64::from(i) * 1e-5;
            let (ours, exact) = (exp_minus(x), (-x).exp());
            assert!(
                ((ours - exact) / exact).abs() < 2f64.powi(-50),
                "{x}: {ours} {exact}"
            );
            assert!(ours <= last * (1.0 + 1e-15));
            last = ours;
        }
        assert_eq!(exp_minus(0.0), 1.0);
    }

    #[test]
    fn weights_span_sixty_bits_and_stop_at_the_floor() {
        assert_eq!(weight(0.0), 1 << LOG2_LARGEST);
        for exponent in [41.6, 42.0, 1e3, f64::INFINITY] {
            assert_eq!(weight(exponent), 1 << LOG2_FLOOR);
        }
        for i in 0..41_000 {
            let x = f64::from(i) * 1e-3;
            let exact = (-x).exp() * 2f64.powi(100);
            assert!(
                (weight(x) as f64 / exact - 1.0).abs() < 2f64.powi(-39),
                "{x}"
            );
        }
    }

    #[test]
    fn constants_are_what_the_docs_say() {
        assert!((FLOOR_EXPONENT - 60.0 * std::f64::consts::LN_2).abs() < 1e-12);
        assert_eq!((SLACK, GRID_SLACK), (2f64.powi(-30), 2f64.powi(-31)));
    }

    #[test]
    fn weights_in_a_row_are_the_integers_and_their_sum() {
        // At η = 20 most are at the floor.
        let sizes = [1usize, 31, 32, 33, 100, 45_000];
        for (count, eta) in sizes.into_iter().flat_map(|n| [(n, 1.5), (n, 20.0)]) {
            for shift in [0, 1, 17] {
                let step = 30.0 / count as f64;
                let distances: Vec<f64> = (0..count).map(|i| i as f64 * step).collect();
                let mut row = distances.clone();
                let sum = weights(&mut row, eta, 29.0, shift);
                let (mut expected, largest) = (0, 2f64.powi(100 - shift as i32));
                for (w, d) in row.iter().zip(distances) {
                    let integer = base::shortened(weight(eta * d.min(29.0)), shift);
                    assert_eq!(w * largest, integer as f64, "{d} {eta} {shift}");
                    expected += integer;
                }
                assert!((sum * largest / expected as f64 - 1.0).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn running_sums_are_sums_of_weights_at_every_length() {
        for count in [0, 1, 31, 32, 33, 64, 100] {
            let exponents: Vec<f64> = (0..count).map(|i| f64::from(i) * 0.7).collect();
            let mut cumulative = Vec::new();
            let total = accumulate(&exponents, |x| x, &mut cumulative);
            let mut sum = 0;
            for (&c, &x) in cumulative.iter().zip(&exponents) {
                sum += weight(x);
                assert_eq!(c, sum);
            }
            assert_eq!((cumulative.len(), total), (count as usize, sum));
        }
    }
}
