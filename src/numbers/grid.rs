//! The position of a number or a date on its grid.

/// Maximum number of points on one side of zero: every place is an integer that f64 represents
/// exactly.
pub(super) const MAX_POINTS: f64 = (1u64 << 52) as f64;

/// The points that numbers are drawn from: an integer place for each value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Grid {
    /// Place k is k·unit; `per_one` is 1/unit, if that is an integer.
    Linear { unit: f64, per_one: Option<f64> },
    /// Place 0 is 0, places ±k are ±smallest·exp((k-1)·unit).
    Log { unit: f64, smallest: f64 },
}

impl Grid {
    pub(super) fn linear(unit: f64) -> Self {
        let inverse = (1.0 / unit).round();
        let whole = (1.0..1e15).contains(&inverse) && (inverse * unit - 1.0).abs() < 1e-12;
        Grid::Linear {
            unit,
            per_one: whole.then_some(inverse),
        }
    }

    pub(super) fn unit(self) -> f64 {
        match self {
            Grid::Linear { unit, .. } | Grid::Log { unit, .. } => unit,
        }
    }

    /// The exact place of a finite value, before it is rounded.
    fn exact(self, x: f64) -> f64 {
        match self {
            Grid::Linear {
                per_one: Some(per_one),
                ..
            } => x * per_one,
            Grid::Linear { unit, .. } => x / unit,
            Grid::Log { unit, smallest } => {
                let size = x.abs();
                let place = match size < smallest {
                    // Round to the nearer of 0 and the smallest size.
                    true if size < smallest / 2.0 => 0.0,
                    true => 1.0,
                    false => 1.0 + (size / smallest).ln() / unit,
                };
                place.copysign(x)
            }
        }
    }

    /// The nearest place, within ±2⁵².
    #[inline]
    pub(super) fn place(self, x: f64) -> i64 {
        // Infinities and too large values are clamped; callers pass no NaN.
        self.exact(x).round().clamp(-MAX_POINTS, MAX_POINTS) as i64
    }

    /// The first place that is not below x, and the last that is not above it, up to rounding.
    pub(super) fn ends(self, low: f64, high: f64) -> (f64, f64) {
        let slack = |x: f64| 1e-9 * x.abs().max(1.0);
        let (low, high) = (self.exact(low), self.exact(high));
        ((low - slack(low)).ceil(), (high + slack(high)).floor())
    }

    #[inline]
    pub(super) fn value(self, place: i64) -> f64 {
        let k = place as f64;
        match self {
            Grid::Linear {
                per_one: Some(per_one),
                ..
            } => k / per_one,
            Grid::Linear { unit, .. } => k * unit,
            Grid::Log { .. } if place == 0 => 0.0,
            Grid::Log { unit, smallest } => (smallest * ((k.abs() - 1.0) * unit).exp()).copysign(k),
        }
    }
}
