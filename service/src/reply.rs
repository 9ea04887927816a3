//! Answers in JSON, and refusals.

use axum::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

const JSON: [(HeaderName, &str); 1] = [(CONTENT_TYPE, "application/json")];

/// An answer in JSON. It can be sent again.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
}

/// Bytes that keep a request's place among all requests until the last of them is written.
struct Placed {
    bytes: Bytes,
    _place: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Placed {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Answer {
    pub fn of(json: &Value) -> Self {
        Answer {
            status: StatusCode::OK,
            body: json.to_string().into(),
        }
    }

    /// The answer, which keeps a place among all requests until it is written.
    pub fn keeping(self, place: OwnedSemaphorePermit) -> Self {
        let bytes = self.body;
        let placed = Placed {
            bytes,
            _place: place,
        };
        Answer {
            body: Bytes::from_owner(placed),
            ..self
        }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        (self.status, JSON, self.body).into_response()
    }
}

/// The reason for an unsuccessful answer. No field contains text of the request.
#[derive(Clone, Debug)]
pub struct Failure {
    pub status: StatusCode,
    /// The reason for programs.
    pub code: &'static str,
    /// The reason for people, one sentence.
    pub message: String,
    pub left: Option<f64>,
}

/// The meaning of a code: the status, and after how many seconds to ask again.
fn meaning(code: &str) -> (StatusCode, Option<&'static str>) {
    match code {
        "invalid" => (StatusCode::UNPROCESSABLE_ENTITY, None),
        "no_account" => (StatusCode::BAD_REQUEST, None),
        "no_key" => (StatusCode::UNAUTHORIZED, None),
        "no_path" | "no_policy" | "no_channel" => (StatusCode::NOT_FOUND, None),
        "method" => (StatusCode::METHOD_NOT_ALLOWED, None),
        "gone" => (StatusCode::REQUEST_TIMEOUT, None),
        "slow" => (StatusCode::REQUEST_TIMEOUT, Some("1")),
        "key_used" => (StatusCode::CONFLICT, None),
        "too_large" => (StatusCode::PAYLOAD_TOO_LARGE, None),
        "busy" => (StatusCode::TOO_MANY_REQUESTS, Some("1")),
        "answers_full" => (StatusCode::TOO_MANY_REQUESTS, Some("10")),
        // A budget does not recover by itself.
        "budget" => (StatusCode::TOO_MANY_REQUESTS, Some("86400")),
        "starting" | "ending" | "broken_off" => (StatusCode::SERVICE_UNAVAILABLE, Some("1")),
        "ledger" => (StatusCode::SERVICE_UNAVAILABLE, Some("5")),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, None),
    }
}

impl Failure {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Failure {
            status: meaning(code).0,
            code,
            message: message.into(),
            left: None,
        }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new("invalid", message)
    }

    pub fn malformed(message: impl Into<String>) -> Self {
        Failure {
            status: StatusCode::BAD_REQUEST,
            ..Self::invalid(message)
        }
    }

    /// An error of the service: the message says no more.
    pub fn internal() -> Self {
        let message = "the request was not answered; nothing was released";
        Self::new("internal", message)
    }

    /// The failure as an answer with its status.
    pub fn answer(&self) -> Answer {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(left) = self.left {
            error["left"] = json!(left);
        }
        Answer {
            status: self.status,
            ..Answer::of(&json!({ "error": error }))
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut answer = self.answer().into_response();
        let headers = answer.headers_mut();
        if let Some(retry) = meaning(self.code).1 {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(retry));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }
}
