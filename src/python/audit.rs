//! `fastdx.lab.audit` and `fastdx.calibration`: certificates, closed forms, exact intervals.

use std::path::PathBuf;

use numpy::{PyArray1, PyArrayDyn};
use pyo3::prelude::*;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::arguments::{count, counts, numbers, real, shaped, word_ids};
use super::guarantee::PyCertificate;
use super::mechanism::PyMechanism;
use super::mechanisms::tem_of;
use super::run::run_with;
use super::space::Space;
use crate::guarantee::measured::calibration::{self, Statistics};
use crate::guarantee::proved::audit;
use crate::words::index::Index;
use crate::{Error, Mechanism};

#[pyfunction]
#[pyo3(signature = (mechanism, progress = None))]
pub(super) fn certify(
    py: Python<'_>,
    mechanism: PyRef<'_, PyMechanism>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyCertificate> {
    mechanism.mechanism().check_one_law()?;
    let tem = tem_of(&mechanism)?;
    let certificate = run_with(py, true, progress, |control| audit::certify(tem, control))?;
    Ok(certificate.named(tem.vocabulary()).into())
}

/// N_w, the support's size, S_w (expected distinct outputs), Shannon and min-entropy, the mass of
/// the k nearest: of a mechanism, or of it at several ε one after the other. Float64, shape (ε, 6, ids).
#[pyfunction]
#[pyo3(signature = (mechanism, ids, eta, near, draws, epsilons = None))]
pub(super) fn closed_forms<'py>(
    py: Python<'py>,
    mechanism: PyRef<'py, PyMechanism>,
    ids: &Bound<'py, PyAny>,
    eta: &Bound<'py, PyAny>,
    near: &Bound<'py, PyAny>,
    draws: &Bound<'py, PyAny>,
    epsilons: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let core = mechanism.mechanism().clone();
    let (ids, _) = word_ids(ids, core.vocabulary().len())?;
    let (eta, near) = (real("eta", eta)?, count("near", near)?);
    let draws = count("draws", draws)?;
    let epsilons = epsilons.map(|e| numbers("epsilons", e)).transpose()?;
    let found = run_with(py, true, None, |control| {
        let (at, how) = (epsilons.as_deref(), (eta, near, draws));
        calibration::closed_forms(&*core, at, &ids, how, control)
    })?;
    let of: [fn(&Statistics) -> f64; 6] = [
        |s| s.unchanged,
        |s| s.outputs.into(),
        |s| s.distinct,
        |s| s.shannon,
        |s| s.min_entropy,
        |s| s.near,
    ];
    let at = epsilons.map_or(1, |each| each.len());
    let rows = (0..at).flat_map(|i| of.map(|of| found.iter().map(move |each| of(&each[i]))));
    shaped(py, rows.flatten().collect(), &[at, of.len(), ids.len()])
}

/// The result of `largest_loss`: the loss per unit of distance with its words and output, then the
/// same for the largest log-ratio.
type Loss = (f64, (u32, u32, u32), f64, (u32, u32, u32));

/// The largest loss of any mechanism with a law, against a metric on its words.
#[pyfunction]
#[pyo3(signature = (mechanism, metric = None, progress = None))]
pub(super) fn largest_loss(
    py: Python<'_>,
    mechanism: PyRef<'_, PyMechanism>,
    metric: Option<Space>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Loss> {
    let core = mechanism.mechanism().clone();
    let found = run_with(py, true, progress, |control| match &metric {
        Some(metric) => audit::largest_loss(&*core, &*metric.space(), control),
        None => audit::largest_loss(&*core, core.space(), control),
    })?;
    let words = |w: audit::Witness| (w.pair.0, w.pair.1, w.output);
    let (unit, any_two) = (words(found.witness), words(found.local_witness));
    Ok((found.epsilon, unit, found.local, any_two))
}

/// Exact (Clopper-Pearson) confidence bounds on probabilities; each side is wrong with probability
/// at most `alpha`.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub(super) fn binomial_bounds<'py>(
    py: Python<'py>,
    hits: &Bound<'py, PyAny>,
    draws: &Bound<'py, PyAny>,
    alpha: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)> {
    let (hits, _) = counts("hits", hits)?;
    let (draws, alpha) = (count("draws", draws)? as u64, real("alpha", alpha)?);
    if let Some(&over) = hits.iter().find(|&&h| h > draws) {
        return Err(Error::parameter("hits", format!("at most {draws}"), over).into());
    }
    if !(alpha > 0.0 && alpha < 1.0) {
        return Err(Error::parameter("alpha", "between 0 and 1", alpha).into());
    }
    let (low, high): (Vec<f64>, Vec<f64>) = run_with(py, false, None, |_| {
        let each = hits.iter();
        Ok(each
            .map(|&h| calibration::clopper_pearson(h, draws, alpha))
            .unzip())
    })?;
    Ok((PyArray1::from_vec(py, low), PyArray1::from_vec(py, high)))
}

/// Pr[T > t] of Student's distribution, for t ≥ 0.
#[pyfunction]
pub(super) fn student_tail(t: f64, degrees: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, degrees) {
        Ok(law) => law.sf(t),
        Err(_) => f64::NAN,
    }
}

/// Computes a file's contents again: the lists of `words` random words and its
/// certificates. Returns the numbers of words, lists and certificates.
#[pyfunction]
#[pyo3(signature = (path, words, progress = None))]
pub(super) fn check_index(
    py: Python<'_>,
    path: PathBuf,
    words: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(usize, usize, usize)> {
    let index = run_with(py, true, None, |_| Index::open(&path, true))?;
    let space = Space::new(py, index, None)?;
    let (cover, space) = (space.cover(), space.space());
    let found = run_with(py, true, progress, |control| {
        audit::check(&space, cover.as_ref(), words, &path, control)
    })?;
    Ok((found.words, found.lists, found.certificates))
}
