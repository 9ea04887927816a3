//! Approximate search by hnsw_rs: built deterministically, every word reachable, stored, measured.

use crate::common::{assert_law, counts, embedding, from_vectors};
use fastdx::embedding::format::native;
use fastdx::hyperbolic::noise::Base;
use fastdx::mechanism::hyperbolic_laplace::NoiseSampler;
use fastdx::mechanism::quality;
use fastdx::search::{HnswParameters, Search};
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

fn links(e: &Embedding) -> Vec<Vec<u32>> {
    let hnsw = e.hnsw().unwrap();
    let word = |layer| (0..e.len() as u32).map(move |id| hnsw.neighbors(layer, id).to_vec());
    (0..hnsw.layers()).flat_map(word).collect()
}

fn laplace(e: &Embedding, epsilon: f64, seed: u64) -> MultivariateLaplace {
    let randomness = Randomness::new(Some(seed));
    MultivariateLaplace::new(e.clone().into(), epsilon, randomness).unwrap()
}

#[test]
fn one_seed_one_graph_and_every_word_reachable_for_every_metric() {
    for metric in Metric::ALL {
        let e = embedding(600, 5, 0.3, metric, 2);
        let (a, b, c) = (graph(&e, 6, 1), graph(&e, 6, 1), graph(&e, 6, 2));
        assert_eq!(links(&a), links(&b), "{metric}");
        assert!(a.hnsw().unwrap().layers() > 1, "{metric}");
        assert_ne!(links(&a), links(&c), "{metric}");
        assert!(a.hnsw().unwrap().reachable().into_iter().all(|r| r));
    }
}

#[test]
fn one_seed_one_graph_at_any_number_of_threads() {
    let e = embedding(3000, 8, 1.0, Metric::Euclidean, 4);
    let built = |threads| {
        let pool = fastdx::parallel::pool_of(threads).unwrap();
        pool.install(|| links(&graph(&e, 8, 5)))
    };
    let one = built(1);
    assert_eq!(one, built(2));
    assert_eq!(one, built(5));
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
fn duplicates_and_clusters_stay_reachable() {
    // 400 copies of two points, with m = 2: links between copies do not lead out.
    let mut vectors = vec![0.0f32; 400];
    vectors.extend([100.0; 400]);
    vectors.extend((0..100).map(|i| i as f32));
    let e = graph(&from_vectors(vectors, 1, Metric::Euclidean), 2, 0);
    assert!(e.hnsw().unwrap().reachable().into_iter().all(|r| r));
    let one = graph(&from_vectors(vec![1.0], 1, Metric::Euclidean), 2, 0);
    assert_eq!(one.hnsw().unwrap().reachable(), [true]);
    let drawn = laplace(&one, 1.0, 1).with_search(Search::Hnsw { ef: 5 });
    assert_eq!(drawn.unwrap().sample("w0", 3).unwrap(), [0, 0, 0]);
}

#[test]
fn with_enough_candidates_the_law_is_the_exact_one() {
    let e = graph(&embedding(300, 3, 1.0, Metric::Euclidean, 3), 12, 0);
    let exact = laplace(&e, 4.0, 5);
    let approximate = exact.clone().with_search(Search::Hnsw { ef: 300 }).unwrap();
    // The same seed gives the same noise, and so the same words.
    let draws = 20_000;
    assert_eq!(
        exact.sample("w7", draws).unwrap(),
        approximate.sample("w7", draws).unwrap()
    );
    let quality = quality::measure(
        &exact,
        e.hnsw().unwrap(),
        300,
        &[1, 2, 3],
        500,
        &Control::new(),
    )
    .unwrap();
    assert_eq!((quality.recall, quality.total_variation), (1.0, 0.0));
    assert_eq!(quality.distance_ratio, 1.0);
    assert!(quality.warning().is_none());
    let law: Vec<f64> = counts(&exact.sample("w7", 2_000_000).unwrap(), 300)
        .iter()
        .map(|&c| c as f64 / 2e6)
        .collect();
    // Compared with another seed's draws; the expected counts are estimates, hence the wide cells.
    let other = laplace(&e, 4.0, 6).with_search(Search::Hnsw { ef: 300 });
    let drawn = counts(&other.unwrap().sample("w7", 20_000).unwrap(), 300);
    assert_law(&drawn, &law, "HNSW, all candidates");
}

#[test]
fn a_graph_finds_the_nearest_words_of_points_between_them() {
    let e = graph(&embedding(4000, 8, 1.0, Metric::Euclidean, 3), 16, 0);
    let mechanism = laplace(&e, 20.0, 5);
    let ids: Vec<u32> = (0..40).map(|i| i * 100).collect();
    let hnsw = e.hnsw().unwrap();
    let measured = |ef| quality::measure(&mechanism, hnsw, ef, &ids, 100, &Control::new()).unwrap();
    let (few, many) = (measured(20), measured(200));
    assert!(few.recall > 0.8, "{few:?}");
    assert!(many.recall > 0.99 && many.recall >= few.recall, "{many:?}");
}

#[test]
fn a_saved_graph_gives_the_same_answers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let e = graph(&embedding(2000, 20, 1.0, Metric::Euclidean, 3), 8, 0);
    e.save(&path).unwrap();
    // Few candidates, so that the answers are this graph's and not the exact ones.
    let drawn = |e: &Embedding| {
        let approximate = laplace(e, 2.0, 5).with_search(Search::Hnsw { ef: 12 });
        let approximate = approximate.unwrap();
        let ids: Vec<u32> = (0..2000).collect();
        approximate.privatize_ids(&ids).unwrap()
    };
    let answers = drawn(&e);
    let exact = laplace(&e, 2.0, 5).privatize_ids(&(0..2000).collect::<Vec<_>>());
    assert_ne!(answers, exact.unwrap());
    for verify in [true, false] {
        assert_eq!(answers, drawn(&native::open(&path, verify).unwrap()));
    }
    assert_eq!(
        answers,
        drawn(&native::from_bytes(&native::to_bytes(&e)).unwrap())
    );
    assert_eq!(answers, drawn(&e.clone()));
}

