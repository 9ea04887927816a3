//! Neighbour lists, and Tem drawing from them: exact for every k, ε, γ and vocabulary.

use std::sync::Arc;

use crate::common::{assert_drawn, assert_law, embedding, from_vectors, tem};
use crate::covers::check;
use fastdx::distance::neighbors::Grid;
use fastdx::law;
use fastdx::mechanism::tem::Truncation;
use fastdx::{
    Control, Embedding, Error, Mechanism, Metric, MetricSpace, NeighborLists, Randomness, Tem,
};
use proptest::prelude::*;

const MEMORY: u64 = 1 << 30;

/// Every distance, sorted by (distance on the grid, id).
fn reference(e: &Embedding, grid: Grid, word: u32, k: usize) -> Vec<(f64, u32)> {
    let mut row = vec![0.0; e.len()];
    e.distances(word, &mut row);
    let mut all: Vec<(f64, u32)> = row
        .iter()
        .zip(0..)
        .map(|(&d, id)| (grid.round(d), id))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all.truncate(k);
    all
}

fn check_lists(e: &Embedding, k: usize) {
    let lists = NeighborLists::build(e, k, MEMORY, &Control::new()).unwrap();
    let grid = lists.grid();
    for word in 0..e.len() as u32 {
        let list = lists.list(word);
        let got: Vec<(f64, u32)> = list
            .iter()
            .map(|&x| (grid.distance(x), grid.id(x)))
            .collect();
        assert_eq!(got, reference(e, grid, word, k), "word {word}");
        assert!(list.windows(2).all(|w| w[0] < w[1]));
    }
}

