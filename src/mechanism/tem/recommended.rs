//! The policy that the documentation recommends and that the command uses by default, on the
//! built-in English words.
//!
//! It is a Tem on a balanced cover that excludes the built-in list of offensive words. It was
//! chosen for its consequences for sentences, not for its ε: docs/explanation/what-you-keep.md has
//! the measurements.

use crate::guarantee::Unchanged;

/// ε per unit of Euclidean distance.
pub const EPSILON: f64 = 2.25;
/// Outputs per word in the cover.
pub const COVER: usize = 40;
/// The cost of a factor of 2 in frequency: see [`Balance`](crate::cover::Balance).
pub const BALANCE: f64 = 0.1;

/// The fingerprint of its words, sets and exclusions: those of data/recommended.cover.
pub(crate) const FINGERPRINT: u64 = 0x247b_e4fa_d1f8_85ef;

/// How often common words come back under it, a sum over their laws. Every start of the command
/// shows it, and measuring it takes a second. A test (`tests/python/calibration/test_kept.py`) sums the
/// laws again.
pub(crate) const UNCHANGED: Unchanged = Unchanged {
    mean: 0.003_187_544_692_125_116_4,
    worst: 0.011_874_608_203_206_852,
    words: 1000,
    draws: 0,
};
