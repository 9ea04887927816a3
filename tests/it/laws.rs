//! The mechanisms' draws, compared with closed forms and independent computations.

use crate::common::{
    allowed, assert_distribution, assert_drawn, assert_law, beyond, counts, embedding,
    from_vectors, laws, refuted, tem,
};
use fastdx::law;
use fastdx::mechanism::tem::Truncation;
use fastdx::noise;
use fastdx::{Control, Embedding, Mechanism, Metric, MultivariateLaplace, Randomness, Tem};
use std::sync::Arc;

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
        assert_distribution(
            z.chunks(n).map(norm),
            |r| gamma.cdf(r),
            &format!("radius, n={n}"),
        );
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
            let sample = cosines.map(|c| (1.0 + c) / 2.0);
            let cdf = |t: f64| beta.cdf(t.clamp(0.0, 1.0));
            assert_distribution(sample, cdf, &format!("direction, n={n}"));
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
            let what = format!("{word} at {epsilon}");
            assert_drawn(&drawn, &[a, b - a, 1.0 - b], &what);
        }
    }
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
            let tem = tem(e, epsilon, Truncation::Gamma(gamma), 1);
            let most = beyond(&laws(&tem), |a, b| tem.distance(a, b), epsilon);
            assert!(most <= law::SLACK, "{metric} ε={epsilon}: {most}");
        }
    }
}
