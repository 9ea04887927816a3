//! `fastdx.Tem`.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;

use super::{as_kind, remapped, tem_within};
use crate::guarantee::proved::audit;
use crate::mechanism::contextual::{ContextualTem, Released};
use crate::python::arguments::{Text, count};
use crate::python::cover::PyCover;
use crate::python::embedding::PyEmbedding;
use crate::python::mechanism::PyMechanism;
use crate::python::run::{run, run_with};
use crate::python::source::{self, Origin, Source};
use crate::python::space::Space;
use crate::python::text::TextArgument;
use crate::{Error, Mechanism, NeighborLists, Tem};

/// Returns the Tem of a core; of one with histories, the Tem without them.
fn tem<'a>(core: &'a PyRef<'_, PyMechanism>) -> PyResult<&'a Tem> {
    match tem_within(&**core.mechanism()) {
        Some(tem) => Ok(tem),
        None => as_kind(core, "a Tem"),
    }
}

/// Returns the Tem of a core that has one law for each word.
pub(in crate::python) fn tem_of_words<'a>(core: &'a PyRef<'_, PyMechanism>) -> PyResult<&'a Tem> {
    core.mechanism().check_one_law()?;
    tem(core)
}

/// The law of the output for a word behind what was released before: a released text, or words.
#[pyfunction]
pub(in crate::python) fn tem_probabilities_after<'py>(
    py: Python<'py>,
    core: PyRef<'py, PyMechanism>,
    word: Text,
    after: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let after = TextArgument::of("after", after)?;
    let Some(tem) = core.mechanism().in_order() else {
        return core.probabilities(py, word);
    };
    let vocabulary = tem.vocabulary();
    let id = vocabulary.require(&word)?;
    let released = match &after {
        TextArgument::Text(text) => core.text().history(text),
        TextArgument::Tokens(words) => {
            let mut released = Released::nothing(vocabulary);
            words.iter().for_each(|word| released.kept(word));
            released
        }
    };
    let law = run(py, false, |_| tem.probabilities_after(id, &released))?;
    Ok(PyArray1::from_vec(py, law))
}

/// Returns a core with the exact lists of every word's k nearest neighbours.
#[pyfunction]
#[pyo3(signature = (core, k, memory, progress = None))]
pub(in crate::python) fn tem_build_lists(
    py: Python<'_>,
    core: PyRef<'_, PyMechanism>,
    k: Option<&Bound<'_, PyAny>>,
    memory: Option<&Bound<'_, PyAny>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyMechanism> {
    let tem = tem(&core)?;
    let Space::Embedding(old) = &core.space else {
        let expected = "an Embedding: a WordGraph needs no lists";
        return Err(Error::parameter("space", expected, "a WordGraph").into());
    };
    let old = old.get().inner.clone();
    let default = NeighborLists::default_k(old.len());
    let k = k.map_or(Ok(default), |k| count("k", k))?;
    let memory = memory.map_or(Ok(8 << 30), |m| count("memory", m))? as u64;
    let embedding = run_with(py, true, progress, |control| {
        old.build_lists(k, memory, control)
    })?;
    let space = Space::Embedding(Py::new(py, PyEmbedding::from(embedding))?);
    let tem = tem.on(space.space())?;
    let made: Arc<dyn Mechanism> = match core.mechanism().in_order() {
        Some(old) => Arc::new(ContextualTem::new(&tem, old.model().clone())?),
        None => Arc::new(tem),
    };
    let made = remapped(&core, made)?;
    let spec = core.built.given().clone();
    core.around(space, made, spec)
}

/// Writes the words, their metric and the data computed for them to one file.
#[pyfunction]
pub(in crate::python) fn save_space(
    py: Python<'_>,
    core: PyRef<'_, PyMechanism>,
    path: PathBuf,
) -> PyResult<()> {
    let cover = tem(&core)?.cover().cloned();
    match &core.space {
        Space::Embedding(embedding) => {
            let embedding = (*embedding.get().inner).clone().with_cover(cover)?;
            run(py, true, |_| embedding.save(&path))
        }
        Space::Graph(graph) => {
            let graph = (*graph.get().inner).clone().with_cover(cover)?;
            run(py, true, |_| graph.save(&path))
        }
    }
}

/// Opens the Embedding or WordGraph in a file in fastdx's format, to be pickled by reference or by
/// value.
#[pyfunction]
pub(in crate::python) fn open_space(
    py: Python<'_>,
    path: PathBuf,
    verify: bool,
    by_reference: bool,
) -> PyResult<Py<PyAny>> {
    if !by_reference {
        return Ok(Space::open(py, &path, verify)?.object(py));
    }
    let (index, source) = Source::open(py, &path, verify)?;
    Ok(Space::from_file(py, index, Some(Origin::Index(source)))?.object(py))
}

/// Opens the Embedding or WordGraph of the file that a pickled one came from.
///
/// Raises
/// ------
/// FileNotFoundError, OSError
///     The file cannot be read here.
/// CorruptFileError
///     Another file stands in its place, or a damaged one.
#[pyfunction]
pub(in crate::python) fn reopen(
    py: Python<'_>,
    path: PathBuf,
    fingerprint: &str,
    verified: bool,
) -> PyResult<Py<PyAny>> {
    let (index, source) = run(py, true, |_| source::reopen(&path, fingerprint, verified))?;
    Ok(Space::from_file(py, index, Some(Origin::Index(source)))?.object(py))
}

/// The cover in the file of a space, or None: a pickle asks for it.
#[pyfunction]
pub(in crate::python) fn space_cover(space: &Bound<'_, PyAny>) -> PyResult<Option<PyCover>> {
    let space = Space::of(space)?;
    Ok(space.cover().map(|cover| PyCover::new(cover, space)))
}

/// Computes a file's contents again: the lists of `words` random words and its
/// certificates. Returns the numbers of words, lists and certificates.
#[pyfunction]
#[pyo3(signature = (path, words, progress = None))]
pub(in crate::python) fn check_index(
    py: Python<'_>,
    path: PathBuf,
    words: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(usize, usize, usize)> {
    let space = Space::open(py, &path, true)?;
    let cover = space.cover();
    let space = space.space();
    let found = run_with(py, true, progress, |control| {
        audit::check(&space, cover.as_ref(), words, &path, control)
    })?;
    Ok((found.words, found.lists, found.certificates))
}
