//! The public base measure of a Tem: uniform, by rank or frequency, or counts in a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::Reference;
use super::keys::described;
use crate::NgramPrior;
use crate::language::by_rank;
use crate::law::base::BaseMeasure;
use crate::support::error::{Error, Result};
use crate::words::space::MetricSpace;
use crate::words::vocabulary::Vocabulary;

const BY_RANK: &str = "1/(rank + 2.7), by the order of the words";

/// Where the base measure comes from: in JSON and TOML `"uniform"`, `"frequency"`, `"rank"`, the path
/// of a file of counts, or a table of file and fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Language {
    /// All words alike: TEM'21.
    Uniform,
    /// How often words are written: in English, for words that are all built in; else by
    /// [rank](Language::Rank).
    Frequency,
    /// 1/(rank + 2.7), by the order of the words.
    Rank,
    /// A file of lines of a word and a count, or weights in memory.
    Stored(Reference),
}

impl Language {
    pub(super) fn of(name: &'static str, value: &Value) -> Result<Self> {
        match value {
            Value::String(text) if text == "uniform" => Ok(Language::Uniform),
            Value::String(text) if text == "frequency" => Ok(Language::Frequency),
            Value::String(text) if text == "rank" => Ok(Language::Rank),
            Value::String(_) | Value::Object(_) => {
                Ok(Language::Stored(Reference::of(name, value)?))
            }
            _ => {
                let expected = "\"uniform\", \"frequency\", \"rank\", the path of a file of \
                                counts, or a table";
                Err(Error::parameter(name, expected, described(value)))
            }
        }
    }

    pub(super) fn value(&self) -> Value {
        match self {
            Language::Uniform => "uniform".into(),
            Language::Frequency => "frequency".into(),
            Language::Rank => "rank".into(),
            Language::Stored(reference) => reference.value(),
        }
    }

    /// The measure over the words of a space; `None` if it is uniform. `held` is the one in memory.
    pub(super) fn measure(
        &self,
        space: &dyn MetricSpace,
        held: Option<&Arc<BaseMeasure>>,
    ) -> Result<Option<Arc<BaseMeasure>>> {
        let words = space.vocabulary();
        let reference = match self {
            Language::Uniform => return Ok(None),
            Language::Frequency => match NgramPrior::english_frequencies(words)? {
                Some(found) => return named(&found, "how often words are written in English"),
                None => return named(&by_rank(words.len()), BY_RANK),
            },
            Language::Rank => return named(&by_rank(words.len()), BY_RANK),
            Language::Stored(reference) => reference,
        };
        let measure = match (held, &reference.file) {
            (Some(held), _) => Some(held.clone()),
            (None, Some(path)) => {
                let weights = read_counts(path, words)?;
                // Whoever reads the guarantee need not know the folders.
                let file = path.file_name().unwrap_or_default();
                named(&weights, format!("the counts in {}", file.display()))?
            }
            (None, None) => {
                let expected = "given: it was in memory, and its fingerprint alone is known";
                return Err(Error::parameter("language", expected, "none"));
            }
        };
        if let Some(measure) = &measure {
            reference.check("language", measure.fingerprint())?;
        }
        Ok(measure)
    }
}

fn named(weights: &[f64], source: impl Into<String>) -> Result<Option<Arc<BaseMeasure>>> {
    let measure =
        BaseMeasure::new(weights).map_err(|error| error.renamed("weights", "language"))?;
    Ok(measure.map(|measure| Arc::new(measure.named(source.into()))))
}

/// Reads the counts of words: lines of a word, white space, a number. Words without one get half of
/// the least.
fn read_counts(path: &Path, vocabulary: &Vocabulary) -> Result<Vec<f64>> {
    let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
    let mut weights = vec![0.0; vocabulary.len()];
    for (line, number) in text.lines().zip(1u64..) {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let count = line
            .rsplit_once(char::is_whitespace)
            .and_then(|(word, count)| {
                let count: f64 = count.parse().ok()?;
                (count > 0.0 && count.is_finite()).then_some((word.trim_end(), count))
            });
        let Some((word, count)) = count else {
            return Err(Error::Format {
                path: path.to_owned(),
                line: Some(number),
                reason: "not a word, white space, and a positive count".into(),
                offender: None,
            });
        };
        if let Some(id) = vocabulary.id(word) {
            weights[id as usize] += count;
        }
    }
    let positive = weights.iter().copied().filter(|&q| q > 0.0);
    let least = positive.fold(f64::INFINITY, f64::min);
    if least.is_infinite() {
        return Err(Error::Format {
            path: path.to_owned(),
            line: None,
            reason: "counts none of the words".into(),
            offender: None,
        });
    }
    let missing = |q: &mut f64| *q = if *q > 0.0 { *q } else { least / 2.0 };
    weights.iter_mut().for_each(missing);
    Ok(weights)
}

/// The path of its file, if it is in one.
pub(super) fn file_of(language: &mut Option<Language>) -> Option<&mut PathBuf> {
    match language {
        Some(Language::Stored(reference)) => reference.file.as_mut(),
        _ => None,
    }
}
