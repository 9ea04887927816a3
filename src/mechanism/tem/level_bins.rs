//! Finds the bins of all outputs for the [levels](super::levels) of many words together, from rough
//! distances.

use super::level_cuts::{Bins, LAST, MOST_ERROR};
use crate::cover::Cover;
use crate::law::base::BaseMeasure;
use crate::support::simd::vectorised;
use crate::words::space::MetricSpace;

/// Words whose distances are computed together.
pub(super) const LANES: usize = 64;
/// Words of the vocabulary in a block, which stays in the cache.
const ROWS: usize = 256;
/// Outputs whose bins are turned together from rows of words into rows of outputs.
const TILE: usize = 8;

/// Working memory of one thread.
#[derive(Default)]
pub(super) struct BinBuilder {
    rough: Vec<f32>,
    exact: Vec<f64>,
    /// For each word of the vocabulary, the bins of up to [`LANES`] words.
    columns: Vec<[u8; LANES]>,
    /// For each of those words, the bins of all outputs.
    each: Vec<u8>,
}

impl BinBuilder {
    /// Bytes of the memory for a vocabulary of so many words.
    pub(super) fn bytes(words: usize) -> usize {
        words.saturating_mul(2 * LANES)
    }

    /// Finds the bins of all outputs for up to [`LANES`] words, and calls a function with those of
    /// each word in turn. `bins` makes a word's bins from a distance that most outputs do not exceed.
    /// There may be a cover or a base measure. Returns whether it could: it cannot at extreme scales.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn build(
        &mut self,
        space: &dyn MetricSpace,
        cover: Option<&Cover>,
        base: Option<&BaseMeasure>,
        eta: f64,
        bins: impl Fn(f64) -> Bins,
        ids: &[u32],
        mut one: impl FnMut(u32, &Bins, &[u8]),
    ) -> bool {
        let count = space.vocabulary().len();
        let some: Vec<u32> = (0..count as u32).step_by(count.div_ceil(ROWS)).collect();
        self.distances(space, &some, ids);
        let far = &farthest(&self.rough[..some.len() * LANES])[..ids.len()];
        let each: Vec<Bins> = far.iter().map(|&far| bins(far.into())).collect();
        // Rough and exact distances have an absolute error each.
        let absolute = 2.0 * eta * space.distance_error();
        let mut scales = Scales {
            distance: [0.0; LANES],
            most: [0.0; LANES],
            penalty: [0.0; LANES],
        };
        let mut zeros = [0.0; LANES];
        for (lane, bins) in each.iter().enumerate() {
            let exact = eta * bins.per_exponent;
            // Far inside the range of f32.
            if !bins.have_room_for(absolute) || !(1e-15..1e15).contains(&exact) {
                return false;
            }
            scales.distance[lane] = exact as f32;
            scales.most[lane] = (bins.cap * bins.per_exponent) as f32;
            scales.penalty[lane] = bins.per_exponent as f32;
        }
        self.columns.resize(count, [LAST; LANES]);
        let all: Vec<u32> = (0..count as u32).collect();
        let none = vec![0.0; if base.is_some() { 0 } else { count }];
        let penalties = base.map_or(&*none, BaseMeasure::penalties);
        for (number, some) in all.chunks(ROWS).enumerate() {
            if self.distances(space, some, ids) > MOST_ERROR {
                return false;
            }
            let block = number * ROWS..number * ROWS + some.len();
            let penalties = &penalties[block.clone()];
            let (rough, columns) = (&self.rough[..some.len() * LANES], &mut self.columns[block]);
            bin_all(rough, &scales, penalties, &mut zeros, columns);
        }
        // A distance that is not finite has made its sum of zeros a NaN.
        if zeros[..ids.len()].iter().any(|&zero| zero != 0.0) {
            return false;
        }
        let outputs = cover.map_or(self.columns.len(), |cover| cover.released().len());
        let stride = outputs.next_multiple_of(TILE);
        self.each.resize(stride * LANES, LAST);
        turn_all(cover, &self.columns, outputs, &mut self.each);
        let all = each.iter().zip(self.each.chunks(stride));
        for (&id, (bins, each)) in ids.iter().zip(all) {
            one(id, bins, &each[..outputs]);
        }
        true
    }

    /// Fills `rough` with the distances of some words of the vocabulary, at most [`ROWS`], to `ids`:
    /// rows of [`LANES`], of which those behind the ids may hold anything. Returns a bound on their
    /// relative error.
    fn distances(&mut self, space: &dyn MetricSpace, some: &[u32], ids: &[u32]) -> f64 {
        self.rough.resize(ROWS * LANES, 0.0);
        let rough = &mut self.rough[..some.len() * LANES];
        space
            .bounded_distances(some, ids, rough, LANES)
            .unwrap_or_else(|| {
                self.exact.resize(ROWS * LANES, 0.0);
                space.block(some, ids, &mut self.exact, LANES);
                for (rough, &exact) in rough.iter_mut().zip(&self.exact) {
                    *rough = exact as f32;
                }
                f64::from(f32::EPSILON)
            })
    }
}

