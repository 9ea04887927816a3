//! The keys of a [`Spec`]: names, types, and which mechanisms take them.

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

use super::{CoverSource, Exclude, IndexSource, Kind, Reference, Spec};
use crate::error::{Error, Result};
use crate::numbers;
use crate::text::Consistent;

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

const fn key(name: &'static str, of_type: Type, of: &'static [Kind]) -> Key {
    Key { name, of_type, of }
}

/// All keys, in the order in which a [`Spec`] is written.
pub const KEYS: &[Key] = &[
    key("mechanism", Type::Text, &[]),
    key(
        "epsilon",
        Type::Real,
        &[
            Kind::Tem,
            Kind::MultivariateLaplace,
            Kind::HyperbolicLaplace,
            Kind::Mahalanobis,
            Kind::NeighborResponse,
            Kind::Vickrey,
        ],
    ),
    key("gamma", Type::Real, &[Kind::Tem]),
    key("beta", Type::Real, &[Kind::Tem]),
    key("sampler", Type::Text, &[Kind::Tem, Kind::HyperbolicLaplace]),
    key("certified", Type::Flag, &[Kind::Tem, Kind::FiniteLaw]),
    key("nominal", Type::Real, &[Kind::Tem]),
    key(
        "paper",
        Type::Flag,
        &[Kind::Mahalanobis, Kind::HyperbolicLaplace],
    ),
    key("base", Type::Text, &[Kind::HyperbolicLaplace]),
    key("mixing", Type::Real, &[Kind::Mahalanobis, Kind::Vickrey]),
    key("tuning", Type::Real, &[Kind::Vickrey]),
    key("search", Type::Text, &[Kind::MultivariateLaplace]),
    key("ef", Type::Count, &[Kind::MultivariateLaplace]),
    key("law", Type::Law, &[Kind::FiniteLaw]),
    key("index", Type::Index, &[]),
    key("verify", Type::Flag, &[]),
    key("cover", Type::Cover, &[Kind::Tem, Kind::NeighborResponse]),
    key("balance", Type::Real, &[Kind::Tem, Kind::NeighborResponse]),
    key("remap", Type::Cover, &[]),
    key("exclude", Type::Exclude, &[]),
    key("oov", Type::Text, &[]),
    key("skip", Type::Words, &[]),
    key("consistent", Type::Consistent, &[]),
    key("numbers", Type::Figure, &[]),
    key("dates", Type::Figure, &[]),
    key("pad", Type::Real, &[]),
    key("cache_bytes", Type::Count, &[]),
    key("threads", Type::Count, &[]),
    key("seed", Type::Count, &[]),
];

/// Returns the key with a name.
///
/// # Errors
/// [`Error::Parameter`] that lists all names.
pub(super) fn key_of(name: &str) -> Result<&'static Key> {
    KEYS.iter().find(|key| key.name == name).ok_or_else(|| {
        let names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
        let expected = format!("made of the keys {}", names.join(", "));
        Error::parameter("spec", expected, format!("the key {name:?}"))
    })
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
    Number::from_f64(number).map_or_else(shown, Value::Number)
}

pub(super) fn count(name: &'static str, value: &Value) -> Result<usize> {
    let count = value.as_u64().and_then(|count| usize::try_from(count).ok());
    count.ok_or_else(|| wrong(name, "a whole number, at least 0", value))
}

