//! A request's work: checked against policy and limits, priced, drawn.

use std::sync::Arc;

use fastdx::text::{Counts, Replacements, byte_ranges, character_spans};

use crate::body::{Given, Released};
use crate::limits::Limits;
use crate::policy::Policy;
use crate::reply::Failure;

/// Texts of so many bytes are worked on where they are received; longer ones on threads for that.
const SHORT: usize = 2048;

/// What is released of a piece of work.
pub struct Done {
    /// The texts or words.
    pub released: Released,
    /// What became of their words.
    pub counts: Counts,
    /// Where the spans are now, in characters.
    pub spans: Option<Vec<(u64, u64)>>,
    /// The replacements of words, for a request that comes in pieces.
    pub replacements: Replacements,
}

/// A request that was checked: what is to be drawn.
pub struct Work {
    policy: Arc<Policy>,
    given: Given,
    spans: Option<Vec<std::ops::Range<usize>>>,
    /// Texts that are not null; a list of words counts as one.
    texts: usize,
    /// Bytes of them.
    bytes: usize,
    /// The replacements of words in earlier pieces of the request.
    pub replacements: Replacements,
}

impl Work {
    /// Checks what is asked for against policy and limits.
    ///
    /// # Errors
    /// What is wrong.
    pub fn new(
        limits: &Limits,
        policy: Arc<Policy>,
        given: Given,
        spans: Option<&[(u64, u64)]>,
    ) -> Result<Work, Failure> {
        let (texts, of, bytes, words, empty) = {
            let all = given.strs();
            let bytes = all.iter().map(|t| t.len()).sum();
            let words = match &given {
                Given::Words(words) => words.len(),
                // A word has a byte at least: short texts need no counting.
                _ if bytes <= limits.words => 0,
                _ => all.iter().map(|t| policy.text.words(t).count()).sum(),
            };
            let (texts, of) = match &given {
                Given::Many(texts) => (all.len(), texts.len()),
                Given::One(_) | Given::Words(_) => (1, 1),
            };
            (texts, of, bytes, words, all.is_empty())
        };
        let most = |most: usize, what: &str| {
            let message = format!("a request has at most {most} {what}");
            Err(Failure::too_large(message))
        };
        if of > limits.texts {
            return most(limits.texts, "texts");
        }
        if words > limits.words {
            return most(limits.words, "words");
        }
        let spans = match (&given, spans) {
            (Given::One(text), Some(spans)) => {
                let ranges = byte_ranges(text, spans.iter().copied());
                Some(ranges.map_err(|e| Failure::invalid(e.to_string()))?)
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
        Ok(Work {
            policy,
            given,
            spans,
            texts,
            bytes,
            replacements: Replacements::default(),
        })
    }

    /// The policy that it is drawn under.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Texts that are not null; a list of words counts as one.
    pub fn texts(&self) -> u64 {
        self.texts as u64
    }

    /// Whether it is drawn so quickly that no other thread is worth it.
    pub fn is_short(&self) -> bool {
        self.bytes <= SHORT
    }
}

/// What a piece of work costs, and what the ledger notes of it; no note where there is nothing
/// to pay for.
///
/// # Errors
/// No finite number pays for it.
pub fn price(work: &Work) -> Result<(f64, Option<String>), Failure> {
    let invalid = |why: &str| Failure::invalid(format!("no budget pays for this release: {why}"));
    if work.spans.is_some() {
        return Err(invalid("what lies outside the spans is released as it is"));
    }
    let privatizer = &work.policy.text;
    let (mut amount, mut counts) = (0.0, Counts::default());
    if let Given::Words(tokens) = &work.given {
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        amount = privatizer.price_tokens(&tokens).map_err(invalid)?;
        counts = privatizer.count_tokens(&tokens);
    } else {
        for text in work.given.strs() {
            let count = privatizer.count_text(text);
            if count.words == 0 && !text.is_empty() {
                return Err(invalid(
                    "a text has no word, so that all of it would be released",
                ));
            }
            amount += privatizer.price(text).map_err(invalid)?;
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
///
/// # Errors
/// An unknown word that the policy refuses; the system gives no random bits.
pub fn draw(mut work: Work) -> Result<Done, Failure> {
    // Messages of the library hold no text: they say where something stands.
    let refused = |e: fastdx::Error| match e {
        fastdx::Error::UnknownInText { .. } => Failure::invalid(e.to_string()),
        _ => Failure::internal(),
    };
    let (policy, kept) = (&work.policy, &mut work.replacements);
    let mut at = None;
    let (released, counts) = match (&work.given, work.spans) {
        (Given::One(text), Some(spans)) => {
            let (new, spans, counts) = policy
                .privatize_spans(text, &spans, kept)
                .map_err(refused)?;
            at = Some(character_spans(&new, spans));
            (Released::One(new), counts)
        }
        (Given::One(text), None) => {
            let (mut new, counts) = policy.privatize(&[text], kept).map_err(refused)?;
            let new = new.pop().ok_or_else(Failure::internal)?;
            (Released::One(new), counts)
        }
        (Given::Many(texts), _) => {
            // Null has its place, so that an error tells the place of a text.
            let given: Vec<&str> = (texts.iter())
                .map(|text| text.as_deref().unwrap_or(""))
                .collect();
            let (new, counts) = policy.privatize(&given, kept).map_err(refused)?;
            let all = texts.iter().zip(new);
            let all = all.map(|(text, new)| text.as_ref().map(|_| new));
            (Released::Many(all.collect()), counts)
        }
        (Given::Words(_), _) => {
            let found = policy.privatize_tokens(&work.given.strs(), kept);
            let (new, counts) = found.map_err(refused)?;
            (Released::Words(new), counts)
        }
    };
    Ok(Done {
        released,
        counts,
        spans: at,
        replacements: work.replacements,
    })
}

/// What a piece of work gives, or none if it panicked.
pub fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    // What it worked on is dropped with it: nothing half done is seen again.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok()
}
