//! A [`Spec`] as JSON and as any format of serde, and the card of its channel.

use std::fmt;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::{Value, json};

use super::Spec;
use super::document::{Entry, document};
use crate::support::error::{Error, Result};

/// The version of cards.
pub const CARD: u32 = 1;
/// The version of the tokenizer's rules; raised when these change.
pub const TOKENIZER: u32 = 1;

impl Spec {
    /// Reads a JSON or TOML file. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Format`] with the line.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let spec = match text.trim_start().starts_with('{') {
            true => serde_json::from_str(&text).map_err(|error| Error::Format {
                path: path.to_owned(),
                line: Some(error.line() as u64),
                reason: error.to_string(),
                offender: None,
            })?,
            false => table(path, &text)?,
        };
        Ok(spec.relative_to(folder))
    }

    /// The canonical JSON: one line, keys in the order of [`KEYS`](super::KEYS).
    pub fn to_json(&self) -> String {
        let each = self.entries();
        let each = each.map(|(name, value)| format!("{}: {value}", Value::from(name)));
        format!("{{{}}}", each.collect::<Vec<_>>().join(", "))
    }

    /// The card of a channel, the data that a receiver of releases needs to make the best use of them: a description,
    /// which should be complete, without file paths, seeds and settings that do not affect the law. It includes the
    /// version of the tokenizer's rules. It contains no text.
    pub fn card(&self) -> Value {
        json!({
            "card": CARD,
            "fastdx": env!("CARGO_PKG_VERSION"),
            "tokenizer": TOKENIZER,
            "spec": self.clone().without_files().released(),
        })
    }
}

fn table(path: &Path, text: &str) -> Result<Spec> {
    let document = document(path, text)?;
    let mut spec = Spec::default();
    for entry in Entry::of(&document, path, text).entries()? {
        let set = spec.set(entry.key(), &entry.value()?);
        set.map_err(|error| entry.located(error))?;
    }
    Ok(spec)
}

impl Serialize for Spec {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.entries())
    }
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Table;

        impl<'de> Visitor<'de> for Table {
            type Value = Spec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table that describes a mechanism")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Spec, A::Error> {
                let mut spec = Spec::default();
                let mut seen = std::collections::HashSet::new();
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    spec.set(&key, &value).map_err(A::Error::custom)?;
                    if !seen.insert(key.clone()) {
                        return Err(A::Error::custom(format!("the key {key:?} stands twice")));
                    }
                }
                Ok(spec)
            }
        }

        deserializer.deserialize_map(Table)
    }
}
