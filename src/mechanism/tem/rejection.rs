//! Sampling the whole law from a word's list only, exactly. (An output is a word, or the rank of one
//! that a [cover](crate::cover) releases.)
//!
//! S is the sum of the list's weights, b a bound of the weight of every word outside. Draw u
//! below S + V·b. If u < S, release the list's word that it falls on. Otherwise
//! draw a word y uniformly from all V and accept it with probability W(d(w,y))/b, unless it is in
//! the list; else start again from the top. Every word is released in proportion to its weight,
//! for every ε and γ, γ = ∞ included, at one distance for a try outside the list. The integers
//! are those of [`law`](super::law), so the law does not depend on the list.
//!
//! A vocabulary can make the tries long (a dense cluster of more than k words, all else far
//! away). After as many of them as cost what the whole row costs, the draw is made from the row
//! instead: the tries were independent of what comes, so the law is the same.

use std::cmp::Ordering;

use rand::Rng;

use super::alias::AliasTable;
use super::covered::Head;
use super::law::{FLOOR_EXPONENT, Law, largest_exponent, weight};
use super::neighborhoods::List;
use crate::cover::Cover;
use crate::neighbors::Grid;
use crate::random::{continued, uniform_below, uniform_below_u128};

/// The part of the law that a list holds.
#[derive(Debug, Default)]
pub(super) struct ListLaw {
    /// The list's outputs nearer than the cap, where the weights still fall.
    falling: Law,
    /// The weight of the list's remaining outputs, all alike, and their sum.
    flat: u128,
    flat_sum: u128,
    /// What is outside: one class, or one for every class of a cover's weights; none where nothing is.
    outside: Vec<Class>,
    /// S + V·b, summed over the classes, and S alone.
    total: u128,
    inside: u128,
    /// For a law that is kept, in the place of `falling`: ⌊2⁶⁴·S/total⌋, and the list's table.
    table: Option<(u64, AliasTable)>,
    /// The list itself, where it is one of a cover's outputs.
    pub(super) head: Head,
}

/// Outputs outside a list, of like weights q.
#[derive(Clone, Copy, Debug)]
struct Class {
    /// The heaviest that one of them can be.
    envelope: u128,
    /// Where they start in the cover's order, and how many there are, those of the list included.
    first: u32,
    count: u32,
}

/// How a law is drawn: η = ε/2 and γ, the grid, the cover and its number of outputs (without one, the
/// words).
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) eta: f64,
    pub(super) gamma: f64,
    pub(super) grid: Grid,
    pub(super) cover: Option<&'a Cover>,
    pub(super) outputs: u32,
}

/// The law of a list's outputs among themselves, by their places.
fn whole(list: List, terms: Terms) -> Law {
    let Terms { eta, grid, .. } = terms;
    let cap = terms.cap();
    let mut law = Law::default();
    match terms.cover.and_then(Cover::penalties) {
        None => law.fill_with(list.entries, |entry| eta * grid.distance(entry).min(cap)),
        Some(penalties) => law.fill_with(list.entries, |entry| {
            eta * grid.distance(entry).min(cap) + penalties[grid.id(entry) as usize]
        }),
    }
    law
}

impl Terms<'_> {
    /// The distance from which on all weights are alike.
    fn cap(&self) -> f64 {
        self.gamma.min((FLOOR_EXPONENT + 0.01) / self.eta)
    }
}

impl ListLaw {
    /// The law of a list.
    pub(super) fn fill(&mut self, list: List, terms: Terms) {
        let Terms { eta, grid, .. } = terms;
        let cap = terms.cap();
        let entries = list.entries;
        let nearest_outside = grid.distance(list.end.saturating_sub(1));
        // The exponential is monotone only up to its rounding: leave room for it.
        let above = |exponent: f64| {
            let weight = weight(exponent);
            weight + (weight >> 48) + 1
        };
        self.outside.clear();
        match terms.cover.and_then(Cover::penalties) {
            None => {
                let falling = entries.partition_point(|&entry| grid.distance(entry) < cap);
                self.falling
                    .fill_with(&entries[..falling], |entry| eta * grid.distance(entry));
                self.flat = weight(eta * cap);
                self.flat_sum = self.flat * (entries.len() - falling) as u128;
                self.outside.push(Class {
                    envelope: match nearest_outside >= cap {
                        true => self.flat,
                        false => above(eta * nearest_outside),
                    },
                    first: 0,
                    count: terms.outputs,
                });
            }
            Some(penalties) => {
                self.falling.fill_with(entries, |entry| {
                    eta * grid.distance(entry).min(cap) + penalties[grid.id(entry) as usize]
                });
                (self.flat, self.flat_sum) = (1, 0);
                let mut first = 0;
                let classes = terms.cover.and_then(Cover::classes);
                for &(least, count) in classes.map_or(&[][..], |(_, classes)| classes) {
                    let envelope = above(eta * nearest_outside.min(cap) + least);
                    self.outside.push(Class {
                        envelope,
                        first,
                        count,
                    });
                    first += count;
                }
            }
        }
        if entries.len() == terms.outputs as usize {
            self.outside.clear();
        }
        let of = |class: &Class| class.envelope * u128::from(class.count);
        let outside: u128 = self.outside.iter().map(of).sum();
        self.inside = self.falling.total() + self.flat_sum;
        self.total = self.inside + outside;
        self.table = None;
    }

