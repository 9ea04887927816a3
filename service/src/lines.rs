//! Long batches: a text a line (NDJSON), privatised and sent back while they come.
//!
//! A whole answer ends with a line that has `"done": true` and the counts. One that breaks off, at a
//! line that is wrong, say, has `"error"` as its last line, and its connection ends without the mark of
//! a whole body: nobody takes it for the whole.

use std::sync::Arc;

use bytes::Bytes;
use fastdx::text::Counts;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::Incoming;
use serde_json::{json, to_writer};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::Sender;
use tokio::time::timeout;

use crate::body::{self, Given, Line, Released, WordCounts};
use crate::metrics::Refused;
use crate::policy::Policy;
use crate::reply::{BrokenOff, Failure};
use crate::service::Service;

/// Lines that are drawn, and charged, together.
const TOGETHER: usize = 256;
/// Bytes of them.
const BYTES: usize = 1 << 16;

/// Lines that wait to be drawn, and what has been done.
struct Batch {
    service: Arc<Service>,
    policy: Arc<Policy>,
    account: String,
    texts: Vec<Option<String>>,
    bytes: usize,
    /// Lines that have come.
    lines: u64,
    counts: Counts,
}

/// Reads a body line by line and sends what is released; `_permit` is held as long.
pub async fn run(
    service: Arc<Service>,
    policy: Arc<Policy>,
    account: String,
    body: Incoming,
    send: Sender<Result<Bytes, BrokenOff>>,
    _permit: OwnedSemaphorePermit,
) {
    let mut batch = Batch {
        service,
        policy,
        account,
        texts: Vec::new(),
        bytes: 0,
        lines: 0,
        counts: Counts::default(),
    };
    if let Err(failure) = batch.read(body, &send).await {
        let mut error = failure.body();
        error.push(b'\n');
        // Where nobody reads any more, there is nobody to tell.
        let _ = send.send(Ok(error.into())).await;
        let _ = send.send(Err(BrokenOff)).await;
    }
}

/// Nobody reads the answer.
fn gone() -> Failure {
    Failure::new(StatusCode::REQUEST_TIMEOUT, "gone", "the client left")
}

impl Batch {
    async fn read(
        &mut self,
        mut given: Incoming,
        send: &Sender<Result<Bytes, BrokenOff>>,
    ) -> Result<(), Failure> {
        let limits = self.service.limits.clone();
        let mut rest: Vec<u8> = Vec::new();
        loop {
            let Ok(frame) = timeout(limits.body_time, given.frame()).await else {
                self.service.metrics.refused(Refused::Slow);
                let message = "the next lines did not arrive in time";
                return Err(Failure::new(StatusCode::REQUEST_TIMEOUT, "slow", message));
            };
            let Some(frame) = frame else { break };
            let broken = |_| Failure::new(StatusCode::BAD_REQUEST, "invalid", "the body broke off");
            let Ok(data) = frame.map_err(broken)?.into_data() else {
                continue;
            };
            for piece in data.split_inclusive(|b| *b == b'\n') {
                if rest.len() + piece.len() > limits.body {
                    let message =
                        format!("line {}: longer than {} bytes", self.lines + 1, limits.body);
                    return Err(Failure::new(
                        StatusCode::PAYLOAD_TOO_LARGE,
                        "too_large",
                        message,
                    ));
                }
                rest.extend_from_slice(piece);
                if piece.ends_with(b"\n") {
                    self.line(&rest, send).await?;
                    rest.clear();
                }
            }
            // What came together is answered together, and nothing waits for what is to come.
            self.flush(send).await?;
        }
        if !rest.is_empty() {
            self.line(&rest, send).await?;
        }
        self.flush(send).await?;
        let counts: WordCounts = self.counts.into();
        let end = json!({"done": true, "lines": self.lines, "counts": counts, "policy": self.policy.name});
        let end = format!("{end}\n");
        send.send(Ok(end.into())).await.map_err(|_| gone())
    }

    fn wrong(&self, message: impl std::fmt::Display) -> Failure {
        let message = format!("line {}: {message}", self.lines);
        Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", message)
    }

    async fn line(
        &mut self,
        line: &[u8],
        send: &Sender<Result<Bytes, BrokenOff>>,
    ) -> Result<(), Failure> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        self.lines += 1;
        let Line { given, spans } = body::line(line).map_err(|wrong| self.wrong(wrong))?;
        match (given, spans) {
            (None, Some(_)) => return Err(self.wrong("spans of a null")),
            (None, None) => self.texts.push(None),
            (Some(Given::One(text)), None) => {
                self.bytes += text.len();
                self.texts.push(Some(text));
            }
            (Some(alone), spans) => {
                self.flush(send).await?;
                self.draw(alone, spans.as_deref(), send).await?;
            }
        }
        let together = TOGETHER.min(self.service.limits.texts);
        if self.texts.len() >= together || self.bytes >= BYTES {
            self.flush(send).await?;
        }
        Ok(())
    }

    async fn flush(&mut self, send: &Sender<Result<Bytes, BrokenOff>>) -> Result<(), Failure> {
        if self.texts.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let texts = std::mem::take(&mut self.texts);
        self.draw(Given::Many(texts), None, send).await
    }

    async fn draw(
        &mut self,
        given: Given,
        spans: Option<&[(u64, u64)]>,
        send: &Sender<Result<Bytes, BrokenOff>>,
    ) -> Result<(), Failure> {
        let at = |failure: Failure, line: u64| Failure {
            message: format!("up to line {line}: {}", failure.message),
            ..failure
        };
        let line = self.lines;
        let work = self
            .service
            .check(self.policy.clone(), given, spans)
            .map_err(|f| at(f, line))?;
        let done = self
            .service
            .release(&self.account, work)
            .await
            .map_err(|f| at(f, line))?;
        self.counts += done.counts;
        let mut out = Vec::new();
        let lines = match (done.released, done.spans) {
            (Released::One(text), Some(spans)) => vec![json!({"text": text, "spans": spans})],
            (Released::One(text), None) => vec![json!({ "text": text })],
            (Released::Words(words), _) => vec![json!({ "tokens": words })],
            (Released::Many(texts), _) => {
                texts.iter().map(|text| json!({ "text": text })).collect()
            }
        };
        for line in lines {
            to_writer(&mut out, &line).map_err(|_| Failure::internal())?;
            out.push(b'\n');
        }
        send.send(Ok(out.into())).await.map_err(|_| gone())
    }
}
