//! The paths and their answers.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use bytes::Bytes;
use fastdx::Control;
use fastdx::guarantee::measured::calibration::Measures;
use hyper::body::Incoming;
use hyper::header::{
    ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, Response, StatusCode, Uri};
use serde_json::json;
use tokio::sync::mpsc;

use crate::answers::{Answer, Lookup, wait};
use crate::body::{PrivatizeRequest, PrivatizeResponse, object, place};
use crate::held::{Connection, Reservations};
use crate::lines::Output;
use crate::listen::{Caught, Serve};
use crate::metrics::{Family, MetricKind, Refused, Route};
use crate::page::LawRequest;
use crate::reply::{Body, Failure, answered, json_of, json_with};
use crate::service::{AdmittedRequest, Service, one_policy, policy_of};
use crate::{lines, page, process};

/// The description of the paths.
const OPENAPI: &str = include_str!("openapi.json");

/// The paths that are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Privatize,
    Law,
    Policies,
    Guarantee,
    Measures,
    Channel,
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
            _ if channel_of(path).is_some() => Path::Channel,
            _ => return None,
        })
    }

    /// The methods that a path accepts.
    fn methods(self) -> &'static str {
        match self.takes_a_body() {
            true => "POST",
            false => "GET, HEAD",
        }
    }

    /// Whether the path accepts POST; all others accept GET.
    fn takes_a_body(self) -> bool {
        matches!(self, Path::Privatize | Path::Law)
    }
}

/// The header of a request that may be sent again.
const KEY: &str = "idempotency-key";
/// The shortest and the longest key. Without API keys, a short one could be guessed.
const KEY_LENGTHS: std::ops::RangeInclusive<usize> = 16..=255;

/// The idempotency key of a request.
fn key_of(headers: &HeaderMap) -> Result<Option<&HeaderValue>, Failure> {
    let mut all = headers.get_all(KEY).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(key), None) if KEY_LENGTHS.contains(&key.len()) => Ok(Some(key)),
        _ => Err(Failure::invalid(
            "Idempotency-Key must appear once and have 16 to 255 characters",
        )),
    }
}

/// The last part of `/v1/…/NAME`; a policy's name has no slash.
fn last(uri: &Uri) -> Option<&str> {
    uri.path().splitn(4, '/').nth(3)
}

/// The policy in `/v1/policies/NAME/channel`.
fn channel_of(path: &str) -> Option<&str> {
    let name = path
        .strip_prefix("/v1/policies/")?
        .strip_suffix("/channel")?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

/// A service's paths, as connections call them.
pub struct Routes(pub Arc<Service>);

impl Serve for Routes {
    type Body = Body;

    fn largest_body(&self) -> usize {
        self.0.limits.body
    }

    fn connections(&self) -> &AtomicU64 {
        &self.0.metrics.connections
    }

    async fn call(
        self: Arc<Self>,
        request: Request<Incoming>,
        connection: Arc<Connection>,
    ) -> Result<Response<Body>, Infallible> {
        let service = &self.0;
        let _active = connection.begin();
        let start = Instant::now();
        let is_lines = request
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|t| t.as_bytes().starts_with(b"application/x-ndjson"));
        let route = match (request.uri().path(), is_lines) {
            ("/v1/privatize", false) => Route::Privatize,
            ("/v1/privatize", true) => Route::Lines,
            _ => Route::Other,
        };
        let is_head = request.method() == Method::HEAD;
        let answer = Caught::new(handle(service, request, route, &connection)).await;
        let mut answer = match answer {
            Some(Ok(answer)) => answer,
            Some(Err(failure)) => {
                let retry = match failure.code {
                    "busy" | "unread" | "starting" | "slow" | "ending" | "broken_off" => Some("1"),
                    "answers_full" => Some("10"),
                    // A budget does not recover by itself.
                    "budget" => Some("86400"),
                    "ledger" => Some("5"),
                    _ => None,
                };
                let mut answer = json_of(failure.answer());
                let headers = answer.headers_mut();
                if let Some(retry) = retry {
                    headers.insert(RETRY_AFTER, HeaderValue::from_static(retry));
                }
                if failure.status == StatusCode::UNAUTHORIZED {
                    headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                }
                answer
            }
            None => {
                service.metrics.panics.fetch_add(1, Relaxed);
                json_of(Failure::internal().answer())
            }
        };
        service
            .metrics
            .answered(route, answer.status().as_u16(), start.elapsed());
        if is_head {
            // hyper leaves the body out by itself only over HTTP/1.
            let length = http_body::Body::size_hint(answer.body()).exact();
            let length = HeaderValue::from(length.unwrap_or_default());
            answer.headers_mut().insert(CONTENT_LENGTH, length);
            answer = answer.map(|_| Body::Whole(None, None));
        }
        Ok(answer.map(|body| body.of(&connection)))
    }
}

