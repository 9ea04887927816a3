//! Bounds on a word's distances to all sets of a cover: four bits per output.
//!
//! A try outside the list takes the least distance to a set, which costs a bound for each of its
//! words. Most tries need to know only roughly how far the set is. So the distances of a word that
//! is drawn often are put on a ladder: a code tells between which two rungs a set's distance lies.
//! A code never decides which random bits are drawn, so draws are the same with and without it.
//!
//! The codes of 64 words are made together. Each word of the vocabulary has a row of 64 codes, and
//! the code of a set is the least of its words' codes. So a set is looked up once for 64 words.

use std::sync::Arc;

use super::terms::Terms;
use crate::cover::Cover;
use crate::prefetch::prefetch;
#[cfg(target_arch = "x86_64")]
use crate::simd::Avx2;
use crate::space::MetricSpace;

/// Words whose codes are made together.
pub(super) const LANES: usize = 64;
/// Bytes of one output's codes.
const BYTES: usize = LANES / 2;
/// The last code. It has no upper bound; code 0 says nothing.
const LAST: u8 = 15;
/// Words of the vocabulary whose distances are computed together.
const ROWS: usize = 256;

/// The rungs of one word: code c from 1 to 14 stands for distances from first + (c - 1)·step to
/// first + c·step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ladder {
    first: f64,
    step: f64,
    /// Covers the errors of the distances and of the arithmetic.
    margin: f64,
}

/// The codes of one word.
#[derive(Debug)]
pub(super) struct SetBounds {
    block: Arc<[u8]>,
    lane: usize,
    ladder: Ladder,
}

/// Working memory of one thread.
#[derive(Default)]
pub(super) struct Builder {
    columns: Vec<[u8; LANES]>,
    rough: Vec<f32>,
    exact: Vec<f64>,
}

impl Ladder {
    /// The rungs for outputs farther than `least`, which are outside the list; `None` if the
    /// numbers are too extreme.
    pub(super) fn new(least: f64, terms: Terms) -> Option<Self> {
        // Above the rungs, a weight is below e^-2.5 of the envelope: few tries can be accepted.
        const RANGE: f64 = 2.5;
        let mut range = RANGE * terms.per_eta;
        if terms.gamma > least {
            range = range.min(terms.gamma - least);
        }
        let step = range / f64::from(LAST - 1);
        // Far inside the range of f32.
        let fits = |x: f64| x > 1e-15 && x < 1e15;
        (fits(least) && fits(step)).then_some(Ladder {
            first: least,
            step,
            margin: 0.0,
        })
    }

    /// Leaves room for distances with a relative error of `error`.
    fn with_error(mut self, error: f64) -> Self {
        // Each f32 operation has a relative error of 2⁻²⁴, of at most the last rung.
        const ARITHMETIC: f64 = 1.0 / (1u64 << 19) as f64;
        let last = self.first + 16.0 * self.step;
        self.margin = last * (2.0 * error + ARITHMETIC);
        // The first rung is beyond the list, whatever the errors.
        self.first += 2.0 * self.margin;
        self
    }
}

impl SetBounds {
    /// Approximate bytes of one word's codes.
    pub(super) fn bytes(outputs: usize) -> usize {
        outputs / 2 + size_of::<Self>()
    }

    #[inline]
    fn at(&self, y: u32) -> usize {
        y as usize * BYTES + self.lane % BYTES
    }

    /// Prefetches the code of an output.
    #[inline]
    pub(super) fn prefetch(&self, y: u32) {
        prefetch(&raw const self.block[self.at(y)]);
    }

    /// A lower and an upper bound on the distance to an output's set, if its code says something.
    /// The lower one is beyond the list.
    #[inline]
    pub(super) fn between(&self, y: u32) -> Option<(f64, f64)> {
        let both = self.block[self.at(y)];
        let code = both >> (4 * (self.lane / BYTES)) & LAST;
        let Ladder {
            first,
            step,
            margin,
        } = self.ladder;
        let least = first + f64::from(code.max(1) - 1) * step - margin;
        let most = match code {
            LAST => f64::INFINITY,
            _ => first + f64::from(code) * step + margin,
        };
        (code > 0).then_some((least, most))
    }
}

