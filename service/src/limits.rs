//! The operator's limits on requests and connections, as options of the program.

use std::time::Duration;

use tokio::sync::Semaphore;

/// Limits on requests and connections.
#[derive(Clone, Debug, clap::Args)]
pub struct Limits {
    /// Maximum bytes of a body
    #[arg(long, value_name = "N", value_parser = whole, default_value_t = 1 << 20)]
    pub max_body: usize,
    /// Maximum simultaneous requests; more get 429
    #[arg(long, value_name = "N", value_parser = whole, default_value_t = 512)]
    pub max_requests: usize,
    /// Maximum simultaneous connections; more wait
    #[arg(long, value_name = "N", value_parser = whole, default_value_t = 4096)]
    pub max_connections: usize,
    /// Seconds for a TLS handshake, and for each request's head to arrive
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    pub head_time: Duration,
    /// Seconds for a body, or for the next part of a stream
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "30")]
    pub body_time: Duration,
    /// Seconds in which a client may read nothing of its answer
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "75")]
    pub idle_time: Duration,
}

pub fn whole(given: &str) -> Result<usize, String> {
    let number = given.parse().ok().filter(|n| *n <= Semaphore::MAX_PERMITS);
    number.ok_or_else(|| "it must be a whole number, at least 0".to_owned())
}

pub fn number(given: &str) -> Result<f64, String> {
    given.parse().map_err(|_| "it must be a number".to_owned())
}

pub fn seconds(given: &str) -> Result<Duration, String> {
    let given = number(given)?;
    match given > 0.0 && given <= 1e6 {
        true => Ok(Duration::from_secs_f64(given)),
        false => Err("it must be from 0 to 1e6 seconds".to_owned()),
    }
}
