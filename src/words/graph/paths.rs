//! Shortest paths from one word, in integers.

use std::collections::BTreeMap;

use crate::support::adjacency::Adjacency;

/// The distance of an unreachable word.
pub(super) const NONE: u64 = u64::MAX;

/// An undirected graph with the lengths of its edges.
pub(super) type Paths = Adjacency<u64>;

impl Paths {
    /// Distances from a word to every word, [`NONE`] for unreachable words; stops once `target` is
    /// known. Dijkstra (1959).
    pub(super) fn distances(&self, from: u32, target: Option<u32>) -> Vec<u64> {
        let mut distances = vec![NONE; self.nodes()];
        self.search(from, target, &mut distances);
        distances
    }

    /// Computes [`distances`](Self::distances) into an array whose entries are [`NONE`] before the
    /// search. Returns the words that it reached, each at least once.
    pub(super) fn search(&self, from: u32, target: Option<u32>, distances: &mut [u64]) -> Vec<u32> {
        let mut reached = vec![from];
        // The words to pass, by distance: few distances occur in most graphs.
        let mut buckets = BTreeMap::from([(0, vec![from])]);
        distances[from as usize] = 0;
        while let Some((distance, mut bucket)) = buckets.pop_first() {
            // Edges of length 0 extend the bucket while it is processed.
            while let Some(word) = bucket.pop() {
                if Some(word) == target {
                    return reached;
                }
                if distance > distances[word as usize] {
                    continue;
                }
                for &(next, length) in self.of(word) {
                    let there = distance + length;
                    if there < distances[next as usize] {
                        distances[next as usize] = there;
                        reached.push(next);
                        match length {
                            0 => bucket.push(next),
                            _ => buckets.entry(there).or_default().push(next),
                        }
                    }
                }
            }
        }
        reached
    }
}
