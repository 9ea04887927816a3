//! Policies in use: mechanisms, their handling of text, and their guarantees.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fastdx::channel::word_bits;
use fastdx::guarantee::measured::calibration;
use fastdx::guarantee::{Unchanged, WordBits};
use fastdx::policy::{Parts, Policies as Config, Policy as Offered, Spaces, Spec};
use fastdx::text::{TextPrivatizer, look_up, normalize};
use fastdx::{Control, Guarantee};
use serde_json::{Value, json};

/// The exception if only parts of a text are privatised.
const SPANS: &str = "all that lies outside the spans is RELEASED AS IT IS, and where the spans lie";
/// The smallest and the largest unit of padding, in seconds: a connection waits for it.
const SHORTEST_PAD: f64 = 0.001;
const LONGEST_PAD: f64 = 60.0;

pub struct Policy {
    pub name: String,
    /// The mechanism and its handling of text.
    pub text: TextPrivatizer,
    pub spec: Spec,
    /// Every answer takes a multiple of this time.
    pub pad: Option<Duration>,
    /// Whether requests must give spans.
    pub spans_only: bool,
    /// Whether `--check` accepts it although most common words come back unchanged.
    pub allow_unchanged: bool,
    /// How often common words come back unchanged, once measured.
    unchanged: OnceLock<Unchanged>,
    /// The bits that a release tells of a word, once they are computed.
    bits: OnceLock<WordBits>,
    /// Words that are drawn before the service is ready, so that their lists and laws are computed.
    warm: Vec<u32>,
}

/// All policies from one reading of the file.
pub struct Policies {
    pub named: BTreeMap<String, Arc<Policy>>,
    /// The policy of requests that name none.
    pub default: Option<Arc<Policy>>,
}

impl Policies {
    /// Opens indexes and builds mechanisms.
    pub fn make(config: &Config) -> Result<Self, String> {
        let mut spaces = Spaces::default();
        let mut named = BTreeMap::new();
        for (name, given) in &config.policies {
            let policy = Policy::make(name, given, &mut spaces)
                .map_err(|e| format!("policies.{name}: {e}"))?;
            named.insert(name.clone(), Arc::new(policy));
        }
        let default = config
            .default
            .as_ref()
            .and_then(|name| named.get(name).cloned());
        Ok(Policies { named, default })
    }

    /// Draws each policy's warm-up words.
    pub fn warm(&self) -> Result<(), String> {
        for (name, policy) in &self.named {
            for ids in policy.warm.chunks(1 << 20) {
                let drawn = policy.text.mechanism().privatize_ids(ids);
                drawn.map_err(|e| format!("policies.{name}: {e}"))?;
            }
        }
        Ok(())
    }

    /// The policy with a name, or the default.
    pub fn get(&self, name: Option<&str>) -> Option<&Arc<Policy>> {
        match name {
            Some(name) => self.named.get(name),
            None => self.default.as_ref(),
        }
    }
}

impl Policy {
    fn make(name: &str, given: &Offered, spaces: &mut Spaces) -> Result<Self, String> {
        let text = |e: fastdx::Error| e.to_string();
        if let Some(pad) = given.spec.pad
            && !(SHORTEST_PAD..=LONGEST_PAD).contains(&pad)
        {
            return Err(format!(
                "pad must be from {SHORTEST_PAD} to {LONGEST_PAD} seconds in a service, got {pad}"
            ));
        }
        if given.spec.threads.is_some() {
            return Err("threads must be left out: a service has its own, --threads".into());
        }
        let built = given.spec.build(Parts::default(), spaces, &Control::new());
        let built = built.map_err(text)?;
        let warm = match &given.warm {
            Some(path) => words_to_warm(built.text.mechanism().vocabulary(), path)?,
            None => Vec::new(),
        };
        Ok(Policy {
            name: name.to_owned(),
            pad: built.pad,
            spec: built.spec(),
            text: built.text,
            spans_only: given.spans_only,
            allow_unchanged: given.allow_unchanged,
            unchanged: OnceLock::new(),
            bits: OnceLock::new(),
            warm,
        })
    }

    /// Says of what law [`unchanged`](Self::unchanged) is.
    pub fn without_history(&self) -> &'static str {
        match self.text.mechanism().in_order() {
            Some(_) => "without a history, ",
            None => "",
        }
    }

    /// Measures how often common words come back unchanged, or returns the earlier measurement. Where
    /// a law depends on what was released before, it is that of the law without it.
    pub fn unchanged(&self) -> Result<Unchanged, String> {
        let wrong = |e| format!("policies.{}: {e}", self.name);
        if let Some(tem) = self.text.mechanism().in_order() {
            // No promise shows this: it is not the law of a text.
            return calibration::unchanged(tem.tem(), &Control::new()).map_err(wrong);
        }
        let found = self.text.unchanged(&Control::new()).map_err(wrong)?;
        Ok(*self.unchanged.get_or_init(|| found))
    }

    /// Computes the bits that a release tells of a word, or returns them if they are known. For large
    /// vocabularies they are an estimate, whose cost is bounded.
    pub fn bits(&self) -> Result<WordBits, String> {
        if let Some(known) = self.bits.get() {
            return Ok(*known);
        }
        let found = word_bits(&self.text, &Control::new());
        let found = found.map_err(|e| format!("policies.{}: {e}", self.name))?;
        Ok(*self.bits.get_or_init(|| found))
    }

    /// The guarantee, with the exception for spans if only they are privatised, and with the
    /// measurements so far.
    pub fn guarantee(&self) -> Guarantee {
        let mut guarantee = self.text.guarantee();
        guarantee.unchanged = self.unchanged.get().copied();
        guarantee.bits = self.bits.get().copied();
        if self.spans_only {
            guarantee.exceptions.push(SPANS.into());
        }
        guarantee
    }

    /// The guarantee as data, together with the policy's other settings.
    pub fn describe(&self) -> Value {
        json!({
            "policy": self.name,
            "spec": self.spec.clone().without_files().released(),
            "words": self.text.mechanism().vocabulary().len(),
            "spans_only": self.spans_only,
            "with_spans": SPANS,
            "pad": self.pad.map(|p| p.as_secs_f64()),
            "guarantee": self.guarantee(),
        })
    }

    /// The card of its channel. `None` for a mechanism whose law cannot be computed, and for a
    /// seeded one, whose releases protect nobody.
    pub fn card(&self) -> Option<Value> {
        let lawful = self.text.mechanism().has_law() && self.spec.seed.is_none();
        lawful.then(|| self.spec.card())
    }
}

/// The words of a file, each as often as it was counted there, up to a limit. Drawing them computes
/// their lists, and the laws of frequent words.
fn words_to_warm(vocabulary: &fastdx::Vocabulary, path: &Path) -> Result<Vec<u32>, String> {
    const MAX_COUNT: u64 = 4096;
    let lines = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut ids = Vec::new();
    for (number, line) in (1..).zip(lines.lines()) {
        let (word, count) = line.split_once('\t').unwrap_or((line, "1"));
        let count: u64 = count.trim().parse().map_err(|_| {
            format!(
                "{}, line {number}: the count is not an integer",
                path.display()
            )
        })?;
        if let Some(id) = look_up(vocabulary, &normalize(word), word) {
            ids.extend(std::iter::repeat_n(id, count.clamp(1, MAX_COUNT) as usize));
        }
    }
    Ok(ids)
}
