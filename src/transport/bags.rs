//! Bags of words and the Earth Mover's distance between them (POST'19, section 3).
//!
//! A bag of size N is the distribution that gives every occurrence of a word the mass 1/N. The
//! distance is the least mean distance at which one distribution is moved into the other. For bags
//! of equal size, it is the cost of the cheapest matching divided by N.
//!
//! Words that both bags share stay where they are: by the triangle inequality, some optimal plan
//! moves none of the common mass.

use std::cell::Cell;

use statrs::function::gamma::gamma_lr;

use super::{Costs, Workspace};
use crate::support::arithmetic::gcd;
use crate::support::error::{Error, Result};
use crate::support::parallel::Control;
use crate::words::space::MetricSpace;

/// Words and how often each occurs in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bag {
    /// Ascending, each once.
    ids: Vec<u32>,
    counts: Vec<u64>,
    size: u64,
}

impl Bag {
    /// Creates a bag of word ids and counts; a word may occur several times, and a count may be 0.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an empty bag, or one of more than 2³¹ words.
    pub fn new(words: impl IntoIterator<Item = (u32, u64)>) -> Result<Self> {
        let mut words: Vec<(u32, u64)> = words.into_iter().filter(|w| w.1 > 0).collect();
        words.sort_unstable();
        words.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
        let size = words.iter().fold(0u64, |sum, w| sum.saturating_add(w.1));
        if size == 0 || size > 1 << 31 {
            return Err(Error::parameter("bag", "of 1 to 2^31 words", size));
        }
        let (ids, counts) = words.into_iter().unzip();
        Ok(Bag { ids, counts, size })
    }

    /// Creates a bag of word ids, each counted as often as it occurs.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn of_words(mut ids: Vec<u32>) -> Result<Self> {
        ids.sort_unstable();
        if ids.is_empty() || ids.len() > 1 << 31 || ids.windows(2).any(|w| w[0] == w[1]) {
            return Bag::new(ids.into_iter().map(|id| (id, 1)));
        }
        Ok(Bag {
            size: ids.len() as u64,
            counts: vec![1; ids.len()],
            ids,
        })
    }

    /// The words, ascending, each once.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The count of each of these words.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The number of words, with repetitions.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// The remainder of two bags without their common mass: words and masses, and the total mass that
/// these are part of.
#[derive(Debug, Default)]
pub(super) struct Remainder {
    pub(super) words: [Vec<u32>; 2],
    pub(super) masses: [Vec<u64>; 2],
    whole: u64,
}

impl Remainder {
    /// Empties the lists: words of private texts are kept no longer than needed.
    fn clear(&mut self) {
        self.words.iter_mut().for_each(Vec::clear);
        self.masses.iter_mut().for_each(Vec::clear);
    }

    pub(super) fn fill(&mut self, a: &Bag, b: &Bag) {
        let common = gcd(a.size, b.size);
        // An occurrence in a bag of size N has mass 1/N; express masses in units of a common
        // divisor.
        let (mass_a, mass_b) = (b.size / common, a.size / common);
        self.whole = a.size * mass_a;
        self.clear();
        let (mut i, mut j) = (0, 0);
        let mut keep = |side: usize, word: u32, mass: u64| {
            if mass > 0 {
                self.words[side].push(word);
                self.masses[side].push(mass);
            }
        };
        while i < a.ids.len() || j < b.ids.len() {
            let left = a.ids.get(i).copied().unwrap_or(u32::MAX);
            let right = b.ids.get(j).copied().unwrap_or(u32::MAX);
            let mut masses = [0, 0];
            if left <= right && i < a.ids.len() {
                masses[0] = a.counts[i] * mass_a;
                i += 1;
            }
            if right <= left && j < b.ids.len() {
                masses[1] = b.counts[j] * mass_b;
                j += 1;
            }
            let shared = masses[0].min(masses[1]);
            keep(0, left, masses[0] - shared);
            keep(1, right, masses[1] - shared);
        }
    }

