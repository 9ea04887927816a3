//! A TOML file read key by key, so that every message names the line and the key in plain words.

use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong with a file, and where.
#[derive(Debug)]
pub struct Wrong {
    line: usize,
    message: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// A key of a table with its value; the whole document has the key "".
pub struct Entry<'a> {
    text: &'a str,
    path: String,
    key: &'a str,
    start: usize,
    value: &'a DeValue<'a>,
}

/// Parses a document.
///
/// # Errors
/// It is no TOML.
pub fn document(text: &str) -> Result<DeValue<'_>, Wrong> {
    let table = DeTable::parse(text).map_err(|e| Wrong {
        line: line(text, e.span().map_or(0, |span| span.start)),
        message: format!("this is no TOML: {}", e.message()),
    })?;
    Ok(DeValue::Table(table.into_inner()))
}

/// The line of a byte, counted from 1.
fn line(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at.min(text.len())];
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

impl<'a> Entry<'a> {
    /// The whole document.
    pub fn of(value: &'a DeValue<'a>, text: &'a str) -> Self {
        Entry {
            text,
            path: String::new(),
            key: "",
            start: 0,
            value,
        }
    }

    /// The key.
    pub fn key(&self) -> &'a str {
        self.key
    }

    fn wrong(&self, message: String) -> Wrong {
        Wrong {
            line: line(self.text, self.start),
            message,
        }
    }

    /// The value is of a wrong type.
    pub fn must_be(&self, what: &str) -> Wrong {
        let got = match self.value {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.wrong(format!("{} must be {what}, got {got}", self.path))
    }

    /// The key is none of those that may stand there.
    pub fn unknown(&self, keys: &str) -> Wrong {
        self.wrong(format!("{} is unknown; the keys are {keys}", self.path))
    }

    /// The table lacks a key.
    pub fn lacks(&self, key: &str) -> Wrong {
        self.wrong(format!("{}.{key} is missing", self.path))
    }

    /// The entries of a table.
    ///
    /// # Errors
    /// It is no table.
    pub fn entries(&self) -> Result<Vec<Entry<'a>>, Wrong> {
        let DeValue::Table(table) = self.value else {
            return Err(self.must_be("a table"));
        };
        let entry = |(key, value): (&'a Spanned<_>, &'a Spanned<DeValue<'a>>)| {
            let key_text: &'a std::borrow::Cow<'a, str> = key.get_ref();
            let path = match &*self.path {
                "" => key_text.to_string(),
                path => format!("{path}.{key_text}"),
            };
            Entry {
                text: self.text,
                path,
                key: key_text,
                start: key.span().start,
                value: value.get_ref(),
            }
        };
        Ok(table.iter().map(entry).collect())
    }

    /// A string.
    ///
    /// # Errors
    /// It is none.
    pub fn text(&self) -> Result<String, Wrong> {
        let text = self.value.as_str().map(str::to_owned);
        text.ok_or_else(|| self.must_be("a string"))
    }

    /// A list of strings.
    ///
    /// # Errors
    /// It is none.
    pub fn texts(&self) -> Result<Vec<String>, Wrong> {
        let texts = self.value.as_array().and_then(|all| {
            let each = all
                .iter()
                .map(|one| one.get_ref().as_str().map(str::to_owned));
            each.collect()
        });
        texts.ok_or_else(|| self.must_be("a list of strings"))
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// It is neither.
    pub fn flag(&self) -> Result<bool, Wrong> {
        let flag = self.value.as_bool();
        flag.ok_or_else(|| self.must_be("true or false"))
    }

    /// A number.
    ///
    /// # Errors
    /// It is none.
    pub fn number(&self) -> Result<f64, Wrong> {
        let number = match self.value {
            DeValue::Float(number) => number.as_str().parse().ok(),
            DeValue::Integer(number) => {
                let whole = i64::from_str_radix(number.as_str(), number.radix()).ok();
                whole.map(|whole| whole as f64)
            }
            _ => None,
        };
        number.ok_or_else(|| self.must_be("a number"))
    }

    /// A whole number that is not negative.
    ///
    /// # Errors
    /// It is none.
    pub fn whole(&self) -> Result<usize, Wrong> {
        let whole = match self.value {
            DeValue::Integer(number) => usize::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        whole.ok_or_else(|| self.must_be("a whole number, at least 0"))
    }
}
