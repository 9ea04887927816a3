//! The policy that the documents use and the command takes by itself, on the built-in English words.
//!
//! A Tem on a balanced cover, the built-in list of offensive words excluded. It is chosen by its
//! consequences for sentences, not by its ε: docs/explanation/what-you-keep.md has the measurements.

/// ε per unit of Euclidean distance.
pub const EPSILON: f64 = 2.25;
/// Outputs that a word stands for.
pub const COVER: usize = 40;
/// The cost of a factor of 2 in frequency: see [`Balance`](crate::cover::Balance).
pub const BALANCE: f64 = 0.1;
