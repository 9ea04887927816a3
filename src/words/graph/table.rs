//! Complete graphs: a table of the distances between any two words, so any metric at all.
//!
//! An edge must be no longer than any way round it; otherwise its length is no distance. This is
//! also all that TEM's proof takes from a metric: |d(w,y) - d(w',y)| ≤ d(w,w') for every word y.
//! Distances are multiples of one step, so sums and differences of them are exact. Other numbers
//! are rounded *up* to multiples, which keeps the triangle inequality: ⌈a + b⌉ ≤ ⌈a⌉ + ⌈b⌉.

use std::sync::atomic::{AtomicUsize, Ordering};

use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

use super::LONGEST;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, install, map_all};
use crate::support::random::uniform_below;
use crate::support::simd::vectorised;
use crate::words::vocabulary::Vocabulary;

/// The most words of a table: its numbers then take 1.6 GB.
pub const MAX_TABLE_WORDS: usize = 20_000;
/// The number of triples of words that are checked by default: all triples of 3,250 words.
pub const TRIPLES: u64 = 1 << 34;
/// A number this little above a multiple of the step is taken for it: rounding errors of doubles
/// are smaller.
const NOISE: f64 = 1.0 / (1 << 16) as f64;
/// Rows that are compared together with each other row, and pairs drawn from one random stream.
const TOGETHER: usize = 8;
const DRAWN_TOGETHER: u64 = 64;

/// Two words, by their ids.
type Pair = (usize, usize);

/// The distances of all pairs of words.
pub(super) struct Table {
    /// In steps, row by row.
    steps: Vec<u32>,
    words: usize,
    pub(super) step: f64,
    pub(super) longest: u32,
    /// The number of random pairs that were compared at every third word; `None` if all were.
    pub(super) sampled: Option<u64>,
}

impl Table {
    /// Creates a table of numbers, row by row, and checks that they are a metric.
    ///
    /// # Errors
    /// [`Error::Parameter`] that names the words at which they are none; [`Error::Shape`],
    /// [`Error::Interrupted`].
    pub(super) fn new(
        vocabulary: &Vocabulary,
        numbers: &[f64],
        triples: u64,
        control: &Control,
    ) -> Result<Self> {
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
        let name = |id: usize| format!("{:?} (word {id})", vocabulary.word(id as u32));
        let between = |i: usize, j: usize| format!("from {} to {}", name(i), name(j));
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
            sampled: None,
        };
        if let Some(i) = (0..words).find(|&i| table.steps(i, i) != 0) {
            let got = format!("{} {}", numbers[i * words + i], between(i, i));
            return refused("0 from a word to itself", got);
        }
        if let Some((i, j)) = table.asymmetry() {
            let [there, back] = [numbers[i * words + j], numbers[j * words + i]];
            let got = format!("{there} {}, and {back} back", between(i, j));
            return refused("the same both ways", got);
        }
        let (found, sampled) = table.longer_than_a_way_round(triples, control)?;
        if let Some((i, j)) = found {
            // The third word at which the pair's triangle fails most, and its longest side.
            let side = |i, j| u64::from(table.steps(i, j));
            let third = (0..words).max_by_key(|&k| side(i, k).abs_diff(side(j, k)));
            let k = third.unwrap_or(i);
            let (from, by) = if side(i, k) > side(j, k) {
                (i, j)
            } else {
                (j, i)
            };
            let (long, round) = (side(from, k), side(from, by) + side(by, k));
            let length = |steps: u64| steps as f64 * step;
            let got = format!(
                "{} {}, but {} by way of {}",
                length(long),
                between(from, k),
                length(round),
                name(by)
            );
            let expected = format!(
                "a metric (adding {:e} to the distance of any two words mends this triangle)",
                length(long - round)
            );
            return refused(&expected, got);
        }
        Ok(Table { sampled, ..table })
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

    /// The largest difference of two words' distances to any word: their distance in a metric.
    pub(super) fn separation(&self, i: usize, j: usize) -> u32 {
        largest_difference(self.row(i), self.row(j))
    }

    /// A pair whose distance is another one the other way, by blocks that fit the cache.
    fn asymmetry(&self) -> Option<Pair> {
        const BLOCK: usize = 64;
        let starts = || (0..self.words).step_by(BLOCK);
        let blocks =
            starts().flat_map(|a| starts().take_while(move |&b| b <= a).map(move |b| (a, b)));
        let upto = |start: usize| start..(start + BLOCK).min(self.words);
        blocks
            .flat_map(|(a, b)| upto(a).flat_map(move |i| upto(b).map(move |j| (i, j))))
            .find(|&(i, j)| self.steps(i, j) != self.steps(j, i))
    }

    /// A pair that is nearer than the difference of its distances to some third word, if one is
    /// found. Looks at all pairs if these are at most so many triples; otherwise at random pairs,
    /// whose number is returned too.
    fn longer_than_a_way_round(
        &self,
        triples: u64,
        control: &Control,
    ) -> Result<(Option<Pair>, Option<u64>)> {
        let n = self.words as u64;
        let fails = |&(i, j): &Pair| self.separation(i, j) > self.steps(i, j);
        let all = n * n.saturating_sub(1) / 2 * n;
        if all <= triples {
            let starts = (0..self.words).step_by(TOGETHER);
            let found = first_of(self.words, starts, |start| {
                control.check()?;
                let end = (start + TOGETHER).min(self.words);
                let pairs = (0..end).flat_map(|j| (start.max(j + 1)..end).map(move |i| (i, j)));
                Ok(pairs.into_iter().find(fails))
            });
            return Ok((found?, None));
        }
        let count = (triples / n).max(1);
        let streams = 0..count.div_ceil(DRAWN_TOGETHER);
        let found = first_of(count as usize, streams, |stream| {
            control.check()?;
            let mut rng = ChaCha12Rng::seed_from_u64(stream);
            let pairs = (stream * DRAWN_TOGETHER..count).take(DRAWN_TOGETHER as usize);
            let pairs = pairs.map(|_| {
                let i = uniform_below(&mut rng, n as u32);
                let j = (i + 1 + uniform_below(&mut rng, n as u32 - 1)) % n as u32;
                (i as usize, j as usize)
            });
            Ok(pairs.into_iter().find(fails))
        });
        Ok((found?, Some(count)))
    }
}

/// The first pair that `look` finds, in the order of the items.
fn first_of<T: Send>(
    size: usize,
    items: impl Iterator<Item = T> + Send,
    look: impl Fn(T) -> Result<Option<Pair>> + Sync,
) -> Result<Option<Pair>> {
    let found = AtomicUsize::new(usize::MAX);
    let all = install(size, 0, || {
        map_all(items.enumerate(), |(at, item)| {
            // A pair that was found before is the one that counts.
            if at > found.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let pair = look(item)?;
            if pair.is_some() {
                found.fetch_min(at, Ordering::Relaxed);
            }
            Ok(pair)
        })
    })??;
    Ok(all.into_iter().flatten().next())
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
