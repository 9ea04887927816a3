//! Covers, and Tem on them: laws against an independent computation, floors, files.

use std::sync::Arc;

use crate::common::{assert_law, counts, embedding, from_vectors, rng};
use fastdx::cover::{Balance, Build};
use fastdx::mechanism::tem::{Sampler, Truncation};
use fastdx::words::embedding::format::native;
use fastdx::words::graph::Edges;
use fastdx::{
    Control, Cover, Embedding, Error, Mechanism, Metric, MetricSpace, Randomness, Tem, WordGraph,
    WordMechanism, WordMetric,
};
use proptest::prelude::*;
use rand::RngExt;

fn tem(e: &Arc<Embedding>, epsilon: f64, truncation: Truncation, cover: Cover) -> Tem {
    let tem = Tem::new(e.clone(), epsilon, truncation, Randomness::known_keys(7)).unwrap();
    tem.with_cover(Some(Arc::new(cover))).unwrap()
}

/// Pr[y|w] ∝ q_y·exp(-(ε/2)·min(d(w, A_y), γ)), implemented independently.
fn law(e: &Embedding, cover: &Cover, w: u32, epsilon: f64, gamma: f64) -> Vec<f64> {
    let mut weights = vec![0.0; e.len()];
    for (rank, &y) in cover.released().iter().enumerate() {
        let set = cover.set(rank as u32).iter();
        let d = set
            .map(|&a| WordMetric::distance(e, w, a))
            .fold(f64::INFINITY, f64::min);
        weights[y as usize] = cover.weight(rank as u32) * (-epsilon / 2.0 * d.min(gamma)).exp();
    }
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total).collect()
}

/// Sets of every kind: empty ones, singletons, large overlapping ones, and one of all words.
fn random_sets(words: usize, seed: u64) -> Vec<Vec<u32>> {
    let mut rng = rng(seed);
    let word = |rng: &mut _| rand::RngExt::random_range(rng, 0..words as u32);
    (0..words)
        .map(|y| match y % 7 {
            0 => Vec::new(),
            1 => vec![word(&mut rng)],
            2 if y == 2 => (0..words as u32).collect(),
            _ => {
                let size = rng.random_range(1..12);
                (0..size).map(|_| word(&mut rng)).collect()
            }
        })
        .collect()
}

fn check(tem: &Tem, e: &Embedding, words: &[u32], draws: usize) {
    let cover = tem.cover().unwrap();
    for &w in words {
        let expected = law(e, cover, w, tem.nominal(), tem.gamma());
        for (p, q) in tem.probabilities(w).iter().zip(&expected) {
            assert!((p - q).abs() <= 1e-6 * q + 1e-15, "{tem:?} {w}: {p} {q}");
        }
        let mut fast = vec![0.0; e.len()];
        let mut row = vec![0.0; e.len()];
        e.distances(w, &mut row);
        assert!(tem.law_of_row(w, &row, &mut fast));
        for (p, q) in fast.iter().zip(&expected) {
            assert!((p - q).abs() <= 1e-9 * q + 1e-15, "{tem:?} {w}: {p} {q}");
        }
        // Draw all at once, from the whole row; then a few at a time, from the list and by
        // rejection.
        let name = format!("w{w}");
        let many = tem.sample(&name, draws).unwrap();
        assert_law(
            &counts(&many, e.len()),
            &expected,
            &format!("row {tem:?} {w}"),
        );
        let mut few = Vec::with_capacity(draws);
        for _ in 0..draws / 10 {
            few.extend(tem.privatize_ids(&[w; 10]).unwrap());
        }
        assert_law(
            &counts(&few, e.len()),
            &expected,
            &format!("list {tem:?} {w}"),
        );
    }
}

