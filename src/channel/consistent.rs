//! Consistent replacement: a repeated word was drawn once, so its emission counts once.
//!
//! Two places with one word have one output, and two outputs have two words. This ties every place
//! to every other, which no chain can represent. Loopy belief propagation runs for a few rounds:
//! places of equal outputs exchange their evidence, and places of other outputs exchange which
//! words are taken. This is an approximation, and the posterior says so. Unknown words are assumed
//! to differ from each other.

use std::collections::HashMap;

use super::read::Observed;
use crate::support::error::{Error, Result};

/// Maximum bytes of messages.
const MESSAGE_BYTES: usize = 1 << 30;

/// Messages between the places of a consistent release: factors on the likelihoods of tokens.
pub(super) struct Messages {
    /// The places of each output that occurs.
    groups: Vec<Vec<usize>>,
    /// For every group, the factor that the other groups leave for each token.
    excluded: Vec<Vec<f64>>,
    /// For each place, the evidence of the other places of its group.
    same: HashMap<usize, Vec<f64>>,
    pub(super) factors: HashMap<usize, Vec<f64>>,
}

impl Messages {
    /// Number of rounds.
    pub(super) const ROUNDS: usize = 6;

    pub(super) fn new(observed: &[Observed], tokens: usize) -> Result<Self> {
        let mut by_output: HashMap<u32, Vec<usize>> = HashMap::new();
        for (place, seen) in observed.iter().enumerate() {
            if let Observed::Output(y) = seen {
                by_output.entry(*y).or_default().push(place);
            }
        }
        let places: usize = by_output.values().map(Vec::len).sum();
        let needed = 32 * places * tokens;
        if needed > MESSAGE_BYTES {
            return Err(Error::TooLarge {
                what: "the posterior of so long a consistent text".into(),
                needed: needed as u64,
                limit: MESSAGE_BYTES as u64,
            });
        }
        let mut groups: Vec<Vec<usize>> = by_output.into_values().collect();
        groups.sort_unstable();
        Ok(Messages {
            excluded: vec![vec![1.0; tokens]; groups.len()],
            groups,
            same: HashMap::new(),
            factors: HashMap::new(),
        })
    }

    /// Computes the next round from the posteriors of all places and their likelihoods without
    /// factors.
    pub(super) fn update(
        &mut self,
        marginals: &[Vec<f64>],
        likelihood: impl Fn(usize) -> Result<Vec<f64>>,
        drawn: &[bool],
    ) -> Result<()> {
        let tokens = drawn.len();
        // The odds that an output's word is this one, without the evidence of the other outputs.
        let odds = |group: usize, w: usize| {
            let each = self.groups[group].iter().map(|&place| marginals[place][w]);
            let p = each.fold(0.0f64, f64::max).min(1.0 - 1e-9);
            p / (1.0 - p) / self.excluded[group][w]
        };
        let mut all = vec![0.0f64; tokens];
        for group in 0..self.groups.len() {
            for (w, all) in all.iter_mut().enumerate() {
                *all += odds(group, w);
            }
        }
        // At most one output has a word: either none, or one of the others.
        let excluded = (0..self.groups.len()).map(|group| {
            let each = all.iter().enumerate().zip(&self.excluded[group]);
            let free = each.map(|((w, all), old)| {
                // Half of the step, so that rounds do not oscillate.
                (old / (1.0 + (all - odds(group, w)).max(0.0))).sqrt()
            });
            free.collect()
        });
        let excluded: Vec<Vec<f64>> = excluded.collect();
        let (mut next, mut kept) = (HashMap::new(), HashMap::new());
        for (places, free) in self.groups.iter().zip(&excluded) {
            let alone: Vec<Vec<f64>> = places
                .iter()
                .map(|p| likelihood(*p))
                .collect::<Result<_>>()?;
            // For every place: the evidence of everything except its own output, and how well that
            // explains the output.
            let cavities: Vec<(Vec<f64>, f64)> = places
                .iter()
                .zip(&alone)
                .map(|(&place, alone)| {
                    let factor = self.factors.get(&place);
                    let of = |w: usize| {
                        let own = alone[w] * factor.map_or(1.0, |f| f[w]);
                        if own > 0.0 {
                            marginals[place][w] / own
                        } else {
                            0.0
                        }
                    };
                    let mut cavity: Vec<f64> = (0..tokens).map(of).collect();
                    let sum: f64 = cavity.iter().sum();
                    cavity.iter_mut().for_each(|p| *p /= sum);
                    let explained = cavity.iter().zip(alone).map(|(a, b)| a * b).sum();
                    (cavity, explained)
                })
                .collect();
            for (at, &place) in places.iter().enumerate() {
                let old = self.same.get(&place);
                let mut same = vec![1.0; tokens];
                for (w, same) in same.iter_mut().enumerate().filter(|(w, _)| drawn[*w]) {
                    let mut log = old.map_or(0.0, |old| old[w].ln());
                    for (other, (cavity, explained)) in cavities.iter().enumerate() {
                        if other != at && *explained > 0.0 {
                            // The word was drawn at the earlier place, which may have another law.
                            let own = alone[other][w];
                            let later = other < at && alone[at][w] > 0.0;
                            let both = if later { own / alone[at][w] } else { 1.0 };
                            log += (cavity[w] * (both - own) / explained).ln_1p();
                        }
                    }
                    *same = (0.5 * log).exp();
                }
                let drawn = |w: usize| if drawn[w] { free[w] } else { 1.0 };
                let each = same.iter().enumerate();
                let mut factor: Vec<f64> = each.map(|(w, same)| same * drawn(w)).collect();
                kept.insert(place, same);
                let most = factor.iter().fold(0.0f64, |a, &b| a.max(b));
                factor.iter_mut().for_each(|f| *f = (*f / most).max(1e-300));
                next.insert(place, factor);
            }
        }
        (self.factors, self.same, self.excluded) = (next, kept, excluded);
        Ok(())
    }
}
