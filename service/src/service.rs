//! The paths, and what they answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
    RETRY_AFTER,
};
use hyper::{HeaderMap, Method, Request as Asked, Response as Answered, StatusCode};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::answers::{Answer, Answers, Place, wait};
use crate::body::{Given, Released, Request, Response, object, place, to_bytes, to_characters};
use crate::config::Config;
use crate::keys::Keys;
use crate::ledger::{Ledger, Refusal};
use crate::metrics::{Metrics, Refused, Route};
use crate::policy::{Policies, Policy};
use crate::{lines, listen};

/// Texts of so many bytes are worked on where they are received; longer ones on threads for that.
const SHORT: usize = 2048;
/// The page.
const PAGE: &str = include_str!("page.html");
/// What the page may do: nothing but ask this service.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
    script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";
/// The description of the paths.
const OPENAPI: &str = include_str!("openapi.json");

/// The most that a request may ask for.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a body.
    pub body: usize,
    /// Texts of a request.
    pub texts: usize,
    /// Words of a request, or of a line.
    pub words: usize,
    /// Requests that are worked on at once.
    pub concurrency: usize,
    /// For a body to arrive; of a stream, for its next piece.
    pub body_time: Duration,
}

/// What the whole service shares.
pub struct Service {
    /// The policies, once they are there.
    pub policies: ArcSwapOption<Policies>,
    /// Who may ask; all, where there are no keys.
    pub keys: Option<Keys>,
    /// The header in which a proxy says whose account pays.
    pub account_header: Option<HeaderName>,
    /// What releases cost.
    pub ledger: Option<Ledger>,
    /// Answers kept for those who ask again.
    pub answers: Arc<Answers>,
    /// Counts and times.
    pub metrics: Metrics,
    /// The most that a request may ask for.
    pub limits: Limits,
    /// Requests that may still be taken.
    pub room: Arc<Semaphore>,
    /// Whether the page is shown.
    pub page: bool,
    /// Whether it is ending.
    pub draining: AtomicBool,
}

/// A body: whole, or piece by piece.
pub enum Body {
    /// Bytes that are there.
    Whole(Option<Bytes>),
    /// Pieces that come; an error breaks the connection off.
    Pieces(mpsc::Receiver<Result<Bytes, BrokenOff>>),
    /// It breaks off now.
    Broken,
}

/// The answer ends here, and is not whole.
#[derive(Debug)]
pub struct BrokenOff;

impl std::fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the answer was broken off")
    }
}

impl std::error::Error for BrokenOff {}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match &mut *self {
            Body::Whole(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Body::Pieces(pieces) => match pieces.poll_recv(cx) {
                // Once more later: what came before is then on its way to the client.
                Poll::Ready(Some(Err(BrokenOff))) => {
                    *self = Body::Broken;
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                other => other.map(|piece| piece.map(|piece| piece.map(Frame::data))),
            },
            Body::Broken => Poll::Ready(Some(Err(BrokenOff))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Body::Pieces(_) | Body::Broken => SizeHint::default(),
        }
    }
}

/// Why a request has no good answer. Neither field holds anything of the request's text.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The status.
    pub status: StatusCode,
    /// A word for programs.
    pub code: &'static str,
    /// A sentence for people.
    pub message: String,
    /// What is left of a budget.
    pub left: Option<f64>,
}

impl Failure {
    /// A failure.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Failure {
            status,
            code,
            message: message.into(),
            left: None,
        }
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", message)
    }

    /// A fault of ours: nothing more is said of it.
    pub fn internal() -> Self {
        let message = "the request was not answered; nothing was released";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    /// As JSON.
    pub fn body(&self) -> Vec<u8> {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(left) = self.left {
            error["left"] = json!(left);
        }
        json!({ "error": error }).to_string().into_bytes()
    }

    fn answer(&self) -> Answer {
        Answer {
            status: self.status,
            body: self.body().into(),
        }
    }
}

/// What is released of a piece of work: texts, their counts, spans.
pub type Done = (Released, fastdx::text::Counts, Option<Vec<(u64, u64)>>);

