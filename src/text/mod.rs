//! Text in, text out: words are found, looked up, replaced, and put back where they stood.
//!
//! White space, punctuation and line structure stay as they are. They are **not protected**,
//! and neither are the number of words, the length of the text, or which words the policy
//! exempts.

mod tokenize;

use std::collections::HashSet;
use std::str::FromStr;
use std::sync::Arc;

use rayon::prelude::*;

pub use tokenize::{Words, normalize, words};

use crate::error::{Error, Result};
use crate::mechanism::Mechanism;
use crate::mechanism::guarantee::Guarantee;
use crate::parallel::{Control, install};
use crate::random::uniform_below;
use crate::vocabulary::Vocabulary;

/// Bytes of text that are worked on at a time.
const BLOCK: usize = 16 << 20;
/// Texts below this many bytes are done on the calling thread.
const SMALL: usize = 4096;
/// The stream of a call that unknown words draw from; no mechanism uses it.
const UNKNOWN_STREAM: u64 = u64::MAX;

/// What happens to a word that is not in the vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Unknown {
    /// It becomes a word drawn uniformly from the vocabulary: all unknown words look alike.
    /// For Tem this is the law of a word farther than γ from all others.
    #[default]
    Random,
    /// It is an error that names the word.
    Error,
    /// It is left out. That there was an unknown word stays visible in its absence.
    Drop,
    /// It becomes `[MASK]`. That there was an unknown word is visible.
    Mask,
    /// It is released as it is: **unprotected**.
    Keep,
}

impl FromStr for Unknown {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Ok(match name {
            "random" => Unknown::Random,
            "error" => Unknown::Error,
            "drop" => Unknown::Drop,
            "mask" => Unknown::Mask,
            "keep" => Unknown::Keep,
            _ => {
                let expected = "one of 'random', 'error', 'drop', 'mask', 'keep'";
                return Err(Error::parameter("oov", expected, format!("{name:?}")));
            }
        })
    }
}

/// What may follow a word without a space between.
const AFTER_SPACELESS: [char; 10] = [' ', '\n', '\r', ',', '.', ';', ':', '!', '?', ')'];

/// What replaces a masked word.
pub const MASK: &str = "[MASK]";

/// The handling of words that the mechanism is not applied to.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Words that are not in the vocabulary.
    pub unknown: Unknown,
    /// Words released as they are, **unprotected**, in the form of [`normalize`].
    pub skip: HashSet<String>,
}

/// What was done to a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Words found.
    pub words: u64,
    /// Of these, words of the vocabulary that the mechanism was applied to.
    pub replaced: u64,
    /// Of these, words that are not in the vocabulary.
    pub unknown: u64,
    /// Of these, words skipped.
    pub skipped: u64,
}

/// A mechanism applied to text.
#[derive(Clone)]
pub struct TextPrivatizer {
    mechanism: Arc<dyn Mechanism>,
    policy: Policy,
}

/// What becomes of one word.
#[derive(Clone, Copy)]
enum Fate {
    Replace(u32),
    Unknown,
    Skip,
}

/// A word of a text: its bytes and its fate.
#[derive(Clone, Copy)]
struct Word {
    start: usize,
    end: usize,
    fate: Fate,
}

impl TextPrivatizer {
    /// `mechanism` under `policy`. The words of `policy.skip` are normalised.
    pub fn new(mechanism: Arc<dyn Mechanism>, policy: Policy) -> Self {
        let skip = policy.skip.iter().map(|w| normalize(w).into_owned());
        let policy = Policy {
            skip: skip.collect(),
            ..policy
        };
        TextPrivatizer { mechanism, policy }
    }

