//! Public models of language from Python: an `NgramPrior`, or any object with `log_next(prefix)`.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::arguments::numbers;
use super::channel::PyNgramPrior;
use super::space::Space;
use crate::language::expected::ROOM;
use crate::language::{Expected, LanguageModel, NgramWeights};
use crate::law::base::BaseMeasure;
use crate::words::space::MetricSpace;
use crate::words::vocabulary::Vocabulary;
use crate::{Error, Result};

/// The most words in the lists of histories that are kept: some 50 MB.
const KEPT: usize = 1 << 22;

/// The model in an argument; `None` for something else.
pub(super) fn model_of(
    given: &Bound<'_, PyAny>,
    space: impl FnOnce() -> Result<Arc<dyn MetricSpace>>,
) -> PyResult<Option<Arc<dyn LanguageModel>>> {
    if let Ok(prior) = given.cast::<PyNgramPrior>() {
        let prior = prior.get().inner().clone();
        let weights = given.py().detach(|| NgramWeights::new(prior));
        return Ok(Some(Arc::new(weights)));
    }
    match given.hasattr("log_next")? {
        true => Ok(Some(Arc::new(PyLanguageModel::new(given, space()?)?))),
        false => Ok(None),
    }
}

/// The object that a model was made of.
pub(super) fn object_of(
    py: Python<'_>,
    model: &dyn LanguageModel,
    space: &Space,
) -> PyResult<Option<Py<PyAny>>> {
    let model: &dyn Any = model;
    if let Some(model) = model.downcast_ref::<PyLanguageModel>() {
        return Ok(Some(model.object.clone_ref(py)));
    }
    let weights = model.downcast_ref::<NgramWeights>().map(|weights| {
        let prior = PyNgramPrior::new(weights.prior().clone(), space.clone_ref(py));
        Ok(Py::new(py, prior)?.into_any())
    });
    weights.transpose()
}

/// An object whose `log_next(prefix)` returns the log-probability of every word.
///
/// Q is that of the first word of a sentence. Behind h, Q + S_h = max(Q, c·P(·|h)) with a c so large
/// that Q keeps some thousandth of the mass: no word becomes impossible.
struct PyLanguageModel {
    object: Py<PyAny>,
    space: Arc<dyn MetricSpace>,
    base: Arc<BaseMeasure>,
    /// The lists of histories. Never waited for, so that a forked child cannot wait for ever: who finds
    /// it locked asks the model again.
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    lists: HashMap<Box<[u32]>, Arc<Expected<'static>>>,
    words: usize,
}

impl PyLanguageModel {
    fn new(object: &Bound<'_, PyAny>, space: Arc<dyn MetricSpace>) -> PyResult<Self> {
        let first = probabilities(object, space.vocabulary(), &[])?;
        let source = format!("{} in Python", object.get_type().name()?);
        Ok(PyLanguageModel {
            base: Arc::new(BaseMeasure::of_model(&first, ROOM).named(source)),
            object: object.clone().unbind(),
            space,
            kept: Mutex::default(),
        })
    }

    fn known(&self, sentence: &[u32]) -> Option<Arc<Expected<'static>>> {
        let kept = self.kept.try_lock().ok()?;
        kept.lists.get(sentence).cloned()
    }

    fn ask(&self, py: Python<'_>, sentence: &[u32]) -> Result<Arc<Expected<'static>>> {
        let found = probabilities(self.object.bind(py), self.space.vocabulary(), sentence);
        let found = found.map_err(|error| Error::Model {
            source: Box::new(error),
        })?;
        // Truncated, so that they sum to less than what may be added.
        let most = self.base.added() as f64 * 0.999;
        let above = (0..).zip(found).filter_map(|(y, p)| {
            let more = ((p * most) as u64).saturating_sub(self.base.weight(y).into());
            (more > 0).then_some((y, more))
        });
        let (words, weights) = above.unzip();
        let list = Arc::new(Expected::new(words, weights)?);
        let size = sentence.len() + list.count();
        if let Ok(mut kept) = self.kept.try_lock() {
            if kept.words + size > KEPT {
                *kept = Kept::default();
            }
            if size <= KEPT && kept.lists.insert(sentence.into(), list.clone()).is_none() {
                kept.words += size;
            }
        }
        Ok(list)
    }
}

impl LanguageModel for PyLanguageModel {
    fn vocabulary(&self) -> &Vocabulary {
        self.space.vocabulary()
    }

    fn base(&self) -> &Arc<BaseMeasure> {
        &self.base
    }

    fn expected<'a>(&'a self, sentence: &[u32], lists: &mut Vec<Expected<'a>>) -> Result<()> {
        let list = match self.known(sentence) {
            Some(known) => known,
            // Another thread may have asked while this one waited for the interpreter.
            None => Python::attach(|py| match self.known(sentence) {
                Some(known) => Ok(known),
                None => self.ask(py, sentence),
            })?,
        };
        lists.push((*list).clone());
        Ok(())
    }
}

/// P of every word behind a sentence's beginning, given that it is one of the vocabulary.
fn probabilities(
    object: &Bound<'_, PyAny>,
    vocabulary: &Vocabulary,
    sentence: &[u32],
) -> PyResult<Vec<f64>> {
    let known = |&id: &u32| ((id as usize) < vocabulary.len()).then(|| vocabulary.word(id));
    let prefix = PyTuple::new(object.py(), sentence.iter().map(known))?;
    let mut all = numbers("language", &object.call_method1("log_next", (prefix,))?)?;
    let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let wrong = match all.iter().position(|p| p.is_nan()) {
        _ if all.len() != vocabulary.len() => format!("{} numbers", all.len()),
        Some(at) => format!("NaN at {at}"),
        None if !most.is_finite() => format!("{most} as the largest"),
        None => {
            all.iter_mut().for_each(|p| *p = (*p - most).exp());
            let sum: f64 = all.iter().sum();
            all.iter_mut().for_each(|p| *p /= sum);
            return Ok(all);
        }
    };
    let expected = format!(
        "a model whose log_next returns {} numbers, finite or -inf, not all of them -inf",
        vocabulary.len()
    );
    Err(Error::parameter("language", expected, wrong).into())
}
