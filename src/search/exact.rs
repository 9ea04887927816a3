//! Exact nearest words by a fused scan: an f32 product with a running best, then f64.
//!
//! The f32 scores q·u - ‖u‖²/2 are off by at most E (below). Every word whose f32 score comes
//! within 2E of the best is kept and ranked again by its distance in f64, so the answer is the
//! minimum of the f64 distances, ties to the smaller id.
//!
//! E: the query is rounded to f32 (relative 2⁻²⁴), the half norm once, and the sum of n + 1
//! terms rounds at most twice a term, so with U the largest ‖u‖ and u = 2⁻²⁴
//! (Higham 2002, §3.1): E ≤ (2n + 8)·u·1.01·(‖q‖U + U²/2), plus 2⁻¹⁴⁹ a term for underflow. The
//! f64 distances round too, by (n/8 + 8)·2⁻⁵³·(‖q‖ + U)² in the square, which counts once ‖q‖
//! is beyond about 2³⁰ U.

use crate::buffer::Buffer;
use crate::metric::Metric;
use crate::search::BATCH;
use crate::search::kernel::{self, Isa, Scores, TILE, WIDTH};

/// The structure behind [`Embedding::nearest`](crate::Embedding::nearest).
#[derive(Debug)]
pub struct ExactSearch {
    dim: usize,
    metric: Metric,
    isa: Isa,
    /// Panels of [`WIDTH`] words, coordinate-major; empty for the other metrics, which are
    /// scanned in f64.
    panels: Vec<f32>,
    /// ‖u‖²/2 for every word, infinite for the padding of the last panel.
    half_norms: Vec<f32>,
    max_norm: f64,
}

impl ExactSearch {
    pub(crate) fn new(vectors: &Buffer<f32>, dim: usize, metric: Metric) -> Self {
        let mut search = ExactSearch {
            dim,
            metric,
            isa: Isa::detect(),
            panels: Vec::new(),
            half_norms: Vec::new(),
            max_norm: 0.0,
        };
        if metric != Metric::Euclidean {
            return search;
        }
        let norms2 = vectors
            .chunks_exact(dim)
            .map(|v| v.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>());
        let count = vectors.len() / dim;
        search.half_norms = vec![f32::INFINITY; count.next_multiple_of(WIDTH)];
        for (half, norm2) in search.half_norms.iter_mut().zip(norms2) {
            *half = (norm2 / 2.0) as f32;
            search.max_norm = search.max_norm.max(norm2.sqrt());
        }
        search.panels = vec![0.0; search.half_norms.len() * dim];
        let panels = search.panels.chunks_exact_mut(WIDTH * dim);
        for (panel, words) in panels.zip(vectors.chunks(WIDTH * dim)) {
            for (w, word) in words.chunks_exact(dim).enumerate() {
                for (d, &x) in word.iter().enumerate() {
                    panel[d * WIDTH + w] = x;
                }
            }
        }
        search
    }

    /// The `k` nearest rows of `vectors` (those the structure was built on) for each query;
    /// `ids` and `distances` hold `k` a query.
    pub(crate) fn nearest(
        &self,
        vectors: &[f32],
        queries: &[f64],
        k: usize,
        ids: &mut [u32],
        distances: &mut [f64],
    ) {
        let mut scratch = Scratch::default();
        let batches = queries
            .chunks(BATCH * self.dim)
            .zip(ids.chunks_mut(BATCH * k))
            .zip(distances.chunks_mut(BATCH * k));
        for ((queries, ids), distances) in batches {
            self.nearest_batch(vectors, queries, k, &mut scratch, |i, ranked| {
                for (r, &(distance, id)) in ranked.iter().enumerate() {
                    ids[i * k + r] = id;
                    distances[i * k + r] = distance;
                }
            });
        }
    }

    /// At most [`BATCH`] queries; `found(i, ranked)` receives the k nearest of query i.
    pub(crate) fn nearest_batch(
        &self,
        vectors: &[f32],
        queries: &[f64],
        k: usize,
        scratch: &mut Scratch,
        found: impl FnMut(usize, &[(f64, u32)]),
    ) {
        self.nearest_rounded(vectors, queries, k, |d| d, scratch, found);
    }

