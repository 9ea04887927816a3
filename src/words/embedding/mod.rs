//! Word embeddings: a vocabulary, a vector for every word, and a metric.
//!
//! [`mod@format`] reads and writes embedding files.

pub mod format;
pub mod poincare;

use std::path::Path;
use std::sync::Arc;

use crate::cover::Cover;
use crate::distance::metric::Metric;
#[cfg(target_arch = "x86_64")]
use crate::distance::metric::bounded::BoundedRows;
use crate::distance::neighbors::{Grid, NeighborLists};
use crate::distance::search::exact::Scratch;
use crate::distance::search::hnsw::Rows;
use crate::distance::search::{ExactSearch, Hnsw, HnswParameters, batch_size};
use crate::guarantee::Certificate;
use crate::support::buffer::{Aligned, Backing, Buffer};
use crate::support::error::{Error, Result};
use crate::support::fork::Once;
use crate::support::parallel::{Control, for_all_with, install, pool};
use crate::words::claims::Claims;
use crate::words::space::MetricSpace;
use crate::words::vocabulary::Vocabulary;

/// Words with their vectors (float32, one row per word) and a metric on them.
///
/// Immutable and cheap to clone: clones share the arrays.
#[derive(Clone, Debug)]
pub struct Embedding {
    vocabulary: Vocabulary,
    vectors: Buffer<f32>,
    dim: usize,
    metric: Metric,
    derived: Derived,
}

/// Data computed from the words, their vectors and the metric. A method that changes one of these
/// calls [`Embedding::from_parts`], which starts with none of it.
#[derive(Clone, Debug, Default)]
struct Derived {
    search: Arc<Once<ExactSearch>>,
    fingerprint: Arc<Once<u64>>,
    /// Cached, because every Tem needs it and it takes all distances of a word.
    farthest: Arc<Once<f64>>,
    /// What bounded distances need of each word, where the machine has them.
    #[cfg(target_arch = "x86_64")]
    bounded: Arc<Once<Option<BoundedRows>>>,
    lists: Option<NeighborLists>,
    hnsw: Option<Arc<Hnsw>>,
    claims: Claims,
}

impl Embedding {
    /// Creates an embedding of `vocabulary` with row-major `vectors`, `dim` numbers per word.
    ///
    /// # Errors
    /// [`Error::Shape`] for a shape that does not fit; [`Error::Vector`] for a vector that is no
    /// point of the metric's space, with its word. Such vectors hold NaN or infinity, have norm ≥ 1
    /// on the Poincaré ball, or are 0 for the angular metric.
    pub fn new(
        vocabulary: Vocabulary,
        vectors: Vec<f32>,
        dim: usize,
        metric: Metric,
    ) -> Result<Self> {
        if dim == 0 || vectors.len() != vocabulary.len() * dim {
            return Err(Error::Shape {
                what: "vectors",
                expected: format!("({}, n) with n at least 1", vocabulary.len()),
                got: format!("{} numbers for n = {dim}", vectors.len()),
            });
        }
        let embedding = Self::from_parts(vocabulary, vectors.into(), dim, metric);
        embedding.check_vectors()?;
        Ok(embedding)
    }

    pub(crate) fn from_parts(
        vocabulary: Vocabulary,
        vectors: Buffer<f32>,
        dim: usize,
        metric: Metric,
    ) -> Self {
        Embedding {
            vocabulary,
            vectors,
            dim,
            metric,
            derived: Derived::default(),
        }
    }

    pub(crate) fn with_lists(mut self, lists: Option<NeighborLists>) -> Self {
        self.derived.lists = lists;
        self
    }

    /// Returns the same embedding with the exact lists of the `k` nearest words of every word, as
    /// [`NeighborLists::build`] computes them.
    ///
    /// # Errors
    /// The errors of [`NeighborLists::build`].
    pub fn build_lists(&self, k: usize, memory: u64, control: &Control) -> Result<Self> {
        let lists = NeighborLists::build(self, k, memory, control)?;
        Ok(self.clone().with_lists(Some(lists)))
    }

