//! Parameters that the laws of all words share.

use rand::Rng;

use crate::cover::{Cover, word_of};
use crate::distance::neighbors::Grid;
use crate::law::base::{BaseMeasure, shortened};
use crate::law::{FLOOR_EXPONENT, weight};
use crate::support::random::uniform_below;

/// The parameters of a law: η = ε/2, 1/η, γ, the grid, the cover, the base measure, and the number
/// of outputs (the words, without a cover).
#[derive(Clone, Copy)]
pub(super) struct Parameters<'a> {
    pub(super) eta: f64,
    pub(super) gamma: f64,
    pub(super) grid: Grid,
    pub(super) cover: Option<&'a Cover>,
    pub(super) base: Option<&'a BaseMeasure>,
    /// The sum of the base measure over all outputs: their number, without one.
    pub(super) mass: u64,
    pub(super) outputs: u32,
}

/// The exponent from which on F is the floor, where a base measure leaves out `shift` bits.
pub(super) fn floor_exponent(shift: u32) -> f64 {
    FLOOR_EXPONENT - f64::from(shift) * std::f64::consts::LN_2
}

impl Parameters<'_> {
    fn shift(&self) -> u32 {
        self.base.map_or(0, BaseMeasure::shift)
    }

    /// The distance from which on all F are equal.
    pub(super) fn cap(&self) -> f64 {
        let floor = floor_exponent(self.shift()) + 0.01;
        self.gamma.min(floor / self.eta)
    }

    /// The output of an entry. The minimum matters only for a damaged file that was opened
    /// unverified.
    pub(super) fn output(&self, entry: u64) -> u32 {
        self.grid.id(entry).min(self.outputs - 1)
    }

    /// F of a distance.
    #[inline]
    pub(super) fn factor(&self, distance: f64) -> u128 {
        shortened(weight(self.eta * distance.min(self.gamma)), self.shift())
    }

    /// A bound on F of all distances from this one on. The exponential is monotone only up to its
    /// rounding, which leaves room for.
    pub(super) fn most_factor(&self, distance: f64) -> u128 {
        let weight = weight(self.eta * distance.min(self.gamma));
        shortened(weight + (weight >> 48) + 1, self.shift())
    }

    /// Q of an output.
    #[inline]
    pub(super) fn share(&self, y: u32) -> u128 {
        let share = |base: &BaseMeasure| base.weight(word_of(self.cover, y));
        self.base.map_or(1, share).into()
    }

    /// Draws an output in proportion to Q.
    #[inline]
    pub(super) fn propose(&self, rng: &mut impl Rng) -> u32 {
        match (self.base, self.cover) {
            (None, _) => uniform_below(rng, self.outputs),
            (Some(base), None) => base.draw(rng),
            // Words that are no outputs have the least Q.
            (Some(base), Some(cover)) => loop {
                if let Some(rank) = cover.rank(base.draw(rng)) {
                    break rank;
                }
            },
        }
    }
}
