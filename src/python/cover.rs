//! `fastdx.Cover`.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyTuple};

use super::arguments::{Text, count, exclude, numbers, real, strings};
use super::errors::wrong_type;
use super::graph::{PyWordGraph, edges_of};
use super::run::{run, run_with};
use super::source::Reduced;
use super::space::Space;
use crate::cover::{Balance, Build};
use crate::{Cover, Error, MetricSpace, Vocabulary, WordGraph};

/// The fewest words of a kind that is released, by default.
const LEAST_OF_A_KIND: usize = 10;

/// The words that every output stands for.
///
/// A cover gives every output y a fixed public set A_y of words. ``Tem(space, epsilon,
/// cover=cover)`` scores y by the distance from the word to the nearest word of A_y. Tem's proof
/// holds for any sets. With k outputs at distance 0 from every word, no output is likelier than
/// 1/k. See docs/research/covers.md.
///
/// Created by `nearest`, `balanced`, `hypernyms`, `from_sets` or `identity`; immutable, can be
/// pickled.
///
/// All these take ``exclude``, words that are never released: an iterable of str, a file with one
/// word per line (os.PathLike or str), or ``"offensive"``, the built-in list. Words that the space
/// does not have are never released anyway. ``least`` is the minimum size of a set: an output that
/// stands for fewer words adds its own nearest words.
///
/// Examples
/// --------
/// >>> from fastdx import Cover, Embedding, Tem
/// >>> e = Embedding(["tea", "coffee", "king", "queen"], [[0.0], [0.1], [5.0], [5.2]])
/// >>> cover = Cover.nearest(e, 2)
/// >>> cover.sets("tea"), cover.k
/// (['tea', 'coffee', 'king'], 2)
/// >>> Tem(e, 2.0, cover=cover).probabilities("tea").round(3).tolist()
/// [0.262, 0.262, 0.238, 0.238]
#[pyclass(frozen, name = "Cover", module = "fastdx")]
pub(super) struct PyCover {
    pub(super) inner: Arc<Cover>,
    space: Space,
}

