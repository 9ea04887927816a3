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
mod digits;
mod find;
mod form;
pub mod geometric;
mod grid;
mod likeliest;
mod settings;

use std::sync::Arc;

use rand::Rng;
use rand::rngs::ChaCha12Rng;

use crate::support::error::{Error, Result, check_epsilon};
use crate::support::names::named;
use crate::support::parallel::for_all;
use crate::support::random::Key;
pub use calendar::Civil;
pub use date_form::DateForm;
pub use find::{Figure, Figures};
pub use form::{Form, NumberForm};
pub use geometric::Geometric;
use grid::{Days, Grid, MAX_POINTS};
pub use likeliest::Likeliest;

/// Maximum number of points whose probabilities are returned.
pub const MAX_LISTED_POINTS: u64 = 1 << 22;
/// Maximum number of points whose values are cached.
const MAX_CACHED_POINTS: i64 = 1 << 16;
/// Numbers of a column that share a stream of random bits.
const ITEMS_PER_STREAM: usize = 1 << 16;

/// The metric on numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// |ln x - ln x'|.
    #[default]
    Log,
    /// |x - x'|.
    Linear,
}

named!(Scale, "scale", Scale::Log => "log", Scale::Linear => "linear");

/// The law of a number: its parameters and its grid. See the [module](self).
#[derive(Clone, Debug)]
pub struct Number {
    epsilon: f64,
    scale: Scale,
    grid: Grid,
    low: f64,
    high: f64,
    ends: (i64, i64),
    decimal: char,
    law: Arc<Geometric>,
    /// The values of all places from the first, where they are few.
    values: Arc<[f64]>,
}

/// The settings of a [`Number`]; `None` is the default of each.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberSettings {
    /// ε per 1 of the metric.
    pub epsilon: f64,
    /// The metric.
    pub scale: Scale,
    /// The step of the grid: by default 0.01 of ln x, or 1.
    pub unit: Option<f64>,
    /// The public range: by default ±10⁹ on the log scale; needed on the linear one.
    pub low: Option<f64>,
    /// See `low`.
    pub high: Option<f64>,
    /// On the log scale the smallest size beside zero: by default 0.01.
    pub smallest: Option<f64>,
    /// In text, the sign before decimals: a point, or a comma.
    pub decimal: char,
}

impl NumberSettings {
    /// An ε and a scale, everything else by default.
    pub fn new(epsilon: f64, scale: Scale) -> Self {
        NumberSettings {
            epsilon,
            scale,
            unit: None,
            low: None,
            high: None,
            smallest: None,
            decimal: '.',
        }
    }
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
        let epsilon = check_epsilon(settings.epsilon)?;
        let (grid, low, high) = match settings.scale {
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
                (Grid::Log { unit, smallest }, low, high)
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
                (Grid::linear(unit), low, high)
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
        let law = Arc::new(Geometric::new(epsilon * grid.unit())?);
        let (first, last) = (first as i64, last as i64);
        let values = match last - first < MAX_CACHED_POINTS {
            true => (first..=last).map(|place| grid.value(place)).collect(),
            false => Vec::new(),
        };
        Ok(Number {
            epsilon,
            scale: settings.scale,
            grid,
            low,
            high,
            ends: (first, last),
            decimal: settings.decimal,
            law,
            values: values.into(),
        })
    }

    /// ε per 1 of the metric.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The metric.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// The step of the grid.
    pub fn unit(&self) -> f64 {
        self.grid.unit()
    }

    /// The range.
    pub fn range(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// On the log scale the smallest size beside zero.
    pub fn smallest(&self) -> Option<f64> {
        match self.grid {
            Grid::Log { smallest, .. } => Some(smallest),
            Grid::Linear { .. } => None,
        }
    }

    /// In text, the sign before decimals.
    pub fn decimal(&self) -> char {
        self.decimal
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
        let kept = usize::try_from(place.wrapping_sub(self.ends.0));
        let kept = kept.ok().and_then(|at| self.values.get(at));
        kept.copied().unwrap_or_else(|| self.grid.value(place))
    }

    /// The distance of two places.
    pub fn distance(&self, a: i64, b: i64) -> f64 {
        self.grid.unit() * a.abs_diff(b) as f64
    }

    /// ε times the distance of two places, rounded up.
    pub fn bound(&self, a: i64, b: i64) -> f64 {
        bound(&self.law, a, b)
    }

    /// The probability of every place of the grid, from the first, for the input at a place.
    ///
    /// # Errors
    /// [`Error::Parameter`] where the grid has more than [`MAX_LISTED_POINTS`] points.
    pub fn probabilities(&self, place: i64) -> Result<Vec<f64>> {
        probabilities_in(&self.law, place, self.ends, "unit")
    }

    /// Draws for a place.
    pub(crate) fn draw(&self, place: i64, rng: &mut impl Rng) -> i64 {
        self.law.draw(place, self.ends, rng)
    }

    /// Replaces numbers by their draws; NaN stays.
    pub fn privatize(&self, numbers: &mut [f64], key: &Key) {
        change_all(numbers, key, |x, rng| {
            if let Some(place) = self.place(*x) {
                *x = self.value(self.draw(place, rng));
            }
        });
    }
}

/// The order of a date's parts in 03/05/2026.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Day, month, year.
    Dmy,
    /// Month, day, year.
    Mdy,
}

