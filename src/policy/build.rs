//! Builds the mechanism that a [`Spec`] describes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use xxhash_rust::xxh3::Xxh3Default;

use super::reference::{EDGES, FINGERPRINT_ALONE};
use super::{
    Built, Builtin, CoverSource, Exclude, Fingerprint, IndexSource, Kind, Public, Reference, Spec,
};
use crate::cover::{Balance, Build, Cover};
use crate::distance::search::{HnswParameters, Search};
use crate::guarantee::Certificate;
use crate::guarantee::proved::audit;
use crate::mechanism::contextual::ContextualTem;
use crate::mechanism::finite_law::{FiniteLaw, Loss, Rows};
use crate::mechanism::hyperbolic_laplace::HyperbolicLaplace;
use crate::mechanism::mahalanobis::Mahalanobis;
use crate::mechanism::multivariate_laplace::MultivariateLaplace;
use crate::mechanism::neighbor_response::NeighborResponse;
use crate::mechanism::remapped::Remapped;
use crate::mechanism::tem::{Tem, Truncation};
use crate::mechanism::{self, Mechanism};
use crate::numbers::Figures;
use crate::support::error::{Error, Result};
use crate::support::parallel::Control;
use crate::support::random::Randomness;
use crate::text::{Policy, TextPrivatizer, unreadable};
use crate::words::embedding::Embedding;
use crate::words::embedding::format::{Options, matrix};
use crate::words::graph::{Edges, WordGraph};
use crate::words::index::Index;
use crate::words::vocabulary::Vocabulary;

/// The default λ of [`Mahalanobis`](crate::mechanism::mahalanobis::Mahalanobis).
pub(super) const MIXING: f64 = 0.2;
/// The default t of the [Vickrey](crate::mechanism::noisy_nearest) mechanism: the paper's choice.
pub(super) const TUNING: f64 = 0.75;
/// Number of candidates of the graph search, if the description does not give it.
const EF: usize = 256;
/// Number of likely outputs of [`NeighborResponse`]: this many, or a fiftieth of the words if that
/// is less.
const RESPONSES: usize = 40;
/// Up to this number of words a law is certified, unless the description says otherwise.
const CERTIFIED_WORDS: usize = 2000;

/// Parts that are in memory. They replace parts that the description identifies only by a
/// fingerprint, and save reading or building the others.
#[derive(Clone, Default)]
pub struct Parts {
    /// The words and their metric.
    pub index: Option<Index>,
    /// The cover.
    pub cover: Option<Arc<Cover>>,
    /// The cover that outputs are remapped by.
    pub remap: Option<Arc<Cover>>,
    /// The law of a [`FiniteLaw`].
    pub law: Option<Arc<Rows>>,
    /// The base measure of a Tem.
    pub language: Option<Public>,
    /// The seed of the description is of [`Randomness::known_keys`]: for tests.
    pub known_keys: bool,
}

/// Open index files: descriptions that name the same file share it.
#[derive(Default)]
pub struct Spaces {
    files: HashMap<(PathBuf, bool), Index>,
    /// Number of words left out because they are repeated in their file.
    pub repeated: usize,
}

impl Spaces {
    /// Opens the index that a source names, or returns it if it is open.
    pub(crate) fn open(
        &mut self,
        kind: Kind,
        spec: &Spec,
        held: Option<&Index>,
        control: &Control,
    ) -> Result<Index> {
        let source = spec.index.clone().unwrap_or_default();
        let index = match (held, source.builtin, &source.file) {
            (Some(held), ..) => held.clone(),
            (None, builtin, None) if builtin.is_some() || source == IndexSource::default() => {
                builtin_index(builtin.unwrap_or(kind.default_space()))?
            }
            (None, _, Some(path)) => {
                self.open_file(path, &source, spec.verify != Some(false), control)?
            }
            (None, _, None) => {
                let missing = || Error::parameter("space", FINGERPRINT_ALONE, "none");
                let known = source.fingerprint.and_then(|print| builtin_of(print.0));
                builtin_index(known.ok_or_else(missing)?)?
            }
        };
        if let Some(meant) = source.fingerprint {
            let reference = Reference::held(Some(meant.0));
            reference.check("index", index.space().fingerprint())?;
        }
        Ok(index)
    }

