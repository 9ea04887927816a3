//! `fastdx.MultivariateLaplace`.

use std::sync::Arc;

use numpy::PyArrayDyn;
use pyo3::prelude::*;

use super::arguments::{matrix, real, shape_text, shaped};
use super::mechanism::{Common, NewArguments, PyMechanism};
use super::run::run;
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
///     'exact', the only one: the nearest word is the true one.
/// oov, skip, seed, pad : optional
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
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (embedding = None, epsilon = None, *, search = "exact", oov = "random", skip = None, seed = None, pad = None))]
    fn new(
        py: Python<'_>,
        embedding: Option<&Bound<'_, PyAny>>,
        epsilon: Option<&Bound<'_, PyAny>>,
        search: &str,
        oov: &str,
        skip: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        pad: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        if search != "exact" {
            return Err(Error::parameter("search", "'exact'", format!("{search:?}")).into());
        }
        let common = Common::new(py, embedding, epsilon, oov, skip, seed, pad)?;
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
