//! Builds and searches graphs with the crate hnsw_rs.
//!
//! hnsw_rs copies what is inserted and compares slices of one type. Here the slices are bytes: a word
//! is its id in [`WORD`] bytes. A point is its coordinates, 8 bytes each, so its length never equals
//! [`WORD`]. [`Words`] looks up the vector of an id, so vectors stand in memory once, or in
//! the mapped file.
//!
//! Words are inserted one after the other: parallel inserts build a different graph each time and
//! lose links.

use hnsw_rs::anndists::dist::distances::Distance;
use hnsw_rs::hnsw::Hnsw;

use super::{HnswParameters, Rows};
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, install};
use crate::support::random::uniform_below;

/// Maximum number of layers, as in hnsw_rs.
const LAYERS: usize = 16;

/// Bytes of a word: its id and one more, a length that no coordinates have.
const WORD: usize = 5;

fn bytes_of(id: u32) -> [u8; WORD] {
    let [a, b, c, d] = id.to_le_bytes();
    [a, b, c, d, 0]
}

/// The distance function that hnsw_rs calls, for words and points.
struct Words {
    rows: Rows,
}

impl Words {
    /// The row of a word; `None` for coordinates.
    fn row(&self, data: &[u8]) -> Option<&[f32]> {
        match *data {
            [a, b, c, d, _] => Some(self.rows.row(u32::from_le_bytes([a, b, c, d]))),
            _ => None,
        }
    }

    fn from(&self, point: &[u8], row: &[f32]) -> f64 {
        let point = bytemuck::try_cast_slice::<u8, f64>(point);
        point.map_or(f64::INFINITY, |point| self.rows.metric.distance(point, row))
    }
}

impl Distance<u8> for Words {
    fn eval(&self, a: &[u8], b: &[u8]) -> f32 {
        let distance = match (self.row(a), self.row(b)) {
            (Some(a), Some(b)) => self.rows.metric.distance(a, b),
            (None, Some(row)) => self.from(a, row),
            (Some(row), None) => self.from(b, row),
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

/// A graph of hnsw_rs.
pub(super) struct Graph {
    /// Always there until it is dropped.
    graph: Option<Hnsw<'static, u8, Words>>,
    unreachable: Vec<u32>,
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").finish_non_exhaustive()
    }
}

impl Drop for Graph {
    /// hnsw_rs drops its graphs with rayon. Outside our pool this would use rayon's global pool,
    /// which does not survive a fork.
    fn drop(&mut self) {
        let mut graph = self.graph.take();
        if install(1, 0, || drop(graph.take())).is_err() {
            std::mem::forget(graph);
        }
    }
}

pub(super) fn require() -> Result<()> {
    Ok(())
}

impl Graph {
    pub(super) fn build(
        rows: &Rows,
        parameters: HnswParameters,
        control: &Control,
    ) -> Result<Self> {
        control.check()?;
        let words = rows.vectors.len() / rows.dim;
        // hnsw_rs counts words in an i32.
        if i32::try_from(words).is_err() {
            return Err(Error::TooLarge {
                what: "the words of an HNSW graph".into(),
                needed: words as u64,
                limit: i32::MAX as u64,
            });
        }
        let HnswParameters {
            m,
            ef_construction,
            seed,
        } = parameters;
        let graph = Hnsw::new(
            m,
            words,
            LAYERS,
            ef_construction,
            Words { rows: rows.clone() },
        );
        let mut built = Graph {
            graph: Some(graph),
            unreachable: Vec::new(),
        };
        let mut order: Vec<u32> = (0..words as u32).collect();
        let mut rng = crate::Randomness::new(Some(seed)).next_key()?.stream(0);
        for i in (1..words).rev() {
            order.swap(i, uniform_below(&mut rng, i as u32 + 1) as usize);
        }
        for id in order {
            control.check()?;
            if let Some(graph) = &built.graph {
                graph.insert_slice((&bytes_of(id), id as usize));
            }
            control.advance(1);
        }
        built.unreachable = built
            .graph
            .as_ref()
            .map_or(Vec::new(), |g| unreachable(g, words));
        Ok(built)
    }

    pub(super) fn unreachable(&self) -> &[u32] {
        &self.unreachable
    }

    /// Up to `ef` words that the graph finds for a point.
    pub(super) fn search(&self, point: &[u8], ef: usize) -> impl Iterator<Item = u32> {
        let found = self.graph.as_ref().map(|graph| graph.search(point, ef, ef));
        let found = found.into_iter().flatten();
        found.map(|near| near.get_origin_id() as u32)
    }
}

/// The words that cannot be reached from the entry in the lowest layer.
fn unreachable(graph: &Hnsw<'static, u8, Words>, words: usize) -> Vec<u32> {
    let index = graph.get_point_indexation();
    let top = usize::from(graph.get_max_level_observed());
    let mut links = vec![Vec::new(); words];
    for point in (0..=top).flat_map(|layer| index.get_layer_iterator(layer)) {
        let near = point.get_neighborhood_id();
        let ids = near[0].iter().map(|near| near.get_origin_id());
        links[point.get_origin_id()] = ids.collect();
    }
    // The entry is the first inserted word of the highest layer.
    let entry = index.get_layer_iterator(top).next();
    let mut open: Vec<usize> = entry.iter().map(|point| point.get_origin_id()).collect();
    let mut reached = vec![false; words];
    open.iter().for_each(|&entry| reached[entry] = true);
    while let Some(word) = open.pop() {
        for &other in &links[word] {
            if !std::mem::replace(&mut reached[other], true) {
                open.push(other);
            }
        }
    }
    (0..words as u32)
        .filter(|&id| !reached[id as usize])
        .collect()
}
