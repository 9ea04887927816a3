//! Language models over a vocabulary: n-grams of order 1 to 3 with interpolated Kneser-Ney
//! smoothing.
//!
//! **Model.** Tokens are the V words and one *unknown* token for every other word, which has a
//! probability and can be a history like any word. The first word of a sentence has the history
//! *start*, a context of its own.
//!
//! P(w|u,v) = p̂₃(w|u,v) + λ₃(u,v)·P(w|v), P(w|v) = p̂₂(w|v) + λ₂(v)·P(w), P(w) = p̂₁(w) +
//! λ₁·base(w). Each p̂ is the share of a seen n-gram less a discount; λ is the mass of the
//! discounts, which goes to the shorter history (Kneser and Ney 1995; Chen and Goodman 1999, with
//! one discount per order). Shorter n-grams count the different words before them. The base is
//! Zipf's law on the ranks of the vocabulary, or given frequencies, so no word is impossible. There
//! are few seen n-grams: a step of a chain of words costs a pass over them, plus a multiple of one
//! vector ("sparse plus rank one").

mod english;
pub(crate) mod expected;
mod stored;
mod train;

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3Default;

use crate::support::error::{Error, Result};
use crate::words::space::MetricSpace;
use crate::words::tokenize::{ends_sentence, word_ids};
use crate::words::vocabulary::Vocabulary;
pub use expected::{Expected, LanguageModel, NgramWeights};

/// Seen words after contexts: the words of every context, ascending, with their discounted
/// probabilities.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rows {
    pub(crate) starts: Vec<u32>,
    pub(crate) words: Vec<u32>,
    pub(crate) weights: Vec<f32>,
    /// λ: the mass that the weights of each context leave.
    pub(crate) rest: Vec<f64>,
}

impl Rows {
    fn new(starts: Vec<u32>, words: Vec<u32>, weights: Vec<f32>) -> Self {
        let left = starts.windows(2).map(|row| {
            let row = &weights[row[0] as usize..row[1] as usize];
            let sum: f64 = row.iter().map(|&w| f64::from(w)).sum();
            (1.0 - sum).max(0.0)
        });
        let rest = left.collect();
        Rows {
            starts,
            words,
            weights,
            rest,
        }
    }

    fn empty(contexts: usize) -> Self {
        Self::new(vec![0; contexts + 1], Vec::new(), Vec::new())
    }

    #[inline]
    pub(crate) fn range(&self, context: usize) -> std::ops::Range<usize> {
        self.starts[context] as usize..self.starts[context + 1] as usize
    }

    #[inline]
    pub(crate) fn row(&self, context: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.range(context);
        let words = self.words[range.clone()].iter();
        words
            .zip(&self.weights[range])
            .map(|(&w, &p)| (w as usize, f64::from(p)))
    }

    fn weight(&self, context: usize, word: u32) -> f64 {
        let range = self.range(context);
        let words = &self.words[range.clone()];
        words
            .binary_search(&word)
            .map_or(0.0, |at| f64::from(self.weights[range.start + at]))
    }
}

/// Seen contexts of two tokens, in ascending order, with the words after them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Triples {
    pub(crate) first: Vec<u32>,
    pub(crate) last: Vec<u32>,
    pub(crate) rows: Rows,
    /// For every seen word, the context that it forms with the last word of its own context, or
    /// [`Triples::NONE`].
    pub(crate) next: Vec<u32>,
    /// P(last|first) of every context, from the shorter history.
    pub(crate) lower: Vec<f64>,
}

impl Triples {
    pub(crate) const NONE: u32 = u32::MAX;

    /// The context of two tokens, if it was seen.
    pub(crate) fn find(&self, first: u32, last: u32) -> Option<usize> {
        let from = self.first.partition_point(|&u| u < first);
        let to = from + self.first[from..].partition_point(|&u| u == first);
        let found = self.last[from..to].binary_search(&last).ok()?;
        Some(from + found)
    }

    /// Computes the derived fields.
    fn link(&mut self, lower: impl Fn(u32, u32) -> f64) {
        let pairs = self.first.iter().zip(&self.last);
        self.lower = pairs.map(|(&u, &v)| lower(u, v)).collect();
        let mut next = Vec::with_capacity(self.rows.words.len());
        for (context, &v) in self.last.iter().enumerate() {
            let words = &self.rows.words[self.rows.range(context)];
            let found = words.iter().map(|&w| self.find(v, w));
            next.extend(found.map(|at| at.map_or(Self::NONE, |at| at as u32)));
        }
        self.next = next;
    }
}

