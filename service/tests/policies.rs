//! The file of policies: its settings, refused files, reloading it, and the page's permission to
//! show a policy.

#![allow(missing_docs)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Running, ended, write};
use fastdx::{Embedding, Randomness, Tem};
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
    let slots = service
        .privatize(r#"{"text": "hot tea", "policy": "slots", "spans": [[4, 7]], "unit": "byte"}"#);
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
fn without_epsilon_the_recommended_policy_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[policies.a]\noov = \"mask\"\n[policies.b]\nepsilon = 2.6\nlanguage = \"rank\"\n";
    let file = write(&folder.path().join("policies.toml"), text);
    let (status, out, log) = ended(&["--config", &file, "--check"]);
    assert!(status.success(), "{log}");
    assert_eq!(out.matches("ε = 2.6 per unit").count(), 2, "{out}");
    let (status, alone, log) = ended(&["--check"]);
    assert!(
        status.success() && alone.contains("ε = 2.6 per unit"),
        "{log}"
    );
}

#[test]
fn policies_say_what_they_leave() {
    let folder = tempfile::tempdir().unwrap();
    let of = |epsilon: f64, more: &str| {
        let text = format!("[policies.a]\nepsilon = {epsilon:?}\n{more}\n");
        write(&folder.path().join("policies.toml"), &text)
    };
    // Of 1,000 common words on the built-in vocabulary, these come back unchanged: 3%, 31%, 57%.
    for (epsilon, more, passes, warns) in [
        (3.0, "", true, ""),
        (4.5, "", true, "this protects little"),
        (6.0, "", false, "this protects hardly anything"),
        (
            6.0,
            "allow_unchanged = true",
            true,
            "this protects hardly anything",
        ),
        (
            6.0,
            "allow_unchanged = false",
            false,
            "this protects hardly anything",
        ),
    ] {
        let (status, out, log) = ended(&["--config", &of(epsilon, more), "--check"]);
        assert_eq!(status.code(), Some(if passes { 0 } else { 2 }), "{log}");
        assert!(
            out.contains("of common words come back as they were, the worst"),
            "{out}"
        );
        assert_eq!(
            log.contains("WARNING: policies.a: "),
            !warns.is_empty(),
            "{log}"
        );
        assert!(
            log.contains(warns) && log.contains("accepts that") != passes,
            "{log}"
        );
    }
    assert_eq!(ended(&["--epsilon", "12", "--check"]).0.code(), Some(2));
    let allowed = ["--epsilon", "12", "--check", "--allow-unchanged"];
    assert!(ended(&allowed).0.success());
    // A service that starts or reloads its file logs this and shows it.
    let service = Running::start(&["--config", &of(3.0, "")]);
    service.says("policies.a: ", 1);
    assert!(!service.log().contains("WARNING"), "{}", service.log());
    of(6.0, "");
    service.signal(libc::SIGHUP);
    service.says("WARNING: policies.a: at this ε 57%", 1);
    let found = service.get("/v1/guarantee/a").json()["guarantee"]["unchanged"].clone();
    let mean = found["mean"].as_f64().unwrap();
    assert!(
        (0.5..0.65).contains(&mean) && found["worst"].as_f64().unwrap() > 0.9,
        "{found}"
    );
    assert_eq!(service.metric("fastdx_unchanged_mean{policy=\"a\"}"), mean);
    // So it does of bits, once they are computed.
    service.says("policies.a: a release tells", 2);
    let bits = service.get("/v1/guarantee/a").json()["guarantee"]["bits"].clone();
    let told = bits["value"].as_f64().unwrap();
    assert_eq!(
        (&bits["exact"], &bits["sampled"]),
        (&true.into(), &0.into())
    );
    assert!(
        3.0 < told && told < bits["entropy"].as_f64().unwrap(),
        "{bits}"
    );
    assert_eq!(service.metric("fastdx_bits{policy=\"a\"}"), told);
}

