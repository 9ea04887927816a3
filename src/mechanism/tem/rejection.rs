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
use super::parameters::Parameters;
use super::tries::Outside;
use crate::law::Law;
use crate::law::alias::AliasTable;
use crate::law::base::shortened;
use crate::support::prefetch::prefetch;

/// The law of a list's outputs, by position, and of the outputs outside.
#[derive(Debug, Default)]
pub(super) struct ListLaw {
    law: Law,
    outside: Outside,
}

/// A list's law, kept for many draws. Fields that every draw reads come first.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct ListTable {
    outside: Outside,
    /// The alias table over the list's positions, and the outputs at these positions.
    table: AliasTable,
    outputs: Box<[u32]>,
}

/// Fills in the weights Q·F of a list's outputs among themselves.
pub(super) fn weigh(list: List, parameters: Parameters, law: &mut Law) {
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
        weigh(list, parameters, &mut self.law);
        let cap = parameters.cap();
        let nearest_outside = parameters.grid.distance(list.end.saturating_sub(1));
        let envelope = match nearest_outside >= cap {
            _ if list.entries.len() >= parameters.outputs as usize => 0,
            true => parameters.factor(cap),
            false => parameters.most_factor(nearest_outside),
        };
        let inside = self.law.total();
        self.outside = Outside::new(list.end, inside, envelope, parameters.mass);
    }

    /// Builds the table for many draws from the list it was filled with; leaves itself empty.
    pub(super) fn table(&mut self, list: List, parameters: Parameters) -> ListTable {
        let outputs = list.entries.iter().map(|&entry| parameters.output(entry));
        ListTable {
            table: AliasTable::new(&self.law),
            outputs: outputs.collect(),
            outside: std::mem::take(&mut self.outside),
        }
    }

    /// Draws from the list it was filled with, as [`ListTable::sample`] does.
    #[inline]
    pub(super) fn sample<R: Rng>(
        &self,
        list: List,
        parameters: Parameters,
        rng: &mut R,
        counts: (usize, u32),
        distances: &impl Fn(&[u32], &mut [f64]),
        drawn: impl FnMut(u32),
    ) -> (usize, u32) {
        let listed = |x: u64, rng: &mut R| {
            let place = self.law.sample_by(x, rng);
            parameters.output(list.entries[place as usize])
        };
        let inside = (listed, |_| ());
        let outside = &self.outside;
        outside.sample::<8, _>(parameters, rng, counts, inside, distances, drawn)
    }
}

impl ListTable {
    /// Approximate bytes of a table of a list of `length` words.
    pub(super) fn bytes_of(length: usize) -> usize {
        size_of::<Self>() + 4 * length + AliasTable::bytes(length)
    }

    /// Draws up to `left` outputs in order, with at most `most` failed tries. Returns how many are
    /// still missing, and the number of tries. `list` recomputes the list's law.
    #[inline]
    pub(super) fn sample<R: Rng>(
        &self,
        list: impl Fn() -> Law,
        parameters: Parameters,
        rng: &mut R,
        counts: (usize, u32),
        distances: &impl Fn(&[u32], &mut [f64]),
        drawn: impl FnMut(u32),
    ) -> (usize, u32) {
        let outside = &self.outside;
        let listed =
            |x: u64, rng: &mut R| self.outputs[self.table.sample_by(x, rng, &list) as usize];
        let fetch = |x| prefetch(&raw const self.outputs[self.table.prefetch_at(x)]);
        let inside = (listed, fetch);
        // A draw takes at most 2⁶⁴/share tries, and rarely more than a third of them.
        let each = (u64::MAX / outside.share().max(1)).min(48) as usize / 3;
        match counts.0.saturating_mul(each) {
            0 => outside.sample::<2, _>(parameters, rng, counts, inside, distances, drawn),
            1..=8 => outside.sample::<8, _>(parameters, rng, counts, inside, distances, drawn),
            _ => outside.sample::<16, _>(parameters, rng, counts, inside, distances, drawn),
        }
    }

    /// Prefetches the data that every draw reads.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(self);
        prefetch(&raw const self.outputs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::neighbors::Grid;
    use crate::law::base::BaseMeasure;
    use crate::law::weight;
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
            let outside = envelope * words as u128;
            prop_assert_eq!(envelope > 0, k < words);
            let inside: u128 = entries[..k].iter().map(|&entry| of(entry)).sum();
            prop_assert_eq!(law.outside.sums(), (inside, inside + outside));
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
                        let again = || {
                            let mut law = Law::default();
                            weigh(list, parameters, &mut law);
                            law
                        };
                        // Draw one at a time, or several.
                        let wanted = if most == 3 { 1 } else { missing.min(7) };
                        let (counts, drawn) = ((wanted, most), &mut count);
                        let (left, tries) =
                            match &table {
                                Some(table) => table
                                    .sample(again, parameters, &mut rng, counts, &distances, drawn),
                                None => law
                                    .sample(list, parameters, &mut rng, counts, &distances, drawn),
                            };
                        assert!(tries <= most);
                        missing -= wanted - left;
                        if left > 0 {
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