#[test]
fn draws_have_the_law_of_random_covers() {
    let e = embedding(300, 3, 1.0, Metric::Euclidean, 11);
    let truncations = [
        (2.0, Truncation::Beta(1e-3)),
        (9.0, Truncation::Gamma(0.6)),
        (4.0, Truncation::Gamma(f64::INFINITY)),
        (4.0, Truncation::Gamma(0.0)),
        (1e-3, Truncation::default()),
    ];
    for (seed, (epsilon, truncation)) in truncations.into_iter().enumerate() {
        let cover = Cover::from_members(&*e, random_sets(300, seed as u64)).unwrap();
        check(
            &tem(&e, epsilon, truncation, cover.clone()),
            &e,
            &[0, 150],
            200_000,
        );
        // Weights over six orders of magnitude.
        let weighted = cover
            .weighted(|y| 10f64.powf(f64::from(y % 61) / 10.0))
            .unwrap();
        assert!(weighted.fingerprint() != cover.fingerprint());
        check(
            &tem(&e, epsilon, truncation, weighted),
            &e,
            &[0, 150],
            200_000,
        );
    }
}

#[test]
fn lists_much_shorter_than_the_vocabulary_change_nothing() {
    // 6,000 words: lists of 256 words, and as many outputs, leave most of the mass outside.
    let e = embedding(6000, 4, 1.0, Metric::Euclidean, 3);
    let cover = Cover::nearest(&*e, 20, &Build::default(), &Control::new()).unwrap();
    let weights: fn(u32) -> f64 = |y| 1.0 + f64::from(y % 1000) * 30.0;
    for (epsilon, truncation) in [(3.0, Truncation::default()), (14.0, Truncation::Gamma(0.4))] {
        // Weights that differ by less than a factor of two form one class, like equal weights.
        let like: fn(u32) -> f64 = |y| if y % 2 == 0 { 1.0 } else { 1.9 };
        let weighted = [weights, like].map(|weights| cover.weighted(weights).unwrap());
        for cover in [cover.clone()].into_iter().chain(weighted) {
            let tem = tem(&e, epsilon, truncation, cover);
            check(&tem, &e, &[17], 300_000);
            let listed = e.build_lists(40, 1 << 30, &Control::new()).unwrap();
            let listed = tem.on(Arc::new(listed)).unwrap();
            assert_eq!(listed.probabilities(17), tem.probabilities(17));
            check(&listed, &e, &[17], 100_000);
        }
    }
}

/// With excluded words, the law is that of the remaining words. The excluded words are the word
/// itself, its nearest words, or nearly all words at its position.
#[test]
fn excluding_words_leaves_the_law_of_the_others() {
    // Words 0 to 499 lie at one position, the others anywhere.
    let mut vectors = vec![0.1f32; 500 * 3];
    let mut rng = rng(3);
    vectors.extend((0..2500 * 3).map(|_| rng.random::<f32>() * 2.0 - 1.0));
    let e = from_vectors(vectors, 3, Metric::Euclidean);
    let truncation = Truncation::Gamma(f64::INFINITY);
    for excluded in [vec![7, 600, 2999], (1..500).collect::<Vec<u32>>()] {
        for epsilon in [2.0, 12.0] {
            let cover = || Cover::identity(&*e, &excluded).unwrap();
            let seeded = tem(&e, epsilon, truncation, cover());
            check(&seeded, &e, &[0, 7, 1500], 100_000);
            // Without a seed, from the first draw to the kept table.
            let fresh = Tem::new(e.clone(), epsilon, truncation, Randomness::new(None)).unwrap();
            let fresh = fresh.with_cover(Some(Arc::new(cover()))).unwrap();
            for w in [0u32, 7, 1500] {
                let expected = law(&e, fresh.cover().unwrap(), w, epsilon, f64::INFINITY);
                let mut drawn = Vec::new();
                for size in [1usize, 1, 2, 30, 500, 3000, 9000, 60_000] {
                    drawn.extend(fresh.privatize_ids(&vec![w; size]).unwrap());
                }
                let counts = counts(&drawn, e.len());
                assert_law(&counts, &expected, &format!("{epsilon} {w}"));
            }
        }
    }
}

