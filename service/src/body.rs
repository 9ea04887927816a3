//! What clients send, and what they get.
//!
//! Errors say where a body is wrong, never what stands there.

use std::fmt;

use fastdx::text::Counts;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

/// What is to be privatised.
#[derive(Debug)]
pub enum Given {
    /// A text.
    One(String),
    /// Texts, some of which are null.
    Many(Vec<Option<String>>),
    /// Words that the client has found: each is one word, whatever it holds.
    Words(Vec<String>),
}

impl Given {
    /// The texts, or the words, that are not null.
    pub fn strs(&self) -> Vec<&str> {
        match self {
            Given::One(text) => vec![text],
            Given::Many(texts) => texts.iter().flatten().map(String::as_str).collect(),
            Given::Words(words) => words.iter().map(String::as_str).collect(),
        }
    }

    /// The one of `text` and `tokens` that is there.
    fn of(text: Option<Given>, tokens: Option<Given>) -> Result<Given, &'static str> {
        match (text, tokens) {
            (Some(text), None) => Ok(text),
            (None, Some(Given::Many(words))) => {
                let words: Option<Vec<String>> = words.into_iter().collect();
                words
                    .map(Given::Words)
                    .ok_or("tokens must be a list of strings, without null")
            }
            (None, Some(_)) => Err("tokens must be a list of strings"),
            _ => Err("text and tokens: give one of them"),
        }
    }
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Given;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, or a list of strings and nulls")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Given, E> {
                Ok(Given::One(text.to_owned()))
            }
            fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Given, E> {
                Ok(Given::One(text))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut texts: A) -> Result<Given, A::Error> {
                let mut all = Vec::new();
                while let Some(text) = texts.next_element()? {
                    if all.len() >= MOST_TEXTS {
                        return Err(A::Error::custom("too many"));
                    }
                    all.push(text);
                }
                Ok(Given::Many(all))
            }
        }
        from.deserialize_any(Text)
    }
}

/// Texts that a list may have whatever the limits are: `null,` takes 5 bytes of a body and 24 here.
const MOST_TEXTS: usize = 1 << 20;

/// The body of `POST /v1/privatize`.
#[derive(Debug)]
pub struct PrivatizeRequest {
    /// What is to be privatised.
    pub given: Given,
    /// Parts of the text, in characters.
    pub spans: Option<Vec<(u64, u64)>>,
    /// The policy.
    pub policy: Option<String>,
}

/// Its fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(default, deserialize_with = "there")]
    text: Option<Given>,
    #[serde(default, deserialize_with = "there")]
    tokens: Option<Given>,
    #[serde(default, deserialize_with = "places")]
    spans: Option<Vec<(u64, u64)>>,
    #[serde(default)]
    policy: Option<String>,
}

/// Pairs of places. JSON has one type of numbers: 3.0 is the whole number 3.
fn places<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<(u64, u64)>>, D::Error> {
    struct Place(u64);
    impl<'de> Deserialize<'de> for Place {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Whole;
            impl Visitor<'_> for Whole {
                type Value = Place;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("a whole number, at least 0")
                }
                fn visit_u64<E: serde::de::Error>(self, place: u64) -> Result<Place, E> {
                    Ok(Place(place))
                }
                fn visit_f64<E: serde::de::Error>(self, place: f64) -> Result<Place, E> {
                    match place >= 0.0 && place.fract() == 0.0 {
                        // Beyond u64 it lies outside of every text, as the largest one does.
                        true => Ok(Place(place as u64)),
                        false => Err(E::custom("no whole number")),
                    }
                }
            }
            from.deserialize_any(Whole)
        }
    }
    let pairs: Option<Vec<(Place, Place)>> = Deserialize::deserialize(from)?;
    let plain = |(start, end): (Place, Place)| (start.0, end.0);
    Ok(pairs.map(|pairs| pairs.into_iter().map(plain).collect()))
}

/// A field that may be left out, and not be null.
fn there<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Given>, D::Error> {
    Given::deserialize(from).map(Some)
}

impl PrivatizeRequest {
    /// Reads a body.
    ///
    /// # Errors
    /// Where it is wrong, never what stands there.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        let fields: Fields = object(body).map_err(|e| place(&e))?;
        let given = Given::of(fields.text, fields.tokens).map_err(|e| format!("the body: {e}"))?;
        Ok(PrivatizeRequest {
            given,
            spans: fields.spans,
            policy: fields.policy,
        })
    }
}