async fn privatize(
    service: &Arc<Service>,
    request: Request<Incoming>,
    connection: &Connection,
) -> Result<(Answer, Reservations), Failure> {
    let taken = service.admit(request, connection).await?;
    let query = taken.policy().map(str::to_owned);
    let key = match key_of(&taken.head.headers)? {
        Some(key) => key.to_owned(),
        None => {
            let answer = answer(service, &taken.account, &taken.body, query.as_deref());
            return Ok((answer.await?, taken.reservations));
        }
    };
    let AdmittedRequest {
        account,
        body,
        reservations: held,
        ..
    } = taken;
    let request = [&body[..], query.as_deref().unwrap_or_default().as_bytes()];
    // Clients without accounts are distinguished by their addresses.
    let of = match account.is_empty() {
        true => &connection.peer,
        false => &account,
    };
    match service.answers.look_up(of, key.as_bytes(), &request) {
        Lookup::First(promise) => {
            // Continues if the client leaves: the same request then receives this draw.
            let own = service.clone();
            let work = tokio::spawn(async move {
                let answer = answer(&own, &account, &body, query.as_deref()).await;
                let answer = answer.unwrap_or_else(|failure| failure.answer());
                promise.keep(&answer);
                (answer, held)
            });
            work.await.map_err(|_| {
                service.metrics.panics.fetch_add(1, Relaxed);
                Failure::internal()
            })
        }
        Lookup::Again(slot) => {
            let broken = Failure::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "broken_off",
                "the request with this key broke off",
            );
            let answer = wait(slot).await.ok_or(broken)?;
            service.metrics.repeated.fetch_add(1, Relaxed);
            Ok((answer, held))
        }
        Lookup::Other => {
            let message = "this Idempotency-Key came with another request before";
            Err(Failure::new(StatusCode::CONFLICT, "key_used", message))
        }
        Lookup::Full => {
            service.metrics.refused(Refused::Answers);
            let message = "too many answers are kept for requests that may come again";
            Err(Failure::new(
                StatusCode::TOO_MANY_REQUESTS,
                "answers_full",
                message,
            ))
        }
    }
}

