//! The two-sided geometric law on whole numbers, as integers.
//!
//! **The law.** A fine table V and a coarse one U hold the weights. V(0) = 2⁶³ and V(s+1) = ⌈V(s)·R/2⁶⁴⌉ for
//! s < J, where R = ⌈2⁶⁴·exp(-ε)⌉, taken up by what the exponential may be off. U(0) = 2⁶³ and
//! U(i+1) = ⌈U(i)·V(J)/2⁶³⌉ for i < I. With T = U(I)/2⁶³ the weight of an offset z is W(|z|), where
//! W((o·I + i)·J + s) = Tᵒ·U(i)·V(s). Offsets are unbounded. An output is the input plus an offset, clamped to a
//! range. Where one table is short enough, I = 1: then W(o·J + s) = Tᵒ·V(s)·2⁶³ and T = V(J)/2⁶³.
//!
//! **Theorem.** For inputs i and j of the range and every output y, Pr\[y|i\] ≤ exp(ε·|i-j|)·Pr\[y|j\],
//! for the integers that are drawn, not only for real numbers near them.
//!
//! *Proof.* Let r = R/2⁶⁴, so r ≥ exp(-ε). (1) Neighbouring weights have r·W(m) ≤ W(m+1) ≤ W(m). Within V,
//! rounding up gives the first inequality; it gives the second one too, as r·V ≤ V and V is whole. From the end of V
//! to its next repetition the weights are U(i)·V(J-1) and U(i+1)·V(0) ≥ U(i)·V(J) ≥ r·U(i)·V(J-1). This is also the
//! step from the end of U to its repetition, as T·U(0) = U(I). Where I = 1 this step is equal to the one from
//! V(J-1) to V(J). Otherwise rounding up adds at most 2⁶³ to U(i)·V(J), and that is less than
//! U(i)·(V(J-1) - V(J)): U(i) > 2³³, V(J-1) > 2⁶² and 1 - r > 2⁻²⁰ there. [`certify`](Geometric::certify) computes
//! both inequalities for every pair of neighbours. (2) The sum of all weights does not depend on the input, as
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
//! **The draw.** One 64-bit number decides the sign and, by its lower 63 bits against U(I), whether the
//! tables are left: T exactly. `Law::sample_short` draws i and s exactly. A zero with a negative sign is drawn again,
//! so that 0 is counted once.

use rand::Rng;

use crate::law::Law;
use crate::support::arithmetic::exp_minus;
use crate::support::error::{Error, Result};

/// log₂ of the largest weight.
const LOG2_LARGEST: u32 = 63;
/// The most weights that a single table holds: it stays in a core's own cache. Longer ones are two of about
/// the root of the length.
const MAX_WEIGHTS: usize = 1 << 15;
/// The tables reach to exp(-REACH).
const REACH: f64 = 20.0;
/// Beyond this exponent ratios become no smaller, which costs no privacy.
const STEEPEST: f64 = 42.0;

/// The two-sided geometric law of one ε per step.
#[derive(Debug)]
pub struct Geometric {
    epsilon: f64,
    /// R: the ratio of neighbouring weights is at least R/2⁶⁴.
    ratio: u64,
    /// V(0) … V(J-1), and V(J).
    fine: Table,
    /// U(0) … U(I-1), and U(I).
    coarse: Table,
}

/// Weights that fall by about one ratio, from 2⁶³ on.
#[derive(Debug)]
struct Table {
    law: Law,
    /// The weight behind the last.
    next: u64,
}

impl Table {
    /// Of so many weights, each the one before it times ratio/2^`shift`, rounded up.
    fn falling(length: usize, ratio: u64, shift: u32) -> Self {
        let mut next = 1u64 << LOG2_LARGEST;
        let weights = (0..length).map(|_| {
            let this = next;
            next = (u128::from(this) * u128::from(ratio)).div_ceil(1 << shift) as u64;
            u128::from(this)
        });
        let law = Law::of_weights(weights);
        Table { law, next }
    }

