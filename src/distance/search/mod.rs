//! Nearest words of arbitrary points.
//!
//! Noise mechanisms release the nearest word of a noisy point. The search is exact, so the law of
//! the output is the mechanism's own. An approximate search ([`hnsw`]) is still private, because it
//! is post-processing, but it changes the calibrated law.
//! README.md, beside this file, explains the exact search step by step.

mod collector;
pub(crate) mod exact;
mod filter;
pub mod hnsw;
mod kernel;
mod scoring;

pub use exact::ExactSearch;
pub use hnsw::{Hnsw, HnswParameters};

/// The search that a noise mechanism uses for the nearest word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Search {
    /// The true nearest word.
    #[default]
    Exact,
    /// A word found by following an HNSW graph with `ef` candidates; needs the feature `hnsw`.
    Hnsw {
        /// Number of candidates, 1 to 10,000.
        ef: usize,
    },
}

/// Queries in one unit of work, such as those that one random stream draws.
pub const BATCH: usize = 96;

/// Most queries searched together: they all multiply a panel of words before the next panel is
/// fetched from memory.
pub(crate) const MAX_QUERIES: usize = 384;

/// How many of `items` queries to search together, so that each of `threads` threads gets equal
/// work.
pub(crate) fn batch_size(items: usize, threads: usize) -> usize {
    let rounds = items.div_ceil(threads * MAX_QUERIES).max(1);
    items.div_ceil(threads * rounds).max(1)
}
