//! Exact transport: compared with brute force and with its own dual, and at extremes.

use crate::common::rng;
use fastdx::transport::bags::{Bag, distance};
use fastdx::transport::{CostMatrix, Transport, optimal_transport};
use fastdx::{Control, Metric, MetricSpace};
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};

fn solve(a: &[f64], b: &[f64], costs: &[f64]) -> Transport {
    let cost = CostMatrix::new(costs, a.len(), b.len()).unwrap();
    let solved = optimal_transport(a, b, cost, &Control::new()).unwrap();
    certify(a, b, costs, &solved);
    solved
}

/// The plan moves the right masses, and its dual potentials prove that nothing is cheaper.
fn certify(a: &[f64], b: &[f64], costs: &[f64], solved: &Transport) {
    let total: f64 = a.iter().sum();
    let largest = costs.iter().fold(0.0f64, |m, c| m.max(c.abs()));
    let close = |x: f64, y: f64, scale: f64| assert!((x - y).abs() <= 1e-9 * scale, "{x} {y}");
    let (mut rows, mut columns) = (vec![0.0; a.len()], vec![0.0; b.len()]);
    let mut paid = 0.0;
    for &(i, j, mass) in &solved.plan {
        assert!(mass > 0.0);
        rows[i as usize] += mass;
        columns[j as usize] += mass;
        paid += mass * costs[i as usize * b.len() + j as usize];
    }
    let whole: f64 = b.iter().sum();
    let b: Vec<f64> = b.iter().map(|y| y * total / whole).collect();
    let moved = rows.iter().chain(&columns).zip(a.iter().chain(&b));
    moved.for_each(|(&x, &y)| close(x, y, total));
    close(solved.cost, paid, total * largest);
    for (i, u) in solved.u.iter().enumerate() {
        for (j, v) in solved.v.iter().enumerate() {
            assert!(u + v <= costs[i * b.len() + j] + 1e-9 * largest);
        }
    }
    let potentials = solved.u.iter().chain(&solved.v);
    let dual: f64 = potentials
        .zip(a.iter().chain(&b))
        .map(|(u, mass)| u * mass)
        .sum();
    close(dual, solved.cost, total * largest);
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for shorter in permutations(n - 1) {
        for at in 0..n {
            let mut longer = shorter.clone();
            longer.insert(at, n - 1);
            all.push(longer);
        }
    }
    all
}

