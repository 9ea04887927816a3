//! Models of language as integers: a law multiplies the weight of its distance by them, see
//! [`BaseMeasure`].
//!
//! After a history h, a word y has the weight Q(y) + S_h(y). Q is the model without history, an
//! ordinary base measure. S_h is the sum of a few sparse lists: the words that h makes likelier.
//! That is an interpolated model: P(y|h) = s_h(y) + λ(h)·P(y), divided by λ(h).
//!
//! Rounding P to integers costs fidelity, never privacy: P is public.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use rand::Rng;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::{NgramPrior, Rows};
use crate::law::base::BaseMeasure;
use crate::support::error::{Error, Result};
use crate::support::fork::Once;
use crate::support::random::uniform_below_u128;
use crate::words::vocabulary::Vocabulary;

/// A public model of language. It may be approximate, and it may be of any kind. It may not have been
/// trained on the texts that are to be protected.
pub trait LanguageModel: Any + Send + Sync {
    /// The words.
    fn vocabulary(&self) -> &Vocabulary;

    /// Q: the weights of all words whatever the history.
    fn base(&self) -> &Arc<BaseMeasure>;

    /// Adds the lists of S_h to `lists`, where h is the tokens of the sentence begun: ids of words,
    /// and the number of words for one that is not in the vocabulary. All weights of the lists sum to
    /// at most [`BaseMeasure::added`].
    ///
    /// # Errors
    /// Errors of the model itself.
    fn expected<'a>(&'a self, sentence: &[u32], lists: &mut Vec<Expected<'a>>) -> Result<()>;

    /// Identifies the model; `None` where that cannot be known.
    fn fingerprint(&self) -> Option<u64> {
        None
    }
}

/// Words that a history makes likelier, ascending, with the running sums of their weights.
#[derive(Clone, Debug)]
pub struct Expected<'a> {
    words: Cow<'a, [u32]>,
    sums: Cow<'a, [u64]>,
}

impl Expected<'_> {
    /// A list of words and weights.
    ///
    /// # Errors
    /// [`Error::Parameter`] for words out of order, another number of weights, or too large ones.
    pub fn new(words: Vec<u32>, mut weights: Vec<u64>) -> Result<Self> {
        let mut sum = Some(0u64);
        for weight in &mut weights {
            sum = sum.and_then(|sum| sum.checked_add(*weight));
            *weight = sum.unwrap_or(0);
        }
        let ascending = words.windows(2).all(|pair| pair[0] < pair[1]);
        if sum.is_none() || !ascending || words.len() != weights.len() {
            let expected = "ascending words, each with a weight, that sum to less than 2^64";
            return Err(Error::parameter("expected", expected, "others"));
        }
        Ok(Expected {
            words: words.into(),
            sums: weights.into(),
        })
    }

    pub(crate) fn key(&self) -> u128 {
        let mut hash = Xxh3Default::new();
        hash.update(bytemuck::cast_slice(&self.words));
        hash.update(bytemuck::cast_slice(&self.sums));
        hash.digest128()
    }

    pub(crate) fn count(&self) -> usize {
        self.words.len()
    }

    /// A word that is none of so many.
    pub(crate) fn beyond(&self, words: usize) -> Option<u32> {
        let last = self.words.last().copied();
        last.filter(|&id| id as usize >= words)
    }

    /// The sum of its weights.
    pub fn total(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// Its words and their weights.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> {
        let before = std::iter::once(&0).chain(&*self.sums);
        let weights = self
            .sums
            .iter()
            .zip(before)
            .map(|(sum, before)| sum - before);
        self.words.iter().copied().zip(weights)
    }

    /// The weight of a word.
    pub fn weight(&self, word: u32) -> u64 {
        self.words.binary_search(&word).map_or(0, |at| {
            self.sums[at] - if at == 0 { 0 } else { self.sums[at - 1] }
        })
    }

    /// The word at `u`, a number below the total.
    fn find(&self, u: u64) -> u32 {
        self.words[self.sums.partition_point(|&sum| sum <= u)]
    }
}

pub(crate) fn total(lists: &[Expected]) -> u128 {
    lists.iter().map(|list| u128::from(list.total())).sum()
}

pub(crate) fn weight(lists: &[Expected], word: u32) -> u64 {
    lists.iter().map(|list| list.weight(word)).sum()
}

/// Draws a word of some lists by its weight; they must have one.
pub(crate) fn draw(lists: &[Expected], rng: &mut impl Rng) -> u32 {
    let mut u = uniform_below_u128(rng, total(lists)) as u64;
    for list in lists {
        match u.checked_sub(list.total()) {
            None => return list.find(u),
            Some(rest) => u = rest,
        }
    }
    0
}

