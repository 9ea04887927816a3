//! Long batches: a text a line (NDJSON), privatised and sent back while they come.
//!
//! A whole answer ends with a line that has `"done": true` and the counts. One that breaks off, at a
//! line that is wrong, say, has `"error"` as its last line, and its connection ends without the mark of
//! a whole body: nobody takes it for the whole.
//!
//! A stream that brings next to nothing ends, so that others get its place. Waiting uses up its time,
//! [`body_time`](crate::limits::Limits::body_time), and bytes that come give time back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fastdx::text::{Consistent, Counts, Replacements};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::Incoming;
use serde_json::{json, to_writer};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::Sender;
use tokio::time::timeout;

use crate::body::{self, Given, Line, Released, WordCounts};
use crate::held::{Active, Connection};
use crate::metrics::Refused;
use crate::policy::Policy;
use crate::reply::{BrokenOff, Failure};
use crate::service::Service;

/// Lines that are drawn, and charged, together.
const TOGETHER: usize = 256;
/// Bytes of them.
const BYTES: usize = 1 << 16;

/// Bytes of a line that has not ended, beyond which it takes room of its connection.
const LONG: usize = 1 << 16;
/// Bytes of a stream that give back a second of waiting.
const SLOWEST: f64 = 500.0;
/// Bytes of unknown words whose replacements a stream keeps where one request is one call.
const KEPT: usize = 16 << 20;

/// Where the lines go.
pub struct Output {
    /// To the body of the answer.
    pub send: Sender<Result<Bytes, BrokenOff>>,
    /// The connection, which holds what is not read.
    pub connection: Arc<Connection>,
    /// The connection is not idle.
    pub active: Active,
    /// The stream's place among all requests.
    pub place: OwnedSemaphorePermit,
}

/// Lines that wait to be drawn, and what has been done.
struct Batch {
    service: Arc<Service>,
    policy: Arc<Policy>,
    account: String,
    to: Output,
    /// The room of a long line.
    long: Option<OwnedSemaphorePermit>,
    /// What was drawn for words before: of use where one request is one call.
    replacements: Replacements,
    texts: Vec<Option<String>>,
    bytes: usize,
    /// Lines that have come.
    lines: u64,
    counts: Counts,
}

/// Reads a body line by line and sends what is released.
pub async fn run(
    service: Arc<Service>,
    policy: Arc<Policy>,
    account: String,
    body: Incoming,
    to: Output,
) {
    let mut batch = Batch {
        service,
        policy,
        account,
        to,
        long: None,
        replacements: Replacements::default(),
        texts: Vec::new(),
        bytes: 0,
        lines: 0,
        counts: Counts::default(),
    };
    if let Err(failure) = batch.read(body).await {
        let mut error = failure.body();
        error.push(b'\n');
        // Where nobody reads any more, there is nobody to tell.
        let _ = batch.send(error, ()).await;
        let _ = batch.to.send.send(Err(BrokenOff)).await;
    }
}

/// Nobody reads the answer.
fn gone() -> Failure {
    Failure::new(StatusCode::REQUEST_TIMEOUT, "gone", "the client left")
}

impl Batch {
    async fn read(&mut self, mut given: Incoming) -> Result<(), Failure> {
        let limits = self.service.limits.clone();
        let mut rest: Vec<u8> = Vec::new();
        let mut left = limits.body_time;
        loop {
            let start = Instant::now();
            let Ok(frame) = timeout(left, given.frame()).await else {
                self.service.metrics.refused(Refused::Slow);
                let message = "the next lines did not arrive in time";
                return Err(Failure::new(StatusCode::REQUEST_TIMEOUT, "slow", message));
            };
            let Some(frame) = frame else { break };
            let broken = |_| Failure::new(StatusCode::BAD_REQUEST, "invalid", "the body broke off");
            let Ok(data) = frame.map_err(broken)?.into_data() else {
                continue;
            };
            let back = Duration::from_secs_f64(data.len() as f64 / SLOWEST);
            left = left.saturating_sub(start.elapsed()).saturating_add(back);
            left = left.min(limits.body_time);
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
                if rest.len() + piece.len() > LONG && self.long.is_none() {
                    // No line waits to be drawn, for which there might be no more room.
                    self.flush().await?;
                    self.long = Some(self.room(limits.body).await?);
                }
                rest.extend_from_slice(piece);
                if piece.ends_with(b"\n") {
                    self.line(&rest).await?;
                    rest.clear();
                }
            }
            // What came together is answered together, and nothing waits for what is to come.
            self.flush().await?;
        }
        if !rest.is_empty() {
            self.line(&rest).await?;
        }
        self.flush().await?;
        let counts: WordCounts = self.counts.into();
        let end = json!({"done": true, "lines": self.lines, "counts": counts, "policy": self.policy.name});
        self.send(format!("{end}\n").into_bytes(), ()).await
    }

    async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Failure> {
        self.service.share(&self.to.connection, bytes).await
    }

    /// Sends a piece; what is `held` is held until the client has it.
    async fn send<T: Send + 'static>(&self, piece: Vec<u8>, held: T) -> Result<(), Failure> {
        let piece = self.to.connection.unread(piece.into(), held);
        self.to.send.send(Ok(piece)).await.map_err(|_| gone())
    }

    fn wrong(&self, message: impl std::fmt::Display) -> Failure {
        let message = format!("line {}: {message}", self.lines);
        Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", message)
    }

    async fn line(&mut self, line: &[u8]) -> Result<(), Failure> {
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
                self.flush().await?;
                self.draw(alone, spans.as_deref()).await?;
            }
        }
        let together = TOGETHER.min(self.service.limits.texts);
        if self.texts.len() >= together || self.bytes >= BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        if self.texts.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let texts = std::mem::take(&mut self.texts);
        self.draw(Given::Many(texts), None).await
    }

    async fn draw(&mut self, given: Given, spans: Option<&[(u64, u64)]>) -> Result<(), Failure> {
        let room = match self.long.take() {
            Some(room) => room,
            None => {
                let bytes = given.strs().iter().map(|text| text.len()).sum();
                self.room(bytes).await?
            }
        };
        let at = |failure: Failure, line: u64| Failure {
            message: format!("up to line {line}: {}", failure.message),
            ..failure
        };
        let line = self.lines;
        let mut work = self
            .service
            .check(self.policy.clone(), given, spans)
            .map_err(|f| at(f, line))?;
        if self.policy.text.policy().consistent == Consistent::Call {
            work.replacements = std::mem::take(&mut self.replacements);
        }
        let done = self
            .service
            .release(&self.account, work)
            .await
            .map_err(|f| at(f, line))?;
        self.counts += done.counts;
        self.replacements = done.replacements;
        if self.replacements.unknown_bytes() > KEPT {
            let message = "too many unknown words: this policy keeps the replacement of each";
            return Err(at(self.service.too_large(message.into()), line));
        }
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
        self.send(out, room).await
    }
}
