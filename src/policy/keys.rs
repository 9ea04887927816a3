//! A [`Spec`] and its keys: each stands once, with its type, its mechanisms and its default.

use std::collections::BTreeSet;

use serde_json::{Number as JsonNumber, Value};

use super::{CoverSource, Exclude, IndexSource, Kind, Language, Reference};
use crate::numbers::{Date, Number};
use crate::support::error::{Error, Result};
use crate::text::{Consistent, Oov};

/// The type of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Type {
    /// A number; `"inf"` is infinity.
    Real,
    /// An integer, at least 0.
    Count,
    /// `true` or `false`.
    Flag,
    /// A string.
    Text,
    /// A list of words.
    Words,
    /// See [`IndexSource`].
    Index,
    /// See [`CoverSource`].
    Cover,
    /// See [`Reference`].
    Law,
    /// See [`Language`].
    Language,
    /// See [`Exclude`].
    Exclude,
    /// `true`, `false` or `"call"`.
    Consistent,
    /// ε, or a table: see [`Number`](crate::numbers::Number) and [`Date`](crate::numbers::Date).
    Figure,
}

/// A key of a [`Spec`].
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// The type of its value.
    pub of_type: Type,
    /// The mechanisms that accept it; empty for all.
    pub of: &'static [Kind],
}

impl Key {
    /// Whether a mechanism accepts the key.
    pub fn belongs_to(&self, kind: Kind) -> bool {
        self.of.is_empty() || self.of.contains(&kind)
    }
}

/// Names all keys beside one that there is not.
fn unknown(name: &str) -> Error {
    let names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    let expected = format!("made of the keys {}", names.join(", "));
    Error::parameter("spec", expected, format!("the key {name:?}"))
}

/// The type of a value, for messages.
pub(super) fn described(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

fn wrong(name: &'static str, expected: &str, value: &Value) -> Error {
    Error::parameter(name, expected, described(value))
}

fn real(name: &'static str, value: &Value) -> Result<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        // Numbers that JSON cannot represent.
        Value::String(text) => match &**text {
            "inf" => Some(f64::INFINITY),
            "-inf" => Some(f64::NEG_INFINITY),
            "nan" => Some(f64::NAN),
            _ => None,
        },
        _ => None,
    };
    number.ok_or_else(|| wrong(name, "a number", value))
}

fn real_value(number: f64) -> Value {
    let shown = || Value::String(number.to_string().to_lowercase());
    JsonNumber::from_f64(number).map_or_else(shown, Value::Number)
}

pub(super) fn count(name: &'static str, value: &Value) -> Result<usize> {
    let count = value.as_u64().and_then(|count| usize::try_from(count).ok());
    count.ok_or_else(|| wrong(name, "a whole number, at least 0", value))
}

pub(super) fn flag(name: &'static str, value: &Value) -> Result<bool> {
    let flag = value.as_bool();
    flag.ok_or_else(|| wrong(name, "true or false", value))
}

pub(super) fn text(name: &'static str, value: &Value) -> Result<String> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| wrong(name, "a string", value))
}

pub(super) fn words(name: &'static str, value: &Value) -> Result<Vec<String>> {
    let words = value.as_array().and_then(|words| {
        let each = words.iter().map(|word| word.as_str().map(str::to_owned));
        each.collect()
    });
    words.ok_or_else(|| wrong(name, "a list of strings", value))
}

/// A value of a key.
trait Field: Sized {
    const TYPE: Type;

    fn of(name: &'static str, value: &Value) -> Result<Self>;

    /// `None` for a default that is not written.
    fn value(&self) -> Option<Value>;
}

impl<T: Field> Field for Option<T> {
    const TYPE: Type = T::TYPE;

    fn of(name: &'static str, value: &Value) -> Result<Self> {
        T::of(name, value).map(Some)
    }

