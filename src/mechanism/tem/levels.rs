//! Draws from a word's whole law by levels of weight: exact draws by 64 random bits, about two bytes
//! for each output, and rough distances to build it.
//!
//! The outputs are ordered by their weights, roughly, and cut into levels of similar weight (Matias,
//! Vitter and Ni 2003, Theory Comput. Syst. 36). A table has 256 parts of equal mass M. A level of n
//! outputs has k of the parts, so that n·C ≤ k·M, where C is a bound on the weights in it. A draw
//! takes any part and any output y of its level, all equally likely, and accepts the output with
//! probability n·W(y)/(k·M). Otherwise it starts again. So an output is released with probability
//!
//! > k/256 · 1/n · n·W(y)/(k·M) = W(y)/(256·M),
//!
//! in proportion to its weight. M and the weights are integers, and the probability is taken exactly:
//! with u uniform in \[0, 1), the output is accepted if ⌊u·k·M⌋ < n·W(y).
//!
//! Few draws need the weight W(y). A part stores two limits for the first 16 bits of u: below the
//! one, every output of the level is accepted, above the other none is. The levels come from
//! exponents that are known roughly, and the limits leave room for the errors. An error changes how
//! many draws need a weight, or start again, never the law.

use rand::Rng;

use super::level_cuts::{BINS, Bins, Group, LAST, ROUNDING, counts, levels, ordered};
use crate::support::prefetch::prefetch;
use crate::support::random::{continued, uniform_below, uniform_below_u128};

/// log₂ of the number of parts of a table.
const LOG2_PARTS: u32 = 8;
const PARTS: usize = 1 << LOG2_PARTS;

/// The outputs of one law by levels of weight.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct LevelTable {
    parts: [Part; PARTS],
    /// The mass of a part.
    mass: u128,
    /// The outputs, level by level.
    outputs: Outputs,
}

/// A part of the mass, and its level. Parts that are left over have no outputs.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// The place of the level's first output, the number of its outputs, and the number of its
    /// parts.
    first: u32,
    count: u32,
    parts: u32,
    /// Limits for the first 16 bits of u: below `sure`, an output is certainly accepted; above
    /// `last`, it certainly is not.
    sure: u16,
    last: u16,
}

/// The decision that the first 64 bits of a draw allow, if any.
#[derive(Clone, Copy, Default)]
struct Decided {
    accepted: bool,
    refused: bool,
}

#[derive(Debug)]
enum Outputs {
    Narrow(Box<[u16]>),
    Wide(Box<[u32]>),
}

/// The largest number of outputs that take two bytes each.
const MAX_NARROW: usize = 1 << 16;

/// An output, and the number that `times` times its weight must exceed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    pub(super) output: u32,
    pub(super) times: u32,
    pub(super) number: u128,
}

impl LevelTable {
    /// Draws of a word whose outputs are fetched at once.
    pub(super) const DRAWS_PER_BATCH: usize = 32;

    /// Builds the table of a law from the bin of each output.
    pub(super) fn new(bins: &Bins, each: &[u8]) -> Self {
        let counts = counts(each);
        let mut starts = [0; BINS];
        let mut sum = 0;
        for (start, &count) in starts.iter_mut().zip(&counts) {
            *start = sum;
            sum += count;
        }
        let outputs = match each.len() <= MAX_NARROW {
            true => Outputs::Narrow(ordered(each, &mut starts, |y| y as u16)),
            false => Outputs::Wide(ordered(each, &mut starts, |y| y)),
        };
        let groups: Vec<Group> = (0..=LAST)
            .zip(counts)
            .filter(|&(_, count)| count > 0)
            .map(|(bin, count)| {
                let (least, most) = bins.between(bin);
                Group { count, least, most }
            })
            .collect();
        let mut table = LevelTable {
            parts: [Part::default(); PARTS],
            mass: 0,
            outputs,
        };
        table.fill(&groups);
        table
    }

    /// Fills in the parts.
    fn fill(&mut self, groups: &[Group]) {
        let sum: f64 = groups
            .iter()
            .map(|group| f64::from(group.count) * group.most)
            .sum();
        // Levels do not fill their parts quite.
        let mut mass = sum * (1.01 / PARTS as f64);
        loop {
            self.mass = mass.ceil() as u128;
            let mut parts = 0;
            levels(groups, self.mass as f64, |level| {
                parts += level.parts as usize
            });
            if parts <= PARTS {
                break;
            }
            mass *= (parts as f64 / PARTS as f64).clamp(1.01, 2.0);
        }
        let mass = self.mass as f64;
        let (mut slots, mut first) = (self.parts.iter_mut(), 0);
        levels(groups, mass, |level| {
            let all = f64::from(1 << 16) * f64::from(level.count) / (f64::from(level.parts) * mass);
            let part = Part {
                first,
                count: level.count,
                parts: level.parts,
                // Conversions saturate.
                sure: (all * level.least * (1.0 - ROUNDING)) as u16,
                last: (all * level.most * (1.0 + ROUNDING)) as u16,
            };
            let own = slots.by_ref().take(level.parts as usize);
            own.for_each(|slot| *slot = part);
            first += level.count;
        });
    }

