//! The service's answers: texts, lists of words, lines, limits, the law.

use std::collections::HashSet;
use std::io::{BufReader, Write};

use super::common::{self, Running, holds};
use serde_json::{Value, json};

/// The schema of a guarantee as JSON.
const GUARANTEE: &str = include_str!("../../../docs/reference/guarantee.schema.json");

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
    let of = |body: Value| service.privatize(body).json();
    let body = of(json!({"text": ["hot coffee", null, ""], "policy": "default"}));
    assert_eq!(body["text"].as_array().unwrap().len(), 3);
    assert!(body["text"][1].is_null() && body["text"][2] == "" && body.get("spans").is_none());
}

#[test]
fn spans_have_a_unit() {
    let service = Running::english(&[]);
    let text = "☕😀 Dear Anna, thanks.";
    // "nn" of "Anna": whole words are released, and positions in the unit of the request.
    let length = |unit, text: &str| match unit {
        "utf16" => text.encode_utf16().count(),
        "codepoint" => text.chars().count(),
        _ => text.len(),
    };
    for unit in ["utf16", "codepoint", "byte"] {
        let before = length(unit, "☕😀 Dear ");
        let start = before + 1;
        let nested = json!({"start": start, "end": start + 1, "entity_type": "PERSON", "score": 1});
        let spans = json!([[start, start + 2], nested]);
        let got = service
            .privatize(json!({"text": text, "spans": spans, "unit": unit}))
            .json();
        let new = got["text"].as_str().unwrap();
        let word = new.strip_prefix("☕😀 Dear ").unwrap();
        let word = word.strip_suffix(", thanks.").unwrap();
        let end = before + length(unit, word);
        assert_eq!(got["spans"], json!([[before, end]]), "{unit}");
        assert_eq!(got["counts"]["words"], 1);
    }
}

