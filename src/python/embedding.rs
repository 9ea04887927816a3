//! `fastdx.Embedding`.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::ndarray::ArrayView2;
use numpy::{PyArray2, PyArrayDyn, PyArrayMethods};
use pyo3::prelude::*;

use super::arguments::{as_strs, count, matrix, matrix_f32, shaped, strings, wrong_shape};
use super::errors::{warn_repeated, warn_unreadable};
use super::run::{run, run_with};
use super::source::Origin;
use super::space::{PySpace, Space};
use crate::distance::search::HnswParameters;
use crate::policy::{Builtin, IndexSource, builtin_index};
use crate::words::embedding::format::{self, native};
use crate::{Embedding, Error, Vocabulary};

/// Words with their vectors and a metric on them.
///
/// Parameters
/// ----------
/// words : iterable of str
///     Distinct, non-empty words; a word's id is its position.
/// vectors : array_like of float, shape (V, n)
///     One row a word; kept as float32.
/// metric : str, optional
///     'euclidean' (default), 'manhattan', 'chebyshev', 'angular' (the angle, in radians) or
///     'poincare' (the hyperbolic distance on the unit ball).
///
/// Raises
/// ------
/// ParameterError
///     No word, an empty word, an unknown metric.
/// DuplicateWordError
///     A word stands twice.
/// ShapeError
///     `vectors` is not (V, n) with n ≥ 1.
/// VectorError
///     A vector holds NaN or an infinity in float32, or is no point of the metric's space.
///
/// Examples
/// --------
/// >>> import fastdx
/// >>> e = fastdx.Embedding(["cat", "dog"], [[0.0, 0.0], [3.0, 4.0]])
/// >>> e.distance("cat", "dog")
/// 5.0
#[pyclass(frozen, extends = PySpace, name = "Embedding", module = "fastdx")]
pub(super) struct PyEmbedding(pub(super) Arc<Embedding>);

#[pymethods]
impl PyEmbedding {
    #[new]
    #[pyo3(signature = (words, vectors, *, metric = "euclidean"))]
    fn made(
        py: Python<'_>,
        words: &Bound<'_, PyAny>,
        vectors: &Bound<'_, PyAny>,
        metric: &str,
    ) -> PyResult<Space> {
        let metric = metric.parse()?;
        let words = strings("words", words)?;
        let (numbers, rows, dim) = matrix_f32("vectors", vectors)?;
        if rows != words.len() {
            let expected = format!("({}, n), a row a word", words.len());
            return Err(wrong_shape("vectors", expected, &[rows, dim]));
        }
        let embedding = run(py, false, |_| {
            Embedding::new(Vocabulary::new(as_strs(&words))?, numbers, dim, metric)
        })?;
        warn_unreadable(py, embedding.vocabulary())?;
        Space::new(py, embedding, None)
    }

