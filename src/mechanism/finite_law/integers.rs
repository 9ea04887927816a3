//! A row of probabilities as integers, and exact draws from these integers without a table.
//!
//! One pass over the row adds up the integers of every block of outputs. A draw takes a uniform
//! integer below the total, finds its block by the sums, and its output in the block. A word that
//! comes a few times so costs a small part of its table.

use rand::Rng;

use crate::law::Law;
use crate::support::random::uniform_below_u128;
use crate::support::simd::vectorised;

/// Outputs of a block. More of them make the pass over the row faster, and each draw slower.
pub(super) const BLOCK: usize = 64;

/// 2⁵². The bits of its sum with a whole number below 2⁵² are its own bits plus that number.
const WHOLE: f64 = (1u64 << 52) as f64;
/// An integer is low + 2⁴⁸ · high, with low below 2⁴⁸ and high below 2⁵².
const LOW_BITS: u32 = 48;
const LOW: f64 = (1u64 << LOW_BITS) as f64;

/// One look at a row as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// A hash of all numbers, in order. Rows that differ in one number never have the same.
    pub(super) hash: u64,
    /// The largest bits of a number. Below the bits of ∞, all numbers are finite and not negative,
    /// and these are the bits of the largest.
    pub(super) most: u64,
}

vectorised! {
    /// Looks at all numbers of a row.
    pub(super) fn see = see_portable(row: &[f64]) -> Seen
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn see_portable(row: &[f64]) -> Seen {
    const LANES: usize = 32;
    // Odd, so that multiplying by it loses nothing.
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mixed = |hash: u64, bits: u64| (hash ^ bits).wrapping_mul(FACTOR).rotate_left(29);
    let (mut hashes, mut most) = ([0; LANES], [0; LANES]);
    let mut look = |l: usize, p: f64| {
        hashes[l] = mixed(hashes[l], p.to_bits());
        // The sum turns -0 into 0.
        most[l] = (p + 0.0).to_bits().max(most[l]);
    };
    let (chunks, rest) = row.as_chunks::<LANES>();
    for chunk in chunks {
        for l in 0..LANES {
            look(l, chunk[l]);
        }
    }
    for (l, &p) in rest.iter().enumerate() {
        look(l, p);
    }
    Seen {
        hash: hashes.into_iter().fold(row.len() as u64, mixed),
        most: most.into_iter().fold(0, u64::max),
    }
}

/// Turns the probabilities of one row into integers: ⌊p·2^s⌋ for the s that brings the largest
/// between 2⁹⁹ and 2¹⁰⁰; at least 1 if p is positive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Powers of two whose product is 2^(s - 48). One alone may be out of range.
    first: f64,
    second: f64,
}

impl Scale {
    /// The scale of a row whose largest probability is `most`, positive and finite.
    pub(super) fn of(most: f64) -> Self {
        const MANTISSA: u32 = 52;
        const BIAS: i32 = 1023;
        let bits = most.to_bits();
        let exponent = match (bits >> MANTISSA) as i32 {
            0 => 63 - bits.leading_zeros() as i32 - (BIAS - 1 + MANTISSA as i32),
            biased => biased - BIAS,
        };
        let power = |exponent: i32| f64::from_bits(((exponent + BIAS) as u64) << MANTISSA);
        let shift = 99 - exponent - LOW_BITS as i32;
        let first = shift.min(1000);
        Scale {
            first: power(first),
            second: power(shift - first),
        }
    }

    /// The low and the high part of a probability's integer, each added to the bits of [`WHOLE`].
    #[inline(always)]
    fn parts(self, p: f64) -> (u64, u64) {
        // Below 2⁵². Each step is exact, but for numbers that become 0 or 1 in any case.
        let scaled = p * self.first * self.second;
        let high = scaled.floor();
        let low = ((scaled - high) * LOW).floor();
        let low = if p > 0.0 && scaled < 1.0 / LOW {
            1.0
        } else {
            low
        };
        ((low + WHOLE).to_bits(), (high + WHOLE).to_bits())
    }

