//! `fastdx.Tem`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;

use super::arguments::{count, real};
use super::embedding::PyEmbedding;
use super::graph::PyWordGraph;
use super::mechanism::{Common, NewArguments, PyMechanism};
use super::run::{run, run_with};
use super::words::Words;
use crate::audit::Extend;
use crate::embedding::format::native;
use crate::mechanism::tem::{Sampler, Truncation};
use crate::{Error, Mechanism, NeighborLists, Randomness, Tem, audit};

/// TEM, the truncated exponential mechanism (Carvalho et al. 2021).
///
/// Releases y with probability ∝ exp(-(ε/2)·min(d(w,y), γ)): ε·d-private for every metric.
///
/// Parameters
/// ----------
/// embedding : Embedding or WordGraph, optional
///     Words and metric; the default English embedding if left out.
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
/// consistent : bool or str, optional
///     True: the same word gets the same replacement throughout a text (a list of tokens or an
///     array of ids is one), so that counting outputs recovers nothing; which words are equal is
///     released. 'call': throughout all texts of a call. `sample` still draws independently.
/// sampler : str, optional
///     'exact' (default): integer weights and exact randomness; 'gumbel': the paper's, for
///     comparison.
/// seed : int, optional
///     For tests only: makes the output reproducible, and thereby unprotected.
/// pad : float, optional
///     Seconds: every call takes a whole multiple of it, so that its time tells nothing of the
///     words as long as calls need less.
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

/// Words whose lists are computed again, where nobody says how many.
const RECOMPUTED: usize = 1000;

/// The words in a file of ours.
fn open_words(py: Python<'_>, path: &Path, verify: bool) -> PyResult<Words> {
    Ok(match run(py, true, |_| native::open_words(path, verify))? {
        native::Words::Embedding(embedding) => {
            Words::Embedding(Py::new(py, PyEmbedding::from(*embedding))?)
        }
        native::Words::Graph(graph) => Words::Graph(Py::new(py, PyWordGraph::from(*graph))?),
    })
}

