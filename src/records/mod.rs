//! JSON records: the strings of some fields found and replaced, all else copied byte for byte.
//!
//! [`Block::of_lines`] reads records one a line; a [`Document`] reads an array of records, one record, or several
//! one after the other, as its bytes come. Both give [`Block`]s, and a [`RecordError`] says what is wrong and where.
//! `serde_json` decides what JSON is: it lends every value as it is written, `reader` looks into those that are
//! asked for, and nothing else is unpacked. Of this, fastdx's own is:
//!
//! - Numbers are passed over, not read, however large they are.
//! - Halves of surrogate pairs (`\ud800`) are copied in what is not asked for. In a text they are an error.
//! - A field that an object has twice is found twice.
//! - Values that are not asked for may be as deep as the record is long; on the path to a text there are 100
//!   lists and objects within each other at most.

mod document;
mod error;
mod paths;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use std::ops::Range;

pub use document::Document;
pub use error::{Problem, RecordError, Result};
pub use paths::{AskedTwice, Fields, Step, steps};

use memchr::{memchr, memchr_iter};

use reader::{Reader, Wrong, white};

/// Limits of what is kept of a record.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a record of a [`Document`]; for so many bytes it may have one text, in lines too: 32.
    pub bytes: usize,
    /// Different names of fields that were not asked for.
    pub names: usize,
}

impl Limits {
    /// Texts that a record may have: each takes memory of its own.
    pub fn texts(&self) -> usize {
        self.bytes / 32
    }
}

/// Some text of JSON records, and the strings in it that are to be replaced.
#[derive(Clone, Default)]
pub struct Block {
    text: String,
    /// The number of its first line.
    line: usize,
    found: Found,
}

/// The strings that were found in a block, in order.
#[derive(Clone, Default)]
struct Found {
    texts: Vec<Text>,
    unescaped: String,
    others: Vec<String>,
    /// How many texts there were at the end of each record, and who pays for them.
    payers: Vec<(usize, String)>,
}

/// A string that was found.
#[derive(Clone, Debug)]
struct Text {
    /// Where it stands in the block, quotes and all.
    place: Range<usize>,
    /// Where it stands among the unescaped ones, if it has escapes.
    unescaped: Option<Range<usize>>,
    column: usize,
}

impl std::fmt::Debug for Block {
    /// Without what it says.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Block");
        debug.field("line", &self.line);
        debug.field("len", &self.len()).finish_non_exhaustive()
    }
}

const BYTE_ORDER_MARK: char = '\u{feff}';

impl Block {
    /// Finds the strings of some fields in records, one a line, of which the first has a number (from 1 on) and
    /// starts at a byte of the input. A byte order mark in line 1 is dropped.
    ///
    /// # Errors
    /// The first line that is no record, or lacks one of the [`Fields`], or holds something else than text there.
    pub fn of_lines(
        data: &[u8],
        (line, byte): (usize, usize),
        fields: &Fields,
        limits: &Limits,
    ) -> Result<Block> {
        let text = str::from_utf8(data).map_err(|error| {
            let before = error.valid_up_to();
            RecordError {
                line: line + memchr_iter(b'\n', &data[..before]).count(),
                items: Vec::new(),
                problem: Problem::NotUtf8 {
                    byte: byte + before,
                },
            }
        })?;
        let unmarked = text.strip_prefix(BYTE_ORDER_MARK);
        let text = unmarked.filter(|_| line == 1).unwrap_or(text);
        let found = lines(text, fields, limits).map_err(|wrong| placed(*wrong, text, line, 0))?;
        Ok(Block {
            text: text.to_owned(),
            line,
            found,
        })
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.found.texts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.found.texts.is_empty()
    }

    /// The strings, without quotes and escapes.
    pub fn texts(&self) -> Vec<&str> {
        let text = |text: &Text| match &text.unescaped {
            Some(range) => &self.found.unescaped[range.clone()],
            None => &self.text[text.place.start + 1..text.place.end - 1],
        };
        self.found.texts.iter().map(text).collect()
    }

    /// For every string who pays for it. Empty if no account was asked for.
    pub fn payers(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for (end, name) in &self.found.payers {
            names.resize(*end, name.as_str());
        }
        names
    }

    /// In which line of the input a string stands, and which column it belongs to.
    pub fn place(&self, text: usize) -> Option<(usize, usize)> {
        let text = self.found.texts.get(text)?;
        let before = &self.text.as_bytes()[..text.place.start];
        Some((self.line + memchr_iter(b'\n', before).count(), text.column))
    }

    /// Names of fields that were not asked for, by their path, in the order they came.
    pub fn others(&self) -> &[String] {
        &self.found.others
    }

    /// The block with other strings in their places, one for each; none if there are more or fewer of them, for
    /// no string may stay.
    pub fn replaced<S: AsRef<str>>(&self, new: &[S]) -> Option<Vec<u8>> {
        if new.len() != self.len() {
            return None;
        }
        let size: usize = new.iter().map(|text| text.as_ref().len()).sum();
        let mut out = Vec::with_capacity(self.text.len() + size + size / 16);
        let mut done = 0;
        for (text, new) in self.found.texts.iter().zip(new) {
            out.extend_from_slice(&self.text.as_bytes()[done..text.place.start]);
            writer::quote(new.as_ref(), &mut out);
            done = text.place.end;
        }
        out.extend_from_slice(&self.text.as_bytes()[done..]);
        Some(out)
    }
}

/// Reads records, one a line.
fn lines(text: &str, fields: &Fields, limits: &Limits) -> std::result::Result<Found, Box<Wrong>> {
    let bytes = text.as_bytes();
    let mut reader = Reader::new(text, fields, limits);
    let mut at = 0;
    while at < text.len() {
        let end = memchr(b'\n', &bytes[at..]).map_or(text.len(), |length| at + length);
        let start = at + white(&bytes[at..end]);
        if start < end {
            let after = reader.record(start, end)?;
            let after = after + white(&bytes[after..end]);
            if after < end {
                return Err(Wrong::not_json(after, "trailing characters"));
            }
        }
        at = end + 1;
    }
    Ok(reader.found)
}

/// The error for a problem in a text whose first line has a number, and had so many characters before the text.
fn placed(wrong: Wrong, text: &str, line: usize, characters: usize) -> RecordError {
    let before = &text[..wrong.at];
    let (start, mut character) = match before.rfind('\n') {
        Some(end) => (end + 1, 0),
        None => (0, characters),
    };
    character += before[start..].chars().count();
    let problem = match wrong.problem {
        Problem::NotJson { reason, .. } => Problem::NotJson { character, reason },
        other => other,
    };
    RecordError {
        line: line + memchr_iter(b'\n', &before.as_bytes()[..start]).count(),
        items: wrong.items,
        problem,
    }
}