#[test]
fn every_metric_and_duplicates_and_one_word() {
    for metric in Metric::ALL {
        let e = embedding(120, 4, 0.4, metric, 5);
        let cover = Cover::nearest(&*e, 6, &Build::default(), &Control::new()).unwrap();
        check(
            &tem(&e, 3.0, Truncation::default(), cover),
            &e,
            &[3],
            100_000,
        );
    }
    // 400 words at four points: a list of 256 ends among words of distance 0.
    let points: Vec<f32> = (0..400).map(|i| (i % 4) as f32).collect();
    let e = from_vectors(points, 1, Metric::Euclidean);
    let cover = Cover::from_members(&*e, random_sets(400, 9)).unwrap();
    check(
        &tem(&e, 1.5, Truncation::Gamma(2.0), cover),
        &e,
        &[1],
        200_000,
    );
    let one = from_vectors(vec![0.5], 1, Metric::Euclidean);
    let cover = Cover::nearest(&*one, 1, &Build::default(), &Control::new()).unwrap();
    let tem = tem(&one, 1.0, Truncation::default(), cover);
    assert_eq!(tem.sample("w0", 5).unwrap(), [0; 5]);
}

#[test]
fn the_gumbel_sampler_has_the_law_too() {
    let e = embedding(60, 2, 1.0, Metric::Euclidean, 2);
    let cover = Cover::from_members(&*e, random_sets(60, 4)).unwrap();
    let cover = cover.weighted(|y| 1.0 + f64::from(y)).unwrap();
    let tem = tem(&e, 5.0, Truncation::Gamma(0.8), cover).with_sampler(Sampler::Gumbel);
    let expected = law(&e, tem.cover().unwrap(), 8, 5.0, 0.8);
    let drawn = tem.sample("w8", 100_000).unwrap();
    assert_law(&counts(&drawn, 60), &expected, "gumbel");
    assert!(tem.guarantee().void.is_some());
}

#[test]
fn the_identity_is_tem_and_k_of_all_words_is_uniform() {
    let e = embedding(200, 3, 1.0, Metric::Euclidean, 1);
    let plain = Tem::new(
        e.clone(),
        4.0,
        Truncation::default(),
        Randomness::known_keys(7),
    )
    .unwrap();
    let one = Build {
        least: 1,
        ..Build::default()
    };
    let identity = Cover::identity(&*e, &[]).unwrap();
    let k1 = Cover::nearest(&*e, 1, &one, &Control::new()).unwrap();
    assert_eq!(identity.fingerprint(), k1.fingerprint());
    assert_eq!((k1.k(), k1.floor(), k1.excluded()), (1, 1.0, 0));
    let covered = plain.with_cover(Some(Arc::new(k1))).unwrap();
    for w in 0..200 {
        assert_eq!(plain.probabilities(w), covered.probabilities(w));
    }
    let all = Cover::nearest(&*e, 200, &Build::default(), &Control::new()).unwrap();
    let uniform = plain.with_cover(Some(Arc::new(all))).unwrap();
    assert!(
        uniform
            .probabilities(3)
            .iter()
            .all(|p| (p - 1.0 / 200.0).abs() < 1e-12)
    );
    assert!(Cover::nearest(&*e, 0, &Build::default(), &Control::new()).is_err());
    assert!(Cover::nearest(&*e, 201, &Build::default(), &Control::new()).is_err());
}

