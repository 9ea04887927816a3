//! `fastdx.Guarantee`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;

use super::arguments::as_strs;
use super::distances::with_distances;
use super::errors::wrong_type;
use super::mechanism::PyMechanism;
use super::run::{run, run_with};
use super::space::Space;
use super::text::TextArgument;
use crate::Error;
use crate::guarantee::{NamedCertificate, proved};
use crate::text::Counts;

/// A callable and its arguments that make an equal object: pickle's protocol.
type Reduced<'py> = (
    Bound<'py, PyAny>,
    (Py<PyMechanism>, Vec<String>, Option<Vec<String>>, bool),
);

/// The proved guarantee of a mechanism. It prints as a sentence.
///
/// For any two words w, w' of the vocabulary and any output y,
/// Pr[y|w] ≤ exp(epsilon·d(w,w') + slack)·Pr[y|w'] + delta.
#[pyclass(frozen, name = "Guarantee", module = "fastdx")]
pub(super) struct PyGuarantee {
    guarantee: crate::Guarantee,
    mechanism: Py<PyMechanism>,
    /// Exceptions that are not the mechanism's own: a part of the text does not go through it.
    more: Vec<String>,
    /// The unprotected part, if it is known: the text before, between and after the spans.
    outside: Option<Vec<String>>,
    /// Whether it shows the bits that a release reveals.
    bits: bool,
}

/// A price, why it is infinite, and the numbers of words, numbers and dates.
type Priced = (f64, Option<&'static str>, (u64, u64, u64));

fn priced(price: Result<f64, &'static str>, counts: Counts) -> Priced {
    let words = counts.words - counts.numbers - counts.dates;
    let units = (words, counts.numbers, counts.dates);
    match price {
        Ok(price) => (price, None, units),
        Err(why) => (f64::INFINITY, Some(why), units),
    }
}

impl PyGuarantee {
    /// With how often common words come back, and the bits where they are asked for: measured when it
    /// is shown, for it takes a while.
    fn measured(&self, py: Python<'_>) -> PyResult<crate::Guarantee> {
        let mechanism = self.mechanism.get();
        let one_law = mechanism.mechanism().in_order().is_none();
        let unchanged = one_law.then(|| mechanism.unchanged(py)).transpose()?;
        let bits = self.bits.then(|| mechanism.bits(py)).transpose()?;
        Ok(crate::Guarantee {
            unchanged,
            bits,
            ..self.guarantee.clone()
        })
    }

    /// Why no price is finite, if a part of the text does not go through the mechanism.
    fn payable(&self) -> Result<(), &'static str> {
        match self.more.is_empty() {
            true => Ok(()),
            false => Err("a part of the text is released unprotected"),
        }
    }
}

#[pymethods]
impl PyGuarantee {
    /// The proved guarantee of a mechanism; its `guarantee`. `exceptions` are further exceptions,
    /// if only a part of the release goes through the mechanism; `outside` is then the text before,
    /// between and after the spans that do. With `bits` it shows the bits that a release reveals.
    #[new]
    #[pyo3(signature = (mechanism, exceptions = Vec::new(), outside = None, bits = false))]
    fn new(
        mechanism: &Bound<'_, PyMechanism>,
        exceptions: Vec<String>,
        outside: Option<Vec<String>>,
        bits: bool,
    ) -> Self {
        let mut guarantee = mechanism.get().text().guarantee();
        guarantee.exceptions.extend(exceptions.iter().cloned());
        PyGuarantee {
            guarantee,
            mechanism: mechanism.clone().unbind(),
            more: exceptions,
            outside,
            bits,
        }
    }

    /// Returns the same guarantee, which also shows the bits that a release reveals about a word.
    ///
    /// They are a measure under a named prior, words being written by 1/(rank + 2.7), apart from what
    /// is proved. They are computed when the guarantee is first shown, in seconds, and kept with the
    /// mechanism: a sum over all words up to 20,000, above that an estimate with its interval, which
    /// says from how many words. Noise has no law that could be computed: then it says so. The
    /// reviewer's page then also counts (k, 2) plausible deniability, where bits are a sum.
    ///
    /// Returns
    /// -------
    /// Guarantee
    fn with_bits(&self, py: Python<'_>) -> Self {
        PyGuarantee {
            guarantee: self.guarantee.clone(),
            mechanism: self.mechanism.clone_ref(py),
            more: self.more.clone(),
            outside: self.outside.clone(),
            bits: true,
        }
    }

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

