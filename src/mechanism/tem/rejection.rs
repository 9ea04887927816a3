//! Sampling the whole law from the k nearest words only, exactly.
//!
//! S is the sum of the list's weights, b the weight of its last word: no word outside is
//! heavier. Draw u below S + V·b. If u < S, release the list's word that it falls on. Otherwise
//! draw a word y uniformly from all V and accept it with probability W(d(w,y))/b, unless it is in
//! the list; else start again from the top. Every word is released in proportion to its weight,
//! for every ε and γ, γ = ∞ included, at one distance for a try outside the list. The integers
//! are those of [`law`](super::law), so the law does not depend on k.
//!
//! A vocabulary can make the tries long (a dense cluster of more than k words, all else far
//! away). After [`TRIES`] of them the draw is made from the whole row instead: the tries were
//! independent of what comes, so the law is the same.

use rand::Rng;

use super::law::{FLOOR_EXPONENT, accumulate, weight};
use crate::neighbors::Grid;
use crate::random::{uniform_below, uniform_below_u128};

/// Tries outside the list before a draw goes to the whole row.
pub(super) const TRIES: u32 = 64;

/// The part of the law that a list holds.
#[derive(Debug, Default)]
pub(super) struct ListLaw {
    /// Running sums over the list's words nearer than the cap, where the weights still fall.
    falling: Vec<u128>,
    /// The weight of the list's remaining words, all alike, and their sum.
    flat: u128,
    flat_sum: u128,
    /// The heaviest that a word outside can be; 0 where none is outside.
    envelope: u128,
    /// S + V·b.
    total: u128,
}

impl ListLaw {
    /// The law of a list (ascending entries) at η = ε/2 and γ, in a vocabulary of `words`.
    pub(super) fn fill(&mut self, list: &[u64], grid: Grid, eta: f64, gamma: f64, words: usize) {
        let cap = gamma.min((FLOOR_EXPONENT + 0.01) / eta);
        let falling = list.partition_point(|&entry| grid.distance(entry) < cap);
        self.falling.clear();
        let exponent = |entry| eta * grid.distance(entry);
        let sum = accumulate(&list[..falling], exponent, &mut self.falling);
        self.flat = weight(eta * cap);
        self.flat_sum = self.flat * (list.len() - falling) as u128;
        self.envelope = match list.last() {
            Some(_) if list.len() == words => 0,
            Some(_) if falling < list.len() => self.flat,
            Some(&last) => {
                // The exponential is monotone only up to its rounding: leave room for it.
                let weight = weight(eta * grid.distance(last));
                weight + (weight >> 48) + 1
            }
            None => self.flat,
        };
        self.total = sum + self.flat_sum + self.envelope * words as u128;
    }

    /// The rank in the list that a draw has landed on, or `None`: outside.
    #[inline]
    fn land(&self, rng: &mut impl Rng) -> Option<usize> {
        let u = uniform_below_u128(rng, self.total);
        let sum = self.falling.last().copied().unwrap_or(0);
        if u < sum {
            Some(self.falling.partition_point(|&c| c <= u))
        } else if u - sum < self.flat_sum {
            Some(self.falling.len() + ((u - sum) / self.flat) as usize)
        } else {
            None
        }
    }

    /// One word, or `None` after [`TRIES`] vain tries outside the list. `distance` is that to a
    /// word of the vocabulary, rounded to the grid by this function.
    #[inline]
    pub(super) fn sample(
        &self,
        list: &[u64],
        grid: Grid,
        (eta, gamma): (f64, f64),
        words: u32,
        rng: &mut impl Rng,
        distance: impl Fn(u32) -> f64,
    ) -> Option<u32> {
        for _ in 0..TRIES {
            if let Some(rank) = self.land(rng) {
                // The minimum only matters for a file that was opened unverified and is damaged.
                return Some(grid.id(list[rank]).min(words - 1));
            }
            let y = uniform_below(rng, words);
            let entry = grid.entry(distance(y), y);
            let accept = uniform_below_u128(rng, self.envelope);
            let listed = list.last().is_some_and(|&last| entry <= last);
            if !listed && accept < weight(eta * grid.distance(entry).min(gamma)) {
                return Some(y);
            }
        }
        None
    }
}
