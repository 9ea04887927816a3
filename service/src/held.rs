//! Bounds for one connection: the bytes that it holds, and the time that its client may take.
//!
//! HTTP/2 lets a client send many requests on one connection and read none of the answers. So every
//! request reserves its bytes here before its body is read. It gives them back, with its place among
//! all requests, when the last byte of its answer is written. An answer that is not read in time
//! ends its connection: HTTP/2 cannot tell a body that its reader has stopped.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bodies of the largest size that a connection holds at once.
const BODIES: usize = 8;
/// Bytes that the smallest request counts for.
const LEAST: usize = 512;

/// One connection.
pub struct Connection {
    /// The address of its client; empty for a socket in the file system.
    pub peer: String,
    room: Arc<Semaphore>,
    most: usize,
    state: Mutex<State>,
}

struct State {
    /// Requests that have no answer yet, and streams that have not ended.
    active: usize,
    /// The end of the last request.
    last: Instant,
    /// When each answer that is not read yet was ready, by number.
    unread: BTreeMap<u64, Instant>,
    next: u64,
}

/// Why a connection has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// An answer, or a piece of one, was not read in time.
    Unread,
    /// No request came in time.
    Idle,
}

/// A request that is worked on; ends when it is dropped.
pub struct Active(Arc<Connection>);

/// What a request holds until its answer is written.
pub struct Held {
    /// Its place among all requests.
    pub place: OwnedSemaphorePermit,
    /// Its bytes of the connection.
    pub share: OwnedSemaphorePermit,
}

/// Bytes on their way to the client.
struct Unread<T> {
    bytes: Bytes,
    number: u64,
    connection: Arc<Connection>,
    _held: T,
}

impl<T> AsRef<[u8]> for Unread<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<T> Drop for Unread<T> {
    fn drop(&mut self) {
        self.connection.state().unread.remove(&self.number);
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.active -= 1;
        state.last = Instant::now();
    }
}

impl Connection {
    /// A connection from `peer`, whose bodies have at most so many bytes each.
    pub fn new(peer: String, body: usize) -> Arc<Self> {
        let most = body.max(LEAST).saturating_mul(BODIES);
        // A semaphore, and a request for permits, has a limit.
        let most = most.min(Semaphore::MAX_PERMITS).min(u32::MAX as usize);
        Arc::new(Connection {
            peer,
            room: Arc::new(Semaphore::new(most)),
            most,
            state: Mutex::new(State {
                active: 0,
                last: Instant::now(),
                unread: BTreeMap::new(),
                next: 0,
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request as active.
    pub fn begin(self: &Arc<Self>) -> Active {
        self.state().active += 1;
        Active(self.clone())
    }

    /// Waits until the connection may hold so many more bytes; none if that takes too long.
    pub async fn share(&self, bytes: usize, time: Duration) -> Option<OwnedSemaphorePermit> {
        let bytes = bytes.clamp(LEAST, self.most) as u32;
        let share = self.room.clone().acquire_many_owned(bytes);
        tokio::time::timeout(time, share).await.ok()?.ok()
    }

    /// Gives back what a share has beyond so many bytes.
    pub fn reduce(share: &mut OwnedSemaphorePermit, bytes: usize) {
        let spare = share.num_permits().saturating_sub(bytes.max(LEAST));
        drop(share.split(spare));
    }

    /// Bytes that keep what is `held`, and count as unread, until they are written.
    pub fn unread<T: Send + 'static>(self: &Arc<Self>, bytes: Bytes, held: T) -> Bytes {
        let number = {
            let mut state = self.state();
            let number = state.next;
            state.next += 1;
            state.unread.insert(number, Instant::now());
            number
        };
        Bytes::from_owner(Unread {
            bytes,
            number,
            connection: self.clone(),
            _held: held,
        })
    }

    /// The client has time again, from now on.
    pub fn touch(&self) {
        self.state().last = Instant::now();
    }

    /// Waits until the client has been late for so long.
    pub async fn late(&self, time: Duration) -> Late {
        loop {
            let now = Instant::now();
            let (since, late) = {
                let state = self.state();
                match state.unread.first_key_value() {
                    Some((_, since)) => (*since, Some(Late::Unread)),
                    None if state.active == 0 => (state.last, Some(Late::Idle)),
                    None => (now, None),
                }
            };
            match late {
                Some(late) if now >= since + time => return late,
                _ => tokio::time::sleep_until((since + time).into()).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::{Connection, LEAST, Late};

    const SHORT: Duration = Duration::from_millis(30);
    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn shares_are_given_back_with_the_last_byte() {
        let connection = Connection::new(String::new(), 1000);
        let all = connection.share(usize::MAX, LONG).await.unwrap();
        assert!(connection.share(1, SHORT).await.is_none());
        let answer = connection.unread(Bytes::from_static(b"tea"), all);
        let (begin, end) = (answer.slice(..1), answer.slice(1..));
        drop((answer, begin));
        assert!(connection.share(1, SHORT).await.is_none());
        drop(end);
        let mut most = connection.share(8000, LONG).await.unwrap();
        Connection::reduce(&mut most, 7999 - LEAST);
        assert!(connection.share(1, LONG).await.is_some());
    }

    #[tokio::test]
    async fn who_is_late() {
        let connection = Connection::new(String::new(), 1000);
        assert_eq!(connection.late(SHORT).await, Late::Idle);
        let active = connection.begin();
        let late = tokio::time::timeout(SHORT * 5, connection.late(SHORT));
        assert!(late.await.is_err());
        let answer = connection.unread(Bytes::from_static(b"tea"), ());
        assert_eq!(connection.late(SHORT).await, Late::Unread);
        drop((active, answer));
        assert_eq!(connection.late(SHORT).await, Late::Idle);
    }
}
