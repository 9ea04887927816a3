//! `fastdx.lab.audit` and `fastdx.calibration`: certificates, closed forms, exact intervals.

use numpy::PyArray1;
use pyo3::prelude::*;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::arguments::{count, counts, real, word_ids};
use super::guarantee::PyCertificate;
use super::mechanism::PyMechanism;
use super::mechanisms::tem::tem_of_words;
use super::run::run_with;
use super::space::Space;
use crate::guarantee::measured::calibration;
use crate::guarantee::proved::audit;
use crate::{Error, Mechanism};

#[pyfunction]
#[pyo3(signature = (mechanism, progress = None))]
pub(super) fn certify(
    py: Python<'_>,
    mechanism: PyRef<'_, PyMechanism>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyCertificate> {
    let tem = tem_of_words(&mechanism)?;
    let certificate = run_with(py, true, progress, |control| audit::certify(tem, control))?;
    Ok(PyCertificate(certificate.named(tem.vocabulary())))
}

type Columns<'py> = (
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
);

/// N_w, the support's size, S_w (expected distinct outputs), Shannon and min-entropy, the mass of
/// the k nearest: of a mechanism, or of it at several ε one after the other.
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
) -> PyResult<Vec<Columns<'py>>> {
    let core = mechanism.mechanism().clone();
    let (ids, _) = word_ids(ids, core.vocabulary().len())?;
    let (eta, near) = (real("eta", eta)?, count("near", near)?);
    let draws = count("draws", draws)?;
    let epsilons = epsilons.map(|given| super::arguments::numbers("epsilons", given));
    let epsilons = epsilons.transpose()?;
    let found = run_with(py, true, None, |control| {
        let (at, how) = (epsilons.as_deref(), (eta, near, draws));
        calibration::closed_forms(&*core, at, &ids, how, control)
    })?;
    let at = |i: usize| columns(py, found.iter().map(move |each| &each[i]));
    Ok((0..epsilons.map_or(1, |each| each.len())).map(at).collect())
}

fn columns<'py, 'a>(
    py: Python<'py>,
    found: impl Iterator<Item = &'a calibration::Statistics> + Clone,
) -> Columns<'py> {
    let column =
        |of: fn(&calibration::Statistics) -> f64| PyArray1::from_iter(py, found.clone().map(of));
    (
        column(|s| s.unchanged),
        PyArray1::from_iter(py, found.clone().map(|s| s.outputs)),
        column(|s| s.distinct),
        column(|s| s.shannon),
        column(|s| s.min_entropy),
        column(|s| s.near),
    )
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
    metric: Option<&Bound<'_, PyAny>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Loss> {
    let core = mechanism.mechanism().clone();
    let metric = metric.map(Space::of).transpose()?;
    let found = run_with(py, true, progress, |control| match &metric {
        Some(metric) => audit::largest_loss(&*core, &*metric.space(), control),
        None => audit::largest_loss(&*core, core.space(), control),
    })?;
    let words = |w: audit::Witness| (w.pair.0, w.pair.1, w.output);
    let (epsilon, local) = (found.epsilon, found.local);
    Ok((
        epsilon,
        words(found.witness),
        local,
        words(found.local_witness),
    ))
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
