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
    /// The problem. Field names in it are only those that the caller requested.
    pub problem: String,
    /// What may help.
    pub hint: Hint,
    /// Content of the input that explains the problem. It is private.
    pub content: Option<Hidden>,
}

/// What may help with a problem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// Another input.
    #[default]
    Input,
    /// Another encoding: a byte is not UTF-8.
    Encoding,
    /// A higher limit on a record's length.
    Limit,
}

impl RecordError {
    pub(super) fn new(problem: impl Into<String>) -> Self {
        RecordError {
            line: 0,
            items: Vec::new(),
            problem: problem.into(),
            hint: Hint::Input,
            content: None,
        }
    }

    /// The error for a byte of the input, counted from 0.
    pub(super) fn not_utf8(line: usize, byte: usize) -> Self {
        RecordError {
            line,
            hint: Hint::Encoding,
            ..RecordError::new(format!("byte {byte} is not UTF-8"))
        }
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
