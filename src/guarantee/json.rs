//! The serialised form of a guarantee: one for Python's `Guarantee.to_dict`, the command's report and
//! the service.
//!
//! `docs/reference/guarantee.schema.json` describes it. Numbers that are infinite are null, as JSON
//! has it; texts that are written from the other fields (`sentence`, `for_users`, `warning`) are
//! fields too.

use serde::{Serialize, Serializer};
use serde_json::json;

use super::{Guarantee, NamedCertificate, Unchanged, WordBits};

impl Serialize for Guarantee {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = json!({
            "mechanism": self.mechanism,
            "metric": self.metric,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "slack": self.slack,
            "void": self.void,
            "unknown": self.unknown(),
            "scope": self.scope,
            "outputs": self.outputs,
            "theorem": self.theorem,
            "arithmetic": self.arithmetic,
            "exceptions": self.exceptions,
            "certificate": self.certificate,
            "unchanged": self.unchanged,
            "bits": self.bits,
            "sentence": self.to_string(),
            "for_users": self.for_users(),
        });
        form.serialize(serializer)
    }
}

impl Serialize for NamedCertificate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let certificate = &self.certificate;
        let form = json!({
            "epsilon": certificate.epsilon,
            "nominal": certificate.nominal,
            "gamma": certificate.gamma,
            "pair": self.pair,
            "output": self.output,
            "vocabulary": certificate.vocabulary_name(),
            "cover": certificate.cover_name(),
            "method": certificate.method(),
        });
        form.serialize(serializer)
    }
}

impl Serialize for Unchanged {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = json!({
            "mean": self.mean,
            "worst": self.worst,
            "words": self.words,
            "draws": self.draws,
            "warning": self.warning(),
        });
        form.serialize(serializer)
    }
}

impl Serialize for WordBits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (known, why) = match *self {
            WordBits::Known { bits, entropy } => (Some((bits, entropy)), None),
            WordBits::Unknown(why) => (None, Some(why)),
        };
        let form = json!({
            "value": known.map(|(bits, _)| bits.value),
            "low": known.map(|(bits, _)| bits.low),
            "high": known.map(|(bits, _)| bits.high),
            "entropy": known.map(|(_, entropy)| entropy),
            "prior": WordBits::PRIOR,
            "exact": known.is_some_and(|(bits, _)| bits.sampled == 0),
            "sampled": known.map(|(bits, _)| bits.sampled),
            "why": why,
        });
        form.serialize(serializer)
    }
}

// tests/python/guarantees/test_guarantee_json.py compares every mechanism's keys with the schema.
#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::guarantee;
    use super::*;

    #[test]
    fn infinite_numbers_are_null_and_what_is_not_there_too() {
        let form = |of: &Guarantee| serde_json::to_value(of).unwrap();
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
}
