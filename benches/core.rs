//! `cargo bench -p fastdx-bench`: the core without Python, on the built-in words. `make compare` sets two commits
//! beside each other.

#![allow(missing_docs)] // criterion's macros

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fastdx::noise;
use fastdx::noise::hyperbolic::noise::{Base, HyperbolicLaplace};
use fastdx::policy::{Parts, Spaces};
use fastdx::text::{Policy, TextPrivatizer, words};
use fastdx::transport::bags::{Bag, distance};
use fastdx::{Control, Embedding, Mechanism, MultivariateLaplace, Randomness, Spec, Tem};

fn core(c: &mut Criterion) {
    let embedding = Arc::new(Embedding::default_english().unwrap());
    let os = || Randomness::new(None);
    let tem = Tem::new(embedding.clone(), 3.0, Default::default(), os()).unwrap();
    let madlib = MultivariateLaplace::new(embedding.clone(), 6.0, os()).unwrap();
    let ids: Vec<u32> = (0..1000).map(|i| i * 7919 % 20_000).collect();

    let mut group = c.benchmark_group("20,000 × 50");
    group.sample_size(10).throughput(Throughput::Elements(1000));
    group.bench_function("Tem, 1000 words", |b| b.iter(|| tem.privatize_ids(&ids)));
    group.bench_function("Tem, one word 1000 times", |b| {
        b.iter(|| tem.sample("coffee", 1000))
    });
    group.bench_function("MultivariateLaplace, 1000 words", |b| {
        b.iter(|| madlib.privatize_ids(&ids))
    });
    let mut rng = os().next_key().unwrap().stream(0);
    let law = noise::MultivariateLaplace::new(50, 6.0).unwrap();
    let mut z = vec![0.0; 50];
    let mut points = Vec::new();
    for &id in &ids {
        law.sample(&mut rng, &mut z);
        let vector = embedding.vector(id);
        points.extend(vector.iter().zip(&z).map(|(&x, z)| f64::from(x) + z));
    }
    group.bench_function("nearest words of 1000 noisy points", |b| {
        b.iter(|| embedding.nearest(&points, 1, &Control::new()))
    });
    group.finish();

    let mut group = c.benchmark_group("Earth Mover's distance");
    let control = Control::new();
    for n in [50, 200] {
        let bag = |from: usize| Bag::new(ids[from..from + n].iter().map(|&id| (id, 1))).unwrap();
        let (x, y) = (bag(0), bag(n));
        group.bench_function(format!("N = {n}"), |b| {
            b.iter(|| distance(&*embedding, &x, &y, &control))
        });
    }
    group.finish();

    let mut group = c.benchmark_group("noise");
    for n in [50, 300] {
        let law = noise::MultivariateLaplace::new(n, 5.0).unwrap();
        let mut z = vec![0.0; n];
        group.bench_function(format!("n = {n}"), |b| {
            b.iter(|| law.sample(&mut rng, black_box(&mut z)))
        });
    }
    let law = HyperbolicLaplace::new(100, 8.0, Base::Ball).unwrap();
    let mut z = vec![0.0; 100];
    group.bench_function("hyperbolic, n = 100", |b| {
        b.iter(|| law.sample(&mut rng, black_box(&mut z)))
    });
    group.finish();

    let text = "I would like to book a table for two at the restaurant, please. ".repeat(1000);
    let mut group = c.benchmark_group("text");
    group
        .sample_size(10)
        .throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("tokenise", |b| b.iter(|| words(&text).count()));
    let private = TextPrivatizer::new(Arc::new(tem), Policy::default()).unwrap();
    group.bench_function("Tem, 13,000 words of text", |b| {
        b.iter(|| private.privatize(&text))
    });
    let built = Spec::recommended().build(Parts::default(), &mut Spaces::default(), &control);
    let recommended = built.unwrap().text;
    group.bench_function("the recommended policy, 13,000 words", |b| {
        b.iter(|| recommended.privatize(&text))
    });
    group.finish();
}

criterion_group!(benches, core);
criterion_main!(benches);