impl Builder {
    /// Makes the codes of up to [`LANES`] words, each with its ladder.
    pub(super) fn build(
        &mut self,
        space: &dyn MetricSpace,
        cover: &Cover,
        words: &[(u32, Ladder)],
    ) -> Vec<SetBounds> {
        let ids: Vec<u32> = words.iter().map(|&(id, _)| id).collect();
        self.columns.resize(cover.words(), [0; LANES]);
        self.rough.resize(ROWS * LANES, 0.0);
        let mut error = 0.0;
        let mut ladders: Vec<Ladder> = Vec::new();
        let (mut firsts, mut per_step) = ([0.0; LANES], [0.0; LANES]);
        let all: Vec<u32> = (0..cover.words() as u32).collect();
        for (some, columns) in all.chunks(ROWS).zip(self.columns.chunks_mut(ROWS)) {
            let rough = &mut self.rough[..some.len() * LANES];
            let relative = match space.bounded_distances(some, &ids, rough, LANES) {
                Some(relative) => relative,
                None => {
                    self.exact.resize(ROWS * LANES, 0.0);
                    space.block(some, &ids, &mut self.exact, LANES);
                    for (rough, &exact) in rough.iter_mut().zip(&self.exact) {
                        *rough = exact as f32;
                    }
                    f64::from(f32::EPSILON)
                }
            };
            // A part with a larger error makes the ladders anew, and with them all codes so far.
            if ladders.is_empty() {
                error = relative;
                ladders = words.iter().map(|(_, l)| l.with_error(error)).collect();
                for (lane, ladder) in ladders.iter().enumerate() {
                    firsts[lane] = ladder.first as f32;
                    per_step[lane] = ladder.step.recip() as f32;
                }
            } else if relative > error {
                return Vec::new();
            }
            code_all(rough, &firsts, &per_step, columns);
        }
        let mut block = vec![0; cover.released().len() * BYTES];
        pack_all(cover, &self.columns, &mut block);
        let block: Arc<[u8]> = block.into();
        let each = ladders.into_iter().enumerate();
        let each = each.map(|(lane, ladder)| SetBounds {
            block: block.clone(),
            lane,
            ladder,
        });
        each.collect()
    }
}

