//! Where spaces came from. A built-in space and one from a file are pickled by what they came from and a
//! fingerprint; all processes that unpickle an index file share it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde_json::Value;

use super::run::run;
use super::space::Space;
use crate::policy::{Fingerprint, IndexSource, Spaces, Spec};
use crate::words::index::{Index, fingerprint};
use crate::{Embedding, Error, MetricSpace, Result, WordGraph};

/// The origin of a space that need not be pickled whole.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// An index file.
    Index(Source),
    /// A built-in space, or a file that is read: the words and vectors, and nothing else.
    Words(IndexSource),
}

impl Origin {
    /// As part of a description.
    pub(super) fn described(&self) -> IndexSource {
        match self {
            Origin::Index(source) => IndexSource::file(&source.path),
            Origin::Words(source) => source.clone(),
        }
    }

    /// The function and the arguments that make an equal object; None if it is pickled whole.
    pub(super) fn reduced<'py>(
        &self,
        py: Python<'py>,
        embedding: Option<&Embedding>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyTuple>)>> {
        match (self, embedding) {
            (Origin::Index(source), _) => source.reduced(py).map(Some),
            (Origin::Words(source), Some(embedding)) if embedding.is_bare() => {
                let fingerprint = run(py, false, |_| Ok(embedding.fingerprint()))?;
                let source = IndexSource {
                    fingerprint: Some(Fingerprint(fingerprint)),
                    ..source.clone()
                };
                let open = py.import("fastdx._core")?.getattr("open_words")?;
                Ok(Some((
                    open,
                    PyTuple::new(py, [source.value().to_string()])?,
                )))
            }
            (Origin::Words(_), _) => Ok(None),
        }
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
fn shared<E>(
    key: String,
    open: impl FnOnce() -> std::result::Result<Index, E>,
) -> std::result::Result<Index, E> {
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
pub(super) fn open_words(py: Python<'_>, description: String) -> PyResult<Py<PyAny>> {
    let source = IndexSource::of(&parsed_json(&description)?)?;
    let index = shared(description, || {
        run(py, true, |control| {
            let spec = Spec {
                index: Some(source.clone()),
                ..Spec::default()
            };
            Spaces::default().open(spec.mechanism, &spec, None, control)
        })
    })?;
    let origin = Origin::Words(IndexSource {
        fingerprint: None,
        ..source
    });
    Ok(Space::from_file(py, index, Some(origin))?.object(py))
}

fn parsed_json(description: &str) -> Result<Value> {
    serde_json::from_str(description)
        .map_err(|error| Error::parameter("description", "JSON", error.to_string()))
}

/// The index file that a space was opened from.
#[derive(Clone, Debug)]
pub(super) struct Source {
    path: PathBuf,
    /// The checksum in its header.
    print: u64,
    /// Whether every checksum was verified.
    verified: bool,
}

impl Source {
    /// Opens a file; also returns the reference to it.
    pub(super) fn open(py: Python<'_>, path: &Path, verified: bool) -> PyResult<(Index, Self)> {
        run(py, true, |_| {
            let path = std::path::absolute(path).map_err(Error::io(path))?;
            let (index, print) = Index::read(&path, verified)?;
            let source = Source {
                path,
                print,
                verified,
            };
            Ok((index, source))
        })
    }

    /// The arguments of `reopen` that create an equal object.
    pub(super) fn reduced<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let reopen = py.import("fastdx._core")?.getattr("reopen")?;
        let known = (&self.path, format!("{:016x}", self.print), self.verified);
        Ok((reopen, known.into_pyobject(py)?))
    }
}

/// Opens the file with this fingerprint. A file that was verified before is verified again, unless
/// this process has opened it already.
pub(super) fn reopen(path: &Path, known: &str, verified: bool) -> Result<(Index, Source)> {
    let path = path.to_owned();
    let same = |print: u64| match format!("{print:016x}") {
        found if found == known => Ok(()),
        found => {
            let reason = format!(
                "another file than the one that was pickled: its fingerprint is {found}, not {known}"
            );
            let path = path.clone();
            Err(Error::Corrupt { path, reason })
        }
    };
    let print = fingerprint(&path)?;
    same(print)?;
    let index = shared(format!("{path:?} {known} {verified}"), || {
        let (index, print) = Index::read(&path, verified)?;
        same(print)?;
        Ok::<_, Error>(index)
    })?;
    let source = Source {
        path,
        print,
        verified,
    };
    Ok((index, source))
}