/// A request that was checked: what is to be drawn.
pub struct Work {
    policy: Arc<Policy>,
    text: Given,
    spans: Option<Vec<std::ops::Range<usize>>>,
    bytes: usize,
}

impl Service {
    /// The policies of a configuration, from now on those of all new requests.
    ///
    /// # Errors
    /// What is wrong; the old ones stay.
    pub fn load(&self, config: &Config) -> Result<(), String> {
        let policies = Policies::make(config)?;
        if self.ledger.is_some() {
            for policy in policies.named.values() {
                self.affordable(policy)?;
            }
        }
        self.policies.store(Some(Arc::new(policies)));
        Ok(())
    }

    /// Whether the ledger can charge for a policy at all.
    fn affordable(&self, policy: &Policy) -> Result<(), String> {
        let refuse = |why: &str| Err(format!("policies.{}: with a ledger: {why}", policy.name));
        if policy.spans_only {
            return refuse("spans_only releases words unprotected, which no budget pays for");
        }
        // The price of no text: what holds for the policy as a whole.
        policy.text.price("").map(|_| ()).or_else(refuse)
    }

    fn current(&self) -> Result<Arc<Policies>, Failure> {
        let not_yet = || {
            Failure::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "starting",
                "the policies are not loaded yet",
            )
        };
        self.policies.load_full().ok_or_else(not_yet)
    }

    fn policy(&self, name: Option<&str>) -> Result<Arc<Policy>, Failure> {
        let unknown = || {
            let message = match name {
                Some(_) => "there is no policy of this name: GET /v1/policies has them",
                None => "policy is missing, and there is no default one",
            };
            Failure::new(StatusCode::NOT_FOUND, "no_policy", message)
        };
        self.current()?.get(name).cloned().ok_or_else(unknown)
    }

    /// Whose account pays: empty where nobody's does.
    fn account(&self, headers: &HeaderMap) -> Result<String, Failure> {
        let mut account = String::new();
        if let Some(keys) = &self.keys {
            let given = headers
                .get(AUTHORIZATION)
                .map_or(&[][..], HeaderValue::as_bytes);
            let key = given.strip_prefix(b"Bearer ").unwrap_or_default();
            let Some(found) = keys.account(key) else {
                self.metrics.refused(Refused::Key);
                let message = "Authorization must be \"Bearer \" and a key";
                return Err(Failure::new(StatusCode::UNAUTHORIZED, "no_key", message));
            };
            account = found.to_owned();
        }
        if let Some(name) = &self.account_header {
            let mut given = headers.get_all(name).iter();
            match (given.next().map(HeaderValue::to_str), given.next()) {
                (Some(Ok(of_proxy)), None) if !of_proxy.is_empty() => {
                    account = crate::ledger::account(of_proxy);
                }
                _ => {
                    let message = "the header that names the account must stand there once";
                    return Err(Failure::new(StatusCode::BAD_REQUEST, "no_account", message));
                }
            }
        }
        Ok(account)
    }

    fn enter(&self) -> Result<OwnedSemaphorePermit, Failure> {
        self.room.clone().try_acquire_owned().map_err(|_| {
            self.metrics.refused(Refused::Busy);
            let message = "too many requests at once";
            Failure::new(StatusCode::TOO_MANY_REQUESTS, "busy", message)
        })
    }

    /// Waits for a whole body.
    async fn whole(&self, body: Incoming) -> Result<Bytes, Failure> {
        let body = Limited::new(body, self.limits.body).collect();
        match tokio::time::timeout(self.limits.body_time, body).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(e)) if e.is::<http_body_util::LengthLimitError>() => {
                Err(self.too_large(format!("a body has at most {} bytes", self.limits.body)))
            }
            Ok(Err(_)) => Err(Failure::new(
                StatusCode::BAD_REQUEST,
                "invalid",
                "the body broke off",
            )),
            Err(_) => {
                self.metrics.refused(Refused::Slow);
                let message = "the body did not arrive in time";
                Err(Failure::new(StatusCode::REQUEST_TIMEOUT, "slow", message))
            }
        }
    }

    fn too_large(&self, message: String) -> Failure {
        self.metrics.refused(Refused::Size);
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }

    /// Checks what is asked for against policy and limits.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(
        &self,
        policy: Arc<Policy>,
        text: Given,
        spans: Option<&[(u64, u64)]>,
    ) -> Result<Work, Failure> {
        let (texts, bytes, words) = {
            let all = strs(&text);
            let bytes = all.iter().map(|t| t.len()).sum();
            // A word has a byte at least: short texts need no counting.
            let words = match bytes > self.limits.words {
                true => all.iter().map(|t| policy.text.words(t).count()).sum(),
                false => 0,
            };
            let texts = if let Given::Many(texts) = &text {
                texts.len()
            } else {
                1
            };
            (texts, bytes, words)
        };
        if texts > self.limits.texts {
            return Err(
                self.too_large(format!("a request has at most {} texts", self.limits.texts))
            );
        }
        if words > self.limits.words {
            return Err(
                self.too_large(format!("a request has at most {} words", self.limits.words))
            );
        }
        let spans = match (&text, spans) {
            (Given::One(text), Some(spans)) => {
                Some(to_bytes(text, spans).map_err(Failure::invalid)?)
            }
            (Given::Many(_), Some(_)) => {
                return Err(Failure::invalid("spans go with one text, not with a list"));
            }
            (_, None) if policy.spans_only && !strs(&text).is_empty() => {
                return Err(Failure::invalid(
                    "spans are missing: this policy takes nothing else",
                ));
            }
            (_, None) => None,
        };
        Ok(Work {
            policy,
            text,
            spans,
            bytes,
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
        let texts = strs(&work.text).len() as u64;
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
        self.metrics.words.fetch_add(done.1.words, Relaxed);
        self.metrics.texts.fetch_add(texts, Relaxed);
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

    async fn privatize(self: &Arc<Self>, asked: Asked<Incoming>) -> Result<Answer, Failure> {
        let account = self.account(asked.headers())?;
        let permit = self.enter()?;
        let (head, body) = asked.into_parts();
        let body = self.whole(body).await?;
        let key = match head.headers.get("idempotency-key") {
            Some(key) if key.is_empty() || key.len() > 255 => {
                return Err(Failure::invalid("Idempotency-Key has 1 to 255 characters"));
            }
            key => key,
        };
        let Some(key) = key else {
            return self.answer(&account, &body).await;
        };
        match self.answers.place(&account, key.as_bytes(), &[&body]) {
            Place::First(promise) => {
                // Goes on if the client leaves: whoever asks again gets this very draw.
                let service = self.clone();
                let work = tokio::spawn(async move {
                    let _permit = permit;
                    let answer = service.answer(&account, &body).await;
                    let answer = answer.unwrap_or_else(|failure| failure.answer());
                    promise.keep(&answer);
                    answer
                });
                work.await.map_err(|_| {
                    self.metrics.panics.fetch_add(1, Relaxed);
                    Failure::internal()
                })
            }
            Place::Again(slot) => {
                let broken = Failure::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "broken_off",
                    "the request with this key broke off",
                );
                let answer = wait(slot).await.ok_or(broken)?;
                self.metrics.repeated.fetch_add(1, Relaxed);
                Ok(answer)
            }
            Place::Other => {
                let message = "this Idempotency-Key came with another request before";
                Err(Failure::new(StatusCode::CONFLICT, "key_used", message))
            }
            Place::Full => {
                self.metrics.refused(Refused::Answers);
                let message = "too many answers are kept for requests that may come again";
                Err(Failure::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "answers_full",
                    message,
                ))
            }
        }
    }

    async fn answer(self: &Arc<Self>, account: &str, body: &[u8]) -> Result<Answer, Failure> {
        let request: Request = object(body)
            .map_err(|e| Failure::new(StatusCode::BAD_REQUEST, "invalid", place(&e)))?;
        let policy = self.policy(request.policy.as_deref())?;
        let work = self.check(policy.clone(), request.text, request.spans.as_deref())?;
        let (text, counts, spans) = self.release(account, work).await?;
        let response = Response {
            text,
            counts: counts.into(),
            policy: &policy.name,
            spans,
        };
        let body = serde_json::to_vec(&response).map_err(|_| Failure::internal())?;
        Ok(Answer {
            status: StatusCode::OK,
            body: body.into(),
        })
    }

    fn lines(self: &Arc<Self>, asked: Asked<Incoming>) -> Result<Answered<Body>, Failure> {
        let account = self.account(asked.headers())?;
        let permit = self.enter()?;
        let query = asked.uri().query().unwrap_or_default();
        let name = match query.strip_prefix("policy=") {
            Some(name) => Some(name),
            None if query.is_empty() => None,
            None => return Err(Failure::invalid("the query takes policy=NAME alone")),
        };
        if asked.headers().contains_key("idempotency-key") {
            return Err(Failure::invalid(
                "Idempotency-Key goes with JSON, not with lines",
            ));
        }
        let policy = self.policy(name)?;
        let (send, pieces) = mpsc::channel(4);
        tokio::spawn(lines::run(
            self.clone(),
            policy,
            account,
            asked.into_body(),
            send,
            permit,
        ));
        Ok(answered(
            StatusCode::OK,
            "application/x-ndjson",
            Body::Pieces(pieces),
        ))
    }

    /// Whether the page may show a policy: where redrawing takes from no account, is of no use
    /// against consistency, and laws are public and quickly found.
    fn shown(&self, policy: &Policy) -> bool {
        let private = fastdx::text::Consistent::Never != policy.text.policy().consistent
            || policy.pad.is_some()
            || policy.spans_only;
        let lawful = policy.text.mechanism().has_law();
        self.page && self.ledger.is_none() && !private && lawful && policy.page.unwrap_or(true)
    }

    /// The law of a word's replacements: the likeliest.
    async fn law(self: &Arc<Self>, asked: Asked<Incoming>) -> Result<Answer, Failure> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Query {
            text: String,
            policy: Option<String>,
        }
        /// Words of a sentence, and replacements of a word.
        const MOST: usize = 40;
        const TOP: usize = 8;
        self.account(asked.headers())?;
        let _permit = self.enter()?;
        let body = self.whole(asked.into_body()).await?;
        let query: Query = object(&body)
            .map_err(|e| Failure::new(StatusCode::BAD_REQUEST, "invalid", place(&e)))?;
        let policy = self.policy(query.policy.as_deref())?;
        if !self.shown(&policy) {
            let message = "this policy's laws are not shown here";
            return Err(Failure::new(StatusCode::NOT_FOUND, "not_shown", message));
        }
        let found = tokio::task::spawn_blocking(move || {
            caught(|| {
                let mechanism = policy.text.mechanism();
                let vocabulary = mechanism.vocabulary();
                let mut law = vec![0.0; vocabulary.len()];
                let words = policy.text.tokenize(&query.text).into_iter().take(MOST);
                let each = words.map(|word| {
                    let Some(id) = vocabulary.id(&word) else {
                        return json!({"word": word, "known": false});
                    };
                    mechanism.law(id, &mut law);
                    let mut top: Vec<usize> = (0..law.len()).collect();
                    let more = |a: &usize, b: &usize| law[*b].total_cmp(&law[*a]).then(a.cmp(b));
                    if TOP < top.len() {
                        top.select_nth_unstable_by(TOP, more);
                        top.truncate(TOP);
                    }
                    top.sort_by(more);
                    let top = top
                        .iter()
                        .map(|&y| json!([vocabulary.word(y as u32), law[y]]));
                    json!({"word": word, "known": true, "unchanged": law[id as usize],
                           "likeliest": top.collect::<Vec<_>>()})
                });
                json!({"words": each.collect::<Vec<_>>()}).to_string()
            })
        });
        match found.await.unwrap_or(None) {
            Some(body) => Ok(Answer {
                status: StatusCode::OK,
                body: body.into(),
            }),
            None => {
                self.metrics.panics.fetch_add(1, Relaxed);
                Err(Failure::internal())
            }
        }
    }

    fn list(&self) -> Result<Answer, Failure> {
        let policies = self.current()?;
        let default = policies.default.as_ref().map(|p| p.name.clone());
        let each = policies.named.values().map(|p| {
            json!({"name": p.name, "epsilon": p.text.mechanism().epsilon(),
                   "mechanism": p.guarantee().mechanism, "spans_only": p.spans_only,
                   "shown": self.shown(p)})
        });
        let body = json!({"default": default, "policies": each.collect::<Vec<_>>()});
        Ok(Answer {
            status: StatusCode::OK,
            body: body.to_string().into(),
        })
    }

    fn ready(&self) -> Result<Answer, Failure> {
        if self.draining.load(Ordering::Relaxed) {
            let message = "the service is ending";
            return Err(Failure::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "ending",
                message,
            ));
        }
        self.current()?;
        Ok(Answer {
            status: StatusCode::OK,
            body: Bytes::from_static(b"{\"ready\":true}"),
        })
    }

    fn render(&self) -> String {
        let (kept, limit) = self.answers.bytes();
        let active = self.limits.concurrency - self.room.available_permits();
        let mut gauges = vec![
            ("answers_bytes", String::new(), kept as f64),
            ("answers_bytes_limit", String::new(), limit as f64),
            ("requests_active", String::new(), active as f64),
            (
                "ready",
                String::new(),
                f64::from(u8::from(self.ready().is_ok())),
            ),
        ];
        if let Some(policies) = self.policies.load_full() {
            for policy in policies.named.values() {
                if let Some((kept, limit)) = policy.cache() {
                    let labels = format!("policy=\"{}\"", policy.name);
                    gauges.push(("cache_bytes", labels.clone(), kept as f64));
                    gauges.push(("cache_bytes_limit", labels, limit as f64));
                }
            }
        }
        self.metrics.render(&gauges)
    }

    /// Answers a request.
    ///
    /// # Errors
    /// None.
    pub async fn call(
        self: Arc<Self>,
        asked: Asked<Incoming>,
    ) -> Result<Answered<Body>, Infallible> {
        let start = Instant::now();
        let is_lines = asked
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|t| t.as_bytes().starts_with(b"application/x-ndjson"));
        let route = match (asked.uri().path(), is_lines) {
            ("/v1/privatize", false) => Route::Privatize,
            ("/v1/privatize", true) => Route::Lines,
            _ => Route::Other,
        };
        let service = self.clone();
        let answer = listen::Caught::new(async move { service.route(asked, route).await }).await;
        let answer = match answer {
            Some(Ok(answer)) => answer,
            Some(Err(failure)) => {
                let retry = match failure.code {
                    "busy" | "starting" | "slow" | "ending" | "broken_off" => Some("1"),
                    "answers_full" => Some("10"),
                    // A budget does not come back by itself.
                    "budget" => Some("86400"),
                    "ledger" => Some("5"),
                    _ => None,
                };
                let mut answer = json_of(failure.answer());
                if let Some(retry) = retry {
                    answer
                        .headers_mut()
                        .insert(RETRY_AFTER, HeaderValue::from_static(retry));
                }
                answer
            }
            None => {
                self.metrics.panics.fetch_add(1, Relaxed);
                json_of(Failure::internal().answer())
            }
        };
        self.metrics
            .answered(route, answer.status().as_u16(), start.elapsed());
        Ok(answer)
    }

    async fn route(
        self: &Arc<Self>,
        asked: Asked<Incoming>,
        route: Route,
    ) -> Result<Answered<Body>, Failure> {
        let path = asked.uri().path().to_owned();
        let expected = match &*path {
            "/v1/privatize" | "/v1/law" => Method::POST,
            _ => Method::GET,
        };
        let method = match *asked.method() {
            Method::HEAD => Method::GET,
            ref other => other.clone(),
        };
        let known = matches!(
            &*path,
            "/v1/privatize"
                | "/v1/law"
                | "/v1/policies"
                | "/healthz"
                | "/readyz"
                | "/metrics"
                | "/openapi.json"
        ) || path == "/" && self.page
            || path.starts_with("/v1/guarantee/");
        if !known {
            return Err(Failure::new(
                StatusCode::NOT_FOUND,
                "no_path",
                "there is no such path",
            ));
        }
        if method != expected {
            let message = "this path takes another method";
            return Err(Failure::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method",
                message,
            ));
        }
        Ok(match &*path {
            "/v1/privatize" if route == Route::Lines => self.lines(asked)?,
            "/v1/privatize" => json_of(self.privatize(asked).await?),
            "/v1/law" => json_of(self.law(asked).await?),
            "/v1/policies" => json_of(self.list()?),
            "/healthz" => json_of(Answer {
                status: StatusCode::OK,
                body: Bytes::from_static(b"{\"alive\":true}"),
            }),
            "/readyz" => json_of(self.ready()?),
            "/metrics" => {
                let text = Body::Whole(Some(self.render().into()));
                answered(StatusCode::OK, "text/plain; version=0.0.4", text)
            }
            "/openapi.json" => json_of(Answer {
                status: StatusCode::OK,
                body: Bytes::from_static(OPENAPI.as_bytes()),
            }),
            "/" => {
                let body = Body::Whole(Some(Bytes::from_static(PAGE.as_bytes())));
                let mut page = answered(StatusCode::OK, "text/html; charset=utf-8", body);
                let policy = HeaderValue::from_static(PAGE_POLICY);
                page.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
                page
            }
            guarantee => {
                let name = guarantee.strip_prefix("/v1/guarantee/");
                let policy = self.policy(name)?;
                json_of(Answer {
                    status: StatusCode::OK,
                    body: policy.describe().to_string().into(),
                })
            }
        })
    }
}