/// An n-gram model of language over the words of a space.
///
/// ```
/// use std::sync::Arc;
/// use fastdx::{Control, Embedding, NgramPrior};
/// let space = Arc::new(Embedding::default_english()?);
/// let texts = ["a cup of tea", "a cup of coffee, please"];
/// let prior = NgramPrior::train(space.clone(), &texts, 2, None, &Control::new())?;
/// let after = prior.next(&["cup"]);
/// let of = space.vocabulary().require("of")? as usize;
/// assert!(after[of] > 0.1);
/// assert!((after.iter().sum::<f64>() - 1.0).abs() < 1e-12);
/// # Ok::<(), fastdx::Error>(())
/// ```
#[derive(Clone)]
pub struct NgramPrior {
    space: Arc<dyn MetricSpace>,
    order: usize,
    /// The frequency of each token, the unknown one last.
    frequencies: Vec<f64>,
    /// P(w), the base of longer histories; it is the whole model if the order is 1.
    pub(crate) unigram: Vec<f64>,
    pub(crate) pairs: Rows,
    pub(crate) triples: Triples,
}

impl std::fmt::Debug for NgramPrior {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NgramPrior")
            .field("words", &self.words())
            .field("order", &self.order)
            .field("pairs", &self.pairs.words.len())
            .field("triples", &self.triples.rows.words.len())
            .finish()
    }
}

impl NgramPrior {
    /// Maximum order of a model.
    pub const MAX_ORDER: usize = 3;

    /// Creates the model without history. Words have the given frequencies, by default Zipf's law,
    /// 1/(rank + 2.7), in the order of the vocabulary. Unknown words have probability `unknown`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for invalid frequencies, or an `unknown` outside [0, 1).
    pub fn of_frequencies(
        space: Arc<dyn MetricSpace>,
        frequencies: Option<&[f64]>,
        unknown: f64,
    ) -> Result<Self> {
        if !(0.0..1.0).contains(&unknown) {
            let expected = "a probability from 0 to below 1";
            return Err(Error::parameter("unknown", expected, unknown));
        }
        let words = space.vocabulary().len();
        let base = base(words, frequencies, unknown)?;
        Ok(NgramPrior {
            space,
            order: 1,
            frequencies: base.clone(),
            unigram: base,
            pairs: Rows::empty(words + 2),
            triples: Triples::default(),
        })
    }

    /// The number of words among the model's tokens.
    pub(crate) fn words(&self) -> usize {
        self.space.vocabulary().len()
    }

    /// The space whose words it knows.
    pub fn space(&self) -> &Arc<dyn MetricSpace> {
        &self.space
    }

    /// The number of words, including the next one, that the model relates: 1 to 3.
    pub fn order(&self) -> usize {
        self.order
    }

    /// The numbers of seen pairs and triples of words.
    pub fn seen(&self) -> (usize, usize) {
        (self.pairs.words.len(), self.triples.rows.words.len())
    }

    /// The frequency of each known word; sums to 1.
    pub fn frequencies(&self) -> Vec<f64> {
        known(self.frequencies.clone())
    }

    /// The frequency of unknown words.
    pub fn unknown(&self) -> f64 {
        self.frequencies[self.words()]
    }

    /// The token of unknown words.
    #[inline]
    pub(crate) fn unknown_token(&self) -> u32 {
        self.words() as u32
    }

    /// The context of a sentence's first word.
    #[inline]
    pub(crate) fn start(&self) -> usize {
        self.words() + 1
    }

    /// P(w|v) of a token after a context of one token.
    pub(crate) fn probability_behind(&self, context: u32, token: u32) -> f64 {
        let context = context as usize;
        self.pairs.weight(context, token) + self.pairs.rest[context] * self.unigram[token as usize]
    }

    /// P(w|v) for every pair of a word v and the next word w, from pairs of words alone. The result
    /// has one row per first word, with all second words.
    pub fn behind(&self, first: &[u32], second: &[u32]) -> Vec<f64> {
        let each = |v: u32| {
            second.iter().map(move |&w| match self.order {
                1 => self.unigram[w as usize],
                _ => self.probability_behind(v, w),
            })
        };
        first.iter().flat_map(|&v| each(v)).collect()
    }

    /// Writes the probability of every token, the unknown one last, after the tokens of a
    /// sentence's start.
    pub fn fill_next(&self, history: &[u32], out: &mut Vec<f64>) {
        out.clear();
        out.extend_from_slice(&self.unigram);
        if self.order == 1 {
            return;
        }
        let (last, context) = self.contexts(history);
        self.mix(&self.pairs, last as usize, out);
        if let Some(context) = context {
            self.mix(&self.triples.rows, context, out);
        }
    }

    /// The context of one token behind the tokens of a sentence's start, and that of two, if it was
    /// seen.
    fn contexts(&self, history: &[u32]) -> (u32, Option<usize>) {
        let start = self.start() as u32;
        let last = history.last().copied().unwrap_or(start);
        if self.order < 3 || history.is_empty() {
            return (last, None);
        }
        let first = history.len().checked_sub(2).map_or(start, |at| history[at]);
        (last, self.triples.find(first, last))
    }

