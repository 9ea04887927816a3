//! Helpers of the statistical tests: small spaces, fixed seeds, and exact error rates.
#![allow(dead_code)] // each test file uses its part

use std::sync::Arc;

use fastdx::mechanism::tem::Truncation;
use fastdx::words::graph::Edges;
use fastdx::{
    Embedding, Guarantee, Mechanism, Metric, MetricSpace, Randomness, Tem, Vocabulary, WordGraph,
};
use statrs::distribution::{Beta, ContinuousCDF};

#[path = "../../src/testing.rs"]
mod testing;

pub use testing::{ALPHA, assert_law, embedding, from_vectors, rng};

/// How often each of `words` ids was drawn.
pub fn counts(drawn: &[u32], words: usize) -> Vec<u64> {
    let mut counts = vec![0; words];
    drawn.iter().for_each(|&y| counts[y as usize] += 1);
    counts
}

/// χ² of drawn ids against a law.
pub fn assert_drawn(drawn: &[u32], law: &[f64], what: &str) {
    assert_law(&counts(drawn, law.len()), law, what);
}

/// The default with a change.
pub fn with<T: Default>(change: impl FnOnce(&mut T)) -> T {
    let mut made = T::default();
    change(&mut made);
    made
}

/// Tem that draws by the fast ways.
pub fn tem(space: Arc<dyn MetricSpace>, epsilon: f64, truncation: Truncation, seed: u64) -> Tem {
    Tem::new(space, epsilon, truncation, Randomness::known_keys(seed)).unwrap()
}

/// The law of every word.
pub fn laws(tem: &Tem) -> Vec<Vec<f64>> {
    let words = tem.vocabulary().len() as u32;
    (0..words).map(|w| tem.probabilities(w)).collect()
}

/// The largest log-ratio of two words' laws beyond ε·d.
pub fn beyond(laws: &[Vec<f64>], distance: impl Fn(u32, u32) -> f64, epsilon: f64) -> f64 {
    let mut most = f64::NEG_INFINITY;
    for (a, law) in (0..).zip(laws) {
        for (b, other) in (0..).zip(laws) {
            let bound = epsilon * distance(a, b);
            let possible = law
                .iter()
                .zip(other)
                .filter(|(p, q)| **p > 0.0 || **q > 0.0);
            most = possible.fold(most, |most, (p, q)| most.max(p.ln() - q.ln() - bound));
        }
    }
    most
}

/// The edges of a graph of the words "w0", "w1", …
pub fn edges(words: usize, pairs: &[(usize, usize)]) -> Edges {
    let mut edges = Edges::new();
    for w in 0..words {
        edges.word(&format!("w{w}"));
    }
    for &(u, v) in pairs {
        edges.push(&format!("w{u}"), &format!("w{v}")).unwrap();
    }
    edges
}

pub fn graph(words: usize, pairs: &[(usize, usize)], weights: Option<&[f64]>) -> Arc<WordGraph> {
    WordGraph::new(&edges(words, pairs), weights, None)
        .unwrap()
        .into()
}

/// Kolmogorov-Smirnov test of a sample against a distribution function.
pub fn assert_distribution(
    sample: impl Iterator<Item = f64>,
    cdf: impl Fn(f64) -> f64,
    what: &str,
) {
    let mut sample: Vec<f64> = sample.collect();
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    assert!(n > 0.0, "{what}");
    // The distribution function is computed at some 10,000 places: D is the larger by 1e-4 at most.
    let step = (sample.len() / 10_000).max(1);
    let some = (0..sample.len()).step_by(step).chain([sample.len() - 1]);
    let d = some.fold(0.0f64, |d, i| {
        let (x, f) = (sample[i], cdf(sample[i]));
        // NaN would pass: it is never the larger one.
        assert!(f >= 0.0, "{what}: cdf({x}) = {f}");
        d.max((f - i as f64 / n).abs())
            .max(((i + 1) as f64 / n - f).abs())
    });
    // Massart's inequality: Pr[D > d] ≤ 2 exp(-2nd²), exact for every n.
    let p = 2.0 * (-2.0 * n * d * d).exp();
    assert!(p > ALPHA, "{what}: D = {d}, p ≤ {p}");
}

/// Clopper-Pearson intervals of each word's counts, each side wrong with probability `alpha`.
pub fn intervals(counts: &[Vec<u64>], alpha: f64) -> Vec<Vec<(f64, f64)>> {
    let of = |row: &Vec<u64>| {
        let draws: u64 = row.iter().sum();
        assert!(draws > 0);
        let at = |k: u64, more: u64, p| {
            let beta = Beta::new((k + more) as f64, (draws + 1 - k - more) as f64);
            beta.unwrap().inverse_cdf(p)
        };
        let low = |k| if k == 0 { 0.0 } else { at(k, 0, alpha) };
        let high = |k| {
            if k == draws {
                1.0
            } else {
                at(k, 1, 1.0 - alpha)
            }
        };
        row.iter().map(|&k| (low(k), high(k))).collect()
    };
    counts.iter().map(of).collect()
}

/// The largest log-ratio that a guarantee allows at a distance. One that allows everything passes
/// every comparison, so it is an error here; a seeded mechanism has such a guarantee.
pub fn allowed(guarantee: &Guarantee, distance: f64) -> f64 {
    assert_eq!(guarantee.void, None);
    let bound = guarantee.epsilon * distance + guarantee.slack;
    assert!(bound.is_finite(), "{bound}: nothing can be refuted");
    bound
}

/// For all pairs of words and outputs the log-ratio that counts, one row a word, are certain of,
/// each side of an interval wrong with probability `alpha`.
pub fn certain_ratios(
    counts: &[Vec<u64>],
    alpha: f64,
) -> impl Iterator<Item = ((usize, usize, usize), f64)> {
    let (words, bounds) = (counts.len(), intervals(counts, alpha));
    let split = move |i| (i / words / words, i / words % words, i % words);
    (0..words.pow(3))
        .map(split)
        .map(move |(a, b, y)| ((a, b, y), (bounds[a][y].0 / bounds[b][y].1).ln()))
}

/// The first two words and output whose counts refute a mechanism's guarantee.
pub fn refuted(counts: &[Vec<u64>], claim: &dyn Mechanism) -> Option<(usize, usize, usize)> {
    let guarantee = claim.guarantee();
    let bound = |a, b| allowed(&guarantee, claim.distance(a as u32, b as u32));
    let found = certain_ratios(counts, 1e-9).find(|&((a, b, _), ratio)| ratio > bound(a, b));
    found.map(|found| found.0)
}
