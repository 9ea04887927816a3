//! Approximate nearest words by HNSW (Malkov and Yashunin 2020), the graph of the crate hnsw_rs.
//!
//! Behind a noise mechanism, an approximate search costs no privacy: the returned word is a
//! function of the noisy point alone. It costs fidelity: the law of the output is no longer the
//! mechanism's. Noisy points lie far from every word, where graphs perform worst: compare with the
//! exact search under one seed before relying on it. Tem's lists are never built this way.
//!
//! A graph lives in memory. It is not saved: whoever loads an embedding builds it again. The feature
//! `hnsw` brings hnsw_rs; without it, building a graph is refused. Words are inserted one after the other:
//! parallel inserts build a different graph each time and lose links.

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

/// Returns an error in a build without the feature `hnsw`.
pub(crate) fn require() -> Result<()> {
    if cfg!(feature = "hnsw") {
        return Ok(());
    }
    let expected = "\"exact\": this build of fastdx has no graph search (feature `hnsw`)";
    Err(Error::parameter("search", expected, "\"hnsw\""))
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
    #[cfg(feature = "hnsw")]
    graph: graph::Graph,
    unreachable: Vec<u32>,
}

impl Hnsw {
    /// Builds the graph of all rows with hnsw_rs.
    pub(crate) fn build(rows: Rows, parameters: HnswParameters, control: &Control) -> Result<Self> {
        let (m, ef) = (parameters.m, parameters.ef_construction);
        if !(2..=128).contains(&m) {
            return Err(Error::parameter("m", "between 2 and 128", m));
        }
        if !(1..=10_000).contains(&ef) {
            let expected = "between 1 and 10000";
            return Err(Error::parameter("ef_construction", expected, ef));
        }
        require()?;
        control.check()?;
        #[cfg(feature = "hnsw")]
        let graph = graph::Graph::build(&rows, parameters, control)?;
        Ok(Hnsw {
            #[cfg(feature = "hnsw")]
            unreachable: graph.unreachable(),
            #[cfg(not(feature = "hnsw"))]
            unreachable: Vec::new(),
            #[cfg(feature = "hnsw")]
            graph,
            rows,
        })
    }

    /// The words to which no links lead from the others, such as copies of one another, ascending.
    /// Every search looks at them too.
    pub fn unreachable(&self) -> &[u32] {
        &self.unreachable
    }

    /// Finds approximately the `k` nearest words of a point, nearest first: the `k` nearest by
    /// exact distances among the graph's `ef` candidates. At least one word is found.
    pub fn nearest(&self, query: &[f64], k: usize, ef: usize) -> Vec<(f64, u32)> {
        let rows = &self.rows;
        #[cfg(feature = "hnsw")]
        let found = self.graph.search(query, ef.max(k));
        #[cfg(not(feature = "hnsw"))]
        let found = std::iter::empty().take(ef);
        let all = found.chain(self.unreachable.iter().copied());
        let exact = |id: u32| (rows.metric.distance(query, rows.row(id)), id);
        let mut ranked: Vec<(f64, u32)> = all.map(exact).collect();
        ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        ranked.dedup();
        ranked.truncate(k);
        ranked
    }
}

/// hnsw_rs copies what is inserted and compares slices of one type. Here the slices are bytes: a word
/// is its id and one byte more, a length that no point has: its coordinates take 8 bytes each. So
/// vectors stand in memory once, or in the mapped file.
#[cfg(feature = "hnsw")]
mod graph {
    use hnsw_rs::anndists::dist::distances::Distance;
    use hnsw_rs::hnsw::Hnsw;

    use super::{HnswParameters, Rows};
    use crate::support::error::{Error, Result};
    use crate::support::parallel::{Control, install};
    use crate::support::random::uniform_below;

    /// Maximum number of layers, as in hnsw_rs.
    const LAYERS: usize = 16;

