//! The words of any text as ids of a vocabulary, for language models.

use std::ops::Range;

use super::{compounds_of, known_words, normalize, without_symbols};
use crate::words::vocabulary::Vocabulary;

/// The id of a word in the form of [`normalize`], or as written if the vocabulary has only that
/// spelling ("Paris").
pub fn look_up(vocabulary: &Vocabulary, form: &str, word: &str) -> Option<u32> {
    vocabulary.id(form).or_else(|| vocabulary.id(word))
}

/// The id under which a mechanism replaces a word as written, if the vocabulary has it.
pub fn id_of(vocabulary: &Vocabulary, word: &str) -> Option<u32> {
    let form = normalize(word);
    let bare = || look_up(vocabulary, without_symbols(&form)?, without_symbols(word)?);
    look_up(vocabulary, &form, word).or_else(bare)
}

/// The words of a text with their positions and ids, as a mechanism on this vocabulary finds them.
pub fn word_ids<'a>(
    vocabulary: &'a Vocabulary,
    text: &'a str,
) -> impl Iterator<Item = (Range<usize>, Option<u32>)> + 'a {
    let known = |word: &str| look_up(vocabulary, &normalize(word), word).is_some();
    let begins = |beginning: &str| compounds_of(vocabulary).contains(beginning);
    known_words(text, known, begins).map(|range| {
        let id = id_of(vocabulary, &text[range.clone()]);
        (range, id)
    })
}

/// Whether a word after `between` begins a sentence: `between` has a full stop, an exclamation or
/// question mark, or an empty line.
pub fn ends_sentence(between: &str) -> bool {
    let mut gap = Gap::default();
    gap.add(between);
    gap.ends_sentence()
}

/// The text between two words, which may come in parts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gap {
    mark: bool,
    breaks: usize,
}

impl Gap {
    pub(crate) fn add(&mut self, part: &str) {
        for c in part.chars() {
            self.mark |= matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？');
            self.breaks += usize::from(c == '\n');
        }
    }

    pub(crate) fn ends_sentence(&self) -> bool {
        self.mark || self.breaks > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_their_ids() {
        let vocabulary = Vocabulary::new(["c", "e-mail", "the"]).unwrap();
        let text = "The E-mail, $c x";
        let found: Vec<_> = word_ids(&vocabulary, text).collect();
        let ids: Vec<_> = found.iter().map(|found| found.1).collect();
        assert_eq!(ids, [Some(2), Some(1), Some(0), None]);
        assert_eq!(&text[found[1].0.clone()], "E-mail");
    }

    #[test]
    fn sentences_end_at_their_marks() {
        for between in [". ", "?", "!\" ", "\n \n"] {
            assert!(ends_sentence(between), "{between:?}");
        }
        for between in [" ", ", ", "\n", "; \r\n", ""] {
            assert!(!ends_sentence(between), "{between:?}");
        }
    }
}
