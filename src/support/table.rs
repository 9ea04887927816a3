//! Tables of settings as data: the keys that there are, and how each is read from JSON and written.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Number, Value};

use super::error::{Error, Result};

/// The type of a key's value, as far as another language has one of its own for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Type {
    /// A number; `"inf"` is infinity.
    Real,
    /// An integer, at least 0.
    Count,
    /// `true` or `false`.
    Flag,
    /// A list of words.
    Words,
    /// See [`Exclude`](crate::policy::Exclude).
    Exclude,
    /// `true`, `false` or `"call"`.
    Consistent,
    /// ε, or a table: see [`Number`](crate::numbers::Number) and [`Date`](crate::numbers::Date).
    Figure,
    /// A string, or what a string stands for.
    Other,
}

/// A value of a table's key.
pub(crate) trait Field: Sized {
    const TYPE: Type = Type::Other;

    fn read(name: &'static str, value: &Value) -> Result<Self>;

    /// `None` for a default that is not written.
    fn written(&self) -> Option<Value>;
}

/// The type of a value, for messages.
pub(crate) fn described(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

pub(crate) fn wrong(name: &'static str, expected: &str, value: &Value) -> Error {
    Error::parameter(name, expected, described(value))
}

/// Names all keys of a table beside one that there is not.
pub(crate) fn unknown(table: &'static str, names: &[&str], name: &str) -> Error {
    let expected = format!("made of the keys {}", names.join(", "));
    Error::parameter(table, expected, format!("the key {name:?}"))
}

/// Says in an error of the table `own` that it is the value of the key `name`.
pub(crate) fn within(error: Error, own: &str, name: &'static str) -> Error {
    match error {
        Error::Parameter {
            name: key,
            expected,
            got,
        } if key != own => {
            Error::parameter(name, format!("a table whose {key} is {expected}"), got)
        }
        error => error.renamed(own, name),
    }
}

/// A number, also one that JSON does not have.
pub(crate) fn real_value(number: f64) -> Value {
    let shown = || Value::String(number.to_string().to_lowercase());
    Number::from_f64(number).map_or_else(shown, Value::Number)
}

fn real(value: &Value) -> Option<f64> {
    match value.as_str() {
        None => value.as_f64(),
        Some("inf") => Some(f64::INFINITY),
        Some("-inf") => Some(f64::NEG_INFINITY),
        Some("nan") => Some(f64::NAN),
        Some(_) => None,
    }
}

fn words<T: FromIterator<String>>(value: &Value) -> Option<T> {
    let words = value.as_array()?.iter();
    words.map(|word| word.as_str().map(str::to_owned)).collect()
}

/// Implements [`Field`] by what messages call a value, and two functions.
macro_rules! fields {
    ($($of:ty: $type:ident, $expected:literal, $read:expr, $write:expr;)*) => {$(
        impl Field for $of {
            const TYPE: Type = Type::$type;

            fn read(name: &'static str, value: &Value) -> Result<Self> {
                let read: fn(&Value) -> Option<Self> = $read;
                read(value).ok_or_else(|| wrong(name, $expected, value))
            }

            fn written(&self) -> Option<Value> {
                let write: fn(&Self) -> Value = $write;
                Some(write(self))
            }
        }
    )*};
}

fields! {
    f64: Real, "a number", real, |number| real_value(*number);
    u64: Count, "a whole number, at least 0", Value::as_u64, |count| (*count).into();
    usize: Count, "a whole number, at least 0", |value| value.as_u64()?.try_into().ok(),
        |count| (*count as u64).into();
    bool: Flag, "true or false", Value::as_bool, |flag| (*flag).into();
    String: Other, "a string", |value| value.as_str().map(str::to_owned), |text| text.as_str().into();
    char: Other, "one character", |value| value.as_str()?.parse().ok(), |c| c.to_string().into();
    PathBuf: Other, "a string", |value| value.as_str().map(PathBuf::from),
        |path| path.to_string_lossy().into();
    Vec<String>: Words, "a list of strings", words, |words| words.clone().into();
}

impl Field for BTreeSet<String> {
    const TYPE: Type = Type::Words;

    fn read(name: &'static str, value: &Value) -> Result<Self> {
        Ok(Vec::read(name, value)?.into_iter().collect())
    }

    fn written(&self) -> Option<Value> {
        (!self.is_empty()).then(|| self.iter().cloned().collect())
    }
}

impl<T: Field> Field for Option<T> {
    const TYPE: Type = T::TYPE;

    fn read(name: &'static str, value: &Value) -> Result<Self> {
        T::read(name, value).map(Some)
    }

    fn written(&self) -> Option<Value> {
        self.as_ref().and_then(Field::written)
    }
}

/// Declares a table: its keys, each with its documentation, type and default. `own` is what errors call it.
macro_rules! table {
    ($(#[$doc:meta])* $name:ident, $own:literal;
     $($(#[$key_doc:meta])* $key:ident: $type:ty = $default:expr;)*) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[$key_doc])* pub $key: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($key: $default,)* }
            }
        }

        impl $name {
            const NAMES: &[&str] = &[$(stringify!($key)),*];

            /// Sets a key from a JSON value; `null` sets the default.
            ///
            /// # Errors
            /// [`Error::Parameter`](crate::Error::Parameter) for an unknown key or a value of a wrong type.
            pub fn set(&mut self, name: &str, value: &serde_json::Value) -> crate::Result<()> {
                use crate::support::table::{Field, unknown};
                match name {
                    $(stringify!($key) => self.$key = match value {
                        serde_json::Value::Null => $default,
                        value => Field::read(stringify!($key), value)?,
                    },)*
                    _ => return Err(unknown($own, Self::NAMES, name)),
                }
                Ok(())
            }

            /// The value of a key; `None` for a default that is not written.
            pub fn get(&self, name: &str) -> Option<serde_json::Value> {
                match name {
                    $(stringify!($key) => crate::support::table::Field::written(&self.$key),)*
                    _ => None,
                }
            }

            /// Reads a table of keys.
            ///
            /// # Errors
            /// The errors of [`set`](Self::set).
            pub fn from_map(
                map: &serde_json::Map<String, serde_json::Value>,
            ) -> crate::Result<Self> {
                let mut new = Self::default();
                for (key, value) in map {
                    new.set(key, value)?;
                }
                Ok(new)
            }

            /// The keys that are written, in order, with their values.
            pub fn entries(&self) -> impl Iterator<Item = (&'static str, serde_json::Value)> {
                Self::NAMES.iter().filter_map(|name| Some((*name, self.get(name)?)))
            }

            /// The table as JSON.
            pub fn value(&self) -> serde_json::Value {
                self.entries().map(|(name, value)| (name.to_owned(), value)).collect()
            }
        }
    };
}

pub(crate) use table;
