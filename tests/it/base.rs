//! Tem with a public base measure: the law against an independent computation, on every path, and
//! the bound over all pairs.

use std::sync::Arc;

use crate::common::{assert_law, counts, embedding};
use fastdx::cover::Build;
use fastdx::guarantee::proved::audit;
use fastdx::law::base::BaseMeasure;
use fastdx::mechanism::tem::{Sampler, Truncation};
use fastdx::words::graph::Edges;
use fastdx::{
    Control, Cover, Embedding, Mechanism, Metric, Randomness, Tem, WordGraph, WordMetric,
};
use proptest::prelude::*;

fn zipf(words: usize) -> Vec<f64> {
    // Frequent words stand anywhere.
    (0..words)
        .map(|id| 1.0 / ((id * 7919 % words) as f64 + 1.0))
        .collect()
}

fn base(weights: &[f64]) -> Option<Arc<BaseMeasure>> {
    BaseMeasure::new(weights).unwrap().map(Arc::new)
}

fn tem(e: &Arc<Embedding>, epsilon: f64, truncation: Truncation, weights: &[f64]) -> Tem {
    let tem = Tem::new(e.clone(), epsilon, truncation, Randomness::known_keys(7)).unwrap();
    tem.with_base(base(weights)).unwrap()
}

/// Pr[y|w] ∝ q_y·exp(-(ε/2)·min(d(w, A_y), γ)), implemented independently.
fn law(tem: &Tem, weights: &[f64], w: u32) -> Vec<f64> {
    let space = tem.space();
    let apart = |y: u32| match tem.cover() {
        None => space.distance(w, y),
        Some(cover) => cover.rank(y).map_or(f64::INFINITY, |rank| {
            let each = cover.set(rank).iter().map(|&a| space.distance(w, a));
            each.fold(f64::INFINITY, f64::min)
        }),
    };
    let each = (0..weights.len() as u32).map(|y| match apart(y) {
        f64::INFINITY => 0.0,
        d => weights[y as usize] * (-tem.nominal() / 2.0 * d.min(tem.gamma())).exp(),
    });
    let each: Vec<f64> = each.collect();
    let total: f64 = each.iter().sum();
    each.iter().map(|weight| weight / total).collect()
}

fn check(tem: &Tem, weights: &[f64], words: &[u32], draws: usize) {
    let len = weights.len();
    for &w in words {
        let expected = law(tem, weights, w);
        let mut row = vec![0.0; len];
        tem.space().distances(w, &mut row);
        let mut of_row = vec![0.0; len];
        assert!(tem.law_of_row(w, &row, &mut of_row));
        for law in [tem.probabilities(w), of_row] {
            for (p, q) in law.iter().zip(&expected) {
                assert!((p - q).abs() <= 1e-6 * q + 1e-12, "{tem:?} {w}: {p} {q}");
            }
        }
        // Draw all at once, from the whole row; then a few at a time, from the list and by
        // rejection.
        let many = tem.sample(&format!("w{w}"), draws).unwrap();
        let mut few = Vec::with_capacity(draws);
        for _ in 0..draws / 10 {
            few.extend(tem.privatize_ids(&[w; 10]).unwrap());
        }
        for (drawn, how) in [(many, "row"), (few, "list")] {
            assert_law(
                &counts(&drawn, len),
                &expected,
                &format!("{how} {tem:?} {w}"),
            );
        }
    }
}

#[test]
fn draws_have_the_law_on_every_path() {
    let e = embedding(3000, 4, 1.0, Metric::Euclidean, 3);
    let weights = zipf(e.len());
    let cover = Cover::nearest(&*e, 12, &Build::default(), &Control::new()).unwrap();
    for (epsilon, truncation) in [
        (3.0, Truncation::default()),
        (14.0, Truncation::Gamma(0.4)),
        (1e-3, Truncation::Gamma(f64::INFINITY)),
    ] {
        let plain = tem(&e, epsilon, truncation, &weights);
        let excluding = plain.excluding(&[0, 5, 17, 2999]).unwrap();
        let covered = plain.with_cover(Some(Arc::new(cover.clone()))).unwrap();
        let both = covered.excluding(&[17]).unwrap();
        for tem in [plain.clone(), excluding, covered, both] {
            check(&tem, &weights, &[17, 40], 100_000);
        }
        let listed = e.build_lists(40, 1 << 30, &Control::new()).unwrap();
        let listed = plain.on(Arc::new(listed)).unwrap();
        assert_eq!(listed.probabilities(17), plain.probabilities(17));
        check(&listed, &weights, &[17], 100_000);
    }
}

