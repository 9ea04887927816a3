//! A request's work: checked against policy and limits, charged, drawn.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use fastdx::text::Replacements;
use hyper::StatusCode;

use crate::body::{Given, Released, to_bytes, to_characters};
use crate::ledger::Refusal;
use crate::metrics::Refused;
use crate::policy::Policy;
use crate::reply::Failure;
use crate::service::Service;

/// Texts of so many bytes are worked on where they are received; longer ones on threads for that.
const SHORT: usize = 2048;

/// What is released of a piece of work.
pub struct Done {
    /// The texts or words.
    pub released: Released,
    /// What became of their words.
    pub counts: fastdx::text::Counts,
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

impl Service {
    /// Checks what is asked for against policy and limits.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(
        &self,
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
                _ if bytes <= self.limits.words => 0,
                _ => all.iter().map(|t| policy.text.words(t).count()).sum(),
            };
            let (texts, of) = match &given {
                Given::Many(texts) => (all.len(), texts.len()),
                Given::One(_) | Given::Words(_) => (1, 1),
            };
            (texts, of, bytes, words, all.is_empty())
        };
        let most = |most: usize, what: &str| {
            Err(self.too_large(format!("a request has at most {most} {what}")))
        };
        if of > self.limits.texts {
            return most(self.limits.texts, "texts");
        }
        if words > self.limits.words {
            return most(self.limits.words, "words");
        }
        let spans = match (&given, spans) {
            (Given::One(text), Some(spans)) => {
                Some(to_bytes(text, spans).map_err(Failure::invalid)?)
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

    /// Charges for a piece of work, then draws.
    ///
    /// # Errors
    /// Why not; nothing is released.
    pub async fn release(self: &Arc<Self>, account: &str, work: Work) -> Result<Done, Failure> {
        let start = Instant::now();
        let pad = work.policy.pad;
        let done = self.release_at_once(account, work).await;
        if let Some(pad) = pad {
            // The timer's thread waits for all, none for this one.
            let whole = start.elapsed().div_duration_f64(pad).ceil().max(1.0);
            tokio::time::sleep_until((start + pad.mul_f64(whole)).into()).await;
        }
        done
    }

    async fn release_at_once(self: &Arc<Self>, account: &str, work: Work) -> Result<Done, Failure> {
        if let Some(ledger) = &self.ledger {
            let (amount, note) = price(&work)?;
            if let Some(note) = note {
                let left = ledger.charge(account, amount, note).await;
                left.map_err(|refusal| self.refuse(amount, refusal))?;
            }
        }
        let (texts, policy) = (work.texts as u64, work.policy.clone());
        let done = match work.bytes <= SHORT {
            true => caught(|| draw(work)),
            false => {
                let done = tokio::task::spawn_blocking(move || caught(|| draw(work)));
                done.await.unwrap_or(None)
            }
        };
        let done = match done {
            Some(done) => done?,
            None => {
                self.metrics.panics.fetch_add(1, Relaxed);
                return Err(Failure::internal());
            }
        };
        policy.released.releases.fetch_add(1, Relaxed);
        policy.released.texts.fetch_add(texts, Relaxed);
        policy.released.words.fetch_add(done.counts.words, Relaxed);
        Ok(done)
    }

    fn refuse(&self, amount: f64, refusal: Refusal) -> Failure {
        match refusal {
            Refusal::Spent { left } => {
                self.metrics.refused(Refused::Budget);
                let message = format!("the release costs {amount}, and {left} is left");
                let status = StatusCode::TOO_MANY_REQUESTS;
                Failure {
                    left: Some(left),
                    ..Failure::new(status, "budget", message)
                }
            }
            Refusal::Failed => {
                let message = "the ledger could not be written: nothing was released";
                Failure::new(StatusCode::SERVICE_UNAVAILABLE, "ledger", message)
            }
        }
    }
}

/// What a piece of work costs, and what the ledger notes of it; no note where there is nothing
/// to pay for.
fn price(work: &Work) -> Result<(f64, Option<String>), Failure> {
    let invalid = |why: &str| Failure::invalid(format!("no budget pays for this release: {why}"));
    if work.spans.is_some() {
        return Err(invalid("what lies outside the spans is released as it is"));
    }
    let privatizer = &work.policy.text;
    let (mut amount, mut words) = (0.0, 0);
    if let Given::Words(tokens) = &work.given {
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        (amount, words) = (
            privatizer.price_tokens(&tokens).map_err(invalid)?,
            tokens.len(),
        );
    } else {
        for text in work.given.strs() {
            let count = privatizer.words(text).count();
            if count == 0 && !text.is_empty() {
                return Err(invalid(
                    "a text has no word, so that all of it would be released",
                ));
            }
            amount += privatizer.price(text).map_err(invalid)?;
            words += count;
        }
    }
    if words == 0 {
        return Ok((0.0, None));
    }
    let epsilon = privatizer.mechanism().epsilon();
    Ok((amount, Some(format!("{words} words at ε = {epsilon}"))))
}

fn draw(mut work: Work) -> Result<Done, Failure> {
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
            at = Some(to_characters(&new, &spans));
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