    /// All weights, the one behind the last too.
    fn weights(&self) -> Vec<u64> {
        let weights = self.law.weights().map(|weight| weight as u64);
        weights.chain([self.next]).collect()
    }
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
        let length = ((REACH / epsilon).ceil() as usize).max(1);
        let fine = match length <= MAX_WEIGHTS {
            true => length,
            false => length.isqrt() + 1,
        };
        let coarse = length.div_ceil(fine);
        let fine = Table::falling(fine, ratio, 64);
        let coarse = Table::falling(coarse, fine.next, LOG2_LARGEST);
        Ok(Geometric {
            epsilon,
            ratio,
            fine,
            coarse,
        })
    }

    /// ε per step.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The integers of the law: R, V(0) … V(J), U(0) … U(I).
    pub fn integers(&self) -> (u64, Vec<u64>, Vec<u64>) {
        (self.ratio, self.fine.weights(), self.coarse.weights())
    }

    /// The largest log-ratio of a step, computed from the integers that are drawn.
    ///
    /// # Errors
    /// [`Error::Parameter`] where neighbouring weights are not in the ratio that the proof needs.
    pub fn certify(&self) -> Result<f64> {
        let uneven = || Error::parameter("law", "one that falls evenly", "another");
        let (ratio, fine, coarse) = self.integers();
        let mut worst = 0f64;
        for pair in fine.windows(2) {
            let (near, far) = (pair[0], pair[1]);
            let kept = u128::from(near) * u128::from(ratio) <= u128::from(far) << 64;
            if !kept || far > near {
                return Err(uneven());
            }
            worst = worst.max(-(far as f64 / near as f64).ln());
        }
        // From the end of the fine table to its next repetition.
        let [.., end, next] = fine[..] else {
            return Err(uneven());
        };
        for pair in coarse.windows(2) {
            let (near, far) = (u128::from(pair[0]), u128::from(pair[1]));
            let (before, behind) = (near * u128::from(end), far << LOG2_LARGEST);
            if near * u128::from(next) > behind || behind > before {
                return Err(uneven());
            }
            worst = worst.max(-(behind as f64 / before as f64).ln());
        }
        Ok(worst)
    }

    /// An offset, exactly by its weight.
    #[inline]
    pub(crate) fn offset(&self, rng: &mut impl Rng) -> i64 {
        const BELOW: u64 = (1 << LOG2_LARGEST) - 1;
        let (fine, coarse) = (&self.fine.law, &self.coarse.law);
        loop {
            let bits = rng.next_u64();
            let (negative, mut rest) = (bits > BELOW, bits & BELOW);
            let mut far = 0i64;
            while rest < self.coarse.next {
                far = far.saturating_add(coarse.len() as i64);
                rest = rng.next_u64() & BELOW;
            }
            if coarse.len() > 1 {
                far = far.saturating_add(i64::from(coarse.sample_short(rng)));
            }
            let size = far.saturating_mul(fine.len() as i64);
            let size = size.saturating_add(i64::from(fine.sample_short(rng)));
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
        let largest = (1u64 << LOG2_LARGEST) as f64;
        let (fine, coarse) = (&self.fine.law, &self.coarse.law);
        let (length, of_table) = (fine.len(), fine.total() as f64);
        let repeated = self.coarse.next as f64 / largest;
        // The sum over all offsets of one sign, including zero.
        let side = coarse.total() as f64 / largest * of_table / (1.0 - repeated);
        let all = 2.0 * side - largest;
        let (mut weights, mut tails) = (Vec::with_capacity(far), Vec::with_capacity(far));
        // Tᵒ; U(i), and the sums up to it and of V up to s.
        let (mut scale, mut of_coarse) = (1.0, 0u128);
        for (at, size) in (0..far).step_by(length).enumerate() {
            let at = at % coarse.len();
            if at == 0 && size > 0 {
                (scale, of_coarse) = (scale * repeated, 0);
            }
            let here = coarse.weight(at as u32);
            of_coarse += here;
            let here = scale * here as f64 / largest;
            let later = scale
                * ((coarse.total() - of_coarse) as f64 / largest * of_table + repeated * side);
            let mut of_fine = 0u128;
            for s in 0..length.min(far - size) {
                let weight = fine.weight(s as u32);
                tails.push((here * (fine.total() - of_fine) as f64 + later) / all);
                weights.push(here * weight as f64 / all);
                of_fine += weight;
            }
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
            let (ratio, fine, coarse) = law.integers();
            assert!(-(ratio as f64 / 2f64.powi(64)).ln() <= epsilon);
            for table in [&fine, &coarse] {
                assert!(table[0] == 1 << 63 && table[table.len() - 1] > 0);
            }
            // Two tables reach as far as a long one would.
            let reach = (fine.len() - 1) * (coarse.len() - 1);
            assert!(reach as f64 * epsilon >= REACH && fine.len() <= MAX_WEIGHTS + 1);
            assert_eq!(coarse.len() > 2, REACH / epsilon > MAX_WEIGHTS as f64);
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
