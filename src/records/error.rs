//! Problems of JSON records, and where they are. No message holds content of the input.

use crate::Hidden;

/// The result of reading records.
pub type Result<T> = std::result::Result<T, RecordError>;

/// A record, or a file of them, that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// The line of the input, from 1 on.
    pub line: usize,
    /// In which item of a list the problem is, from 1 on, and in which item within that.
    pub items: Vec<usize>,
    /// The problem.
    pub problem: Problem,
}

/// Everything that can be wrong with records. Names of fields are those that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A byte that UTF-8 does not allow.
    #[error("byte {byte} is not UTF-8")]
    NotUtf8 {
        /// Its place in the input, from 0 on.
        byte: usize,
    },
    /// A character that JSON does not allow, or an end before the record's.
    #[error("not JSON at character {character}: {reason}")]
    NotJson {
        /// Its place in the line, from 0 on.
        character: usize,
        /// The rule that is broken.
        reason: String,
    },
    /// NaN or an infinity.
    #[error("a number that JSON does not have")]
    NoNumber(Hidden),
    /// A value that is no record.
    #[error("not a JSON object")]
    NotAnObject,
    /// A document that begins otherwise.
    #[error("neither an array of records nor a record")]
    NoRecords,
    /// A document without content.
    #[error("no record: empty")]
    Empty,
    /// An array without its closing bracket.
    #[error("not JSON: the array does not end")]
    EndlessArray,
    /// Content behind an array.
    #[error("not JSON: something follows the end")]
    Trailing,
    /// A field that the record, or an object on the path to it, does not have.
    #[error("{}", missing(.column, *.fields, *.is_path))]
    Missing {
        /// The path that was asked for.
        column: String,
        /// How many fields the object has.
        fields: usize,
        /// Whether the path has several steps.
        is_path: bool,
        /// The fields that the object has.
        names: Hidden,
    },
    /// A value of the wrong kind.
    #[error("field {} holds {held}, not {wanted}", quoted(.field))]
    Kind {
        /// The path to the value.
        field: String,
        /// The kind of the value.
        held: &'static str,
        /// The kind that was asked for.
        wanted: &'static str,
    },
    /// A text that is no Unicode.
    #[error("field {} holds a text with half of a surrogate pair", quoted(.field))]
    HalfSurrogate {
        /// The path to the text.
        field: String,
    },
    /// Lists within lists, or a path, beyond what is read.
    #[error("field {} holds lists and objects more than {deepest} deep within each other", quoted(.field))]
    Deep {
        /// The path to the value.
        field: String,
        /// How deep they may be.
        deepest: usize,
    },
    /// A record that nobody pays for.
    #[error("no account: field {} is missing or holds no name", quoted(.field))]
    NoAccount {
        /// The path of the account.
        field: String,
    },
    /// A record with several payers.
    #[error("several accounts: field {} holds {names} names", quoted(.field))]
    SeveralAccounts {
        /// The path of the account.
        field: String,
        /// How many different ones there are.
        names: usize,
    },
    /// A record with too many texts.
    #[error("a record of more than {most} texts")]
    ManyTexts {
        /// How many it may have.
        most: usize,
    },
    /// A record that is too long, or does not end.
    #[error("not JSON, or a record of more than {most} bytes")]
    LongRecord {
        /// How many bytes it may have.
        most: usize,
    },
    /// Too much white space between records.
    #[error("white space of more than {most} bytes")]
    LongWhiteSpace {
        /// How many bytes it may have.
        most: usize,
    },
}

impl RecordError {
    /// Content of the input that explains the problem. It is private.
    pub fn content(&self) -> Option<&Hidden> {
        match &self.problem {
            Problem::NoNumber(shown) | Problem::Missing { names: shown, .. } => Some(shown),
            _ => None,
        }
    }

    /// Whether a larger limit of a record's length could help.
    pub fn is_limit(&self) -> bool {
        matches!(
            self.problem,
            Problem::ManyTexts { .. } | Problem::LongRecord { .. } | Problem::LongWhiteSpace { .. }
        )
    }
}

impl std::fmt::Display for RecordError {
    /// The problem, without the line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.problem)?;
        for (depth, item) in self.items.iter().enumerate() {
            let before = if depth == 0 { " (" } else { ", in it " };
            write!(f, "{before}item {item}")?;
        }
        f.write_str(if self.items.is_empty() { "" } else { ")" })
    }
}

impl std::error::Error for RecordError {}

/// A name as messages show it.
pub(super) fn quoted(name: &str) -> String {
    let mut out = String::from("'");
    for c in name.chars() {
        match c {
            '"' => out.push(c),
            _ => out.extend(c.escape_debug()),
        }
    }
    out + "'"
}

fn missing(column: &str, fields: usize, is_path: bool) -> String {
    let column = quoted(column);
    if is_path {
        format!("field {column} is not there")
    } else {
        format!("none of its {fields} fields is called {column}")
    }
}
