//! The file of policies: its settings, refused files, reloading it.

use std::sync::atomic::{AtomicBool, Ordering};

use super::common::{Running, ended, few, holds, write};
use serde_json::json;

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
    let file = few(&folder.path().join("policies.toml"), POLICIES);
    let (status, out, _) = ended(&["--config", &file, "--check"]);
    assert!(status.success() && out.lines().count() == 5, "{out}");
    for part in [
        "strict: Tem protects",
        "ε = 1 per unit",
        "slots: ",
        "RELEASED AS IT IS",
    ] {
        holds(&out, part);
    }
    let service = Running::start(&["--config", &file]);
    let of = |policy: &str, text: &str| service.privatize(json!({"text": text, "policy": policy}));
    let strict = of("strict", "qwxyz tea tea tea").json();
    let words: Vec<&str> = strict["text"].as_str().unwrap().split(' ').collect();
    assert_eq!(words, ["[MASK]", words[1], words[1], words[1]]);
    assert_eq!(of("noise", "hot tea").json()["counts"]["replaced"], 2);
    assert_eq!(of("padded", "hot tea").status, 200);
    assert_eq!(of("slots", "hot tea").status, 422);
    let slots = service
        .privatize(r#"{"text": "hot tea", "policy": "slots", "spans": [[4, 7]], "unit": "byte"}"#);
    assert!(slots.json()["text"].as_str().unwrap().starts_with("hot "));
}

#[test]
fn without_epsilon_the_recommended_policy_is_taken() {
    // Of all built-in words, so nothing here waits for the bits that a release tells.
    let folder = tempfile::tempdir().unwrap();
    let text = "[policies.a]\noov = \"mask\"\n[policies.b]\nepsilon = 2.6\nlanguage = \"rank\"\n";
    let file = write(&folder.path().join("policies.toml"), text);
    for (flags, names) in [
        (&["--config", &file][..], &["a", "b"][..]),
        (&[], &["default"]),
    ] {
        let service = Running::start(flags);
        for name in names {
            let of = |path: String| service.get(&path);
            let promise = of(format!("/v1/guarantee/{name}"));
            holds(promise.text(), "ε = 2.6 per unit");
            let card = of(format!("/v1/policies/{name}/channel")).json();
            assert_eq!(card["spec"]["language"], "rank");
        }
    }
}

#[test]
fn policies_say_what_they_leave() {
    let folder = tempfile::tempdir().unwrap();
    let of = |epsilon: f64, more: &str| {
        let text = format!("[policies.a]\nepsilon = {epsilon:?}\n{more}\n");
        few(&folder.path().join("policies.toml"), &text)
    };
    // Of 1,000 common words of these, so many come back unchanged: 9%, 36%, 63%.
    let hardly = "this protects hardly anything";
    for (epsilon, more, passes, warns) in [
        (3.0, "", true, ""),
        (4.5, "", true, "this protects little"),
        (6.0, "", false, hardly),
        (6.0, "allow_unchanged = true", true, hardly),
        (6.0, "allow_unchanged = false", false, hardly),
    ] {
        let (status, out, log) = ended(&["--config", &of(epsilon, more), "--check"]);
        assert_eq!(status.code(), Some(if passes { 0 } else { 2 }), "{log}");
        holds(&out, "of common words come back as they were, the worst");
        let warned = log.contains("WARNING: policies.a: ") && log.contains(warns);
        assert_eq!(warned, !warns.is_empty(), "{log}");
        assert!(log.contains("accepts that") != passes, "{log}");
    }
    // A service that starts or reloads its file logs this and shows it.
    let service = Running::start(&["--config", &of(3.0, "")]);
    service.says("policies.a: ", 1);
    assert!(!service.log().contains("WARNING"), "{}", service.log());
    of(6.0, "");
    service.signal(libc::SIGHUP);
    service.says("WARNING: policies.a: at this ε 63%", 1);
    let found = service.get("/v1/guarantee/a").json()["guarantee"]["unchanged"].clone();
    let mean = found["mean"].as_f64().unwrap();
    assert!(
        (0.55..0.7).contains(&mean) && found["worst"].as_f64() > Some(0.9),
        "{found}"
    );
    // So it does of bits, once they are computed.
    service.says("policies.a: a release tells", 2);
    let bits = service.get("/v1/guarantee/a").json()["guarantee"]["bits"].clone();
    let told = bits["value"].as_f64().unwrap();
    assert!(bits["exact"] == true && bits["sampled"] == 0, "{bits}");
    assert!(
        3.0 < told && Some(told) < bits["entropy"].as_f64(),
        "{bits}"
    );
}

