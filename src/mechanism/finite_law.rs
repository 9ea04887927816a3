//! A mechanism given by its law: the probability of every output for every word.
//!
//! **Releases** y with the probability that the law gives it, as integers. Each row is scaled so
//! that its largest probability becomes an integer from 2⁹⁹ to 2¹⁰⁰. The others are scaled alike
//! and rounded down, but a positive one stays at least 1. The sampler draws from these integers
//! exactly, and `law` returns the same integers.
//!
//! **Guarantee**: none until the largest loss of that law is computed
//! ([`largest_loss`](crate::guarantee::proved::audit::largest_loss)) and passed to [`FiniteLaw::with_loss`]. A paper's
//! claim about a mechanism is not accepted as a proof.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::Rng;
use rand::rngs::ChaCha12Rng;
use xxhash_rust::xxh3::xxh3_64;

use crate::guarantee::Guarantee;
use crate::law::Law;
use crate::law::alias::AliasTable;
use crate::law::word_cache::{CacheBudget, Spent, WordCache};
use crate::mechanism::Mechanism;
use crate::mechanism::grouped::{Chunk, Grouped};
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, install, map_all};
use crate::support::random::{Key, Randomness, uniform_below};
use crate::words::space::MetricSpace;

/// The rows of a law: writes the relative probability of every output for a word, over zeros. It may
/// return the errors of a function that the caller has passed.
pub type Rows = dyn Fn(u32, &mut [f64]) -> Result<()> + Send + Sync;

/// From this many draws of a word in a call on, its table is made at its first draw.
const MIN_TABLE_DRAWS: usize = 64;

/// Slack of a computed loss. Two words at distance 0 may differ by log-ratios of up to half of it,
/// and the logarithms behind the loss are rounded.
pub(crate) const SLACK: f64 = 2e-9;

/// The largest losses computed for a law against its space's metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// The largest log-ratio per unit of distance.
    pub epsilon: f64,
    /// The largest log-ratio of any two words.
    pub local: f64,
    /// The largest log-ratio between a word's law and the uniform law that replaces unknown words.
    pub unknown: f64,
}

/// A mechanism defined by an explicit law.
#[derive(Clone)]
pub struct FiniteLaw {
    space: Arc<dyn MetricSpace>,
    rows: Arc<Rows>,
    /// A hash of every row read so far, 0 if unread. A row must not change when it is read again:
    /// the computed loss would then belong to another law.
    row_hashes: Arc<[AtomicU64]>,
    /// Ids of excluded words, ascending.
    excluded: Arc<[u32]>,
    loss: Option<Loss>,
    /// Tables of words that were drawn before, and how often the others were.
    tables: Arc<(WordCache<DrawTable>, Spent)>,
    cache_bytes: Option<usize>,
    randomness: Randomness,
}

impl FiniteLaw {
    /// Creates a mechanism whose law `rows` writes. It keeps at most `cache_bytes` bytes of tables,
    /// by default `FASTDX_CACHE_BYTES` or 128 MiB.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a wrong `FASTDX_CACHE_BYTES`. Rows are checked when they are used.
    pub fn new(
        space: Arc<dyn MetricSpace>,
        rows: Arc<Rows>,
        cache_bytes: Option<usize>,
        randomness: Randomness,
    ) -> Result<Self> {
        let budget = cache_bytes.map_or_else(CacheBudget::standard, |b| Ok(CacheBudget::new(b)))?;
        let words = space.vocabulary().len();
        let share = budget.limit();
        let tables = Arc::new((WordCache::new(words, budget, share), Spent::new(words)));
        let row_hashes = (0..words).map(|_| AtomicU64::new(0)).collect();
        Ok(FiniteLaw {
            space,
            rows,
            row_hashes,
            excluded: Arc::default(),
            loss: None,
            tables,
            cache_bytes,
            randomness,
        })
    }

    /// Returns the mechanism with the losses computed for its law.
    pub fn with_loss(mut self, loss: Loss) -> Self {
        self.loss = Some(loss);
        self
    }

    /// The losses computed for the law, if any.
    pub fn loss(&self) -> Option<Loss> {
        self.loss
    }

    /// Returns the law of a word as the integers that the sampler draws from.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a value that is no probability, a row without a positive value, or
    /// a row that changed. Errors of the `rows` function are passed on.
    pub fn integers(&self, id: u32) -> Result<Law> {
        self.read(id, &mut Vec::new())
    }

