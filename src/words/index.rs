//! An index file from `fastdx index build`: words with vectors or edges, and data computed for
//! them.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::support::error::{Error, Result};
pub use crate::support::file::Checks;
use crate::support::file::{Kind, MAGIC, Sections, fingerprint, map};
use crate::words::embedding::Embedding;
use crate::words::embedding::format::native;
use crate::words::graph::WordGraph;
use crate::words::space::MetricSpace;

/// The contents of an index file.
#[derive(Clone, Debug)]
pub enum Index {
    /// Words with vectors.
    Embedding(Arc<Embedding>),
    /// Words with edges.
    Graph(Arc<WordGraph>),
}

/// Whether a file starts like an index file.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn is_index(path: &Path) -> Result<bool> {
    let mut file = File::open(path).map_err(Error::io(path))?;
    let mut start = [0; MAGIC.len()];
    match file.read_exact(&mut start) {
        Ok(()) => Ok(start == MAGIC),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(Error::io(path)(error)),
    }
}

impl Index {
    /// Opens a file by memory-mapping it. With `verify`, reads all of it and verifies every
    /// checksum.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] for a damaged, truncated, extended or foreign file.
    pub fn open(path: &Path, verify: bool) -> Result<Self> {
        let file = File::open(path).map_err(Error::io(path))?;
        Ok(Self::read(path, &file, |_| Ok(verify.into()))?.0)
    }

    /// Reads an open file. `checks` receives the checksum in its header and chooses how much to
    /// verify. Returns that checksum too.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open) and of `checks`.
    pub fn read(
        path: &Path,
        file: &File,
        checks: impl FnOnce(u64) -> Result<Checks>,
    ) -> Result<(Self, u64)> {
        let backing = map(path, file)?;
        // If the sections cannot be parsed, reading the file as an embedding reports the problem.
        let sections = Sections::parse(&backing, false);
        let (print, checks) = match &sections {
            Ok(_) => (fingerprint(&backing), checks(fingerprint(&backing))?),
            Err(_) => (0, Checks::Every),
        };
        let graph = sections
            .and_then(|sections| sections.get::<u64>(Kind::GraphMeta))
            .is_ok_and(|meta| meta.is_some());
        let index = match graph {
            true => Index::Graph(Arc::new(WordGraph::read(&backing, path, checks)?)),
            false => Index::Embedding(Arc::new(native::read(&backing, path, checks)?)),
        };
        Ok((index, print))
    }

    /// The words and their metric.
    pub fn space(&self) -> Arc<dyn MetricSpace> {
        match self {
            Index::Embedding(embedding) => embedding.clone(),
            Index::Graph(graph) => graph.clone(),
        }
    }
}
