//! Word graphs in fastdx's own file format, see [`native`](crate::words::embedding::format::native).

use std::path::Path;

use super::WordGraph;
use crate::support::buffer::{Backing, Buffer};
use crate::support::error::{Error, Result};
use crate::support::file::{Kind, Sections, map, write_atomically, write_sections};
use crate::words::stored_certificates::{certificate_words, certificates, cover};
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
            return Err(Error::parameter(
                "space",
                expected,
                "a graph of all distances",
            ));
        }
        write_atomically(path, |out| self.write(out))
    }

    /// The bytes that [`save`](Self::save) would write; not of a table of distances, of which
    /// nothing reads them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Writing to a Vec cannot fail.
        let _ = self.write(&mut bytes);
        bytes
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
        let file = std::fs::File::open(path).map_err(Error::io(path))?;
        let backing = map(path, &file)?;
        Self::read(&backing, path, verify)
    }

    pub(crate) fn read(backing: &Backing, path: &Path, verify: bool) -> Result<Self> {
        parse(backing, verify).map_err(Error::corrupt(path))
    }

    fn write(&self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        let nodes = self.components.len() as u64;
        let meta = [self.len() as u64, nodes, self.step.to_bits()];
        let pairs: Vec<u32> = self.edges.iter().flat_map(|e| [e.0, e.1]).collect();
        let lengths: Vec<u64> = self.edges.iter().map(|e| e.2).collect();
        let vocabulary = &self.vocabulary;
        let certificates = certificate_words(&self.certificates);
        let cover_meta;
        let mut sections: Vec<(Kind, &[u8])> = vec![
            (Kind::GraphMeta, bytemuck::cast_slice(&meta)),
            (Kind::WordOffsets, bytemuck::cast_slice(&vocabulary.offsets)),
            (Kind::WordBytes, &vocabulary.bytes),
            (Kind::WordSlots, bytemuck::cast_slice(&vocabulary.slots)),
            (Kind::GraphPairs, bytemuck::cast_slice(&pairs)),
            (Kind::GraphLengths, bytemuck::cast_slice(&lengths)),
        ];
        sections.push((Kind::Certificates, bytemuck::cast_slice(&certificates)));
        if let Some(cover) = &self.cover {
            cover_meta = cover.meta();
            sections.extend(cover.sections(&cover_meta));
        }
        write_sections(out, &sections)
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
    graph.certificates = certificates(&sections, &graph, verify)?;
    graph.cover = cover(&sections, &graph)?;
    Ok(graph)
}
