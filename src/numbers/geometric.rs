//! The two-sided geometric law on whole numbers, as integers.
//!
//! **The law.** V(0) = 2⁶³ and V(s+1) = ⌈V(s)·R/2⁶⁴⌉ for s < J, where R = ⌈2⁶⁴·exp(-ε)⌉, taken up by what the
//! exponential may be off. With T = V(J)/2⁶³ the weight of an offset z is W(|z|), where W(o·J + s) = Tᵒ·V(s). Offsets
//! are unbounded. An output is the input plus an offset, clamped to a range.
//!
//! **Theorem.** For inputs i and j of the range and every output y, Pr\[y|i\] ≤ exp(ε·|i-j|)·Pr\[y|j\],
//! for the integers that are drawn, not only for real numbers near them.
//!
//! *Proof.* Let r = R/2⁶⁴, so r ≥ exp(-ε). (1) Neighbouring weights have r·W(m) ≤ W(m+1) ≤ W(m): rounding up gives
//! the first inequality; it gives the second one too, as r·V ≤ V and V is whole. From the end of V to its next
//! repetition the weights are V(J-1) and T·V(0) = V(J), times Tᵒ. [`certify`](Geometric::certify) computes both
//! inequalities for every pair of neighbours. (2) The sum of all weights does not depend on the input, as
//! offsets are unbounded. So an output within the range has neighbouring inputs' probabilities in a ratio from r to
//! 1/r. (3) An end of the range, m steps from the input, has the tail T(m) = Σ W(k) over k ≥ m as its weight, m ≥ 0.
//! By (1), term by term, T(m) ≤ T(m+1)/r, and T(m+1) ≤ T(m). In a range of one point every output is that. (4) From
//! i to j there are |i-j| steps of at most 1/r ≤ exp(ε) each. ∎
//!
//! Clamping is post-processing, but (3) shows it directly. There is no slack: rounding of the input to
//! the grid happens before, and is part of the public grid.
//!
//! **Clamped, not conditioned.** Ghosh et al. (2009) call the clamped law the truncated geometric mechanism, and show
//! that a receiver who reads it best, whatever the prior and the loss, is served as well as by any other law of the
//! same ε. The other truncation conditions the law on the range. Its sum of weights then depends on the input: a
//! step from an end costs ε + ln(1 + r·(1-r)) in a long range, up to 2·ε. At the same proved ε it needs up to twice
//! the noise.
//!
//! **The draw.** One 64-bit number decides the sign and, by its lower 63 bits against V(J), whether the
//! table is left: T exactly. `Law::sample_short` draws s exactly. A zero with a negative sign is drawn again,
//! so that 0 is counted once.

use rand::Rng;

use crate::law::Law;
use crate::support::arithmetic::exp_minus;
use crate::support::error::{Error, Result};

/// The largest weight.
const LARGEST: u64 = 1 << 63;
/// The most weights of the table: it stays in a core's own cache. At the smallest ε it is left and begun again some
/// thirty times a draw.
const MAX_WEIGHTS: usize = 1 << 15;
/// The table reaches to exp(-REACH), if it is long enough.
const REACH: f64 = 20.0;
/// Beyond this exponent ratios become no smaller, which costs no privacy.
const STEEPEST: f64 = 42.0;

/// The two-sided geometric law of one ε per step.
#[derive(Debug)]
pub struct Geometric {
    epsilon: f64,
    /// R: the ratio of neighbouring weights is at least R/2⁶⁴.
    ratio: u64,
    /// V(0) … V(J-1).
    table: Law,
    /// V(J).
    next: u64,
}

impl Geometric {
    /// The smallest ε per step.
    pub const MIN_EPSILON: f64 = 1e-6;

    /// The law of an ε per step.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an ε that is not finite, or below [`MIN_EPSILON`](Self::MIN_EPSILON).
    pub fn new(epsilon: f64) -> Result<Self> {
        if !(epsilon.is_finite() && epsilon >= Self::MIN_EPSILON) {
            let expected = "finite and, times the unit, at least 1e-6";
            return Err(Error::parameter("epsilon", expected, epsilon));
        }
        // The exponential is off by a relative 2⁻⁵⁰ at most.
        let up = exp_minus(epsilon.min(STEEPEST)) * (1.0 + 2f64.powi(-48));
        let ratio = (up * 2f64.powi(64)).ceil() as u64;
        let length = ((REACH / epsilon).ceil() as usize).clamp(1, MAX_WEIGHTS);
        let mut next = LARGEST;
        let weights = (0..length).map(|_| {
            let this = u128::from(next);
            next = (this * u128::from(ratio)).div_ceil(1 << 64) as u64;
            this
        });
        let table = Law::of_weights(weights);
        Ok(Geometric {
            epsilon,
            ratio,
            table,
            next,
        })
    }

