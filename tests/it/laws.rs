//! The mechanisms' draws, compared with closed forms and independent computations.

use crate::common::{
    allowed, assert_distribution, assert_drawn, assert_law, counts, embedding, from_vectors,
    refuted, rng, tem,
};
use fastdx::law;
use fastdx::mechanism::tem::Truncation;
use fastdx::noise;
use fastdx::{Control, Embedding, Mechanism, Metric, MultivariateLaplace, Randomness, Tem};
use std::sync::Arc;

/// The law as in the paper, in plain f64.
fn closed_form(e: &Embedding, id: u32, epsilon: f64, gamma: f64) -> Vec<f64> {
    let score = |y| {
        let each = e.vector(id).iter().zip(e.vector(y));
        let d: f64 = each.map(|(a, b)| f64::from(a - b).powi(2)).sum();
        (-epsilon / 2.0 * d.sqrt().min(gamma)).exp()
    };
    let weights: Vec<f64> = (0..e.len() as u32).map(score).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| w / sum).collect()
}

#[test]
fn tem_has_the_law_of_the_paper() {
    for (seed, words, dim, epsilon, truncation) in [
        (1, 200, 3, 2.0, Truncation::Beta(1e-3)),
        (2, 200, 3, 8.0, Truncation::Gamma(0.7)),
        (3, 50, 1, 1e-3, Truncation::default()),
        (4, 50, 300, 1.0, Truncation::Gamma(f64::INFINITY)),
        (5, 20, 2, 3.0, Truncation::Gamma(0.0)),
        (6, 2, 5, 1.0, Truncation::default()),
        (7, 1, 5, 1.0, Truncation::default()),
        (8, 300, 2, 1e3, Truncation::default()),
    ] {
        let e = embedding(words, dim, 1.0, Metric::Euclidean, seed);
        let tem = tem(e.clone(), epsilon, truncation, seed);
        let id = words as u32 / 2;
        let expected = closed_form(&e, id, epsilon, tem.gamma());
        for (p, q) in tem.probabilities(id).iter().zip(&expected) {
            assert!((p - q).abs() <= 1e-6 * q + 1e-15, "{tem:?}: {p} {q}");
        }
        let drawn = tem.sample(&format!("w{id}"), 1_000_000).unwrap();
        assert_drawn(&drawn, &expected, &format!("{tem:?}"));
    }
}

#[test]
fn tem_draws_each_position_by_its_own_word() {
    let e = embedding(30, 2, 1.0, Metric::Manhattan, 9);
    let tem = tem(e.clone(), 4.0, Truncation::default(), 9);
    let ids: Vec<u32> = (0..3_000_000).map(|i| i * 7 % 30).collect();
    let out = tem.privatize_ids(&ids).unwrap();
    for id in 0..30 {
        let each = ids.iter().zip(&out).filter(|(w, _)| **w == id);
        let drawn: Vec<u32> = each.map(|(_, y)| *y).collect();
        assert_drawn(&drawn, &tem.probabilities(id), &format!("word {id}"));
    }
}

#[test]
fn duplicates_and_ties_are_ordinary() {
    let e = from_vectors(vec![0.0, 0.0, 0.0, 1.0, 1.0, -1.0], 1, Metric::Euclidean);
    let tem = tem(e.clone(), 2.0, Truncation::Gamma(f64::INFINITY), 1);
    let law = tem.probabilities(0);
    assert_eq!(law[0], law[1]);
    assert_eq!(law[3], law[5]);
    let madlib = MultivariateLaplace::new(e, 2.0, Randomness::new(Some(2))).unwrap();
    let out = counts(&madlib.sample("w1", 100_000).unwrap(), 6);
    assert!(
        out[1] == 0 && out[2] == 0 && out[4] == 0,
        "ties go to the smaller id: {out:?}"
    );
}

