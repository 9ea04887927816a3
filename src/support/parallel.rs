//! Threads, cancellation and progress.
//!
//! rayon's global pool does not survive `fork`: a child that uses it waits for threads that do not
//! exist. So each pool is labelled with the number of forks before this process (`fork.rs`), and a
//! child creates a new pool. Pools hold no data and are never locked.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::support::error::{Error, Result};
use crate::support::fork::{self, Once};

/// Cancellation and progress of one long call, shared with its caller.
#[derive(Debug, Default)]
pub struct Control {
    cancelled: AtomicBool,
    done: AtomicU64,
}

impl Control {
    /// Creates the control of a call that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the call to stop; it returns [`Error::Interrupted`] soon.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// To be called between parts of the work.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the call is cancelled.
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Reports `items` more items done.
    pub fn advance(&self, items: usize) {
        self.done.fetch_add(items as u64, Ordering::Relaxed);
    }

    /// Items done so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

/// A pool in the list of all of them, which only grows: a parent's stay there in a forked child. Their
/// threads do not exist there, so dropping them would wait forever.
struct ProcessPool {
    /// The number of forks before the process that created it.
    forks: u64,
    /// The requested number; 0 for the default.
    threads: usize,
    pool: ThreadPool,
    next: Once<ProcessPool>,
}

static POOLS: Once<ProcessPool> = Once::new();

/// The thread pool of this process: `FASTDX_NUM_THREADS` threads, or one per core.
///
/// # Errors
/// [`Error::System`] if the operating system supplies no threads; [`Error::Parameter`] if the
/// variable is not a positive number.
pub fn pool() -> Result<&'static ThreadPool> {
    pool_of(0)
}

/// Maximum number of threads of a pool.
pub const MAX_THREADS: usize = 4096;

/// The pool with this number of threads, at most [`MAX_THREADS`]; 0 for that of [`pool`]. Work
/// that runs in it uses only its threads.
///
/// # Errors
/// The errors of [`pool`].
pub fn pool_of(threads: usize) -> Result<&'static ThreadPool> {
    let forks = fork::count()?;
    let mut place = &POOLS;
    loop {
        let known = match place.get() {
            Some(known) => known,
            None => {
                let count = match threads {
                    0 => from_environment()?,
                    _ => threads,
                };
                let pool = ThreadPoolBuilder::new()
                    .num_threads(count)
                    .thread_name(|i| format!("fastdx-{i}"))
                    .build()
                    .map_err(Error::system("threads"))?;
                // Another thread may have put one there since.
                place.get_or_init(|| ProcessPool {
                    forks,
                    threads,
                    pool,
                    next: Once::new(),
                })
            }
        };
        if (known.forks, known.threads) == (forks, threads) {
            return Ok(&known.pool);
        }
        place = &known.next;
    }
}

/// Makes this thread a pool of its own for the rest of its life: calls on it use no other thread, and
/// wait for none. It is for servers whose threads each answer a request. There, a hand-off to the
/// common pool costs more than it saves, and waits behind all work that the pool has already.
///
/// # Errors
/// [`Error::System`] if rayon refuses the pool.
pub fn stay_on_this_thread() -> Result<()> {
    if rayon::current_thread_index().is_some() {
        return Ok(());
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread()
        .build();
    let pool = pool.map_err(Error::system("threads"))?;
    // The thread refers to it until it ends, and rayon frees neither.
    std::mem::forget(pool);
    Ok(())
}

/// `FASTDX_NUM_THREADS`, or 0 for one thread per core.
fn from_environment() -> Result<usize> {
    let Ok(text) = std::env::var("FASTDX_NUM_THREADS") else {
        return Ok(0);
    };
    match text.trim().parse::<usize>() {
        Ok(n) if (1..=MAX_THREADS).contains(&n) => Ok(n),
        _ => Err(Error::parameter(
            "FASTDX_NUM_THREADS",
            format!("a number from 1 to {MAX_THREADS}"),
            format!("{text:?}"),
        )),
    }
}

/// Runs `work` in this process's pool, so that rayon iterators in it use the pool's threads. A
/// small job (`items` at most `small`) runs on the calling thread instead, where it finishes
/// sooner. A small job must be one part for rayon, or use [`map_all`].
pub(crate) fn install<R: Send>(
    items: usize,
    small: usize,
    work: impl FnOnce() -> R + Send,
) -> Result<R> {
    // A thread that already belongs to a pool, ours or the caller's, stays there.
    if items <= small || rayon::current_thread_index().is_some() {
        return Ok(work());
    }
    let mut work = Some(work);
    let mut result = None;
    in_pool(&mut || result = work.take().map(|work| work()))?;
    result.ok_or(Error::Interrupted)
}

/// Does not depend on the type of the work, so that rayon's entry into the pool is compiled once.
fn in_pool(work: &mut (dyn FnMut() + Send)) -> Result<()> {
    pool()?.install(work);
    Ok(())
}

/// Applies `work` to every item: in parallel inside a pool, otherwise one after the other. (Outside
/// a pool, rayon would use its global pool, which has threads for all cores and does not survive a
/// fork.) After an error, items that were not begun are left out.
///
/// rayon's own iterators would do, and compile a loop of their own for each use: a tenth of the
/// code of the library.
pub(crate) fn for_all<T: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    for_all_with(items, || (), |(), item| work(item))
}