/// An [`NgramPrior`] as integers.
///
/// ```
/// use std::sync::Arc;
/// use fastdx::language::{LanguageModel, NgramWeights};
/// use fastdx::NgramPrior;
/// let model = NgramWeights::new(Arc::new(NgramPrior::english(None)?));
/// let (mut lists, words) = (Vec::new(), model.vocabulary());
/// model.expected(&[words.require("united")?], &mut lists)?;
/// assert!(lists[0].weight(words.require("states")?) > lists[0].weight(words.require("tea")?));
/// # Ok::<(), fastdx::Error>(())
/// ```
pub struct NgramWeights {
    prior: Arc<NgramPrior>,
    base: Arc<BaseMeasure>,
    /// The running sums of every context's weights.
    pairs: Box<[u64]>,
    triples: Box<[u64]>,
    fingerprint: Once<u64>,
}

/// Seen words share at most some 511/512 of P: what they weigh has so many bits more than all Q.
pub(crate) const ROOM: u32 = 10;

impl NgramWeights {
    /// The integers of a model, given that the next word is known.
    pub fn new(prior: Arc<NgramPrior>) -> Self {
        let source = format!("n-grams of order {}", prior.order());
        Self::named(prior, source)
    }

    /// The same, with words for guarantees that say where the model comes from.
    pub fn named(prior: Arc<NgramPrior>, source: String) -> Self {
        let unigram = &prior.unigram[..prior.words()];
        let room = if prior.order() > 1 { ROOM } else { 0 };
        let base = Arc::new(BaseMeasure::of_model(unigram, room).named(source));
        let known = prior.words();
        // Two lists share the room.
        let most = (base.added() / 2) as f64 * 0.999;
        let one = f64::from(u32::MAX) / unigram.iter().fold(f64::MIN_POSITIVE, |a, &p| a.max(p));
        // What λ(v)·P(w) is divided by to be Q(w): of each context, limited by the room.
        let scale = |rows: &Rows, context: usize, below: f64| {
            let seen = rows.row(context).filter(|&(w, _)| w < known);
            (below / rows.rest[context]).min(most / seen.map(|(_, p)| p).sum::<f64>())
        };
        let sums = |rows: &Rows, below: &dyn Fn(usize) -> f64| {
            let mut sums = Vec::with_capacity(rows.words.len());
            for context in 0..rows.rest.len() {
                let (scale, mut sum) = (scale(rows, context, below(context)), 0);
                for (w, p) in rows.row(context) {
                    // Truncated, so that the sum is within the room.
                    sum += if w < known { (p * scale) as u64 } else { 0 };
                    sums.push(sum);
                }
            }
            sums.into_boxed_slice()
        };
        let triples = &prior.triples;
        NgramWeights {
            pairs: sums(&prior.pairs, &|_| one),
            triples: sums(&triples.rows, &|context| {
                scale(&prior.pairs, triples.last[context] as usize, one)
            }),
            base,
            prior,
            fingerprint: Once::new(),
        }
    }

    /// The model.
    pub fn prior(&self) -> &Arc<NgramPrior> {
        &self.prior
    }

    fn list<'a>(&self, rows: &'a Rows, sums: &'a [u64], context: usize) -> Option<Expected<'a>> {
        let mut range = rows.range(context);
        // The last word of a context may be the unknown one.
        if rows.words[range.clone()].last() == Some(&self.prior.unknown_token()) {
            range.end -= 1;
        }
        (!range.is_empty()).then(|| Expected {
            words: Cow::Borrowed(&rows.words[range.clone()]),
            sums: Cow::Borrowed(&sums[range]),
        })
    }
}

impl LanguageModel for NgramWeights {
    fn vocabulary(&self) -> &Vocabulary {
        self.prior.space().vocabulary()
    }

    fn base(&self) -> &Arc<BaseMeasure> {
        &self.base
    }

    fn expected<'a>(&'a self, sentence: &[u32], lists: &mut Vec<Expected<'a>>) -> Result<()> {
        let prior = &*self.prior;
        if prior.order() > 1 {
            let (last, context) = prior.contexts(sentence);
            lists.extend(self.list(&prior.pairs, &self.pairs, last as usize));
            let triples = context.map(|c| self.list(&prior.triples.rows, &self.triples, c));
            lists.extend(triples.flatten());
        }
        Ok(())
    }

    /// XXH3-64 of the model as it is saved.
    fn fingerprint(&self) -> Option<u64> {
        let found = || xxh3_64(&self.prior.to_bytes()).max(1);
        Some(*self.fingerprint.get_or_init(found))
    }
}
