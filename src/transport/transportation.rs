//! The transportation problem: integer masses at rows and columns.
//!
//! The primal network simplex (Dantzig 1951). A basis is a spanning tree of rows and columns. A
//! pivot enters a cell whose cost is below the sum of its dual potentials, and removes the cell of
//! the cycle that runs out of mass first. Cells are priced one row at a time, vectorised.
//!
//! **No pivot is degenerate.** Units are made m + 1 times as small; every row gets one extra unit,
//! and the last column gets all of these (Orden 1956). Then no set of rows has the mass of a set of
//! columns, and every cell of a tree has positive mass. Each pivot lowers the cost, and no basis
//! occurs twice. The tree that is optimal with the extra units is optimal without them; its masses
//! follow from the leaves inwards.

use super::cost::Costs;
use super::kernel::Number;
use crate::support::adjacency::Adjacency;
use crate::support::error::Result;
use crate::support::parallel::Control;

const NONE: u32 = u32::MAX;
/// A cell enters the basis if its cost is below its dual potentials by more than this share of the
/// largest cost.
const TOLERANCE: f64 = 1e-14;

/// Working memory, reused between problems. Nodes are the rows, then the columns.
#[derive(Debug, Default)]
pub(super) struct NetworkSimplex {
    rows: usize,
    u: Vec<f64>,
    /// Column potentials, padded like a row of costs.
    v: Vec<f64>,
    /// v, with -∞ for columns whose mass is used up.
    open_v: Vec<f64>,
    tree: Tree,
    masses: Vec<u128>,
    flows: Vec<(u32, u32, u64)>,
}

/// A rooted tree; every node except the root stores the mass on the edge to its parent.
#[derive(Debug, Default)]
struct Tree {
    parent: Vec<u32>,
    depth: Vec<u32>,
    flow: Vec<u128>,
    child: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    stack: Vec<u32>,
}

impl Tree {
    fn reset(&mut self, nodes: usize) {
        for links in [
            &mut self.parent,
            &mut self.child,
            &mut self.next,
            &mut self.previous,
        ] {
            links.clear();
            links.resize(nodes, NONE);
        }
        self.depth.clear();
        self.depth.resize(nodes, 0);
        self.flow.clear();
        self.flow.resize(nodes, 0);
    }

    fn link(&mut self, node: u32, parent: u32, flow: u128) {
        let first = std::mem::replace(&mut self.child[parent as usize], node);
        if first != NONE {
            self.previous[first as usize] = node;
        }
        self.next[node as usize] = first;
        self.previous[node as usize] = NONE;
        self.parent[node as usize] = parent;
        self.flow[node as usize] = flow;
    }

    fn cut(&mut self, node: u32) {
        let (next, previous) = (self.next[node as usize], self.previous[node as usize]);
        match previous {
            NONE => self.child[self.parent[node as usize] as usize] = next,
            _ => self.next[previous as usize] = next,
        }
        if next != NONE {
            self.previous[next as usize] = previous;
        }
    }

    /// Visits a node and its descendants, parents first.
    fn visit(&mut self, top: u32, mut each: impl FnMut(&mut Self, u32)) {
        let mut stack = std::mem::take(&mut self.stack);
        stack.push(top);
        while let Some(node) = stack.pop() {
            each(self, node);
            let mut child = self.child[node as usize];
            while child != NONE {
                stack.push(child);
                child = self.next[child as usize];
            }
        }
        self.stack = stack;
    }
}

impl NetworkSimplex {
    /// Solves for positive masses with equal sums at rows and columns.
    pub(super) fn solve(
        &mut self,
        cost: &Costs<f64>,
        supply: &[u64],
        demand: &[u64],
        control: &Control,
    ) -> Result<()> {
        self.rows = cost.rows();
        self.start(cost, supply, demand);
        let slack = TOLERANCE * cost.largest();
        loop {
            // Recompute the potentials from the tree: updating them at every pivot lets rounding
            // add up.
            self.price(cost);
            let pivots = self.improve(cost, slack, control)?;
            if pivots == 0 {
                break;
            }
        }
        self.settle(supply, demand);
        Ok(())
    }

    pub(super) fn flows(&self) -> &[(u32, u32, u64)] {
        &self.flows
    }

    pub(super) fn dual_potentials(&self) -> &[f64] {
        &self.v
    }

    /// Builds a first tree. Each row in turn goes to its cheapest columns with room, by the cost
    /// above the column's least; every step uses up a row or a column.
    fn start(&mut self, cost: &Costs<f64>, supply: &[u64], demand: &[u64]) {
        let (rows, columns) = (cost.rows(), cost.columns());
        let finer = rows as u128 + 1;
        self.masses.clear();
        self.masses
            .extend(supply.iter().map(|&m| u128::from(m) * finer + 1));
        self.masses
            .extend(demand.iter().map(|&m| u128::from(m) * finer));
        if let Some(last) = self.masses.last_mut() {
            *last += rows as u128;
        }
        self.v.clear();
        self.v.resize(cost.stride(), f64::INFINITY);
        for i in 0..rows {
            for (v, &c) in self.v.iter_mut().zip(cost.row(i)) {
                *v = if c < *v { c } else { *v };
            }
        }
        self.v[columns..].fill(0.0);
        self.open_v.clone_from(&self.v);
        // Cells of the tree, by row.
        let mut cells: Vec<(u32, u32, u128)> = Vec::with_capacity(rows + columns);
        for i in 0..rows {
            while self.masses[i] > 0 {
                let j = f64::two_least(cost.row(i), &self.open_v).at;
                let node = rows + j;
                let mass = self.masses[i].min(self.masses[node]);
                self.masses[i] -= mass;
                self.masses[node] -= mass;
                cells.push((i as u32, node as u32, mass));
                if self.masses[node] == 0 {
                    self.open_v[j] = f64::NEG_INFINITY;
                }
            }
        }
        // Root the tree at row 0: make links both ways, then go outwards.
        let nodes = rows + columns;
        self.tree.reset(nodes);
        let links = Adjacency::new(nodes, &cells);
        let mut stack = vec![0u32];
        while let Some(node) = stack.pop() {
            for &(next, mass) in links.of(node) {
                if next != self.tree.parent[node as usize] {
                    self.tree.link(next, node, mass);
                    stack.push(next);
                }
            }
        }
        self.u.clear();
        self.u.resize(rows, 0.0);
    }