    fn open_file(
        &mut self,
        path: &Path,
        source: &IndexSource,
        verify: bool,
        control: &Control,
    ) -> Result<Index> {
        if source.format.as_deref() == Some(EDGES) {
            let edges = Edges::read(path, source.third_column()?)?;
            return Ok(Index::Graph(Arc::new(WordGraph::new(&edges, None, None)?)));
        }
        let plain = IndexSource {
            file: None,
            fingerprint: None,
            ..source.clone()
        } == IndexSource::default();
        if plain && crate::words::index::is_index(path)? {
            let key = (path.to_owned(), verify);
            if let Some(index) = self.files.get(&key) {
                return Ok(index.clone());
            }
            let index = Index::open(path, verify)?;
            self.files.insert(key, index.clone());
            return Ok(index);
        }
        let options = Options {
            format: source.format.as_deref().map(str::parse).transpose()?,
            limit: source.limit,
            metric: source.metric,
            vocabulary: source.vocabulary.clone(),
            verify,
        };
        let (embedding, repeated) = crate::words::embedding::format::load(path, &options, control)?;
        self.repeated += repeated;
        Ok(Index::Embedding(Arc::new(embedding)))
    }
}

/// The data that a mechanism is built from.
struct Maker<'a> {
    spec: &'a Spec,
    parts: &'a Parts,
    /// May be replaced by the same words with more computed data.
    index: Index,
    exclude: &'a [u32],
    randomness: Randomness,
    control: &'a Control,
    /// The cover and the base measure, once they are built.
    cover: Option<Arc<Cover>>,
    language: Option<Public>,
}

impl Spec {
    /// Builds the mechanism and its handling of text.
    ///
    /// # Errors
    /// [`Error::Parameter`] that names the key; errors of files and of the mechanism;
    /// [`Error::Interrupted`].
    pub fn build(&self, parts: Parts, spaces: &mut Spaces, control: &Control) -> Result<Built> {
        let mut spec = self.completed()?;
        spec.check()?;
        let index = spaces.open(spec.mechanism, &spec, parts.index.as_ref(), control)?;
        let figures = Figures {
            numbers: spec.numbers.clone(),
            dates: spec.dates.clone(),
        };
        let space = index.space();
        let vocabulary = space.vocabulary();
        let mut exclude = spec.exclude.ids(vocabulary)?;
        let mut never = never_released(vocabulary, &exclude);
        if spec.mechanism.takes_cover() && spec.cover.is_none() && parts.cover.is_none() {
            let mut more = index_exclusion(&index);
            more.retain(|id| never.binary_search(id).is_err());
            if !more.is_empty() {
                exclude.extend(more);
                exclude.sort_unstable();
                never = never_released(vocabulary, &exclude);
                let offensive = Exclude::Offensive.ids(vocabulary)?;
                spec.exclude = match never == never_released(vocabulary, &offensive) {
                    true => Exclude::Offensive,
                    false => Exclude::of_ids(vocabulary, &exclude),
                };
            }
        }
        let mut maker = Maker {
            spec: &spec,
            parts: &parts,
            index,
            exclude: &never,
            randomness: match spec.seed {
                Some(seed) if parts.known_keys => Randomness::known_keys(seed),
                seed => Randomness::new(seed),
            },
            control,
            cover: None,
            language: None,
        };
        let (mut mechanism, nominal) = maker.mechanism()?;
        let remap = maker.remap()?;
        if let Some(cover) = &remap {
            mechanism = Arc::new(Remapped::new(mechanism, cover.clone())?);
        }
        mechanism = mechanism::excluding(mechanism, &never)?;
        let Maker {
            index,
            cover,
            language,
            ..
        } = maker;
        let policy = Policy {
            oov: spec.oov,
            skip: spec.skip.iter().cloned().collect(),
            consistent: spec.consistent,
            figures,
        };
        Ok(Built {
            text: TextPrivatizer::new(mechanism, policy)?,
            index,
            pad: spec.pad.map(Duration::from_secs_f64),
            exclude,
            cover,
            language,
            remap,
            spec: Spec {
                nominal: nominal.or(spec.nominal),
                ..spec
            },
        })
    }
}

