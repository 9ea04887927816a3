//! Numbers and dates by their own metrics: |x - x'|, |ln x - ln x'|, days.
//!
//! A [`Number`] or [`Date`] rounds its input to a public grid, clamps it to a public range, adds an offset of the
//! two-sided [`Geometric`] law and clamps again. Let d be the distance on the grid: the number of
//! steps between two inputs times the unit. Then Pr\[y|x\] ≤ exp(ε·d(x,x'))·Pr\[y|x'\] for every output y, exactly for
//! the integers that are drawn: [`geometric`] has the proof. Two inputs that round to the same point have the
//! same law; an input outside the range has that of the nearest point in it.
//!
//! On the log scale the grid is a line: …, -s·exp(u), -s, 0, s, s·exp(u), … for the smallest size s and the unit u.
//! So sign and zero are protected too: two numbers of the same sign are |ln x - ln x'| apart, and 0 is one unit
//! from ±s.
//!
//! [`Form`] reads numbers and dates as they are written, and writes others in the same form.

mod calendar;
mod date_form;
mod find;
mod form;
pub mod geometric;
mod grid;
mod settings;

use std::ops::Deref;
use std::sync::Arc;

use rand::Rng;

use crate::support::error::{Error, Result, check_epsilon};
use crate::support::parallel::for_all;
use crate::support::random::Key;
pub use calendar::Civil;
pub use date_form::DateForm;
pub use find::{Figure, Figures};
pub use form::{Form, NumberForm};
pub use geometric::Geometric;
use grid::{Grid, MAX_POINTS};
pub use settings::{DateSettings, NumberSettings, Order, Scale};

/// Maximum number of points whose probabilities are returned.
pub const MAX_LISTED_POINTS: u64 = 1 << 22;
/// Numbers of a column that share a stream of random bits.
const ITEMS_PER_STREAM: usize = 1 << 16;

/// The law of a number or a date on the places of its grid. Dates are numbers, of days since 1970-01-01.
#[derive(Clone, Debug)]
pub struct Line {
    epsilon: f64,
    grid: Grid,
    ends: (i64, i64),
    law: Arc<Geometric>,
}

impl Line {
    fn new(epsilon: f64, grid: Grid, (first, last): (f64, f64)) -> Result<Self> {
        Ok(Line {
            epsilon,
            grid,
            ends: (first as i64, last as i64),
            law: Arc::new(Geometric::new(epsilon * grid.unit())?),
        })
    }

    /// ε per 1 of the metric.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The law of the offset, in steps.
    pub fn law(&self) -> &Geometric {
        &self.law
    }

    /// The first and the last place of the grid.
    pub fn ends(&self) -> (i64, i64) {
        self.ends
    }

    /// The place of a number, clamped; none of NaN.
    #[inline]
    pub fn place(&self, x: f64) -> Option<i64> {
        (!x.is_nan()).then(|| self.grid.place(x).clamp(self.ends.0, self.ends.1))
    }

    /// The value of a place.
    #[inline]
    pub fn value(&self, place: i64) -> f64 {
        self.grid.value(place)
    }

    /// ε times the distance of two places, rounded up.
    pub fn bound(&self, a: i64, b: i64) -> f64 {
        match a.abs_diff(b) {
            0 => 0.0,
            steps => (self.law.epsilon() * steps as f64).next_up(),
        }
    }

    /// The probability of every place of the grid, from the first, for the input at a place.
    ///
    /// # Errors
    /// [`Error::Parameter`] where the grid has more than [`MAX_LISTED_POINTS`] points.
    pub fn probabilities(&self, place: i64) -> Result<Vec<f64>> {
        if self.ends.1.abs_diff(self.ends.0) >= MAX_LISTED_POINTS {
            let expected =
                format!("one of which the range holds at most {MAX_LISTED_POINTS} points");
            return Err(Error::parameter("unit", expected, "more"));
        }
        Ok(self.law.probabilities(place, self.ends))
    }

    pub(crate) fn draw(&self, place: i64, rng: &mut impl Rng) -> i64 {
        self.law.draw(place, self.ends, rng)
    }

    /// Replaces numbers by their draws; NaN stays. Each chunk has its own stream of random bits, so the draws do not
    /// depend on the number of threads.
    pub fn privatize(&self, numbers: &mut [f64], key: &Key) {
        let chunks = numbers.chunks_mut(ITEMS_PER_STREAM).enumerate();
        // No draw fails.
        let _ = for_all(chunks, |(at, chunk)| {
            let mut rng = key.stream(at as u64);
            for x in chunk {
                if let Some(place) = self.place(*x) {
                    *x = self.value(self.draw(place, &mut rng));
                }
            }
            Ok(())
        });
    }
}

/// Numbers or dates by the [law](Line) of their settings. See the [module](self).
#[derive(Clone, Debug)]
pub struct Settled<S> {
    /// All are given.
    settings: S,
    line: Line,
}

