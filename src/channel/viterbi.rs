//! The likeliest sentence: the chain with maxima in place of sums, also exact.
//!
//! A state is a token, for pairs of words that were never seen, or a seen context. After a context,
//! a seen word has its full probability. Every other word has that of the shorter history. For each
//! last word, the best previous state of these is known: M(v) = max(δ(·,v), max δ(u,v)·λ₃(u,v)).
//! This formula gives a seen word less than its full probability, so it may be applied to all
//! words.

use super::chain::Chain;
use super::sweep::{Likelihoods, block_of};
use crate::language::Triples;
use crate::support::error::Result;

/// ln of the best path to each state: tokens first, then contexts.
#[derive(Clone)]
struct Best {
    tokens: Vec<f64>,
    contexts: Vec<f64>,
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
    /// Advances by one word; writes the previous state of every state.
    fn best(&self, from: &Best, likelihood: &[f64], to: &mut Best, back: &mut Vec<u32>) {
        let prior = self.prior;
        let count = self.tokens();
        let triples = &prior.triples;
        to.tokens.fill(NOWHERE);
        to.contexts.fill(NOWHERE);
        back.clear();
        back.resize(from.tokens.len() + from.contexts.len(), 0);
        let (token_back, context_back) = back.split_at_mut(from.tokens.len());
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
    }
}

/// The likeliest tokens of a sentence, given its outputs.
pub(super) fn viterbi(
    chain: &Chain<'_>,
    places: usize,
    likelihoods: &Likelihoods<'_>,
) -> Result<Vec<u32>> {
    // A place stores one previous state per state: half of what sums store.
    let block = block_of(chain, places, 1);
    let (tokens, contexts) = (chain.tokens() + 1, chain.prior.triples.first.len());
    let mut start = Best {
        tokens: vec![NOWHERE; tokens],
        contexts: vec![NOWHERE; contexts],
    };
    start.tokens[chain.prior.start()] = 0.0;
    let mut likelihood = Vec::new();
    let mut back = Vec::new();
    let step = |from: &mut Best, place, likelihood: &mut Vec<f64>, back: &mut Vec<u32>| {
        likelihoods(0, place, likelihood)?;
        let mut to = from.clone();
        chain.best(from, likelihood, &mut to, back);
        // Rescale far from underflow: only differences count.
        let values = to.tokens.iter().chain(&to.contexts);
        let most = values.fold(NOWHERE, |a, &b| a.max(b));
        if most > NOWHERE {
            to.tokens.iter_mut().for_each(|value| *value -= most);
            to.contexts.iter_mut().for_each(|value| *value -= most);
        }
        *from = to;
        Result::Ok(())
    };
    let mut borders = vec![start.clone()];
    let mut state = start;
    for first in (0..places).step_by(block).skip(1) {
        for place in first - block..first {
            step(&mut state, place, &mut likelihood, &mut back)?;
        }
        borders.push(state.clone());
    }
    let mut path = vec![0u32; places];
    let mut at: Option<u32> = None;
    while let Some(mut state) = borders.pop() {
        let first = borders.len() * block;
        let end = places.min(first + block);
        let mut backs = Vec::with_capacity(end - first);
        for place in first..end {
            step(&mut state, place, &mut likelihood, &mut back)?;
            backs.push(back.clone());
        }
        let last = || {
            let values = state.tokens.iter().chain(&state.contexts).zip(0u32..);
            let best = values.fold((NOWHERE, 0), |a, (&b, i)| if b > a.0 { (b, i) } else { a });
            best.1
        };
        let mut now = at.unwrap_or_else(last);
        for place in (first..end).rev() {
            path[place] = match (now as usize).checked_sub(tokens) {
                None => now,
                Some(context) => chain.prior.triples.last[context],
            };
            now = backs[place - first][now as usize];
        }
        at = Some(now);
    }
    Ok(path)
}