    /// The computation behind `epsilon`, if it is below the theorem's value; else None.
    #[getter]
    fn certificate(&self) -> Option<PyCertificate> {
        self.guarantee.certificate.clone().map(PyCertificate)
    }

    /// δ; 0 for pure metric privacy.
    #[getter]
    fn delta(&self) -> f64 {
        self.guarantee.delta
    }

    /// The largest effect of arithmetic on a log-ratio, where d is the computed distance; infinite
    /// if nothing is proved.
    #[getter]
    fn slack(&self) -> f64 {
        self.guarantee.slack
    }

    /// The scope: a word; a text by the sum over its words, or its distinct words.
    #[getter]
    fn scope(&self) -> &'static str {
        self.guarantee.scope
    }

    /// Why nothing is proved of what is really drawn (a seed, a law without its loss), or None.
    #[getter]
    fn void(&self) -> Option<&'static str> {
        self.guarantee.void
    }

    /// The log-ratio that shows whether a word was in the vocabulary, where unknown words are
    /// replaced at random and that is bounded; else None, and `exceptions` say so.
    #[getter]
    fn unknown(&self) -> Option<f64> {
        self.guarantee.unknown()
    }

    /// Properties of the outputs: their largest probability, words that are never released.
    #[getter]
    fn outputs(&self) -> &str {
        &self.guarantee.outputs
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

    /// Exceptions from the guarantee, one sentence each.
    #[getter]
    fn exceptions(&self) -> Vec<String> {
        self.guarantee.exceptions.clone()
    }

    /// The largest log-likelihood ratio an observer can see between two texts, or between two
    /// lists of words.
    ///
    /// A str is a text, which the mechanism divides into words; a list holds words as they are. The
    /// bounds of the words add up, those of distinct words with ``consistent=True``. Unknown words
    /// count as the mechanism's ``oov`` handles them. Infinite where nothing is proved: texts of
    /// different numbers of words or with different text between them, a seeded mechanism. Of
    /// `privatize_spans` finite only for texts that differ within its spans alone, and infinite for
    /// lists of words.
    ///
    /// Parameters
    /// ----------
    /// a, b : str or iterable of str
    ///     Two texts, or two lists of words.
    ///
    /// Returns
    /// -------
    /// float
    ///     In nats: ε·d(a, b) for two words of the vocabulary, rounded up so that it covers the
    ///     rounding of the distance; `slack`, once a word, comes on top.
    fn bound(&self, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<f64> {
        let text = self.mechanism.get().text();
        Ok(
            match (TextArgument::of("a", a)?, TextArgument::of("b", b)?) {
                (TextArgument::Text(a), TextArgument::Text(b)) => {
                    match (&self.outside, self.payable()) {
                        (_, Ok(())) => text.bound(&a, &b),
                        (Some(outside), _) => text.bound_spans(outside, &a, &b),
                        (None, _) if *a == *b => 0.0,
                        (None, _) => f64::INFINITY,
                    }
                }
                (TextArgument::Tokens(a), TextArgument::Tokens(b)) => {
                    match (as_strs(&a), as_strs(&b)) {
                        (a, b) if self.payable().is_ok() => text.bound_tokens(&a, &b),
                        (a, b) if a == b => 0.0,
                        _ => f64::INFINITY,
                    }
                }
                _ => {
                    let message =
                        "a and b must be two texts or two lists of words, not one of each";
                    return Err(wrong_type(message.into()));
                }
            },
        )
    }

    /// The ε of the same guarantee in another metric D of the same words.
    ///
    /// Where ε·d(w, w') ≤ ε'·D(w, w') for all words w and w', whatever is ε·d-private is ε'·D-private
    /// (Fernandes, Dras, McIver, POST 2019, Corollary 1). The least such ε' is computed over all pairs
    /// of words and rounded up. It holds for noise mechanisms too; `slack` and `delta` stay.
    ///
    /// Parameters
    /// ----------
    /// metric : Embedding, WordGraph, array_like of float (shape (V, V)), or callable
    ///     Words in the mechanism's order, with D; a row a word; or ``metric(a, b)`` of two words. The
    ///     triangle inequality is not needed.
    /// progress : callable, optional
    ///     Called now and then with the number of words done.
    ///
    /// Returns
    /// -------
    /// float
    ///     ε', per unit of D.
    ///
    /// Raises
    /// ------
    /// ParameterError
    ///     D is negative, NaN, or 0 between words that can be told apart; it has other words;
    ///     nothing is proved of the mechanism.
    ///
    /// Examples
    /// --------
    /// >>> from fastdx import Embedding, MultivariateLaplace
    /// >>> e = Embedding(["tea", "coffee", "law"], [[0.0], [1.0], [4.0]])
    /// >>> noise = MultivariateLaplace(e, 3.0)
    /// >>> round(noise.guarantee.in_metric(lambda a, b: 6.0 if "law" in (a, b) else 2.0), 6)
    /// 2.0
    #[pyo3(signature = (metric, *, progress = None))]
    fn in_metric(
        &self,
        py: Python<'_>,
        metric: &Bound<'_, PyAny>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<f64> {
        if let Some(why) = self.guarantee.void {
            let expected = "one of which something is proved";
            return Err(Error::parameter("mechanism", expected, why).into());
        }
        let mechanism = self.mechanism.get().mechanism().clone();
        let vocabulary = mechanism.vocabulary();
        if let Ok(space) = Space::of(metric) {
            let space = space.space();
            if !space.vocabulary().iter().eq(vocabulary.iter()) {
                let expected = "of the mechanism's words, in their order";
                return Err(Error::parameter("metric", expected, "one of other words").into());
            }
            return run_with(py, true, progress, |control| {
                proved::in_metric(&*mechanism, |id, row| space.distances(id, row), control)
            });
        }
        let words: Vec<&str> = vocabulary.iter().collect();
        with_distances("metric", metric, &words, |numbers| {
            let row = |id: u32, out: &mut [f64]| {
                out.copy_from_slice(&numbers[id as usize * words.len()..][..words.len()]);
            };
            run_with(py, true, progress, |control| {
                proved::in_metric(&*mechanism, row, control)
            })
        })
    }

    /// The cost of releasing a text: ε times the number of its words, or of its distinct words with
    /// ``consistent=True``. Consider another text of as many words, each at distance at most D from
    /// the word at its position. The log-ratio between the two texts is at most D times the cost.
    ///
    /// Parameters
    /// ----------
    /// text : str or iterable of str
    ///     A text, or a list of words.
    ///
    /// Returns
    /// -------
    /// float
    ///     In 1/distance; infinite where no finite number pays: a mechanism that releases words
    ///     or what is outside of spans as they are, or is seeded, a text whose unknown words show
    ///     as unknown. Unknown words cost the ε that the mechanism was made with, also where a smaller
    ///     one is certified.
    fn price(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<f64> {
        Ok(self.priced(py, text)?.0)
    }

    /// `price`, why it is infinite, and how many words, numbers and dates there are.
    #[pyo3(name = "_price")]
    fn priced(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<Priced> {
        let core = self.mechanism.get().text();
        let written = TextArgument::of("text", text)?;
        run(py, false, |_| {
            let (price, counts) = match &written {
                TextArgument::Text(text) => core.price(text),
                TextArgument::Tokens(tokens) => core.price_tokens(&as_strs(tokens)),
            };
            Ok(priced(self.payable().and(price), counts))
        })
    }

    /// The ledger's note for a release of this many words, numbers and dates.
    fn _note(&self, words: u64, numbers: u64, dates: u64) -> String {
        let text = self.mechanism.get().text();
        text.note(words, numbers, dates)
    }

    /// All of it as a dict of plain values, for reports; infinite numbers are None.
    ///
    /// The command's report and the service show the same: `docs/reference/guarantee.schema.json`
    /// describes it.
    ///
    /// Returns
    /// -------
    /// dict
    ///     mechanism, metric, epsilon, delta, slack, void, unknown, scope, outputs, theorem, arithmetic,
    ///     exceptions, certificate (a dict or None), unchanged (a dict: mean and worst probability
    ///     that a common word comes back, words, draws, warning), bits (a dict: value, low, high,
    ///     entropy, prior, exact, sampled, why; None unless `with_bits` asked for it), sentence and for_users.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loaded(py, &self.measured(py)?)
    }

    /// `to_dict` as JSON.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        json(&self.measured(py)?)
    }

    /// The guarantee for one audience.
    ///
    /// Parameters
    /// ----------
    /// audience : 'engineer', 'user' or 'reviewer', optional
    ///     'engineer': the sentence that is printed; 'user': a paragraph in plain words for those
    ///     whose words it protects; 'reviewer': a release record in Markdown, for a data-protection
    ///     officer to read, fill in and sign.
    /// ledger : fastdx.budget.Ledger, optional
    ///     For the record: the budget and what was spent of it.
    /// account : str, optional
    ///     For the record: the account of the ledger that is meant. By default all of them.
    #[pyo3(signature = (audience = "engineer", *, ledger = None, account = None))]
    fn describe(
        slf: &Bound<'_, Self>,
        audience: &str,
        ledger: Option<&Bound<'_, PyAny>>,
        account: Option<&str>,
    ) -> PyResult<String> {
        let py = slf.py();
        match audience {
            "reviewer" => {
                let record = py.import("fastdx.record")?;
                record
                    .call_method1("page", (slf, ledger, account))?
                    .extract()
            }
            "engineer" | "user" if ledger.is_some() || account.is_some() => {
                let expected = "'reviewer' with ledger or account";
                Err(Error::parameter("audience", expected, format!("{audience:?}")).into())
            }
            "engineer" => Ok(slf.get().measured(py)?.to_string()),
            "user" => Ok(slf.get().measured(py)?.for_users()),
            _ => {
                let expected = "'engineer', 'user' or 'reviewer'";
                Err(Error::parameter("audience", expected, format!("{audience:?}")).into())
            }
        }
    }

    /// Whose guarantee it is.
    #[getter]
    fn _mechanism(&self, py: Python<'_>) -> Py<PyMechanism> {
        self.mechanism.clone_ref(py)
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.measured(py)?.to_string())
    }

    fn __repr__(&self) -> String {
        let g = &self.guarantee;
        let void = match g.void {
            Some(why) => format!(", NOTHING IS PROTECTED: {why}"),
            None => String::new(),
        };
        format!(
            "Guarantee({}, metric='{}', epsilon={}, delta={}{void})",
            g.mechanism, g.metric, g.epsilon, g.delta
        )
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let class = py.get_type::<Self>().into_any();
        let (mechanism, outside) = (self.mechanism.clone_ref(py), self.outside.clone());
        Ok((class, (mechanism, self.more.clone(), outside, self.bits)))
    }
}

