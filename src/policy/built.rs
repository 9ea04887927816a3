//! A built mechanism, and its complete description.

use std::sync::Arc;
use std::time::Duration;

use super::build::{MIXING, TUNING, builtin_of, index_cover};
use super::{
    CoverSource, Exclude, Fingerprint, IndexSource, Kind, Language, Public, Reference, Spec,
};
use crate::cover::Cover;
use crate::distance::search::Search;
use crate::mechanism::Mechanism;
use crate::mechanism::finite_law::FiniteLaw;
use crate::mechanism::multivariate_laplace::MultivariateLaplace;
use crate::mechanism::tem::Truncation;
use crate::support::error::Result;
use crate::text::TextPrivatizer;
use crate::words::index::Index;

/// A built mechanism with its handling of text.
#[derive(Clone)]
pub struct Built {
    /// Privatises texts.
    pub text: TextPrivatizer,
    /// The words, with all data computed for them.
    pub index: Index,
    /// Every call takes a multiple of this time.
    pub pad: Option<Duration>,
    /// Ids of the words that the description excludes.
    pub exclude: Vec<u32>,
    /// The cover of the outputs, before words are excluded.
    pub cover: Option<Arc<Cover>>,
    /// The base measure of a Tem, over all words.
    pub language: Option<Public>,
    /// The cover that outputs are remapped by, before words are excluded.
    pub remap: Option<Arc<Cover>>,
    pub(super) spec: Spec,
}

impl Built {
    /// The complete description of the built mechanism. It has the fingerprints of words and
    /// covers, so that it identifies exactly what was run.
    pub fn spec(&self) -> Spec {
        let mut spec = self.spec.clone();
        let space = self.index.space();
        let print = space.fingerprint();
        let source = spec.index.get_or_insert_with(IndexSource::default);
        source.fingerprint = Some(Fingerprint(print));
        if source.file.is_none() && source.builtin.is_none() {
            source.builtin = builtin_of(print);
        }
        if !matches!(spec.exclude, Exclude::Offensive | Exclude::None) {
            spec.exclude = Exclude::of_ids(space.vocabulary(), &self.exclude);
        }
        if spec.mechanism.takes_cover() {
            spec.cover = Some(self.cover_source(spec.cover.take()));
        }
        if let (Some(CoverSource::Stored(reference)), Some(remap)) = (&mut spec.remap, &self.remap)
        {
            reference.fingerprint = Some(Fingerprint(remap.fingerprint()));
        }
        self.say_defaults(&mut spec);
        spec
    }

    /// Fills in defaults, and the values that `auto` was resolved to.
    fn say_defaults(&self, spec: &mut Spec) {
        let text = |name: &str| Some(name.to_owned());
        match spec.mechanism {
            Kind::Tem => {
                if spec.gamma.is_none()
                    && let Truncation::Beta(beta) = Truncation::default()
                {
                    spec.beta.get_or_insert(beta);
                }
                spec.language = self.language(spec.language.take());
            }
            Kind::HyperbolicLaplace => {
                spec.base = spec.base.take().or(text("volume"));
            }
            Kind::Mahalanobis => {
                spec.mixing.get_or_insert(MIXING);
            }
            Kind::Vickrey => {
                spec.tuning.get_or_insert(TUNING);
                spec.mixing.get_or_insert(0.0);
            }
            Kind::MultivariateLaplace => {
                let laplace: Option<&MultivariateLaplace> = self.text.mechanism().downcast_ref();
                (spec.search, spec.ef) = match laplace.map(MultivariateLaplace::search) {
                    Some(Search::Hnsw { ef }) => (text("hnsw"), Some(ef)),
                    _ => (text("exact"), None),
                };
            }
            Kind::FiniteLaw => {
                let law: Option<&FiniteLaw> = self.text.mechanism().downcast_ref();
                spec.certified = Some(law.is_some_and(|law| law.loss().is_some()));
            }
            Kind::NeighborResponse => {}
        }
    }

    /// The source of the base measure, with its fingerprint; `None` if it is uniform.
    fn language(&self, given: Option<Language>) -> Option<Language> {
        let measure = self.language.as_ref()?;
        Some(match given {
            Some(Language::Stored(reference)) => Language::Stored(Reference {
                fingerprint: measure.fingerprint().map(Fingerprint),
                ..reference
            }),
            Some(named @ (Language::Rank | Language::English)) => named,
            _ => Language::Frequency,
        })
    }

    /// The source of the cover, with its fingerprint.
    fn cover_source(&self, given: Option<CoverSource>) -> CoverSource {
        match (given, &self.cover) {
            (Some(CoverSource::Count(count)), _) => CoverSource::Count(count),
            (_, None) => CoverSource::None,
            // Neither given nor in the index: the default number of outputs.
            (None, Some(cover)) if index_cover(&self.index).is_none() => {
                CoverSource::Count(cover.k())
            }
            (given, Some(cover)) => CoverSource::Stored(Reference {
                file: match given {
                    Some(CoverSource::Stored(reference)) => reference.file,
                    _ => None,
                },
                fingerprint: Some(Fingerprint(cover.fingerprint())),
            }),
        }
    }

    /// Returns the same at another ε.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) for an ε outside the mechanism's domain.
    pub fn with_epsilon(&self, epsilon: f64) -> Result<Self> {
        let mechanism = self.text.mechanism().with_epsilon(epsilon)?;
        let spec = Spec {
            epsilon: Some(epsilon),
            certified: None,
            nominal: None,
            ..self.spec.clone()
        };
        self.around(mechanism, self.index.clone(), spec)
    }

    /// Returns the same handling of text around another mechanism of its kind.
    ///
    /// # Errors
    /// The errors of [`TextPrivatizer::new`].
    pub(crate) fn around(
        &self,
        mechanism: Arc<dyn Mechanism>,
        index: Index,
        spec: Spec,
    ) -> Result<Self> {
        Ok(Built {
            text: TextPrivatizer::new(mechanism, self.text.policy().clone())?,
            index,
            pad: self.pad,
            exclude: self.exclude.clone(),
            cover: self.cover.clone(),
            language: self.language.clone(),
            remap: self.remap.clone(),
            spec,
        })
    }

    /// The description that it was built from, as given.
    pub fn given(&self) -> &Spec {
        &self.spec
    }
}
