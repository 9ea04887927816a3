//! Reads a JSON document in parts: an array of records, one record, or several one after the other.

use memchr::{memchr_iter, memrchr};

use super::error::{RecordError, Result};
use super::paths::Fields;
use super::reader::{Reader, Wrong, white};
use super::{BYTE_ORDER_MARK, Block, FoundStrings, Limits, placed};

/// The position in the document's grammar: the item expected next, after white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// `[`, or a record.
    Start,
    /// A record, or the end of the array.
    First,
    /// Another record.
    Record,
    /// A comma, or the end of the array.
    Comma,
    /// Another record without a comma before it, or the end.
    Another,
    /// Only the end.
    Nothing,
}

/// A document whose bytes arrive in parts. It keeps only the bytes of an incomplete record.
#[derive(Debug)]
pub struct Document {
    fields: Fields,
    limits: Limits,
    /// Text that no block contains yet, from the end of the last record or punctuation on.
    text: String,
    /// The bytes of an incomplete character.
    partial: Vec<u8>,
    next: Next,
    /// The line at which the text starts, and the number of characters before it in that line.
    line: usize,
    characters: usize,
    /// Number of bytes received.
    bytes: usize,
}

/// How far a document has been read.
struct Progress {
    found: FoundStrings,
    /// The position after the last record or punctuation.
    at: usize,
    /// Whether an incomplete record starts there, after white space.
    is_record: bool,
}

impl Document {
    /// Creates a document without any bytes yet.
    pub fn new(fields: Fields, limits: Limits) -> Self {
        Document {
            fields,
            limits,
            text: String::new(),
            partial: Vec::new(),
            next: Next::Start,
            line: 1,
            characters: 0,
            bytes: 0,
        }
    }

    /// Number of bytes that wait for the end of their record.
    pub fn pending(&self) -> usize {
        self.text.len() + self.partial.len()
    }

    /// Takes the next bytes; returns the records that end in them.
    ///
    /// # Errors
    /// The first problem; everything after it is meaningless.
    pub fn feed(&mut self, data: &[u8]) -> Result<Block> {
        self.decode(data)?;
        self.block(false)
    }

    /// Returns the remaining records at the end of the document.
    ///
    /// # Errors
    /// The errors of [`Document::feed`]; a problem for an incomplete document.
    pub fn end(&mut self) -> Result<Block> {
        if !self.partial.is_empty() {
            return Err(self.not_utf8(0, 0));
        }
        self.block(true)
    }

    fn decode(&mut self, data: &[u8]) -> Result<()> {
        let kept = self.partial.len();
        let whole;
        let data = if kept == 0 {
            data
        } else {
            whole = [&*self.partial, data].concat();
            &whole
        };
        let is_first = self.bytes == kept;
        let (text, rest) = match str::from_utf8(data) {
            Ok(text) => (text, &[][..]),
            Err(error) => {
                let (valid, rest) = data.split_at(error.valid_up_to());
                if error.error_len().is_some() {
                    let lines = memchr_iter(b'\n', valid).count();
                    return Err(self.not_utf8(valid.len(), lines));
                }
                (str::from_utf8(valid).unwrap_or_default(), rest)
            }
        };
        self.bytes += data.len() - kept;
        let unmarked = text.strip_prefix(BYTE_ORDER_MARK);
        self.text
            .push_str(unmarked.filter(|_| is_first).unwrap_or(text));
        self.partial = rest.to_vec();
        Ok(())
    }

    /// The error for a byte at this distance, in bytes and lines, after the text.
    fn not_utf8(&self, bytes: usize, lines: usize) -> RecordError {
        let before = memchr_iter(b'\n', self.text.as_bytes()).count();
        let byte = self.bytes - self.partial.len() + bytes;
        RecordError::not_utf8(self.line + before + lines, byte)
    }

    /// Takes the readable records out of the text.
    fn block(&mut self, is_end: bool) -> Result<Block> {
        let read = self.read(is_end);
        let progress =
            read.map_err(|wrong| placed(*wrong, &self.text, self.line, self.characters))?;
        let at = if is_end { self.text.len() } else { progress.at };
        let rest = self.text.split_off(at);
        let text = std::mem::replace(&mut self.text, rest);
        let line = self.line;
        self.line += memchr_iter(b'\n', text.as_bytes()).count();
        let start = memrchr(b'\n', text.as_bytes()).map(|end| end + 1);
        let characters = text[start.unwrap_or(0)..].chars().count();
        self.characters = characters + start.map_or(self.characters, |_| 0);
        let found = progress.found;
        let block = Block { text, line, found };
        self.check_length(progress.is_record)?;
        Ok(block)
    }

    /// Refuses an incomplete record or white space that is already too long.
    fn check_length(&self, is_record: bool) -> Result<()> {
        let most = self.limits.bytes;
        let spaces = white(self.text.as_bytes());
        if !is_record || self.text.len() - spaces <= most {
            return Ok(());
        }
        let wrong = long_record(spaces, most);
        Err(placed(*wrong, &self.text, self.line, self.characters))
    }

    /// Reads all records that end in the text.
    fn read(&mut self, is_end: bool) -> std::result::Result<Progress, Box<Wrong>> {
        let text = &*self.text;
        let mut reader = Reader::new(text, &self.fields, &self.limits);
        let (mut at, mut is_record) = (0, false);
        let mut next = self.next;
        loop {
            let start = at + white(&text.as_bytes()[at..]);
            let most = self.limits.bytes;
            if start - at > most {
                let problem = format!("white space of more than {most} bytes");
                return Err(Wrong::too_long(at, problem));
            }
            let Some(&sign) = text.as_bytes().get(start) else {
                if is_end {
                    ended(next, start)?;
                }
                break;
            };
            next = match (next, sign) {
                (Next::Start, b'[') => Next::First,
                (Next::First | Next::Comma, b']') => Next::Nothing,
                (Next::Comma, b',') => Next::Record,
                (Next::Start, b'{') | (Next::First | Next::Record | Next::Another, _) => {
                    let end = match reader.record(start, text.len()) {
                        Ok(end) => end,
                        Err(wrong) if wrong.is_cut && !is_end => {
                            is_record = true;
                            break;
                        }
                        Err(wrong) => return Err(wrong),
                    };
                    if end - start > most {
                        return Err(long_record(start, most));
                    }
                    at = end;
                    next = match next {
                        Next::First | Next::Record => Next::Comma,
                        _ => Next::Another,
                    };
                    continue;
                }
                (Next::Start, _) => {
                    let problem = "neither an array of records nor a record";
                    return Err(Wrong::new(start, problem));
                }
                (Next::Comma, _) => return Err(Wrong::not_json(start, "expected `,` or `]`")),
                (Next::Nothing, _) => {
                    return Err(Wrong::new(start, "not JSON: something follows the end"));
                }
            };
            at = start + 1;
        }
        let found = reader.found;
        self.next = next;
        Ok(Progress {
            found,
            at,
            is_record,
        })
    }
}

fn long_record(at: usize, most: usize) -> Box<Wrong> {
    let problem = format!("not JSON, or a record of more than {most} bytes");
    Wrong::too_long(at, problem)
}

/// Refuses an end where more is expected.
fn ended(next: Next, at: usize) -> std::result::Result<(), Box<Wrong>> {
    let problem = match next {
        Next::Start => "no record: empty",
        Next::First | Next::Record | Next::Comma => "not JSON: the array does not end",
        Next::Another | Next::Nothing => return Ok(()),
    };
    Err(Wrong::new(at, problem))
}
