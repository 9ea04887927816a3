//! Problems of JSON records with their positions. No message shows content of the input.

use crate::Hidden;

/// The result of reading records.
pub type Result<T> = std::result::Result<T, RecordError>;
/// The result of reading a block, whose lines are not known yet.
pub(super) type Read<T> = std::result::Result<T, Box<RecordError>>;

/// A problem that prevents reading a record or a file of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// The line of the input, counted from 1.
    pub line: usize,
    /// The list item with the problem, counted from 1, then the item within that, and so on.
    pub items: Vec<usize>,
    /// The problem. Field names in it are only those that the caller requested.
    pub problem: String,
    /// A hint that may help.
    pub hint: Hint,
    /// Content of the input that explains the problem. It is private.
    pub content: Option<Hidden>,
    /// The byte of the block where it is, until its line is known.
    pub(super) at: usize,
    /// Whether a rule of JSON is broken: `placed` counts the characters before.
    pub(super) is_not_json: bool,
    /// Whether the problem is that the block ends: more input may solve it.
    pub(super) is_cut: bool,
}

/// A hint that may help with a problem.
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
    pub(super) fn new(at: usize, problem: impl Into<String>) -> Box<Self> {
        Box::new(RecordError {
            line: 0,
            items: Vec::new(),
            problem: problem.into(),
            hint: Hint::Input,
            content: None,
            at,
            is_not_json: false,
            is_cut: false,
        })
    }

    /// The problem of a broken JSON rule.
    pub(super) fn not_json(at: usize, reason: &str) -> Box<Self> {
        let mut wrong = Self::new(at, reason);
        wrong.is_not_json = true;
        wrong
    }

    /// The problem of a limit.
    pub(super) fn too_long(at: usize, problem: String) -> Box<Self> {
        let mut wrong = Self::new(at, problem);
        wrong.hint = Hint::Limit;
        wrong
    }

    /// The error for a byte of the input, counted from 0.
    pub(super) fn not_utf8(line: usize, byte: usize) -> Self {
        RecordError {
            line,
            hint: Hint::Encoding,
            ..*RecordError::new(0, format!("byte {byte} is not UTF-8"))
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
