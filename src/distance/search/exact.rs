//! Exact nearest words: a filter in integers or f32 discards most words, f64 distances rank
//! the rest.
//!
//! A [`Filter`] leaves the few words that can be the nearest. They are ranked by their f64
//! distances, so the answer is the minimum of the f64 distances, with ties to the smaller id. If
//! integers leave too many words (for example, vectors in few directions), the f32 filter runs. If that
//! fails too (numbers beyond its range), all words are ranked.

use crate::support::fork::Once;

use super::collector::{Collector, Ranking};
use super::filter::{Filter, Precision, Prepared};
use super::kernel::Isa;
use super::scoring::Scoring;
use crate::distance::metric::Metric;
use crate::distance::neighbors::Grid;
use crate::distance::search::{BATCH, MAX_QUERIES};
use crate::support::buffer::Buffer;

/// The search structure behind [`Embedding::nearest`](crate::Embedding::nearest).
#[derive(Debug)]
pub struct ExactSearch {
    scoring: Scoring,
    isa: Isa,
    integers: Option<Filter>,
    /// The f32 filter behind one of integers, built when it is first needed.
    single: Once<Filter>,
}

impl ExactSearch {
    pub(crate) fn new(vectors: &Buffer<f32>, dim: usize, metric: Metric) -> Self {
        Self::with_isa(vectors, dim, metric, Isa::detect())
    }

    fn with_isa(vectors: &[f32], dim: usize, metric: Metric, isa: Isa) -> Self {
        let scoring = Scoring::new(metric, dim, vectors);
        let integers = Filter::integers(isa, &scoring)
            .map(|precision| Filter::new(isa, precision, &scoring, vectors));
        ExactSearch {
            scoring,
            isa,
            integers,
            single: Once::new(),
        }
    }

    fn single(&self, vectors: &[f32]) -> &Filter {
        self.single
            .get_or_init(|| Filter::new(self.isa, Precision::Single, &self.scoring, vectors))
    }

    /// Maximum number of queries to search together: [`MAX_QUERIES`], or fewer if more would leave
    /// the second-level cache.
    pub(crate) fn batch(&self) -> usize {
        const BYTES: usize = 1 << 18;
        let filter = self.integers.as_ref().or(self.single.get());
        let bytes = filter.map_or(4 * self.scoring.dim, Filter::query_bytes);
        // Whole tiles of six and of sixteen.
        (BYTES / bytes.max(1) / 48 * 48).clamp(BATCH, MAX_QUERIES)
    }

    /// Searches some queries, ideally no more than [`batch`](Self::batch). `found(i, ranked)`
    /// receives the k nearest rows of query i, by distances rounded to the grid if there is one.
    /// `vectors` are those that the structure was built on.
    pub(crate) fn nearest_batch(
        &self,
        vectors: &[f32],
        queries: &[f64],
        k: usize,
        grid: Option<Grid>,
        scratch: &mut Scratch,
        mut found: impl FnMut(usize, &[(f64, u32)]),
    ) {
        let n = self.scoring.dim;
        let count = vectors.len() / n;
        let m = queries.len() / n;
        let step = grid.map_or(0.0, |g| g.step());
        let round = |d| grid.map_or(d, |g| g.round(d));
        let Scratch {
            prepared,
            collectors,
            ranking,
            ranked,
            row,
        } = scratch;
        collectors.resize_with(m.max(1), Collector::default);
        let collectors = &mut collectors[..m];
        // Ranking more words than this takes longer than another scan.
        let most = match self.integers {
            Some(_) => 16 * k + 256 + count / 64,
            None => count,
        };
        collectors.iter_mut().for_each(|c| c.reset(k, most));
        let scoring = &self.scoring;
        let filter = match &self.integers {
            Some(integers) => integers,
            None => self.single(vectors),
        };
        let distances = |i: usize, ids: &[u32], out: &mut [f64]| {
            let query = &queries[i * n..][..n];
            scoring.metric.distances_to(query, vectors, ids, out);
            out.iter_mut().for_each(|d| *d = round(*d));
        };
        filter.scan(
            scoring, queries, distances, step, true, prepared, collectors,
        );
        for (i, query) in queries.chunks_exact(n).enumerate() {
            let collector = &mut collectors[i..=i];
            let of_query = |ids: &[u32], out: &mut [f64]| distances(i, ids, out);
            let of_first = |_, ids: &[u32], out: &mut [f64]| distances(i, ids, out);
            collector[0].rank(scoring, ranking, of_query);
            if collector[0].missed {
                collector[0].reset(k, most);
                filter.scan(scoring, query, of_first, step, false, prepared, collector);
                collector[0].rank(scoring, ranking, of_query);
            }
            if collector[0].gave_up && self.integers.is_some() {
                collector[0].reset(k, count);
                let single = self.single(vectors);
                single.scan(scoring, query, of_first, step, false, prepared, collector);
                collector[0].rank(scoring, ranking, of_query);
            }
            let collector = &mut collector[0];
            // Fewer than k: NaNs from a damaged file that was not verified.
            if collector.gave_up || collector.len() < k {
                collector.reset(k, count);
                row.resize(count, 0.0);
                scoring.metric.distances(query, vectors, row);
                for (&d, id) in row.iter().zip(0..) {
                    collector.add(round(d), id);
                }
            }
            ranked.clear();
            ranked.extend(collector.nearest());
            found(i, ranked);
        }
    }
}

