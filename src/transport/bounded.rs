//! Solves assignments of words from bounded distances, and proves the result with exact ones.
//!
//! A space may have bounded distances: f32 distances within a proved relative error ρ, much faster
//! than exact ones. A matching that is the cheapest by bounded distances is nearly always the
//! cheapest:
//!
//! 1. [`ShortestPaths`] finds it by bounded distances, with its dual potentials;
//! 2. the distances of its pairs are computed exactly; every other distance is at least its f32
//!    value times 1 - ρ, its *floor*;
//! 3. column potentials are lowered until no floor is below the potentials. Row i pays c(i, p(i))
//!    at column p(i), so v_j must be at most floor(i, j) - c(i, p(i)) + v_p(i) for every j. These
//!    are shortest paths (Bellman and Ford) over the few pairs near the bound, and the changes are
//!    small, so a few rounds suffice;
//! 4. u_i = min_j (floor - v) over all pairs, with exact costs for the matching's pairs. u and v
//!    are dual potentials of costs that nowhere exceed the true ones. So Σ u + Σ v bounds every
//!    matching from below, and the gap to the exact cost of this matching is the proof.
//!
//! If step 3 does not end soon, another matching is as cheap within ρ, for example with words that
//! occur several times. The distances of the pairs near the bound are then computed exactly, and
//! steps 3 and 4 are repeated. If this proves nothing either, exact distances of all pairs are
//! used.

use super::assignment::{ShortestPaths, Start};
use super::cost::Costs;
use super::kernel::{each_at_most, least_scaled};
use crate::support::error::Result;
use crate::support::parallel::Control;
use crate::words::space::MetricSpace;

/// Pairs count as near the bound within this many errors of the largest distance.
const NEAR: f64 = 16.0;
/// Rounds of step 3.
const ROUNDS: usize = 64;
/// Pairs near the bound are computed exactly if there are at most this many per row.
const MAX_EXACT_PER_ROW: usize = 8;
/// Tolerance of potentials against the bound, relative to the largest distance.
const TOLERANCE: f64 = 1e-15;
/// The largest gap of a proof in either direction, relative to the cost.
const GAP: f64 = 1e-13;

/// Working memory.
#[derive(Debug, Default)]
pub(super) struct BoundedMatching {
    cost: Costs<f32>,
    solver: ShortestPaths<f32>,
    /// For each row: the word of its pair's column.
    partners: Vec<u32>,
    /// For each row: the exact distance of its pair.
    paid: Vec<f64>,
    u: Vec<f64>,
    v: Vec<f64>,
    row_of: Vec<u32>,
    near: Vec<Pair>,
    /// For each row: floor - v exceeds this for all pairs that are not near.
    limits: Vec<f64>,
}

/// A pair of words near the bound.
#[derive(Clone, Copy, Debug)]
struct Pair {
    row: u32,
    column: u32,
    floor: f64,
}

impl BoundedMatching {
    /// Computes the cost of the cheapest matching of the words `a` and `b`, and its gap; `None` if
    /// the space has no bounded distances or they do not suffice.
    pub(super) fn solve(
        &mut self,
        space: &dyn MetricSpace,
        a: &[u32],
        b: &[u32],
        control: &Control,
    ) -> Result<Option<(f64, f64)>> {
        let Some(error) = self.cost.fill_bounded(space, a, b) else {
            return Ok(None);
        };
        self.solver.solve(&self.cost, Start::Means, control)?;
        let n = a.len();
        self.row_of.resize(n, 0);
        self.partners.clear();
        for (i, &j) in self.solver.columns().iter().enumerate() {
            self.row_of[j as usize] = i as u32;
            self.partners.push(b[j as usize]);
            self.cost.remove(i, j as usize);
        }
        let pairs = a.iter().zip(&self.partners);
        self.paid.clear();
        self.paid.extend(pairs.map(|(&a, &b)| space.distance(a, b)));
        let paid: f64 = self.paid.iter().sum();
        let largest = self.paid.iter().fold(0.0f64, |m, &c| m.max(c));
        let width = NEAR * error * largest;
        let below = 1.0 - error;
        for exact in [false, true] {
            self.begin();
            self.find_near(below, width);
            if exact {
                if self.near.len() > MAX_EXACT_PER_ROW * n {
                    break;
                }
                for pair in &mut self.near {
                    pair.floor = space.distance(a[pair.row as usize], b[pair.column as usize]);
                    self.cost.remove(pair.row as usize, pair.column as usize);
                }
            }
            if self.lower(TOLERANCE * largest) {
                let gap = paid - self.bound(below);
                if gap.abs() <= GAP * paid {
                    return Ok(Some((paid, gap)));
                }
            }
        }
        Ok(None)
    }

    /// Takes the solver's column potentials, and sets row potentials so that each pair of the
    /// matching costs u + v.
    fn begin(&mut self) {
        let columns = self.solver.columns();
        let potentials = self.solver.dual_potentials();
        self.v.clear();
        self.v.extend(potentials.iter().map(|&v| f64::from(v)));
        self.u.clear();
        let each = self.paid.iter().zip(columns);
        self.u
            .extend(each.map(|(paid, &j)| paid - self.v[j as usize]));
    }

    /// Finds the pairs that are within `width` of the bound, or below it.
    fn find_near(&mut self, below: f64, width: f64) {
        self.near.clear();
        self.limits.clear();
        self.limits.extend(self.u.iter().map(|u| u + width));
        for (i, &limit) in self.limits.iter().enumerate() {
            let near = &mut self.near;
            each_at_most(self.cost.row(i), &self.v, below, limit, |j, floor| {
                near.push(Pair {
                    row: i as u32,
                    column: j as u32,
                    floor,
                });
            });
        }
    }

