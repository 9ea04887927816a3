//! A base measure: a public number Q for every word, by which a law multiplies the weight of its
//! distance.
//!
//! Pr\[y|w\] ∝ Q(y)·F(d(w,y)). Q is the same for every w, so it cancels in every ratio of two weights
//! of one output, and F alone decides what a law costs. Q may be anything that is public or released:
//! how often words are written, what a model of language expects.
//!
//! **Integers.** Q has at most 32 bits and is at least 1. F is the integer weight of
//! [`law`](super), from 2⁴⁰ to 2¹⁰⁰, of which the last [`shift`](BaseMeasure::shift) bits are left
//! out, so that V products stay below 2¹²⁷; it stays at least 2⁴⁰. The floor is laid on F *before* Q
//! multiplies it: ln max(2⁴⁰, ·) changes by no more than ln · does, so the floor costs no privacy
//! whatever Q is.

use rand::Rng;
use xxhash_rust::xxh3::xxh3_64;

use super::alias::AliasTable;
use super::{LOG2_FLOOR, LOG2_LARGEST, Law};
use crate::support::error::{Error, Result};

/// V times the largest product of Q and F has at most so many bits.
const LOG2_ALL: u32 = 127;
/// The products of F and what is added to Q have at most so many bits in all.
const LOG2_ADDED: u32 = 125;

/// Public weights of all words.
#[derive(Debug)]
pub struct BaseMeasure {
    weights: Box<[u32]>,
    /// Q relative to the largest, and ln of its inverse, for laws in floating point.
    shares: Box<[f64]>,
    penalties: Box<[f64]>,
    least: u32,
    most: u32,
    total: u64,
    shift: u32,
    room: u32,
    table: AliasTable,
    fingerprint: u64,
    /// Where it comes from, in words.
    source: String,
}

impl BaseMeasure {
    /// The largest ratio of two weights that their integers tell apart.
    pub const RATIO: f64 = 1e9;

    /// Makes the integers of one weight a word: the largest is 2³² - 1, none is below 1. `None` if
    /// all are equal: that is the uniform measure, which needs no numbers.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a weight that is not positive and finite, or weights that differ by
    /// more than [`RATIO`](Self::RATIO).
    pub fn new(weights: &[f64]) -> Result<Option<Self>> {
        let wrong = |got: String| {
            let expected = format!(
                "positive, and within a factor of {:e} of each other",
                Self::RATIO
            );
            Err(Error::parameter("weights", expected, got))
        };
        if let Some(at) = weights.iter().position(|q| !(*q > 0.0 && q.is_finite())) {
            return wrong(format!("{} of word {at}", weights[at]));
        }
        let most = weights.iter().fold(0.0f64, |a, &q| a.max(q));
        let least = weights.iter().fold(f64::INFINITY, |a, &q| a.min(q));
        if most / least > Self::RATIO {
            return wrong(format!("{least:e} and {most:e}"));
        }
        if most == least {
            return Ok(None);
        }
        Ok(Some(Self::of_model(weights, 0)))
    }

    /// The same integers of any public numbers, equal or unlike as they may be, with room for
    /// weights that are added to them: these may sum to [`added`](Self::added), at least 2^room
    /// times the sum of all Q (no such number for 0).
    pub(crate) fn of_model(weights: &[f64], room: u32) -> Self {
        let most = weights.iter().fold(f64::MIN_POSITIVE, |a, &q| a.max(q));
        let largest = f64::from(u32::MAX);
        let integer = |q: &f64| (q / most * largest).round().max(1.0) as u32;
        Self::of_integers(weights.iter().map(integer).collect(), room)
    }

    fn of_integers(weights: Box<[u32]>, room: u32) -> Self {
        let most = weights.iter().copied().max().unwrap_or(1);
        let least = weights.iter().copied().min().unwrap_or(1);
        let share = |&q: &u32| f64::from(q) / f64::from(most);
        let shares: Box<[f64]> = weights.iter().map(share).collect();
        let all = u64::from(most) * weights.len() as u64;
        let bits = u64::BITS - all.leading_zeros();
        let law = Law::of_weights(weights.iter().map(|&q| q.into()));
        let shift = (bits + LOG2_LARGEST).saturating_sub(LOG2_ALL);
        let needed = match room {
            0 => 0,
            _ => (u64::BITS - (law.total() as u64).leading_zeros() + room)
                .saturating_sub(LOG2_ADDED - LOG2_LARGEST),
        };
        BaseMeasure {
            penalties: shares.iter().map(|q| -q.ln()).collect(),
            shares,
            least,
            most,
            total: law.total() as u64,
            shift: shift.max(needed),
            room,
            table: AliasTable::new(&law),
            fingerprint: xxh3_64(bytemuck::cast_slice(&weights)).max(1),
            source: "given weights".into(),
            weights,
        }
    }

    /// Says where it comes from, for guarantees.
    pub fn named(mut self, source: String) -> Self {
        self.source = source;
        self
    }

