//! `cargo bench --bench tem`: Tem's draws, from tabulated lists to 400,000 words × 300.

#![allow(missing_docs)] // criterion's macros

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fastdx::law::Law;
use fastdx::{Embedding, Mechanism, Metric, Randomness, Tem, Vocabulary};
use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

fn rng(seed: u64) -> impl Rng {
    let key = Randomness::new(Some(seed)).next_key();
    key.unwrap().stream(0)
}

/// Words in clusters of about a hundred, norms 3.5 to 6.5, a slowly falling spectrum: like GloVe in
/// the properties that affect neighbour lists.
fn clustered(words: usize, dim: usize) -> Embedding {
    let mut rng = rng(7);
    let mut normal = |out: &mut [f32]| {
        for x in out {
            *x = rng.sample(StandardNormal);
        }
    };
    let mut centers = vec![0.0; words / 100 * dim];
    normal(&mut centers);
    let mut vectors = vec![0.0; words * dim];
    normal(&mut vectors);
    let mut pick = self::rng(8);
    for word in vectors.chunks_exact_mut(dim) {
        let center = pick.random_range(0..words / 100);
        let center = &centers[center * dim..][..dim];
        for (d, (x, c)) in word.iter_mut().zip(center).enumerate() {
            *x = (0.6 * *x + 0.8 * c) / (d as f32 + 1.0).powf(0.25);
        }
        let norm = word.iter().map(|x| x * x).sum::<f32>().sqrt();
        let scale = pick.random_range(3.5..6.5) / norm;
        word.iter_mut().for_each(|x| *x *= scale);
    }
    let names: Vec<String> = (0..words).map(|i| format!("w{i}")).collect();
    let vocabulary = Vocabulary::new(names.iter().map(String::as_str)).unwrap();
    Embedding::new(vocabulary, vectors, dim, Metric::Euclidean).unwrap()
}

fn tabulated(c: &mut Criterion) {
    let mut group = c.benchmark_group("one draw from a tabulated law");
    for k in [16, 256, 1024, 20_000] {
        let count = (64 << 20) / (k * 20);
        let mut rng = rng(1);
        let laws: Vec<Law> = (0..count)
            .map(|_| {
                let distances: Vec<f64> = (0..k).map(|_| 12.0 * rng.random::<f64>()).collect();
                let mut law = Law::default();
                law.fill(0.5, f64::INFINITY, &distances);
                law.index();
                law
            })
            .collect();
        group.bench_function(BenchmarkId::new("hot", k), |b| {
            b.iter(|| black_box(&laws[0]).sample(&mut rng))
        });
        // Laws of 64 MiB in total, accessed at random: only the last-level cache holds them.
        group.bench_function(BenchmarkId::new("cold", k), |b| {
            b.iter(|| {
                let law = rng.random_range(0..laws.len());
                black_box(&laws[law]).sample(&mut rng)
            })
        });
    }
    group.finish();
}

fn large(c: &mut Criterion) {
    let embedding = Arc::new(clustered(400_000, 300));
    let tem = Tem::new(embedding, 4.0, Default::default(), Randomness::new(None)).unwrap();
    let mut pick = rng(3);
    let words: Vec<u32> = (0..2000).map(|_| pick.random_range(0..400_000)).collect();
    for _ in 0..2 {
        tem.privatize_ids(&words).unwrap();
    }
    let mut group = c.benchmark_group("one draw, 400,000 × 300");
    group.sample_size(20).throughput(Throughput::Elements(64));
    for epsilon in [2.0, 3.0, 4.0, 6.0, 8.0] {
        let tem = tem.with_epsilon(epsilon).unwrap();
        group.bench_function(BenchmarkId::new("the same word", epsilon), |b| {
            b.iter(|| tem.privatize_ids(&[words[0]; 64]))
        });
        group.bench_function(BenchmarkId::new("random words, new ε", epsilon), |b| {
            b.iter_batched(
                || {
                    let sixty_four: [u32; 64] =
                        std::array::from_fn(|_| words[pick.random_range(0..words.len())]);
                    let tem = tem.with_epsilon(epsilon * pick.random_range(0.999..1.001));
                    (tem.unwrap(), sixty_four)
                },
                |(tem, words)| (tem.privatize_ids(&words), tem),
                criterion::BatchSize::SmallInput,
            )
        });
    }
    group.finish();
}

criterion_group!(benches, tabulated, large);
criterion_main!(benches);