    /// Returns the same embedding with an HNSW graph, for approximate search.
    ///
    /// Words are inserted one after the other, so the same seed gives the same graph. In a large
    /// vocabulary this takes up to some milliseconds per word. Files do not hold the graph.
    ///
    /// # Errors
    /// [`Error::Parameter`] for parameters out of range, or a build without the feature `hnsw`;
    /// [`Error::Interrupted`].
    pub fn build_hnsw(&self, parameters: HnswParameters, control: &Control) -> Result<Self> {
        let rows = Rows {
            metric: self.metric,
            vectors: self.vectors.clone(),
            dim: self.dim,
        };
        let mut embedding = self.clone();
        embedding.derived.hnsw = Some(Arc::new(Hnsw::build(rows, parameters, control)?));
        Ok(embedding)
    }

    /// Returns the same embedding with a cover that its file will hold, or without one.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a cover of other words, vectors or metric.
    pub fn with_cover(mut self, cover: Option<Arc<Cover>>) -> Result<Self> {
        if let Some(cover) = &cover {
            cover.check_space(&self)?;
        }
        self.derived.claims.cover = cover;
        Ok(self)
    }

    /// The cover that was loaded from its file or set by [`with_cover`](Self::with_cover).
    pub fn cover(&self) -> Option<&Arc<Cover>> {
        self.derived.claims.cover.as_ref()
    }

    pub(crate) fn certified(&self, certificate: Certificate) -> Self {
        let mut embedding = self.clone();
        embedding.derived.claims.certificates.push(certificate);
        embedding
    }

    /// The HNSW graph, if one was built.
    pub fn hnsw(&self) -> Option<&Arc<Hnsw>> {
        self.derived.hnsw.as_ref()
    }

    /// Whether it holds nothing but its words and vectors: no lists, cover or certificates, which files keep.
    #[cfg(feature = "python")]
    pub(crate) fn is_bare(&self) -> bool {
        let Derived { lists, claims, .. } = &self.derived;
        lists.is_none() && claims.cover.is_none() && claims.certificates.is_empty()
    }

    fn check_vectors(&self) -> Result<()> {
        match self.metric.first_refused(&self.vectors, self.dim) {
            None => Ok(()),
            Some((id, reason)) => Err(Error::Vector {
                owner: format!("{:?}", self.vocabulary.word(id as u32)),
                reason,
            }),
        }
    }

    /// Returns the same words and vectors with another metric.
    ///
    /// # Errors
    /// [`Error::Vector`] for a vector that is no point of that metric's space.
    pub fn with_metric(&self, metric: Metric) -> Result<Self> {
        if metric == self.metric {
            return Ok(self.clone());
        }
        let (vocabulary, vectors) = (self.vocabulary.clone(), self.vectors.clone());
        let embedding = Self::from_parts(vocabulary, vectors, self.dim, metric);
        embedding.check_vectors()?;
        Ok(embedding)
    }

    /// Returns an embedding of the first `count` words.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a `count` of 0.
    pub fn first(&self, count: usize) -> Result<Self> {
        let vocabulary = Vocabulary::new(self.vocabulary.iter().take(count))?;
        let vectors = self.vectors[..vocabulary.len() * self.dim].to_vec();
        Self::new(vocabulary, vectors, self.dim, self.metric)
    }

    /// The 20,000 common English words that ship with the crate, in 50 dimensions, Euclidean.
    /// `NOTICE` states their sources.
    ///
    /// # Errors
    /// [`Error::Corrupt`] only if the build is damaged.
    pub fn default_english() -> Result<Self> {
        static SHARED: Once<Embedding> = Once::new();
        static BYTES: &Aligned<[u8]> = &Aligned(*include_bytes!("../../../data/default.fdx"));
        embedded(&SHARED, BYTES, "default.fdx")
    }