async fn answer(
    service: &Arc<Service>,
    account: &str,
    body: &[u8],
    query: Option<&str>,
) -> Result<Answer, Failure> {
    let request = PrivatizeRequest::read(body)
        .map_err(|wrong| Failure::new(StatusCode::BAD_REQUEST, "invalid", wrong))?;
    let policy = service.policy(one_policy(request.policy.as_deref(), query)?)?;
    let work = service.check(policy.clone(), request.given, request.spans.as_ref())?;
    let done = service.release(account, work).await?;
    let response = PrivatizeResponse {
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

fn lines(
    service: &Arc<Service>,
    request: Request<Incoming>,
    connection: &Arc<Connection>,
) -> Result<Response<Body>, Failure> {
    let account = service.account(request.headers())?;
    let name = policy_of(request.uri())?;
    let permit = service.enter()?;
    if request.headers().contains_key(KEY) {
        return Err(Failure::invalid(
            "Idempotency-Key goes with JSON, not with lines",
        ));
    }
    let policy = service.policy(name)?;
    let (send, pieces) = mpsc::channel(1);
    let to = Output {
        send,
        connection: connection.clone(),
        active: connection.begin(),
        place: permit,
    };
    tokio::spawn(lines::run(
        service.clone(),
        policy,
        account,
        request.into_body(),
        to,
    ));
    Ok(answered(
        StatusCode::OK,
        "application/x-ndjson",
        Body::Pieces(pieces),
    ))
}

fn list(service: &Service) -> Result<Answer, Failure> {
    let policies = service.current()?;
    let default = policies.default.as_ref().map(|p| p.name.clone());
    let each = policies.named.values().map(|p| {
        let guarantee = p.guarantee();
        json!({"name": p.name, "mechanism": guarantee.mechanism, "metric": guarantee.metric,
               "epsilon": guarantee.epsilon, "spans_only": p.spans_only,
               "shown": service.shown(p)})
    });
    let body = json!({"default": default, "policies": each.collect::<Vec<_>>()});
    Ok(Answer::of(&body))
}

fn ready(service: &Service) -> Result<(), Failure> {
    if service.draining.load(Relaxed) {
        let message = "the service is ending";
        return Err(Failure::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "ending",
            message,
        ));
    }
    service.current().map(|_| ())
}

fn render(service: &Service) -> String {
    let gauge = |name, help, value: f64| Family {
        name,
        kind: MetricKind::Gauge,
        help,
        samples: vec![(String::new(), value)],
    };
    let (kept, limit) = service.answers.bytes();
    let active = service.limits.concurrency - service.room.available_permits();
    let mut all = vec![
        gauge(
            "fastdx_answers_bytes",
            "Bytes of answers that are kept for their Idempotency-Key.",
            kept as f64,
        ),
        gauge(
            "fastdx_answers_bytes_limit",
            "Bytes of answers that may be kept.",
            limit as f64,
        ),
        gauge(
            "fastdx_requests_active",
            "Requests whose answers are not written yet.",
            active as f64,
        ),
        gauge(
            "fastdx_ready",
            "Whether the service takes requests.",
            f64::from(u8::from(ready(service).is_ok())),
        ),
    ];
    if let Some(policies) = service.policies.load_full() {
        all.extend(policies.families());
    }
    all.extend(process::families(service.metrics.start));
    service.metrics.render(all)
}

/// Answers with the law of each word of a text: its likeliest replacements.
async fn law(
    service: &Service,
    request: Request<Incoming>,
    connection: &Connection,
) -> Result<(Answer, Reservations), Failure> {
    let taken = service.admit(request, connection).await?;
    let asked: LawRequest = object(&taken.body)
        .map_err(|e| Failure::new(StatusCode::BAD_REQUEST, "invalid", place(&e)))?;
    let name = one_policy(asked.policy.as_deref(), taken.policy())?;
    let policy = service.shown_policy(name)?;
    let laws = move || Answer::of(&page::laws(&policy, &asked.text));
    Ok((service.apart(laws).await?, taken.reservations))
}

/// Answers with summaries of a policy's effect on words; computed once.
async fn measures(service: &Service, request: Request<Incoming>) -> Result<Answer, Failure> {
    service.account(request.headers())?;
    let _permit = service.enter()?;
    let policy = service.shown_policy(last(request.uri()))?;
    let found = policy.measures.get_or_try_init(|| async {
        let mechanism = policy.text.mechanism().clone();
        let found = service.apart(move || Measures::of(&*mechanism, &Control::new()));
        found.await?.map_err(|_| Failure::internal())
    });
    Ok(Answer::of(&page::measures(&policy.name, found.await?)))
}

/// Answers with the card of a policy: the data that a receiver of releases needs.
fn channel(service: &Service, uri: &Uri) -> Result<Answer, Failure> {
    let policy = service.policy(channel_of(uri.path()))?;
    let none = || {
        let message = "the law of this policy cannot be computed, or it has a seed: no channel";
        Failure::new(StatusCode::NOT_FOUND, "no_channel", message)
    };
    Ok(Answer::of(&policy.card().ok_or_else(none)?))
}

/// Answers a request, or returns the reason for refusing it.
async fn handle(
    service: &Arc<Service>,
    request: Request<Incoming>,
    route: Route,
    connection: &Arc<Connection>,
) -> Result<Response<Body>, Failure> {
    let path = Path::of(request.uri().path()).filter(|path| service.page || *path != Path::Page);
    let Some(path) = path else {
        let message = "there is no such path";
        return Err(Failure::new(StatusCode::NOT_FOUND, "no_path", message));
    };
    let fits = match *request.method() {
        Method::POST => path.takes_a_body(),
        Method::GET | Method::HEAD => !path.takes_a_body(),
        _ => false,
    };
    if !fits {
        let allowed = path.methods();
        let message = format!("this path takes {allowed}");
        let failure = Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method", message);
        let mut answer = json_of(failure.answer());
        let allowed = HeaderValue::from_static(allowed);
        answer.headers_mut().insert(ALLOW, allowed);
        return Ok(answer);
    }
    let fixed = |body: &'static str| {
        json_of(Answer {
            status: StatusCode::OK,
            body: Bytes::from_static(body.as_bytes()),
        })
    };
    Ok(match path {
        Path::Privatize if route == Route::Lines => lines(service, request, connection)?,
        Path::Privatize => {
            let (answer, held) = privatize(service, request, connection).await?;
            json_with(answer, Some(held))
        }
        Path::Law => {
            let (answer, held) = law(service, request, connection).await?;
            json_with(answer, Some(held))
        }
        Path::Policies => json_of(list(service)?),
        Path::Alive => fixed("{\"alive\":true}"),
        Path::Ready => {
            ready(service)?;
            fixed("{\"ready\":true}")
        }
        Path::Metrics => {
            let text = Body::Whole(Some(render(service).into()), None);
            answered(
                StatusCode::OK,
                "text/plain; version=0.0.4; charset=utf-8",
                text,
            )
        }
        Path::Described => fixed(OPENAPI),
        Path::Page => page::page(),
        Path::Guarantee => {
            let policy = service.policy(last(request.uri()))?;
            json_of(Answer::of(&policy.describe()))
        }
        Path::Measures => json_of(measures(service, request).await?),
        Path::Channel => json_of(channel(service, request.uri())?),
    })
}
