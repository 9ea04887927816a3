//! Parameters that the laws of all words share.

use crate::cover::Cover;
use crate::distance::neighbors::Grid;
use crate::law::FLOOR_EXPONENT;

/// The parameters of a law: η = ε/2, 1/η, γ, the grid, the cover, and the number of outputs (the
/// words, without a cover).
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) eta: f64,
    pub(super) per_eta: f64,
    pub(super) gamma: f64,
    pub(super) grid: Grid,
    pub(super) cover: Option<&'a Cover>,
    pub(super) outputs: u32,
}

impl Terms<'_> {
    /// The distance from which on all weights are equal.
    pub(super) fn cap(&self) -> f64 {
        self.gamma.min((FLOOR_EXPONENT + 0.01) / self.eta)
    }

    /// The output of an entry. The minimum matters only for a damaged file that was opened
    /// unverified.
    pub(super) fn output(&self, entry: u64) -> u32 {
        self.grid.id(entry).min(self.outputs - 1)
    }

    /// The exponent of an output, by its entry.
    pub(super) fn exponent(&self, entry: u64, y: u32) -> f64 {
        let penalties = self.cover.and_then(Cover::penalties);
        let penalty = penalties.map_or(0.0, |penalties| penalties[y as usize]);
        self.eta * self.grid.distance(entry).min(self.gamma) + penalty
    }

    /// Returns two distances. Up to the first, an output's exponent is certainly less than
    /// `exponent`; beyond the second, it certainly is more.
    #[inline(always)]
    pub(super) fn limits(&self, exponent: f64, penalty: f64) -> (f64, f64) {
        // Covers the rounding of the logarithms and the exponential, together less than 10⁻⁶.
        const ROUNDING: f64 = 1e-6;
        let limit = (exponent - penalty) * self.per_eta;
        let more = ROUNDING * self.per_eta + self.grid.step();
        // A NaN, from a tiny ε, means no limit.
        let no_limit = |d: f64| if d >= self.gamma { f64::INFINITY } else { d };
        let (near, far) = (no_limit(limit - more), no_limit(limit + more));
        // Every weight is at least the floor.
        let floor = exponent > FLOOR_EXPONENT - 1e-3;
        (
            if floor { -1.0 } else { near },
            if floor { f64::INFINITY } else { far },
        )
    }
}
