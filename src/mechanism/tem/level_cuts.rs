//! Bins of exponents, and how a word's outputs are cut into [levels](super::levels) by them.

use super::parameters::floor_exponent;
use crate::law::base::{BaseMeasure, shortened};
use crate::law::{LOG2_LARGEST, weight};

/// The last bin, which has no upper end.
pub(super) const LAST: u8 = u8::MAX;
/// The number of bins.
pub(super) const BINS: usize = LAST as usize + 1;
/// A relative error of the exponents that bins have room for.
pub(super) const MOST_ERROR: f64 = 1e-5;

/// Bins of the exponents of one word's outputs: all of equal width but the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bins {
    /// Bins for a difference of exponents of 1.
    pub(super) per_exponent: f64,
    /// By how much an exponent may be wrong.
    margin: f64,
    /// From this η·d on, all F are equal.
    pub(super) cap: f64,
    /// The largest weight, as ln of 2¹⁰⁰ times it, and the least.
    largest: f64,
    least: u128,
    /// The largest exponent of an output with the least weight.
    farthest: f64,
}

impl Bins {
    /// Bins for the exponents η·min(d, γ), to which a base measure adds its penalties. Most exponents
    /// should be below `reach`.
    pub(super) fn new(eta: f64, gamma: f64, base: Option<&BaseMeasure>, reach: f64) -> Self {
        let shift = base.map_or(0, BaseMeasure::shift);
        let cap = (eta * gamma).min(floor_exponent(shift));
        let (least, most) = base.map_or((1, 1), BaseMeasure::range);
        let penalty = (f64::from(most) / f64::from(least)).ln();
        // Covers the arithmetic in f32, and distances that are rounded to a grid.
        let margin = (cap + penalty) * 2.0 * MOST_ERROR + 1.0 / (1u64 << 32) as f64;
        Bins {
            per_exponent: f64::from(LAST) / (reach.min(cap + penalty) + 2.0 * margin),
            margin,
            cap,
            largest: f64::from(most) * 2f64.powi(-(shift as i32)),
            least: shortened(weight(cap), shift) * u128::from(least),
            farthest: cap + penalty,
        }
    }

    /// Whether there is room for an absolute error of the exponents, too.
    pub(super) fn have_room_for(&self, error: f64) -> bool {
        error <= self.cap * (MOST_ERROR / 2.0)
    }

    /// The bin of an output with this η·d, which may be beyond the cap, and this penalty.
    #[inline(always)]
    pub(super) fn bin(&self, exponent: f64, penalty: f64) -> u8 {
        ((exponent.min(self.cap) + penalty) * self.per_exponent) as u8
    }

    /// Two weights: those of the outputs of a bin lie between them.
    pub(super) fn between(&self, bin: u8) -> (f64, f64) {
        let nearest = f64::from(bin) / self.per_exponent - self.margin;
        let farthest = (f64::from(bin) + 1.0) / self.per_exponent + self.margin;
        // Covers the rounding of the exponential, and of F to an integer of 40 bits at least.
        const ROOM: f64 = 1.0 / (1u64 << 38) as f64;
        let weight = |exponent: f64| self.largest * LARGEST * (-exponent).exp();
        let least = match bin == LAST || farthest >= self.farthest {
            true => self.least as f64 * (1.0 - ROUNDING),
            false => weight(farthest) * (1.0 - ROOM),
        };
        let most = weight(nearest.clamp(0.0, self.farthest)) * (1.0 + ROOM);
        (least, most.max(least))
    }
}

/// The largest F without a base measure.
const LARGEST: f64 = (1u128 << LOG2_LARGEST) as f64;

/// Covers the rounding of a few operations in 64-bit floating point.
pub(super) const ROUNDING: f64 = 1.0 / (1u64 << 48) as f64;

/// Outputs of one bin: their number, and numbers below and above their weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) count: u32,
    pub(super) least: f64,
    pub(super) most: f64,
}

/// Outputs that are together in some parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    pub(super) count: u32,
    pub(super) parts: u32,
    pub(super) least: f64,
    pub(super) most: f64,
}

/// The part of a level's mass that its outputs should fill at least.
const WELL_FILLED: f64 = 0.85;

/// Cuts the outputs into levels that fit into parts of this mass.
pub(super) fn levels(groups: &[Group], mass: f64, mut one: impl FnMut(Level)) {
    let per_mass = 1.0 / mass;
    let mut left = groups.first().map_or(0, |group| group.count);
    let mut at = 0;
    while let Some(&Group { least, most, .. }) = groups.get(at) {
        let share = most * per_mass * (1.0 + ROUNDING);
        let fit = (1.0 / share).min(f64::from(u32::MAX)) as u32;
        let shares = share * f64::from(left);
        let mut level = Level {
            count: 0,
            parts: 1,
            least,
            most,
        };
        // The outputs left of a group become a level if they fill its parts, or if one of them is
        // too heavy for a part.
        let together = shares > WELL_FILLED * shares.ceil() || fit == 0;
        let room = if together { left } else { fit };
        if together {
            level.parts = shares.ceil() as u32;
        }
        while level.count < room && at < groups.len() {
            let some = left.min(room - level.count);
            level.count += some;
            level.least = level.least.min(groups[at].least);
            left -= some;
            if left == 0 {
                at += 1;
                left = groups.get(at).map_or(0, |group| group.count);
            }
        }
        one(level);
    }
}

/// The number of outputs in each bin.
pub(super) fn counts(each: &[u8]) -> [u32; BINS] {
    // Four tables: equal bins in a row do not wait for each other.
    let mut counts = [[0u32; BINS]; 4];
    let (fours, rest) = each.as_chunks::<4>();
    for four in fours {
        for i in 0..4 {
            counts[i][usize::from(four[i])] += 1;
        }
    }
    rest.iter()
        .for_each(|&bin| counts[0][usize::from(bin)] += 1);
    let [mut sum, b, c, d] = counts;
    for i in 0..BINS {
        sum[i] += b[i] + c[i] + d[i];
    }
    sum
}

/// The outputs in the order of their bins, which begin at `starts`.
pub(super) fn ordered<T: Copy + Default>(
    each: &[u8],
    starts: &mut [u32; BINS],
    output: impl Fn(u32) -> T,
) -> Box<[T]> {
    let mut outputs = vec![T::default(); each.len()].into_boxed_slice();
    for (y, &bin) in (0..).zip(each) {
        let at = &mut starts[usize::from(bin)];
        outputs[*at as usize] = output(y);
        *at += 1;
    }
    outputs
}
