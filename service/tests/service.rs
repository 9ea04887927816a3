//! What the service answers: texts, limits, keys, policies, sockets.

#![allow(missing_docs)]

mod common;

use std::collections::HashMap;
use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Got, Running, ended, posted, read, wait, write};
use fastdx::{Embedding, Mechanism, Randomness, Tem};
use serde_json::json;
use statrs::distribution::{ChiSquared, ContinuousCDF};

#[test]
fn texts_come_back_as_they_were_given() {
    let service = Running::english(&[]);
    let got = service.privatize(r#"{"text": "A cup of coffee,\n\tplease!"}"#);
    assert_eq!(got.status, 200);
    let body = got.json();
    assert_eq!(body["text"].as_str().unwrap().matches("\n\t").count(), 1);
    assert_eq!(
        body["counts"],
        json!({"words": 5, "replaced": 5, "unknown": 0, "skipped": 0})
    );
    assert_eq!(body["policy"], "default");
    let body = service
        .privatize(r#"{"text": ["hot coffee", null, ""], "policy": "default"}"#)
        .json();
    assert_eq!(body["text"].as_array().unwrap().len(), 3);
    assert!(body["text"][1].is_null() && body["text"][2] == "" && body.get("spans").is_none());
    let spans = service
        .privatize(r#"{"text": "Grüße, Anna! ☕ tea", "spans": [[7, 11], [15, 18]]}"#)
        .json();
    let text: Vec<char> = spans["text"].as_str().unwrap().chars().collect();
    let at = |i: usize, j: usize| spans["spans"][i][j].as_u64().unwrap() as usize;
    assert_eq!(text[..7], "Grüße, ".chars().collect::<Vec<_>>()[..]);
    assert_eq!(
        text[at(0, 1)..at(1, 0)],
        "! ☕ ".chars().collect::<Vec<_>>()[..]
    );
    assert_eq!((at(0, 0), at(1, 1)), (7, text.len()));
    assert_eq!(spans["counts"]["words"], 2);
}

#[test]
fn what_a_client_must_not_set_is_refused_without_an_echo() {
    let mut service = Running::english(&[]);
    for (status, body) in [
        (400, r#"{"text": "zqxprivate", "epsilon": 9}"#),
        (400, r#"{"text": "zqxprivate", "seed": 1}"#),
        (400, r#"{"text": "zqxprivate", "oov": "keep"}"#),
        (400, r#"{"text": "zqxprivate", "text": "b"}"#),
        (400, r#"{"text": {"zqxprivate": 1}}"#),
        (400, r#"{"text": ["zqxprivate", 3]}"#),
        (400, r#"{"zqxprivate": "a"}"#),
        (400, r#"{"text": "zqxprivate""#),
        (400, r#""zqxprivate""#),
        (400, r#"["zqxprivate"]"#),
        (400, ""),
        (404, r#"{"text": "zqxprivate", "policy": "zqxprivate"}"#),
        (422, r#"{"text": "zqxprivate", "spans": [[0, 99]]}"#),
        (422, r#"{"text": "zqxprivate", "spans": [[3, 2]]}"#),
        (422, r#"{"text": "zqxprivate", "spans": [[3, 5], [4, 6]]}"#),
        (422, r#"{"text": ["zqxprivate"], "spans": [[0, 3]]}"#),
        (400, r#"{"text": "zqxprivate", "spans": [[-1, 3]]}"#),
        (
            422,
            r#"{"text": "zqxprivate", "spans": [[18446744073709551615, 18446744073709551615]]}"#,
        ),
    ] {
        let got = service.privatize(body);
        assert_eq!(got.status, status, "{body}: {}", got.text());
        assert!(!got.text().contains("zqx"), "{}", got.text());
        assert!(got.json()["error"]["message"].is_string());
    }
    assert!(!service.get("/metrics").text().contains("zqx"));
    service.stop();
    assert!(!service.log().contains("zqx"), "{}", service.log());
}

#[test]
fn other_paths() {
    let service = Running::english(&[]);
    assert_eq!(service.get("/healthz").status, 200);
    assert_eq!(service.get("/readyz").status, 200);
    let list = service.get("/v1/policies").json();
    assert_eq!(
        (&list["default"], &list["policies"][0]["epsilon"]),
        (&json!("default"), &json!(3.0))
    );
    let guarantee = service.get("/v1/guarantee/default").json();
    assert!(guarantee["sentence"].as_str().unwrap().contains("ε = 3"));
    assert!(!guarantee["exceptions"].as_array().unwrap().is_empty() && guarantee["void"].is_null());
    assert_eq!(service.get("/v1/guarantee/none").status, 404);
    assert_eq!(service.get("/zqx").status, 404);
    assert_eq!(service.get("/v1/privatize").status, 405);
    // Every path that is described is there, and the other way round.
    let described = service.get("/openapi.json").json();
    for (path, methods) in described["paths"].as_object().unwrap() {
        let path = path.replace("{policy}", "default");
        let got = match methods.get("post") {
            Some(_) => service.post(&path, "", b"{}"),
            None => service.get(&path),
        };
        assert!(
            got.status == 200 || methods.get("post").is_some() && got.status == 400,
            "{path}"
        );
    }
    assert_eq!(described["paths"].as_object().unwrap().len(), 9);
    service.privatize(r#"{"text": "hot coffee"}"#);
    let metrics = service.get("/metrics").text();
    assert!(metrics.contains("fastdx_words_total 2"), "{metrics}");
    assert!(metrics.contains("fastdx_requests_total{route=\"privatize\",status=\"200\"} 1"));
    let page = service.get("/");
    assert!(
        page.head
            .contains("content-security-policy: default-src 'none'"),
        "{}",
        page.head
    );
    assert!(!page.text().contains("http://") && !page.text().contains("https://"));
    assert_eq!(Running::english(&["--no-page"]).get("/").status, 404);
}

#[test]
fn the_law_through_http_is_the_law_in_process() {
    const WORDS: usize = 20_000;
    const REQUESTS: usize = 10;
    let service = Running::english(&[]);
    let embedding = Arc::new(Embedding::default_english().unwrap());
    let tem = Tem::new(embedding, 3.0, Default::default(), Randomness::new(None)).unwrap();
    let out = fastdx::cover::offensive();
    let vocabulary = tem.vocabulary();
    let out: Vec<u32> = out.iter().filter_map(|w| vocabulary.id(w)).collect();
    let tem = tem.excluding(&out).unwrap();
    let law = tem.probabilities(tem.vocabulary().require("coffee").unwrap());
    let mut counts: HashMap<String, f64> = HashMap::new();
    for _ in 0..REQUESTS {
        let text = "coffee ".repeat(WORDS);
        let got = service.privatize(&json!({ "text": text }).to_string());
        let body = got.json();
        for word in body["text"].as_str().unwrap().split_whitespace() {
            *counts.entry(word.to_owned()).or_default() += 1.0;
        }
    }
    let draws = (WORDS * REQUESTS) as f64;
    assert_eq!(counts.values().sum::<f64>(), draws);
    // Words with few draws expected are put together, in order, until enough are.
    let (mut statistic, mut bins) = (0.0, 0);
    let (mut expected, mut seen) = (0.0, 0.0);
    for (id, p) in law.iter().enumerate() {
        expected += p * draws;
        seen += counts
            .get(tem.vocabulary().word(id as u32))
            .copied()
            .unwrap_or_default();
        if expected >= 20.0 {
            statistic += (seen - expected).powi(2) / expected;
            bins += 1;
            (expected, seen) = (0.0, 0.0);
        }
    }
    assert!(bins > 500);
    let p = ChiSquared::new(f64::from(bins - 1)).unwrap().sf(statistic);
    assert!(p > 1e-7, "chi-square {statistic} of {bins} bins, p = {p}");
}

#[test]
fn limits() {
    let service = Running::english(&[
        "--max-body",
        "1000",
        "--max-texts",
        "3",
        "--max-words",
        "20",
    ]);
    assert_eq!(
        service
            .privatize(&json!({"text": "a".repeat(2000)}).to_string())
            .status,
        413
    );
    assert_eq!(
        service
            .privatize(r#"{"text": ["a", "b", "c", "d"]}"#)
            .status,
        413
    );
    assert_eq!(
        service
            .privatize(&json!({"text": "tea ".repeat(21)}).to_string())
            .status,
        413
    );
    assert_eq!(
        service
            .privatize(&json!({"text": "tea ".repeat(20)}).to_string())
            .status,
        200
    );
    // Chunks tell no length beforehand.
    let mut chunked =
        b"POST /v1/privatize HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..20 {
        chunked.extend(format!("64\r\n{}\r\n", "x".repeat(100)).as_bytes());
    }
    chunked.extend(b"0\r\n\r\n");
    assert_eq!(service.raw(&chunked).unwrap().status, 413);
    let metrics = service.get("/metrics").text();
    assert!(
        metrics.contains("fastdx_refused_total{reason=\"size\"} 4"),
        "{metrics}"
    );
}

#[test]
fn too_many_at_once_and_too_slow() {
    let service = Running::english(&[
        "--max-requests",
        "1",
        "--body-time",
        "4",
        "--head-time",
        "1",
    ]);
    let body = br#"{"text": "hot tea"}"#;
    let request = posted("/v1/privatize", "", body);
    let mut slow = service.connect();
    slow.write_all(&request[..request.len() - 3]).unwrap();
    wait(|| {
        service
            .get("/metrics")
            .text()
            .contains("fastdx_requests_active 1")
    });
    wait(|| {
        // The slow one has the only place.
        let got = service.privatize(r#"{"text": "hot tea"}"#);
        got.status == 429 && got.head.contains("retry-after: ")
    });
    assert_eq!(read(&mut BufReader::new(slow)).unwrap().status, 408);
    wait(|| service.privatize(r#"{"text": "hot tea"}"#).status == 200);
    // What was refused is counted by why.
    let metrics = service.get("/metrics").text();
    assert!(
        metrics.contains("fastdx_refused_total{reason=\"slow\"} 1"),
        "{metrics}"
    );
    // A head that never ends: cut off.
    let mut slow = service.connect();
    slow.write_all(b"POST /v1/privatize HTTP/1.1\r\nhost")
        .unwrap();
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"));
}

#[test]
fn keys() {
    let folder = tempfile::tempdir().unwrap();
    let keys = write(
        &folder.path().join("keys"),
        "# who\nteam-a 0123456789abcdef\nteam-b fedcba9876543210\n",
    );
    let service = Running::english(&["--keys", &keys]);
    let with = |header: &str| {
        service
            .post("/v1/privatize", header, br#"{"text": "tea"}"#)
            .status
    };
    assert_eq!(with(""), 401);
    assert_eq!(with("authorization: Bearer 0123456789abcdeg\r\n"), 401);
    assert_eq!(with("authorization: Bearer \r\n"), 401);
    assert_eq!(with("authorization: Basic 0123456789abcdef\r\n"), 401);
    assert_eq!(with("authorization: Bearer 0123456789abcdef\r\n"), 200);
    assert_eq!(with("authorization: Bearer fedcba9876543210\r\n"), 200);
    for wrong in ["a\n", "a short\n", "", "a 0123456789abcdef zqx\n"] {
        let keys = write(&folder.path().join("wrong"), wrong);
        let (status, _, log) =
            ended(&["--epsilon", "3", "--keys", &keys, "--listen", "127.0.0.1:0"]);
        assert_eq!(status.code(), Some(2));
        assert!(!log.contains("zqx") && !log.contains("short"), "{log}");
    }
}

const POLICIES: &str = r#"
default = "reviews"
[policies.reviews]
epsilon = 3.0
[policies.strict]
epsilon = 1.0
exclude = ["coffee"]
consistent = true
oov = "mask"
[policies.noise]
mechanism = "laplace"
epsilon = 6.0
[policies.slots]
epsilon = 3.0
spans_only = true
[policies.padded]
epsilon = 3.0
pad = 0.05
"#;

#[test]
fn policies() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder.path().join("policies.toml"), POLICIES);
    let (status, out, _) = ended(&["--config", &file, "--check"]);
    assert!(status.success() && out.lines().count() == 5, "{out}");
    assert!(
        out.contains("strict: Tem protects") && out.contains("ε = 1 per unit"),
        "{out}"
    );
    assert!(out.contains("slots: ") && out.contains("RELEASED AS IT IS"));
    let service = Running::start(&["--config", &file]);
    let of = |policy: &str, text: &str| {
        service.privatize(&json!({"text": text, "policy": policy}).to_string())
    };
    let strict = of("strict", "qwxyz tea tea tea").json();
    let words: Vec<&str> = strict["text"].as_str().unwrap().split(' ').collect();
    assert!(
        words[0] == "[MASK]" && words[1] == words[2] && words[2] == words[3],
        "{strict}"
    );
    assert_eq!(of("noise", "hot tea").json()["counts"]["replaced"], 2);
    assert_eq!(of("padded", "hot tea").status, 200);
    assert_eq!(of("slots", "hot tea").status, 422);
    let slots = service.privatize(r#"{"text": "hot tea", "policy": "slots", "spans": [[4, 7]]}"#);
    assert!(slots.json()["text"].as_str().unwrap().starts_with("hot "));
    let shown = |policy: &str| {
        service
            .post(
                "/v1/law",
                "",
                json!({"text": "tea", "policy": policy})
                    .to_string()
                    .as_bytes(),
            )
            .status
    };
    assert_eq!(
        (
            shown("reviews"),
            shown("strict"),
            shown("padded"),
            shown("noise")
        ),
        (200, 404, 404, 404)
    );
}

#[test]
fn files_of_policies_that_are_wrong() {
    let folder = tempfile::tempdir().unwrap();
    for (text, said) in [
        (
            "[policies.a]\nepsilon = -1.0\n",
            "policies.a: epsilon must be",
        ),
        (
            "[policies.a]\nepsilon = 1.0\nsede = 3\n",
            "line 3: unknown field `sede`",
        ),
        ("[policies.a]\n", "line 1: missing field `epsilon`"),
        (
            "default = \"b\"\n[policies.a]\nepsilon = 1.0\n",
            "default must be",
        ),
        ("[policies]\n", "policies must hold"),
        ("[policies.\"a b\"]\nepsilon = 1.0\n", "must be named by"),
        ("[policies.a]\nepsilon = 1.0\npad = 1e9\n", "pad must be"),
        ("[policies.a]\nepsilon = 1.0\noov = \"x\"\n", "oov must be"),
        (
            "[policies.a]\nepsilon = 1.0\nconsistent = \"x\"\n",
            "consistent must be",
        ),
        (
            "[policies.a]\nepsilon = 1.0\nindex = \"none.index\"\n",
            "none.index",
        ),
        (
            "[policies.a]\nepsilon = 1.0\nbeta = 0.1\ngamma = 1.0\n",
            "gamma and beta",
        ),
        (
            "[policies.a]\nmechanism = \"laplace\"\nepsilon = 1.0\ncover = 40\n",
            "cover goes with",
        ),
        ("nonsense", "line 1"),
    ] {
        let file = write(&folder.path().join("policies.toml"), text);
        let (status, out, log) = ended(&["--config", &file, "--check"]);
        assert_eq!((status.code(), &*out), (Some(2), ""), "{text}");
        assert!(log.contains(said), "{text}: {log}");
    }
}

#[test]
fn reload_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policies.toml");
    let of = |epsilon: f64| format!("[policies.a]\nepsilon = {epsilon:?}\n");
    let file = write(&path, &of(3.0));
    let service = Running::start(&["--config", &file]);
    let epsilon = || {
        service.get("/v1/guarantee/a").json()["epsilon"]
            .as_f64()
            .unwrap()
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let busy: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut answers = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let got = service.privatize(r#"{"text": "a cup of hot tea"}"#);
                        assert_eq!((got.status, got.whole), (200, true));
                        answers += 1;
                    }
                    answers
                })
            })
            .collect();
        for round in 1..=5 {
            write(&path, &of(3.0 + f64::from(round)));
            service.signal(libc::SIGHUP);
            service.says("read again", round as usize);
            assert_eq!(epsilon(), 3.0 + f64::from(round));
            write(&path, "[policies.a]\nepsilon = 0.0\n");
            service.signal(libc::SIGHUP);
            service.says("the old policies stay", round as usize);
            assert_eq!(epsilon(), 3.0 + f64::from(round));
        }
        stop.store(true, Ordering::Relaxed);
        for thread in busy {
            assert!(thread.join().unwrap() > 0);
        }
    });
    assert!(
        service
            .get("/metrics")
            .text()
            .contains("fastdx_reloads_refused_total 5")
    );
}

#[test]
fn a_second_instance_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}", folder.path().join("socket").display());
    let mut service = Running::english(&["--listen", &socket]);
    for taken in [&service.address, &socket] {
        let (status, _, log) = ended(&["--epsilon", "3", "--listen", taken]);
        assert_eq!(status.code(), Some(2), "{log}");
        assert!(log.contains("in use"), "{log}");
    }
    let over_socket = || -> Got {
        let mut stream = UnixStream::connect(&socket[5..]).unwrap();
        stream
            .write_all(&posted("/v1/privatize", "", br#"{"text": "tea"}"#))
            .unwrap();
        read(&mut BufReader::new(stream)).unwrap()
    };
    assert_eq!(over_socket().status, 200);
    // A killed one leaves its socket; the next takes it over, and removes it at its end.
    service.signal(libc::SIGKILL);
    service.child.wait().unwrap();
    let mut next = Running::english(&["--listen", &socket]);
    assert_eq!(over_socket().status, 200);
    assert!(next.stop().success());
    assert!(!folder.path().join("socket").exists());
}

#[test]
fn lines() {
    let service = Running::english(&["--max-body", "2000"]);
    let kind = "content-type: application/x-ndjson\r\n";
    let post = |path: &str, body: &str| service.post(path, kind, body.as_bytes());
    let many: String = (0..1000).map(|i| format!("\"hot tea {i}\"\n")).collect();
    let got = post(
        "/v1/privatize",
        &format!("null\n\n{many}{{\"text\": \"my Anna\", \"spans\": [[3, 7]]}}"),
    );
    assert!(got.status == 200 && got.whole);
    let lines: Vec<serde_json::Value> = got
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 1003);
    assert!(lines[0]["text"].is_null() && lines[1]["text"].is_string());
    assert_eq!(lines[1001]["spans"][0][0], 3);
    assert_eq!(
        (&lines[1002]["done"], &lines[1002]["lines"]),
        (&json!(true), &json!(1002))
    );
    assert_eq!(lines[1002]["counts"]["words"], 3001);
    assert_eq!(post("/v1/privatize?policy=default", "null\n").status, 200);
    assert_eq!(post("/v1/privatize?policy=zqx", "null\n").status, 404);
    // What is wrong ends the answer, and shows that it is not whole.
    for wrong in [
        "{\"txt\": \"zqx\"}\n",
        "zqx\n",
        "[\"zqx\"]\n",
        &format!("\"{}\"\n", "zqx ".repeat(1000)),
    ] {
        let got = post("/v1/privatize", &format!("\"tea\"\n{wrong}\"tea\"\n"));
        let text = got.text();
        let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let message = last["error"]["message"].as_str();
        assert!(
            message.is_some_and(|m| m.contains("line 2")),
            "{wrong:.20} {got:?}"
        );
        assert!(!got.whole && !text.contains("zqx"));
    }
}

#[test]
fn ending_in_the_middle_of_a_stream() {
    let mut service = Running::english(&[]);
    let begin = || {
        let mut stream = service.connect();
        stream
            .write_all(
                b"POST /v1/privatize HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-ndjson\r\n\
                  transfer-encoding: chunked\r\n\r\n6\r\n\"tea\"\n\r\n",
            )
            .unwrap();
        stream
    };
    let (mut ends, stays) = (begin(), begin());
    // Both have been taken up.
    wait(|| {
        service
            .get("/metrics")
            .text()
            .contains("fastdx_words_total 2")
    });
    service.signal(libc::SIGTERM);
    service.says("ending", 1);
    ends.write_all(b"6\r\n\"hot\"\n\r\n0\r\n\r\n").unwrap();
    let got = read(&mut BufReader::new(ends)).unwrap();
    assert!(
        got.whole && got.text().lines().count() == 3,
        "{}",
        got.text()
    );
    // No new connection is taken, and one that never ends is broken off.
    let got = read(&mut BufReader::new(stays)).unwrap();
    assert!(!got.whole && !got.text().contains("done"), "{}", got.text());
    assert!(service.child.wait().unwrap().success());
    assert!(service.log().contains("broken off"), "{}", service.log());
}

#[test]
fn tls() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = write(&folder.path().join("cert.pem"), &made.cert.pem());
    let key = write(
        &folder.path().join("key.pem"),
        &made.signing_key.serialize_pem(),
    );
    let service = Running::english(&["--tls-cert", &certificate, "--tls-key", &key]);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    for protocol in ["http/1.1", "h2"] {
        let mut config = rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.into()];
        let name = "localhost".to_owned().try_into().unwrap();
        let session = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = rustls::StreamOwned::new(session, service.connect());
        if protocol == "http/1.1" {
            stream
                .write_all(&posted("/v1/privatize", "", br#"{"text": "tea"}"#))
                .unwrap();
            assert_eq!(read(&mut BufReader::new(stream)).unwrap().status, 200);
        } else {
            stream
                .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
                .unwrap();
            let mut frame = [0; 9];
            stream.read_exact(&mut frame).unwrap();
            // SETTINGS.
            assert_eq!(
                (frame[3], stream.conn.alpn_protocol()),
                (4, Some(&b"h2"[..]))
            );
        }
    }
    // Plain HTTP is not answered there.
    assert!(
        service
            .raw(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            .is_none()
    );
    let wrong = ended(&[
        "--epsilon",
        "3",
        "--tls-cert",
        &key,
        "--tls-key",
        &certificate,
    ]);
    assert_eq!(wrong.0.code(), Some(2), "{}", wrong.2);
    assert!(!wrong.2.contains("-----"));
}
