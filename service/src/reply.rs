//! Answers in JSON, and refusals.

use axum::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

/// The header of answers in JSON.
const JSON: [(HeaderName, &str); 1] = [(CONTENT_TYPE, "application/json")];

/// An answer in JSON. It can be sent again.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its body.
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
    /// A successful answer.
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
    /// The status.
    pub status: StatusCode,
    /// The reason for programs.
    pub code: &'static str,
    /// The reason for people, one sentence.
    pub message: String,
    /// The remaining budget.
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

    /// The request is not valid.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", message)
    }

    /// The request exceeds one of the operator's limits.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }

    /// An error of the service: the message says no more.
    pub fn internal() -> Self {
        let message = "the request was not answered; nothing was released";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
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
        let retry = match self.code {
            "busy" | "starting" | "slow" | "ending" | "broken_off" => Some("1"),
            "answers_full" => Some("10"),
            // A budget does not recover by itself.
            "budget" => Some("86400"),
            "ledger" => Some("5"),
            _ => None,
        };
        let headers = answer.headers_mut();
        if let Some(retry) = retry {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(retry));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }
}
