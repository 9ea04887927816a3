//! Tries outside a list: draws outputs by the base measure, uniformly without one, and accepts each
//! in proportion to the weight F of its distance.
//!
//! An output y outside the list is accepted if ⌊u·b⌋ < F(d(w,y)), with u uniform in [0, 1) and b
//! the envelope. Further bits of u are drawn only if the first 64 leave the exact distance undecided.
//!
//! Many tries are made at a time. They are independent: each falls into the list, is accepted, or
//! fails, and the next draw of the same word uses the tries that one draw leaves. So they are made
//! side by side and wait for memory together.

use rand::Rng;

use super::parameters::Parameters;
use crate::support::random::{continued, uniform_below_u128};
use crate::support::simd::vectorised;

/// All outputs that are not in a list, and the list's share S/total of the law: S sums the list's
/// weights, and the total adds the envelopes outside. Fields that every try reads come first.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Outside {
    /// The largest F that an output outside can have; 0 if the list holds all outputs.
    envelope: u128,
    /// Every output whose entry is below this is in the list, and no other output is.
    end: u64,
    /// A number u in [0, 1) is below the share if its first 64 bits are below `low`, and above it if
    /// they are above `high`.
    low: u64,
    high: u64,
    inside: u128,
    total: u128,
}

/// `N` tries.
struct Tries<const N: usize> {
    /// Random bits. `land` decides whether a try falls into the list, and then where; otherwise `x`
    /// holds the first bits of u.
    land: [u64; N],
    x: [u64; N],
    /// Random bits that select the output, and the selected output, still biased.
    index: [u32; N],
    outputs: [u32; N],
    /// The low product bits, which reveal a possible bias.
    low: [u32; N],
    /// Bit i is set if try i falls into the list, and if its first bits do not decide that.
    inside: u64,
    open: u64,
}

impl<const N: usize> Tries<N> {
    fn new(rng: &mut impl Rng) -> Self {
        let (mut land, mut x, mut index) = ([0u64; N], [0u64; N], [0u32; N]);
        rng.fill_bytes(bytemuck::cast_slice_mut(&mut land));
        rng.fill_bytes(bytemuck::cast_slice_mut(&mut x));
        rng.fill_bytes(bytemuck::cast_slice_mut(&mut index));
        Tries {
            land,
            x,
            index,
            outputs: [0; N],
            low: [0; N],
            inside: 0,
            open: 0,
        }
    }

    /// Draws the outputs of some tries by a base measure, or again where 32 bits would not be
    /// uniform.
    #[inline]
    fn propose(&mut self, which: u64, parameters: Parameters, rng: &mut impl Rng) {
        let count = parameters.outputs;
        for i in bits(which) {
            if parameters.base.is_some()
                || (self.low[i] < count && self.low[i] < count.wrapping_neg() % count)
            {
                self.outputs[i] = parameters.propose(rng);
            }
        }
    }

    /// Measures the distances of the selected tries, each at its index.
    #[inline]
    fn measure(&self, which: u64, distances: &impl Fn(&[u32], &mut [f64])) -> [f64; N] {
        let (mut outputs, mut apart) = ([0; N], [0.0; N]);
        let mut count = 0;
        for i in bits(which) {
            outputs[count] = self.outputs[i];
            count += 1;
        }
        distances(&outputs[..count], &mut apart[..count]);
        let mut placed = [f64::NAN; N];
        for (i, apart) in bits(which).zip(apart) {
            placed[i] = apart;
        }
        placed
    }
}