/// Computes again what a file of ours says of its words: the lists of `words` random words (of
/// all, where None), and its certificates. Returns how many words, lists and certificates.
#[pyfunction]
#[pyo3(signature = (path, words, progress = None))]
pub(super) fn check_index(
    py: Python<'_>,
    path: PathBuf,
    words: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(usize, usize, usize)> {
    let space = open_words(py, &path, true)?.space();
    let extend = words.map_or(Extend::All, Extend::Sample);
    let found = run_with(py, true, progress, |control| {
        audit::check(&space, extend, &path, control)
    })?;
    Ok((found.words, found.lists, found.certificates))
}

impl PyTem {
    pub(super) fn core(&self) -> Arc<Tem> {
        self.tem.clone()
    }
}

#[pymethods]
impl PyTem {
    #[new]
    #[pyo3(signature = (embedding = None, epsilon = None, *, gamma = None, beta = 1e-3, oov = "random", skip = None, consistent = None, sampler = "exact", seed = None, pad = None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        embedding: Option<&Bound<'_, PyAny>>,
        epsilon: Option<&Bound<'_, PyAny>>,
        gamma: Option<&Bound<'_, PyAny>>,
        beta: f64,
        oov: &str,
        skip: Option<&Bound<'_, PyAny>>,
        consistent: Option<&Bound<'_, PyAny>>,
        sampler: &str,
        seed: Option<&Bound<'_, PyAny>>,
        pad: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let common = Common::new(py, embedding, epsilon, oov, skip, consistent, seed, pad)?;
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
        let space = common.words.space();
        let randomness = Randomness::new(common.seed);
        let tem = Tem::new(space, common.epsilon, truncation, randomness)?;
        let tem = Arc::new(tem.with_sampler(sampler));
        let base = common.finish(tem.clone());
        Ok(PyClassInitializer::from(base).add_subclass(PyTem { tem }))
    }

    /// A Tem whose *certified* ε is the one given: the largest nominal ε whose certificate is at
    /// most that (see ``fastdx.audit.certify``), so the same proof with less noise.
    ///
    /// `epsilon` and `guarantee` are the certified ones, `nominal` is what the law is made with.
    /// The certificate is saved with the mechanism. It takes the embedding to be public.
    ///
    /// Parameters
    /// ----------
    /// embedding : Embedding or WordGraph
    ///     Words and metric.
    /// epsilon : float
    ///     The ε to certify, per unit of distance.
    /// gamma, beta, oov, skip, consistent, seed, pad : optional
    ///     As for the constructor; γ from β belongs to the nominal ε.
    /// progress : callable, optional
    ///     Called now and then with the number of words done, over about a dozen passes.
    ///
    /// Examples
    /// --------
    /// >>> from fastdx import Embedding, Tem
    /// >>> e = Embedding.default("nouns")
    /// >>> tem = Tem.certified(e, 0.5)
    /// >>> tem.epsilon <= 0.5 < tem.nominal
    /// True
    #[staticmethod]
    #[pyo3(signature = (embedding, epsilon, *, gamma = None, beta = 1e-3, oov = "random", skip = None, consistent = None, seed = None, pad = None, progress = None))]
    #[allow(clippy::too_many_arguments)]
    fn certified(
        py: Python<'_>,
        embedding: &Bound<'_, PyAny>,
        epsilon: &Bound<'_, PyAny>,
        gamma: Option<&Bound<'_, PyAny>>,
        beta: f64,
        oov: &str,
        skip: Option<&Bound<'_, PyAny>>,
        consistent: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        pad: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Self>> {
        let mut common = Common::new(
            py,
            Some(embedding),
            Some(epsilon),
            oov,
            skip,
            consistent,
            seed,
            pad,
        )?;
        let truncation = match gamma {
            Some(gamma) => Truncation::Gamma(real("gamma", gamma)?),
            None => Truncation::Beta(beta),
        };
        let (space, target) = (common.words.space(), common.epsilon);
        let randomness = Randomness::new(common.seed);
        let (tem, certificate) = run_with(py, true, progress, |control| {
            audit::certified(space, target, truncation, randomness, control)
        })?;
        common.words = common.words.with_certificate(py, certificate)?;
        let tem = Arc::new(tem.on(common.words.space())?);
        let base = common.finish(tem.clone());
        let class = PyClassInitializer::from(base).add_subclass(PyTem { tem });
        Py::new(py, class)
    }

    /// The ε that the law is made with: `epsilon`, unless a certificate proves a smaller one.
    #[getter]
    fn nominal(&self) -> f64 {
        self.tem.nominal()
    }

    /// Distance beyond which all words are alike.
    #[getter]
    fn gamma(&self) -> f64 {
        self.tem.gamma()
    }

    /// The stored neighbour lists: their k (int), their radius (float), or None where lists are
    /// made as words come.
    #[getter]
    fn lists<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(lists) = self.tem.lists() else {
            return Ok(None);
        };
        let extent = match (lists.k(), lists.radius()) {
            (Some(k), _) => k.into_pyobject(py)?.into_any(),
            (_, radius) => radius.unwrap_or(f64::NAN).into_pyobject(py)?.into_any(),
        };
        Ok(Some(extent))
    }

    /// The same mechanism with the exact lists of every word's k nearest neighbours, which
    /// `save` then stores. The output law is the same with and without lists.
    ///
    /// Parameters
    /// ----------
    /// k : int, optional
    ///     Neighbours a word; by default √V, between 256 and 1024.
    /// lists : str, optional
    ///     'nearest' (default): the k nearest words. 'gamma': all words within γ, as the paper
    ///     has it; where Tem is useful, that is nearly every word.
    /// memory : int, optional
    ///     Bytes the lists may take (default 8 GiB), checked before anything is allocated.
    /// progress : callable, optional
    ///     Called now and then with the number of words done.
    ///
    /// Raises
    /// ------
    /// ParameterError
    ///     `k` outside 1..V, or given with lists='gamma'; a WordGraph, which needs no lists.
    /// TooLargeError
    ///     More than `memory` bytes; says how many.
    #[pyo3(signature = (k = None, *, lists = "nearest", memory = None, progress = None))]
    fn build_lists(
        slf: PyRef<'_, Self>,
        k: Option<&Bound<'_, PyAny>>,
        lists: &str,
        memory: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Self>> {
        let py = slf.py();
        let Words::Embedding(old) = &slf.as_super().words else {
            let expected = "an Embedding: a WordGraph needs no lists";
            return Err(Error::parameter("embedding", expected, "a WordGraph").into());
        };
        let old = old.get().inner.clone();
        let within = match lists {
            "nearest" => false,
            "gamma" => true,
            _ => {
                let expected = "'nearest' or 'gamma'";
                return Err(Error::parameter("lists", expected, format!("{lists:?}")).into());
            }
        };
        let default = NeighborLists::default_k(old.len());
        let k = match k {
            Some(_) if within => {
                return Err(Error::parameter("k", "left out with lists='gamma'", "given").into());
            }
            k => k.map_or(Ok(default), |k| count("k", k))?,
        };
        let gamma = slf.tem.gamma();
        let memory = memory.map_or(Ok(8 << 30), |m| count("memory", m))? as u64;
        let embedding = run_with(py, true, progress, |control| match within {
            true => old.build_lists_within(gamma, memory, control),
            false => old.build_lists(k, memory, control),
        })?;
        let embedding = Py::new(py, PyEmbedding::from(embedding))?;
        let space = embedding.get().inner.clone();
        let tem = Arc::new(slf.tem.on(space)?);
        let mut base = slf.as_super().around(py, tem.clone());
        base.words = Words::Embedding(embedding);
        Py::new(
            py,
            PyClassInitializer::from(base).add_subclass(PyTem { tem }),
        )
    }

    /// Writes the words, their metric and the lists, if there are any, to one file.
    ///
    /// Raises
    /// ------
    /// OSError
    ///     The file cannot be written.
    fn save(slf: PyRef<'_, Self>, path: PathBuf) -> PyResult<()> {
        match &slf.as_super().words {
            Words::Embedding(embedding) => {
                let embedding = embedding.get().inner.clone();
                run(slf.py(), true, |_| embedding.save(&path))
            }
            Words::Graph(graph) => {
                let graph = graph.get().inner.clone();
                run(slf.py(), true, |_| graph.save(&path))
            }
        }
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
    /// verify : bool or 'recompute', optional
    ///     True (default): check every checksum, which finds damage. False: opening takes
    ///     milliseconds, and no certificate is claimed. 'recompute': certify again and compute
    ///     the lists of 1,000 random words again, which finds forgery, for files from others.
    /// **parameters
    ///     As for the constructor.
    ///
    /// Raises
    /// ------
    /// CorruptFileError
    ///     A damaged, truncated, extended or foreign file; with 'recompute', a forged one.
    #[staticmethod]
    #[pyo3(signature = (path, epsilon, *, verify = None, **parameters))]
    fn load<'py>(
        py: Python<'py>,
        path: PathBuf,
        epsilon: &Bound<'py, PyAny>,
        verify: Option<&Bound<'py, PyAny>>,
        parameters: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (checksums, recompute) = match verify {
            None => (true, false),
            Some(given) => match (given.extract::<bool>(), given.extract::<PyBackedStr>()) {
                (Ok(checksums), _) => (checksums, false),
                (_, Ok(word)) if &*word == "recompute" => (true, true),
                _ => {
                    let expected = "True, False or 'recompute'";
                    return Err(Error::parameter("verify", expected, given.repr()?).into());
                }
            },
        };
        let words = open_words(py, &path, checksums)?;
        if recompute {
            let (space, sample) = (words.space(), Extend::Sample(RECOMPUTED));
            run(py, true, |control| {
                audit::check(&space, sample, &path, control)
            })?;
        }
        let words = words.object(py);
        py.get_type::<Self>().call((words, epsilon), parameters)
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
        let words = slf.as_super().words.object(py);
        Ok(((words, slf.tem.nominal()), keywords))
    }

    fn __repr__(slf: PyRef<'_, Self>) -> String {
        let certified = match slf.tem.certificate() {
            Some(certificate) => format!(", certified {}", certificate.epsilon),
            None => String::new(),
        };
        let (nominal, gamma) = (slf.tem.nominal(), slf.tem.gamma());
        let parameters = format!("epsilon={nominal}{certified}, gamma={gamma:.6}");
        slf.as_super().describe("Tem", &parameters)
    }
}
