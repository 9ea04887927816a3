//! `fastdx-load`: closed-loop load on a service, and what it took.
//!
//! Each connection sends a request, waits for the answer, sends the next. One line of JSON comes out:
//! answers a second, times in milliseconds, and how many were no 200.
//!
//! A slow answer holds back the requests that its connection would send meanwhile. Their times would be
//! long, and nobody measures them ("coordinated omission"). So the times count them, by the rule of wrk:
//! an answer after t counts as answers after t, t - m, t - 2m, …, above m, which is the mean time.

use std::time::{Duration, Instant};

use clap::Parser;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Load on POST /v1/privatize.
#[derive(Debug, Parser)]
struct Flags {
    /// HOST:PORT
    address: String,
    /// Connections
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Texts of a request
    #[arg(long, default_value_t = 1)]
    texts: usize,
    /// Words of a text
    #[arg(long, default_value_t = 10)]
    words: usize,
    /// Seconds, after a second of warming up
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Authorization: Bearer …
    #[arg(long)]
    key: Option<String>,
}

/// Requests that are sent in turn.
const REQUESTS: usize = 500;
/// Commonest words that texts are made of.
const VOCABULARY: f64 = 3000.0;
const THREADS: usize = 2;

/// Words as they are written: common ones are common (Zipf's law, by rank).
fn requests(flags: &Flags) -> Vec<Vec<u8>> {
    let english = fastdx::Embedding::default_english().expect("the built-in vocabulary");
    let vocabulary = english.vocabulary();
    let mut rng = ChaCha12Rng::seed_from_u64(1);
    let most = VOCABULARY.ln();
    let mut text = || -> String {
        let word =
            |_| vocabulary.word(((rng.random::<f64>() * most).exp() as u32).saturating_sub(1));
        (0..flags.words).map(word).collect::<Vec<_>>().join(" ")
    };
    let key = flags.key.as_ref().map_or(String::new(), |key| {
        format!("authorization: Bearer {key}\r\n")
    });
    let mut one = || {
        let body = match flags.texts {
            1 => serde_json::json!({ "text": text() }),
            n => serde_json::json!({"text": (0..n).map(|_| text()).collect::<Vec<_>>()}),
        };
        let body = body.to_string();
        let length = body.len();
        let head = format!(
            "POST /v1/privatize HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{key}\
             content-length: {length}\r\n\r\n"
        );
        [head.as_bytes(), body.as_bytes()].concat()
    };
    (0..REQUESTS).map(|_| one()).collect()
}

async fn load(
    address: String,
    requests: std::sync::Arc<Vec<Vec<u8>>>,
    first: usize,
    start: Instant,
    end: Instant,
) -> std::io::Result<(Vec<u32>, u64)> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::with_capacity(1 << 16, stream);
    let (mut times, mut failed) = (Vec::new(), 0);
    let (mut line, mut body) = (String::new(), Vec::new());
    for request in requests.iter().cycle().skip(first) {
        let sent = Instant::now();
        if sent >= end {
            break;
        }
        stream.get_mut().write_all(request).await?;
        let (mut length, mut good) = (0, false);
        loop {
            line.clear();
            if stream.read_line(&mut line).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            good |= line.starts_with("HTTP/1.1 200");
            if line == "\r\n" {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        body.resize(length, 0);
        stream.read_exact(&mut body).await?;
        if sent >= start {
            times.push(sent.elapsed().as_micros() as u32);
            failed += u64::from(!good);
        }
    }
    Ok((times, failed))
}

/// Adds the times of the requests that slow answers held back; `mean` is the time of one answer.
fn with_held_back(times: &[u32], mean: u32) -> Vec<u32> {
    let mean = mean.max(1);
    let each = times.iter().flat_map(|&time| {
        let rest = time.saturating_sub(mean);
        let held_back = (0..).map_while(move |n| rest.checked_sub(n * mean).filter(|t| *t > mean));
        std::iter::once(time).chain(held_back)
    });
    each.collect()
}

/// The time within which this share of the answers came, in milliseconds.
fn quantile(sorted: &[u32], q: f64) -> Option<f64> {
    let place = (sorted.len() as f64 * q) as usize;
    let time = sorted.get(place.min(sorted.len().saturating_sub(1)))?;
    Some(f64::from(*time) / 1e3)
}

fn main() -> std::io::Result<()> {
    let flags = Flags::parse();
    let requests = std::sync::Arc::new(requests(&flags));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let start = Instant::now() + Duration::from_secs(1);
        let end = start + Duration::from_secs_f64(flags.seconds);
        let each = (0..flags.connections).map(|i| {
            let first = i * 37 % REQUESTS;
            tokio::spawn(load(
                flags.address.clone(),
                requests.clone(),
                first,
                start,
                end,
            ))
        });
        let (mut times, mut failed, mut broken) = (Vec::new(), 0, 0);
        for task in each.collect::<Vec<_>>() {
            match task.await {
                Ok(Ok((of, wrong))) => {
                    times.extend(of);
                    failed += wrong;
                }
                _ => broken += 1,
            }
        }
        let mean = flags.seconds * 1e6 * flags.connections as f64 / times.len().max(1) as f64;
        let mut all = with_held_back(&times, mean as u32);
        all.sort_unstable();
        println!(
            "{}",
            serde_json::json!({
                "per_second": (times.len() as f64 / flags.seconds).round(),
                "p50_ms": quantile(&all, 0.5), "p99_ms": quantile(&all, 0.99),
                "failed": failed, "broken": broken,
            })
        );
        Ok(())
    })
}
