//! `cargo bench`: the core without Python, on the default vocabulary.

#![allow(missing_docs)] // criterion's macros

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fastdx::noise;
use fastdx::text::{Policy, TextPrivatizer, words};
use fastdx::{Embedding, Mechanism, MultivariateLaplace, Randomness, Tem};

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
    group.finish();

    let mut group = c.benchmark_group("noise");
    let mut rng = os().next_key().unwrap().stream(0);
    for n in [50, 300] {
        let law = noise::MultivariateLaplace::new(n, 5.0).unwrap();
        let mut z = vec![0.0; n];
        group.bench_function(format!("n = {n}"), |b| {
            b.iter(|| law.sample(&mut rng, black_box(&mut z)))
        });
    }
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
    group.finish();
}

criterion_group!(benches, core);
criterion_main!(benches);
