//! Undirected graphs: the edges of each node, side by side.

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
