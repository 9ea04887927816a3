//! Building the graph (Malkov and Yashunin 2020), in batches: in parallel, and one seed, one graph.
//!
//! The words of a batch look for their neighbours in the graph that the batches before have left, each for
//! itself; then all new links are sorted by the word that they lead to, and each such word takes its own.
//! Neither step depends on which thread is first (Manohar et al. 2024, ParlayANN, build so too). A batch is
//! an eighth of what is there, at most a 64th of all: the words of one batch do not see each other.
//!
//! Afterwards every word that cannot be reached from the entry is linked to a near one that can.

use rand::rngs::ChaCha12Rng;
use rayon::prelude::*;

use super::{Candidates, Hnsw, HnswParameters, HnswScratch};
use crate::error::Result;
use crate::metric::{Metric, squared_f32};
use crate::parallel::{Control, install};
use crate::random::uniform_below;

/// The most.
const LAYERS: u32 = 16;

/// A distance's bits, which sort as it does, above the id of a word.
fn key(distance: f32, id: u32) -> u64 {
    u64::from(distance.to_bits()) << 32 | u64::from(id)
}

fn distance(key: u64) -> f32 {
    f32::from_bits((key >> 32) as u32)
}

/// Distances between words, for comparing.
struct Rows<'a> {
    metric: Metric,
    vectors: &'a [f32],
    dim: usize,
    /// Squares neither vanish nor overflow in f32.
    squared: bool,
    /// How much nearer to another a candidate has to be for it to be left out.
    slack: f32,
}

impl<'a> Rows<'a> {
    fn new(metric: Metric, vectors: &'a [f32], dim: usize) -> Self {
        let largest = vectors.iter().fold(0.0f32, |m, x| m.max(x.abs()));
        let squared = metric == Metric::Euclidean && (1e-10..1e15).contains(&largest);
        Rows {
            metric,
            vectors,
            dim,
            squared,
            slack: if squared { 1.1 } else { 1.05 },
        }
    }

    fn row(&self, id: u32) -> &'a [f32] {
        &self.vectors[id as usize * self.dim..][..self.dim]
    }

    /// Not negative, and no NaN: there is none between points of the space.
    fn between(&self, a: u32, b: u32) -> f32 {
        let (a, b) = (self.row(a), self.row(b));
        match self.squared {
            true => squared_f32(a, b),
            false => (self.metric.distance(a, b) as f32).max(0.0),
        }
    }

    /// Of candidates in the order of their distances those that are nearer to the word than to all
    /// that were taken before, at most `most`: the paper's heuristic, with the slack of DiskANN (Subramanya
    /// et al. 2019), without which words in many dimensions keep a dozen links.
    fn select(&self, candidates: &[u64], most: usize) -> Vec<u64> {
        let mut taken: Vec<u64> = Vec::with_capacity(most);
        for &candidate in candidates {
            if taken.len() == most {
                break;
            }
            let nearest = |&other: &u64| {
                let between = self.between(candidate as u32, other as u32);
                between * self.slack >= distance(candidate)
            };
            if taken.iter().all(nearest) {
                taken.push(candidate);
            }
        }
        taken
    }
}

/// The words of a layer and their links while it is built.
struct Layer {
    /// Where a word's links stand; none for a word that is not in the layer.
    place: Vec<u32>,
    links: Vec<Vec<u64>>,
    /// The most of a word.
    most: usize,
}

impl Layer {
    fn new(words: usize, here: impl Iterator<Item = u32>, most: usize) -> Self {
        let (mut place, mut count) = (vec![u32::MAX; words], 0);
        for id in here {
            place[id as usize] = count;
            count += 1;
        }
        let links = vec![Vec::new(); count as usize];
        Layer { place, links, most }
    }

    fn links(&self, id: u32) -> &[u64] {
        &self.links[self.place[id as usize] as usize]
    }

    fn set(&mut self, id: u32, links: Vec<u64>) {
        self.links[self.place[id as usize] as usize] = links;
    }
}

/// A link to be: the layer, the word that takes it, and the word it leads to with its distance.
type NewLink = (u8, u32, u64);

