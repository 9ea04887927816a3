//! Laws that cannot be computed, estimated from draws.
//!
//! For every word, n outputs were drawn; c_y of them are y. The estimated law is (1 - g)·c_y/n +
//! g/V: relative frequencies, less the share g of outputs that were not drawn (Good and Turing). g
//! is the number of outputs that were drawn once, divided by n, and at least 1/(2n). This share is
//! spread evenly over the outputs that the mechanism may release.
//!
//! I(W;Y) is convex in the law. So with relative frequencies as the law, it is larger in
//! expectation than with the true law. For a lower bound, consider a decoder trained without one
//! draw. It reveals at most I(W;Y) about that draw's word in expectation (Barber and Agakov 2003).
//! So the mean log-ratio, with each draw left out of its own law, is a lower bound.

use std::sync::Arc;

use crate::guarantee::Bits;
use crate::mechanism::Mechanism;
use crate::support::error::{Error, Result};
use crate::support::parallel::Control;
use crate::support::random::Randomness;

/// Outputs that are drawn at a time.
const AT_ONCE: usize = 1 << 20;

/// A law that draws estimate.
pub(super) struct Estimated {
    pub(super) mechanism: Arc<dyn Mechanism>,
    /// Draws of every word.
    each: usize,
    /// The outputs of each word, ascending, and how often each was drawn.
    rows: Vec<Vec<(u32, u32)>>,
    /// g/V of every word.
    rest: Vec<f64>,
    allowed: Vec<bool>,
}

/// The share of outputs that were not drawn, in n draws of which `once` outputs occur once.
fn unseen(once: f64, n: f64) -> f64 {
    (once.max(0.5) / n).min(1.0)
}

impl Estimated {
    /// Draws `each` outputs of every word. The seed is 0: a receiver makes the estimate that the sender has.
    pub(super) fn new(
        mechanism: Arc<dyn Mechanism>,
        each: usize,
        control: &Control,
    ) -> Result<Self> {
        mechanism.check_one_law()?;
        if mechanism.has_law() {
            let expected = "None for a mechanism that has a law: it is exact";
            return Err(Error::parameter("estimate", expected, each));
        }
        if !(2..=i32::MAX as usize).contains(&each) {
            let expected = format!("from 2 to {}", i32::MAX);
            return Err(Error::parameter("estimate", expected, each));
        }
        let words = mechanism.vocabulary().len();
        let randomness = Randomness::new(Some(0));
        let mut rows = Vec::with_capacity(words);
        let ids: Vec<u32> = (0..words as u32).collect();
        for ids in ids.chunks((AT_ONCE / each).max(1)) {
            let repeated: Vec<u32> = ids
                .iter()
                .flat_map(|&id| std::iter::repeat_n(id, each))
                .collect();
            let mut drawn = vec![0; repeated.len()];
            mechanism.draw(&repeated, &randomness.next_key()?, &mut drawn, control)?;
            rows.extend(drawn.chunks_exact_mut(each).map(|drawn| {
                drawn.sort_unstable();
                let equal = drawn.chunk_by(|a, b| a == b);
                equal.map(|all| (all[0], all.len() as u32)).collect()
            }));
        }
        let mut allowed = vec![true; words];
        for id in mechanism.excluded() {
            allowed[id as usize] = false;
        }
        let mut found = Estimated {
            mechanism,
            each,
            rows,
            rest: Vec::new(),
            allowed,
        };
        let (n, open) = (each as f64, found.open());
        found.rest = (0..words)
            .map(|w| unseen(found.once(w), n) / open)
            .collect();
        Ok(found)
    }

    /// The outputs of a word, and how often each was drawn.
    fn row(&self, word: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let row = self.rows[word].iter();
        row.map(|&(y, n)| (y as usize, f64::from(n)))
    }

    /// How many outputs of a word were drawn once.
    fn once(&self, word: usize) -> f64 {
        self.row(word).filter(|(_, c)| *c == 1.0).count() as f64
    }

