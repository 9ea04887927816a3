//! Samples the whole law exactly from a word's list alone. An output is a word, or the rank of a
//! word that a [cover](crate::cover) releases.
//!
//! Let S be the sum of the list's weights, Q the sum of the base measure over all words (their number
//! V, without one), and b a bound on F of every word outside. Draw u below S + Q·b. If u < S, release
//! the list's word that u falls on. Otherwise draw a word y by the base measure from all words and
//! accept it with probability F(d(w,y))/b, unless it is in the list; if it is not accepted, start
//! again. Every word is then released in proportion to its weight, for
//! every ε and γ, including γ = ∞. A try outside the list costs one distance. The integers are
//! those of [`law`](super::law), so the law does not depend on the list.
//!
//! Some vocabularies make the tries long, such as a dense cluster of more than k words with all
//! others far away. After tries that cost as much as the whole row, the draw is made from the row
//! instead. The failed tries are independent of what follows, so the law is the same.

use rand::Rng;

use super::neighborhoods::List;
use super::outside::{ListShare, OutsideList};
use super::parameters::Parameters;
use crate::law::alias::AliasTable;
use crate::law::base::shortened;
use crate::law::{Law, weight};
use crate::support::prefetch::prefetch;
use crate::support::random::{uniform_below, uniform_below_u128};

/// The law of a list's outputs and of the outputs outside, as it is built.
#[derive(Debug, Default)]
pub(super) struct ListLaw {
    /// The number of the list's outputs nearer than the cap, where weights still fall, and the
    /// envelopes of their blocks.
    falling: usize,
    envelopes: Law,
    /// Memory for the entries behind the envelopes.
    heads: Vec<u64>,
    /// The common weight of the list's remaining outputs, and their sum.
    flat: u128,
    flat_sum: u128,
    outside: OutsideList,
}

/// The index of a block's first output. A block shares an envelope, the weight of its nearest
/// output, so a word that is drawn once needs few weights. An output in a block is accepted in
/// proportion to its weight, like the outputs outside. Weights fall fast at first and slowly later,
/// so blocks begin at 0, 1, 2, 4, 8, ….
fn first_of(block: usize) -> usize {
    match block {
        0 => 0,
        _ => 1 << (block - 1),
    }
}

/// A list's law, kept for many draws. Fields that every draw reads come first.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct ListTable {
    pub(super) outside: OutsideList,
    pub(super) share: ListShare,
    /// The alias table over the list's positions, and the outputs at these positions.
    table: AliasTable,
    outputs: Box<[u32]>,
}

/// The law of a list's outputs among themselves, by position.
pub(super) fn whole(list: List, parameters: Parameters) -> Law {
    let mut law = Law::default();
    weigh(list, parameters, &mut law);
    law
}

/// Fills in the weights Q·F of a list's outputs.
fn weigh(list: List, parameters: Parameters, law: &mut Law) {
    let Parameters { eta, grid, .. } = parameters;
    let cap = parameters.cap();
    law.fill_with(list.entries, |entry| eta * grid.distance(entry).min(cap));
    if let Some(base) = parameters.base {
        law.change(|place, weight| {
            shortened(weight, base.shift())
                * parameters.share(parameters.output(list.entries[place]))
        });
    }
}

impl ListLaw {
    /// Computes the law of a list.
    pub(super) fn fill(&mut self, list: List, parameters: Parameters) {
        let Parameters { eta, grid, .. } = parameters;
        let cap = parameters.cap();
        let entries = list.entries;
        let flat = parameters.factor(cap);
        match parameters.base {
            None => {
                self.falling = entries.partition_point(|&entry| grid.distance(entry) < cap);
                let heads = (0..)
                    .map(first_of)
                    .take_while(|&first| first < self.falling);
                self.heads.clear();
                self.heads.extend(heads.map(|first| entries[first]));
                self.envelopes
                    .fill_with(&self.heads, |entry| eta * grid.distance(entry));
                let falling = self.falling;
                self.envelopes.change(|block, weight| {
                    let count = first_of(block + 1).min(falling) - first_of(block);
                    // A block of one output is released without reading its weight. Otherwise, room
                    // for the rounding of the exponential, which is monotone only up to that.
                    let more = if count == 1 { 0 } else { (weight >> 48) + 1 };
                    (weight + more) * count as u128
                });
                (self.flat, self.flat_sum) = (flat, flat * (entries.len() - self.falling) as u128);
            }
            // Compute each weight by itself: they are not in order.
            Some(_) => {
                self.falling = entries.len();
                weigh(list, parameters, &mut self.envelopes);
                (self.flat, self.flat_sum) = (1, 0);
            }
        }
        let nearest_outside = grid.distance(list.end.saturating_sub(1));
        let envelope = match nearest_outside >= cap {
            true => flat,
            false => parameters.most_factor(nearest_outside),
        };
        let any_outside = entries.len() < parameters.outputs as usize;
        self.outside
            .fill(list.end, any_outside.then_some(envelope), parameters);
    }

