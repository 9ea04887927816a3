//! The chain of a sentence's hidden words: sums over all sentences, forward and backward, over the
//! whole vocabulary.
//!
//! Forward: α_i(u,v) is the probability of the outputs up to i and of the words u, v at i-1, i. With
//! P(w|u,v) = p̂₃(w|u,v) + λ₃(u,v)·(p̂₂(w|v) + λ₂(v)·P(w)), p̂ sparse, the next one is
//!
//! Σ_u α(u,v)·P(w|u,v) = Σ_{(u,v) seen} α(u,v)·p̂₃(w|u,v) + R(v)·(p̂₂(w|v) + λ₂(v)·P(w)),
//!
//! where R(v) = Σ_u α(u,v)·λ₃(u,v), and λ₃ = 1 if (u,v) was never seen. So of α, only A(v) = Σ_u
//! α(u,v) of every word and α(u,v) of every seen context are kept. A step is a pass over the seen
//! n-grams plus a multiple of one vector. The backward step is similar: β(u,v) depends only on v if
//! (u,v) was never seen. Nothing is truncated.

use crate::prior::{NgramPrior, Triples};

/// α after a word, scaled to sum to 1.
#[derive(Clone)]
pub(super) struct Forward {
    /// A(v) of every token, including the unknown one and the sentence's start.
    pub(super) tokens: Vec<f64>,
    /// R(v); empty below order 3, where it equals A.
    rest: Vec<f64>,
    /// α(u,v) of seen contexts; empty below order 3.
    contexts: Vec<f64>,
}

/// β before the words after a place, up to a factor.
#[derive(Clone)]
pub(super) struct Backward {
    /// β(·,v) of a token v after a token with which it was never seen.
    pub(super) tokens: Vec<f64>,
    /// β(u,v) of seen contexts.
    pub(super) contexts: Vec<f64>,
}

/// The chain under a model of language.
#[derive(Clone, Copy)]
pub(super) struct Chain<'a> {
    pub(super) prior: &'a NgramPrior,
}

/// x·ln x, 0 at 0.
pub(super) fn x_ln_x(x: f64) -> f64 {
    if x > 0.0 { x * x.ln() } else { 0.0 }
}