#[test]
fn laws_of_several_words_at_once_are_those_of_each() {
    let e = embedding(203, 4, 1.0, Metric::Euclidean, 5);
    let sets = Cover::from_members(&*e, random_sets(203, 9)).unwrap();
    let weighted = sets.weighted(|y| 1.0 + f64::from(y % 9)).unwrap();
    let identity = Cover::identity(&*e, &[0, 7, 202]).unwrap();
    let plain = Tem::new(e.clone(), 3.0, Truncation::default(), Randomness::new(None)).unwrap();
    for cover in [None, Some(sets), Some(weighted), Some(identity)] {
        let tem = plain.with_cover(cover.map(Arc::new)).unwrap();
        // One more than twice eight.
        let words: Vec<u32> = (0..17).map(|i| i * 11).collect();
        let mut rows = vec![0.0; words.len() * 203];
        for (&w, row) in words.iter().zip(rows.chunks_exact_mut(203)) {
            e.distances(w, row);
        }
        let mut scores = vec![1.0; 3];
        tem.scores(&rows, &mut scores);
        let width = scores.len() / words.len();
        for (&w, scores) in words.iter().zip(scores.chunks_exact(width)) {
            let mut found = vec![f64::NAN; 203];
            assert!(tem.law_of_scores(w, scores, &mut found));
            for (p, q) in found.iter().zip(tem.probabilities(w)) {
                assert!((p - q).abs() <= 1e-8 * q, "{w}: {p} {q}");
            }
        }
    }
}

#[test]
fn nearest_and_balanced_sets_are_those_of_a_sort() {
    let e = embedding(150, 3, 1.0, Metric::Euclidean, 8);
    let counts: Vec<f64> = (0..150).map(|i| 1e6 / f64::from(i + 1)).collect();
    let control = Control::new();
    let exclude: Vec<u32> = (0..150).filter(|i| i % 5 == 0).collect();
    for exclude in [Vec::new(), exclude] {
        let build = Build {
            least: 0,
            exclude: exclude.clone(),
            ..Build::default()
        };
        for weight in [0.0, 0.1, 3.0] {
            // Counts and probabilities give the same result.
            let shares: Vec<f64> = counts.iter().map(|c| c / 1e12).collect();
            let given = if weight == 3.0 { &shares } else { &counts };
            let balance = Balance::of_counts(given, 150, weight).unwrap();
            let cover = Cover::balanced(&*e, 7, &balance, &build, &control).unwrap();
            // m is the median distance to the 20th neighbour.
            let mut twentieth: Vec<f64> = Vec::new();
            let mut rows = Vec::new();
            for w in 0..150 {
                let mut row = vec![0.0; 150];
                e.distances(w, &mut row);
                let mut sorted = row.clone();
                sorted.sort_by(f64::total_cmp);
                twentieth.push(sorted[20]);
                rows.push(row);
            }
            twentieth.sort_by(f64::total_cmp);
            let m = twentieth[75];
            for w in 0..150u32 {
                let score = |y: u32| {
                    let factor = (counts[w as usize] / counts[y as usize]).log2().abs();
                    rows[w as usize][y as usize] + weight * m * factor
                };
                let mut order: Vec<u32> = (0..150).filter(|y| !exclude.contains(y)).collect();
                order.sort_by(|&a, &b| score(a).total_cmp(&score(b)));
                let mut expected = order[..7].to_vec();
                expected.sort_unstable();
                let ids = cover
                    .outputs(w)
                    .iter()
                    .map(|&r| cover.released()[r as usize]);
                assert_eq!(ids.collect::<Vec<_>>(), expected, "{w} {weight}");
            }
            if weight == 0.0 {
                let nearest = Cover::nearest(&*e, 7, &build, &control).unwrap();
                assert_eq!(nearest.fingerprint(), cover.fingerprint());
                assert_eq!((nearest.k(), nearest.floor()), (7, 1.0 / 7.0));
            }
        }
    }
    let topped = Cover::nearest(
        &*e,
        7,
        &Build {
            least: 9,
            exclude: vec![4],
            ..Build::default()
        },
        &control,
    )
    .unwrap();
    let least = (0..149).map(|rank| topped.set(rank).len()).min();
    assert_eq!(
        (least, topped.excluded(), topped.rank(4)),
        (Some(9), 1, None)
    );
    assert!(topped.k() >= 7);
    for bad in [f64::NAN, -1.0] {
        let balance = Balance {
            log2_frequencies: vec![0.0; 150],
            weight: bad,
        };
        assert!(Cover::balanced(&*e, 7, &balance, &Build::default(), &control).is_err());
        assert!(Balance::of_counts(&vec![bad; 150], 150, 0.1).is_err());
    }
}

