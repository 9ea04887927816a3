//! The policy that the documentation recommends and that the command uses by default, on the
//! built-in English words.
//!
//! It is a Tem whose base measure is 1/(rank + 2.7) and that excludes the built-in list of offensive
//! words. It was chosen for its consequences for sentences, not for its ε: `python -m experiments
//! recommendation` has the measurements.

use crate::guarantee::Unchanged;

/// ε per unit of Euclidean distance.
pub const EPSILON: f64 = 2.6;

/// The fingerprint of its words and exclusions, as a cover, and that of its base measure.
pub(crate) const COVER: u64 = 0x9887_4d63_4c24_191c;
pub(crate) const BASE: u64 = 0x25db_b38e_7728_8b74;

/// How often common words come back under it, a sum over their laws. Every start of the command
/// shows it, and measuring it takes longer than the start. A test (`tests/python/calibration/test_recommended.py`) sums the
/// laws again.
pub(crate) const UNCHANGED: Unchanged = Unchanged {
    mean: 0.015_211_524_232_274_027,
    worst: 0.133_022_416_720_916_28,
    words: 1000,
    draws: 0,
};