/// Independent partial sums, so that additions do not wait for each other.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (a, b) in a.iter().zip(b) {
        for l in 0..8 {
            sums[l] += a[l] * b[l];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

impl<'a> Chain<'a> {
    /// Number of tokens that a word may be: the vocabulary's and the unknown one.
    pub(super) fn tokens(&self) -> usize {
        self.prior.words() + 1
    }

    fn deep(&self) -> bool {
        self.prior.order() == 3
    }

    /// The state before the first word of a sentence.
    pub(super) fn start(&self) -> Forward {
        let mut tokens = vec![0.0; self.tokens() + 1];
        tokens[self.prior.start()] = 1.0;
        let (rest, contexts) = match self.deep() {
            true => (tokens.clone(), vec![0.0; self.prior.triples.first.len()]),
            false => (Vec::new(), Vec::new()),
        };
        Forward {
            tokens,
            rest,
            contexts,
        }
    }

    /// The state after the last word.
    pub(super) fn end(&self) -> Backward {
        let contexts = match self.deep() {
            true => vec![1.0; self.prior.triples.first.len()],
            false => Vec::new(),
        };
        Backward {
            tokens: vec![1.0; self.tokens() + 1],
            contexts,
        }
    }

    /// Bytes that a forward or backward state takes.
    pub(super) fn bytes(&self) -> usize {
        8 * (2 * (self.tokens() + 1) + self.prior.triples.first.len())
    }

    /// Advances by one word. Returns the factor that was divided out: the probability of the word's
    /// output given those before, 0 if no word explains it.
    pub(super) fn forward(&self, from: &Forward, likelihood: &[f64], to: &mut Forward) -> f64 {
        let prior = self.prior;
        let count = self.tokens();
        let next = &mut to.tokens[..count];
        if prior.order() == 1 {
            next.copy_from_slice(&prior.unigram);
        } else {
            let rest = if self.deep() {
                &from.rest
            } else {
                &from.tokens
            };
            let mass = dot(rest, &prior.pairs.rest);
            for (p, one) in next.iter_mut().zip(&prior.unigram) {
                *p = mass * one;
            }
            for (v, &mass) in rest.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
                for (w, p) in prior.pairs.row(v) {
                    next[w] += mass * p;
                }
            }
        }
        if self.deep() {
            let Triples {
                first,
                rows,
                next: follow,
                lower,
                ..
            } = &prior.triples;
            let short = first.iter().zip(lower);
            for (alpha, (&u, &p)) in to.contexts.iter_mut().zip(short) {
                *alpha = from.rest[u as usize] * p;
            }
            for (context, &mass) in from.contexts.iter().enumerate() {
                if mass <= 0.0 {
                    continue;
                }
                for at in rows.range(context) {
                    let p = mass * f64::from(rows.weights[at]);
                    next[rows.words[at] as usize] += p;
                    if let Some(alpha) = to.contexts.get_mut(follow[at] as usize) {
                        *alpha += p;
                    }
                }
            }
        }
        let mut sum = 0.0;
        for (p, l) in next.iter_mut().zip(likelihood) {
            *p *= l;
            sum += *p;
        }
        if sum <= 0.0 {
            return 0.0;
        }
        let scale = 1.0 / sum;
        next.iter_mut().for_each(|p| *p *= scale);
        to.tokens[count] = 0.0;
        if self.deep() {
            to.rest.copy_from_slice(&to.tokens);
            let Triples { last, rows, .. } = &prior.triples;
            let each = last.iter().zip(&rows.rest);
            for (alpha, (&v, left)) in to.contexts.iter_mut().zip(each) {
                let v = v as usize;
                *alpha *= likelihood[v] * scale;
                to.rest[v] -= *alpha * (1.0 - left);
            }
            to.rest.iter_mut().for_each(|p| *p = p.max(0.0));
        }
        sum
    }

    /// Goes back by one word: computes β before a word from its likelihood and β after it.
    pub(super) fn backward(&self, from: &Backward, likelihood: &[f64], to: &mut Backward) {
        self.backward_by(from, likelihood, &Plain, to);
        let most = to.tokens.iter().chain(&to.contexts);
        let most = most.fold(0.0f64, |a, &b| a.max(b));
        if most > 0.0 {
            let scale = 1.0 / most;
            to.tokens.iter_mut().for_each(|p| *p *= scale);
            to.contexts.iter_mut().for_each(|p| *p *= scale);
        }
    }

    /// Σ_w f(P(w|u,v))·likelihood(w)·β(v,w) for a function f of the model's probabilities.
    fn backward_by(
        &self,
        from: &Backward,
        likelihood: &[f64],
        by: &impl Probabilities,
        to: &mut Backward,
    ) {
        let prior = self.prior;
        let ahead: Vec<f64> = likelihood
            .iter()
            .zip(&from.tokens)
            .map(|(l, b)| l * b)
            .collect();
        let one = dot(&prior.unigram, &ahead);
        let (one, two) = by.unigram(prior, &ahead, one);
        if prior.order() == 1 {
            return to.tokens.fill(two);
        }
        let rows = &prior.pairs;
        for (v, beta) in to.tokens.iter_mut().enumerate() {
            let mut sum = by.rest(rows.rest[v], one, two);
            for at in rows.range(v) {
                sum += by.pair(prior, at) * ahead[rows.words[at] as usize];
            }
            *beta = sum;
        }
        if !self.deep() {
            return;
        }
        let Triples {
            first,
            last,
            rows,
            next,
            ..
        } = &prior.triples;
        for (context, (&u, &v)) in first.iter().zip(last).enumerate() {
            let v = v as usize;
            let more = from.contexts[context] - from.tokens[v];
            to.tokens[u as usize] += by.lower(prior, context) * likelihood[v] * more;
        }
        to.tokens.iter_mut().for_each(|p| *p = by.floor(*p));
        if !by.contexts() {
            return;
        }
        for (context, beta) in to.contexts.iter_mut().enumerate() {
            let mut sum = rows.rest[context] * to.tokens[last[context] as usize];
            for at in rows.range(context) {
                let w = rows.words[at] as usize;
                let behind = from.contexts.get(next[at] as usize);
                let behind = *behind.unwrap_or(&from.tokens[w]);
                sum += f64::from(rows.weights[at]) * likelihood[w] * behind;
            }
            *beta = sum;
        }
    }

    /// Writes the posterior of a word's token, which sums to 1.
    pub(super) fn marginal(&self, alpha: &Forward, beta: &Backward, out: &mut Vec<f64>) -> f64 {
        out.clear();
        let count = self.tokens();
        let each = alpha.tokens[..count].iter().zip(&beta.tokens);
        out.extend(each.map(|(a, b)| a * b));
        let contexts = alpha.contexts.iter().zip(&beta.contexts);
        for ((&a, &b), &v) in contexts.zip(&self.prior.triples.last) {
            let v = v as usize;
            out[v] += a * (b - beta.tokens[v]);
        }
        let mut sum = 0.0;
        for p in out.iter_mut() {
            *p = p.max(0.0);
            sum += *p;
        }
        out.iter_mut().for_each(|p| *p /= sum);
        sum
    }

    /// Writes the posterior of the word after known ones, up to a factor; returns its sum. `beta`
    /// is β after the word.
    pub(super) fn conditional(
        &self,
        history: &[u32],
        likelihood: &[f64],
        beta: &Backward,
        out: &mut Vec<f64>,
    ) -> f64 {
        self.prior.fill_next(history, out);
        let each = out.iter_mut().zip(likelihood).zip(&beta.tokens);
        each.for_each(|((p, l), b)| *p *= l * b);
        if self.deep() {
            let before = history.last().copied().unwrap_or(self.prior.start() as u32);
            let Triples { first, last, .. } = &self.prior.triples;
            let from = first.partition_point(|&u| u < before);
            let to = from + first[from..].partition_point(|&u| u == before);
            for (&w, &own) in last[from..to].iter().zip(&beta.contexts[from..to]) {
                let w = w as usize;
                if beta.tokens[w] > 0.0 {
                    out[w] *= own / beta.tokens[w];
                }
            }
        }
        out.iter().sum()
    }

    /// E[ln P(word | words before)] of a word, from α before it and β after it. `sum` is the
    /// marginal's sum before scaling, times the forward factor.
    pub(super) fn mean_log(
        &self,
        before: &Forward,
        likelihood: &[f64],
        beta: &Backward,
        sum: f64,
        logs: &Logs,
    ) -> f64 {
        let prior = self.prior;
        if prior.order() == 1 {
            let weighed: Vec<f64> = likelihood
                .iter()
                .zip(&beta.tokens)
                .map(|(l, b)| l * b)
                .collect();
            return dot(&logs.unigram, &weighed) / sum;
        }
        let rest = if self.deep() {
            &before.rest
        } else {
            &before.tokens
        };
        let mut found = Backward {
            tokens: vec![0.0; self.tokens() + 1],
            contexts: Vec::new(),
        };
        self.backward_by(beta, likelihood, logs, &mut found);
        let mut total = dot(rest, &found.tokens);
        if !self.deep() {
            return total / sum;
        }
        let mut plain = Backward {
            tokens: vec![0.0; self.tokens() + 1],
            contexts: Vec::new(),
        };
        self.backward_by(beta, likelihood, &Short, &mut plain);
        let Triples {
            last, rows, next, ..
        } = &prior.triples;
        for (context, &mass) in before.contexts.iter().enumerate() {
            if mass <= 0.0 {
                continue;
            }
            total += mass * x_ln_x(rows.rest[context]) * plain.tokens[last[context] as usize];
            for at in rows.range(context) {
                let w = rows.words[at] as usize;
                let behind = *beta
                    .contexts
                    .get(next[at] as usize)
                    .unwrap_or(&beta.tokens[w]);
                total += mass * logs.triples[at] * likelihood[w] * behind;
            }
        }
        total / sum
    }
}

/// The numbers that a backward step sums: the model's probabilities, or a function of them.
trait Probabilities {
    /// The sums of the words' own probabilities, weighed by λ alone and in full; `one` is the sum
    /// of the probabilities themselves.
    fn unigram(&self, prior: &NgramPrior, ahead: &[f64], one: f64) -> (f64, f64);
    /// The contribution of all words after a context that leaves λ.
    fn rest(&self, left: f64, one: f64, two: f64) -> f64;
    fn pair(&self, prior: &NgramPrior, at: usize) -> f64;
    fn lower(&self, prior: &NgramPrior, context: usize) -> f64;
    fn contexts(&self) -> bool;
    fn floor(&self, x: f64) -> f64;
}

/// Probabilities.
struct Plain;
/// Probabilities from the shorter history alone.
struct Short;

macro_rules! plain {
    ($name:ty, $contexts:literal) => {
        impl Probabilities for $name {
            #[inline(always)]
            fn unigram(&self, _: &NgramPrior, _: &[f64], one: f64) -> (f64, f64) {
                (one, one)
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
    triples: Vec<f64>,
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
    fn unigram(&self, _: &NgramPrior, ahead: &[f64], one: f64) -> (f64, f64) {
        (one, dot(&self.unigram, ahead))
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
