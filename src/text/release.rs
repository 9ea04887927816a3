//! A release can be read again: [`words`](super::words) finds in it the words that were put there.
//!
//! Two rules make it so.
//!
//! 1. **An output is a word that the tokeniser reads back as that word.** Others (",", "u.s.", "new
//!    york", "Game" beside "game") are [`unreadable`]: they stay protected inputs and are never
//!    released. Whether a word is readable depends on the vocabulary and on the policy for
//!    numbers and dates. Both are public, so leaving the others out changes nothing in a proof.
//! 2. **A release joins no words.** "a-b" may become "e-mail", and "#a’b" without its symbol would
//!    become one word. Where the words of a run without white space would not be found again, each
//!    gets a space on both sides ([`Assembly`]). This reads only the release and what stands between
//!    its words, so it is post-processing.

use std::ops::Range;
use std::sync::Arc;

use super::byte_span::ByteSpan;
use super::{compounds_of, id_of, known_words, look_up, normalize};
use crate::numbers::Figures;
use crate::words::tokenize::is_space;
use crate::words::vocabulary::Vocabulary;

/// The ids of the words that the tokeniser does not read back as themselves, ascending. Where no
/// word can be read back, the words are those of no text, and none is returned.
pub fn unreadable(vocabulary: &Vocabulary) -> Arc<[u32]> {
    let found = vocabulary.unreadable.get_or_init(|| {
        let ids = 0..vocabulary.len() as u32;
        let found = ids
            .filter(|&id| !is_read_back(vocabulary, id))
            .collect::<Arc<[u32]>>();
        match found.len() < vocabulary.len() {
            true => found,
            false => Arc::default(),
        }
    });
    found.clone()
}

/// [`unreadable`], and the words that a text with numbers and dates could not release: those that a
/// reader would take for a part of a number or a date ("5", "May" before "3", "pm" behind it).
pub fn unreadable_beside(vocabulary: &Vocabulary, figures: &Figures) -> Arc<[u32]> {
    let plain = unreadable(vocabulary);
    if figures.is_empty() {
        return plain;
    }
    let ids = 0..vocabulary.len() as u32;
    let all = ids.filter(|id| {
        plain.binary_search(id).is_ok() || changes_figures(figures, vocabulary.word(*id))
    });
    all.collect()
}

fn is_read_back(vocabulary: &Vocabulary, id: u32) -> bool {
    let word = vocabulary.word(id);
    // Most words: they are their own form, and nothing splits them.
    if word
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    {
        return true;
    }
    let known = |word: &str| look_up(vocabulary, &normalize(word), word).is_some();
    let begins = |beginning: &str| compounds_of(vocabulary).contains(beginning);
    let mut words = known_words(word, known, begins);
    words.next() == Some(0..word.len())
        && words.next().is_none()
        && id_of(vocabulary, word) == Some(id)
}

/// Whether a word changes which numbers and dates are found around it.
fn changes_figures(figures: &Figures, word: &str) -> bool {
    let found = |word: &str, before: &str, behind: &str| -> Vec<(usize, usize)> {
        let text = format!("{before}{word}{behind}");
        let start = before.len();
        let each = figures.find(&text, |_| false).into_iter();
        // Positions on both sides, counted from the word; one that begins within it wraps.
        let each = each.map(|(span, _)| match span.start < start {
            true => (span.start, span.end),
            false => {
                let from_end = |at: usize| at.wrapping_sub(word.len());
                (from_end(span.start), from_end(span.end))
            }
        });
        each.collect()
    };
    [
        ("", ""),
        ("7 ", ""),
        ("", " 7"),
        ("7 ", " 7"),
        ("7. ", " 2020"),
        ("", " 7, 2020"),
    ]
    .iter()
    .any(|(before, behind)| found(word, before, behind) != found("x", before, behind))
}

/// Classes of the bytes between words: white space, ASCII punctuation that no word takes in where
/// it stands alone, and others.
const PLAIN: u8 = 0;
const SPACE: u8 = 1;
const OTHER: u8 = 2;

const BYTES: [u8; 256] = {
    let mut kinds = [OTHER; 256];
    let mut byte = 0;
    while byte < 128 {
        match byte as u8 {
            b' ' | b'\t'..=b'\r' => kinds[byte] = SPACE,
            b'!' | b'"' | b'\'' | b'(' | b')' | b',' | b'-'..=b'/' | b':' | b';' | b'?' => {
                kinds[byte] = PLAIN;
            }
            _ => {}
        }
        byte += 1;
    }
    kinds
};

/// A word of an [`Assembly`], and how many bytes at each of its ends the tokeniser does not find:
/// the brackets of a mask.
#[derive(Clone, Copy, Default)]
struct Placed {
    start: usize,
    end: usize,
    brackets: usize,
}

/// A text that is put together from words and the text between them.
pub(super) struct Assembly<F> {
    bytes: Vec<u8>,
    /// Whether the words of a run without white space are these.
    has_words: F,
    /// The last word, and the words before it in the present run: most runs have one word.
    last: Placed,
    before: Vec<Placed>,
    /// The end of the last white space, where the run begins.
    start: usize,
    /// Whether the run may be read otherwise than it was put together.
    doubtful: bool,
}