    /// Builds the table for many draws from the list it was filled with; leaves itself empty.
    pub(super) fn table(&mut self, list: List, parameters: Parameters) -> ListTable {
        let law = whole(list, parameters);
        let inside = law.total();
        let total = inside + self.outside.sum();
        let outputs = list.entries.iter().map(|&entry| parameters.output(entry));
        ListTable {
            share: ListShare::new(inside, total),
            table: AliasTable::new(&law),
            outputs: outputs.collect(),
            outside: std::mem::take(&mut self.outside),
        }
    }

    /// Draws one output from the list it was filled with, and returns the number of tries outside
    /// the list; `None` after `most` failed tries.
    #[inline]
    pub(super) fn sample(
        &self,
        list: List,
        parameters: Parameters,
        rng: &mut impl Rng,
        most: u32,
        distances: &impl Fn(&[u32], &mut [f64]),
    ) -> (Option<u32>, u32) {
        let falling = self.envelopes.total();
        let inside = falling + self.flat_sum;
        let total = inside + self.outside.sum();
        let in_blocks = parameters.base.is_none();
        let land = |rng: &mut _| {
            loop {
                let u = uniform_below_u128(rng, total);
                let place = if u < falling {
                    let block = self.envelopes.find(u);
                    match in_blocks {
                        false => block as usize,
                        true => match self.accepted_of(block, list, parameters, rng) {
                            Some(place) => place,
                            None => continue,
                        },
                    }
                } else if u < inside {
                    self.falling + ((u - falling) / self.flat) as usize
                } else {
                    return None;
                };
                return Some(parameters.output(list.entries[place]));
            }
        };
        self.outside.sample(parameters, rng, most, land, distances)
    }

    /// Draws a position of a block, if it is accepted.
    #[inline]
    fn accepted_of(
        &self,
        block: u32,
        list: List,
        parameters: Parameters,
        rng: &mut impl Rng,
    ) -> Option<usize> {
        let (first, end) = (first_of(block as usize), first_of(block as usize + 1));
        let count = (self.falling.min(end) - first) as u32;
        if count == 1 {
            return Some(first);
        }
        let place = first + uniform_below(rng, count) as usize;
        let envelope = self.envelopes.weight(block) / u128::from(count);
        let weight = weight(parameters.eta * parameters.grid.distance(list.entries[place]));
        (uniform_below_u128(rng, envelope) < weight).then_some(place)
    }
}

impl ListTable {
    /// Approximate bytes of a table of a list of `length` words.
    pub(super) fn bytes_of(length: usize) -> usize {
        size_of::<Self>() + 4 * length + AliasTable::bytes(length)
    }

    pub(super) fn bytes(&self) -> usize {
        let own = size_of::<Self>() + size_of_val(&*self.outputs);
        own + self.table.size()
    }

    /// Draws up to `left` outputs in order, with at most `most` failed tries. Returns how many are
    /// still missing, and the number of tries. `list` recomputes the list's law.
    #[inline]
    pub(super) fn sample(
        &self,
        list: impl Fn() -> Law,
        parameters: Parameters,
        rng: &mut impl Rng,
        (mut left, most): (usize, u32),
        distances: &impl Fn(&[u32], &mut [f64]),
        mut drawn: impl FnMut(u32),
    ) -> (usize, u32) {
        let share = &self.share;
        if self.outside.mass > 0 && share.first >> 63 == 0 {
            let counts = (left, most);
            // A draw takes at most 2⁶⁴/share tries, and rarely more than a third of them.
            let each = (u64::MAX / share.first.max(1)).min(48) as usize / 3;
            return match left.saturating_mul(each) <= 8 {
                true => self.sample_many::<8, _>(list, parameters, rng, counts, distances, drawn),
                false => self.sample_many::<16, _>(list, parameters, rng, counts, distances, drawn),
            };
        }
        let mut tries = 0;
        while left > 0 && tries < most {
            let land = |rng: &mut _| {
                let within = share.is_inside(rng);
                within.then(|| self.inside(Rng::next_u64(rng), &list, rng))
            };
            let (y, made) = self
                .outside
                .sample(parameters, rng, most - tries, land, distances);
            tries += made;
            if let Some(y) = y {
                drawn(y);
                left -= 1;
            }
        }
        (left, tries)
    }

    /// Draws an output of the list by bits x, and further bits if needed.
    #[inline]
    pub(super) fn inside(&self, x: u64, list: impl Fn() -> Law, rng: &mut impl Rng) -> u32 {
        self.outputs[self.table.sample_by(x, rng, list) as usize]
    }

    /// Prefetches the data that [`inside`](Self::inside) reads.
    #[inline]
    pub(super) fn prefetch_at(&self, x: u64) {
        let at = self.table.prefetch_at(x);
        prefetch(&raw const self.outputs[at]);
    }