    /// ε per step.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The integers of the law: R, and V(0) … V(J).
    pub fn integers(&self) -> (u64, Vec<u64>) {
        let weights = self.table.weights().map(|weight| weight as u64);
        (self.ratio, weights.chain([self.next]).collect())
    }

    /// The largest log-ratio of a step, computed from the integers that are drawn.
    ///
    /// # Errors
    /// [`Error::Parameter`] where neighbouring weights are not in the ratio that the proof needs.
    pub fn certify(&self) -> Result<f64> {
        let (ratio, weights) = self.integers();
        let mut worst = 0f64;
        for pair in weights.windows(2) {
            let (near, far) = (pair[0], pair[1]);
            let kept = u128::from(near) * u128::from(ratio) <= u128::from(far) << 64;
            if !kept || far > near {
                let expected = "one that falls evenly";
                return Err(Error::parameter("law", expected, "another"));
            }
            worst = worst.max(-(far as f64 / near as f64).ln());
        }
        Ok(worst)
    }

    /// An offset, exactly by its weight.
    #[inline]
    pub(crate) fn offset(&self, rng: &mut impl Rng) -> i64 {
        const BELOW: u64 = LARGEST - 1;
        loop {
            let bits = rng.next_u64();
            let (negative, mut rest) = (bits > BELOW, bits & BELOW);
            let mut size = 0;
            while rest < self.next {
                size += self.table.len() as i64;
                rest = rng.next_u64() & BELOW;
            }
            size += i64::from(self.table.sample_short(rng));
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
        let far = (place - low).max(high - place) as usize + 1;
        let (weights, tails) = self.weights_and_tails(far);
        let size = |y: i64| y.abs_diff(place) as usize;
        (low..=high)
            .map(|y| match y {
                _ if low == high => 1.0,
                _ if y == low || y == high => tails[size(y)],
                _ => weights[size(y)],
            })
            .collect()
    }

    /// The probability of every offset 0 ≤ m < `far`, and of all offsets from m on.
    fn weights_and_tails(&self, far: usize) -> (Vec<f64>, Vec<f64>) {
        let total = self.table.total();
        let repeated = self.next as f64 / LARGEST as f64;
        // The sum over all offsets of one sign, including zero.
        let side = total as f64 / (1.0 - repeated);
        let all = 2.0 * side - LARGEST as f64;
        let (mut weights, mut tails) = (Vec::with_capacity(far), Vec::with_capacity(far));
        // Tᵒ.
        let mut scale = 1.0;
        while weights.len() < far {
            let mut rest = total;
            for weight in self.table.weights().take(far - weights.len()) {
                tails.push(scale * (rest as f64 + repeated * side) / all);
                weights.push(scale * weight as f64 / all);
                rest -= weight;
            }
            scale *= repeated;
        }
        (weights, tails)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_law, rng};

    const EPSILONS: [f64; 9] = [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0];

    #[test]
    fn integers_fall_as_the_proof_needs() {
        for epsilon in EPSILONS {
            let law = Geometric::new(epsilon).unwrap();
            let exact = law.certify().unwrap();
            assert!(exact <= epsilon, "{epsilon}: {exact}");
            // The noise is no larger than it need be.
            assert!(exact > 0.99 * epsilon.min(STEEPEST), "{epsilon}: {exact}");
            let (ratio, weights) = law.integers();
            assert!(-(ratio as f64 / 2f64.powi(64)).ln() <= epsilon);
            assert!(weights[0] == LARGEST && weights[weights.len() - 1] > 0);
            assert!(weights.len() <= MAX_WEIGHTS + 1);
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
            let mut rng = rng(5);
            // Bins of equal widths around zero, some two standard deviations to each side.
            let width = (0.25 / epsilon).ceil() as i64;
            let range = (-8 * width, 8 * width - 1);
            let mut counts = [0u64; 16];
            for _ in 0..200_000 {
                let y = law.draw(0, range, &mut rng);
                counts[((y - range.0) / width) as usize] += 1;
            }
            let mut expected = [0.0; 16];
            for (at, p) in law.probabilities(0, range).into_iter().enumerate() {
                expected[at / width as usize] += p;
            }
            assert_law(&counts, &expected, &format!("{epsilon}"));
        }
    }
}
