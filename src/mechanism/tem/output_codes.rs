//! Makes the codes that bound distances to all outputs: see [`output_bounds`](super::output_bounds).
//!
//! The codes of 64 words are made together. Each word of the vocabulary has a row of 64 codes, and
//! the code of a set is the least of its words' codes. So a set is looked up once for 64 words. Then
//! each word gets the codes of all outputs side by side, which fit into the nearer caches.

use super::output_bounds::{INSIDE, LAST, Ladder, OutputBounds, TILE, UNSURE};
use super::rough_distances::{LANES, ROWS, RoughDistances};
use super::terms::Terms;
use crate::cover::Cover;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512};
use crate::space::MetricSpace;

/// Bytes of the codes of [`LANES`] words for one output: those of the first half in the low bits.
const BYTES: usize = LANES / 2;

/// A word whose codes are to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) id: u32,
    pub(super) ladder: Ladder,
    /// -ln of the envelope of the outputs outside its list, if they have one envelope.
    pub(super) exponent: f64,
}

/// Working memory of one thread.
#[derive(Default)]
pub(super) struct Builder {
    columns: Vec<[u8; BYTES]>,
    distances: RoughDistances,
}

impl Builder {
    /// Makes the codes of up to [`LANES`] words for the outputs of a cover.
    pub(super) fn build(
        &mut self,
        space: &dyn MetricSpace,
        cover: &Cover,
        terms: Terms,
        words: &[Wanted],
    ) -> Vec<OutputBounds> {
        let ids: Vec<u32> = words.iter().map(|wanted| wanted.id).collect();
        let count = space.vocabulary().len();
        self.columns.resize(count, [0; BYTES]);
        let mut error = 0.0;
        let mut ladders: Vec<Ladder> = Vec::new();
        let mut lanes = Lanes::default();
        let mut parts = self.columns.chunks_mut(ROWS);
        let done = self.distances.each_block(space, &ids, |rough, relative| {
            if ladders.is_empty() {
                error = relative;
                let each = words.iter().map(|wanted| wanted.ladder.with_error(error));
                ladders = each.collect();
                for (lane, ladder) in ladders.iter().enumerate() {
                    lanes.inside[lane] = ladder.inside as f32;
                    lanes.first[lane] = ladder.first as f32;
                    lanes.per_step[lane] = ladder.step.recip() as f32;
                }
            }
            // The ladders have no room for a larger error of a later part.
            let codes = parts.next().filter(|_| relative <= error)?;
            code_all(rough, &lanes, codes);
            Some(())
        });
        if done.is_none() {
            return Vec::new();
        }
        let length = OutputBounds::length(cover.released().len());
        let mut codes: Vec<Box<[u8]>> = words.iter().map(|_| vec![0; length].into()).collect();
        pack_all(cover, &self.columns, &mut codes);
        let each = ladders.into_iter().zip(words).zip(codes);
        let each = each.map(|((ladder, wanted), codes)| {
            OutputBounds::new(codes, ladder, wanted.exponent, terms)
        });
        each.collect()
    }
}

/// The ladders of words that are coded together.
struct Lanes {
    inside: [f32; LANES],
    first: [f32; LANES],
    per_step: [f32; LANES],
}

impl Default for Lanes {
    fn default() -> Self {
        Lanes {
            inside: [0.0; LANES],
            first: [0.0; LANES],
            per_step: [0.0; LANES],
        }
    }
}

