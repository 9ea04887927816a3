//! A number of bits that knows how exact it is.

/// Bits, and between what they lie where they are estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bits {
    /// Bits.
    pub value: f64,
    /// The lower end of the interval; the value itself where it is exact.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Words (of a capacity: outputs) that were drawn to estimate it; 0 where it is a sum over all.
    pub sampled: usize,
    /// Draws of every word that the law is estimated from; 0 where the law is exact.
    pub draws: usize,
}

impl Bits {
    pub(super) fn exact(value: f64) -> Self {
        Bits {
            value,
            low: value,
            high: value,
            sampled: 0,
            draws: 0,
        }
    }
}