    fn value(&self) -> Option<Value> {
        self.as_ref().and_then(Field::value)
    }
}

/// Implements [`Field`] by two functions.
macro_rules! fields {
    ($($of:ty: $type:ident, $read:expr, $write:expr;)*) => {$(
        impl Field for $of {
            const TYPE: Type = Type::$type;

            fn of(name: &'static str, value: &Value) -> Result<Self> {
                let read: fn(&'static str, &Value) -> Result<Self> = $read;
                read(name, value)
            }

            fn value(&self) -> Option<Value> {
                let write: fn(&Self) -> Value = $write;
                Some(write(self))
            }
        }
    )*};
}

fields! {
    f64: Real, real, |number| real_value(*number);
    usize: Count, count, |count| (*count as u64).into();
    u64: Count, |name, value| Ok(count(name, value)? as u64), |count| (*count).into();
    bool: Flag, flag, |flag| (*flag).into();
    String: Text, text, |text| text.as_str().into();
    Kind: Text, |name, value| text(name, value)?.parse(), |kind| kind.name().into();
    Oov: Text, |name, value| text(name, value)?.parse(), |oov| oov.name().into();
    IndexSource: Index, |_, value| IndexSource::of(value), IndexSource::value;
    CoverSource: Cover, CoverSource::of, CoverSource::value;
    Reference: Law, Reference::of, Reference::value;
    Language: Language, Language::of, Language::value;
    Exclude: Exclude, |_, value| Exclude::of(value), Exclude::value;
    Number: Figure, |_, value| Number::of_spec(value), Number::value_of;
    Date: Figure, |_, value| Date::of_spec(value), Date::value_of;
}

impl Field for BTreeSet<String> {
    const TYPE: Type = Type::Words;

    fn of(name: &'static str, value: &Value) -> Result<Self> {
        Ok(words(name, value)?.into_iter().collect())
    }

    fn value(&self) -> Option<Value> {
        (!self.is_empty()).then(|| self.iter().cloned().map(Value::String).collect())
    }
}

impl Field for Consistent {
    const TYPE: Type = Type::Consistent;

    fn of(name: &'static str, value: &Value) -> Result<Self> {
        match value {
            Value::Bool(false) => Ok(Consistent::Never),
            Value::Bool(true) => Ok(Consistent::Text),
            Value::String(name) if name == "call" => Ok(Consistent::Call),
            _ => Err(wrong(name, "true, false or \"call\"", value)),
        }
    }

    fn value(&self) -> Option<Value> {
        match self {
            Consistent::Never => None,
            Consistent::Text => Some(true.into()),
            Consistent::Call => Some("call".into()),
        }
    }
}

/// Declares [`Spec`] and [`KEYS`]: a key's documentation, the mechanisms that accept it (all where
/// none is named), its type and its default.
macro_rules! spec {
    ($($(#[$doc:meta])* [$($kind:ident)*] $key:ident: $type:ty = $default:expr;)*) => {
        /// A description of a mechanism, its words, and its handling of text.
        ///
        /// `None` always means the mechanism's default. [`KEYS`] lists all keys with their types and
        /// mechanisms.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Spec {
            $($(#[$doc])* pub $key: $type,)*
        }

        impl Default for Spec {
            fn default() -> Self {
                Spec { $($key: $default,)* }
            }
        }

        /// All keys, in the order in which a [`Spec`] is written.
        pub const KEYS: &[Key] = &[$(Key {
            name: stringify!($key),
            of_type: <$type as Field>::TYPE,
            of: &[$(Kind::$kind),*],
        },)*];

        impl Spec {
            /// Sets a key from a JSON value; `null` sets the default.
            ///
            /// # Errors
            /// [`Error::Parameter`] for an unknown key or a value of a wrong type.
            pub fn set(&mut self, name: &str, value: &Value) -> Result<()> {
                match name {
                    $(stringify!($key) => self.$key = match value {
                        Value::Null => $default,
                        value => Field::of(stringify!($key), value)?,
                    },)*
                    _ => return Err(unknown(name)),
                }
                Ok(())
            }

            /// The value of a key; `None` for a default that is not written.
            pub fn get(&self, name: &str) -> Option<Value> {
                match name {
                    $(stringify!($key) => Field::value(&self.$key),)*
                    _ => None,
                }
            }
        }
    };
}

spec! {
    /// The mechanism.
    [] mechanism: Kind = Kind::Tem;
    /// ε per unit of distance. Without ε, the policy that fastdx recommends is used, if no other
    /// key describes the law (see [`Spec::recommended`]).
    [Tem MultivariateLaplace HyperbolicLaplace Mahalanobis NeighborResponse Vickrey]
    epsilon: Option<f64> = None;
    /// Tem: the distance beyond which all words have equal weights; may be infinite.
    [Tem] gamma: Option<f64> = None;
    /// Tem: γ by TEM'21's Theorem 3.
    [Tem] beta: Option<f64> = None;
    /// Tem: the public base measure of its outputs; by default uniform, as in TEM'21.
    [Tem] language: Option<Language> = None;
    /// Tem: whether `epsilon` is the value that the certificate proves, which needs less noise.
    /// FiniteLaw: whether its ε is computed; by default for up to 2,000 words.
    [Tem FiniteLaw] certified: Option<bool> = None;
    /// Certified Tem: the nominal ε, if it was found before. Saves the search.
    [Tem] nominal: Option<f64> = None;
    /// Hyperbolic noise: `volume` or `ball`.
    [HyperbolicLaplace] base: Option<String> = None;
    /// Mahalanobis, Vickrey: λ, the share of the covariance.
    [Mahalanobis Vickrey] mixing: Option<f64> = None;
    /// Vickrey: t, how much the second nearest word is preferred.
    [Vickrey] tuning: Option<f64> = None;
    /// MADLIB: `exact`, `hnsw` or `auto`.
    [MultivariateLaplace] search: Option<String> = None;
    /// MADLIB with graph search: number of candidates.
    [MultivariateLaplace] ef: Option<usize> = None;
    /// FiniteLaw: a .npy file of its law, float64, (V, V).
    [FiniteLaw] law: Option<Reference> = None;
    /// Words and metric; by default the mechanism's built-in ones.
    [] index: Option<IndexSource> = None;
    /// Whether opening an index file verifies every checksum; by default it does.
    [] verify: Option<bool> = None;
    /// The cover of Tem and NeighborResponse; by default the one in the index, if any.
    [Tem NeighborResponse] cover: Option<CoverSource> = None;
    /// With a number as `cover`: the weight of similar frequencies
    /// ([`Cover::balanced`](crate::Cover::balanced)).
    [Tem NeighborResponse] balance: Option<f64> = None;
    /// Post-processing: each output is replaced by one of its outputs in this cover.
    [] remap: Option<CoverSource> = None;
    /// Words that are never released.
    [] exclude: Exclude = Exclude::Offensive;
    /// Handling of unknown words.
    [] oov: Oov = Oov::default();
    /// Words that are released unchanged, UNPROTECTED.
    [] skip: BTreeSet<String> = BTreeSet::new();
    /// Whether equal words get the same replacement.
    [] consistent: Consistent = Consistent::Never;
    /// The mechanism for numbers in texts; by default they are treated as words.
    [] numbers: Option<Number> = None;
    /// The mechanism for dates in texts; by default they are treated as words.
    [] dates: Option<Date> = None;
    /// Every call takes a multiple of this number of seconds.
    [] pad: Option<f64> = None;
    /// Maximum bytes of cached lists and laws.
    [] cache_bytes: Option<usize> = None;
    /// Maximum threads of a call.
    [] threads: Option<usize> = None;
    /// For tests only: makes the output reproducible, and hence unprotected.
    [] seed: Option<u64> = None;
}

impl Spec {
    /// Sets a number that JSON may not be able to represent.
    ///
    /// # Errors
    /// The errors of [`set`](Self::set).
    pub fn set_real(&mut self, name: &str, number: f64) -> Result<()> {
        self.set(name, &real_value(number))
    }
}
