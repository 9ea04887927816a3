//! Descriptions of mechanisms: read, written and refused. That a complete one builds the same
//! mechanism: tests/python/mechanisms/test_spec.py.

use std::path::Path;

use fastdx::Control;
use fastdx::policy::{KEYS, Parts, Policies, Spaces, Spec};
use serde_json::{Value, json};

fn spec(value: Value) -> Spec {
    serde_json::from_value(value).unwrap()
}

fn refusal(value: Value) -> String {
    let read: Result<Spec, _> = serde_json::from_value(value);
    match read {
        Err(error) => error.to_string(),
        Ok(spec) => match spec.build(Parts::default(), &mut Spaces::default(), &Control::new()) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{spec:?} was built"),
        },
    }
}

#[test]
fn every_key_is_read_and_written() {
    let full = json!({
        "mechanism": "tem", "epsilon": 1.5, "gamma": 2.0, "beta": 0.1,
        "language": {"file": "counts.tsv"},
        "certified": true, "nominal": 1.0, "base": "ball", "mixing": 0.1,
        "tuning": 0.2, "search": "exact", "ef": 10, "law": {"file": "law.npy"},
        "index": {"file": "x.txt", "fingerprint": "0123456789abcdef", "format": "glove",
                  "metric": "angular", "limit": 5, "vocabulary": "words.txt"},
        "verify": false, "cover": {"file": "c.fdx"}, "balance": 0.1, "remap": 3,
        "exclude": ["a"], "oov": "drop", "skip": ["b"], "consistent": "call", "pad": 0.5,
        "numbers": {"epsilon": 20.0, "scale": "log", "unit": 0.01, "low": -1e9, "high": 1e9,
                    "smallest": 0.01, "decimal": "."},
        "dates": {"epsilon": 0.2, "low": "1900-01-01", "high": "2099-12-31",
                  "order": "dmy"},
        "cache_bytes": 100, "threads": 2, "seed": 7,
    });
    let read = spec(full.clone());
    assert_eq!(serde_json::to_value(&read).unwrap(), full);
    assert_eq!(full.as_object().unwrap().len(), KEYS.len());
    assert_eq!(read.clone().released().seed, None);
    for name in ["uniform", "frequency", "rank", "english"] {
        let named = spec(json!({"language": name}));
        assert_eq!(serde_json::to_value(&named).unwrap()["language"], name);
    }
    // null is the default of each key.
    for key in KEYS {
        let mut one = read.clone();
        one.set(key.name, &Value::Null).unwrap();
        assert_eq!(
            one.get(key.name),
            Spec::default().get(key.name),
            "{}",
            key.name
        );
    }
}

/// Lines of "given => what is said".
fn cases(table: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = table.trim().lines();
    lines.map(|line| line.trim().split_once(" => ").unwrap())
}

#[test]
fn refused_by_name() {
    let table = r#"
    {"epsilom": 1.0} => the key "epsilom"
    {"epsilon": "three"} => epsilon must be a number, got a string
    {"epsilon": -1.0} => epsilon must be a positive finite number
    {"mechanism": "x", "epsilon": 1.0} => mechanism must be one of 'tem'
    {"mechanism": "laplace"} => epsilon must be given with this mechanism
    {"cover": 4} => epsilon must be given with cover
    {"language": "rank"} => epsilon must be given with language
    {"epsilon": 1.0, "language": 3} => language must be "uniform", "frequency"
    {"epsilon": 1.0, "language": "english", "certified": true} => certified must be left out beside a model
    {"epsilon": 1.0, "language": "english", "remap": 2} => remap must be left out beside a model
    {"epsilon": 1.0, "gamma": 1.0, "beta": 0.1} => beta must be left out
    {"epsilon": 1.0, "balance": 0.1} => balance must be given with cover
    {"mechanism": "laplace", "epsilon": 1.0, "gamma": 1.0} => gamma must be left out: it belongs to mechanism tem
    {"mechanism": "laplace", "epsilon": 1.0, "language": "rank"} => language must be left out: it belongs to mechanism tem
    {"mechanism": "law", "epsilon": 1.0} => epsilon must be left out
    {"mechanism": "law"} => law must be given
    {"epsilon": 1.0, "cover": 1.5} => cover must be a whole number
    {"epsilon": 1.0, "consistent": "never"} => consistent must be true, false
    {"epsilon": 1.0, "exclude": 5} => exclude must be "offensive"
    {"epsilon": 1.0, "skip": [1]} => skip must be a list of strings
    {"epsilon": 1.0, "pad": 0} => pad must be positive
    {"epsilon": 1.0, "threads": 0} => threads must be a number from 1
    {"epsilon": 1.0, "oov": "x"} => oov must be one of
    {"epsilon": 1.0, "nominal": 2.0} => nominal must be given with certified
    {"epsilon": 1.0, "index": {"files": "x"}} => the key "files"
    {"epsilon": 1.0, "index": {"fingerprint": "xyz"}} => 16 hexadecimal digits
    {"epsilon": 1.0, "index": {"fingerprint": "0123456789abcdef"}} => space must be given
    {"epsilon": 1.0, "index": {"builtin": "english", "fingerprint": "0123456789abcdef"}} => index must be the one with the fingerprint 0123456789abcdef
    {"epsilon": 1.0, "cover": {"fingerprint": "0123456789abcdef"}} => cover must be given
    {"epsilon": 1.0, "index": {"builtin": "english", "limit": 5}} => index must be a file
    {"epsilon": 1.0, "index": "/no/such/file"} => /no/such/file
    "#;
    for (given, message) in cases(table) {
        let got = refusal(serde_json::from_str(given).unwrap());
        assert!(got.contains(message), "{given}: {got}");
    }
}

