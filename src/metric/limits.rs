//! Questions about distances that bounds can answer, and their answers.

/// What is asked of the distance d to each of some words: whether d > `far`, whether d ≤ `near`, whether
/// d > `least`.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// From here on a word is of no interest; a number for every word.
    pub far: &'a [f64],
    /// Up to here it is of interest for certain; a number for every word.
    pub near: &'a [f64],
    /// Up to here it is dealt with otherwise.
    pub least: f64,
}

/// What has been seen of up to 64 words, a bit each, that is set where it is certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// d > `far`.
    pub beyond: u64,
    /// d ≤ `near`.
    pub within: u64,
    /// d > `least`.
    pub outside: u64,
}
