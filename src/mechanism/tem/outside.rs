//! Tries outside a list: outputs drawn uniformly, accepted in proportion to their weight.
//!
//! An output y outside is accepted if ⌊u·b⌋ < W(d(w,y)), u uniform in [0, 1), b the envelope. Of u
//! the first 64 bits are drawn, which give a bound of the distances that can be accepted; most y are
//! seen to be beyond it without their distance. The other bits are drawn where the distance and the first ones
//! do not decide: that hangs on no screen, and so a seed's draws are the same on every machine.

use std::cmp::Ordering;

use rand::Rng;

use super::terms::Terms;
use crate::law::{LOG2_LARGEST, weight};
use crate::metric::{Limits, Seen};
use crate::neighbors::Grid;
use crate::random::{continued, uniform_below, uniform_below_u128};

/// Tries that are made together: what their words need is fetched from memory at the same time. More
/// would often be made in vain, after one that is accepted.
const TOGETHER: usize = 4;

/// Outputs outside a list, of like weights q.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class {
    /// The heaviest that one of them can be.
    pub(super) envelope: u128,
    /// Where they start in the cover's order, and how many there are, those of the list included.
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Class {
    /// The sum of as many envelopes as there are outputs.
    pub(super) fn sum(&self) -> u128 {
        self.envelope * u128::from(self.count)
    }
}

/// What tells of outputs how far they are.
pub(super) trait Distances {
    /// What can be said sooner than by the distances.
    fn seen(&self, outputs: &[u32], limits: &Limits) -> Seen;
    /// The distances of some outputs.
    fn distances(&self, outputs: &[u32], out: &mut [f64]);
}

/// All outputs that are not in a list. What every try looks at comes first.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Outside {
    /// Of the only class, about -ln(envelope·2⁻¹⁰⁰), the first output and their number; 0 of them where there
    /// are several classes.
    pub(super) exponent: f64,
    pub(super) first: u32,
    pub(super) count: u32,
    /// Every output farther than this is outside.
    pub(super) least: f64,
    /// Every output whose entry is below this is in the list, and no other is.
    end: u64,
    /// Low and high half, so that all of this is aligned to 8 bytes.
    envelope: [u64; 2],
    /// Several classes: those of a cover's weights.
    classes: Vec<Class>,
}

/// A try that has landed outside.
#[derive(Clone, Copy, Default)]
pub(super) struct Try {
    /// Its output's envelope, where there are several classes.
    pub(super) envelope: u128,
    /// The first bits of u.
    pub(super) x: u64,
    pub(super) output: u32,
    /// What a cover adds to its exponent.
    pub(super) penalty: f64,
}

/// A sum of weights S inside a list, and of the envelopes beside.
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
            // Long division. The total of 2²⁷ words of the largest weight is a little above 2¹²⁷, so
            // twice the remainder may carry.
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

    /// Whether u·total < S, for a uniform u in [0, 1): it is drawn to 64 bits, and where those do not decide, to all
    /// it takes.
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

    /// The same of a u whose first 64 bits are those of the share.
    #[cold]
    pub(super) fn continues(&self, rng: &mut impl Rng) -> bool {
        let mut more = || uniform_below_u128(rng, self.total);
        self.inside == self.total || continued(self.first, self.total, more()) < self.inside
    }
}

impl Outside {
    /// Of a list that ends at `end`; no classes where all outputs are in the list.
    pub(super) fn fill(&mut self, end: u64, grid: Grid, classes: impl Iterator<Item = Class>) {
        self.end = end;
        self.least = grid.distance(end) + grid.step();
        self.classes.clear();
        self.classes.extend(classes);
        (self.exponent, self.first, self.count, self.envelope) = (0.0, 0, 0, [0; 2]);
        if let [only] = self.classes[..] {
            self.classes.clear();
            (self.first, self.count) = (only.first, only.count);
            self.exponent = exponent(only.envelope);
            self.envelope = [only.envelope as u64, (only.envelope >> 64) as u64];
        }
    }

    /// The envelopes' sum.
    pub(super) fn sum(&self) -> u128 {
        let several: u128 = self.classes.iter().map(Class::sum).sum();
        several + self.envelope() * u128::from(self.count)
    }