prop_compose! {
    fn costs(rows: usize, columns: usize)(
        kind in 0..3, numbers in prop::collection::vec(0.0f64..100.0, rows * columns),
    ) -> Vec<f64> {
        let shape = |x: &f64| match kind { 0 => *x, 1 => (x / 30.0).floor(), _ => 0.0 };
        numbers.iter().map(shape).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn matchings_are_proved((n, costs) in (1usize..30).prop_flat_map(|n| (Just(n), costs(n, n)))) {
        solve(&vec![1.0; n], &vec![1.0; n], &costs);
    }

    #[test]
    fn masses_are_moved_at_the_proved_cost(
        (a, b, costs) in (1usize..20, 1usize..20).prop_flat_map(|(m, k)| (
            prop::collection::vec(0u32..6, m), prop::collection::vec(0u32..6, k), costs(m, k),
        )),
        real in any::<bool>(),
    ) {
        let (mut a, mut b): (Vec<f64>, Vec<f64>) =
            (a.into_iter().map(f64::from).collect(), b.into_iter().map(f64::from).collect());
        let (x, y) = (a.iter().sum::<f64>(), b.iter().sum::<f64>());
        prop_assume!(x > 0.0 && y > 0.0);
        if real {
            a.iter_mut().for_each(|a| *a /= x);
            b.iter_mut().for_each(|b| *b /= y);
        } else {
            // Integers with the same sum.
            a.iter_mut().for_each(|a| *a *= y);
            b.iter_mut().for_each(|b| *b *= x);
        }
        solve(&a, &b, &costs);
    }
}

#[test]
fn large_and_tied_problems_are_proved() {
    let mut rng = rng(3);
    for (n, values) in [(500, 1 << 30), (300, 3), (700, 100), (64, 1), (257, 2)] {
        let costs: Vec<f64> = (0..n * n)
            .map(|_| f64::from(rng.random_range(0..values)))
            .collect();
        let ones = vec![1.0; n];
        solve(&ones, &ones, &costs);
        let weights: Vec<f64> = (0..n).map(|_| rng.random::<f64>()).collect();
        let mut others = weights.clone();
        others.shuffle(&mut rng);
        solve(&weights, &others, &costs);
    }
    // One row, one column, both.
    for (m, k) in [(1, 1), (1, 500), (500, 1), (2, 333)] {
        let costs: Vec<f64> = (0..m * k).map(|_| rng.random::<f64>()).collect();
        let weights = |n: usize| vec![1.0 / n as f64; n];
        solve(&weights(m), &weights(k), &costs);
    }
}

/// Costs so large that no plan uses them must not reduce the accuracy of small ones.
#[test]
fn forbidden_pairs_leave_the_other_costs_exact() {
    let mut rng = rng(6);
    for forbidden in [1e6, 1e9, 1e12] {
        for n in [2, 3, 5, 6] {
            let allowed: Vec<bool> = (0..n * n)
                .map(|at| at / n == at % n || rng.random_range(0..2) == 0)
                .collect();
            let small: Vec<f64> = (0..n * n).map(|_| rng.random::<f64>()).collect();
            let each = allowed.iter().zip(&small);
            let costs: Vec<f64> = each.map(|(&a, &c)| if a { c } else { forbidden }).collect();
            let ones = vec![1.0; n];
            let cost = CostMatrix::new(&costs, n, n).unwrap();
            let found = optimal_transport(&ones, &ones, cost, &Control::new()).unwrap();
            let paid = |p: &Vec<usize>| (0..n).map(|i| costs[i * n + p[i]]).sum::<f64>();
            let best = permutations(n)
                .iter()
                .map(paid)
                .fold(f64::INFINITY, f64::min);
            let excess = (found.cost - best).abs();
            assert!(excess <= 1e-13 * best, "{excess} of {best}");
        }
    }
}

#[test]
fn five_thousand_words_each() {
    let embedding = crate::common::embedding(10_000, 20, 1.0, Metric::Euclidean, 7);
    let bag = |from: u32| Bag::new((from..from + 5_000).map(|id| (id, 1))).unwrap();
    let d = distance(&*embedding, &bag(0), &bag(5_000), &Control::new()).unwrap();
    assert!(d > 0.5 && d < 3.0, "{d}");
}

fn random_bag(rng: &mut impl Rng, words: u32, size: usize, most: u64) -> Bag {
    let each = (0..size).map(|_| (rng.random_range(0..words), rng.random_range(1..=most)));
    Bag::new(each.collect::<Vec<_>>()).unwrap()
}

/// The distance without cancelling or expanding masses.
fn plainly(space: &dyn MetricSpace, a: &Bag, b: &Bag) -> f64 {
    let share = |bag: &Bag| -> Vec<f64> {
        let counts = bag.counts().iter();
        counts.map(|&c| c as f64 / bag.size() as f64).collect()
    };
    let from = |&x: &u32| b.ids().iter().map(move |&y| space.distance(x, y));
    let costs: Vec<f64> = a.ids().iter().flat_map(from).collect();
    solve(&share(a), &share(b), &costs).cost
}

/// Large and small problems in turn: a thread reuses a distance's memory for the next one.
#[test]
fn bags_of_every_metric_and_size() {
    for metric in Metric::ALL {
        let scale = if metric == Metric::Poincare { 0.3 } else { 1.0 };
        let embedding = crate::common::embedding(600, 7, scale, metric, 5);
        let mut rng = rng(8);
        for size in [50, 3, 150, 64, 1, 17].into_iter().chain(1..30) {
            let (x, y) = (rng.random_range(1..15), rng.random_range(1..15));
            let (a, b) = (
                random_bag(&mut rng, 600, x.max(size), 3),
                random_bag(&mut rng, 600, y.max(size), 2),
            );
            let d = distance(&*embedding, &a, &b, &Control::new()).unwrap();
            let expected = plainly(&*embedding, &a, &b);
            assert!(
                (d - expected).abs() <= 1e-9 * expected.max(1e-3),
                "{metric}: {d} {expected}"
            );
            let back = distance(&*embedding, &b, &a, &Control::new()).unwrap();
            assert!((d - back).abs() <= 1e-12 * d);
            assert_eq!(distance(&*embedding, &a, &a, &Control::new()).unwrap(), 0.0);
        }
    }
}
