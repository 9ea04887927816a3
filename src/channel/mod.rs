//! The channel: what a release tells, exactly.
//!
//! The law of a mechanism is known: K\[w,y\] = Pr\[M(w) = y\]. So what anybody can learn from a release is
//! a computation, not a guess. [`Channel::bits`] is the mutual information I(W;Y) of a word and its
//! output, [`Channel::capacity`] the Bayes capacity log₂ Σ_y max_w K\[w,y\], which bounds what one guess
//! gains under every prior. [`Channel::decode`] is the posterior of all words of a text given the release
//! and a model of language: nobody who knows no more of the language names more words.
//!
//! Columns of K are computed from a row of distances and the words' normalisers, which one pass
//! over all laws gives; they are kept within a bound.
//!
//! A mechanism that draws a text in order has no K. Its receiver knows the history of each output, so
//! [`Channel::decode`] takes the column behind it; what needs one K refuses.

mod behind;
mod bits;
mod chain;
mod consistent;
mod lanes;
mod posterior;
mod read;
mod sampled;
mod source;
mod sweep;
#[cfg(test)]
mod tests;
mod viterbi;

use std::sync::Arc;

pub use posterior::{Posterior, WordPosterior};
pub use read::{TextOrTokens, UNKNOWN};

pub use crate::guarantee::Bits;
use crate::guarantee::{Guarantee, WordBits};
use crate::law::word_cache::{CacheBudget, WordCache};
use crate::support::error::{Error, Result};
use crate::support::fork::Once;
use crate::support::parallel::{Control, for_all, install};
use crate::support::random::Randomness;
use crate::text::TextPrivatizer;
use crate::words::vocabulary::Vocabulary;
use behind::Sums;
use bits::{Survey, survey};
use sampled::sampled_bits;
use source::{Column, Source};

/// Probabilities that the bits of a guarantee take at most: those of an exact sum over 20,000 words.
const EXACT_TERMS: usize = 20_000 * 20_000;
/// Laws that an estimate of these bits takes at least.
const MIN_LAWS: usize = 512;

/// The bits that a release tells of a word under the prior of ranks, as guarantees show them: a sum over
/// all words up to 20,000, else an estimate from so many laws as cost the same, with its interval.
///
/// # Errors
/// A law that fails, a wrong `FASTDX_CACHE_BYTES`; [`Error::Interrupted`].
pub fn word_bits(text: &TextPrivatizer, control: &Control) -> Result<WordBits> {
    if text.mechanism().randomness().seed().is_some() {
        return Ok(WordBits::Unknown(Guarantee::SEEDED));
    }
    if text.mechanism().in_order().is_some() {
        return Ok(WordBits::Unknown(WordBits::NO_ONE_LAW));
    }
    if !text.mechanism().has_law() {
        return Ok(WordBits::Unknown(WordBits::NO_LAW));
    }
    let channel = Channel::new(text.clone(), None)?;
    let prior = channel.prior(None)?;
    let words = prior.len();
    let sample = (words > EXACT_TERMS / words).then_some((EXACT_TERMS / words).max(MIN_LAWS));
    let bits = channel.bits(Some(&prior), sample, control)?;
    let entropy = prior.iter().map(|p| -p * p.log2()).sum();
    Ok(WordBits::Known { bits, entropy })
}

/// The law of a mechanism as a channel from words to outputs.
///
/// ```
/// use std::sync::Arc;
/// use fastdx::channel::Channel;
/// use fastdx::text::{Policy, TextPrivatizer};
/// use fastdx::{Control, Embedding, Randomness, Tem};
/// let space = Arc::new(Embedding::default_english()?.first(300)?);
/// let tem = Tem::new(space, 2.66, Default::default(), Randomness::new(None))?;
/// let text = TextPrivatizer::new(Arc::new(tem), Policy::default())?;
/// let channel = Channel::new(text, None)?;
/// let bits = channel.bits(None, None, &Control::new())?;
/// assert!(bits.value < channel.capacity(&Control::new())?.value);
/// # Ok::<(), fastdx::Error>(())
/// ```
pub struct Channel {
    text: TextPrivatizer,
    source: Source,
    kept: WordCache<Column>,
    /// Two threads that need it at the same time both make it: a pool's thread that waits for a lock
    /// could hold up the holder.
    survey: Once<Survey>,
    sums: Sums,
}

/// Laws that are computed together.
const LAWS_PER_BLOCK: usize = 32;
/// Bytes of a cached column besides its numbers.
const KEPT_BYTES: usize = 64;

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel")
            .field("words", &self.words())
            .finish_non_exhaustive()
    }
}

