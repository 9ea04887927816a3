//! `fastdx.Mechanism` and its heirs: thin, frozen classes around shared core objects.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyArray1, PyArrayDyn};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyList, PyString};

use super::arguments::{as_strs, count, matrix, real, seed, shape_text, shaped, strings, word_ids};
use super::embedding::PyEmbedding;
use super::errors::wrong_type;
use super::run::{run, run_with};
use crate::embedding::format::native;
use crate::mechanism::tem::{Sampler, Truncation};
use crate::text::{Counts, Policy, TextPrivatizer};
use crate::{Error, Mechanism, MultivariateLaplace, NeighborLists, Randomness, Tem};

/// Words in a call above which it goes to the pool, where Ctrl-C is looked for.
const LONG: usize = 64;

/// Positional and keyword arguments that make an equal object: pickle's protocol.
type NewArguments<'py> = ((Py<PyEmbedding>, f64), Bound<'py, PyDict>);
/// A callable and its arguments that make an equal object: pickle's protocol.
type Reduced<'py> = (Bound<'py, PyAny>, (Py<PyMechanism>, &'static str));

/// What every word mechanism can do. Not constructed itself: see Tem, MultivariateLaplace.
///
/// Mechanisms are immutable, may be shared between threads and pickled. Every call draws fresh
/// randomness from the operating system, unless the mechanism was made with ``seed=``, which is
/// for tests only.
#[pyclass(frozen, subclass, name = "Mechanism", module = "fastdx")]
pub(super) struct PyMechanism {
    text: TextPrivatizer,
    embedding: Py<PyEmbedding>,
    seed: Option<u64>,
    oov: String,
}

/// The parameters all mechanisms share, checked.
struct Common {
    embedding: Py<PyEmbedding>,
    epsilon: f64,
    seed: Option<u64>,
    oov: String,
    policy: Policy,
}

impl Common {
    fn new(
        py: Python<'_>,
        embedding: Option<&Bound<'_, PyAny>>,
        epsilon: Option<&Bound<'_, PyAny>>,
        oov: &str,
        skip: Option<&Bound<'_, PyAny>>,
        seed_value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let embedding = match embedding {
            None => Py::new(py, PyEmbedding::default(py)?)?,
            Some(given) => given
                .cast::<PyEmbedding>()
                .map_err(|_| {
                    let got = given.get_type().to_string();
                    wrong_type(
                        py,
                        format!("embedding must be a fastdx.Embedding, not {got}"),
                    )
                })?
                .clone()
                .unbind(),
        };
        let Some(epsilon) = epsilon else {
            return Err(wrong_type(
                py,
                "epsilon is missing: give (embedding, epsilon), or epsilon=… alone for the \
                 default embedding"
                    .into(),
            ));
        };
        let skip: HashSet<String> = match skip {
            None => HashSet::new(),
            Some(skip) => strings("skip", skip)?
                .iter()
                .map(|s| s.to_string())
                .collect(),
        };
        Ok(Common {
            embedding,
            epsilon: real("epsilon", epsilon)?,
            seed: seed(seed_value)?,
            oov: oov.to_owned(),
            policy: Policy {
                unknown: oov.parse()?,
                skip,
            },
        })
    }

    fn finish(self, mechanism: Arc<dyn Mechanism>) -> PyMechanism {
        PyMechanism {
            text: TextPrivatizer::new(mechanism, self.policy),
            embedding: self.embedding,
            seed: self.seed,
            oov: self.oov,
        }
    }
}

impl PyMechanism {
    fn mechanism(&self) -> &Arc<dyn Mechanism> {
        self.text.mechanism()
    }

    /// This mechanism's way with text around another word mechanism.
    fn around(&self, py: Python<'_>, mechanism: Arc<dyn Mechanism>) -> PyMechanism {
        PyMechanism {
            text: TextPrivatizer::new(mechanism, self.text.policy().clone()),
            embedding: self.embedding.clone_ref(py),
            seed: self.seed,
            oov: self.oov.clone(),
        }
    }

    fn keywords<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let keywords = PyDict::new(py);
        keywords.set_item("oov", &self.oov)?;
        keywords.set_item("seed", self.seed)?;
        let skip = &self.text.policy().skip;
        if !skip.is_empty() {
            let mut skip: Vec<&String> = skip.iter().collect();
            skip.sort();
            keywords.set_item("skip", skip)?;
        }
        Ok(keywords)
    }

    fn describe(&self, class: &str, parameters: &str) -> String {
        let embedding = &self.embedding.get().inner;
        let (v, n, metric) = (embedding.len(), embedding.dim(), embedding.metric());
        let seeded = match self.seed {
            None => String::new(),
            Some(seed) => format!(", seed={seed}: REPRODUCIBLE, FOR TESTS ONLY"),
        };
        format!(
            "{class}({v} words × {n}, {metric}, {parameters}, oov='{}'{seeded})",
            self.oov
        )
    }

    fn texts(&self, py: Python<'_>, texts: &[PyBackedStr]) -> PyResult<(Vec<String>, Counts)> {
        let size: usize = texts.iter().map(|t| t.len()).sum();
        run(py, size > 8 * LONG, |control| {
            self.text.privatize_texts(&as_strs(texts), control)
        })
    }
}

