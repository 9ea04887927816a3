//! The two-sided geometric law on whole numbers, as integers.
//!
//! **The law.** W(0) = 2⁶³ and W(s+1) = ⌈W(s)·R/2⁶⁴⌉, where R = ⌈2⁶⁴·exp(-ε)⌉, taken up by what the
//! exponential may be off. A table holds W(0) … W(J-1); behind it the law is the table again, times
//! t = W(J)/W(0): W(o·J + s) = tᵒ·W(s). An offset z has the weight W(|z|), and offsets are unbounded.
//! An output is the input plus an offset, clamped to a range.
//!
//! **Theorem.** For inputs i and j of the range and every output y, Pr\[y|i\] ≤ exp(ε·|i-j|)·Pr\[y|j\],
//! for the integers that are drawn, not only for real numbers near them.
//!
//! *Proof.* Let r = R/2⁶⁴, so r ≥ exp(-ε). (1) Neighbouring weights have r·W(m) ≤ W(m+1) ≤ W(m). Within the
//! table, rounding up gives the first inequality; it gives the second one too, as r·W ≤ W and W is whole. From
//! the table's end to its repetition the ratio is t·W(0)/W(J-1) = W(J)/W(J-1), a ratio of the recursion.
//! Repetitions scale both by tᵒ. (2) The sum of all weights does not depend on the input, as offsets are
//! unbounded. So an output within the range has neighbouring inputs' probabilities in a ratio from r to 1/r.
//! (3) An end of the range, m steps from the input, has the tail T(m) = Σ W(k) over k ≥ m as its weight, m ≥ 0. By
//! (1), term by term, T(m) ≤ T(m+1)/r, and T(m+1) ≤ T(m). In a range of one point every output is that. (4) From i to j there are |i-j| steps of at most 1/r ≤ exp(ε) each. ∎
//!
//! Clamping is post-processing, but (3) shows it directly. There is no slack: rounding of the input to
//! the grid happens before, and is part of the public grid.
//!
//! **The draw.** One 64-bit number decides the sign and, by its lower 63 bits against W(J), whether the
//! table is left: t exactly. `Law::sample_short` draws s exactly. A zero with a negative sign is drawn again, so that 0 is
//! counted once.

use rand::Rng;

use crate::arithmetic::exp_minus;
use crate::error::{Error, Result};
use crate::law::Law;

/// log₂ of the largest weight.
const LOG2_LARGEST: u32 = 63;
/// The most weights that a table holds.
const MOST_WEIGHTS: usize = 1 << 20;
/// A table reaches to exp(-REACH), where it may be so long.
const REACH: f64 = 20.0;
/// Beyond this exponent ratios become no smaller, which costs no privacy.
const STEEPEST: f64 = 42.0;

/// The two-sided geometric law of one ε per step.
#[derive(Debug)]
pub struct Geometric {
    epsilon: f64,
    /// R: the ratio of neighbouring weights is at least R/2⁶⁴.
    ratio: u64,
    /// W(0) … W(J-1).
    law: Law,
    /// W(J).
    next: u64,
}

impl Geometric {
    /// The smallest ε per step.
    pub const LEAST: f64 = 1e-6;

    /// The law of an ε per step.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an ε that is not finite, or below [`LEAST`](Self::LEAST).
    pub fn new(epsilon: f64) -> Result<Self> {
        if !(epsilon.is_finite() && epsilon >= Self::LEAST) {
            let expected = "finite and, times the unit, at least 1e-6";
            return Err(Error::parameter("epsilon", expected, epsilon));
        }
        // The exponential is off by a relative 2⁻⁵⁰ at most.
        let up = exp_minus(epsilon.min(STEEPEST)) * (1.0 + 2f64.powi(-48));
        let ratio = (up * 2f64.powi(64)).ceil() as u64;
        let length = ((REACH / epsilon).ceil() as usize).clamp(1, MOST_WEIGHTS);
        let mut weight = 1u64 << LOG2_LARGEST;
        let weights = (0..length).map(|_| {
            let this = weight;
            weight = (u128::from(this) * u128::from(ratio)).div_ceil(1 << 64) as u64;
            u128::from(this)
        });
        let mut law = Law::of_weights(weights);
        law.index();
        Ok(Geometric {
            epsilon,
            ratio,
            law,
            next: weight,
        })
    }

    /// ε per step.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The integers of the law: R, W(0) … W(J-1), W(J).
    pub fn integers(&self) -> (u64, Vec<u64>, u64) {
        let weights = self.law.weights().map(|weight| weight as u64);
        (self.ratio, weights.collect(), self.next)
    }

    /// The largest log-ratio of a step, computed from the integers that are drawn.
    ///
    /// # Errors
    /// [`Error::Parameter`] where neighbouring weights are not in the ratio that the proof needs.
    pub fn certify(&self) -> Result<f64> {
        let (ratio, mut weights, next) = self.integers();
        weights.push(next);
        let mut worst = 0f64;
        for pair in weights.windows(2) {
            let (near, far) = (pair[0], pair[1]);
            let kept = u128::from(near) * u128::from(ratio) <= u128::from(far) << 64;
            if !kept || far > near {
                return Err(Error::parameter("law", "one that falls evenly", "another"));
            }
            worst = worst.max(-(far as f64 / near as f64).ln());
        }
        Ok(worst)
    }

