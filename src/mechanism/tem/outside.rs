//! Tries outside a list: draws outputs by the base measure, uniformly without one, and accepts each
//! in proportion to the weight F of its distance.
//!
//! An output y outside the list is accepted if ⌊u·b⌋ < F(d(w,y)), with u uniform in [0, 1) and b
//! the envelope. Further bits of u are drawn only if the first 64 leave the exact distance undecided.

use std::cmp::Ordering;

use rand::Rng;

use super::parameters::Parameters;
use crate::support::random::{continued, uniform_below_u128};

/// Tries made together, so that the data of their words is fetched from memory at the same time.
/// With more, many would be wasted after an accepted one.
const TRIES_PER_BATCH: usize = 4;

/// All outputs that are not in a list. Fields that every try reads come first.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct OutsideList {
    /// The sum of Q over all outputs, those in the list included; 0 if the list holds all.
    pub(super) mass: u64,
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
pub(super) struct ListShare {
    /// ⌊2⁶⁴·S/total⌋.
    pub(super) first: u64,
    inside: u128,
    total: u128,
}

impl ListShare {
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
        ListShare {
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

impl OutsideList {
    /// Fills in the outputs outside a list that ends at `end`, whose F are at most `envelope`;
    /// `None` if the list holds all outputs.
    pub(super) fn fill(&mut self, end: u64, envelope: Option<u128>, parameters: Parameters) {
        *self = OutsideList {
            mass: envelope.map_or(0, |_| parameters.mass),
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
        parameters: Parameters,
        rng: &mut R,
        most: u32,
        mut land: impl FnMut(&mut R) -> Option<u32>,
        distances: &impl Fn(&[u32], &mut [f64]),
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
            let batch = TRIES_PER_BATCH.min((most - made) as usize);
            let (mut count, mut inside) = (0, None);
            while inside.is_none() && count < batch {
                let output = parameters.propose(rng);
                let x = rng.next_u64();
                (tries[count], outputs[count]) = (Try { x, output }, output);
                count += 1;
                if count < batch {
                    inside = land(rng);
                }
            }
            let mut apart = [0.0; TRIES_PER_BATCH];
            distances(&outputs[..count], &mut apart[..count]);
            for (tried, apart) in tries[..count].iter().zip(apart) {
                made += 1;
                if self.accepts(tried, apart, parameters, rng) {
                    return (Some(tried.output), made);
                }
            }
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
        parameters: Parameters,
        rng: &mut impl Rng,
    ) -> bool {
        let envelope = self.envelope();
        let entry = parameters.grid.entry(apart, tried.output);
        if entry < self.end {
            return false;
        }
        let weight = parameters.factor(parameters.grid.distance(entry));
        // Whatever bits follow x, ⌊u·b⌋ lies between these two.
        if continued(tried.x, envelope, envelope - 1) < weight {
            return true;
        }
        let undecided = continued(tried.x, envelope, 0) < weight;
        undecided && continued(tried.x, envelope, uniform_below_u128(rng, envelope)) < weight
    }
}