named!(Order, "order", Order::Dmy => "dmy", Order::Mdy => "mdy");

/// The step of the grid of dates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DateUnit {
    /// Every day.
    #[default]
    Day,
    /// Every seventh day from the first of the range.
    Week,
}

named!(DateUnit, "unit", DateUnit::Day => "day", DateUnit::Week => "week");

/// The law of a date: its parameters and its grid. See the [module](self).
#[derive(Clone, Debug)]
pub struct Date {
    epsilon: f64,
    unit: DateUnit,
    days: Days,
    order: Option<Order>,
    law: Arc<Geometric>,
}

impl Date {
    /// The range by default: 1900-01-01 to 2099-12-31.
    pub const RANGE: (Civil, Civil) = (
        Civil {
            year: 1900,
            month: 1,
            day: 1,
        },
        Civil {
            year: 2099,
            month: 12,
            day: 31,
        },
    );

    /// Creates the law with an ε per day.
    ///
    /// # Errors
    /// [`Error::Parameter`] that names what is outside its domain.
    pub fn new(
        epsilon: f64,
        unit: DateUnit,
        (low, high): (Civil, Civil),
        order: Option<Order>,
    ) -> Result<Self> {
        check_epsilon(epsilon)?;
        let (first, last) = (low.days(), high.days());
        if last <= first {
            return Err(Error::parameter(
                "high",
                "a date after low",
                "one before it",
            ));
        }
        let step = match unit {
            DateUnit::Day => 1,
            DateUnit::Week => 7,
        };
        let days = Days { first, last, step };
        let law = Arc::new(Geometric::new(epsilon * step as f64)?);
        Ok(Date {
            epsilon,
            unit,
            days,
            order,
            law,
        })
    }

    /// ε per day.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The step of the grid.
    pub fn unit(&self) -> DateUnit {
        self.unit
    }

    /// The first and the last day of the range.
    pub fn range(&self) -> (Civil, Civil) {
        (Civil::of(self.days.first), Civil::of(self.days.last))
    }

    /// The order of 03/05/2026, if one is stated.
    pub fn order(&self) -> Option<Order> {
        self.order
    }

    /// The law of the offset, in steps.
    pub fn law(&self) -> &Geometric {
        &self.law
    }

    /// The grid, of days with a year or without.
    fn grid(&self, with_year: bool) -> Days {
        match with_year {
            true => self.days,
            false => Days::of_a_year(self.days.step),
        }
    }

    /// The first and the last place of the grid.
    pub fn ends(&self) -> (i64, i64) {
        self.days.range()
    }

    /// The place of a day, clamped. Days count from 1970-01-01.
    pub fn place(&self, days: i64) -> i64 {
        self.days.place(days)
    }

    /// The day of a place.
    pub fn days(&self, place: i64) -> i64 {
        self.days.days(place)
    }

    /// ε times the distance of two places, rounded up.
    pub fn bound(&self, a: i64, b: i64) -> f64 {
        bound(&self.law, a, b)
    }

    /// The probability of every place of the grid, from the first, for the input at a place.
    ///
    /// # Errors
    /// [`Error::Parameter`] where the grid has more than [`MAX_LISTED_POINTS`] points.
    pub fn probabilities(&self, place: i64) -> Result<Vec<f64>> {
        probabilities_in(&self.law, place, self.ends(), "high")
    }

    /// Draws for a place.
    pub(crate) fn draw(&self, place: i64, with_year: bool, rng: &mut impl Rng) -> i64 {
        self.law.draw(place, self.grid(with_year).range(), rng)
    }

    /// Replaces days by their draws.
    pub fn privatize(&self, days: &mut [i64], key: &Key) {
        change_all(days, key, |day, rng| {
            *day = self.days.days(self.draw(self.days.place(*day), true, rng));
        });
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        let all = |n: &Number| (n.epsilon, n.grid, n.low, n.high, n.decimal);
        all(self) == all(other)
    }
}

impl PartialEq for Date {
    fn eq(&self, other: &Self) -> bool {
        let all = |d: &Date| (d.epsilon, d.days, d.order);
        all(self) == all(other)
    }
}

fn bound(law: &Geometric, a: i64, b: i64) -> f64 {
    match a.abs_diff(b) {
        0 => 0.0,
        steps => (law.epsilon() * steps as f64).next_up(),
    }
}

fn probabilities_in(
    law: &Geometric,
    place: i64,
    ends: (i64, i64),
    name: &'static str,
) -> Result<Vec<f64>> {
    if ends.1.abs_diff(ends.0) >= MAX_LISTED_POINTS {
        let expected = format!("one of which the range holds at most {MAX_LISTED_POINTS} points");
        return Err(Error::parameter(name, expected, "more"));
    }
    Ok(law.probabilities(place, ends))
}

/// Changes all items. Each chunk has its own stream of random bits, so the draws do not depend on the number of threads.
fn change_all<T: Send>(
    items: &mut [T],
    key: &Key,
    change: impl Fn(&mut T, &mut ChaCha12Rng) + Sync,
) {
    let chunks = items.chunks_mut(ITEMS_PER_STREAM).enumerate();
    // No change fails.
    let _ = for_all(chunks, |(at, chunk)| {
        let mut rng = key.stream(at as u64);
        chunk.iter_mut().for_each(|item| change(item, &mut rng));
        Ok(())
    });
}