    impl Distance<u8> for Rows {
        fn eval(&self, a: &[u8], b: &[u8]) -> f32 {
            let row = |data: &[u8]| match *data {
                [a, b, c, d, _] => Some(self.row(u32::from_le_bytes([a, b, c, d]))),
                _ => None,
            };
            let from = |point: &[u8], row: &[f32]| {
                let point = bytemuck::try_cast_slice::<u8, f64>(point);
                point.map_or(f64::INFINITY, |point| self.metric.distance(point, row))
            };
            let distance = match (row(a), row(b)) {
                (Some(a), Some(b)) => self.metric.distance(a, b),
                (None, Some(row)) => from(a, row),
                (Some(row), None) => from(b, row),
                (None, None) => f64::INFINITY,
            } as f32;
            // hnsw_rs panics on NaN: treat a point outside the metric's space as far from every word.
            if distance >= 0.0 {
                distance
            } else {
                f32::INFINITY
            }
        }
    }

    /// A graph of hnsw_rs; always there until it is dropped.
    pub(super) struct Graph(Option<Hnsw<'static, u8, Rows>>);

    impl std::fmt::Debug for Graph {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_struct("Graph").finish_non_exhaustive()
        }
    }

    impl Drop for Graph {
        /// hnsw_rs drops its graphs with rayon. Outside our pool this would use rayon's global pool,
        /// which does not survive a fork.
        fn drop(&mut self) {
            let mut graph = self.0.take();
            if install(1, 0, || drop(graph.take())).is_err() {
                std::mem::forget(graph);
            }
        }
    }

    impl Graph {
        pub(super) fn build(
            rows: &Rows,
            parameters: HnswParameters,
            control: &Control,
        ) -> Result<Self> {
            let words = rows.vectors.len() / rows.dim;
            // hnsw_rs counts words in an i32.
            if i32::try_from(words).is_err() {
                return Err(Error::TooLarge {
                    what: "the words of an HNSW graph".into(),
                    needed: words as u64,
                    limit: i32::MAX as u64,
                });
            }
            let (m, ef) = (parameters.m, parameters.ef_construction);
            let built = Graph(Some(Hnsw::new(m, words, LAYERS, ef, rows.clone())));
            let mut order: Vec<u32> = (0..words as u32).collect();
            let seed = Some(parameters.seed);
            let mut rng = crate::Randomness::new(seed).next_key()?.stream(0);
            for i in (1..words).rev() {
                order.swap(i, uniform_below(&mut rng, i as u32 + 1) as usize);
            }
            for id in order {
                control.check()?;
                let [a, b, c, d] = id.to_le_bytes();
                if let Some(graph) = &built.0 {
                    graph.insert_slice((&[a, b, c, d, 0], id as usize));
                }
                control.advance(1);
            }
            Ok(built)
        }

        /// Up to `ef` words that the graph finds for a point.
        pub(super) fn search(&self, point: &[f64], ef: usize) -> impl Iterator<Item = u32> {
            let point = bytemuck::cast_slice(point);
            let found = self.0.as_ref().map(|graph| graph.search(point, ef, ef));
            let found = found.into_iter().flatten();
            found.map(|near| near.get_origin_id() as u32)
        }

        /// The words that cannot be reached from the entry in the lowest layer.
        pub(super) fn unreachable(&self) -> Vec<u32> {
            let Some(graph) = &self.0 else {
                return Vec::new();
            };
            let index = graph.get_point_indexation();
            let top = usize::from(graph.get_max_level_observed());
            let mut links = vec![Vec::new(); graph.get_nb_point()];
            for point in (0..=top).flat_map(|layer| index.get_layer_iterator(layer)) {
                let near = point.get_neighborhood_id();
                let ids = near[0].iter().map(|near| near.get_origin_id());
                links[point.get_origin_id()] = ids.collect();
            }
            let mut reached = vec![false; links.len()];
            // The entry is the first inserted word of the highest layer.
            let entry = index.get_layer_iterator(top).next();
            let mut open: Vec<usize> = entry.iter().map(|point| point.get_origin_id()).collect();
            while let Some(word) = open.pop() {
                if !std::mem::replace(&mut reached[word], true) {
                    open.extend(&links[word]);
                }
            }
            let unreached = reached.iter().zip(0..).filter(|(reached, _)| !**reached);
            unreached.map(|(_, id)| id).collect()
        }
    }
}