#[pymethods]
impl PyMechanism {
    /// The embedding.
    #[getter]
    fn embedding(&self, py: Python<'_>) -> Py<PyEmbedding> {
        self.embedding.clone_ref(py)
    }

    /// ε per unit of the metric's distance, the provable one.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.mechanism().epsilon()
    }

    /// How unknown words are handled: 'random', 'error', 'drop', 'mask' or 'keep'.
    #[getter]
    fn oov(&self) -> &str {
        &self.oov
    }

    /// Words released as they are, unprotected.
    #[getter]
    fn skip(&self) -> HashSet<String> {
        self.text.policy().skip.clone()
    }

    /// The seed, or None. A seeded mechanism protects nobody: it is for tests.
    #[getter]
    fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// What is proved, as an object that prints as a sentence.
    #[getter]
    fn guarantee(slf: &Bound<'_, Self>) -> PyGuarantee {
        PyGuarantee {
            guarantee: slf.get().text.guarantee(),
            mechanism: slf.clone().unbind(),
        }
    }

    /// Replaces the words of a text, or of each text of a list.
    ///
    /// White space, punctuation and line structure stay. The number of words, the length of
    /// the text and its punctuation are not protected.
    ///
    /// Parameters
    /// ----------
    /// text : str or iterable of str
    ///     The text or texts.
    ///
    /// Returns
    /// -------
    /// str or list of str
    ///     As given.
    ///
    /// Raises
    /// ------
    /// UnknownWordError
    ///     With ``oov='error'``: names the word.
    fn privatize<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(text) = text.cast::<PyString>() {
            let text = [PyBackedStr::try_from(text.clone())?];
            let (mut out, _) = self.texts(py, &text)?;
            let out = out.pop().unwrap_or_default();
            return Ok(PyString::new(py, &out).into_any());
        }
        let (out, _) = self.texts(py, &strings("text", text)?)?;
        Ok(PyList::new(py, out)?.into_any())
    }

    /// As privatize for a list, with counts of what was done.
    ///
    /// Returns
    /// -------
    /// texts : list of str
    ///     The texts.
    /// counts : dict of str to int
    ///     'words' found, of these 'replaced' (words of the vocabulary), 'unknown', 'skipped'.
    fn privatize_counted<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyDict>)> {
        let (out, counts) = self.texts(py, &strings("texts", texts)?)?;
        let dict = PyDict::new(py);
        dict.set_item("words", counts.words)?;
        dict.set_item("replaced", counts.replaced)?;
        dict.set_item("unknown", counts.unknown)?;
        dict.set_item("skipped", counts.skipped)?;
        Ok((PyList::new(py, out)?, dict))
    }

    /// Replaces words that were found elsewhere: each string is one word, whatever it holds.
    ///
    /// Parameters
    /// ----------
    /// tokens : iterable of str
    ///     The words.
    ///
    /// Returns
    /// -------
    /// list of str
    ///     Of the same length, unless ``oov='drop'``.
    fn privatize_tokens(&self, py: Python<'_>, tokens: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        let tokens = strings("tokens", tokens)?;
        let (out, _) = run(py, tokens.len() > LONG, |control| {
            self.text.privatize_tokens(&as_strs(&tokens), control)
        })?;
        Ok(out)
    }

    /// Replaces word ids.
    ///
    /// Parameters
    /// ----------
    /// ids : array_like of int
    ///     Word ids, of any shape.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of uint32
    ///     Of the same shape.
    ///
    /// Raises
    /// ------
    /// WordIdError
    ///     An id out of range, with its position in C order.
    fn privatize_ids<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArrayDyn<u32>>> {
        let (ids, shape) = word_ids(ids, self.mechanism().vocabulary().len())?;
        let out = run(py, ids.len() > LONG, |control| {
            self.mechanism().privatize_ids_with(&ids, control)
        })?;
        shaped(py, out, &shape)
    }

    /// Independent replacements of one word.
    ///
    /// Parameters
    /// ----------
    /// word : str
    ///     A word of the vocabulary.
    /// size : int
    ///     How many.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of uint32, shape (size,)
    ///     Word ids.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        word: &str,
        size: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let size = count("size", size)?;
        let id = self.mechanism().vocabulary().require(word)?;
        let mut ids = Vec::new();
        ids.try_reserve_exact(size)
            .map_err(|_| Error::parameter("size", "small enough to fit in memory", size))?;
        ids.resize(size, id);
        let out = run(py, size > LONG, |control| {
            self.mechanism().privatize_ids_with(&ids, control)
        })?;
        Ok(PyArray1::from_vec(py, out))
    }
}

