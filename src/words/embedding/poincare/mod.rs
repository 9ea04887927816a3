//! Trains Poincaré embeddings (Nickel and Kiela 2017): Riemannian SGD on the ball.
//!
//! For an edge (u, v) and negatives N, the loss is -ln(e^(-d(u,v)) / Σ_{v' ∈ N ∪ {v}}
//! e^(-d(u,v'))). A step follows the Euclidean gradient times ((1-‖θ‖²)/2)², and the result is
//! projected into the ball of radius 1 - 1e-5. Negatives are drawn by degree. The first epochs, the
//! burn-in, use a tenth of the learning rate.
//!
//! Threads update one table without locks (Hogwild, Recht et al. 2011): updates may be lost, but no
//! number is torn (see `rows.rs`). With one thread, a seed gives the same result on every machine.

mod rows;

use rand::{Rng, RngExt};

use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, install, map_all, map_all_with, pool};
use crate::support::prefetch::prefetch;
use crate::support::random::{Key, uniform_below};
#[cfg(target_arch = "x86_64")]
use crate::support::simd::Avx2;

use rows::{LANES, Lanes, Line, Vectors};

/// The parameters of training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingParameters {
    /// The dimension of the ball.
    pub dim: usize,
    /// Passes over the edges, including the burn-in.
    pub epochs: usize,
    /// Negatives per edge.
    pub negatives: usize,
    /// Epochs at a tenth of the learning rate.
    pub burn_in: usize,
    /// Learning rate.
    pub rate: f64,
    /// Number of threads; with one, a seed determines the result.
    pub threads: usize,
}

impl Default for TrainingParameters {
    fn default() -> Self {
        TrainingParameters {
            dim: 10,
            epochs: 50,
            negatives: 10,
            burn_in: 10,
            rate: 0.3,
            threads: 1,
        }
    }
}

/// The largest norm of a trained vector: the ball's radius 1 - 1e-5, rounded to f32.
const REACH: f32 = 1.0 - 1e-5;

/// A training run, which can stop after any epoch and continue from its vectors.
pub struct Training {
    parameters: TrainingParameters,
    edges: Vec<(u32, u32)>,
    /// Nodes, each as often as edges touch it.
    ends: Vec<u32>,
    /// For every node, the nodes that it has edges to, ascending: these are never its negatives.
    starts: Vec<usize>,
    targets: Vec<u32>,
    /// The vectors, each padded to whole lines.
    table: Vec<Line>,
    epoch: usize,
}

