//! Charges: made before every draw, on disk, and never too high.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use super::common::{self, Got, Running, ended, holds, posted, read, write};
use rusqlite::Connection;
use serde_json::json;

struct Place {
    folder: tempfile::TempDir,
    keys: String,
    ledger: String,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let keys = write(&at("keys"), "a aaaaaaaaaaaaaaaa\nb bbbbbbbbbbbbbbbb\n");
        let ledger = at("ledger.sqlite").to_str().unwrap().to_owned();
        Place {
            folder,
            keys,
            ledger,
        }
    }

    fn start(&self, budget: &str, more: &[&str]) -> Running {
        let own = ["--keys", &self.keys, "--budget", budget];
        self.english(&[&own[..], more].concat())
    }

    fn english(&self, more: &[&str]) -> Running {
        Running::english(&[&["--ledger", &self.ledger], more].concat())
    }

    fn spent(&self, account: &str) -> f64 {
        let db = Connection::open(&self.ledger).unwrap();
        let sum = "SELECT TOTAL(amount) FROM charges WHERE account = ?";
        db.query_row(sum, [account], |row| row.get(0)).unwrap()
    }
}

const A: &str = "authorization: Bearer aaaaaaaaaaaaaaaa\r\n";
const B: &str = "authorization: Bearer bbbbbbbbbbbbbbbb\r\n";
const TWO: &[u8] = br#"{"text": "hot tea"}"#;

