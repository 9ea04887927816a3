//! The transportation problem: masses at rows and columns, in whole numbers.
//!
//! The primal-dual method of Ford and Fulkerson (1957) with the dense searches of the assignment
//! solver: as long as a row has mass left, it goes along the shortest augmenting path in reduced
//! costs, as much as the path takes. Masses are whole numbers, so every step uses up a row, a
//! column or a flow exactly, and the end is certain.

use super::cost::CostMatrix;
use super::kernel::{least, lower, relax, two_least};
use crate::error::Result;
use crate::parallel::Control;

/// Working memory, to be used again.
#[derive(Debug, Default)]
pub(super) struct Solver {
    v: Vec<f64>,
    open_v: Vec<f64>,
    /// For every column the rows whose mass it takes, and how much.
    flows: Vec<Vec<(u32, u64)>>,
    distance: Vec<f64>,
    via: Vec<u64>,
    /// For every row the column by which the search came to it.
    entered: Vec<u32>,
    visited: Vec<u32>,
    done: Vec<(usize, f64)>,
    supply: Vec<u64>,
    demand: Vec<u64>,
}

const UNSEEN: u32 = u32::MAX;
const START: u32 = u32::MAX - 1;

impl Solver {
    /// Solves for masses that add up to the same at rows and columns.
    pub(super) fn solve(
        &mut self,
        cost: &CostMatrix,
        supply: &[u64],
        demand: &[u64],
        control: &Control,
    ) -> Result<()> {
        let (rows, columns, stride) = (cost.rows(), cost.columns(), cost.stride());
        self.supply.clear();
        self.supply.extend(supply);
        self.demand.clear();
        self.demand.extend(demand);
        self.flows.iter_mut().for_each(Vec::clear);
        self.flows.resize_with(columns, Vec::new);
        self.entered.clear();
        self.entered.resize(rows, UNSEEN);
        self.v.clear();
        self.v.resize(stride, f64::INFINITY);
        self.via.clear();
        self.via.resize(stride, 0);
        for i in 0..rows {
            lower(cost.row(i), i as u64, &mut self.v, &mut self.via);
        }
        self.v[columns..].fill(0.0);
        // Every column is priced at its cheapest row, and takes what that row has.
        for j in 0..columns {
            let i = self.via[j] as usize;
            let mass = self.supply[i].min(self.demand[j]);
            self.push(i, j, mass);
        }
        // Rows with mass left go to their cheapest column, while it has room.
        for i in 0..rows {
            if self.supply[i] > 0 {
                let [(_, j), _] = two_least(cost.row(i), &self.v);
                self.push(i, j, self.supply[i].min(self.demand[j]));
            }
        }
        self.open_v.clone_from(&self.v);
        self.distance.clear();
        self.distance.resize(stride, f64::INFINITY);
        for i in 0..rows {
            while self.supply[i] > 0 {
                control.check()?;
                self.augment(cost, i);
            }
        }
        Ok(())
    }

    fn push(&mut self, row: usize, column: usize, mass: u64) {
        if mass > 0 {
            self.supply[row] -= mass;
            self.demand[column] -= mass;
            self.add(row, column, mass);
        }
    }

    fn add(&mut self, row: usize, column: usize, mass: u64) {
        let flows = &mut self.flows[column];
        match flows.iter_mut().find(|f| f.0 == row as u32) {
            Some(flow) => flow.1 += mass,
            None => flows.push((row as u32, mass)),
        }
    }

    pub(super) fn flows(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        let columns = self.flows.iter().zip(0u32..);
        columns.flat_map(|(flows, j)| flows.iter().map(move |&(i, mass)| (i, j, mass)))
    }

    pub(super) fn prices(&self) -> &[f64] {
        &self.v
    }

    /// Sends mass of a row along the shortest augmenting path.
    fn augment(&mut self, cost: &CostMatrix, start: usize) {
        let columns = cost.columns();
        self.distance[..columns].fill(f64::INFINITY);
        self.done.clear();
        self.visited.clear();
        self.visited.push(start as u32);
        self.entered[start] = START;
        let mut last = f64::NEG_INFINITY;
        let mut found = relax(
            cost.row(start),
            &self.open_v,
            0.0,
            start as u64,
            &mut self.distance,
            &mut self.via,
        );
        let (end, reach) = loop {
            let (nearest, j) = (found.0.max(last), found.1);
            last = nearest;
            if self.demand[j] > 0 {
                break (j, nearest);
            }
            self.done.push((j, nearest));
            self.distance[j] = f64::INFINITY;
            let v = std::mem::replace(&mut self.open_v[j], f64::NEG_INFINITY);
            let mut relaxed = false;
            for &(row, _) in &self.flows[j] {
                if self.entered[row as usize] != UNSEEN {
                    continue;
                }
                self.entered[row as usize] = j as u32;
                self.visited.push(row);
                let costs = cost.row(row as usize);
                found = relax(
                    costs,
                    &self.open_v,
                    nearest - (costs[j] - v),
                    row.into(),
                    &mut self.distance,
                    &mut self.via,
                );
                relaxed = true;
            }
            if !relaxed {
                // All its rows are known already: the next column.
                found = least(&self.distance);
            }
        };
        for &(j, distance) in &self.done {
            self.v[j] += distance - reach;
            self.open_v[j] = self.v[j];
        }
        let mut mass = self.supply[start].min(self.demand[end]);
        let step = |solver: &Self, j: usize| {
            let row = solver.via[j] as usize;
            (row, solver.entered[row])
        };
        let mut j = end;
        while let (row, from) = step(self, j)
            && from != START
        {
            j = from as usize;
            let flow = self.flows[j].iter().find(|f| f.0 == row as u32);
            mass = mass.min(flow.map_or(0, |f| f.1));
        }
        let mut j = end;
        loop {
            let (row, from) = step(self, j);
            self.add(row, j, mass);
            if from == START {
                break;
            }
            j = from as usize;
            let flows = &mut self.flows[j];
            if let Some(at) = flows.iter().position(|f| f.0 == row as u32) {
                flows[at].1 -= mass;
                if flows[at].1 == 0 {
                    flows.swap_remove(at);
                }
            }
        }
        self.supply[start] -= mass;
        self.demand[end] -= mass;
        for &row in &self.visited {
            self.entered[row as usize] = UNSEEN;
        }
    }
}
