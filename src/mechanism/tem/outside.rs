//! Tries outside a list: draws outputs by the base measure, uniformly without one, and accepts each
//! in proportion to the weight F of its distance.
//!
//! An output y outside the list is accepted if ⌊u·b⌋ < F(d(w,y)), with u uniform in [0, 1) and b
//! the envelope. The first 64 bits of u give a bound on the distances that can be accepted. For
//! most y, a lower bound on the distance exceeds it, and the exact distance is not needed. Further
//! bits are drawn only if the exact distance leaves the first 64 undecided, whatever the bounds say.

use std::cmp::Ordering;

use rand::Rng;

use super::terms::Terms;
use crate::distance::metric::{Limits, Proven};
use crate::support::random::{continued, uniform_below_u128};

/// Tries made together, so that the data of their words is fetched from memory at the same time.
/// With more, many would be wasted after an accepted one.
const TRIES_PER_BATCH: usize = 4;

/// The tries of a batch whose distances matter: those outside the list, up to the one with which
/// enough outputs are certain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needed {
    /// Bit i is set if try i falls into the list, which makes its output certain.
    pub(super) inside: u64,
    /// The number of outputs to draw.
    pub(super) left: usize,
}

/// Distances from a word to outputs.
pub(super) trait Distances {
    /// Compares bounds on the distances with limits; much faster than exact distances. It may say
    /// nothing about outputs that `needed` leaves out.
    fn compare_bounds(&self, outputs: &[u32], limits: &Limits, needed: Needed) -> Proven;
    /// Writes the exact distances of some outputs; of those beyond `far` it may write any number
    /// beyond `far`.
    fn distances(&self, outputs: &[u32], far: &[f64], out: &mut [f64]);
}

/// All outputs that are not in a list. Fields that every try reads come first.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Outside {
    /// About -ln of the envelope, relative to the largest F.
    pub(super) exponent: f64,
    /// The sum of Q over all outputs, those in the list included; 0 if the list holds all.
    pub(super) mass: u64,
    /// Every output farther than this is outside the list.
    pub(super) least: f64,
    /// Every output whose entry is below this is in the list, and no other output is.
    end: u64,
    /// The largest F that an output outside can have: low and high half, so that the struct is
    /// aligned to 8 bytes.
    envelope: [u64; 2],
}

/// A try that selected an output outside the list.
#[derive(Clone, Copy, Default)]
pub(super) struct Try {
    /// The first 64 bits of u.
    pub(super) x: u64,
    pub(super) output: u32,
}

/// The share S/total of the list: S sums the list's weights, and the total adds the envelopes
/// outside.
#[derive(Debug)]
pub(super) struct Share {
    /// ⌊2⁶⁴·S/total⌋.
    pub(super) first: u64,
    inside: u128,
    total: u128,
}

impl Share {
    pub(super) fn new(inside: u128, total: u128) -> Self {
        let mut share = (0, inside);
        for _ in 0..64 {
            // Long division. The total of 2²⁷ words of the largest weight is slightly above 2¹²⁷,
            // so twice the remainder may carry.
            let carry = share.1 >> 127 == 1;
            share = (share.0 << 1, share.1 << 1);
            if carry || share.1 >= total {
                share = (share.0 | 1, share.1.wrapping_sub(total));
            }
        }
        let first = share.0;
        Share {
            first,
            inside,
            total,
        }
    }

    /// Whether u·total < S for a uniform u in [0, 1). It draws 64 bits of u, and further bits if
    /// these do not decide.
    #[inline]
    pub(super) fn is_inside(&self, rng: &mut impl Rng) -> bool {
        let x = rng.next_u64();
        match x.cmp(&self.first) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => self.continues(rng),
        }
    }

    /// S and the total.
    #[cfg(test)]
    pub(super) fn sums(&self) -> (u128, u128) {
        (self.inside, self.total)
    }

    /// Decides the same for a u whose first 64 bits equal those of the share, by further bits.
    #[cold]
    pub(super) fn continues(&self, rng: &mut impl Rng) -> bool {
        let mut more = || uniform_below_u128(rng, self.total);
        self.inside == self.total || continued(self.first, self.total, more()) < self.inside
    }
}

