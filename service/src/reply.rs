//! Answers: bodies, refusals, headers.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::json;
use tokio::sync::mpsc;

use crate::answers::Answer;
use crate::held::{Connection, Reservations};

/// A body, complete or in parts.
pub enum Body {
    /// Complete bytes, and the reservations held until they are written.
    Whole(Option<Bytes>, Option<Reservations>),
    /// Parts that are still to come; an error breaks the connection off.
    Pieces(mpsc::Receiver<Result<Bytes, BrokenOff>>),
    /// The connection breaks off now.
    Broken,
}

/// The answer ends here and is incomplete.
#[derive(Debug)]
pub struct BrokenOff;

impl std::fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the answer was broken off")
    }
}

impl std::error::Error for BrokenOff {}

impl Body {
    /// Makes its bytes count as unread until they are written.
    pub fn of(self, connection: &Arc<Connection>) -> Self {
        match self {
            Body::Whole(Some(bytes), held) => {
                Body::Whole(Some(connection.unread(bytes, held)), None)
            }
            // Each part was counted already.
            body => body,
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match &mut *self {
            Body::Whole(bytes, _) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Body::Pieces(pieces) => match pieces.poll_recv(cx) {
                // One poll later: earlier bytes are then on their way to the client.
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
        matches!(self, Body::Whole(None, _))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes, _) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Body::Pieces(_) | Body::Broken => SizeHint::default(),
        }
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

    /// The failure as JSON.
    pub fn body(&self) -> Vec<u8> {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(left) = self.left {
            error["left"] = json!(left);
        }
        json!({ "error": error }).to_string().into_bytes()
    }

    /// The failure as an answer with its status.
    pub fn answer(&self) -> Answer {
        Answer {
            status: self.status,
            body: self.body().into(),
        }
    }
}

/// Browsers must not guess another content type.
const NO_SNIFFING: HeaderName = HeaderName::from_static("x-content-type-options");

/// An answer that no cache may keep.
pub fn answered(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(NO_SNIFFING, HeaderValue::from_static("nosniff"));
    answer
}

/// An answer in JSON.
pub fn json_of(answer: Answer) -> Response<Body> {
    json_with(answer, None)
}

/// An answer in JSON, with the reservations held until it is written.
pub fn json_with(answer: Answer, held: Option<Reservations>) -> Response<Body> {
    let body = Body::Whole(Some(answer.body), held);
    answered(answer.status, "application/json", body)
}