#[test]
fn an_unknown_word_is_refused_by_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[policies.a]\nepsilon = 3.0\noov = \"error\"\n";
    let file = write(&folder.path().join("policies.toml"), text);
    let service = Running::start(&["--config", &file]);
    let got = service.privatize(r#"{"text": ["hot tea", null, "", "hot zqxqz"]}"#);
    let text = got.text();
    assert_eq!(got.status, 422, "{text}");
    assert!(
        text.contains("word 1 of text 3, at byte 4") && !text.contains("zqx"),
        "{text}"
    );
    let got = service.privatize(r#"{"tokens": ["tea", "zqxqz"]}"#);
    let text = got.text();
    assert_eq!(got.status, 422, "{text}");
    assert!(text.contains("token 1") && !text.contains("zqx"), "{text}");
    let metrics = service.get("/metrics").text();
    assert!(
        metrics.contains("fastdx_texts_total{policy=\"a\"} 0"),
        "{metrics}"
    );
    service.privatize(r#"{"text": ["hot tea", null, "cup"]}"#);
    let metrics = service.get("/metrics").text();
    assert!(
        metrics.contains("fastdx_texts_total{policy=\"a\"} 2"),
        "{metrics}"
    );
}

#[test]
fn the_page_shows_the_laws_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[policies.a]\nepsilon = 3.0\nexclude = \"none\"\nskip = [\"Anna\"]\noov = \"mask\"\n\
                [policies.b]\nepsilon = 9.0\nexclude = \"none\"\n\
                [policies.c]\nepsilon = 3.0\nconsistent = true\n\
                [policies.d]\nepsilon = 3.0\npage = false\n";
    let file = write(&folder.path().join("policies.toml"), text);
    let service = Running::start(&["--config", &file]);
    let english = Arc::new(Embedding::default_english().unwrap());
    let tem = |epsilon| {
        let random = Randomness::new(None);
        Tem::new(english.clone(), epsilon, Default::default(), random).unwrap()
    };
    let body = json!({"text": "Coffee! Anna, qwxyz", "policy": "a"}).to_string();
    let laws = service.post("/v1/law", "", body.as_bytes()).json();
    let law = tem(3.0).probabilities(english.vocabulary().require("coffee").unwrap());
    let coffee = &laws["words"][0];
    // JSON numbers are exact to the last bit but one.
    let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
    let likeliest = coffee["likeliest"].as_array().unwrap();
    assert_eq!(likeliest.len(), 8);
    for pair in likeliest {
        let id = english
            .vocabulary()
            .require(pair[0].as_str().unwrap())
            .unwrap();
        assert!(close(pair[1].as_f64().unwrap(), law[id as usize]));
    }
    let most = law.iter().copied().fold(0.0, f64::max);
    assert!(close(likeliest[0][1].as_f64().unwrap(), most));
    assert_eq!(laws["words"][1], json!({"word": "Anna", "fate": "skipped"}));
    assert_eq!(
        laws["words"][2],
        json!({"word": "qwxyz", "fate": "unknown"})
    );
    assert_eq!(laws["oov"], "mask");
    // Skipped words keep their spelling, in any letter case.
    let skipped = service
        .privatize(r#"{"text": "ANNA", "policy": "a"}"#)
        .json();
    assert_eq!(skipped["text"], "ANNA");
    for (name, epsilon) in [("a", 3.0), ("b", 9.0)] {
        let found = service.get(&format!("/v1/measures/{name}")).json();
        let of = |key: &str| found[key].as_f64().unwrap();
        assert_eq!((of("words"), of("of")), (200.0, 20_000.0));
        // Words spread evenly; for each output the likeliest of them.
        let tem = tem(epsilon);
        let ids: Vec<u32> = (0..200).map(|i| i * 19_999 / 199).collect();
        let laws: Vec<Vec<f64>> = ids.iter().map(|&id| tem.probabilities(id)).collect();
        let unchanged = || laws.iter().zip(&ids).map(|(law, &id)| law[id as usize]);
        let most = |y: usize| laws.iter().map(|law| law[y]).fold(0.0, f64::max);
        let named = (0..20_000).map(most).sum::<f64>() / 200.0;
        assert!(close(of("R"), named), "{found}");
        assert!(
            close(of("mean_N_w"), unchanged().sum::<f64>() / 200.0),
            "{found}"
        );
        assert!(
            close(of("worst_N_w"), unchanged().fold(0.0, f64::max)),
            "{found}"
        );
        assert!(1.0 / 200.0 < named && of("mean_N_w") < named && named < 1.0);
    }
    for hidden in ["c", "d", "none"] {
        assert_eq!(service.get(&format!("/v1/measures/{hidden}")).status, 404);
    }
}

#[test]
fn files_of_policies_that_are_wrong() {
    let folder = tempfile::tempdir().unwrap();
    for (text, said) in [
        (
            "[policies.a]\nepsilon = -1.0\n",
            "line 1: policies.a: epsilon must be",
        ),
        (
            "[policies.a]\nepsilon = 1.0\nsede = 3\n",
            "line 3: policies.a.sede is unknown; the keys are allow_unchanged, balance",
        ),
        (
            "[policies.a]\ncover = 40\n",
            "line 1: policies.a: epsilon must be given with cover",
        ),
        (
            "[policies.a]\nmechanism = \"laplace\"\n",
            "line 1: policies.a: epsilon must be given with this mechanism",
        ),
        (
            "[policies.a]\nepsilon = \"3\"\n",
            "line 2: policies.a.epsilon must be a number, got a string",
        ),
        (
            "[policies.a]\nepsilon = 1\ncover = 2.5\n",
            "line 3: policies.a.cover must be a whole number, at least 0, got a number",
        ),
        (
            "[policies.a]\nepsilon = 1\nverify = 1\n",
            "line 3: policies.a.verify must be true or false, got a number",
        ),
        (
            "[policies.a]\nepsilon = 1\nmechanism = \"gauss\"\n",
            "line 3: policies.a.mechanism must be one of 'tem', 'laplace'",
        ),
        (
            "[policies.a]\nepsilon = 1\nexclude = 7\n",
            "line 3: policies.a.exclude must be \"offensive\", \"none\", the path of a file, or a list",
        ),
        (
            "[policies.a]\nepsilon = 1\nskip = [\"a\", 7]\n",
            "line 3: policies.a.skip must be a list of strings, got a list",
        ),
        (
            "[policies.a]\nepsilon = 1\nconsistent = 1.5\n",
            "line 3: policies.a.consistent must be true, false or \"call\", got a number",
        ),
        (
            "[policies]\na = 3\n",
            "line 2: policies.a must be a table, got a number",
        ),
        (
            "policies = []\n",
            "line 1: policies must be a table, got a list",
        ),
        (
            "policy = 1\n",
            "line 1: policy is unknown; the keys are default, policies",
        ),
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
            "beta must be left out where gamma is given",
        ),
        (
            "[policies.a]\nmechanism = \"laplace\"\nepsilon = 1.0\ncover = 40\n",
            "cover must be left out: it belongs to mechanism tem, response",
        ),
        ("nonsense", "line 1"),
    ] {
        let file = write(&folder.path().join("policies.toml"), text);
        let (status, out, log) = ended(&["--config", &file, "--check"]);
        assert_eq!((status.code(), &*out), (Some(2), ""), "{text}");
        assert!(log.contains(said), "{text}: {log}");
        no_word_of_rust(&log);
    }
}

fn no_word_of_rust(log: &str) {
    for word in [
        "os error",
        "invalid type",
        "untagged",
        "variant",
        "f64",
        "usize",
        "Error(",
        "::",
    ] {
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
        let epsilon = ["--epsilon", "3"];
        let epsilon = if option.ends_with("epsilon") || option == "--config" {
            &[][..]
        } else {
            &epsilon
        };
        let (status, _, log) = ended(&[epsilon, &[option, value]].concat());
        assert_eq!(status.code(), Some(2), "{log}");
        assert!(log.contains(said), "{option}: {log}");
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
    for wrong in [
        "index = \"bad.index\"",
        "index = \"none.index\"",
        "warm = \"bad.words\"",
        "warm = \"none.words\"",
    ] {
        let text = format!("[policies.a]\nepsilon = 3.0\n{wrong}\n");
        let file = write(&at("policies.toml"), &text);
        let (status, _, log) = ended(&["--config", &file, "--listen", "127.0.0.1:0"]);
        assert_eq!(status.code(), Some(2), "{log}");
        assert!(
            log.contains("policies.a: ") && !log.contains("listening"),
            "{log}"
        );
        no_word_of_rust(&log);
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
        service.get("/v1/guarantee/a").json()["guarantee"]["epsilon"]
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
