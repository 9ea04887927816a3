//! An index file: the words that `fastdx index build` wrote, with vectors or with edges, and what
//! was computed for them.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::embedding::Embedding;
use crate::embedding::format::native;
use crate::error::{Error, Result};
use crate::file::{Kind, Sections, map};
use crate::graph::WordGraph;
use crate::space::MetricSpace;

/// What a file of ours holds.
#[derive(Clone, Debug)]
pub enum Index {
    /// Words with vectors.
    Embedding(Arc<Embedding>),
    /// Words with edges.
    Graph(Arc<WordGraph>),
}

impl Index {
    /// Opens a file by memory-mapping it. `verify` reads it whole and checks every checksum.
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::Corrupt`] for a damaged, truncated, extended or foreign file.
    pub fn open(path: &Path, verify: bool) -> Result<Self> {
        let file = File::open(path).map_err(Error::io(path))?;
        let backing = map(path, &file)?;
        // What is wrong with a file is said when it is read as an embedding.
        let graph = Sections::parse(&backing, false)
            .and_then(|sections| sections.get::<u64>(Kind::GraphMeta))
            .is_ok_and(|meta| meta.is_some());
        Ok(match graph {
            true => Index::Graph(Arc::new(WordGraph::read(&backing, path, verify)?)),
            false => Index::Embedding(Arc::new(native::read(&backing, path, verify)?)),
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
