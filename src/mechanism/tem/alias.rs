//! A law drawn from by one 64-bit random number and one look into a table, exactly.
//!
//! Walker's alias method (Walker 1977; the table as Vose 1991 makes it): V columns of equal mass, each
//! shared by two words. A real number u, uniform in [0, 1), falls on column ⌊u·V⌋, and on its first
//! word if the rest of u·V is below the column's threshold t. Here t is a fraction of integers, of
//! which a column holds the first bits, and u is known to 64 bits. That decides nearly every draw; where
//! not, u gets as many more bits as it takes, and t is computed anew from the law. So the law is
//! that of the integers.
//!
//! A column takes 4 bytes for up to 2¹⁶ words, of which the other word takes as many bits as it
//! needs, and t the rest: 17 bits for 20,000 words. Above, it takes 8.

use rand::Rng;

use crate::law::Law;
use crate::prefetch::prefetch;
use crate::random::{continued, uniform_below, uniform_below_u128};

/// The table of one law.
#[derive(Debug)]
pub(in crate::mechanism) struct AliasTable {
    columns: Columns,
    /// Bits of the other word in a column, below those of the threshold.
    bits: u32,
}

/// ⌊t·2^(32 - bits)⌋, or of 2^(64 - bits), and below it the other word.
#[derive(Debug)]
enum Columns {
    Narrow(Box<[u32]>),
    Wide(Box<[u64]>),
}

/// The most words of which a column takes 4 bytes.
const NARROW: usize = 1 << 16;

/// A column as it is stored.
trait Packed: Copy {
    const BITS: u32;
    fn wide(self) -> u64;
}

impl Packed for u32 {
    const BITS: u32 = u32::BITS;
    #[inline]
    fn wide(self) -> u64 {
        self.into()
    }
}

impl Packed for u64 {
    const BITS: u32 = u64::BITS;
    #[inline]
    fn wide(self) -> u64 {
        self
    }
}

/// The thresholds as integers below the law's total, which stands for a whole column.
#[derive(Debug, Default)]
pub(super) struct Thresholds {
    total: u128,
    each: Vec<u128>,
    others: Vec<u32>,
}

impl Thresholds {
    fn of(law: &Law) -> Self {
        let mut thresholds = Thresholds::default();
        thresholds.fill(law);
        thresholds
    }

    /// Walker's table on the weights times their number, so that every column holds the total, by
    /// one sweep over the light words and one over the heavy ones.
    fn fill(&mut self, law: &Law) {
        let (count, total) = (law.len(), law.total());
        let Thresholds { each, others, .. } = self;
        self.total = total;
        each.clear();
        // At most 2²⁷ words of at most 2¹⁰⁰ each: below 2¹²⁷.
        each.extend(law.weights().map(|weight| weight * count as u128));
        others.clear();
        others.extend(0..count as u32);
        let next_heavy = |each: &[u128], from: usize| {
            let found = each[from..].iter().position(|&mass| mass >= total);
            found.map(|at| from + at)
        };
        // The sums are exact: there is a heavy word as long as there is a light one, and each word
        // that is left at the end has just one column's mass.
        let mut heavy = next_heavy(each, 0);
        for word in 0..count {
            // A heavy word that has become light has found its other word already.
            if each[word] >= total || others[word] != word as u32 {
                continue;
            }
            let mut light = word;
            while let Some(large) = heavy {
                others[light] = large as u32;
                // What the light word leaves free of its column comes from the heavy one.
                each[large] -= total - each[light];
                if each[large] >= total {
                    break;
                }
                light = large;
                heavy = next_heavy(each, large + 1);
            }
        }
    }

    /// Where x, the first 64 bits of u, does not decide: more bits until it is decided.
    fn finish(&self, x: u64, rng: &mut impl Rng) -> u32 {
        let count = self.each.len() as u32;
        // u = (x + r)/2⁶⁴ with r uniform in [0, 1): r·V is a uniform integer below V and a rest,
        // uniform and independent; likewise that rest times the total.
        let scaled = u128::from(x) * u128::from(count) + u128::from(uniform_below(rng, count));
        let (column, low) = ((scaled >> 64) as usize, scaled as u64);
        let more = uniform_below_u128(rng, self.total);
        match continued(low, self.total, more) < self.each[column] {
            true => column as u32,
            false => self.others[column],
        }
    }
}

