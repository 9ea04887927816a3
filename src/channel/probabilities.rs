//! Functions of a model's probabilities that a step back over a sentence sums: the probabilities, and
//! what entropies are made of.

use super::lanes::{Lanes, dot, inverse};
use crate::language::NgramPrior;

/// x·ln x, 0 at 0.
pub(super) fn x_ln_x(x: f64) -> f64 {
    if x > 0.0 { x * x.ln() } else { 0.0 }
}

/// The numbers that a backward step sums: the model's probabilities, or a function of them.
pub(super) trait Probabilities {
    /// The sums of the words' own probabilities, weighed by λ alone and in full; `one` is the sum
    /// of the probabilities themselves.
    fn unigram<const L: usize>(
        &self,
        prior: &NgramPrior,
        ahead: &[Lanes<L>],
        one: Lanes<L>,
    ) -> (Lanes<L>, Lanes<L>);
    /// The factor of the result, which keeps it far from 0.
    fn scale<const L: usize>(&self, one: &Lanes<L>) -> Lanes<L>;
    /// The contribution of all words after a context that leaves λ.
    fn rest(&self, left: f64, one: f64, two: f64) -> f64;
    fn pair(&self, prior: &NgramPrior, at: usize) -> f64;
    fn lower(&self, prior: &NgramPrior, context: usize) -> f64;
    fn contexts(&self) -> bool;
    fn floor(&self, x: f64) -> f64;
}

/// Probabilities.
pub(super) struct Plain;
/// Probabilities from the shorter history alone.
pub(super) struct Short;

macro_rules! plain {
    ($name:ty, $contexts:literal) => {
        impl Probabilities for $name {
            #[inline(always)]
            fn unigram<const L: usize>(
                &self,
                _: &NgramPrior,
                _: &[Lanes<L>],
                one: Lanes<L>,
            ) -> (Lanes<L>, Lanes<L>) {
                (one, one)
            }
            #[inline(always)]
            fn scale<const L: usize>(&self, one: &Lanes<L>) -> Lanes<L> {
                match $contexts {
                    true => inverse(one),
                    false => [1.0; L],
                }
            }
            #[inline(always)]
            fn rest(&self, left: f64, one: f64, _: f64) -> f64 {
                left * one
            }
            #[inline(always)]
            fn pair(&self, prior: &NgramPrior, at: usize) -> f64 {
                f64::from(prior.pairs.weights[at])
            }
            #[inline(always)]
            fn lower(&self, prior: &NgramPrior, context: usize) -> f64 {
                prior.triples.lower[context]
            }
            fn contexts(&self) -> bool {
                $contexts
            }
            #[inline(always)]
            fn floor(&self, x: f64) -> f64 {
                x.max(0.0)
            }
        }
    };
}

plain!(Plain, true);
plain!(Short, false);

/// P·ln P of a model's probabilities as a sparse and a rank-one part; entropies are sums of these.
pub(super) struct Logs {
    unigram: Vec<f64>,
    pairs: Vec<f64>,
    lower: Vec<f64>,
    pub(super) triples: Vec<f64>,
}

impl Logs {
    pub(super) fn of(prior: &NgramPrior) -> Self {
        let unigram = prior.unigram.iter().map(|&p| x_ln_x(p)).collect();
        let rows = &prior.pairs;
        let mut pairs = Vec::with_capacity(rows.words.len());
        for context in 0..rows.rest.len() {
            for (w, p) in rows.row(context) {
                let backed = rows.rest[context] * prior.unigram[w];
                pairs.push(x_ln_x(p + backed) - x_ln_x(backed));
            }
        }
        let lower = prior.triples.lower.iter().map(|&p| x_ln_x(p)).collect();
        let rows = &prior.triples.rows;
        let mut triples = Vec::with_capacity(rows.words.len());
        for context in 0..prior.triples.first.len() {
            let last = prior.triples.last[context];
            for (w, p) in rows.row(context) {
                let backed = rows.rest[context] * prior.probability_behind(last, w as u32);
                triples.push(x_ln_x(p + backed) - x_ln_x(backed));
            }
        }
        Logs {
            unigram,
            pairs,
            lower,
            triples,
        }
    }
}

impl Probabilities for Logs {
    fn unigram<const L: usize>(
        &self,
        _: &NgramPrior,
        ahead: &[Lanes<L>],
        one: Lanes<L>,
    ) -> (Lanes<L>, Lanes<L>) {
        (one, dot(&self.unigram, ahead))
    }
    fn scale<const L: usize>(&self, _: &Lanes<L>) -> Lanes<L> {
        [1.0; L]
    }
    fn rest(&self, left: f64, one: f64, two: f64) -> f64 {
        x_ln_x(left) * one + left * two
    }
    fn pair(&self, _: &NgramPrior, at: usize) -> f64 {
        self.pairs[at]
    }
    fn lower(&self, _: &NgramPrior, context: usize) -> f64 {
        self.lower[context]
    }
    fn contexts(&self) -> bool {
        false
    }
    fn floor(&self, x: f64) -> f64 {
        x
    }
}
