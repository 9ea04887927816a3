//! The bodies that clients send and receive.
//!
//! Errors state the position of a problem in a body, never its content.

use fastdx::text::{Counts, PositionUnit};
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

/// The input to privatise.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Input {
    /// A text.
    One(String),
    /// Several texts, some of which may be null.
    Many(Vec<Option<String>>),
    /// Words that the client has found: each counts as one word, whatever it contains.
    #[serde(skip)]
    Words(Vec<String>),
}

impl Input {
    /// The texts, or the words, that are not null.
    pub fn strs(&self) -> Vec<&str> {
        match self {
            Input::One(text) => vec![text],
            Input::Many(texts) => texts.iter().flatten().map(String::as_str).collect(),
            Input::Words(words) => words.iter().map(String::as_str).collect(),
        }
    }

    /// Returns the one of `text` and `tokens` that is present.
    fn of(text: Option<Input>, tokens: Option<Vec<String>>) -> Result<Input, &'static str> {
        match (text, tokens) {
            (Some(text), None) => Ok(text),
            (None, Some(words)) => Ok(Input::Words(words)),
            _ => Err("text and tokens: give one of them"),
        }
    }
}

/// The body of `POST /v1/privatize`.
#[derive(Debug)]
pub struct PrivatizeRequest {
    /// The input to privatise.
    pub given: Input,
    /// Parts of the text.
    pub spans: Option<Spans>,
    /// The policy.
    pub policy: Option<String>,
}

/// Its fields; null is as good as left out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    text: Option<Input>,
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

/// Parts of a text.
#[derive(Debug)]
pub struct Spans {
    /// Their starts and ends.
    pub pairs: Vec<(i64, i64)>,
    /// The unit of these.
    pub unit: PositionUnit,
}

impl Spans {
    fn of(spans: Option<Vec<Span>>, unit: Option<String>) -> Result<Option<Self>, &'static str> {
        match (spans, unit) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err("unit is the unit of spans, which are missing"),
            (Some(_), None) => Err(
                "spans need a unit, because one number is another position in \
                each: \"utf16\" (JavaScript, Java, C#), \"codepoint\" (Python), or \"byte\" \
                (UTF-8: Rust, Go)",
            ),
            (Some(spans), Some(unit)) => Ok(Some(Spans {
                pairs: spans.into_iter().map(|s| (s.start, s.end)).collect(),
                unit: unit
                    .parse()
                    .map_err(|_| "unit must be \"utf16\", \"codepoint\" or \"byte\"")?,
            })),
        }
    }
}

impl PrivatizeRequest {
    /// Reads a body.
    /// An error says where the problem is, never its content.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        let fields: Fields = object(body).map_err(|e| place(&e))?;
        let wrong = |e| format!("the body: {e}");
        let given = Input::of(fields.text, fields.tokens).map_err(wrong)?;
        let spans = Spans::of(fields.spans, fields.unit).map_err(wrong)?;
        Ok(PrivatizeRequest {
            given,
            spans,
            policy: fields.policy,
        })
    }
}

/// The released texts or words, in the form of the input.
#[derive(Debug)]
pub enum Released {
    /// A text.
    One(String),
    /// Several texts, some of which may be null.
    Many(Vec<Option<String>>),
    /// Words.
    Words(Vec<String>),
}

impl Serialize for Released {
    /// Serializes as a field: `"text": …` or `"tokens": …`.
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

/// The number of words and how each kind was treated.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct WordCounts {
    /// Words found.
    pub words: u64,
    /// Words that the mechanism replaced (possibly by themselves).
    pub replaced: u64,
    /// Words that are not in the vocabulary.
    pub unknown: u64,
    /// Words released unchanged because the policy skips them.
    pub skipped: u64,
    /// Numbers drawn by their own law; omitted if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub numbers: u64,
    /// Dates drawn by their own law; omitted if there are none.
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
    /// The released texts or words.
    #[serde(flatten)]
    pub released: Released,
    /// Its words.
    pub counts: WordCounts,
    /// The policy that was applied.
    pub policy: &'a str,
    /// The positions of the parts in the new text, in the unit of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spans: Option<Vec<(u64, u64)>>,
}

/// Reads an object; serde alone would also accept a list of its fields.
/// [`fault`] puts its errors into words.
pub fn object<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, serde_json::Error> {
    match is_object(json) {
        true => serde_json::from_slice(json),
        false => serde_json::from_slice::<serde::de::IgnoredAny>(json)
            .and_then(|_| Err(serde_json::Error::custom("no object"))),
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
pub fn fault(e: &serde_json::Error) -> &'static str {
    match e.classify() {
        serde_json::error::Category::Syntax => "it is no JSON",
        serde_json::error::Category::Eof => "it ends too early",
        _ => "a field is unknown, missing, twice there, or of a wrong type",
    }
}

/// The description of an error in a whole body, with its position.
pub fn place(e: &serde_json::Error) -> String {
    let (line, column) = (e.line(), e.column());
    format!("the body at line {line} column {column}: {}", fault(e))
}
