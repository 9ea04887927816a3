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

use super::lanes::{LaneVec, Lanes, TOKENS_PER_TILE, add_scaled, any, dot, inverse};
use crate::language::{NgramPrior, Triples};
use crate::support::simd::vectorised;

/// α after a word, scaled to sum to 1.
#[derive(Clone)]
pub(super) struct Forward<const L: usize> {
    /// A(v) of every token, including the unknown one and the sentence's start.
    pub(super) tokens: LaneVec<L>,
    /// R(v); below order 3 it equals A.
    rest: LaneVec<L>,
    /// α(u,v) of seen contexts; empty below order 3.
    contexts: LaneVec<L>,
}

/// β before the words after a place, up to a factor; 0 for words that the place rules out.
#[derive(Clone)]
pub(super) struct Backward<const L: usize> {
    /// β(·,v) of a token v after a token with which it was never seen.
    pub(super) tokens: LaneVec<L>,
    /// β(u,v) of seen contexts.
    pub(super) contexts: LaneVec<L>,
    /// Working memory: of each token, its likelihood times β after it.
    ahead: LaneVec<L>,
}

impl<const L: usize> Backward<L> {
    /// Begins a sentence at its end, in one lane.
    pub(super) fn end(&mut self, lane: usize) {
        for beta in self.tokens.iter_mut().chain(self.contexts.iter_mut()) {
            beta[lane] = 1.0;
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Chain<'a> {
    pub(super) prior: &'a NgramPrior,
}

impl<'a> Chain<'a> {
    /// Number of tokens that a word may be: the vocabulary's and the unknown one.
    pub(super) fn tokens(&self) -> usize {
        self.prior.words() + 1
    }

    pub(super) fn start<const L: usize>(&self) -> Forward<L> {
        let mut tokens = LaneVec::new(0.0, self.tokens() + 1);
        tokens[self.prior.start()] = [1.0; L];
        Forward {
            rest: tokens.clone(),
            tokens,
            contexts: LaneVec::new(0.0, self.prior.triples.first.len()),
        }
    }

    pub(super) fn end<const L: usize>(&self) -> Backward<L> {
        Backward {
            tokens: LaneVec::new(1.0, self.tokens() + 1),
            contexts: LaneVec::new(1.0, self.prior.triples.first.len()),
            ahead: LaneVec::new(0.0, self.tokens()),
        }
    }

    /// Bytes that a forward or backward state of one sentence takes.
    pub(super) fn bytes(&self) -> usize {
        8 * (2 * (self.tokens() + 1) + self.prior.triples.first.len())
    }

    #[inline(always)]
    fn forward_portable<const L: usize>(
        &self,
        from: &Forward<L>,
        likelihood: &[Lanes<L>],
        to: &mut Forward<L>,
    ) -> Lanes<L> {
        let prior = self.prior;
        let count = self.tokens();
        let Forward {
            tokens: next,
            rest: left_over,
            contexts: alphas,
        } = to;
        // As slices, whose places are found once.
        let (next, left_over, alphas) = (&mut **next, &mut **left_over, &mut **alphas);
        next[count] = [0.0; L];
        let next = &mut next[..count];
        if prior.order() == 1 {
            for (p, one) in next.iter_mut().zip(&prior.unigram) {
                *p = [*one; L];
            }
        } else {
            let mass = dot(&prior.pairs.rest, &from.rest);
            for (p, one) in next.iter_mut().zip(&prior.unigram) {
                for l in 0..L {
                    p[l] = mass[l] * one;
                }
            }
            let rows = &prior.pairs;
            for (v, mass) in from.rest.iter().enumerate() {
                if !any(mass) {
                    continue;
                }
                let range = rows.range(v);
                let weights = rows.weights[range.clone()].iter();
                for (w, p) in rows.words[range].iter().zip(weights) {
                    add_scaled(&mut next[*w as usize], f64::from(*p), mass);
                }
            }
        }
        let Triples {
            first,
            rows,
            next: follow,
            lower,
            ..
        } = &prior.triples;
        let rest = &*from.rest;
        for (alpha, (&u, &p)) in alphas.iter_mut().zip(first.iter().zip(lower)) {
            *alpha = [0.0; L];
            add_scaled(alpha, p, &rest[u as usize]);
        }
        for (context, mass) in from.contexts.iter().enumerate() {
            if !any(mass) {
                continue;
            }
            for at in rows.range(context) {
                let p = f64::from(rows.weights[at]);
                add_scaled(&mut next[rows.words[at] as usize], p, mass);
                if let Some(alpha) = alphas.get_mut(follow[at] as usize) {
                    add_scaled(alpha, p, mass);
                }
            }
        }
        let mut sum = [0.0; L];
        for (p, likelihood) in next.iter_mut().zip(likelihood) {
            for l in 0..L {
                p[l] *= likelihood[l];
                sum[l] += p[l];
            }
        }
        let scale = inverse(&sum);
        for p in next.iter_mut() {
            for l in 0..L {
                p[l] *= scale[l];
            }
        }
        left_over[..count].copy_from_slice(next);
        left_over[count] = [0.0; L];
        let Triples { last, rows, .. } = &prior.triples;
        for (alpha, (&v, left)) in alphas.iter_mut().zip(last.iter().zip(&rows.rest)) {
            let v = v as usize;
            let (likelihood, rest) = (&likelihood[v], &mut left_over[v]);
            for l in 0..L {
                alpha[l] *= likelihood[l] * scale[l];
                rest[l] -= alpha[l] * (1.0 - left);
            }
        }
        for p in left_over {
            for value in p {
                *value = value.max(0.0);
            }
        }
        sum
    }

    #[inline(always)]
    fn backward_portable<const L: usize>(
        &self,
        from: &Backward<L>,
        likelihood: &[Lanes<L>],
        before: &[Lanes<L>],
        to: &mut Backward<L>,
    ) {
        let prior = self.prior;
        let ahead = &mut *to.ahead;
        let each = likelihood.iter().zip(from.tokens.iter());
        for (ahead, (likelihood, beta)) in ahead.iter_mut().zip(each) {
            for l in 0..L {
                ahead[l] = likelihood[l] * beta[l];
            }
        }
        let one = dot(&prior.unigram, ahead);
        let scale = inverse(&one);
        if prior.order() == 1 {
            let mut all = one;
            for l in 0..L {
                all[l] *= scale[l];
            }
            return to.tokens.fill(all);
        }
        let rows = &prior.pairs;
        for (v, beta) in to.tokens.iter_mut().enumerate() {
            let mut sum = [0.0; L];
            if before.get(v).is_some_and(any) {
                for l in 0..L {
                    sum[l] = rows.rest[v] * one[l];
                }
                for at in rows.range(v) {
                    let ahead = &ahead[rows.words[at] as usize];
                    add_scaled(&mut sum, f64::from(rows.weights[at]), ahead);
                }
            }
            *beta = sum;
        }
        self.backward_contexts(from, likelihood, before, to);
        for beta in to.tokens.iter_mut().chain(to.contexts.iter_mut()) {
            for l in 0..L {
                beta[l] *= scale[l];
            }
        }
    }

    /// Adds to β the contributions of seen contexts.
    #[inline(always)]
    fn backward_contexts<const L: usize>(
        &self,
        from: &Backward<L>,
        likelihood: &[Lanes<L>],
        before: &[Lanes<L>],
        to: &mut Backward<L>,
    ) {
        let Triples {
            first,
            last,
            lower,
            rows,
            next,
        } = &self.prior.triples;
        // As slices, whose places are found once.
        let (tokens, contexts) = (&*from.tokens, &*from.contexts);
        let (to_tokens, to_contexts) = (&mut *to.tokens, &mut *to.contexts);
        for (context, ((&u, &v), own)) in first.iter().zip(last).zip(contexts).enumerate() {
            if !before.get(u as usize).is_some_and(any) {
                continue;
            }
            let (beta, p) = (&mut to_tokens[u as usize], lower[context]);
            let (likelihood, shorter) = (&likelihood[v as usize], &tokens[v as usize]);
            for l in 0..L {
                beta[l] += p * likelihood[l] * (own[l] - shorter[l]);
            }
        }
        for beta in to_tokens.iter_mut() {
            for value in beta {
                *value = value.max(0.0);
            }
        }
        for (context, beta) in to_contexts.iter_mut().enumerate() {
            let v = last[context] as usize;
            let mut sum = [0.0; L];
            if any(&before[v]) {
                add_scaled(&mut sum, rows.rest[context], &to_tokens[v]);
                for at in rows.range(context) {
                    let w = rows.words[at] as usize;
                    let behind = contexts.get(next[at] as usize);
                    let behind = behind.unwrap_or(&tokens[w]);
                    let p = f64::from(rows.weights[at]);
                    for l in 0..L {
                        sum[l] += p * likelihood[w][l] * behind[l];
                    }
                }
            }
            *beta = sum;
        }
    }

    /// Writes the posteriors of a word's token in every lane; each sums to 1.
    pub(super) fn marginals<const L: usize>(
        &self,
        alpha: &Forward<L>,
        beta: &Backward<L>,
        out: &mut [Vec<f64>; L],
    ) {
        let count = self.tokens();
        out.iter_mut().for_each(Vec::clear);
        let alphas = alpha.tokens[..count].chunks(TOKENS_PER_TILE);
        for (alphas, betas) in alphas.zip(beta.tokens.chunks(TOKENS_PER_TILE)) {
            for (lane, out) in out.iter_mut().enumerate() {
                let each = alphas.iter().zip(betas);
                out.extend(each.map(|(a, b)| a[lane] * b[lane]));
            }
        }
        let (contexts, tokens) = (
            alpha.contexts.iter().zip(beta.contexts.iter()),
            &*beta.tokens,
        );
        for ((a, b), &v) in contexts.zip(&self.prior.triples.last) {
            let v = v as usize;
            let shorter = &tokens[v];
            for (lane, out) in out.iter_mut().enumerate() {
                out[v] += a[lane] * (b[lane] - shorter[lane]);
            }
        }
        for out in out {
            let mut sum = 0.0;
            for p in out.iter_mut() {
                *p = p.max(0.0);
                sum += *p;
            }
            let scale = 1.0 / sum;
            out.iter_mut().for_each(|p| *p *= scale);
        }
    }

    /// Writes the posterior of the word after known ones, up to a factor; returns its sum. `beta`
    /// is β after the word.
    pub(super) fn conditional(
        &self,
        history: &[u32],
        likelihood: &[f64],
        beta: &Backward<1>,
        out: &mut Vec<f64>,
    ) -> f64 {
        self.prior.fill_next(history, out);
        let tokens = beta.tokens.as_flattened();
        let contexts = beta.contexts.as_flattened();
        let each = out.iter_mut().zip(likelihood).zip(tokens);
        each.for_each(|((p, l), b)| *p *= l * b);
        let before = history.last().copied().unwrap_or(self.prior.start() as u32);
        let Triples { first, last, .. } = &self.prior.triples;
        let from = first.partition_point(|&u| u < before);
        let to = from + first[from..].partition_point(|&u| u == before);
        for (&w, &own) in last[from..to].iter().zip(&contexts[from..to]) {
            let w = w as usize;
            if tokens[w] > 0.0 {
                out[w] *= own / tokens[w];
            }
        }
        out.iter().sum()
    }
}

vectorised! {
    /// Advances by one word. Returns the factors that were divided out: the probability of the word's
    /// output given those before, 0 if no word explains it.
    pub(super) fn forward[const L: usize] = Chain::forward_portable(
        chain: &Chain<'_>,
        from: &Forward<L>,
        likelihood: &[Lanes<L>],
        to: &mut Forward<L>
    ) -> Lanes<L>
}

vectorised! {
    /// Goes back by one word: computes β before a word from its likelihood and β after it. It is
    /// needed only for words before it whose likelihood `before` is not 0; other words get 0.
    pub(super) fn backward[const L: usize] = Chain::backward_portable(
        chain: &Chain<'_>,
        from: &Backward<L>,
        likelihood: &[Lanes<L>],
        before: &[Lanes<L>],
        to: &mut Backward<L>
    )
}
