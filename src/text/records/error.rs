//! Problems of JSON records with their positions. No message shows content of the input.

use crate::Hidden;

/// The result of reading records.
pub type Result<T> = std::result::Result<T, RecordError>;

/// A problem that prevents reading a record or a file of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// The line of the input, counted from 1.
    pub line: usize,
    /// The list item with the problem, counted from 1, then the item within that, and so on.
    pub items: Vec<usize>,
    /// The problem.
    pub problem: Problem,
}

/// All problems of records. Field names in messages are only those that the caller requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A byte that UTF-8 does not allow.
    #[error("byte {byte} is not UTF-8")]
    NotUtf8 {
        /// Its position in the input, counted from 0.
        byte: usize,
    },
    /// A character that JSON does not allow, or an end before the record's end.
    #[error("not JSON at character {character}: {reason}")]
    NotJson {
        /// Its position in the line, counted from 0.
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
    /// A document that starts with something else than records.
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
    /// A field that is missing in the record, or in an object on the path to it.
    #[error("{}", missing(.column, *.fields, *.is_path))]
    Missing {
        /// The requested path.
        column: String,
        /// The number of fields of the object.
        fields: usize,
        /// Whether the path has several steps.
        is_path: bool,
        /// The names of the object's fields.
        names: Hidden,
    },
    /// A value of the wrong kind.
    #[error("field {} holds {held}, not {wanted}", quoted(.field))]
    Kind {
        /// The path to the value.
        field: String,
        /// The kind of the value.
        held: &'static str,
        /// The requested kind.
        wanted: &'static str,
    },
    /// A text with half of a surrogate pair, which is no Unicode text.
    #[error("field {} holds a text with half of a surrogate pair", quoted(.field))]
    HalfSurrogate {
        /// The path to the text.
        field: String,
    },
    /// Lists within lists, or a path, deeper than the limit.
    #[error("field {} holds lists and objects more than {deepest} deep within each other", quoted(.field))]
    Deep {
        /// The path to the value.
        field: String,
        /// The maximum depth.
        deepest: usize,
    },
    /// A record without an account.
    #[error("no account: field {} is missing or holds no name", quoted(.field))]
    NoAccount {
        /// The path of the account.
        field: String,
    },
    /// A record with several accounts.
    #[error("several accounts: field {} holds {names} names", quoted(.field))]
    SeveralAccounts {
        /// The path of the account.
        field: String,
        /// The number of different accounts.
        names: usize,
    },
    /// A record with too many texts.
    #[error("a record of more than {most} texts")]
    ManyTexts {
        /// The maximum number of texts.
        most: usize,
    },
    /// A record that is too long or has no end.
    #[error("not JSON, or a record of more than {most} bytes")]
    LongRecord {
        /// The maximum number of bytes.
        most: usize,
    },
    /// Too much white space between records.
    #[error("white space of more than {most} bytes")]
    LongWhiteSpace {
        /// The maximum number of bytes.
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

    /// Whether a higher limit on a record's length could help.
    pub fn is_limit(&self) -> bool {
        matches!(
            self.problem,
            Problem::ManyTexts { .. } | Problem::LongRecord { .. } | Problem::LongWhiteSpace { .. }
        )
    }
}

impl std::fmt::Display for RecordError {
    /// Writes the problem, without the line.
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

/// A name in the form that messages show.
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