#[test]
fn a_damaged_graph_that_was_not_verified_is_refused_by_the_first_search() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let e = graph(&embedding(300, 4, 1.0, Metric::Euclidean, 6), 4, 3);
    let mut bytes = native::to_bytes(&e);
    // The last section holds the graph's neighbours.
    let end = bytes.len() - 64;
    bytes[end - 64..end].fill(0xff);
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(
        native::open(&path, true),
        Err(Error::Corrupt { .. })
    ));
    let damaged = native::open(&path, false).unwrap();
    let refused = laplace(&damaged, 1.0, 1).with_search(Search::Hnsw { ef: 9 });
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains("HNSW") && message.contains("build_hnsw"),
        "{message}"
    );
    let build = fastdx::cover::Build {
        approximate: true,
        ..Default::default()
    };
    let cover = fastdx::Cover::nearest(&damaged, 3, &build, &Control::new());
    assert!(matches!(cover, Err(Error::Corrupt { .. })));
    assert_eq!(laplace(&damaged, 1.0, 1).sample("w0", 3).unwrap().len(), 3);
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
    let e = graph(&embedding(3000, 40, 1.0, Metric::Euclidean, 3), 2, 0);
    let mechanism = laplace(&e, 1.0, 5);
    let ids: Vec<u32> = (0..20).collect();
    let hnsw = e.hnsw().unwrap();
    let measure = |ef| quality::measure(&mechanism, hnsw, ef, &ids, 300, &Control::new()).unwrap();
    let (poor, better) = (measure(1), measure(1000));
    assert!(poor.recall < 0.5 && poor.total_variation > 0.2, "{poor:?}");
    assert!(poor.distance_ratio > 1.0 && poor.warning().unwrap().contains("distorts"));
    assert!(better.recall > poor.recall && better.total_variation < poor.total_variation);
    assert!(poor.total_variation <= 1.0 - poor.recall + 1e-12);
}

#[test]
fn tiny_and_huge_vectors_are_told_apart() {
    for scale in [1e-24f32, 1e20] {
        let e = graph(&embedding(1000, 6, scale, Metric::Euclidean, 3), 8, 0);
        let mechanism = laplace(&e, 20.0 / f64::from(scale), 5);
        let hnsw = e.hnsw().unwrap();
        let ids: Vec<u32> = (0..20).collect();
        let found = quality::measure(&mechanism, hnsw, 100, &ids, 50, &Control::new());
        assert!(found.unwrap().recall > 0.95, "{scale}");
    }
}

#[test]
fn a_graph_is_stored_and_every_flipped_bit_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let e = graph(&embedding(200, 4, 1.0, Metric::Manhattan, 6), 4, 3);
    let e = e.build_lists(9, 1 << 20, &Control::new()).unwrap();
    e.save(&path).unwrap();
    for verify in [true, false] {
        let back = native::open(&path, verify).unwrap();
        assert_eq!(links(&e), links(&back));
        let parameters = back.hnsw().unwrap().parameters();
        assert_eq!((parameters.m, parameters.seed), (4, 3));
        assert!(back.lists().is_some());
        assert!(back.first(10).unwrap().hnsw().is_none());
        assert!(
            back.with_metric(Metric::Euclidean)
                .unwrap()
                .hnsw()
                .is_none()
        );
    }
    let small = graph(&embedding(6, 2, 1.0, Metric::Euclidean, 6), 2, 3);
    let bytes = native::to_bytes(&small);
    for i in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[i / 8] ^= 1 << (i % 8);
        let read = native::from_bytes(&damaged);
        assert!(matches!(read, Err(Error::Corrupt { .. })), "bit {i}");
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
