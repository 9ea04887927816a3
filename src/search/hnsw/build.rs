//! Building the graph with hnsw_rs.
//!
//! The crate ends the process on bad parameters, so they are checked before; parallel insertion
//! loses points, and serial insertion can, so words are inserted one after the other, and
//! afterwards every word that cannot be reached from the entry is linked to a near one that can.

#[cfg(feature = "hnsw")]
use hnsw_rs::prelude::{Distance, Hnsw as Builder};

use super::{Hnsw, HnswParameters, HnswScratch};
use crate::error::Result;
use crate::metric::Metric;
use crate::parallel::Control;
#[cfg(feature = "hnsw")]
use crate::{metric::squared_f32, random::uniform_below};

/// The crate's most.
#[cfg(feature = "hnsw")]
const LAYERS: usize = 16;

#[cfg(feature = "hnsw")]
struct Eval(Metric, bool);

#[cfg(feature = "hnsw")]
impl Distance<f32> for Eval {
    fn eval(&self, a: &[f32], b: &[f32]) -> f32 {
        let distance = match *self {
            Eval(Metric::Euclidean, true) => squared_f32(a, b),
            Eval(metric, _) => metric.distance(a, b) as f32,
        };
        // The crate panics on NaN; there is none between points of the space.
        if distance.is_nan() {
            f32::MAX
        } else {
            distance
        }
    }
}

impl Hnsw {
    /// The graph of the rows of `vectors`.
    ///
    /// # Errors
    /// Parameters outside their range, [`Error::Interrupted`], and [`Error::Parameter`] where
    /// the crate was built without the feature `hnsw`.
    pub(crate) fn build(
        metric: Metric,
        vectors: &[f32],
        dim: usize,
        parameters: HnswParameters,
        control: &Control,
    ) -> Result<Self> {
        parameters.check()?;
        let mut hnsw = build(metric, vectors, dim, parameters, control)?;
        repair(&mut hnsw, (metric, vectors), dim);
        Ok(hnsw)
    }

    /// Whether each word can be reached from the entry in the lowest layer.
    pub fn reachable(&self) -> Vec<bool> {
        let mut reached = vec![false; self.words];
        mark_reached(self, self.entry, &mut reached);
        reached
    }
}

#[cfg(not(feature = "hnsw"))]
fn build(_: Metric, _: &[f32], _: usize, _: HnswParameters, _: &Control) -> Result<Hnsw> {
    let expected = "\"exact\": this fastdx was built without the feature \"hnsw\"";
    Err(crate::Error::parameter("search", expected, "\"hnsw\""))
}

#[cfg(feature = "hnsw")]
fn build(
    metric: Metric,
    vectors: &[f32],
    dim: usize,
    parameters: HnswParameters,
    control: &Control,
) -> Result<Hnsw> {
    let words = vectors.len() / dim;
    let HnswParameters {
        m,
        ef_construction,
        seed,
    } = parameters;
    // Squares of these neither vanish nor overflow in f32.
    let largest = vectors.iter().fold(0.0f32, |m, x| m.max(x.abs()));
    let eval = Eval(metric, (1e-10..1e15).contains(&largest));
    let builder = Builder::new(m, words, LAYERS, ef_construction, eval);
    let mut order: Vec<u32> = (0..words as u32).collect();
    let mut rng = crate::Randomness::new(Some(seed)).next_key()?.stream(0);
    for i in (1..words).rev() {
        order.swap(i, uniform_below(&mut rng, i as u32 + 1) as usize);
    }
    for &id in &order {
        control.check()?;
        builder.insert_slice((&vectors[id as usize * dim..][..dim], id as usize));
        control.advance(1);
    }
    // From the crate's points to plain lists, layer by layer.
    let mut lists: Vec<Vec<Vec<u32>>> = Vec::new();
    let mut entry = (0, 0);
    for point in builder.get_point_indexation() {
        let id = point.get_origin_id() as u32;
        let top = point.get_point_id().0;
        if (top, std::cmp::Reverse(id)) > (entry.0, std::cmp::Reverse(entry.1)) {
            entry = (top, id);
        }
        for (layer, near) in point.get_neighborhood_id().into_iter().enumerate() {
            if near.is_empty() {
                continue;
            }
            while lists.len() <= layer {
                lists.push(vec![Vec::new(); words]);
            }
            let near = near.iter().map(|neighbor| neighbor.d_id as u32);
            lists[layer][id as usize] = near.filter(|&other| other != id).collect();
        }
    }
    if lists.is_empty() {
        lists.push(vec![Vec::new(); words]);
    }
    Ok(flat(lists, entry.1, parameters))
}

fn flat(lists: Vec<Vec<Vec<u32>>>, entry: u32, parameters: HnswParameters) -> Hnsw {
    let words = lists[0].len();
    let (mut starts, mut neighbors) = (Vec::new(), Vec::new());
    for layer in lists {
        for near in layer {
            starts.push(neighbors.len() as u64);
            neighbors.extend(near);
        }
        starts.push(neighbors.len() as u64);
    }
    Hnsw {
        parameters,
        entry,
        words,
        starts: starts.into(),
        neighbors: neighbors.into(),
    }
}

fn mark_reached(hnsw: &Hnsw, from: u32, reached: &mut [bool]) {
    let mut open = vec![from];
    reached[from as usize] = true;
    while let Some(word) = open.pop() {
        for &other in hnsw.neighbors(0, word) {
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

/// Links words that cannot be reached from the entry to the nearest that the graph finds.
fn repair(hnsw: &mut Hnsw, (metric, vectors): (Metric, &[f32]), dim: usize) {
    let mut reached = hnsw.reachable();
    let mut links: Vec<(u32, u32)> = Vec::new();
    let mut scratch = HnswScratch::default();
    for id in 0..hnsw.words as u32 {
        if reached[id as usize] {
            continue;
        }
        let row = &vectors[id as usize * dim..][..dim];
        let query: Vec<f64> = row.iter().map(|&x| x.into()).collect();
        let ef = hnsw.parameters.ef_construction;
        let found = hnsw.nearest((metric, vectors), &query, ef, ef, &mut scratch);
        // The search follows links, so it finds words that can be reached; but it starts where
        // the upper layers led it.
        let near = found.iter().find(|&&(_, y)| reached[y as usize]);
        links.push((near.map_or(hnsw.entry, |&(_, y)| y), id));
        mark_reached(hnsw, id, &mut reached);
    }
    if links.is_empty() {
        return;
    }
    let lists = (0..hnsw.layers()).map(|layer| {
        let of = |id| hnsw.neighbors(layer, id).to_vec();
        (0..hnsw.words as u32).map(of).collect::<Vec<_>>()
    });
    let mut lists: Vec<_> = lists.collect();
    for (from, to) in links {
        lists[0][from as usize].push(to);
        lists[0][to as usize].push(from);
    }
    *hnsw = flat(lists, hnsw.entry, hnsw.parameters);
}