vectorised! {
    /// Computes where the tries fall.
    fn fall[const N: usize] = fall_portable(tries: &mut Tries<N>, low: u64, high: u64, outputs: u32)
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn fall_portable<const N: usize>(tries: &mut Tries<N>, low: u64, high: u64, outputs: u32) {
    for i in 0..N {
        let product = u64::from(tries.index[i]) * u64::from(outputs);
        tries.outputs[i] = (product >> 32) as u32;
        tries.low[i] = product as u32;
    }
    let (mut inside, mut beyond) = (0, 0);
    for i in 0..N {
        inside |= u64::from(tries.land[i] < low) << i;
        beyond |= u64::from(tries.land[i] > high) << i;
    }
    tries.inside = inside;
    tries.open = !(inside | beyond) & every(N);
}

impl Outside {
    /// The outputs outside a list that ends at `end` and weighs `inside`, whose F are at most
    /// `envelope`; 0 if the list holds all outputs.
    pub(super) fn new(end: u64, inside: u128, envelope: u128, mass: u64) -> Self {
        let total = inside + envelope * u128::from(mass);
        // Three roundings, each by a relative 2⁻⁵³. Conversions saturate.
        const ROOM: f64 = 1.0 / (1u64 << 50) as f64;
        let share = inside as f64 / total as f64 * 2f64.powi(64);
        Outside {
            envelope,
            end,
            low: (share * (1.0 - ROOM)) as u64,
            high: ((share * (1.0 + ROOM)) as u64).saturating_add(1),
            inside,
            total,
        }
    }

    /// The list's share in 2⁻⁶⁴, roughly.
    pub(super) fn share(&self) -> u64 {
        self.low
    }

    /// S, and the total.
    #[cfg(test)]
    pub(super) fn sums(&self) -> (u128, u128) {
        (self.inside, self.total)
    }

    #[cfg(test)]
    pub(super) fn envelope(&self) -> u128 {
        self.envelope
    }

    /// Draws up to `left` outputs in order, with at most `most` failed tries, `N` at a time. Returns
    /// how many are still missing, and the number of tries. `listed` draws an output of the list, by
    /// 64 bits and further ones if needed; `fetch` prefetches what it reads.
    #[inline]
    pub(super) fn sample<const N: usize, R: Rng>(
        &self,
        parameters: Parameters,
        rng: &mut R,
        (mut left, most): (usize, u32),
        (listed, fetch): (impl Fn(u64, &mut R) -> u32, impl Fn(u64)),
        distances: &impl Fn(&[u32], &mut [f64]),
        mut drawn: impl FnMut(u32),
    ) -> (usize, u32) {
        let mut made = 0;
        while left > 0 && made < most {
            let mut tries = Tries::<N>::new(rng);
            fall(&mut tries, self.low, self.high, parameters.outputs);
            for i in bits(tries.open) {
                tries.inside |= u64::from(self.falls_inside(tries.land[i], rng)) << i;
            }
            bits(tries.inside).for_each(|i| fetch(tries.x[i]));
            let fell_outside = !tries.inside & every(N);
            let needed = up_to(tries.inside, left) & every(N);
            tries.propose(needed & fell_outside, parameters, rng);
            let exact = tries.measure(needed & fell_outside, distances);
            // A caller that switches to the row after failed tries must not have drawn where the
            // next try would fall. So everything after the last try that counts is treated as not
            // made.
            let mut end = every(N);
            for i in bits(needed) {
                let before = fell_outside & ((1 << i) - 1);
                if made + before.count_ones() >= most {
                    break;
                }
                let (x, output) = (tries.x[i], tries.outputs[i]);
                if tries.inside >> i & 1 == 1 {
                    drawn(listed(x, rng));
                } else if self.accepts(x, output, exact[i], parameters, rng) {
                    drawn(output);
                } else {
                    continue;
                }
                left -= 1;
                if left == 0 {
                    end = u64::MAX >> (63 - i);
                    break;
                }
            }
            made = (made + (fell_outside & end).count_ones()).min(most);
        }
        (left, made)
    }

    /// Whether a number u whose first 64 bits do not decide it is below the share.
    #[cold]
    fn falls_inside(&self, land: u64, rng: &mut impl Rng) -> bool {
        continued(land, self.total, uniform_below_u128(rng, self.total)) < self.inside
    }

    /// Whether the output at distance `apart` is outside the list and ⌊u·b⌋ is below its weight; x
    /// is the first 64 bits of u.
    #[inline]
    fn accepts(
        &self,
        x: u64,
        output: u32,
        apart: f64,
        parameters: Parameters,
        rng: &mut impl Rng,
    ) -> bool {
        let envelope = self.envelope;
        let entry = parameters.grid.entry(apart, output);
        if entry < self.end {
            return false;
        }
        let weight = parameters.factor(parameters.grid.distance(entry));
        // Whatever bits follow x, ⌊u·b⌋ lies between these two.
        if continued(x, envelope, envelope - 1) < weight {
            return true;
        }
        let undecided = continued(x, envelope, 0) < weight;
        undecided && continued(x, envelope, uniform_below_u128(rng, envelope)) < weight
    }
}

/// The bits of `count` tries.
fn every(count: usize) -> u64 {
    u64::MAX >> (64 - count)
}

/// The indices of the set bits.
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = set.trailing_zeros() as usize;
        set &= set.wrapping_sub(1);
        (next < 64).then_some(next)
    })
}

/// The bits up to the one at which `left` of them are `certain`; later tries are not needed.
fn up_to(certain: u64, left: usize) -> u64 {
    let last = bits(certain).nth(left.saturating_sub(1));
    last.map_or(u64::MAX, |last| u64::MAX >> (63 - last))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Bits decide alike, however the lanes are computed.
        #[test]
        fn tries_fall_alike_on_every_machine(
            low: u64, more in 0u64..1 << 62, seed: u64, count in 1u32..1 << 20
        ) {
            let high = low.saturating_add(more);
            let mut tries = Tries::<16>::new(&mut crate::testing::rng(seed));
            let mut portable = Tries { ..tries };
            fall(&mut tries, low, high, count);
            fall_portable(&mut portable, low, high, count);
            let all = |tries: &Tries<16>| (tries.outputs, tries.low, tries.inside, tries.open);
            prop_assert_eq!(all(&tries), all(&portable));
            for i in 0..16 {
                prop_assert!(tries.outputs[i] < count);
                prop_assert_eq!(tries.inside >> i & 1 == 1, tries.land[i] < low);
                prop_assert_eq!(tries.open >> i & 1 == 1, (low..=high).contains(&tries.land[i]));
            }
        }

        /// A decision by the first bits of a share holds, whatever bits follow.
        #[test]
        fn shares_are_exact(
            inside in 0u128..1 << 126, small in 0u32..126, envelope in 0u128..1 << 100,
            shorter in 0u32..100, mass in 1u64..1 << 26
        ) {
            let (inside, envelope) = ((inside >> small).max(1), envelope >> shorter);
            let outside = Outside::new(0, inside, envelope, mass);
            let total = outside.total;
            let Outside { low, high, .. } = outside;
            prop_assert!(low == 0 || continued(low - 1, total, total - 1) < inside);
            prop_assert!(high == u64::MAX || continued(high + 1, total, 0) >= inside);
            prop_assert!(high - low <= (low >> 48) + 2);
        }

        #[test]
        fn no_more_are_looked_at_than_can_count(certain: u64, left in 1usize..70) {
            let some = up_to(certain, left);
            let (mut expected, mut found) = (0, 0);
            for i in 0..64 {
                if found < left {
                    expected |= 1 << i;
                }
                found += usize::from(certain >> i & 1 == 1);
            }
            prop_assert_eq!(some, expected);
            prop_assert!(bits(some).eq((0..64).filter(|i| some >> i & 1 == 1)));
        }
    }
}
