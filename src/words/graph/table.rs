//! Complete graphs: a table of the distances between any two words, so any metric at all.
//!
//! An edge must be no longer than any way round it; otherwise its length is no distance. This is
//! also all that TEM's proof takes from a metric: |d(w,y) - d(w',y)| ≤ d(w,w') for every word y.
//! Distances are multiples of one step, so sums and differences of them are exact. Other numbers
//! are rounded *up* to multiples, which keeps the triangle inequality: ⌈a + b⌉ ≤ ⌈a⌉ + ⌈b⌉.

use super::LONGEST;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, install, map_all};
use crate::support::simd::vectorised;
use crate::words::vocabulary::Vocabulary;

/// The most words of a table: its numbers then take 1.6 GB.
pub const MAX_TABLE_WORDS: usize = 20_000;
/// A number this little above a multiple of the step is taken for it: rounding errors of doubles
/// are smaller.
const NOISE: f64 = 1.0 / (1 << 16) as f64;
/// Rows that are compared together with each other row.
const TOGETHER: usize = 8;

/// Two words, by their ids.
type Pair = (usize, usize);

/// The distances of all pairs of words.
pub(super) struct Table {
    /// In steps, row by row.
    steps: Vec<u32>,
    words: usize,
    pub(super) step: f64,
    pub(super) longest: u32,
}

impl Table {
    /// Creates a table of numbers, row by row. [`check`](Self::check) must follow.
    pub(super) fn new(vocabulary: &Vocabulary, numbers: &[f64]) -> Result<Self> {
        let words = vocabulary.len();
        if words > MAX_TABLE_WORDS {
            let expected = format!("at most {MAX_TABLE_WORDS} with a distance for each two");
            return Err(Error::parameter("words", expected, words));
        }
        if numbers.len() != words * words {
            return Err(Error::Shape {
                what: "distances",
                expected: format!("({words}, {words}), a row a word"),
                got: format!("{} numbers", numbers.len()),
            });
        }
        let refused = |expected: &str, got| Err(Error::parameter("distances", expected, got));
        let between = |i, j| between(vocabulary, i, j);
        if let Some(at) = numbers.iter().position(|d| !(0.0..=LONGEST).contains(d)) {
            let expected = format!("from 0 to {LONGEST:e}");
            let got = format!("{} {}", numbers[at], between(at / words, at % words));
            return refused(&expected, got);
        }
        let largest = numbers.iter().fold(0.0f64, |a, &b| a.max(b));
        let in_steps = |d: f64, step: f64| (d / step - NOISE).ceil().max(0.0) as u32;
        let mut step = step_of(largest);
        if in_steps(largest, step) == 1 << 31 {
            step *= 2.0; // as for the largest distance that the table then has
        }
        let steps: Vec<u32> = numbers.iter().map(|&d| in_steps(d, step)).collect();
        let table = Table {
            longest: steps.iter().copied().max().unwrap_or(0),
            steps,
            words,
            step,
        };
        if let Some(i) = (0..words).find(|&i| table.steps(i, i) != 0) {
            let got = format!("{} {}", numbers[i * words + i], between(i, i));
            return refused("0 from a word to itself", got);
        }
        let mut pairs = (0..words).flat_map(|i| (0..i).map(move |j| (i, j)));
        if let Some((i, j)) = pairs.find(|&(i, j)| table.steps(i, j) != table.steps(j, i)) {
            let [there, back] = [numbers[i * words + j], numbers[j * words + i]];
            let got = format!("{there} {}, and {back} back", between(i, j));
            return refused("the same both ways", got);
        }
        Ok(table)
    }

    /// Refuses what is no metric: a distance that is longer than a way round.
    pub(super) fn check(&self, vocabulary: &Vocabulary, control: &Control) -> Result<()> {
        let Some((i, j)) = self.longer_than_a_way_round(control)? else {
            return Ok(());
        };
        // The third word at which the pair's triangle fails most, and its longest side.
        let side = |i, j| u64::from(self.steps(i, j));
        let third = (0..self.words).max_by_key(|&k| side(i, k).abs_diff(side(j, k)));
        let k = third.unwrap_or(i);
        let (from, by) = match side(i, k) > side(j, k) {
            true => (i, j),
            false => (j, i),
        };
        let (long, round) = (side(from, k), side(from, by) + side(by, k));
        let length = |steps: u64| steps as f64 * self.step;
        let got = format!(
            "{} {}, but {} by way of {}",
            length(long),
            between(vocabulary, from, k),
            length(round),
            name(vocabulary, by)
        );
        let expected = format!(
            "a metric (adding {:e} to the distance of any two words mends this triangle)",
            length(long - round)
        );
        Err(Error::parameter("distances", expected, got))
    }

    #[inline]
    pub(super) fn steps(&self, i: usize, j: usize) -> u32 {
        self.steps[i * self.words + j]
    }

    pub(super) fn all(&self) -> &[u32] {
        &self.steps
    }

    pub(super) fn row(&self, i: usize) -> &[u32] {
        &self.steps[i * self.words..][..self.words]
    }

    /// A pair that is nearer than the difference of its distances to some third word, if there is one.
    fn longer_than_a_way_round(&self, control: &Control) -> Result<Option<Pair>> {
        let fails =
            |&(i, j): &Pair| largest_difference(self.row(i), self.row(j)) > self.steps(i, j);
        let found = install(self.words, 0, || {
            map_all((0..self.words).step_by(TOGETHER), |start| {
                control.check()?;
                let end = (start + TOGETHER).min(self.words);
                let pairs = (0..end).flat_map(|j| (start.max(j + 1)..end).map(move |i| (i, j)));
                Ok(pairs.into_iter().find(fails))
            })
        })??;
        Ok(found.into_iter().flatten().next())
    }
}

fn name(vocabulary: &Vocabulary, id: usize) -> String {
    format!("{:?} (word {id})", vocabulary.word(id as u32))
}

fn between(vocabulary: &Vocabulary, i: usize, j: usize) -> String {
    format!("from {} to {}", name(vocabulary, i), name(vocabulary, j))
}

/// The power of two that makes the largest number less than 2³¹ steps.
fn step_of(largest: f64) -> f64 {
    match largest > 0.0 {
        true => 2f64.powi((largest.log2().floor() as i32 - 30).max(-1000)),
        false => 1.0,
    }
}

vectorised! {
    /// The largest difference of two rows at one place.
    fn largest_difference = largest_difference_portable(a: &[u32], b: &[u32]) -> u32
}

#[inline(always)]
fn largest_difference_portable(a: &[u32], b: &[u32]) -> u32 {
    a.iter()
        .zip(b)
        .fold(0, |most, (a, b)| most.max(a.abs_diff(*b)))
}
