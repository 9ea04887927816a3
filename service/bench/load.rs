//! `fastdx-load`: closed-loop load on a service, and what it took.
//!
//! Each connection sends a request, waits for the answer, sends the next. One line of JSON comes out:
//! answers a second, times in milliseconds, and how many were no 200.

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
    /// Connections beside them that send nothing
    #[arg(long, default_value_t = 0)]
    idle: usize,
    /// Texts of a request
    #[arg(long, default_value_t = 1)]
    texts: usize,
    /// Words of a text
    #[arg(long, default_value_t = 10)]
    words: usize,
    /// Commonest words that texts are made of
    #[arg(long, default_value_t = 3000)]
    vocabulary: usize,
    /// Seconds, after a second of warming up
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Threads
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Authorization: Bearer …
    #[arg(long)]
    key: Option<String>,
}

/// Requests that are sent in turn.
const REQUESTS: usize = 500;

/// Words as they are written: common ones are common (Zipf's law, by rank).
fn requests(flags: &Flags) -> Vec<Vec<u8>> {
    let english = fastdx::Embedding::default_english().expect("the built-in vocabulary");
    let vocabulary = english.vocabulary();
    let mut rng = ChaCha12Rng::seed_from_u64(1);
    let most = (vocabulary.len().min(flags.vocabulary) as f64).ln();
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

fn main() -> std::io::Result<()> {
    let flags = Flags::parse();
    let requests = std::sync::Arc::new(requests(&flags));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(flags.threads)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut idle = Vec::new();
        for _ in 0..flags.idle {
            idle.push(TcpStream::connect(&flags.address).await?);
        }
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
        times.sort_unstable();
        let at = |q: f64| {
            let place = (times.len() as f64 * q) as usize;
            times
                .get(place.min(times.len().saturating_sub(1)))
                .map(|t| f64::from(*t) / 1e3)
        };
        println!(
            "{}",
            serde_json::json!({
                "per_second": (times.len() as f64 / flags.seconds).round(),
                "p50_ms": at(0.5), "p99_ms": at(0.99), "p999_ms": at(0.999),
                "failed": failed, "broken": broken,
            })
        );
        Ok(())
    })
}