#[test]
fn far_words_keep_a_positive_weight() {
    // Word 2 lies 60 scales below the best, word 1 lies 41.25.
    let e = from_vectors(vec![0.0, 41.25, 60.0], 1, Metric::Euclidean);
    let tem = tem(e.clone(), 2.0, Truncation::Gamma(f64::INFINITY), 1);
    let law = tem.law(0);
    let log = |y| (law.weight(y) as f64).ln() - (law.weight(0) as f64).ln();
    assert!((log(1) + 41.25).abs() < law::SLACK, "{}", log(1));
    // The floor: 60 ln 2 = 41.6 below the best.
    assert_eq!(law.weight(2), 1 << law::LOG2_FLOOR);
    assert!((log(2) + 60.0 * 2f64.ln()).abs() < law::SLACK);
    assert!((0..3).all(|y| law.weight(y) > 0));
}

#[test]
fn gamma_is_theorem_3() {
    let e = embedding(12_691, 1, 1.0, Metric::Euclidean, 1);
    let tem = tem(e.clone(), 5.0, Truncation::Beta(1e-3), 1);
    assert!((tem.gamma() - 0.4 * (0.999 * 12_690.0 / 0.001f64).ln()).abs() < 1e-12);
}

#[test]
fn noise_has_a_gamma_radius_and_a_uniform_direction() {
    use statrs::distribution::{ContinuousCDF, Gamma};
    let some = [
        (1, 1.0),
        (2, 0.01),
        (50, 5.0),
        (300, 0.01),
        (3, 1e3),
        (7, 1e-3),
    ];
    for (n, epsilon) in some {
        let law = noise::MultivariateLaplace::new(n, epsilon).unwrap();
        let key = Randomness::new(Some(n as u64)).next_key().unwrap();
        let size = 200_000;
        let z = law.sample_many(size, &key, &Control::new()).unwrap();
        let norm = |row: &[f64]| row.iter().map(|x| x * x).sum::<f64>().sqrt();
        let gamma = Gamma::new(n as f64, epsilon).unwrap();
        let mut radii: Vec<f64> = z.chunks(n).map(norm).collect();
        assert_distribution(&mut radii, |r| gamma.cdf(r), &format!("radius, n={n}"));
        // (1 + direction·a)/2 is Beta((n-1)/2, (n-1)/2) for every fixed unit vector a.
        for axis in [0, n - 1] {
            let cosines = z.chunks(n).map(|row| row[axis] / norm(row));
            if n == 1 {
                let plus = cosines.filter(|c| *c > 0.0).count() as u64;
                assert_law(&[plus, size as u64 - plus], &[0.5; 2], "sign");
                continue;
            }
            let half = (n as f64 - 1.0) / 2.0;
            let beta = statrs::distribution::Beta::new(half, half).unwrap();
            let mut sample: Vec<f64> = cosines.map(|c| (1.0 + c) / 2.0).collect();
            let cdf = |t: f64| beta.cdf(t.clamp(0.0, 1.0));
            assert_distribution(&mut sample, cdf, &format!("direction, n={n}"));
        }
    }
}

#[test]
fn madlib_on_a_line_has_the_closed_form_of_the_laplace_law() {
    // Words at -1, 0.2, 1: their cells meet at -0.4 and 0.6.
    let e = from_vectors(vec![-1.0, 0.2, 1.0], 1, Metric::Euclidean);
    let cdf = |x: f64, epsilon: f64| {
        if x < 0.0 {
            0.5 * (epsilon * x).exp()
        } else {
            1.0 - 0.5 * (-epsilon * x).exp()
        }
    };
    for epsilon in [0.1, 1.0, 5.0] {
        let madlib =
            MultivariateLaplace::new(e.clone(), epsilon, Randomness::new(Some(4))).unwrap();
        for (word, x) in [("w0", -1.0), ("w1", f64::from(0.2f32)), ("w2", 1.0)] {
            let (a, b) = (cdf(-0.4 - x, epsilon), cdf(0.6 - x, epsilon));
            let drawn = madlib.sample(word, 1_000_000).unwrap();
            assert_drawn(
                &drawn,
                &[a, b - a, 1.0 - b],
                &format!("{word} at {epsilon}"),
            );
        }
    }
}

