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

mod bits;
mod chain;
mod consistent;
mod posterior;
mod read;
mod source;
mod sweep;
#[cfg(test)]
mod tests;
mod viterbi;

use std::sync::{Arc, OnceLock};

pub use bits::Bits;
pub use posterior::{Posterior, WordPosterior};
pub use read::{Given, UNKNOWN};

use crate::error::{Error, Result};
use crate::guarantee::{Guarantee, WordBits};
use crate::parallel::Control;
use crate::random::Randomness;
use crate::text::TextPrivatizer;
use crate::vocabulary::Vocabulary;
use crate::word_cache::{CacheBudget, WordCache};
use bits::{Survey, sampled_bits, survey};
use source::{Column, Source};

/// The bits that a release tells of a word under the prior of ranks, as guarantees show them.
///
/// # Errors
/// A law that fails, a wrong `FASTDX_CACHE_BYTES`; [`Error::Interrupted`].
pub fn word_bits(text: &TextPrivatizer, control: &Control) -> Result<WordBits> {
    if text.mechanism().randomness().seed().is_some() {
        return Ok(WordBits::Unknown(Guarantee::SEEDED));
    }
    if !text.mechanism().has_law() {
        return Ok(WordBits::Unknown(WordBits::NO_LAW));
    }
    let channel = Channel::new(text.clone(), None)?;
    let prior = channel.prior(None)?;
    let told = channel.bits(Some(&prior), None, control)?;
    let entropy = prior.iter().map(|p| -p * p.log2()).sum();
    Ok(WordBits::Told { told, entropy })
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
/// let text = TextPrivatizer::new(Arc::new(tem), Policy::default());
/// let channel = Channel::new(text, None)?;
/// let bits = channel.bits(None, None, &Control::new())?;
/// assert!(bits.value < channel.capacity(&Control::new())?);
/// # Ok::<(), fastdx::Error>(())
/// ```
pub struct Channel {
    text: TextPrivatizer,
    source: Source,
    kept: WordCache<Column>,
    /// Two threads that need it at the same time both make it: a pool's thread that waits for a lock
    /// could hold up the holder.
    survey: OnceLock<Survey>,
    /// Pr\[y | the word is unknown\].
    unknown: OnceLock<Arc<[f64]>>,
}

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
        if !mechanism.has_law() {
            let expected = "one whose law can be computed: that of noise in more than two dimensions \
                            is an integral over cells of the vocabulary which nobody can compute";
            let got = mechanism.guarantee().mechanism;
            return Err(Error::parameter("mechanism", expected, got));
        }
        let budget = cache_bytes.map_or_else(CacheBudget::standard, |b| Ok(CacheBudget::new(b)))?;
        let (words, share) = (mechanism.vocabulary().len(), budget.limit());
        Ok(Channel {
            source: Source::of(mechanism),
            kept: WordCache::new(words, budget, share),
            survey: OnceLock::new(),
            unknown: OnceLock::new(),
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

    /// The survey, made at most once; with it, where it was just made, the outputs under this prior.
    fn surveyed(&self, prior: &[f64], control: &Control) -> Result<(&Survey, Option<Vec<f64>>)> {
        if let Some(known) = self.survey.get() {
            return Ok((known, None));
        }
        let (made, outputs) = survey(&self.source, prior, control)?;
        Ok((self.survey.get_or_init(|| made), Some(outputs)))
    }

    /// Words up to which [`bits`](Self::bits) sums over all of them.
    pub const SUMMED: usize = 50_000;
    /// Words that it draws where there are more.
    pub const SAMPLED: usize = 4096;

    /// I(W;Y) in bits under a prior (by default 1/(rank + 2.7)). A sum over all words, or an estimate
    /// from the laws of `sample` words drawn by the prior: by default of [`SAMPLED`](Self::SAMPLED) where
    /// there are more than [`SUMMED`](Self::SUMMED). `control` counts laws.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a prior that is none, a sample below 2, a law that fails;
    /// [`Error::Interrupted`].
    pub fn bits(
        &self,
        prior: Option<&[f64]>,
        sample: Option<usize>,
        control: &Control,
    ) -> Result<Bits> {
        let prior = self.prior(prior)?;
        let many = (self.words() > Self::SUMMED).then_some(Self::SAMPLED);
        if let Some(sample) = sample.or(many) {
            if sample < 2 {
                return Err(Error::parameter("sample", "at least 2 words", sample));
            }
            let mut rng = Randomness::new(Some(0)).next_key()?.stream(0);
            return sampled_bits(&self.source, &prior, sample, &mut rng, control);
        }
        let (found, outputs) = self.surveyed(&prior, control)?;
        let outputs = match outputs {
            Some(outputs) => outputs,
            None => survey(&self.source, &prior, control)?.1,
        };
        Ok(found.bits(&prior, &outputs))
    }

    /// log₂ Σ_y max_w Pr\[y|w\]: no prior lets one guess gain more bits. Always a sum over all words.
    ///
    /// # Errors
    /// A law that fails; [`Error::Interrupted`].
    pub fn capacity(&self, control: &Control) -> Result<f64> {
        let prior = self.prior(None)?;
        Ok(self.surveyed(&prior, control)?.0.capacity)
    }

    /// Pr\[y|w\] of an output y and every word w.
    ///
    /// # Errors
    /// [`Error::WordId`], a law that fails, [`Error::Interrupted`].
    pub fn likelihood(&self, output: u32, control: &Control) -> Result<Arc<[f64]>> {
        let mut found = self.columns(&[output], control)?;
        found.pop().ok_or(Error::Interrupted)
    }

    /// Pr\[w|y\] of an output y and every word w; `None` where no word that is ever written has this output.
    ///
    /// # Errors
    /// As [`likelihood`](Self::likelihood), and a prior that is none.
    pub fn posterior(
        &self,
        output: u32,
        prior: Option<&[f64]>,
        control: &Control,
    ) -> Result<Option<Vec<f64>>> {
        let prior = self.prior(prior)?;
        let column = self.likelihood(output, control)?;
        let mut joint: Vec<f64> = prior.iter().zip(&*column).map(|(a, b)| a * b).collect();
        let sum: f64 = joint.iter().sum();
        if sum <= 0.0 {
            return Ok(None);
        }
        joint.iter_mut().for_each(|p| *p /= sum);
        Ok(Some(joint))
    }

    /// The law of the output that replaces a word of which nothing is known.
    fn unknown_law(&self) -> Arc<[f64]> {
        let made = || self.source.unknown(self.words()).into();
        self.unknown.get_or_init(made).clone()
    }

    /// The columns of some outputs, in their order.
    fn columns(&self, outputs: &[u32], control: &Control) -> Result<Vec<Column>> {
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
            true => &self.surveyed(&self.prior(None)?, control)?.0.totals[..],
            false => &[],
        };
        let made = self
            .source
            .columns(&missing, self.words(), totals, control)?;
        for (&y, column) in missing.iter().zip(&made) {
            let bytes = size_of_val(&**column) + 64;
            // Where there is no room it is made again next time.
            let _ = self.kept.keep(y, column.clone(), bytes);
        }
        let found = outputs.iter().map(|&y| match missing.binary_search(&y) {
            Ok(at) => made.get(at).cloned(),
            Err(_) => kept(y),
        });
        Ok(found.flatten().collect())
    }
}
