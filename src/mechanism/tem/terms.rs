//! What the laws of all words have in common.

use crate::cover::Cover;
use crate::law::FLOOR_EXPONENT;
use crate::neighbors::Grid;

/// How a law is drawn: η = ε/2, 1/η and γ, the grid, the cover and its number of outputs (without one, the
/// words).
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
    /// The distance from which on all weights are alike.
    pub(super) fn cap(&self) -> f64 {
        self.gamma.min((FLOOR_EXPONENT + 0.01) / self.eta)
    }

    /// The output of an entry. The minimum only matters for a file that was opened unverified and is damaged.
    pub(super) fn output(&self, entry: u64) -> u32 {
        self.grid.id(entry).min(self.outputs - 1)
    }

    /// The exponent of an output by its entry.
    pub(super) fn exponent(&self, entry: u64, y: u32) -> f64 {
        let penalties = self.cover.and_then(Cover::penalties);
        let penalty = penalties.map_or(0.0, |penalties| penalties[y as usize]);
        self.eta * self.grid.distance(entry).min(self.gamma) + penalty
    }

    /// Up to which distance an output's exponent is certainly less than `exponent`, and from which on it
    /// is certainly more.
    #[inline(always)]
    pub(super) fn limits(&self, exponent: f64, penalty: f64) -> (f64, f64) {
        // By the logarithms' and the exponential's roundings, less than 10⁻⁶ together.
        const ROUNDING: f64 = 1e-6;
        let limit = (exponent - penalty) * self.per_eta;
        let more = ROUNDING * self.per_eta + self.grid.step();
        // A number that is none, of a tiny ε, says nothing.
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