    /// Bytes of a table of so many outputs.
    pub(super) fn bytes(outputs: usize) -> usize {
        size_of::<Self>() + outputs * if outputs <= MAX_NARROW { 2 } else { 4 }
    }

    /// The part that x selects.
    #[inline(always)]
    fn part(&self, x: u64) -> &Part {
        &self.parts[(x >> (64 - LOG2_PARTS)) as usize]
    }

    /// The place that x selects, and what is decided. Nothing here branches: draws wait for memory
    /// together.
    #[inline(always)]
    fn place(&self, x: u64) -> (usize, Decided) {
        let part = self.part(x);
        let product = u64::from(x as u32) * u64::from(part.count);
        let bits = bits_of(x);
        // A low half below the count may be one of those that would cause a bias.
        let accepted = (bits < part.sure) & (product as u32 >= part.count);
        let decided = Decided {
            accepted,
            refused: bits > part.last,
        };
        (part.first as usize + (product >> 32) as usize, decided)
    }

    /// Prefetches the part that x selects.
    #[inline]
    pub(super) fn prefetch_part(&self, x: u64) {
        prefetch(self.part(x));
    }

    /// Prefetches the output that x selects.
    #[inline]
    pub(super) fn prefetch_at(&self, x: u64) {
        let (place, _) = self.place(x);
        match &self.outputs {
            Outputs::Narrow(outputs) => prefetch(outputs.as_ptr().wrapping_add(place)),
            Outputs::Wide(outputs) => prefetch(outputs.as_ptr().wrapping_add(place)),
        }
    }

    /// Draws one output with x as the first 64 bits. `outweigh` compares up to
    /// [`DRAWS_PER_BATCH`](Self::DRAWS_PER_BATCH) weights: bit i is set if that of `asked[i]` is large
    /// enough.
    #[inline]
    pub(super) fn sample_by(
        &self,
        x: u64,
        rng: &mut impl Rng,
        outweigh: impl Fn(&[Asked]) -> u64,
    ) -> u32 {
        match &self.outputs {
            Outputs::Narrow(outputs) => self.sample_from(outputs, x, rng, outweigh),
            Outputs::Wide(outputs) => self.sample_from(outputs, x, rng, outweigh),
        }
    }

    #[inline]
    fn sample_from<T: Copy + Into<u32>>(
        &self,
        outputs: &[T],
        mut x: u64,
        rng: &mut impl Rng,
        outweigh: impl Fn(&[Asked]) -> u64,
    ) -> u32 {
        loop {
            let (place, decided) = self.place(x);
            if decided.accepted {
                return outputs[place].into();
            }
            if !decided.refused
                && let Some(asked) = self.ask(outputs, x, rng)
                && outweigh(&[asked]) == 1
            {
                return asked.output;
            }
            x = rng.next_u64();
        }
    }

    /// Draws `count` outputs.
    pub(super) fn sample_many(
        &self,
        count: usize,
        rng: &mut impl Rng,
        outweigh: impl Fn(&[Asked]) -> u64,
        drawn: impl FnMut(u32),
    ) {
        match &self.outputs {
            Outputs::Narrow(outputs) => self.many_from(outputs, count, rng, outweigh, drawn),
            Outputs::Wide(outputs) => self.many_from(outputs, count, rng, outweigh, drawn),
        }
    }

