//! `fastdx.audit` and `fastdx.calibration`: certificates, closed forms, counts, exact intervals.

use numpy::PyArray1;
use pyo3::prelude::*;

use super::arguments::{count, counts, real, word_ids};
use super::mechanism::PyMechanism;
use super::run::run_with;
use super::tem::PyTem;
use crate::audit;
use crate::mechanism::guarantee::Certificate;
use crate::{Error, Mechanism, calibration};

/// A proved ε for one Tem on one public vocabulary; see ``fastdx.audit.certify``.
#[pyclass(frozen, name = "Certificate", module = "fastdx")]
pub(super) struct PyCertificate {
    inner: Certificate,
    pair: (String, String),
    output: String,
}

impl PyCertificate {
    pub(super) fn new(inner: Certificate, vocabulary: &crate::Vocabulary) -> Self {
        // Damaged files can name words that there are not.
        let word = |id: u32| match (id as usize) < vocabulary.len() {
            true => vocabulary.word(id).to_owned(),
            false => "?".to_owned(),
        };
        PyCertificate {
            pair: (word(inner.pair.0), word(inner.pair.1)),
            output: word(inner.output),
            inner,
        }
    }
}

#[pymethods]
impl PyCertificate {
    /// The certified ε per unit of distance.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.inner.epsilon
    }

    /// The ε that the mechanism was made with.
    #[getter]
    fn nominal(&self) -> f64 {
        self.inner.nominal
    }

    /// Its γ.
    #[getter]
    fn gamma(&self) -> f64 {
        self.inner.gamma
    }

    /// The two words that are told apart best, per unit of distance.
    #[getter]
    fn pair(&self) -> (String, String) {
        self.pair.clone()
    }

    /// The output that tells them apart.
    #[getter]
    fn output(&self) -> &str {
        &self.output
    }

    /// Fingerprint of the words and their vectors or edges: what it holds for.
    #[getter]
    fn vocabulary(&self) -> String {
        format!("{:016x}", self.inner.vocabulary)
    }

    /// How it was found.
    #[getter]
    fn method(&self) -> &'static str {
        Certificate::METHOD
    }

    fn __str__(&self) -> String {
        let (a, b) = &self.pair;
        format!(
            "ε = {:.6} per unit of distance on vocabulary {:016x}, taken to be public, where the \
             theorem gives {}: {}. {a:?} and {b:?} bind, at the output {:?}.",
            self.inner.epsilon,
            self.inner.vocabulary,
            self.inner.nominal,
            Certificate::METHOD,
            self.output
        )
    }

    fn __repr__(&self) -> String {
        let c = &self.inner;
        let (epsilon, nominal, pair) = (c.epsilon, c.nominal, &self.pair);
        format!("Certificate(epsilon={epsilon}, nominal={nominal}, pair={pair:?})")
    }
}

#[pyfunction]
#[pyo3(signature = (tem, progress = None))]
pub(super) fn certify(
    py: Python<'_>,
    tem: PyRef<'_, PyTem>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyCertificate> {
    let tem = tem.core();
    let certificate = run_with(py, true, progress, |control| audit::certify(&tem, control))?;
    Ok(PyCertificate::new(certificate, tem.vocabulary()))
}

type Columns<'py> = (
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
);

/// N_w, S_w, expected distinct outputs, Shannon and min-entropy, the mass of the k nearest, Z.
#[pyfunction]
#[pyo3(signature = (tem, ids, eta, near, draws, progress = None))]
pub(super) fn closed_form<'py>(
    py: Python<'py>,
    tem: PyRef<'py, PyTem>,
    ids: &Bound<'py, PyAny>,
    eta: &Bound<'py, PyAny>,
    near: &Bound<'py, PyAny>,
    draws: &Bound<'py, PyAny>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Columns<'py>> {
    let tem = tem.core();
    let (ids, _) = word_ids(ids, tem.vocabulary().len())?;
    let (eta, near) = (real("eta", eta)?, count("near", near)?);
    let draws = count("draws", draws)?;
    let found = run_with(py, true, progress, |control| {
        calibration::closed_form(&tem, &ids, eta, near, draws, control)
    })?;
    let column =
        |of: fn(&calibration::Statistics) -> f64| PyArray1::from_iter(py, found.iter().map(of));
    Ok((
        column(|s| s.unchanged),
        PyArray1::from_iter(py, found.iter().map(|s| s.outputs)),
        column(|s| s.distinct),
        column(|s| s.shannon),
        column(|s| s.min_entropy),
        column(|s| s.near),
        column(|s| s.normaliser),
    ))
}

/// K_w from the normalisers of all words.
#[pyfunction]
#[pyo3(signature = (tem, ids, normalisers, eta, progress = None))]
pub(super) fn tem_inputs<'py>(
    py: Python<'py>,
    tem: PyRef<'py, PyTem>,
    ids: &Bound<'py, PyAny>,
    normalisers: &Bound<'py, PyAny>,
    eta: &Bound<'py, PyAny>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let tem = tem.core();
    let (ids, _) = word_ids(ids, tem.vocabulary().len())?;
    let normalisers = super::arguments::numbers("normalisers", normalisers)?;
    let eta = real("eta", eta)?;
    let found = run_with(py, true, progress, |control| {
        calibration::inputs(&tem, &ids, &normalisers, eta, control)
    })?;
    Ok(PyArray1::from_vec(py, found))
}

type Counted<'py> = (
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u32>>,
);

/// Times unchanged, distinct outputs, S_w and K_w of the draws.
#[pyfunction]
#[pyo3(signature = (mechanism, ids, draws, eta, progress = None))]
pub(super) fn simulate<'py>(
    py: Python<'py>,
    mechanism: PyRef<'py, PyMechanism>,
    ids: &Bound<'py, PyAny>,
    draws: &Bound<'py, PyAny>,
    eta: &Bound<'py, PyAny>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Counted<'py>> {
    let core = mechanism.mechanism().clone();
    let (ids, _) = word_ids(ids, core.vocabulary().len())?;
    let (draws, eta) = (count("draws", draws)?, real("eta", eta)?);
    let found = run_with(py, true, progress, |control| {
        calibration::simulate(&*core, &ids, draws, eta, control)
    })?;
    let column =
        |of: fn(&calibration::Counts) -> u32| PyArray1::from_iter(py, found.iter().map(of));
    Ok((
        PyArray1::from_iter(py, found.iter().map(|c| c.unchanged)),
        column(|c| c.distinct),
        column(|c| c.outputs),
        column(|c| c.inputs),
    ))
}

/// Exact (Clopper-Pearson) bounds of probabilities, each side wrong with probability `alpha` at
/// most.
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
