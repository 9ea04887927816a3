//! Tem's law alone, on covers, and with public base measures: laws against an independent computation, on
//! every path, the bound over all pairs, floors.

use std::sync::Arc;

use crate::common::{assert_drawn, beyond, embedding, from_vectors, graph, laws, rng, tem, with};
use fastdx::cover::{Balance, Build};
use fastdx::distance::neighbors::Grid;
use fastdx::guarantee::proved::audit;
use fastdx::law::base::BaseMeasure;
use fastdx::mechanism::tem::Truncation;
use fastdx::{Control, Cover, Embedding, Mechanism, Metric, MetricSpace, Randomness, Tem};
use proptest::prelude::*;
use rand::RngExt;

const NO_RADIUS: Truncation = Truncation::Gamma(f64::INFINITY);

fn on(tem: &Tem, cover: Cover) -> Tem {
    tem.with_cover(Some(Arc::new(cover))).unwrap()
}

fn nearest(e: &Embedding, k: usize) -> Cover {
    Cover::nearest(e, k, &Build::default(), &Control::new()).unwrap()
}

fn zipf(words: usize) -> Vec<f64> {
    // Frequent words stand anywhere.
    let each = (0..words).map(|id| 1.0 / ((id * 7919 % words) as f64 + 1.0));
    each.collect()
}

fn based(tem: &Tem, weights: &[f64]) -> Tem {
    let base = BaseMeasure::new(weights).unwrap();
    tem.with_base(base.map(Arc::new)).unwrap()
}

