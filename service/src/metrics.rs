//! Counts and times for Prometheus. No label is anything that a client wrote.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What a request asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// `POST /v1/privatize`.
    Privatize,
    /// The same, line by line.
    Lines,
    /// Everything else.
    Other,
}

const ROUTES: [&str; 3] = ["privatize", "lines", "other"];
/// Statuses that are told apart.
const STATUSES: [u16; 16] = [
    200, 400, 401, 404, 405, 408, 409, 413, 415, 422, 429, 431, 500, 501, 503, 0,
];
/// Upper ends of the histogram's buckets in microseconds.
const ENDS: [u64; 14] = [
    50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 102_400, 409_600,
    1_638_400,
];

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No key, or a wrong one.
    Key,
    /// The body, its texts or its words are too many.
    Size,
    /// Too many requests at once.
    Busy,
    /// The budget is spent.
    Budget,
    /// The memory for answers is full.
    Answers,
    /// The client was too slow.
    Slow,
}

const REASONS: [&str; 6] = ["key", "size", "busy", "budget", "answers", "slow"];

/// All counts.
#[derive(Default)]
pub struct Metrics {
    requests: [[AtomicU64; STATUSES.len()]; ROUTES.len()],
    times: [AtomicU64; ENDS.len() + 1],
    time_sum: AtomicU64,
    refused: [AtomicU64; REASONS.len()],
    /// Words that were found in texts.
    pub words: AtomicU64,
    /// Texts that were released.
    pub texts: AtomicU64,
    /// Panics that were caught.
    pub panics: AtomicU64,
    /// Connections that are open.
    pub connections: AtomicU64,
    /// Answers that were sent again.
    pub repeated: AtomicU64,
    /// Times that the file of policies was read again, and that it was refused.
    pub reloads: [AtomicU64; 2],
}

impl Metrics {
    /// Counts an answer.
    pub fn answered(&self, route: Route, status: u16, time: Duration) {
        let at = STATUSES
            .iter()
            .position(|s| *s == status)
            .unwrap_or(STATUSES.len() - 1);
        self.requests[route as usize][at].fetch_add(1, Relaxed);
        if route == Route::Privatize {
            let time = time.as_micros() as u64;
            self.times[ENDS.partition_point(|end| *end < time)].fetch_add(1, Relaxed);
            self.time_sum.fetch_add(time, Relaxed);
        }
    }

    /// Counts a refusal.
    pub fn refused(&self, why: Refused) {
        self.refused[why as usize].fetch_add(1, Relaxed);
    }

    /// The text that Prometheus reads; `gauges` are further lines' names, labels and values.
    pub fn render(&self, gauges: &[(&str, String, f64)]) -> String {
        let mut out = String::new();
        let mut line = |name: &str, labels: &str, value: f64| {
            let labels = if labels.is_empty() {
                String::new()
            } else {
                format!("{{{labels}}}")
            };
            // Writing to a String cannot fail.
            let _ = writeln!(out, "fastdx_{name}{labels} {value}");
        };
        for (route, statuses) in ROUTES.iter().zip(&self.requests) {
            for (status, count) in STATUSES.iter().zip(statuses) {
                let count = count.load(Relaxed);
                if count > 0 {
                    let labels = format!("route=\"{route}\",status=\"{status}\"");
                    line("requests_total", &labels, count as f64);
                }
            }
        }
        let mut below = 0;
        for (at, count) in self.times.iter().enumerate() {
            below += count.load(Relaxed);
            let end = ENDS
                .get(at)
                .map_or("+Inf".into(), |end| (*end as f64 / 1e6).to_string());
            line(
                "request_seconds_bucket",
                &format!("le=\"{end}\""),
                below as f64,
            );
        }
        line("request_seconds_count", "", below as f64);
        line(
            "request_seconds_sum",
            "",
            self.time_sum.load(Relaxed) as f64 / 1e6,
        );
        for (why, count) in REASONS.iter().zip(&self.refused) {
            line(
                "refused_total",
                &format!("reason=\"{why}\""),
                count.load(Relaxed) as f64,
            );
        }
        for (name, count) in [
            ("words_total", &self.words),
            ("texts_total", &self.texts),
            ("panics_total", &self.panics),
            ("connections", &self.connections),
            ("repeated_answers_total", &self.repeated),
            ("reloads_total", &self.reloads[0]),
            ("reloads_refused_total", &self.reloads[1]),
        ] {
            line(name, "", count.load(Relaxed) as f64);
        }
        for (name, labels, value) in gauges {
            line(name, labels, *value);
        }
        out
    }
}
