//! Walker's alias table: an exact draw from a law by one 64-bit random number and one table lookup.
//!
//! The table (Walker 1977, built as by Vose 1991) has V columns of equal mass; two words share each
//! column. A real number u, uniform in [0, 1), selects column ⌊u·V⌋. The draw is the column's first
//! word if the fractional part of u·V is below the column's threshold t, else its second word. The
//! exact t is a fraction of integers, of which a column stores the leading bits; u is known to 64
//! bits. These bits decide nearly every draw. Otherwise further bits of u are drawn, and t is
//! recomputed from the law. So the draws follow the law's integers exactly.
//!
//! A column takes 4 bytes for up to 2¹⁶ words and 8 bytes above. The second word takes as many bits
//! as its id needs, and t takes the rest: 17 bits for 20,000 words.

use rand::Rng;

use crate::law::Law;
use crate::support::prefetch::prefetch;
use crate::support::random::{continued, uniform_below, uniform_below_u128};

/// The alias table of one law.
#[derive(Debug)]
pub(crate) struct AliasTable {
    /// One number for each column, or two if the table is wide, the lower half first. A column holds
    /// the leading bits of t above the second word.
    numbers: Box<[u32]>,
    wide: bool,
    /// Bits of a column that hold the second word.
    bits: u32,
}

/// The largest number of words with 4-byte columns.
const MAX_NARROW_WORDS: usize = 1 << 16;

/// Thresholds as integers below the law's total, which stands for a whole column.
struct Thresholds {
    total: u128,
    each: Vec<u128>,
    others: Vec<u32>,
}

impl Thresholds {
    /// The table of the weights times their number, so that every column holds the total.
    fn of(law: &Law) -> Self {
        let (count, total) = (law.len(), law.total());
        // At most 2²⁷ words of at most 2¹⁰⁰ each: the product stays below 2¹²⁷.
        let weights = law.weights();
        let mut each: Vec<u128> = weights.map(|weight| weight * count as u128).collect();
        let mut others = vec![0; count];
        // Words of less than a column, and the others. They follow each other at random, so a branch
        // would often be mispredicted.
        let (mut light, mut heavy) = (vec![0u32; count], vec![0u32; count]);
        let (mut lights, mut heavies) = (0, 0);
        for (word, &mass) in (0u32..).zip(&each) {
            (light[lights], heavy[heavies]) = (word, word);
            lights += usize::from(mass < total);
            heavies += usize::from(mass >= total);
        }
        let (mut light, mut heavy) = (light[..lights].iter(), heavy[..heavies].iter());
        // The sums are exact, so every light word finds a heavy one, and each word left at the end
        // fills exactly one column.
        if let Some(&first) = heavy.next() {
            let mut large = first as usize;
            let mut mass = each[large];
            loop {
                if mass >= total {
                    let Some(&word) = light.next() else { break };
                    others[word as usize] = large as u32;
                    // The heavy word fills the part of the column that the light word leaves free.
                    mass -= total - each[word as usize];
                } else {
                    // The heavy word became light.
                    let Some(&next) = heavy.next() else { break };
                    each[large] = mass;
                    others[large] = next;
                    mass = each[next as usize] - (total - mass);
                    large = next as usize;
                }
            }
            each[large] = mass;
            others[large] = large as u32;
        }
        heavy.for_each(|&word| others[word as usize] = word);
        Thresholds {
            total,
            each,
            others,
        }
    }

    /// Draws further bits of u until the draw is decided; called when its first 64 bits, x, are not
    /// enough.
    fn finish(&self, x: u64, rng: &mut impl Rng) -> u32 {
        let count = self.each.len() as u32;
        // u = (x + r)/2⁶⁴ with r uniform in [0, 1). So r·V splits into a uniform integer below V
        // and an independent uniform remainder; the same holds for that remainder times the total.
        let scaled = u128::from(x) * u128::from(count) + u128::from(uniform_below(rng, count));
        let (column, low) = ((scaled >> 64) as usize, scaled as u64);
        let more = uniform_below_u128(rng, self.total);
        match continued(low, self.total, more) < self.each[column] {
            true => column as u32,
            false => self.others[column],
        }
    }
}

