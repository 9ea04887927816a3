//! Keeps answers for repeated requests: a request with an idempotency key is drawn once.
//!
//! A second draw of the same text would reveal more of it. So a promised answer is never dropped
//! before its time: if the memory for answers is full, new keys are refused.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::reply::Answer;

/// Approximate bytes of an entry beside its answer.
const OVERHEAD: usize = 512;

type Slot = watch::Receiver<Option<Answer>>;

struct Entry {
    /// The digest of the request.
    request: [u8; 32],
    answer: Slot,
    bytes: usize,
}

#[derive(Default)]
struct StoredAnswers {
    entries: HashMap<[u8; 32], Entry>,
    /// The times at which entries expire, in order.
    ends: VecDeque<(Instant, [u8; 32])>,
    bytes: usize,
}

pub struct Answers {
    kept: Mutex<StoredAnswers>,
    limit: usize,
    time: Duration,
    /// Keyed digests are useless to anyone who reads them elsewhere.
    salt: [u8; 32],
}

/// The way to handle a request.
pub enum Lookup {
    /// The request is new: answer it and keep the promise.
    First(Promise),
    /// The request came before: the answer, or the place where it will appear.
    Again(Slot),
    /// The key was used for another request.
    Other,
    /// There is no memory left for a promise.
    Full,
}

/// The promise of an answer. If it is dropped without an answer, the key is free again: nothing was
/// sent.
pub struct Promise {
    answers: Arc<Answers>,
    key: [u8; 32],
    send: watch::Sender<Option<Answer>>,
    kept: bool,
}

impl Answers {
    /// Keeps at most `limit` bytes of answers, each for `time`.
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

    fn kept(&self) -> MutexGuard<'_, StoredAnswers> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn digest(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut hash = Sha256::new_with_prefix(self.salt);
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }

    /// Returns the way to handle an account's request, its body, under a key.
    pub fn look_up(self: &Arc<Self>, account: &str, key: &[u8], request: &[u8]) -> Lookup {
        let key = self.digest(&[account.as_bytes(), key]);
        let request = self.digest(&[request]);
        let now = Instant::now();
        let mut kept = self.kept();
        while let Some(&(_, old)) = kept.ends.front().filter(|(end, _)| *end <= now) {
            kept.ends.pop_front();
            kept.remove(&old);
        }
        if let Some(entry) = kept.entries.get(&key) {
            return match entry.request == request {
                true => Lookup::Again(entry.answer.clone()),
                false => Lookup::Other,
            };
        }
        if kept.bytes + OVERHEAD > self.limit {
            return Lookup::Full;
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
        Lookup::First(Promise {
            answers: self.clone(),
            key,
            send,
            kept: false,
        })
    }
}

impl StoredAnswers {
    fn remove(&mut self, key: &[u8; 32]) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }
}

impl Promise {
    /// Gives the answer to all who wait for it, and keeps a successful one.
    pub fn keep(mut self, answer: &Answer) {
        self.send.send_replace(Some(answer.clone()));
        if !answer.status.is_success() {
            return;
        }
        self.kept = true;
        let mut kept = self.answers.kept();
        if let Some(entry) = kept.entries.get_mut(&self.key) {
            entry.bytes += answer.body.len();
            kept.bytes += answer.body.len();
            // Counted from now, so that the expiry times stay in order.
            kept.ends
                .push_back((Instant::now() + self.answers.time, self.key));
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if !self.kept {
            self.answers.kept().remove(&self.key);
        }
    }
}

/// Waits for an answer that another request works on; `None` if that request was aborted.
pub async fn wait(mut slot: Slot) -> Option<Answer> {
    slot.wait_for(Option::is_some).await.ok()?.clone()
}