/// A proved ε for one Tem on one public vocabulary; see ``fastdx.lab.audit.certify``.
#[pyclass(frozen, name = "Certificate", module = "fastdx")]
pub(super) struct PyCertificate(pub(super) NamedCertificate);

#[pymethods]
impl PyCertificate {
    /// The certified ε per unit of distance.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.certificate.epsilon
    }

    /// The ε that the mechanism was made with.
    #[getter]
    fn nominal(&self) -> f64 {
        self.0.certificate.nominal
    }

    /// Its γ.
    #[getter]
    fn gamma(&self) -> f64 {
        self.0.certificate.gamma
    }

    /// The two words with the largest loss per unit of distance.
    #[getter]
    fn pair(&self) -> (String, String) {
        self.0.pair.clone()
    }

    /// The output that tells them apart.
    #[getter]
    fn output(&self) -> &str {
        &self.0.output
    }

    /// Fingerprint of the words and their vectors or edges: what it holds for.
    #[getter]
    fn vocabulary(&self) -> String {
        self.0.certificate.vocabulary_name()
    }

    /// The method of computation.
    #[getter]
    fn method(&self) -> &'static str {
        self.0.certificate.method()
    }

    /// Fingerprint of the cover, or None.
    #[getter]
    fn cover(&self) -> Option<String> {
        self.0.certificate.cover_name()
    }

    /// All of it as a dict of plain values, as `Guarantee.to_dict` has it; an infinite γ is None.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loaded(py, &self.0)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let (c, pair) = (&self.0.certificate, &self.0.pair);
        let (epsilon, nominal) = (c.epsilon, c.nominal);
        format!("Certificate(epsilon={epsilon}, nominal={nominal}, pair={pair:?})")
    }
}

/// The one serialised form, as JSON.
fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// The one serialised form, as Python's objects.
fn loaded<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (json(value)?,))
}