    fn many_from<T: Copy + Into<u32>>(
        &self,
        outputs: &[T],
        count: usize,
        rng: &mut impl Rng,
        outweigh: impl Fn(&[Asked]) -> u64,
        mut drawn: impl FnMut(u32),
    ) {
        // A table is larger than the nearest cache.
        const BATCH: usize = LevelTable::DRAWS_PER_BATCH;
        let mut rest = count;
        let (mut xs, mut places) = ([0; BATCH], [(0, Decided::default()); BATCH]);
        // The outputs in the order of the draws.
        let mut ys = [0; BATCH];
        // The questions about open draws, and the draws that they belong to.
        let (mut asked, mut which) = ([Asked::default(); BATCH], [0; BATCH]);
        while rest > 0 {
            let some = rest.min(BATCH);
            let (xs, places) = (&mut xs[..some], &mut places[..some]);
            rng.fill_bytes(bytemuck::cast_slice_mut(xs));
            xs.iter().for_each(|&x| prefetch(self.part(x)));
            // A load would keep the following draws waiting, a prefetch does not.
            for (place, &x) in places.iter_mut().zip(&*xs) {
                *place = self.place(x);
                prefetch(outputs.as_ptr().wrapping_add(place.0));
            }
            let (mut released, mut open) = (0u64, 0);
            for (i, (&(place, decided), &x)) in places.iter().zip(&*xs).enumerate() {
                if decided.accepted {
                    ys[i] = outputs[place].into();
                    released |= 1 << i;
                } else if !decided.refused
                    && let Some(each) = self.ask(outputs, x, rng)
                {
                    ys[i] = each.output;
                    (asked[open], which[open]) = (each, i);
                    open += 1;
                }
            }
            if open > 0 {
                let enough = outweigh(&asked[..open]);
                for (at, i) in which[..open].iter().enumerate() {
                    released |= (enough >> at & 1) << i;
                }
            }
            // In the order of the draws: open ones have other outputs than the rest.
            for (i, &y) in ys[..some].iter().enumerate() {
                if released >> i & 1 == 1 {
                    drawn(y);
                }
            }
            rest -= released.count_ones() as usize;
        }
    }

    /// Returns the question whose answer decides an open draw; `None` if the draw is refused.
    #[cold]
    fn ask<T: Copy + Into<u32>>(&self, outputs: &[T], x: u64, rng: &mut impl Rng) -> Option<Asked> {
        let &Part {
            first,
            count,
            parts,
            sure,
            ..
        } = self.part(x);
        if count == 0 {
            return None;
        }
        let product = u64::from(x as u32) * u64::from(count);
        let mut place = (product >> 32) as u32;
        if (product as u32) < count.wrapping_neg() % count {
            place = uniform_below(rng, count);
        }
        let whole = self.mass * u128::from(parts);
        let u = u64::from(bits_of(x)) << 48 | rng.next_u64() >> 16;
        let number = match bits_of(x) < sure {
            // Every weight is above 0.
            true => 0,
            false => continued(u, whole, uniform_below_u128(rng, whole)),
        };
        Some(Asked {
            output: outputs[(first + place) as usize].into(),
            times: count,
            number,
        })
    }
}