/// Working memory of a search, reused from batch to batch.
#[derive(Default)]
pub(crate) struct Scratch {
    prepared: Prepared,
    collectors: Vec<Collector>,
    ranking: Ranking,
    ranked: Vec<(f64, u32)>,
    row: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rng;
    use proptest::prelude::*;
    use rand::RngExt;

    fn by_distance(a: &(f64, u32), b: &(f64, u32)) -> std::cmp::Ordering {
        a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
    }

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
            let search = ExactSearch::with_isa(&vectors, n, metric, isa);
            let mut scratch = Scratch::default();
            search.nearest_batch(&vectors, queries, k, None, &mut scratch, |i, got| {
                let expected = reference(metric, &vectors, &queries[i * n..][..n], k);
                assert_eq!(got, expected, "{isa:?}, query {i}");
            });
        }
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
                // Whole blocks of ties and near ties.
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Inputs that are large enough for guessed thresholds, which sorted or clustered words
        /// mislead. Some have so little structure, or such outliers, that 8 bits decide nothing.
        #[test]
        fn guesses_and_filters_that_give_up_change_nothing(
            n in 1usize..24, k in 64usize..200, seed: u64, shape in 0usize..5, far in 0i32..4,
            metric in 0usize..5
        ) {
            let (mut rng, count) = (rng(seed), 5000);
            let mut vectors: Vec<f32> = (0..n * count).map(|_| rng.random::<f32>() - 0.5).collect();
            for (i, v) in vectors.chunks_exact_mut(n).enumerate() {
                match shape {
                    // One direction; one outlying coordinate; words sorted by distance; two
                    // clusters.
                    1 => { let x = v[0]; v.fill(x); }
                    2 => v[0] *= 1e4,
                    3 => v[0] = (i + 1) as f32 / count as f32,
                    4 => v.iter_mut().for_each(|x| *x = *x * 1e-3 + if i % 1000 < 300 { 0.1 } else { 0.2 }),
                    _ => {}
                }
                let norm = v.iter().map(|x| x * x).sum::<f32>().sqrt();
                if Metric::ALL[metric] == Metric::Poincare && norm >= 0.9999 {
                    v.iter_mut().for_each(|x| *x *= 0.9999 / norm);
                }
            }
            let spread = if metric == 4 { 0.5 / (n as f64).sqrt() } else { 10f64.powi(far) };
            let queries: Vec<f64> = (0..n * 3).map(|_| spread * (rng.random::<f64>() * 2.0 - 1.0)).collect();
            // Skip inputs that an embedding refuses: a zero vector has no angle.
            let metric = Metric::ALL[metric];
            for v in vectors.chunks_exact_mut(n).filter(|v| metric.refuse(v).is_some()) {
                v.fill(0.01);
            }
            prop_assume!(queries.chunks_exact(n).all(|q| metric.refuse(q).is_none()));
            check(metric, vectors.clone(), n, &queries, k);
            check(metric, vectors, n, &queries, 1);
        }
    }

    /// Correct answers say nothing about the filters: they must also leave few words to rank.
    #[test]
    fn filters_leave_few_words() {
        let (n, count, m) = (24, 4096, 8);
        let mut rng = rng(11);
        let mut vectors: Vec<f32> = (0..n * count).map(|_| rng.random::<f32>() - 0.5).collect();
        // Near words, as in an embedding: every eighth word lies beside the one before it.
        for i in (8..count).step_by(8) {
            for d in 0..n {
                vectors[i * n + d] = vectors[(i - 1) * n + d] + 0.05 * (rng.random::<f32>() - 0.5);
            }
        }
        let queries: Vec<f64> = (0..m * n)
            .map(|i| f64::from(vectors[7 * n + i % n + i / n * 8 * n]))
            .collect();
        let vectors: Buffer<f32> = vectors.into();
        for metric in [Metric::Euclidean, Metric::Manhattan, Metric::Angular] {
            for isa in Isa::available() {
                let search = ExactSearch::with_isa(&vectors, n, metric, isa);
                let mut scratch = Scratch::default();
                search.nearest_batch(&vectors, &queries, 2, None, &mut scratch, |_, _| {});
                for collector in &scratch.collectors[..m] {
                    let (ranked, gave_up) = collector.work();
                    assert!(
                        !gave_up && ranked <= 150,
                        "{metric:?} {isa:?}: {ranked} of {count}, {gave_up}"
                    );
                }
            }
        }
    }

    /// Vocabularies begin with frequent words, and in many embeddings these are near to all words.
    #[test]
    fn guesses_hold_where_the_first_words_are_near_to_all() {
        let (n, count, k) = (16, 64 * 128, 256);
        let mut rng = rng(5);
        let mut vectors: Vec<f32> = (0..n * count).map(|_| rng.random::<f32>() - 0.5).collect();
        vectors[..64 * n].iter_mut().for_each(|x| *x *= 0.2);
        let scoring = Scoring::new(Metric::Euclidean, n, &vectors);
        for isa in Isa::available() {
            let precision = Filter::integers(isa, &scoring).unwrap_or(Precision::Single);
            let filter = Filter::new(isa, precision, &scoring, &vectors);
            let mut collectors = [Collector::default()];
            for query in vectors.chunks_exact(n).step_by(97) {
                let query: Vec<f64> = query.iter().map(|&x| f64::from(x)).collect();
                let distances = |_: usize, ids: &[u32], out: &mut [f64]| {
                    scoring.metric.distances_to(&query, &vectors, ids, out);
                };
                let [collector] = &mut collectors;
                collector.reset(k, count);
                let mut prepared = Prepared::default();
                let first = std::slice::from_mut(collector);
                filter.scan(&scoring, &query, distances, 0.0, true, &mut prepared, first);
                let of_query = |ids: &[u32], out: &mut [f64]| distances(0, ids, out);
                collector.rank(&scoring, &mut Ranking::default(), of_query);
                assert!(!collector.missed && !collector.gave_up, "{isa:?}");
            }
        }
    }

    #[test]
    fn a_guess_that_leaves_exactly_k_words_is_seen_through() {
        // 64 words reach the guessed threshold, and the last of them found is not the farthest.
        let u = 2f32.powi(-24);
        let mut vectors = vec![-1.0f32; 4096];
        vectors[..15].fill(0.6);
        vectors[15..62].fill(1.0 - 8.0 * u);
        vectors[62] = 1.0 - 2.0 * u;
        vectors[63] = 0.6;
        vectors[100] = 5.0 * u;
        for metric in [Metric::Manhattan, Metric::Chebyshev, Metric::Euclidean] {
            check(metric, vectors.clone(), 1, &[0.5], 64);
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