impl Channel {
    /// The channel of a mechanism and its way with text; of its columns `cache_bytes` bytes are kept, by
    /// default `FASTDX_CACHE_BYTES` or 128 MiB.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a mechanism without a law, a wrong `FASTDX_CACHE_BYTES`.
    pub fn new(text: TextPrivatizer, cache_bytes: Option<usize>) -> Result<Self> {
        let mechanism = text.mechanism();
        let in_order = mechanism.in_order();
        if in_order.is_none() && !mechanism.has_law() {
            let expected = "one whose law can be computed: that of noise in more than two dimensions \
                            is an integral over cells of the vocabulary which nobody can compute \
                            (in one and two, fastdx.lab.laws.of_noise computes it)";
            let got = mechanism.guarantee().mechanism;
            return Err(Error::parameter("mechanism", expected, got));
        }
        let source = match in_order {
            Some(tem) => Source::Tem(tem.tem().clone()),
            None => Source::of(mechanism),
        };
        let budget = cache_bytes.map_or_else(CacheBudget::standard, |b| Ok(CacheBudget::new(b)))?;
        let words = mechanism.vocabulary().len();
        let (share, sums) = match in_order {
            None => (budget.limit(), 0),
            // A sum takes as many columns as its list has words.
            Some(_) => (budget.limit() / 4, budget.limit() / 4 * 3),
        };
        Ok(Channel {
            source,
            kept: WordCache::new(words, budget, share),
            sums: Sums::of_bytes(sums),
            survey: Once::new(),
            text,
        })
    }

    /// The mechanism and its way with text.
    pub fn text(&self) -> &TextPrivatizer {
        &self.text
    }

    /// The words of inputs and outputs.
    pub fn vocabulary(&self) -> &Vocabulary {
        self.text.mechanism().vocabulary()
    }

    fn words(&self) -> usize {
        self.vocabulary().len()
    }

    fn check_one_law(&self) -> Result<()> {
        self.text.mechanism().check_one_law()
    }

    /// π as numbers that sum to 1: 1/(rank + 2.7) where none is given.
    ///
    /// # Errors
    /// [`Error::Parameter`] for numbers that are no prior.
    pub fn prior(&self, given: Option<&[f64]>) -> Result<Vec<f64>> {
        let words = self.words();
        let mut prior = match given {
            None => (0..words).map(|id| 1.0 / (id as f64 + 3.7)).collect(),
            Some(given) => given.to_vec(),
        };
        let sum: f64 = prior.iter().sum();
        let positive = prior.iter().all(|&p| p >= 0.0);
        if prior.len() != words || !positive || !(sum > 0.0 && sum.is_finite()) {
            let expected = format!("{words} numbers, at least 0 and of a positive, finite sum");
            return Err(Error::parameter("prior", expected, "others"));
        }
        prior.iter_mut().for_each(|p| *p /= sum);
        Ok(prior)
    }

    /// The survey, made at most once.
    fn surveyed(&self, control: &Control) -> Result<&Survey> {
        if let Some(known) = self.survey.get() {
            return Ok(known);
        }
        let made = survey(&self.source, self.prior(None)?, control)?;
        Ok(self.survey.get_or_init(|| made))
    }

    /// Words up to which [`bits`](Self::bits) sums over all of them.
    pub const MAX_EXACT_WORDS: usize = 50_000;
    /// Laws that [`bits`](Self::bits) takes by default where there are more words.
    pub const SAMPLED_LAWS: usize = 4096;

    /// I(W;Y) in bits under a prior (by default 1/(rank + 2.7)). A sum over all words, or an estimate
    /// from `sample` laws, of common words and of others drawn by the prior: by default of [`SAMPLED_LAWS`](Self::SAMPLED_LAWS) where
    /// there are more than [`MAX_EXACT_WORDS`](Self::MAX_EXACT_WORDS). `control` counts laws.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a prior that is none, a sample below 2, a law that fails, a mechanism that
    /// draws a text in order; [`Error::Interrupted`].
    pub fn bits(
        &self,
        prior: Option<&[f64]>,
        sample: Option<usize>,
        control: &Control,
    ) -> Result<Bits> {
        self.check_one_law()?;
        let prior = self.prior(prior)?;
        let known = self.survey.get().filter(|known| known.prior == prior);
        if let (Some(known), None) = (known, sample) {
            return Ok(Bits::exact(known.bits));
        }
        let many = (self.words() > Self::MAX_EXACT_WORDS).then_some(Self::SAMPLED_LAWS);
        if let Some(sample) = sample.or(many) {
            if sample < 2 {
                return Err(Error::parameter("sample", "at least 2 words", sample));
            }
            let mut rng = Randomness::new(Some(0)).next_key()?.stream(0);
            return sampled_bits(&self.source, &prior, sample, &mut rng, control);
        }
        let made = survey(&self.source, prior, control)?;
        let bits = Bits::exact(made.bits);
        self.survey.get_or_init(|| made);
        Ok(bits)
    }