/// Writes the codes of rows of distances.
fn code_all(
    rows: &[f32],
    firsts: &[f32; LANES],
    per_step: &[f32; LANES],
    columns: &mut [[u8; LANES]],
) {
    #[cfg(target_arch = "x86_64")]
    if Avx2::detect().is_some() {
        // SAFETY: the machine has the set, as the proof says.
        return unsafe { code_avx2(rows, firsts, per_step, columns) };
    }
    code_portable(rows, firsts, per_step, columns);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn code_avx2(
    rows: &[f32],
    firsts: &[f32; LANES],
    per_step: &[f32; LANES],
    columns: &mut [[u8; LANES]],
) {
    code_portable(rows, firsts, per_step, columns);
}

#[inline(always)]
#[allow(clippy::needless_range_loop, clippy::manual_clamp)] // lanes, for the vectoriser
fn code_portable(
    rows: &[f32],
    firsts: &[f32; LANES],
    per_step: &[f32; LANES],
    columns: &mut [[u8; LANES]],
) {
    for (row, codes) in rows.as_chunks::<LANES>().0.iter().zip(columns) {
        for lane in 0..LANES {
            // A NaN becomes 0, which says nothing.
            let rungs = (row[lane] - firsts[lane]) * per_step[lane] + 1.0;
            codes[lane] = rungs.max(0.0).min(f32::from(LAST)) as i32 as u8;
        }
    }
}

/// Writes the codes of all sets: the least of their words' codes.
fn pack_all(cover: &Cover, columns: &[[u8; LANES]], block: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if Avx2::detect().is_some() {
        // SAFETY: the machine has the set, as the proof says.
        return unsafe { pack_avx2(cover, columns, block) };
    }
    pack_portable(cover, columns, block);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn pack_avx2(cover: &Cover, columns: &[[u8; LANES]], block: &mut [u8]) {
    pack_portable(cover, columns, block);
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn pack_portable(cover: &Cover, columns: &[[u8; LANES]], block: &mut [u8]) {
    for (packed, y) in block.as_chunks_mut::<BYTES>().0.iter_mut().zip(0..) {
        let mut least = [LAST; LANES];
        for &a in cover.set(y) {
            let codes = &columns[a as usize];
            for lane in 0..LANES {
                least[lane] = least[lane].min(codes[lane]);
            }
        }
        for i in 0..BYTES {
            packed[i] = least[i] | least[i + BYTES] << 4;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use rand::RngExt;

    use super::super::{Tem, Truncation};
    use super::*;
    use crate::neighbors::Grid;
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
            let ladder = Ladder::new(least, terms);
            let words = (0..lanes.min(count)).map(|id| (id as u32, ladder.unwrap()));
            let words: Vec<_> = words.collect();
            let mut builder = Builder::default();
            for _ in 0..2 {
                let built = builder.build(&e, &cover, &words);
                prop_assert_eq!(built.len(), words.len());
                let (mut row, mut scores) = (vec![0.0; count], Vec::new());
                for (bounds, &(id, _)) in built.iter().zip(&words) {
                    e.distances(id, &mut row);
                    cover.scores(&row, &mut scores);
                    for (&d, y) in scores.iter().zip(0..) {
                        match bounds.between(y) {
                            Some((low, high)) => prop_assert!(least < low && low <= d && d <= high),
                            None => prop_assert!(d <= least * 1.0001 + 16e-4 / eta),
                        }
                    }
                }
            }
        }
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
            assert!((0..100).all(|id| with.cache.sets.get(id).is_some()));
            assert!((0..100).all(|id| without.cache.sets.get(id).is_none()));
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
            let ids: Vec<u32> = (0..64 * 100).map(|i| i % 64).collect();
            let laws: Vec<Vec<f64>> = (0..64).map(|id| tem.probabilities(id)).collect();
            let mut counts = vec![vec![0u32; 4000]; 64];
            let (mut calls, mut by_codes, mut tem) = (0, 0, tem);
            while calls < 100 {
                // Few calls each: words that are drawn more often get a row.
                if calls % 4 == 0 {
                    tem = tem.with_cache_bytes(64 << 20);
                }
                let out = tem.privatize_ids(&ids).unwrap();
                let codes =
                    |id| tem.cache.sets.get(id).is_some() && tem.cache.rows.get(id).is_none();
                by_codes += (0..64).filter(|&id| codes(id)).count();
                for (&id, y) in ids.iter().zip(out) {
                    counts[id as usize][y as usize] += 1;
                }
                calls += 1;
            }
            assert_eq!(by_codes, 64 * calls);
            let draws = calls as f64 * 100.0;
            let (mut chi2, mut freedom) = (0.0, 0.0);
            for (law, counts) in laws.iter().zip(&counts) {
                let mut order: Vec<usize> = (0..4000).collect();
                order.sort_by(|&a, &b| law[b].total_cmp(&law[a]));
                let (mut expected, mut found) = (0.0, 0.0);
                for y in order {
                    expected += law[y] * draws;
                    found += f64::from(counts[y]);
                    if expected >= 20.0 {
                        chi2 += (found - expected) * (found - expected) / expected;
                        freedom += 1.0;
                        (expected, found) = (0.0, 0.0);
                    }
                }
                freedom -= 1.0;
            }
            let z = (chi2 - freedom) / (2.0f64 * freedom).sqrt();
            assert!(z.abs() < 5.5, "ε = {epsilon}: χ² = {chi2} at {freedom}");
        }
    }
}
