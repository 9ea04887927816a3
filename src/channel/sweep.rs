//! Passes over the places of sentences, with memory for about the square root of their number.

use super::chain::{Backward, Chain, Forward, backward, forward};
use super::lanes::{LaneVec, Lanes, TOKENS_PER_TILE};
use crate::support::error::Result;

/// Bytes of states above which a pass saves memory at the cost of time.
const STATE_BYTES: usize = if cfg!(test) { 4 << 10 } else { 192 << 20 };

/// Writes the likelihood of every token at a place of a sentence, given by their numbers.
pub(super) type Likelihoods<'a> = dyn Fn(usize, usize, &mut Vec<f64>) -> Result<()> + 'a;

/// Places whose states are kept together, of sentences that are worked on together.
pub(super) fn block_of(chain: &Chain<'_>, places: usize, together: usize) -> usize {
    match places * together * chain.bytes() <= STATE_BYTES {
        true => places.max(1),
        false => ((places as f64).sqrt() as usize).max(16),
    }
}

/// ln of the probability of the outputs, or -∞ with the place whose output nothing explains.
pub(super) type Evidence = (f64, Option<usize>);

/// The likelihoods of up to `L` sentences of different lengths at one place. A sentence that has
/// ended has 1 for every token.
struct Column<'a, const L: usize> {
    lengths: &'a [usize; L],
    source: &'a Likelihoods<'a>,
    lanes: [Vec<f64>; L],
}

impl<'a, const L: usize> Column<'a, L> {
    fn new(lengths: &'a [usize; L], source: &'a Likelihoods<'a>) -> Self {
        Column {
            lengths,
            source,
            lanes: std::array::from_fn(|_| Vec::new()),
        }
    }

    fn fill(&mut self, place: usize, out: &mut [Lanes<L>]) -> Result<()> {
        for ((sentence, lane), &length) in self.lanes.iter_mut().enumerate().zip(self.lengths) {
            if place < length {
                (self.source)(sentence, place, lane)?;
            } else {
                lane.clear();
                lane.resize(out.len(), 1.0);
            }
        }
        for (tile, out) in out.chunks_mut(TOKENS_PER_TILE).enumerate() {
            for (lane, values) in self.lanes.iter().enumerate() {
                let values = values[tile * TOKENS_PER_TILE..].iter();
                for (out, value) in out.iter_mut().zip(values) {
                    out[lane] = *value;
                }
            }
        }
        Ok(())
    }
}

/// Calls a function with every sentence, place, and the posterior of the token there, the last places
/// first. Lanes of length 0 are idle.
pub(super) fn sweep<const L: usize>(
    chain: &Chain<'_>,
    lengths: [usize; L],
    likelihoods: &Likelihoods<'_>,
    visit: &mut dyn FnMut(usize, usize, &[f64]),
) -> Result<[Evidence; L]> {
    let places = lengths.iter().copied().max().unwrap_or(0);
    let block = block_of(chain, places, L);
    let mut column = Column::new(&lengths, likelihoods);
    let mut found: [Evidence; L] = [(0.0, None); L];
    let mut learn = |place: usize, factors: &Lanes<L>| {
        for ((evidence, &length), factor) in found.iter_mut().zip(&lengths).zip(factors) {
            match (place < length && evidence.1.is_none(), *factor > 0.0) {
                (true, true) => evidence.0 += factor.ln(),
                (true, false) => *evidence = (f64::NEG_INFINITY, Some(place)),
                (false, _) => {}
            }
        }
    };
    let mut likelihood: LaneVec<L> = LaneVec::new(1.0, chain.tokens());
    // The states before each block, and those of the last block.
    let mut borders = vec![chain.start()];
    let mut state: Forward<L> = chain.start();
    for first in (0..places).step_by(block).skip(1) {
        for place in first - block..first {
            column.fill(place, &mut likelihood)?;
            let from = state.clone();
            learn(place, &forward(chain, &from, &likelihood, &mut state));
        }
        borders.push(state.clone());
    }
    let mut beta = chain.end();
    let mut spare = chain.end();
    let mut marginals = std::array::from_fn(|_| Vec::new());
    let mut earlier = likelihood.clone();
    let mut states: Vec<Forward<L>> = Vec::new();
    let last = borders.len() - 1;
    while let Some(border) = borders.pop() {
        let first = borders.len() * block;
        let end = places.min(first + block);
        states.resize_with(end - first + 1, || chain.start());
        states[0] = border;
        for place in first..end {
            column.fill(place, &mut likelihood)?;
            let (before, after) = states.split_at_mut(place - first + 1);
            let from = &before[place - first];
            let factor = forward(chain, from, &likelihood, &mut after[0]);
            if borders.len() == last {
                learn(place, &factor);
            }
        }
        for place in (first..end).rev() {
            let at = place - first;
            // The likelihood of the last place is still there.
            if place + 1 < end {
                std::mem::swap(&mut likelihood, &mut earlier);
            }
            let ended = (0..L).filter(|&lane| lengths[lane] == place + 1);
            ended.for_each(|lane| beta.end(lane));
            chain.marginals(&states[at + 1], &beta, &mut marginals);
            for lane in (0..L).filter(|&lane| place < lengths[lane]) {
                visit(lane, place, &marginals[lane]);
            }
            if place > 0 {
                column.fill(place - 1, &mut earlier)?;
                backward(chain, &beta, &likelihood, &earlier, &mut spare);
                std::mem::swap(&mut beta, &mut spare);
            }
        }
    }
    Ok(found)
}

/// Calls a function with the likelihood and β after every place of a sentence, in order.
pub(super) fn ahead(
    chain: &Chain<'_>,
    places: usize,
    likelihoods: &Likelihoods<'_>,
    visit: &mut dyn FnMut(&[f64], &Backward<1>),
) -> Result<()> {
    let block = block_of(chain, places, 1);
    let lengths = [places];
    let mut column = Column::new(&lengths, likelihoods);
    let mut likelihood = LaneVec::new(1.0, chain.tokens());
    let mut earlier = likelihood.clone();
    let mut back = |place: usize, from: &Backward<1>, to: &mut Backward<1>| {
        column.fill(place, &mut likelihood)?;
        column.fill(place - 1, &mut earlier)?;
        backward(chain, from, &likelihood, &earlier, to);
        Result::Ok(())
    };
    let mut beta: Backward<1> = chain.end();
    // β after the last place of each block, the last block first.
    let mut borders = vec![beta.clone()];
    let starts: Vec<usize> = (0..places).step_by(block).collect();
    for &first in starts.iter().skip(1).rev() {
        for place in (first..places.min(first + block)).rev() {
            let from = beta.clone();
            back(place, &from, &mut beta)?;
        }
        borders.push(beta.clone());
    }
    let mut one = Vec::new();
    for first in starts {
        let end = places.min(first + block);
        let Some(border) = borders.pop() else { break };
        let mut states = vec![border];
        for place in (first + 1..end).rev() {
            let mut next = chain.end();
            if let Some(from) = states.last() {
                back(place, from, &mut next)?;
            }
            states.push(next);
        }
        for place in first..end {
            likelihoods(0, place, &mut one)?;
            if let Some(beta) = states.pop() {
                visit(&one, &beta);
            }
        }
    }
    Ok(())
}
