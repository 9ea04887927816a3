//! Sampling the whole law from a word's list only, exactly.
//!
//! S is the sum of the list's weights, b a bound of the weight of every word outside. Draw u
//! below S + V·b. If u < S, release the list's word that it falls on. Otherwise
//! draw a word y uniformly from all V and accept it with probability W(d(w,y))/b, unless it is in
//! the list; else start again from the top. Every word is released in proportion to its weight,
//! for every ε and γ, γ = ∞ included, at one distance for a try outside the list. The integers
//! are those of [`law`](super::law), so the law does not depend on the list.
//!
//! A vocabulary can make the tries long (a dense cluster of more than k words, all else far
//! away). After [`TRIES`] of them the draw is made from the whole row instead: the tries were
//! independent of what comes, so the law is the same.

use rand::Rng;

use super::law::{FLOOR_EXPONENT, Law, largest_exponent, weight};
use super::neighborhoods::List;
use crate::neighbors::Grid;
use crate::random::{uniform_below, uniform_below_u128};

/// Tries outside the list before a draw goes to the whole row.
pub(super) const TRIES: u32 = 64;

/// The part of the law that a list holds.
#[derive(Debug, Default)]
pub(super) struct ListLaw {
    /// The list's words nearer than the cap, where the weights still fall.
    falling: Law,
    /// The weight of the list's remaining words, all alike, and their sum.
    flat: u128,
    flat_sum: u128,
    /// The heaviest that a word outside can be; 0 where none is outside.
    envelope: u128,
    /// S + V·b.
    total: u128,
}

/// How a law is drawn: η = ε/2 and γ, the grid, the number of words.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) eta: f64,
    pub(super) gamma: f64,
    pub(super) grid: Grid,
    pub(super) words: u32,
}

impl ListLaw {
    /// The law of a list.
    pub(super) fn fill(&mut self, list: List, terms: Terms) {
        let Terms { eta, grid, .. } = terms;
        let cap = terms.gamma.min((FLOOR_EXPONENT + 0.01) / eta);
        let entries = list.entries;
        let falling = entries.partition_point(|&entry| grid.distance(entry) < cap);
        self.falling
            .fill_with(&entries[..falling], |entry| eta * grid.distance(entry));
        self.flat = weight(eta * cap);
        self.flat_sum = self.flat * (entries.len() - falling) as u128;
        let nearest_outside = grid.distance(list.complete);
        self.envelope = if entries.len() == terms.words as usize {
            0
        } else if nearest_outside >= cap {
            self.flat
        } else {
            // The exponential is monotone only up to its rounding: leave room for it.
            let weight = weight(eta * nearest_outside);
            weight + (weight >> 48) + 1
        };
        let outside = self.envelope * u128::from(terms.words);
        self.total = self.falling.total() + self.flat_sum + outside;
    }

    /// Prepares for many draws.
    pub(super) fn index(&mut self) {
        self.falling.index();
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.falling.bytes()
    }

    /// The rank in the list that a draw has landed on, or `None`: outside.
    #[inline]
    fn land(&self, rng: &mut impl Rng) -> Option<usize> {
        let u = uniform_below_u128(rng, self.total);
        let sum = self.falling.total();
        if u < sum {
            Some(self.falling.find(u) as usize)
        } else if u - sum < self.flat_sum {
            Some(self.falling.len() + ((u - sum) / self.flat) as usize)
        } else {
            None
        }
    }

    /// One word, or `None` after [`TRIES`] vain tries outside the list, and how many it made.
    /// `distance` is that to a word of the vocabulary, rounded to the grid by this function;
    /// `beyond(y, limit)` may say that it is certainly more than `limit`.
    #[inline]
    pub(super) fn sample(
        &self,
        list: List,
        terms: Terms,
        rng: &mut impl Rng,
        distance: impl Fn(u32) -> f64,
        beyond: impl Fn(u32, f64) -> bool,
    ) -> (Option<u32>, u32) {
        let Terms {
            eta, grid, words, ..
        } = terms;
        for tries in 0..TRIES {
            if let Some(rank) = self.land(rng) {
                // The minimum only matters for a file that was opened unverified and is damaged.
                return (Some(grid.id(list.entries[rank]).min(words - 1)), tries);
            }
            let y = uniform_below(rng, words);
            let accept = uniform_below_u128(rng, self.envelope);
            // Accepted are distances up to a limit; most are beyond, and that is soon seen.
            let limit = largest_exponent(accept) / eta;
            if limit < terms.gamma && beyond(y, limit + grid.step()) {
                continue;
            }
            let entry = grid.entry(distance(y), y);
            let exponent = eta * grid.distance(entry).min(terms.gamma);
            if entry > list.complete && accept < weight(exponent) {
                return (Some(y), tries + 1);
            }
        }
        (None, TRIES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        /// An envelope that is a little too low skews the law by less than draws can show.
        #[test]
        fn the_envelope_is_above_every_weight_outside(
            distances in proptest::collection::vec(
                prop_oneof![0.0..20.0f64, 3.0..3.001f64, Just(0.0), Just(3.0)], 1..60),
            k in 1usize..60, eta in prop_oneof![1e-3..1.0f64, 1.0..60.0f64],
            gamma in prop_oneof![Just(f64::INFINITY), Just(0.0), 0.0..10.0f64]
        ) {
            let words = distances.len();
            let k = k.min(words);
            let grid = Grid::new(words, 40.0);
            let mut entries: Vec<u64> =
                distances.iter().zip(0..).map(|(&d, id)| grid.entry(d, id)).collect();
            entries.sort_unstable();
            let list = List { entries: &entries[..k], complete: entries[k - 1] };
            let terms = Terms { eta, gamma, grid, words: words as u32 };
            let mut law = ListLaw::default();
            law.fill(list, terms);
            let of = |entry: u64| weight(eta * grid.distance(entry).min(gamma));
            for &entry in &entries[k..] {
                prop_assert!(of(entry) <= law.envelope, "{} {}", of(entry), law.envelope);
            }
            // And it is tight: no more than the last weight of the list, but for rounding.
            prop_assert!(law.envelope <= of(entries[k - 1]) + (of(entries[k - 1]) >> 40) + 1);
            let inside: u128 = entries[..k].iter().map(|&entry| of(entry)).sum();
            prop_assert_eq!(law.total, inside + law.envelope * words as u128);
        }
    }
}
