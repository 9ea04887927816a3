//! `fastdx.MultivariateLaplace`.

use std::sync::Arc;

use numpy::PyArrayDyn;
use pyo3::prelude::*;

use super::arguments::{count, matrix, real, shape_text, shaped};
use super::embedding::PyEmbedding;
use super::mechanism::{Common, NewArguments, PyMechanism};
use super::run::run;
use super::words::Words;
use crate::search::{HnswParameters, Search, automatic};
use crate::{Error, Mechanism, MultivariateLaplace, Randomness};

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
///     'exact' (default): the nearest word is the true one. 'hnsw': the one that a graph leads
///     to, built if the embedding has none; private all the same, but another law (see
///     ``Embedding.search_quality``). 'auto': exact up to V·n = 120,000,000; ``.search`` says.
/// ef : int, optional
///     For 'hnsw': candidates looked at, 1 to 10,000 (256 by default).
/// oov, skip, consistent, seed, pad : optional
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
    pub(super) laplace: Arc<MultivariateLaplace>,
}

#[pymethods]
impl PyMultivariateLaplace {
    #[new]
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (embedding = None, epsilon = None, *, search = "exact", ef = None, oov = "random", skip = None, consistent = None, seed = None, pad = None))]
    fn new(
        py: Python<'_>,
        embedding: Option<&Bound<'_, PyAny>>,
        epsilon: Option<&Bound<'_, PyAny>>,
        search: &str,
        ef: Option<&Bound<'_, PyAny>>,
        oov: &str,
        skip: Option<&Bound<'_, PyAny>>,
        consistent: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        pad: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let mut common = Common::new(py, embedding, epsilon, oov, skip, consistent, seed, pad)?;
        let mut embedding = common.words.vectors(py)?;
        let mut search = match search {
            "exact" => Search::Exact,
            "hnsw" => Search::Hnsw { ef: 256 },
            "auto" => automatic(embedding.len(), embedding.dim()),
            _ => {
                let expected = "'exact', 'hnsw' or 'auto'";
                return Err(Error::parameter("search", expected, format!("{search:?}")).into());
            }
        };
        if let (Some(given), Search::Hnsw { ef }) = (ef, &mut search) {
            *ef = count("ef", given)?;
        }
        let randomness = Randomness::new(common.seed);
        // What is wrong with the parameters is said before the graph is built.
        MultivariateLaplace::new(embedding.clone(), common.epsilon, randomness.clone())?;
        if search != Search::Exact && embedding.hnsw().is_none() {
            let built = run(py, true, |control| {
                embedding.build_hnsw(HnswParameters::default(), control)
            })?;
            let built = PyEmbedding::from(built);
            embedding = built.inner.clone();
            common.words = Words::Embedding(Py::new(py, built)?);
        }
        let laplace = MultivariateLaplace::new(embedding, common.epsilon, randomness)?;
        let laplace = Arc::new(laplace.with_search(search)?);
        let base = common.finish(laplace.clone());
        Ok(PyClassInitializer::from(base).add_subclass(PyMultivariateLaplace { laplace }))
    }

    /// The search: 'exact' or 'hnsw', whichever 'auto' chose.
    #[getter]
    fn search(&self) -> &'static str {
        match self.laplace.search() {
            Search::Exact => "exact",
            Search::Hnsw { .. } => "hnsw",
        }
    }

    /// Candidates that the search looks at, or None where it is exact.
    #[getter]
    fn ef(&self) -> Option<usize> {
        match self.laplace.search() {
            Search::Exact => None,
            Search::Hnsw { ef } => Some(ef),
        }
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
        keywords.set_item("search", slf.search())?;
        keywords.set_item("ef", slf.ef())?;
        let embedding = slf.as_super().words.object(py);
        Ok(((embedding, slf.laplace.epsilon()), keywords))
    }

    fn __repr__(slf: PyRef<'_, Self>) -> String {
        let search = match slf.laplace.search() {
            Search::Exact => String::new(),
            Search::Hnsw { ef } => format!(", search='hnsw', ef={ef}"),
        };
        let parameters = format!("epsilon={}{search}", slf.laplace.epsilon());
        slf.as_super().describe("MultivariateLaplace", &parameters)
    }
}
