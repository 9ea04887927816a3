//! A request's work: checked against policy and limits, priced, drawn.

use std::sync::Arc;

use fastdx::Control;
use fastdx::text::{Counts, PositionUnit, Replacements, byte_ranges, spans_in};
use serde::Serialize;

use crate::body::{Spans, Texts};
use crate::policy::Policy;
use crate::reply::Failure;

/// Texts of up to this many bytes are drawn on the thread that received them.
pub const SHORT: usize = 2048;
/// Texts of up to this many bytes are a batch, for a drawing thread. Longer ones would hold others up:
/// they use the library's pool, and share the cores with the rest by the system's rules.
pub const BATCH: usize = 1 << 16;

/// The release that a checked request produced: as JSON the answer of `POST /v1/privatize`.
#[derive(Serialize)]
pub struct Drawn {
    #[serde(flatten)]
    pub released: Texts,
    /// The counts of their words.
    pub counts: Counts,
    /// The name of the policy that was applied.
    policy: String,
    /// The positions of the spans in the new text, in the unit of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    spans: Option<Vec<(u64, u64)>>,
    /// The replacements of words, for a request that comes in pieces.
    #[serde(skip)]
    pub replacements: Replacements,
}

/// A checked request, ready to be drawn.
pub struct CheckedRequest {
    pub policy: Arc<Policy>,
    given: Texts,
    spans: Option<(Vec<std::ops::Range<usize>>, PositionUnit)>,
    /// Number of texts that are not null; a list of words counts as one.
    pub texts: u64,
    /// Bytes of them, which say where they are drawn.
    pub bytes: usize,
    /// The replacements of words in earlier parts of the request.
    pub replacements: Replacements,
}

impl CheckedRequest {
    /// Checks a request against the policy.
    pub fn new(
        policy: Arc<Policy>,
        given: Texts,
        spans: Option<&Spans>,
    ) -> Result<CheckedRequest, Failure> {
        let all = given.strs();
        let (bytes, empty) = (all.iter().map(|text| text.len()).sum(), all.is_empty());
        let texts = match &given {
            Texts::Many(_) => all.len(),
            Texts::One(_) | Texts::Words(_) => 1,
        };
        let spans = match (&given, spans) {
            (Texts::One(text), Some(spans)) => {
                let ranges = byte_ranges(text, &spans.pairs, spans.unit);
                Some((
                    ranges.map_err(|e| Failure::invalid(e.to_string()))?,
                    spans.unit,
                ))
            }
            (_, Some(_)) => {
                return Err(Failure::invalid("spans go with one text, not with a list"));
            }
            (_, None) if policy.spans_only && !empty => {
                return Err(Failure::invalid(
                    "spans are missing: this policy takes nothing else",
                ));
            }
            (_, None) => None,
        };
        Ok(CheckedRequest {
            policy,
            given,
            spans,
            texts: texts as u64,
            bytes,
            replacements: Replacements::default(),
        })
    }
}

/// Computes the cost of a checked request, and the ledger's note; no note if there is nothing to
/// pay for.
/// A request that no finite number pays for is refused.
pub fn price(work: &CheckedRequest) -> Result<(f64, Option<String>), Failure> {
    let invalid = |why: &str| Failure::invalid(format!("no budget pays for this release: {why}"));
    if work.spans.is_some() {
        return Err(invalid("what lies outside the spans is released as it is"));
    }
    let privatizer = &work.policy.text;
    let (mut amount, mut counts) = (0.0, Counts::default());
    if let Texts::Words(tokens) = &work.given {
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let priced = privatizer.price_tokens(&tokens);
        (amount, counts) = (priced.0.map_err(invalid)?, priced.1);
    } else {
        for text in work.given.strs() {
            let (price, count) = privatizer.price(text);
            if count.words == 0 && !text.is_empty() {
                return Err(invalid(
                    "a text has no word, so that all of it would be released",
                ));
            }
            amount += price.map_err(invalid)?;
            counts += count;
        }
    }
    if counts.words == 0 {
        return Ok((0.0, None));
    }
    let words = counts.words - counts.numbers - counts.dates;
    let note = privatizer.note(words, counts.numbers, counts.dates);
    Ok((amount, Some(note)))
}

/// Draws what is to be released.
pub fn draw(mut work: CheckedRequest) -> Result<Drawn, Failure> {
    // Messages of the library hold no text: they say where something stands.
    let refused = |e: fastdx::Error| match e {
        fastdx::Error::UnknownInText { .. } => Failure::invalid(e.to_string()),
        _ => Failure::internal(),
    };
    let (policy, kept) = (&work.policy, &mut work.replacements);
    let control = Control::new();
    let mut at = None;
    let (released, counts) = match (&work.given, work.spans) {
        (Texts::One(text), Some((spans, unit))) => {
            let found = policy.text.privatize_spans(text, &spans, kept, &control);
            let (new, spans, counts) = found.map_err(refused)?;
            at = Some(spans_in(&new, spans, unit));
            (Texts::One(new), counts)
        }
        (Texts::One(text), None) => {
            let found = policy.text.privatize_texts_with(&[text], kept, &control);
            let (mut new, counts) = found.map_err(refused)?;
            let new = new.pop().ok_or_else(Failure::internal)?;
            (Texts::One(new), counts)
        }
        (Texts::Many(texts), _) => {
            // A null keeps its position, so that an error names the position of a text.
            let given: Vec<&str> = (texts.iter())
                .map(|text| text.as_deref().unwrap_or(""))
                .collect();
            let found = policy.text.privatize_texts_with(&given, kept, &control);
            let (new, counts) = found.map_err(refused)?;
            let all = texts.iter().zip(new);
            let all = all.map(|(text, new)| text.as_ref().map(|_| new));
            (Texts::Many(all.collect()), counts)
        }
        (Texts::Words(_), _) => {
            let words = work.given.strs();
            let found = policy.text.privatize_tokens_with(&words, kept, &control);
            let (new, counts) = found.map_err(refused)?;
            (Texts::Words(new), counts)
        }
    };
    Ok(Drawn {
        released,
        counts,
        policy: policy.name.clone(),
        spans: at,
        replacements: work.replacements,
    })
}

/// Runs `work`; returns `None` if it panicked.
pub fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    // The data it worked on is dropped with it, so no half-finished state is visible.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok()
}
