//! Word embeddings: a vocabulary, a vector for every word, and a metric.
//!
//! [`mod@format`] reads and writes the files they come in.

pub mod format;
pub mod poincare;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use xxhash_rust::xxh3::Xxh3Default;

use crate::buffer::{Backing, Buffer};
use crate::cover::Cover;
use crate::error::{Error, Result};
use crate::guarantee::Certificate;
use crate::metric::Metric;
use crate::metric::coarse::Coarse;
use crate::metric::screen::{self, Norms, Vectors};
use crate::metric::{Limits, Seen};
use crate::neighbors::{Grid, NeighborLists};
use crate::parallel::Control;
use crate::search::exact::Scratch;
use crate::search::hnsw::{HnswScratch, Rows, Searcher};
use crate::search::{ExactSearch, Hnsw, HnswParameters};
use crate::space::{MetricSpace, WordMetric};
use crate::vocabulary::Vocabulary;

/// The most bytes that a [`Coarse`] copy of the vectors may take.
const COARSE_UP_TO: usize = 64 << 20;

/// Words with their vectors (float32, one row a word) and a metric on them.
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

/// All that was computed from the words, their vectors and the metric, and rests on them.
/// Whatever changes one of these goes through [`Embedding::from_parts`], which starts afresh.
#[derive(Clone, Debug, Default)]
struct Derived {
    search: Arc<OnceLock<ExactSearch>>,
    fingerprint: Arc<OnceLock<u64>>,
    /// What tells far words without their distances, where it is small enough.
    coarse: Arc<OnceLock<Option<Coarse>>>,
    /// Every Tem asks for it, and it takes all distances of a word.
    farthest: Arc<OnceLock<f64>>,
    /// Of the words that rough distances were asked of.
    norms: Arc<OnceLock<Norms>>,
    lists: Option<NeighborLists>,
    hnsw: Option<Arc<Hnsw>>,
    certificates: Vec<Certificate>,
    cover: Option<Arc<Cover>>,
}

impl Embedding {
    /// An embedding of `vocabulary` with row-major `vectors`, `dim` numbers a word.
    ///
    /// # Errors
    /// A shape that does not fit, or a vector that is no point of the metric's space (NaN,
    /// infinity, norm ≥ 1 on the Poincaré ball, 0 for the angular metric), named by its word.
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

    /// The same embedding with neighbour lists that were built on it.
    pub(crate) fn with_lists(mut self, lists: Option<NeighborLists>) -> Self {
        self.derived.lists = lists;
        self
    }

    /// The same embedding with the exact lists of the `k` nearest words of every word, as
    /// [`NeighborLists::build`] makes them.
    ///
    /// # Errors
    /// As [`NeighborLists::build`].
    pub fn build_lists(&self, k: usize, memory: u64, control: &Control) -> Result<Self> {
        let lists = NeighborLists::build(self, k, memory, control)?;
        Ok(self.clone().with_lists(Some(lists)))
    }

    /// The same with the lists of all words within `radius` of every word, as
    /// [`NeighborLists::build_within`] makes them.
    ///
    /// # Errors
    /// As [`NeighborLists::build_within`].
    pub fn build_lists_within(&self, radius: f64, memory: u64, control: &Control) -> Result<Self> {
        let lists = NeighborLists::build_within(self, radius, memory, control)?;
        Ok(self.clone().with_lists(Some(lists)))
    }

    /// The same embedding with an HNSW graph, for approximate search.
    ///
    /// hnsw_rs inserts words one after the other, so that a seed gives one graph: up to some
    /// milliseconds a word in a large vocabulary.
    ///
    /// # Errors
    /// Parameters outside their range, [`Error::Interrupted`]; a build without the feature `hnsw`.
    pub fn build_hnsw(&self, parameters: HnswParameters, control: &Control) -> Result<Self> {
        let hnsw = Hnsw::build(self.graph_rows(), parameters, control)?;
        Ok(self.clone().with_hnsw(Some(hnsw)))
    }

    /// The vectors as a graph shares them.
    pub(crate) fn graph_rows(&self) -> Rows {
        Rows {
            metric: self.metric,
            vectors: self.vectors.clone(),
            dim: self.dim,
        }
    }

    pub(crate) fn with_hnsw(mut self, hnsw: Option<Hnsw>) -> Self {
        self.derived.hnsw = hnsw.map(Arc::new);
        self
    }

    /// The same embedding with the cover that its file is to hold, or none.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a cover of other words, vectors or metric.
    pub fn with_cover(mut self, cover: Option<Arc<Cover>>) -> Result<Self> {
        if let Some(cover) = &cover {
            cover.check_space(&self)?;
        }
        self.derived.cover = cover;
        Ok(self)
    }

    /// The cover that its file held, or that it was given.
    pub fn cover(&self) -> Option<&Arc<Cover>> {
        self.derived.cover.as_ref()
    }

