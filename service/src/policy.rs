//! Policies as they are applied: mechanisms, what is done to text around them, what is proved.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fastdx::calibration::Measures;
use fastdx::channel::word_bits;
use fastdx::guarantee::{Unchanged, WordBits};
use fastdx::spec::{Parts, Policies as Config, Policy as Offered, Spaces, Spec};
use fastdx::text::{Consistent, Counts, Oov, Replacements, TextPrivatizer, look_up, normalize};
use fastdx::{Control, Guarantee, Tem};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::metrics::{Family, MetricKind, Releases};

/// What holds where only parts of a text are privatised.
const SPANS: &str = "all that lies outside the spans is RELEASED AS IT IS, and where the spans lie";
/// An answer is padded to a multiple of no less and no more, in seconds: a connection waits for it.
const SHORTEST_PAD: f64 = 0.001;
const LONGEST_PAD: f64 = 60.0;

/// Bytes of texts that are drawn in one call: fewer than the library gives to its pool.
const TOGETHER: usize = 4095;

/// A named policy.
pub struct Policy {
    /// Its name.
    pub name: String,
    /// The mechanism and what is done to text around it.
    pub text: TextPrivatizer,
    /// Its complete description.
    pub spec: Spec,
    /// What every answer takes a whole multiple of.
    pub pad: Option<Duration>,
    /// Whether requests must give spans.
    pub spans_only: bool,
    /// Whether the page may show it, where the file says so.
    pub page: Option<bool>,
    /// What it does to words on the whole, once somebody has asked for it.
    pub measures: OnceCell<Measures>,
    /// Whether `--check` passes it although most common words come back as they were.
    pub allow_unchanged: bool,
    /// How often common words come back as they were, once it was measured.
    unchanged: OnceLock<Unchanged>,
    /// What a release tells of a word, in bits, once it was computed.
    bits: OnceLock<WordBits>,
    /// What was released under this name.
    pub released: Arc<Releases>,
    /// Words that are drawn before the service is ready, so that their lists and laws are made.
    warm: Vec<u32>,
}

/// All policies: what one reading of the file gave.
pub struct Policies {
    /// By name.
    pub named: BTreeMap<String, Arc<Policy>>,
    /// The one of requests that name none.
    pub default: Option<Arc<Policy>>,
}

impl Policies {
    /// Opens indexes and makes mechanisms; counts go on where a policy of the same name was there
    /// `before`.
    ///
    /// # Errors
    /// What is wrong, and of which policy.
    pub fn make(config: &Config, before: Option<&Policies>) -> Result<Self, String> {
        let mut spaces = Spaces::default();
        let mut named = BTreeMap::new();
        for (name, given) in &config.policies {
            let mut policy = Policy::make(name, given, &mut spaces)
                .map_err(|e| format!("policies.{name}: {e}"))?;
            if let Some(before) = before.and_then(|before| before.named.get(name)) {
                policy.released = before.released.clone();
            }
            named.insert(name.clone(), Arc::new(policy));
        }
        let default = config
            .default
            .as_ref()
            .and_then(|name| named.get(name).cloned());
        Ok(Policies { named, default })
    }

    /// Draws the words that each policy is warmed with.
    ///
    /// # Errors
    /// The operating system gives no random bits, or no memory.
    pub fn warm(&self) -> Result<(), String> {
        for (name, policy) in &self.named {
            for ids in policy.warm.chunks(1 << 20) {
                let drawn = policy.text.mechanism().privatize_ids(ids);
                drawn.map_err(|e| format!("policies.{name}: {e}"))?;
            }
        }
        Ok(())
    }

    /// Counts and caches of each policy.
    pub fn families(&self) -> Vec<Family> {
        let each = |of: &dyn Fn(&Policy) -> Option<f64>| {
            let named = self.named.values();
            let samples = named.filter_map(|policy| {
                Some((format!("{{policy=\"{}\"}}", policy.name), of(policy)?))
            });
            samples.collect::<Vec<_>>()
        };
        let family = |name, kind, help, samples| Family {
            name,
            kind,
            help,
            samples,
        };
        vec![
            family(
                "fastdx_releases_total",
                MetricKind::Counter,
                "Releases under a policy: requests, and pieces of streams.",
                each(&|policy| Some(policy.released.releases.load(Relaxed) as f64)),
            ),
            family(
                "fastdx_texts_total",
                MetricKind::Counter,
                "Texts that were released under a policy.",
                each(&|policy| Some(policy.released.texts.load(Relaxed) as f64)),
            ),
            family(
                "fastdx_words_total",
                MetricKind::Counter,
                "Words that were found in the texts that were released under a policy.",
                each(&|policy| Some(policy.released.words.load(Relaxed) as f64)),
            ),
            family(
                "fastdx_unchanged_mean",
                MetricKind::Gauge,
                "Mean probability that a common word comes back as it was under a policy.",
                each(&|policy| policy.unchanged.get().map(|found| found.mean)),
            ),
            family(
                "fastdx_unchanged_worst",
                MetricKind::Gauge,
                "Largest probability found that a common word comes back as it was under a policy.",
                each(&|policy| policy.unchanged.get().map(|found| found.worst)),
            ),
            family(
                "fastdx_bits",
                MetricKind::Gauge,
                "Bits that a release tells of a word under a policy, words being written by their rank.",
                each(&|policy| match policy.bits.get() {
                    Some(WordBits::Told { told, .. }) => Some(told.value),
                    _ => None,
                }),
            ),
            family(
                "fastdx_cache_bytes",
                MetricKind::Gauge,
                "Bytes of lists and laws that a policy keeps.",
                each(&|policy| policy.cache().map(|(kept, _)| kept as f64)),
            ),
            family(
                "fastdx_cache_bytes_limit",
                MetricKind::Gauge,
                "Bytes of lists and laws that a policy may keep.",
                each(&|policy| policy.cache().map(|(_, limit)| limit as f64)),
            ),
        ]
    }