/// The ids of the excluded words and of those that a text cannot release, ascending.
fn never_released(vocabulary: &Vocabulary, exclude: &[u32]) -> Vec<u32> {
    let mut ids = [exclude, &unreadable(vocabulary)].concat();
    ids.sort_unstable();
    ids.dedup();
    ids
}

impl Maker<'_> {
    /// Builds the mechanism; also returns the nominal ε of a certified one.
    fn mechanism(&mut self) -> Result<(Arc<dyn Mechanism>, Option<f64>)> {
        let Spec { mixing, .. } = *self.spec;
        let randomness = self.randomness.clone();
        let made: Arc<dyn Mechanism> = match self.spec.mechanism {
            Kind::Tem => return self.tem(),
            Kind::NeighborResponse => {
                let fiftieth = self.index.space().vocabulary().len() / 50;
                // Not topped up: every word has exactly k outputs, and all of ε goes into the
                // score.
                let cover = self.cover(1, Some(fiftieth.clamp(1, RESPONSES)))?;
                let Some(cover) = cover else {
                    return Err(Error::parameter("cover", "given", "none"));
                };
                let space = self.index.space();
                Arc::new(NeighborResponse::new(
                    space,
                    self.epsilon()?,
                    cover,
                    randomness,
                )?)
            }
            Kind::FiniteLaw => Arc::new(self.finite_law()?),
            Kind::MultivariateLaplace => Arc::new(self.multivariate_laplace()?),
            Kind::HyperbolicLaplace => {
                let (embedding, epsilon) = (self.vectors()?, self.epsilon()?);
                let base = self.spec.base.as_deref();
                let base = base.map_or(Ok(Default::default()), str::parse)?;
                let made = HyperbolicLaplace::new(embedding, epsilon, base, randomness);
                Arc::new(made?)
            }
            Kind::Mahalanobis => Arc::new(self.mahalanobis(mixing.unwrap_or(MIXING))?),
            Kind::Vickrey => {
                let tuning = self.spec.tuning.unwrap_or(TUNING);
                match mixing.unwrap_or(0.0) {
                    0.0 => {
                        let (embedding, epsilon) = (self.vectors()?, self.epsilon()?);
                        let inner = MultivariateLaplace::new(embedding, epsilon, randomness)?;
                        Arc::new(inner.vickrey(tuning)?)
                    }
                    mixing => Arc::new(self.mahalanobis(mixing)?.vickrey(tuning)?),
                }
            }
        };
        Ok((made, None))
    }

    fn mahalanobis(&self, mixing: f64) -> Result<Mahalanobis> {
        let (embedding, epsilon) = (self.vectors()?, self.epsilon()?);
        let randomness = self.randomness.clone();
        Mahalanobis::new(embedding, epsilon, mixing, randomness, self.control)
    }

    /// The ε. A law determines its own.
    fn epsilon(&self) -> Result<f64> {
        let missing = || Error::parameter("epsilon", "given", "none");
        self.spec.epsilon.ok_or_else(missing)
    }

    fn tem(&mut self) -> Result<(Arc<dyn Mechanism>, Option<f64>)> {
        let spec = self.spec;
        let truncation = match (spec.gamma, spec.beta) {
            (Some(gamma), _) => Truncation::Gamma(gamma),
            (None, beta) => beta.map_or_else(Truncation::default, Truncation::Beta),
        };
        let space = self.index.space();
        let mut tem = Tem::new(space, self.epsilon()?, truncation, self.randomness.clone())?;
        if let Some(bytes) = spec.cache_bytes {
            tem = tem.with_cache_bytes(bytes);
        }
        if let Some(cover) = self.cover(Build::default().least, None)? {
            tem = tem.with_cover(Some(cover))?;
        }
        if let Some(language) = &spec.language {
            let space = self.index.space();
            self.language = language.measure(&space, self.parts.language.as_ref())?;
            if let Some(Public::Fixed(measure)) = &self.language {
                tem = tem.with_base(Some(measure.clone()))?;
            }
        }
        if !self.exclude.is_empty() {
            tem = tem.excluding(self.exclude)?;
        }
        if let Some(Public::History(model)) = &self.language {
            self.refuse_beside_history()?;
            let tem = ContextualTem::new(&tem, model.clone())?;
            return Ok((Arc::new(tem), None));
        }
        if spec.certified != Some(true) {
            return Ok((Arc::new(tem), None));
        }
        let (tem, certificate) = self.certified(&tem)?;
        let nominal = tem.nominal();
        if tem.language().is_some() {
            // A file of words holds no base measure that the certificate could be checked by.
            return Ok((Arc::new(tem), Some(nominal)));
        }
        self.index = with_certificate(&self.index, certificate);
        Ok((Arc::new(tem.on(self.index.space())?), Some(nominal)))
    }

    /// Refuses what needs one law of a word, where the law goes by what was released before.
    fn refuse_beside_history(&self) -> Result<()> {
        let remap = matches!(&self.spec.remap, Some(source) if *source != CoverSource::None);
        let name = match self.spec.certified {
            Some(true) => "certified",
            _ if remap || self.parts.remap.is_some() => "remap",
            _ => return Ok(()),
        };
        let expected = "left out beside a model of what was released before: \
                        language=\"frequency\" goes with it";
        Err(Error::parameter(name, expected, "both"))
    }

    /// Builds the Tem with the wanted certificate: searches for its nominal ε, or checks one that
    /// was found before.
    fn certified(&self, tem: &Tem) -> Result<(Tem, Certificate)> {
        let Some(nominal) = self.spec.nominal else {
            return audit::certified(tem, self.control);
        };
        let tem = tem.with_epsilon(nominal)?;
        let certificate = match tem.certificate() {
            Some(carried) => *carried,
            None => audit::certify(&tem, self.control)?,
        };
        let epsilon = self.epsilon()?;
        if certificate.epsilon > epsilon {
            let expected = format!("one that is certified at most {epsilon}");
            return Err(Error::parameter("nominal", expected, nominal));
        }
        Ok((tem.with_certificate(certificate)?, certificate))
    }

    fn multivariate_laplace(&mut self) -> Result<MultivariateLaplace> {
        let mut embedding = self.vectors()?;
        let mut search = match self.spec.search.as_deref().unwrap_or("exact") {
            // "auto" means exact: a default must not change a law.
            "exact" | "auto" => Search::Exact,
            "hnsw" => Search::Hnsw { ef: EF },
            name => {
                let expected = "'exact', 'hnsw' or 'auto'";
                return Err(Error::parameter("search", expected, format!("{name:?}")));
            }
        };
        if let (Some(given), Search::Hnsw { ef }) = (self.spec.ef, &mut search) {
            *ef = given;
        }
        // Report wrong parameters before the graph is built.
        MultivariateLaplace::new(embedding.clone(), self.epsilon()?, self.randomness.clone())?;
        if search != Search::Exact && embedding.hnsw().is_none() {
            let built = embedding.build_hnsw(HnswParameters::default(), self.control)?;
            embedding = Arc::new(built);
            self.index = Index::Embedding(embedding.clone());
        }
        MultivariateLaplace::new(embedding, self.epsilon()?, self.randomness.clone())?
            .with_search(search)
    }

    fn finite_law(&self) -> Result<FiniteLaw> {
        let space = self.index.space();
        let words = space.vocabulary().len();
        let rows = match (&self.parts.law, &self.spec.law) {
            (Some(rows), _) => rows.clone(),
            (None, Some(reference)) => rows_of(reference, words)?,
            (None, None) => {
                return Err(Error::parameter("law", "given with mechanism law", "none"));
            }
        };
        let mut law = FiniteLaw::new(space, rows, self.spec.cache_bytes, self.randomness.clone())?;
        // With `remap`, outputs are excluded there.
        if self.spec.remap.is_none() && !self.exclude.is_empty() {
            let excluding = law.excluding(self.exclude)?;
            let excluding: Option<&FiniteLaw> = excluding.downcast_ref();
            law = excluding.cloned().unwrap_or(law);
        }
        match self.spec.certified.unwrap_or(words <= CERTIFIED_WORDS) {
            true => certified_law(law, self.control),
            false => Ok(law),
        }
    }

    fn vectors(&self) -> Result<Arc<Embedding>> {
        match &self.index {
            Index::Embedding(embedding) => Ok(embedding.clone()),
            Index::Graph(_) => {
                let expected = "an embedding: this mechanism needs vectors";
                Err(Error::parameter("index", expected, "a word graph"))
            }
        }
    }

    /// The cover of the outputs. By default it is the one in the index, or one with `default`
    /// outputs per word.
    fn cover(&mut self, least: usize, default: Option<usize>) -> Result<Option<Arc<Cover>>> {
        let (held, given) = (self.parts.cover.as_ref(), self.spec.cover.as_ref());
        let of_index = index_cover(&self.index).filter(|_| self.spec.balance.is_none());
        self.cover = match (held, given, of_index) {
            (None, None, Some(cover)) => Some(cover),
            _ => {
                let default = default.map(CoverSource::Count);
                self.cover_of("cover", held, given.or(default.as_ref()), least)?
            }
        };
        Ok(self.cover.clone())
    }

    fn remap(&self) -> Result<Option<Arc<Cover>>> {
        self.cover_of(
            "remap",
            self.parts.remap.as_ref(),
            self.spec.remap.as_ref(),
            0,
        )
    }

    fn cover_of(
        &self,
        name: &'static str,
        held: Option<&Arc<Cover>>,
        source: Option<&CoverSource>,
        least: usize,
    ) -> Result<Option<Arc<Cover>>> {
        let cover = match (held, source) {
            (Some(held), _) => held.clone(),
            (None, None | Some(CoverSource::None)) => return Ok(None),
            (None, Some(CoverSource::Count(k))) => self.counted_cover(name, *k, least)?,
            (
                None,
                Some(CoverSource::Stored(Reference {
                    file: Some(path), ..
                })),
            ) => Arc::new(Cover::open(path)?),
            (None, Some(CoverSource::Stored(reference))) => index_cover(&self.index)
                .filter(|cover| reference.fingerprint == Some(Fingerprint(cover.fingerprint())))
                .ok_or_else(|| Error::parameter(name, FINGERPRINT_ALONE, "none"))?,
        };
        if let Some(CoverSource::Stored(reference)) = source {
            reference.check(name, cover.fingerprint())?;
        }
        Ok(Some(cover))
    }

    /// A cover of so many outputs for each word.
    fn counted_cover(&self, name: &'static str, k: usize, least: usize) -> Result<Arc<Cover>> {
        let space = self.index.space();
        let build = Build {
            least,
            exclude: self.exclude.to_vec(),
        };
        let cover = match self.spec.balance.filter(|_| name == "cover") {
            Some(weight) => {
                let balance = Balance::by_rank(space.vocabulary().len(), weight);
                Cover::balanced(&*space, k, &balance, &build, self.control)
            }
            None => Cover::nearest(&*space, k, &build, self.control),
        };
        cover
            .map(Arc::new)
            .map_err(|e| e.renamed("k", name).renamed("weight", "balance"))
    }
}