    /// Reads a word's row and returns its integers: the largest from 2⁹⁹ to 2¹⁰⁰, excluded outputs 0.
    fn read(&self, id: u32, row: &mut Vec<f64>) -> Result<Law> {
        row.clear();
        row.resize(self.space.vocabulary().len(), 0.0);
        (self.rows)(id, row)?;
        // 0 stands for a row that was never read.
        let hash = xxh3_64(bytemuck::cast_slice(row)) | 1;
        let known = &self.row_hashes[id as usize];
        let known = known.compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed);
        if known.is_err_and(|known| known != hash) {
            let expected = "the same each time it is asked for";
            let got = format!("another row for word {id}");
            return Err(Error::parameter("law", expected, got));
        }
        for &excluded in &*self.excluded {
            row[excluded as usize] = 0.0;
        }
        let wrong = |got: String| {
            let expected = "probabilities: numbers of at least 0, one of every row above 0";
            Error::parameter("law", expected, format!("{got} in the row of word {id}"))
        };
        if let Some(bad) = row.iter().find(|p| !(**p >= 0.0 && p.is_finite())) {
            return Err(wrong(bad.to_string()));
        }
        let most = row.iter().fold(0.0, |a: f64, &b| a.max(b));
        if most == 0.0 {
            return Err(wrong("zeros alone".into()));
        }
        let shift = shift_of(most);
        Ok(Law::of_weights(row.iter().map(|&p| integer(p, shift))))
    }

    /// Checks every row; returns the largest log-ratio between a row and the uniform law on all
    /// outputs.
    ///
    /// # Errors
    /// As [`integers`](Self::integers); [`Error::Interrupted`].
    pub fn check(&self, control: &Control) -> Result<f64> {
        let words = self.space.vocabulary().len();
        let outputs = (words - self.excluded.len()) as f64;
        let of_row = |id: u32| -> Result<f64> {
            control.check()?;
            let law = self.integers(id)?;
            let total = law.total() as f64;
            let released = (0u32..).zip(law.weights());
            let released = released.filter(|(y, _)| self.excluded.binary_search(y).is_err());
            let ratios = released.map(|(_, w)| (w as f64 / total * outputs).ln().abs());
            Ok(ratios.fold(0.0, f64::max))
        };
        let most = install(words, 0, || map_all(0..words as u32, of_row))??;
        const ROUNDED_UP: f64 = 1.0 + 1e-10;
        Ok(most.into_iter().fold(0.0, f64::max) * ROUNDED_UP)
    }

    /// Draws a word's outputs: by its law the first time, and from then on by a table that is kept if
    /// there is room.
    fn draw_word(
        &self,
        row: &mut Vec<f64>,
        id: u32,
        count: usize,
        rng: &mut impl Rng,
        mut drawn: impl FnMut(u32),
    ) -> Result<()> {
        let (kept, times) = &*self.tables;
        let simply = self.randomness.takes_the_simple_draw();
        // A row that was read once without error is read again without error.
        let again = || possible(&self.integers(id).unwrap_or_default()).1;
        if let (Some(table), false) = (kept.get(id), simply) {
            table.sample_many(count, rng, again, drawn);
            return Ok(());
        }
        let law = self.read(id, row)?;
        if !simply && (times.add(id, 1) > 1 || count >= MIN_TABLE_DRAWS) {
            let (outputs, law) = possible(&law);
            let bytes = DrawTable::bytes(outputs.len());
            if kept.room(bytes) > 0 {
                let table = AliasTable::new(&law);
                if let Ok(table) = kept.keep(id, DrawTable { table, outputs }, bytes) {
                    table.sample_many(count, rng, again, drawn);
                    return Ok(());
                }
            }
        }
        (0..count).for_each(|_| drawn(law.sample(rng)));
        Ok(())
    }
}

/// A word's law as an alias table of its possible outputs.
struct DrawTable {
    table: AliasTable,
    outputs: Box<[u32]>,
}

impl DrawTable {
    fn bytes(outputs: usize) -> usize {
        size_of::<Self>() + AliasTable::bytes(outputs) + outputs * size_of::<u32>()
    }

    fn sample_many(
        &self,
        count: usize,
        rng: &mut impl Rng,
        law: impl Fn() -> Law,
        mut drawn: impl FnMut(u32),
    ) {
        let drawn = |at: u32| drawn(self.outputs[at as usize]);
        self.table.sample_many(count, rng, law, drawn);
    }
}

/// The outputs that are possible, ascending, and the law of these alone.
fn possible(law: &Law) -> (Box<[u32]>, Law) {
    let outputs = (0u32..)
        .zip(law.weights())
        .filter(|(_, weight)| *weight > 0);
    let outputs = outputs.map(|(y, _)| y).collect();
    let weights = law.weights().filter(|weight| *weight > 0);
    (outputs, Law::of_weights(weights))
}