    pub(crate) fn with_certificates(mut self, certificates: Vec<Certificate>) -> Self {
        self.derived.certificates = certificates;
        self
    }

    /// The HNSW graph, if one was built.
    pub fn hnsw(&self) -> Option<&Arc<Hnsw>> {
        self.derived.hnsw.as_ref()
    }

    /// The graph as it is searched; none where there is no graph.
    pub(crate) fn hnsw_searcher(&self) -> Result<Option<&Searcher>> {
        self.hnsw().map(|hnsw| hnsw.searcher()).transpose()
    }

    fn check_vectors(&self) -> Result<()> {
        let bad = self
            .vectors
            .chunks_exact(self.dim)
            .enumerate()
            .find_map(|(id, v)| self.metric.refuse(v).map(|reason| (id as u32, reason)));
        match bad {
            None => Ok(()),
            Some((id, reason)) => Err(Error::Vector {
                owner: format!("{:?}", self.vocabulary.word(id)),
                reason,
            }),
        }
    }

    /// The same words and vectors under another metric.
    ///
    /// # Errors
    /// A vector that is no point of that metric's space.
    pub fn with_metric(&self, metric: Metric) -> Result<Self> {
        if metric == self.metric {
            return Ok(self.clone());
        }
        let (vocabulary, vectors) = (self.vocabulary.clone(), self.vectors.clone());
        let embedding = Self::from_parts(vocabulary, vectors, self.dim, metric);
        embedding.check_vectors()?;
        Ok(embedding)
    }

    /// The first `count` words.
    ///
    /// # Errors
    /// `count` is 0.
    pub fn first(&self, count: usize) -> Result<Self> {
        let count = count.min(self.len());
        let vocabulary = Vocabulary::new(self.vocabulary.iter().take(count))?;
        let vectors = self.vectors[..count * self.dim].to_vec();
        Self::new(vocabulary, vectors, self.dim, self.metric)
    }

    /// The 20,000 common English words that ship with the crate, in 50 dimensions, Euclidean.
    /// See `NOTICE` for where they come from.
    ///
    /// # Errors
    /// None in an intact build.
    pub fn default_english() -> Result<Self> {
        static SHARED: OnceLock<Embedding> = OnceLock::new();
        static BYTES: &[u8] = include_bytes!("../../data/default.fdx");
        embedded(&SHARED, BYTES, "default.fdx")
    }

    /// 10,498 common English nouns that ship with the crate, in 10 hyperbolic dimensions: the
    /// is-a hierarchy of WordNet, trained by [`embedding::poincare`](crate::embedding::poincare).
    ///
    /// # Errors
    /// None in an intact build.
    pub fn default_nouns() -> Result<Self> {
        static SHARED: OnceLock<Embedding> = OnceLock::new();
        static BYTES: &[u8] = include_bytes!("../../data/nouns.fdx");
        embedded(&SHARED, BYTES, "nouns.fdx")
    }

    /// The words.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// All vectors, row-major, one row a word.
    pub fn vectors(&self) -> &[f32] {
        &self.vectors
    }

    /// The vector of one word.
    pub fn vector(&self, id: u32) -> &[f32] {
        &self.vectors[id as usize * self.dim..][..self.dim]
    }

    fn vectors_of(&self, ids: &[u32]) -> Vec<&[f32]> {
        ids.iter().map(|&id| self.vector(id)).collect()
    }

    /// Number of words.
    #[allow(clippy::len_without_is_empty)] // an embedding is never empty
    pub fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// Numbers in a vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The metric.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Writes the embedding in fastdx's own format: to a temporary sibling, then renamed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn save(&self, path: &Path) -> Result<()> {
        format::native::save(self, path)
    }

    /// The exact search structure over the vectors, built on first use and shared by clones.
    pub fn search(&self) -> &ExactSearch {
        self.derived
            .search
            .get_or_init(|| ExactSearch::new(&self.vectors, self.dim, self.metric))
    }

    /// A byte a coordinate, made on first use and shared by clones.
    #[inline]
    fn coarse(&self) -> Option<&Coarse> {
        let made = || {
            let small = Coarse::bytes(self.len(), self.dim) <= COARSE_UP_TO;
            small
                .then(|| Coarse::new(&self.vectors, self.dim))
                .flatten()
        };
        self.derived.coarse.get_or_init(made).as_ref()
    }

    /// The exact `k` nearest words of each of the row-major `queries`: ids and distances, `k`
    /// a query, nearest first, ties by id.
    ///
    /// # Errors
    /// `k` outside 1..=V, a shape that does not fit, a query that is no point of the space.
    pub fn nearest(&self, queries: &[f64], k: usize) -> Result<(Vec<u32>, Vec<f64>)> {
        self.nearest_with(queries, k, &Control::new())
    }

    /// [`nearest`](Self::nearest), cancellable.
    ///
    /// # Errors
    /// The same, and [`Error::Interrupted`].
    pub fn nearest_with(
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
        for (i, query) in queries.chunks_exact(self.dim).enumerate() {
            if let Some(reason) = self.metric.refuse(query) {
                return Err(Error::Vector {
                    owner: format!("query {i}"),
                    reason,
                });
            }
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
        // As many batches for every thread, none larger than serves.
        let threads = crate::parallel::pool()?.current_num_threads();
        let rows = crate::search::together(m, threads);
        crate::parallel::install(m, 1, || {
            queries
                .par_chunks(rows * self.dim)
                .zip(ids.par_chunks_mut(rows * k))
                .zip(distances.par_chunks_mut(rows * k))
                .try_for_each(|((queries, ids), distances)| {
                    control.check()?;
                    search.nearest(&self.vectors, queries, k, ids, distances);
                    control.advance(ids.len() / k);
                    Ok(())
                })
        })??;
        Ok((ids, distances))
    }
}

