//! Approximate nearest words by HNSW (Malkov and Yashunin 2020), the graph of the crate hnsw_rs.
//!
//! Behind a noise mechanism, an approximate search costs no privacy: the returned word is a
//! function of the noisy point alone. It costs fidelity: the law of the output is no longer the
//! mechanism's. Noisy points lie far from every word, where graphs perform worst; measure with
//! [`quality`](crate::mechanism::quality) before relying on it. Tem's lists are never built this
//! way.
//!
//! This module's types hide hnsw_rs, which the feature `hnsw` enables (`graph.rs`). An [`Hnsw`] is
//! plain lists of neighbours, stored in our file format with or without the feature. The first
//! search builds hnsw_rs's own structure from the lists. So a graph gives the same answers before
//! saving and after loading. hnsw_rs panics or ends the process on wrong input, so the lists are
//! checked before they reach it.

#[cfg_attr(not(feature = "hnsw"), path = "absent.rs")]
mod graph;

use crate::fork::Once;

pub(crate) use graph::Searcher;

use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::metric::{Metric, squared_f32};
use crate::parallel::Control;

/// Maximum number of layers of a graph, as in hnsw_rs.
const LAYERS: usize = 16;

/// Parameters for building a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HnswParameters {
    /// Neighbours per word in the upper layers, 2 to 128; the lowest layer has twice as many.
    pub m: usize,
    /// Candidates visited when a word is inserted, 1 to 10,000.
    pub ef_construction: usize,
    /// Seed of the insertion order: the same seed gives the same graph. hnsw_rs draws the words'
    /// layers from a fixed seed of its own.
    pub seed: u64,
}

impl Default for HnswParameters {
    fn default() -> Self {
        HnswParameters {
            m: 32,
            ef_construction: 200,
            seed: 0,
        }
    }
}

impl HnswParameters {
    pub(crate) fn check(&self) -> Result<()> {
        if !(2..=128).contains(&self.m) {
            return Err(Error::parameter("m", "between 2 and 128", self.m));
        }
        if !(1..=10_000).contains(&self.ef_construction) {
            let expected = "between 1 and 10000";
            return Err(Error::parameter(
                "ef_construction",
                expected,
                self.ef_construction,
            ));
        }
        Ok(())
    }
}

/// Returns an error in a build without the feature `hnsw`.
pub(crate) fn require() -> Result<()> {
    graph::require()
}

/// The vectors of a graph's words, shared with the embedding.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    pub(crate) metric: Metric,
    pub(crate) vectors: Buffer<f32>,
    pub(crate) dim: usize,
}

impl Rows {
    fn row(&self, id: u32) -> &[f32] {
        &self.vectors[id as usize * self.dim..][..self.dim]
    }
}

/// The graph: the neighbours of every word in every layer.
#[derive(Debug)]
pub struct Hnsw {
    parameters: HnswParameters,
    rows: Rows,
    lists: Lists,
    searcher: Once<Searcher>,
}

/// The lists of neighbours, as in our file.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    /// The word at which a search starts.
    pub(crate) entry: u32,
    pub(crate) words: usize,
    /// Start of each word's neighbours: words + 1 numbers per layer, lowest layer first.
    pub(crate) starts: Buffer<u64>,
    pub(crate) neighbors: Buffer<u32>,
}

impl Lists {
    fn layers(&self) -> usize {
        self.starts.len() / (self.words + 1)
    }

    fn of(&self, layer: usize, id: u32) -> &[u32] {
        let at = layer * (self.words + 1) + id as usize;
        let (start, end) = (self.starts[at] as usize, self.starts[at + 1] as usize);
        // A damaged file that was not verified may hold any numbers here.
        self.neighbors.get(start..end).unwrap_or_default()
    }

    /// Checks the sizes against the number of words, without reading the lists.
    fn check_shape(&self) -> std::result::Result<(), &'static str> {
        let whole = !self.starts.is_empty() && self.starts.len().is_multiple_of(self.words + 1);
        match whole && self.layers() <= LAYERS && (self.entry as usize) < self.words {
            true => Ok(()),
            false => Err("the HNSW graph does not fit the words"),
        }
    }

    /// Reads and checks the whole lists.
    fn check(&self) -> std::result::Result<(), &'static str> {
        self.check_shape()?;
        let ascending = self.starts.windows(2).all(|w| w[0] <= w[1]);
        let within = self.starts.last() == Some(&(self.neighbors.len() as u64));
        let known = |&id: &u32| (id as usize) < self.words;
        match ascending && within && self.neighbors.iter().all(known) {
            true => Ok(()),
            false => Err("the HNSW graph is out of order"),
        }
    }
}

