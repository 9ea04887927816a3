//! Nearest words of arbitrary points.
//!
//! The noise mechanisms release the nearest word of a noisy point. The search is exact, so the
//! law of the output is the mechanism's own. An approximate search, [`hnsw`], is still private,
//! being post-processing, but gives another law than the one calibrated:
//! [`mechanism::quality`](crate::mechanism::quality) measures it.

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
    /// One that a graph leads to, looking at `ef` candidates.
    Hnsw {
        /// Candidates, 1 to 10,000.
        ef: usize,
    },
}

/// The largest V·n at which [`automatic`] stays exact, the largest at which the exact search was
/// measured. Graphs were measured up to a quarter of it, and none that kept the law was faster.
pub const EXACT_UP_TO: usize = 400_000 * 300;

/// The search that serves `words` words in `dim` dimensions.
pub fn automatic(words: usize, dim: usize) -> Search {
    if words.saturating_mul(dim) <= EXACT_UP_TO {
        Search::Exact
    } else {
        Search::Hnsw { ef: 256 }
    }
}

/// Queries that are searched together: enough to reuse a panel of words from the first-level
/// cache, few enough to stay in the second.
pub const BATCH: usize = 96;