#[test]
fn madlib_in_space_equals_an_independent_simulation() {
    // An independent method: noise by a Gaussian scale mixture, then a plain f64 argmin.
    use rand_distr::{Distribution, Exp, StandardNormal};
    let (n, words, epsilon, draws) = (5, 40, 3.0, 400_000);
    let e = embedding(words, n, 1.0, Metric::Euclidean, 11);
    let madlib = MultivariateLaplace::new(e.clone(), epsilon, Randomness::new(Some(12))).unwrap();
    let drawn = counts(&madlib.sample("w7", draws).unwrap(), words);
    let mut rng = rng(13);
    let mut other = vec![0u64; words];
    let exponential = Exp::new(epsilon).unwrap();
    for _ in 0..draws {
        // Gamma(n) as a sum of n exponentials.
        let each = (0..n).map(|_| Distribution::<f64>::sample(&exponential, &mut rng));
        let radius: f64 = each.sum();
        let normal: Vec<f64> = (0..n).map(|_| StandardNormal.sample(&mut rng)).collect();
        let norm = normal.iter().map(|x| x * x).sum::<f64>().sqrt();
        let noise = normal.iter().map(|x| radius * x / norm);
        let own = e.vector(7).iter().zip(noise);
        let point: Vec<f64> = own.map(|(&x, z)| f64::from(x) + z).collect();
        let distance = |id: u32| -> f64 {
            let each = e.vector(id).iter().zip(&point);
            each.map(|(&u, z)| (f64::from(u) - z).powi(2)).sum()
        };
        let ids = 0..words as u32;
        let nearest = ids.min_by(|&a, &b| distance(a).total_cmp(&distance(b)));
        other[nearest.unwrap() as usize] += 1;
    }
    // Two samples of one law: the pooled frequencies serve as the law for both, at half the χ².
    let both = drawn.iter().zip(&other);
    let pooled: Vec<f64> = both
        .map(|(a, b)| (a + b) as f64 / (2 * draws) as f64)
        .collect();
    assert_law(&drawn, &pooled, "ours against pooled");
    assert_law(&other, &pooled, "theirs against pooled");
}

type Make = fn(&Arc<Embedding>, f64, Randomness) -> Arc<dyn Mechanism>;

/// Mechanisms whose bound is tested by draws, on spaces of four words.
const BOUNDED: [Make; 3] = [
    |e, epsilon, r| Arc::new(Tem::new(e.clone(), epsilon, Truncation::default(), r).unwrap()),
    |e, epsilon, r| Arc::new(Tem::new(e.clone(), epsilon, Truncation::Gamma(0.3), r).unwrap()),
    |e, epsilon, r| Arc::new(MultivariateLaplace::new(e.clone(), epsilon, r).unwrap()),
];

/// Counts of draws of each word.
fn drawn(m: &dyn Mechanism, draws: usize) -> Vec<Vec<u64>> {
    let of = |w| counts(&m.sample(&format!("w{w}"), draws).unwrap(), 4);
    (0..4).map(of).collect()
}

#[test]
fn the_bound_holds_with_exact_confidence_intervals_and_liars_are_convicted() {
    let (epsilon, many, few) = (2.0, 2_000_000, 200_000);
    // Tem sees distances alone, so that one dimension is enough for it. On a line the loss of noise
    // reaches ε, so that many draws show most there.
    for (dim, at, draws) in [
        (2, 0, few),
        (2, 1, many),
        (1, 2, many),
        (2, 2, few),
        (5, 2, few),
    ] {
        let make = BOUNDED[at];
        let e = embedding(4, dim, 0.5, Metric::Euclidean, 20 + dim as u64);
        let claim = make(&e, epsilon, Randomness::new(None));
        let seeded = |epsilon| make(&e, epsilon, Randomness::known_keys(21 + at as u64));
        let honest = drawn(&*seeded(epsilon), draws);
        assert_eq!(refuted(&honest, &*claim), None, "{dim} {at}");
        let itself: Vec<Vec<u64>> = (0..4)
            .map(|w| (0..4).map(|y| u64::from(w == y) * draws as u64).collect())
            .collect();
        let one = [&itself[..1], &honest[1..]].concat();
        let four_times = drawn(&*seeded(4.0 * epsilon), few);
        let mut liars = vec![itself, one, four_times];
        if (dim, at) == (1, 2) {
            // Twice ε may be within Tem's bound, and in five dimensions words' cells hide it.
            liars.push(drawn(&*seeded(2.0 * epsilon), few));
        }
        for (lie, liar) in liars.iter().enumerate() {
            assert!(refuted(liar, &*claim).is_some(), "{dim} {at}: lie {lie}");
        }
    }
}

