//! The serialised form of a guarantee: one for Python's `Guarantee.to_dict`, the command's report and
//! the service.
//!
//! `docs/reference/guarantee.schema.json` describes it. Numbers that are infinite are null; texts that
//! are written from the other fields (`sentence`, `for_users`, `warning`) are fields too.

use serde::{Serialize, Serializer};

use super::{Certificate, Guarantee, NamedCertificate, Unchanged, WordBits};

#[derive(Serialize)]
struct GuaranteeForm<'a> {
    mechanism: &'a str,
    metric: &'a str,
    epsilon: Option<f64>,
    delta: f64,
    slack: Option<f64>,
    void: Option<&'a str>,
    unknown: Option<f64>,
    scope: &'a str,
    outputs: &'a str,
    theorem: &'a str,
    arithmetic: &'a str,
    exceptions: &'a [String],
    certificate: Option<&'a NamedCertificate>,
    unchanged: Option<Unchanged>,
    bits: Option<WordBits>,
    sentence: String,
    for_users: String,
}

#[derive(Serialize)]
struct CertificateForm<'a> {
    epsilon: f64,
    nominal: f64,
    gamma: Option<f64>,
    pair: &'a (String, String),
    output: &'a str,
    vocabulary: String,
    cover: Option<String>,
    method: &'a str,
}

#[derive(Serialize)]
struct UnchangedForm {
    mean: f64,
    worst: f64,
    words: usize,
    draws: usize,
    warning: Option<String>,
}

#[derive(Default, Serialize)]
struct BitsForm {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    entropy: Option<f64>,
    prior: &'static str,
    exact: bool,
    sampled: Option<usize>,
    why: Option<&'static str>,
}

fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}

impl Serialize for Guarantee {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        GuaranteeForm {
            mechanism: self.mechanism,
            metric: self.metric,
            epsilon: finite(self.epsilon),
            delta: self.delta,
            slack: finite(self.slack),
            void: self.void,
            unknown: self.unknown().and_then(finite),
            scope: self.scope,
            outputs: &self.outputs,
            theorem: self.theorem,
            arithmetic: self.arithmetic,
            exceptions: &self.exceptions,
            certificate: self.certificate.as_ref(),
            unchanged: self.unchanged,
            bits: self.bits,
            sentence: self.to_string(),
            for_users: self.for_users(),
        }
        .serialize(serializer)
    }
}

impl Serialize for NamedCertificate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Certificate {
            epsilon,
            nominal,
            gamma,
            ..
        } = self.certificate;
        CertificateForm {
            epsilon,
            nominal,
            gamma: finite(gamma),
            pair: &self.pair,
            output: &self.output,
            vocabulary: self.certificate.vocabulary_name(),
            cover: self.certificate.cover_name(),
            method: self.certificate.method(),
        }
        .serialize(serializer)
    }
}

impl Serialize for Unchanged {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        UnchangedForm {
            mean: self.mean,
            worst: self.worst,
            words: self.words,
            draws: self.draws,
            warning: self.warning(),
        }
        .serialize(serializer)
    }
}

