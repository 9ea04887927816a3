//! The page at `/`, and what it shows: laws of words, and what a policy does to words on the whole.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use fastdx::text::{Consistent, normalize};
use fastdx::{Mechanism, WordMechanism};
use hyper::body::Incoming;
use hyper::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use hyper::{Request as Asked, Response as Answered, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answers::Answer;
use crate::body::{object, place};
use crate::held::{Connection, Held};
use crate::policy::Policy;
use crate::reply::{Body, Failure, answered};
use crate::routes::last;
use crate::service::{Service, one_policy};
use crate::work::caught;

/// The page.
const PAGE: &str = include_str!("page.html");
/// What the page may do: nothing but ask this service.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
    script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";
/// Words of a sentence whose laws are shown, and replacements of a word.
const WORDS: usize = 40;
const TOP: usize = 8;
/// Words that a policy is measured on: so many, but no fewer than the least, as have so many
/// probabilities.
const SAMPLE: usize = 200;
const LEAST: usize = 20;
const PROBABILITIES: usize = 20_000_000;

/// What a policy does to some words of its vocabulary, by their laws.
#[derive(Clone, Copy, Debug)]
pub struct Measures {
    /// Words that were looked at, spread over the vocabulary.
    pub words: usize,
    /// Words of the vocabulary.
    pub of: usize,
    /// R: how often one guess names the word right, of an attacker who knows the mechanism and that the
    /// word is one of these, each as likely as any other.
    pub named: f64,
    /// Mean of `N_w`, the probability that a word comes back unchanged.
    pub unchanged: f64,
    /// The largest `N_w`.
    pub most_unchanged: f64,
}

impl Measures {
    /// Measures a mechanism that has a law. For R the likeliest of the words is taken for each output.
    pub fn of(mechanism: &dyn Mechanism) -> Self {
        let of = mechanism.vocabulary().len();
        let words = SAMPLE.min((PROBABILITIES / of.max(1)).max(LEAST)).min(of);
        let (mut law, mut likeliest) = (vec![0.0; of], vec![0.0f64; of]);
        let (mut sum, mut most) = (0.0, 0.0f64);
        for i in 0..words {
            let id = i * (of - 1) / (words - 1).max(1);
            mechanism.law(id as u32, &mut law);
            sum += law[id];
            most = most.max(law[id]);
            for (likeliest, p) in likeliest.iter_mut().zip(&law) {
                *likeliest = likeliest.max(*p);
            }
        }
        let count = words.max(1) as f64;
        Measures {
            words,
            of,
            named: likeliest.iter().sum::<f64>() / count,
            unchanged: sum / count,
            most_unchanged: most,
        }
    }
}

/// The page as it is sent.
pub fn page() -> Answered<Body> {
    let body = Body::Whole(Some(Bytes::from_static(PAGE.as_bytes())), None);
    let mut page = answered(StatusCode::OK, "text/html; charset=utf-8", body);
    let policy = HeaderValue::from_static(PAGE_POLICY);
    page.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    page
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    text: String,
    policy: Option<String>,
}

impl Service {
    /// Whether the page may show a policy: where redrawing takes from no account, is of no use
    /// against consistency, and laws are public and quickly found.
    pub fn shown(&self, policy: &Policy) -> bool {
        let private = policy.text.policy().consistent != Consistent::Never
            || policy.pad.is_some()
            || policy.spans_only;
        let lawful = policy.text.mechanism().has_law();
        self.page && self.ledger.is_none() && !private && lawful && policy.page.unwrap_or(true)
    }

    fn shown_policy(&self, name: Option<&str>) -> Result<Arc<Policy>, Failure> {
        let policy = self.policy(name)?;
        match self.shown(&policy) {
            true => Ok(policy),
            false => {
                let message = "this policy's laws are not shown here";
                Err(Failure::new(StatusCode::NOT_FOUND, "not_shown", message))
            }
        }
    }

    /// Does what takes long on a thread for that.
    async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let done = tokio::task::spawn_blocking(|| caught(work)).await;
        done.unwrap_or(None).ok_or_else(|| {
            self.metrics.panics.fetch_add(1, Relaxed);
            Failure::internal()
        })
    }

    /// The law of each word of a text: the likeliest replacements.
    ///
    /// # Errors
    /// What is wrong; the policy is not shown.
    pub async fn law(
        &self,
        asked: Asked<Incoming>,
        connection: &Connection,
    ) -> Result<(Answer, Held), Failure> {
        let taken = self.take(asked, connection).await?;
        let query: Query = object(&taken.body)
            .map_err(|e| Failure::new(StatusCode::BAD_REQUEST, "invalid", place(&e)))?;
        let policy = self.shown_policy(one_policy(query.policy.as_deref(), taken.policy())?)?;
        let laws = move || Answer::of(&laws(&policy, &query.text));
        Ok((self.apart(laws).await?, taken.held))
    }

    /// What a policy does to words on the whole; computed once.
    ///
    /// # Errors
    /// The policy is not shown.
    pub async fn measures(&self, asked: Asked<Incoming>) -> Result<Answer, Failure> {
        self.account(asked.headers())?;
        let _permit = self.enter()?;
        let policy = self.shown_policy(last(asked.uri()))?;
        let found = policy.measures.get_or_try_init(|| {
            let mechanism = policy.text.mechanism().clone();
            self.apart(move || Measures::of(&*mechanism))
        });
        let found = *found.await?;
        Ok(Answer::of(&json!({
            "policy": policy.name,
            "words": found.words,
            "of": found.of,
            "R": found.named,
            "mean_N_w": found.unchanged,
            "worst_N_w": found.most_unchanged,
            "R_is": "probability that an attacker names the word with one guess, who knows the \
                mechanism and that the word is one of these words, each as likely as any other",
            "N_w_is": "probability that a word comes back unchanged",
        })))
    }
}

fn laws(policy: &Policy, text: &str) -> Value {
    let mechanism = policy.text.mechanism();
    let vocabulary = mechanism.vocabulary();
    let mut law = vec![0.0; vocabulary.len()];
    let one = |word: &str| {
        let Some(id) = policy.text.id_of(word) else {
            let skipped = policy.text.policy().skip.contains(&*normalize(word));
            let fate = if skipped { "skipped" } else { "unknown" };
            return json!({"word": word, "fate": fate});
        };
        mechanism.law(id, &mut law);
        let mut top: Vec<usize> = (0..law.len()).collect();
        let more = |a: &usize, b: &usize| law[*b].total_cmp(&law[*a]).then(a.cmp(b));
        if TOP < top.len() {
            top.select_nth_unstable_by(TOP, more);
            top.truncate(TOP);
        }
        top.sort_by(more);
        let likeliest: Vec<Value> = top
            .iter()
            .map(|&y| json!([vocabulary.word(y as u32), law[y]]))
            .collect();
        json!({"word": word, "fate": "replaced", "unchanged": law[id as usize], "likeliest": likeliest})
    };
    let words = policy.text.words(text).take(WORDS);
    let words: Vec<Value> = words.map(|range| &text[range]).map(one).collect();
    json!({"words": words, "oov": policy.text.policy().oov.name()})
}