#[test]
fn lists_of_words_are_charged_by_the_word() {
    let place = Place::new();
    let service = place.start("20", &[]);
    let ask = |body: &str| service.send(A, body.as_bytes()).status;
    // Known words, unknown words, and tokens that a text would not count as words.
    assert_eq!(ask(r#"{"tokens": ["tea", "New York", "!?", ""]}"#), 200);
    assert_eq!(place.spent("a"), 12.0);
    assert_eq!(ask(r#"{"tokens": []}"#), 200);
    assert_eq!(ask(r#"{"tokens": ["tea", "tea", "tea"]}"#), 429);
    assert_eq!(place.spent("a"), 12.0);
}

#[test]
fn numbers_and_dates_are_charged_by_their_own_laws() {
    let place = Place::new();
    let policy = "[policies.a]\nepsilon = 3.0\nnumbers = { epsilon = 10.0, low = 0.0 }\n\
                  dates = { epsilon = 0.2, order = \"dmy\" }\n";
    let more = ["--keys", &place.keys, "--ledger", &place.ledger];
    let service = Running::with(policy, &[&more[..], &["--budget", "60"]].concat());
    let ask = |text: &str| service.send(A, json!({ "text": text }).to_string().as_bytes());
    // Other texts: test_a_ledger_charges_each_by_its_own_law in tests/python/texts/test_numbers.py.
    assert_eq!(ask("coffee for €12 on 3 May 2026").status, 200);
    assert!((place.spent("a") - 19.2).abs() < 1e-9);
    let db = Connection::open(&place.ledger).unwrap();
    let note: String = db
        .query_row("SELECT note FROM charges", [], |row| row.get(0))
        .unwrap();
    let wanted = "3 words at ε = 3, 1 numbers at ε = 10, 1 dates at ε = 0.2";
    assert_eq!(note, wanted);
    assert_eq!(ask("€1, €2, €3, €4 and €5").status, 429);
}

#[test]
fn a_budget_is_spent_and_no_more() {
    let place = Place::new();
    let service = place.start("20", &[]);
    for after in [6.0, 12.0, 18.0] {
        assert_eq!(service.send(A, TWO).status, 200);
        assert_eq!(place.spent("a"), after);
    }
    let got = service.send(A, TWO);
    assert!(got.status == 429 && got.json()["error"]["left"] == 2.0);
    assert!(got.head.contains("retry-after: "));
    assert_eq!(service.send(B, TWO).status, 200);
    assert_eq!((place.spent("a"), place.spent("b")), (18.0, 6.0));
    // Requests that no budget can pay for.
    for (status, body) in [
        (422, r#"{"text": "!?"}"#),
        (
            422,
            r#"{"text": "hot tea", "spans": [[0, 3]], "unit": "byte"}"#,
        ),
        (200, r#"{"text": [null, ""]}"#),
    ] {
        assert_eq!(service.send(B, body.as_bytes()).status, status, "{body}");
    }
    assert_eq!(place.spent("b"), 6.0);
    // Charges by another process on the same file count too.
    let db = Connection::open(&place.ledger).unwrap();
    db.execute(
        "INSERT INTO charges (account, amount, note, time) VALUES ('b', 9, '', 0)",
        [],
    )
    .unwrap();
    let got = service.send(B, TWO);
    assert!(got.status == 429 && got.json()["error"]["left"] == 5.0);
    // Lines are charged as they arrive; the answer breaks off when the budget is spent.
    drop(service);
    let place = Place::new();
    let service = place.start("20", &[]);
    let got = service.lines(A, &"\"hot tea and more words\"\n".repeat(600));
    assert!(!got.whole);
    holds(got.text(), "\"budget\"");
    assert_eq!(place.spent("a"), 0.0);
    drop(place.folder);
}

#[test]
fn the_account_of_a_proxy() {
    let place = Place::new();
    let service = place.english(&["--budget", "20", "--account-header", "x-account"]);
    for (status, headers) in [
        (400, ""),
        (400, "x-account: u\r\nx-account: v\r\n"),
        (200, "x-account: u\r\n"),
    ] {
        assert_eq!(service.send(headers, TWO).status, status, "{headers}");
    }
    assert_eq!(place.spent("u"), 6.0);
}

#[test]
fn ledgers_that_are_refused() {
    let place = Place::new();
    let try_to = |more: &[&str]| {
        let own = ["--listen", "127.0.0.1:0", "--ledger", &place.ledger];
        let (status, _, log) = ended(&[&own[..], more].concat());
        assert_eq!(status.code(), Some(2), "{log}");
        log
    };
    assert!(try_to(&["--epsilon", "3", "--budget", "9"]).contains("needs --keys"));
    drop(place.start("20", &[]));
    let keys = ["--keys", &place.keys];
    let raised = try_to(&[&keys[..], &["--epsilon", "3", "--budget", "21"]].concat());
    holds(&raised, "at most the file's, 20");
    let config = write(
        &place.folder.path().join("p.toml"),
        "[policies.a]\nepsilon = 3.0\noov = \"keep\"\n",
    );
    let kept = try_to(&[&keys[..], &["--config", &config, "--budget", "9"]].concat());
    holds(&kept, "policies.a: with a ledger");
}

#[test]
fn one_draw_and_one_charge_for_a_request_that_comes_again() {
    let place = Place::new();
    let service = place.start("1000", &[]);
    let header = format!("{A}idempotency-key: 1234567890123456\r\n");
    let text = json!({"text": "tea ".repeat(20)}).to_string();
    let all = std::thread::scope(|scope| {
        let ask = || service.send(&header, text.as_bytes());
        [(); 8]
            .map(|()| scope.spawn(ask))
            .map(|thread| thread.join().unwrap())
    });
    // 20 words: two draws are equal by chance with a negligible probability.
    let same = |got: &Got| got.status == 200 && got.body == all[0].body;
    assert!(all.iter().all(same));
    assert_eq!(place.spent("a"), 60.0);
    assert_eq!(service.send(&header, TWO).status, 409);
    // Another account's request under this key is another request.
    let others = format!("{B}idempotency-key: 1234567890123456\r\n");
    let other = service.send(&others, text.as_bytes());
    assert!(other.status == 200 && other.body != all[0].body);
    // Refusals are not kept.
    let header = format!("{A}idempotency-key: 2234567890123456\r\n");
    let much = json!({"text": "tea ".repeat(2000)}).to_string();
    assert_eq!(service.send(&header, much.as_bytes()).status, 429);
    assert_eq!(service.send(&header, TWO).status, 200);
    // Without memory there is no promise.
    let small = Running::english(&["--answers-bytes", "2000"]);
    let key = |i| format!("idempotency-key: 123456789012345{i}\r\n");
    let ask = |i| small.send(&key(i), TWO).status;
    let asked: Vec<u16> = (0..10).map(ask).collect();
    assert!(asked[0] == 200 && asked[9] == 429, "{asked:?}");
    assert_eq!(ask(0), 200);
}

#[test]
fn killed_under_load_never_a_release_without_its_charge() {
    let place = Place::new();
    let released = AtomicU64::new(0);
    for round in 0..5 {
        let mut service = place.start("100000000", &[]);
        let address = service.address.clone();
        let begun = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let stream = std::net::TcpStream::connect(&address).unwrap();
                    let mut write = stream.try_clone().unwrap();
                    let mut answers = std::io::BufReader::new(stream);
                    let request = posted("/v1/privatize", A, TWO);
                    while write.write_all(&request).is_ok()
                        && let Some(got) = read(&mut answers)
                    {
                        assert_eq!(got.status, 200);
                        // Count every answer of which any byte arrived: it was released.
                        released.fetch_add(2, Ordering::Relaxed);
                        begun.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            common::wait(|| begun.load(Ordering::Relaxed) > 300 + 150 * round);
            service.child.kill().unwrap();
            service.child.wait().unwrap();
        });
        let paid = place.spent("a");
        let words = released.load(Ordering::Relaxed) as f64;
        // At most one charge per connection was never answered.
        let unanswered = f64::from(16 * 6 * (round as u32 + 1));
        let charged = 3.0 * words..=3.0 * words + unanswered;
        assert!(
            charged.contains(&paid),
            "{words} words were released, {paid} was charged"
        );
    }
}

#[test]
fn a_full_disk_releases_nothing() {
    let place = Place::new();
    drop(place.start("1000000", &[]));
    // No file may grow beyond 64 blocks of 1024 bytes: later writes fail, as on a full disk.
    let (keys, ledger) = (&place.keys, &place.ledger);
    let flags = format!("--keys {keys} --ledger {ledger} --budget 1000000");
    let service = Running::after("trap '' XFSZ; ulimit -f 64", &flags);
    let mut released = 0.0;
    let mut failed = 0;
    for _ in 0..200 {
        let got = service.send(A, TWO);
        match got.status {
            200 => released += 6.0,
            503 => failed += 1,
            other => panic!("{other}: {}", got.text()),
        }
        assert!(got.status == 200 || !got.text().contains("tea"));
    }
    assert!(failed > 0 && released > 0.0, "{released} {failed}");
    drop(service);
    assert!(place.spent("a") >= released);
}
