//! Bags of words and the Earth Mover's distance between them (POST'19, section 3).
//!
//! A bag of size N is the distribution that gives every occurrence of a word 1/N; the distance
//! is the least mean distance at which one distribution is moved into the other. For bags of
//! equal size that is the cheapest matching divided by N.
//!
//! Words that both bags have stay where they are: by the triangle inequality some optimal plan
//! moves none of what they have in common.

use std::cell::Cell;

use statrs::function::gamma::gamma_lr;

use super::{Costs, Workspace};
use crate::arithmetic::gcd;
use crate::error::{Error, Result};
use crate::parallel::Control;
use crate::space::MetricSpace;

/// Words and how often each stands in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bag {
    /// Ascending, each once.
    ids: Vec<u32>,
    counts: Vec<u64>,
    size: u64,
}

impl Bag {
    /// A bag of word ids and counts; a word may stand several times, a count may be 0.
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

    /// A bag of word ids, each as often as it stands there.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
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

    /// How often each of them stands in the bag.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The number of words, with repetitions.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// What is left of two bags without what they have in common: words and masses, and the total
/// mass of which these are parts.
#[derive(Debug, Default)]
pub(super) struct Remains {
    pub(super) words: [Vec<u32>; 2],
    pub(super) masses: [Vec<u64>; 2],
    whole: u64,
}

impl Remains {
    /// What words there were is kept no longer than it takes.
    fn clear(&mut self) {
        self.words.iter_mut().for_each(Vec::clear);
        self.masses.iter_mut().for_each(Vec::clear);
    }

    pub(super) fn fill(&mut self, a: &Bag, b: &Bag) {
        let common = gcd(a.size, b.size);
        // An occurrence in a bag of size N has the mass 1/N: in units of a common divisor.
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

    /// Lets every unit of mass stand for itself, if that makes the problem an assignment of
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

/// The Earth Mover's distance of two bags, exactly.
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
/// [`Error::Interrupted`]; [`Error::Parameter`] where distances differ by so many orders of
/// magnitude that 64-bit arithmetic cannot tell which plan is best.
pub fn distance(space: &dyn MetricSpace, a: &Bag, b: &Bag, control: &Control) -> Result<f64> {
    KEPT.with(|kept| {
        // Taken, so that a space that asks for such a distance itself finds none, and a panic loses it.
        let mut solver = kept.take().unwrap_or_default();
        let found = solver.between(space, a, b, control);
        if a.ids.len().max(b.ids.len()) <= KEPT_WORDS {
            solver.remains.clear();
            kept.set(Some(solver));
        }
        found
    })
}

/// The memory of a thread's last distance is used for its next one, up to so many words: some 0.3 MB.
const KEPT_WORDS: usize = 128;

thread_local! {
    static KEPT: Cell<Option<Box<BagSolver>>> = const { Cell::new(None) };
}

/// Distances of many bags after each other.
#[derive(Debug, Default)]
pub(super) struct BagSolver {
    workspace: Workspace,
    remains: Remains,
}

impl BagSolver {
    /// The distance with distances of words from `space`.
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
        let BagSolver { workspace, remains } = self;
        let [a, b] = &remains.words;
        if remains.masses.iter().flatten().all(|&mass| mass == 1)
            && let Some(cost) = workspace.screen(space, a, b, control)?
        {
            return Ok(cost * remains.unit());
        }
        workspace.cost.fill(space, a, b);
        self.solve(control)
    }

    /// The distance with costs that `fill` writes for the words that are left.
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
        fill(&mut self.workspace.cost, &self.remains.words);
        self.solve(control)
    }

    /// Finds what is left of two bags; whether anything is.
    fn begin(&mut self, a: &Bag, b: &Bag) -> bool {
        self.remains.fill(a, b);
        let any = !self.remains.is_empty();
        if any {
            self.remains.expand();
        }
        any
    }

    /// The distance by the costs that were filled in.
    fn solve(&mut self, control: &Control) -> Result<f64> {
        let BagSolver { workspace, remains } = self;
        let [supply, demand] = &remains.masses;
        Ok(workspace.solve(supply, demand, control)?.cost * remains.unit())
    }

    /// A lower bound on the distance, much sooner.
    pub(super) fn bound(
        &mut self,
        a: &Bag,
        b: &Bag,
        fill: impl FnOnce(&mut Costs<f64>, &[Vec<u32>; 2]),
    ) -> f64 {
        let BagSolver { workspace, remains } = self;
        remains.fill(a, b);
        if remains.is_empty() {
            return 0.0;
        }
        fill(&mut workspace.cost, &remains.words);
        let [supply, demand] = &remains.masses;
        workspace.bound(supply, demand) * remains.unit()
    }
}

/// A lower bound on the probability that the noisy points of a bag of `size` words, each with
/// Laplace noise of ε in n dimensions, are within an Earth Mover's distance of `distance`:
/// Pr\[Gamma(nN, 1/ε) ≤ NΔ\].
///
/// Moving every word to its own noisy point is a plan, whose cost is the mean of N independent
/// Gamma(n, 1/ε) radii; their sum is Gamma(nN, 1/ε). POST'19's Theorem 3 prints a larger bound,
/// which fails for N > 1.
///
/// # Errors
/// [`Error::Parameter`] for no dimension or word, or more than 10⁸ of their product, ε not
/// positive and finite, or a distance that is negative or NaN.
pub fn utility_bound(n: usize, epsilon: f64, size: usize, distance: f64) -> Result<f64> {
    crate::error::check_epsilon(epsilon)?;
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