#[test]
fn a_violation_by_5_percent_shows() {
    let e = from_vectors(vec![0.0, 0.5], 1, Metric::Euclidean);
    let (draws, rare) = (2_000_000, 100_000u32);
    for make in BOUNDED {
        let claim = make(&e, 2.0, Randomness::new(None));
        let ratio = allowed(&claim.guarantee(), claim.distance(0, 1)).exp();
        for (factor, found) in [(0.95, None), (1.05, Some((0, 1, 0)))] {
            let hits = (factor * ratio * f64::from(rare)) as u64;
            let other = u64::from(rare);
            let counts = [vec![hits, draws - hits], vec![other, draws - other]];
            assert_eq!(refuted(&counts, &*claim), found);
        }
    }
}

#[test]
#[should_panic(expected = "SEEDED")]
fn nothing_is_compared_with_a_guarantee_that_allows_everything() {
    let e = embedding(4, 2, 0.5, Metric::Euclidean, 22);
    let seeded = tem(e.clone(), 2.0, Truncation::default(), 1);
    refuted(&drawn(&seeded, 100), &seeded);
}

#[test]
fn the_exact_law_of_tem_keeps_its_bound_on_every_pair_and_output() {
    for metric in Metric::ALL {
        let infinite = f64::INFINITY;
        for (epsilon, gamma) in [(0.1, infinite), (2.0, 0.4), (30.0, 0.5), (1e3, infinite)] {
            let e = embedding(60, 4, 0.4, metric, 31);
            let tem = tem(e.clone(), epsilon, Truncation::Gamma(gamma), 1);
            let laws: Vec<_> = (0..60).map(|w| tem.law(w)).collect();
            for (a, b) in (0..3600u32).map(|i| (i / 60, i % 60)) {
                let bound = epsilon * tem.distance(a, b) + law::SLACK;
                for y in 0..60 {
                    let p = |w: u32| {
                        let law = &laws[w as usize];
                        (law.weight(y) as f64).ln() - (law.total() as f64).ln()
                    };
                    assert!(p(a) - p(b) <= bound, "{metric} ε={epsilon}: {a} {b} {y}");
                }
            }
        }
    }
}

#[test]
fn seeded_output_does_not_depend_on_the_number_of_threads() {
    let e = embedding(500, 8, 1.0, Metric::Euclidean, 40);
    let ids: Vec<u32> = (0..50_000).map(|i| i * 13 % 500).collect();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let tem = tem(e.clone(), 3.0, Truncation::default(), 5);
            let madlib =
                MultivariateLaplace::new(e.clone(), 3.0, Randomness::new(Some(5))).unwrap();
            let key = Randomness::new(Some(6)).next_key().unwrap();
            let mut out = vec![0; ids.len() * 2];
            let (first, second) = out.split_at_mut(ids.len());
            tem.draw(&ids, &key, first, &Control::new()).unwrap();
            madlib.draw(&ids, &key, second, &Control::new()).unwrap();
            out
        })
    };
    assert_eq!(run(1), run(2));
    assert_eq!(run(1), run(7));
}

#[test]
fn a_cancelled_call_stops() {
    let e = embedding(2000, 8, 1.0, Metric::Euclidean, 40);
    let control = Control::new();
    control.cancel();
    let ids = vec![1; 100_000];
    let madlib = MultivariateLaplace::new(e.clone(), 3.0, Randomness::new(None)).unwrap();
    let tem = tem(e.clone(), 3.0, Truncation::default(), 5);
    for m in [&madlib as &dyn Mechanism, &tem] {
        assert!(matches!(
            m.privatize_ids_with(&ids, &control),
            Err(fastdx::Error::Interrupted)
        ));
    }
}
