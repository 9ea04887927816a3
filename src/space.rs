//! A finite metric space of words: all that the truncated exponential mechanism needs.
//!
//! An [`Embedding`](crate::Embedding) is one; a word graph with shortest paths is another. The
//! noise mechanisms need more (vectors to add noise to) and take an embedding.

use crate::vocabulary::Vocabulary;

/// Words and a metric on them.
///
/// Implementations must be *metrics* in the arithmetic they compute in: `distance` is
/// non-negative, 0 on equal ids, bit-for-bit symmetric, and `distances` gives bit for bit the
/// values of `distance`. The privacy proofs rest on this.
pub trait MetricSpace: Send + Sync {
    /// The words.
    fn vocabulary(&self) -> &Vocabulary;

    /// The metric's name, for guarantees and messages.
    fn metric_name(&self) -> &'static str;

    /// Distance between two words, by id.
    fn distance(&self, a: u32, b: u32) -> f64;

    /// Distances from word `a` to every word; `out.len()` is the size of the vocabulary.
    fn distances(&self, a: u32, out: &mut [f64]);
}
