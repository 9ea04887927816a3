//! Answers kept for those who ask again: a request with an idempotency key is drawn once.
//!
//! A second draw of the same text would tell more of it, so an answer that is promised is never
//! dropped before its time: where the memory for answers is full, new keys are refused.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::StatusCode;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

/// What an entry takes beside its answer, about.
const OVERHEAD: usize = 512;

/// An answer that can be sent again.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its body.
    pub body: Bytes,
}

impl Answer {
    /// A good one, in JSON.
    pub fn of(json: &serde_json::Value) -> Self {
        Answer {
            status: StatusCode::OK,
            body: json.to_string().into(),
        }
    }
}

type Slot = watch::Receiver<Option<Answer>>;

struct Entry {
    /// The digest of the request.
    request: [u8; 32],
    answer: Slot,
    bytes: usize,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<[u8; 32], Entry>,
    /// When entries end, in order.
    ends: VecDeque<(Instant, [u8; 32])>,
    bytes: usize,
}

/// The answers that are kept.
pub struct Answers {
    kept: Mutex<Kept>,
    limit: usize,
    time: Duration,
    /// Digests are of no use to who reads them elsewhere.
    salt: [u8; 32],
}

/// What is to be done with a request.
pub enum Place {
    /// It is the first: answer it, and say so.
    First(Promise),
    /// It has been asked before: the answer, or where it will come.
    Again(Slot),
    /// The key has been used for another request.
    Other,
    /// There is no memory left to promise with.
    Full,
}

/// The promise of an answer. Dropped without one, the key is free again: nothing was sent.
pub struct Promise {
    answers: Arc<Answers>,
    key: [u8; 32],
    send: watch::Sender<Option<Answer>>,
    kept: bool,
}

impl Answers {
    /// At most `limit` bytes of answers, each for `time`.
    ///
    /// # Errors
    /// The operating system gives no random bits.
    pub fn new(limit: usize, time: Duration) -> Result<Arc<Self>, String> {
        let mut salt = [0; 32];
        getrandom::fill(&mut salt).map_err(|e| e.to_string())?;
        Ok(Arc::new(Answers {
            kept: Mutex::default(),
            limit,
            time,
            salt,
        }))
    }

    fn digest(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut hash = Sha256::new_with_prefix(self.salt);
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }

    /// What to do with a request of an account under a key; `request` is all that the answer
    /// depends on.
    pub fn place(self: &Arc<Self>, account: &str, key: &[u8], request: &[&[u8]]) -> Place {
        let key = self.digest(&[account.as_bytes(), key]);
        let request = self.digest(request);
        let now = Instant::now();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(&(_, old)) = kept.ends.front().filter(|(end, _)| *end <= now) {
            kept.ends.pop_front();
            kept.remove(&old);
        }
        if let Some(entry) = kept.entries.get(&key) {
            return match entry.request == request {
                true => Place::Again(entry.answer.clone()),
                false => Place::Other,
            };
        }
        if kept.bytes + OVERHEAD > self.limit {
            return Place::Full;
        }
        let (send, answer) = watch::channel(None);
        kept.bytes += OVERHEAD;
        kept.entries.insert(
            key,
            Entry {
                request,
                answer,
                bytes: OVERHEAD,
            },
        );
        Place::First(Promise {
            answers: self.clone(),
            key,
            send,
            kept: false,
        })
    }

    /// Bytes that are kept, and that may be.
    pub fn bytes(&self) -> (usize, usize) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        (kept.bytes, self.limit)
    }
}

impl Kept {
    fn remove(&mut self, key: &[u8; 32]) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }
}

impl Promise {
    /// Gives the answer to all who wait for it; a good one is kept.
    pub fn keep(mut self, answer: &Answer) {
        self.send.send_replace(Some(answer.clone()));
        if !answer.status.is_success() {
            return;
        }
        self.kept = true;
        let mut kept = self
            .answers
            .kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = kept.entries.get_mut(&self.key) {
            entry.bytes += answer.body.len();
            kept.bytes += answer.body.len();
            // Counted from when the answer is there, so that ends stay in order.
            kept.ends
                .push_back((Instant::now() + self.answers.time, self.key));
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if !self.kept {
            let mut kept = self
                .answers
                .kept
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            kept.remove(&self.key);
        }
    }
}

/// Waits for an answer that another request works on: none if that request broke off.
pub async fn wait(mut slot: Slot) -> Option<Answer> {
    slot.wait_for(Option::is_some).await.ok()?.clone()
}
