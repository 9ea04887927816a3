//! Sources of words, covers and laws: built in, in a file, or in memory and identified by a
//! fingerprint.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::keys::{count, described, flag, text};
use crate::distance::metric::Metric;
use crate::support::error::{Error, Result};
use crate::support::names::named;
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

/// Data in a file, or identified only by its fingerprint. In the second case it must be passed in
/// when the mechanism is built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// The file.
    pub file: Option<PathBuf>,
    /// The fingerprint of its content.
    pub fingerprint: Option<u64>,
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
            fingerprint,
        }
    }

    pub(super) fn of(name: &'static str, value: &Value) -> Result<Self> {
        match value {
            Value::String(path) => Ok(Reference::file(path)),
            Value::Object(table) => Self::of_table(name, table),
            _ => {
                let expected = "the path of a file, or a table of file and fingerprint";
                Err(Error::parameter(name, expected, described(value)))
            }
        }
    }

    fn of_table(name: &'static str, table: &Map<String, Value>) -> Result<Self> {
        let mut new = Reference::default();
        for (key, value) in table {
            match &**key {
                "file" => new.file = Some(text(name, value)?.into()),
                "fingerprint" => new.fingerprint = Some(fingerprint(name, value)?),
                _ => {
                    let expected = "a table of file and fingerprint";
                    return Err(Error::parameter(name, expected, format!("the key {key:?}")));
                }
            }
        }
        Ok(new)
    }

    pub(super) fn value(&self) -> Value {
        let mut table = Map::new();
        insert_file(&mut table, "file", self.file.as_ref());
        if let Some(fingerprint) = self.fingerprint {
            table.insert("fingerprint".into(), shown(fingerprint));
        }
        Value::Object(table)
    }

    /// Checks that the data found is the data meant.
    ///
    /// # Errors
    /// [`Error::Parameter`] for another fingerprint.
    pub(super) fn check(&self, name: &'static str, found: u64) -> Result<()> {
        match self.fingerprint {
            Some(meant) if meant != found => {
                let expected = format!("the one with the fingerprint {meant:016x}");
                Err(Error::parameter(
                    name,
                    expected,
                    format!("one with {found:016x}"),
                ))
            }
            _ => Ok(()),
        }
    }
}

fn fingerprint(name: &'static str, value: &Value) -> Result<u64> {
    let print = value.as_str().filter(|text| text.len() == 16);
    let print = print.and_then(|text| u64::from_str_radix(text, 16).ok());
    print.ok_or_else(|| {
        let expected = "a table whose fingerprint has 16 hexadecimal digits";
        Error::parameter(name, expected, described(value))
    })
}

fn shown(fingerprint: u64) -> Value {
    Value::String(format!("{fingerprint:016x}"))
}

fn insert_file(table: &mut Map<String, Value>, key: &str, file: Option<&PathBuf>) {
    if let Some(file) = file {
        table.insert(key.into(), file.to_string_lossy().into_owned().into());
    }
}

/// The source of words and their metric: in JSON and TOML the path of an index file, or a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexSource {
    /// A built-in embedding.
    pub builtin: Option<Builtin>,
    /// A file: an index of fastdx, an embedding in another format, or edges.
    pub file: Option<PathBuf>,
    /// The fingerprint of words, vectors or edges, and metric.
    pub fingerprint: Option<u64>,
    /// The format of the file; detected by content by default. `edges`: a word graph, with two
    /// words per line.
    pub format: Option<String>,
    /// With format `edges`: whether a third column holds the edges' lengths.
    pub lengths: bool,
    /// With format `edges`: a third column holds counts, and edges of smaller ones are left out.
    pub min_count: Option<usize>,
    /// The metric; by default the file's own, or Euclidean.
    pub metric: Option<Metric>,
    /// Load only this many words.
    pub limit: Option<usize>,
    /// For .npy: the file of words.
    pub vocabulary: Option<PathBuf>,
}

/// The format of a file of edges.
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
            fingerprint,
            ..IndexSource::default()
        }
    }

    pub(crate) fn of(value: &Value) -> Result<Self> {
        const NAME: &str = "index";
        let table = match value {
            Value::String(path) => return Ok(IndexSource::file(path)),
            Value::Object(table) => table,
            _ => {
                let expected = "the path of a file, or a table";
                return Err(Error::parameter(NAME, expected, described(value)));
            }
        };
        let mut new = IndexSource::default();
        for (key, value) in table {
            match &**key {
                "builtin" => new.builtin = Some(text(NAME, value)?.parse()?),
                "file" => new.file = Some(text(NAME, value)?.into()),
                "fingerprint" => new.fingerprint = Some(fingerprint(NAME, value)?),
                "format" => new.format = Some(text("format", value)?),
                "lengths" => new.lengths = flag("lengths", value)?,
                "min_count" => new.min_count = Some(count("min_count", value)?),
                "metric" => new.metric = Some(text("metric", value)?.parse()?),
                "limit" => new.limit = Some(count("limit", value)?),
                "vocabulary" => new.vocabulary = Some(text("vocabulary", value)?.into()),
                _ => {
                    let expected = "a table of builtin, file, fingerprint, format, lengths, \
                                    min_count, metric, limit, vocabulary";
                    return Err(Error::parameter(NAME, expected, format!("the key {key:?}")));
                }
            }
        }
        new.check()?;
        Ok(new)
    }

    pub(crate) fn value(&self) -> Value {
        let mut table = Map::new();
        if let Some(builtin) = self.builtin {
            table.insert("builtin".into(), builtin.name().into());
        }
        insert_file(&mut table, "file", self.file.as_ref());
        if let Some(fingerprint) = self.fingerprint {
            table.insert("fingerprint".into(), shown(fingerprint));
        }
        if let Some(format) = &self.format {
            table.insert("format".into(), format.clone().into());
        }
        if self.lengths {
            table.insert("lengths".into(), true.into());
        }
        if let Some(least) = self.min_count {
            table.insert("min_count".into(), (least as u64).into());
        }
        if let Some(metric) = self.metric {
            table.insert("metric".into(), metric.name().into());
        }
        if let Some(limit) = self.limit {
            table.insert("limit".into(), (limit as u64).into());
        }
        insert_file(&mut table, "vocabulary", self.vocabulary.as_ref());
        Value::Object(table)
    }

    /// The meaning of the third column of a file of edges.
    pub(super) fn third_column(&self) -> Result<ThirdColumn> {
        ThirdColumn::of(self.lengths, self.min_count.map(|least| least as u64))
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

/// The source of a cover: in JSON and TOML a number of outputs, the path of a file, `"none"`, or a
/// table of file and fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoverSource {
    /// This number of nearest outputs, or a balanced choice of this many.
    Count(usize),
    /// No cover, though the index may hold one.
    None,
    /// A saved cover, the one in the index, or one in memory.
    Stored(Reference),
}

impl CoverSource {
    pub(super) fn of(name: &'static str, value: &Value) -> Result<Self> {
        match value {
            Value::Number(_) => Ok(CoverSource::Count(count(name, value)?)),
            Value::String(text) if text == "none" => Ok(CoverSource::None),
            Value::String(_) | Value::Object(_) => {
                Ok(CoverSource::Stored(Reference::of(name, value)?))
            }
            _ => {
                let expected = "a whole number, \"none\", the path of a file, or a table";
                Err(Error::parameter(name, expected, described(value)))
            }
        }
    }

    pub(super) fn value(&self) -> Value {
        match self {
            CoverSource::Count(count) => Value::from(*count as u64),
            CoverSource::None => "none".into(),
            CoverSource::Stored(reference) => reference.value(),
        }
    }
}
