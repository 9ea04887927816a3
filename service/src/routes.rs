//! The paths, and what they answer.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request as Asked, Response as Answered, StatusCode, Uri};
use serde_json::json;
use tokio::sync::mpsc;

use crate::answers::{Answer, Place, wait};
use crate::body::{Request, Response};
use crate::listen::Caught;
use crate::metrics::{Refused, Route};
use crate::reply::{Body, Failure, answered, json_of};
use crate::service::Service;
use crate::{lines, page};

/// The description of the paths.
const OPENAPI: &str = include_str!("openapi.json");

/// A path that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Privatize,
    Law,
    Policies,
    Guarantee,
    Measures,
    Alive,
    Ready,
    Metrics,
    Described,
    Page,
}

impl Path {
    fn of(path: &str) -> Option<Self> {
        Some(match path {
            "/v1/privatize" => Path::Privatize,
            "/v1/law" => Path::Law,
            "/v1/policies" => Path::Policies,
            "/healthz" => Path::Alive,
            "/readyz" => Path::Ready,
            "/metrics" => Path::Metrics,
            "/openapi.json" => Path::Described,
            "/" => Path::Page,
            _ if path.starts_with("/v1/guarantee/") => Path::Guarantee,
            _ if path.starts_with("/v1/measures/") => Path::Measures,
            _ => return None,
        })
    }

    /// Whether it is for POST; all others are for GET.
    fn takes_a_body(self) -> bool {
        matches!(self, Path::Privatize | Path::Law)
    }
}

/// What stands behind `/v1/…/`: a policy's name holds no slash.
pub fn last(uri: &Uri) -> Option<&str> {
    uri.path().splitn(4, '/').nth(3)
}

impl Service {
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
        let request = Request::read(body)
            .map_err(|wrong| Failure::new(StatusCode::BAD_REQUEST, "invalid", wrong))?;
        let policy = self.policy(request.policy.as_deref())?;
        let work = self.check(policy.clone(), request.given, request.spans.as_deref())?;
        let done = self.release(account, work).await?;
        let response = Response {
            released: done.released,
            counts: done.counts.into(),
            policy: &policy.name,
            spans: done.spans,
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

    fn list(&self) -> Result<Answer, Failure> {
        let policies = self.current()?;
        let default = policies.default.as_ref().map(|p| p.name.clone());
        let each = policies.named.values().map(|p| {
            json!({"name": p.name, "epsilon": p.text.mechanism().epsilon(),
                   "mechanism": p.guarantee().mechanism, "spans_only": p.spans_only,
                   "shown": self.shown(p)})
        });
        let body = json!({"default": default, "policies": each.collect::<Vec<_>>()});
        Ok(Answer::of(&body))
    }

    fn ready(&self) -> Result<(), Failure> {
        if self.draining.load(Relaxed) {
            let message = "the service is ending";
            return Err(Failure::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "ending",
                message,
            ));
        }
        self.current().map(|_| ())
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
        let answer = Caught::new(async move { service.route(asked, route).await }).await;
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
        let path = Path::of(asked.uri().path()).filter(|path| self.page || *path != Path::Page);
        let Some(path) = path else {
            let message = "there is no such path";
            return Err(Failure::new(StatusCode::NOT_FOUND, "no_path", message));
        };
        let fits = match *asked.method() {
            Method::POST => path.takes_a_body(),
            Method::GET | Method::HEAD => !path.takes_a_body(),
            _ => false,
        };
        if !fits {
            let message = "this path takes another method";
            return Err(Failure::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method",
                message,
            ));
        }
        let fixed = |body: &'static str| {
            json_of(Answer {
                status: StatusCode::OK,
                body: Bytes::from_static(body.as_bytes()),
            })
        };
        Ok(match path {
            Path::Privatize if route == Route::Lines => self.lines(asked)?,
            Path::Privatize => json_of(self.privatize(asked).await?),
            Path::Law => json_of(self.law(asked).await?),
            Path::Policies => json_of(self.list()?),
            Path::Alive => fixed("{\"alive\":true}"),
            Path::Ready => {
                self.ready()?;
                fixed("{\"ready\":true}")
            }
            Path::Metrics => {
                let text = Body::Whole(Some(self.render().into()));
                answered(StatusCode::OK, "text/plain; version=0.0.4", text)
            }
            Path::Described => fixed(OPENAPI),
            Path::Page => page::page(),
            Path::Guarantee => {
                let policy = self.policy(last(asked.uri()))?;
                json_of(Answer::of(&policy.describe()))
            }
            Path::Measures => json_of(self.measures(asked).await?),
        })
    }
}