/// Returns the index with one more certificate.
fn with_certificate(index: &Index, certificate: Certificate) -> Index {
    match index {
        Index::Embedding(e) => Index::Embedding(Arc::new(e.certified(certificate))),
        Index::Graph(graph) => Index::Graph(Arc::new(graph.certified(certificate))),
    }
}

/// Returns the law with the losses computed from it.
///
/// # Errors
/// [`Error::Parameter`] for a wrong row; [`Error::TooLarge`], [`Error::Interrupted`].
fn certified_law(law: FiniteLaw, control: &Control) -> Result<FiniteLaw> {
    let unknown = law.check(control)?;
    let found = audit::largest_loss(&law, law.space(), control)?;
    Ok(law.with_loss(Loss {
        epsilon: found.epsilon,
        local: found.local,
        unknown,
    }))
}

/// Reads the rows of a law from a .npy file.
fn rows_of(reference: &Reference, words: usize) -> Result<Arc<Rows>> {
    let Some(path) = &reference.file else {
        return Err(Error::parameter("law", FINGERPRINT_ALONE, "none"));
    };
    let (law, rows, columns) = matrix(path)?;
    if (rows, columns) != (words, words) {
        return Err(Error::Shape {
            what: "law",
            expected: format!("({words}, {words}), a row a word"),
            got: format!("({rows}, {columns})"),
        });
    }
    let rows: Arc<Rows> = Arc::new(move |id: u32, out: &mut [f64]| {
        out.copy_from_slice(&law[id as usize * words..][..words]);
        Ok(())
    });
    reference.check("law", fingerprint_of_rows(&rows, words)?)?;
    Ok(rows)
}

