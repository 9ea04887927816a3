//! Policies as they are applied: mechanisms, what is done to text around them, what is proved.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fastdx::cover::{Balance, Build, offensive};
use fastdx::guarantee::Unchanged;
use fastdx::index::Index;
use fastdx::mechanism::tem::Truncation;
use fastdx::text::{
    Consistent, Counts, Oov, Policy as TextPolicy, Replacements, TextPrivatizer, look_up, normalize,
};
use fastdx::{
    Control, Cover, Embedding, Guarantee, Mechanism, MultivariateLaplace, Randomness, Tem,
    WordMechanism,
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::config::{Config, ConsistentConfig, Exclude, Kind, PolicyConfig};
use crate::metrics::{Family, MetricKind, Releases};
use crate::page::Measures;

/// What holds where only parts of a text are privatised.
const SPANS: &str = "all that lies outside the spans is RELEASED AS IT IS, and where the spans lie";
/// The longest that an answer is padded to a multiple of.
const LONGEST_PAD: f64 = 60.0;

/// Bytes of texts that are drawn in one call: fewer than the library gives to its pool.
const TOGETHER: usize = 4095;

/// A named policy.
pub struct Policy {
    /// Its name.
    pub name: String,
    /// The mechanism and what is done to text around it.
    pub text: TextPrivatizer,
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

/// Indexes that are open: policies on one file share it.
#[derive(Default)]
struct Spaces {
    english: Option<Arc<Embedding>>,
    files: HashMap<(PathBuf, bool), Index>,
}

impl Spaces {
    fn open(&mut self, path: Option<&Path>, verify: bool) -> fastdx::Result<Index> {
        let Some(path) = path else {
            let english = match &self.english {
                Some(english) => english.clone(),
                None => Arc::new(Embedding::default_english()?),
            };
            self.english = Some(english.clone());
            return Ok(Index::Embedding(english));
        };
        let key = (path.to_owned(), verify);
        if let Some(index) = self.files.get(&key) {
            return Ok(index.clone());
        }
        let index = Index::open(path, verify)?;
        self.files.insert(key, index.clone());
        Ok(index)
    }
}

impl Policy {
    fn make(name: &str, given: &PolicyConfig, spaces: &mut Spaces) -> Result<Self, String> {
        let text = |e: fastdx::Error| e.to_string();
        let index = spaces
            .open(given.index.as_deref(), given.verify)
            .map_err(text)?;
        let consistent = match &given.consistent {
            ConsistentConfig::Flag(false) => Consistent::Never,
            ConsistentConfig::Flag(true) => Consistent::Text,
            ConsistentConfig::Named(name) if name == "call" => Consistent::Call,
            ConsistentConfig::Named(name) => {
                return Err(format!(
                    "consistent must be true, false or \"call\", got {name:?}"
                ));
            }
        };
        let around = TextPolicy {
            oov: given.oov.parse().map_err(text)?,
            skip: (given.skip.iter())
                .map(|word| normalize(word).into_owned())
                .collect(),
            consistent,
        };
        let pad = match given.pad {
            Some(pad) if !(0.001..=LONGEST_PAD).contains(&pad) => {
                return Err(format!(
                    "pad must be from 0.001 to {LONGEST_PAD} seconds, got {pad}"
                ));
            }
            pad => pad.map(Duration::from_secs_f64),
        };
        let mechanism = mechanism(given, &index)?;
        let warm = match &given.warm {
            Some(path) => words_to_warm(mechanism.vocabulary(), path)?,
            None => Vec::new(),
        };
        Ok(Policy {
            name: name.to_owned(),
            text: TextPrivatizer::new(mechanism, around),
            pad,
            spans_only: given.spans_only,
            page: given.page,
            measures: OnceCell::new(),
            allow_unchanged: given.allow_unchanged,
            unchanged: OnceLock::new(),
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

    /// What is proved, with what spans leave out where only they are privatised, and with what was
    /// measured so far.
    pub fn guarantee(&self) -> Guarantee {
        let mut guarantee = self.text.guarantee();
        guarantee.unchanged = self.unchanged.get().copied();
        if self.spans_only {
            guarantee.exceptions.push(SPANS.into());
        }
        guarantee
    }

    /// The guarantee as data, and as a sentence.
    pub fn describe(&self) -> Value {
        let g = self.guarantee();
        let finite = |x: f64| x.is_finite().then_some(x);
        json!({
            "policy": self.name,
            "mechanism": g.mechanism,
            "metric": g.metric,
            "epsilon": finite(g.epsilon),
            "delta": g.delta,
            "slack": finite(g.slack),
            "void": g.void,
            "unknown": g.unknown_is_random.then_some(g.unknown_bound).and_then(finite),
            "scope": g.scope,
            "outputs": g.outputs,
            "theorem": g.theorem,
            "arithmetic": g.arithmetic,
            "exceptions": g.exceptions,
            "words": self.text.mechanism().vocabulary().len(),
            "unchanged": g.unchanged.map(|found| json!({
                "mean": found.mean,
                "worst": found.worst,
                "words": found.words,
                "warning": found.warning(),
            })),
            "spans_only": self.spans_only,
            "with_spans": SPANS,
            "pad": self.pad.map(|p| p.as_secs_f64()),
            "sentence": g.to_string(),
            "for_users": g.for_users(),
        })
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

fn excluded(given: &Exclude, vocabulary: &fastdx::Vocabulary) -> Result<Vec<u32>, String> {
    let file;
    let words: Vec<&str> = match given {
        Exclude::Words(words) => words.iter().map(String::as_str).collect(),
        Exclude::Named(name) => match &**name {
            "none" => Vec::new(),
            "offensive" => offensive(),
            path => {
                file =
                    std::fs::read_to_string(path).map_err(|e| format!("exclude: {path}: {e}"))?;
                file.lines()
                    .map(str::trim)
                    .filter(|l| !l.is_empty())
                    .collect()
            }
        },
    };
    // As the library's own: a word in any case of its letters.
    let forms: std::collections::HashSet<String> =
        words.iter().map(|w| normalize(w).into_owned()).collect();
    let ids = vocabulary
        .iter()
        .enumerate()
        .filter(|(_, w)| forms.contains(&*normalize(w)));
    Ok(ids.map(|(id, _)| id as u32).collect())
}

fn mechanism(given: &PolicyConfig, index: &Index) -> Result<Arc<dyn Mechanism>, String> {
    let text = |e: fastdx::Error| e.to_string();
    let space = index.space();
    let exclude = excluded(&given.exclude, space.vocabulary())?;
    let made: Arc<dyn Mechanism> = match given.mechanism {
        Kind::Laplace => {
            let Index::Embedding(embedding) = index else {
                return Err("mechanism = \"laplace\" needs an index with vectors".into());
            };
            for (name, set) in [
                ("gamma", given.gamma.is_some()),
                ("beta", given.beta.is_some()),
                ("cover", given.cover.is_some()),
                ("balance", given.balance.is_some()),
                ("cache_bytes", given.cache_bytes.is_some()),
            ] {
                if set {
                    return Err(format!("{name} goes with mechanism = \"tem\""));
                }
            }
            let randomness = Randomness::new(None);
            let laplace = MultivariateLaplace::new(embedding.clone(), given.epsilon, randomness);
            Arc::new(laplace.map_err(text)?)
        }
        Kind::Tem => {
            let truncation = match (given.gamma, given.beta) {
                (Some(_), Some(_)) => return Err("gamma and beta: give one of them".into()),
                (Some(gamma), None) => Truncation::Gamma(gamma),
                (None, beta) => beta.map_or_else(Truncation::default, Truncation::Beta),
            };
            let randomness = Randomness::new(None);
            let mut tem =
                Tem::new(space.clone(), given.epsilon, truncation, randomness).map_err(text)?;
            if let Some(bytes) = given.cache_bytes {
                tem = tem.with_cache_bytes(bytes);
            }
            let cover = cover(given, index, &exclude).map_err(text)?;
            if given.balance.is_some() && given.cover.is_none() {
                return Err("balance goes with cover".into());
            }
            if cover.is_some() {
                tem = tem.with_cover(cover).map_err(text)?;
            }
            Arc::new(tem)
        }
    };
    let done = made.excluded();
    match exclude.iter().all(|id| done.binary_search(id).is_ok()) {
        true => Ok(made),
        false => made.excluding(&exclude).map_err(text),
    }
}

fn cover(
    given: &PolicyConfig,
    index: &Index,
    exclude: &[u32],
) -> fastdx::Result<Option<Arc<Cover>>> {
    let space = index.space();
    let Some(k) = given.cover else {
        return Ok(match index {
            Index::Embedding(embedding) => embedding.cover().cloned(),
            Index::Graph(graph) => graph.cover().cloned(),
        });
    };
    let build = Build {
        exclude: exclude.to_vec(),
        ..Build::default()
    };
    let control = Control::new();
    let cover = match given.balance {
        Some(weight) => {
            let balance = Balance::by_rank(space.vocabulary().len(), weight);
            Cover::balanced(&*space, k, &balance, &build, &control)
        }
        None => Cover::nearest(&*space, k, &build, &control),
    };
    let cover = cover.map_err(|e| e.renamed("k", "cover").renamed("weight", "balance"))?;
    Ok(Some(Arc::new(cover)))
}
