//! Features that only one mechanism has, and the properties of each besides its ε.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyArray1, PyArrayDyn};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arguments::{Text, count, matrix, shaped, wrong_shape};
use super::cover::PyCover;
use super::mechanism::PyMechanism;
use super::run::{run, run_with};
use super::space::Space;
use super::text::TextArgument;
use crate::distance::search::Search;
use crate::mechanism::contextual::{ContextualTem, Released};
use crate::mechanism::finite_law::FiniteLaw;
use crate::mechanism::mahalanobis::Mahalanobis;
use crate::mechanism::remapped::Remapped;
use crate::words::index::Index;
use crate::{
    Cover, Error, HyperbolicLaplace, Mechanism, MultivariateLaplace, NeighborLists,
    NeighborResponse, Tem,
};

/// The properties that a mechanism's class in Python shows.
pub(super) fn details_of<'py>(py: Python<'py>, core: &PyMechanism) -> PyResult<Bound<'py, PyDict>> {
    let mechanism = &**core.mechanism();
    let details = PyDict::new(py);
    macro_rules! set {
        ($($name:ident = $value:expr;)*) => {{
            $(details.set_item(stringify!($name), $value)?;)*
        }};
    }
    let shown = |cover: &Arc<Cover>| PyCover::new(cover.clone(), core.space.clone_ref(py));
    if let Some(tem) = tem_within(mechanism) {
        let after = match mechanism.in_order() {
            Some(_) => ", given what was released before",
            None => "",
        };
        set! {
            nominal = tem.nominal();
            gamma = tem.gamma();
            language = tem.language().map(|base| format!("{}{after}", base.source()));
            cached_bytes = tem.cache_bytes().1;
            certified = tem.certificate().map(|c| c.epsilon);
            lists_k = tem.lists().map(NeighborLists::k);
            cover = tem.cover().map(shown);
        }
    } else if let Some(laplace) = mechanism.downcast_ref::<MultivariateLaplace>() {
        let (name, candidates) = match laplace.search() {
            Search::Hnsw { ef } => ("hnsw", Some(ef)),
            Search::Exact => ("exact", None),
        };
        set! { search = name; ef = candidates; tuning = laplace.tuning(); mixing = 0.0; }
    } else if let Some(laplace) = mechanism.downcast_ref::<HyperbolicLaplace>() {
        let noise = laplace.noise();
        set! {
            nominal = noise.epsilon();
            base = noise.base().name();
        }
    } else if let Some(law) = mechanism.downcast_ref::<FiniteLaw>() {
        set! { local = law.loss().map(|loss| loss.local); }
    } else if let Some(mahalanobis) = mechanism.downcast_ref::<Mahalanobis>() {
        let noise = mahalanobis.noise();
        set! {
            nominal = noise.nominal();
            mixing = noise.mixing();
            tuning = mahalanobis.tuning();
        }
    } else if let Some(response) = mechanism.downcast_ref::<NeighborResponse>() {
        set! { score = response.score(); cover = shown(response.cover()); }
    }
    Ok(details)
}

/// The Tem that a mechanism is, or the one whose base measure goes by what was released before.
fn tem_within(mechanism: &dyn Mechanism) -> Option<&Tem> {
    let tem = mechanism.in_order().map(ContextualTem::tem);
    tem.or_else(|| mechanism.downcast_ref())
}

fn another(core: &PyMechanism, wanted: &'static str) -> Error {
    Error::parameter("mechanism", wanted, core.mechanism().guarantee().mechanism)
}

/// Returns the Tem of a core; of one with histories, the Tem without them.
pub(super) fn tem_of(core: &PyMechanism) -> crate::Result<&Tem> {
    tem_within(&**core.mechanism()).ok_or_else(|| another(core, "a Tem"))
}

/// Q of every word in the law of a Tem, whatever was released before, or None if it is uniform.
#[pyfunction]
pub(super) fn tem_base<'py>(
    py: Python<'py>,
    core: PyRef<'py, PyMechanism>,
) -> PyResult<Option<Bound<'py, PyArray1<u32>>>> {
    let base = tem_of(&core)?.base();
    Ok(base.map(|base| PyArray1::from_slice(py, base.weights())))
}

/// The law of the output for a word behind what was released before: a released text, or words.
#[pyfunction]
pub(super) fn tem_probabilities_after<'py>(
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
pub(super) fn tem_build_lists(
    py: Python<'_>,
    core: PyRef<'_, PyMechanism>,
    k: Option<&Bound<'_, PyAny>>,
    memory: Option<&Bound<'_, PyAny>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyMechanism> {
    let tem = tem_of(&core)?;
    let Index::Embedding(old) = &core.space.index else {
        let expected = "an Embedding: a WordGraph needs no lists";
        return Err(Error::parameter("space", expected, "a WordGraph").into());
    };
    let default = NeighborLists::default_k(old.len());
    let k = k.map_or(Ok(default), |k| count("k", k))?;
    let memory = memory.map_or(Ok(8 << 30), |m| count("memory", m))? as u64;
    let embedding = run_with(py, true, progress, |control| {
        old.build_lists(k, memory, control)
    })?;
    let space = Space::new(py, embedding, None)?;
    let tem = tem.on(space.space())?;
    let made: Arc<dyn Mechanism> = match core.mechanism().in_order() {
        Some(old) => Arc::new(ContextualTem::new(&tem, old.model().clone())?),
        None => Arc::new(tem),
    };
    let made = match core.mechanism().downcast_ref::<Remapped>() {
        None => made,
        Some(remapped) => Arc::new(Remapped::new(made, remapped.cover().clone())?),
    };
    core.around(space, made, core.built.given().clone())
}

/// Writes the words, their metric and the data computed for them to one file.
#[pyfunction]
pub(super) fn tem_save(
    py: Python<'_>,
    core: PyRef<'_, PyMechanism>,
    path: PathBuf,
) -> PyResult<()> {
    let (index, cover) = (&core.space.index, tem_of(&core)?.cover().cloned());
    run(py, true, |_| match index {
        Index::Embedding(embedding) => (**embedding).clone().with_cover(cover)?.save(&path),
        Index::Graph(graph) => (**graph).clone().with_cover(cover)?.save(&path),
    })
}

/// Returns noisy vectors.
#[pyfunction]
pub(super) fn laplace_perturb<'py>(
    py: Python<'py>,
    core: PyRef<'py, PyMechanism>,
    vectors: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let laplace: Option<&MultivariateLaplace> = core.mechanism().downcast_ref();
    let laplace = laplace.ok_or_else(|| another(&core, "a MultivariateLaplace"))?;
    let (numbers, m, n) = matrix::<f64>("vectors", vectors)?;
    let dim = laplace.embedding().dim();
    if n != dim {
        return Err(wrong_shape("vectors", format!("(m, {dim})"), &[m, n]));
    }
    let noisy = run(py, m > 256, |control| laplace.perturb(&numbers, control))?;
    shaped(py, noisy, &[m, n])
}
