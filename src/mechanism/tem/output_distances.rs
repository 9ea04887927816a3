//! Distances from a word to outputs, for tries outside the list: bounds first, then the distance.

use super::outside::{Distances, Needed};
use crate::cover::Cover;
use crate::distance::metric::{Limits, Proven};
use crate::words::space::MetricSpace;

/// The distances from a word to the outputs: to words, or to the sets of a cover's ranks.
pub(super) struct OutputDistances<'a> {
    pub(super) space: &'a dyn MetricSpace,
    pub(super) id: u32,
    pub(super) cover: Option<&'a Cover>,
}

/// The comparisons that bounds prove for one output.
#[derive(Default)]
struct OutputProven {
    beyond: bool,
    within: bool,
    outside: bool,
}

impl OutputDistances<'_> {
    /// Compares bounds on the distance to the output y, which is the least distance to its set, with
    /// the limits at `i`.
    #[inline]
    fn compare_set(&self, cover: &Cover, y: u32, limits: &Limits, i: usize) -> OutputProven {
        let compared = |(least, most): (f64, f64)| OutputProven {
            beyond: least > limits.far[i],
            within: most <= limits.near[i],
            outside: least > limits.least,
        };
        let set = cover.set(y);
        match self.space.nearest_bounds(self.id, set) {
            Some(bounds) => compared(bounds),
            None => OutputProven {
                beyond: self.all_beyond(set, limits.far[i]),
                ..OutputProven::default()
            },
        }
    }

    /// Keeps the words that the bounds do not prove to be farther than `far`; at most 64.
    fn not_beyond<'b>(&self, words: &[u32], far: f64, kept: &'b mut [u32; 64]) -> &'b [u32] {
        let (far, near) = (&[far; 64][..words.len()], &[-1.0; 64][..words.len()]);
        let least = f64::INFINITY;
        let limits = Limits { far, near, least };
        let proven = self.space.compare_bounds(self.id, words, &limits);
        let mut count = 0;
        for (i, &word) in words.iter().enumerate() {
            kept[count] = word;
            count += usize::from(proven.beyond >> i & 1 == 0);
        }
        &kept[..count]
    }

    /// Whether the bounds prove that all words are farther than `far`.
    fn all_beyond(&self, words: &[u32], far: f64) -> bool {
        const SOME: usize = 64;
        words.chunks(SOME).all(|some| {
            let (far, near) = (&[far; SOME][..some.len()], &[-1.0; SOME][..some.len()]);
            let least = f64::INFINITY;
            let proven = self
                .space
                .compare_bounds(self.id, some, &Limits { far, near, least });
            proven.beyond.count_ones() as usize == some.len()
        })
    }
}

impl Distances for OutputDistances<'_> {
    #[inline]
    fn compare_bounds(&self, outputs: &[u32], limits: &Limits, needed: Needed) -> Proven {
        let Some(cover) = self.cover else {
            return self.space.compare_bounds(self.id, outputs, limits);
        };
        outputs.iter().for_each(|&y| cover.prefetch(y));
        let (mut proven, mut certain) = (Proven::default(), 0);
        for (i, &y) in outputs.iter().enumerate() {
            if needed.inside >> i & 1 == 1 {
                certain += 1;
            } else {
                let each = self.compare_set(cover, y, limits, i);
                proven.beyond |= u64::from(each.beyond) << i;
                proven.within |= u64::from(each.within) << i;
                proven.outside |= u64::from(each.outside) << i;
                certain += usize::from(each.within && each.outside);
            }
            if certain == needed.left {
                break;
            }
        }
        proven
    }

    fn distances(&self, outputs: &[u32], far: &[f64], out: &mut [f64]) {
        let Some(cover) = self.cover else {
            return self.space.distances_to(self.id, outputs, out);
        };
        let (mut each, mut near) = ([0.0; 64], [0; 64]);
        for ((&y, &far), out) in outputs.iter().zip(far).zip(out) {
            *out = f64::INFINITY;
            let set = cover.set(y);
            if set.contains(&self.id) {
                let own = std::slice::from_mut(out);
                self.space.distances_to(self.id, &[self.id], own);
                if own == [0.0] {
                    // No other word is nearer.
                    continue;
                }
            }
            for some in set.chunks(each.len()) {
                let some = self.not_beyond(some, far, &mut near);
                let each = &mut each[..some.len()];
                self.space.distances_to(self.id, some, each);
                *out = each.iter().copied().fold(*out, f64::min);
            }
        }
    }
}