fn answered(status: StatusCode, kind: &'static str, body: Body) -> Answered<Body> {
    let mut answer = Answered::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        "x-content-type-options",
        HeaderValue::from_static("nosniff"),
    );
    answer
}

fn json_of(answer: Answer) -> Answered<Body> {
    answered(
        answer.status,
        "application/json",
        Body::Whole(Some(answer.body)),
    )
}

/// The texts that are not null.
fn strs(text: &Given) -> Vec<&str> {
    match text {
        Given::One(text) => vec![text],
        Given::Many(texts) => texts.iter().flatten().map(String::as_str).collect(),
    }
}

/// What a piece of work costs, and what the ledger notes of it; no note where there is nothing
/// to pay for.
fn price(work: &Work) -> Result<(f64, Option<String>), Failure> {
    let invalid = |why: &str| Failure::invalid(format!("no budget pays for this release: {why}"));
    if work.spans.is_some() {
        return Err(invalid("what lies outside the spans is released as it is"));
    }
    let (mut amount, mut words) = (0.0, 0);
    for text in strs(&work.text) {
        let count = work.policy.text.words(text).count();
        if count == 0 && !text.is_empty() {
            return Err(invalid(
                "a text has no word, so that all of it would be released",
            ));
        }
        amount += work.policy.text.price(text).map_err(invalid)?;
        words += count;
    }
    if words == 0 {
        return Ok((0.0, None));
    }
    let epsilon = work.policy.text.mechanism().epsilon();
    Ok((amount, Some(format!("{words} words at ε = {epsilon}"))))
}

