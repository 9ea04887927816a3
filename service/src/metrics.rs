//! Counts and times for Prometheus. No label contains client input.

use std::time::Duration;

use prometheus::process_collector::ProcessCollector;
use prometheus::{
    Gauge, Histogram, IntCounter, IntCounterVec, Registry, Result, TextEncoder, histogram_opts,
    register_histogram_with_registry, register_int_counter_vec_with_registry,
    register_int_counter_with_registry,
};

use crate::service::Service;

/// Upper ends of the histogram's buckets in seconds.
const ENDS: [f64; 14] = [
    0.00005, 0.0001, 0.0002, 0.0004, 0.0008, 0.0016, 0.0032, 0.0064, 0.0128, 0.0256, 0.0512,
    0.1024, 0.4096, 1.6384,
];

/// The reasons for refusing a request: no key or a wrong one; a body, its texts or its words beyond a
/// limit; too many requests at once; a spent budget; full memory for answers; a client that is too
/// slow.
const REASONS: [&str; 6] = ["key", "size", "busy", "budget", "answers", "slow"];

pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    times: Histogram,
    refused: IntCounterVec,
    pub panics: IntCounter,
    /// Answers that were sent again.
    pub repeated: IntCounter,
    /// How often the file of policies was read again.
    pub reloads: IntCounter,
    /// How often it was refused.
    pub reloads_refused: IntCounter,
    released: [IntCounterVec; 3],
}

impl Metrics {
    /// Counts from zero.
    /// It fails if two metrics have one name.
    pub fn new() -> Result<Self> {
        let registry = Registry::new();
        registry.register(Box::new(ProcessCollector::for_self()))?;
        let one = |name, help| register_int_counter_with_registry!(name, help, registry);
        let each = |name, help, labels: &[&str]| {
            register_int_counter_vec_with_registry!(name, help, labels, registry)
        };
        let times = histogram_opts!(
            "fastdx_request_seconds",
            "Time from the head of a request to its answer, of JSON requests.",
            ENDS.to_vec()
        );
        let metrics = Metrics {
            requests: each(
                "fastdx_requests_total",
                "Answered requests, by route and status.",
                &["route", "status"],
            )?,
            times: register_histogram_with_registry!(times, registry)?,
            refused: each(
                "fastdx_refused_total",
                "Refused requests, by reason.",
                &["reason"],
            )?,
            panics: one("fastdx_panics_total", "Panics that the service caught.")?,
            repeated: one(
                "fastdx_repeated_answers_total",
                "Answers that were sent again for their Idempotency-Key.",
            )?,
            reloads: one(
                "fastdx_reloads_total",
                "Times that the file of policies was read again.",
            )?,
            reloads_refused: one(
                "fastdx_reloads_refused_total",
                "Times that the file of policies was wrong, and the old ones stayed.",
            )?,
            released: [
                each(
                    "fastdx_releases_total",
                    "Releases under a policy: requests, and pieces of streams.",
                    &["policy"],
                )?,
                each(
                    "fastdx_texts_total",
                    "Texts that were released under a policy.",
                    &["policy"],
                )?,
                each(
                    "fastdx_words_total",
                    "Words that were found in the texts that were released under a policy.",
                    &["policy"],
                )?,
            ],
            registry,
        };
        for reason in REASONS {
            metrics.refused.with_label_values(&[reason]);
        }
        Ok(metrics)
    }

    pub fn answered(&self, route: &str, status: &str, time: Duration) {
        self.requests.with_label_values(&[route, status]).inc();
        if route == "privatize" {
            self.times.observe(time.as_secs_f64());
        }
    }

    /// Counts a refusal for one of the [`REASONS`].
    pub fn refused(&self, why: &str) {
        self.refused.with_label_values(&[why]).inc();
    }

    /// Counts a release under a policy: how many, and of how many texts and words.
    pub fn released(&self, policy: &str, counts: [u64; 3]) {
        for (metric, count) in self.released.iter().zip(counts) {
            metric.with_label_values(&[policy]).inc_by(count);
        }
    }
}

/// The text that Prometheus reads.
/// It fails if two metrics have one name.
pub fn render(service: &Service) -> Result<String> {
    // Gauges: the state now.
    let now = Registry::new();
    let gauge = |name, help, value: usize| {
        let gauge = Gauge::new(name, help)?;
        gauge.set(value as f64);
        now.register(Box::new(gauge))
    };
    let limits = &service.limits;
    gauge(
        "fastdx_connections",
        "Open connections.",
        limits.max_connections - service.connections.available_permits(),
    )?;
    gauge(
        "fastdx_requests_active",
        "Requests whose answers are not written yet.",
        limits.max_requests - service.room.available_permits(),
    )?;
    gauge(
        "fastdx_ready",
        "Whether the service takes requests.",
        service.ready().is_ok().into(),
    )?;
    if let Some(policies) = service.policies.load_full() {
        for name in policies.named.keys() {
            service.metrics.released(name, [0; 3]);
        }
    }
    let mut all = service.metrics.registry.gather();
    all.extend(now.gather());
    TextEncoder::new().encode_to_string(&all)
}