/// Pr[y|w] ∝ q_y·exp(-(ε/2)·min(d(w, A_y), γ)), implemented independently; q are the weights of the
/// base measure, or those of the cover.
fn law(tem: &Tem, base: Option<&[f64]>, w: u32) -> Vec<f64> {
    let space = tem.space();
    let weight = |y: u32| {
        let (d, own) = match tem.cover() {
            None => (space.distance(w, y), 1.0),
            Some(cover) => {
                let Some(rank) = cover.rank(y) else {
                    return 0.0;
                };
                let each = cover.set(rank).iter().map(|&a| space.distance(w, a));
                (each.fold(f64::INFINITY, f64::min), cover.weight(rank))
            }
        };
        let q = base.map_or(own, |weights| weights[y as usize]);
        q * (-tem.nominal() / 2.0 * d.min(tem.gamma())).exp()
    };
    let each: Vec<f64> = (0..space.vocabulary().len() as u32).map(weight).collect();
    let total: f64 = each.iter().sum();
    each.iter().map(|weight| weight / total).collect()
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

/// The computed law and the drawn one, by every way, against the definition.
pub fn check(tem: &Tem, base: Option<&[f64]>, words: &[u32], draws: usize) {
    // A base measure is kept in 32 bits.
    let rounding = if base.is_some() { 1e-12 } else { 1e-15 };
    let len = tem.space().vocabulary().len();
    // Scores of one word more than twice eight at once; what stood there before is gone.
    let others = (0..17).map(|i| i * 11 % len as u32);
    let several: Vec<u32> = words.iter().copied().chain(others).take(17).collect();
    let (mut rows, mut scores) = (vec![0.0; several.len() * len], vec![1.0; 3]);
    for (&w, row) in several.iter().zip(rows.chunks_exact_mut(len)) {
        tem.space().distances(w, row);
    }
    tem.scores(&rows, &mut scores);
    let width = scores.len() / several.len();
    for (at, (&w, scores)) in several.iter().zip(scores.chunks_exact(width)).enumerate() {
        let (expected, mut of_row) = (law(tem, base, w), vec![f64::NAN; len]);
        assert!(tem.law_of_scores(w, scores, &mut of_row));
        for law in [tem.probabilities(w), of_row] {
            for (p, q) in law.iter().zip(&expected) {
                assert!((p - q).abs() <= 1e-6 * q + rounding, "{tem:?} {w}: {p} {q}");
            }
        }
        if at >= words.len() {
            continue;
        }
        // Draw all at once, from the whole row; then a few at a time, from the list and by
        // rejection.
        let many = tem.sample(&format!("w{w}"), draws).unwrap();
        let few = (0..draws / 10).flat_map(|_| tem.privatize_ids(&[w; 10]).unwrap());
        for (drawn, how) in [(many, "row"), (few.collect(), "list")] {
            assert_drawn(&drawn, &expected, &format!("{how} {tem:?} {w}"));
        }
    }
}

#[test]
fn draws_have_the_law_of_random_covers() {
    let e = embedding(300, 3, 1.0, Metric::Euclidean, 11);
    let truncations = [
        (2.0, Truncation::Beta(1e-3)),
        (9.0, Truncation::Gamma(0.6)),
        (4.0, NO_RADIUS),
        (4.0, Truncation::Gamma(0.0)),
        (1e-3, Truncation::default()),
    ];
    for (seed, (epsilon, truncation)) in truncations.into_iter().enumerate() {
        let cover = Cover::from_members(&*e, random_sets(300, seed as u64)).unwrap();
        // Weights over six orders of magnitude.
        let weighted = cover
            .weighted(|y| 10f64.powf(f64::from(y % 61) / 10.0))
            .unwrap();
        assert!(weighted.fingerprint() != cover.fingerprint());
        let tem = tem(e.clone(), epsilon, truncation, 7);
        for cover in [cover, weighted] {
            check(&on(&tem, cover), None, &[0, 150], 200_000);
        }
    }
}

#[test]
fn lists_much_shorter_than_the_vocabulary_change_nothing() {
    // 6,000 words: lists of 256 words, and as many outputs, leave most of the mass outside.
    let e = embedding(6000, 4, 1.0, Metric::Euclidean, 3);
    let cover = nearest(&e, 20);
    let weights: fn(u32) -> f64 = |y| 1.0 + f64::from(y % 1000) * 30.0;
    for (epsilon, truncation) in [(3.0, Truncation::default()), (14.0, Truncation::Gamma(0.4))] {
        // Weights that differ by less than a factor of two form one class, like equal weights.
        let like: fn(u32) -> f64 = |y| if y % 2 == 0 { 1.0 } else { 1.9 };
        let weighted = [weights, like].map(|weights| cover.weighted(weights).unwrap());
        for cover in [cover.clone()].into_iter().chain(weighted) {
            let tem = on(&tem(e.clone(), epsilon, truncation, 7), cover);
            check(&tem, None, &[17], 300_000);
            check(&listed(&tem, &e), None, &[17], 100_000);
        }
    }
}

/// The same law from lists.
fn listed(tem: &Tem, e: &Embedding) -> Tem {
    let lists = e.build_lists(40, 1 << 30, &Control::new()).unwrap();
    let listed = tem.on(Arc::new(lists)).unwrap();
    assert_eq!(listed.probabilities(17), tem.probabilities(17));
    listed
}

#[test]
fn base_measures_have_the_law_on_every_path() {
    let e = embedding(3000, 4, 1.0, Metric::Euclidean, 3);
    let weights = zipf(e.len());
    for (epsilon, truncation) in [
        (3.0, Truncation::default()),
        (14.0, Truncation::Gamma(0.4)),
        (1e-3, NO_RADIUS),
    ] {
        let plain = based(&tem(e.clone(), epsilon, truncation, 7), &weights);
        let excluding = plain.excluding(&[0, 5, 17, 2999]).unwrap();
        let covered = on(&plain, nearest(&e, 12));
        let both = covered.excluding(&[17]).unwrap();
        for tem in [&plain, &excluding, &covered, &both] {
            check(tem, Some(&weights), &[17, 40], 100_000);
        }
        check(&listed(&plain, &e), Some(&weights), &[17], 100_000);
    }
    for words in [1, 2, 300] {
        let e = embedding(words, 2, 1.0, Metric::Manhattan, 5);
        let weights = zipf(words);
        let tem = based(&tem(e, 2.0, Truncation::Gamma(0.7), 7), &weights);
        check(&tem, Some(&weights), &[0], 200_000);
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
    for excluded in [vec![7, 600, 2999], (1..500).collect::<Vec<u32>>()] {
        for epsilon in [2.0, 12.0] {
            let seeded = tem(e.clone(), epsilon, NO_RADIUS, 7)
                .excluding(&excluded)
                .unwrap();
            check(&seeded, None, &[0, 7, 1500], 100_000);
            // Without a seed, from the first draw to the kept table.
            let fresh = Tem::new(e.clone(), epsilon, NO_RADIUS, Randomness::new(None)).unwrap();
            let fresh = fresh.excluding(&excluded).unwrap();
            for w in [0, 7, 1500] {
                let sizes = [1, 1, 2, 30, 500, 3000, 9000, 60_000];
                let drawn = sizes.map(|size| fresh.privatize_ids(&vec![w; size]).unwrap());
                let expected = law(&fresh, None, w);
                assert_drawn(&drawn.concat(), &expected, &format!("{epsilon} {w}"));
            }
        }
    }
}

#[test]
fn every_metric_and_duplicates_and_one_word() {
    for metric in Metric::ALL {
        let e = embedding(120, 4, 0.4, metric, 5);
        let cover = nearest(&e, 6);
        let tem = on(&tem(e, 3.0, Truncation::default(), 7), cover);
        check(&tem, None, &[3], 100_000);
    }
    // 400 words at four points: a list of 256 ends among words of distance 0.
    let points: Vec<f32> = (0..400).map(|i| (i % 4) as f32).collect();
    let e = from_vectors(points, 1, Metric::Euclidean);
    let cover = Cover::from_members(&*e, random_sets(400, 9)).unwrap();
    check(
        &on(&tem(e, 1.5, Truncation::Gamma(2.0), 7), cover),
        None,
        &[1],
        200_000,
    );
    let one = from_vectors(vec![0.5], 1, Metric::Euclidean);
    let cover = nearest(&one, 1);
    let tem = on(&tem(one, 1.0, Truncation::default(), 7), cover);
    assert_eq!(tem.sample("w0", 5).unwrap(), [0; 5]);
}

/// Words of which every fifth has the vector and the count of the one before: ties go to the
/// smaller id.
#[test]
fn nearest_and_balanced_sets_are_those_of_a_sort() {
    const WORDS: usize = 300;
    let control = Control::new();
    let counts: Vec<f64> = (0..WORDS)
        .map(|i| 1e6 / (1 + i - usize::from(i % 5 == 4)) as f64)
        .collect();
    for metric in Metric::ALL {
        let mut vectors = embedding(WORDS, 24, 0.05, metric, 8).vectors().to_vec();
        for i in (4..WORDS).step_by(5) {
            vectors.copy_within((i - 1) * 24..i * 24, i * 24);
        }
        let e = from_vectors(vectors, 24, metric);
        let all: Vec<u32> = (0..WORDS as u32).collect();
        let mut rows = vec![0.0; WORDS * WORDS];
        e.rows(&all, &mut rows);
        let sorted = |mut row: Vec<f64>| {
            row.sort_by(f64::total_cmp);
            row
        };
        // m is the median distance to the 20th neighbour.
        let twentieth = rows.chunks(WORDS).map(|row| sorted(row.to_vec())[20]);
        let m = Grid::of(&*e).round(sorted(twentieth.collect())[WORDS / 2]);
        let excluded: Vec<u32> = all.iter().copied().filter(|y| y % 11 == 2).collect();
        for (k, weight, exclude) in [
            (1, 0.1, &[][..]),
            (7, 0.0, &excluded),
            (40, 0.1, &excluded),
            (43, 2.0, &[]),
            (WORDS, 0.1, &[]),
        ] {
            let build = with::<Build>(|b| (b.least, b.exclude) = (0, exclude.to_vec()));
            // Counts and probabilities give the same result.
            let factor = if weight == 2.0 { 1.0 } else { 2f64.powi(-40) };
            let given: Vec<f64> = counts.iter().map(|c| c * factor).collect();
            let balance = Balance::of_counts(&given, WORDS, weight).unwrap();
            let cover = Cover::balanced(&*e, k, &balance, &build, &control).unwrap();
            let logs = &balance.log2_frequencies;
            for (w, row) in (0..).zip(rows.chunks(WORDS)) {
                let score = |y: u32| {
                    let factor = (logs[w as usize] - logs[y as usize]).abs();
                    row[y as usize] + weight * m * factor
                };
                let mut expected: Vec<u32> = all.clone();
                expected.retain(|y| !exclude.contains(y));
                expected.sort_by(|&a, &b| score(a).total_cmp(&score(b)));
                expected.truncate(k);
                expected.sort_unstable();
                let ids = cover.outputs(w).iter();
                let ids = ids.map(|&rank| cover.released()[rank as usize]);
                assert_eq!(ids.collect::<Vec<_>>(), expected, "{metric} {w} {k}");
            }
            if weight == 0.0 {
                let nearest = Cover::nearest(&*e, k, &build, &control).unwrap();
                assert_eq!(nearest.fingerprint(), cover.fingerprint());
                assert_eq!((nearest.k(), nearest.floor()), (7, 1.0 / 7.0));
            }
        }
    }
    let e = embedding(150, 3, 1.0, Metric::Euclidean, 8);
    let build = with::<Build>(|b| (b.least, b.exclude) = (9, vec![4]));
    let topped = Cover::nearest(&*e, 7, &build, &control).unwrap();
    let least = (0..149).map(|rank| topped.set(rank).len()).min();
    assert_eq!(
        (least, topped.excluded(), topped.rank(4)),
        (Some(9), 1, None)
    );
    assert!(topped.k() >= 7);
    for bad in [f64::NAN, -1.0] {
        let mut balance = Balance::of_counts(&counts[..150], 150, 0.1).unwrap();
        balance.weight = bad;
        assert!(Cover::balanced(&*e, 7, &balance, &Build::default(), &control).is_err());
        assert!(Balance::of_counts(&vec![bad; 150], 150, 0.1).is_err());
    }
}

#[test]
fn tem_has_the_law_of_the_paper() {
    for (seed, words, dim, epsilon, truncation) in [
        (1, 200, 3, 2.0, Truncation::Beta(1e-3)),
        (2, 200, 3, 8.0, Truncation::Gamma(0.7)),
        (3, 50, 1, 1e-3, Truncation::default()),
        (4, 50, 300, 1.0, NO_RADIUS),
        (5, 20, 2, 3.0, Truncation::Gamma(0.0)),
        (6, 2, 5, 1.0, Truncation::default()),
        (7, 1, 5, 1.0, Truncation::default()),
        (8, 300, 2, 1e3, Truncation::default()),
    ] {
        let e = embedding(words, dim, 1.0, Metric::Euclidean, seed);
        check(
            &tem(e, epsilon, truncation, seed),
            None,
            &[words as u32 / 2],
            1_000_000,
        );
    }
}

#[test]
fn graphs_have_the_law_covers_and_base_measures() {
    // A binary tree with a second component; a cycle with a tail; real weights.
    let tree: Vec<_> = (1..63)
        .map(|w| (w, (w - 1) / 2))
        .chain([(63, 64)])
        .collect();
    let cycle = (0..20).map(|w| (w, (w + 1) % 20));
    let cycle: Vec<_> = cycle.chain([(3, 20), (20, 21)]).collect();
    let odd: Vec<f64> = (0..22).map(|i| 0.3 + f64::from(i).sqrt()).collect();
    for space in [
        graph(65, &tree, None),
        graph(22, &cycle, None),
        graph(22, &cycle, Some(&odd)),
    ] {
        for (epsilon, truncation) in [
            (0.01, Truncation::default()),
            (1.0, Truncation::Beta(0.2)),
            (2.0, NO_RADIUS),
            (1.0, Truncation::Gamma(3.0)),
            (50.0, Truncation::default()),
        ] {
            let last = space.vocabulary().len() as u32 - 1;
            let tem = tem(space.clone(), epsilon, truncation, 11);
            check(&tem.excluding(&[3, 4, 0]).unwrap(), None, &[3], 20_000);
            check(&tem, None, &[0, 3, last], 400_000);
        }
    }
    let path = graph(5, &[(0, 1), (1, 2), (2, 3), (3, 4)], None);
    let step = |y: u32| (0..5).filter(|&w| path.distance(w, y) <= 1.0).collect();
    let near = Cover::from_members(&*path, (0..5).map(step).collect()).unwrap();
    let covered = on(&tem(path, 2.0, Truncation::default(), 3), near);
    check(&covered, None, &[0], 200_000);
    let weights = zipf(65);
    let tem = based(
        &tem(graph(65, &tree, None), 1.5, Truncation::default(), 1),
        &weights,
    );
    check(&tem, Some(&weights), &[0, 30], 200_000);
}

prop_compose! {
    fn epsilons()(epsilon in prop_oneof![1e-3..1.0f64, 1.0..60.0f64, Just(1e6)]) -> f64 { epsilon }
}

prop_compose! {
    fn radii()(gamma in prop_oneof![Just(f64::INFINITY), Just(0.0), 0.0..2.0f64]) -> Truncation {
        Truncation::Gamma(gamma)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    /// The bound on log-ratios, and the floor, hold for any sets and weights.
    #[test]
    fn the_bound_and_the_floor_hold(
        words in 1usize..40, dim in 1usize..4, seed: u64, k in 1usize..12,
        epsilon in epsilons(), radius in radii(), spread in 0.0..5.0f64, random: bool,
    ) {
        let e = embedding(words, dim, 1.0, Metric::Euclidean, seed);
        let mut cover = match random && words > 2 {
            true => Cover::from_members(&*e, random_sets(words, seed)).unwrap(),
            false => nearest(&e, k.min(words)),
        };
        if spread > 1.0 {
            cover = cover.weighted(|y| 10f64.powf(spread * f64::from(y) / words as f64)).unwrap();
        }
        let floor = cover.floor();
        let tem = on(&tem(e.clone(), epsilon, radius, 7), cover);
        let laws = laws(&tem);
        prop_assert!(laws.iter().flatten().all(|&p| p <= floor * (1.0 + 1e-9)), "{floor}");
        prop_assert!(beyond(&laws, |a, b| tem.distance(a, b), epsilon) <= 1e-6);
    }

    /// For any public weights, whatever their range.
    #[test]
    fn the_bound_holds_for_every_base(
        words in 2usize..40, dim in 1usize..4, seed: u64, spread in 0.1..8.9f64,
        epsilon in epsilons(), radius in radii(),
    ) {
        let e = embedding(words, dim, 1.0, Metric::Euclidean, seed);
        let weights: Vec<f64> =
            (0..words).map(|y| 10f64.powf(spread * (y * 7 % words) as f64 / words as f64)).collect();
        let tem = based(&tem(e.clone(), epsilon, radius, 7), &weights);
        let laws = laws(&tem);
        prop_assert!(laws.iter().flatten().all(|&p| p > 0.0));
        prop_assert!(beyond(&laws, |a, b| tem.distance(a, b), epsilon) <= 1e-7);
        let certified = audit::certify(&tem, &Control::new()).unwrap();
        prop_assert!(beyond(&laws, |a, b| tem.distance(a, b), certified.epsilon) <= 1e-7 * (1.0 + epsilon));
        // The liar's measure knows the word: it favours what the word itself is. Unless all words
        // are at one place, or released unchanged anyway, it is convicted.
        let mut lies = laws;
        for (w, lie) in lies.iter_mut().enumerate() {
            lie[w] *= 1e3;
            let total: f64 = lie.iter().sum();
            lie.iter_mut().for_each(|p| *p /= total);
        }
        if epsilon < 1.0 && dim == 1 {
            prop_assert!(beyond(&lies, |a, b| tem.distance(a, b), epsilon) > 1.0);
        }
    }
}
