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

/// Counts of each output drawn for each word.
#[derive(Clone, Debug)]
pub struct Draws {
    /// Number of draws per word.
    pub each: usize,
    /// Start of each word's outputs, and the end.
    pub starts: Vec<usize>,
    /// The outputs of each word, ascending.
    pub outputs: Vec<u32>,
    /// The count of each.
    pub times: Vec<u32>,
}

/// Outputs by words, and words by outputs.
pub(super) struct Estimated {
    pub(super) mechanism: Arc<dyn Mechanism>,
    draws: Draws,
    /// g/V of every word.
    rest: Vec<f64>,
    allowed: Vec<bool>,
    /// Words by outputs.
    column_starts: Vec<usize>,
    column_words: Vec<u32>,
    column_shares: Vec<f32>,
}

impl Draws {
    fn row(&self, word: usize) -> impl Iterator<Item = (usize, f64)> + Clone + '_ {
        let range = self.starts[word]..self.starts[word + 1];
        let outputs = self.outputs[range.clone()].iter();
        outputs
            .zip(&self.times[range])
            .map(|(&y, &n)| (y as usize, f64::from(n)))
    }

    fn check(&self, words: usize) -> Result<()> {
        let whole = self.starts.len() == words + 1
            && self.starts[0] == 0
            && self.starts.is_sorted()
            && self.starts[words] == self.outputs.len()
            && self.outputs.len() == self.times.len()
            && self.outputs.iter().all(|&y| (y as usize) < words);
        let row = |word: usize| {
            let range = self.starts[word]..self.starts[word + 1];
            let sum: u64 = self.times[range.clone()]
                .iter()
                .map(|&n| u64::from(n))
                .sum();
            sum == self.each as u64 && self.outputs[range].windows(2).all(|w| w[0] < w[1])
        };
        match self.each >= 2 && whole && (0..words).all(row) {
            true => Ok(()),
            false => {
                let expected = "at least 2 draws of every word";
                Err(Error::parameter("estimate", expected, "others"))
            }
        }
    }
}

/// The share of outputs that were not drawn, in n draws of which `once` outputs occur once.
fn unseen(once: f64, n: f64) -> f64 {
    (once.max(0.5) / n).min(1.0)
}

impl Estimated {
    pub(super) fn new(mechanism: Arc<dyn Mechanism>, draws: Draws) -> Result<Self> {
        mechanism.check_one_law()?;
        let words = mechanism.vocabulary().len();
        draws.check(words)?;
        let mut allowed = vec![true; words];
        for id in mechanism.excluded() {
            allowed[id as usize] = false;
        }
        let n = draws.each as f64;
        let open = allowed.iter().filter(|&&a| a).count() as f64;
        let once = |w| draws.row(w).filter(|(_, c)| *c == 1.0).count() as f64;
        let rest: Vec<f64> = (0..words).map(|w| unseen(once(w), n) / open).collect();
        let mut column_starts = vec![0usize; words + 1];
        for &y in &draws.outputs {
            column_starts[y as usize + 1] += 1;
        }
        for y in 0..words {
            column_starts[y + 1] += column_starts[y];
        }
        let mut at = column_starts.clone();
        let mut column_words = vec![0; draws.outputs.len()];
        let mut column_shares = vec![0.0; draws.outputs.len()];
        for (w, rest) in rest.iter().enumerate() {
            for (y, c) in draws.row(w) {
                column_words[at[y]] = w as u32;
                column_shares[at[y]] = (c / n * (1.0 - rest * open)) as f32;
                at[y] += 1;
            }
        }
        Ok(Estimated {
            mechanism,
            draws,
            rest,
            allowed,
            column_starts,
            column_words,
            column_shares,
        })
    }

    pub(super) fn draws(&self) -> usize {
        self.draws.each
    }

    fn open(&self) -> f64 {
        self.allowed.iter().filter(|&&a| a).count() as f64
    }

    pub(super) fn law(&self, word: u32, law: &mut [f64]) {
        let rest = self.rest[word as usize];
        for (p, &allowed) in law.iter_mut().zip(&self.allowed) {
            *p = if allowed { rest } else { 0.0 };
        }
        let (n, kept) = (self.draws.each as f64, 1.0 - rest * self.open());
        for (y, c) in self.draws.row(word as usize) {
            law[y] += f64::from((c / n * kept) as f32);
        }
    }

    pub(super) fn column(&self, y: u32) -> Arc<[f64]> {
        let y = y as usize;
        let mut column = match self.allowed[y] {
            true => self.rest.clone(),
            false => vec![0.0; self.rest.len()],
        };
        let range = self.column_starts[y]..self.column_starts[y + 1];
        let words = self.column_words[range.clone()].iter();
        for (&w, &p) in words.zip(&self.column_shares[range]) {
            column[w as usize] += f64::from(p);
        }
        column.into()
    }

    /// I(W;Y) with bounds in expectation; `own` is that of the estimated law.
    pub(super) fn bits(&self, prior: &[f64], own: f64) -> Bits {
        let (n, words, open) = (self.draws.each as f64, prior.len(), self.open());
        let (mut plain, mut smooth) = (vec![0.0; words], vec![0.0; words]);
        let mut spread = 0.0;
        let mut even = 0.0;
        for (w, share) in prior.iter().enumerate() {
            let kept = 1.0 - self.rest[w] * open;
            even += share * self.rest[w];
            for (y, c) in self.draws.row(w) {
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
            let once = self.draws.row(w).filter(|(_, c)| *c == 1.0).count() as f64;
            let kept = 1.0 - self.rest[w] * open;
            let each = self.draws.row(w).map(|(y, c)| {
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
            draws: self.draws.each,
        }
    }

    /// log₂ Σ_y max_w of relative frequencies: at least the capacity in expectation, because a
    /// maximum is convex.
    pub(super) fn capacity(&self, least: f64) -> Bits {
        let mut most = vec![0.0f64; self.rest.len()];
        for w in 0..self.rest.len() {
            for (y, c) in self.draws.row(w) {
                most[y] = most[y].max(c / self.draws.each as f64);
            }
        }
        let value = most.iter().sum::<f64>().log2().max(0.0);
        Bits {
            value,
            low: least.min(value),
            high: value,
            sampled: 0,
            draws: self.draws.each,
        }
    }
}