    /// Represents every unit of mass by a word of its own, if that gives an assignment problem of
    /// about the same size.
    pub(super) fn expand(&mut self) {
        let longest = self.words[0].len().max(self.words[1].len()) as u64;
        let total: u64 = self.masses[0].iter().sum();
        if total > longest + longest / 4 {
            return;
        }
        for (words, masses) in self.words.iter_mut().zip(&mut self.masses) {
            if words.len() as u64 == total {
                continue;
            }
            let each = words.iter().zip(masses.iter());
            *words = each
                .flat_map(|(&word, &mass)| std::iter::repeat_n(word, mass as usize))
                .collect();
            masses.clear();
            masses.resize(words.len(), 1);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words[0].is_empty()
    }

    /// The share of one unit of mass.
    pub(super) fn unit(&self) -> f64 {
        1.0 / self.whole as f64
    }
}

/// Computes the exact Earth Mover's distance of two bags.
///
/// ```
/// use fastdx::transport::bags::{Bag, distance};
/// use fastdx::{Embedding, Metric, Vocabulary};
/// let words = Vocabulary::new(["a", "b", "c"])?;
/// let line = Embedding::new(words, vec![0.0, 1.0, 3.0], 1, Metric::Euclidean)?;
/// let (x, y) = (Bag::new([(0, 1), (1, 1)])?, Bag::new([(1, 1), (2, 1)])?);
/// assert_eq!(distance(&line, &x, &y, &Default::default())?, 1.5);
/// # Ok::<(), fastdx::Error>(())
/// ```
///
/// # Errors
/// [`Error::Interrupted`]; [`Error::Parameter`] for distances of such different magnitude that
/// 64-bit arithmetic cannot decide which plan is best.
pub fn distance(space: &dyn MetricSpace, a: &Bag, b: &Bag, control: &Control) -> Result<f64> {
    IDLE_SOLVER.with(|kept| {
        // The solver is taken out, so that a space that calls this function itself finds none, and
        // a panic loses it.
        let mut solver = kept.take().unwrap_or_default();
        let found = solver.between(space, a, b, control);
        if a.ids.len().max(b.ids.len()) <= MAX_KEPT_WORDS {
            solver.remainder.clear();
            kept.set(Some(solver));
        }
        found
    })
}

/// A thread keeps its solver's memory for the next distance, up to this many words: about 0.3 MB.
const MAX_KEPT_WORDS: usize = 128;

thread_local! {
    static IDLE_SOLVER: Cell<Option<Box<BagSolver>>> = const { Cell::new(None) };
}

/// Computes the distances of many bags, one after the other.
#[derive(Debug, Default)]
pub(super) struct BagSolver {
    workspace: Workspace,
    remainder: Remainder,
}

impl BagSolver {
    /// Computes the distance, with word distances from `space`.
    pub(super) fn between(
        &mut self,
        space: &dyn MetricSpace,
        a: &Bag,
        b: &Bag,
        control: &Control,
    ) -> Result<f64> {
        if !self.begin(a, b) {
            return Ok(0.0);
        }
        let [a, b] = &self.remainder.words;
        if self
            .remainder
            .masses
            .iter()
            .flatten()
            .all(|&mass| mass == 1)
            && let Some((cost, _)) = self.workspace.bounded.solve(space, a, b, control)?
        {
            return Ok(cost * self.remainder.unit());
        }
        self.workspace.cost.fill(space, a, b);
        self.solve(control)
    }

    /// Computes the distance, with costs that `fill` writes for the remaining words.
    pub(super) fn distance(
        &mut self,
        a: &Bag,
        b: &Bag,
        control: &Control,
        fill: impl FnOnce(&mut Costs<f64>, &[Vec<u32>; 2]),
    ) -> Result<f64> {
        if !self.begin(a, b) {
            return Ok(0.0);
        }
        fill(&mut self.workspace.cost, &self.remainder.words);
        self.solve(control)
    }

    /// Computes the remainder of two bags; returns whether there is any.
    fn begin(&mut self, a: &Bag, b: &Bag) -> bool {
        self.remainder.fill(a, b);
        let any = !self.remainder.is_empty();
        if any {
            self.remainder.expand();
        }
        any
    }

    /// Solves for the costs that were filled in.
    fn solve(&mut self, control: &Control) -> Result<f64> {
        let [supply, demand] = &self.remainder.masses;
        Ok(self.workspace.solve(supply, demand, control)?.cost * self.remainder.unit())
    }

    /// Computes a lower bound on the distance, much faster.
    pub(super) fn bound(
        &mut self,
        a: &Bag,
        b: &Bag,
        fill: impl FnOnce(&mut Costs<f64>, &[Vec<u32>; 2]),
    ) -> f64 {
        let BagSolver {
            workspace,
            remainder,
        } = self;
        remainder.fill(a, b);
        if remainder.is_empty() {
            return 0.0;
        }
        fill(&mut workspace.cost, &remainder.words);
        let [supply, demand] = &remainder.masses;
        workspace.bound.of(&workspace.cost, supply, demand) * remainder.unit()
    }
}

/// A lower bound on a probability: the noisy points of a bag are within an Earth Mover's distance
/// of `distance`. The bag has `size` words; each point has Laplace noise of ε in n dimensions. The
/// bound is Pr\[Gamma(nN, 1/ε) ≤ NΔ\].
///
/// Moving every word to its own noisy point is a plan. Its cost is the mean of N independent
/// Gamma(n, 1/ε) radii, whose sum is Gamma(nN, 1/ε). POST'19's Theorem 3 prints a larger bound,
/// which fails for N > 1.
///
/// # Errors
/// [`Error::Parameter`] for a dimension or size of 0, a product of both above 10⁸, an ε that is not
/// positive and finite, or a distance that is negative or NaN.
pub fn utility_bound(n: usize, epsilon: f64, size: usize, distance: f64) -> Result<f64> {
    crate::support::error::check_epsilon(epsilon)?;
    let shape = n
        .checked_mul(size)
        .filter(|s| (1..=100_000_000).contains(s));
    let Some(shape) = shape else {
        let got = format!("n = {n} and size = {size}");
        return Err(Error::parameter("n · size", "from 1 to 10^8", got));
    };
    if distance.is_nan() || distance < 0.0 {
        return Err(Error::parameter("distance", "at least 0", distance));
    }
    let x = epsilon * size as f64 * distance;
    if x.is_infinite() {
        return Ok(1.0);
    }
    Ok(if x == 0.0 {
        0.0
    } else {
        gamma_lr(shape as f64, x)
    })
}