/// TEM, the truncated exponential mechanism (Carvalho et al. 2021).
///
/// Releases y with probability ∝ exp(-(ε/2)·min(d(w,y), γ)): ε·d-private for every metric.
///
/// Parameters
/// ----------
/// embedding : Embedding, optional
///     Words and metric; the default English one if left out.
/// epsilon : float
///     ε per unit of distance, positive.
/// gamma : float, optional
///     Distance beyond which all words are alike, ≥ 0, may be infinite. By default from `beta`.
/// beta : float, optional
///     With no `gamma`: words beyond γ are released with probability at most β (Theorem 3).
/// oov : str, optional
///     Unknown words: 'random' (default) draws uniformly from the vocabulary, 'error', 'drop',
///     'mask'; 'keep' releases them UNPROTECTED.
/// skip : iterable of str, optional
///     Words released as they are, UNPROTECTED.
/// sampler : str, optional
///     'exact' (default): integer weights and exact randomness; 'gumbel': the paper's, for
///     comparison.
/// seed : int, optional
///     For tests only: makes the output reproducible, and thereby unprotected.
///
/// Raises
/// ------
/// ParameterError
///     A parameter outside its domain.
///
/// Examples
/// --------
/// >>> from fastdx import Tem
/// >>> tem = Tem(epsilon=6.0)
/// >>> law = tem.probabilities("coffee")
/// >>> law.shape, round(float(law.sum()), 9)
/// ((20000,), 1.0)
#[pyclass(frozen, extends = PyMechanism, name = "Tem", module = "fastdx")]
pub(super) struct PyTem {
    tem: Arc<Tem>,
}