/// A whole number q below 2^bits with q ≤ part·2^bits/total < q + 2, for part ≤ total < 2¹²⁷ and
/// bits ≤ 32.
fn fraction(part: u128, total: u128, bits: u32) -> u64 {
    // Five roundings, each by a relative 2⁻⁵³: the error is below 2⁻¹⁷ for quotients up to 2³².
    const ROOM: f64 = 1.0 / (1u64 << 16) as f64;
    let quotient = part as f64 / total as f64 * (1u64 << bits) as f64;
    // Rounded down; none is below 0.
    (quotient - ROOM) as u64
}

impl AliasTable {
    /// Draws of a word whose columns are fetched at once.
    pub(crate) const DRAWS_PER_BATCH: usize = 16;

    /// Builds the table of a law.
    pub(crate) fn new(law: &Law) -> Self {
        let thresholds = Thresholds::of(law);
        let wide = law.len() > MAX_NARROW_WORDS;
        // A damaged file may have an empty list.
        let last = (law.len() as u64).saturating_sub(1);
        let needed = last.checked_ilog2().map_or(0, |log| log + 1);
        let mut table = AliasTable {
            numbers: Box::default(),
            wide,
            bits: if wide { 32 } else { needed },
        };
        let mut numbers = Vec::with_capacity(Self::bytes(law.len()) / size_of::<u32>());
        for (&part, &other) in thresholds.each.iter().zip(&thresholds.others) {
            let threshold = fraction(part, thresholds.total, table.kept());
            let column = threshold << table.bits | u64::from(other);
            numbers.push(column as u32);
            numbers.extend(wide.then_some((column >> 32) as u32));
        }
        table.numbers = numbers.into();
        table
    }

    /// The number of leading bits of t in a column.
    #[inline]
    fn kept(&self) -> u32 {
        if self.wide { 32 } else { 32 - self.bits }
    }

    #[inline]
    fn len(&self) -> usize {
        self.numbers.len() >> u32::from(self.wide)
    }

    #[inline]
    fn column(&self, at: usize) -> u64 {
        match self.wide {
            false => self.numbers[at].into(),
            true => u64::from(self.numbers[2 * at + 1]) << 32 | u64::from(self.numbers[2 * at]),
        }
    }

    /// Returns the column that the first 64 bits of u select, and the fractional part of u·V to 64
    /// bits.
    #[inline]
    fn place(&self, x: u64) -> (usize, u64) {
        let scaled = u128::from(x) * self.len() as u128;
        ((scaled >> 64) as usize, scaled as u64)
    }

    /// Bytes that a table of `words` words takes.
    pub(crate) fn bytes(words: usize) -> usize {
        words * if words <= MAX_NARROW_WORDS { 4 } else { 8 }
    }

    /// Draws one word; `law` recomputes the law that the table was built from.
    #[inline]
    pub(crate) fn sample(&self, rng: &mut impl Rng, law: impl Fn() -> Law) -> u32 {
        self.sample_by(rng.next_u64(), rng, law)
    }

    /// Prefetches the column that x selects; returns its index.
    #[inline]
    pub(crate) fn prefetch_at(&self, x: u64) -> usize {
        let (at, _) = self.place(x);
        prefetch(&raw const self.numbers[at << u32::from(self.wide)]);
        at
    }

    /// Draws one word ([`sample`](Self::sample)) with x as the first 64 bits of u.
    #[inline]
    pub(crate) fn sample_by(&self, x: u64, rng: &mut impl Rng, law: impl Fn() -> Law) -> u32 {
        let place = self.place(x);
        let word = self.decide(self.column(place.0), place);
        word.unwrap_or_else(|| Thresholds::of(&law()).finish(x, rng))
    }

    /// Draws `count` words.
    pub(crate) fn sample_many(
        &self,
        count: usize,
        rng: &mut impl Rng,
        law: impl Fn() -> Law,
        mut drawn: impl FnMut(u32),
    ) {
        // A table is larger than the cache.
        const BATCH: usize = AliasTable::DRAWS_PER_BATCH;
        let mut rest = count;
        while rest >= BATCH {
            let mut xs = [0u64; BATCH];
            rng.fill_bytes(bytemuck::cast_slice_mut(&mut xs));
            let places = xs.map(|x| self.place(x));
            let columns = places.map(|(at, _)| self.column(at));
            for i in 0..BATCH {
                let word = self.decide(columns[i], places[i]);
                drawn(word.unwrap_or_else(|| Thresholds::of(&law()).finish(xs[i], rng)));
            }
            rest -= BATCH;
        }
        for _ in 0..rest {
            drawn(self.sample(rng, &law));
        }
    }

