//! The most that a request may ask for, as the operator set it.

use std::time::Duration;

/// The most that a request may ask for.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a body.
    pub body: usize,
    /// Texts of a request.
    pub texts: usize,
    /// Words of a request, or of a line.
    pub words: usize,
    /// Requests that are worked on at once.
    pub concurrency: usize,
    /// For a body to arrive; of a stream, for its next piece.
    pub body_time: Duration,
}