/// The 16 bits behind those that select a part.
#[inline(always)]
fn bits_of(x: u64) -> u16 {
    (x >> (48 - LOG2_PARTS)) as u16
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;
    use rand::RngExt;

    use super::super::level_cuts::MOST_ERROR;
    use super::*;
    use crate::law::base::{BaseMeasure, shortened};
    use crate::law::weight;
    use crate::testing::assert_law;

    impl LevelTable {
        fn order(&self) -> Vec<u32> {
            match &self.outputs {
                Outputs::Narrow(outputs) => outputs.iter().map(|&y| y.into()).collect(),
                Outputs::Wide(outputs) => outputs.to_vec(),
            }
        }

        /// Checks all that the law of the draws follows from, against the exact weights.
        pub(in crate::mechanism::tem) fn check(&self, weight: impl Fn(u32) -> u128) {
            let order = self.order();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..order.len() as u32));
            let mut parts = self.parts.iter().peekable();
            let mut first = 0;
            while let Some(&part) = parts.next().filter(|part| part.count > 0) {
                assert_eq!(part.first, first);
                first += part.count;
                for _ in 1..part.parts {
                    let same = parts.next().expect("as many as it says");
                    assert_eq!((same.first, same.count), (part.first, part.count));
                    assert_eq!(
                        (same.sure, same.last, same.parts),
                        (part.sure, part.last, part.parts)
                    );
                }
                let whole = self.mass * u128::from(part.parts);
                let own = &order[part.first as usize..first as usize];
                for mass in own.iter().map(|&y| weight(y) * u128::from(part.count)) {
                    assert!(mass <= whole);
                    if let Some(highest) = u64::from(part.sure).checked_sub(1) {
                        assert!(continued(highest << 48 | u64::MAX >> 16, whole, whole - 1) < mass);
                    }
                    if let Some(lowest) = part.last.checked_add(1) {
                        assert!(continued(u64::from(lowest) << 48, whole, 0) >= mass);
                    }
                }
            }
            assert_eq!(first as usize, order.len());
            assert!(parts.all(|part| part.count == 0));
        }

        /// The share of draws that are accepted by their first 64 bits, and of those that are open.
        fn shares(&self) -> (f64, f64) {
            let share = |of: fn(&Part) -> u16| {
                let all = self.parts.iter().map(of).map(f64::from);
                all.sum::<f64>() / (PARTS as f64 * f64::from(1 << 16))
            };
            let sure = share(|part| part.sure);
            (sure, share(|part| part.last) - sure)
        }
    }

    /// The table of some exponents η·d, which the bins know with errors.
    fn table(eta: f64, gamma: f64, distances: &[f64], error: impl Fn(usize) -> f64) -> LevelTable {
        let farthest = distances.iter().fold(0.0, |a: f64, &b| a.max(b));
        let bins = Bins::new(eta, gamma, None, eta * farthest);
        let each = distances.iter().enumerate();
        let each: Vec<u8> = each
            .map(|(i, d)| bins.bin(eta * d * (1.0 + error(i)), 0.0))
            .collect();
        LevelTable::new(&bins, &each)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        /// Every draw is decided as the exact weight decides, whatever bits follow.
        #[test]
        fn the_parts_hold_the_weights(
            distances in prop_oneof![
                proptest::collection::vec(
                    prop_oneof![0.0..20.0f64, 3.0..3.001f64, Just(0.0), Just(3.0)], 1..700),
                (1usize..3000, 0.0..3.0f64).prop_map(|(count, d)| vec![d; count]),
                proptest::collection::vec(4.0..6.0f64, 1000..3000),
            ],
            eta in prop_oneof![1e-300..1e-9f64, 1e-3..1.0f64, 1.0..60.0f64, 1e9..1e12f64],
            gamma in prop_oneof![Just(f64::INFINITY), Just(0.0), 0.0..10.0f64],
            error in -MOST_ERROR..MOST_ERROR
        ) {
            let signs = |i: usize| if i.is_multiple_of(3) { error } else { -error };
            let exact = |y: u32| weight(eta * distances[y as usize].min(gamma));
            table(eta, gamma, &distances, signs).check(exact);
        }

        /// The same with a base measure, where some exponents may be beyond the reach.
        #[test]
        fn the_parts_hold_the_weights_of_a_base_measure(
            outputs in proptest::collection::vec(
                (prop_oneof![0.0..20.0f64, 0.0..100.0f64, Just(0.0), Just(1e9)],
                 prop_oneof![1e-6..1.0f64, Just(1.0), Just(1e-6)]), 2..700),
            eta in prop_oneof![1e-3..1.0f64, 1.0..60.0f64],
            gamma in prop_oneof![Just(f64::INFINITY), 0.0..10.0f64],
            reach in 0.0..60.0f64
        ) {
            let (distances, weights): (Vec<f64>, Vec<f64>) = outputs.into_iter().unzip();
            let Some(base) = BaseMeasure::new(&weights).unwrap() else { return Ok(()) };
            let bins = Bins::new(eta, gamma, Some(&base), reach);
            let each = distances.iter().zip(base.penalties());
            let each: Vec<u8> = each.map(|(&d, &c)| bins.bin(eta * d, c)).collect();
            LevelTable::new(&bins, &each).check(|y| {
                let factor = weight(eta * distances[y as usize].min(gamma));
                shortened(factor, base.shift()) * u128::from(base.weight(y))
            });
        }
    }

    fn random(count: usize, seed: u64) -> Vec<f64> {
        let mut rng = crate::testing::rng(seed);
        (0..count)
            .map(|_| 2.0 + 3.0 * rng.random::<f64>().sqrt())
            .collect()
    }

    #[test]
    fn most_draws_are_decided_at_once() {
        let mut distances = random(20_000, 1);
        distances[0] = 0.0;
        for (eta, least, most) in [(0.5, 0.93, 0.04), (1.5, 0.85, 0.08), (5.0, 0.8, 0.12)] {
            let (sure, open) = table(eta, f64::INFINITY, &distances, |_| 0.0).shares();
            assert!(sure > least && open < most, "η = {eta}: {sure} {open}");
        }
        // Forty outputs at no distance, and more outputs than two bytes can tell.
        distances.splice(..40, [0.0; 40]);
        distances.extend(random(60_000, 2));
        let (sure, open) = table(1.5, f64::INFINITY, &distances, |_| 0.0).shares();
        assert!(sure > 0.85 && open < 0.08, "{sure} {open}");
    }

    #[test]
    fn an_output_takes_two_bytes_or_four() {
        for (count, each) in [(3, 2), (1 << 16, 2), ((1 << 16) + 1, 4)] {
            let table = table(1.0, 9.0, &vec![1.0; count], |_| 0.0);
            assert_eq!(table.order().len(), count);
            assert_eq!(
                LevelTable::bytes(count),
                size_of::<LevelTable>() + each * count
            );
        }
    }

    /// χ² of draws in batches and one by one, with open draws of every kind.
    #[test]
    fn draws_follow_the_law() {
        let mut rng = crate::testing::rng(8);
        let mut near = random(2000, 3);
        near[7] = 0.0;
        let cases = [
            (1.0, vec![0.0]),
            (1.0, vec![2.0; 300]),
            (1.0, vec![0.0, 0.1, 0.2, 0.3, 4.0, 4.1]),
            (0.7, near.clone()),
            (6.0, near),
            (2.0, random(70_000, 4)),
        ];
        for (eta, distances) in cases {
            let table = table(eta, 4.5, &distances, |_| 0.0);
            let exact = |y: u32| weight(eta * distances[y as usize].min(4.5));
            let asked = Cell::new(0);
            let outweigh = |some: &[Asked]| {
                asked.set(asked.get() + some.len());
                outweigh_by(&exact, some)
            };
            let draws: usize = 600_000;
            let mut counts = vec![0u32; distances.len()];
            let mut more = |y: u32| counts[y as usize] += 1;
            for count in [1, 5, 31, 32, 33, 100_000, draws / 2 - 100_102] {
                table.sample_many(count, &mut rng, outweigh, &mut more);
            }
            for _ in 0..draws / 2 {
                let x = rng.next_u64();
                more(table.sample_by(x, &mut rng, outweigh));
            }
            assert_eq!(counts.iter().sum::<u32>() as usize, draws);
            assert!(asked.get() > 0);
            let each = (0..distances.len() as u32).map(|y| exact(y) as f64);
            let total: f64 = each.clone().sum();
            let law: Vec<f64> = each.map(|weight| weight / total).collect();
            assert_law(&counts, &law, &format!("η = {eta}"));
        }
    }

    /// An open draw is accepted as often as the bits behind its first 16 bits of u say.
    #[test]
    fn open_draws_are_accepted_in_proportion() {
        let mut rng = crate::testing::rng(9);
        let distances = random(3000, 5);
        let exact = |y: u32| weight(2.0 * distances[y as usize]);
        let table = table(2.0, f64::INFINITY, &distances, |_| 0.0);
        let order = table.order();
        let mut between = 0;
        for at in (0..PARTS as u64).step_by(5) {
            let part = table.parts[at as usize];
            if part.count == 0 {
                continue;
            }
            let place = part.count / 2;
            let y = order[(part.first + place) as usize];
            let whole = table.mass as f64 * f64::from(part.parts);
            let share = f64::from(part.count) * exact(y) as f64 / whole;
            let bits = (share * f64::from(1 << 16)).floor().min(65535.0);
            // The middle of the numbers that select this place.
            let low = ((u64::from(place) << 32) + (1 << 31)) / u64::from(part.count);
            let x = at << (64 - LOG2_PARTS) | (bits as u64) << (48 - LOG2_PARTS) | low;
            assert_eq!(table.place(x).0, (part.first + place) as usize);
            let expected = (share * f64::from(1 << 16) - bits).min(1.0);
            let draws = 40_000;
            let accepted = (0..draws).filter(|_| {
                let x = [x; 2];
                let asked = match &table.outputs {
                    Outputs::Narrow(outputs) => x.map(|x| table.ask(outputs, x, &mut rng)),
                    Outputs::Wide(outputs) => x.map(|x| table.ask(outputs, x, &mut rng)),
                };
                let asked = asked.map(|asked| asked.expect("a level"));
                assert!(asked.iter().all(|asked| asked.output == y));
                outweigh_by(&exact, &asked) >> 1 == 1
            });
            let found = accepted.count() as f64 / f64::from(draws);
            let deviation = (expected * (1.0 - expected) / f64::from(draws)).sqrt();
            assert!(
                (found - expected).abs() <= 6.0 * deviation + 1e-9,
                "{found} {expected}"
            );
            between += usize::from((0.1..0.9).contains(&expected));
        }
        assert!(between > 20, "{between}");
    }

    /// Compares exact weights.
    fn outweigh_by(exact: &impl Fn(u32) -> u128, asked: &[Asked]) -> u64 {
        let enough = |each: &Asked| exact(each.output) * u128::from(each.times) > each.number;
        let each = asked.iter().enumerate();
        each.fold(0, |bits, (i, each)| bits | u64::from(enough(each)) << i)
    }
}