    /// Where it comes from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The same measure, but 1 for all words that `kept` does not hold: these are never released.
    /// `kept` is ascending.
    pub(crate) fn of_released(&self, kept: &[u32]) -> Self {
        let mut weights = vec![1; self.weights.len()].into_boxed_slice();
        for &id in kept {
            weights[id as usize] = self.weights[id as usize];
        }
        let mut base = Self::of_integers(weights, self.room).named(self.source.clone());
        if self.room > 0 {
            // As much may be added as before.
            base.shift = self.shift;
        }
        base
    }

    /// The number of words.
    #[allow(clippy::len_without_is_empty)] // there is always a word
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Q of a word.
    #[inline]
    pub fn weight(&self, id: u32) -> u32 {
        self.weights[id as usize]
    }

    /// Q of all words.
    pub fn weights(&self) -> &[u32] {
        &self.weights
    }

    /// The least and the largest Q.
    pub(crate) fn range(&self) -> (u32, u32) {
        (self.least, self.most)
    }

    /// The sum of all Q.
    #[inline]
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Q relative to the largest, by word.
    pub(crate) fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// -ln of the [shares](Self::shares).
    pub(crate) fn penalties(&self) -> &[f64] {
        &self.penalties
    }

    /// How many bits of F are left out.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// The most that weights added to Q may sum to: their products with F stay below 2¹²⁵.
    pub fn added(&self) -> u64 {
        1 << (LOG2_ADDED + self.shift - LOG2_LARGEST).min(63)
    }

    /// XXH3-64 of the integers.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Draws a word in proportion to Q.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut impl Rng) -> u32 {
        let weights = || Law::of_weights(self.weights.iter().map(|&q| q.into()));
        self.table.sample(rng, weights)
    }
}

/// F without its last `shift` bits.
#[inline]
pub(crate) fn shortened(weight: u128, shift: u32) -> u128 {
    (weight >> shift).max(1 << LOG2_FLOOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_law;

    #[test]
    fn products_stay_below_the_bits_of_a_sum() {
        for (count, most) in [(1, 2), (3, u32::MAX), (20_000, u32::MAX), (1 << 20, 77)] {
            let mut weights = vec![1; count];
            weights[count / 2] = most;
            let base = BaseMeasure::of_integers(weights.into(), 0);
            let largest = u128::from(most) * shortened(1 << LOG2_LARGEST, base.shift());
            assert!(largest.checked_mul(count as u128).expect("fits") <= 1 << LOG2_ALL);
            // No bit is left out without need.
            let more = u128::from(most) << (LOG2_LARGEST + 1 - base.shift().max(1));
            assert!(base.shift() == 0 || more * count as u128 > 1 << LOG2_ALL);
        }
    }

    #[test]
    fn what_is_added_has_room() {
        for (count, room) in [(1, 1), (6, 10), (20_000, 10), (400_000, 10), (1 << 20, 3)] {
            for exponent in [0.0, -1.0] {
                let weights = (1..=count).map(|i| f64::from(i).powf(exponent));
                let base = BaseMeasure::of_model(&weights.collect::<Vec<_>>(), room);
                let added = u128::from(base.added());
                assert!(added >= u128::from(base.total()) << room, "{count} {room}");
                let largest = shortened(1 << LOG2_LARGEST, base.shift());
                assert!(largest > 1 << (LOG2_FLOOR + 20));
                assert!(added.checked_mul(largest).expect("fits") <= 1 << LOG2_ADDED);
                // The same room where some words are never released.
                assert_eq!(base.of_released(&[0]).added(), base.added());
            }
        }
    }

    #[test]
    fn integers_are_the_weights() {
        let base = BaseMeasure::new(&[0.5, 0.25, 0.5e-9]).unwrap().unwrap();
        assert_eq!(base.weights(), [u32::MAX, 1 << 31, 4]);
        assert!(BaseMeasure::new(&[3.0; 5]).unwrap().is_none());
        for wrong in [
            [1.0, 0.0],
            [1.0, f64::NAN],
            [1.0, 1e-10],
            [f64::INFINITY, 1.0],
        ] {
            let error = BaseMeasure::new(&wrong).unwrap_err().to_string();
            assert!(error.contains("weights must be positive"), "{error}");
        }
    }

    #[test]
    fn words_are_drawn_by_their_weights() {
        let base = BaseMeasure::new(&[1.0, 2.0, 0.001, 4.0]).unwrap().unwrap();
        let mut rng = crate::testing::rng(5);
        let mut counts = [0u32; 4];
        (0..400_000).for_each(|_| counts[base.draw(&mut rng) as usize] += 1);
        let total = base.total() as f64;
        let law: Vec<f64> = base
            .weights()
            .iter()
            .map(|&q| f64::from(q) / total)
            .collect();
        assert_law(&counts, &law, "base");
    }
}