impl Outside {
    /// Fills in the outputs outside a list that ends at `end`, whose F are at most `envelope`;
    /// `None` if the list holds all outputs.
    pub(super) fn fill(&mut self, end: u64, envelope: Option<u128>, terms: Terms) {
        *self = Outside {
            exponent: envelope.map_or(0.0, |envelope| terms.exponent(envelope)),
            mass: envelope.map_or(0, |_| terms.mass),
            least: terms.grid.distance(end) + terms.grid.step(),
            end,
            envelope: envelope.map_or([0; 2], |b| [b as u64, (b >> 64) as u64]),
        };
    }

    /// The envelope times the mass.
    pub(super) fn sum(&self) -> u128 {
        self.envelope() * u128::from(self.mass)
    }

    /// The envelope; 0 if there are no outputs outside.
    pub(super) fn envelope(&self) -> u128 {
        let [low, high] = self.envelope;
        u128::from(high) << 64 | u128::from(low)
    }

    /// Draws one output, with the number of tries made; `None` after `most` failed tries. `land`
    /// decides where a try falls: on an output of the list, which is released, or outside.
    #[inline]
    pub(super) fn sample<R: Rng>(
        &self,
        terms: Terms,
        rng: &mut R,
        most: u32,
        mut land: impl FnMut(&mut R) -> Option<u32>,
        distances: &impl Distances,
    ) -> (Option<u32>, u32) {
        let mut made = 0;
        // A caller that switches to the row after failed tries must not have drawn where the next
        // try would fall.
        while made < most {
            let inside = land(rng);
            if inside.is_some() {
                return (inside, made);
            }
            // Make tries up to the first that falls into the list: its output is the draw if none
            // before it is accepted.
            let (mut tries, mut outputs) =
                ([Try::default(); TRIES_PER_BATCH], [0; TRIES_PER_BATCH]);
            let (mut near, mut far) = ([0.0; TRIES_PER_BATCH], [0.0; TRIES_PER_BATCH]);
            let batch = TRIES_PER_BATCH.min((most - made) as usize);
            let (mut count, mut inside) = (0, None);
            while inside.is_none() && count < batch {
                let output = terms.propose(rng);
                let tried = Try {
                    x: rng.next_u64(),
                    output,
                };
                (near[count], far[count]) = limits(terms, tried.x, self.exponent);
                (tries[count], outputs[count]) = (tried, tried.output);
                count += 1;
                if count < batch {
                    inside = land(rng);
                }
            }
            let (near, far, least) = (&near[..count], &far[..count], self.least);
            let limits = Limits { far, near, least };
            let needed = Needed { inside: 0, left: 1 };
            let proven = distances.compare_bounds(&outputs[..count], &limits, needed);
            let (mut left, certain) = (
                !proven.beyond & ((1 << count) - 1),
                proven.within & proven.outside,
            );
            while left != 0 {
                let i = left.trailing_zeros() as usize;
                left &= left - 1;
                let mut apart = [0.0];
                if certain >> i & 1 == 0 {
                    distances.distances(&outputs[i..=i], &limits.far[i..=i], &mut apart);
                }
                if certain >> i & 1 == 1 || self.accepts(&tries[i], apart[0], terms, rng) {
                    return (Some(outputs[i]), made + i as u32 + 1);
                }
            }
            made += count as u32;
            if inside.is_some() {
                return (inside, made);
            }
        }
        (None, made)
    }

    /// Whether the output at distance `apart` is outside the list and ⌊u·b⌋ is below its weight.
    #[inline]
    pub(super) fn accepts(
        &self,
        tried: &Try,
        apart: f64,
        terms: Terms,
        rng: &mut impl Rng,
    ) -> bool {
        let envelope = self.envelope();
        let entry = terms.grid.entry(apart, tried.output);
        if entry < self.end {
            return false;
        }
        let weight = terms.factor(terms.grid.distance(entry));
        // Whatever bits follow x, ⌊u·b⌋ lies between these two.
        if continued(tried.x, envelope, envelope - 1) < weight {
            return true;
        }
        let undecided = continued(tried.x, envelope, 0) < weight;
        undecided && continued(tried.x, envelope, uniform_below_u128(rng, envelope)) < weight
    }
}

