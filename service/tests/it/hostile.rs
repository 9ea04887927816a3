//! Malformed requests, and clients that break off.

use super::common::{Running, posted};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

/// Part of every request; no output of the service may contain it.
const PRIVATE: &str = "zqxprivate";

fn body(rng: &mut ChaCha12Rng) -> Vec<u8> {
    let good =
        format!(r#"{{"text": ["{PRIVATE} tea", null, "a {PRIVATE}"], "policy": "default"}}"#);
    let deep = rng.random_range(1..20_000);
    let (open, close) = ("[".repeat(deep), "]".repeat(deep));
    let digits = "9".repeat(rng.random_range(1..400));
    let noise: Vec<u8> = (0..rng.random_range(0..200))
        .map(|_| rng.random())
        .collect();
    let at = rng.random_range(10..good.len());
    let mut bytes = good.into_bytes();
    let byte = [0xff, 0xc0, 0x00, 0x80, rng.random()][rng.random_range(0..5)];
    match rng.random_range(0..8) {
        0 => bytes.truncate(at),
        1 => bytes.insert(at, byte),
        2 => {
            bytes[at] = byte;
            bytes.push(b'}');
        }
        3 => bytes = format!(r#"{{"text": {open}{PRIVATE}{close}}}"#).into(),
        4 => {
            let spans = format!(r#""spans": [[0, {digits}]], "unit": "byte""#);
            bytes = format!(r#"{{"text": "{PRIVATE}", {spans}}}"#).into();
        }
        5 => bytes = format!(r#"{{"text": 1e999, "policy": "{PRIVATE}"}}"#).into(),
        6 => bytes = format!(r#"{{"text": "\ud800{PRIVATE}"}}"#).into(),
        _ => bytes = noise,
    }
    bytes
}

fn request(rng: &mut ChaCha12Rng) -> Vec<u8> {
    let body = body(rng);
    let n = body.len();
    let flood: String = (0..rng.random_range(65..2000))
        .map(|i| format!("x-{i}: {PRIVATE}\r\n"))
        .collect();
    let wrong = [
        format!("content-length: {n}\r\ncontent-length: {n}7\r\n"),
        format!("content-length: {n}\r\ntransfer-encoding: chunked\r\n"),
        "transfer-encoding: chunked, identity\r\n".into(),
        "transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n".into(),
        "content-length: -1\r\n".into(),
        "content-length: 99999999999999999999999\r\n".into(),
        format!("content-length: +{n}\r\n"),
        format!("{flood}content-length: {n}\r\n"),
        format!("x: {}\r\ncontent-length: {n}\r\n", PRIVATE.repeat(10_000)),
        format!("x {PRIVATE}\r\ncontent-length: {n}\r\n"),
    ];
    let lines = "content-type: application/x-ndjson\r\n";
    let mut bytes = posted("/v1/privatize", "", &body);
    match rng.random_range(0..14) {
        0 => bytes.truncate(rng.random_range(1..bytes.len())),
        1 => bytes = posted("/v1/privatize", lines, &body),
        2 => {
            let path = format!("/v1/guarantee/{PRIVATE}?{PRIVATE}");
            bytes = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").into();
        }
        3 => drop(bytes.drain(..rng.random_range(0..9))),
        at => {
            let head = format!(
                "POST /v1/privatize HTTP/1.1\r\nhost: x\r\n{}\r\n",
                wrong[at - 4]
            );
            bytes = [head.as_bytes(), &body].concat();
        }
    }
    bytes
}

#[test]
fn thousands_of_malformed_requests() {
    let mut service = Running::english(&["--max-body", "65536", "--max-connections", "64"]);
    let (mut refused, mut closed) = (0, 0);
    for seed in 0..4000 {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let bytes = request(&mut rng);
        match service.cut(&bytes) {
            None => closed += 1,
            Some(got) => {
                // A request with a changed byte may still be valid.
                assert!(got.status < 500, "seed {seed}: {}", got.status);
                assert!(!got.text().contains(PRIVATE), "seed {seed}");
                assert!(!got.head.contains(PRIVATE), "seed {seed}");
                refused += i32::from(got.status >= 400);
            }
        }
    }
    assert!(
        refused > 1000 && closed > 100,
        "{refused} refused, {closed} closed"
    );
    let metrics = service.get("/metrics").text();
    assert!(
        metrics.contains("fastdx_panics_total 0") && !metrics.contains(PRIVATE),
        "{metrics}"
    );
    assert_eq!(service.privatize(r#"{"text": "hot tea"}"#).status, 200);
    assert!(service.stop().success());
    assert!(
        !service.log().contains("zqx") && !service.log().contains("panic"),
        "{}",
        service.log()
    );
}