    /// The policy of a name, or the default one.
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
            page: given.page,
            measures: OnceCell::new(),
            allow_unchanged: given.allow_unchanged,
            unchanged: OnceLock::new(),
            bits: OnceLock::new(),
            released: Arc::default(),
            warm,
        })
    }

    /// Measures how often common words come back as they were, or says what was measured before.
    ///
    /// # Errors
    /// The operating system gives no threads.
    pub fn unchanged(&self) -> Result<Unchanged, String> {
        let found = self.text.unchanged(&Control::new());
        let found = found.map_err(|e| format!("policies.{}: {e}", self.name))?;
        Ok(*self.unchanged.get_or_init(|| found))
    }

    /// Computes what a release tells of a word, in bits, or says what was computed before: of large
    /// vocabularies an estimate, whose cost is bounded.
    ///
    /// # Errors
    /// The operating system gives no threads.
    pub fn bits(&self) -> Result<WordBits, String> {
        if let Some(known) = self.bits.get() {
            return Ok(*known);
        }
        let found = word_bits(&self.text, &Control::new());
        let found = found.map_err(|e| format!("policies.{}: {e}", self.name))?;
        Ok(*self.bits.get_or_init(|| found))
    }

    /// What is proved, with what spans leave out where only they are privatised, and with what was
    /// measured so far.
    pub fn guarantee(&self) -> Guarantee {
        let mut guarantee = self.text.guarantee();
        guarantee.unchanged = self.unchanged.get().copied();
        guarantee.bits = self.bits.get().copied();
        if self.spans_only {
            guarantee.exceptions.push(SPANS.into());
        }
        guarantee
    }

    /// The guarantee as data, and around it what belongs to the policy.
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

    /// The card of its channel; none for a mechanism whose law cannot be computed, and for a seeded one,
    /// whose releases protect nobody.
    pub fn card(&self) -> Option<Value> {
        let lawful = self.text.mechanism().has_law() && self.spec.seed.is_none();
        lawful.then(|| self.spec.card())
    }

    /// Privatises each text; `kept` are the replacements of earlier pieces of the same request, which
    /// matter under [`Consistent::Call`].
    ///
    /// # Errors
    /// As [`TextPrivatizer::privatize_texts`].
    pub fn privatize(
        &self,
        texts: &[&str],
        kept: &mut Replacements,
    ) -> fastdx::Result<(Vec<String>, Counts)> {
        let control = Control::new();
        let around = self.text.policy();
        // Replacements are shared by all texts, or all texts are looked at before any is drawn.
        let whole = around.consistent == Consistent::Call || around.oov == Oov::Error;
        if whole || texts.len() == 1 {
            return self.text.privatize_texts_with(texts, kept, &control);
        }
        // On this thread: other requests have the other threads.
        let mut out = Vec::with_capacity(texts.len());
        let mut counts = Counts::default();
        let mut rest = texts;
        while !rest.is_empty() {
            let mut size = 0;
            let fits = rest.iter().take_while(|text| {
                size += text.len();
                size <= TOGETHER
            });
            let (some, later) = rest.split_at(fits.count().max(1));
            let (new, of) = self.text.privatize_texts(some, &control)?;
            out.extend(new);
            counts += of;
            rest = later;
        }
        Ok((out, counts))
    }

    /// Privatises words that the client has found.
    ///
    /// # Errors
    /// As [`TextPrivatizer::privatize_tokens`].
    pub fn privatize_tokens(
        &self,
        tokens: &[&str],
        kept: &mut Replacements,
    ) -> fastdx::Result<(Vec<String>, Counts)> {
        let control = Control::new();
        self.text.privatize_tokens_with(tokens, kept, &control)
    }

    /// Privatises parts of a text.
    ///
    /// # Errors
    /// As [`TextPrivatizer::privatize_spans`].
    pub fn privatize_spans(
        &self,
        text: &str,
        spans: &[Range<usize>],
        kept: &mut Replacements,
    ) -> fastdx::Result<(String, Vec<Range<usize>>, Counts)> {
        let control = Control::new();
        self.text.privatize_spans_with(text, spans, kept, &control)
    }

    /// What is kept of lists and laws, and what may be kept, in bytes.
    pub fn cache(&self) -> Option<(usize, usize)> {
        let tem: &Tem = self.text.mechanism().downcast_ref()?;
        let (limit, kept) = tem.cache_bytes();
        Some((kept, limit))
    }
}

/// Every word of a file once for each time it was counted there, up to a bound: its list is made,
/// and the law of one that is drawn often.
fn words_to_warm(vocabulary: &fastdx::Vocabulary, path: &Path) -> Result<Vec<u32>, String> {
    const MOST: u64 = 4096;
    let lines = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut ids = Vec::new();
    for (number, line) in (1..).zip(lines.lines()) {
        let (word, count) = line.split_once('\t').unwrap_or((line, "1"));
        let count: u64 = count.trim().parse().map_err(|_| {
            format!(
                "{}, line {number}: the count is no whole number",
                path.display()
            )
        })?;
        if let Some(id) = look_up(vocabulary, &normalize(word), word) {
            ids.extend(std::iter::repeat_n(id, count.clamp(1, MOST) as usize));
        }
    }
    Ok(ids)
}
