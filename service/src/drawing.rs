//! Threads that draw batches, one at a time each, in the order in which they come.
//!
//! There are as many as threads that answer. So batches that come together do not share the cores with
//! each other: the first one is done soon, and no one is done late.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use fastdx::support::parallel::stay_on_this_thread;
use tokio::sync::oneshot;

use crate::work::caught;

type Job = Box<dyn FnOnce() + Send>;

/// The threads; they end when this is dropped.
pub struct DrawingThreads {
    jobs: Sender<Job>,
}

impl DrawingThreads {
    /// Starts this many threads, at least one.
    pub fn start(threads: usize) -> Result<Self, String> {
        let (jobs, queue) = channel();
        let queue = Arc::new(Mutex::new(queue));
        for i in 0..threads.max(1) {
            let queue = queue.clone();
            let thread = std::thread::Builder::new().name(format!("draw-{i}"));
            let started = thread.spawn(move || {
                // Without a pool of its own, the thread draws by the common one: slower.
                let _ = stay_on_this_thread();
                while let Some(job) = next(&queue) {
                    job();
                }
            });
            started.map_err(|e| format!("a thread: {e}"))?;
        }
        Ok(DrawingThreads { jobs })
    }

    /// Runs `work` on one of the threads; returns `None` if it panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (done, result) = oneshot::channel();
        let job = move || {
            // If the client left, nobody takes the result.
            let _ = done.send(caught(work));
        };
        self.jobs.send(Box::new(job)).ok()?;
        result.await.ok()?
    }
}

/// The next job; `None` after the end of the threads' owner.
fn next(queue: &Mutex<Receiver<Job>>) -> Option<Job> {
    let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    queue.recv().ok()
}

#[cfg(test)]
mod tests {
    use super::DrawingThreads;

    #[tokio::test]
    async fn a_panic_costs_one_job_and_no_thread() {
        let threads = DrawingThreads::start(1).unwrap();
        assert_eq!(threads.run(|| 7).await, Some(7));
        let broken = threads.run(|| panic!("a panic of the tests"));
        assert_eq!(broken.await, None::<()>);
        assert_eq!(threads.run(|| 8).await, Some(8));
    }
}
