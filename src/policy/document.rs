//! Reads a TOML file key by key, so that every message names the line and the key in plain words.

use std::path::Path;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::support::error::{Error, Result};
use crate::support::table::{described, real_value};

/// A key of a table with its value; the whole document has the key "".
pub(super) struct Entry<'a> {
    file: &'a Path,
    text: &'a str,
    path: String,
    key: &'a str,
    start: usize,
    value: &'a DeValue<'a>,
}

fn wrong(file: &Path, text: &str, at: usize, reason: String) -> Error {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    Error::Format {
        path: file.to_owned(),
        line: Some(line as u64),
        reason,
        offender: None,
    }
}

pub(super) fn document<'a>(file: &Path, text: &'a str) -> Result<DeValue<'a>> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        wrong(
            file,
            text,
            at,
            format!("this is no TOML: {}", error.message()),
        )
    })?;
    Ok(DeValue::Table(table.into_inner()))
}

impl<'a> Entry<'a> {
    pub(super) fn of(value: &'a DeValue<'a>, file: &'a Path, text: &'a str) -> Self {
        Entry {
            file,
            text,
            path: String::new(),
            key: "",
            start: 0,
            value,
        }
    }

    pub(super) fn key(&self) -> &'a str {
        self.key
    }

    pub(super) fn wrong(&self, reason: &str) -> Error {
        wrong(
            self.file,
            self.text,
            self.start,
            format!("{} {reason}", self.path),
        )
    }

    /// Adds the line and the full path of the key to an error about the value.
    pub(super) fn located(&self, error: Error) -> Error {
        match error {
            Error::Parameter {
                name,
                expected,
                got,
            } => {
                let path = match self.key == name {
                    true => self.path.clone(),
                    false => format!("{}: {name}", self.path),
                };
                let reason = format!("{path} must be {expected}, got {got}");
                wrong(self.file, self.text, self.start, reason)
            }
            other => other,
        }
    }

    /// The error for a key that is not allowed there.
    pub(super) fn unknown(&self, keys: &[&str]) -> Error {
        self.wrong(&format!("is unknown; the keys are {}", keys.join(", ")))
    }

    pub(super) fn entries(&self) -> Result<Vec<Entry<'a>>> {
        let DeValue::Table(table) = self.value else {
            let got = described(&self.value()?);
            return Err(self.wrong(&format!("must be a table, got {got}")));
        };
        let entry = |(key, value): (&'a Spanned<_>, &'a Spanned<DeValue<'a>>)| {
            let key_text: &'a std::borrow::Cow<'a, str> = key.get_ref();
            let path = match &*self.path {
                "" => key_text.to_string(),
                path => format!("{path}.{key_text}"),
            };
            Entry {
                file: self.file,
                text: self.text,
                path,
                key: key_text,
                start: key.span().start,
                value: value.get_ref(),
            }
        };
        Ok(table.iter().map(entry).collect())
    }

    pub(super) fn value(&self) -> Result<Value> {
        json(self.value).ok_or_else(|| self.wrong("must be no date, and no number beyond 64 bits"))
    }
}

fn json(value: &DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Integer(number) => {
            Value::from(i64::from_str_radix(number.as_str(), number.radix()).ok()?)
        }
        DeValue::Float(number) => real_value(number.as_str().parse().ok()?),
        DeValue::Array(values) => {
            let values = values.iter().map(|value| json(value.get_ref()));
            Value::Array(values.collect::<Option<_>>()?)
        }
        DeValue::Table(table) => {
            let entries = table
                .iter()
                .map(|(key, value)| Some((key.get_ref().to_string(), json(value.get_ref())?)));
            Value::Object(entries.collect::<Option<Map<_, _>>>()?)
        }
        DeValue::Datetime(_) => return None,
    })
}