/// Writes the codes of rows of distances.
fn code_all(rows: &[f32], lanes: &Lanes, columns: &mut [[u8; BYTES]]) {
    #[cfg(target_arch = "x86_64")]
    if Avx512::detect().is_some() {
        // SAFETY: the machine has the set, as the proof says.
        return unsafe { code_avx512(rows, lanes, columns) };
    }
    #[cfg(target_arch = "x86_64")]
    if Avx2::detect().is_some() {
        // SAFETY: as above.
        return unsafe { code_avx2(rows, lanes, columns) };
    }
    code_portable(rows, lanes, columns);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn code_avx2(rows: &[f32], lanes: &Lanes, columns: &mut [[u8; BYTES]]) {
    code_portable(rows, lanes, columns);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn code_avx512(rows: &[f32], lanes: &Lanes, columns: &mut [[u8; BYTES]]) {
    code_portable(rows, lanes, columns);
}

#[inline(always)]
#[allow(clippy::needless_range_loop, clippy::manual_clamp)] // lanes, for the vectoriser
fn code_portable(rows: &[f32], lanes: &Lanes, columns: &mut [[u8; BYTES]]) {
    const FIRST: f32 = UNSURE as f32 + 1.0;
    for (row, packed) in rows.as_chunks::<LANES>().0.iter().zip(columns) {
        let mut codes = [0i32; LANES];
        for lane in 0..LANES {
            // A NaN becomes `UNSURE`, which says nothing.
            let rungs = (row[lane] - lanes.first[lane]) * lanes.per_step[lane] + FIRST;
            let code = rungs.max(f32::from(UNSURE)).min(f32::from(LAST));
            let inside = row[lane] < lanes.inside[lane];
            codes[lane] = if inside {
                i32::from(INSIDE)
            } else {
                code as i32
            };
        }
        for i in 0..BYTES {
            packed[i] = (codes[i] | codes[i + BYTES] << 4) as u8;
        }
    }
}

/// Writes each word's codes of all outputs: the least of the codes of their sets' words.
fn pack_all(cover: &Cover, columns: &[[u8; BYTES]], codes: &mut [Box<[u8]>]) {
    #[cfg(target_arch = "x86_64")]
    if Avx2::detect().is_some() {
        // SAFETY: the machine has the set, as the proof says.
        return unsafe { pack_avx2(cover, columns, codes) };
    }
    pack_portable(cover, columns, codes);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn pack_avx2(cover: &Cover, columns: &[[u8; BYTES]], codes: &mut [Box<[u8]>]) {
    pack_portable(cover, columns, codes);
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn pack_portable(cover: &Cover, columns: &[[u8; BYTES]], codes: &mut [Box<[u8]>]) {
    let outputs = cover.released().len();
    for first in (0..outputs).step_by(TILE) {
        let mut tile = [[0; LANES]; TILE];
        for (codes, y) in tile.iter_mut().zip(first..outputs) {
            // The codes in the high bits are compared where they are.
            let (mut low, mut high) = ([LAST; BYTES], [LAST << 4; BYTES]);
            for &a in cover.set(y as u32) {
                let packed = &columns[a as usize];
                for i in 0..BYTES {
                    low[i] = low[i].min(packed[i] & LAST);
                    high[i] = high[i].min(packed[i] & LAST << 4);
                }
            }
            for i in 0..BYTES {
                (codes[i], codes[i + BYTES]) = (low[i], high[i] >> 4);
            }
        }
        let mut pairs = [[0; LANES]; TILE / 2];
        for i in 0..TILE / 2 {
            for lane in 0..LANES {
                pairs[i][lane] = tile[2 * i][lane] | tile[2 * i + 1][lane] << 4;
            }
        }
        for (eight, codes) in (0..).step_by(8).zip(codes.chunks_mut(8)) {
            let mut bytes = [0u64; 8];
            for i in 0..8 {
                let pair = &pairs[i][eight..][..8];
                bytes[i] = u64::from_le_bytes([
                    pair[0], pair[1], pair[2], pair[3], pair[4], pair[5], pair[6], pair[7],
                ]);
            }
            transpose(&mut bytes);
            for (codes, bytes) in codes.iter_mut().zip(bytes) {
                codes[first / 2..][..TILE / 2].copy_from_slice(&bytes.to_le_bytes());
            }
        }
    }
}

/// Transposes a square of eight times eight bytes (Warren 2013, section 7-3).
#[inline(always)]
pub(super) fn transpose(rows: &mut [u64; 8]) {
    for (apart, mask) in [
        (4, 0x0000_0000_FFFF_FFFF),
        (2, 0x0000_FFFF_0000_FFFF),
        (1, 0x00FF_00FF_00FF_00FF),
    ] {
        for i in (0..8).filter(|i| i & apart == 0) {
            let swapped = (rows[i] >> (8 * apart) ^ rows[i + apart]) & mask;
            rows[i + apart] ^= swapped;
            rows[i] ^= swapped << (8 * apart);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use rand::RngExt;

    use super::super::chi_squared::chi_squared;
    use super::super::outside::{Class, Outside};
    use super::super::{Tem, Truncation};
    use super::*;
    use crate::law::weight;
    use crate::neighbors::Grid;
    use crate::random::continued;
    use crate::{Embedding, Mechanism, Metric, Randomness, Vocabulary};

    /// Random words, and a cover of `k` random words or near words for each output.
    fn covered(count: usize, dim: usize, k: usize, seed: u64) -> (Embedding, Cover) {
        let mut rng = Randomness::new(Some(seed)).next_key().unwrap().stream(0);
        let words = Vocabulary::new((0..count).map(|i| i.to_string())).expect("distinct");
        let vectors = (0..count * dim).map(|_| rng.random::<f32>()).collect();
        let e = Embedding::new(words, vectors, dim, Metric::Euclidean).expect("points");
        let members = (0..count as u32)
            .map(|y| {
                (0..k as u32)
                    .map(|i| (y + i * i * 7) % count as u32)
                    .collect()
            })
            .collect();
        let cover = Cover::from_members(&e, members).expect("a cover");
        (e, cover)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        /// The bounds hold for every set, and nearly all codes say something.
        #[test]
        fn a_set_is_between_its_bounds(
            count in 2usize..400, dim in 1usize..20, k in 1usize..9, lanes in 1usize..=LANES,
            eta in 0.1f64..20.0, least in 0.01f64..1.0, seed: u64,
            gamma in prop_oneof![Just(f64::INFINITY), 0.0..2.0f64]
        ) {
            let (e, cover) = covered(count, dim, k, seed);
            let grid = Grid::of(&e);
            let outputs = count as u32;
            let terms = Terms { eta, per_eta: eta.recip(), gamma, grid, cover: Some(&cover), outputs };
            let ladder = Ladder::new(least, terms).unwrap();
            let words = (0..lanes.min(count)).map(|id| Wanted { id: id as u32, ladder, exponent: 0.0 });
            let words: Vec<_> = words.collect();
            let mut builder = Builder::default();
            for _ in 0..2 {
                let built = builder.build(&e, &cover, terms, &words);
                prop_assert_eq!(built.len(), words.len());
                let (mut row, mut scores) = (vec![0.0; count], Vec::new());
                for (bounds, &Wanted { id, .. }) in built.iter().zip(&words) {
                    e.distances(id, &mut row);
                    cover.scores(&row, &mut scores);
                    for (&d, y) in scores.iter().zip(0..) {
                        match bounds.between(y) {
                            Some((low, high)) => prop_assert!(least < low && low <= d && d <= high),
                            None if bounds.code(y) == INSIDE => prop_assert!(d < least - 2.0 * grid.step()),
                            None => prop_assert!((d - least).abs() <= least * 1e-4 + 16e-4 / eta),
                        }
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        /// Codes decide a try as the exact weight does, whatever further bits u has. The first 32
        /// bits are tried where the decision changes, too.
        #[test]
        fn codes_decide_as_weights_do(
            count in 2usize..300, dim in 1usize..20, k in 1usize..9, seed: u64,
            eta in prop_oneof![0.01f64..1.0, 1.0..60.0], near in 0.01f64..1.0,
            gamma in prop_oneof![Just(f64::INFINITY), 0.0..2.0f64],
            xs in proptest::array::uniform16(any::<u64>()), bits in proptest::array::uniform16(0u32..40),
        ) {
            let (e, cover) = covered(count, dim, k, seed);
            let (grid, outputs) = (Grid::of(&e), count as u32);
            let terms = Terms { eta, per_eta: eta.recip(), gamma, grid, cover: Some(&cover), outputs };
            let (mut row, mut scores) = (vec![0.0; count], Vec::new());
            e.distances(0, &mut row);
            cover.scores(&row, &mut scores);
            let end = grid.first_at(grid.entry(near, 0));
            let envelope = weight(eta * grid.distance(end).min(gamma));
            let mut outside = Outside::default();
            outside.fill(end, grid, [Class { envelope, first: 0, count: outputs }].into_iter());
            let ladder = Ladder::new(outside.least, terms).unwrap();
            let wanted = Wanted { id: 0, ladder, exponent: outside.exponent };
            let bounds = &Builder::default().build(&e, &cover, terms, &[wanted])[0];
            for first in (0..outputs).step_by(16) {
                let tried: [u32; 16] = std::array::from_fn(|i| (first + i as u32) % outputs);
                for change in 0..4u32 {
                    let x: [u64; 16] = std::array::from_fn(|i| {
                        let code = usize::from(bounds.code(tried[i]));
                        let high = match change {
                            0 => return xs[i] >> bits[i],
                            1 => bounds.within[code].saturating_sub(1),
                            2 => bounds.beyond[code].saturating_add(1),
                            _ => bounds.beyond[code],
                        };
                        u64::from(high) << 32 | xs[i] >> 32
                    });
                    let decided = bounds.decide(&tried, &x);
                    prop_assert_eq!(decided, bounds.decide_portable(&tried, &x));
                    for i in 0..16 {
                        let entry = grid.entry(scores[tried[i] as usize], tried[i]);
                        let weight = weight(terms.exponent(entry, tried[i]));
                        let inside = entry < end;
                        if decided.beyond >> i & 1 == 1 {
                            prop_assert!(inside || continued(x[i], envelope, 0) >= weight);
                        }
                        if decided.accepted >> i & 1 == 1 {
                            prop_assert!(!inside && continued(x[i], envelope, envelope - 1) < weight);
                        }
                    }
                }
            }
        }
    }

    /// Codes leave few tries open: less than a quarter for these points, whose distances are much
    /// alike.
    #[test]
    fn codes_decide_most_tries() {
        let (e, cover) = covered(4000, 10, 8, 3);
        let tem = Tem::new(
            Arc::new(e.clone()),
            3.0,
            Truncation::Gamma(f64::INFINITY),
            Randomness::new(Some(7)),
        );
        let tem = tem.unwrap().with_cover(Some(Arc::new(cover))).unwrap();
        let ids: Vec<u32> = (0..100 * 100).map(|i| i % 100).collect();
        tem.privatize_ids(&ids).unwrap();
        let mut rng = Randomness::new(Some(1)).next_key().unwrap().stream(0);
        let (mut open, mut tries) = (0, 0);
        for id in 0..100 {
            let bounds = tem.cache.bounds.get(id).expect("codes");
            for _ in 0..100 {
                let outputs: [u32; 16] = std::array::from_fn(|_| rng.random_range(0..4000));
                let decided = bounds.decide(&outputs, &std::array::from_fn(|_| rng.random()));
                open += 16 - (decided.beyond | decided.accepted).count_ones();
                tries += 16;
            }
        }
        assert!(open * 4 < tries, "{open} of {tries}");
    }

    /// Draws of a seed are the same with codes, without codes, and after other draws.
    #[test]
    fn codes_do_not_change_the_draws() {
        let (e, cover) = covered(4000, 10, 8, 1);
        let ids: Vec<u32> = (0..100 * 90).map(|i| i % 100).collect();
        for (epsilon, weighted) in [(3.0, false), (8.0, false), (5.0, true)] {
            let cover = match weighted {
                true => cover.weighted(|id| f64::from(id % 9 + 1)).unwrap(),
                false => cover.clone(),
            };
            let tem = |bytes| {
                let tem = Tem::new(
                    Arc::new(e.clone()),
                    epsilon,
                    Truncation::Gamma(f64::INFINITY),
                    Randomness::new(Some(7)),
                );
                let tem = tem.unwrap().with_cover(Some(Arc::new(cover.clone())));
                tem.unwrap().with_cache_bytes(bytes)
            };
            let (with, without) = (tem(64 << 20), tem(0));
            for _ in 0..3 {
                let [a, b] = [&with, &without].map(|tem| tem.privatize_ids(&ids).unwrap());
                assert_eq!(a, b);
            }
            assert!((0..100).all(|id| with.cache.bounds.get(id).is_some()));
            assert!((0..100).all(|id| without.cache.bounds.get(id).is_none()));
            let (limit, used) = with.cache_bytes();
            assert!(used <= limit);
        }
    }

    /// Draws without a seed, from codes, have the law of the row: χ² over outputs in bins of like
    /// expected counts.
    #[test]
    fn draws_by_codes_have_the_law() {
        let (e, cover) = covered(4000, 10, 8, 2);
        for epsilon in [2.0, 6.0] {
            let tem = Tem::new(
                Arc::new(e.clone()),
                epsilon,
                Truncation::Gamma(f64::INFINITY),
                Randomness::new(None),
            );
            let tem = tem
                .unwrap()
                .with_cover(Some(Arc::new(cover.clone())))
                .unwrap();
            let ids: Vec<u32> = (0..64 * 50).map(|i| i % 64).collect();
            let laws: Vec<Vec<f64>> = (0..64).map(|id| tem.probabilities(id)).collect();
            let mut counts = vec![vec![0u32; 4000]; 64];
            let (mut calls, mut by_codes, mut tem) = (0, 0, tem);
            while calls < 200 {
                // One call each: words that are drawn more often get a row.
                tem = tem.with_cache_bytes(64 << 20);
                let out = tem.privatize_ids(&ids).unwrap();
                let codes =
                    |id| tem.cache.bounds.get(id).is_some() && tem.cache.rows.get(id).is_none();
                by_codes += (0..64).filter(|&id| codes(id)).count();
                for (&id, y) in ids.iter().zip(out) {
                    counts[id as usize][y as usize] += 1;
                }
                calls += 1;
            }
            assert_eq!(by_codes, 64 * calls);
            let (mut chi2, mut freedom) = (0.0, 0.0);
            for (law, counts) in laws.iter().zip(&counts) {
                let (chi, more) = chi_squared(law, counts);
                (chi2, freedom) = (chi2 + chi, freedom + more);
            }
            let z = (chi2 - freedom) / (2.0f64 * freedom).sqrt();
            assert!(z.abs() < 5.5, "ε = {epsilon}: χ² = {chi2} at {freedom}");
        }
    }
}
