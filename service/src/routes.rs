//! The paths and their answers.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::{FutureExt, stream};
use serde_json::json;
use tokio::sync::mpsc;

use crate::answers::{Lookup, wait};
use crate::body::PrivatizeRequest;
use crate::listen::Peer;
use crate::metrics::Metrics;
use crate::reply::{Answer, Failure};
use crate::service::{Service, policy_of};
use crate::work::CheckedRequest;
use crate::{lines, metrics};

const OPENAPI: &str = include_str!("openapi.json");

/// The header of a request that may be sent again.
const KEY: &str = "idempotency-key";
/// The shortest and the longest key. Without API keys, a short one could be guessed.
const KEY_LENGTHS: std::ops::RangeInclusive<usize> = 16..=255;

type Shared = State<Arc<Service>>;

/// A service's paths.
pub fn routes(service: Arc<Service>) -> Router {
    let takes_post = || async { wrong_method("POST") };
    let paths = Router::new()
        .route("/v1/privatize", post(privatize).fallback(takes_post))
        .route("/v1/policies", get(list))
        .route("/v1/guarantee/{policy}", get(guarantee))
        .route("/v1/policies/{policy}/channel", get(channel))
        .route("/healthz", get(|| async { fixed("{\"alive\":true}") }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(|| async { fixed(OPENAPI) }));
    let no_path = || async { Failure::new("no_path", "there is no such path") };
    paths
        .fallback(no_path)
        .method_not_allowed_fallback(|| async { wrong_method("GET, HEAD") })
        .layer(from_fn_with_state(service.metrics.clone(), around))
        .with_state(service)
}

/// Completes every answer: its place in the metrics, headers that keep it out of caches and browsers
/// from guessing its type, and a status where a panic was caught.
async fn around(State(metrics): State<Arc<Metrics>>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let route = match (request.uri().path(), is_lines(request.headers())) {
        ("/v1/privatize", false) => "privatize",
        ("/v1/privatize", true) => "lines",
        _ => "other",
    };
    // A request that panicked is dropped, so no half-finished state is visible.
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let mut answer = answer.unwrap_or_else(|_| {
        metrics.panics.inc();
        Failure::internal().into_response()
    });
    let headers = answer.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let (status, time) = (answer.status(), start.elapsed());
    metrics.answered(route, status.as_str(), time);
    answer
}

/// axum adds the header Allow.
fn wrong_method(allowed: &str) -> Failure {
    Failure::new("method", format!("this path takes {allowed}"))
}

fn fixed(json: &'static str) -> Answer {
    Answer {
        status: StatusCode::OK,
        body: Bytes::from_static(json.as_bytes()),
    }
}

/// The policy in `/v1/guarantee/NAME` and `/v1/policies/NAME/channel`.
fn named(uri: &Uri) -> Option<&str> {
    uri.path().split('/').nth(3)
}

fn is_lines(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-ndjson"))
}

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

async fn privatize(State(service): Shared, request: Request) -> Result<Response, Failure> {
    if is_lines(request.headers()) {
        return lines(&service, request);
    }
    let account = service.account(request.headers())?;
    if request.uri().query().is_some() {
        return Err(Failure::invalid(
            "the query must be left out: the body names the policy",
        ));
    }
    let key = key_of(request.headers())?.cloned();
    let peer = request.extensions().get().copied();
    let place = service.enter()?;
    let body = service.whole(request.into_body()).await?;
    let Some(key) = key else {
        let answer = answer(&service, &account, &body).await?;
        return Ok(answer.keeping(place).into_response());
    };
    // Clients without accounts are distinguished by their addresses.
    let of = match peer {
        Some(Peer(Some(peer))) if account.is_empty() => &peer.to_string(),
        _ => &account,
    };
    match service.answers.look_up(of, key.as_bytes(), &body) {
        Lookup::First(promise) => {
            // Continues if the client leaves: the same request then receives this draw.
            let own = service.clone();
            let work = tokio::spawn(async move {
                let answer = answer(&own, &account, &body).await;
                let answer = answer.unwrap_or_else(|failure| failure.answer());
                promise.keep(&answer);
                answer.keeping(place)
            });
            let answer = work.await.map_err(|_| {
                service.metrics.panics.inc();
                Failure::internal()
            })?;
            Ok(answer.into_response())
        }
        Lookup::Again(slot) => {
            let broken = Failure::new("broken_off", "the request with this key broke off");
            let answer = wait(slot).await.ok_or(broken)?;
            service.metrics.repeated.inc();
            Ok(answer.keeping(place).into_response())
        }
        Lookup::Other => {
            let message = "this Idempotency-Key came with another request before";
            Err(Failure::new("key_used", message))
        }
        Lookup::Full => {
            service.metrics.refused("answers");
            let message = "too many answers are kept for requests that may come again";
            Err(Failure::new("answers_full", message))
        }
    }
}

async fn answer(service: &Arc<Service>, account: &str, body: &[u8]) -> Result<Answer, Failure> {
    let request = PrivatizeRequest::read(body).map_err(Failure::malformed)?;
    let policy = service.policy(request.policy.as_deref())?;
    let work = CheckedRequest::new(policy, request.given, request.spans.as_ref())?;
    let done = service.release(account, work).await?;
    let body = serde_json::to_vec(&done).map_err(|_| Failure::internal())?;
    Ok(Answer {
        status: StatusCode::OK,
        body: body.into(),
    })
}

fn lines(service: &Arc<Service>, request: Request) -> Result<Response, Failure> {
    let account = service.account(request.headers())?;
    let name = policy_of(request.uri())?;
    let place = service.enter()?;
    if request.headers().contains_key(KEY) {
        return Err(Failure::invalid(
            "Idempotency-Key goes with JSON, not with lines",
        ));
    }
    let policy = service.policy(name)?;
    let (send, pieces) = mpsc::channel(1);
    let given = request.into_body().into_data_stream();
    let own = service.clone();
    tokio::spawn(async move {
        lines::run(own, policy, account, given, send).await;
        drop(place);
    });
    let pieces = stream::unfold(pieces, |mut pieces| async {
        let piece = pieces.recv().await?;
        if piece.is_err() {
            // The connection breaks off; earlier bytes are then on their way to the client.
            tokio::task::yield_now().await;
        }
        Some((piece, pieces))
    });
    let kind = [(CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, Body::from_stream(pieces)).into_response())
}

async fn list(State(service): Shared) -> Result<Answer, Failure> {
    let policies = service.current()?;
    let default = policies.default.as_ref().map(|p| p.name.clone());
    let each = policies.named.values().map(|p| {
        let guarantee = p.guarantee();
        json!({"name": p.name, "mechanism": guarantee.mechanism, "metric": guarantee.metric,
               "epsilon": guarantee.epsilon, "spans_only": p.spans_only})
    });
    let body = json!({"default": default, "policies": each.collect::<Vec<_>>()});
    Ok(Answer::of(&body))
}

async fn guarantee(State(service): Shared, uri: Uri) -> Result<Answer, Failure> {
    Ok(Answer::of(&service.policy(named(&uri))?.describe()))
}

async fn ready(State(service): Shared) -> Result<Answer, Failure> {
    service.ready().map(|()| fixed("{\"ready\":true}"))
}

async fn metrics(State(service): Shared) -> Result<Response, Failure> {
    let text = metrics::render(&service).map_err(|_| Failure::internal())?;
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((kind, text).into_response())
}

/// Answers with the card of a policy: the data that a receiver of releases needs.
async fn channel(State(service): Shared, uri: Uri) -> Result<Answer, Failure> {
    let policy = service.policy(named(&uri))?;
    let none = || {
        let message = "the law of this policy cannot be computed, or it has a seed: no channel";
        Failure::new("no_channel", message)
    };
    Ok(Answer::of(&policy.card().ok_or_else(none)?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::Router;
    use axum::body::{Body, to_bytes};
    use axum::extract::Request;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;

    use super::around;
    use crate::metrics::Metrics;

    #[tokio::test]
    async fn a_panic_is_answered_and_counted() {
        let metrics = Arc::new(Metrics::new().unwrap());
        let broken = || async { panic!("zqxprivate") as () };
        let paths = Router::new().route("/", get(broken));
        let paths = paths.layer(from_fn_with_state(metrics.clone(), around));
        let answer = TowerToHyperService::new(paths).call(Request::new(Body::empty()));
        let answer = answer.await.unwrap();
        assert_eq!((answer.status().as_u16(), metrics.panics.get()), (500, 1));
        let body = to_bytes(answer.into_body(), 1000).await.unwrap();
        assert!(body.starts_with(b"{\"error\"") && !body.windows(3).any(|w| w == b"zqx"));
    }
}