    /// Prepares for many draws, of the list that it was filled with (or of its own head).
    pub(super) fn index(&mut self, list: Option<List>, terms: Terms) {
        let table = AliasTable::new(&whole(list.unwrap_or_else(|| self.head.list()), terms));
        let mut share = (0, self.inside);
        for _ in 0..64 {
            // Long division. The total of 2²⁷ words of the largest weight is a little above 2¹²⁷, so
            // twice the remainder may carry.
            let carry = share.1 >> 127 == 1;
            share = (share.0 << 1, share.1 << 1);
            if carry || share.1 >= self.total {
                share = (share.0 | 1, share.1.wrapping_sub(self.total));
            }
        }
        self.table = Some((share.0, table));
        self.falling = Law::default();
        self.outside.shrink_to_fit();
        self.head.shrink();
    }

    /// About the bytes of a law that is kept, of a list of so many words.
    pub(super) fn bytes_of(length: usize) -> usize {
        size_of::<Self>() + AliasTable::bytes(length)
    }

    pub(super) fn bytes(&self) -> usize {
        let classes = size_of_val(&*self.outside);
        let table = self.table.as_ref().map_or(0, |(_, table)| table.size());
        size_of::<Self>() + table + classes + self.head.bytes()
    }

    /// The place in the list that a draw has landed on, or the class outside.
    #[inline]
    fn land(&self, list: List, terms: Terms, rng: &mut impl Rng) -> Result<usize, Class> {
        let Some((share, table)) = &self.table else {
            let u = uniform_below_u128(rng, self.total);
            let sum = self.falling.total();
            if u < sum {
                return Ok(self.falling.find(u) as usize);
            }
            if u < self.inside {
                return Ok(self.falling.len() + ((u - sum) / self.flat) as usize);
            }
            return Err(self.class(u - self.inside));
        };
        // u·total < S, with u known to 64 bits; where those do not decide, to all it takes.
        let x = rng.next_u64();
        let within = match x.cmp(share) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => self.inside == self.total || self.is_inside(x, rng),
        };
        if within {
            let mut place = 0;
            table.sample_many(1, rng, || whole(list, terms), |at| place = at as usize);
            return Ok(place);
        }
        Err(self.class(uniform_below_u128(rng, self.total - self.inside)))
    }

    /// Whether u·total < S, for a uniform u in [0, 1) whose first 64 bits are x.
    #[cold]
    fn is_inside(&self, x: u64, rng: &mut impl Rng) -> bool {
        let more = uniform_below_u128(rng, self.total);
        continued(x, self.total, more) < self.inside
    }

    /// The class outside that a part of their sum falls on.
    fn class(&self, mut rest: u128) -> Class {
        let mut landed = self.outside[0];
        for &class in &self.outside {
            landed = class;
            let all = class.envelope * u128::from(class.count);
            if rest < all {
                break;
            }
            rest -= all;
        }
        landed
    }

    /// One output, or `None` after `most` vain tries outside the list, and how many it made.
    /// `distance` is that to an output, rounded to the grid by this function; `beyond(y, limit)` may
    /// say that it is certainly more than `limit`.
    #[inline]
    pub(super) fn sample(
        &self,
        list: List,
        terms: Terms,
        rng: &mut impl Rng,
        most: u32,
        distance: impl Fn(u32) -> f64,
        beyond: impl Fn(u32, f64) -> bool,
    ) -> (Option<u32>, u32) {
        let Terms { eta, grid, .. } = terms;
        let penalties = terms.cover.and_then(Cover::penalties);
        let order = terms.cover.and_then(Cover::classes).map(|(order, _)| order);
        for tries in 0..most {
            let class = match self.land(list, terms, rng) {
                Ok(place) => {
                    // The minimum only matters for a file that was opened unverified and is
                    // damaged.
                    let y = grid.id(list.entries[place]).min(terms.outputs - 1);
                    return (Some(y), tries);
                }
                Err(class) => class,
            };
            let y = class.first + uniform_below(rng, class.count);
            let y = order.map_or(y, |order| order[y as usize]);
            let accept = uniform_below_u128(rng, class.envelope);
            let penalty = penalties.map_or(0.0, |penalties| penalties[y as usize]);
            // Accepted are distances up to a limit; most are beyond, and that is soon seen.
            let limit = (largest_exponent(accept) - penalty) / eta;
            if limit < terms.gamma && beyond(y, limit + grid.step()) {
                continue;
            }
            let entry = grid.entry(distance(y), y);
            let exponent = eta * grid.distance(entry).min(terms.gamma) + penalty;
            if entry >= list.end && accept < weight(exponent) {
                return (Some(y), tries + 1);
            }
        }
        (None, most)
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
            let list = List { entries: &entries[..k], end: entries[k - 1] + 1 };
            let terms = Terms { eta, gamma, grid, cover: None, outputs: words as u32 };
            let mut law = ListLaw::default();
            law.fill(list, terms);
            let of = |entry: u64| weight(eta * grid.distance(entry).min(gamma));
            let envelope = law.outside.first().map_or(0, |class| class.envelope);
            for &entry in &entries[k..] {
                prop_assert!(of(entry) <= envelope, "{} {}", of(entry), envelope);
            }
            // And it is tight: no more than the last weight of the list, but for rounding.
            prop_assert!(envelope <= of(entries[k - 1]) + (of(entries[k - 1]) >> 40) + 1);
            let inside: u128 = entries[..k].iter().map(|&entry| of(entry)).sum();
            prop_assert_eq!(law.total, inside + envelope * words as u128);
        }
    }

    /// Draws from a list have the law of the whole row: before and after its table is made, with words
    /// beyond γ in the list and outside, and with few tries, the rest being made from the row.
    #[test]
    fn draws_from_a_list_have_the_law_of_the_row() {
        let mut rng = crate::Randomness::new(Some(4))
            .next_key()
            .unwrap()
            .stream(0);
        let words = 60usize;
        let away = |y: u32| f64::from(y * 37 % 60) * 0.1;
        let grid = Grid::new(words, 40.0);
        let mut entries: Vec<u64> = (0..60).map(|y| grid.entry(away(y), y)).collect();
        entries.sort_unstable();
        for (k, gamma, eta) in [
            (20, 0.75, 1.0),
            (20, 3.5, 1.0),
            (60, 2.0, 2.0),
            (1, 9.0, 0.3),
            (3, 0.0, 1.0),
        ] {
            let list = List {
                entries: &entries[..k],
                end: entries[k - 1] + 1,
            };
            let terms = Terms {
                eta,
                gamma,
                grid,
                cover: None,
                outputs: words as u32,
            };
            let mut row = Law::default();
            row.fill_with(&entries, |entry| eta * grid.distance(entry).min(gamma));
            let mut expected = vec![0.0; words];
            for (&entry, p) in entries.iter().zip(row.probabilities()) {
                expected[grid.id(entry) as usize] = p;
            }
            let mut law = ListLaw::default();
            law.fill(list, terms);
            for indexed in [false, true] {
                if indexed {
                    law.index(Some(list), terms);
                }
                for most in [1, 3, 1000] {
                    let draws = 60_000;
                    let mut counts = vec![0u32; words];
                    let mut vain = 0;
                    for _ in 0..draws {
                        let beyond = |y, limit| away(y) > limit;
                        let (y, tries) = law.sample(list, terms, &mut rng, most, away, beyond);
                        assert!(tries <= most);
                        let y = y.unwrap_or_else(|| {
                            vain += 1;
                            assert_eq!(tries, most);
                            grid.id(entries[row.sample(&mut rng) as usize])
                        });
                        counts[y as usize] += 1;
                    }
                    assert!(most > 3 || k >= 20 || vain > 0);
                    let chi2: f64 = (counts.iter().zip(&expected))
                        .map(|(&c, p)| {
                            (f64::from(c) - p * f64::from(draws)).powi(2) / (p * f64::from(draws))
                        })
                        .sum();
                    // Wilson and Hilferty at 59 degrees: six deviations, false alarms below 1e-8.
                    let scale: f64 = 2.0 / (9.0 * 59.0);
                    let limit = 59.0 * (1.0 - scale + 6.0 * scale.sqrt()).powi(3);
                    assert!(
                        chi2 <= limit,
                        "{chi2}: k = {k}, γ = {gamma}, {indexed}, {most}"
                    );
                }
            }
        }
    }
}
