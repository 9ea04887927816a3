//! Reads a released text as observations, one per word.

use std::ops::Range;

use super::Channel;
use crate::error::{Error, Result};
use crate::text::{MASK, Oov, ends_sentence, id_of, normalize};

/// The text of an unknown word in a text drawn from a posterior: nothing else is known of it.
pub const UNKNOWN: &str = "[UNKNOWN]";

/// The observation of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Observed {
    /// An output, which any word may have produced.
    Output(u32),
    /// The word itself, as a token: it was skipped, or is visibly unknown.
    Written(u32),
}

/// A release in the form given.
#[derive(Clone, Debug)]
pub enum Given {
    /// A text, whose words are found.
    Text(String),
    /// Words that were found elsewhere: one sentence.
    Tokens(Vec<String>),
}

/// A release and its observations.
pub(super) struct Reading {
    given: Given,
    /// The positions of the words in a text.
    ranges: Vec<Range<usize>>,
    pub(super) observed: Vec<Observed>,
    /// The places of each sentence.
    pub(super) sentences: Vec<Range<usize>>,
}

impl Channel {
    pub(super) fn read(&self, given: Given) -> Result<Reading> {
        let (mut ranges, mut observed, mut starts) = (Vec::new(), Vec::new(), vec![0]);
        match &given {
            Given::Text(text) => {
                let mut done = 0;
                for (range, figure) in self.text.units(text) {
                    if ends_sentence(&text[done..range.start]) && !ranges.is_empty() {
                        starts.push(ranges.len());
                    }
                    let masked =
                        text[..range.start].ends_with('[') && text[range.end..].starts_with(']');
                    let word = &text[range.clone()];
                    let place =
                        || format!("word {} of the text, at byte {}", ranges.len(), range.start);
                    observed.push(match figure {
                        // It was drawn by its own law and reveals nothing about words.
                        Some(_) => Observed::Written(self.vocabulary().len() as u32),
                        None => self.observe(word, masked && is_mask(word), place)?,
                    });
                    done = range.end;
                    ranges.push(range);
                }
            }
            Given::Tokens(tokens) => {
                for (at, token) in tokens.iter().enumerate() {
                    let place = || format!("token {at}");
                    observed.push(match self.text.policy().figures.read(token) {
                        Some(_) => Observed::Written(self.vocabulary().len() as u32),
                        None => self.observe(token, token == MASK, place)?,
                    });
                }
            }
        }
        starts.push(observed.len());
        let sentences = starts.windows(2).map(|w| w[0]..w[1]);
        Ok(Reading {
            sentences: sentences.filter(|places| !places.is_empty()).collect(),
            given,
            ranges,
            observed,
        })
    }

    fn observe(&self, word: &str, masked: bool, place: impl Fn() -> String) -> Result<Observed> {
        let policy = self.text.policy();
        let vocabulary = self.vocabulary();
        let unknown = vocabulary.len() as u32;
        // A drawn word has the vocabulary's spelling.
        if let Some(output) = vocabulary.id(word) {
            return Ok(Observed::Output(output));
        }
        let known = id_of(vocabulary, word);
        if policy.skip.contains(&*normalize(word)) {
            return Ok(Observed::Written(known.unwrap_or(unknown)));
        }
        match policy.oov {
            Oov::Keep if known.is_none() => Ok(Observed::Written(unknown)),
            Oov::Mask if masked => Ok(Observed::Written(unknown)),
            _ => {
                let expected = "a release of this mechanism";
                let got = format!("another text: {} is none of its outputs", place());
                Err(Error::parameter("text", expected, got))
            }
        }
    }
}

fn is_mask(word: &str) -> bool {
    MASK.trim_matches(['[', ']']) == word
}

impl Reading {
    /// Returns the release with other words.
    pub(super) fn with(&self, channel: &Channel, tokens: &[u32]) -> Given {
        let words = channel.vocabulary();
        let word = |place: usize, written: &str| -> String {
            match (self.observed[place], tokens[place]) {
                (Observed::Written(_), _) => written.to_owned(),
                (_, token) if token as usize == words.len() => UNKNOWN.to_owned(),
                (_, token) => words.word(token).to_owned(),
            }
        };
        match &self.given {
            Given::Text(text) => {
                let mut out = String::with_capacity(text.len());
                let mut done = 0;
                for (place, range) in self.ranges.iter().enumerate() {
                    out.push_str(&text[done..range.start]);
                    out.push_str(&word(place, &text[range.clone()]));
                    done = range.end;
                }
                out.push_str(&text[done..]);
                Given::Text(out)
            }
            Given::Tokens(given) => {
                let words = given.iter().enumerate();
                Given::Tokens(words.map(|(place, written)| word(place, written)).collect())
            }
        }
    }
}
