//! Limits that bounds on distances are compared with, and the comparisons that the bounds prove.

/// Limits for the distances d to some words. Bounds may prove d > `far`, d ≤ `near` or d > `least`.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// Words beyond this distance are irrelevant; one number per word.
    pub far: &'a [f64],
    /// Words up to this distance are certainly relevant; one number per word.
    pub near: &'a [f64],
    /// Words up to this distance are handled elsewhere.
    pub least: f64,
}

/// Comparisons that the bounds prove for up to 64 words. A bit is set if the comparison certainly
/// holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proven {
    /// d > `far`.
    pub beyond: u64,
    /// d ≤ `near`.
    pub within: u64,
    /// d > `least`.
    pub outside: u64,
}
