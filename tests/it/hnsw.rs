//! Approximate search by hnsw_rs: built deterministically, every word found, measured.

use crate::common::{embedding, from_vectors};
use fastdx::distance::search::{HnswParameters, Search};
use fastdx::noise::hyperbolic::noise::Base;
use fastdx::words::embedding::format::native;
use fastdx::{
    Control, Embedding, Error, HyperbolicLaplace, Mechanism, Metric, MultivariateLaplace,
    Randomness,
};

fn graph(e: &Embedding, m: usize, seed: u64) -> Embedding {
    let parameters = HnswParameters {
        m,
        ef_construction: 60,
        seed,
    };
    e.build_hnsw(parameters, &Control::new()).unwrap()
}

/// The words that the graph finds near every word, with few candidates: graphs differ in them.
fn near(e: &Embedding) -> Vec<Vec<u32>> {
    let hnsw = e.hnsw().unwrap();
    let each = e.vectors().chunks(e.dim()).map(|vector| {
        let query: Vec<f64> = vector.iter().map(|&x| x.into()).collect();
        let near = hnsw.nearest(&query, 30, 64);
        near.iter().map(|near| near.1).collect()
    });
    each.collect()
}

/// How often a search finds the nearest words of noisy points: one seed gives the same noise.
fn recall(e: &Embedding, epsilon: f64, ef: usize, ids: &[u32]) -> f64 {
    let approximate = laplace(e, epsilon, 5).with_search(Search::Hnsw { ef });
    let found = approximate.unwrap().privatize_ids(ids).unwrap();
    let nearest = laplace(e, epsilon, 5).privatize_ids(ids).unwrap();
    let right = found.iter().zip(&nearest).filter(|(a, b)| a == b).count();
    right as f64 / ids.len() as f64
}

fn laplace(e: &Embedding, epsilon: f64, seed: u64) -> MultivariateLaplace {
    let randomness = Randomness::new(Some(seed));
    MultivariateLaplace::new(e.clone().into(), epsilon, randomness).unwrap()
}

#[test]
fn one_seed_one_graph_for_every_metric_and_number_of_threads() {
    for metric in Metric::ALL {
        let e = embedding(300, 20, 0.1, metric, 2);
        let built = |threads, seed| {
            let pool = fastdx::support::parallel::pool_of(threads).unwrap();
            pool.install(|| graph(&e, 6, seed))
        };
        let one = built(1, 1);
        assert!(one.hnsw().unwrap().unreachable().len() < 30, "{metric}");
        assert_eq!(near(&one), near(&built(5, 1)), "{metric}");
        assert_ne!(near(&one), near(&built(5, 2)), "{metric}");
    }
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
        let found = near(&e)[word as usize][0];
        assert_eq!(e.vector(found), e.vector(word));
    }
    let one = graph(&from_vectors(vec![1.0], 1, Metric::Euclidean), 2, 0);
    assert!(one.hnsw().unwrap().unreachable().is_empty());
    let drawn = laplace(&one, 1.0, 1).with_search(Search::Hnsw { ef: 5 });
    assert_eq!(drawn.unwrap().sample("w0", 3).unwrap(), [0, 0, 0]);
}

#[test]
fn points_beyond_single_precision_and_beyond_the_ball_are_answered() {
    let e = graph(&embedding(300, 3, 0.3, Metric::Poincare, 6), 6, 0);
    let noise = |e: &Embedding| {
        let randomness = Randomness::new(Some(2));
        HyperbolicLaplace::new(e.clone().into(), 3.1, Base::Ball, randomness).unwrap()
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
fn noisy_points_find_their_nearest_words_where_the_search_is_good_enough() {
    let all = 1.0..=1.0;
    for (words, dim, scale, m, epsilon, ef, expected) in [
        (100, 3, 1.0, 12, 4.0, 100, all),
        (1500, 8, 1.0, 16, 20.0, 20, 0.8..=1.0),
        (1500, 8, 1.0, 16, 20.0, 200, 0.99..=1.0),
        // Points in 40 dimensions, far from every word, and a graph with two links per word.
        (1000, 40, 1.0, 2, 1.0, 1, 0.0..=0.7),
        (1000, 40, 1.0, 2, 1.0, 300, 0.7..=1.0),
        (400, 6, 1e-24, 8, 20.0, 100, 0.95..=1.0),
        (400, 6, 1e20, 8, 20.0, 100, 0.95..=1.0),
    ] {
        let e = graph(&embedding(words, dim, scale, Metric::Euclidean, 3), m, 0);
        let ids: Vec<u32> = (0..2000).map(|i| i % 40).collect();
        let found = recall(&e, epsilon / f64::from(scale), ef, &ids);
        assert!(expected.contains(&found), "{words} {scale} {ef}: {found}");
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
