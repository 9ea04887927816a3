//! Rough distances of the whole vocabulary to some words, in blocks that stay in the cache.

use crate::words::space::MetricSpace;

/// Words whose distances are computed together.
pub(super) const LANES: usize = 64;
/// Words of the vocabulary in a block.
pub(super) const ROWS: usize = 256;

/// Working memory.
#[derive(Default)]
pub(super) struct RoughDistances {
    rough: Vec<f32>,
    exact: Vec<f64>,
}

impl RoughDistances {
    /// Calls a function with each block of the vocabulary in turn: rows of [`LANES`] distances to
    /// `ids` (at most as many), and a bound on their relative error. Lanes behind the ids may hold
    /// anything. Stops where the function returns `None`.
    pub(super) fn each_block(
        &mut self,
        space: &dyn MetricSpace,
        ids: &[u32],
        mut one: impl FnMut(&[f32], f64) -> Option<()>,
    ) -> Option<()> {
        let all: Vec<u32> = (0..space.vocabulary().len() as u32).collect();
        all.chunks(ROWS).try_for_each(|some| {
            let (rough, relative) = self.block(space, some, ids);
            one(rough, relative)
        })
    }

    /// The same for some words of the vocabulary, at most [`ROWS`].
    pub(super) fn block(
        &mut self,
        space: &dyn MetricSpace,
        some: &[u32],
        ids: &[u32],
    ) -> (&[f32], f64) {
        self.rough.resize(ROWS * LANES, 0.0);
        let rough = &mut self.rough[..some.len() * LANES];
        let relative = match space.bounded_distances(some, ids, rough, LANES) {
            Some(relative) => relative,
            None => {
                self.exact.resize(ROWS * LANES, 0.0);
                space.block(some, ids, &mut self.exact, LANES);
                for (rough, &exact) in rough.iter_mut().zip(&self.exact) {
                    *rough = exact as f32;
                }
                f64::from(f32::EPSILON)
            }
        };
        (rough, relative)
    }
}