/// A line of a batch: none is null.
#[derive(Debug)]
pub struct Line {
    /// What is to be privatised.
    pub given: Option<Given>,
    /// Parts of the text, in characters.
    pub spans: Option<Vec<(u64, u64)>>,
}

/// A line that is an object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineFields {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    tokens: Option<Given>,
    #[serde(default, deserialize_with = "places")]
    spans: Option<Vec<(u64, u64)>>,
}

/// What is sent back: as it came.
#[derive(Debug)]
pub enum Released {
    /// A text.
    One(String),
    /// Texts, some of which are null.
    Many(Vec<Option<String>>),
    /// Words.
    Words(Vec<String>),
}

impl Serialize for Released {
    /// As a field: `"text": …` or `"tokens": …`.
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut field = to.serialize_map(Some(1))?;
        match self {
            Released::One(text) => field.serialize_entry("text", text)?,
            Released::Many(texts) => field.serialize_entry("text", texts)?,
            Released::Words(words) => field.serialize_entry("tokens", words)?,
        }
        field.end()
    }
}

/// How many words there were, and what became of them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct WordCounts {
    /// Words found.
    pub words: u64,
    /// Words that the mechanism was applied to.
    pub replaced: u64,
    /// Words that are not in the vocabulary.
    pub unknown: u64,
    /// Words released as they are, because the policy skips them.
    pub skipped: u64,
    /// Numbers drawn by a law of their own; left out where there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub numbers: u64,
    /// Dates drawn by a law of their own; left out where there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub dates: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl From<Counts> for WordCounts {
    fn from(c: Counts) -> Self {
        WordCounts {
            words: c.words,
            replaced: c.replaced,
            unknown: c.unknown,
            skipped: c.skipped,
            numbers: c.numbers,
            dates: c.dates,
        }
    }
}

/// The answer of `POST /v1/privatize`.
#[derive(Debug, Serialize)]
pub struct PrivatizeResponse<'a> {
    /// What is released.
    #[serde(flatten)]
    pub released: Released,
    /// Its words.
    pub counts: WordCounts,
    /// The policy that was applied.
    pub policy: &'a str,
    /// Where the parts are in the new text, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spans: Option<Vec<(u64, u64)>>,
}

/// Reads an object: serde would take a list of its fields, too.
///
/// # Errors
/// What is wrong, which [`fault`] puts into words.
pub fn object<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, serde_json::Error> {
    match is_object(json) {
        true => serde_json::from_slice(json),
        false => serde_json::from_slice::<serde::de::IgnoredAny>(json)
            .and_then(|_| Err(serde_json::Error::custom("no object"))),
    }
}

/// Reads a line of a batch: a text, null, or an object.
///
/// # Errors
/// What is wrong, in words that hold nothing of the line.
pub fn line(json: &[u8]) -> Result<Line, &'static str> {
    if !is_object(json) {
        let text: Option<String> = serde_json::from_slice(json).map_err(|e| fault(&e))?;
        return Ok(Line {
            given: text.map(Given::One),
            spans: None,
        });
    }
    let fields: LineFields = serde_json::from_slice(json).map_err(|e| fault(&e))?;
    let given = match (fields.text, fields.tokens) {
        (None, None) => None,
        (text, tokens) => Some(Given::of(text.map(Given::One), tokens)?),
    };
    Ok(Line {
        given,
        spans: fields.spans,
    })
}

fn is_object(json: &[u8]) -> bool {
    json.trim_ascii_start().starts_with(b"{")
}

/// What is wrong with JSON: serde's own message may hold what stands there.
pub fn fault(e: &serde_json::Error) -> &'static str {
    match e.classify() {
        serde_json::error::Category::Syntax => "it is no JSON",
        serde_json::error::Category::Eof => "it ends too early",
        _ => "a field is unknown, missing, twice there, or of a wrong type",
    }
}

/// The same of a whole body, with the place.
pub fn place(e: &serde_json::Error) -> String {
    let (line, column) = (e.line(), e.column());
    format!("the body at line {line} column {column}: {}", fault(e))
}
