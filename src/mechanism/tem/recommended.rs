//! The policy that the documentation recommends and that the command uses by default, on the
//! built-in English words.
//!
//! It is a Tem on a balanced cover that excludes the built-in list of offensive words. It was
//! chosen for its consequences for sentences, not for its ε: docs/explanation/what-you-keep.md has
//! the measurements.

/// ε per unit of Euclidean distance.
pub const EPSILON: f64 = 2.25;
/// Outputs per word in the cover.
pub const COVER: usize = 40;
/// The cost of a factor of 2 in frequency: see [`Balance`](crate::cover::Balance).
pub const BALANCE: f64 = 0.1;
