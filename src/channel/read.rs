//! Reads a released text as observations, one per word.

use std::ops::Range;

use super::Channel;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, install, map_all};
use crate::text::{MASK, Oov, ends_sentence, id_of, is_masked, normalize};

/// The text of an unknown word in a text drawn from a posterior: nothing else is known of it.
pub const UNKNOWN: &str = "[UNKNOWN]";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Observed {
    /// An output, which any word may have produced.
    Output(u32),
    /// The word itself, as a token: it was skipped, or is visibly unknown.
    Written(u32),
}

/// A release in the form given.
#[derive(Clone, Debug)]
pub enum TextOrTokens {
    /// A text, whose words are found.
    Text(String),
    /// Words that were found elsewhere: one sentence.
    Tokens(Vec<String>),
}

/// A release and its observations.
pub(super) struct Reading {
    given: TextOrTokens,
    ranges: Vec<Range<usize>>,
    pub(super) observed: Vec<Observed>,
    pub(super) sentences: Vec<Range<usize>>,
}

impl Channel {
    /// Reads many releases: a number for each word, one text after the other, and how many words each text
    /// has. The number is that of an output, or V more than the token of a word that stands there as it was
    /// written: 2·V for one that the vocabulary lacks.
    ///
    /// With `partly`, a text that is no release is read as those of its words that the vocabulary has, if it
    /// has any: outputs and punctuation that stand together may read as another word.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a text that is no release of this mechanism, with its number;
    /// [`Error::Interrupted`].
    pub fn observed(
        &self,
        texts: &[&str],
        partly: bool,
        control: &Control,
    ) -> Result<(Vec<u32>, Vec<u32>)> {
        self.check_one_law()?;
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        let found: Vec<Vec<u32>> = install(bytes, 0, || {
            map_all(texts.iter().enumerate(), |(at, text)| {
                control.check()?;
                self.numbers(text, partly).map_err(|error| match error {
                    Error::Parameter { expected, got, .. } => {
                        Error::parameter("texts", expected, format!("at {at} {got}"))
                    }
                    other => other,
                })
            })
        })??;
        let lengths = found.iter().map(|ids| ids.len() as u32).collect();
        Ok((found.concat(), lengths))
    }

    fn numbers(&self, text: &str, partly: bool) -> Result<Vec<u32>> {
        let words = self.words() as u32;
        match self.read(TextOrTokens::Text(text.to_owned())) {
            Ok(read) => {
                let number = |seen: &Observed| match *seen {
                    Observed::Output(y) => y,
                    Observed::Written(token) => words + token,
                };
                Ok(read.observed.iter().map(number).collect())
            }
            Err(error) => {
                let written = self
                    .text
                    .units(text)
                    .into_iter()
                    .map(|(range, _)| &text[range]);
                let known: Vec<u32> = written
                    .filter_map(|word| self.vocabulary().id(word))
                    .collect();
                if partly && !known.is_empty() {
                    Ok(known)
                } else {
                    Err(error)
                }
            }
        }
    }

    pub(super) fn read(&self, given: TextOrTokens) -> Result<Reading> {
        let (mut ranges, mut observed, mut starts) = (Vec::new(), Vec::new(), vec![0]);
        match &given {
            TextOrTokens::Text(text) => {
                let mut done = 0;
                for (range, figure) in self.text.units(text) {
                    if ends_sentence(&text[done..range.start]) && !ranges.is_empty() {
                        starts.push(ranges.len());
                    }
                    done = range.end;
                    if figure.is_some() {
                        // It was drawn by its own law and reveals nothing about words.
                        observed.push(Observed::Written(self.vocabulary().len() as u32));
                        ranges.push(range);
                        continue;
                    }
                    let word = &text[range.clone()];
                    let one = self.observe(word, is_masked(text, &range)).ok_or_else(|| {
                        let place = ranges.len();
                        none(format!("word {place} of the text, at byte {}", range.start))
                    })?;
                    observed.push(one);
                    ranges.push(range);
                }
            }
            TextOrTokens::Tokens(tokens) => {
                for (at, token) in tokens.iter().enumerate() {
                    observed.push(match self.text.policy().figures.read(token) {
                        Some(_) => Observed::Written(self.vocabulary().len() as u32),
                        None => self
                            .observe(token, token == MASK)
                            .ok_or_else(|| none(format!("token {at}")))?,
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

    /// The observation of a word; None if this mechanism does not release it.
    fn observe(&self, word: &str, masked: bool) -> Option<Observed> {
        let policy = self.text.policy();
        let vocabulary = self.vocabulary();
        let unknown = vocabulary.len() as u32;
        // A drawn word has the vocabulary's spelling.
        if let Some(output) = vocabulary.id(word) {
            return Some(Observed::Output(output));
        }
        let known = id_of(vocabulary, word);
        if policy.skip.contains(&*normalize(word)) {
            return Some(Observed::Written(known.unwrap_or(unknown)));
        }
        match policy.oov {
            Oov::Keep if known.is_none() => Some(Observed::Written(unknown)),
            Oov::Mask if masked => Some(Observed::Written(unknown)),
            _ => None,
        }
    }
}

fn none(place: String) -> Error {
    let got = format!("another text: {place} is none of its outputs");
    Error::parameter("text", "a release of this mechanism", got)
}

impl Reading {
    /// Returns the release with other words.
    pub(super) fn with(&self, channel: &Channel, tokens: &[u32]) -> TextOrTokens {
        let words = channel.vocabulary();
        let word = |place: usize, written: &str| -> String {
            match (self.observed[place], tokens[place]) {
                (Observed::Written(_), _) => written.to_owned(),
                (_, token) if token as usize == words.len() => UNKNOWN.to_owned(),
                (_, token) => words.word(token).to_owned(),
            }
        };
        match &self.given {
            TextOrTokens::Text(text) => {
                let mut out = String::with_capacity(text.len());
                let mut done = 0;
                for (place, range) in self.ranges.iter().enumerate() {
                    out.push_str(&text[done..range.start]);
                    out.push_str(&word(place, &text[range.clone()]));
                    done = range.end;
                }
                out.push_str(&text[done..]);
                TextOrTokens::Text(out)
            }
            TextOrTokens::Tokens(given) => {
                let words = given.iter().enumerate();
                TextOrTokens::Tokens(words.map(|(place, written)| word(place, written)).collect())
            }
        }
    }
}
