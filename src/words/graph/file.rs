//! Word graphs in fastdx's own file format, see [`native`](crate::words::embedding::format::native).

use std::path::Path;

use super::WordGraph;
use crate::support::buffer::{Backing, Buffer};
use crate::support::error::{Error, Result};
use crate::support::file::{Kind, Parts, Sections, map};
use crate::words::claims::Claims;
use crate::words::vocabulary::Vocabulary;

impl WordGraph {
    /// Writes the graph to `path`: first to a temporary file beside it, which is then renamed.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Parameter`] for a graph from a table of distances.
    pub fn save(&self, path: &Path) -> Result<()> {
        if self.is_table() {
            let expected =
                "of edges, which a file holds; keep the words and the table of distances";
            let got = "a graph of all distances";
            return Err(Error::parameter("space", expected, got));
        }
        self.parts().save(path)
    }

    /// The bytes that [`save`](Self::save) would write; not of a table of distances, of which
    /// nothing reads them.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.parts().to_bytes()
    }

    /// Reads the graph from the bytes that [`to_bytes`](Self::to_bytes) returned; verifies
    /// checksums.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::read(&Backing::copy(bytes), Path::new("<bytes>"), true)
    }

    /// Opens a file that [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] for a damaged, truncated, extended or foreign file.
    pub fn open(path: &Path, verify: bool) -> Result<Self> {
        Self::read(&map(path)?, path, verify)
    }

    pub(crate) fn read(backing: &Backing, path: &Path, verify: bool) -> Result<Self> {
        parse(backing, verify).map_err(Error::corrupt(path))
    }

    fn parts(&self) -> Parts<'_> {
        let nodes = self.components.len() as u64;
        let meta = [self.len() as u64, nodes, self.step.to_bits()];
        let pairs: Vec<u32> = self.edges.iter().flat_map(|e| [e.0, e.1]).collect();
        let lengths: Vec<u64> = self.edges.iter().map(|e| e.2).collect();
        let mut parts = Parts::default();
        parts.add_made(Kind::GraphMeta, &meta);
        self.vocabulary.store(&mut parts);
        parts.add(Kind::WordSlots, &self.vocabulary.slots);
        parts.add_made(Kind::GraphPairs, &pairs);
        parts.add_made(Kind::GraphLengths, &lengths);
        self.claims.store(&mut parts);
        parts
    }
}

fn parse(backing: &Backing, verify: bool) -> std::result::Result<WordGraph, String> {
    let sections = Sections::parse(backing, verify)?;
    let meta: Buffer<u64> = sections
        .get(Kind::GraphMeta)?
        .ok_or("holds no word graph")?;
    let &[words, nodes, step] = &*meta else {
        return Err("the graph's meta section has the wrong size".into());
    };
    let vocabulary = Vocabulary::of_sections(&sections)?;
    let pairs: Buffer<u32> = sections.get(Kind::GraphPairs)?.ok_or("no edges")?;
    let lengths: Buffer<u64> = sections.get(Kind::GraphLengths)?.ok_or("no lengths")?;
    let step = f64::from_bits(step);
    let (pairs, rest) = pairs.as_chunks::<2>();
    // Sums along paths must not overflow.
    let most = (1 << 61) / nodes.max(1);
    // Every node that is no word has an edge.
    let hidden = nodes.checked_sub(words);
    if words != vocabulary.len() as u64
        || hidden.is_none_or(|hidden| hidden > 2 * pairs.len() as u64)
        || !rest.is_empty()
        || pairs.len() != lengths.len()
        || !(step > 0.0 && step.is_normal() && step.to_bits() << 12 == 0)
        || pairs.iter().any(|&[u, v]| u >= v || u64::from(v) >= nodes)
        || lengths.iter().any(|&l| l > most)
    {
        return Err("the edges do not fit the words".into());
    }
    let edges = pairs.iter().zip(lengths.iter());
    let edges = edges.map(|(&[u, v], &length)| (u, v, length)).collect();
    let nodes = usize::try_from(nodes).map_err(|_| "more nodes than this machine can hold")?;
    let mut graph = WordGraph::from_parts(vocabulary, nodes, edges, step);
    if !graph.is_bounded() {
        return Err("the lengths are too large".into());
    }
    graph.claims = Claims::read(&sections, &graph, verify)?;
    Ok(graph)
}
