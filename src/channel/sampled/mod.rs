//! Bits and capacity from the laws of some words, each with an interval.

mod bits;
mod capacity;
mod mean;

pub(super) use bits::sampled_bits;
pub(super) use capacity::sampled_capacity;