    /// The integer of a probability.
    #[inline(always)]
    pub(super) fn integer(self, p: f64) -> u128 {
        let (low, high) = self.parts(p);
        joined(low - WHOLE.to_bits(), high - WHOLE.to_bits())
    }

    /// The law of a row.
    pub(super) fn law(self, row: &[f64]) -> Law {
        Law::of_weights(row.iter().map(|&p| self.integer(p)))
    }
}

#[inline(always)]
fn joined(low: u64, high: u64) -> u128 {
    (u128::from(high) << LOW_BITS) + u128::from(low)
}

/// The sums of a row's integers, by blocks of outputs.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// For every block, the sum of the integers of this block and those before it.
    ends: Vec<u128>,
    /// The number of outputs with positive probability.
    pub(super) positive: usize,
}

impl Sums {
    /// Adds up the integers of a row.
    pub(super) fn fill(&mut self, row: &[f64], scale: Scale) {
        fill(self, row, scale);
    }

    /// Draws one output of the row, with probability integer / total exactly.
    pub(super) fn sample(&self, row: &[f64], scale: Scale, rng: &mut impl Rng) -> u32 {
        let total = self.ends.last().copied().unwrap_or(0);
        self.find(row, scale, uniform_below_u128(rng, total))
    }

    /// The output at `u`, a number below the total: the first whose running sum exceeds it.
    fn find(&self, row: &[f64], scale: Scale, u: u128) -> u32 {
        let block = self.ends.partition_point(|&end| end <= u);
        let start = block * BLOCK;
        let before = block.checked_sub(1).map_or(0, |last| self.ends[last]);
        let outputs = &row[start..row.len().min(start + BLOCK)];
        start as u32 + within(outputs, scale, u - before)
    }
}

vectorised! { fn fill = fill_portable(sums: &mut Sums, row: &[f64], scale: Scale) }

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn fill_portable(sums: &mut Sums, row: &[f64], scale: Scale) {
    const LANES: usize = 16;
    sums.ends.clear();
    let (mut total, mut positive) = (0, [0u64; LANES]);
    for block in row.chunks(BLOCK) {
        // At most 2⁶ numbers below 2⁵², when the bits of 2⁵² are taken off again.
        let (mut lows, mut highs) = ([0u64; LANES], [0u64; LANES]);
        let mut add = |l: usize, p: f64| {
            let (low, high) = scale.parts(p);
            lows[l] = lows[l].wrapping_add(low);
            highs[l] = highs[l].wrapping_add(high);
            positive[l] += u64::from(p > 0.0);
        };
        let (chunks, rest) = block.as_chunks::<LANES>();
        for chunk in chunks {
            for l in 0..LANES {
                add(l, chunk[l]);
            }
        }
        for (l, &p) in rest.iter().enumerate() {
            add(l, p);
        }
        let extra = WHOLE.to_bits().wrapping_mul(block.len() as u64);
        let sum = |lanes: [u64; LANES]| {
            let sum = lanes.into_iter().fold(0, u64::wrapping_add);
            sum.wrapping_sub(extra)
        };
        // At most 2²⁷ words of at most 2¹⁰⁰: no overflow.
        total += joined(sum(lows), sum(highs));
        sums.ends.push(total);
    }
    sums.positive = positive.iter().sum::<u64>() as usize;
}

vectorised! {
    /// The place in a block of the output at `u`, a number below the block's sum.
    fn within = within_portable(outputs: &[f64], scale: Scale, u: u128) -> u32
}

