//! Approximate nearest words by HNSW (Malkov and Yashunin 2020), the graph of the crate hnsw_rs.
//!
//! Behind a noise mechanism, an approximate search costs no privacy: the returned word is a
//! function of the noisy point alone. It costs fidelity: the law of the output is no longer the
//! mechanism's. Noisy points lie far from every word, where graphs perform worst: compare with the
//! exact search under one seed before relying on it. Tem's lists are never built this way.
//!
//! A graph lives in memory. It is not saved: whoever loads an embedding builds it again. This
//! module's types hide hnsw_rs, which the feature `hnsw` enables (`graph.rs`).

#[cfg_attr(not(feature = "hnsw"), path = "absent.rs")]
mod graph;

use graph::Graph;

use crate::distance::metric::Metric;
use crate::support::buffer::Buffer;
use crate::support::error::{Error, Result};
use crate::support::parallel::Control;

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
    fn check(&self) -> Result<()> {
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

/// A graph of an embedding's words.
#[derive(Debug)]
pub struct Hnsw {
    rows: Rows,
    graph: Graph,
}

/// Working memory of a search.
#[derive(Default)]
pub struct HnswScratch {
    ranked: Vec<(f64, u32)>,
}

impl Hnsw {
    /// Builds the graph of all rows with hnsw_rs.
    ///
    /// # Errors
    /// [`Error::Parameter`] for parameters out of range, or a build without the feature `hnsw`;
    /// [`Error::Interrupted`].
    pub(crate) fn build(rows: Rows, parameters: HnswParameters, control: &Control) -> Result<Self> {
        parameters.check()?;
        let graph = Graph::build(&rows, parameters, control)?;
        Ok(Hnsw { rows, graph })
    }

    /// The words to which no links lead from the others, such as copies of one another, ascending.
    /// Every search looks at them too.
    pub fn unreachable(&self) -> &[u32] {
        self.graph.unreachable()
    }

    /// Finds approximately the `k` nearest words of a point, nearest first: the `k` nearest by
    /// exact distances among the graph's `ef` candidates. At least one word is found.
    pub fn nearest<'a>(
        &self,
        query: &[f64],
        k: usize,
        ef: usize,
        scratch: &'a mut HnswScratch,
    ) -> &'a [(f64, u32)] {
        let rows = &self.rows;
        let ranked = &mut scratch.ranked;
        ranked.clear();
        let exact = |id: u32| (rows.metric.distance(query, rows.row(id)), id);
        let found = self.graph.search(bytemuck::cast_slice(query), ef.max(k));
        ranked.extend(found.chain(self.unreachable().iter().copied()).map(exact));
        ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        ranked.dedup();
        ranked.truncate(k);
        ranked
    }
}
