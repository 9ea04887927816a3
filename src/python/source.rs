//! Where spaces came from. A built-in space and one from a file are pickled by what they came from and a
//! fingerprint; all processes that unpickle an index file share it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde_json::Value;

use super::cover::PyCover;
use super::run::run;
use super::space::Space;
use crate::policy::{Fingerprint, IndexSource, Spaces, Spec};
use crate::words::index::{Index, fingerprint};
use crate::{Embedding, Error, MetricSpace, Result, WordGraph};

/// The function and the arguments that make an equal object: pickle's protocol.
pub(super) type Reduced<'py> = (Bound<'py, PyAny>, Bound<'py, PyTuple>);

/// The origin of a space that need not be pickled whole.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// An index file, with the checksum in its header, and whether every checksum was verified.
    Index {
        path: PathBuf,
        print: u64,
        verified: bool,
    },
    /// A built-in space, or a file that is read: the words and vectors, and nothing else.
    Words(IndexSource),
}

impl Origin {
    /// As part of a description.
    pub(super) fn described(&self) -> IndexSource {
        match self {
            Origin::Index { path, .. } => IndexSource::file(path),
            Origin::Words(source) => source.clone(),
        }
    }

    /// The function and the arguments that make an equal object; None if it is pickled whole.
    pub(super) fn reduced<'py>(
        &self,
        py: Python<'py>,
        index: &Index,
    ) -> PyResult<Option<Reduced<'py>>> {
        let core = py.import("fastdx._core")?;
        Ok(match (self, index) {
            (
                Origin::Index {
                    path,
                    print,
                    verified,
                },
                _,
            ) => {
                let known = (path, verified, true, print).into_pyobject(py)?;
                Some((core.getattr("open_space")?, known))
            }
            (Origin::Words(source), Index::Embedding(embedding)) if embedding.is_bare() => {
                let fingerprint = run(py, false, |_| Ok(embedding.fingerprint()))?;
                let source = IndexSource {
                    fingerprint: Some(Fingerprint(fingerprint)),
                    ..source.clone()
                };
                let known = PyTuple::new(py, [source.value().to_string()])?;
                Some((core.getattr("open_words")?, known))
            }
            (Origin::Words(_), _) => None,
        })
    }
}

/// The spaces that this process has opened for unpickled copies, which share them and all data computed
/// for them, by what they came from. The lock is never waited for, so that a forked child cannot wait
/// forever.
static OPENED: Mutex<Vec<(String, WeakIndex)>> = Mutex::new(Vec::new());

enum WeakIndex {
    Embedding(Weak<Embedding>),
    Graph(Weak<WordGraph>),
}

impl WeakIndex {
    fn upgrade(&self) -> Option<Index> {
        Some(match self {
            WeakIndex::Embedding(embedding) => Index::Embedding(embedding.upgrade()?),
            WeakIndex::Graph(graph) => Index::Graph(graph.upgrade()?),
        })
    }
}

/// The space that is open under a key, or what `open` gives, which is kept under it.
fn shared(key: String, open: impl FnOnce() -> Result<Index>) -> Result<Index> {
    let known = OPENED.try_lock().ok().and_then(|opened| {
        let (_, known) = opened.iter().find(|(known, _)| *known == key)?;
        known.upgrade()
    });
    if let Some(known) = known {
        return Ok(known);
    }
    let index = open()?;
    let weak = match &index {
        Index::Embedding(embedding) => WeakIndex::Embedding(Arc::downgrade(embedding)),
        Index::Graph(graph) => WeakIndex::Graph(Arc::downgrade(graph)),
    };
    if let Ok(mut opened) = OPENED.try_lock() {
        opened.retain(|(known, weak)| *known != key && weak.upgrade().is_some());
        opened.push((key, weak));
    }
    Ok(index)
}

/// Opens the built-in space or the file that a pickled Embedding came from, described in JSON.
///
/// Raises
/// ------
/// FileNotFoundError, OSError
///     The file cannot be read here.
/// ParameterError
///     Another file stands in its place.
#[pyfunction]
pub(super) fn open_words(py: Python<'_>, description: String) -> PyResult<Space> {
    let parsed = serde_json::from_str::<Value>(&description)
        .map_err(|error| Error::parameter("description", "JSON", error.to_string()))?;
    let spec = Spec {
        index: Some(IndexSource::of(&parsed)?),
        ..Spec::default()
    };
    let index = run(py, true, |control| {
        let open = || Spaces::default().open(spec.mechanism, &spec, None, control);
        shared(description, open)
    })?;
    let origin = Origin::Words(IndexSource {
        fingerprint: None,
        ..spec.index.unwrap_or_default()
    });
    Space::new(py, index, Some(origin))
}

/// Opens the Embedding or WordGraph in a file in fastdx's format, to be pickled by reference or by
/// value. A pickle has the fingerprint `known`: a file that was verified before is verified again, unless
/// this process has opened it already.
///
/// Raises
/// ------
/// FileNotFoundError, OSError
///     The file cannot be read here.
/// CorruptFileError
///     Another file stands in its place, or a damaged one.
#[pyfunction]
#[pyo3(signature = (path, verified, by_reference = true, known = None))]
pub(super) fn open_space(
    py: Python<'_>,
    path: PathBuf,
    verified: bool,
    by_reference: bool,
    known: Option<u64>,
) -> PyResult<Space> {
    let path = std::path::absolute(&path).map_err(Error::io(&path))?;
    let (index, print) = run(py, true, |_| match known {
        None => Index::read(&path, verified),
        Some(known) => reopened(&path, known, verified).map(|index| (index, known)),
    })?;
    let origin = Origin::Index {
        path,
        print,
        verified,
    };
    Space::new(py, index, by_reference.then_some(origin))
}

fn reopened(path: &Path, known: u64, verified: bool) -> Result<Index> {
    let same = |found: u64| match found == known {
        true => Ok(()),
        false => Err(Error::Corrupt {
            path: path.to_owned(),
            reason: format!(
                "another file than the one that was pickled: its fingerprint is {found:016x}, not \
                 {known:016x}"
            ),
        }),
    };
    same(fingerprint(path)?)?;
    shared(format!("{path:?} {known} {verified}"), || {
        let (index, found) = Index::read(path, verified)?;
        same(found)?;
        Ok(index)
    })
}

/// The cover in the file of a space, or None: a pickle asks for it.
#[pyfunction]
pub(super) fn space_cover(space: Space) -> Option<PyCover> {
    space.cover().map(|cover| PyCover::new(cover, space))
}
