//! Clients and connections: keys, TLS, Unix sockets, time limits, shutdown.

use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::common::{CHUNKED_LINES, Got, Running, TEA, ended, holds, posted, read, wait, write};

#[test]
fn too_many_at_once_and_too_slow() {
    let flags = "--max-requests 1 --body-time 2 --head-time 1";
    let service = Running::english(&flags.split(' ').collect::<Vec<_>>());
    let body = br#"{"text": "hot tea"}"#;
    let request = posted("/v1/privatize", "", body);
    let slow = service.begin(&request[..request.len() - 3]);
    wait(|| service.metric("fastdx_requests_active") == 1.0);
    wait(|| {
        // The slow request has the only place.
        let got = service.privatize(r#"{"text": "hot tea"}"#);
        got.status == 429 && got.head.contains("retry-after: ")
    });
    assert_eq!(read(&mut BufReader::new(slow)).unwrap().status, 408);
    wait(|| service.privatize(r#"{"text": "hot tea"}"#).status == 200);
    // Refusals are counted by reason.
    assert_eq!(service.metric("fastdx_refused_total{reason=\"slow\"}"), 1.0);
    // A head that never ends is cut off.
    let mut slow = service.begin("POST /v1/privatize HTTP/1.1\r\nhost");
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"));
}

#[test]
fn more_connections_than_the_shell_lets_it_have() {
    let service = Running::after("ulimit -S -n 64", "");
    let idle: Vec<_> = (0..200).map(|_| service.connect()).collect();
    assert_eq!(service.privatize(r#"{"text": "tea"}"#).status, 200);
    drop(idle);
}

#[test]
fn connections_beyond_the_limit_wait() {
    let service = Running::english(&["--max-connections", "1"]);
    let first = service.connect();
    let mut second = service.begin("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
    let soon = Some(Duration::from_millis(300));
    second.set_read_timeout(soon).unwrap();
    assert!(second.read(&mut [0]).is_err());
    drop(first);
    second.set_read_timeout(None).unwrap();
    assert_eq!(read(&mut BufReader::new(second)).unwrap().status, 200);
}

#[test]
fn keys() {
    let folder = tempfile::tempdir().unwrap();
    let two = "# who\nteam-a 0123456789abcdef\nteam-b fedcba9876543210\n";
    let keys = write(&folder.path().join("keys"), two);
    let service = Running::english(&["--keys", &keys]);
    for (status, key) in [
        (401, ""),
        (401, "authorization: Bearer 0123456789abcdeg\r\n"),
        (401, "authorization: Bearer \r\n"),
        (401, "authorization: Basic 0123456789abcdef\r\n"),
        (200, "authorization: Bearer 0123456789abcdef\r\n"),
        (200, "authorization: Bearer fedcba9876543210\r\n"),
    ] {
        let got = service.send(key, br#"{"text": "tea"}"#);
        assert_eq!(got.status, status, "{key}");
    }
    // An account may have two keys; a key has one account.
    let two = "a zqx3456789abcdef\nb zqx3456789abcdef\n";
    for wrong in ["a\n", "a short\n", "", "a 0123456789abcdef zqx\n", two] {
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
        holds(&log, "in use");
    }
    let over_socket = || -> Got {
        let mut stream = UnixStream::connect(&socket[5..]).unwrap();
        stream
            .write_all(&posted("/v1/privatize", "", br#"{"text": "tea"}"#))
            .unwrap();
        read(&mut BufReader::new(stream)).unwrap()
    };
    assert_eq!(over_socket().status, 200);
    // A killed instance leaves its socket; the next takes it over and removes it at exit.
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
    let begin = || service.begin([CHUNKED_LINES, TEA].concat());
    let (mut ends, stays) = (begin(), begin());
    // Both requests have started.
    wait(|| service.metric("fastdx_words_total{policy=\"default\"}") == 2.0);
    service.signal(libc::SIGTERM);
    service.says("ending", 1);
    ends.write_all(b"6\r\n\"hot\"\n\r\n0\r\n\r\n").unwrap();
    let got = read(&mut BufReader::new(ends)).unwrap();
    assert!(got.whole && got.lines().len() == 3, "{got:?}");
    // No new connection is accepted, and a request that never ends is broken off.
    let got = read(&mut BufReader::new(stays)).unwrap();
    assert!(!got.whole && !got.text().contains("done"), "{got:?}");
    assert!(service.child.wait().unwrap().success());
    holds(service.log(), "broken off");
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
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    // A client that would rather speak HTTP/2.
    config.alpn_protocols = vec!["h2".into(), "http/1.1".into()];
    let name = "localhost".to_owned().try_into().unwrap();
    let session = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = rustls::StreamOwned::new(session, service.connect());
    stream
        .write_all(&posted("/v1/privatize", "", br#"{"text": "tea"}"#))
        .unwrap();
    let mut stream = BufReader::new(stream);
    assert_eq!(read(&mut stream).unwrap().status, 200);
    let protocol = stream.get_ref().conn.alpn_protocol();
    assert_eq!(protocol, Some(&b"http/1.1"[..]));
    // Plain HTTP is not answered there.
    let plain = service.raw(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(plain.is_none());
    let swapped = ["--tls-cert", &key, "--tls-key", &certificate];
    let wrong = ended(&[&["--epsilon", "3"], &swapped[..]].concat());
    assert_eq!(wrong.0.code(), Some(2), "{}", wrong.2);
    assert!(!wrong.2.contains("-----"));
}

#[test]
fn a_client_that_reads_nothing_loses_its_connection() {
    let service = Running::english(&["--idle-time", "1"]);
    let text = format!(r#"{{"text": "{}"}}"#, "tea ".repeat(10_000));
    let whole = posted("/v1/privatize", "", text.as_bytes());
    let begin = b"POST /v1/privatize HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-ndjson\r\n\
        content-length: 1000000000\r\n\r\n";
    let lines = "\"tea tea tea tea\"\n".repeat(1000);
    for (begin, more) in [(&b""[..], &whole[..]), (begin, lines.as_bytes())] {
        let mut client = service.begin(begin);
        // It has a place until it loses its connection, and blocks nobody else.
        let mut sent = 0;
        while client.write_all(more).is_ok() {
            sent += 1;
            assert!(sent < 10_000);
        }
        wait(|| service.metric("fastdx_requests_active") == 0.0);
        wait(|| service.metric("fastdx_connections") == 1.0);
    }
    assert_eq!(service.privatize(r#"{"text": "hot tea"}"#).status, 200);
}

#[test]
fn a_stream_that_drips_ends() {
    let service = Running::english(&["--body-time", "1"]);
    let mut stream = service.begin(CHUNKED_LINES);
    let mut answer = stream.try_clone().unwrap();
    let got = std::thread::spawn(move || read(&mut BufReader::new(&mut answer)).unwrap());
    let start = Instant::now();
    // Each line arrives in time.
    while stream.write_all(TEA.as_bytes()).is_ok() && !got.is_finished() {
        assert!(start.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(250));
    }
    let got = got.join().unwrap();
    assert!(!got.whole && got.lines().len() > 2);
    holds(got.text(), "\"slow\"");
    wait(|| service.metric("fastdx_requests_active") == 0.0);
}

#[test]
fn clients_without_keys_have_a_space_each() {
    let service = Running::english(&[]);
    let body = format!(r#"{{"text": "{}"}}"#, "tea ".repeat(20));
    let header = "idempotency-key: 0123456789abcdef\r\n";
    let request = posted("/v1/privatize", header, body.as_bytes());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let from = |address: &str| {
        let socket = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            let place = format!("{address}:0").parse().unwrap();
            socket.bind(place).unwrap();
            let stream = socket.connect(service.address.parse().unwrap()).await;
            stream.unwrap().into_std().unwrap()
        });
        socket.set_nonblocking(false).unwrap();
        let mut stream = socket;
        stream.write_all(&request).unwrap();
        read(&mut BufReader::new(stream)).unwrap()
    };
    let (first, again) = (from("127.0.0.1"), from("127.0.0.1"));
    let other = from("127.0.0.2");
    // 20 words: two draws are equal by chance with a negligible probability.
    assert!(first.status == 200 && first.body == again.body);
    assert!(other.status == 200 && other.body != first.body);
    // A key that others could guess, or two keys.
    let twice = header.repeat(2);
    for wrong in ["idempotency-key: 1\r\n", "idempotency-key: \r\n", &twice] {
        let got = service.send(wrong, body.as_bytes());
        assert_eq!(got.status, 422, "{wrong}");
    }
}

#[test]
fn a_service_that_others_reach_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let keys = write(&folder.path().join("keys"), "a 0123456789abcdef\n");
    let open = ["--epsilon", "3", "--listen", "0.0.0.0:0"];
    let log = Running::start(&open).log();
    assert_eq!(log.matches("WARNING").count(), 1, "{log}");
    holds(&log, "--keys");
    holds(&log, "--tls-cert");
    let log = Running::start(&[&open[..], &["--keys", &keys]].concat()).log();
    holds(&log, "--tls-cert");
    assert!(!log.contains("--keys"), "{log}");
    assert!(!Running::english(&[]).log().contains("other machines"));
}