    /// The 10,498 common English nouns that ship with the crate, in 10 hyperbolic dimensions:
    /// WordNet's is-a hierarchy, trained by [`embedding::poincare`](crate::words::embedding::poincare).
    ///
    /// # Errors
    /// [`Error::Corrupt`] only if the build is damaged.
    pub fn default_nouns() -> Result<Self> {
        static SHARED: Once<Embedding> = Once::new();
        static BYTES: &Aligned<[u8]> = &Aligned(*include_bytes!("../../../data/nouns.fdx"));
        embedded(&SHARED, BYTES, "nouns.fdx")
    }

    /// The words.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// All vectors, row-major, one row per word.
    pub fn vectors(&self) -> &[f32] {
        &self.vectors
    }

    /// The vector of one word.
    pub fn vector(&self, id: u32) -> &[f32] {
        &self.vectors[id as usize * self.dim..][..self.dim]
    }

    /// Number of words.
    #[allow(clippy::len_without_is_empty)] // an embedding is never empty
    pub fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// The dimension of the vectors.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The metric.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Writes the embedding in fastdx's own format: first to a temporary file beside the target,
    /// which is then renamed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn save(&self, path: &Path) -> Result<()> {
        format::native::save_as(self, path, format::native::Storage::F32)
    }

    /// The exact search structure over the vectors, built on first use and shared by clones.
    pub fn search(&self) -> &ExactSearch {
        self.derived
            .search
            .get_or_init(|| ExactSearch::new(&self.vectors, self.dim, self.metric))
    }

    /// Finds the exact `k` nearest words of each of the row-major `queries`. Returns ids and
    /// distances, `k` per query, nearest first, ties by id.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a `k` outside 1..=V; [`Error::Shape`] for a shape that does not
    /// fit; [`Error::Vector`] for a query that is no point of the space; [`Error::Interrupted`].
    pub fn nearest(
        &self,
        queries: &[f64],
        k: usize,
        control: &Control,
    ) -> Result<(Vec<u32>, Vec<f64>)> {
        if k == 0 || k > self.len() {
            let expected = format!("between 1 and the {} words", self.len());
            return Err(Error::parameter("k", expected, k));
        }
        if !queries.len().is_multiple_of(self.dim) {
            return Err(Error::Shape {
                what: "queries",
                expected: format!("(m, {})", self.dim),
                got: format!("{} numbers", queries.len()),
            });
        }
        if let Some((i, reason)) = self.metric.first_refused(queries, self.dim) {
            let owner = format!("query {i}");
            return Err(Error::Vector { owner, reason });
        }
        let m = queries.len() / self.dim;
        let (mut ids, mut distances) = (Vec::new(), Vec::new());
        let fits = m.checked_mul(k).is_some_and(|len| {
            ids.try_reserve_exact(len).is_ok() && distances.try_reserve_exact(len).is_ok()
        });
        if !fits {
            return Err(Error::TooLarge {
                what: format!("{k} neighbours for {m} queries"),
                needed: (m as u64).saturating_mul(k as u64).saturating_mul(12),
                limit: isize::MAX as u64,
            });
        }
        ids.resize(m * k, 0);
        distances.resize(m * k, 0.0);
        let search = self.search();
        // Equally many batches per thread, none larger than useful.
        let rows = batch_size(m, pool()?.current_num_threads()).min(search.batch());
        install(m, 1, || {
            let found = ids.chunks_mut(rows * k).zip(distances.chunks_mut(rows * k));
            let each = queries.chunks(rows * self.dim).zip(found);
            for_all_with(each, Scratch::default, |scratch, (queries, found)| {
                control.check()?;
                let (ids, distances) = found;
                search.nearest_batch(&self.vectors, queries, k, None, scratch, |i, ranked| {
                    for (at, &(distance, id)) in (i * k..).zip(ranked) {
                        (ids[at], distances[at]) = (id, distance);
                    }
                });
                control.advance(ids.len() / k);
                Ok(())
            })
        })??;
        Ok((ids, distances))
    }
}

