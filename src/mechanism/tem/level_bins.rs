//! Finds the bins of all outputs for the [levels](super::levels) of many words together, from rough
//! distances.

use super::level_cuts::{Bins, LAST, MOST_ERROR};
use super::rough_distances::{LANES, ROWS, RoughDistances};
use crate::cover::Cover;
#[cfg(target_arch = "x86_64")]
use crate::support::simd::{Avx2, Avx512};
use crate::words::space::MetricSpace;

/// Outputs whose bins are turned together from rows of words into rows of outputs.
const TILE: usize = 8;

/// Working memory of one thread.
#[derive(Default)]
pub(super) struct BinBuilder {
    distances: RoughDistances,
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
    /// The cover must not have weights. Returns whether it could: it cannot at extreme scales.
    pub(super) fn build(
        &mut self,
        space: &dyn MetricSpace,
        cover: Option<&Cover>,
        eta: f64,
        bins: impl Fn(f64) -> Bins,
        ids: &[u32],
        mut one: impl FnMut(u32, &Bins, &[u8]),
    ) -> bool {
        let count = space.vocabulary().len();
        let some: Vec<u32> = (0..count as u32).step_by(count.div_ceil(ROWS)).collect();
        let (rough, _) = self.distances.block(space, &some, ids);
        let far = &farthest(rough)[..ids.len()];
        let each: Vec<Bins> = far.iter().map(|&far| bins(far.into())).collect();
        // Rough and exact distances have an absolute error each.
        let absolute = 2.0 * eta * space.distance_error();
        let (mut scales, mut zeros) = ([0.0; LANES], [0.0; LANES]);
        for (scale, bins) in scales.iter_mut().zip(&each) {
            let exact = eta * bins.per_exponent;
            // Far inside the range of f32.
            if !bins.have_room_for(absolute) || !(1e-15..1e15).contains(&exact) {
                return false;
            }
            *scale = exact as f32;
        }
        self.columns.resize(count, [LAST; LANES]);
        let mut columns = self.columns.chunks_mut(ROWS);
        let done = self.distances.each_block(space, ids, |rough, error| {
            let columns = columns.next().filter(|_| error <= MOST_ERROR)?;
            bin_all(rough, &scales, &mut zeros, columns);
            Some(())
        });
        // A distance that is not finite has made its sum of zeros a NaN.
        if done.is_none() || zeros[..ids.len()].iter().any(|&zero| zero != 0.0) {
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

/// Writes the bins of rows of distances; adds zero times each distance to its lane of `zeros`.
fn bin_all(
    rows: &[f32],
    scales: &[f32; LANES],
    zeros: &mut [f32; LANES],
    columns: &mut [[u8; LANES]],
) {
    #[cfg(target_arch = "x86_64")]
    if Avx512::detect().is_some() {
        // SAFETY: the machine has the set, as the proof says.
        return unsafe { bin_avx512(rows, scales, zeros, columns) };
    }
    #[cfg(target_arch = "x86_64")]
    if Avx2::detect().is_some() {
        // SAFETY: as above.
        return unsafe { bin_avx2(rows, scales, zeros, columns) };
    }
    bin_portable(rows, scales, zeros, columns);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn bin_avx2(
    rows: &[f32],
    scales: &[f32; LANES],
    zeros: &mut [f32; LANES],
    columns: &mut [[u8; LANES]],
) {
    bin_portable(rows, scales, zeros, columns);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn bin_avx512(
    rows: &[f32],
    scales: &[f32; LANES],
    zeros: &mut [f32; LANES],
    columns: &mut [[u8; LANES]],
) {
    bin_portable(rows, scales, zeros, columns);
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn bin_portable(
    rows: &[f32],
    scales: &[f32; LANES],
    zeros: &mut [f32; LANES],
    columns: &mut [[u8; LANES]],
) {
    let mut sums = *zeros;
    for (row, column) in rows.as_chunks::<LANES>().0.iter().zip(columns) {
        let mut bins = [0i32; LANES];
        for lane in 0..LANES {
            let place = row[lane] * scales[lane];
            let most = f32::from(LAST);
            // A conversion of a number in range, which takes one instruction.
            bins[lane] = if place < most {
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

/// Writes each word's bins of all outputs. An output's bin is the least of those of its set.
fn turn_all(cover: Option<&Cover>, columns: &[[u8; LANES]], outputs: usize, bins: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if Avx2::detect().is_some() {
        // SAFETY: the machine has the set, as the proof says.
        return unsafe { turn_avx2(cover, columns, outputs, bins) };
    }
    turn_portable(cover, columns, outputs, bins);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn turn_avx2(cover: Option<&Cover>, columns: &[[u8; LANES]], outputs: usize, bins: &mut [u8]) {
    turn_portable(cover, columns, outputs, bins);
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
    use rand::RngExt;

    use super::super::levels::LevelTable;
    use super::super::{Tem, Truncation};
    use super::*;
    use crate::distance::neighbors::Grid;
    use crate::testing::assert_law;
    use crate::{Embedding, Mechanism, Metric, Randomness, Vocabulary};

    fn embedding(count: usize, dim: usize, metric: Metric, scale: f32, seed: u64) -> Embedding {
        let mut rng = Randomness::new(Some(seed)).next_key().unwrap().stream(0);
        let words = Vocabulary::new((0..count).map(|i| i.to_string())).expect("distinct");
        let number = |_| (rng.random::<f32>() - 0.5) * scale;
        let vectors = (0..count * dim).map(number).collect();
        Embedding::new(words, vectors, dim, metric).expect("points")
    }

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
            let e = embedding(count, dim, metric, scale, seed);
            let cover = (k > 0).then(|| cover_of(&e, k));
            let ids: Vec<u32> = (0..count.min(lanes) as u32).map(|i| i * 7919 % count as u32).collect();
            let bins = |far: f64| Bins::new(eta, gamma, false, eta * far);
            let grid = Grid::of(&e);
            let (mut row, mut scores) = (vec![0.0; count], Vec::new());
            let mut found = Vec::new();
            let mut builder = BinBuilder::default();
            // Twice, so that memory is used again.
            for _ in 0..2 {
                found.clear();
                let built = builder.build(&e, cover.as_ref(), eta, bins, &ids, |id, bins, each| {
                    found.push(id);
                    e.distances(id, &mut row);
                    match &cover {
                        None => scores.clone_from(&row),
                        Some(cover) => cover.scores(&row, &mut scores),
                    }
                    let weight = |y: u32| crate::law::weight(eta * grid.round(scores[y as usize]).min(gamma));
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
        let e = embedding(300, 4, Metric::Euclidean, 1.0, 1);
        for eta in [1e-30, 1e-300, 1e30] {
            let bins = |far: f64| Bins::new(eta, f64::INFINITY, false, eta * far);
            let mut builder = BinBuilder::default();
            let built = builder.build(&e, None, eta, bins, &[1, 2], |_, _, _| ());
            let exact = eta * bins(1.0).per_exponent;
            assert_eq!(built, (1e-15..1e15).contains(&exact), "η = {eta}");
        }
    }

    /// χ² of draws from tables that are made together, over outputs in groups of like expected
    /// counts: of words, of sets, and where words are excluded.
    #[test]
    fn draws_from_tables_made_together_have_the_law() {
        const WORDS: usize = 3000;
        let e = Arc::new(embedding(WORDS, 6, Metric::Euclidean, 4.0, 2));
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
            for tem in [plain, covered, excluding] {
                // Many of some words, in batches, and few of others.
                let ids: Vec<u32> = (0..200_000u64).map(|i| (i * i % 67) as u32 * 5).collect();
                let mut each = vec![[0u32; WORDS]; 5 * 67];
                for _ in 0..6 {
                    for (&id, y) in ids.iter().zip(tem.privatize_ids(&ids).unwrap()) {
                        each[id as usize][y as usize] += 1;
                    }
                    let few: Vec<u32> = ids.iter().copied().step_by(1500).take(64).collect();
                    for (&id, y) in few.iter().zip(tem.privatize_ids(&few).unwrap()) {
                        each[id as usize][y as usize] += 1;
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