/// ⌊part·2^bits/total⌋, but at most 2^bits - 1, for many parts of one total < 2¹²⁷; bits ≤ 32.
struct Fraction {
    total: u128,
    bits: u32,
    /// About 2^bits/total.
    scale: f64,
}

impl Fraction {
    fn of(total: u128, bits: u32) -> Self {
        Fraction {
            total,
            bits,
            scale: (1u64 << bits) as f64 / total as f64,
        }
    }

    /// For part ≤ total.
    #[inline]
    fn floor(&self, part: u128) -> u64 {
        const HALF: f64 = (1u128 << 64) as f64;
        // Five roundings, each by a relative 2⁻⁵³: off by less than 2⁻¹⁷ where it is below 2³².
        let quotient = ((part >> 64) as u64 as f64 * HALF + part as u64 as f64) * self.scale;
        let q = quotient as u64;
        let rest = quotient - q as f64;
        const NEAR: f64 = 1.0 / (1u64 << 16) as f64;
        let q = match (NEAR..1.0 - NEAR).contains(&rest) {
            true => q,
            false => self.corrected(part, q),
        };
        q.min((1 << self.bits) - 1)
    }

    /// The same from a guess that is near.
    #[cold]
    fn corrected(&self, part: u128, mut q: u64) -> u64 {
        // part·2^bits and a guess's product as (high, low) in base 2⁶⁴.
        let low = u128::from(part as u64) << self.bits;
        let wanted = ((part >> 64 << self.bits) + (low >> 64), low as u64);
        let product = |q: u64| {
            let low = u128::from(self.total as u64) * u128::from(q);
            let high = (self.total >> 64) * u128::from(q);
            (high + (low >> 64), low as u64)
        };
        while product(q) > wanted {
            q -= 1;
        }
        while product(q + 1) <= wanted {
            q += 1;
        }
        q
    }
}

/// The column that the first 64 bits of u fall on, and the rest of u·V to 64 bits.
#[inline]
fn place(x: u64, columns: usize) -> (usize, u64) {
    let scaled = u128::from(x) * columns as u128;
    ((scaled >> 64) as usize, scaled as u64)
}

impl AliasTable {
    /// The table of a law.
    pub(in crate::mechanism) fn new(law: &Law) -> Self {
        Self::made(law, &mut Thresholds::default())
    }

    /// The same with memory that is used again.
    pub(super) fn made(law: &Law, work: &mut Thresholds) -> Self {
        work.fill(law);
        let Thresholds {
            total,
            each,
            others,
        } = work;
        // A damaged file may have an empty list.
        let last = (law.len() as u64).saturating_sub(1);
        let bits = last.checked_ilog2().map_or(0, |log| log + 1);
        let column = |width: u32| {
            let fraction = Fraction::of(*total, (width - bits).min(32));
            let columns = each.iter().zip(&*others);
            columns.map(move |(&each, &other)| fraction.floor(each) << bits | u64::from(other))
        };
        let columns = match law.len() <= NARROW {
            true => Columns::Narrow(column(u32::BITS).map(|packed| packed as u32).collect()),
            false => Columns::Wide(column(u64::BITS).collect()),
        };
        AliasTable { columns, bits }
    }

    /// Bytes that the table of so many words takes.
    pub(in crate::mechanism) fn bytes(words: usize) -> usize {
        words * if words <= NARROW { 4 } else { 8 }
    }

    /// Bytes beside itself.
    pub(in crate::mechanism) fn size(&self) -> usize {
        match &self.columns {
            Columns::Narrow(columns) => size_of_val(&**columns),
            Columns::Wide(columns) => size_of_val(&**columns),
        }
    }