#[pymethods]
impl PyTem {
    #[new]
    #[pyo3(signature = (embedding = None, epsilon = None, *, gamma = None, beta = 1e-3, oov = "random", skip = None, sampler = "exact", seed = None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        embedding: Option<&Bound<'_, PyAny>>,
        epsilon: Option<&Bound<'_, PyAny>>,
        gamma: Option<&Bound<'_, PyAny>>,
        beta: f64,
        oov: &str,
        skip: Option<&Bound<'_, PyAny>>,
        sampler: &str,
        seed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let common = Common::new(py, embedding, epsilon, oov, skip, seed)?;
        let truncation = match gamma {
            Some(gamma) => Truncation::Gamma(real("gamma", gamma)?),
            None => Truncation::Beta(beta),
        };
        let sampler = match sampler {
            "exact" => Sampler::Exact,
            "gumbel" => Sampler::Gumbel,
            _ => {
                let expected = "'exact' or 'gumbel'";
                return Err(Error::parameter("sampler", expected, format!("{sampler:?}")).into());
            }
        };
        let space = common.embedding.get().inner.clone();
        let randomness = Randomness::new(common.seed);
        let tem = Tem::new(space, common.epsilon, truncation, randomness)?;
        let tem = Arc::new(tem.with_sampler(sampler));
        let base = common.finish(tem.clone());
        Ok(PyClassInitializer::from(base).add_subclass(PyTem { tem }))
    }

    /// Distance beyond which all words are alike.
    #[getter]
    fn gamma(&self) -> f64 {
        self.tem.gamma()
    }

    /// Neighbours stored for every word, or None where lists are made as words come.
    #[getter]
    fn lists(&self) -> Option<usize> {
        self.tem.lists().map(NeighborLists::k)
    }

    /// The same mechanism with the exact lists of every word's k nearest neighbours, which
    /// `save` then stores. The output law is the same with and without lists.
    ///
    /// Parameters
    /// ----------
    /// k : int, optional
    ///     Neighbours a word; by default √V, between 256 and 1024.
    /// memory : int, optional
    ///     Bytes the lists may take (default 8 GiB), checked before anything is allocated.
    /// progress : callable, optional
    ///     Called now and then with the number of words done.
    ///
    /// Raises
    /// ------
    /// ParameterError
    ///     `k` outside 1..V.
    /// TooLargeError
    ///     More than `memory` bytes; says how many.
    #[pyo3(signature = (k = None, *, memory = None, progress = None))]
    fn build_lists(
        slf: PyRef<'_, Self>,
        k: Option<&Bound<'_, PyAny>>,
        memory: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Self>> {
        let py = slf.py();
        let old = slf.as_super().embedding.get().inner.clone();
        let k = k.map_or(Ok(NeighborLists::default_k(old.len())), |k| count("k", k))?;
        let memory = memory.map_or(Ok(8 << 30), |m| count("memory", m))? as u64;
        let embedding = run_with(py, true, progress, |control| {
            old.build_lists(k, memory, control)
        })?;
        let embedding = Py::new(py, PyEmbedding::from(embedding))?;
        let space = embedding.get().inner.clone();
        let tem = Arc::new(slf.tem.on(space)?);
        let base = PyMechanism {
            embedding,
            ..slf.as_super().around(py, tem.clone())
        };
        Py::new(
            py,
            PyClassInitializer::from(base).add_subclass(PyTem { tem }),
        )
    }

    /// Writes the embedding and the lists, if there are any, to one file.
    ///
    /// Raises
    /// ------
    /// OSError
    ///     The file cannot be written.
    fn save(slf: PyRef<'_, Self>, path: PathBuf) -> PyResult<()> {
        let embedding = slf.as_super().embedding.get().inner.clone();
        run(slf.py(), true, |_| embedding.save(&path))
    }

    /// A Tem on a file that `save` or ``fastdx index build`` wrote, mapped without copying and
    /// shared by all processes that open it.
    ///
    /// Parameters
    /// ----------
    /// path : str or os.PathLike
    ///     The file.
    /// epsilon : float
    ///     ε per unit of distance.
    /// verify : bool, optional
    ///     Check every checksum (default); without, opening takes milliseconds.
    /// **parameters
    ///     As for the constructor.
    ///
    /// Raises
    /// ------
    /// CorruptFileError
    ///     A damaged, truncated, extended or foreign file.
    #[staticmethod]
    #[pyo3(signature = (path, epsilon, *, verify = true, **parameters))]
    fn load<'py>(
        py: Python<'py>,
        path: PathBuf,
        epsilon: &Bound<'py, PyAny>,
        verify: bool,
        parameters: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let embedding = run(py, true, |_| native::open(&path, verify))?;
        let embedding = Py::new(py, PyEmbedding::from(embedding))?;
        py.get_type::<Self>().call((embedding, epsilon), parameters)
    }

    /// The sampler: 'exact' or 'gumbel'.
    #[getter]
    fn sampler(&self) -> &'static str {
        match self.tem.sampler() {
            Sampler::Exact => "exact",
            Sampler::Gumbel => "gumbel",
        }
    }

    /// The exact law of the output for a word: float64, shape (V,).
    ///
    /// Raises
    /// ------
    /// UnknownWordError
    ///     The word is not in the vocabulary.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        word: &str,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let id = self.tem.vocabulary().require(word)?;
        let law = run(py, false, |_| Ok(self.tem.probabilities(id)))?;
        Ok(PyArray1::from_vec(py, law))
    }

    /// The same mechanism at another ε, sharing everything else.
    fn with_epsilon(slf: PyRef<'_, Self>, epsilon: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        let py = slf.py();
        let tem = Arc::new(slf.tem.with_epsilon(real("epsilon", epsilon)?)?);
        let base = slf.as_super().around(py, tem.clone());
        Py::new(
            py,
            PyClassInitializer::from(base).add_subclass(PyTem { tem }),
        )
    }

    fn __getnewargs_ex__<'py>(slf: PyRef<'py, Self>) -> PyResult<NewArguments<'py>> {
        let py = slf.py();
        let keywords = slf.as_super().keywords(py)?;
        match slf.tem.truncation() {
            Truncation::Gamma(gamma) => keywords.set_item("gamma", gamma)?,
            Truncation::Beta(beta) => keywords.set_item("beta", beta)?,
        }
        keywords.set_item("sampler", slf.sampler())?;
        let embedding = slf.as_super().embedding.clone_ref(py);
        Ok(((embedding, slf.tem.epsilon()), keywords))
    }

    fn __repr__(slf: PyRef<'_, Self>) -> String {
        let parameters = format!(
            "epsilon={}, gamma={:.6}",
            slf.tem.epsilon(),
            slf.tem.gamma()
        );
        slf.as_super().describe("Tem", &parameters)
    }
}

