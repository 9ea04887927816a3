//! Nearest words of arbitrary points.
//!
//! The noise mechanisms release the nearest word of a noisy point. The search is exact, so the
//! law of the output is the mechanism's own. An approximate search, [`hnsw`], is still private,
//! being post-processing, but gives another law than the one calibrated:
//! [`mechanism::quality`](crate::mechanism::quality) measures it. README.md, beside this file,
//! explains the exact search step by step.

mod collector;
pub(crate) mod exact;
mod filter;
pub mod hnsw;
mod kernel;
mod scoring;

pub use exact::ExactSearch;
pub use hnsw::{Hnsw, HnswParameters};

/// How a noise mechanism finds the nearest word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Search {
    /// The true nearest word.
    #[default]
    Exact,
    /// One that a graph leads to, looking at `ef` candidates; with the feature `hnsw`.
    Hnsw {
        /// Candidates, 1 to 10,000.
        ef: usize,
    },
}

/// Queries of one piece of work: what a thread draws from one stream of random numbers, say.
pub const BATCH: usize = 96;

/// Most queries that are searched together: so many multiply a panel of words before the next one is
/// fetched from memory.
pub(crate) const TOGETHER: usize = 384;

/// How many of `items` queries to search together so that every one of `threads` has as much to do.
pub(crate) fn together(items: usize, threads: usize) -> usize {
    let rounds = items.div_ceil(threads * TOGETHER).max(1);
    items.div_ceil(threads * rounds).max(1)
}