#[test]
fn few_words_graphs_and_gumbel() {
    let edges: Vec<(String, String)> = (1..60)
        .map(|i| (format!("w{}", (i - 1) / 3), format!("w{i}")))
        .collect();
    let mut all = Edges::new();
    for (a, b) in &edges {
        all.push(a, b).unwrap();
    }
    let graph = Arc::new(WordGraph::new(&all, None, None).unwrap());
    let weights = zipf(60);
    let on_graph = Tem::new(graph, 1.5, Truncation::default(), Randomness::known_keys(1)).unwrap();
    check(
        &on_graph.with_base(base(&weights)).unwrap(),
        &weights,
        &[0, 30],
        200_000,
    );
    for words in [1, 2, 300] {
        let e = embedding(words, 2, 1.0, Metric::Manhattan, 5);
        let weights = zipf(words);
        let tem = tem(&e, 2.0, Truncation::Gamma(0.7), &weights);
        check(&tem, &weights, &[0], 200_000);
        check(&tem.with_sampler(Sampler::Gumbel), &weights, &[0], 200_000);
    }
}

#[test]
fn a_cover_with_weights_has_the_same_law() {
    let e = embedding(400, 3, 1.0, Metric::Euclidean, 4);
    let weights = zipf(400);
    let identity = Cover::identity(&*e, &[3]).unwrap();
    let weighted = identity.weighted(|id| weights[id as usize]).unwrap();
    let plain = Tem::new(e.clone(), 2.0, Truncation::default(), Randomness::new(None)).unwrap();
    let by_cover = plain.with_cover(Some(Arc::new(weighted))).unwrap();
    let by_base = plain
        .with_base(base(&weights))
        .unwrap()
        .excluding(&[3])
        .unwrap();
    for w in [0, 3, 399] {
        assert_eq!(by_cover.probabilities(w), by_base.probabilities(w));
    }
    let twice = by_cover.with_base(base(&weights)).unwrap_err().to_string();
    assert!(twice.starts_with("language must be"), "{twice}");
    let short = plain
        .with_base(base(&weights[..5]))
        .unwrap_err()
        .to_string();
    assert!(short.starts_with("language must be"), "{short}");
}

/// The largest log-ratio of two laws beyond ε·d.
fn beyond(laws: &[Vec<f64>], e: &Embedding, epsilon: f64) -> f64 {
    let mut most = f64::NEG_INFINITY;
    for (a, law) in (0..).zip(laws) {
        for (b, other) in (0..).zip(laws) {
            let bound = epsilon * WordMetric::distance(e, a, b);
            for (p, q) in law
                .iter()
                .zip(other)
                .filter(|(p, q)| **p > 0.0 || **q > 0.0)
            {
                most = most.max(p.ln() - q.ln() - bound);
            }
        }
    }
    most
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    /// For any public weights, whatever their range.
    #[test]
    fn the_bound_holds_for_every_base(
        words in 2usize..40, dim in 1usize..4, seed: u64, spread in 0.1..8.9f64,
        epsilon in prop_oneof![1e-3..1.0f64, 1.0..60.0f64, Just(1e6)],
        gamma in prop_oneof![Just(f64::INFINITY), Just(0.0), 0.0..2.0f64],
    ) {
        let e = embedding(words, dim, 1.0, Metric::Euclidean, seed);
        let weights: Vec<f64> =
            (0..words).map(|y| 10f64.powf(spread * (y * 7 % words) as f64 / words as f64)).collect();
        let tem = tem(&e, epsilon, Truncation::Gamma(gamma), &weights);
        let laws: Vec<Vec<f64>> = (0..words as u32).map(|w| tem.probabilities(w)).collect();
        prop_assert!(laws.iter().flatten().all(|&p| p > 0.0));
        prop_assert!(beyond(&laws, &e, epsilon) <= 1e-7);
        let certified = audit::certify(&tem, &Control::new()).unwrap();
        prop_assert!(beyond(&laws, &e, certified.epsilon) <= 1e-7 * (1.0 + epsilon));
        // The liar's measure knows the word: it favours what the word itself is. Unless all words
        // are at one place, or released unchanged anyway, it is convicted.
        let liar = |w: usize, law: &[f64]| -> Vec<f64> {
            let mut lie = law.to_vec();
            lie[w] *= 1e3;
            let total: f64 = lie.iter().sum();
            lie.iter().map(|p| p / total).collect()
        };
        let lies: Vec<Vec<f64>> = laws.iter().enumerate().map(|(w, law)| liar(w, law)).collect();
        if epsilon < 1.0 && dim == 1 {
            prop_assert!(beyond(&lies, &e, epsilon) > 1.0);
        }
    }
}
