//! Exact optimal transport between small masses, the basis of Earth Mover's distances.
//!
//! Equal masses give an assignment problem (Birkhoff and von Neumann: some optimal plan is a
//! permutation), others a transportation problem. Both solvers keep dual potentials that prove the
//! plan optimal. With u_i = min_j (c_ij - v_j), u + v never exceeds the cost, so Σ a·u + Σ b·v
//! bounds every plan from below. The gap between this bound and the plan's cost is computed, and an
//! answer with a gap beyond rounding is refused.

mod assignment;
pub mod bags;
mod bounded;
mod cost;
pub mod documents;
mod dual_bound;
mod kernel;
mod transportation;

use crate::support::error::{Error, Result};
use crate::support::parallel::Control;
use assignment::Start;
pub use cost::CostMatrix;
use cost::Costs;
use kernel::Number;

/// Weights become this many integer units in total: 2⁵⁰ keeps every weight to a relative 2⁻⁵⁰ of
/// the sum.
const UNITS: f64 = (1u64 << 50) as f64;
/// A gap of this relative size is explained by rounding.
const ROUNDING_GAP: f64 = 1e-13;

/// An optimal plan and its proof.
#[derive(Clone, Debug)]
pub struct Transport {
    /// Σ mass · cost over the plan.
    pub cost: f64,
    /// Row, column and mass of every positive entry.
    pub plan: Vec<(u32, u32, f64)>,
    /// Dual potentials of the rows: u + v is at most the cost everywhere.
    pub u: Vec<f64>,
    /// Dual potentials of the columns.
    pub v: Vec<f64>,
    /// `cost` less the lower bound of the dual potentials: rounding only.
    pub gap: f64,
}

/// Solvers with their memory, for many problems one after the other.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    cost: Costs<f64>,
    assignment: assignment::ShortestPaths<f64>,
    transportation: transportation::NetworkSimplex,
    bound: dual_bound::DualBound,
    bounded: bounded::BoundedMatching,
}

/// A solver's result: the cost of its plan for masses in units, and the gap.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Solved {
    pub(crate) cost: f64,
    pub(crate) gap: f64,
    matched: bool,
}

impl Workspace {
    /// Solves for the workspace's costs and for masses of equal sum.
    pub(crate) fn solve(
        &mut self,
        supply: &[u64],
        demand: &[u64],
        control: &Control,
    ) -> Result<Solved> {
        let matched = supply.len() == demand.len() && supply.iter().chain(demand).all(|&m| m == 1);
        let mut solved = Solved::default();
        // If some costs are far larger than the cost of the plan, they absorb its digits.
        for start in [Start::Means, Start::Costs] {
            match matched {
                true => self.assignment.solve(&self.cost, start, control)?,
                false => (self.transportation).solve(&self.cost, supply, demand, control)?,
            }
            solved = self.proved(matched, supply, demand);
            if !matched || solved.gap.abs() <= ROUNDING_GAP * solved.cost.abs() {
                break;
            }
        }
        let Solved { cost, gap, .. } = solved;
        let mass = supply.iter().sum::<u64>() as f64;
        // The costs are finite, so the gap is no NaN.
        if gap > 1e-9 * cost.abs() && gap > 1e-12 * mass * self.cost.largest() {
            return Err(Error::parameter(
                "cost",
                "of numbers that 64-bit arithmetic can tell apart",
                format!("an optimal plan with a gap of {gap} at a cost of {cost}"),
            ));
        }
        Ok(solved)
    }

    /// Returns the plan's cost, and its gap to the bound that the column potentials prove.
    fn proved(&self, matched: bool, supply: &[u64], demand: &[u64]) -> Solved {
        let cost = &self.cost;
        let paid = |(i, j, mass)| mass as f64 * cost.at(i as usize, j as usize);
        let paid: f64 = self.plan(matched).map(paid).sum();
        let v = self.potentials(matched);
        let potentials = (0..cost.rows()).map(|i| f64::least(cost.row(i), v));
        let rows: f64 = potentials.zip(supply).map(|(u, &m)| u * m as f64).sum();
        let columns: f64 = v.iter().zip(demand).map(|(v, &m)| v * m as f64).sum();
        Solved {
            cost: paid,
            gap: paid - (rows + columns),
            matched,
        }
    }

    /// Row, column and mass of every entry of the last plan.
    fn plan(&self, matched: bool) -> impl Iterator<Item = (u32, u32, u64)> {
        let (columns, flows) = match matched {
            true => (self.assignment.columns(), &[][..]),
            false => (&[][..], self.transportation.flows()),
        };
        let pairs = columns.iter().zip(0..).map(|(&j, i)| (i, j, 1));
        pairs.chain(flows.iter().copied())
    }

    fn potentials(&self, matched: bool) -> &[f64] {
        match matched {
            true => self.assignment.dual_potentials(),
            false => self.transportation.dual_potentials(),
        }
    }
}

