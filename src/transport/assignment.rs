//! The assignment problem: the cheapest perfect matching of n rows and n columns.
//!
//! Jonker and Volgenant (1987): column reduction, reduction transfer and augmenting row reduction.
//! Then a shortest augmenting path (Dijkstra with reduced costs) is found for every row still free.
//! The row reduction is an auction that can take long where costs are close. It stops after
//! [`BIDS`] bids per row, and the augmentation does the rest.
//!
//! Columns are reduced from the costs less a row potential, which is the row's least cost above the
//! columns' means. In a space of many dimensions some words are near to all others ("hubs"): by the
//! costs alone, most columns would choose the same few rows. Measured on 300-dimensional words, a
//! third of the rows start free instead of three quarters, and a solution takes a fifth of the
//! passes.

use super::cost::Costs;
use super::kernel::Number;
use crate::support::error::Result;
use crate::support::parallel::Control;

/// Bids per free row in the augmenting row reduction.
const BIDS: usize = 3;
const FREE: u32 = u32::MAX;
/// Marks a row that is the cheapest of several columns.
const CONTESTED: u32 = 1 << 31;

/// The costs that columns are reduced from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Costs less each row's least cost above the columns' means: far fewer passes if costs are
    /// similar.
    Means,
    /// The costs themselves: keeps the digits of small costs beside large ones.
    Costs,
}

/// Working memory, reused between problems.
#[derive(Debug, Default)]
pub(super) struct ShortestPaths<T> {
    /// Dual potentials of the rows, only during column reduction.
    u: Vec<T>,
    v: Vec<T>,
    /// v, with -∞ for columns that are done.
    open_v: Vec<T>,
    column_of: Vec<u32>,
    row_of: Vec<u32>,
    distance: Vec<T>,
    /// The row at which a column is cheapest, during column reduction.
    cheapest: Vec<u32>,
    free: Vec<u32>,
    next_free: Vec<u32>,
    free_columns: Vec<u32>,
    /// Columns that a search has reached: the column, its distance, and the distance as computed.
    done: Vec<(usize, T, T)>,
    /// Rows that a search has passed, with their distances less their dual potentials.
    passed: Vec<(usize, T)>,
}

impl<T: Number> ShortestPaths<T> {
    /// Solves for the square matrix `cost`; the results stay in the solver.
    pub(super) fn solve(&mut self, cost: &Costs<T>, start: Start, control: &Control) -> Result<()> {
        let n = cost.rows();
        self.reduce_columns(cost, start);
        self.transfer(cost);
        self.reduce_rows(cost);
        self.open_v.clone_from(&self.v);
        self.free_columns.clear();
        let free = (0..n as u32).filter(|&j| self.row_of[j as usize] == FREE);
        self.free_columns.extend(free);
        self.distance.clear();
        self.distance.resize(cost.stride(), T::INFINITY);
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

    pub(super) fn dual_potentials(&self) -> &[T] {
        &self.v
    }

    /// Sets each column's dual potential by its cheapest row, and assigns the column to that row if
    /// it is free.
    fn reduce_columns(&mut self, cost: &Costs<T>, start: Start) {
        let (n, stride) = (cost.rows(), cost.stride());
        let zero = T::default();
        self.v.clear();
        self.v.resize(stride, zero);
        self.u.clear();
        self.u.resize(n, zero);
        if start == Start::Means {
            for i in 0..n {
                T::add_row(cost.row(i), &mut self.v);
            }
            let rows = T::of(n as f64);
            self.v[..n].iter_mut().for_each(|v| *v = *v / rows);
            self.v[n..].fill(zero);
            for (i, u) in self.u.iter_mut().enumerate() {
                *u = T::least(cost.row(i), &self.v);
            }
        }
        self.v.fill(T::INFINITY);
        self.cheapest.clear();
        self.cheapest.resize(stride, 0);
        for (i, &u) in self.u.iter().enumerate() {
            T::lower(cost.row(i), u, i as u32, &mut self.v, &mut self.cheapest);
        }
        self.v[n..].fill(zero);
        self.column_of.clear();
        self.column_of.resize(n, FREE);
        self.row_of.clear();
        self.row_of.resize(n, FREE);
        for j in (0..n).rev() {
            let i = self.cheapest[j] as usize;
            if self.column_of[i] == FREE {
                self.column_of[i] = j as u32;
                self.row_of[j] = i as u32;
            } else if self.column_of[i] & CONTESTED == 0 {
                self.column_of[i] |= CONTESTED;
            }
        }
    }

    /// Lowers the potential of a column whose row is cheapest for it alone, up to the point where
    /// another column is as cheap for the row.
    fn transfer(&mut self, cost: &Costs<T>) {
        self.free.clear();
        for i in 0..cost.rows() {
            let column = self.column_of[i];
            if column == FREE {
                self.free.push(i as u32);
            } else if column & CONTESTED != 0 {
                self.column_of[i] = column & !CONTESTED;
            } else if cost.rows() > 1 {
                let j = column as usize;
                let two = T::two_least(cost.row(i), &self.v);
                // The column's own reduced cost is the smallest.
                let other = if two.at == j { two.second } else { two.least };
                let own = cost.row(i)[j] - self.v[j];
                self.v[j] -= other - own;
            }
        }
    }

    fn reduce_rows(&mut self, cost: &Costs<T>) {
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
                    let two = T::two_least(cost.row(row as usize), &self.v);
                    let mut j = two.at;
                    let raised = two.least < two.second;
                    if raised {
                        self.v[j] -= two.second - two.least;
                    } else if self.row_of[j] != FREE {
                        j = two.tie.unwrap_or(j);
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
    fn augment(&mut self, cost: &Costs<T>, start: usize) {
        let n = cost.rows();
        self.distance[..n].fill(T::INFINITY);
        self.done.clear();
        self.passed.clear();
        let mut row = start;
        let mut base = T::default();
        let mut last = T::NEG_INFINITY;
        let (end, reach) = loop {
            self.passed.push((row, base));
            let (computed, mut j) = T::relax(cost.row(row), &self.open_v, base, &mut self.distance);
            // Rounding could put it slightly below the column before.
            let nearest = if computed > last { computed } else { last };
            if nearest == last && self.row_of[j] != FREE {
                // Among columns at the same distance, a free one ends the search.
                let mut free = self.free_columns.iter();
                let tie = free.find(|&&free| self.distance[free as usize] <= nearest);
                j = tie.map_or(j, |&tie| tie as usize);
            }
            last = nearest;
            if self.row_of[j] == FREE {
                self.free_columns.retain(|&free| free as usize != j);
                break (j, nearest);
            }
            self.done.push((j, nearest, computed));
            self.distance[j] = T::INFINITY;
            self.open_v[j] = T::NEG_INFINITY;
            row = self.row_of[j] as usize;
            base = nearest - (cost.row(row)[j] - self.v[j]);
        };
        // Follow the path back. The row through which a column was reached is the one that gives
        // its distance when computed again, bit for bit.
        let (mut j, mut distance) = (end, self.distance[end]);
        loop {
            let by = |&(row, base): &(usize, T)| (cost.row(row)[j] - self.v[j]) + base == distance;
            let at = self.passed.iter().position(by).unwrap_or(0);
            let row = self.passed[at].0;
            self.row_of[j] = row as u32;
            let before = std::mem::replace(&mut self.column_of[row], j as u32);
            if at == 0 {
                break;
            }
            j = before as usize;
            distance = self.done[at - 1].2;
        }
        for &(j, distance, _) in &self.done {
            self.v[j] += distance - reach;
            self.open_v[j] = self.v[j];
        }
    }
}