    /// Lowers column potentials until no near pair is below the bound by more than `tolerance`;
    /// returns whether that ends.
    fn lower(&mut self, tolerance: f64) -> bool {
        for _ in 0..ROUNDS {
            let mut quiet = true;
            for pair in &self.near {
                let (i, j) = (pair.row as usize, pair.column as usize);
                let most = pair.floor - self.u[i];
                if self.v[j] > most + tolerance {
                    self.v[j] = most;
                    let row = self.row_of[j] as usize;
                    self.u[row] = self.paid[row] - most;
                    quiet = false;
                }
            }
            if quiet {
                return true;
            }
        }
        false
    }

    /// The bound that the column potentials prove after [`lower`](Self::lower): Σ v + Σ u.
    fn bound(&mut self, below: f64) -> f64 {
        // Pairs with exact floors were removed from the rows.
        for pair in &self.near {
            let (i, j) = (pair.row as usize, pair.column as usize);
            let least = pair.floor - self.v[j];
            self.u[i] = f64::min(self.u[i], least);
        }
        // Column potentials have only fallen, so the other pairs are still above their rows'
        // limits.
        for (i, u) in self.u.iter_mut().enumerate() {
            if *u > self.limits[i] {
                *u = f64::min(*u, least_scaled(self.cost.row(i), &self.v, below));
            }
        }
        let columns = &self.v[..self.u.len()];
        self.u.iter().sum::<f64>() + columns.iter().sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{from_vectors, rng};
    use crate::transport::bags::{Bag, BagSolver};
    use crate::{Embedding, Metric};
    use rand::RngExt;

    /// The cost from exact distances of all pairs.
    fn by_all_pairs(space: &Embedding, a: &Bag, b: &Bag) -> f64 {
        BagSolver::default()
            .distance(a, b, &Control::new(), |cost, words| {
                cost.fill(space, &words[0], &words[1])
            })
            .unwrap()
    }

    /// Vectors of many kinds: the distance is the same, whether bounded distances suffice or not.
    #[test]
    fn matchings_equal_those_of_exact_distances() {
        let mut rng = rng(4);
        let mut solver = BagSolver::default();
        for case in 0..600 {
            let dim = [1, 2, 3, 7, 16, 33, 50][case % 7];
            let n = rng.random_range(1..70u32);
            let kind = rng.random_range(0..5);
            let mut vectors: Vec<f32> = (0..4 * n as usize * dim)
                .map(|_| {
                    let x = rng.random::<f32>() - 0.5;
                    match kind {
                        // Few distances, many ties.
                        0 => (x * 3.0).round() + 0.25,
                        // Far from the origin: every pair is near.
                        1 => x + 30.0,
                        _ => x,
                    }
                })
                .collect();
            if kind == 2 {
                // Pairs of nearly equal vectors.
                for pair in vectors.chunks_exact_mut(2 * dim) {
                    let (one, other) = pair.split_at_mut(dim);
                    let apart = one.iter().map(|x| x * (1.0 + 2f32.powi(-22)));
                    other.iter_mut().zip(apart).for_each(|(y, x)| *y = x);
                }
            }
            let space = from_vectors(vectors, dim, Metric::Euclidean);
            let mut bag = || {
                // Words that occur twice become equal rows.
                let twice = if kind == 3 { 2 } else { 1 };
                let words = (0..n).map(|_| (rng.random_range(0..4 * n), 1));
                let again = (0..twice - 1).map(|i| (i, 2));
                Bag::new(words.chain(again)).unwrap()
            };
            let (a, b) = (bag(), bag());
            let found = solver.between(&*space, &a, &b, &Control::new()).unwrap();
            let exact = by_all_pairs(&space, &a, &b);
            assert!(
                (found - exact).abs() <= 1e-12 * exact,
                "{case}: {found} {exact}"
            );
        }
    }

    /// Bounded distances must suffice for nearly all bags of unlike words, and for words that occur
    /// several times. Every bound that they prove holds.
    #[test]
    fn bounded_distances_nearly_always_suffice() {
        let mut rng = rng(5);
        let mut solver = BoundedMatching::default();
        let (mut enough, mut cases) = (0, 0);
        for case in 0..200 {
            let (n, dim) = (rng.random_range(2..120u32), 40);
            let vectors = (0..2 * n as usize * dim).map(|_| rng.random::<f32>() - 0.5);
            let space = from_vectors(vectors.collect(), dim, Metric::Euclidean);
            let mut a: Vec<u32> = (0..n).collect();
            let b: Vec<u32> = (n..2 * n).collect();
            if case % 2 == 1 {
                // A few words occur twice.
                (0..n as usize / 8).for_each(|i| a[i] = n - 1 - i as u32);
            }
            let found = solver.solve(&*space, &a, &b, &Control::new()).unwrap();
            cases += 1;
            if let Some((cost, gap)) = found {
                enough += 1;
                assert!(gap.abs() <= GAP * cost);
                let bag = |ids: &[u32]| Bag::new(ids.iter().map(|&id| (id, 1))).unwrap();
                let exact = by_all_pairs(&space, &bag(&a), &bag(&b)) * f64::from(n);
                assert!(
                    (cost - exact).abs() <= 1e-12 * exact,
                    "{case}: {cost} {exact}"
                );
            }
        }
        let space = from_vectors(vec![1.0, 2.0], 1, Metric::Euclidean);
        match (space.bounded_distances(&[0], &[1], &mut [0.0; 16], 16)).is_some() {
            true => assert!(enough * 100 >= cases * 97, "{enough} of {cases}"),
            false => assert_eq!(enough, 0),
        }
    }
}