    /// Returns the selected word from a column and from u·V's column and fractional part to 64
    /// bits, if these decide.
    #[inline]
    fn decide(&self, column: u64, (at, low): (usize, u64)) -> Option<u32> {
        let (threshold, kept) = (column >> self.bits, self.kept());
        // The fractional part of u·V lies in [low, low + V)/2⁶⁴, and t in [threshold, threshold +
        // 2)/2^kept.
        let high = low.checked_add(self.len() as u64 - 1)?;
        if high >> (64 - kept) < threshold {
            return Some(at as u32);
        }
        let other = (column & ((1 << self.bits) - 1)) as u32;
        (low >> (64 - kept) > threshold + 1).then_some(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_law;

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
        let mut rng = crate::testing::rng(5);
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
            law_of(&vec![1.0; MAX_NARROW_WORDS]),
            law_of(&vec![1.0; MAX_NARROW_WORDS + 1]),
        ] {
            let each = if law.len() <= 65_536 { 4 } else { 8 };
            assert_eq!(AliasTable::bytes(law.len()), each * law.len());
            assert_eq!(
                size_of_val(&*AliasTable::new(&law).numbers),
                each * law.len()
            );
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

    proptest::proptest! {
        /// Compares with long division, at and around the fractions themselves.
        #[test]
        fn fractions_are_those_of_long_division(
            high in 0u64..1 << 63, low: u64, small in 0u32..126, near: u64, off in -2i64..3,
            bits in 1u32..33
        ) {
            let total = ((u128::from(high) << 64 | u128::from(low)) >> small).max(1);
            // Parts of about near/2⁶⁴ of the total, and slightly beside the start of a fraction.
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
                    // The remainder is below 2¹²⁷, so doubling does not overflow.
                    rest <<= 1;
                    expected = expected << 1 | u64::from(rest >= total);
                    rest -= if rest >= total { total } else { 0 };
                }
            }
            let found = fraction(part, total, bits);
            proptest::prop_assert!(found <= expected && expected <= found + 1);
        }
    }

    /// A draw that the first 64 bits decide does not depend on further bits.
    #[test]
    fn early_decisions_do_not_depend_on_further_bits() {
        let mut rng = crate::testing::rng(6);
        let (mut open, mut decided, mut open_anywhere) = (0, 0, 0);
        let wide = law_of(&vec![0.5; MAX_NARROW_WORDS + 1]);
        for law in laws().into_iter().chain([wide]) {
            let (table, exact) = (AliasTable::new(&law), Thresholds::of(&law));
            let words = law.len();
            for i in 0..2000 {
                // Take x anywhere, and around each column's threshold, where deciding is hard.
                let mut x = rng.next_u64();
                if i % 2 == 0 {
                    let column = uniform_below(&mut rng, words as u32) as usize;
                    let threshold = (table.column(column) >> table.bits) << (64 - table.kept());
                    let near = (column as u128) << 64 | u128::from(threshold);
                    let off = rng.next_u64() >> (8 + i % 50);
                    x = ((near / words as u128) as u64)
                        .wrapping_add(off)
                        .wrapping_sub(9);
                }
                let place = table.place(x);
                match table.decide(table.column(place.0), place) {
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

    /// If the first 64 bits end just before a threshold, the remaining bits decide in proportion.
    #[test]
    fn the_finish_has_the_law_of_what_is_left() {
        let law = law_of(&[0.3, 0.7, 1e-5, 1.0, 1.0, 0.1]);
        let exact = Thresholds::of(&law);
        let mut rng = crate::testing::rng(7);
        let count = law.len() as u128;
        let mut open = 0;
        for column in 0..law.len() {
            // The threshold as u·2⁶⁴, by long division: its integer part x, and the remainder.
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
        let mut rng = crate::testing::rng(8);
        for law in laws() {
            let table = AliasTable::new(&law);
            let draws = 400_000;
            let mut counts = vec![0u64; law.len()];
            table.sample_many(draws, &mut rng, || law.clone(), |y| counts[y as usize] += 1);
            assert_law(&counts, &law.probabilities(), "alias table");
        }
    }
}