    /// One draw of the word whose law this is the table of; `law` computes that law anew.
    #[inline]
    pub(in crate::mechanism) fn sample(&self, rng: &mut impl Rng, law: impl Fn() -> Law) -> u32 {
        self.sample_by(rng.next_u64(), rng, law)
    }

    /// Asks for the column that x falls on; returns it.
    #[inline]
    pub(super) fn soon_at(&self, x: u64) -> usize {
        match &self.columns {
            Columns::Narrow(columns) => {
                let (at, _) = place(x, columns.len());
                prefetch(&raw const columns[at]);
                at
            }
            Columns::Wide(columns) => {
                let (at, _) = place(x, columns.len());
                prefetch(&raw const columns[at]);
                at
            }
        }
    }

    /// [`sample`](Self::sample) by the first 64 bits of u.
    #[inline]
    pub(super) fn sample_by(&self, x: u64, rng: &mut impl Rng, law: impl Fn() -> Law) -> u32 {
        let word = match &self.columns {
            Columns::Narrow(columns) => self.look(columns, x),
            Columns::Wide(columns) => self.look(columns, x),
        };
        word.unwrap_or_else(|| Thresholds::of(&law()).finish(x, rng))
    }

    /// The word that the first 64 bits of u fall on, where they decide.
    #[inline]
    fn look<C: Packed>(&self, columns: &[C], x: u64) -> Option<u32> {
        let at = place(x, columns.len());
        self.decide(columns[at.0], at, columns.len())
    }

    /// Many draws.
    pub(in crate::mechanism) fn sample_many(
        &self,
        count: usize,
        rng: &mut impl Rng,
        law: impl Fn() -> Law,
        drawn: impl FnMut(u32),
    ) {
        match &self.columns {
            Columns::Narrow(columns) => self.sample_from(columns, count, rng, law, drawn),
            Columns::Wide(columns) => self.sample_from(columns, count, rng, law, drawn),
        }
    }

    fn sample_from<C: Packed>(
        &self,
        columns: &[C],
        count: usize,
        rng: &mut impl Rng,
        law: impl Fn() -> Law,
        mut drawn: impl FnMut(u32),
    ) {
        // A table is larger than a cache: the draws wait for memory together.
        const TOGETHER: usize = 16;
        let mut rest = count;
        while rest >= TOGETHER {
            let xs: [u64; TOGETHER] = std::array::from_fn(|_| rng.next_u64());
            let places = xs.map(|x| place(x, columns.len()));
            let there = places.map(|(at, _)| columns[at]);
            for i in 0..TOGETHER {
                let word = self.decide(there[i], places[i], columns.len());
                drawn(word.unwrap_or_else(|| Thresholds::of(&law()).finish(xs[i], rng)));
            }
            rest -= TOGETHER;
        }
        for _ in 0..rest {
            drawn(self.sample(rng, &law));
        }
    }

