//! Where spaces came from. A built-in space and one from a file are pickled by what they came from and a
//! fingerprint; all processes that unpickle an index file share it.

use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, SystemTime};

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde_json::Value;

use super::run::run;
use super::space::Space;
use crate::policy::{IndexSource, Spaces, Spec};
use crate::words::index::{Checks, Index};
use crate::{Embedding, Error, Result, WordGraph, WordMetric};

/// A file that changed less than this before the check may change again without a new time stamp: a
/// file system's clock has steps.
const STEP: Duration = Duration::from_secs(2);

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
                    fingerprint: Some(fingerprint),
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

/// Embeddings that [`open_words`] has read: those unpickled later share them. Never waited for, as
/// [`OPENED`].
static READ: Mutex<Vec<(String, Weak<Embedding>)>> = Mutex::new(Vec::new());

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
    let known = READ.try_lock().ok().and_then(|read| {
        let (_, known) = read.iter().find(|(key, _)| *key == description)?;
        known.upgrade()
    });
    let source = IndexSource::of(&parsed_json(&description)?)?;
    let index = match known {
        Some(known) => Index::Embedding(known),
        None => run(py, true, |control| {
            let spec = Spec {
                index: Some(source.clone()),
                ..Spec::default()
            };
            Spaces::default().open(spec.mechanism, &spec, None, control)
        })?,
    };
    if let (Index::Embedding(embedding), Ok(mut read)) = (&index, READ.try_lock()) {
        read.retain(|(key, known)| known.strong_count() > 0 && *key != description);
        read.push((description, Arc::downgrade(embedding)));
    }
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
    stamp: Option<Stamp>,
}

/// Device, number, and time of change: while these are equal, the file is unchanged.
pub(super) type Stamp = (u64, u64, i64, i64);

#[cfg(unix)]
fn stamp(meta: &Metadata) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    // The writer of a file can set its time of modification, but not its time of change.
    let changed = Duration::new(meta.ctime().try_into().ok()?, meta.ctime_nsec() as u32);
    let age = SystemTime::UNIX_EPOCH
        .checked_add(changed)?
        .elapsed()
        .ok()?;
    (age > STEP).then(|| (meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec()))
}

#[cfg(not(unix))]
fn stamp(_: &Metadata) -> Option<Stamp> {
    let _ = (STEP, SystemTime::UNIX_EPOCH);
    None
}

impl Source {
    /// Opens a file; also returns the reference to it.
    pub(super) fn open(py: Python<'_>, path: &Path, verify: bool) -> PyResult<(Index, Self)> {
        run(py, true, |_| Self::read(path, |_, _| Ok(verify.into())))
    }

    fn read(
        path: &Path,
        checks: impl FnOnce(u64, Option<Stamp>) -> Result<Checks>,
    ) -> Result<(Index, Self)> {
        let path = std::path::absolute(path).map_err(Error::io(path))?;
        let file = File::open(&path).map_err(Error::io(&path))?;
        // Taken before the file is read: later changes give another stamp.
        let stamp = stamp(&file.metadata().map_err(Error::io(&path))?);
        let mut done = Checks::Few;
        let (index, print) = Index::read(&path, &file, |print| {
            done = checks(print, stamp)?;
            Ok(done)
        })?;
        let verified = done != Checks::Few;
        Ok((
            index,
            Source {
                path,
                print,
                verified,
                stamp,
            },
        ))
    }

    /// The arguments of `reopen` that create an equal object.
    pub(super) fn reduced<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let reopen = py.import("fastdx._core")?.getattr("reopen")?;
        let print = format!("{:016x}", self.print);
        let known = (&self.path, print, self.verified, self.stamp);
        Ok((reopen, known.into_pyobject(py)?))
    }
}

/// The files that this process opened by reference: unpickled copies share them and all data
/// computed for them. The lock is never waited for, so that a forked child cannot wait forever.
static OPENED: Mutex<Vec<(WeakIndex, Source)>> = Mutex::new(Vec::new());

enum WeakIndex {
    Embedding(Weak<Embedding>),
    Graph(Weak<WordGraph>),
}

impl WeakIndex {
    fn of(index: &Index) -> Self {
        match index {
            Index::Embedding(embedding) => WeakIndex::Embedding(Arc::downgrade(embedding)),
            Index::Graph(graph) => WeakIndex::Graph(Arc::downgrade(graph)),
        }
    }

    fn upgrade(&self) -> Option<Index> {
        Some(match self {
            WeakIndex::Embedding(embedding) => Index::Embedding(embedding.upgrade()?),
            WeakIndex::Graph(graph) => Index::Graph(graph.upgrade()?),
        })
    }

    fn is_alive(&self) -> bool {
        match self {
            WeakIndex::Embedding(embedding) => embedding.strong_count() > 0,
            WeakIndex::Graph(graph) => graph.strong_count() > 0,
        }
    }
}

/// Returns an index that is already open, if its file has not changed since.
fn opened((path, print, verified): (&Path, &str, bool)) -> Option<(Index, Source)> {
    let now = stamp(&std::fs::metadata(path).ok()?)?;
    let opened = OPENED.try_lock().ok()?;
    let same = |source: &Source| {
        source.path == path
            && format!("{:016x}", source.print) == print
            && source.verified == verified
            && source.stamp == Some(now)
    };
    let (index, source) = opened.iter().rev().find(|(_, source)| same(source))?;
    Some((index.upgrade()?, source.clone()))
}

/// Opens the file with this fingerprint. A file that was verified before is verified again, unless
/// it has not changed since.
pub(super) fn reopen(
    path: &Path,
    fingerprint: &str,
    verified: bool,
    stamp: Option<Stamp>,
) -> Result<(Index, Source)> {
    if let Some(opened) = opened((path, fingerprint, verified)) {
        return Ok(opened);
    }
    let (index, source) = Source::read(path, |print, now| {
        if format!("{print:016x}") != fingerprint {
            let reason = format!(
                "another file than the one that was pickled: its fingerprint is {print:016x}, \
                 not {fingerprint}"
            );
            let path = path.to_owned();
            return Err(Error::Corrupt { path, reason });
        }
        Ok(match (verified, now.is_some() && now == stamp) {
            (false, _) => Checks::Few,
            (true, true) => Checks::Before,
            (true, false) => Checks::Every,
        })
    })?;
    if let Ok(mut opened) = OPENED.try_lock() {
        opened.retain(|(index, _)| index.is_alive());
        opened.push((WeakIndex::of(&index), source.clone()));
    }
    Ok((index, source))
}
