//! Words that somebody else has found.

use super::figures::Replacing;
use super::piece::Piece;
use super::{Consistent, Counts, Replacements, TextPrivatizer, into_string};
use crate::error::Result;
use crate::parallel::Control;

impl TextPrivatizer {
    /// Privatises words that somebody else has found: each is one word, whatever it holds.
    ///
    /// # Errors
    /// [`Error::UnknownInText`](crate::Error::UnknownInText) under [`Oov::Error`](super::Oov::Error),
    /// [`Error::Interrupted`](crate::Error::Interrupted).
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
    /// As [`privatize_tokens`](Self::privatize_tokens), and replacements of another mechanism.
    pub fn privatize_tokens_with(
        &self,
        tokens: &[&str],
        replacements: &mut Replacements,
        control: &Control,
    ) -> Result<(Vec<String>, Counts)> {
        replacements.tie(&self.mechanism)?;
        let (fates, figures) = self.fates_of_tokens(tokens);
        let mut counts = Counts::default();
        fates.iter().for_each(|&fate| counts.add(fate));
        let all = || tokens.iter().copied().zip(fates.iter().copied());
        self.refuse_unknown(all(), |n| (format!("token {n},"), None))?;
        let drawn = match self.policy.consistent {
            Consistent::Never => {
                let known = fates.iter().filter_map(|fate| fate.id());
                let known = known.collect::<Vec<u32>>();
                self.draw(&known, counts.unknown, figures.iter(), control)?
            }
            _ => {
                let one = std::iter::once((all(), &figures[..]));
                self.draw_consistently(one, replacements, control)?
            }
        };
        counts.unchanged = drawn.unchanged;
        let written = self.written(&figures, &drawn.figures);
        let mut drawn = Replacing {
            known: drawn.known.iter(),
            unknown: drawn.unknown.iter(),
            figures: written.iter(),
        };
        let table = self.mechanism.vocabulary().table();
        let replaced = tokens.iter().zip(&fates).filter_map(|(token, &fate)| {
            let original = Piece::whole(token.as_bytes());
            self.replacement(fate, original, table, &mut drawn)
                .map(|piece| into_string(piece.bytes().to_vec()))
        });
        Ok((replaced.collect(), counts))
    }

    /// The word of the vocabulary as which the mechanism replaces a word; none where the word is
    /// unknown, or skipped.
    pub fn id_of(&self, word: &str) -> Option<u32> {
        self.fate_of_token(word).0.id()
    }

    /// What [`privatize_tokens`](Self::privatize_tokens) would count, without drawing.
    pub fn count_tokens(&self, tokens: &[&str]) -> Counts {
        let mut counts = Counts::default();
        for token in tokens {
            counts.add(self.fate_of_token(token).0);
        }
        counts
    }
}