fn flag(name: &'static str, value: &Value) -> Result<bool> {
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

fn consistent(value: &Value) -> Result<Consistent> {
    match value {
        Value::Bool(false) => Ok(Consistent::Never),
        Value::Bool(true) => Ok(Consistent::Text),
        Value::String(name) if name == "call" => Ok(Consistent::Call),
        _ => Err(wrong("consistent", "true, false or \"call\"", value)),
    }
}

impl Spec {
    /// Sets a key from a JSON value; `null` sets the default.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an unknown key or a value of a wrong type.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<()> {
        let key = key_of(name)?;
        let name = key.name;
        if value.is_null() {
            let default = Spec::default().to_map();
            return match default.get(name) {
                Some(value) => self.set(name, value),
                None => {
                    self.clear(name);
                    Ok(())
                }
            };
        }
        match name {
            "mechanism" => self.mechanism = text(name, value)?.parse()?,
            "epsilon" => self.epsilon = Some(real(name, value)?),
            "gamma" => self.gamma = Some(real(name, value)?),
            "beta" => self.beta = Some(real(name, value)?),
            "sampler" => self.sampler = Some(text(name, value)?),
            "certified" => self.certified = Some(flag(name, value)?),
            "nominal" => self.nominal = Some(real(name, value)?),
            "paper" => self.paper = Some(flag(name, value)?),
            "base" => self.base = Some(text(name, value)?),
            "mixing" => self.mixing = Some(real(name, value)?),
            "tuning" => self.tuning = Some(real(name, value)?),
            "search" => self.search = Some(text(name, value)?),
            "ef" => self.ef = Some(count(name, value)?),
            "law" => self.law = Some(Reference::of(name, value)?),
            "index" => self.index = Some(IndexSource::of(value)?),
            "verify" => self.verify = flag(name, value)?,
            "cover" => self.cover = Some(CoverSource::of(name, value)?),
            "balance" => self.balance = Some(real(name, value)?),
            "remap" => self.remap = Some(CoverSource::of(name, value)?),
            "exclude" => self.exclude = Exclude::of(value)?,
            "oov" => self.oov = text(name, value)?.parse()?,
            "skip" => self.skip = words(name, value)?.into_iter().collect(),
            "consistent" => self.consistent = consistent(value)?,
            "numbers" => self.numbers = Some(numbers::Number::of_spec(value)?),
            "dates" => self.dates = Some(numbers::Date::of_spec(value)?),
            "pad" => self.pad = Some(real(name, value)?),
            "cache_bytes" => self.cache_bytes = Some(count(name, value)?),
            "threads" => self.threads = Some(count(name, value)?),
            "seed" => self.seed = Some(count(name, value)? as u64),
            _ => unreachable!("a key without a place in the Spec"),
        }
        Ok(())
    }

    /// Sets a number that JSON may not be able to represent.
    ///
    /// # Errors
    /// The errors of [`set`](Self::set).
    pub fn set_real(&mut self, name: &str, number: f64) -> Result<()> {
        self.set(name, &real_value(number))
    }

    fn clear(&mut self, name: &str) {
        match name {
            "epsilon" => self.epsilon = None,
            "gamma" => self.gamma = None,
            "beta" => self.beta = None,
            "sampler" => self.sampler = None,
            "certified" => self.certified = None,
            "nominal" => self.nominal = None,
            "paper" => self.paper = None,
            "base" => self.base = None,
            "mixing" => self.mixing = None,
            "tuning" => self.tuning = None,
            "search" => self.search = None,
            "ef" => self.ef = None,
            "law" => self.law = None,
            "index" => self.index = None,
            "verify" => self.verify = true,
            "cover" => self.cover = None,
            "balance" => self.balance = None,
            "remap" => self.remap = None,
            "skip" => self.skip = BTreeSet::new(),
            "consistent" => self.consistent = Consistent::Never,
            "numbers" => self.numbers = None,
            "dates" => self.dates = None,
            "pad" => self.pad = None,
            "cache_bytes" => self.cache_bytes = None,
            "threads" => self.threads = None,
            "seed" => self.seed = None,
            // Other keys are always written.
            _ => {}
        }
    }

    /// The value of a key; `None` for a default that is not written.
    pub fn get(&self, name: &str) -> Option<Value> {
        let count = |count: usize| Value::from(count as u64);
        match name {
            "mechanism" => Some(self.mechanism.name().into()),
            "epsilon" => self.epsilon.map(real_value),
            "gamma" => self.gamma.map(real_value),
            "beta" => self.beta.map(real_value),
            "sampler" => self.sampler.clone().map(Value::from),
            "certified" => self.certified.map(Value::from),
            "nominal" => self.nominal.map(real_value),
            "paper" => self.paper.map(Value::from),
            "base" => self.base.clone().map(Value::from),
            "mixing" => self.mixing.map(real_value),
            "tuning" => self.tuning.map(real_value),
            "search" => self.search.clone().map(Value::from),
            "ef" => self.ef.map(count),
            "law" => self.law.as_ref().map(Reference::value),
            "index" => self.index.as_ref().map(IndexSource::value),
            "verify" => (!self.verify).then_some(Value::Bool(false)),
            "cover" => self.cover.as_ref().map(CoverSource::value),
            "balance" => self.balance.map(real_value),
            "remap" => self.remap.as_ref().map(CoverSource::value),
            "exclude" => Some(self.exclude.value()),
            "oov" => Some(self.oov.name().into()),
            "skip" => (!self.skip.is_empty()).then(|| {
                let words = self.skip.iter().cloned().map(Value::String);
                Value::Array(words.collect())
            }),
            "consistent" => match self.consistent {
                Consistent::Never => None,
                Consistent::Text => Some(true.into()),
                Consistent::Call => Some("call".into()),
            },
            "numbers" => self.numbers.as_ref().map(numbers::Number::value_of),
            "dates" => self.dates.as_ref().map(numbers::Date::value_of),
            "pad" => self.pad.map(real_value),
            "cache_bytes" => self.cache_bytes.map(count),
            "threads" => self.threads.map(count),
            "seed" => self.seed.map(Value::from),
            _ => None,
        }
    }

    /// All keys with their values, without defaults that are not written.
    pub fn to_map(&self) -> Map<String, Value> {
        let each = KEYS
            .iter()
            .filter_map(|key| Some((key.name.to_owned(), self.get(key.name)?)));
        each.collect()
    }
}
