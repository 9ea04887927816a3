//! Reads a file of named policies, for the command's `--policy` and the service's configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::document::{Entry, document};
use super::{KEYS, Spec};
use crate::support::error::{Error, Result};
use crate::support::table::Field;

const LONGEST_NAME: usize = 64;
/// Keys of a policy that describe how a service offers it.
const OFFERED: [&str; 3] = ["spans_only", "warm", "allow_unchanged"];

/// The named policies in a TOML file, `[policies.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Policies {
    /// The policy of requests that name none. If there is only one policy, it is the default.
    pub default: Option<String>,
    /// The policies by name.
    pub policies: BTreeMap<String, Policy>,
}

/// A mechanism, and how a service offers it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// The mechanism.
    pub spec: Spec,
    /// Whether requests must give spans.
    pub spans_only: bool,
    /// A file of words whose lists and laws are computed before a service is ready. Each line has a
    /// word, optionally followed by a TAB and its count.
    pub warm: Option<PathBuf>,
    /// Whether the policy is accepted although most common words come back unchanged.
    pub allow_unchanged: bool,
}

impl Policies {
    /// Creates a file with one policy, `default`.
    pub fn of(policy: Policy) -> Self {
        let name = "default".to_owned();
        Policies {
            default: Some(name.clone()),
            policies: [(name, policy)].into(),
        }
    }

    /// Reads a file. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Format`] with the line.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
        Self::parse(path, &text)
    }

    /// Parses the text of a file; `path` is for messages.
    ///
    /// # Errors
    /// [`Error::Format`] with the line.
    pub fn parse(path: &Path, text: &str) -> Result<Self> {
        let (mut default, mut policies) = (None, BTreeMap::new());
        let folder = path.parent().unwrap_or(Path::new(""));
        let document = document(path, text)?;
        for entry in Entry::of(&document, path, text).entries()? {
            match entry.key() {
                "default" => {
                    let name = entry.value()?;
                    let name = Field::read("default", &name);
                    default = Some(name.map_err(|e| entry.located(e))?);
                }
                "policies" => {
                    for policy in entry.entries()? {
                        check_name(&policy)?;
                        let mut new = Policy::of(&policy)?;
                        new.spec = new.spec.relative_to(folder);
                        new.warm = new.warm.map(|file| folder.join(file));
                        policies.insert(policy.key().to_owned(), new);
                    }
                }
                _ => return Err(entry.unknown(&["default", "policies"])),
            }
        }
        Policies { default, policies }.checked(path)
    }

    fn checked(mut self, path: &Path) -> Result<Self> {
        let wrong = |reason: String| Error::Format {
            path: path.to_owned(),
            line: None,
            reason,
            offender: None,
        };
        if self.policies.is_empty() {
            return Err(wrong(
                "policies must hold at least one, [policies.NAME]".into(),
            ));
        }
        if self.policies.len() == 1 && self.default.is_none() {
            self.default = self.policies.keys().next().cloned();
        }
        match &self.default {
            Some(name) if !self.policies.contains_key(name) => Err(wrong(format!(
                "default must be the name of a policy, got {name:?}"
            ))),
            _ => Ok(self),
        }
    }
}

fn check_name(policy: &Entry<'_>) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name = policy.key();
    match !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(plain) {
        true => Ok(()),
        false => Err(policy.wrong(&format!(
            "must be named by 1 to {LONGEST_NAME} of A-Z, a-z, 0-9, - _ ."
        ))),
    }
}

impl Policy {
    fn of(table: &Entry<'_>) -> Result<Self> {
        let mut policy = Policy::default();
        for entry in table.entries()? {
            let value = entry.value()?;
            policy
                .set(&entry, &value)
                .map_err(|error| entry.located(error))?;
        }
        let complete = policy.spec.completed().and_then(|spec| {
            spec.check()?;
            Ok(spec)
        });
        policy.spec = complete.map_err(|error| table.located(error))?;
        Ok(policy)
    }

    fn set(&mut self, entry: &Entry<'_>, value: &Value) -> Result<()> {
        match entry.key() {
            "spans_only" => self.spans_only = Field::read("spans_only", value)?,
            "warm" => self.warm = Field::read("warm", value)?,
            "allow_unchanged" => self.allow_unchanged = Field::read("allow_unchanged", value)?,
            "seed" => return Err(entry.wrong("must be left out: a seed is for tests only")),
            name if KEYS.iter().any(|key| key.name == name) => self.spec.set(name, value)?,
            _ => {
                let known = KEYS
                    .iter()
                    .map(|key| key.name)
                    .filter(|name| *name != "seed");
                let mut known: Vec<&str> = known.chain(OFFERED).collect();
                known.sort_unstable();
                return Err(entry.unknown(&known));
            }
        }
        Ok(())
    }
}