impl Training {
    /// Creates a run on `edges` between nodes below `nodes`. It continues from `vectors` after
    /// `epoch` epochs, or starts from points uniform in [-0.001, 0.001]ⁿ.
    ///
    /// # Errors
    /// [`Error::Parameter`] for [`TrainingParameters`] out of range, no edges, or an edge from a
    /// node to itself or to a missing node. Also for vectors of another shape or outside the ball.
    pub fn new(
        nodes: usize,
        edges: Vec<(u32, u32)>,
        parameters: TrainingParameters,
        from: Option<(Vec<f32>, usize)>,
        key: &Key,
    ) -> Result<Self> {
        let counts = [
            ("dim", parameters.dim, 100_000),
            ("epochs", parameters.epochs, usize::MAX),
            ("negatives", parameters.negatives, 100_000),
            ("threads", parameters.threads, usize::MAX),
        ];
        for (name, value, most) in counts {
            if value == 0 {
                return Err(Error::parameter(name, "at least 1", value));
            }
            if value > most {
                return Err(Error::parameter(name, format!("at most {most}"), value));
            }
        }
        if !(parameters.rate > 0.0 && parameters.rate <= 1000.0) {
            let expected = "positive, at most 1000";
            return Err(Error::parameter("lr", expected, parameters.rate));
        }
        if edges.is_empty() {
            return Err(Error::parameter("edges", "at least one", "none"));
        }
        for (i, &(u, v)) in edges.iter().enumerate() {
            if u == v || u.max(v) as usize >= nodes {
                let expected = format!("edges between two different nodes below {nodes}");
                let got = format!("({u}, {v}) at {i}");
                return Err(Error::parameter("edges", expected, got));
            }
        }
        let mut sorted: Vec<(u32, u32)> =
            edges.iter().flat_map(|&(u, v)| [(u, v), (v, u)]).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut starts = vec![0; nodes + 1];
        sorted
            .iter()
            .for_each(|&(u, _)| starts[u as usize + 1] += 1);
        (0..nodes).for_each(|u| starts[u + 1] += starts[u]);
        let (values, epoch) = match from {
            Some((vectors, epoch)) => {
                let inside = |v: &[f32]| v.iter().map(|x| x * x).sum::<f32>() < 1.0;
                if vectors.len() != nodes * parameters.dim
                    || !vectors.chunks_exact(parameters.dim).all(inside)
                {
                    return Err(Error::Shape {
                        what: "vectors",
                        expected: format!("({nodes}, {}) points of the ball", parameters.dim),
                        got: format!("{} numbers", vectors.len()),
                    });
                }
                (vectors, epoch)
            }
            None => {
                let mut rng = key.stream(u64::MAX);
                let start = |_| rng.random_range(-0.001..0.001);
                ((0..nodes * parameters.dim).map(start).collect(), 0)
            }
        };
        Ok(Training {
            parameters,
            ends: edges.iter().flat_map(|&(u, v)| [u, v]).collect(),
            edges,
            starts,
            targets: sorted.into_iter().map(|(_, v)| v).collect(),
            table: values
                .chunks_exact(parameters.dim)
                .flat_map(|vector| vector.chunks(LANES).map(Line::new))
                .collect(),
            epoch,
        })
    }

    /// Number of epochs done.
    pub fn epoch(&self) -> usize {
        self.epoch
    }

    /// The current vectors, row-major.
    pub fn vectors(&self) -> Vec<f32> {
        let vectors = self.table.chunks_exact(self.lines());
        let values =
            vectors.flat_map(|row| row.iter().flat_map(Line::values).take(self.parameters.dim));
        values.collect()
    }

    /// Makes one pass over the edges in a new order; returns the mean loss per edge, in nats.
    ///
    /// # Errors
    /// [`Error::Interrupted`]: the table then holds part of an epoch.
    pub fn run_epoch(&mut self, key: &Key, control: &Control) -> Result<f64> {
        let (threads, mut rate) = (self.parameters.threads, self.parameters.rate);
        if self.epoch < self.parameters.burn_in {
            rate /= 10.0;
        }
        let mut rng = key.stream((self.epoch as u64) << 16);
        for i in (1..self.edges.len()).rev() {
            self.edges
                .swap(i, uniform_below(&mut rng, i as u32 + 1) as usize);
        }
        let share = self.edges.len().div_ceil(threads);
        let this = &*self;
        let part = |(part, edges): (usize, &[(u32, u32)])| {
            let mut rng = key.stream((this.epoch as u64) << 16 | (part as u64 + 1));
            let mut scratch = StepScratch::new(this.lines(), this.parameters.negatives);
            let mut loss = 0.0;
            // Draw negatives one edge ahead, so that their rows can be prefetched.
            this.draw(edges[0], &mut rng, &mut scratch.ahead);
            for i in 0..edges.len() {
                if i % 1024 == 0 {
                    control.check()?;
                }
                std::mem::swap(&mut scratch.edge, &mut scratch.ahead);
                match edges.get(i + 1) {
                    Some(&next) => this.draw(next, &mut rng, &mut scratch.ahead),
                    None => scratch.ahead.others.clear(),
                }
                if let Some(&(after, _)) = edges.get(i + 2) {
                    let links = &this.targets[this.starts[after as usize]..];
                    links.first().into_iter().for_each(|at| prefetch(at));
                }
                loss += f64::from(this.step(rate as f32, &mut scratch));
                if i % 1024 == 1023 {
                    control.advance(1024);
                }
            }
            Ok(loss)
        };
        let parts = this.edges.chunks(share).enumerate();
        let loss: f64 = if threads == 1 {
            parts.map(part).sum::<Result<f64>>()?
        } else {
            let parts: Vec<_> = parts.collect();
            pool()?;
            let losses = install(parts.len(), 0, || map_all(parts, part))??;
            losses.into_iter().sum()
        };
        self.epoch += 1;
        Ok(loss / self.edges.len() as f64)
    }

