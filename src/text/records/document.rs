//! Reads a JSON document in parts: an array of records, one record, or several one after the other.

use memchr::{memchr_iter, memrchr};

use super::error::{Read, RecordError, Result};
use super::paths::Fields;
use super::reader::{Reader, white};
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
    next: Next,
    /// The bytes that no block contains yet, from the end of the last record or punctuation on.
    rest: Vec<u8>,
    /// Number of bytes before that.
    bytes: usize,
    /// The line at which it starts, and the number of characters before it in that line.
    line: usize,
    characters: usize,
}

/// How far a document has been read.
struct Progress {
    found: FoundStrings,
    /// The position after the last record or punctuation.
    at: usize,
    next: Next,
}

impl Document {
    /// Creates a document without any bytes yet.
    pub fn new(fields: Fields, limits: Limits) -> Self {
        Document {
            fields,
            limits,
            next: Next::Start,
            rest: Vec::new(),
            bytes: 0,
            line: 1,
            characters: 0,
        }
    }

    /// Number of bytes that wait for the end of their record.
    pub fn pending(&self) -> usize {
        self.rest.len()
    }

    /// Takes the next bytes; returns the records that end in them.
    ///
    /// # Errors
    /// The first problem; everything after it is meaningless.
    pub fn feed(&mut self, data: &[u8]) -> Result<Block> {
        self.rest.extend_from_slice(data);
        if self.bytes == 0 && self.rest.starts_with(BYTE_ORDER_MARK.as_bytes()) {
            self.take(BYTE_ORDER_MARK.len());
        }
        self.block(false)
    }

    /// Returns the remaining records at the end of the document.
    ///
    /// # Errors
    /// The errors of [`Document::feed`]; a problem for an incomplete document.
    pub fn end(&mut self) -> Result<Block> {
        self.block(true)
    }

    fn take(&mut self, length: usize) {
        self.rest.drain(..length);
        self.bytes += length;
    }

    /// Takes the readable records out of the text.
    fn block(&mut self, is_end: bool) -> Result<Block> {
        let valid = match str::from_utf8(&self.rest) {
            Ok(text) => text.len(),
            // The rest of a character comes later.
            Err(error) if error.error_len().is_none() && !is_end => error.valid_up_to(),
            Err(error) => {
                let valid = error.valid_up_to();
                let line = self.line + memchr_iter(b'\n', &self.rest[..valid]).count();
                return Err(RecordError::not_utf8(line, self.bytes + valid));
            }
        };
        let text = str::from_utf8(&self.rest[..valid]).unwrap_or_default();
        let read = self.read(text, is_end);
        let read = read.map_err(|wrong| placed(*wrong, text, self.line, self.characters))?;
        let text = text[..if is_end { valid } else { read.at }].to_owned();
        let line = self.line;
        self.line += memchr_iter(b'\n', text.as_bytes()).count();
        let start = memrchr(b'\n', text.as_bytes()).map(|end| end + 1);
        let characters = text[start.unwrap_or(0)..].chars().count();
        self.characters = characters + start.map_or(self.characters, |_| 0);
        self.next = read.next;
        self.take(text.len());
        let found = read.found;
        Ok(Block { text, line, found })
    }

    /// Reads all records that end in the text.
    fn read(&self, text: &str, is_end: bool) -> Read<Progress> {
        let mut reader = Reader::new(text, &self.fields, &self.limits);
        let (mut at, mut next) = (0, self.next);
        let most = self.limits.bytes;
        let long_record = |at: usize| {
            let problem = format!("not JSON, or a record of more than {most} bytes");
            RecordError::too_long(at, problem)
        };
        loop {
            let start = at + white(&text.as_bytes()[at..]);
            if start - at > most {
                let problem = format!("white space of more than {most} bytes");
                return Err(RecordError::too_long(at, problem));
            }
            let Some(&sign) = text.as_bytes().get(start) else {
                let problem = match next {
                    Next::Start => "no record: empty",
                    Next::First | Next::Record | Next::Comma => "not JSON: the array does not end",
                    Next::Another | Next::Nothing => break,
                };
                match is_end {
                    true => return Err(RecordError::new(start, problem)),
                    false => break,
                }
            };
            at = start + 1;
            next = match (next, sign) {
                (Next::Start, b'[') => Next::First,
                (Next::First | Next::Comma, b']') => Next::Nothing,
                (Next::Comma, b',') => Next::Record,
                (Next::Start, b'{') | (Next::First | Next::Record | Next::Another, _) => {
                    at = match reader.record(start, text.len()) {
                        Ok(end) if end - start > most => return Err(long_record(start)),
                        Ok(end) => end,
                        Err(wrong) if wrong.is_cut && !is_end => {
                            if text.len() - start > most {
                                return Err(long_record(start));
                            }
                            at = start;
                            break;
                        }
                        Err(wrong) => return Err(wrong),
                    };
                    match next {
                        Next::First | Next::Record => Next::Comma,
                        _ => Next::Another,
                    }
                }
                (Next::Start, _) => {
                    let problem = "neither an array of records nor a record";
                    return Err(RecordError::new(start, problem));
                }
                (Next::Comma, _) => {
                    return Err(RecordError::not_json(start, "expected `,` or `]`"));
                }
                (Next::Nothing, _) => {
                    return Err(RecordError::new(
                        start,
                        "not JSON: something follows the end",
                    ));
                }
            };
        }
        let found = reader.found;
        Ok(Progress { found, at, next })
    }
}