    /// log₂ Σ_y max_w Pr\[y|w\], a sum over all words: no prior lets one guess gain more bits. `control`
    /// counts laws.
    ///
    /// # Errors
    /// The errors of [`bits`](Self::bits).
    pub fn capacity(&self, control: &Control) -> Result<Bits> {
        self.check_one_law()?;
        Ok(Bits::exact(self.surveyed(control)?.capacity))
    }

    fn column(&self, output: u32, control: &Control) -> Result<Column> {
        let mut found = self.columns_of_source(&[output], control)?;
        found.pop().ok_or(Error::Interrupted)
    }

    /// The law of the output that replaces a word of which nothing is known.
    pub fn unknown_law(&self) -> Arc<[f64]> {
        self.source.unknown(self.words()).into()
    }

    /// Pr\[y|w\] of some outputs y and every word w, one output after the other. In a `release` a skipped
    /// word is its own output.
    ///
    /// # Errors
    /// [`Error::WordId`], a law that fails, a mechanism that draws a text in order; [`Error::Interrupted`].
    pub fn columns(&self, outputs: &[u32], release: bool, control: &Control) -> Result<Vec<f64>> {
        self.check_one_law()?;
        let mut columns = self.columns_of_source(outputs, control)?.concat();
        let shown = if release { self.shown() } else { Vec::new() };
        for (column, &y) in columns.chunks_exact_mut(self.words().max(1)).zip(outputs) {
            for &id in &shown {
                column[id as usize] = f64::from(u8::from(id == y));
            }
        }
        Ok(columns)
    }

    /// Words of the vocabulary that are released unchanged, ascending.
    fn shown(&self) -> Vec<u32> {
        let skip = &self.text.policy().skip;
        let words = self.vocabulary();
        let mut ids: Vec<u32> = skip.iter().filter_map(|word| words.id(word)).collect();
        ids.sort_unstable();
        ids
    }

    /// The laws of some words' outputs, one law per row. In a `release` a skipped word's law is the
    /// word itself.
    ///
    /// # Errors
    /// [`Error::WordId`], a law that fails, [`Error::Interrupted`].
    pub fn laws(&self, ids: &[u32], release: bool, control: &Control) -> Result<Vec<f64>> {
        self.check_one_law()?;
        self.vocabulary().check_ids(ids)?;
        let words = self.words();
        let mut laws = vec![0.0; ids.len() * words];
        let shown = if release { self.shown() } else { Vec::new() };
        install(laws.len(), 0, || {
            let parts = laws.chunks_mut(LAWS_PER_BLOCK * words.max(1));
            for_all(parts.zip(ids.chunks(LAWS_PER_BLOCK)), |(rows, ids)| {
                control.check()?;
                let mut rows = rows.chunks_exact_mut(words);
                self.source.each_law(ids, words, &mut |id, law, _, _| {
                    let Some(row) = rows.next() else { return };
                    match shown.binary_search(&id) {
                        Ok(_) => row[id as usize] = 1.0,
                        Err(_) => row.copy_from_slice(law),
                    }
                })
            })
        })??;
        Ok(laws)
    }

    /// Pr\[y|w\] of some outputs and every word w that is drawn, without any history of a mechanism that has one.
    fn columns_of_source(&self, outputs: &[u32], control: &Control) -> Result<Vec<Column>> {
        self.vocabulary().check_ids(outputs)?;
        let kept = |y: u32| self.kept.get(y).cloned();
        let mut missing: Vec<u32> = outputs
            .iter()
            .copied()
            .filter(|&y| kept(y).is_none())
            .collect();
        missing.sort_unstable();
        missing.dedup();
        if missing.is_empty() {
            return Ok(outputs.iter().filter_map(|&y| kept(y)).collect());
        }
        let totals = match self.source.needs_totals() {
            true => &self.surveyed(control)?.totals[..],
            false => &[],
        };
        // A column of rows takes a pass over all of them: where all fit, one pass is for all.
        let words = self.words();
        let all = self.source.columns_by_rows()
            && self.kept.room(words * size_of::<f64>() + KEPT_BYTES) >= words;
        if all {
            missing = (0..words as u32).collect();
        }
        let made = self.source.columns(&missing, words, totals, control)?;
        for (&y, column) in missing.iter().zip(&made) {
            let bytes = size_of_val(&**column) + KEPT_BYTES;
            // Without room it is recomputed next time.
            let _ = self.kept.keep(y, column.clone(), bytes);
        }
        let found = outputs.iter().map(|&y| match missing.binary_search(&y) {
            Ok(at) => made.get(at).cloned(),
            Err(_) => kept(y),
        });
        Ok(found.flatten().collect())
    }
}