#[inline(always)]
fn within_portable(outputs: &[f64], scale: Scale, u: u128) -> u32 {
    let (mut place, mut sum) = (0, 0);
    for &p in outputs {
        sum += scale.integer(p);
        // No branch: which output it is, nothing foretells.
        place += u32::from(sum <= u);
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The integer of a probability, by shifts of its mantissa.
    fn by_shifts(p: f64, most: f64) -> u128 {
        let parts = |x: f64| -> (u128, i32) {
            let bits = x.abs().to_bits();
            let (exponent, fraction) = ((bits >> 52) as i32, u128::from(bits & ((1 << 52) - 1)));
            match exponent {
                0 => (fraction, -1074),
                _ => (fraction | 1 << 52, exponent - 1075),
            }
        };
        let (top, up) = parts(most);
        let shift = 100 - (128 - top.leading_zeros() as i32) - up;
        let (mantissa, exponent) = parts(p);
        match exponent + shift {
            left @ 0.. => mantissa << left,
            right => (mantissa.checked_shr(right.unsigned_abs()).unwrap_or(0)).max(mantissa.min(1)),
        }
    }

    /// Rows whose numbers have any bits, with zeros and equal numbers.
    fn row() -> impl proptest::strategy::Strategy<Value = Vec<f64>> {
        use proptest::prelude::*;
        let number = (0..=f64::MAX.to_bits(), 0u32..8);
        let number = number.prop_map(|(bits, kind)| match kind {
            0 => 0.0,
            1 => -0.0,
            2 => f64::from_bits(bits % 5),
            3 => 0.25,
            4 | 5 => f64::from_bits(bits % (1 << 58) + (1021 << 52) - (1 << 57)),
            _ => f64::from_bits(bits),
        });
        prop::collection::vec(number, 1..300)
            .prop_filter("a positive number", |row| row.iter().any(|&p| p > 0.0))
    }

    proptest::proptest! {
        /// The sums of blocks are those of the law's integers, which are those of shifts, and a
        /// draw finds the output that the law finds.
        #[test]
        fn sums_are_those_of_the_law(row in row()) {
            let seen = see(&row);
            let most = row.iter().fold(0.0, |a: f64, &b| a.max(b));
            proptest::prop_assert_eq!(f64::from_bits(seen.most), most);
            let scale = Scale::of(most);
            for &p in &row {
                proptest::prop_assert_eq!(scale.integer(p), by_shifts(p, most), "{} of {}", p, most);
            }
            let law = scale.law(&row);
            let mut sums = Sums::default();
            sums.fill(&row, scale);
            let positive = row.iter().filter(|&&p| p > 0.0).count();
            proptest::prop_assert_eq!(sums.positive, positive);
            proptest::prop_assert_eq!(sums.ends.len(), row.len().div_ceil(BLOCK));
            let mut sum = 0;
            for y in 0..row.len() as u32 {
                let weight = law.weight(y);
                for u in [sum, sum + weight / 3, (sum + weight).saturating_sub(1)] {
                    if weight > 0 {
                        proptest::prop_assert_eq!(sums.find(&row, scale, u), y);
                        proptest::prop_assert_eq!(law.find(u), y);
                    }
                }
                sum += weight;
                let after = y as usize + 1;
                if after.is_multiple_of(BLOCK) {
                    proptest::prop_assert_eq!(sums.ends[after / BLOCK - 1], sum);
                }
            }
            proptest::prop_assert_eq!(sums.ends.last().copied(), Some(law.total()));
        }

        /// A row that differs in one number or in the order of two has another hash.
        #[test]
        fn a_changed_row_is_seen(row in row(), at: proptest::sample::Index, other: proptest::sample::Index, bit in 0u32..64) {
            let before = see(&row).hash;
            let mut changed = row.clone();
            let at = at.index(row.len());
            changed[at] = f64::from_bits(row[at].to_bits() ^ 1 << bit);
            proptest::prop_assert_ne!(see(&changed).hash, before);
            let mut swapped = row.clone();
            let other = other.index(row.len());
            swapped.swap(at, other);
            let same = swapped[at].to_bits() == row[at].to_bits();
            proptest::prop_assert_eq!(see(&swapped).hash == before, same);
        }
    }

    #[test]
    fn wrong_numbers_are_seen() {
        for wrong in [
            f64::NAN,
            -f64::NAN,
            f64::INFINITY,
            -1.0,
            -1e-320,
            f64::NEG_INFINITY,
        ] {
            for at in [0, 40, 99] {
                let mut row = vec![0.5; 100];
                row[at] = wrong;
                assert!(see(&row).most >= f64::INFINITY.to_bits(), "{wrong}");
            }
        }
        assert_eq!(see(&[-0.0, 0.0]).most, 0);
        assert_eq!(see(&[0.5, f64::MAX]).most, f64::MAX.to_bits());
    }
}
