//! The likeliest sentence: the chain with maxima in place of sums, also exact.
//!
//! A state is a token, for pairs of words that were never seen, or a seen context. After a context,
//! a seen word has its full probability. Every other word has that of the shorter history. For each
//! last word, the best previous state of these is known: M(v) = max(δ(·,v), max δ(u,v)·λ₃(u,v)).
//! This formula gives a seen word less than its full probability, so it may be applied to all
//! words.

use super::chain::Chain;
use super::sweep::{Blocks, Likelihoods};
use crate::language::Triples;
use crate::support::error::Result;

/// ln of the best path to each state, and the state before it on this path: tokens first, then contexts.
#[derive(Clone)]
struct Best {
    tokens: Vec<f64>,
    contexts: Vec<f64>,
    back: Vec<u32>,
}

const NOWHERE: f64 = f64::NEG_INFINITY;

/// Takes a better path.
fn relax(value: &mut f64, back: &mut u32, better: f64, from: u32) {
    if better > *value {
        *value = better;
        *back = from;
    }
}

impl Chain<'_> {
    /// No path to any state.
    fn nowhere(&self) -> Best {
        let (tokens, contexts) = (self.tokens() + 1, self.prior.triples.first.len());
        Best {
            tokens: vec![NOWHERE; tokens],
            contexts: vec![NOWHERE; contexts],
            back: vec![0; tokens + contexts],
        }
    }

    /// Advances by one word.
    fn best(&self, from: &Best, likelihood: &[f64]) -> Best {
        let mut to = self.nowhere();
        let prior = self.prior;
        let count = self.tokens();
        let triples = &prior.triples;
        let (token_back, context_back) = to.back.split_at_mut(from.tokens.len());
        let offset = from.tokens.len() as u32;
        // M(v), and the state it comes from.
        let mut short = from.tokens.clone();
        let mut short_back: Vec<u32> = (0..offset).collect();
        for (context, &value) in from.contexts.iter().enumerate() {
            let v = triples.last[context] as usize;
            let value = value + triples.rows.rest[context].ln();
            relax(
                &mut short[v],
                &mut short_back[v],
                value,
                offset + context as u32,
            );
        }
        // The factor that reaches any word after any other, by frequencies alone.
        let left = |v: usize| match prior.order() {
            1 => 1.0,
            _ => prior.pairs.rest[v],
        };
        let mut order: Vec<(f64, u32)> = (0..=count as u32)
            .map(|v| (short[v as usize] + left(v as usize).ln(), v))
            .filter(|(value, _)| *value > NOWHERE)
            .collect();
        if triples.first.is_empty() {
            let most = order
                .iter()
                .copied()
                .fold((NOWHERE, 0), |a, b| if b.0 > a.0 { b } else { a });
            order = vec![most];
        } else {
            order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        }
        for (w, back) in token_back[..count].iter_mut().enumerate() {
            let unseen = |v: u32| triples.first.is_empty() || triples.find(v, w as u32).is_none();
            if let Some(&(value, v)) = order.iter().find(|(_, v)| unseen(*v)) {
                let value = value + prior.unigram[w].ln();
                relax(&mut to.tokens[w], back, value, short_back[v as usize]);
            }
        }
        if prior.order() > 1 {
            for v in (0..=count).filter(|&v| short[v] > NOWHERE) {
                for (w, p) in prior.pairs.row(v) {
                    if triples.first.is_empty() || triples.find(v as u32, w as u32).is_none() {
                        let p = p + prior.pairs.rest[v] * prior.unigram[w];
                        let value = short[v] + p.ln();
                        relax(&mut to.tokens[w], &mut token_back[w], value, short_back[v]);
                    }
                }
            }
        }
        let shorter = triples.first.iter().zip(&triples.lower);
        let states = to.contexts.iter_mut().zip(context_back.iter_mut());
        for ((best, back), (&u, p)) in states.zip(shorter) {
            let u = u as usize;
            relax(best, back, short[u] + p.ln(), short_back[u]);
        }
        for (context, &value) in from.contexts.iter().enumerate() {
            if value == NOWHERE {
                continue;
            }
            let rows = &triples.rows;
            let v = triples.last[context];
            for at in rows.range(context) {
                let w = rows.words[at];
                let shorter = match triples.next[at] {
                    Triples::NONE => prior.probability_behind(v, w),
                    next => triples.lower[next as usize],
                };
                let p = f64::from(rows.weights[at]) + rows.rest[context] * shorter;
                let (better, state) = (value + p.ln(), offset + context as u32);
                match triples.next[at] {
                    Triples::NONE => {
                        let w = w as usize;
                        relax(&mut to.tokens[w], &mut token_back[w], better, state);
                    }
                    next => {
                        let next = next as usize;
                        relax(
                            &mut to.contexts[next],
                            &mut context_back[next],
                            better,
                            state,
                        );
                    }
                }
            }
        }
        let logs: Vec<f64> = likelihood.iter().map(|l| l.ln()).collect();
        to.tokens
            .iter_mut()
            .zip(&logs)
            .for_each(|(value, l)| *value += l);
        to.tokens[count] = NOWHERE;
        let contexts = to.contexts.iter_mut().zip(&triples.last);
        contexts.for_each(|(value, &v)| *value += logs[v as usize]);
        // Rescale far from underflow: only differences count.
        let most = to.likeliest().0;
        if most > NOWHERE {
            let values = to.tokens.iter_mut().chain(&mut to.contexts);
            values.for_each(|value| *value -= most);
        }
        to
    }
}

impl Best {
    /// The best path, and its state.
    fn likeliest(&self) -> (f64, u32) {
        let values = self.tokens.iter().chain(&self.contexts).zip(0u32..);
        values.fold((NOWHERE, 0), |a, (&b, i)| if b > a.0 { (b, i) } else { a })
    }
}

/// The likeliest tokens of a sentence, given its outputs.
pub(super) fn viterbi(
    chain: &Chain<'_>,
    places: usize,
    likelihoods: &Likelihoods<'_>,
) -> Result<Vec<u32>> {
    let mut start = chain.nowhere();
    start.tokens[chain.prior.start()] = 0.0;
    let mut likelihood = Vec::new();
    let mut step = |place: usize, from: &Best| {
        likelihoods(0, place, &mut likelihood)?;
        Result::Ok(chain.best(from, &likelihood))
    };
    let mut blocks = Blocks::new(chain, places, 1, start, &mut step)?;
    let mut path = vec![0u32; places];
    let mut behind: Option<u32> = None;
    while let Some((first, states)) = blocks.last(&mut step)? {
        for (at, best) in states[1..].iter().enumerate().rev() {
            let state = behind.unwrap_or_else(|| best.likeliest().1);
            path[first + at] = match (state as usize).checked_sub(best.tokens.len()) {
                None => state,
                Some(context) => chain.prior.triples.last[context],
            };
            behind = Some(best.back[state as usize]);
        }
    }
    Ok(path)
}
