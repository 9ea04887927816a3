//! The description of a mechanism as data: a [`Spec`].
//!
//! Python's constructors, the command's options, policy files, the service's configuration and the
//! engines' recipes all create a `Spec`; [`Spec::build`] builds the mechanism. Every rule about
//! parameters, and every message about them, is here.
//!
//! A `Spec` is a flat table in JSON or TOML; unknown keys are refused:
//!
//! ```
//! use fastdx::{Control, policy::{Parts, Spaces, Spec}};
//! let spec: Spec = serde_json::from_str(r#"{"mechanism": "laplace", "epsilon": 8.0}"#).unwrap();
//! let built = spec.build(Parts::default(), &mut Spaces::default(), &Control::new())?;
//! assert_eq!(built.text.guarantee().epsilon, 8.0);
//! assert!(serde_json::from_str::<Spec>(r#"{"epsilom": 8.0}"#).is_err());
//! # Ok::<(), fastdx::Error>(())
//! ```
//!
//! [`Built::spec`] is the complete description of a built mechanism. It has the fingerprints of
//! words, covers and laws, so that it identifies exactly what was run.

mod build;
mod built;
mod data;
mod document;
mod exclusion;
mod keys;
mod language;
mod policies;
mod reference;

use std::path::{Path, PathBuf};

use build::builtin_of;
pub use build::{Parts, Spaces};
#[cfg(feature = "python")]
pub(crate) use build::{builtin_index, fingerprint_of_rows};
pub use built::Built;
pub use data::{CARD, TOKENIZER};
pub use exclusion::{Exclude, exclusion};
pub use keys::{KEYS, Key, Spec};
pub use language::{Language, Public};
pub use policies::{Policies, Policy};
pub use reference::{Builtin, CoverSource, Fingerprint, IndexSource, Reference};

use crate::mechanism::tem::recommended;
use crate::support::error::{Error, Result, check_epsilon};
use crate::support::names::named;
use crate::support::parallel::MAX_THREADS;
pub use crate::support::table::Type;

/// The mechanisms that a [`Spec`] can describe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// [`Tem`](crate::Tem).
    #[default]
    Tem,
    /// MADLIB: [`MultivariateLaplace`](crate::MultivariateLaplace).
    MultivariateLaplace,
    /// [`HyperbolicLaplace`](crate::HyperbolicLaplace).
    HyperbolicLaplace,
    /// [`FiniteLaw`](crate::FiniteLaw).
    FiniteLaw,
    /// [`Mahalanobis`](crate::mechanism::mahalanobis::Mahalanobis).
    Mahalanobis,
    /// [`NeighborResponse`](crate::NeighborResponse).
    NeighborResponse,
    /// Vickrey: [`NoisyNearest::vickrey`](crate::mechanism::noisy_nearest::NoisyNearest::vickrey).
    Vickrey,
}

named!(
    Kind, "mechanism",
    Kind::Tem => "tem",
    Kind::MultivariateLaplace => "laplace",
    Kind::HyperbolicLaplace => "hyperbolic",
    Kind::FiniteLaw => "law",
    Kind::Mahalanobis => "mahalanobis",
    Kind::NeighborResponse => "response",
    Kind::Vickrey => "vickrey",
);

impl Kind {
    /// The built-in embedding that the mechanism uses if no index is named.
    pub fn default_space(self) -> Builtin {
        match self {
            Kind::HyperbolicLaplace => Builtin::Nouns,
            _ => Builtin::English,
        }
    }

    fn takes_cover(self) -> bool {
        matches!(self, Kind::Tem | Kind::NeighborResponse)
    }
}

/// The largest `pad`, in seconds.
const LONGEST_PAD: f64 = 3600.0;

impl Spec {
    /// The policy that fastdx recommends, on the built-in English words:
    /// docs/research/what-you-keep.md has the measurements behind it.
    pub fn recommended() -> Self {
        Spec {
            epsilon: Some(recommended::EPSILON),
            language: Some(Language::Rank),
            ..Spec::default()
        }
    }