    pub(super) fn draws(&self) -> usize {
        self.each
    }

    fn open(&self) -> f64 {
        self.allowed.iter().filter(|&&a| a).count() as f64
    }

    /// The share of c of a word's draws, less what outputs that were not drawn have.
    fn share(&self, word: usize, c: f64) -> f64 {
        let kept = 1.0 - self.rest[word] * self.open();
        c / self.each as f64 * kept
    }

    pub(super) fn law(&self, word: u32, law: &mut [f64]) {
        let rest = self.rest[word as usize];
        for (p, &allowed) in law.iter_mut().zip(&self.allowed) {
            *p = if allowed { rest } else { 0.0 };
        }
        for (y, c) in self.row(word as usize) {
            law[y] += self.share(word as usize, c);
        }
    }

    pub(super) fn column(&self, y: u32, column: &mut [f64]) {
        let allowed = self.allowed[y as usize];
        for (word, (p, rest)) in column.iter_mut().zip(&self.rest).enumerate() {
            let row = &self.rows[word];
            let drawn = row.binary_search_by_key(&y, |(y, _)| *y);
            let c = drawn.map_or(0.0, |at| f64::from(row[at].1));
            *p = self.share(word, c) + if allowed { *rest } else { 0.0 };
        }
    }

    /// I(W;Y) with bounds in expectation; `own` is that of the estimated law.
    pub(super) fn bits(&self, prior: &[f64], own: f64) -> Bits {
        let (n, words, open) = (self.each as f64, prior.len(), self.open());
        let (mut plain, mut smooth) = (vec![0.0; words], vec![0.0; words]);
        let mut spread = 0.0;
        let mut even = 0.0;
        for (w, share) in prior.iter().enumerate() {
            let kept = 1.0 - self.rest[w] * open;
            even += share * self.rest[w];
            for (y, c) in self.row(w) {
                plain[y] += share * c / n;
                smooth[y] += share * c / n * kept;
                spread += share * c / n * (c / n).ln();
            }
        }
        let entropy: f64 = plain
            .iter()
            .filter(|p| **p > 0.0)
            .map(|p| -p * p.ln())
            .sum();
        let high = entropy + spread;
        let of_word = |(w, share): (usize, &f64)| {
            let once = self.once(w);
            let kept = 1.0 - self.rest[w] * open;
            let each = self.row(w).map(|(y, c)| {
                let once = match c as u32 {
                    1 => once - 1.0,
                    2 => once + 1.0,
                    _ => once,
                };
                let rest = unseen(once, n - 1.0);
                let without = (1.0 - rest) * (c - 1.0) / (n - 1.0) + rest / open;
                let with = c / n * kept + self.rest[w];
                let output = smooth[y] + even + share * (without - with);
                c / n * (without / output).ln()
            });
            share * each.sum::<f64>()
        };
        let low: f64 = prior.iter().enumerate().map(of_word).sum();
        let bits = |nats: f64| (nats / std::f64::consts::LN_2).max(0.0);
        let (low, high) = (bits(low), bits(high));
        let (low, high) = (low.min(high), high.max(low));
        Bits {
            value: own.clamp(low, high),
            low,
            high,
            sampled: 0,
            draws: self.each,
        }
    }

    /// log₂ Σ_y max_w of relative frequencies: at least the capacity in expectation, because a
    /// maximum is convex.
    pub(super) fn capacity(&self, least: f64) -> Bits {
        let mut most = vec![0.0f64; self.rest.len()];
        for w in 0..self.rest.len() {
            for (y, c) in self.row(w) {
                most[y] = most[y].max(c / self.each as f64);
            }
        }
        let value = most.iter().sum::<f64>().log2().max(0.0);
        Bits {
            value,
            low: least.min(value),
            high: value,
            sampled: 0,
            draws: self.each,
        }
    }
}
