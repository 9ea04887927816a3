//! The operator's limits on a request.

use std::time::Duration;

/// Limits on a request.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum bytes of a body.
    pub body: usize,
    /// Maximum number of texts in a request.
    pub texts: usize,
    /// Maximum number of words in a request, or in a line.
    pub words: usize,
    /// Maximum number of requests in progress.
    pub concurrency: usize,
    /// Maximum time for a body to arrive, or for the next part of a stream.
    pub body_time: Duration,
}