    /// The mechanism.
    pub fn mechanism(&self) -> &Arc<dyn Mechanism> {
        &self.mechanism
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The mechanism's guarantee with what the handling of text exempts from it.
    pub fn guarantee(&self) -> Guarantee {
        let mut guarantee = self.mechanism.guarantee();
        let exceptions = &mut guarantee.exceptions;
        exceptions
            .push("white space, punctuation, the number of words and the length of a text".into());
        if self.mechanism.randomness().seed().is_some() {
            exceptions.push("anything: the mechanism is SEEDED, for tests only".into());
        }
        let unknown = match self.policy.unknown {
            Unknown::Random if guarantee.unknown_bound.is_finite() => None,
            Unknown::Random => Some(
                "whether a word is in the vocabulary (unknown words are replaced uniformly at \
                 random and cannot be told from each other)",
            ),
            Unknown::Error => Some("that a released text held no unknown word"),
            Unknown::Drop => {
                Some("whether a word is in the vocabulary (unknown words are dropped)")
            }
            Unknown::Mask => Some("whether a word is in the vocabulary (unknown words are masked)"),
            Unknown::Keep => Some("unknown words, which are RELEASED AS THEY ARE (oov=\"keep\")"),
        };
        exceptions.extend(unknown.map(String::from));
        if !self.policy.skip.is_empty() {
            exceptions.push(format!(
                "the {} skipped words, which are RELEASED AS THEY ARE",
                self.policy.skip.len()
            ));
        }
        guarantee
    }

    /// The proved bound on |ln(Pr\[y|a\] / Pr\[y|b\])| over all outputs y, for two words, or for
    /// two texts of as many words with the same between them; infinite where nothing is
    /// proved. The guarantee's slack, once a word, comes on top.
    pub fn bound(&self, a: &str, b: &str) -> f64 {
        if a == b {
            return 0.0;
        }
        if let Some(bound) = self.word_bound(a, b) {
            return bound;
        }
        let (in_a, in_b): (Vec<_>, Vec<_>) = (words(a).collect(), words(b).collect());
        let between = |text: &str, words: &[std::ops::Range<usize>]| {
            let mut rest = String::new();
            let mut done = 0;
            for word in words {
                rest.push_str(&text[done..word.start]);
                rest.push('\0');
                done = word.end;
            }
            rest + &text[done..]
        };
        if in_a.len() != in_b.len() || between(a, &in_a) != between(b, &in_b) {
            return f64::INFINITY;
        }
        let pairs = in_a.into_iter().zip(in_b).map(|(i, j)| (&a[i], &b[j]));
        pairs
            .map(|(a, b)| self.word_bound(a, b).unwrap_or(f64::INFINITY))
            .sum()
    }

    /// [`bound`](Self::bound) for two words; `None` if one of them is no single word.
    fn word_bound(&self, a: &str, b: &str) -> Option<f64> {
        let fate = |word: &str| {
            let fate = self.fate(&normalize(word), word);
            let single = words(word).next() == Some(0..word.len());
            (single || matches!(fate, Fate::Replace(_))).then_some(fate)
        };
        let unprotected = self.policy.unknown == Unknown::Keep;
        Some(match (fate(a)?, fate(b)?) {
            _ if a == b => 0.0,
            _ if self.mechanism.guarantee().slack.is_infinite() => f64::INFINITY,
            (Fate::Replace(a), Fate::Replace(b)) => {
                self.mechanism.epsilon() * self.mechanism.distance(a, b)
            }
            (Fate::Unknown, Fate::Unknown) if !unprotected => 0.0,
            (Fate::Unknown, Fate::Replace(_)) | (Fate::Replace(_), Fate::Unknown)
                if self.policy.unknown == Unknown::Random =>
            {
                self.mechanism.guarantee().unknown_bound
            }
            _ => f64::INFINITY,
        })
    }

    /// Privatises one text.
    ///
    /// # Errors
    /// [`Error::UnknownWord`] under [`Unknown::Error`].
    pub fn privatize(&self, text: &str) -> Result<String> {
        let (mut texts, _) = self.privatize_texts(&[text], &Control::new())?;
        Ok(texts.pop().unwrap_or_default())
    }

    /// Privatises many texts in one call, in parallel.
    ///
    /// # Errors
    /// [`Error::UnknownWord`] under [`Unknown::Error`], [`Error::Interrupted`].
    pub fn privatize_texts(
        &self,
        texts: &[&str],
        control: &Control,
    ) -> Result<(Vec<String>, Counts)> {
        let mut out = Vec::with_capacity(texts.len());
        let mut counts = Counts::default();
        let mut rest = texts;
        while !rest.is_empty() {
            let mut size = 0;
            let fits = rest.iter().take_while(|t| {
                size += t.len();
                size <= BLOCK
            });
            let (block, later) = rest.split_at(fits.count().max(1));
            install(block.iter().map(|t| t.len()).sum(), SMALL, || {
                self.privatize_block(block, &mut out, &mut counts, control)
            })??;
            rest = later;
        }
        Ok((out, counts))
    }

    fn privatize_block(
        &self,
        texts: &[&str],
        out: &mut Vec<String>,
        counts: &mut Counts,
        control: &Control,
    ) -> Result<()> {
        let found: Vec<Vec<Word>> = texts
            .par_iter()
            .map(|text| {
                control.check()?;
                Ok(words(text)
                    .map(|range| {
                        let word = &text[range.clone()];
                        let fate = self.fate(&normalize(word), word);
                        Word {
                            start: range.start,
                            end: range.end,
                            fate,
                        }
                    })
                    .collect())
            })
            .collect::<Result<_>>()?;
        let pairs = || texts.iter().zip(&found);
        let all =
            pairs().flat_map(|(text, words)| words.iter().map(|w| (&text[w.start..w.end], w.fate)));
        let (drawn, starts) = self.draw(all, found.iter().map(Vec::len), counts, control)?;
        let vocabulary = self.mechanism.vocabulary();
        out.par_extend(
            texts
                .par_iter()
                .zip(&found)
                .zip(starts)
                .map(|((text, words), start)| {
                    let mut drawn = drawn[start..].iter();
                    let mut result = String::with_capacity(text.len() + text.len() / 8);
                    let mut done = 0;
                    for word in words {
                        result.push_str(&text[done..word.start]);
                        done = word.end;
                        let original = &text[word.start..word.end];
                        match self.replacement(word.fate, original, vocabulary, &mut drawn) {
                            Some(replacement) => result.push_str(replacement),
                            // A dropped word takes one of the two spaces around it along.
                            None if result.ends_with(' ')
                                && (done == text.len()
                                    || text[done..].starts_with(AFTER_SPACELESS)) =>
                            {
                                result.pop();
                            }
                            None => {}
                        }
                    }
                    result.push_str(&text[done..]);
                    result
                }),
        );
        Ok(())
    }

    /// Privatises words that somebody else has found: each is one word, whatever it holds.
    ///
    /// # Errors
    /// [`Error::UnknownWord`] under [`Unknown::Error`], [`Error::Interrupted`].
    pub fn privatize_tokens(
        &self,
        tokens: &[&str],
        control: &Control,
    ) -> Result<(Vec<String>, Counts)> {
        let fates: Vec<Fate> = tokens.iter().map(|t| self.fate(&normalize(t), t)).collect();
        let mut counts = Counts::default();
        let all = tokens.iter().copied().zip(fates.iter().copied());
        let (drawn, _) = self.draw(all, std::iter::empty(), &mut counts, control)?;
        let mut drawn = drawn.iter();
        let vocabulary = self.mechanism.vocabulary();
        let replaced = tokens.iter().zip(&fates).filter_map(|(token, &fate)| {
            self.replacement(fate, token, vocabulary, &mut drawn)
                .map(str::to_owned)
        });
        Ok((replaced.collect(), counts))
    }

    fn fate(&self, form: &str, word: &str) -> Fate {
        if self.policy.skip.contains(form) {
            return Fate::Skip;
        }
        let vocabulary = self.mechanism.vocabulary();
        // Cased vocabularies know "Paris" only as it is written.
        match vocabulary.id(form).or_else(|| vocabulary.id(word)) {
            Some(id) => Fate::Replace(id),
            None => Fate::Unknown,
        }
    }

    /// Draws for all words that need it: the ids in order, and for each text (given the numbers
    /// of their words) where its ids start.
    fn draw<'a>(
        &self,
        all: impl Iterator<Item = (&'a str, Fate)>,
        lengths: impl Iterator<Item = usize>,
        counts: &mut Counts,
        control: &Control,
    ) -> Result<(Vec<u32>, Vec<usize>)> {
        let random = self.policy.unknown == Unknown::Random;
        let vocabulary = self.mechanism.vocabulary();
        let mut known = Vec::new();
        // Drawn ids in the order of the text: position of the unknown ones among them.
        let mut unknown = Vec::new();
        let mut starts = Vec::new();
        let mut lengths = lengths.peekable();
        let mut left = 0;
        let mut drawn = 0;
        let mut next_text = |left: &mut usize, drawn: usize, starts: &mut Vec<usize>| {
            while *left == 0 {
                let Some(length) = lengths.next() else { return };
                starts.push(drawn);
                *left = length;
            }
        };
        for (word, fate) in all {
            next_text(&mut left, drawn, &mut starts);
            left = left.saturating_sub(1);
            counts.words += 1;
            match fate {
                Fate::Skip => counts.skipped += 1,
                Fate::Replace(id) => {
                    counts.replaced += 1;
                    known.push(id);
                    drawn += 1;
                }
                Fate::Unknown => {
                    counts.unknown += 1;
                    match self.policy.unknown {
                        Unknown::Error => {
                            return Err(Error::UnknownWord {
                                word: word.to_owned(),
                            });
                        }
                        Unknown::Random => {
                            unknown.push(drawn);
                            drawn += 1;
                        }
                        Unknown::Drop | Unknown::Mask | Unknown::Keep => {}
                    }
                }
            }
        }
        next_text(&mut left, drawn, &mut starts);
        let key = self.mechanism.randomness().next_key()?;
        let mut ids = vec![0; known.len()];
        self.mechanism.draw(&known, &key, &mut ids, control)?;
        if random && !unknown.is_empty() {
            let mut rng = key.stream(UNKNOWN_STREAM);
            let mut merged = Vec::with_capacity(drawn);
            let mut ids = ids.into_iter();
            for at in unknown {
                let before = at - merged.len();
                merged.extend(ids.by_ref().take(before));
                merged.push(uniform_below(&mut rng, vocabulary.len() as u32));
            }
            merged.extend(ids);
            return Ok((merged, starts));
        }
        Ok((ids, starts))
    }

    fn replacement<'a>(
        &self,
        fate: Fate,
        original: &'a str,
        vocabulary: &'a Vocabulary,
        drawn: &mut std::slice::Iter<'_, u32>,
    ) -> Option<&'a str> {
        let mut next = || drawn.next().map(|&id| vocabulary.word(id));
        match fate {
            Fate::Skip => Some(original),
            Fate::Replace(_) => next(),
            Fate::Unknown => match self.policy.unknown {
                Unknown::Random => next(),
                Unknown::Keep => Some(original),
                Unknown::Mask => Some(MASK),
                Unknown::Drop | Unknown::Error => None,
            },
        }
    }
}
