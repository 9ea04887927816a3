//! Words that somebody else has found.

use super::byte_span::ByteSpan;
use super::figures::{Replacing, figure_fate};
use super::{Counts, Fate, FoundWords, Oov, Replacements, TextPrivatizer, Word, into_string};
use crate::support::error::{Error, Result};
use crate::support::parallel::Control;

impl TextPrivatizer {
    /// Privatises words that somebody else has found: each is one word, whatever it holds. Numbers and dates are
    /// those of the text of these words with spaces between.
    ///
    /// # Errors
    /// [`Error::UnknownInText`] under [`Oov::Error`],
    /// [`Error::Interrupted`].
    pub fn privatize_tokens(
        &self,
        tokens: &[&str],
        control: &Control,
    ) -> Result<(Vec<String>, Counts)> {
        self.privatize_tokens_with(tokens, &mut Replacements::default(), control)
    }

    /// [`privatize_tokens`](Self::privatize_tokens), where the replacements of earlier pieces of
    /// the same text are kept, as [`privatize_texts_with`](Self::privatize_texts_with) keeps them.
    ///
    /// # Errors
    /// The errors of [`privatize_tokens`](Self::privatize_tokens); [`Error::Parameter`] for
    /// replacements of another mechanism.
    pub fn privatize_tokens_with(
        &self,
        tokens: &[&str],
        replacements: &mut Replacements,
        control: &Control,
    ) -> Result<(Vec<String>, Counts)> {
        let (text, found) = self.find_tokens(tokens, |_| true);
        self.privatize_found_tokens(tokens, &text, &found, replacements, control)
    }

    /// Privatises some words of a list: those at the places `chosen`. What stands beside them in the list decides
    /// whether they are numbers, as in [`privatize_tokens`](Self::privatize_tokens).
    ///
    /// # Errors
    /// The errors of [`privatize_tokens`](Self::privatize_tokens); [`Error::Parameter`] for
    /// positions beyond the list, and under [`Oov::Drop`].
    pub fn privatize_chosen_tokens(
        &self,
        tokens: &[&str],
        chosen: &[usize],
        control: &Control,
    ) -> Result<(Vec<String>, Counts)> {
        if self.policy.oov == Oov::Drop {
            let expected = "another one where only some words are replaced";
            return Err(Error::parameter("oov", expected, Oov::Drop.name()));
        }
        if let Some(place) = chosen.iter().find(|&&place| place >= tokens.len()) {
            return Err(Error::parameter("chosen", "places of the list", place));
        }
        let mut is_chosen = vec![false; tokens.len()];
        chosen.iter().for_each(|&place| is_chosen[place] = true);
        let (text, found) = self.find_tokens(tokens, |place| is_chosen[place]);
        let mut kept = Replacements::default();
        let (new, counts) =
            self.privatize_found_tokens(tokens, &text, &found, &mut kept, control)?;
        let new = chosen.iter().map(|&place| new[place].clone());
        Ok((new.collect(), counts))
    }

    /// A list of words as the text of these words with spaces between, and the words found in it. Of "555", "123",
    /// "4567" none is a number. Those that are not chosen are released as they are, and so are history; they are not
    /// counted.
    pub(super) fn find_tokens(
        &self,
        tokens: &[&str],
        is_chosen: impl Fn(usize) -> bool,
    ) -> (String, FoundWords) {
        let text = tokens.join(" ");
        let mut figures = self.figures(&text).into_iter().peekable();
        let mut found = FoundWords::with_capacity(tokens.len());
        let mut start = 0;
        for (at, token) in tokens.iter().enumerate() {
            let place = start..start + token.len();
            start = place.end + 1;
            while figures
                .next_if(|(span, _)| span.start < place.start)
                .is_some()
            {}
            let figure = figures.next_if(|(span, _)| *span == place);
            if !is_chosen(at) {
                found.words.push(Word {
                    start: place.start,
                    end: place.end,
                    fate: Fate::Skip,
                });
                continue;
            }
            match (self.fate(token), figure) {
                (Fate::Skip, _) => found.add(place, Fate::Skip),
                (_, Some((_, figure))) => {
                    found.add(place, figure_fate(&figure));
                    found.figures.push(figure);
                }
                (fate, None) => found.add(place, fate),
            }
        }
        (text, found)
    }

    fn privatize_found_tokens(
        &self,
        tokens: &[&str],
        text: &str,
        found: &FoundWords,
        replacements: &mut Replacements,
        control: &Control,
    ) -> Result<(Vec<String>, Counts)> {
        replacements.tie(&self.mechanism)?;
        self.refuse_unknown(found.strs(text), |n| (format!("token {n},"), None))?;
        let drawn = self.draw_found(&[(text, found)], None, replacements, control)?;
        let counts = Counts {
            unchanged: drawn.unchanged,
            ..found.counts
        };
        let written = self.written(&found.figures, &drawn.figures);
        let mut drawn = Replacing {
            known: drawn.known.iter(),
            unknown: drawn.unknown.iter(),
            figures: written.iter(),
        };
        let table = self.mechanism.vocabulary().table();
        let replaced = tokens.iter().zip(&found.words).filter_map(|(token, word)| {
            let original = ByteSpan::whole(token.as_bytes());
            self.replacement(word.fate, original, table, &mut drawn)
                .map(|span| into_string(span.bytes().to_vec()))
        });
        Ok((replaced.collect(), counts))
    }
}
