//! What has been released of a text so far: the history of a word.

use crate::words::tokenize::{Gap, id_of, word_ids};
use crate::words::vocabulary::Vocabulary;

/// A word that was drawn, and so is released. Only draws make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleasedWord(u32);

impl ReleasedWord {
    pub(super) fn drawn(id: u32) -> Self {
        ReleasedWord(id)
    }

    /// Its id.
    pub fn id(self) -> u32 {
        self.0
    }
}

/// What has been released of a text so far, as a model of language reads it.
///
/// It grows by [drawn words](super::InOrder) and by public text, and by nothing else: there is no
/// way to add the id of an original word.
///
/// ```compile_fail
/// # fn add(released: &mut fastdx::mechanism::contextual::Released, original: u32) {
/// released.push(original); // no such method, nor any other that takes an id
/// # }
/// ```
///
/// ```compile_fail
/// # use fastdx::mechanism::contextual::{InOrder, ReleasedWord};
/// # fn add(text: &mut InOrder, original: u32) {
/// text.again(ReleasedWord(original)); // only draws make one
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Released {
    sentence: Vec<u32>,
    /// What stands behind the last word.
    gap: Gap,
}

impl Released {
    /// The beginning of a text.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Reads a text that **is released or public**, as the receiver of a release does.
    pub fn text(vocabulary: &Vocabulary, text: &str) -> Self {
        let mut released = Self::nothing();
        released.read(vocabulary, text);
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

    pub(super) fn read(&mut self, vocabulary: &Vocabulary, text: &str) {
        let mut done = 0;
        for (range, id) in word_ids(vocabulary, text) {
            self.between(&text[done..range.start]);
            done = range.end;
            self.token(vocabulary, id);
        }
        self.between(&text[done..]);
    }

    /// A word that is released as it is.
    pub(super) fn kept(&mut self, vocabulary: &Vocabulary, word: &str) {
        self.token(vocabulary, id_of(vocabulary, word));
    }

    /// What stands between two words.
    pub(super) fn between(&mut self, text: &str) {
        self.gap.add(text);
    }

    pub(super) fn word(&mut self, word: ReleasedWord) {
        self.add(word.0);
    }

    /// A token; `None` is one that is not in the vocabulary.
    pub(super) fn token(&mut self, vocabulary: &Vocabulary, id: Option<u32>) {
        self.add(id.unwrap_or(vocabulary.len() as u32));
    }

    fn add(&mut self, token: u32) {
        if std::mem::take(&mut self.gap).ends_sentence() {
            self.sentence.clear();
        }
        self.sentence.push(token);
    }
}
