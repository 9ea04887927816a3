//! Approximate nearest words by HNSW (Malkov and Yashunin 2020).
//!
//! Behind a noise mechanism an approximate search costs no privacy: which word is found is a
//! function of the noisy point alone. It costs fidelity: the law of the output is no longer the
//! mechanism's. Noisy points lie far from every word, where graphs are at their worst; measure
//! with [`quality`](crate::mechanism::quality) before relying on it. Tem's lists are never built this way.
//!
//! The graph is built in parallel, the same at any number of threads; it is kept as plain arrays, searched
//! here, and stored in our file.

mod build;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::metric::{Metric, squared_f32};
use crate::prefetch::prefetch;

/// How a graph is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HnswParameters {
    /// Neighbours a word has in the upper layers, 2 to 128; twice as many in the lowest.
    pub m: usize,
    /// Candidates looked at when a word is inserted, 1 to 10,000.
    pub ef_construction: usize,
    /// Of the order in which words are inserted: one seed, one graph.
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

/// The graph: for every layer and word its neighbours.
#[derive(Clone, Debug)]
pub struct Hnsw {
    pub(crate) parameters: HnswParameters,
    pub(crate) entry: u32,
    pub(crate) words: usize,
    /// Where the neighbours of a word begin: words + 1 numbers a layer, lowest layer first.
    pub(crate) starts: Buffer<u64>,
    pub(crate) neighbors: Buffer<u32>,
}

impl Hnsw {
    /// The parameters it was built with.
    pub fn parameters(&self) -> HnswParameters {
        self.parameters
    }

    /// Layers, the lowest included.
    pub fn layers(&self) -> usize {
        self.starts.len() / (self.words + 1)
    }

    /// The neighbours of a word.
    pub fn neighbors(&self, layer: usize, id: u32) -> &[u32] {
        let at = layer * (self.words + 1) + id as usize;
        let (start, end) = (self.starts[at] as usize, self.starts[at + 1] as usize);
        // A damaged file that was not verified may have any numbers here.
        self.neighbors.get(start..end).unwrap_or_default()
    }

    /// About the `k` nearest rows of `vectors` for one query, nearest first: of the `ef`
    /// candidates the graph leads to, the `k` nearest by exact distances. At least one.
    pub(crate) fn nearest<'a>(
        &self,
        (metric, vectors): (Metric, &[f32]),
        query: &[f64],
        k: usize,
        ef: usize,
        scratch: &'a mut HnswScratch,
    ) -> &'a [(f64, u32)] {
        let n = query.len();
        let row = |id: u32| &vectors[id as usize * n..][..n];
        scratch.single.clear();
        scratch.single.extend(query.iter().map(|&x| x as f32));
        let single = &*scratch.single;
        // Squares serve where they neither vanish nor overflow.
        let squared = metric == Metric::Euclidean
            && (1e-20..1e30).contains(&squared_f32(single, row(self.entry)));
        // Bits of a distance that is not negative sort as it does.
        let key = |id: u32| {
            let distance = match squared {
                true => squared_f32(single, row(id)),
                false => metric.distance(query, row(id)) as f32,
            };
            u64::from(distance.to_bits()) << 32 | u64::from(id)
        };
        let mut nearest = key(self.entry);
        for layer in (1..self.layers()).rev() {
            loop {
                let known = |&&id: &&u32| (id as usize) < self.words;
                let near = self.neighbors(layer, nearest as u32).iter().filter(known);
                match near.map(|&id| key(id)).min() {
                    Some(other) if other < nearest => nearest = other,
                    _ => break,
                }
            }
        }
        let near = |word: u32| {
            let near = self.neighbors(0, word).iter().copied();
            near.filter(|&id| (id as usize) < self.words)
        };
        let candidates = &mut scratch.candidates;
        candidates.search(self.words, nearest, ef.max(k), near, row, key);
        let found = &candidates.found;
        let ranked = &mut scratch.ranked;
        ranked.clear();
        let exact = |&key: &u64| (metric.distance(query, row(key as u32)), key as u32);
        ranked.extend(found.iter().map(exact));
        ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        ranked.truncate(k);
        ranked
    }
}

/// Asks for the beginning of a row before it is needed.
#[inline(always)]
fn ask_for(row: &[f32]) {
    for line in row.chunks(16).take(8) {
        prefetch(line.as_ptr());
    }
}

/// Working memory of a search.
#[derive(Default)]
pub(crate) struct HnswScratch {
    single: Vec<f32>,
    candidates: Candidates,
    ranked: Vec<(f64, u32)>,
}

/// The nearest words that a walk through one layer has found, as keys: a distance's bits above an id.
#[derive(Default)]
struct Candidates {
    visited: Visited,
    open: BinaryHeap<Reverse<u64>>,
    found: BinaryHeap<u64>,
    near: Vec<u32>,
    sorted: Vec<u64>,
}

impl Candidates {
    /// From the word of `start` along the links `near`, until the `ef` nearest found have none that is
    /// nearer.
    #[inline]
    fn search<'a, I: Iterator<Item = u32>>(
        &mut self,
        words: usize,
        start: u64,
        ef: usize,
        links: impl Fn(u32) -> I,
        row: impl Fn(u32) -> &'a [f32],
        key: impl Fn(u32) -> u64,
    ) {
        let Candidates {
            visited,
            open,
            found,
            near,
            ..
        } = self;
        visited.begin(words);
        visited.first(start as u32);
        open.clear();
        found.clear();
        open.push(Reverse(start));
        found.push(start);
        let mut farthest = start;
        while let Some(Reverse(word)) = open.pop() {
            if word > farthest && found.len() >= ef {
                break;
            }
            near.clear();
            for id in links(word as u32) {
                if visited.first(id) {
                    ask_for(row(id));
                    near.push(id);
                }
            }
            for &id in &*near {
                let other = key(id);
                if found.len() < ef || other < farthest {
                    open.push(Reverse(other));
                    found.push(other);
                    if found.len() > ef {
                        found.pop();
                    }
                    farthest = found.peek().copied().unwrap_or(u64::MAX);
                }
            }
        }
    }

    /// What was found, nearest first; at least one.
    fn sorted(&mut self) -> &[u64] {
        self.sorted.clear();
        self.sorted.extend(self.found.drain());
        self.sorted.sort_unstable();
        &self.sorted
    }
}

/// A set of words that is emptied in no time.
#[derive(Default)]
struct Visited {
    round: u32,
    marks: Vec<u32>,
}

impl Visited {
    fn begin(&mut self, words: usize) {
        if self.marks.len() != words || self.round == u32::MAX {
            self.marks.clear();
            self.marks.resize(words, 0);
            self.round = 0;
        }
        self.round += 1;
    }

    /// Adds a word; whether it is new.
    #[inline]
    fn first(&mut self, id: u32) -> bool {
        let mark = &mut self.marks[id as usize];
        std::mem::replace(mark, self.round) != self.round
    }
}