#[test]
fn words_that_the_client_has_found() {
    let service = Running::english(&[]);
    let tokens = json!(["New York", "tea", "", "zqxqz"]);
    let got = service.privatize(json!({"tokens": tokens})).json();
    let words = got["tokens"].as_array().unwrap();
    assert!(words.len() == 4 && words.iter().all(|w| w.as_str().unwrap() != "New York"));
    assert!(got.get("text").is_none() && got.get("spans").is_none());
    assert_eq!(
        got["counts"],
        json!({"words": 4, "replaced": 1, "unknown": 3, "skipped": 0})
    );
    let none = service.privatize(r#"{"tokens": []}"#).json();
    assert_eq!(none["tokens"], json!([]));
}

#[test]
fn settings_beyond_a_client_are_refused_without_an_echo() {
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
        (400, "{}"),
        (400, r#"{"text": null}"#),
        (400, r#"{"text": "a", "tokens": ["zqxprivate"]}"#),
        (400, r#"{"tokens": "zqxprivate"}"#),
        (400, r#"{"tokens": ["zqxprivate", null]}"#),
        (400, r#"{"tokens": ["zqxprivate", 3]}"#),
        (404, r#"{"text": "zqxprivate", "policy": "zqxprivate"}"#),
        (400, r#"{"text": "zqxprivate", "spans": [[0, 3]]}"#),
        (400, r#"{"text": "zqxprivate", "spans": []}"#),
        (400, r#"{"text": "zqxprivate", "unit": "byte"}"#),
    ] {
        let got = service.privatize(body);
        assert_eq!(got.status, status, "{body}: {}", got.text());
        assert!(!got.text().contains("zqx"), "{}", got.text());
        assert!(got.json()["error"]["message"].is_string());
    }
    let spans = |field: &str, spans: &str, unit: &str| {
        let body = format!(r#"{{{field}, "spans": {spans}, "unit": {unit}}}"#);
        let got = service.privatize(&body);
        assert!(!got.text().contains("zqx"), "{}", got.text());
        let message = got.json()["error"]["message"].to_string();
        (got.status, message)
    };
    let text = r#""text": "zqxprivate""#;
    for (status, wrong, why) in [
        (422, "[[0, 99]]", "ends at 10"),
        // Other positions: src/text/places.rs.
        (422, "[[0, 1], [3, 2]]", "3 to 2 at position 1"),
        (400, "[[0, 1e300]]", "wrong type"),
        (400, "[[0, 18446744073709551615]]", "wrong type"),
        (422, r#"[{"start": 0, "end": 99}]"#, "ends at 10"),
        (400, "[[0, 3.5]]", "wrong type"),
        (400, r#"[[0, "3"]]"#, "wrong type"),
        (400, r#"[{"start": 0}]"#, "missing"),
        (400, "[[0]]", "wrong type"),
        (400, "[3]", "wrong type"),
    ] {
        let got = spans(text, wrong, r#""codepoint""#);
        assert!(got.0 == status && got.1.contains(why), "{wrong}: {got:?}");
    }
    assert_eq!(spans(text, "[[0, 3]]", r#""zqx""#).0, 400);
    assert_eq!(spans(text, "[[0, 3]]", "null").0, 400);
    for field in [r#""tokens": ["zqxprivate"]"#, r#""text": ["zqxprivate"]"#] {
        assert_eq!(spans(field, "[[0, 3]]", r#""byte""#).0, 422);
    }
    assert!(!service.get("/metrics").text().contains("zqx"));
    service.stop();
    assert!(!service.log().contains("zqx"), "{}", service.log());
}

#[test]
fn other_paths() {
    let service = Running::english(&[]);
    // From then on its promise stays as it is.
    service.says("a release tells", 1);
    assert_eq!(service.get("/healthz").status, 200);
    assert_eq!(service.get("/readyz").status, 200);
    let list = service.get("/v1/policies").json();
    assert!(list["default"] == "default" && list["policies"][0]["epsilon"] == 3.0);
    let policy = service.get("/v1/guarantee/default").json();
    let guarantee = &policy["guarantee"];
    assert!(policy["policy"] == "default" && policy["spans_only"] == false);
    assert!(guarantee["sentence"].as_str().unwrap().contains("ε = 3"));
    assert!(!guarantee["exceptions"].as_array().unwrap().is_empty() && guarantee["void"].is_null());
    assert_eq!(service.get("/v1/guarantee/none").status, 404);
    let card = service.get("/v1/policies/default/channel").json();
    assert!(card["card"] == 1 && card["spec"]["epsilon"] == 3.0);
    assert!(card["spec"]["index"]["fingerprint"].is_string());
    for policy in ["none", "", "a/b"] {
        let path = format!("/v1/policies/{policy}/channel");
        assert_eq!(service.get(&path).status, 404, "{path}");
    }
    assert_eq!(service.get("/zqx").status, 404);
    for (method, path, allowed) in [
        ("GET", "/v1/privatize", "POST"),
        ("OPTIONS", "/v1/privatize", "POST"),
        ("DELETE", "/metrics", "GET,HEAD"),
    ] {
        let got = service.ask(method, path);
        assert_eq!(got.status, 405);
        holds(got.head, &format!("allow: {allowed}\r\n"));
    }
    // Every path in the description is answered, and every answered path is described.
    let described = service.get("/openapi.json").json();
    for (path, methods) in described["paths"].as_object().unwrap() {
        let path = path.replace("{policy}", "default");
        let (got, wanted) = match methods.get("post") {
            Some(_) => (service.post(&path, "", b"{}"), 400),
            None => (service.get(&path), 200),
        };
        assert_eq!(got.status, wanted, "{path}");
    }
    assert_eq!(described["paths"].as_object().unwrap().len(), 8);
    // The description has the same schema of a guarantee as the documentation.
    let mut schema: Value = serde_json::from_str(GUARANTEE).unwrap();
    for own in ["$schema", "title"] {
        schema.as_object_mut().unwrap().remove(own);
    }
    assert_eq!(described["components"]["schemas"]["Guarantee"], schema);
    let keys = |of: &Value| -> Vec<String> { of.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(keys(guarantee), keys(&schema["properties"]));
    let properties = &described["components"]["schemas"]["Policy"]["properties"];
    assert_eq!(keys(&policy), keys(properties));
    // The described lengths of a key are the accepted ones.
    let key = &described["paths"]["/v1/privatize"]["post"]["parameters"][0]["schema"];
    let [least, most] = ["minLength", "maxLength"].map(|end| key[end].as_u64().unwrap() as usize);
    let statuses = [0, least - 1, least, most, most + 1].map(|length| {
        let header = format!("idempotency-key: {}\r\n", "a".repeat(length));
        service.send(&header, br#"{"text": ""}"#).status
    });
    assert_eq!(statuses, [422, 422, 200, 200, 422]);
    service.privatize(r#"{"text": "hot coffee"}"#);
    let metrics = service.get("/metrics").text();
    holds(&metrics, "fastdx_words_total{policy=\"default\"} 2\n");
    assert!(metrics.contains("fastdx_requests_total{route=\"privatize\",status=\"200\"} 3"));
}

#[test]
fn the_query_names_the_policy_of_lines_alone() {
    let text = "default = \"a\"\n[policies.a]\nepsilon = 3.0\n[policies.b]\nepsilon = 1.0\n";
    let service = Running::configured(text);
    for (status, query, kind) in [
        (200, "policy=b", "x-ndjson"),
        (404, "policy=", "x-ndjson"),
        (404, "policy=c", "x-ndjson"),
        (422, "epsilon=1", "x-ndjson"),
        (422, "policy=b", "json"),
    ] {
        let path = format!("/v1/privatize?{query}");
        let kind = format!("content-type: application/{kind}\r\n");
        let got = service.post(&path, &kind, b"{\"text\": \"tea\"}");
        assert_eq!(got.status, status, "{path} {kind}");
        assert!(status != 200 || got.lines()[1]["policy"] == "b");
    }
}

#[test]
fn lines_of_one_request_are_one_call() {
    let text = "[policies.a]\nepsilon = 0.1\nconsistent = \"call\"\n";
    let service = Running::configured(text);
    // More lines than are drawn together.
    let body = format!("{}\"zqxqz coffee\"\n", "\"coffee\"\n".repeat(1000)).repeat(2);
    let replaced = || {
        let got = service.lines("", &body);
        let (mut known, mut unknown) = (HashSet::new(), HashSet::new());
        for line in got.lines() {
            let text = line["text"].as_str().unwrap_or_default();
            let mut words = text.rsplit(' ').map(str::to_owned);
            known.extend(words.next().filter(|word| !word.is_empty()));
            unknown.extend(words.next());
        }
        assert!(
            got.whole && (known.len(), unknown.len()) == (1, 1),
            "{known:?} {unknown:?}"
        );
        known
    };
    // Another request is another call: at this ε two draws are equal with probability below 1e-3.
    let calls: HashSet<String> = (0..4).flat_map(|_| replaced()).collect();
    assert!(calls.len() > 1);
}

#[test]
fn a_call_of_lines_keeps_no_more_than_its_share() {
    let text = "[policies.a]\nepsilon = 1.0\nconsistent = \"call\"\n";
    let service = Running::configured(text);
    // Unknown words that are all different: about 100 bytes are kept for each.
    let word = |i: u32| format!("{i:060b}").replace('0', "q").replace('1', "x");
    let body: String = (0..200_000).map(|i| format!("\"{}\"\n", word(i))).collect();
    let kind = "content-type: application/x-ndjson\r\n";
    let request = common::posted("/v1/privatize", kind, body.as_bytes());
    let stream = service.connect();
    let mut write = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        // The answer breaks off.
        let _ = write.write_all(&request);
    });
    let got = common::read(&mut BufReader::new(stream)).unwrap();
    assert!(!got.whole && got.text().lines().count() > 100_000);
    let refused = || service.metric("fastdx_refused_total{reason=\"size\"}");
    common::wait(|| refused() == 1.0);
    writing.join().unwrap();
}

#[test]
fn metrics_count_by_policy_and_stay_when_the_file_is_read_again() {
    let text = "default = \"a\"\n[policies.a]\nepsilon = 3.0\n[policies.b]\nepsilon = 1.0\n";
    let service = Running::configured(text);
    service.privatize(r#"{"text": "hot tea", "policy": "b"}"#);
    let found = || {
        let names = [("texts", "b"), ("words", "b"), ("words", "a")];
        let metric = |(what, policy)| format!("fastdx_{what}_total{{policy=\"{policy}\"}}");
        names.map(|name| service.metric(&metric(name)))
    };
    assert_eq!(found(), [1.0, 2.0, 0.0]);
    service.signal(libc::SIGHUP);
    service.says("read again", 1);
    assert_eq!(found(), [1.0, 2.0, 0.0]);
    assert!(service.metric("process_resident_memory_bytes") > 4096.0);
}

#[test]
fn limits() {
    let service = Running::english(&["--max-body", "1000"]);
    for (status, times) in [(413, 250), (200, 240)] {
        let body = json!({ "text": "tea ".repeat(times) });
        assert_eq!(service.privatize(body).status, status);
    }
    // A chunked body does not state its length in advance.
    let mut chunked =
        b"POST /v1/privatize HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..20 {
        chunked.extend(format!("64\r\n{}\r\n", "x".repeat(100)).as_bytes());
    }
    chunked.extend(b"0\r\n\r\n");
    assert_eq!(service.raw(&chunked).unwrap().status, 413);
    let metrics = service.get("/metrics").text();
    holds(&metrics, "fastdx_refused_total{reason=\"size\"} 2");
}

#[test]
fn lines() {
    let service = Running::english(&["--max-body", "2000"]);
    let kind = "content-type: application/x-ndjson\r\n";
    let many: String = (0..1000).map(|i| format!("\"hot tea {i}\"\n")).collect();
    let last = r#"{"text": "my Anna"}"#;
    let got = service.lines("", &format!("null\n\n{many}{last}"));
    assert!(got.status == 200 && got.whole);
    let lines = got.lines();
    assert_eq!(lines.len(), 1003);
    assert!(lines[0]["text"].is_null() && lines[1]["text"].is_string());
    let end = &lines[1002];
    assert_eq!((&end["done"], &end["lines"]), (&json!(true), &json!(1002)));
    assert_eq!(end["counts"]["words"], 3002);
    for (policy, status) in [("default", 200), ("zqx", 404)] {
        let path = format!("/v1/privatize?policy={policy}");
        assert_eq!(service.post(&path, kind, b"null\n").status, status);
    }
    // An error ends the answer, and shows that it is incomplete.
    for wrong in [
        "{\"txt\": \"zqx\"}\n",
        "{\"text\": \"zqx\", \"spans\": [[0, 3]], \"unit\": \"byte\"}\n",
        "{\"tokens\": [\"zqx\"]}\n",
        "zqx\n",
        "[\"zqx\"]\n",
        "{\"text\": [\"zqx\"]}\n",
        "{\"text\": \"zqx\", \"policy\": \"default\"}\n",
        &format!("\"{}\"\n", "zqx ".repeat(1000)),
    ] {
        let got = service.lines("", &format!("\"tea\"\n{wrong}\"tea\"\n"));
        let last = got.lines().pop().unwrap();
        holds(last["error"]["message"].as_str().unwrap(), "line 2");
        assert!(!got.whole && !got.text().contains("zqx"));
    }
}
