//! Long batches: one text per line (NDJSON), privatised and sent back while lines arrive.
//!
//! A complete answer ends with a line that has `"done": true` and the counts. An incomplete one,
//! for example after a wrong line, has `"error"` in its last line, and its connection ends without
//! the mark of a complete body. So no client mistakes it for a complete answer.
//!
//! A stream that delivers almost nothing ends, so that others get its place. Waiting uses up its
//! time, [`body_time`](crate::limits::Limits::body_time), and received bytes give time back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::BodyDataStream;
use bytes::Bytes;
use fastdx::text::{Consistent, Counts, Replacements};
use futures_util::StreamExt;
use serde_json::{json, to_writer};
use tokio::sync::mpsc::Sender;
use tokio::time::timeout;

use crate::body::{self, Texts};
use crate::policy::Policy;
use crate::reply::Failure;
use crate::service::Service;
use crate::work::CheckedRequest;

/// Number of lines that are drawn and charged together.
const LINES_PER_BATCH: usize = 256;
/// Maximum bytes of these lines.
const BYTES: usize = 1 << 16;

/// Bytes of a stream that give back one second of waiting.
const SLOWEST: f64 = 500.0;
/// Maximum bytes of unknown words whose replacements a stream keeps, if one request is one call.
const MAX_REPLACEMENT_BYTES: usize = 16 << 20;

/// The parts of an answer; an error breaks the connection off.
pub type Output = Sender<std::io::Result<Bytes>>;

/// Lines that wait to be drawn, and the results so far.
struct Batch {
    service: Arc<Service>,
    policy: Arc<Policy>,
    account: String,
    to: Output,
    /// Replacements drawn for earlier words; used if one request is one call.
    replacements: Replacements,
    texts: Vec<Option<String>>,
    bytes: usize,
    /// Number of lines received.
    lines: u64,
    counts: Counts,
}

/// Reads a body line by line and sends the released lines.
pub async fn run(
    service: Arc<Service>,
    policy: Arc<Policy>,
    account: String,
    body: BodyDataStream,
    to: Output,
) {
    let mut batch = Batch {
        service,
        policy,
        account,
        to,
        replacements: Replacements::default(),
        texts: Vec::new(),
        bytes: 0,
        lines: 0,
        counts: Counts::default(),
    };
    if let Err(failure) = batch.read(body).await {
        // If nobody reads any more, the error is dropped.
        let error = [&failure.answer().body[..], b"\n"].concat();
        let _ = batch.send(error).await;
        let broken_off = std::io::Error::other("the answer was broken off");
        let _ = batch.to.send(Err(broken_off)).await;
    }
}

/// The failure if nobody reads the answer.
fn gone() -> Failure {
    Failure::new("gone", "the client left")
}

impl Batch {
    async fn read(&mut self, mut given: BodyDataStream) -> Result<(), Failure> {
        let limits = self.service.limits.clone();
        let mut rest: Vec<u8> = Vec::new();
        let mut left = limits.body_time;
        loop {
            let start = Instant::now();
            let Ok(data) = timeout(left, given.next()).await else {
                self.service.metrics.refused("slow");
                let message = "the next lines did not arrive in time";
                return Err(Failure::new("slow", message));
            };
            let Some(data) = data else { break };
            let broken = |_| Failure::malformed("the body broke off");
            let data = data.map_err(broken)?;
            let back = Duration::from_secs_f64(data.len() as f64 / SLOWEST);
            left = left.saturating_sub(start.elapsed()).saturating_add(back);
            left = left.min(limits.body_time);
            for piece in data.split_inclusive(|b| *b == b'\n') {
                if rest.len() + piece.len() > limits.max_body {
                    let (line, most) = (self.lines + 1, limits.max_body);
                    let message = format!("line {line}: longer than {most} bytes");
                    return Err(self.service.too_large(message));
                }
                rest.extend_from_slice(piece);
                if piece.ends_with(b"\n") {
                    self.line(&rest).await?;
                    rest.clear();
                }
            }
            // Lines that arrived together are answered together; nothing waits for later lines.
            self.flush().await?;
        }
        if !rest.is_empty() {
            self.line(&rest).await?;
        }
        self.flush().await?;
        let end = json!({"done": true, "lines": self.lines, "counts": self.counts, "policy": self.policy.name});
        self.send(format!("{end}\n").into_bytes()).await
    }

    async fn send(&self, piece: Vec<u8>) -> Result<(), Failure> {
        self.to.send(Ok(piece.into())).await.map_err(|_| gone())
    }

    fn wrong(&self, message: impl std::fmt::Display) -> Failure {
        Failure::invalid(format!("line {}: {message}", self.lines))
    }

    async fn line(&mut self, line: &[u8]) -> Result<(), Failure> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        self.lines += 1;
        let text = body::line(line).map_err(|wrong| self.wrong(wrong))?;
        self.bytes += text.as_ref().map_or(0, String::len);
        self.texts.push(text);
        if self.texts.len() >= LINES_PER_BATCH || self.bytes >= BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        if self.texts.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let texts = Texts::Many(std::mem::take(&mut self.texts));
        let at = |failure: Failure, line: u64| Failure {
            message: format!("up to line {line}: {}", failure.message),
            ..failure
        };
        let line = self.lines;
        let work = CheckedRequest::new(self.policy.clone(), texts, None);
        let mut work = work.map_err(|f| at(f, line))?;
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
        if self.replacements.unknown_bytes() > MAX_REPLACEMENT_BYTES {
            let message = "too many unknown words: this policy keeps the replacement of each";
            return Err(at(self.service.too_large(message.into()), line));
        }
        let Texts::Many(texts) = done.released else {
            return Err(Failure::internal());
        };
        let mut out = Vec::new();
        for text in texts {
            to_writer(&mut out, &json!({ "text": text })).map_err(|_| Failure::internal())?;
            out.push(b'\n');
        }
        self.send(out).await
    }
}
