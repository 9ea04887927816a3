//! The public base measure of a Tem: uniform, by rank or frequency, counts in a file, or a model of
//! language that goes by what was released before.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::Reference;
use super::reference::FINGERPRINT_ALONE;
use crate::NgramPrior;
use crate::language::{LanguageModel, NgramWeights, by_rank};
use crate::law::base::BaseMeasure;
use crate::support::error::{Error, Result};
use crate::support::table::{Field, wrong};
use crate::words::index::is_index;
use crate::words::space::MetricSpace;
use crate::words::vocabulary::Vocabulary;

const BY_RANK: &str = "1/(rank + 2.7), by the order of the words";

/// Where the base measure comes from: in JSON and TOML `"uniform"`, `"frequency"`, `"rank"`,
/// `"english"`, the path of a file of counts or of a saved [`NgramPrior`], or a table of file and
/// fingerprint.
#[derive(Clone, Debug, PartialEq)]
pub enum Language {
    /// All words alike: TEM'21.
    Uniform,
    /// How often words are written: in English, for words that are all built in; else by
    /// [rank](Language::Rank).
    Frequency,
    /// 1/(rank + 2.7), by the order of the words.
    Rank,
    /// The built-in bigrams of English, behind what was released.
    English,
    /// A file of lines of a word and a count, or of an n-gram model; or a [`Public`] measure in memory.
    Stored(Reference),
}

/// A base measure, made.
#[derive(Clone)]
pub enum Public {
    /// The same for every word of a text.
    Fixed(Arc<BaseMeasure>),
    /// One that goes by what was released before.
    History(Arc<dyn LanguageModel>),
}

impl Public {
    /// Identifies it; `None` where that cannot be known.
    pub fn fingerprint(&self) -> Option<u64> {
        match self {
            Public::Fixed(measure) => Some(measure.fingerprint()),
            Public::History(model) => model.fingerprint(),
        }
    }
}

impl Field for Language {
    fn read(name: &'static str, value: &Value) -> Result<Self> {
        Ok(match value {
            Value::String(text) if text == "uniform" => Language::Uniform,
            Value::String(text) if text == "frequency" => Language::Frequency,
            Value::String(text) if text == "rank" => Language::Rank,
            Value::String(text) if text == "english" => Language::English,
            Value::String(_) | Value::Object(_) => Language::Stored(Field::read(name, value)?),
            _ => {
                let expected = "\"uniform\", \"frequency\", \"rank\", \"english\", the path of \
                                a file of counts or of an n-gram model, or a table";
                return Err(wrong(name, expected, value));
            }
        })
    }

    fn written(&self) -> Option<Value> {
        Some(match self {
            Language::Uniform => "uniform".into(),
            Language::Frequency => "frequency".into(),
            Language::Rank => "rank".into(),
            Language::English => "english".into(),
            Language::Stored(reference) => reference.value(),
        })
    }
}

impl Language {
    /// The measure over the words of a space; `None` if it is uniform. `held` is the one in memory.
    pub(super) fn measure(
        &self,
        space: &Arc<dyn MetricSpace>,
        held: Option<&Public>,
    ) -> Result<Option<Public>> {
        let words = space.vocabulary();
        let reference = match self {
            Language::Uniform => return Ok(None),
            Language::Frequency => match NgramPrior::english_frequencies(words)? {
                Some(found) => return named(&found, "how often words are written in English"),
                None => return named(&by_rank(words.len()), BY_RANK),
            },
            Language::Rank => return named(&by_rank(words.len()), BY_RANK),
            Language::English => {
                let prior = NgramPrior::english(Some(space.clone()));
                let prior = prior.map_err(|error| error.renamed("space", "language"))?;
                let model = NgramWeights::named(Arc::new(prior), "bigrams of English".into());
                return Ok(Some(Public::History(Arc::new(model))));
            }
            Language::Stored(reference) => reference,
        };
        let measure = match (held, &reference.file) {
            (Some(held), _) => Some(held.clone()),
            (None, Some(path)) if is_index(path)? => {
                let prior = NgramPrior::open(space.clone(), path);
                let prior = prior.map_err(|error| error.renamed("space", "language"))?;
                let model = NgramWeights::new(Arc::new(prior));
                Some(Public::History(Arc::new(model)))
            }
            (None, Some(path)) => {
                let weights = read_counts(path, words)?;
                // Whoever reads the guarantee need not know the folders.
                let file = path.file_name().unwrap_or_default();
                named(&weights, format!("the counts in {}", file.display()))?
            }
            (None, None) => return Err(Error::parameter("language", FINGERPRINT_ALONE, "none")),
        };
        if let Some(measure) = &measure {
            reference.check("language", measure.fingerprint().unwrap_or_default())?;
        }
        Ok(measure)
    }
}

fn named(weights: &[f64], source: impl Into<String>) -> Result<Option<Public>> {
    let measure =
        BaseMeasure::new(weights).map_err(|error| error.renamed("weights", "language"))?;
    Ok(measure.map(|measure| Public::Fixed(Arc::new(measure.named(source.into())))))
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
