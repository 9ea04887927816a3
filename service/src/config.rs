//! The TOML file of named policies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fastdx::mechanism::tem::recommended;

use crate::toml_file::{Entry, Wrong, document};

/// What a file of policies holds.
#[derive(Clone, Debug)]
pub struct Config {
    /// The policy of requests that name none; may be left out where there is only one.
    pub default: Option<String>,
    /// The policies by name.
    pub policies: BTreeMap<String, PolicyConfig>,
}

/// Which mechanism a policy applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// The truncated exponential mechanism.
    #[default]
    Tem,
    /// Multivariate Laplace noise, then the nearest word.
    Laplace,
}

/// Words that are never released.
#[derive(Clone, Debug)]
pub enum Exclude {
    /// `"offensive"`, `"none"`, or a file of words, one a line.
    Named(String),
    /// The words themselves.
    Words(Vec<String>),
}

impl Default for Exclude {
    fn default() -> Self {
        Exclude::Named("offensive".into())
    }
}

/// Whether equal words get the same replacement.
#[derive(Clone, Debug)]
pub enum ConsistentConfig {
    /// Within a text, or not at all.
    Flag(bool),
    /// `"call"`: within all texts of a request.
    Named(String),
}

impl Default for ConsistentConfig {
    fn default() -> Self {
        ConsistentConfig::Flag(false)
    }
}

/// One policy as the file has it.
#[derive(Clone, Debug)]
pub struct PolicyConfig {
    /// The mechanism.
    pub mechanism: Kind,
    /// ε per unit of distance.
    pub epsilon: f64,
    /// Tem's γ; by default it follows from β.
    pub gamma: Option<f64>,
    /// Tem's β.
    pub beta: Option<f64>,
    /// A file that `fastdx index build` or `save` wrote; without one the built-in English words.
    pub index: Option<PathBuf>,
    /// Whether every checksum of the index is checked when it is opened.
    pub verify: bool,
    /// Outputs that stand for each word; without it the index's own cover, if it has one.
    pub cover: Option<usize>,
    /// With `cover`: the weight of like frequencies (`Cover.balanced`).
    pub balance: Option<f64>,
    /// Words that are never released.
    pub exclude: Exclude,
    /// What becomes of unknown words.
    pub oov: String,
    /// Words released as they are.
    pub skip: Vec<String>,
    /// Whether equal words get the same replacement.
    pub consistent: ConsistentConfig,
    /// Seconds, of which every answer takes a whole multiple.
    pub pad: Option<f64>,
    /// Whether requests must give spans.
    pub spans_only: bool,
    /// Bytes of lists and laws that are kept at most.
    pub cache_bytes: Option<usize>,
    /// A file of words whose lists and laws are made before the service is ready: a word a line,
    /// a TAB and its count may follow.
    pub warm: Option<PathBuf>,
    /// Whether the page at `/` may show it; by default, where no ledger is kept.
    pub page: Option<bool>,
    /// Whether `--check` passes it although most common words come back as they were.
    pub allow_unchanged: bool,
}

impl PolicyConfig {
    /// The built-in English words under Tem.
    pub fn english(epsilon: f64) -> Self {
        PolicyConfig {
            mechanism: Kind::Tem,
            epsilon,
            gamma: None,
            beta: None,
            index: None,
            verify: true,
            cover: None,
            balance: None,
            exclude: Exclude::default(),
            oov: "random".into(),
            skip: Vec::new(),
            consistent: ConsistentConfig::default(),
            pad: None,
            spans_only: false,
            cache_bytes: None,
            warm: None,
            page: None,
            allow_unchanged: false,
        }
    }

    /// The policy that fastdx recommends, on the built-in English words.
    pub fn recommended() -> Self {
        PolicyConfig {
            cover: Some(recommended::COVER),
            balance: Some(recommended::BALANCE),
            ..PolicyConfig::english(recommended::EPSILON)
        }
    }

    /// Whether it is a Tem on the built-in words with nothing said of its law.
    fn leaves_the_law_open(&self) -> bool {
        let parameters = [self.gamma, self.beta, self.balance];
        self.mechanism == Kind::Tem
            && self.index.is_none()
            && self.cover.is_none()
            && parameters.iter().all(Option::is_none)
    }

