//! Limits for one connection: the bytes that it holds, and the time that its client may take.
//!
//! HTTP/2 lets a client send many requests on one connection and read none of the answers. So every
//! request reserves its bytes here before its body is read. It returns them, and its place among
//! all requests, when the last byte of its answer is written. If a client does not read an answer
//! in time, its connection ends, because HTTP/2 cannot tell a body that its reader has stopped.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Number of bodies of the largest size that a connection may hold at once.
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
    /// Requests without an answer, and streams that have not ended.
    active: usize,
    /// The end of the last request.
    last: Instant,
    /// The time at which each unread answer was ready, by number.
    unread: BTreeMap<u64, Instant>,
    next: u64,
}

/// The reason why a connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// The client did not read an answer, or a part of one, in time.
    Unread,
    /// No request came in time.
    Idle,
}

/// A request in progress; dropping it ends it.
pub struct Active(Arc<Connection>);

/// The reservations of a request until its answer is written.
pub struct Reservations {
    /// Its place among all requests.
    pub place: OwnedSemaphorePermit,
    /// Its share of the connection's bytes.
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
    /// A connection from `peer`; each of its bodies has at most `body` bytes.
    pub fn new(peer: String, body: usize) -> Arc<Self> {
        let most = body.max(LEAST).saturating_mul(BODIES);
        // A semaphore, and a request for permits, have maximum sizes.
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

    /// Waits until the connection may hold this many more bytes; `None` if that takes too long.
    pub async fn share(&self, bytes: usize, time: Duration) -> Option<OwnedSemaphorePermit> {
        let bytes = bytes.clamp(LEAST, self.most) as u32;
        let share = self.room.clone().acquire_many_owned(bytes);
        tokio::time::timeout(time, share).await.ok()?.ok()
    }

    /// Returns the permits that a share has beyond `bytes`.
    pub fn reduce(share: &mut OwnedSemaphorePermit, bytes: usize) {
        let spare = share.num_permits().saturating_sub(bytes.max(LEAST));
        drop(share.split(spare));
    }

    /// Wraps bytes so that they count as unread, and keep `held`, until they are written.
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

    /// Restarts the client's time limit.
    pub fn touch(&self) {
        self.state().last = Instant::now();
    }

    /// Waits until the client has been late for this long.
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