/// Returns two distances for a u that begins with the bits x. Up to the first, an output is
/// certainly accepted; beyond the second, it certainly is not.
#[inline(always)]
pub(super) fn limits(terms: Terms, x: u64, exponent: f64) -> (f64, f64) {
    let (near, far) = terms.limits(exponent + minus_ln(x));
    // Few significant bits say too little about u.
    (if x < 1 << 32 { -1.0 } else { near }, far)
}

/// -ln(x·2⁻⁶⁴), with an error below 10⁻⁷; infinity for 0.
#[inline(always)]
fn minus_ln(x: u64) -> f64 {
    // x = m·2ᵉ with m from √½ to √2.
    const SQRT_HALF: u64 = 0x3FE6_A09E_667F_3BCD;
    let bits = (x as f64).to_bits();
    let e = bits.wrapping_sub(SQRT_HALF) >> 52;
    let m = f64::from_bits(bits.wrapping_sub(e << 52));
    // ln m = 2·artanh s. The series is cut where the remainder is at most 2·s⁹/(9(1 - s²)) <
    // 3·10⁻⁸.
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let ln = 2.0 * s * (1.0 + s2 * (1.0 / 3.0 + s2 * (1.0 / 5.0 + s2 * (1.0 / 7.0))));
    let minus_ln = (64.0 - e as f64) * std::f64::consts::LN_2 - ln;
    // Tested last, so that several values are computed side by side.
    if x == 0 { f64::INFINITY } else { minus_ln }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::distance::neighbors::Grid;
    use crate::law::{FLOOR_EXPONENT, LOG2_FLOOR, weight};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn logarithms_are_right(bits in 0u32..64, low: u64) {
            let x = (1 << bits) | (low & ((1 << bits) - 1));
            let exact = (64.0 - (x as f64).log2()) * std::f64::consts::LN_2;
            prop_assert!((minus_ln(x) - exact).abs() < 1e-7, "{x}: {} {exact}", minus_ln(x));
        }

        /// An output beyond the limit is never accepted, whatever further bits u has.
        #[test]
        fn an_output_beyond_the_limit_is_vain(
            x in prop_oneof![any::<u64>(), 0u64..100, (0u32..64).prop_map(|s| u64::MAX >> s)],
            log in 0f64..1.0, eta in prop_oneof![1e-3..1.0f64, 1.0..60.0f64],
            gamma in prop_oneof![Just(f64::INFINITY), 0.0..10.0f64], beyond in 0.0..1e-6f64
        ) {
            let grid = Grid::new(100, 40.0);
            let terms = Terms { eta, per_eta: eta.recip(), gamma, grid, cover: None, base: None, mass: 100, outputs: 100 };
            let envelope = weight(log * (FLOOR_EXPONENT + 1.0)).max(1 << LOG2_FLOOR);
            let (near, limit) = terms.limits(terms.exponent(envelope) + minus_ln(x));
            if x >= 1 << 32 && near >= 0.0 {
                let entry = grid.entry(near.min(40.0), 3);
                let most = continued(x, envelope, envelope - 1);
                prop_assert!(most < terms.factor(grid.distance(entry)));
            }
            if limit < 40.0 {
                let entry = grid.entry(limit + beyond * limit, 3);
                let least = continued(x, envelope, 0);
                prop_assert!(least >= terms.factor(grid.distance(entry)));
                // The limit is also tight.
                let below = grid.entry((limit - 3e-6 / eta - 2.0 * grid.step()).max(0.0), 3);
                let most = continued(x, envelope, envelope - 1);
                prop_assert!(
                    most <= terms.factor(grid.distance(below)) + (most >> 60) + (envelope >> 20),
                    "{limit}"
                );
            }
        }
    }
}
