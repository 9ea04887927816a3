//! Makes many tries outside a list at a time.
//!
//! Tries are independent: each falls into the list, is accepted, or fails. The next draw of the
//! same word uses the tries that one draw leaves. So they are made side by side and wait for memory
//! together.

use rand::Rng;

use super::outside::{Distances, Needed, Outside, Share, Try, limits};
use super::rejection::ListTable;
use super::terms::Terms;
use crate::distance::metric::Limits;
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
    near: [f64; N],
    far: [f64; N],
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
            near: [0.0; N],
            far: [0.0; N],
            inside: 0,
        }
    }

    /// Handles rare cases: 64 bits do not decide whether a try is inside, or 32 bits would not be
    /// uniform. With a base measure, it draws the outputs.
    #[inline]
    fn finish(&mut self, share: &Share, terms: Terms, rng: &mut impl Rng) {
        for i in 0..N {
            if self.land[i] == share.first {
                self.inside |= u64::from(share.continues(rng)) << i;
            }
            let count = terms.outputs;
            if terms.base.is_some()
                || (self.low[i] < count && self.low[i] < count.wrapping_neg() % count)
            {
                self.outputs[i] = terms.propose(rng);
            }
        }
    }

    /// Measures the distances of the selected tries, each at its index.
    #[inline]
    fn measure(
        &self,
        which: u64,
        outside: &Outside,
        terms: Terms,
        distances: &impl Distances,
    ) -> [f64; N] {
        let (mut outputs, mut far, mut apart) = ([0; N], [0.0; N], [0.0; N]);
        let mut count = 0;
        for i in bits(which) {
            outputs[count] = self.outputs[i];
            (_, far[count]) = limits(terms, self.x[i], outside.exponent);
            count += 1;
        }
        distances.distances(&outputs[..count], &far[..count], &mut apart[..count]);
        let mut placed = [f64::NAN; N];
        for (i, apart) in bits(which).zip(apart) {
            placed[i] = apart;
        }
        placed
    }

    /// The tries whose outputs are certainly not accepted, and those whose outputs certainly are, by
    /// bounds on distances. `left` outputs are to be drawn.
    #[inline]
    fn decide(
        &mut self,
        outside: &Outside,
        terms: Terms,
        left: usize,
        distances: &impl Distances,
    ) -> (u64, u64) {
        limit(self, outside, terms);
        let (near, far, least) = (&self.near[..], &self.far[..], outside.least);
        let (limits, inside) = (Limits { far, near, least }, self.inside);
        let needed = Needed { inside, left };
        let proven = distances.compare_bounds(&self.outputs, &limits, needed);
        (proven.beyond, proven.within & proven.outside)
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

vectorised! {
    /// Computes the limits of all tries.
    fn limit[const N: usize] = limit_portable(tries: &mut Tries<N>, outside: &Outside, terms: Terms)
}

#[inline(always)]
fn limit_portable<const N: usize>(tries: &mut Tries<N>, outside: &Outside, terms: Terms) {
    for i in 0..N {
        (tries.near[i], tries.far[i]) = limits(terms, tries.x[i], outside.exponent);
    }
}

impl ListTable {
    /// Makes `N` tries of [`sample`](Self::sample) at a time.
    #[inline]
    pub(super) fn sample_many<const N: usize, R: Rng>(
        &self,
        list: impl Fn() -> Law,
        terms: Terms,
        rng: &mut R,
        (mut left, most): (usize, u32),
        distances: &impl Distances,
        mut drawn: impl FnMut(u32),
    ) -> (usize, u32) {
        let (outside, share) = (&self.outside, &self.share);
        let mut made = 0;
        while left > 0 && made < most {
            let mut tries = Tries::<N>::new(rng);
            fall(&mut tries, share.first, terms.outputs);
            tries.finish(share, terms, rng);
            for i in bits(tries.inside) {
                self.prefetch_at(tries.x[i]);
            }
            let (beyond, accepted) = tries.decide(outside, terms, left, distances);
            let certain = tries.inside | accepted;
            let every = u64::MAX >> (64 - N);
            let fell_outside = !tries.inside & every;
            let open = (tries.inside | !beyond) & every;
            let exact = {
                let which = first_of(open, certain, left) & !certain;
                tries.measure(which, outside, terms, distances)
            };
            // A caller that switches to the row after failed tries must not have drawn where the
            // next try would fall. So everything after the last try that counts is treated as not
            // made.
            let mut end = every;
            for i in bits(open) {
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
                    if certain >> i & 1 == 0 && !outside.accepts(&tried, exact[i], terms, rng) {
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

/// The bits of `open` up to the one at which `left` of the bits are `certain`; later tries are not
/// needed.
fn first_of(open: u64, certain: u64, left: usize) -> u64 {
    let last = bits(open & certain).nth(left.saturating_sub(1));
    open & last.map_or(u64::MAX, |last| u64::MAX >> (63 - last))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::distance::neighbors::Grid;
    use crate::law::{FLOOR_EXPONENT, LOG2_FLOOR, weight};

    proptest! {
        /// Bits decide alike, however the lanes are computed.
        #[test]
        fn tries_fall_alike_on_every_machine(
            log in 0f64..1.0, eta in prop_oneof![1e-3..1.0f64, 1.0..60.0f64], share: u64,
            gamma in prop_oneof![Just(f64::INFINITY), 0.0..10.0f64], seed: u64, count in 1u32..1 << 20,
            bits in proptest::array::uniform16(0u32..65)
        ) {
            let grid = Grid::new(100, 40.0);
            let terms = Terms { eta, per_eta: eta.recip(), gamma, grid, cover: None, base: None, mass: 100, outputs: count };
            let envelope = weight(log * (FLOOR_EXPONENT + 1.0)).max(1 << LOG2_FLOOR);
            let mut outside = Outside::default();
            outside.fill(0, Some(envelope), terms);
            let key = crate::Randomness::new(Some(seed)).next_key().unwrap();
            let mut tries = Tries::<16>::new(&mut key.stream(0));
            // Include small numbers and zeros.
            for (x, bits) in tries.x.iter_mut().zip(bits) {
                *x = x.unbounded_shr(bits);
            }
            let mut portable = Tries { ..tries };
            fall(&mut tries, share, count);
            limit(&mut tries, &outside, terms);
            fall_portable(&mut portable, share, count);
            limit_portable(&mut portable, &outside, terms);
            let all = |tries: &Tries<16>| {
                let bits = |each: [f64; 16]| each.map(f64::to_bits);
                (tries.outputs, tries.low, tries.inside, bits(tries.near), bits(tries.far))
            };
            prop_assert_eq!(all(&tries), all(&portable));
            for i in 0..16 {
                let limits = limits(terms, tries.x[i], outside.exponent);
                prop_assert_eq!((tries.near[i], tries.far[i]), limits);
                prop_assert!(tries.outputs[i] < count);
                prop_assert_eq!(tries.inside >> i & 1 == 1, tries.land[i] < share);
            }
        }

        #[test]
        fn no_more_are_looked_at_than_can_count(open: u64, certain: u64, left in 1usize..70) {
            let some = first_of(open, certain, left);
            let (mut expected, mut found) = (0, 0);
            for i in (0..64).filter(|i| open >> i & 1 == 1) {
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