/// The s for which 2^s times a row's largest probability is between 2⁹⁹ and 2¹⁰⁰.
fn shift_of(most: f64) -> i32 {
    let lifted = if most.is_normal() { 0 } else { 54 };
    let exponent = (most * 2f64.powi(lifted)).to_bits() >> 52;
    99 + 1023 + lifted - exponent as i32
}

/// ⌊p·2^s⌋, at least 1 if p is positive. Halves of the shift stay within the range of floats, and
/// nothing above 1 is rounded.
fn integer(p: f64, shift: i32) -> u128 {
    let scaled = p * 2f64.powi(shift / 2) * 2f64.powi(shift - shift / 2);
    (scaled as u128).max((p > 0.0).into())
}

impl Mechanism for FiniteLaw {
    fn space(&self) -> &dyn MetricSpace {
        &*self.space
    }

    fn guarantee(&self) -> Guarantee {
        let words = self.space.vocabulary().len();
        let guarantee = Guarantee {
            slack: SLACK,
            outputs: Guarantee::excluded(words, words - self.excluded.len()),
            unknown_bound: self.loss.map_or(f64::INFINITY, |loss| loss.unknown),
            ..Guarantee::of(
                "FiniteLaw",
                self.space.metric_name(),
                self.epsilon(),
                "this is the largest log-ratio per unit of distance over all pairs of words and \
                 all outputs, computed from the law that is sampled; the vocabulary is taken to \
                 be public",
                "integer weights drawn with exact integer randomness",
            )
        };
        match self.loss {
            Some(loss) if loss.epsilon.is_finite() => guarantee,
            Some(_) => guarantee.voided(
                "some output is possible for one word and impossible for another, or tells apart \
                 two words at distance 0: no ε bounds its losses",
            ),
            None => guarantee.voided("the losses of its law have not been computed (certify)"),
        }
        .drawn_from(&self.randomness)
    }

    fn epsilon(&self) -> f64 {
        self.loss.map_or(f64::INFINITY, |loss| loss.epsilon)
    }

    fn with_epsilon(&self, epsilon: f64) -> Result<Arc<dyn Mechanism>> {
        let expected = "left as it is: a FiniteLaw has the ε of its law";
        Err(Error::parameter("epsilon", expected, epsilon))
    }

    fn excluding(&self, ids: &[u32]) -> Result<Arc<dyn Mechanism>> {
        self.vocabulary().check_ids(ids)?;
        let mut excluded: Vec<u32> = self.excluded.iter().chain(ids).copied().collect();
        excluded.sort_unstable();
        excluded.dedup();
        if excluded.len() == self.vocabulary().len() {
            return Err(Error::parameter(
                "exclude",
                "fewer than all words",
                "all of them",
            ));
        }
        let (space, rows) = (self.space.clone(), self.rows.clone());
        let mut new = Self::new(space, rows, self.cache_bytes, self.randomness.clone())?;
        new.row_hashes = self.row_hashes.clone();
        new.excluded = excluded.into();
        Ok(Arc::new(new))
    }

    fn excluded(&self) -> Vec<u32> {
        self.excluded.to_vec()
    }

    fn randomness(&self) -> &Randomness {
        &self.randomness
    }

    fn draw(&self, ids: &[u32], key: &Key, out: &mut [u32], control: &Control) -> Result<()> {
        install(ids.len(), MIN_TABLE_DRAWS, || {
            let grouped = Grouped::new(ids, self.vocabulary().len());
            grouped.draw(
                0,
                key,
                out,
                control,
                |row: &mut Vec<f64>, chunks, rng, out| {
                    let mut rest = out.iter_mut();
                    chunks.iter().try_for_each(|&Chunk { word, count }| {
                        let drawn = |y| rest.next().into_iter().for_each(|slot| *slot = y);
                        self.draw_word(row, word, count, rng, drawn)
                    })
                },
            )
        })?
    }
    fn has_law(&self) -> bool {
        true
    }

    fn law(&self, id: u32, probabilities: &mut [f64]) -> bool {
        let Ok(law) = self.integers(id) else {
            return false;
        };
        let total = law.total() as f64;
        for (p, weight) in probabilities.iter_mut().zip(law.weights()) {
            *p = weight as f64 / total;
        }
        true
    }