    /// Computes the dual potentials that equal the cost at every cell of the tree.
    fn price(&mut self, cost: &Costs<f64>) {
        let (rows, u, v) = (self.rows, &mut self.u, &mut self.v);
        u[0] = 0.0;
        self.tree.visit(0, |tree, node| {
            let parent = tree.parent[node as usize];
            if parent == NONE {
                return;
            }
            tree.depth[node as usize] = tree.depth[parent as usize] + 1;
            let (node, parent) = (node as usize, parent as usize);
            match node.checked_sub(rows) {
                Some(j) => v[j] = cost.at(parent, j) - u[parent],
                None => u[node] = cost.at(node, parent - rows) - v[parent - rows],
            }
        });
    }

    /// Pivots until no row has a cell below its dual potentials; returns the number of pivots.
    fn improve(&mut self, cost: &Costs<f64>, slack: f64, control: &Control) -> Result<usize> {
        let rows = self.rows;
        let (mut pivots, mut quiet, mut i) = (0, 0, 0);
        while quiet < rows {
            let super::kernel::TwoLeast { least, at: j, .. } = f64::two_least(cost.row(i), &self.v);
            let below = self.u[i] - least;
            if below > slack {
                self.pivot(i as u32, (rows + j) as u32, below);
                pivots += 1;
                quiet = 0;
                if pivots % 1024 == 0 {
                    control.check()?;
                }
            } else {
                quiet += 1;
            }
            i = if i + 1 == rows { 0 } else { i + 1 };
        }
        Ok(pivots)
    }

    /// Enters the cell of a row and a column whose dual potentials exceed its cost.
    fn pivot(&mut self, row: u32, column: u32, below: f64) {
        let tree = &mut self.tree;
        // The cycle runs from the row to the column and back through the tree. Mass leaves the
        // cells that the cycle passes from a column to a row: those above columns on the column's
        // side, those above rows on the row's side.
        let (mut a, mut b) = (row, column);
        let (mut least, mut leaving, mut on_row_side) = (u128::MAX, NONE, false);
        let is_row = |node: u32| (node as usize) < self.rows;
        while a != b {
            if tree.depth[a as usize] >= tree.depth[b as usize] {
                if is_row(a) && tree.flow[a as usize] < least {
                    (least, leaving, on_row_side) = (tree.flow[a as usize], a, true);
                }
                a = tree.parent[a as usize];
            } else {
                if !is_row(b) && tree.flow[b as usize] < least {
                    (least, leaving, on_row_side) = (tree.flow[b as usize], b, false);
                }
                b = tree.parent[b as usize];
            }
        }
        let top = a;
        for (start, losing) in [(row, true), (column, false)] {
            let mut node = start;
            while node != top {
                let flow = &mut tree.flow[node as usize];
                match is_row(node) == losing {
                    true => *flow -= least,
                    false => *flow += least,
                }
                node = tree.parent[node as usize];
            }
        }
        // Reattach the part below the leaving cell at the entering cell.
        let (inside, outside) = match on_row_side {
            true => (row, column),
            false => (column, row),
        };
        let (mut node, mut parent, mut flow) = (inside, outside, least);
        loop {
            let (old_parent, old_flow) = (tree.parent[node as usize], tree.flow[node as usize]);
            tree.cut(node);
            tree.link(node, parent, flow);
            if node == leaving {
                break;
            }
            (node, parent, flow) = (old_parent, node, old_flow);
        }
        // Shift its dual potentials so that they equal the entering cell's cost: rows one way,
        // columns the other.
        let change = if on_row_side { -below } else { below };
        let (rows, u, v) = (self.rows, &mut self.u, &mut self.v);
        tree.visit(inside, |tree, node| {
            let parent = tree.parent[node as usize];
            tree.depth[node as usize] = tree.depth[parent as usize] + 1;
            match (node as usize).checked_sub(rows) {
                Some(j) => v[j] -= change,
                None => u[node as usize] += change,
            }
        });
    }

    /// Computes the masses on the tree without the extra units, from the leaves inwards.
    fn settle(&mut self, supply: &[u64], demand: &[u64]) {
        let mut order = Vec::with_capacity(supply.len() + demand.len());
        self.tree.visit(0, |_, node| order.push(node));
        // The mass that a node passes to its parent: rows supply, columns demand.
        let mut passing: Vec<i128> = supply.iter().map(|&m| i128::from(m)).collect();
        passing.extend(demand.iter().map(|&m| -i128::from(m)));
        self.flows.clear();
        for &node in order.iter().skip(1).rev() {
            let parent = self.tree.parent[node as usize];
            let mass = passing[node as usize];
            passing[parent as usize] += mass;
            // Rows come before columns.
            let (row, column) = (node.min(parent), node.max(parent) - self.rows as u32);
            if mass != 0 {
                self.flows.push((row, column, mass.unsigned_abs() as u64));
            }
        }
    }
}