/// The fingerprint of a law, computed row by row.
///
/// # Errors
/// The errors of the rows.
pub(crate) fn fingerprint_of_rows(rows: &Arc<Rows>, words: usize) -> Result<u64> {
    let (mut hash, mut row) = (Xxh3Default::new(), vec![0.0; words]);
    for id in 0..words as u32 {
        row.fill(0.0);
        rows(id, &mut row)?;
        hash.update(bytemuck::cast_slice(&row));
    }
    Ok(hash.digest())
}

/// A built-in embedding.
pub(crate) fn builtin_index(builtin: Builtin) -> Result<Index> {
    let embedding = match builtin {
        Builtin::English => Embedding::default_english()?,
        Builtin::Nouns => Embedding::default_nouns()?,
    };
    Ok(Index::Embedding(Arc::new(embedding)))
}

/// The built-in embedding with a fingerprint, if there is one.
pub(super) fn builtin_of(fingerprint: u64) -> Option<Builtin> {
    Builtin::ALL.into_iter().find(|&builtin| {
        builtin_index(builtin).is_ok_and(|index| index.space().fingerprint() == fingerprint)
    })
}

/// The cover in an index file, unless all that it says is which words are never released.
pub(super) fn index_cover(index: &Index) -> Option<Arc<Cover>> {
    stored(index).filter(|cover| !only_excludes(cover)).cloned()
}

/// The ids of the words that an index file says are never released, where it has no other cover.
fn index_exclusion(index: &Index) -> Vec<u32> {
    let cover = stored(index).filter(|cover| only_excludes(cover));
    cover.map_or_else(Vec::new, |cover| cover.excluded_ids())
}

fn stored(index: &Index) -> Option<&Arc<Cover>> {
    match index {
        Index::Embedding(embedding) => embedding.cover(),
        Index::Graph(graph) => graph.cover(),
    }
}

fn only_excludes(cover: &Cover) -> bool {
    cover.is_identity() && !cover.is_weighted()
}
