//! The assignment problem: the cheapest perfect matching of n rows and n columns.
//!
//! Jonker and Volgenant (1987): column reduction, reduction transfer, augmenting row reduction,
//! then a shortest augmenting path (Dijkstra with reduced costs) for every row still free. The
//! row reduction is a price war that can take long where costs are close; it is cut off after
//! [`BIDS`] bids a row, which the augmentation then makes up for.

use super::cost::CostMatrix;
use super::kernel::{lower, relax, two_least};
use crate::error::Result;
use crate::parallel::Control;

/// Bids a free row in the augmenting row reduction.
const BIDS: usize = 3;
const FREE: u32 = u32::MAX;
/// Marks a row that is the cheapest of several columns.
const CONTESTED: u32 = 1 << 31;

/// Working memory, to be used again.
#[derive(Debug, Default)]
pub(super) struct ShortestPaths {
    v: Vec<f64>,
    /// v, and -∞ for columns that are done.
    open_v: Vec<f64>,
    column_of: Vec<u32>,
    row_of: Vec<u32>,
    distance: Vec<f64>,
    via: Vec<u64>,
    free: Vec<u32>,
    next_free: Vec<u32>,
    free_columns: Vec<u32>,
    done: Vec<(usize, f64)>,
}

impl ShortestPaths {
    /// Solves for the square matrix `cost`; the results stay in the solver.
    pub(super) fn solve(&mut self, cost: &CostMatrix, control: &Control) -> Result<()> {
        let n = cost.rows();
        self.reduce_columns(cost);
        self.transfer(cost);
        self.reduce_rows(cost);
        self.open_v.clone_from(&self.v);
        self.free_columns.clear();
        let free = (0..n as u32).filter(|&j| self.row_of[j as usize] == FREE);
        self.free_columns.extend(free);
        self.distance.clear();
        self.distance.resize(cost.stride(), f64::INFINITY);
        for i in 0..self.free.len() {
            if n > 256 {
                control.check()?;
            }
            self.augment(cost, self.free[i] as usize);
        }
        Ok(())
    }

    pub(super) fn columns(&self) -> &[u32] {
        &self.column_of
    }

    pub(super) fn dual_potentials(&self) -> &[f64] {
        &self.v
    }

    /// Prices every column at its cheapest row, which gets it if it has none yet.
    fn reduce_columns(&mut self, cost: &CostMatrix) {
        let (n, stride) = (cost.rows(), cost.stride());
        self.v.clear();
        self.v.resize(stride, f64::INFINITY);
        self.via.clear();
        self.via.resize(stride, 0);
        for i in 0..n {
            lower(cost.row(i), 0.0, i as u64, &mut self.v, &mut self.via);
        }
        self.v[n..].fill(0.0);
        self.column_of.clear();
        self.column_of.resize(n, FREE);
        self.row_of.clear();
        self.row_of.resize(n, FREE);
        for j in (0..n).rev() {
            let i = self.via[j] as usize;
            if self.column_of[i] == FREE {
                self.column_of[i] = j as u32;
                self.row_of[j] = i as u32;
            } else if self.column_of[i] & CONTESTED == 0 {
                self.column_of[i] |= CONTESTED;
            }
        }
    }

    /// Rows that are the cheapest of one column only could pay more for it: up to where
    /// another column is as good.
    fn transfer(&mut self, cost: &CostMatrix) {
        self.free.clear();
        for i in 0..cost.rows() {
            let column = self.column_of[i];
            if column == FREE {
                self.free.push(i as u32);
            } else if column & CONTESTED != 0 {
                self.column_of[i] = column & !CONTESTED;
            } else if cost.rows() > 1 {
                let j = column as usize;
                let [(x, at), (second, _)] = two_least(cost.row(i), &self.v);
                // The column's own reduced cost is 0, the least there is.
                let other = if at == j { second } else { x };
                self.v[j] -= other - (cost.row(i)[j] - self.v[j]);
            }
        }
    }

    fn reduce_rows(&mut self, cost: &CostMatrix) {
        if cost.rows() == 1 {
            return;
        }
        for _ in 0..2 {
            let mut bids = BIDS * self.free.len();
            self.next_free.clear();
            let mut at = 0;
            while let Some(&row) = self.free.get(at) {
                at += 1;
                let mut row = row;
                loop {
                    if bids == 0 {
                        self.next_free.push(row);
                        break;
                    }
                    bids -= 1;
                    let [(least, first), (second, other)] =
                        two_least(cost.row(row as usize), &self.v);
                    let mut j = first;
                    let raised = least < second;
                    if raised {
                        self.v[j] -= second - least;
                    } else if self.row_of[j] != FREE {
                        j = other;
                    }
                    let loser = self.row_of[j];
                    self.row_of[j] = row;
                    self.column_of[row as usize] = j as u32;
                    if loser == FREE {
                        break;
                    }
                    self.column_of[loser as usize] = FREE;
                    if !raised {
                        self.next_free.push(loser);
                        break;
                    }
                    row = loser;
                }
            }
            std::mem::swap(&mut self.free, &mut self.next_free);
        }
    }

    /// Matches a free row along the shortest augmenting path.
    fn augment(&mut self, cost: &CostMatrix, start: usize) {
        let n = cost.rows();
        self.distance[..n].fill(f64::INFINITY);
        self.done.clear();
        let mut row = start;
        let mut base = 0.0;
        let mut last = f64::NEG_INFINITY;
        let (end, reach) = loop {
            let (mut nearest, mut j) = relax(
                cost.row(row),
                &self.open_v,
                base,
                row as u64,
                &mut self.distance,
                &mut self.via,
            );
            // Rounding could have it a hair below the column before.
            nearest = nearest.max(last);
            if nearest == last && self.row_of[j] != FREE {
                // Of columns that are equally near, a free one ends the search.
                let mut free = self.free_columns.iter();
                let tie = free.find(|&&free| self.distance[free as usize] <= nearest);
                j = tie.map_or(j, |&tie| tie as usize);
            }
            last = nearest;
            if self.row_of[j] == FREE {
                self.free_columns.retain(|&free| free as usize != j);
                break (j, nearest);
            }
            self.done.push((j, nearest));
            self.distance[j] = f64::INFINITY;
            self.open_v[j] = f64::NEG_INFINITY;
            row = self.row_of[j] as usize;
            base = nearest - (cost.row(row)[j] - self.v[j]);
        };
        for &(j, distance) in &self.done {
            self.v[j] += distance - reach;
            self.open_v[j] = self.v[j];
        }
        let mut j = end;
        loop {
            let row = self.via[j] as usize;
            self.row_of[j] = row as u32;
            let before = std::mem::replace(&mut self.column_of[row], j as u32);
            if row == start {
                break;
            }
            j = before as usize;
        }
    }
}