struct Building<'a> {
    rows: Rows<'a>,
    parameters: HnswParameters,
    layers: Vec<Layer>,
    entry: u32,
}

impl Building<'_> {
    /// The links of a word, layer by layer from its highest one down.
    fn look(&self, word: u32, height: u32, work: &mut Candidates) -> Vec<Vec<u64>> {
        let rows = &self.rows;
        let key = |id: u32| key(rows.between(word, id), id);
        let mut nearest = key(self.entry);
        let (below, above) = self.layers.split_at(height as usize + 1);
        for layer in above.iter().rev() {
            while let Some(other) = layer
                .links(nearest as u32)
                .iter()
                .map(|&l| key(l as u32))
                .min()
                && other < nearest
            {
                nearest = other;
            }
        }
        let mut links = Vec::with_capacity(below.len());
        for layer in below.iter().rev() {
            let ids = |id: u32| layer.links(id).iter().map(|&link| link as u32);
            let words = rows.vectors.len() / rows.dim;
            let row = |id| rows.row(id);
            work.search(
                words,
                nearest,
                self.parameters.ef_construction,
                ids,
                row,
                key,
            );
            let found = work.sorted();
            nearest = found[0];
            links.push(rows.select(found, self.parameters.m));
        }
        links
    }

    /// Inserts words that do not see each other.
    fn insert(&mut self, batch: &[u32], heights: &[u32], control: &Control) -> Result<()> {
        let this = &*self;
        let looked: Vec<Vec<Vec<u64>>> = batch
            .par_iter()
            .map_init(Candidates::default, |work, &word| {
                control.check()?;
                Ok(this.look(word, heights[word as usize], work))
            })
            .collect::<Result<_>>()?;
        let mut new: Vec<NewLink> = Vec::new();
        for (&word, links) in batch.iter().zip(looked) {
            for (layer, links) in (0..links.len()).rev().zip(links) {
                let back = |&link: &u64| (layer as u8, link as u32, key(distance(link), word));
                new.extend(links.iter().map(back));
                self.layers[layer].set(word, links);
            }
        }
        new.par_sort_unstable();
        let groups: Vec<&[NewLink]> = new.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).collect();
        let this = &*self;
        let taken: Vec<Vec<u64>> = groups
            .par_iter()
            .map(|group| {
                let (layer, word, _) = group[0];
                let layer = &this.layers[usize::from(layer)];
                let mut links = layer.links(word).to_vec();
                links.extend(group.iter().map(|&(_, _, link)| link));
                if links.len() > layer.most {
                    links.sort_unstable();
                    links = this.rows.select(&links, layer.most);
                }
                links
            })
            .collect();
        for (group, links) in groups.into_iter().zip(taken) {
            self.layers[usize::from(group[0].0)].set(group[0].1, links);
        }
        Ok(())
    }
}

/// How many layers above the lowest a word is in: each further one with probability 1/m, exactly.
fn height(m: usize, rng: &mut ChaCha12Rng) -> u32 {
    let mut height = 0;
    while height + 1 < LAYERS && uniform_below(rng, m as u32) == 0 {
        height += 1;
    }
    height
}