impl<F: Fn(&str, &mut dyn Iterator<Item = Range<usize>>) -> bool> Assembly<F> {
    pub(super) fn new(capacity: usize, has_words: F) -> Self {
        Assembly {
            bytes: Vec::with_capacity(capacity),
            has_words,
            last: Placed::default(),
            before: Vec::new(),
            start: 0,
            doubtful: false,
        }
    }

    /// Appends text between words.
    #[inline]
    pub(super) fn between(&mut self, text: ByteSpan<'_>) {
        text.append_to(&mut self.bytes);
    }

    /// Removes a space at the end, as beside a word that is dropped.
    pub(super) fn drop_space(&mut self) {
        if self.bytes.len() > self.last.end && self.bytes.ends_with(b" ") {
            self.bytes.pop();
        }
    }

    /// Appends a word; the tokeniser finds it without `brackets` bytes at each end.
    #[inline]
    pub(super) fn word(&mut self, word: ByteSpan<'_>, brackets: usize) {
        self.end_gap();
        let start = self.bytes.len();
        word.append_to(&mut self.bytes);
        self.last = Placed {
            start,
            end: self.bytes.len(),
            brackets,
        };
    }

    /// Appends a number or a date, which stands in a run of its own, or in several.
    pub(super) fn figure(&mut self, figure: ByteSpan<'_>) {
        self.end_gap();
        figure.append_to(&mut self.bytes);
        let end = self.bytes.len();
        self.last = Placed {
            start: end,
            end,
            brackets: 0,
        };
        self.begin_run(end, false);
    }

    fn has_word(&self) -> bool {
        self.last.end > self.start
    }

    fn begin_run(&mut self, start: usize, doubtful: bool) {
        self.before.clear();
        (self.start, self.doubtful) = (start, doubtful);
    }

    /// Looks at the text since the last word.
    #[inline]
    fn end_gap(&mut self) {
        let plain = |byte: u8| BYTES[usize::from(byte)] == PLAIN;
        match self.bytes[self.last.end..] {
            // Most words.
            [b' '] if !self.doubtful => self.start = self.bytes.len(),
            [mark, b' '] if !self.doubtful && plain(mark) => self.start = self.bytes.len(),
            [b' ', mark] if !self.doubtful && plain(mark) => self.start = self.bytes.len() - 1,
            _ => self.end_any_gap(true),
        }
    }

    /// `more` tells whether a word follows.
    fn end_any_gap(&mut self, more: bool) {
        let end = self.last.end;
        let gap = &self.bytes[end..];
        let (mut first, mut last) = (None, 0);
        let mut others = [false; 2];
        for (at, &byte) in gap.iter().enumerate() {
            match BYTES[usize::from(byte)] {
                SPACE => {
                    first.get_or_insert(at);
                    last = at + 1;
                }
                OTHER => others[usize::from(first.is_some())] = true,
                _ => {}
            }
        }
        // Other white space is rare, and so is what joins words.
        if others != [false; 2] && !gap.is_ascii() {
            let text = String::from_utf8_lossy(gap).into_owned();
            first = text.find(is_space);
            last = text.rfind(is_space).map_or(0, |at| {
                at + text[at..].chars().next().map_or(0, char::len_utf8)
            });
            others = [true; 2];
        }
        self.doubtful |= others[0];
        match first {
            Some(first) => {
                let added = self.end_run(end + first);
                self.begin_run(end + last + added, others[1]);
            }
            // A second word in one run.
            None if more && self.has_word() => {
                self.before.push(self.last);
                self.doubtful = true;
            }
            None => {}
        }
    }

    /// Ends the present run before the byte `end`, and returns how many bytes it grew by.
    fn end_run(&mut self, end: usize) -> usize {
        if !self.doubtful || !self.has_word() {
            return 0;
        }
        let found_again = {
            let text = String::from_utf8_lossy(&self.bytes[self.start..end]);
            let start = self.start;
            let mut placed =
                self.before.iter().chain([&self.last]).map(|word| {
                    word.start + word.brackets - start..word.end - word.brackets - start
                });
            (self.has_words)(&text, &mut placed)
        };
        match found_again {
            true => 0,
            false => self.part(end),
        }
    }

    /// Puts a space on both sides of each word of the run that ends at the byte `end`, where none
    /// is, and returns how many.
    fn part(&mut self, end: usize) -> usize {
        let rest = self.bytes.split_off(self.start);
        let mut done = 0;
        for word in self.before.iter().chain([&self.last]) {
            let (from, to) = (word.start - self.start, word.end - self.start);
            self.bytes.extend_from_slice(&rest[done..from]);
            if from > 0 {
                self.bytes.push(b' ');
            }
            self.bytes.extend_from_slice(&rest[from..to]);
            if word.end < end {
                self.bytes.push(b' ');
            }
            done = to;
        }
        self.bytes.extend_from_slice(&rest[done..]);
        self.bytes.len() - self.start - rest.len()
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.end_any_gap(false);
        self.end_run(self.bytes.len());
        self.bytes
    }
}