/// [`for_all`] with memory that `made` creates once for many items.
pub(crate) fn for_all_with<T: Send, W: Send>(
    items: impl IntoIterator<Item = T>,
    made: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, T) -> Result<()> + Sync,
) -> Result<()> {
    if rayon::current_thread_index().is_none() {
        let mut memory = made();
        return items
            .into_iter()
            .try_for_each(|item| work(&mut memory, item));
    }
    let items: Vec<T> = items.into_iter().collect();
    // Groups of equal size, so many that threads end at about the same time.
    let threads = rayon::current_num_threads();
    let each = items.len().div_ceil(64 * threads);
    let queue = Mutex::new(items.into_iter());
    in_parallel(threads, &|| {
        let mut memory = made();
        loop {
            let group: Vec<T> = lock(&queue).by_ref().take(each).collect();
            if group.is_empty() {
                return Ok(());
            }
            let mut group = group.into_iter();
            let done = group.try_for_each(|item| work(&mut memory, item));
            done.inspect_err(|_| lock(&queue).by_ref().for_each(drop))?;
        }
    })
}

/// Does not depend on the types of items and work, so that rayon's loop is compiled once.
fn in_parallel(count: usize, work: &(dyn Fn() -> Result<()> + Sync)) -> Result<()> {
    let each = (0..count).into_par_iter().with_max_len(1);
    each.try_for_each(|_| work())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// [`for_all`], with what `work` makes of each item, in their order.
pub(crate) fn map_all<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    map_all_with(items, || (), |(), item| work(item))
}

/// [`map_all`] with memory that `made` creates once for many items.
pub(crate) fn map_all_with<T: Send, R: Send, W: Send>(
    items: impl IntoIterator<Item = T>,
    made: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let items: Vec<T> = items.into_iter().collect();
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    for_all_with(
        items.into_iter().zip(&mut results),
        made,
        |memory, (item, result)| {
            *result = Some(work(memory, item)?);
            Ok(())
        },
    )?;
    Ok(results.into_iter().flatten().collect())
}

/// Runs two functions: at the same time inside a pool, otherwise one after the other.
pub(crate) fn both<A: Send, B: Send>(
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    match rayon::current_thread_index() {
        Some(_) => rayon::join(a, b),
        None => (a(), b()),
    }
}

/// Applies `work` to every item on as many threads as the pool has, without the pool. It is for
/// work inside a `OnceLock`. There, a waiting pool thread could take up another task that waits for
/// the lock it holds.
pub(crate) fn split<T: Send>(items: Vec<T>, work: impl Fn(T) + Sync) {
    let threads = match rayon::current_thread_index() {
        Some(_) => rayon::current_num_threads(),
        None => pool().map_or(1, ThreadPool::current_num_threads),
    };
    let queue = Mutex::new(items.into_iter());
    let next = || lock(&queue).next();
    let help = || std::iter::from_fn(next).for_each(&work);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // If the system refuses a thread, continue without it.
            let _ = std::thread::Builder::new().spawn_scoped(scope, help);
        }
        help();
    });
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_stays_alone_shares_no_work() {
        let alone = std::thread::spawn(|| {
            stay_on_this_thread().unwrap();
            stay_on_this_thread().unwrap();
            let own = std::thread::current().id();
            let items: Vec<u32> = (0..10_000).collect();
            let threads = install(items.len(), 0, || {
                map_all(&items, |_| Ok(std::thread::current().id()))
            });
            let threads = threads.unwrap().unwrap();
            threads.iter().all(|thread| *thread == own)
        });
        assert!(alone.join().unwrap());
        assert!(rayon::current_thread_index().is_none());
    }

    #[test]
    fn results_keep_their_order_and_an_error_ends_the_work() {
        let begun = AtomicU64::new(0);
        let work = |memory: &mut Vec<usize>, at: usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            memory.push(at);
            if at == 5 {
                return Err(Error::Interrupted);
            }
            Ok((at, memory.len()))
        };
        for count in [0, 1, 4, 100_000] {
            begun.store(0, Ordering::Relaxed);
            let inside = || map_all_with(10..10 + count, Vec::new, work);
            let (one, many) = (inside().unwrap(), install(9, 0, inside).unwrap().unwrap());
            assert_eq!(begun.load(Ordering::Relaxed), 2 * count as u64);
            for (found, at) in one.iter().chain(&many).zip((10..10 + count).cycle()) {
                assert_eq!(found.0, at);
            }
            assert_eq!((one.len(), many.len()), (count, count));
            // Outside a pool there is one memory; inside there are few, each for many items.
            assert_eq!(one.last().map_or(0, |last| last.1), count);
            let memories = many.iter().filter(|found| found.1 == 1).count();
            assert!(memories <= pool().unwrap().current_num_threads().min(count));
        }
        begun.store(0, Ordering::Relaxed);
        let failed = install(9, 0, || map_all_with(0..1_000_000, Vec::new, work)).unwrap();
        assert!(matches!(failed, Err(Error::Interrupted)));
        assert!(begun.into_inner() < 1_000_000);
    }
}