    fn lines(&self) -> usize {
        self.parameters.dim.div_ceil(LANES)
    }

    #[inline(always)]
    fn row(&self, id: u32) -> &[Line] {
        let lines = self.lines();
        &self.table[id as usize * lines..][..lines]
    }

    fn draw(&self, (u, v): (u32, u32), rng: &mut impl Rng, edge: &mut Edge) {
        let linked = &self.targets[self.starts[u as usize]..self.starts[u as usize + 1]];
        let is_linked = |other: u32| match linked.len() {
            0..=16 => linked.contains(&other),
            _ => linked.binary_search(&other).is_ok(),
        };
        edge.u = u;
        edge.others.clear();
        edge.others.push(v);
        for _ in 0..self.parameters.negatives {
            // A node linked to all others has no negatives: after a few tries, use fewer.
            for _ in 0..8 {
                let other = self.ends[uniform_below(rng, self.ends.len() as u32) as usize];
                if other != u && !is_linked(other) {
                    edge.others.push(other);
                    break;
                }
            }
        }
    }

    /// Makes the step of an edge; returns its loss before the step.
    fn step(&self, rate: f32, scratch: &mut StepScratch) -> f32 {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(avx2) = Avx2::detect() {
                // SAFETY: the feature was detected.
                return unsafe { self.step_avx2(avx2, rate, scratch) };
            }
        }
        self.step_by(rows::Portable, rate, scratch)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn step_avx2(&self, avx2: Avx2, rate: f32, scratch: &mut StepScratch) -> f32 {
        self.step_by(avx2, rate, scratch)
    }

    #[inline(always)]
    fn step_by<V: Vectors>(&self, v: V, rate: f32, scratch: &mut StepScratch) -> f32 {
        let lines = self.lines();
        let Edge { u, others: ids } = &scratch.edge;
        let next = &scratch.ahead;
        self.row(next.u).iter().for_each(|at| prefetch(at));
        let norm2 = rows::load(v, self.row(*u), &mut scratch.u);
        let one_minus_norm2_u = (1.0 - norm2).max(1e-6);
        let others = scratch.others.chunks_exact_mut(lines);
        for ((&id, other), of) in ids.iter().zip(others).zip(&mut scratch.of) {
            let (norm2, apart) = rows::load_beside(v, self.row(id), &scratch.u, other);
            of.one_minus_norm2 = (1.0 - norm2).max(1e-6);
            of.apart = apart;
        }
        let of = &mut scratch.of[..ids.len()];
        for of in &mut *of {
            let gamma = 1.0 + 2.0 * of.apart / (one_minus_norm2_u * of.one_minus_norm2);
            of.root = (gamma * gamma - 1.0).max(1e-12).sqrt();
            // e^(-arcosh γ) = 1/(γ + √(γ²-1)).
            of.weight = 1.0 / (gamma + of.root);
        }
        let total: f32 = of.iter().map(|of| of.weight).sum();
        let loss = -(of[0].weight / total).ln();
        scratch.gradient.fill(Lanes::default());
        let mut own = 0.0;
        let others = scratch.others.chunks_exact_mut(lines);
        for (j, ((&id, other), of)) in ids.iter().zip(others).zip(of).enumerate() {
            // Prefetch one row after the other: a machine waits for only so many at a time.
            if let Some(&next) = next.others.get(j) {
                self.row(next).iter().for_each(|at| prefetch(at));
            }
            // dL/dd: 1 - p for the edge, -p for a negative.
            let slope = f32::from(u8::from(j == 0)) - of.weight / total;
            // With α = 1-‖u‖², β = 1-‖v‖²: dγ/du = 4/(αβ)·((u - v) + u·‖u-v‖²/α).
            let scale = slope * 4.0 / (one_minus_norm2_u * of.one_minus_norm2 * of.root);
            own += scale * (of.apart / one_minus_norm2_u);
            let rate = rate * (of.one_minus_norm2 * of.one_minus_norm2 / 4.0) * scale;
            let by = [scale, rate, of.apart / of.one_minus_norm2];
            let norm2 = rows::pull(v, other, &scratch.u, &mut scratch.gradient, by);
            rows::store(v, self.row(id), other, norm2, REACH);
        }
        let rate_u = rate * one_minus_norm2_u * one_minus_norm2_u / 4.0;
        let norm2 = rows::descend(v, &mut scratch.u, &scratch.gradient, [own, rate_u]);
        rows::store(v, self.row(*u), &scratch.u, norm2, REACH);
        loss
    }
}

