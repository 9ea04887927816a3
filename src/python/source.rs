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
use crate::policy::{Fingerprint, IndexSource, Spaces, Spec};
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

/// Opens the file with this fingerprint. A file that was verified before is verified again, unless
/// it has not changed since.
pub(super) fn reopen(
    path: &Path,
    fingerprint: &str,
    verified: bool,
    stamp: Option<Stamp>,
) -> Result<(Index, Source)> {
    let open = || {
        Source::read(path, |print, now| {
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
        })
    };
    let now = std::fs::metadata(path)
        .ok()
        .and_then(|meta| self::stamp(&meta));
    let (Some(now), Ok(print)) = (now, u64::from_str_radix(fingerprint, 16)) else {
        return open();
    };
    // While the stamp stays the same, so does the file.
    let key = format!("{path:?} {print} {verified} {now:?}");
    let mut read = None;
    let index = shared(key, || {
        let (index, source) = open()?;
        read = Some(source);
        Ok::<_, Error>(index)
    })?;
    let known = || Source {
        path: path.to_owned(),
        print,
        verified,
        stamp: Some(now),
    };
    Ok((index, read.unwrap_or_else(known)))
}