    /// Returns the description with the recommended ε and base measure, if `epsilon` is missing.
    ///
    /// # Errors
    /// [`Error::Parameter`] if another key describes the law, so that ε must be given.
    pub fn completed(&self) -> Result<Self> {
        if self.epsilon.is_some() || self.mechanism == Kind::FiniteLaw {
            return Ok(self.clone());
        }
        let english =
            (self.index.as_ref()).is_none_or(|index| index.builtin == Some(Builtin::English));
        let law = "gamma beta language cover balance remap certified";
        let said = match () {
            () if self.mechanism != Kind::Tem => Some("this mechanism"),
            () if !english => Some("an index"),
            () => law.split(' ').find(|key| self.get(key).is_some()),
        };
        if let Some(said) = said {
            let expected = format!(
                "given with {said}: the recommended policy is a Tem with language=\"rank\" on the \
                 built-in English words (fastdx calibrate finds the ε of another one)"
            );
            return Err(Error::parameter("epsilon", expected, "none"));
        }
        let recommended = Spec::recommended();
        Ok(Spec {
            epsilon: recommended.epsilon,
            language: recommended.language,
            ..self.clone()
        })
    }

    /// Checks each key, and the keys together, before anything is opened.
    ///
    /// # Errors
    /// [`Error::Parameter`] that names the key.
    pub fn check(&self) -> Result<()> {
        for key in KEYS {
            if !key.belongs_to(self.mechanism) && self.get(key.name).is_some() {
                let owners: Vec<&str> = key.of.iter().map(|kind| kind.name()).collect();
                let expected = format!("left out: it belongs to mechanism {}", owners.join(", "));
                let got = format!("one with mechanism {}", self.mechanism.name());
                return Err(Error::parameter(key.name, expected, got));
            }
        }
        if let Some(epsilon) = self.epsilon {
            check_epsilon(epsilon)?;
        }
        let refuse = |name, expected, got| Err(Error::parameter(name, expected, got));
        if self.gamma.is_some() && self.beta.is_some() {
            return refuse("beta", "left out where gamma is given", "both");
        }
        if self.balance.is_some() {
            let expected = "given with cover, the number of outputs";
            match &self.cover {
                Some(CoverSource::Count(_)) => {}
                None if self.mechanism == Kind::NeighborResponse => {}
                None => return refuse("balance", expected, "no cover"),
                Some(_) => {
                    return refuse("balance", "left out where cover is made already", "both");
                }
            }
        }
        if self.nominal.is_some() && self.certified != Some(true) {
            return refuse("nominal", "given with certified", "no certified");
        }
        if let Some(index) = &self.index {
            index.check()?;
        }
        if let Some(pad) = self.pad
            && !(pad > 0.0 && pad <= LONGEST_PAD)
        {
            let expected = format!("positive, at most {LONGEST_PAD} seconds");
            return Err(Error::parameter("pad", expected, pad));
        }
        if let Some(threads) = self.threads
            && !(1..=MAX_THREADS).contains(&threads)
        {
            let expected = format!("a number from 1 to {MAX_THREADS}");
            return Err(Error::parameter("threads", expected, threads));
        }
        Ok(())
    }

    /// The covers, the base measure and the law, where they are in files or in memory.
    fn references(&mut self) -> impl Iterator<Item = &mut Reference> {
        let covers = [&mut self.cover, &mut self.remap].into_iter().flatten();
        let covers = covers.filter_map(|cover| match cover {
            CoverSource::Stored(reference) => Some(reference),
            _ => None,
        });
        let language = match &mut self.language {
            Some(Language::Stored(reference)) => Some(reference),
            _ => None,
        };
        covers.chain(language).chain(&mut self.law)
    }

    /// Returns the description with file paths relative to a folder.
    pub fn relative_to(mut self, folder: &Path) -> Self {
        let join = |file: &mut Option<PathBuf>| {
            if let Some(file) = file {
                *file = folder.join(&*file);
            }
        };
        if let Some(index) = &mut self.index {
            join(&mut index.file);
            join(&mut index.vocabulary);
        }
        for reference in self.references() {
            join(&mut reference.file);
        }
        if let Exclude::File(file) = &mut self.exclude {
            *file = folder.join(&*file);
        }
        self
    }

    /// Returns the description without the paths of files that have fingerprints. Two descriptions
    /// denote the same mechanism if these are equal. A file of built-in words counts as built in.
    pub fn without_files(mut self) -> Self {
        if let Some(index) = &mut self.index
            && let Some(fingerprint) = index.fingerprint
        {
            index.file = None;
            index.builtin = index.builtin.or_else(|| builtin_of(fingerprint.0));
            (index.format, index.limit, index.vocabulary) = (None, None, None);
        }
        for reference in self.references() {
            if reference.fingerprint.is_some() {
                reference.file = None;
            }
        }
        self
    }

    /// Returns the description without keys that do not affect the law: `seed`, `pad`,
    /// `cache_bytes`, `threads`, `verify`.
    pub fn released(mut self) -> Self {
        (self.seed, self.pad, self.cache_bytes, self.threads) = (None, None, None, None);
        self.verify = None;
        self
    }
}
