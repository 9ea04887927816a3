//! An index file from `fastdx index build`: words with vectors or edges, and data computed for
//! them.

use std::path::Path;
use std::sync::Arc;

use crate::support::buffer::Backing;
use crate::support::error::Result;
use crate::support::file::{self, Kind, MAGIC, Sections, map};
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
pub(crate) fn is_index(path: &Path) -> Result<bool> {
    Ok(map(path)?.bytes().starts_with(&MAGIC))
}

/// The checksum in a file's header, which identifies its contents; 0 for what has no header.
///
/// # Errors
/// [`Io`](crate::Error::Io).
pub fn fingerprint(path: &Path) -> Result<u64> {
    Ok(file::fingerprint(map(path)?.bytes()))
}

impl Index {
    /// Opens a file by memory-mapping it. With `verify`, reads all of it and verifies every
    /// checksum.
    ///
    /// # Errors
    /// [`Io`](crate::Error::Io); [`Corrupt`](crate::Error::Corrupt) for a damaged, truncated, extended or foreign file.
    pub fn open(path: &Path, verify: bool) -> Result<Self> {
        Ok(Self::read(path, verify)?.0)
    }

    /// [`open`](Self::open), with the checksum in the file's header.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn read(path: &Path, verify: bool) -> Result<(Self, u64)> {
        let backing = map(path)?;
        let index = Self::of(&backing, path, verify)?;
        Ok((index, file::fingerprint(backing.bytes())))
    }

    /// Reads what a file would hold, from memory; verifies checksums.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    #[cfg(feature = "python")]
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::of(&Backing::copy(bytes), Path::new("<bytes>"), true)
    }

    fn of(backing: &Backing, path: &Path, verify: bool) -> Result<Self> {
        // If the sections cannot be parsed, reading the file as an embedding reports the problem.
        let sections = Sections::parse(backing, false);
        let graph = sections
            .and_then(|sections| sections.get::<u64>(Kind::GraphMeta))
            .is_ok_and(|meta| meta.is_some());
        Ok(match graph {
            true => Index::Graph(Arc::new(WordGraph::read(backing, path, verify)?)),
            false => Index::Embedding(Arc::new(native::read(backing, path, verify)?)),
        })
    }

    /// The words and their metric.
    pub fn space(&self) -> Arc<dyn MetricSpace> {
        match self {
            Index::Embedding(embedding) => embedding.clone(),
            Index::Graph(graph) => graph.clone(),
        }
    }
}
