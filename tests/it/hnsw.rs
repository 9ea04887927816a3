//! Approximate search by hnsw_rs: built deterministically, every word found, measured.

use crate::common::{embedding, from_vectors};
use fastdx::distance::search::{HnswParameters, Search};
use fastdx::mechanism::hyperbolic_laplace::NoiseSampler;
use fastdx::mechanism::quality;
use fastdx::noise::hyperbolic::noise::Base;
use fastdx::words::embedding::format::native;
use fastdx::{
    Control, Embedding, Error, HyperbolicLaplace, Mechanism, Metric, MetricSpace,
    MultivariateLaplace, Randomness,
};

fn graph(e: &Embedding, m: usize, seed: u64) -> Embedding {
    let parameters = HnswParameters {
        m,
        ef_construction: 60,
        seed,
    };
    e.build_hnsw(parameters, &Control::new()).unwrap()
}

/// What the graph finds near every word, with few candidates: it tells graphs apart.
fn near(e: &Embedding) -> Vec<Vec<u32>> {
    let ids: Vec<u32> = (0..e.len() as u32).collect();
    e.approximate_neighbors(&ids, 30).unwrap().expect("a graph")
}

fn laplace(e: &Embedding, epsilon: f64, seed: u64) -> MultivariateLaplace {
    let randomness = Randomness::new(Some(seed));
    MultivariateLaplace::new(e.clone().into(), epsilon, randomness).unwrap()
}

#[test]
fn one_seed_one_graph_for_every_metric() {
    for metric in Metric::ALL {
        let e = embedding(300, 20, 0.1, metric, 2);
        let (a, b, c) = (graph(&e, 6, 1), graph(&e, 6, 1), graph(&e, 6, 2));
        assert_eq!(near(&a), near(&b), "{metric}");
        assert_ne!(near(&a), near(&c), "{metric}");
        assert!(a.hnsw().unwrap().unreachable().len() < 30, "{metric}");
    }
}

#[test]
fn one_seed_one_graph_at_any_number_of_threads() {
    let e = embedding(300, 20, 0.1, Metric::Euclidean, 2);
    let built = |threads| {
        let pool = fastdx::support::parallel::pool_of(threads).unwrap();
        pool.install(|| near(&graph(&e, 6, 5)))
    };
    let one = built(1);
    assert_eq!(one, built(2));
    assert_eq!(one, built(5));
    // Another graph is told apart.
    assert_ne!(one, near(&graph(&e, 6, 6)));
}

#[test]
fn a_build_is_interrupted_between_words() {
    let e = embedding(50_000, 30, 1.0, Metric::Euclidean, 4);
    let control = Control::new();
    let built = std::thread::scope(|scope| {
        let built = scope.spawn(|| e.build_hnsw(HnswParameters::default(), &control));
        while control.done() < 20 {
            std::thread::yield_now();
        }
        control.cancel();
        built.join().unwrap()
    });
    assert!(matches!(built, Err(Error::Interrupted)));
    assert!(control.done() < 50_000);
}

#[test]
fn words_without_a_link_are_found_too() {
    // 400 copies of two points, with m = 2: links between copies do not lead out.
    let mut vectors = vec![0.0f32; 400];
    vectors.extend([100.0; 400]);
    vectors.extend((0..100).map(|i| i as f32));
    let e = graph(&from_vectors(vectors, 1, Metric::Euclidean), 2, 0);
    assert!(!e.hnsw().unwrap().unreachable().is_empty());
    let at = |x: f32| e.vectors().iter().position(|&y| y == x).unwrap() as u32;
    for word in [at(0.0), at(100.0), at(50.0)] {
        let found = &e.approximate_neighbors(&[word], 1).unwrap().unwrap()[0];
        assert_eq!(e.vector(found[0]), e.vector(word));
    }
    let one = graph(&from_vectors(vec![1.0], 1, Metric::Euclidean), 2, 0);
    assert!(one.hnsw().unwrap().unreachable().is_empty());
    let drawn = laplace(&one, 1.0, 1).with_search(Search::Hnsw { ef: 5 });
    assert_eq!(drawn.unwrap().sample("w0", 3).unwrap(), [0, 0, 0]);
}

#[test]
fn with_enough_candidates_the_law_is_the_exact_one() {
    let e = graph(&embedding(100, 3, 1.0, Metric::Euclidean, 3), 12, 0);
    let exact = laplace(&e, 4.0, 5);
    let approximate = exact.clone().with_search(Search::Hnsw { ef: 100 }).unwrap();
    // The same seed gives the same noise, and so the same words.
    let draws = 10_000;
    assert_eq!(
        exact.sample("w7", draws).unwrap(),
        approximate.sample("w7", draws).unwrap()
    );
    let quality = quality::measure(
        &exact,
        e.hnsw().unwrap(),
        100,
        &[1, 2, 3],
        500,
        &Control::new(),
    )
    .unwrap();
    assert_eq!((quality.recall, quality.total_variation), (1.0, 0.0));
    assert_eq!(quality.distance_ratio, 1.0);
    assert!(quality.warning().is_none());
}