/// The embedding in bytes of the program, read once.
fn embedded(shared: &OnceLock<Embedding>, bytes: &[u8], name: &str) -> Result<Embedding> {
    if let Some(embedding) = shared.get() {
        return Ok(embedding.clone());
    }
    let embedding = format::native::read(
        &Backing::copy(bytes),
        Path::new(name),
        crate::file::Checks::Every,
    )?;
    Ok(shared.get_or_init(|| embedding).clone())
}

impl WordMetric for Embedding {
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
            let mut hash = Xxh3Default::new();
            hash.update(&self.vocabulary.bytes);
            hash.update(bytemuck::cast_slice(&self.vocabulary.offsets));
            hash.update(self.metric.name().as_bytes());
            hash.update(bytemuck::cast_slice(self.vectors()));
            hash.digest()
        })
    }
}

impl MetricSpace for Embedding {
    fn pairs(&self, a: &[u32], b: &[u32], out: &mut [f64]) {
        self.metric.pairs(&self.vectors, self.dim, a, b, out);
    }

    #[inline]
    fn seen(&self, a: u32, b: &[u32], limits: &Limits) -> Seen {
        if self.metric != Metric::Euclidean {
            return Seen::default();
        }
        match self.coarse() {
            Some(coarse) => coarse.seen(a, b, limits),
            None => crate::metric::seen(self.vector(a), &self.vectors, b, limits),
        }
    }

    #[inline]
    fn nearest_seen(&self, a: u32, b: &[u32]) -> Option<(f64, f64)> {
        let euclidean = self.metric == Metric::Euclidean;
        let coarse = euclidean.then(|| self.coarse()).flatten();
        coarse.map(|coarse| coarse.nearest(a, b))
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

    fn approximate_neighbors(&self, words: &[u32], k: usize) -> Result<Option<Vec<Vec<u32>>>> {
        let Some(searcher) = self.hnsw_searcher()? else {
            return Ok(None);
        };
        let mut scratch = HnswScratch::default();
        let each = words.iter().map(|&id| {
            let query: Vec<f64> = self.vector(id).iter().map(|&x| x.into()).collect();
            let ef = k.saturating_mul(2).max(64);
            let near = searcher.nearest(&query, k, ef, &mut scratch);
            near.iter().map(|near| near.1).collect()
        });
        Ok(Some(each.collect()))
    }

    fn block(&self, a: &[u32], b: &[u32], out: &mut [f64], stride: usize) {
        let [a, b] = [a, b].map(|ids| self.vectors_of(ids));
        crate::metric::block::distances(self.metric, &a, &b, out, stride);
    }

    fn screen(&self, a: &[u32], b: &[u32], out: &mut [f32], stride: usize) -> Option<f64> {
        if !screen::available(self.metric) {
            return None;
        }
        let norms = match self.metric {
            Metric::Euclidean => {
                let norms = &self.derived.norms;
                Some(norms.get_or_init(|| Norms::new(self.len())))
            }
            _ => None,
        };
        let [all_a, all_b] = [a, b].map(|ids| self.vectors_of(ids));
        let [a, b] = [(&all_a, a), (&all_b, b)].map(|(vectors, ids)| Vectors {
            vectors,
            rows: norms.map(|norms| (norms, ids)),
        });
        screen::distances(self.metric, a, b, out, stride)
    }

    fn farthest(&self) -> f64 {
        *self.derived.farthest.get_or_init(|| {
            let mut row = vec![0.0; self.len()];
            self.distances(0, &mut row);
            row.into_iter().fold(0.0, f64::max)
        })
    }

    fn certificates(&self) -> &[Certificate] {
        &self.derived.certificates
    }

    fn with_certificate(&self, certificate: Certificate) -> Option<Arc<dyn MetricSpace>> {
        let mut certificates = self.derived.certificates.clone();
        certificates.push(certificate);
        Some(Arc::new(self.clone().with_certificates(certificates)))
    }

    fn distance_error(&self) -> f64 {
        let norms = self
            .vectors
            .chunks_exact(self.dim)
            .map(crate::metric::norm2);
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
