//! Malformed requests, and clients that break off.

use super::common::{Running, posted};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

/// Part of every request; no output of the service may contain it.
const PRIVATE: &str = "zqxprivate";

fn body(rng: &mut ChaCha12Rng) -> Vec<u8> {
    let good =
        format!(r#"{{"text": ["{PRIVATE} tea", null, "a {PRIVATE}"], "policy": "default"}}"#);
    let mut bytes = good.into_bytes();
    match rng.random_range(0..8) {
        0 => bytes.truncate(rng.random_range(0..bytes.len())),
        1 => {
            let deep = rng.random_range(1..20_000);
            let (open, close) = ("[".repeat(deep), "]".repeat(deep));
            bytes = format!("{{\"text\": {open}{PRIVATE}{close}}}").into_bytes();
        }
        2 => {
            let at = rng.random_range(10..bytes.len());
            bytes.insert(at, [0xff, 0xc0, 0x00, 0x80][rng.random_range(0..4)]);
        }
        3 => {
            let digits = "9".repeat(rng.random_range(1..400));
            bytes = format!(r#"{{"text": "{PRIVATE}", "spans": [[0, {digits}]], "unit": "byte"}}"#)
                .into_bytes();
        }
        4 => bytes = format!(r#"{{"text": {}, "policy": "{PRIVATE}"}}"#, "1e999").into_bytes(),
        5 => bytes = format!(r#"{{"text": "\ud800{PRIVATE}"}}"#).into_bytes(),
        6 => {
            let at = rng.random_range(0..bytes.len());
            bytes[at] = rng.random();
            bytes.push(b'}');
        }
        _ => {
            bytes = (0..rng.random_range(0..200))
                .map(|_| rng.random())
                .collect()
        }
    }
    bytes
}

fn request(rng: &mut ChaCha12Rng) -> Vec<u8> {
    let body = body(rng);
    let n = body.len();
    let head =
        |lines: &str| format!("POST /v1/privatize HTTP/1.1\r\nhost: x\r\n{lines}\r\n").into_bytes();
    let with = |lines: String| [head(&lines), body.clone()].concat();
    match rng.random_range(0..14) {
        0 => with(format!("content-length: {n}\r\ncontent-length: {n}7\r\n")),
        1 => with(format!(
            "content-length: {n}\r\ntransfer-encoding: chunked\r\n"
        )),
        2 => with("transfer-encoding: chunked, identity\r\n".into()),
        3 => with("content-length: -1\r\n".into()),
        4 => with("content-length: 99999999999999999999999\r\n".into()),
        5 => with(format!("content-length: +{n}\r\n")),
        6 => {
            let flood: String = (0..rng.random_range(65..2000))
                .map(|i| format!("x-{i}: {PRIVATE}\r\n"))
                .collect();
            with(format!("{flood}content-length: {n}\r\n"))
        }
        7 => {
            let long = PRIVATE.repeat(10_000);
            with(format!("x: {long}\r\ncontent-length: {n}\r\n"))
        }
        8 => with(format!("x {PRIVATE}\r\ncontent-length: {n}\r\n")),
        9 => [
            b"transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
            &body[..],
        ]
        .concat(),
        10 => {
            let mut bytes = posted("/v1/privatize", "", &body);
            bytes.truncate(rng.random_range(1..bytes.len()));
            bytes
        }
        11 => format!("GET /v1/guarantee/{PRIVATE}?{PRIVATE} HTTP/1.1\r\nhost: x\r\n\r\n").into(),
        12 => posted(
            "/v1/privatize",
            "content-type: application/x-ndjson\r\n",
            &body,
        ),
        _ => posted("/v1/privatize", "", &body),
    }
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