impl Hnsw {
    /// Builds the graph of all rows with hnsw_rs.
    ///
    /// # Errors
    /// [`Error::Parameter`] for parameters out of range, or a build without the feature `hnsw`;
    /// [`Error::Interrupted`].
    pub(crate) fn build(rows: Rows, parameters: HnswParameters, control: &Control) -> Result<Self> {
        parameters.check()?;
        let lists = graph::build(&rows, parameters, control)?;
        Ok(Self::of(rows, parameters, lists))
    }

    fn of(rows: Rows, parameters: HnswParameters, lists: Lists) -> Self {
        Hnsw {
            parameters,
            rows,
            lists,
            searcher: Once::new(),
        }
    }

    /// Creates the graph that a file holds. Its lists are read and checked now if `verify`, else by
    /// the first search.
    pub(crate) fn from_parts(
        rows: Rows,
        parameters: HnswParameters,
        lists: Lists,
        verify: bool,
    ) -> std::result::Result<Self, &'static str> {
        lists.check_shape()?;
        if parameters.check().is_err() {
            return Err("the HNSW graph has impossible parameters");
        }
        if verify {
            lists.check()?;
        }
        Ok(Self::of(rows, parameters, lists))
    }

    pub(crate) fn lists(&self) -> &Lists {
        &self.lists
    }

    /// The parameters that the graph was built with.
    pub fn parameters(&self) -> HnswParameters {
        self.parameters
    }

    /// Number of layers, including the lowest.
    pub fn layers(&self) -> usize {
        self.lists.layers()
    }

    /// The neighbours of a word.
    pub fn neighbors(&self, layer: usize, id: u32) -> &[u32] {
        self.lists.of(layer, id)
    }

    /// Whether each word can be reached from the entry in the lowest layer.
    pub fn reachable(&self) -> Vec<bool> {
        let mut reached = vec![false; self.lists.words];
        mark_reached(&mut reached, self.lists.entry, |id| self.lists.of(0, id));
        reached
    }

    /// Returns hnsw_rs's structure; the first call creates it.
    ///
    /// # Errors
    /// [`Error::Parameter`] in a build without the feature `hnsw`; [`Error::Corrupt`] for lists
    /// from a damaged file that was opened unverified; [`Error::Io`] if no temporary file can be
    /// written.
    pub(crate) fn searcher(&self) -> Result<&Searcher> {
        if let Some(searcher) = self.searcher.get() {
            return Ok(searcher);
        }
        self.lists.check().map_err(|reason| Error::Corrupt {
            path: "the embedding's file".into(),
            reason: format!("{reason}: build it again (build_hnsw)"),
        })?;
        let made = Searcher::new(self.rows.clone(), self.parameters, &self.lists)?;
        // If two threads create it at once, one result is kept.
        Ok(self.searcher.get_or_init(|| made))
    }
}

/// Marks the words that links lead to from `start`, including `start`.
fn mark_reached<'a>(reached: &mut [bool], start: u32, links: impl Fn(u32) -> &'a [u32]) {
    let mut open = vec![start];
    reached[start as usize] = true;
    while let Some(word) = open.pop() {
        for &other in links(word) {
            // A damaged file that was not verified may hold any numbers here.
            let Some(seen) = reached.get_mut(other as usize) else {
                continue;
            };
            if !std::mem::replace(seen, true) {
                open.push(other);
            }
        }
    }
}

/// Working memory of a search.
#[derive(Default)]
pub(crate) struct HnswScratch {
    single: Vec<f32>,
    ranked: Vec<(f64, u32)>,
}

impl Searcher {
    /// Finds approximately the `k` nearest words of a point, nearest first: the `k` nearest by
    /// exact distances among the graph's `ef` candidates. At least one word is found.
    pub(crate) fn nearest<'a>(
        &self,
        query: &[f64],
        k: usize,
        ef: usize,
        scratch: &'a mut HnswScratch,
    ) -> &'a [(f64, u32)] {
        let rows = self.rows();
        let HnswScratch { single, ranked } = scratch;
        single.clear();
        single.extend(query.iter().map(|&x| x as f32));
        // Squares in f32 are used if they neither underflow nor overflow.
        let squared = rows.metric == Metric::Euclidean
            && (1e-20..1e30).contains(&squared_f32(single, rows.row(self.entry())));
        ranked.clear();
        let exact = |id: u32| (rows.metric.distance(query, rows.row(id)), id);
        let point: &[u8] = match squared {
            true => bytemuck::cast_slice(single),
            false => bytemuck::cast_slice(query),
        };
        self.candidates(point, ef.max(k), |id| ranked.push(exact(id)));
        ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        ranked.truncate(k);
        ranked
    }
}
