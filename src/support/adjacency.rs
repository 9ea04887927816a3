//! Undirected graphs: the edges of each node, side by side; shortest paths in integers.

use std::collections::BTreeMap;

/// The distance of an unreachable node.
pub(crate) const NONE: u64 = u64::MAX;

/// Every node's neighbours, with what belongs to the edges: lengths, or masses.
#[derive(Clone, Debug)]
pub(crate) struct Adjacency<T> {
    starts: Vec<usize>,
    links: Vec<(u32, T)>,
}

impl<T: Copy + Default> Adjacency<T> {
    pub(crate) fn new(nodes: usize, edges: &[(u32, u32, T)]) -> Self {
        let mut starts = vec![0; nodes + 1];
        for &(u, v, _) in edges {
            starts[u as usize + 1] += 1;
            starts[v as usize + 1] += 1;
        }
        for i in 0..nodes {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut links = vec![(0, T::default()); 2 * edges.len()];
        for &(u, v, of) in edges {
            for (from, to) in [(u, v), (v, u)] {
                links[next[from as usize]] = (to, of);
                next[from as usize] += 1;
            }
        }
        Adjacency { starts, links }
    }

    pub(crate) fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    #[inline]
    pub(crate) fn of(&self, node: u32) -> &[(u32, T)] {
        &self.links[self.starts[node as usize]..self.starts[node as usize + 1]]
    }
}

impl Adjacency<u64> {
    /// Distances from a word to every word, [`NONE`] for unreachable words; stops once `target` is
    /// known. Dijkstra (1959).
    pub(crate) fn distances(&self, from: u32, target: Option<u32>) -> Vec<u64> {
        let mut distances = vec![NONE; self.nodes()];
        self.search(from, target, &mut distances);
        distances
    }

    /// Computes [`distances`](Self::distances) into an array whose entries are [`NONE`] before the
    /// search. Returns the words that it reached, each at least once.
    pub(crate) fn search(&self, from: u32, target: Option<u32>, distances: &mut [u64]) -> Vec<u32> {
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
