//! What the tests here and in tests/it have in common: the χ² test of draws against a law, random
//! numbers, small spaces.

use std::sync::Arc;

use rand::RngExt;
use rand::rngs::ChaCha12Rng;
use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::{Embedding, Metric, Randomness, Vocabulary};

/// False-alarm rate of a test.
pub const ALPHA: f64 = 1e-7;

/// χ² of counts against a law; outcomes with fewer than 10 expected draws are combined, and
/// impossible ones have none.
pub fn assert_law<C: Copy + TryInto<u64>>(counts: &[C], law: &[f64], what: &str) {
    let counts = counts.iter().map(|&count| count.try_into().ok().unwrap());
    let counts: Vec<u64> = counts.collect();
    let draws: u64 = counts.iter().sum();
    assert!(draws > 0 && counts.len() == law.len(), "{what}");
    let (mut cells, mut rare) = (Vec::new(), (0.0, 0.0));
    for (&count, &p) in counts.iter().zip(law) {
        let (count, expected) = (count as f64, p * draws as f64);
        assert!(
            p > 0.0 || count == 0.0,
            "{what}: {count} of an impossible outcome"
        );
        if expected < 10.0 {
            rare = (rare.0 + count, rare.1 + expected);
        } else {
            cells.push((count, expected));
        }
    }
    if rare.1 >= 10.0 {
        cells.push(rare);
    } else {
        // Too rare for χ²: a Poisson count of mean below 10 exceeds 45 with probability 1e-15.
        assert!(rare.0 < 45.0, "{what}: rare outcomes {rare:?}");
    }
    if cells.len() > 1 {
        let each = cells.iter();
        let chi2: f64 = each.map(|(k, e)| (k - e).powi(2) / e).sum();
        let p = ChiSquared::new((cells.len() - 1) as f64).unwrap().sf(chi2);
        assert!(
            p > ALPHA,
            "{what}: χ² = {chi2} on {} cells, p = {p}",
            cells.len()
        );
    }
}

/// The random numbers of a seed.
pub fn rng(seed: u64) -> ChaCha12Rng {
    Randomness::new(Some(seed)).next_key().unwrap().stream(0)
}

/// A random embedding with words "w0", "w1", …
pub fn embedding(
    words: usize,
    dim: usize,
    scale: f32,
    metric: Metric,
    seed: u64,
) -> Arc<Embedding> {
    let mut rng = rng(seed);
    let vectors = (0..words * dim)
        .map(|_| scale * (rng.random::<f32>() * 2.0 - 1.0))
        .collect();
    from_vectors(vectors, dim, metric)
}

/// An embedding of the given row-major vectors.
pub fn from_vectors(vectors: Vec<f32>, dim: usize, metric: Metric) -> Arc<Embedding> {
    let names: Vec<String> = (0..vectors.len() / dim).map(|i| format!("w{i}")).collect();
    let vocabulary = Vocabulary::new(names).unwrap();
    Embedding::new(vocabulary, vectors, dim, metric)
        .unwrap()
        .into()
}

/// These words on a line, one apart.
pub fn line(words: &[&str]) -> Arc<Embedding> {
    let vectors = (0..words.len()).map(|i| i as f32).collect();
    let vocabulary = Vocabulary::new(words).unwrap();
    Arc::new(Embedding::new(vocabulary, vectors, 1, Metric::Euclidean).unwrap())
}
