//! Nearest words of arbitrary points.
//!
//! The noise mechanisms release the nearest word of a noisy point. The search is exact, so the
//! law of the output is the mechanism's own. (An approximate search would still be private,
//! being post-processing, but it would be another law than the one calibrated.)

pub(crate) mod exact;
mod form;
mod kernel;
mod screen;

pub use exact::ExactSearch;

/// Queries that are searched together: enough to reuse a panel of words from the first-level
/// cache, few enough to stay in the second.
pub const BATCH: usize = 96;