#[test]
fn unknown_words_become_what_is_released() {
    let e = embedding(50, 2, 1.0, Metric::Euclidean, 2);
    let cover = Cover::identity(&*e, &[0, 1, 2, 3]).unwrap();
    let cover = cover
        .weighted(|y| if y == 10 { 900.0 } else { 1.0 })
        .unwrap();
    let tem = tem(&e, 2.0, Truncation::default(), cover.clone());
    let mut rng = rng(1);
    let drawn: Vec<u32> = (0..200_000).map(|_| tem.draw_unknown(&mut rng)).collect();
    let total: f64 = (0..46).map(|rank| cover.weight(rank)).sum();
    let mut expected = vec![0.0; 50];
    for (rank, &y) in cover.released().iter().enumerate() {
        expected[y as usize] = cover.weight(rank as u32) / total;
    }
    assert_law(&counts(&drawn, 50), &expected, "unknown words");
}

#[test]
fn graphs_have_covers() {
    let mut edges = Edges::new();
    for pair in ["a", "b", "c", "d", "e"].windows(2) {
        edges.push(pair[0], pair[1]).unwrap();
    }
    let graph = WordGraph::new(&edges, None, None).unwrap();
    let near = Cover::within(
        &graph,
        &graph,
        1.0,
        None,
        &Build {
            least: 0,
            ..Build::default()
        },
        &Control::new(),
    );
    let near = near.unwrap();
    let sets: Vec<&[u32]> = (0..5).map(|rank| near.set(rank)).collect();
    assert_eq!(
        sets,
        [&[0, 1][..], &[0, 1, 2], &[1, 2, 3], &[2, 3, 4], &[3, 4]]
    );
    let tem = Tem::new(
        Arc::new(graph),
        2.0,
        Truncation::default(),
        Randomness::known_keys(3),
    )
    .unwrap();
    let tem = tem.with_cover(Some(Arc::new(near))).unwrap();
    // From a: a and b at 0, c at 1, d at 2, e at 3.
    let weights = [0.0, 0.0, 1.0, 2.0, 3.0].map(|d: f64| (-d.min(tem.gamma())).exp());
    let expected = weights.map(|weight| weight / weights.iter().sum::<f64>());
    assert_law(
        &counts(&tem.sample("a", 200_000).unwrap(), 5),
        &expected,
        "graph",
    );
}

#[test]
fn words_of_a_graph_are_excluded() {
    // A tree and a cycle: words of few distances, drawn by shells.
    for close in [false, true] {
        let mut edges = Edges::new();
        let names: Vec<String> = (0..12).map(|i| format!("w{i}")).collect();
        for i in 1..12 {
            edges.push(&names[(i - 1) / 2], &names[i]).unwrap();
        }
        if close {
            edges.push(&names[11], &names[0]).unwrap();
        }
        let graph = Arc::new(WordGraph::new(&edges, None, None).unwrap());
        for epsilon in [0.5, 3.0, 400.0] {
            let gamma = Truncation::Gamma(f64::INFINITY);
            let tem = Tem::new(graph.clone(), epsilon, gamma, Randomness::known_keys(5)).unwrap();
            let plain = tem.probabilities(3);
            let cover = Cover::identity(&*graph, &[3, 4, 0]).unwrap();
            let tem = tem.with_cover(Some(Arc::new(cover))).unwrap();
            let allowed = |y: usize| ![3, 4, 0].contains(&y);
            let sum: f64 = (0..12).filter(|&y| allowed(y)).map(|y| plain[y]).sum();
            let each = (0..12).map(|y| if allowed(y) { plain[y] / sum } else { 0.0 });
            let expected: Vec<f64> = each.collect();
            let drawn = tem.sample("w3", 20_000).unwrap();
            assert_law(
                &counts(&drawn, 12),
                &expected,
                &format!("{close} {epsilon}"),
            );
            for (p, q) in tem.probabilities(3).iter().zip(&expected) {
                assert!((p - q).abs() < 1e-9, "{close} {epsilon}: {p} {q}");
            }
        }
    }
}

