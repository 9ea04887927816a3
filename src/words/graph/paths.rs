//! Shortest paths from one word, in integers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The distance of an unreachable word.
pub(super) const NONE: u64 = u64::MAX;

/// An undirected graph: every word's neighbours and the lengths of the edges.
#[derive(Clone, Debug, Default)]
pub(super) struct Adjacency {
    starts: Vec<usize>,
    links: Vec<(u32, u64)>,
}

impl Adjacency {
    /// Creates the graph from edges (u, v, length).
    pub(super) fn new(words: usize, edges: &[(u32, u32, u64)]) -> Self {
        let mut starts = vec![0; words + 1];
        for &(u, v, _) in edges {
            starts[u as usize + 1] += 1;
            starts[v as usize + 1] += 1;
        }
        for i in 0..words {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut links = vec![(0, 0); 2 * edges.len()];
        for &(u, v, length) in edges {
            for (from, to) in [(u, v), (v, u)] {
                links[next[from as usize]] = (to, length);
                next[from as usize] += 1;
            }
        }
        Adjacency { starts, links }
    }

    pub(super) fn words(&self) -> usize {
        self.starts.len() - 1
    }

    #[inline]
    pub(super) fn of(&self, word: u32) -> &[(u32, u64)] {
        &self.links[self.starts[word as usize]..self.starts[word as usize + 1]]
    }

    /// Distances from a word to every word, [`NONE`] for unreachable words; stops once `target` is
    /// known. Dijkstra (1959).
    pub(super) fn distances(&self, from: u32, target: Option<u32>) -> Vec<u64> {
        let mut distances = vec![NONE; self.words()];
        self.search(from, target, &mut distances);
        distances
    }

    /// Computes [`distances`](Self::distances) into an array whose entries are [`NONE`] before the
    /// search. Returns the words that it reached, each at least once.
    pub(super) fn search(&self, from: u32, target: Option<u32>, distances: &mut [u64]) -> Vec<u32> {
        let mut reached = vec![from];
        let mut heap = BinaryHeap::from([(Reverse(0), from)]);
        distances[from as usize] = 0;
        while let Some((Reverse(distance), word)) = heap.pop() {
            if Some(word) == target {
                break;
            }
            if distance > distances[word as usize] {
                continue;
            }
            for &(next, length) in self.of(word) {
                let there = distance + length;
                if there < distances[next as usize] {
                    distances[next as usize] = there;
                    heap.push((Reverse(there), next));
                    reached.push(next);
                }
            }
        }
        reached
    }

    /// Returns the words that `from` reaches, by ascending distance, and the end of each distance.
    /// Lengths are small multiples of `unit`: Dial (1969), one queue per distance. No distance
    /// exceeds `most` units; edges may.
    pub(super) fn shells(&self, from: u32, unit: u64, most: u64) -> (Vec<u32>, Vec<u32>) {
        let mut best = vec![u32::MAX; self.words()];
        let mut queues = vec![vec![from]];
        best[from as usize] = 0;
        let (mut order, mut ends) = (Vec::new(), Vec::new());
        let mut shell = 0;
        while shell < queues.len() {
            // Edges of length 0 extend the queue while it is processed.
            let mut at = 0;
            while let Some(&word) = queues[shell].get(at) {
                at += 1;
                // A word that was reached again by a shorter path is already done.
                if best[word as usize] as usize != shell {
                    continue;
                }
                for &(next, length) in self.of(word) {
                    let there = shell as u64 + length / unit;
                    if there > most {
                        continue;
                    }
                    let there = there as usize;
                    if there < best[next as usize] as usize {
                        best[next as usize] = there as u32;
                        if queues.len() <= there {
                            queues.resize(there + 1, Vec::new());
                        }
                        queues[there].push(next);
                    }
                }
            }
            let queue = std::mem::take(&mut queues[shell]);
            order.extend(
                queue
                    .into_iter()
                    .filter(|&w| best[w as usize] as usize == shell),
            );
            ends.push(order.len() as u32);
            shell += 1;
        }
        (order, ends)
    }
}