    /// The same by distances that `round` has changed, monotonically and by much less than the
    /// margin's 1% of room; ties by id are then ties after rounding.
    pub(crate) fn nearest_rounded(
        &self,
        vectors: &[f32],
        queries: &[f64],
        k: usize,
        round: impl Fn(f64) -> f64,
        scratch: &mut Scratch,
        mut found: impl FnMut(usize, &[(f64, u32)]),
    ) {
        let (n, count) = (self.dim, vectors.len() / self.dim);
        let m = queries.len() / n;
        let margins: Vec<Option<f32>> = queries.chunks_exact(n).map(|q| self.margin(q)).collect();
        scratch.collectors.resize_with(m, Collector::default);
        for (collector, margin) in scratch.collectors.iter_mut().zip(&margins) {
            collector.reset(k, margin.unwrap_or(0.0));
        }
        if margins.iter().any(Option::is_some) {
            self.scan(queries, &mut scratch.rounded, &mut scratch.collectors);
        }
        for (i, query) in queries.chunks_exact(n).enumerate() {
            let ranked = &mut scratch.ranked;
            ranked.clear();
            if margins[i].is_some() {
                let collector = &mut scratch.collectors[i];
                collector.prune();
                ranked.extend(collector.kept.iter().map(|&(_, id)| {
                    let word = &vectors[id as usize * n..][..n];
                    (round(self.metric.distance(query, word)), id)
                }));
            } else {
                scratch.row.resize(count, 0.0);
                self.metric.distances(query, vectors, &mut scratch.row);
                ranked.extend(scratch.row.iter().zip(0..).map(|(&d, id)| (round(d), id)));
            }
            if k < ranked.len() {
                ranked.select_nth_unstable_by(k - 1, by_distance);
                ranked.truncate(k);
            }
            ranked.sort_unstable_by(by_distance);
            found(i, ranked);
        }
    }

    /// 2E for a query, rounded up; `None` where f32 scores say nothing (another metric, or
    /// numbers whose squares leave the range of f32).
    fn margin(&self, query: &[f64]) -> Option<f32> {
        if self.metric != Metric::Euclidean {
            return None;
        }
        let norm = query.iter().map(|x| x * x).sum::<f64>().sqrt();
        let scale = norm * self.max_norm + self.max_norm * self.max_norm / 2.0;
        let terms = (2 * self.dim + 8) as f64;
        let wide = (self.dim as f64 / 8.0 + 8.0) * f64::EPSILON * (norm + self.max_norm).powi(2);
        let error = terms * (1.01 * scale * f64::from(f32::EPSILON) / 2.0 + 2f64.powi(-149)) + wide;
        (norm < 1e37 && scale < 1e37 && error < 1e37)
            .then_some((2.0 * error) as f32)
            .map(f32::next_up)
    }