/// The ids that `exclude=` selects: words, a file of words or `"offensive"`.
pub(super) fn exclusion(
    vocabulary: &Vocabulary,
    given: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<u32>> {
    match given {
        None => Ok(Vec::new()),
        Some(given) => Ok(exclude(given)?.ids(vocabulary)?),
    }
}

/// The words of some ids, in their order.
pub(super) fn words_of(vocabulary: &Vocabulary, ids: &[u32]) -> Vec<String> {
    let words = ids.iter().map(|&id| vocabulary.word(id).to_owned());
    words.collect()
}

impl PyCover {
    pub(super) fn new(inner: Arc<Cover>, space: Space) -> Self {
        PyCover { inner, space }
    }
}

/// The options that all constructors take.
fn build(
    space: &dyn MetricSpace,
    least: Option<&Bound<'_, PyAny>>,
    exclude: Option<&Bound<'_, PyAny>>,
) -> PyResult<Build> {
    let default = Build::default().least;
    Ok(Build {
        least: least.map_or(Ok(default), |least| count("least", least))?,
        exclude: exclusion(space.vocabulary(), exclude)?,
    })
}

#[pymethods]
impl PyCover {
    /// A cover in which every word is at distance 0 from its k nearest outputs, including itself.
    ///
    /// Parameters
    /// ----------
    /// space : Embedding or WordGraph
    ///     Words and metric.
    /// k : int
    ///     Outputs a word.
    /// least : int, optional
    ///     Outputs that stand for fewer words (default 3) take their own nearest words in.
    /// exclude : iterable of str, path, or 'offensive', optional
    ///     Words that are never released.
    /// progress : callable, optional
    ///     Called now and then with the number of words done.
    ///
    /// Raises
    /// ------
    /// ParameterError
    ///     A `k` that is not from 1 to the number of outputs.
    #[staticmethod]
    #[pyo3(signature = (space, k, *, least = None, exclude = None, progress = None))]
    fn nearest(
        py: Python<'_>,
        space: Space,
        k: &Bound<'_, PyAny>,
        least: Option<&Bound<'_, PyAny>>,
        exclude: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let words = space.space();
        let (k, build) = (count("k", k)?, build(&*words, least, exclude)?);
        let cover = run_with(py, true, progress, |control| {
            Cover::nearest(&*words, k, &build, control)
        })?;
        Ok(PyCover::new(Arc::new(cover), space))
    }

    /// A cover in which every word is at distance 0 from k outputs that are near and of similar
    /// frequency.
    ///
    /// C(w) are the k outputs with the smallest d(w,y) + weight·m·abs(log2 f(w) - log2 f(y)), where
    /// m is the median distance to the 20th neighbour. The most frequent word of a set is then not
    /// an easy guess.
    ///
    /// Parameters
    /// ----------
    /// space : Embedding or WordGraph
    ///     Words and metric.
    /// k : int
    ///     Outputs a word.
    /// frequencies : array_like of float, shape (V,), optional
    ///     How often each word occurs, from a public source: never from the texts that are to be
    ///     protected. By default by rank, for vocabularies in order of frequency (the built-in
    ///     English one is): 1/(rank + 2.7).
    /// weight : float, optional
    ///     What a factor of 2 in frequency costs, in median distances (default 0.1).
    /// least, exclude, progress : optional
    ///     As for `nearest`.
    #[staticmethod]
    #[pyo3(signature = (space, k, *, frequencies = None, weight = None, least = None, exclude = None, progress = None))]
    #[allow(clippy::too_many_arguments)]
    fn balanced(
        py: Python<'_>,
        space: Space,
        k: &Bound<'_, PyAny>,
        frequencies: Option<&Bound<'_, PyAny>>,
        weight: Option<&Bound<'_, PyAny>>,
        least: Option<&Bound<'_, PyAny>>,
        exclude: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let words = space.space();
        let (k, build) = (count("k", k)?, build(&*words, least, exclude)?);
        let weight = weight.map_or(Ok(0.1), |weight| real("weight", weight))?;
        let size = words.vocabulary().len();
        let balance = match frequencies {
            None => Balance::by_rank(size, weight),
            Some(given) => Balance::of_counts(&numbers("frequencies", given)?, size, weight)?,
        };
        let cover = run_with(py, true, progress, |control| {
            Cover::balanced(&*words, k, &balance, &build, control)
        })?;
        Ok(PyCover::new(Arc::new(cover), space))
    }

    /// A cover in which every output is a kind: "ohio" becomes "state", as in ICDM'19's table I.
    ///
    /// The output y stands for y and all words below it, and is released only if these are at
    /// least `least` words. Its weight is 1 over their number, so that smaller kinds are likelier.
    /// A word without such a kind is at distance 0 from no output: it is replaced by kinds that
    /// are near in the space. See docs/how-to/bring-your-own.md.
    ///
    /// Parameters
    /// ----------
    /// edges : str, os.PathLike or iterable of (str, str), optional
    ///     Pairs (word, kind), as for `WordGraph`. By default common nouns, places and names of
    ///     WordNet, each in its first sense.
    /// least : int, optional
    ///     The fewest words that an output stands for (default 10).
    /// order : Embedding or WordGraph, optional
    ///     The words and metric of the cover, by default steps between the words of the edges.
    /// min_count : int, optional
    ///     As for `WordGraph`: the file's third column holds counts.
    /// exclude : iterable of str, path, or 'offensive', optional
    ///     Words that are never released.
    ///
    /// Raises
    /// ------
    /// FormatError
    ///     A line that is no edge.
    /// ParameterError
    ///     A cycle, by its words; `least` below 1 or above the words of the largest
    ///     kind.
    ///
    /// Examples
    /// --------
    /// >>> from fastdx import Cover, Tem
    /// >>> cover = Cover.hypernyms(least=50)
    /// >>> cover.outputs("ohio")
    /// ['entity', 'location', 'district', 'object', 'state']
    /// >>> tem = Tem(cover.space, 8.0, cover=cover)
    #[staticmethod]
    #[pyo3(signature = (edges = None, *, least = None, order = None, min_count = None, exclude = None))]
    fn hypernyms(
        py: Python<'_>,
        edges: Option<Bound<'_, PyAny>>,
        least: Option<&Bound<'_, PyAny>>,
        order: Option<Space>,
        min_count: Option<&Bound<'_, PyAny>>,
        exclude: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let edges = match edges {
            Some(edges) if edges.is_instance_of::<PyWordGraph>() => {
                let reason = "edges must be pairs (word, kind): a WordGraph has no direction";
                return Err(wrong_type(reason.into()));
            }
            Some(edges) => edges,
            None => py
                .import("fastdx.channel.hierarchy")?
                .call_method0("pairs")?,
        };
        let edges = edges_of(&edges, false, min_count)?;
        let space = match order {
            Some(order) => order,
            None => {
                let graph = run(py, true, |_| WordGraph::new(&edges, None, None))?;
                Space::new(py, graph, None)?
            }
        };
        let words = space.space();
        let least = least.map_or(Ok(LEAST_OF_A_KIND), |least| count("least", least))?;
        let exclude = exclusion(words.vocabulary(), exclude)?;
        let cover = run(py, true, |_| {
            Cover::hypernyms(&*words, &edges, least, &exclude)
        })?;
        Ok(PyCover::new(Arc::new(cover), space))
    }

    /// A cover of any sets.
    ///
    /// Parameters
    /// ----------
    /// space : Embedding or WordGraph
    ///     Words and metric.
    /// sets : mapping of str to iterable of str
    ///     For every output the words that it stands for. Words that are no key, or whose set is
    ///     empty, are never released.
    ///
    /// Raises
    /// ------
    /// UnknownWordError
    ///     A word that the space does not have.
    /// ParameterError
    ///     No set holds a word.
    #[staticmethod]
    fn from_sets(space: Space, sets: &Bound<'_, PyAny>) -> PyResult<Self> {
        let words = space.space();
        let pairs = sets
            .call_method0("items")
            .map_err(|_| wrong_type("sets must be a mapping of str to iterables of str".into()))?;
        let vocabulary = words.vocabulary();
        let mut all = vec![Vec::new(); vocabulary.len()];
        for pair in pairs.try_iter()? {
            let (output, set): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
            let output = output
                .extract::<PyBackedStr>()
                .map_err(|_| wrong_type("sets must have keys of str".into()))?;
            let set = strings("sets", &set)?;
            let ids = set.iter().map(|word| vocabulary.require(word));
            all[vocabulary.require(&output)? as usize] = ids.collect::<crate::Result<_>>()?;
        }
        let cover = Cover::from_members(&*words, all)?;
        Ok(PyCover::new(Arc::new(cover), space))
    }

    /// A cover in which every word stands for itself, except the excluded ones: Tem as published.
    #[staticmethod]
    #[pyo3(signature = (space, *, exclude = None))]
    fn identity(space: Space, exclude: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let words = space.space();
        let cover = Cover::identity(&*words, &exclusion(words.vocabulary(), exclude)?)?;
        Ok(PyCover::new(Arc::new(cover), space))
    }

    /// Reads the cover from a file that `save`, or a Tem's `save`, wrote.
    ///
    /// Raises
    /// ------
    /// CorruptFileError
    ///     A damaged file, or one without a cover.
    /// ParameterError
    ///     A cover of other words, vectors or metric than those of `space`.
    #[staticmethod]
    fn load(py: Python<'_>, space: Space, path: PathBuf) -> PyResult<Self> {
        let words = space.space();
        let cover = run(py, true, |_| {
            let cover = Cover::open(&path)?;
            cover.check_space(&*words)?;
            Ok(cover)
        })?;
        Ok(PyCover::new(Arc::new(cover), space))
    }

    /// Writes the cover to a file of its own.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        run(py, true, |_| self.inner.save(&path))
    }

    /// Returns the same sets with weights q_y > 0: outputs are released in proportion to their
    /// weights.
    ///
    /// Parameters
    /// ----------
    /// weights : array_like of float, shape (V,)
    ///     One a word of the space; public, and within a factor of 1e9 of each other.
    fn weighted(&self, py: Python<'_>, weights: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (weights, words) = (numbers("weights", weights)?, self.space.space());
        let size = words.vocabulary().len();
        if weights.len() != size {
            let expected = format!("one for each of the {size} words");
            return Err(Error::parameter("weights", expected, weights.len()).into());
        }
        let cover = Arc::new(self.inner.weighted(|id| weights[id as usize])?);
        Ok(PyCover::new(cover, self.space.clone_ref(py)))
    }

    /// The words that an output stands for, in order of their ids; none if it is never released.
    fn sets(&self, output: Text) -> PyResult<Vec<String>> {
        let space = self.space.space();
        let rank = self.inner.rank(space.vocabulary().require(&output)?);
        let set = rank.map_or(&[][..], |rank| self.inner.set(rank));
        Ok(words_of(space.vocabulary(), set))
    }

    /// The outputs at distance 0 from a word, in order of their ids.
    fn outputs(&self, word: Text) -> PyResult<Vec<String>> {
        let (cover, space) = (&self.inner, self.space.space());
        let ranks = cover.outputs(space.vocabulary().require(&word)?).iter();
        let ids: Vec<u32> = ranks.map(|&rank| cover.released()[rank as usize]).collect();
        Ok(words_of(space.vocabulary(), &ids))
    }

    /// The words and their metric.
    #[getter]
    fn space(&self, py: Python<'_>) -> Space {
        self.space.clone_ref(py)
    }

    /// The least number of outputs at distance 0 from a word.
    #[getter]
    fn k(&self) -> usize {
        self.inner.k()
    }

    /// An upper bound on the probability of any output of Tem, for every word and ε; 1/k without
    /// weights.
    #[getter]
    fn floor(&self) -> f64 {
        self.inner.floor()
    }

    /// The words that are never released.
    #[getter]
    fn excluded(&self) -> Vec<String> {
        words_of(self.space.space().vocabulary(), &self.inner.excluded_ids())
    }

    /// Fingerprint of the sets, the weights, and the words, vectors and metric they belong to.
    #[getter]
    fn fingerprint(&self) -> String {
        format!("{:016x}", self.inner.fingerprint())
    }

    /// The number of outputs.
    fn __len__(&self) -> usize {
        self.inner.released().len()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let other = other.cast::<PyCover>();
        other.is_ok_and(|other| other.get().inner.fingerprint() == self.inner.fingerprint())
    }

    fn __hash__(&self) -> u64 {
        self.inner.fingerprint()
    }

    fn __repr__(&self) -> String {
        let cover = &self.inner;
        let weighted = if cover.is_weighted() {
            ", weighted"
        } else {
            ""
        };
        format!(
            "Cover({} outputs, k={}{weighted}, {:016x})",
            cover.released().len(),
            cover.k(),
            cover.fingerprint()
        )
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let (core, space) = (py.import("fastdx._core")?, self.space.clone_ref(py));
        let own = space.cover().filter(|_| space.is_referenced());
        if own.is_some_and(|own| own.fingerprint() == self.inner.fingerprint()) {
            let known = PyTuple::new(py, [space])?;
            return Ok((core.getattr("space_cover")?, known));
        }
        let bytes = PyBytes::new(py, &self.inner.to_bytes());
        let made = py.get_type::<Self>().getattr("_from_bytes")?;
        Ok((made, (space, bytes).into_pyobject(py)?))
    }

    #[staticmethod]
    fn _from_bytes(space: Space, data: &Bound<'_, PyBytes>) -> PyResult<Self> {
        let cover = Cover::from_bytes(data.as_bytes())?;
        cover.check_space(&*space.space())?;
        Ok(PyCover::new(Arc::new(cover), space))
    }
}
