//! The mechanisms' draws, compared with closed forms and independent computations. The bound of what is
//! drawn, and liars: tests/python/mechanisms/test_registry.py.

use crate::common::{assert_distribution, assert_law, beyond, embedding, laws, tem};
use fastdx::law;
use fastdx::mechanism::tem::Truncation;
use fastdx::noise;
use fastdx::{Control, Mechanism, Metric, Randomness};

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
