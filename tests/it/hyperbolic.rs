//! Hyperbolic noise against closed forms. The bound at the proved ε, and at the paper's:
//! tests/python/spaces/test_hyperbolic.py.

use crate::common::{assert_distribution, rng};
use fastdx::noise::hyperbolic::noise::{Base, HyperbolicLaplace as Noise};
use statrs::distribution::{Beta, ContinuousCDF};

#[test]
fn the_volume_law_is_its_beta() {
    for (seed, n) in [1, 2, 5, 20, 300].into_iter().enumerate() {
        for excess in [0.02, 0.125, 1.0, 8.0, 60.0] {
            let epsilon = n as f64 - 1.0 + excess;
            let law = Noise::new(n, epsilon, Base::Volume).unwrap();
            let mut rng = rng(seed as u64);
            let beta = Beta::new(excess / 2.0, n as f64).unwrap();
            let t = (0..400_000).map(|_| (-2.0 * law.distance(&mut rng)).exp());
            assert_distribution(t, |t| beta.cdf(t), &format!("n = {n}, ε = {epsilon}"));
        }
    }
}

#[test]
fn the_radius_is_that_of_the_distance() {
    for base in [Base::Volume, Base::Ball] {
        let law = Noise::new(3, 5.0, base).unwrap();
        let (mut one, mut other) = (rng(1), rng(1));
        for _ in 0..1000 {
            let (r, distance) = (law.radius(&mut one), law.distance(&mut other));
            assert!((r - (distance / 2.0).tanh()).abs() < 1e-12);
        }
    }
}

/// The distribution function of r ∝ r^(n-1)((1-r)/(1+r))^ε, by Simpson's rule in s with r = 1 -
/// (1-s)³, which is fine near 1.
fn ball_cdf(n: usize, epsilon: f64) -> impl Fn(f64) -> f64 {
    const CELLS: usize = 20_000;
    let density = move |s: f64| {
        let u = (1.0 - s).powi(3);
        let r = 1.0 - u;
        if r <= 0.0 || u <= 0.0 {
            return if n == 1 && r <= 0.0 { 3.0 } else { 0.0 };
        }
        let log = (n - 1) as f64 * r.ln() + epsilon * (u / (1.0 + r)).ln();
        log.exp() * 3.0 * (1.0 - s).powi(2)
    };
    let peak = (0..=CELLS)
        .map(|i| density(i as f64 / CELLS as f64))
        .fold(0.0, f64::max);
    let mut sums = vec![0.0];
    for i in 0..CELLS {
        let (a, b) = (i as f64 / CELLS as f64, (i + 1) as f64 / CELLS as f64);
        let area = density(a) + 4.0 * density((a + b) / 2.0) + density(b);
        sums.push(sums[i] + area / peak);
    }
    move |r: f64| {
        let s = 1.0 - (1.0 - r).cbrt();
        let at = (s * CELLS as f64).clamp(0.0, CELLS as f64 - 1e-9);
        let (i, part) = (at as usize, at.fract());
        (sums[i] + part * (sums[i + 1] - sums[i])) / sums[CELLS]
    }
}

#[test]
fn the_ball_law_is_its_integral() {
    for (seed, n) in [1, 2, 5, 100, 300].into_iter().enumerate() {
        for epsilon in [0.125, 1.0, 8.0, 60.0] {
            let law = Noise::new(n, epsilon, Base::Ball).unwrap();
            let mut rng = rng(10 + seed as u64);
            let r = (0..400_000).map(|_| law.radius(&mut rng));
            let what = format!("n = {n}, ε = {epsilon}");
            assert_distribution(r, ball_cdf(n, epsilon), &what);
        }
    }
}

#[test]
fn with_a_huge_epsilon_the_ball_law_is_the_flat_one() {
    // r is tiny, so 2εr ~ Gamma(n).
    for n in [1, 2, 50] {
        for epsilon in [1e14, 1e20, 1e100] {
            let law = Noise::new(n, epsilon, Base::Ball).unwrap();
            let mut rng = rng(20 + n as u64);
            let x = (0..200_000).map(|_| 2.0 * epsilon * law.radius(&mut rng));
            let gamma = statrs::distribution::Gamma::new(n as f64, 1.0).unwrap();
            assert_distribution(x, |x| gamma.cdf(x), &format!("n = {n}, ε = {epsilon}"));
        }
    }
}
