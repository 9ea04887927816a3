//! Makes many tries outside a list at a time.
//!
//! Tries are independent: each falls into the list, is accepted, or fails. The next draw of the
//! same word uses the tries that one draw leaves. So they are made side by side and wait for memory
//! together.

use rand::Rng;

use super::outside::{ListShare, Try};
use super::parameters::Parameters;
use super::rejection::ListTable;
use crate::law::Law;
use crate::support::simd::vectorised;

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
    /// Bit i is set if try i falls into the list.
    inside: u64,
}

impl<const N: usize> Tries<N> {
    fn new(rng: &mut impl Rng) -> Self {
        let (mut land, mut x, mut index) = ([0u64; N], [0u64; N], [0u32; N]);
        rng.fill_bytes(bytemuck::cast_slice_mut(&mut land));
        rng.fill_bytes(bytemuck::cast_slice_mut(&mut x));
        rng.fill_bytes(bytemuck::cast_slice_mut(&mut index));
        // Loops instead of `map`, which the compiler leaves as a call.
        if cfg!(target_endian = "big") {
            land.iter_mut().for_each(|x| *x = x.swap_bytes());
            x.iter_mut().for_each(|x| *x = x.swap_bytes());
            index.iter_mut().for_each(|x| *x = x.swap_bytes());
        }
        Tries {
            land,
            x,
            index,
            outputs: [0; N],
            low: [0; N],
            inside: 0,
        }
    }

    /// Handles rare cases: 64 bits do not decide whether a try is inside, or 32 bits would not be
    /// uniform. With a base measure, it draws the outputs.
    #[inline]
    fn finish(&mut self, share: &ListShare, parameters: Parameters, rng: &mut impl Rng) {
        for i in 0..N {
            if self.land[i] == share.first {
                self.inside |= u64::from(share.continues(rng)) << i;
            }
            let count = parameters.outputs;
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
    fn fall[const N: usize] = fall_portable(tries: &mut Tries<N>, share: u64, outputs: u32)
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn fall_portable<const N: usize>(tries: &mut Tries<N>, share: u64, outputs: u32) {
    for i in 0..N {
        let product = u64::from(tries.index[i]) * u64::from(outputs);
        tries.outputs[i] = (product >> 32) as u32;
        tries.low[i] = product as u32;
    }
    let mut inside = 0;
    for i in 0..N {
        inside |= u64::from(tries.land[i] < share) << i;
    }
    tries.inside = inside;
}

impl ListTable {
    /// Makes `N` tries of [`sample`](Self::sample) at a time.
    #[inline]
    pub(super) fn sample_many<const N: usize, R: Rng>(
        &self,
        list: impl Fn() -> Law,
        parameters: Parameters,
        rng: &mut R,
        (mut left, most): (usize, u32),
        distances: &impl Fn(&[u32], &mut [f64]),
        mut drawn: impl FnMut(u32),
    ) -> (usize, u32) {
        let (outside, share) = (&self.outside, &self.share);
        let mut made = 0;
        while left > 0 && made < most {
            let mut tries = Tries::<N>::new(rng);
            fall(&mut tries, share.first, parameters.outputs);
            tries.finish(share, parameters, rng);
            for i in bits(tries.inside) {
                self.prefetch_at(tries.x[i]);
            }
            let every = u64::MAX >> (64 - N);
            let fell_outside = !tries.inside & every;
            let needed = up_to(tries.inside, left) & every;
            let exact = tries.measure(needed & fell_outside, distances);
            // A caller that switches to the row after failed tries must not have drawn where the
            // next try would fall. So everything after the last try that counts is treated as not
            // made.
            let mut end = every;
            for i in bits(needed) {
                let before = fell_outside & ((1 << i) - 1);
                if made + before.count_ones() >= most {
                    break;
                }
                if tries.inside >> i & 1 == 1 {
                    drawn(self.inside(tries.x[i], &list, rng));
                } else {
                    let tried = Try {
                        x: tries.x[i],
                        output: tries.outputs[i],
                    };
                    if !outside.accepts(&tried, exact[i], parameters, rng) {
                        continue;
                    }
                    drawn(tried.output);
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
        fn tries_fall_alike_on_every_machine(share: u64, seed: u64, count in 1u32..1 << 20) {
            let mut tries = Tries::<16>::new(&mut crate::testing::rng(seed));
            let mut portable = Tries { ..tries };
            fall(&mut tries, share, count);
            fall_portable(&mut portable, share, count);
            let all = |tries: &Tries<16>| (tries.outputs, tries.low, tries.inside);
            prop_assert_eq!(all(&tries), all(&portable));
            for i in 0..16 {
                prop_assert!(tries.outputs[i] < count);
                prop_assert_eq!(tries.inside >> i & 1 == 1, tries.land[i] < share);
            }
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
