//! Passes over the places of sentences, with memory for about the square root of their number.

use super::chain::{Backward, Chain, Forward, backward, forward};
use super::lanes::{LaneVec, Lanes, TOKENS_PER_TILE};
use crate::support::error::Result;

/// Bytes of states above which a pass saves memory at the cost of time.
const STATE_BYTES: usize = if cfg!(test) { 4 << 10 } else { 192 << 20 };

/// Writes the likelihood of every token at a place of a sentence, given by their numbers.
pub(super) type Likelihoods<'a> = dyn Fn(usize, usize, &mut Vec<f64>) -> Result<()> + 'a;

/// The states between steps, a block of them at a time, the last block first: those before each block are
/// kept, and the others made again.
pub(super) struct Blocks<S> {
    steps: usize,
    block: usize,
    borders: Vec<S>,
}

impl<S: Clone> Blocks<S> {
    /// The states of `together` sentences from `start` on, by so many steps.
    pub(super) fn new(
        chain: &Chain<'_>,
        steps: usize,
        together: usize,
        start: S,
        step: &mut impl FnMut(usize, &S) -> Result<S>,
    ) -> Result<Self> {
        let block = match steps * together * chain.bytes() <= STATE_BYTES {
            true => steps.max(1),
            false => ((steps as f64).sqrt() as usize).max(16),
        };
        let mut borders = vec![start.clone()];
        let mut state = start;
        for first in (block..steps).step_by(block) {
            for at in first - block..first {
                state = step(at, &state)?;
            }
            borders.push(state.clone());
        }
        Ok(Blocks {
            steps,
            block,
            borders,
        })
    }

    /// The first step of the last block that was not taken yet, the state before it, and those after each step.
    pub(super) fn last(
        &mut self,
        step: &mut impl FnMut(usize, &S) -> Result<S>,
    ) -> Result<Option<(usize, Vec<S>)>> {
        let Some(border) = self.borders.pop() else {
            return Ok(None);
        };
        let first = self.borders.len() * self.block;
        let mut states = vec![border];
        for at in first..self.steps.min(first + self.block) {
            let next = step(at, &states[at - first])?;
            states.push(next);
        }
        Ok(Some((first, states)))
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
    let mut column = Column::new(&lengths, likelihoods);
    let mut likelihood = LaneVec::new(1.0, chain.tokens());
    let mut step = |place: usize, (_, from): &(Lanes<L>, Forward<L>)| {
        column.fill(place, &mut likelihood)?;
        let mut to = chain.start();
        let factors = forward(chain, from, &likelihood, &mut to);
        Result::Ok((factors, to))
    };
    let start = ([1.0; L], chain.start());
    let mut blocks = Blocks::new(chain, places, L, start, &mut step)?;
    let mut found: [Evidence; L] = [(0.0, None); L];
    let (mut beta, mut spare) = (chain.end(), chain.end());
    let mut marginals = std::array::from_fn(|_| Vec::new());
    let mut back = Column::new(&lengths, likelihoods);
    let [mut own, mut earlier] = [(); 2].map(|()| LaneVec::new(1.0, chain.tokens()));
    if places > 0 {
        back.fill(places - 1, &mut own)?;
    }
    while let Some((first, states)) = blocks.last(&mut step)? {
        for (at, (factors, alpha)) in states[1..].iter().enumerate().rev() {
            let place = first + at;
            let ended = (0..L).filter(|&lane| lengths[lane] == place + 1);
            ended.for_each(|lane| beta.end(lane));
            chain.marginals(alpha, &beta, &mut marginals);
            for lane in (0..L).filter(|&lane| place < lengths[lane]) {
                visit(lane, place, &marginals[lane]);
                match factors[lane] > 0.0 {
                    true => found[lane].0 += factors[lane].ln(),
                    false => found[lane] = (f64::NEG_INFINITY, Some(place)),
                }
            }
            if place > 0 {
                back.fill(place - 1, &mut earlier)?;
                backward(chain, &beta, &own, &earlier, &mut spare);
                std::mem::swap(&mut beta, &mut spare);
                std::mem::swap(&mut own, &mut earlier);
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
    let lengths = [places];
    let mut column = Column::new(&lengths, likelihoods);
    let [mut likelihood, mut earlier] = [(); 2].map(|()| LaneVec::new(1.0, chain.tokens()));
    // From the last place back.
    let mut step = |at: usize, from: &Backward<1>| {
        column.fill(places - 1 - at, &mut likelihood)?;
        column.fill(places - 2 - at, &mut earlier)?;
        let mut to = chain.end();
        backward(chain, from, &likelihood, &earlier, &mut to);
        Result::Ok(to)
    };
    let steps = places.saturating_sub(1);
    let mut blocks = Blocks::new(chain, steps, 1, chain.end(), &mut step)?;
    let (mut place, mut one) = (0, Vec::new());
    while let Some((first, states)) = blocks.last(&mut step)? {
        for (at, beta) in states.iter().enumerate().rev() {
            // A block ends with the state that the next one begins with.
            if place + first + at + 1 == places {
                likelihoods(0, place, &mut one)?;
                visit(&one, beta);
                place += 1;
            }
        }
    }
    Ok(())
}
