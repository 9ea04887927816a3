//! Who may ask, on which sockets, how long: keys, TLS, Unix sockets, time limits, ending.

#![allow(missing_docs)]

mod common;

use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use common::{Got, Running, ended, posted, read, wait, write};

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
fn more_connections_than_the_shell_lets_it_have() {
    use std::os::unix::process::CommandExt;
    let mut command = common::command(&["--epsilon", "3", "--listen", "127.0.0.1:0"]);
    let few = |limit: u64| {
        let mut found = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: plain system calls on a value of ours.
        unsafe {
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut found);
            found.rlim_cur = limit;
            libc::setrlimit(libc::RLIMIT_NOFILE, &found);
        }
    };
    // SAFETY: the child makes system calls alone before it runs the program.
    unsafe {
        command.pre_exec(move || {
            few(64);
            Ok(())
        });
    }
    let service = Running::of(command);
    let idle: Vec<_> = (0..200).map(|_| service.connect()).collect();
    assert_eq!(service.privatize(r#"{"text": "tea"}"#).status, 200);
    drop(idle);
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
