//! The bodies that clients send and receive.
//!
//! Errors state the position of a problem in a body, never its content.

use fastdx::text::PositionUnit;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

/// Texts or words: as given, and as released.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Texts {
    /// A text.
    One(String),
    /// Several texts, some of which may be null.
    Many(Vec<Option<String>>),
    /// Words that the client has found: each counts as one word, whatever it contains.
    #[serde(skip)]
    Words(Vec<String>),
}

impl Texts {
    /// The texts, or the words, that are not null.
    pub fn strs(&self) -> Vec<&str> {
        match self {
            Texts::One(text) => vec![text],
            Texts::Many(texts) => texts.iter().flatten().map(String::as_str).collect(),
            Texts::Words(words) => words.iter().map(String::as_str).collect(),
        }
    }
}

impl Serialize for Texts {
    /// Serializes as a field: `"text": …` or `"tokens": …`.
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut field = to.serialize_map(Some(1))?;
        match self {
            Texts::One(text) => field.serialize_entry("text", text)?,
            Texts::Many(texts) => field.serialize_entry("text", texts)?,
            Texts::Words(words) => field.serialize_entry("tokens", words)?,
        }
        field.end()
    }
}

#[derive(Debug)]
pub struct Spans {
    pub pairs: Vec<(i64, i64)>,
    pub unit: PositionUnit,
}

/// The body of `POST /v1/privatize`.
#[derive(Debug)]
pub struct PrivatizeRequest {
    pub given: Texts,
    /// Parts of the text.
    pub spans: Option<Spans>,
    pub policy: Option<String>,
}

/// Its fields; null is as good as left out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    text: Option<Texts>,
    tokens: Option<Vec<String>>,
    spans: Option<Vec<Span>>,
    unit: Option<String>,
    policy: Option<String>,
}

/// A part of a text, `[start, end]` or an object, of which other fields (Presidio's type and score)
/// are ignored.
#[derive(Deserialize)]
struct Span {
    start: i64,
    end: i64,
}

impl PrivatizeRequest {
    /// Reads a body.
    /// An error says where the problem is, never its content.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        let fields = match is_object(body) {
            true => serde_json::from_slice(body),
            // serde alone would also accept a list of the fields.
            false => serde_json::from_slice::<serde::de::IgnoredAny>(body)
                .and_then(|_| Err(serde::de::Error::custom("no object"))),
        };
        let fields: Fields = fields.map_err(|e| {
            let (line, column) = (e.line(), e.column());
            format!("the body at line {line} column {column}: {}", fault(&e))
        })?;
        let given = match (fields.text, fields.tokens) {
            (Some(text), None) => text,
            (None, Some(words)) => Texts::Words(words),
            _ => return Err("the body: text and tokens: give one of them".into()),
        };
        let spans = match (fields.spans, fields.unit) {
            (None, None) => None,
            (None, Some(_)) => {
                return Err("the body: unit is the unit of spans, which are missing".into());
            }
            (Some(_), None) => {
                return Err(
                    "the body: spans need a unit, because one number is another position \
                     in each: \"utf16\" (JavaScript, Java, C#), \"codepoint\" (Python), or \
                     \"byte\" (UTF-8: Rust, Go)"
                        .into(),
                );
            }
            (Some(spans), Some(unit)) => Some(Spans {
                pairs: spans.into_iter().map(|s| (s.start, s.end)).collect(),
                unit: unit
                    .parse()
                    .map_err(|_| "the body: unit must be \"utf16\", \"codepoint\" or \"byte\"")?,
            }),
        };
        Ok(PrivatizeRequest {
            given,
            spans,
            policy: fields.policy,
        })
    }
}

/// A line of a batch that is an object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    text: Option<String>,
}

/// Reads a line of a batch: a text, null, or an object with one of these.
/// An error has no content of the line.
pub fn line(json: &[u8]) -> Result<Option<String>, &'static str> {
    let read = match is_object(json) {
        true => serde_json::from_slice(json).map(|line: Line| line.text),
        false => serde_json::from_slice(json),
    };
    read.map_err(|e| fault(&e))
}

fn is_object(json: &[u8]) -> bool {
    json.trim_ascii_start().starts_with(b"{")
}

/// A description of a JSON error. serde's own message may contain input.
fn fault(e: &serde_json::Error) -> &'static str {
    match e.classify() {
        serde_json::error::Category::Syntax => "it is no JSON",
        serde_json::error::Category::Eof => "it ends too early",
        _ => "a field is unknown, missing, twice there, or of a wrong type",
    }
}