/// MADLIB, the multivariate Laplace mechanism (Feyisetan et al. 2020).
///
/// Adds noise of density ∝ exp(-ε‖z‖) to the word's vector and releases the nearest word:
/// ε·d-private in the Euclidean metric.
///
/// Parameters
/// ----------
/// embedding : Embedding, optional
///     Words and vectors, Euclidean; the default English one if left out.
/// epsilon : float
///     ε per unit of Euclidean distance, positive.
/// search : str, optional
///     'exact', the only one: the nearest word is the true one.
/// oov, skip, seed : optional
///     As for Tem.
///
/// Raises
/// ------
/// ParameterError
///     A parameter outside its domain, or an embedding with another metric.
///
/// Examples
/// --------
/// >>> from fastdx import MultivariateLaplace
/// >>> madlib = MultivariateLaplace(epsilon=12.0)
/// >>> madlib.sample("coffee", 5).shape
/// (5,)
#[pyclass(frozen, extends = PyMechanism, name = "MultivariateLaplace", module = "fastdx")]
pub(super) struct PyMultivariateLaplace {
    laplace: Arc<MultivariateLaplace>,
}

#[pymethods]
impl PyMultivariateLaplace {
    #[new]
    #[pyo3(signature = (embedding = None, epsilon = None, *, search = "exact", oov = "random", skip = None, seed = None))]
    fn new(
        py: Python<'_>,
        embedding: Option<&Bound<'_, PyAny>>,
        epsilon: Option<&Bound<'_, PyAny>>,
        search: &str,
        oov: &str,
        skip: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        if search != "exact" {
            return Err(Error::parameter("search", "'exact'", format!("{search:?}")).into());
        }
        let common = Common::new(py, embedding, epsilon, oov, skip, seed)?;
        let embedding = common.embedding.get().inner.clone();
        let randomness = Randomness::new(common.seed);
        let laplace = Arc::new(MultivariateLaplace::new(
            embedding,
            common.epsilon,
            randomness,
        )?);
        let base = common.finish(laplace.clone());
        Ok(PyClassInitializer::from(base).add_subclass(PyMultivariateLaplace { laplace }))
    }

    /// The search: 'exact'.
    #[getter]
    fn search(&self) -> &'static str {
        "exact"
    }

    /// Adds fresh noise to vectors, without looking for the nearest word.
    ///
    /// Parameters
    /// ----------
    /// vectors : array_like of float, shape (m, n)
    ///     The vectors.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of float64, shape (m, n)
    ///     The noisy vectors.
    fn perturb<'py>(
        &self,
        py: Python<'py>,
        vectors: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let (numbers, m, n) = matrix::<f64>("vectors", vectors)?;
        let dim = self.laplace.embedding().dim();
        if n != dim {
            let error = Error::Shape {
                what: "vectors",
                expected: format!("(m, {dim})"),
                got: shape_text(&[m, n]),
            };
            return Err(error.into());
        }
        let noisy = run(py, m > 256, |control| {
            self.laplace.perturb(&numbers, control)
        })?;
        shaped(py, noisy, &[m, n])
    }

    /// The same mechanism at another ε, sharing everything else.
    fn with_epsilon(slf: PyRef<'_, Self>, epsilon: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        let py = slf.py();
        let laplace = Arc::new(slf.laplace.with_epsilon(real("epsilon", epsilon)?)?);
        let base = slf.as_super().around(py, laplace.clone());
        let class = PyMultivariateLaplace { laplace };
        Py::new(py, PyClassInitializer::from(base).add_subclass(class))
    }

    fn __getnewargs_ex__<'py>(slf: PyRef<'py, Self>) -> PyResult<NewArguments<'py>> {
        let py = slf.py();
        let keywords = slf.as_super().keywords(py)?;
        let embedding = slf.as_super().embedding.clone_ref(py);
        Ok(((embedding, slf.laplace.epsilon()), keywords))
    }

    fn __repr__(slf: PyRef<'_, Self>) -> String {
        let parameters = format!("epsilon={}", slf.laplace.epsilon());
        slf.as_super().describe("MultivariateLaplace", &parameters)
    }
}

/// What a mechanism proves. Printed, it is a sentence.
///
/// For any two words w, w' of the vocabulary and any output y,
/// Pr[y|w] ≤ exp(epsilon·d(w,w') + slack)·Pr[y|w'] + delta.
#[pyclass(frozen, name = "Guarantee", module = "fastdx")]
pub(super) struct PyGuarantee {
    guarantee: crate::Guarantee,
    mechanism: Py<PyMechanism>,
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