    /// Prefetches the data that every draw reads.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(self);
        prefetch(&raw const self.share);
        prefetch(&raw const self.outputs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::neighbors::Grid;
    use crate::law::base::BaseMeasure;
    use crate::testing::assert_law;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        /// Tested here because an envelope that is slightly too low skews the law by less than
        /// draws can show.
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
            let parameters = Parameters { eta, gamma, grid, cover: None, base: None, mass: words as u64, outputs: words as u32 };
            let mut law = ListLaw::default();
            law.fill(list, parameters);
            let of = |entry: u64| weight(eta * grid.distance(entry).min(gamma));
            let envelope = law.outside.envelope();
            for &entry in &entries[k..] {
                prop_assert!(of(entry) <= envelope, "{} {}", of(entry), envelope);
            }
            // The envelope is also tight: up to rounding, no more than the last weight of the list.
            prop_assert!(envelope <= of(entries[k - 1]) + (of(entries[k - 1]) >> 40) + 1);
            for block in (0..).take_while(|&block| first_of(block) < law.falling) {
                let some = &entries[first_of(block)..first_of(block + 1).min(law.falling)];
                let block = block as u32;
                let envelope = law.envelopes.weight(block) / some.len() as u128;
                prop_assert!(some.iter().all(|&entry| of(entry) <= envelope));
                prop_assert!(some.len() > 1 || envelope == of(some[0]));
                prop_assert!(envelope <= of(some[0]) + (of(some[0]) >> 40) + 1);
            }
            let outside = law.outside.sum();
            prop_assert_eq!(outside, envelope * words as u128 * u128::from(k < words));
            let inside: u128 = entries[..k].iter().map(|&entry| of(entry)).sum();
            let table = law.table(list, parameters);
            prop_assert_eq!(table.share.sums(), (inside, inside + outside));
        }
    }

    /// Draws from a list have the law of the row. Cases: before and after the table is built, words
    /// beyond γ in the list and outside, and few tries with the rest drawn from the row.
    #[test]
    fn draws_from_a_list_have_the_law_of_the_row() {
        let mut rng = crate::testing::rng(4);
        let words = 60usize;
        fn away(y: u32) -> f64 {
            f64::from(y * 37 % 60) * 0.1
        }
        let distances = |outputs: &[u32], out: &mut [f64]| {
            out.iter_mut()
                .zip(outputs)
                .for_each(|(out, &y)| *out = away(y));
        };
        let grid = Grid::new(words, 40.0);
        let mut entries: Vec<u64> = (0..60).map(|y| grid.entry(away(y), y)).collect();
        entries.sort_unstable();
        let weights: Vec<f64> = (0..60).map(|y| 1.0 / f64::from(1 + y * 37 % 60)).collect();
        let zipf = BaseMeasure::new(&weights).unwrap();
        let cases = [
            (20, 0.75, 1.0),
            (20, 3.5, 1.0),
            (60, 2.0, 2.0),
            (1, 9.0, 0.3),
            (3, 0.0, 1.0),
        ];
        let uniform = cases.map(|case| (case, None));
        let all = uniform
            .into_iter()
            .chain(cases.map(|case| (case, zipf.as_ref())));
        for ((k, gamma, eta), base) in all {
            let list = List {
                entries: &entries[..k],
                end: entries[k - 1] + 1,
            };
            let parameters = Parameters {
                eta,

                gamma,
                grid,
                cover: None,
                base,
                mass: base.map_or(words as u64, BaseMeasure::total),
                outputs: words as u32,
            };
            let mut row = Law::default();
            row.fill_with(&entries, |entry| eta * grid.distance(entry).min(gamma));
            if let Some(base) = base {
                row.change(|place, weight| {
                    let share = u128::from(base.weight(grid.id(entries[place])));
                    shortened(weight, base.shift()) * share
                });
            }
            let mut expected = vec![0.0; words];
            for (&entry, p) in entries.iter().zip(row.probabilities()) {
                expected[grid.id(entry) as usize] = p;
            }
            let mut law = ListLaw::default();
            law.fill(list, parameters);
            for indexed in [false, true] {
                let table = indexed.then(|| law.table(list, parameters));
                for most in [1, 3, 1000] {
                    let draws = 60_000u32;
                    let mut counts = vec![0u32; words];
                    let mut vain = 0;
                    let mut missing = draws as usize;
                    let mut count = |y: u32| counts[y as usize] += 1;
                    while missing > 0 {
                        let again = || whole(list, parameters);
                        // Draw one at a time, or several.
                        let wanted = if most == 3 { 1 } else { missing.min(7) };
                        let (left, tries) = match &table {
                            Some(table) => {
                                let counts = (wanted, most);
                                table.sample(
                                    again, parameters, &mut rng, counts, &distances, &mut count,
                                )
                            }
                            None => {
                                let (y, tries) =
                                    law.sample(list, parameters, &mut rng, most, &distances);
                                y.into_iter().for_each(&mut count);
                                (wanted - usize::from(y.is_some()), tries)
                            }
                        };
                        assert!(tries <= most);
                        missing -= wanted - left;
                        if left > 0 && (table.is_some() || left == wanted) {
                            vain += 1;
                            assert_eq!(tries, most);
                            count(grid.id(entries[row.sample(&mut rng) as usize]));
                            missing -= 1;
                        }
                    }
                    assert!(most > 3 || k >= 20 || vain > 0);
                    let what = format!(
                        "k = {k}, γ = {gamma}, {indexed}, {most}, {}",
                        base.is_some()
                    );
                    assert_law(&counts, &expected, &what);
                }
            }
        }
    }
}