    /// The word that u falls on, of which column and rest of u·V are known to 64 bits, where they
    /// decide.
    #[inline]
    fn decide<C: Packed>(&self, column: C, (at, low): (usize, u64), words: usize) -> Option<u32> {
        let column = column.wide();
        let threshold = column >> self.bits;
        let kept = (C::BITS - self.bits).min(32);
        // The rest of u·V lies in [low, low + V)/2⁶⁴, and t in [threshold, threshold + 1)/2^kept.
        let high = low.checked_add(words as u64 - 1)?;
        if high >> (64 - kept) < threshold {
            return Some(at as u32);
        }
        let other = (column & ((1 << self.bits) - 1)) as u32;
        (low >> (64 - kept) > threshold).then_some(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Randomness;

    fn law_of(weights: &[f64]) -> Law {
        let mut law = Law::default();
        law.fill_with(weights, |w| -w.ln());
        law
    }

    fn laws() -> Vec<Law> {
        let mut all = vec![
            law_of(&[1.0]),
            law_of(&[1.0, 1.0]),
            law_of(&[1.0, 1e-18]),
            law_of(&[0.3, 0.7, 1e-5, 1.0, 1.0, 0.1]),
            law_of(&vec![1.0; 1000]),
        ];
        let mut rng = Randomness::new(Some(5)).next_key().unwrap().stream(0);
        for count in [2usize, 3, 7, 64, 1000] {
            let draw = |_| (-f64::from(rng.next_u32() % 4000) * 0.01).exp();
            all.push(law_of(&(0..count).map(draw).collect::<Vec<f64>>()));
        }
        all
    }

    #[test]
    fn a_word_takes_four_bytes_or_eight() {
        for law in [
            law_of(&[1.0, 0.5]),
            law_of(&vec![1.0; NARROW]),
            law_of(&vec![1.0; NARROW + 1]),
        ] {
            let each = if law.len() <= 65_536 { 4 } else { 8 };
            assert_eq!(AliasTable::bytes(law.len()), each * law.len());
            assert_eq!(AliasTable::new(&law).size(), each * law.len());
        }
    }

    #[test]
    fn the_columns_hold_just_the_weights() {
        for law in laws() {
            let exact = Thresholds::of(&law);
            let mut mass: Vec<u128> = vec![0; law.len()];
            for (i, (&each, &other)) in exact.each.iter().zip(&exact.others).enumerate() {
                assert!(each <= exact.total);
                mass[i] += each;
                mass[other as usize] += exact.total - each;
            }
            for (word, mass) in (0u32..).zip(mass) {
                assert_eq!(mass, law.weight(word) * law.len() as u128);
            }
        }
    }

    #[test]
    fn fractions_are_rounded_down() {
        let total = (1u128 << 127) - 1;
        for (part, total, expected) in [
            (0, total, 0),
            (total, total, u32::MAX),
            (total / 2, total, (1 << 31) - 1),
            (total / 2 + 1, total, 1 << 31),
            (1, 3, 1_431_655_765),
            (2, 3, 2_863_311_530),
            (1, 1u128 << 32, 1),
            (1, (1 << 32) + 1, 0),
            (7, 7 << 32, 1),
        ] {
            let expected: u32 = expected;
            for bits in [1, 7, 17, 31, 32] {
                let expected = u64::from(expected) >> (32 - bits);
                assert_eq!(
                    Fraction::of(total, bits).floor(part),
                    expected,
                    "{part}/{total}, {bits}"
                );
            }
        }
    }

    proptest::proptest! {
        /// Against long division, at and around the fractions themselves.
        #[test]
        fn fractions_are_those_of_long_division(
            high in 0u64..1 << 63, low: u64, near: u64, off in -2i64..3, bits in 1u32..33
        ) {
            let total = (u128::from(high) << 64 | u128::from(low)).max(1);
            // About near/2⁶⁴ of the total, and a little beside the start of a fraction.
            let q = u128::from(near >> (64 - bits));
            let start = {
                let (h, l) = ((total >> 64) * q, (total as u64 as u128) * q);
                (h + (l >> 64)) << (64 - bits) | (l as u64 >> bits) as u128
            };
            let part = start.saturating_add_signed(off.into()).min(total);
            let (mut expected, mut rest) = (0u64, part);
            if rest == total {
                expected = (1 << bits) - 1;
            } else {
                for _ in 0..bits {
                    // Below 2¹²⁷, so twice it does not overflow.
                    rest <<= 1;
                    expected = expected << 1 | u64::from(rest >= total);
                    rest -= if rest >= total { total } else { 0 };
                }
            }
            proptest::prop_assert_eq!(Fraction::of(total, bits).floor(part), expected);
        }
    }

    impl AliasTable {
        fn looked(&self, x: u64) -> Option<u32> {
            match &self.columns {
                Columns::Narrow(columns) => self.look(columns, x),
                Columns::Wide(columns) => self.look(columns, x),
            }
        }

        /// The threshold of a column as its bits, at the top of 64.
        fn threshold(&self, column: usize) -> u64 {
            match &self.columns {
                Columns::Narrow(columns) => {
                    u64::from(columns[column] >> self.bits) << (32 + self.bits)
                }
                Columns::Wide(columns) => columns[column] >> self.bits << 32,
            }
        }
    }

    /// Whatever the further bits are, the first 64 decide as all of them would.
    #[test]
    fn what_is_decided_early_is_decided_right() {
        let mut rng = Randomness::new(Some(6)).next_key().unwrap().stream(0);
        let (mut open, mut decided, mut open_anywhere) = (0, 0, 0);
        let wide = law_of(&vec![0.5; NARROW + 1]);
        for law in laws().into_iter().chain([wide]) {
            let (table, exact) = (AliasTable::new(&law), Thresholds::of(&law));
            let words = law.len();
            for i in 0..2000 {
                // Anywhere, and around each column's threshold, where it is hard.
                let mut x = rng.next_u64();
                if i % 2 == 0 {
                    let column = uniform_below(&mut rng, words as u32) as usize;
                    let near = (column as u128) << 64 | u128::from(table.threshold(column));
                    let off = rng.next_u64() >> (8 + i % 50);
                    x = ((near / words as u128) as u64)
                        .wrapping_add(off)
                        .wrapping_sub(9);
                }
                match table.looked(x) {
                    None => {
                        open += 1;
                        open_anywhere += i % 2;
                    }
                    Some(word) => {
                        decided += 1;
                        for _ in 0..4 {
                            assert_eq!(word, exact.finish(x, &mut rng), "{x} of {words}");
                        }
                    }
                }
            }
        }
        assert!(
            open > 100 && decided > 1000 && open_anywhere < 10,
            "{open} open, {open_anywhere} of them anywhere, {decided} decided"
        );
    }

    /// Where the first 64 bits end just before a threshold, the rest decides, in proportion.
    #[test]
    fn the_finish_has_the_law_of_what_is_left() {
        let law = law_of(&[0.3, 0.7, 1e-5, 1.0, 1.0, 0.1]);
        let exact = Thresholds::of(&law);
        let mut rng = Randomness::new(Some(7)).next_key().unwrap().stream(0);
        let count = law.len() as u128;
        let mut open = 0;
        for column in 0..law.len() {
            // The threshold as u·2⁶⁴, by long division: its whole part x, and what is left.
            let whole = exact.total * count;
            let (mut x, mut left) = (0u64, exact.total * column as u128 + exact.each[column]);
            for _ in 0..64 {
                (x, left) = (x << 1, left << 1);
                if left >= whole {
                    (x, left) = (x | 1, left - whole);
                }
            }
            let expected = left as f64 / whole as f64;
            let draws = 100_000;
            let first = (0..draws).filter(|_| exact.finish(x, &mut rng) == column as u32);
            let first = first.count() as f64 / f64::from(draws);
            if exact.others[column] == column as u32 {
                continue;
            }
            let deviation = (expected * (1.0 - expected) / f64::from(draws)).sqrt();
            assert!(
                (first - expected).abs() <= 6.0 * deviation + 1e-9,
                "{first} {expected}"
            );
            open += usize::from((0.1..0.9).contains(&expected));
        }
        assert!(open > 0);
    }

    #[test]
    fn draws_follow_the_law() {
        let mut rng = Randomness::new(Some(8)).next_key().unwrap().stream(0);
        for law in laws() {
            let table = AliasTable::new(&law);
            let draws = 400_000;
            let mut counts = vec![0u64; law.len()];
            table.sample_many(draws, &mut rng, || law.clone(), |y| counts[y as usize] += 1);
            let (mut chi2, mut degrees) = (0.0, 0.0);
            for (p, &count) in law.probabilities().iter().zip(&counts) {
                let expected = p * draws as f64;
                if expected >= 10.0 {
                    chi2 += (count as f64 - expected).powi(2) / expected;
                    degrees += 1.0;
                }
            }
            // Wilson and Hilferty: six deviations, false alarms below 1e-8.
            let scale: f64 = 2.0 / (9.0 * degrees);
            let limit: f64 = degrees * (1.0 - scale + 6.0 * scale.sqrt()).powi(3);
            assert!(chi2 <= limit, "{chi2} > {limit} at {degrees}");
        }
    }
}