fn draw(work: Work) -> Result<Done, Failure> {
    // Messages of the library hold no text: they say where something stands.
    let refused = |e: fastdx::Error| match e {
        fastdx::Error::UnknownInText { .. } => Failure::invalid(e.to_string()),
        _ => Failure::internal(),
    };
    let policy = &work.policy;
    match (work.text, work.spans) {
        (Given::One(text), Some(spans)) => {
            let (new, spans, counts) = policy.privatize_spans(&text, &spans).map_err(refused)?;
            let spans = to_characters(&new, &spans);
            Ok((Released::One(new), counts, Some(spans)))
        }
        (Given::One(text), None) => {
            let (mut new, counts) = policy.privatize(&[&text]).map_err(refused)?;
            let new = new.pop().ok_or_else(Failure::internal)?;
            Ok((Released::One(new), counts, None))
        }
        (Given::Many(texts), _) => {
            let given: Vec<&str> = texts.iter().flatten().map(String::as_str).collect();
            let (new, counts) = policy.privatize(&given).map_err(refused)?;
            let mut new = new.into_iter();
            let all = texts
                .iter()
                .map(|text| text.as_ref().and_then(|_| new.next()));
            Ok((Released::Many(all.collect()), counts, None))
        }
    }
}

/// What a piece of work gives, or none if it panicked.
fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    // What it worked on is dropped with it: nothing half done is seen again.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok()
}