#[derive(Clone, Copy, Default)]
struct Of {
    one_minus_norm2: f32,
    apart: f32,
    root: f32,
    weight: f32,
}

/// An edge from u: its target, followed by its negatives.
#[derive(Default)]
struct Edge {
    u: u32,
    others: Vec<u32>,
}

struct StepScratch {
    edge: Edge,
    /// The next edge.
    ahead: Edge,
    u: Vec<Lanes>,
    others: Vec<Lanes>,
    gradient: Vec<Lanes>,
    of: Vec<Of>,
}

impl StepScratch {
    fn new(lines: usize, negatives: usize) -> Self {
        StepScratch {
            edge: Edge::default(),
            ahead: Edge::default(),
            u: vec![Lanes::default(); lines],
            others: vec![Lanes::default(); lines * (negatives + 1)],
            gradient: vec![Lanes::default(); lines],
            of: vec![Of::default(); negatives + 1],
        }
    }
}

/// How well distances reconstruct the edges (Nickel and Kiela 2017, §4.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reconstruction {
    /// The mean over the edges (u, v) of the rank of v's distance from u, among all nodes not
    /// linked to u; 1 is best.
    pub mean_rank: f64,
    /// The mean over the nodes with edges of the average precision of their targets.
    pub map: f64,
}

/// Ranks every edge's target among the nodes to which its source has no edge.
///
/// # Errors
/// [`Error::Interrupted`].
pub fn reconstruction(
    space: &dyn crate::MetricSpace,
    edges: &[(u32, u32)],
    control: &Control,
) -> Result<Reconstruction> {
    let mut sorted = edges.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let groups: Vec<&[(u32, u32)]> = sorted.chunk_by(|a, b| a.0 == b.0).collect();
    let nodes = space.vocabulary().len();
    let each: Vec<(f64, f64, usize)> = install(groups.len(), 1, || {
        let memory = || (vec![0.0; nodes], vec![false; nodes]);
        map_all_with(groups, memory, |(row, linked), group| {
            control.check()?;
            let u = group[0].0;
            space.distances(u, row);
            linked[u as usize] = true;
            group.iter().for_each(|&(_, v)| linked[v as usize] = true);
            let mut others: Vec<f64> = (0..nodes).filter(|&x| !linked[x]).map(|x| row[x]).collect();
            others.sort_unstable_by(f64::total_cmp);
            let mut nearer: Vec<usize> = group
                .iter()
                .map(|&(_, v)| others.partition_point(|&d| d < row[v as usize]))
                .collect();
            linked[u as usize] = false;
            group.iter().for_each(|&(_, v)| linked[v as usize] = false);
            nearer.sort_unstable();
            let ranks = nearer.iter().map(|&n| n as f64 + 1.0).sum();
            // The i-th target in order stands behind i - 1 targets and its nearer non-targets.
            let precision = (1..)
                .zip(&nearer)
                .map(|(i, &n)| f64::from(i) / (f64::from(i) + n as f64));
            Ok((
                ranks,
                precision.sum::<f64>() / nearer.len() as f64,
                nearer.len(),
            ))
        })
    })??;
    let edges: usize = each.iter().map(|e| e.2).sum();
    Ok(Reconstruction {
        mean_rank: each.iter().map(|e| e.0).sum::<f64>() / edges as f64,
        map: each.iter().map(|e| e.1).sum::<f64>() / each.len() as f64,
    })
}
