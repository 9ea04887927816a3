//! Sources of words, covers and laws: built in, in a file, or in memory and identified by a
//! fingerprint.

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

use crate::distance::metric::Metric;
use crate::support::error::{Error, Result};
use crate::support::names::named;
use crate::support::table::{Field, table, within, wrong};
use crate::words::embedding::format::Format;
use crate::words::graph::ThirdColumn;

/// The embeddings that ship with the crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Builtin {
    /// 20,000 common English words in 50 dimensions.
    English,
    /// 10,498 common English nouns in 10 hyperbolic dimensions.
    Nouns,
}

named!(Builtin, "builtin", Builtin::English => "english", Builtin::Nouns => "nouns");

/// The identity of data: 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub u64);

impl fmt::LowerHex for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

impl Field for Fingerprint {
    fn read(name: &'static str, value: &Value) -> Result<Self> {
        let print = value.as_str().filter(|text| text.len() == 16);
        let print = print.and_then(|text| u64::from_str_radix(text, 16).ok());
        print
            .map(Fingerprint)
            .ok_or_else(|| wrong(name, "16 hexadecimal digits", value))
    }

    fn written(&self) -> Option<Value> {
        Some(format!("{self:016x}").into())
    }
}

table! {
    /// Data in a file, or identified only by its fingerprint. In the second case it must be passed in
    /// when the mechanism is built.
    Reference, "reference";
    /// The file.
    file: Option<PathBuf> = None;
    /// The fingerprint of its content.
    fingerprint: Option<Fingerprint> = None;
}

impl Reference {
    /// Data in a file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Reference {
            file: Some(path.into()),
            fingerprint: None,
        }
    }

    /// Data in memory.
    pub fn held(fingerprint: Option<u64>) -> Self {
        Reference {
            file: None,
            fingerprint: fingerprint.map(Fingerprint),
        }
    }

    /// Checks that the data found is the data meant.
    ///
    /// # Errors
    /// [`Error::Parameter`] for another fingerprint.
    pub(super) fn check(&self, name: &'static str, found: u64) -> Result<()> {
        match self.fingerprint {
            Some(meant) if meant != Fingerprint(found) => {
                let expected = format!("the one with the fingerprint {meant:016x}");
                let got = format!("one with {found:016x}");
                Err(Error::parameter(name, expected, got))
            }
            _ => Ok(()),
        }
    }
}

impl Field for Reference {
    fn read(name: &'static str, value: &Value) -> Result<Self> {
        match value {
            Value::String(path) => Ok(Reference::file(path)),
            Value::Object(table) => {
                Self::from_map(table).map_err(|error| within(error, "reference", name))
            }
            _ => {
                let expected = "the path of a file, or a table of file and fingerprint";
                Err(wrong(name, expected, value))
            }
        }
    }

    fn written(&self) -> Option<Value> {
        Some(self.value())
    }
}

table! {
    /// The source of words and their metric: in JSON and TOML the path of an index file, or a table.
    IndexSource, "index";
    /// A built-in embedding.
    builtin: Option<Builtin> = None;
    /// A file: an index of fastdx, an embedding in another format, or edges.
    file: Option<PathBuf> = None;
    /// The fingerprint of words, vectors or edges, and metric.
    fingerprint: Option<Fingerprint> = None;
    /// The format of the file; detected by content by default. `edges`: a word graph, with two
    /// words per line.
    format: Option<String> = None;
    /// With format `edges`: whether a third column holds the edges' lengths.
    lengths: Option<bool> = None;
    /// With format `edges`: a third column holds counts, and edges of smaller ones are left out.
    min_count: Option<usize> = None;
    /// The metric; by default the file's own, or Euclidean.
    metric: Option<Metric> = None;
    /// Load only this many words.
    limit: Option<usize> = None;
    /// For .npy: the file of words.
    vocabulary: Option<PathBuf> = None;
}