    fn mix(&self, rows: &Rows, context: usize, out: &mut [f64]) {
        let rest = rows.rest[context];
        out.iter_mut().for_each(|p| *p *= rest);
        rows.row(context).for_each(|(w, p)| out[w] += p);
    }

    /// The probability of a token after the tokens of a sentence's start.
    pub fn probability(&self, history: &[u32], token: u32) -> f64 {
        let one = self.unigram[token as usize];
        if self.order == 1 {
            return one;
        }
        let (last, context) = self.contexts(history);
        let two = self.probability_behind(last, token);
        match context {
            None => two,
            Some(c) => self.triples.rows.weight(c, token) + self.triples.rows.rest[c] * two,
        }
    }

    /// The tokens of words: an unknown one becomes the unknown token.
    pub fn tokens<S: AsRef<str>>(&self, words: &[S]) -> Vec<u32> {
        let vocabulary = self.space.vocabulary();
        let id = |word: &S| crate::words::tokenize::id_of(vocabulary, word.as_ref());
        let ids = words.iter().map(id);
        ids.map(|id| id.unwrap_or(self.unknown_token())).collect()
    }

    /// The probability of every word after the words of a sentence's start, given that the next
    /// word is known; sums to 1.
    pub fn next<S: AsRef<str>>(&self, history: &[S]) -> Vec<f64> {
        let mut all = Vec::new();
        self.fill_next(&self.tokens(history), &mut all);
        known(all)
    }

    /// The perplexity over the known words of texts: exp of the mean of -ln P(w | the words before
    /// it in its sentence, w known). NaN without known words.
    pub fn perplexity<S: AsRef<str>>(&self, texts: &[S]) -> f64 {
        let (mut sum, mut count) = (0.0, 0usize);
        let unknown = self.unknown_token();
        for text in texts {
            for sentence in sentences(self.space.vocabulary(), text.as_ref()) {
                for at in (0..sentence.len()).filter(|&at| sentence[at] != unknown) {
                    let history = &sentence[..at];
                    let left = 1.0 - self.probability(history, unknown);
                    sum -= (self.probability(history, sentence[at]) / left).ln();
                    count += 1;
                }
            }
        }
        (sum / count as f64).exp()
    }
}

/// The distribution over known words, given that the word is known.
fn known(mut all: Vec<f64>) -> Vec<f64> {
    all.pop();
    let sum: f64 = all.iter().sum();
    all.iter_mut().for_each(|p| *p /= sum);
    all
}

/// Frequencies of words, followed by that of unknown ones.
fn base(words: usize, frequencies: Option<&[f64]>, unknown: f64) -> Result<Vec<f64>> {
    let mut base: Vec<f64> = match frequencies {
        None => by_rank(words),
        Some(given) => {
            let sum: f64 = given.iter().sum();
            let positive = given.iter().all(|&p| p >= 0.0);
            if given.len() != words || !positive || !(sum > 0.0 && sum.is_finite()) {
                let expected = format!("{words} numbers, at least 0 and of a positive, finite sum");
                return Err(Error::parameter("frequencies", expected, "others"));
            }
            given.to_vec()
        }
    };
    let sum: f64 = base.iter().sum();
    base.iter_mut().for_each(|p| *p *= (1.0 - unknown) / sum);
    base.push(unknown);
    Ok(base)
}

/// 1/(rank + 2.7) of each word by its id; ranks count from 1.
pub(crate) fn by_rank(words: usize) -> Vec<f64> {
    (0..words).map(|id| 1.0 / (id as f64 + 3.7)).collect()
}

/// The sentences of a text as tokens; an unknown word becomes the number of words.
pub(crate) fn sentences(vocabulary: &Vocabulary, text: &str) -> Vec<Vec<u32>> {
    let (mut found, mut sentence, mut done) = (Vec::new(), Vec::new(), 0);
    for (range, id) in word_ids(vocabulary, text) {
        if ends_sentence(&text[done..range.start]) && !sentence.is_empty() {
            found.push(std::mem::take(&mut sentence));
        }
        done = range.end;
        sentence.push(id.unwrap_or(vocabulary.len() as u32));
    }
    if !sentence.is_empty() {
        found.push(sentence);
    }
    found
}

/// XXH3-64 of the words and their order.
pub(crate) fn words_fingerprint(vocabulary: &Vocabulary) -> u64 {
    let mut hash = Xxh3Default::new();
    for id in 0..vocabulary.len() as u32 {
        hash.update(vocabulary.word(id).as_bytes());
        hash.update(&[0]);
    }
    hash.digest()
}