    /// An offset, exactly by its weight.
    #[inline]
    pub(crate) fn offset(&self, rng: &mut impl Rng) -> i64 {
        const BELOW: u64 = (1 << LOG2_LARGEST) - 1;
        loop {
            let bits = rng.next_u64();
            let (negative, mut rest) = (bits > BELOW, bits & BELOW);
            let mut far = 0i64;
            while rest < self.next {
                far = far.saturating_add(self.law.len() as i64);
                rest = rng.next_u64() & BELOW;
            }
            let size = far.saturating_add(i64::from(self.law.sample_short(rng)));
            match (size, negative) {
                (0, true) => {}
                (size, true) => return -size,
                (size, false) => return size,
            }
        }
    }

    /// `place` plus an offset, clamped.
    #[inline]
    pub(crate) fn draw(&self, place: i64, (low, high): (i64, i64), rng: &mut impl Rng) -> i64 {
        place.saturating_add(self.offset(rng)).clamp(low, high)
    }

    /// The law of the output for the input `place` of a range: the probability of each of its points.
    pub(crate) fn probabilities(&self, place: i64, (low, high): (i64, i64)) -> Vec<f64> {
        let largest = (1u64 << LOG2_LARGEST) as f64;
        let repeated = self.next as f64 / largest;
        let table = self.law.total() as f64;
        // Of all offsets of one sign, zero among them.
        let side = table / (1.0 - repeated);
        let all = 2.0 * side - largest;
        let far = (place - low).max(high - place) as usize + 1;
        let (mut weights, mut tails) = (Vec::with_capacity(far), Vec::with_capacity(far));
        let (mut scale, mut within) = (1.0, 0u128);
        for size in 0..far {
            let at = size % self.law.len();
            if at == 0 && size > 0 {
                (scale, within) = (scale * repeated, 0);
            }
            let weight = self.law.weight(at as u32);
            let rest = (self.law.total() - within) as f64;
            tails.push(scale * (rest + repeated * side) / all);
            weights.push(scale * weight as f64 / all);
            within += weight;
        }
        let size = |y: i64| y.abs_diff(place) as usize;
        (low..=high)
            .map(|y| match y {
                _ if low == high => 1.0,
                _ if y == low || y == high => tails[size(y)],
                _ => weights[size(y)],
            })
            .collect()
    }

    /// r, the ratio of neighbouring weights.
    pub fn step(&self) -> f64 {
        self.ratio as f64 / 2f64.powi(64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Randomness;

    const EPSILONS: [f64; 9] = [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0];

    #[test]
    fn integers_fall_as_the_proof_needs() {
        for epsilon in EPSILONS {
            let law = Geometric::new(epsilon).unwrap();
            let exact = law.certify().unwrap();
            assert!(exact <= epsilon, "{epsilon}: {exact}");
            // The noise is no larger than it need be.
            assert!(exact > 0.99 * epsilon.min(STEEPEST), "{epsilon}: {exact}");
            let (ratio, weights, next) = law.integers();
            assert!(-(ratio as f64 / 2f64.powi(64)).ln() <= epsilon);
            assert!(weights[0] == 1 << 63 && next > 0);
        }
        for bad in [0.0, -1.0, 1e-7, f64::NAN, f64::INFINITY] {
            assert!(Geometric::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn probabilities_are_the_closed_form() {
        for epsilon in EPSILONS {
            let law = Geometric::new(epsilon).unwrap();
            let r = (-epsilon.min(STEEPEST)).exp();
            let range = (-700, 1300);
            for place in [-700, -699, 0, 3, 1299, 1300] {
                let found = law.probabilities(place, range);
                assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                for (y, p) in (range.0..=range.1).zip(found) {
                    let size = i64::abs(y - place) as f64;
                    let expected = match (y == range.0 || y == range.1, y == place) {
                        (false, _) => (1.0 - r) / (1.0 + r) * r.powf(size),
                        (true, true) => 1.0 / (1.0 + r),
                        (true, false) => r.powf(size) / (1.0 + r),
                    };
                    let error = (p / expected - 1.0).abs();
                    let small = expected < 1e-15;
                    assert!(
                        small || error < 1e-5,
                        "{epsilon} {place} {y}: {p} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn draws_follow_the_law() {
        for epsilon in EPSILONS {
            let law = Geometric::new(epsilon).unwrap();
            let mut rng = Randomness::new(Some(5)).next_key().unwrap().stream(0);
            // Bins of equal widths around zero, some two standard deviations to each side.
            let width = (0.25 / epsilon).ceil() as i64;
            let range = (-8 * width, 8 * width - 1);
            let (draws, mut counts) = (200_000, [0u64; 16]);
            for _ in 0..draws {
                let y = law.draw(0, range, &mut rng);
                counts[((y - range.0) / width) as usize] += 1;
            }
            let mut expected = [0.0; 16];
            if (range.1 - range.0) < 5_000_000 {
                for (at, p) in law.probabilities(0, range).into_iter().enumerate() {
                    expected[at / width as usize] += p * f64::from(draws);
                }
            }
            let (mut chi2, mut bins) = (0.0, 0);
            for (count, expected) in counts.iter().zip(expected) {
                match expected > 5.0 {
                    true => {
                        (chi2, bins) = (
                            chi2 + (*count as f64 - expected).powi(2) / expected,
                            bins + 1,
                        )
                    }
                    false => assert!(*count < 40, "{epsilon}: {counts:?}"),
                }
            }
            // χ²(15) exceeds 63 with probability 8e-8.
            assert!(bins > 0 && chi2 < 63.0, "{epsilon}: {chi2} {counts:?}");
        }
    }
}