pub(super) const EDGES: &str = "edges";
/// The error for a part that is neither in a file nor in memory.
pub(super) const FINGERPRINT_ALONE: &str = "given, because its fingerprint alone is known";

impl IndexSource {
    /// A built-in embedding.
    pub fn builtin(builtin: Builtin) -> Self {
        IndexSource {
            builtin: Some(builtin),
            ..IndexSource::default()
        }
    }

    /// A file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        IndexSource {
            file: Some(path.into()),
            ..IndexSource::default()
        }
    }

    /// Words in memory.
    pub fn held(fingerprint: Option<u64>) -> Self {
        IndexSource {
            fingerprint: fingerprint.map(Fingerprint),
            ..IndexSource::default()
        }
    }

    /// Reads the path of a file, or a table.
    ///
    /// # Errors
    /// [`Error::Parameter`] that names the key.
    pub fn of(value: &Value) -> Result<Self> {
        let table = match value {
            Value::String(path) => return Ok(IndexSource::file(path)),
            Value::Object(table) => table,
            _ => return Err(wrong("index", "the path of a file, or a table", value)),
        };
        let new = Self::from_map(table)?;
        new.check()?;
        Ok(new)
    }

    /// The meaning of the third column of a file of edges.
    pub(super) fn third_column(&self) -> Result<ThirdColumn> {
        let least = self.min_count.map(|least| least as u64);
        ThirdColumn::of(self.lengths == Some(true), least)
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.builtin.is_some() && self.file.is_some() {
            return Err(Error::parameter("index", "built in or a file", "both"));
        }
        let reading = self.format.is_some() || self.limit.is_some() || self.vocabulary.is_some();
        if self.file.is_none() && reading {
            let expected = "a file, where format, limit or vocabulary is given";
            return Err(Error::parameter("index", expected, "none"));
        }
        let third = self.third_column()?;
        if third != ThirdColumn::Absent && self.format.as_deref() != Some(EDGES) {
            let expected = "\"edges\" where lengths or min_count is given";
            let got = self.format.as_deref().unwrap_or("none");
            return Err(Error::parameter("format", expected, got));
        }
        match self.format.as_deref() {
            None => Ok(()),
            Some(EDGES) => {
                if self.metric.is_some() || self.limit.is_some() || self.vocabulary.is_some() {
                    let expected = "left out, with format edges: shortest paths are the metric";
                    return Err(Error::parameter("metric", expected, "given"));
                }
                Ok(())
            }
            Some(format) => format.parse::<Format>().map(|_| ()),
        }
    }
}

impl Field for IndexSource {
    fn read(_: &'static str, value: &Value) -> Result<Self> {
        Self::of(value)
    }

    fn written(&self) -> Option<Value> {
        Some(self.value())
    }
}

/// The source of a cover: in JSON and TOML a number of outputs, the path of a file, `"none"`, or a
/// table of file and fingerprint.
#[derive(Clone, Debug, PartialEq)]
pub enum CoverSource {
    /// This number of nearest outputs, or a balanced choice of this many.
    Count(usize),
    /// No cover, though the index may hold one.
    None,
    /// A saved cover, the one in the index, or one in memory.
    Stored(Reference),
}

impl Field for CoverSource {
    fn read(name: &'static str, value: &Value) -> Result<Self> {
        match value {
            Value::Number(_) => Ok(CoverSource::Count(Field::read(name, value)?)),
            Value::String(text) if text == "none" => Ok(CoverSource::None),
            Value::String(_) | Value::Object(_) => {
                Ok(CoverSource::Stored(Field::read(name, value)?))
            }
            _ => {
                let expected = "a whole number, \"none\", the path of a file, or a table";
                Err(wrong(name, expected, value))
            }
        }
    }

    fn written(&self) -> Option<Value> {
        match self {
            CoverSource::Count(count) => count.written(),
            CoverSource::None => Some("none".into()),
            CoverSource::Stored(reference) => reference.written(),
        }
    }
}