    /// The only class's envelope; 0 without one.
    pub(super) fn envelope(&self) -> u128 {
        let [low, high] = self.envelope;
        u128::from(high) << 64 | u128::from(low)
    }

    /// Whether all outputs have one envelope.
    pub(super) fn is_one_class(&self) -> bool {
        self.count > 0
    }

    /// The same for long use.
    pub(super) fn shrunk(&mut self) -> Self {
        let mut kept = std::mem::take(self);
        kept.classes.shrink_to_fit();
        kept
    }

    /// Bytes beside itself.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.classes)
    }

    /// The class that a part of the envelopes' sum falls on.
    fn class(&self, mut rest: u128) -> Class {
        let mut landed = self.classes[0];
        for &class in &self.classes {
            landed = class;
            if rest < class.sum() {
                break;
            }
            rest -= class.sum();
        }
        landed
    }

    /// One output, or `None` after `most` vain tries, and how many were made. `land` draws where a try
    /// falls: on an output of the list, which is released, or outside.
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
        // Whoever draws from the row after vain tries may not have looked where the next would fall.
        while made < most {
            let inside = land(rng);
            if inside.is_some() {
                return (inside, made);
            }
            // Up to the first try that falls into the list: it is the draw if none before it is accepted.
            let (mut tries, mut outputs) = ([Try::default(); TOGETHER], [0; TOGETHER]);
            let (mut near, mut far) = ([0.0; TOGETHER], [0.0; TOGETHER]);
            let together = TOGETHER.min((most - made) as usize);
            let (mut count, mut inside) = (0, None);
            while inside.is_none() && count < together {
                let (tried, exponent) = self.fall(terms, rng);
                (near[count], far[count]) = limits(terms, tried.x, exponent, tried.penalty);
                (tries[count], outputs[count]) = (tried, tried.output);
                count += 1;
                if count < together {
                    inside = land(rng);
                }
            }
            let (near, far, least) = (&near[..count], &far[..count], self.least);
            let seen = distances.seen(&outputs[..count], &Limits { far, near, least });
            let (mut left, certain) = (
                !seen.beyond & ((1 << count) - 1),
                seen.within & seen.outside,
            );
            while left != 0 {
                let i = left.trailing_zeros() as usize;
                left &= left - 1;
                let mut apart = [0.0];
                if certain >> i & 1 == 0 {
                    distances.distances(&outputs[i..=i], &mut apart);
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

    /// A try outside, and -ln of its envelope.
    #[inline(always)]
    fn fall(&self, terms: Terms, rng: &mut impl Rng) -> (Try, f64) {
        let (mut exponent, mut envelope) = (self.exponent, 0);
        let (mut first, mut count) = (self.first, self.count);
        if count == 0 {
            let class = self.class(uniform_below_u128(rng, self.sum()));
            (exponent, envelope) = (self::exponent(class.envelope), class.envelope);
            (first, count) = (class.first, class.count);
        }
        let mut output = first + uniform_below(rng, count);
        let mut penalty = 0.0;
        if let Some(cover) = terms.cover {
            let order = cover.classes().map(|(order, _)| order);
            output = order.map_or(output, |order| order[output as usize]);
            penalty = cover.penalties().map_or(0.0, |each| each[output as usize]);
        }
        let tried = Try {
            envelope,
            x: rng.next_u64(),
            output,
            penalty,
        };
        (tried, exponent)
    }

    /// Whether ⌊u·b⌋ is below the weight of the output, which is `apart` away, and it is not in the list.
    #[inline]
    pub(super) fn accepts(
        &self,
        tried: &Try,
        apart: f64,
        terms: Terms,
        rng: &mut impl Rng,
    ) -> bool {
        let envelope = match self.count {
            0 => tried.envelope,
            _ => self.envelope(),
        };
        let entry = terms.grid.entry(apart, tried.output);
        if entry < self.end {
            return false;
        }
        let weight = weight(terms.exponent(entry, tried.output));
        // Whatever bits follow x, ⌊u·b⌋ lies between these two.
        if continued(tried.x, envelope, envelope - 1) < weight {
            return true;
        }
        let undecided = continued(tried.x, envelope, 0) < weight;
        undecided && continued(tried.x, envelope, uniform_below_u128(rng, envelope)) < weight
    }
}

/// Up to which distance an output is certainly accepted whose u begins with the bits x, and from which on it is
/// certainly not.
#[inline(always)]
pub(super) fn limits(terms: Terms, x: u64, exponent: f64, penalty: f64) -> (f64, f64) {
    let (near, far) = terms.limits(exponent + minus_ln(x), penalty);
    // Few bits say too little of where u lies.
    (if x < 1 << 32 { -1.0 } else { near }, far)
}

/// -ln(weight·2⁻¹⁰⁰), and a little.
fn exponent(weight: u128) -> f64 {
    (f64::from(LOG2_LARGEST) - (weight as f64).log2()) * std::f64::consts::LN_2 + 1e-7
}

/// -ln(x·2⁻⁶⁴), to 10⁻⁷; infinity for 0.
#[inline(always)]
fn minus_ln(x: u64) -> f64 {
    // x = m·2ᵉ with m from √½ to √2.
    const SQRT_HALF: u64 = 0x3FE6_A09E_667F_3BCD;
    let bits = (x as f64).to_bits();
    let e = bits.wrapping_sub(SQRT_HALF) >> 52;
    let m = f64::from_bits(bits.wrapping_sub(e << 52));
    // ln m = 2·artanh s, whose series is cut where at most 2·s⁹/(9(1 - s²)) < 3·10⁻⁸ is left.
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let ln = 2.0 * s * (1.0 + s2 * (1.0 / 3.0 + s2 * (1.0 / 5.0 + s2 * (1.0 / 7.0))));
    let minus_ln = (64.0 - e as f64) * std::f64::consts::LN_2 - ln;
    // Looked at last, for those that are computed side by side.
    if x == 0 { f64::INFINITY } else { minus_ln }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::law::{FLOOR_EXPONENT, LOG2_FLOOR};
    use crate::neighbors::Grid;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn logarithms_are_right(bits in 0u32..64, low: u64) {
            let x = (1 << bits) | (low & ((1 << bits) - 1));
            let exact = (64.0 - (x as f64).log2()) * std::f64::consts::LN_2;
            prop_assert!((minus_ln(x) - exact).abs() < 1e-7, "{x}: {} {exact}", minus_ln(x));
        }

        /// Whatever further bits u has, an output beyond the limit is not accepted.
        #[test]
        fn an_output_beyond_the_limit_is_vain(
            x in prop_oneof![any::<u64>(), 0u64..100, (0u32..64).prop_map(|s| u64::MAX >> s)],
            log in 0f64..1.0, eta in prop_oneof![1e-3..1.0f64, 1.0..60.0f64],
            gamma in prop_oneof![Just(f64::INFINITY), 0.0..10.0f64], beyond in 0.0..1e-6f64
        ) {
            let grid = Grid::new(100, 40.0);
            let terms = Terms { eta, per_eta: eta.recip(), gamma, grid, cover: None, outputs: 100 };
            let envelope = weight(log * (FLOOR_EXPONENT + 1.0)).max(1 << LOG2_FLOOR);
            let (near, limit) = terms.limits(exponent(envelope) + minus_ln(x), 0.0);
            if x >= 1 << 32 && near >= 0.0 {
                let entry = grid.entry(near.min(40.0), 3);
                let most = continued(x, envelope, envelope - 1);
                prop_assert!(most < weight(terms.exponent(entry, 3)));
            }
            if limit < 40.0 {
                let entry = grid.entry(limit + beyond * limit, 3);
                let least = continued(x, envelope, 0);
                prop_assert!(least >= weight(terms.exponent(entry, 3)));
                // And it is tight.
                let below = grid.entry((limit - 3e-6 / eta - 2.0 * grid.step()).max(0.0), 3);
                let most = continued(x, envelope, envelope - 1);
                prop_assert!(
                    most <= weight(terms.exponent(below, 3)) + (most >> 60) + (envelope >> 20),
                    "{limit}"
                );
            }
        }
    }
}
