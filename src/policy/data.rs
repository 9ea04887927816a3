//! A [`Spec`] as JSON and as any format of serde.

use std::fmt;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::Spec;
use super::document::{Entry, document};
use crate::support::error::{Error, Result};

impl Spec {
    /// Reads a table of keys; each key is checked separately.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an unknown key or a value of a wrong type.
    pub fn from_map(map: &Map<String, Value>) -> Result<Self> {
        let mut spec = Spec::default();
        for (key, value) in map {
            spec.set(key, value)?;
        }
        Ok(spec)
    }

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
        let each = super::KEYS.iter().filter_map(|key| {
            let value = self.get(key.name)?;
            Some(format!("{}: {value}", Value::from(key.name)))
        });
        format!("{{{}}}", each.collect::<Vec<_>>().join(", "))
    }
}

/// Reads the Spec in a TOML document.
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
        let mut map = serializer.serialize_map(None)?;
        for key in super::KEYS {
            if let Some(value) = self.get(key.name) {
                map.serialize_entry(key.name, &value)?;
            }
        }
        map.end()
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