/// The embedding in the program's own bytes, parsed once.
fn embedded(
    shared: &Once<Embedding>,
    bytes: &'static Aligned<[u8]>,
    name: &str,
) -> Result<Embedding> {
    if let Some(embedding) = shared.get() {
        return Ok(embedding.clone());
    }
    let embedding = format::native::read(&Backing::Program(bytes), Path::new(name), true)?;
    Ok(shared.get_or_init(|| embedding).clone())
}

impl MetricSpace for Embedding {
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn metric_name(&self) -> &'static str {
        self.metric.name()
    }

    fn distance(&self, a: u32, b: u32) -> f64 {
        self.metric.distance(self.vector(a), self.vector(b))
    }

    fn fingerprint(&self) -> u64 {
        *self.derived.fingerprint.get_or_init(|| {
            let mut hash = self.vocabulary.hashed();
            hash.update(self.metric.name().as_bytes());
            hash.update(bytemuck::cast_slice(self.vectors()));
            hash.digest()
        })
    }

    fn distances_to(&self, a: u32, b: &[u32], out: &mut [f64]) {
        let vectors = &self.vectors;
        self.metric.distances_to(self.vector(a), vectors, b, out);
    }

    fn distances(&self, a: u32, out: &mut [f64]) {
        self.metric.distances(self.vector(a), &self.vectors, out);
    }

    fn neighbors(&self, words: &[u32], grid: Grid, k: usize, lists: &mut [u64]) {
        let mut queries: Vec<f64> = Vec::with_capacity(words.len() * self.dim);
        for &id in words {
            queries.extend(self.vector(id).iter().map(|&x| f64::from(x)));
        }
        let mut scratch = Scratch::default();
        let search = self.search();
        let batches = queries.chunks(search.batch() * self.dim);
        for (queries, lists) in batches.zip(lists.chunks_mut(search.batch() * k)) {
            let vectors = &self.vectors;
            search.nearest_batch(
                vectors,
                queries,
                k,
                Some(grid),
                &mut scratch,
                |i, ranked| {
                    for (slot, &(distance, id)) in lists[i * k..][..k].iter_mut().zip(ranked) {
                        *slot = grid.entry(distance, id);
                    }
                },
            );
        }
    }

    fn block(&self, a: &[u32], b: &[u32], out: &mut [f64], stride: usize) {
        let of = |ids: &[u32]| -> Vec<&[f32]> { ids.iter().map(|&id| self.vector(id)).collect() };
        crate::distance::metric::block::distances(self.metric, &of(a), &of(b), out, stride);
    }

    #[cfg(target_arch = "x86_64")]
    fn bounded_distances(
        &self,
        a: &[u32],
        b: &[u32],
        out: &mut [f32],
        stride: usize,
    ) -> Option<f64> {
        let made = || BoundedRows::new(self.metric, &self.vectors, self.dim);
        let rows = self.derived.bounded.get_or_init(made).as_ref()?;
        rows.distances(&self.vectors, a, b, out, stride)
    }

    fn farthest(&self) -> f64 {
        *self.derived.farthest.get_or_init(|| {
            let mut row = vec![0.0; self.len()];
            self.distances(0, &mut row);
            row.into_iter().fold(0.0, f64::max)
        })
    }

    fn certificates(&self) -> &[Certificate] {
        &self.derived.claims.certificates
    }

    fn with_certificate(&self, certificate: Certificate) -> Option<Arc<dyn MetricSpace>> {
        Some(Arc::new(self.certified(certificate)))
    }

    fn distance_error(&self) -> f64 {
        let norms = self
            .vectors
            .chunks_exact(self.dim)
            .map(crate::distance::metric::norm2);
        let largest = match self.metric {
            Metric::Poincare => norms.fold(0.0, f64::max),
            _ => 0.0,
        };
        self.metric.absolute_error(self.dim, largest)
    }

    fn lists(&self) -> Option<&NeighborLists> {
        self.derived.lists.as_ref()
    }
}
