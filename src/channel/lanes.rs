//! Numbers of several sentences side by side.

use std::ops::{Deref, DerefMut};

/// Numbers of `L` sentences that are worked on together: one number is loaded from the model for all
/// of them, and vector instructions do the rest.
pub(super) type Lanes<const L: usize> = [f64; L];

/// Tokens whose lanes are taken apart or put together at a time: they stay in the first-level cache.
pub(super) const TOKENS_PER_TILE: usize = 128;

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// A vector of [`Lanes`] that begins with a line of the cache: lanes that lie across two lines are
/// loaded and stored at half the speed.
pub(super) struct LaneVec<const L: usize> {
    numbers: Vec<f64>,
    first: usize,
    count: usize,
}

impl<const L: usize> LaneVec<L> {
    pub(super) fn new(value: f64, count: usize) -> Self {
        let room = LINE / size_of::<f64>() - 1;
        let numbers = vec![value; count * L + room];
        let first = numbers.as_ptr().align_offset(LINE).min(room);
        LaneVec {
            numbers,
            first,
            count,
        }
    }
}

impl<const L: usize> Deref for LaneVec<L> {
    type Target = [Lanes<L>];

    fn deref(&self) -> &[Lanes<L>] {
        self.numbers[self.first..][..self.count * L].as_chunks().0
    }
}

impl<const L: usize> DerefMut for LaneVec<L> {
    fn deref_mut(&mut self) -> &mut [Lanes<L>] {
        self.numbers[self.first..][..self.count * L]
            .as_chunks_mut()
            .0
    }
}

impl<const L: usize> Clone for LaneVec<L> {
    fn clone(&self) -> Self {
        let mut copy = Self::new(0.0, self.count);
        copy.copy_from_slice(self);
        copy
    }
}

/// Σ a·b in every lane: independent partial sums, so that additions do not wait for each other.
#[inline(always)]
pub(super) fn dot<const L: usize>(a: &[f64], b: &[Lanes<L>]) -> Lanes<L> {
    const PARTS: usize = 4;
    let mut sums = [[0.0; L]; PARTS];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<PARTS>(), b.as_chunks::<PARTS>());
    for (a, b) in a.iter().zip(b) {
        for part in 0..PARTS {
            add_scaled(&mut sums[part], a[part], &b[part]);
        }
    }
    let mut total = [0.0; L];
    for (a, b) in a_rest.iter().zip(b_rest) {
        add_scaled(&mut total, *a, b);
    }
    for sum in &sums {
        add_scaled(&mut total, 1.0, sum);
    }
    total
}

#[inline(always)]
pub(super) fn add_scaled<const L: usize>(to: &mut Lanes<L>, by: f64, from: &Lanes<L>) {
    for l in 0..L {
        to[l] += by * from[l];
    }
}

/// Whether a lane is above 0.
#[inline(always)]
pub(super) fn any<const L: usize>(x: &Lanes<L>) -> bool {
    let mut found = false;
    for value in x {
        found |= *value > 0.0;
    }
    found
}

/// 1/x, 1 where x is not above 0.
#[inline(always)]
pub(super) fn inverse<const L: usize>(x: &Lanes<L>) -> Lanes<L> {
    let mut found = [0.0; L];
    for l in 0..L {
        found[l] = if x[l] > 0.0 { 1.0 / x[l] } else { 1.0 };
    }
    found
}