impl Serialize for WordBits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = match *self {
            WordBits::Known { bits, entropy } => BitsForm {
                value: Some(bits.value),
                low: Some(bits.low),
                high: Some(bits.high),
                entropy: Some(entropy),
                exact: bits.sampled == 0,
                sampled: Some(bits.sampled),
                ..BitsForm::default()
            },
            WordBits::Unknown(why) => BitsForm {
                why: Some(why),
                ..BitsForm::default()
            },
        };
        BitsForm {
            prior: WordBits::PRIOR,
            ..form
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::guarantee;
    use super::*;
    use crate::Vocabulary;
    use crate::guarantee::Bits;

    const SCHEMA: &str = include_str!("../../docs/reference/guarantee.schema.json");

    fn form(guarantee: &Guarantee) -> Value {
        serde_json::to_value(guarantee).unwrap()
    }

    fn keys(object: &Value) -> Vec<&str> {
        let mut keys: Vec<&str> = object.as_object().unwrap().keys().map(|k| &**k).collect();
        keys.sort_unstable();
        keys
    }

    /// The required properties of a schema, all of them and no others being described.
    fn required(schema: &Value) -> Vec<&str> {
        assert_eq!(schema["additionalProperties"], json!(false));
        let names = schema["required"].as_array().unwrap();
        let mut names: Vec<&str> = names.iter().map(|name| name.as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, keys(&schema["properties"]));
        names
    }

    #[test]
    fn infinite_numbers_are_null_and_what_is_not_there_too() {
        let found = form(&Guarantee {
            epsilon: f64::INFINITY,
            ..guarantee().voided("it is seeded")
        });
        for name in [
            "epsilon",
            "slack",
            "unknown",
            "certificate",
            "unchanged",
            "bits",
        ] {
            assert_eq!(found[name], Value::Null, "{name}");
        }
        assert_eq!(found["void"], json!("it is seeded"));
        let random = Guarantee {
            unknown_is_random: true,
            ..guarantee()
        };
        assert_eq!(form(&random)["unknown"], json!(3.0));
        let unbounded = Guarantee {
            unknown_bound: f64::INFINITY,
            ..random
        };
        assert_eq!(form(&unbounded)["unknown"], Value::Null);
    }

    #[test]
    fn all_keys_are_those_of_the_schema() {
        let vocabulary = Vocabulary::new(["tea".to_owned(), "milk".to_owned()]).unwrap();
        let certificate = Certificate {
            nominal: 4.0,
            gamma: f64::INFINITY,
            epsilon: 3.0,
            pair: (0, 1),
            output: 7,
            vocabulary: 77,
            cover: 0,
        };
        let full = Guarantee {
            certificate: Some(certificate.named(&vocabulary)),
            unchanged: Some(Unchanged {
                mean: 0.75,
                worst: 0.9,
                words: 2,
                draws: 0,
            }),
            bits: Some(WordBits::Known {
                bits: Bits::exact(2.5),
                entropy: 11.0,
            }),
            ..guarantee()
        };
        let found = form(&full);
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        assert_eq!(keys(&found), required(&schema));
        for part in ["certificate", "unchanged", "bits"] {
            assert_eq!(keys(&found[part]), required(&schema["properties"][part]));
        }
        assert_eq!(found["certificate"]["pair"], json!(["tea", "milk"]));
        assert_eq!(found["certificate"]["output"], json!("?"));
        assert_eq!(found["certificate"]["gamma"], Value::Null);
        assert_eq!(found["certificate"]["cover"], Value::Null);
        assert_eq!(
            found["certificate"]["vocabulary"],
            json!("000000000000004d")
        );
        let warning = found["unchanged"]["warning"].as_str().unwrap();
        assert!(warning.contains("75% of common words"), "{warning}");
        assert_eq!(found["bits"]["value"], json!(2.5));
        assert_eq!(found["bits"]["exact"], json!(true));
        assert_eq!(found["bits"]["sampled"], json!(0));
        let estimated = form(&Guarantee {
            bits: Some(WordBits::Known {
                bits: Bits {
                    low: 2.25,
                    high: 2.75,
                    sampled: 4096,
                    ..Bits::exact(2.5)
                },
                entropy: 11.0,
            }),
            ..guarantee()
        });
        let bits = &estimated["bits"];
        assert_eq!((&bits["low"], &bits["high"]), (&json!(2.25), &json!(2.75)));
        assert_eq!(
            (&bits["exact"], &bits["sampled"]),
            (&json!(false), &json!(4096))
        );
        let lawless = form(&Guarantee {
            bits: Some(WordBits::Unknown("nobody knows")),
            ..guarantee()
        });
        assert_eq!(keys(&lawless["bits"]), keys(&found["bits"]));
        assert_eq!(lawless["bits"]["value"], Value::Null);
        assert_eq!(lawless["bits"]["why"], json!("nobody knows"));
        assert_eq!(found["sentence"], json!(full.to_string()));
        assert_eq!(found["for_users"], json!(full.for_users()));
    }
}