/// Numbers.
pub type Number = Settled<NumberSettings>;
/// Dates.
pub type Date = Settled<DateSettings>;

impl<S> Settled<S> {
    /// All settings.
    pub fn settings(&self) -> &S {
        &self.settings
    }
}

impl<S> Deref for Settled<S> {
    type Target = Line;

    fn deref(&self) -> &Line {
        &self.line
    }
}

impl<S: PartialEq> PartialEq for Settled<S> {
    fn eq(&self, other: &Self) -> bool {
        self.settings == other.settings
    }
}

fn given_epsilon(epsilon: Option<f64>) -> Result<f64> {
    let missing = || Error::parameter("epsilon", "given", "none");
    check_epsilon(epsilon.ok_or_else(missing)?)
}

/// Refuses what is not positive and finite.
fn positive(name: &'static str, value: f64) -> Result<f64> {
    match value > 0.0 && value.is_finite() {
        true => Ok(value),
        false => Err(Error::parameter(name, "a positive finite number", value)),
    }
}

impl Number {
    /// The default unit, smallest size and largest size of the log scale.
    const UNIT: f64 = 0.01;
    const SMALLEST: f64 = 0.01;
    const LARGEST: f64 = 1e9;
    /// The farthest that a range may reach.
    const FARTHEST: f64 = 1e200;

    /// Creates the law from its settings.
    ///
    /// # Errors
    /// [`Error::Parameter`] that names what is outside its domain.
    pub fn new(settings: &NumberSettings) -> Result<Self> {
        let epsilon = given_epsilon(settings.epsilon)?;
        let (grid, low, high, smallest) = match settings.scale {
            Scale::Log => {
                let unit = positive("unit", settings.unit.unwrap_or(Self::UNIT))?;
                let smallest = positive("smallest", settings.smallest.unwrap_or(Self::SMALLEST))?;
                if smallest < 1e-100 {
                    return Err(Error::parameter("smallest", "at least 1e-100", smallest));
                }
                let low = settings.low.unwrap_or(-Self::LARGEST);
                let high = settings.high.unwrap_or(Self::LARGEST);
                for (name, end) in [("low", low), ("high", high)] {
                    if end != 0.0 && end.abs() < smallest {
                        let expected = format!("0, or at least smallest = {smallest} in size");
                        return Err(Error::parameter(name, expected, end));
                    }
                }
                (Grid::Log { unit, smallest }, low, high, Some(smallest))
            }
            Scale::Linear => {
                if let Some(smallest) = settings.smallest {
                    let expected = "left out on the linear scale";
                    return Err(Error::parameter("smallest", expected, smallest));
                }
                let unit = positive("unit", settings.unit.unwrap_or(1.0))?;
                let given = |name, end: Option<f64>| {
                    let expected = "given on the linear scale: the range is public";
                    end.ok_or_else(|| Error::parameter(name, expected, "none"))
                };
                let (low, high) = (given("low", settings.low)?, given("high", settings.high)?);
                (Grid::linear(unit), low, high, None)
            }
        };
        for (name, end) in [("low", low), ("high", high)] {
            if end.is_nan() || end.abs() > Self::FARTHEST {
                return Err(Error::parameter(name, "a number from -1e200 to 1e200", end));
            }
        }
        if high <= low {
            let expected = format!("above low = {low}");
            return Err(Error::parameter("high", expected, high));
        }
        let (first, last) = grid.ends(low, high);
        if first > last || first.abs().max(last.abs()) >= MAX_POINTS {
            let expected = "one of which the range holds from 1 to 2^52 steps";
            return Err(Error::parameter("unit", expected, grid.unit()));
        }
        if !matches!(settings.decimal, '.' | ',') {
            let got = format!("{:?}", settings.decimal);
            return Err(Error::parameter("decimal", "'.' or ','", got));
        }
        let settings = NumberSettings {
            unit: Some(grid.unit()),
            low: Some(low),
            high: Some(high),
            smallest,
            ..*settings
        };
        Ok(Number {
            settings,
            line: Line::new(epsilon, grid, (first, last))?,
        })
    }
}

impl Date {
    /// Creates the law from its settings.
    ///
    /// # Errors
    /// [`Error::Parameter`] that names what is outside its domain.
    pub fn new(settings: &DateSettings) -> Result<Self> {
        let epsilon = given_epsilon(settings.epsilon)?;
        let (first, last) = (settings.low.days() as f64, settings.high.days() as f64);
        if last <= first {
            let expected = format!("a date after low = {}", settings.low);
            return Err(Error::parameter("high", expected, "one before it"));
        }
        Ok(Date {
            settings: settings.clone(),
            line: Line::new(epsilon, Grid::linear(1.0), (first, last))?,
        })
    }
}
