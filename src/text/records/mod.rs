//! JSON records: finds and replaces the strings of some fields, and copies everything else byte for
//! byte.
//!
//! [`Block::of_lines`] reads one record per line. A [`Document`] reads an array of records, one
//! record, or several one after the other, as its bytes arrive. Both return [`Block`]s; a
//! [`RecordError`] names the problem and its position. `serde_json` defines JSON: it returns every
//! value as borrowed text, `reader` looks into requested values, and nothing else is unpacked.
//! fastdx adds its own rules:
//!
//! - Numbers are skipped without being parsed, however large they are.
//! - Halves of surrogate pairs (`\ud800`) are copied in values that are not requested. In a text
//!   they are an error.
//! - A field that an object has twice is found twice.
//! - Values that are not requested may be nested to any depth. On the path to a text, lists and
//!   objects may be nested to a depth of 100.

mod document;
mod error;
mod paths;
mod reader;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use document::Document;
pub use error::{Hint, RecordError, Result};
pub use paths::{Fields, Step, steps};

use memchr::{memchr, memchr_iter};

use error::Read;
use reader::{Reader, white};

/// Limits on a record.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum bytes of a record of a [`Document`]. In every format, a record may also have one
    /// text per 32 of these bytes.
    pub bytes: usize,
    /// Maximum number of distinct field names that were not requested.
    pub names: usize,
}

impl Limits {
    /// Maximum number of texts in a record: each takes memory.
    pub fn texts(&self) -> usize {
        self.bytes / 32
    }
}

/// A part of JSON records, with the strings in it that are to be replaced.
#[derive(Clone, Default)]
pub struct Block {
    text: String,
    /// The number of its first line.
    line: usize,
    found: FoundStrings,
}

/// The strings found in a block, in order.
#[derive(Clone, Default)]
struct FoundStrings {
    texts: Vec<Text>,
    unescaped: String,
    others: Vec<String>,
    /// The number of texts at the end of each record, and the record's account.
    payers: Vec<(usize, String)>,
}

/// A string that was found.
#[derive(Clone, Debug)]
struct Text {
    /// Its range in the block, including quotes.
    place: Range<usize>,
    /// Its range in the unescaped text, if it has escapes.
    unescaped: Option<Range<usize>>,
    column: usize,
}

impl std::fmt::Debug for Block {
    /// Omits the text's content.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Block");
        debug.field("line", &self.line);
        debug.field("len", &self.len()).finish_non_exhaustive()
    }
}

const BYTE_ORDER_MARK: &str = "\u{feff}";

impl Block {
    /// Finds the strings of some fields in records, one record per line. `line` is the number of
    /// the first line (from 1), `byte` its position in the input. A byte order mark in line 1 is
    /// dropped.
    ///
    /// # Errors
    /// The first line that is no record, lacks one of the [`Fields`], or has a value other than
    /// text there.
    pub fn of_lines(
        data: &[u8],
        (line, byte): (usize, usize),
        fields: &Fields,
        limits: &Limits,
    ) -> Result<Block> {
        let text = str::from_utf8(data).map_err(|error| {
            let before = error.valid_up_to();
            let line = line + memchr_iter(b'\n', &data[..before]).count();
            RecordError::not_utf8(line, byte + before)
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

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.found.texts.len()
    }

    /// Whether there are no strings.
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

    /// The account of every string; empty if no account was requested.
    pub fn payers(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for (end, name) in &self.found.payers {
            names.resize(*end, name.as_str());
        }
        names
    }

    /// The input line of a string, and its column.
    pub fn place(&self, text: usize) -> Option<(usize, usize)> {
        let text = self.found.texts.get(text)?;
        let before = &self.text.as_bytes()[..text.place.start];
        Some((self.line + memchr_iter(b'\n', before).count(), text.column))
    }

    /// The paths of fields that were not requested, in the order of their appearance.
    pub fn others(&self) -> &[String] {
        &self.found.others
    }

    /// Returns the block with each string replaced. `None` if the number of replacements differs
    /// from the number of strings, because no string may remain.
    pub fn replaced<S: AsRef<str>>(&self, new: &[S]) -> Option<Vec<u8>> {
        if new.len() != self.len() {
            return None;
        }
        let size: usize = new.iter().map(|text| text.as_ref().len()).sum();
        let mut out = Vec::with_capacity(self.text.len() + size + size / 16);
        let mut done = 0;
        for (text, new) in self.found.texts.iter().zip(new) {
            out.extend_from_slice(&self.text.as_bytes()[done..text.place.start]);
            serde_json::to_writer(&mut out, new.as_ref()).ok()?;
            done = text.place.end;
        }
        out.extend_from_slice(&self.text.as_bytes()[done..]);
        Some(out)
    }
}

/// Reads records, one per line.
fn lines(text: &str, fields: &Fields, limits: &Limits) -> Read<FoundStrings> {
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
                return Err(RecordError::not_json(after, "trailing characters"));
            }
        }
        at = end + 1;
    }
    Ok(reader.found)
}

/// The error for a problem in a text. `line` is the number of its first line, `characters` the
/// number of characters before the text in that line.
fn placed(mut error: RecordError, text: &str, line: usize, characters: usize) -> RecordError {
    let before = &text[..error.at];
    let (start, mut character) = match before.rfind('\n') {
        Some(end) => (end + 1, 0),
        None => (0, characters),
    };
    character += before[start..].chars().count();
    if std::mem::take(&mut error.is_not_json) {
        error.problem = format!("not JSON at character {character}: {}", error.problem);
    }
    (error.at, error.is_cut) = (0, false);
    error.line = line + memchr_iter(b'\n', &before.as_bytes()[..start]).count();
    error
}
