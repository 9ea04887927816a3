//! Words that somebody else has found.

use super::byte_span::ByteSpan;
use super::figures::{Replacing, figure_fate};
use super::{Consistent, Counts, Fate, Oov, Replacements, TextPrivatizer, into_string};
use crate::numbers::Figure;
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
        let (fates, figures) = self.fates_of_tokens(tokens);
        self.privatize_fates(tokens, &fates, &figures, replacements, control)
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
        let all = self.figures_of_tokens(tokens);
        // The words beside them are released as they are, and so are history.
        let mut fates = vec![Fate::Skip; tokens.len()];
        let mut counts = Counts::default();
        for &place in chosen {
            let Some((token, figure)) = tokens.get(place).zip(all.get(place)) else {
                return Err(Error::parameter("chosen", "places of the list", place));
            };
            fates[place] = self.fate_as(token, figure.as_ref());
            counts.add(fates[place]);
        }
        let drawn = |fate: &Fate| matches!(fate, Fate::Number | Fate::Date);
        let figures = all.into_iter().zip(&fates);
        let figures = figures.filter_map(|(figure, fate)| figure.filter(|_| drawn(fate)));
        let figures: Vec<Figure> = figures.collect();
        let mut kept = Replacements::default();
        let (new, found) = self.privatize_fates(tokens, &fates, &figures, &mut kept, control)?;
        counts.unchanged = found.unchanged;
        let new = chosen.iter().map(|&place| new[place].clone());
        Ok((new.collect(), counts))
    }

    fn privatize_fates(
        &self,
        tokens: &[&str],
        fates: &[Fate],
        figures: &[Figure],
        replacements: &mut Replacements,
        control: &Control,
    ) -> Result<(Vec<String>, Counts)> {
        replacements.tie(&self.mechanism)?;
        let mut counts = Counts::default();
        fates.iter().for_each(|&fate| counts.add(fate));
        let all = || tokens.iter().copied().zip(fates.iter().copied());
        self.refuse_unknown(all(), |n| (format!("token {n},"), None))?;
        let drawn = match (self.mechanism.in_order(), self.policy.consistent) {
            (Some(tem), _) => {
                self.draw_tokens_in_order(tem, tokens, fates, figures, replacements, control)?
            }
            (None, Consistent::Never) => {
                let known = fates.iter().filter_map(|fate| fate.id());
                let known = known.collect::<Vec<u32>>();
                self.draw(&known, counts.unknown, figures.iter(), control)?
            }
            (None, _) => {
                let one = std::iter::once((all(), figures));
                self.draw_consistently(one, replacements, control)?
            }
        };
        counts.unchanged = drawn.unchanged;
        let written = self.written(figures, &drawn.figures);
        let mut drawn = Replacing {
            known: drawn.known.iter(),
            unknown: drawn.unknown.iter(),
            figures: written.iter(),
        };
        let table = self.mechanism.vocabulary().table();
        let replaced = tokens.iter().zip(fates).filter_map(|(token, &fate)| {
            let original = ByteSpan::whole(token.as_bytes());
            self.replacement(fate, original, table, &mut drawn)
                .map(|span| into_string(span.bytes().to_vec()))
        });
        Ok((replaced.collect(), counts))
    }

    /// The word of the vocabulary as which the mechanism replaces a word; none where the word is
    /// unknown, or skipped.
    pub fn id_of(&self, word: &str) -> Option<u32> {
        self.fates_of_tokens(&[word]).0[0].id()
    }

    /// The counts that [`privatize`](Self::privatize) would return for a text, without drawing.
    pub fn count_text(&self, text: &str) -> Counts {
        let mut counts = Counts::default();
        for (word, figure) in self.units(text) {
            counts.add(match figure {
                Some(figure) => figure_fate(&figure),
                None => self.fate(&text[word]),
            });
        }
        counts
    }

    /// The counts that [`privatize_tokens`](Self::privatize_tokens) would return, without drawing.
    pub fn count_tokens(&self, tokens: &[&str]) -> Counts {
        let mut counts = Counts::default();
        let (fates, _) = self.fates_of_tokens(tokens);
        fates.iter().for_each(|&fate| counts.add(fate));
        counts
    }
}
