//! Bits and capacity from the laws of some words, each with an interval.

mod bits;
mod capacity;
mod mean;
mod texts;

pub(super) use bits::sampled_bits;
pub(super) use capacity::sampled_capacity;

/// Standard errors that an interval goes beyond its bounds: 99.7%.
const WIDTH: f64 = 3.0;