impl Hnsw {
    /// The graph of the rows of `vectors`.
    ///
    /// # Errors
    /// Parameters outside their range, [`Error::Interrupted`](crate::Error::Interrupted).
    pub(crate) fn build(
        metric: Metric,
        vectors: &[f32],
        dim: usize,
        parameters: HnswParameters,
        control: &Control,
    ) -> Result<Self> {
        parameters.check()?;
        let words = vectors.len() / dim;
        let mut hnsw = install(words, 1, || {
            build(metric, vectors, dim, parameters, control)
        })??;
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

fn build(
    metric: Metric,
    vectors: &[f32],
    dim: usize,
    parameters: HnswParameters,
    control: &Control,
) -> Result<Hnsw> {
    control.check()?;
    let words = vectors.len() / dim;
    let m = parameters.m;
    let mut order: Vec<u32> = (0..words as u32).collect();
    let mut rng = crate::Randomness::new(Some(parameters.seed))
        .next_key()?
        .stream(0);
    for i in (1..words).rev() {
        order.swap(i, uniform_below(&mut rng, i as u32 + 1) as usize);
    }
    let heights: Vec<u32> = (0..words).map(|_| height(m, &mut rng)).collect();
    // The entry, in all layers, comes first.
    let highest = (0..words).max_by_key(|&i| (heights[order[i] as usize], std::cmp::Reverse(i)));
    order[..=highest.unwrap_or(0)].rotate_right(1);
    let top = heights[order[0] as usize];
    let layer = |layer: u32| {
        let here = order
            .iter()
            .copied()
            .filter(|&id| heights[id as usize] >= layer);
        Layer::new(words, here, if layer == 0 { 2 * m } else { m })
    };
    let mut building = Building {
        rows: Rows::new(metric, vectors, dim),
        parameters,
        layers: (0..=top).map(layer).collect(),
        entry: order[0],
    };
    control.advance(1);
    let mut done = 1;
    while done < words {
        let batch = (done / 8).clamp(1, (words / 64).max(64));
        let batch = &order[done..words.min(done + batch)];
        building.insert(batch, &heights, control)?;
        control.advance(batch.len());
        done += batch.len();
    }
    let lists = building.layers.iter().map(|layer| {
        let of = |id: usize| match layer.place[id] {
            u32::MAX => Vec::new(),
            place => layer.links[place as usize]
                .iter()
                .map(|&link| link as u32)
                .collect(),
        };
        (0..words).map(of).collect()
    });
    Ok(flat(lists.collect(), building.entry, parameters))
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

#[cfg(test)]
mod tests {
    use hnsw_rs::prelude::{DistL2, Hnsw as Reference};
    use rand::RngExt;

    use super::*;

    /// The crate hnsw_rs, with the same parameters, searched with as many candidates.
    #[test]
    fn a_graph_finds_what_that_of_hnsw_rs_finds() {
        let (words, queries, dim, k, ef) = (4000, 300, 16, 10, 40);
        let key = crate::Randomness::new(Some(6)).next_key().unwrap();
        let mut rng = key.stream(0);
        let mut vectors =
            |count: usize| -> Vec<f32> { (0..count * dim).map(|_| rng.random::<f32>()).collect() };
        let (vectors, queries) = (vectors(words), vectors(queries));
        let parameters = HnswParameters {
            m: 8,
            ef_construction: 100,
            seed: 3,
        };
        let (metric, control) = (Metric::Euclidean, Control::new());
        let ours = Hnsw::build(metric, &vectors, dim, parameters, &control).unwrap();
        let theirs = Reference::new(8, words, LAYERS as usize, 100, DistL2);
        for (id, vector) in vectors.chunks_exact(dim).enumerate() {
            theirs.insert((vector, id));
        }
        let mut scratch = HnswScratch::default();
        let (mut found, mut found_by_theirs) = (0, 0);
        for query in queries.chunks_exact(dim) {
            let mut row = vec![0.0; words];
            metric.distances(query, &vectors, &mut row);
            let mut order: Vec<u32> = (0..words as u32).collect();
            order.sort_by(|&a, &b| row[a as usize].total_cmp(&row[b as usize]));
            let nearest = &order[..k];
            let near = theirs.search(query, k, ef);
            let near = near.iter().map(|near| near.d_id as u32);
            found_by_theirs += near.filter(|id| nearest.contains(id)).count();
            let query: Vec<f64> = query.iter().map(|&x| x.into()).collect();
            let near = ours.nearest((metric, &vectors), &query, k, ef, &mut scratch);
            found += near.iter().filter(|near| nearest.contains(&near.1)).count();
        }
        let most = 300 * k;
        assert!(found_by_theirs > most / 2, "{found_by_theirs} of {most}");
        // Theirs differ from run to run by a few.
        assert!(
            found + most / 50 >= found_by_theirs,
            "{found} and {found_by_theirs} of {most}"
        );
    }
}