/// Finds the cheapest way to move the masses `a` of the rows to the masses `b` of the columns.
///
/// ```
/// use fastdx::transport::{CostMatrix, optimal_transport};
/// let cost = CostMatrix::new(&[0.0, 2.0, 1.0, 1.0], 2, 2)?;
/// let transport = optimal_transport(&[0.5, 0.5], &[0.25, 0.75], cost, &Default::default())?;
/// assert!((transport.cost - 1.0).abs() < 1e-12);
/// # Ok::<(), fastdx::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parameter`] for weights that are negative, not finite or all 0, a wrong number of
/// weights, or sums that differ by more than a relative 10⁻⁶, which weights in f32 may be off.
pub fn optimal_transport(
    a: &[f64],
    b: &[f64],
    cost: CostMatrix,
    control: &Control,
) -> Result<Transport> {
    let CostMatrix(mut cost) = cost;
    let total = check("weights_a", a, cost.rows())?;
    let other = check("weights_b", b, cost.columns())?;
    if (total - other).abs() > 1e-6 * total.max(other) {
        let expected = format!("of the same sum as weights_a, {total}");
        return Err(Error::parameter("weights_b", expected, other));
    }
    let whole = |weights: &[f64]| weights.iter().all(|w| w.fract() == 0.0);
    let whole = total == other && total <= UNITS && whole(a) && whole(b);
    // Equal weights on both sides are an assignment.
    let even = |weights: &[f64]| weights.windows(2).all(|w| w[0] == w[1]);
    let (supply, demand) = match a.len() == b.len() && even(a) && even(b) {
        true => (vec![1; a.len()], vec![1; b.len()]),
        false => (units(a, total, whole), units(b, other, whole)),
    };
    // Rows and columns without mass are left out.
    let some = |units: &[u64]| (0..units.len()).filter(|&i| units[i] > 0).collect();
    let (rows, columns): (Vec<usize>, Vec<usize>) = (some(&supply), some(&demand));
    let part = |units: &[u64], kept: &[usize]| kept.iter().map(|&i| units[i]).collect();
    let (supply, demand): (Vec<u64>, Vec<u64>) = (part(&supply, &rows), part(&demand, &columns));
    let mut workspace = Workspace::default();
    let whole = rows.len() == cost.rows() && columns.len() == cost.columns();
    if whole {
        std::mem::swap(&mut workspace.cost, &mut cost);
    } else {
        workspace
            .cost
            .fill_with(rows.len(), columns.len(), |i, out| {
                for (out, &j) in out.iter_mut().zip(&columns) {
                    *out = cost.at(rows[i], j);
                }
            });
    }
    let solved = workspace.solve(&supply, &demand, control)?;
    if whole {
        std::mem::swap(&mut workspace.cost, &mut cost);
    }
    let all = supply.iter().sum::<u64>() as f64;
    let scale = total / all;
    let plan = workspace.plan(solved.matched).map(|(i, j, mass)| {
        let (row, column) = (rows[i as usize], columns[j as usize]);
        (row as u32, column as u32, mass as f64 * scale)
    });
    let potentials = workspace.potentials(solved.matched);
    // A column without mass may have any potential that the rows allow; with -∞ it does not bind
    // them.
    let mut v = vec![f64::NEG_INFINITY; cost.stride()];
    columns
        .iter()
        .zip(potentials)
        .for_each(|(&j, &price)| v[j] = price);
    let u: Vec<f64> = (0..cost.rows())
        .map(|i| f64::least(cost.row(i), &v))
        .collect();
    v.truncate(cost.columns());
    for (j, v) in v.iter_mut().enumerate().filter(|(_, v)| !v.is_finite()) {
        let each = u.iter().enumerate();
        *v = each.fold(f64::INFINITY, |least, (i, u)| least.min(cost.at(i, j) - u));
    }
    Ok(Transport {
        cost: solved.cost * scale,
        plan: plan.collect(),
        u,
        v,
        gap: solved.gap * scale,
    })
}

fn check(name: &'static str, weights: &[f64], expected: usize) -> Result<f64> {
    if weights.len() != expected {
        let expected = format!("as many as the costs have, {expected}");
        return Err(Error::parameter(name, expected, weights.len()));
    }
    if let Some(at) = weights.iter().position(|w| !(*w >= 0.0 && w.is_finite())) {
        let got = format!("{} at {at}", weights[at]);
        return Err(Error::parameter(name, "at least 0 and finite", got));
    }
    let total: f64 = weights.iter().sum();
    if !(total > 0.0 && total.is_finite()) {
        return Err(Error::parameter(name, "of a positive, finite sum", total));
    }
    Ok(total)
}

/// Weights as integers: unchanged if all are integers, else in 2⁻⁵⁰ of their sum.
fn units(weights: &[f64], total: f64, whole: bool) -> Vec<u64> {
    if whole {
        return weights.iter().map(|&w| w as u64).collect();
    }
    let mut units: Vec<u64> = weights
        .iter()
        .map(|w| (w / total * UNITS).round() as u64)
        .collect();
    // Add the rounding difference to the largest weight, where it is negligible.
    let sum: u64 = units.iter().sum();
    if let Some(largest) = units.iter_mut().max() {
        *largest = *largest + UNITS as u64 - sum;
    }
    units
}