#[test]
fn an_unknown_word_is_refused_by_its_place() {
    let text = "[policies.a]\nepsilon = 3.0\noov = \"error\"\n";
    let service = Running::configured(text);
    for (body, place) in [
        (
            r#"{"text": ["hot tea", null, "", "hot zqxqz"]}"#,
            "word 1 of text 3, at byte 4",
        ),
        (r#"{"tokens": ["tea", "zqxqz"]}"#, "token 1"),
    ] {
        let got = service.privatize(body);
        assert!(got.status == 422 && !got.text().contains("zqx"), "{got:?}");
        holds(got.text(), place);
    }
    let metrics = service.get("/metrics").text();
    holds(&metrics, "fastdx_texts_total{policy=\"a\"} 0");
    service.privatize(r#"{"text": ["hot tea", null, "cup"]}"#);
    let metrics = service.get("/metrics").text();
    holds(&metrics, "fastdx_texts_total{policy=\"a\"} 2");
}

fn no_word_of_rust(log: &str) {
    for word in "os error|invalid type|untagged|variant|f64|usize|Error(|::".split('|') {
        assert!(!log.contains(word), "{log}");
    }
}

#[test]
fn options_that_are_wrong() {
    for (option, value, said) in [
        ("--epsilon", "three", "it must be a number"),
        ("--max-body", "1e6", "it must be a whole number"),
        ("--threads", "two", "it must be a whole number"),
        ("--idle-time", "0", "it must be from 0 to 1e6 seconds"),
        ("--idle-time", "soon", "it must be a number"),
        ("--listen", "8080", "HOST:PORT or unix:PATH"),
        ("--keys", "/zqx/none", "/zqx/none: No such file"),
        ("--config", "/zqx/none", ""),
    ] {
        let alone = option == "--epsilon" || option == "--config";
        let more = if alone { &[][..] } else { &["--epsilon", "3"] };
        let (status, _, log) = ended(&[more, &[option, value]].concat());
        assert_eq!(status.code(), Some(2), "{log}");
        holds(&log, said);
        no_word_of_rust(&log);
        assert!(!log.contains("digit") && !log.contains("literal"), "{log}");
    }
}

#[test]
fn a_bad_start_is_found_before_it_listens() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write(&at("bad.index"), "no index at all");
    write(&at("bad.words"), "tea\tmany\n");
    // All other refusals of a file: policies_name_the_line in tests/it/spec.rs.
    for wrong in [
        "sede = 3",
        "pad = 61",
        "index = \"bad.index\"",
        "index = \"none.index\"",
        "warm = \"bad.words\"",
        "warm = \"none.words\"",
    ] {
        let text = format!("[policies.a]\nepsilon = 3.0\n{wrong}\n");
        let file = write(&at("policies.toml"), &text);
        let (status, _, log) = ended(&["--config", &file, "--listen", "127.0.0.1:0"]);
        assert_eq!(status.code(), Some(2), "{log}");
        holds(&log, "policies.a");
        assert!(!log.contains("listening"), "{log}");
        no_word_of_rust(&log);
    }
}

#[test]
fn reload_under_load() {
    let of = |epsilon: f64| format!("[policies.a]\nepsilon = {epsilon:?}\n");
    let service = Running::configured(&of(3.0));
    let shown = || service.get("/v1/guarantee/a").json()["guarantee"]["epsilon"].clone();
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
            let epsilon = 3.0 + f64::from(round);
            service.configure(&of(epsilon));
            service.says("read again", round as usize);
            assert_eq!(shown(), epsilon);
            service.configure("[policies.a]\nepsilon = 0.0\n");
            service.says("the old policies stay", round as usize);
            assert_eq!(shown(), epsilon);
        }
        stop.store(true, Ordering::Relaxed);
        for thread in busy {
            assert!(thread.join().unwrap() > 0);
        }
    });
    assert_eq!(service.metric("fastdx_reloads_refused_total"), 5.0);
}