    /// Loads an embedding from a file, plain or gzipped.
    ///
    /// The format is detected by content: GloVe text, word2vec text or binary, fastText .vec, a
    /// .npy array with a vocabulary file, or fastdx's own.
    ///
    /// Of a repeated word the first vector counts, with a warning. A gzipped file may unpack to 32 times its own size or 256 MB, whichever is larger.
    ///
    /// Parameters
    /// ----------
    /// path : str or os.PathLike
    ///     The file.
    /// format : str, optional
    ///     'fastdx', 'glove', 'word2vec-text', 'fasttext', 'word2vec-binary' or 'npy', to
    ///     overrule what the content looks like.
    /// limit : int, optional
    ///     Only the first so many words.
    /// metric : str, optional
    ///     The metric; by default the one a file of ours names, else 'euclidean'.
    /// vocabulary : str or os.PathLike, optional
    ///     For .npy: the words, one a line. By default the array's path with the ending .vocab
    ///     or .txt.
    /// verify : bool, optional
    ///     For a file of ours: check every checksum (default). Without, opening takes
    ///     milliseconds whatever the size.
    ///
    /// Raises
    /// ------
    /// FileNotFoundError, OSError
    ///     The file cannot be read.
    /// FormatError
    ///     A line or word that is wrong, named: bytes that are not UTF-8, a ragged line, a
    ///     number that is none or not finite, a truncated file.
    /// CorruptFileError
    ///     A file of ours that is damaged, truncated, extended or foreign.
    #[staticmethod]
    #[pyo3(signature = (path, *, format = None, limit = None, metric = None, vocabulary = None, verify = true))]
    #[allow(clippy::too_many_arguments)]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        format: Option<&str>,
        limit: Option<&Bound<'_, PyAny>>,
        metric: Option<&str>,
        vocabulary: Option<PathBuf>,
        verify: bool,
    ) -> PyResult<Space> {
        let options = format::Options {
            format: format.map(str::parse).transpose()?,
            limit: limit.map(|l| count("limit", l)).transpose()?,
            metric: metric.map(str::parse).transpose()?,
            vocabulary,
            verify,
        };
        let (embedding, repeated) =
            run(py, true, |control| format::load(&path, &options, control))?;
        warn_repeated(py, repeated)?;
        warn_unreadable(py, embedding.vocabulary())?;
        let source = IndexSource {
            file: Some(std::path::absolute(&path).map_err(Error::io(&path))?),
            format: options.format.map(|format| format.name().to_owned()),
            limit: options.limit,
            metric: options.metric,
            vocabulary: options.vocabulary,
            ..IndexSource::default()
        };
        Space::new(py, embedding, Some(Origin::Words(source)))
    }

    /// An embedded vocabulary; no network is used.
    ///
    /// Parameters
    /// ----------
    /// name : str, optional
    ///     'english' (default): 20,000 common English words in 50 dimensions, Euclidean, made
    ///     from all-MiniLM-L6-v2 (Apache-2.0) on the most frequent words of wordfreq
    ///     (CC BY-SA 4.0). 'nouns': 10,498 common nouns in 10 dimensions on the Poincaré ball,
    ///     trained on WordNet's is-a hierarchy (WordNet's licence). See NOTICE.
    ///
    /// Raises
    /// ------
    /// ParameterError
    ///     Another name.
    ///
    /// Examples
    /// --------
    /// >>> import fastdx
    /// >>> e = fastdx.Embedding.default()
    /// >>> len(e), e.dim, e.metric
    /// (20000, 50, 'euclidean')
    /// >>> fastdx.Embedding.default("nouns")
    /// Embedding(10498 words × 10, poincare)
    #[staticmethod]
    #[pyo3(signature = (name = "english"))]
    pub(super) fn default(py: Python<'_>, name: &str) -> PyResult<Space> {
        let builtin = name.parse::<Builtin>();
        let builtin = builtin.map_err(|error| error.renamed("builtin", "name"))?;
        let origin = Origin::Words(IndexSource::builtin(builtin));
        let index = run(py, false, |_| builtin_index(builtin))?;
        Space::new(py, index, Some(origin))
    }

    /// All vectors: a read-only float32 array of shape (V, n), a view and no copy.
    #[getter]
    fn vectors<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let embedding = &slf.get().0;
        let shape = (embedding.len(), embedding.dim());
        let view = ArrayView2::from_shape(shape, embedding.vectors())
            .map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))?;
        // SAFETY: the class is frozen and holds the vectors in an Arc that never changes, and
        // the array keeps the object alive.
        let array = unsafe { PyArray2::borrow_from_array(&view, slf.clone().into_any()) };
        array.readwrite().make_nonwriteable();
        Ok(array)
    }

    /// The dimension of the vectors.
    #[getter]
    fn dim(&self) -> usize {
        self.0.dim()
    }

    /// The nearest words of arbitrary points, exactly.
    ///
    /// Parameters
    /// ----------
    /// vectors : array_like of float, shape (m, n)
    ///     The points.
    /// k : int, optional
    ///     How many words for each.
    ///
    /// Returns
    /// -------
    /// ids : numpy.ndarray of uint32, shape (m, k)
    ///     Nearest first, ties by id.
    /// distances : numpy.ndarray of float64, shape (m, k)
    ///     In the embedding's metric.
    ///
    /// Raises
    /// ------
    /// ParameterError
    ///     `k` outside 1..V.
    /// ShapeError
    ///     `vectors` is not (m, n).
    /// VectorError
    ///     A point that is not finite, or not in the metric's space.
    #[pyo3(signature = (vectors, k = None), text_signature = "($self, vectors, k=1)")]
    #[allow(clippy::type_complexity)]
    fn nearest<'py>(
        &self,
        py: Python<'py>,
        vectors: &Bound<'py, PyAny>,
        k: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyArrayDyn<u32>>, Bound<'py, PyArrayDyn<f64>>)> {
        let k = k.map_or(Ok(1), |k| count("k", k))?;
        let (queries, m, columns) = matrix::<f64>("vectors", vectors)?;
        if columns != self.0.dim() {
            let expected = format!("(m, {})", self.0.dim());
            return Err(wrong_shape("vectors", expected, &[m, columns]));
        }
        let work = m.saturating_mul(self.0.vectors().len());
        let (ids, distances) = run(py, work > 1 << 24, |control| {
            self.0.nearest(&queries, k, control)
        })?;
        Ok((shaped(py, ids, &[m, k])?, shaped(py, distances, &[m, k])?))
    }

    /// Returns the same embedding with an HNSW graph (Malkov and Yashunin, by hnsw_rs), for
    /// ``search='hnsw'``.
    ///
    /// The graph lives in memory: files and pickles do not hold it. Approximate search behind a
    /// noise mechanism costs no privacy and changes its law: one seed gives both searches the
    /// same noise, to compare. On every vocabulary measured so far the exact search was faster than
    /// a graph of the same recall wherever words change (docs/research/speed.md).
    ///
    /// Parameters
    /// ----------
    /// m : int, optional
    ///     Links of a word, 2 to 128 (32 by default).
    /// ef_construction : int, optional
    ///     Candidates looked at for each link, 1 to 10,000 (200 by default).
    /// seed : int, optional
    ///     Of the order of insertion, one word after the other: one seed, one graph (0 by default).
    /// progress : callable, optional
    ///     Called now and then with the number of words done.
    ///
    /// Raises
    /// ------
    /// ParameterError
    ///     A parameter outside its range.
    #[pyo3(signature = (m = None, *, ef_construction = None, seed = None, progress = None))]
    fn build_hnsw(
        &self,
        py: Python<'_>,
        m: Option<&Bound<'_, PyAny>>,
        ef_construction: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Space> {
        let default = HnswParameters::default();
        let number = |name, value: Option<&Bound<'_, PyAny>>, default| {
            value.map_or(Ok(default), |value| count(name, value))
        };
        let parameters = HnswParameters {
            m: number("m", m, default.m)?,
            ef_construction: number("ef_construction", ef_construction, default.ef_construction)?,
            seed: super::arguments::seed(seed)?.unwrap_or(default.seed),
        };
        let embedding = run_with(py, true, progress, |control| {
            self.0.build_hnsw(parameters, control)
        })?;
        Space::new(py, embedding, None)
    }

    /// Whether the embedding has an HNSW graph.
    #[getter]
    fn has_hnsw(&self) -> bool {
        self.0.hnsw().is_some()
    }

    /// Writes the embedding in fastdx's own format, which opens by memory-mapping.
    ///
    /// The file is first written beside its target and then renamed.
    ///
    /// Parameters
    /// ----------
    /// path : str or os.PathLike
    ///     The file.
    /// storage : str, optional
    ///     'float32', or 'int16' for half the size (16-bit integers with a scale a word, decoded
    ///     on opening: the vectors change by at most 1.6e-5 of a word's largest coordinate).
    ///
    /// Raises
    /// ------
    /// OSError
    ///     The file cannot be written.
    #[pyo3(signature = (path, *, storage = "float32"))]
    fn save(&self, py: Python<'_>, path: PathBuf, storage: &str) -> PyResult<()> {
        let storage = storage.parse()?;
        run(py, true, |_| native::save_as(&self.0, &path, storage))
    }
}