    fn scan(&self, queries: &[f64], rounded: &mut Vec<f32>, collectors: &mut [Collector]) {
        let n = self.dim;
        rounded.clear();
        rounded.extend(queries.iter().map(|&x| x as f32));
        let mut scores: Scores = [[0.0; WIDTH]; TILE];
        let panels = self.panels.chunks_exact(WIDTH * n);
        let (halves, _) = self.half_norms.as_chunks::<WIDTH>();
        for (p, (panel, half)) in panels.zip(halves).enumerate() {
            let tiles = rounded.chunks(TILE * n).zip(collectors.chunks_mut(TILE));
            for (queries, collectors) in tiles {
                let hits = match collectors.len() {
                    1 => self.tile::<1>(panel, half, queries, collectors, &mut scores),
                    2 => self.tile::<2>(panel, half, queries, collectors, &mut scores),
                    3 => self.tile::<3>(panel, half, queries, collectors, &mut scores),
                    4 => self.tile::<4>(panel, half, queries, collectors, &mut scores),
                    5 => self.tile::<5>(panel, half, queries, collectors, &mut scores),
                    _ => self.tile::<TILE>(panel, half, queries, collectors, &mut scores),
                };
                if hits == 0 {
                    continue;
                }
                for (q, collector) in collectors.iter_mut().enumerate() {
                    if hits >> q & 1 == 1 {
                        collector.take(&scores[q], (p * WIDTH) as u32);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn tile<const Q: usize>(
        &self,
        panel: &[f32],
        half: &[f32; WIDTH],
        queries: &[f32],
        collectors: &[Collector],
        scores: &mut Scores,
    ) -> u32 {
        let thresholds = std::array::from_fn::<f32, Q, _>(|q| collectors[q].threshold);
        kernel::tile::<Q>(
            self.isa,
            panel,
            half,
            queries,
            self.dim,
            &thresholds,
            scores,
        )
    }
}

fn by_distance(a: &(f64, u32), b: &(f64, u32)) -> std::cmp::Ordering {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
}

/// Working memory of a search, reused from batch to batch.
#[derive(Default)]
pub(crate) struct Scratch {
    rounded: Vec<f32>,
    collectors: Vec<Collector>,
    ranked: Vec<(f64, u32)>,
    row: Vec<f64>,
}

/// All words that can still be among the k best of one query.
#[derive(Default)]
struct Collector {
    k: usize,
    margin: f32,
    best: f32,
    threshold: f32,
    kept: Vec<(f32, u32)>,
    room: usize,
}

impl Collector {
    fn reset(&mut self, k: usize, margin: f32) {
        self.k = k;
        self.margin = margin;
        self.best = f32::NEG_INFINITY;
        // Finite, so that the padding's -∞ never passes.
        self.threshold = f32::MIN;
        self.kept.clear();
        self.room = 4 * k + 4 * WIDTH;
    }

    fn take(&mut self, scores: &[f32; WIDTH], first: u32) {
        for (&score, id) in scores.iter().zip(first..) {
            if score >= self.threshold {
                self.kept.push((score, id));
                if self.k == 1 && score > self.best {
                    self.raise(score);
                }
            }
        }
        if self.kept.len() >= self.room {
            self.prune();
            self.room = self.room.max(2 * self.kept.len());
        }
    }

    fn raise(&mut self, best: f32) {
        self.best = best;
        self.threshold = (best - self.margin).next_down().max(f32::MIN);
    }

    fn prune(&mut self) {
        if self.k > 1 && self.kept.len() >= self.k {
            let (_, kth, _) = self
                .kept
                .select_nth_unstable_by(self.k - 1, |a, b| b.0.total_cmp(&a.0));
            let kth = kth.0;
            self.raise(kth);
        }
        let threshold = self.threshold;
        self.kept.retain(|&(score, _)| score >= threshold);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{Rng, RngExt};

    fn reference(metric: Metric, vectors: &[f32], query: &[f64], k: usize) -> Vec<(f64, u32)> {
        let mut all: Vec<_> = vectors
            .chunks_exact(query.len())
            .zip(0..)
            .map(|(v, id)| (metric.distance(query, v), id))
            .collect();
        all.sort_by(by_distance);
        all.truncate(k);
        all
    }

    fn check(metric: Metric, vectors: Vec<f32>, n: usize, queries: &[f64], k: usize) {
        let vectors: Buffer<f32> = vectors.into();
        for isa in Isa::available() {
            let mut search = ExactSearch::new(&vectors, n, metric);
            search.isa = isa;
            let m = queries.len() / n;
            let (mut ids, mut distances) = (vec![0; m * k], vec![0.0; m * k]);
            search.nearest(&vectors, queries, k, &mut ids, &mut distances);
            for (i, query) in queries.chunks_exact(n).enumerate() {
                let expected = reference(metric, &vectors, query, k);
                let got: Vec<_> = (0..k)
                    .map(|r| (distances[i * k + r], ids[i * k + r]))
                    .collect();
                assert_eq!(got, expected, "{isa:?}, query {i}");
            }
        }
    }

    fn rng(seed: u64) -> impl Rng {
        crate::Randomness::new(Some(seed))
            .next_key()
            .unwrap()
            .stream(0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]
        #[test]
        fn equals_the_f64_reference(
            n in 1usize..70, count in 1usize..400, m in 1usize..20, k in 1usize..12,
            exponent in -42i32..17, far in -3i32..5, seed: u64, duplicates: bool
        ) {
            let mut rng = rng(seed);
            let scale = 10f32.powi(exponent);
            let mut vectors: Vec<f32> = (0..n * count)
                .map(|_| scale * (rng.random::<f32>() * 2.0 - 1.0))
                .collect();
            if duplicates {
                // Whole blocks of ties and near-ties.
                let first = vectors[..n].to_vec();
                for (i, v) in vectors.chunks_exact_mut(n).enumerate().skip(1).step_by(2) {
                    v.copy_from_slice(&first);
                    if i % 4 == 1 { v[0] = v[0].next_up(); }
                }
            }
            let spread = f64::from(scale) * 10f64.powi(far);
            let queries: Vec<f64> = (0..n * m).map(|_| spread * (rng.random::<f64>() * 2.0 - 1.0)).collect();
            check(Metric::Euclidean, vectors, n, &queries, k.min(count));
        }
    }

    #[test]
    fn every_metric_and_extreme_numbers() {
        let mut rng = rng(3);
        let vectors: Vec<f32> = (0..200 * 6)
            .map(|_| (rng.random::<f32>() - 0.5) * 0.6)
            .collect();
        let queries: Vec<f64> = (0..20 * 6)
            .map(|_| (rng.random::<f64>() - 0.5) * 0.8)
            .collect();
        for metric in Metric::ALL {
            check(metric, vectors.clone(), 6, &queries, 7);
        }
        let huge: Vec<f32> = vectors.iter().map(|x| x * 3e38).collect();
        check(Metric::Euclidean, huge.clone(), 6, &queries, 3);
        let far: Vec<f64> = queries.iter().map(|x| x * 1e200).collect();
        check(Metric::Euclidean, vectors, 6, &far, 3);
        check(Metric::Euclidean, vec![0.0; 300 * 6], 6, &queries, 200);
        // So far away that f64 distances tie.
        check(
            Metric::Euclidean,
            vec![0.0, 1.0, 2.0],
            1,
            &[1e17, -1e17, 1e9, 1e15],
            1,
        );
    }
}
