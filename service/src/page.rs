//! The page at `/` and its data: laws of words, and summaries of a policy's effect on words.

use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use fastdx::guarantee::measured::calibration::Measures;
use fastdx::numbers::{Figure, Form};
use fastdx::text::normalize;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::policy::Policy;

/// The page.
const PAGE: &str = include_str!("page.html");
/// The page's content security policy: it may only send requests to this service.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
    script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";
/// Maximum words of a sentence whose laws are shown, and maximum replacements of a word.
const WORDS: usize = 40;
const TOP: usize = 8;

/// The page as it is sent.
pub async fn page() -> impl IntoResponse {
    let kind = (CONTENT_TYPE, "text/html; charset=utf-8");
    ([kind, (CONTENT_SECURITY_POLICY, PAGE_POLICY)], PAGE)
}

/// The body of `POST /v1/law`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LawRequest {
    /// The text whose words' laws are requested.
    pub text: String,
    /// The policy.
    pub policy: Option<String>,
}

/// The answer of `GET /v1/measures/NAME`.
pub fn measures(policy: &str, found: &Measures) -> Value {
    json!({
        "policy": policy,
        "words": found.words,
        "of": found.vocabulary,
        "R": found.named,
        "mean_N_w": found.unchanged,
        "worst_N_w": found.most_unchanged,
        "R_is": "probability that an attacker names the word with one guess, who knows the \
            mechanism and that the word is one of these words, each as likely as any other",
        "N_w_is": "probability that a word comes back unchanged",
    })
}

/// The answer of `POST /v1/law`: the likeliest replacements of each word of a text.
pub fn laws(policy: &Policy, text: &str) -> Value {
    let mechanism = policy.text.mechanism();
    let vocabulary = mechanism.vocabulary();
    let mut law = vec![0.0; vocabulary.len()];
    let one = |(word, figure): (&str, Option<Figure>)| {
        // A number or a date has a law of its own.
        if let Some(figure) = figure {
            let fate = match figure.form {
                Form::Number(_) => "number",
                Form::Date(_) => "date",
            };
            return json!({"word": word, "fate": fate});
        }
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
    let words = policy.text.units(text).take(WORDS);
    let words = words.map(|(range, figure)| (&text[range], figure));
    let words: Vec<Value> = words.map(one).collect();
    json!({"words": words, "oov": policy.text.policy().oov.name()})
}
