//! Words that are never released.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cover::offensive;
use crate::support::error::{Error, Result};
use crate::support::table::{Field, Type, wrong};
use crate::text::normalize;
use crate::words::vocabulary::Vocabulary;

/// Words that are never released. In JSON and TOML: `"offensive"`, `"none"`, the path of a file, or
/// a list of words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Exclude {
    /// The built-in list of offensive words.
    #[default]
    Offensive,
    /// All words may be released.
    None,
    /// A file with one word per line.
    File(PathBuf),
    /// The words themselves.
    Words(Vec<String>),
}

impl Field for Exclude {
    const TYPE: Type = Type::Exclude;

    fn read(name: &'static str, value: &Value) -> Result<Self> {
        match value {
            Value::String(text) => Ok(match &**text {
                "offensive" => Exclude::Offensive,
                "none" => Exclude::None,
                path => Exclude::File(path.into()),
            }),
            Value::Array(_) => Ok(Exclude::Words(Field::read(name, value)?)),
            _ => {
                let expected = "\"offensive\", \"none\", the path of a file, or a list of words";
                Err(wrong(name, expected, value))
            }
        }
    }

    fn written(&self) -> Option<Value> {
        match self {
            Exclude::Offensive => Some("offensive".into()),
            Exclude::None => Some("none".into()),
            Exclude::File(path) => path.written(),
            Exclude::Words(words) => words.written(),
        }
    }
}

impl Exclude {
    pub(super) fn of_ids(vocabulary: &Vocabulary, ids: &[u32]) -> Self {
        match ids {
            [] => Exclude::None,
            ids => Exclude::Words(ids.iter().map(|&id| vocabulary.word(id).into()).collect()),
        }
    }

    /// Returns the ids of the vocabulary's words that are excluded, ascending; letter case is
    /// ignored.
    ///
    /// # Errors
    /// [`Error::Io`] for a file that cannot be read, [`Error::Format`] for one that is not UTF-8.
    pub fn ids(&self, vocabulary: &Vocabulary) -> Result<Vec<u32>> {
        match self {
            Exclude::None => Ok(Vec::new()),
            Exclude::Offensive => Ok(exclusion(vocabulary, offensive())),
            Exclude::Words(words) => Ok(exclusion(vocabulary, words)),
            Exclude::File(path) => Ok(exclusion(vocabulary, lines(path)?)),
        }
    }
}

/// Returns the ids of these words, ascending; letter case is ignored.
pub fn exclusion<W: AsRef<str>>(
    vocabulary: &Vocabulary,
    words: impl IntoIterator<Item = W>,
) -> Vec<u32> {
    let forms = words
        .into_iter()
        .map(|word| normalize(word.as_ref()).into_owned());
    let forms: HashSet<String> = forms.collect();
    if forms.is_empty() {
        return Vec::new();
    }
    let ids = (0..).zip(vocabulary.iter());
    let ids = ids.filter(|(_, word)| forms.contains(&*normalize(word)));
    ids.map(|(id, _)| id).collect()
}

fn lines(path: &Path) -> Result<Vec<String>> {
    let bytes = std::fs::read(path).map_err(Error::io(path))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        Error::Format {
            path: path.to_owned(),
            line: Some(valid.iter().filter(|byte| **byte == b'\n').count() as u64 + 1),
            reason: "the line is not UTF-8".into(),
            offender: None,
        }
    })?;
    let text = text.trim_start_matches('\u{feff}');
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    Ok(lines.map(str::to_owned).collect())
}
