//! `fastdx.Guarantee`.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use super::arguments::strings;
use super::audit::PyCertificate;
use super::mechanism::PyMechanism;

/// A callable and its arguments that make an equal object: pickle's protocol.
type Reduced<'py> = (Bound<'py, PyAny>, (Py<PyMechanism>, &'static str));

/// What a mechanism proves. Printed, it is a sentence.
///
/// For any two words w, w' of the vocabulary and any output y,
/// Pr[y|w] ≤ exp(epsilon·d(w,w') + slack)·Pr[y|w'] + delta.
#[pyclass(frozen, name = "Guarantee", module = "fastdx")]
pub(super) struct PyGuarantee {
    guarantee: crate::Guarantee,
    mechanism: Py<PyMechanism>,
}

impl PyGuarantee {
    pub(super) fn new(guarantee: crate::Guarantee, mechanism: Py<PyMechanism>) -> Self {
        PyGuarantee {
            guarantee,
            mechanism,
        }
    }
}

#[pymethods]
impl PyGuarantee {
    /// The metric d.
    #[getter]
    fn metric(&self) -> &'static str {
        self.guarantee.metric
    }

    /// ε per unit of distance.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.guarantee.epsilon
    }

    /// The computation that `epsilon` comes from, where it is below what the theorem gives; else
    /// None.
    #[getter]
    fn certificate(&self) -> Option<PyCertificate> {
        let vocabulary = self.mechanism.get().mechanism().vocabulary();
        let certificate = self.guarantee.certificate?;
        Some(PyCertificate::new(certificate, vocabulary))
    }

    /// δ; 0 for pure metric privacy.
    #[getter]
    fn delta(&self) -> f64 {
        self.guarantee.delta
    }

    /// What the sampler's arithmetic adds to a log-ratio at most.
    #[getter]
    fn slack(&self) -> f64 {
        self.guarantee.slack
    }

    /// What it covers: a word; a text by the sum over its words.
    #[getter]
    fn scope(&self) -> &'static str {
        crate::Guarantee::SCOPE
    }

    /// Why it holds, in one line.
    #[getter]
    fn theorem(&self) -> &'static str {
        self.guarantee.theorem
    }

    /// How exactly the implementation samples the proved law.
    #[getter]
    fn arithmetic(&self) -> &'static str {
        self.guarantee.arithmetic
    }

    /// What is not covered, one sentence each.
    #[getter]
    fn exceptions(&self) -> Vec<String> {
        self.guarantee.exceptions.clone()
    }

    /// The largest log-likelihood ratio an observer can see between two words, or between two
    /// lists of words of one length (the sum over their words).
    ///
    /// Unknown words count as the mechanism's ``oov`` handles them; infinite where nothing is
    /// proved.
    ///
    /// Parameters
    /// ----------
    /// a, b : str or iterable of str
    ///     Two words, or two lists of words.
    ///
    /// Returns
    /// -------
    /// float
    ///     In nats: ε·d(a, b) for two words of the vocabulary.
    fn bound(&self, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<f64> {
        let text = &self.mechanism.get().text;
        if let (Ok(a), Ok(b)) = (a.extract::<PyBackedStr>(), b.extract::<PyBackedStr>()) {
            return Ok(text.bound(&a, &b));
        }
        let (a, b) = (strings("a", a)?, strings("b", b)?);
        if a.len() != b.len() {
            return Ok(f64::INFINITY);
        }
        Ok(a.iter().zip(&b).map(|(a, b)| text.bound(a, b)).sum())
    }

    fn __str__(&self) -> String {
        self.guarantee.to_string()
    }

    fn __repr__(&self) -> String {
        let g = &self.guarantee;
        format!(
            "Guarantee({}, metric='{}', epsilon={}, delta={})",
            g.mechanism, g.metric, g.epsilon, g.delta
        )
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let getattr = py.import("builtins")?.getattr("getattr")?;
        Ok((getattr, (self.mechanism.clone_ref(py), "guarantee")))
    }
}