#[test]
fn lists_are_exact_for_every_metric() {
    for metric in Metric::ALL {
        let e = embedding(400, 6, 0.4, metric, 1);
        for k in [1, 7, 150, 400] {
            check_lists(&e, k);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn lists_are_exact_with_ties_and_duplicates(words in 1usize..200, dim in 1usize..20, k in 1usize..60, seed: u64, levels in 1u32..5) {
        // Coordinates on a coarse lattice: many words coincide, many distances tie.
        let e = embedding(words, dim, levels as f32, Metric::Euclidean, seed);
        let lattice = e.vectors().iter().map(|x| x.round()).collect();
        check_lists(&from_vectors(lattice, dim, Metric::Euclidean), k.min(words));
    }
}

#[test]
fn a_grid_is_fine_and_holds_everything() {
    for (words, diameter) in [
        (1, 0.0),
        (2, 1e-30),
        (50, 3.0),
        (400_000, 20.0),
        (1 << 31, 1e30),
    ] {
        let grid = Grid::new(words, diameter);
        let last = (words - 1) as u32;
        for d in [0.0, diameter / 3.0, diameter] {
            let entry = grid.entry(d, last);
            assert_eq!(grid.id(entry), last);
            assert_eq!(grid.distance(entry), grid.round(d));
            assert!((grid.round(d) - d).abs() <= grid.step() / 2.0);
        }
        let bits = if words == 1 << 31 { 31 } else { 43 };
        assert!(
            grid.step() <= diameter.max(1.0) * 2f64.powi(1 - bits),
            "{words} {diameter}"
        );
    }
}

#[test]
fn a_build_is_interrupted() {
    let e = embedding(1000, 2, 1.0, Metric::Euclidean, 1);
    let control = Control::new();
    control.cancel();
    let built = NeighborLists::build(&*e, 9, MEMORY, &control);
    assert!(matches!(built, Err(Error::Interrupted)));
}

#[test]
fn the_law_does_not_depend_on_the_lists() {
    // 3,000 words: lists of 5 and 256 leave most of the mass in the tail at small ε.
    let e = embedding(3000, 3, 1.0, Metric::Euclidean, 5);
    let control = Control::new();
    let listed =
        [1, 5, 300, 3000].map(|k| (k, Arc::new(e.build_lists(k, MEMORY, &control).unwrap())));
    for (i, &(epsilon, truncation)) in [
        (0.01, Truncation::Gamma(f64::INFINITY)),
        (3.0, Truncation::Beta(1e-3)),
        (8.0, Truncation::Gamma(0.2)),
        (8.0, Truncation::Gamma(0.0)),
        (40.0, Truncation::Gamma(f64::INFINITY)),
        (150.0, Truncation::Beta(1e-3)),
    ]
    .iter()
    .enumerate()
    {
        for (k, listed) in &listed {
            let tem = tem(listed.clone(), epsilon, truncation, (10 * i + k) as u64);
            check(&tem, None, &[17], 300_000);
        }
        check(
            &tem(e.clone(), epsilon, truncation, i as u64),
            None,
            &[17],
            300_000,
        );
    }
}

#[test]
fn the_law_holds_at_400_000_words_whatever_the_tail_carries() {
    let words = 400_000;
    let e = embedding(words, 4, 1.0, Metric::Euclidean, 8);
    let k = NeighborLists::default_k(words);
    assert_eq!(k, 632);
    let tem = tem(e.clone(), 1.0, Truncation::Gamma(f64::INFINITY), 8);
    // Words by distance, and the share of the law beyond the list.
    let order = reference(&e, Grid::of(&*e), 99, words);
    let tail = |epsilon: f64| {
        let law = tem.with_epsilon(epsilon).unwrap().probabilities(99);
        order[k..]
            .iter()
            .map(|&(_, id)| law[id as usize])
            .sum::<f64>()
    };
    for share in [0.05, 0.5, 0.95] {
        let (mut low, mut high) = (1e-3, 1e4);
        while high / low > 1.001 {
            let middle = f64::sqrt(low * high);
            *(if tail(middle) > share {
                &mut low
            } else {
                &mut high
            }) = middle;
        }
        assert!((tail(low) - share).abs() < 0.01);
        let tem = tem.with_epsilon(low).unwrap();
        let law = tem.probabilities(99);
        // Calls of 10,000 draws use the list and rejection, never the whole row.
        let mut drawn = vec![0u64; words];
        for _ in 0..100 {
            for y in tem.sample("w99", 10_000).unwrap() {
                drawn[y as usize] += 1;
            }
        }
        // Count likely words of the list one by one, and the rest in shells of the distance.
        let mut bins: Vec<(u64, f64)> = Vec::new();
        let mut open = (0, 0.0);
        for (rank, &(_, id)) in order.iter().enumerate() {
            open.0 += drawn[id as usize];
            open.1 += law[id as usize];
            if open.1 * 1e6 >= 100.0 || rank + 1 == k || rank + 1 == words {
                bins.push(std::mem::take(&mut open));
            }
        }
        let (counts, expected): (Vec<u64>, Vec<f64>) = bins.into_iter().unzip();
        assert!(counts.len() > 500, "{}", counts.len());
        assert_law(&counts, &expected, &format!("tail {share}"));
    }
}

#[test]
fn an_adversarial_vocabulary_does_not_make_it_spin() {
    // A cluster of 300 duplicates and 20,000 words far away. A list of 256 covers none of the tail,
    // and the tail's envelope is the weight of the word itself.
    let mut vectors = vec![0.0f32; 300];
    vectors.extend((0..20_000).map(|i| 30.0 + i as f32 * 1e-3));
    let e = from_vectors(vectors, 1, Metric::Euclidean);
    let tem = tem(e.clone(), 4.0, Truncation::Gamma(f64::INFINITY), 1);
    let start = std::time::Instant::now();
    let drawn = tem.sample("w5", 100_000).unwrap();
    assert!(start.elapsed().as_secs() < 60);
    assert_drawn(&drawn, &tem.probabilities(5), "cluster");
}

#[test]
fn a_coarse_grid_is_not_used() {
    // At this ε a step of the grid would cost more than the slack allows.
    let e = embedding(3000, 3, 1.0, Metric::Euclidean, 5);
    for epsilon in [1e6, 1e9, 1e300] {
        let tem = tem(e.clone(), epsilon, Truncation::Gamma(1.0), 3);
        let law = tem.probabilities(17);
        assert_drawn(&tem.sample("w17", 2000).unwrap(), &law, "huge ε");
        let radius = Truncation::Gamma(1.0);
        let unseeded = Tem::new(e.clone(), epsilon, radius, Randomness::new(None)).unwrap();
        assert!(unseeded.guarantee().slack <= law::SLACK);
    }
}
