//! What has been released of a text so far: the history of a word.

use crate::words::tokenize::{Gap, id_of, word_ids};
use crate::words::vocabulary::Vocabulary;

/// A word that was drawn, and so is released. Only draws make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleasedWord(pub(super) u32);

impl ReleasedWord {
    /// Its id.
    pub fn id(self) -> u32 {
        self.0
    }
}

/// What has been released of a text so far, as a model of language reads it.
///
/// It grows by drawn words and by text that **is released as it is**. Nothing adds the id of an
/// original word:
///
/// ```compile_fail
/// # use fastdx::mechanism::contextual::{Released, ReleasedWord};
/// # fn add(released: &mut Released, original: u32) {
/// released.again(ReleasedWord(original)); // only draws make one
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Released<'a> {
    vocabulary: &'a Vocabulary,
    sentence: Vec<u32>,
    /// The text behind the last word.
    gap: Gap,
}

impl<'a> Released<'a> {
    /// The beginning of a text.
    pub fn nothing(vocabulary: &'a Vocabulary) -> Self {
        Released {
            vocabulary,
            sentence: Vec::new(),
            gap: Gap::default(),
        }
    }

    /// A text that is released or public, as its receiver reads it.
    pub fn text(vocabulary: &'a Vocabulary, text: &str) -> Self {
        let mut released = Self::nothing(vocabulary);
        released.read(text);
        released
    }

    /// The tokens of the sentence that the next word stands in: ids, and the number of words for one
    /// that is not in the vocabulary.
    pub fn sentence(&self) -> &[u32] {
        match self.gap.ends_sentence() {
            true => &[],
            false => &self.sentence,
        }
    }

    /// A released text comes next.
    pub fn read(&mut self, text: &str) {
        let mut done = 0;
        for (range, id) in word_ids(self.vocabulary, text) {
            self.between(&text[done..range.start]);
            done = range.end;
            self.add(id);
        }
        self.between(&text[done..]);
    }

    /// The text between two words comes next.
    pub fn between(&mut self, text: &str) {
        self.gap.add(text);
    }

    /// A word that is released as it is comes next.
    pub fn kept(&mut self, word: &str) {
        self.add(id_of(self.vocabulary, word));
    }

    /// Something else comes next in the place of a word: a mask, a number drawn by its own law.
    pub fn other(&mut self) {
        self.add(None);
    }

    /// A word that was drawn comes next: a reader of the release, who cannot tell it from one that was
    /// kept, has the same history.
    pub fn again(&mut self, word: ReleasedWord) {
        self.kept(self.vocabulary.word(word.0));
    }

    fn add(&mut self, id: Option<u32>) {
        if std::mem::take(&mut self.gap).ends_sentence() {
            self.sentence.clear();
        }
        self.sentence
            .push(id.unwrap_or(self.vocabulary.len() as u32));
    }
}