    fn draw_unknown(&self, rng: &mut ChaCha12Rng) -> u32 {
        let words = self.vocabulary().len() as u32;
        loop {
            let y = uniform_below(rng, words);
            if self.excluded.binary_search(&y).is_err() {
                return y;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_law, from_vectors};
    use crate::{Embedding, Metric};

    fn space(words: usize) -> Arc<Embedding> {
        from_vectors((0..words).map(|i| i as f32).collect(), 1, Metric::Euclidean)
    }

    fn mechanism(rows: Vec<Vec<f64>>, randomness: Randomness) -> FiniteLaw {
        let space = space(rows.len());
        let rows = move |id: u32, out: &mut [f64]| {
            out.copy_from_slice(&rows[id as usize]);
            Ok(())
        };
        FiniteLaw::new(space, Arc::new(rows), Some(1 << 20), randomness).unwrap()
    }

    /// Without a seed, and without room for tables or with it. Every other output has probability 0, and some are excluded.
    #[test]
    fn draws_with_a_table_and_without_follow_the_law() {
        const WORDS: usize = 200;
        let rows = |id: u32, out: &mut [f64]| {
            for (y, p) in out.iter_mut().enumerate() {
                *p = ((y + id as usize) % 2 * (1 + y % 7)) as f64;
            }
            Ok(())
        };
        for bytes in [0, 1 << 20] {
            let os = Randomness::new(None);
            let law = FiniteLaw::new(space(WORDS), Arc::new(rows), Some(bytes), os).unwrap();
            let law = law.excluding(&[3, 8, 64, 191]).unwrap();
            let mut counts = vec![vec![0u64; WORDS]; 2];
            for _ in 0..20_000 {
                let ids: Vec<u32> = (0..20).map(|i| i % 2).collect();
                for (id, y) in ids.iter().zip(law.privatize_ids(&ids).unwrap()) {
                    counts[*id as usize][y as usize] += 1;
                }
            }
            for (id, counts) in (0u32..).zip(counts) {
                let mut p = [0.0; WORDS];
                assert!(law.law(id, &mut p));
                assert_law(&counts, &p, &format!("{id} {bytes}"));
            }
        }
    }

    #[test]
    fn integers_are_the_probabilities() {
        for most in [5e-324, 3e-310, 1e-200, 0.25, 0.3, 1.0, 7e250, f64::MAX] {
            let shift = shift_of(most);
            let whole = integer(most, shift);
            assert_eq!(whole.ilog2(), 99, "{most}");
            assert_eq!((integer(0.0, shift), integer(-0.0, shift)), (0, 0));
            for halved in [1, 2, 40, 60, 99, 100, 300] {
                let p = most * 2f64.powi(-halved);
                // Numbers below the least float have been rounded.
                let exact = p * 2f64.powi(halved) == most;
                let expected = whole.checked_shr(halved as u32).unwrap_or(0).max(1);
                assert!(!exact || integer(p, shift) == expected, "{most} {halved}");
                assert_eq!(integer(p, shift) > 0, p > 0.0);
            }
            for part in [0.9, 0.6, 1e-3] {
                let found = integer(part * most, shift) as f64 / whole as f64;
                assert!((found / (part * most / most) - 1.0).abs() < 1e-12 || part * most == 0.0);
            }
        }
    }

    #[test]
    fn bad_rows_are_refused_and_words_excluded() {
        for row in [
            vec![0.0, 0.0],
            vec![-1.0, 1.0],
            vec![f64::NAN, 1.0],
            vec![f64::INFINITY, 1.0],
        ] {
            let law = mechanism(vec![vec![1.0, 1.0], row], Randomness::new(None));
            assert!(law.integers(0).is_ok());
            let error = law.privatize_ids(&[1]).unwrap_err().to_string();
            assert!(error.contains("in the row of word 1"), "{error}");
            assert!(law.check(&Control::new()).is_err() && !law.law(1, &mut [0.0; 2]));
        }
        let law = mechanism(vec![vec![1.0, 2.0, 3.0]; 3], Randomness::new(None));
        assert!(law.guarantee().void.is_some() && law.epsilon() == f64::INFINITY);
        let without = law.excluding(&[2]).unwrap();
        let mut p = [0.0; 3];
        assert!(without.law(0, &mut p));
        assert!((p[0] - 1.0 / 3.0).abs() < 1e-15 && p[2] == 0.0);
        assert!(
            without
                .privatize_ids(&[0; 100])
                .unwrap()
                .iter()
                .all(|&y| y < 2)
        );
        assert!(law.excluding(&[0, 1, 2]).is_err());
        let far = law.check(&Control::new()).unwrap();
        assert!((far - 2f64.ln()).abs() < 1e-9, "{far}");
    }
}
