//! Counts and times for Prometheus. No label contains client input.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

/// A metric with all its labels.
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: MetricKind,
    /// Its help text, one sentence.
    pub help: &'static str,
    /// Labels and values.
    pub samples: Vec<(String, f64)>,
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Rises and falls.
    Gauge,
    /// A histogram: each sample has its own name suffix.
    Histogram,
}

impl MetricKind {
    fn name(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

/// Releases under one policy.
#[derive(Debug, Default)]
pub struct Releases {
    /// Number of requests, and of parts of streams.
    pub releases: AtomicU64,
    /// Texts.
    pub texts: AtomicU64,
    /// Number of words found in them.
    pub words: AtomicU64,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// `POST /v1/privatize`.
    Privatize,
    /// `POST /v1/privatize` line by line.
    Lines,
    /// All other requests.
    Other,
}

const ROUTES: [&str; 3] = ["privatize", "lines", "other"];
/// Statuses that are counted separately.
const STATUSES: [u16; 16] = [
    200, 400, 401, 404, 405, 408, 409, 413, 415, 422, 429, 431, 500, 501, 503, 0,
];
/// Upper ends of the histogram's buckets in microseconds.
const ENDS: [u64; 14] = [
    50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 102_400, 409_600,
    1_638_400,
];

/// The reason for refusing a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No key, or a wrong one.
    Key,
    /// The body, its texts or its words exceed a limit.
    Size,
    /// Too many requests at once.
    Busy,
    /// The budget is spent.
    Budget,
    /// The memory for answers is full.
    Answers,
    /// The client was too slow.
    Slow,
    /// The client does not read its answers.
    Unread,
}

const REASONS: [&str; 7] = ["key", "size", "busy", "budget", "answers", "slow", "unread"];

/// All counts.
pub struct Metrics {
    /// When the process started, in seconds since 1970.
    pub start: f64,
    requests: [[AtomicU64; STATUSES.len()]; ROUTES.len()],
    times: [AtomicU64; ENDS.len() + 1],
    time_sum: AtomicU64,
    refused: [AtomicU64; REASONS.len()],
    /// Panics that were caught.
    pub panics: AtomicU64,
    /// Connections that are open.
    pub connections: AtomicU64,
    /// Answers that were sent again.
    pub repeated: AtomicU64,
    /// How often the file of policies was read again, and how often it was refused.
    pub reloads: [AtomicU64; 2],
}

impl Default for Metrics {
    fn default() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Metrics {
            start: since.map_or(0.0, |since| since.as_secs_f64()),
            requests: Default::default(),
            times: Default::default(),
            time_sum: AtomicU64::new(0),
            refused: Default::default(),
            panics: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
            reloads: Default::default(),
        }
    }
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

    fn own(&self) -> Vec<Family> {
        let get = |count: &AtomicU64| count.load(Relaxed) as f64;
        let family = |name, kind, help, samples| Family {
            name,
            kind,
            help,
            samples,
        };
        let one = |value: f64| vec![(String::new(), value)];
        let requests = ROUTES
            .iter()
            .zip(&self.requests)
            .flat_map(|(route, statuses)| {
                let each = STATUSES.iter().zip(statuses);
                each.map(move |(status, count)| {
                    let labels = format!("{{route=\"{route}\",status=\"{status}\"}}");
                    (labels, count.load(Relaxed) as f64)
                })
            });
        let mut below = 0.0;
        let mut times: Vec<(String, f64)> = Vec::new();
        for (at, count) in self.times.iter().enumerate() {
            below += get(count);
            let end = ENDS
                .get(at)
                .map_or("+Inf".into(), |end| (*end as f64 / 1e6).to_string());
            times.push((format!("_bucket{{le=\"{end}\"}}"), below));
        }
        times.push(("_sum".into(), get(&self.time_sum) / 1e6));
        times.push(("_count".into(), below));
        let refused = REASONS.iter().zip(&self.refused);
        vec![
            family(
                "fastdx_requests_total",
                MetricKind::Counter,
                "Answered requests, by route and status.",
                requests.filter(|(_, count)| *count > 0.0).collect(),
            ),
            family(
                "fastdx_request_seconds",
                MetricKind::Histogram,
                "Time from the head of a request to its answer, of JSON requests.",
                times,
            ),
            family(
                "fastdx_refused_total",
                MetricKind::Counter,
                "Refused requests, by reason.",
                refused
                    .map(|(why, count)| (format!("{{reason=\"{why}\"}}"), get(count)))
                    .collect(),
            ),
            family(
                "fastdx_panics_total",
                MetricKind::Counter,
                "Panics that the service caught.",
                one(get(&self.panics)),
            ),
            family(
                "fastdx_connections",
                MetricKind::Gauge,
                "Open connections.",
                one(get(&self.connections)),
            ),
            family(
                "fastdx_repeated_answers_total",
                MetricKind::Counter,
                "Answers that were sent again for their Idempotency-Key.",
                one(get(&self.repeated)),
            ),
            family(
                "fastdx_reloads_total",
                MetricKind::Counter,
                "Times that the file of policies was read again.",
                one(get(&self.reloads[0])),
            ),
            family(
                "fastdx_reloads_refused_total",
                MetricKind::Counter,
                "Times that the file of policies was wrong, and the old ones stayed.",
                one(get(&self.reloads[1])),
            ),
        ]
    }

    /// The text that Prometheus reads, with further metrics.
    pub fn render(&self, more: Vec<Family>) -> String {
        let mut out = String::new();
        for family in self.own().into_iter().chain(more) {
            let (name, kind) = (family.name, family.kind.name());
            // Writing to a String cannot fail.
            let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", family.help);
            for (labels, value) in family.samples {
                let _ = writeln!(out, "{name}{labels} {value}");
            }
        }
        out
    }
}
