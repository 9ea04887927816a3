//! Tries outside a list: draws outputs uniformly and accepts each in proportion to its weight.
//!
//! An output y outside the list is accepted if ⌊u·b⌋ < W(d(w,y)), with u uniform in [0, 1) and b
//! the envelope. The first 64 bits of u give a bound on the distances that can be accepted. For
//! most y, a lower bound on the distance exceeds it, and the exact distance is not needed. Further
//! bits are drawn only if the exact distance leaves the first 64 undecided, whatever the bounds say.

use std::cmp::Ordering;

use rand::Rng;

use super::terms::Terms;
use crate::distance::metric::{Limits, Proven};
use crate::distance::neighbors::Grid;
use crate::law::{LOG2_LARGEST, weight};
use crate::support::random::{continued, uniform_below, uniform_below_u128};

/// Tries made together, so that the data of their words is fetched from memory at the same time.
/// With more, many would be wasted after an accepted one.
const TRIES_PER_BATCH: usize = 4;

/// A class of outputs outside a list, with similar weights q.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class {
    /// The largest weight that an output of the class can have.
    pub(super) envelope: u128,
    /// The first rank of the class in the cover's order, and its number of ranks, including those
    /// in the list.
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Class {
    /// The envelope times the number of outputs.
    pub(super) fn sum(&self) -> u128 {
        self.envelope * u128::from(self.count)
    }
}

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
    /// For a single class: about -ln(envelope·2⁻¹⁰⁰), its first output and its number of outputs.
    /// The number is 0 if there are several classes.
    pub(super) exponent: f64,
    pub(super) first: u32,
    pub(super) count: u32,
    /// Every output farther than this is outside the list.
    pub(super) least: f64,
    /// Every output whose entry is below this is in the list, and no other output is.
    end: u64,
    /// Low and high half, so that the struct is aligned to 8 bytes.
    envelope: [u64; 2],
    /// The classes of a cover's weights, if there are several.
    classes: Vec<Class>,
}

/// A try that selected an output outside the list.
#[derive(Clone, Copy, Default)]
pub(super) struct Try {
    /// The envelope of its output's class, if there are several classes.
    pub(super) envelope: u128,
    /// The first 64 bits of u.
    pub(super) x: u64,
    pub(super) output: u32,
    /// The penalty that the cover adds to its exponent.
    pub(super) penalty: f64,
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
    /// Fills in the outputs outside a list that ends at `end`; no classes if the list holds all
    /// outputs.
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

    /// The sum of all envelopes.
    pub(super) fn sum(&self) -> u128 {
        let several: u128 = self.classes.iter().map(Class::sum).sum();
        several + self.envelope() * u128::from(self.count)
    }

    /// The envelope of a single class; 0 without a class.
    pub(super) fn envelope(&self) -> u128 {
        let [low, high] = self.envelope;
        u128::from(high) << 64 | u128::from(low)
    }

    /// Whether all outputs share one envelope.
    pub(super) fn is_one_class(&self) -> bool {
        self.count > 0
    }

    /// Moves the contents out, without spare capacity, for long use.
    pub(super) fn shrunk(&mut self) -> Self {
        let mut kept = std::mem::take(self);
        kept.classes.shrink_to_fit();
        kept
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.classes)
    }

    /// The class that a number below the envelopes' sum falls into.
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
                let (tried, exponent) = self.fall(terms, rng);
                (near[count], far[count]) = limits(terms, tried.x, exponent, tried.penalty);
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

    /// Draws a try outside the list; also returns -ln of its envelope.
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

    /// Whether the output at distance `apart` is outside the list and ⌊u·b⌋ is below its weight.
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

/// Returns two distances for a u that begins with the bits x. Up to the first, an output is
/// certainly accepted; beyond the second, it certainly is not.
#[inline(always)]
pub(super) fn limits(terms: Terms, x: u64, exponent: f64, penalty: f64) -> (f64, f64) {
    let (near, far) = terms.limits(exponent + minus_ln(x), penalty);
    // Few significant bits say too little about u.
    (if x < 1 << 32 { -1.0 } else { near }, far)
}

/// -ln(weight·2⁻¹⁰⁰), slightly rounded up.
pub(super) fn exponent(weight: u128) -> f64 {
    (f64::from(LOG2_LARGEST) - (weight as f64).log2()) * std::f64::consts::LN_2 + 1e-7
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
    use crate::law::{FLOOR_EXPONENT, LOG2_FLOOR};

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
                // The limit is also tight.
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