/// The largest distance of each lane, and a little more.
fn farthest(rows: &[f32]) -> [f32; LANES] {
    let mut most = [0f32; LANES];
    for row in rows.as_chunks::<LANES>().0 {
        for (most, &d) in most.iter_mut().zip(row) {
            *most = most.max(d);
        }
    }
    most.map(|most| most * 1.05)
}

/// The scales of each lane's bins: of distances, the largest place of a distance, of penalties.
struct Scales {
    distance: [f32; LANES],
    most: [f32; LANES],
    penalty: [f32; LANES],
}

vectorised! {
    /// Writes the bins of rows of distances, to which each row's penalty is added; adds zero times
    /// each distance to its lane of `zeros`.
    fn bin_all = bin_portable(
        rows: &[f32],
        scales: &Scales,
        penalties: &[f64],
        zeros: &mut [f32; LANES],
        columns: &mut [[u8; LANES]]
    )
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn bin_portable(
    rows: &[f32],
    scales: &Scales,
    penalties: &[f64],
    zeros: &mut [f32; LANES],
    columns: &mut [[u8; LANES]],
) {
    let mut sums = *zeros;
    let rows = rows.as_chunks::<LANES>().0.iter().zip(columns);
    for ((row, column), &penalty) in rows.zip(penalties) {
        let (penalty, last) = (penalty as f32, f32::from(LAST));
        let mut bins = [0i32; LANES];
        for lane in 0..LANES {
            let (near, most) = (row[lane] * scales.distance[lane], scales.most[lane]);
            let near = if near < most { near } else { most };
            let place = near + penalty * scales.penalty[lane];
            // A conversion of a number in range, which takes one instruction.
            bins[lane] = if place < last {
                place as i32
            } else {
                LAST.into()
            };
            sums[lane] += row[lane] * 0.0;
        }
        for lane in 0..LANES {
            column[lane] = bins[lane] as u8;
        }
    }
    *zeros = sums;
}

vectorised! {
    /// Writes each word's bins of all outputs. An output's bin is the least of those of its set.
    fn turn_all = turn_portable(
        cover: Option<&Cover>,
        columns: &[[u8; LANES]],
        outputs: usize,
        bins: &mut [u8]
    )
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn turn_portable(cover: Option<&Cover>, columns: &[[u8; LANES]], outputs: usize, bins: &mut [u8]) {
    let stride = outputs.next_multiple_of(TILE);
    for first in (0..outputs).step_by(TILE) {
        let mut tile = [[LAST; LANES]; TILE];
        for (least, y) in tile.iter_mut().zip(first..outputs) {
            let Some(cover) = cover else {
                *least = columns[y];
                continue;
            };
            for &a in cover.set(y as u32) {
                let column = &columns[a as usize];
                for lane in 0..LANES {
                    least[lane] = least[lane].min(column[lane]);
                }
            }
        }
        for lane in 0..LANES {
            let bins = &mut bins[lane * stride + first..][..TILE];
            for (bin, row) in bins.iter_mut().zip(&tile) {
                *bin = row[lane];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::levels::LevelTable;
    use super::super::{Tem, Truncation};
    use super::*;
    use crate::distance::neighbors::Grid;
    use crate::law::base::shortened;
    use crate::testing::{assert_law, embedding};
    use crate::{Embedding, Mechanism, Metric, Randomness};

    fn cover_of(e: &Embedding, k: usize) -> Cover {
        let count = e.vocabulary().len() as u32;
        let near = |y| (0..k as u32).map(|i| (y + i * i * 7) % count).collect();
        Cover::from_members(e, (0..count).map(near).collect()).expect("a cover")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        /// The tables of rough distances hold the exact weights, of words and of sets.
        #[test]
        fn tables_from_rough_distances_hold_the_weights(
            count in 2usize..700, dim in 1usize..20, k in 0usize..9, lanes in 1usize..=LANES,
            metric in 0usize..3, eta in prop_oneof![1e-3..1.0f64, 1.0..60.0f64, 60.0..30_000.0f64],
            gamma in prop_oneof![Just(f64::INFINITY), 0.0..2.0f64], seed: u64
        ) {
            let metric = [Metric::Euclidean, Metric::Angular, Metric::Poincare][metric];
            let scale = 1.9 / (dim as f32).sqrt();
            let e = embedding(count, dim, scale / 2.0, metric, seed);
            let cover = (k > 0).then(|| cover_of(&e, k));
            let ids: Vec<u32> = (0..count.min(lanes) as u32).map(|i| i * 7919 % count as u32).collect();
            let weights: Vec<f64> = (0..count).map(|i| 1.0 / (1 + i * 31 % count) as f64).collect();
            let base = BaseMeasure::new(&weights).unwrap().filter(|_| k == 0 && seed % 2 == 0);
            let base = base.as_ref();
            let bins = |far: f64| Bins::new(eta, gamma, base, eta * far + 3.0);
            let grid = Grid::of(&*e);
            let (mut row, mut scores) = (vec![0.0; count], Vec::new());
            let mut found = Vec::new();
            let mut builder = BinBuilder::default();
            // Twice, so that memory is used again.
            for _ in 0..2 {
                found.clear();
                let built = builder.build(&*e, cover.as_ref(), base, eta, bins, &ids, |id, bins, each| {
                    found.push(id);
                    e.distances(id, &mut row);
                    match &cover {
                        None => scores.clone_from(&row),
                        Some(cover) => cover.scores(&row, &mut scores),
                    }
                    let factor = |y: u32| crate::law::weight(eta * grid.round(scores[y as usize]).min(gamma));
                    let weight = |y: u32| match base {
                        None => factor(y),
                        Some(base) => shortened(factor(y), base.shift()) * u128::from(base.weight(y)),
                    };
                    LevelTable::new(bins, each).check(weight);
                });
                // At a large ε, angles and hyperbolic distances may be too rough.
                prop_assert!(built || eta > 60.0 || gamma < 1e-3);
                prop_assert_eq!(found.len(), if built { ids.len() } else { 0 });
                prop_assert!(!built || found == ids);
            }
        }
    }

    #[test]
    fn extreme_scales_are_left_to_exact_distances() {
        let e = embedding(300, 4, 0.5, Metric::Euclidean, 1);
        for eta in [1e-30, 1e-300, 1e30] {
            let bins = |far: f64| Bins::new(eta, f64::INFINITY, None, eta * far);
            let mut builder = BinBuilder::default();
            let built = builder.build(&*e, None, None, eta, bins, &[1, 2], |_, _, _| ());
            let exact = eta * bins(1.0).per_exponent;
            assert_eq!(built, (1e-15..1e15).contains(&exact), "η = {eta}");
        }
    }

    /// χ² of draws from tables that are made together, over outputs in groups of like expected
    /// counts: of words, of sets, and where words are excluded.
    #[test]
    fn draws_from_tables_made_together_have_the_law() {
        const WORDS: usize = 3000;
        let e = embedding(WORDS, 6, 2.0, Metric::Euclidean, 2);
        for epsilon in [1.0, 5.0] {
            let plain = Tem::new(
                e.clone(),
                epsilon,
                Truncation::default(),
                Randomness::known_keys(3),
            )
            .unwrap();
            let cover = Some(Arc::new(cover_of(&e, 8)));
            let covered = plain.with_cover(cover).unwrap();
            let excluding = plain.excluding(&[3, 500, 2999]).unwrap();
            let weights: Vec<f64> = (1..=WORDS).map(|rank| 1.0 / rank as f64).collect();
            let base = BaseMeasure::new(&weights).unwrap().map(Arc::new);
            let weighted = plain.with_base(base).unwrap();
            let both = weighted.excluding(&[0, 3, 500, 2999]).unwrap();
            for tem in [plain, covered, excluding, weighted, both] {
                // Many of some words, in batches, and few of others.
                let ids: Vec<u32> = (0..200_000u64).map(|i| (i * i % 67) as u32 * 5).collect();
                let mut each = vec![[0u32; WORDS]; 5 * 67];
                for _ in 0..6 {
                    for (&id, y) in ids.iter().zip(tem.privatize_ids(&ids).unwrap()) {
                        each[id as usize][y as usize] += 1;
                    }
                    // One draw a chunk, in every number of chunks beside those that are fetched
                    // together; and all numbers of draws a chunk.
                    for (step, most) in (40..64).map(|most| (1500, most)).chain([(500, 400)]) {
                        let few = ids.iter().copied().step_by(step).take(most);
                        let few: Vec<u32> = few.collect();
                        for (&id, y) in few.iter().zip(tem.privatize_ids(&few).unwrap()) {
                            each[id as usize][y as usize] += 1;
                        }
                    }
                }
                // Of all words together: (word, output) is one outcome.
                let (mut all, mut law) = (Vec::new(), Vec::new());
                let draws: u32 = each.iter().flatten().sum();
                for (id, counts) in (0u32..).zip(&each) {
                    let own = counts.iter().sum::<u32>();
                    if own > 0 {
                        assert!(tem.cache.rows.get(id).is_some());
                        let share = f64::from(own) / f64::from(draws);
                        law.extend(tem.probabilities(id).iter().map(|p| share * p));
                        all.extend_from_slice(counts);
                    }
                }
                assert_law(&all, &law, &format!("ε = {epsilon}"));
            }
        }
    }
}
