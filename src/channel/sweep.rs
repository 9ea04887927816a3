//! Passes over the places of a sentence, with memory for about the square root of their number.

use super::chain::{Backward, Chain, Forward};
use crate::error::Result;

/// Bytes of states above which a pass saves memory at the cost of time.
const STATE_BYTES: usize = if cfg!(test) { 4 << 10 } else { 192 << 20 };

/// Writes the likelihood of every token at a place.
pub(super) trait Likelihoods {
    fn fill(&self, place: usize, out: &mut Vec<f64>) -> Result<()>;
}

/// The state of knowledge at a place.
pub(super) struct View<'a> {
    pub(super) before: &'a Forward,
    pub(super) likelihood: &'a [f64],
    pub(super) beta: &'a Backward,
    /// The posterior of the token, which sums to 1.
    pub(super) marginal: &'a [f64],
    /// The sum of the posterior before scaling, times the step's factor.
    pub(super) sum: f64,
}

/// Places whose states are kept together.
pub(super) fn block_of(chain: &Chain<'_>, places: usize) -> usize {
    match places * chain.bytes() <= STATE_BYTES {
        true => places.max(1),
        false => ((places as f64).sqrt() as usize).max(16),
    }
}

/// ln of the probability of the outputs, or -∞ with the place whose output nothing explains.
pub(super) type Evidence = (f64, Option<usize>);

/// Calls a function with every place, the last one first.
pub(super) fn sweep(
    chain: &Chain<'_>,
    places: usize,
    likelihoods: &dyn Likelihoods,
    visit: &mut dyn FnMut(usize, &View<'_>),
) -> Result<Evidence> {
    let block = block_of(chain, places);
    let mut likelihood = Vec::new();
    let mut log = 0.0;
    // The states before each block, and those of the last block.
    let mut borders = vec![chain.start()];
    let mut state = chain.start();
    for first in (0..places).step_by(block).skip(1) {
        for place in first - block..first {
            likelihoods.fill(place, &mut likelihood)?;
            let from = state.clone();
            let factor = chain.forward(&from, &likelihood, &mut state);
            if factor <= 0.0 {
                return Ok((f64::NEG_INFINITY, Some(place)));
            }
            log += factor.ln();
        }
        borders.push(state.clone());
    }
    let mut beta = chain.end();
    let mut spare = chain.end();
    let mut marginal = Vec::new();
    let mut states: Vec<Forward> = Vec::new();
    let mut factors = Vec::new();
    let last = borders.len() - 1;
    while let Some(border) = borders.pop() {
        let first = borders.len() * block;
        let end = places.min(first + block);
        states.resize_with(end - first + 1, || chain.start());
        states[0] = border;
        factors.clear();
        for place in first..end {
            likelihoods.fill(place, &mut likelihood)?;
            let (before, after) = states.split_at_mut(place - first + 1);
            let factor = chain.forward(&before[place - first], &likelihood, &mut after[0]);
            if factor <= 0.0 {
                return Ok((f64::NEG_INFINITY, Some(place)));
            }
            factors.push(factor);
        }
        if borders.len() == last {
            log += factors.iter().map(|f| f.ln()).sum::<f64>();
        }
        for place in (first..end).rev() {
            let at = place - first;
            let sum = chain.marginal(&states[at + 1], &beta, &mut marginal) * factors[at];
            likelihoods.fill(place, &mut likelihood)?;
            let view = View {
                before: &states[at],
                likelihood: &likelihood,
                beta: &beta,
                marginal: &marginal,
                sum,
            };
            visit(place, &view);
            chain.backward(&beta, &likelihood, &mut spare);
            std::mem::swap(&mut beta, &mut spare);
        }
    }
    Ok((log, None))
}

/// Calls a function with every place in order, with its likelihood and β after it.
pub(super) fn ahead(
    chain: &Chain<'_>,
    places: usize,
    likelihoods: &dyn Likelihoods,
    visit: &mut dyn FnMut(usize, &[f64], &Backward),
) -> Result<()> {
    let block = block_of(chain, places);
    let mut likelihood = Vec::new();
    let mut beta = chain.end();
    // β after the last place of each block, the last block first.
    let mut borders = vec![beta.clone()];
    let starts: Vec<usize> = (0..places).step_by(block).collect();
    for &first in starts.iter().skip(1).rev() {
        for place in (first..places.min(first + block)).rev() {
            likelihoods.fill(place, &mut likelihood)?;
            let from = beta.clone();
            chain.backward(&from, &likelihood, &mut beta);
        }
        borders.push(beta.clone());
    }
    for first in starts {
        let end = places.min(first + block);
        let Some(border) = borders.pop() else { break };
        let mut states = vec![border];
        for place in (first + 1..end).rev() {
            likelihoods.fill(place, &mut likelihood)?;
            let mut next = chain.end();
            if let Some(from) = states.last() {
                chain.backward(from, &likelihood, &mut next);
            }
            states.push(next);
        }
        for place in first..end {
            likelihoods.fill(place, &mut likelihood)?;
            if let Some(beta) = states.pop() {
                visit(place, &likelihood, &beta);
            }
        }
    }
    Ok(())
}