#[test]
fn policies_name_the_line() {
    let read = |text: &str| Policies::parse(Path::new("folder/p.toml"), text);
    let good = read(
        "[policies.a]\nepsilon = 3\nindex = \"x.fdx\"\ncover = { file = \"c\" }\nspans_only = true\n",
    );
    let good = good.unwrap();
    assert_eq!(good.default.as_deref(), Some("a"));
    let policy = &good.policies["a"];
    assert!(policy.spans_only && policy.spec.epsilon == Some(3.0));
    let index = policy.spec.index.as_ref().unwrap();
    assert_eq!(index.file.as_deref(), Some(Path::new("folder/x.fdx")));
    // Lines end at slashes here.
    let table = r#"
    [policies.a] / epsilon = 3 / sede = 1 => folder/p.toml, line 3: policies.a.sede is unknown; the keys are allow_unchanged, balance
    [policies.a] / epsilon = 3 / seed = 1 => line 3: policies.a.seed must be left out
    [policies."a b"] / epsilon = 1 => must be named by 1 to 64
    x = 1 => line 1: x is unknown; the keys are default, policies
    default = "b" / [policies.a] / epsilon = 1 => default must be the name of a policy
    [policies.a => line 1: this is no TOML
    [policies.a] / spans_only = 3 => line 2: policies.a.spans_only must be true or false, got a number
    [policies.a] / pad = 2020-01-01 => line 2: policies.a.pad must be no date
    [policies.a] / epsilon = -1.0 => line 1: policies.a: epsilon must be
    [policies.a] / mechanism = "laplace" => line 1: policies.a: epsilon must be given with this mechanism
    [policies.a] / epsilon = "3" => line 2: policies.a.epsilon must be a number, got a string
    [policies.a] / epsilon = 1 / cover = 2.5 => line 3: policies.a.cover must be a whole number, at least 0, got a number
    [policies.a] / epsilon = 1 / verify = 1 => line 3: policies.a.verify must be true or false, got a number
    [policies.a] / epsilon = 1 / mechanism = "gauss" => line 3: policies.a.mechanism must be one of 'tem', 'laplace'
    [policies.a] / epsilon = 1 / exclude = 7 => line 3: policies.a.exclude must be "offensive", "none", the path of a file, or a list
    [policies.a] / epsilon = 1 / skip = ["a", 7] => line 3: policies.a.skip must be a list of strings, got a list
    [policies.a] / epsilon = 1 / consistent = 1.5 => line 3: policies.a.consistent must be true, false or "call", got a number
    [policies] / a = 3 => line 2: policies.a must be a table, got a number
    policies = [] => line 1: policies must be a table, got a list
    [policies.a] / epsilon = true => line 2: policies.a.epsilon must be a number, got true or false
    [policies.a] / epsilon = => line 2: this is no TOML
    [policies.a] / epsilon = 3 / mechanism = "laplace" / beta = 0.1 => policies.a: beta must be left out: it belongs to mechanism tem
    "#;
    let of_rust = "invalid type|untagged|variant|f64|usize|Error(|::";
    for (text, message) in cases(table).chain([("", "policies must hold at least one")]) {
        let got = read(&text.replace(" / ", "\n")).unwrap_err().to_string();
        assert!(got.contains(message), "{text:?}: {got}");
        assert!(!of_rust.split('|').any(|word| got.contains(word)), "{got}");
    }
}

proptest::proptest! {
    #[test]
    fn any_json_is_read_or_refused(text in "\\PC{0,80}", key in "[a-z_]{1,12}") {
        let _ = serde_json::from_str::<Spec>(&text);
        for value in [json!(text), json!([text]), json!({"file": text}), json!(1e300), json!(-1)] {
            for known in KEYS {
                let _ = Spec::default().set(known.name, &value);
            }
            let _ = Spec::default().set(&key, &value);
        }
        let _ = Policies::parse(Path::new("p.toml"), &text);
    }
}