#[test]
fn files_hold_covers() {
    let directory = tempfile::tempdir().unwrap();
    let e = embedding(80, 3, 1.0, Metric::Euclidean, 2);
    let cover = Cover::nearest(&*e, 5, &Build::default(), &Control::new()).unwrap();
    let cover = cover.weighted(|y| 1.0 + f64::from(y)).unwrap();
    let path = directory.path().join("cover");
    cover.save(&path).unwrap();
    assert_eq!(
        Cover::open(&path).unwrap().fingerprint(),
        cover.fingerprint()
    );
    let with = (*e)
        .clone()
        .with_cover(Some(Arc::new(cover.clone())))
        .unwrap();
    native::save(&with, &path).unwrap();
    for verify in [true, false] {
        let back = native::open(&path, verify).unwrap();
        assert_eq!(back.cover().unwrap().fingerprint(), cover.fingerprint());
    }
    assert_eq!(
        Cover::open(&path).unwrap().fingerprint(),
        cover.fingerprint()
    );
    native::save(&e, &path).unwrap();
    assert!(matches!(Cover::open(&path), Err(Error::Corrupt { .. })));
    let other = embedding(80, 3, 1.0, Metric::Euclidean, 3);
    assert!(
        (*other)
            .clone()
            .with_cover(Some(Arc::new(cover.clone())))
            .is_err()
    );
    let foreign = Tem::new(other, 1.0, Truncation::default(), Randomness::new(None)).unwrap();
    assert!(foreign.with_cover(Some(Arc::new(cover))).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    /// The bound on log-ratios, and the floor, hold for any sets and weights.
    #[test]
    fn the_bound_and_the_floor_hold(
        words in 1usize..40, dim in 1usize..4, seed: u64, k in 1usize..12,
        epsilon in prop_oneof![1e-3..1.0f64, 1.0..60.0f64],
        gamma in prop_oneof![Just(f64::INFINITY), Just(0.0), 0.0..2.0f64],
        spread in 0.0..5.0f64, random: bool,
    ) {
        let e = embedding(words, dim, 1.0, Metric::Euclidean, seed);
        let mut cover = match random && words > 2 {
            true => Cover::from_members(&*e, random_sets(words, seed)).unwrap(),
            false => Cover::nearest(&*e, k.min(words), &Build::default(), &Control::new()).unwrap(),
        };
        if spread > 1.0 {
            cover = cover.weighted(|y| 10f64.powf(spread * f64::from(y) / words as f64)).unwrap();
        }
        let tem = tem(&e, epsilon, Truncation::Gamma(gamma), cover);
        let laws: Vec<Vec<f64>> = (0..words as u32).map(|w| tem.probabilities(w)).collect();
        let floor = tem.cover().unwrap().floor();
        for (a, law) in laws.iter().enumerate() {
            prop_assert!(law.iter().all(|&p| p <= floor * (1.0 + 1e-9)), "{floor}");
            for (b, other) in laws.iter().enumerate() {
                let bound = epsilon * WordMetric::distance(&*e, a as u32, b as u32) + 1e-6;
                for (p, q) in law.iter().zip(other) {
                    prop_assert!((*p == 0.0) == (*q == 0.0));
                    prop_assert!(*p == 0.0 || p.ln() - q.ln() <= bound, "{} {bound}", p.ln() - q.ln());
                }
            }
        }
    }
}
