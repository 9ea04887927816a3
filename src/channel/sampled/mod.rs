//! Bits from the laws of some words and from releases of some texts, with intervals.

mod bits;
mod texts;

pub(super) use bits::sampled_bits;

/// Standard errors that an interval goes beyond its bounds: 99.7%.
const WIDTH: f64 = 3.0;