#[test]
fn a_graph_finds_the_nearest_words_of_points_between_them() {
    let e = graph(&embedding(1500, 8, 1.0, Metric::Euclidean, 3), 16, 0);
    let mechanism = laplace(&e, 20.0, 5);
    let ids: Vec<u32> = (0..40).map(|i| i * 37).collect();
    let hnsw = e.hnsw().unwrap();
    let measured = |ef| quality::measure(&mechanism, hnsw, ef, &ids, 50, &Control::new()).unwrap();
    let (few, many) = (measured(20), measured(200));
    assert!(few.recall > 0.8, "{few:?}");
    assert!(many.recall > 0.99 && many.recall >= few.recall, "{many:?}");
}

#[test]
fn points_beyond_single_precision_and_beyond_the_ball_are_answered() {
    let e = graph(&embedding(300, 3, 0.3, Metric::Poincare, 6), 6, 0);
    let noise = |e: &Embedding| {
        let randomness = Randomness::new(Some(2));
        HyperbolicLaplace::new(
            e.clone().into(),
            3.1,
            Base::Ball,
            NoiseSampler::Exact,
            randomness,
        )
        .unwrap()
    };
    let exact = noise(&e);
    let approximate = exact.clone().with_search(Search::Hnsw { ef: 300 }).unwrap();
    assert_eq!(
        exact.sample("w3", 2000).unwrap(),
        approximate.sample("w3", 2000).unwrap()
    );
    // Noise of length 1e40, beyond f32.
    let far = graph(&embedding(100, 3, 1.0, Metric::Euclidean, 6), 6, 0);
    let far = laplace(&far, 1e-40, 2)
        .with_search(Search::Hnsw { ef: 100 })
        .unwrap();
    assert!(far.sample("w3", 500).unwrap().iter().all(|&id| id < 100));
}

#[test]
fn a_poor_search_is_found_out() {
    // Noisy points in 40 dimensions, far from every word, and a graph with two links per word.
    let e = graph(&embedding(1000, 40, 1.0, Metric::Euclidean, 3), 2, 0);
    let mechanism = laplace(&e, 1.0, 5);
    let ids: Vec<u32> = (0..20).collect();
    let hnsw = e.hnsw().unwrap();
    let measure = |ef| quality::measure(&mechanism, hnsw, ef, &ids, 100, &Control::new()).unwrap();
    let (poor, better) = (measure(1), measure(300));
    assert!(poor.recall < 0.7 && poor.total_variation > 0.2, "{poor:?}");
    assert!(poor.distance_ratio > 1.0 && poor.warning().unwrap().contains("distorts"));
    assert!(better.recall > poor.recall && better.total_variation < poor.total_variation);
    assert!(poor.total_variation <= 1.0 - poor.recall + 1e-12);
}

#[test]
fn tiny_and_huge_vectors_are_told_apart() {
    for scale in [1e-24f32, 1e20] {
        let e = graph(&embedding(400, 6, scale, Metric::Euclidean, 3), 8, 0);
        let mechanism = laplace(&e, 20.0 / f64::from(scale), 5);
        let hnsw = e.hnsw().unwrap();
        let ids: Vec<u32> = (0..20).collect();
        let found = quality::measure(&mechanism, hnsw, 100, &ids, 50, &Control::new());
        assert!(found.unwrap().recall > 0.95, "{scale}");
    }
}

#[test]
fn a_graph_belongs_to_its_words_and_metric_and_is_not_saved() {
    let e = graph(&embedding(200, 4, 1.0, Metric::Manhattan, 6), 4, 3);
    let read = native::from_bytes(&native::to_bytes(&e)).unwrap();
    let other = e.with_metric(Metric::Euclidean).unwrap();
    for without in [read, other, e.first(10).unwrap()] {
        assert!(without.hnsw().is_none());
    }
}

#[test]
fn parameters_are_checked_before_the_builder_sees_them() {
    let e = embedding(20, 2, 1.0, Metric::Euclidean, 1);
    for (m, ef_construction) in [(0, 10), (1, 10), (129, 10), (4, 0), (4, 10_001)] {
        let parameters = HnswParameters {
            m,
            ef_construction,
            seed: 0,
        };
        let built = e.build_hnsw(parameters, &Control::new());
        assert!(matches!(built, Err(Error::Parameter { .. })));
    }
    let control = Control::new();
    control.cancel();
    let built = e.build_hnsw(HnswParameters::default(), &control);
    assert!(matches!(built, Err(Error::Interrupted)));
    let exact = laplace(&e, 1.0, 1);
    assert!(exact.clone().with_search(Search::Hnsw { ef: 9 }).is_err());
    let listed = laplace(&graph(&e, 4, 0), 1.0, 1);
    assert!(listed.with_search(Search::Hnsw { ef: 0 }).is_err());
}
