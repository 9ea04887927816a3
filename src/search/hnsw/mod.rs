//! Approximate nearest words by HNSW (Malkov and Yashunin 2020), the graph of the crate hnsw_rs.
//!
//! Behind a noise mechanism an approximate search costs no privacy: the word it returns is a
//! function of the noisy point alone. It costs fidelity: the law of the output is no longer the
//! mechanism's. Noisy points lie far from every word, where graphs are at their worst; measure
//! with [`quality`](crate::mechanism::quality) before relying on it. Tem's lists are never built this way.
//!
//! hnsw_rs stands behind the types of this module, with the feature `hnsw` (`graph.rs`). An [`Hnsw`] is
//! plain lists of neighbours: they go into our file and come from it with or without the feature. The
//! first search makes hnsw_rs's own structure of them. So a graph answers alike before it is saved and
//! after it is loaded, and no bytes reach hnsw_rs, which panics or ends the process on wrong ones,
//! before they are checked.

#[cfg_attr(not(feature = "hnsw"), path = "absent.rs")]
mod graph;

use std::sync::OnceLock;

pub(crate) use graph::Searcher;

use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::metric::{Metric, squared_f32};
use crate::parallel::Control;

/// The most layers of a graph; hnsw_rs has no more.
const LAYERS: usize = 16;

/// How a graph is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HnswParameters {
    /// Neighbours a word has in the upper layers, 2 to 128; twice as many in the lowest.
    pub m: usize,
    /// Candidates looked at when a word is inserted, 1 to 10,000.
    pub ef_construction: usize,
    /// Of the order in which words are inserted: one seed, one graph. hnsw_rs draws the words' layers
    /// from a seed of its own, which is always the same.
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

/// Refuses in a build without the feature `hnsw`.
pub(crate) fn require() -> Result<()> {
    graph::require()
}

/// The vectors of a graph's words, which it shares with the embedding.
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

/// The graph: for every layer and word its neighbours.
#[derive(Debug)]
pub struct Hnsw {
    parameters: HnswParameters,
    rows: Rows,
    lists: Lists,
    searcher: OnceLock<Searcher>,
}

/// The lists of neighbours, as they stand in our file.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    /// The word at which a search begins.
    pub(crate) entry: u32,
    pub(crate) words: usize,
    /// Where the neighbours of a word begin: words + 1 numbers a layer, lowest layer first.
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
        // A damaged file that was not verified may have any numbers here.
        self.neighbors.get(start..end).unwrap_or_default()
    }

    /// What does not fit the words, without reading the lists.
    fn check_shape(&self) -> std::result::Result<(), &'static str> {
        let whole = !self.starts.is_empty() && self.starts.len().is_multiple_of(self.words + 1);
        match whole && self.layers() <= LAYERS && (self.entry as usize) < self.words {
            true => Ok(()),
            false => Err("the HNSW graph does not fit the words"),
        }
    }

    /// What is wrong with the lists, read whole.
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
    /// The graph of all rows, built by hnsw_rs.
    ///
    /// # Errors
    /// Parameters outside their range, [`Error::Interrupted`]; a build without the feature `hnsw`.
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
            searcher: OnceLock::new(),
        }
    }

    /// The graph that a file holds. Its lists are read and checked if `verify`, else by the first
    /// search.
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

    /// The parameters it was built with.
    pub fn parameters(&self) -> HnswParameters {
        self.parameters
    }

    /// Layers, the lowest included.
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

    /// hnsw_rs's structure, made by the first call and kept.
    ///
    /// # Errors
    /// [`Error::Parameter`] in a build without the feature `hnsw`; [`Error::Corrupt`] for lists from a
    /// damaged file that was opened unverified; [`Error::Io`] where no temporary file can be written.
    pub(crate) fn searcher(&self) -> Result<&Searcher> {
        if let Some(searcher) = self.searcher.get() {
            return Ok(searcher);
        }
        self.lists.check().map_err(|reason| Error::Corrupt {
            path: "the embedding's file".into(),
            reason: format!("{reason}: build it again (build_hnsw)"),
        })?;
        let made = Searcher::new(self.rows.clone(), self.parameters, &self.lists)?;
        // Of two threads that made it at once, one's is kept.
        Ok(self.searcher.get_or_init(|| made))
    }
}

/// Marks the words that links lead to from `start`, itself among them.
fn mark_reached<'a>(reached: &mut [bool], start: u32, links: impl Fn(u32) -> &'a [u32]) {
    let mut open = vec![start];
    reached[start as usize] = true;
    while let Some(word) = open.pop() {
        for &other in links(word) {
            // A damaged file that was not verified may have any numbers here.
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
    /// About the `k` nearest words of a point, nearest first: of the `ef` candidates the graph leads
    /// to, the `k` nearest by exact distances. At least one.
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
        // Squares in f32 serve where they neither vanish nor overflow.
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