    /// Reads the table of one policy. Without ε it is the recommended one.
    fn read(table: Entry) -> Result<Self, Wrong> {
        let mut epsilon = None;
        let mut policy = PolicyConfig::english(f64::NAN);
        for entry in table.entries()? {
            match entry.key() {
                "mechanism" => policy.mechanism = Kind::read(&entry)?,
                "epsilon" => epsilon = Some(entry.number()?),
                "gamma" => policy.gamma = Some(entry.number()?),
                "beta" => policy.beta = Some(entry.number()?),
                "index" => policy.index = Some(entry.text()?.into()),
                "verify" => policy.verify = entry.flag()?,
                "cover" => policy.cover = Some(entry.whole()?),
                "balance" => policy.balance = Some(entry.number()?),
                "exclude" => policy.exclude = Exclude::read(&entry)?,
                "oov" => policy.oov = entry.text()?,
                "skip" => policy.skip = entry.texts()?,
                "consistent" => policy.consistent = ConsistentConfig::read(&entry)?,
                "pad" => policy.pad = Some(entry.number()?),
                "spans_only" => policy.spans_only = entry.flag()?,
                "cache_bytes" => policy.cache_bytes = Some(entry.whole()?),
                "warm" => policy.warm = Some(entry.text()?.into()),
                "page" => policy.page = Some(entry.flag()?),
                "allow_unchanged" => policy.allow_unchanged = entry.flag()?,
                _ => return Err(entry.unknown(KEYS)),
            }
        }
        match epsilon {
            Some(epsilon) => policy.epsilon = epsilon,
            None if policy.leaves_the_law_open() => {
                let PolicyConfig {
                    epsilon,
                    cover,
                    balance,
                    ..
                } = PolicyConfig::recommended();
                policy = PolicyConfig {
                    epsilon,
                    cover,
                    balance,
                    ..policy
                };
            }
            None => return Err(table.lacks("epsilon")),
        }
        Ok(policy)
    }
}

/// The keys of a policy, for who misspelt one.
const KEYS: &str = "allow_unchanged, balance, beta, cache_bytes, consistent, cover, epsilon, exclude, gamma, index, \
    mechanism, oov, pad, page, skip, spans_only, verify, warm";

impl Kind {
    fn read(entry: &Entry) -> Result<Self, Wrong> {
        match entry.text().as_deref() {
            Ok("tem") => Ok(Kind::Tem),
            Ok("laplace") => Ok(Kind::Laplace),
            _ => Err(entry.must_be("\"tem\" or \"laplace\"")),
        }
    }
}

impl Exclude {
    fn read(entry: &Entry) -> Result<Self, Wrong> {
        let named = entry.text().map(Exclude::Named);
        named
            .or_else(|_| entry.texts().map(Exclude::Words))
            .map_err(|_| {
                entry.must_be("\"offensive\", \"none\", the path of a file, or a list of words")
            })
    }
}

impl ConsistentConfig {
    fn read(entry: &Entry) -> Result<Self, Wrong> {
        let flag = entry.flag().map(ConsistentConfig::Flag);
        flag.or_else(|_| entry.text().map(ConsistentConfig::Named))
            .map_err(|_| entry.must_be("true, false or \"call\""))
    }
}

/// The longest name of a policy.
const LONGEST_NAME: usize = 64;

impl Config {
    /// One policy, `default`, on the built-in English words: Tem at an ε, or the recommended one.
    pub fn english(epsilon: Option<f64>, allow_unchanged: bool) -> Self {
        let name = "default".to_owned();
        let policy = PolicyConfig {
            allow_unchanged,
            ..epsilon.map_or_else(PolicyConfig::recommended, PolicyConfig::english)
        };
        Config {
            default: Some(name.clone()),
            policies: [(name, policy)].into(),
        }
    }

    /// Reads a file. Paths in it are relative to where it stands.
    ///
    /// # Errors
    /// What is wrong, with the file and the line.
    pub fn read(path: &Path) -> Result<Self, String> {
        let at = |what: String| format!("{}: {what}", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| at(e.to_string()))?;
        let mut config = Config::parse(&text).map_err(|wrong| at(wrong.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for policy in config.policies.values_mut() {
            if let Exclude::Named(file) = &mut policy.exclude
                && file != "offensive"
                && file != "none"
            {
                *file = folder.join(&*file).to_string_lossy().into_owned();
            }
            for file in [&mut policy.index, &mut policy.warm].into_iter().flatten() {
                *file = folder.join(&*file);
            }
        }
        config.check().map_err(at)?;
        Ok(config)
    }

    fn parse(text: &str) -> Result<Self, Wrong> {
        let (mut default, mut policies) = (None, BTreeMap::new());
        let document = document(text)?;
        for entry in Entry::of(&document, text).entries()? {
            match entry.key() {
                "default" => default = Some(entry.text()?),
                "policies" => {
                    for policy in entry.entries()? {
                        policies.insert(policy.key().to_owned(), PolicyConfig::read(policy)?);
                    }
                }
                _ => return Err(entry.unknown("default, policies")),
            }
        }
        Ok(Config { default, policies })
    }

    fn check(&mut self) -> Result<(), String> {
        for name in self.policies.keys() {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(plain) {
                return Err(format!(
                    "policies.{name:?} must be named by 1 to {LONGEST_NAME} of A-Z, a-z, 0-9, - _ ."
                ));
            }
        }
        let only = match self.policies.len() {
            1 => self.policies.keys().next().cloned(),
            _ => None,
        };
        self.default = self.default.take().or(only);
        match &self.default {
            Some(name) if !self.policies.contains_key(name) => Err(format!(
                "default must be the name of a policy, got {name:?}"
            )),
            None if self.policies.is_empty() => Err("policies must hold at least one".into()),
            _ => Ok(()),
        }
    }
}
