//! `fastdx.channel`: the cores of `Channel`, `NgramPrior` and `Posterior`.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyArray1, PyArrayDyn};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::arguments::{as_strs, count, numbers, real, seed as seed_of, shaped, strings, word_ids};
use super::embedding::PyEmbedding;
use super::mechanism::PyMechanism;
use super::run::{run, run_with};
use super::source::Reduced;
use super::space::Space;
use super::text::TextArgument;
use crate::NgramPrior;
use crate::channel::{Bits, Channel, Posterior, TextOrTokens};
use crate::guarantee::measured::grouped;

/// An n-gram model of language over the words of a space, by interpolated Kneser-Ney.
///
/// Made by `train`, `english`, `of_frequencies` or `load`; immutable, may be pickled. Tokens are
/// the words of the space and one *unknown* token that stands for every other word: it has a
/// probability, and is a history like any word. The first word of a sentence (of a text, behind
/// '.', '!', '?' or an empty line) has a history of its own. What was never seen is filled up by
/// shorter histories, and in the end by frequencies, so no word is impossible.
///
/// Examples
/// --------
/// >>> from fastdx import Embedding
/// >>> from fastdx.channel import NgramPrior
/// >>> e = Embedding(["a", "b", "c"], [[0.0], [1.0], [2.0]])
/// >>> prior = NgramPrior.train(e, ["a b a b", "a b c"], order=2)
/// >>> int(prior.next(["a"]).argmax()), round(float(prior.next(["a"]).sum()), 9)
/// (1, 1.0)
#[pyclass(frozen, name = "NgramPrior", module = "fastdx.channel")]
pub(super) struct PyNgramPrior {
    inner: Arc<NgramPrior>,
    space: Space,
}

impl PyNgramPrior {
    pub(super) fn new(inner: Arc<NgramPrior>, space: Space) -> Self {
        PyNgramPrior { inner, space }
    }

    pub(super) fn inner(&self) -> &Arc<NgramPrior> {
        &self.inner
    }
}

fn frequencies_of(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Vec<f64>>> {
    given.map(|given| numbers("frequencies", given)).transpose()
}

#[pymethods]
impl PyNgramPrior {
    /// Counts the n-grams of public texts. Never of the texts that are to be protected.
    ///
    /// Parameters
    /// ----------
    /// space : Embedding or WordGraph
    ///     The words.
    /// texts : iterable of str
    ///     Public texts; words are found as a mechanism on this space finds them.
    /// order : int, optional
    ///     1 to 3 (2 by default): how many words, the next one included, depend on each other.
    /// frequencies : array_like of float, shape (V,), optional
    ///     How often words are written that the texts do not hold; by default 1/(rank + 2.7) in the
    ///     order of the space.
    /// progress : callable, optional
    ///     Called now and then with the number of texts done.
    ///
    /// Raises
    /// ------
    /// TooLargeError
    ///     More than two million words.
    #[staticmethod]
    #[pyo3(signature = (space, texts, order = None, *, frequencies = None, progress = None))]
    #[pyo3(text_signature = "(space, texts, order=2, *, frequencies=None, progress=None)")]
    fn train(
        py: Python<'_>,
        space: Space,
        texts: &Bound<'_, PyAny>,
        order: Option<&Bound<'_, PyAny>>,
        frequencies: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let texts = strings("texts", texts)?;
        let order = order.map_or(Ok(2), |order| count("order", order))?;
        let frequencies = frequencies_of(frequencies)?;
        let words = space.space();
        let inner = run_with(py, true, progress, |control| {
            let (texts, frequencies) = (as_strs(&texts), frequencies.as_deref());
            NgramPrior::train(words, &texts, order, frequencies, control)
        })?;
        Ok(Self::new(Arc::new(inner), space))
    }

    /// The built-in bigrams of English.
    ///
    /// Counted in six public sources, mostly conversations, definitions and speeches (NOTICE
    /// names them), with frequencies that are partly those of wordfreq. That is English in general:
    /// train a model on public texts of the kind that is protected where there are some.
    ///
    /// Parameters
    /// ----------
    /// space : Embedding or WordGraph, optional
    ///     The words: by default `Embedding.default()`. A space of some of these words, in any
    ///     order, has the model in which the other words are unknown ones.
    ///
    /// Raises
    /// ------
    /// ParameterError
    ///     A space with words that are not built in.
    ///
    /// Examples
    /// --------
    /// >>> from fastdx.channel import NgramPrior
    /// >>> prior = NgramPrior.english()
    /// >>> prior.space.words[prior.next(["at", "the", "same"]).argmax()]
    /// 'time'
    #[staticmethod]
    #[pyo3(signature = (space = None))]
    fn english(py: Python<'_>, space: Option<Space>) -> PyResult<Self> {
        let space = match space {
            Some(space) => space,
            None => PyEmbedding::default(py, "english")?,
        };
        let words = space.space();
        let inner = run(py, true, |_| NgramPrior::english(Some(words)))?;
        Ok(Self::new(Arc::new(inner), space))
    }

    /// The model without history: `space` and `frequencies` as for `train`. `unknown` is how often
    /// a word is written that the space does not have.
    #[staticmethod]
    #[pyo3(signature = (space, frequencies = None, *, unknown = None))]
    #[pyo3(text_signature = "(space, frequencies=None, *, unknown=0.0)")]
    fn of_frequencies(
        space: Space,
        frequencies: Option<&Bound<'_, PyAny>>,
        unknown: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let unknown = unknown.map_or(Ok(0.0), |given| real("unknown", given))?;
        let frequencies = frequencies_of(frequencies)?;
        let made = NgramPrior::of_frequencies(space.space(), frequencies.as_deref(), unknown)?;
        Ok(Self::new(Arc::new(made), space))
    }

    /// Reads what `save` wrote.
    ///
    /// Raises
    /// ------
    /// ParameterError
    ///     The model is of other words, or of the same in another order.
    /// CorruptFileError
    ///     The file is damaged, or holds no model.
    #[staticmethod]
    fn load(py: Python<'_>, space: Space, path: PathBuf) -> PyResult<Self> {
        let words = space.space();
        let inner = run(py, true, |_| NgramPrior::open(words, &path))?;
        Ok(Self::new(Arc::new(inner), space))
    }

    /// Writes the model to a file: to a temporary sibling first, which then replaces `path`.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        run(py, true, |_| self.inner.save(&path))
    }

    /// The probability of every word behind the words of a sentence's beginning.
    ///
    /// Given that the next word is known: float64, shape (V,), sums to 1. `words` may be none, or
    /// more than the order needs; a word that the space does not have counts as unknown.
    #[pyo3(signature = (words = None), text_signature = "($self, words=())")]
    fn next<'py>(
        &self,
        py: Python<'py>,
        words: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let words = words.map_or(Ok(Vec::new()), |words| strings("words", words))?;
        Ok(PyArray1::from_vec(py, self.inner.next(&as_strs(&words))))
    }

    /// The probability that the word behind these is one that the space does not have.
    #[pyo3(signature = (words = None), text_signature = "($self, words=())")]
    fn unknown_next(&self, words: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
        let words = words.map_or(Ok(Vec::new()), |words| strings("words", words))?;
        let mut all = Vec::new();
        let history = self.inner.tokens(&as_strs(&words));
        self.inner.fill_next(&history, &mut all);
        Ok(all.last().copied().unwrap_or(0.0))
    }

    /// The probability of each `second` word behind each `first` one, as pairs tell.
    ///
    /// Both are ids of words; float64, shape (first, second).
    fn behind<'py>(
        &self,
        py: Python<'py>,
        first: &Bound<'py, PyAny>,
        second: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let vocabulary = self.inner.space().vocabulary();
        let count = vocabulary.len();
        let [(first, _), (second, _)] = [word_ids(first, count)?, word_ids(second, count)?];
        vocabulary.check_ids(&first)?;
        vocabulary.check_ids(&second)?;
        let found = self.inner.behind(&first, &second);
        shaped(py, found, &[first.len(), second.len()])
    }

    /// Exp of the mean of -ln Pr[word | words before it] over the known words of texts.
    ///
    /// As `next`, given that the word is known; NaN where there is none.
    fn perplexity(&self, py: Python<'_>, texts: &Bound<'_, PyAny>) -> PyResult<f64> {
        let texts = strings("texts", texts)?;
        run(py, true, |_| Ok(self.inner.perplexity(&as_strs(&texts))))
    }

    /// How often each word is written, given that it is known: shape (V,), sums to 1.
    #[getter]
    fn frequencies<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.inner.frequencies())
    }

    /// How often a word is written that the space does not have.
    #[getter]
    fn unknown(&self) -> f64 {
        self.inner.unknown()
    }

    /// How many words, the next one included, depend on each other.
    #[getter]
    fn order(&self) -> usize {
        self.inner.order()
    }

    /// The words.
    #[getter]
    fn space(&self, py: Python<'_>) -> Space {
        self.space.clone_ref(py)
    }

    fn __repr__(&self) -> String {
        let (words, order) = (self.inner.space().vocabulary().len(), self.inner.order());
        let [words, pairs, triples] =
            [words, self.inner.seen().0, self.inner.seen().1].map(grouped);
        format!("NgramPrior({words} words, order {order}, {pairs} pairs, {triples} triples)")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let made = py.get_type::<Self>().getattr("_from_bytes")?;
        let known = (self.space.clone_ref(py), self._to_bytes(py));
        Ok((made, known.into_pyobject(py)?))
    }

    /// The model as a file holds it.
    fn _to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.to_bytes())
    }

    #[staticmethod]
    fn _from_bytes(space: Space, data: &Bound<'_, PyBytes>) -> PyResult<Self> {
        let inner = NgramPrior::from_bytes(space.space(), data.as_bytes())?;
        Ok(Self::new(Arc::new(inner), space))
    }
}

/// Bits, the ends of their interval, words drawn for it.
pub(super) type Interval = (f64, f64, f64, usize);

/// Ids, and how many each text has.
type Outputs<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>);

pub(super) fn interval(bits: Bits) -> Interval {
    (bits.value, bits.low, bits.high, bits.sampled)
}

/// The information that a release reveals: the core of `fastdx.channel.Channel`.
#[pyclass(frozen, name = "ChannelCore", module = "fastdx._core")]
pub(super) struct PyChannel(Arc<Channel>);

#[pymethods]
impl PyChannel {
    #[new]
    #[pyo3(signature = (mechanism, cache_bytes = None))]
    fn new(
        mechanism: PyRef<'_, PyMechanism>,
        cache_bytes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let cache_bytes = cache_bytes.map(|b| count("cache_bytes", b)).transpose()?;
        let channel = Channel::new(mechanism.text().clone(), cache_bytes)?;
        Ok(PyChannel(Arc::new(channel)))
    }

    #[pyo3(signature = (prior = None, sample = None))]
    fn bits(
        &self,
        py: Python<'_>,
        prior: Option<&Bound<'_, PyAny>>,
        sample: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Interval> {
        let prior = prior.map(|prior| numbers("prior", prior)).transpose()?;
        let sample = sample.map(|s| count("sample", s)).transpose()?;
        let prior = prior.as_deref();
        run(py, true, |control| self.0.bits(prior, sample, control)).map(interval)
    }

    fn capacity(&self, py: Python<'_>) -> PyResult<Interval> {
        run(py, true, |control| self.0.capacity(control)).map(interval)
    }

    /// The law of the output of an unknown word.
    fn unknown_law<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.0.unknown_law())
    }

    /// The columns of some outputs, one per row; in a `release` skipped words become themselves.
    #[pyo3(signature = (outputs, release = true))]
    fn columns<'py>(
        &self,
        py: Python<'py>,
        outputs: &Bound<'py, PyAny>,
        release: bool,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let words = self.0.vocabulary().len();
        let (outputs, _) = word_ids(outputs, words)?;
        let found = run(py, true, |control| {
            self.0.columns(&outputs, release, control)
        })?;
        shaped(py, found, &[outputs.len(), words])
    }

    /// Reads releases: a number for each word, and how many words each release has.
    fn observed<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        partly: bool,
    ) -> PyResult<Outputs<'py>> {
        let texts = strings("texts", texts)?;
        let (ids, lengths) = run(py, true, |control| {
            self.0.observed(&as_strs(&texts), partly, control)
        })?;
        Ok((PyArray1::from_vec(py, ids), PyArray1::from_vec(py, lengths)))
    }

    /// The laws of some words, one per row; in a `release` skipped words become themselves.
    #[pyo3(signature = (ids, release = true))]
    fn laws<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        release: bool,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let words = self.0.vocabulary().len();
        let (ids, _) = word_ids(ids, words)?;
        let laws = run(py, true, |control| self.0.laws(&ids, release, control))?;
        shaped(py, laws, &[ids.len(), words])
    }

    #[pyo3(signature = (text, prior, among = None))]
    fn decode(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyAny>,
        prior: PyRef<'_, PyNgramPrior>,
        among: Option<Vec<u32>>,
    ) -> PyResult<PyPosterior> {
        let given = match TextArgument::of("text", text)? {
            TextArgument::Text(text) => TextOrTokens::Text(text.to_string()),
            TextArgument::Tokens(tokens) => {
                TextOrTokens::Tokens(tokens.iter().map(ToString::to_string).collect())
            }
        };
        let prior = prior.inner.clone();
        let inner = run(py, true, |control| {
            self.0.decode(given, &prior, among.as_deref(), control)
        })?;
        Ok(PyPosterior(inner))
    }
}

/// The posterior of a text: the core of `fastdx.channel.Posterior`.
#[pyclass(frozen, name = "PosteriorCore", module = "fastdx._core")]
pub(super) struct PyPosterior(Posterior);

/// best, certainty, unknown, written of every word.
type Words<'py> = (
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<bool>>,
);

fn given<'py>(py: Python<'py>, text: TextOrTokens) -> PyResult<Bound<'py, PyAny>> {
    Ok(match text {
        TextOrTokens::Text(text) => PyString::new(py, &text).into_any(),
        TextOrTokens::Tokens(tokens) => tokens.into_pyobject(py)?,
    })
}

#[pymethods]
impl PyPosterior {
    fn __len__(&self) -> usize {
        self.0.words().len()
    }

    fn marginal<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut found = run(py, true, |control| self.0.marginal(place, control))?;
        found.pop();
        Ok(PyArray1::from_vec(py, found))
    }

    /// The likelihood of every known word at a place.
    fn likelihood<'py>(
        &self,
        py: Python<'py>,
        place: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut found = run(py, true, |control| self.0.likelihood(place, control))?;
        found.pop();
        Ok(PyArray1::from_vec(py, found))
    }

    fn words<'py>(&self, py: Python<'py>) -> Words<'py> {
        let words = || self.0.words().iter();
        (
            PyArray1::from_iter(py, words().map(|word| word.best)),
            PyArray1::from_iter(py, words().map(|word| word.certainty)),
            PyArray1::from_iter(py, words().map(|word| word.unknown)),
            PyArray1::from_iter(py, words().map(|word| word.written)),
        )
    }

    #[getter]
    fn exact(&self) -> bool {
        self.0.is_exact()
    }

    #[getter]
    fn log_evidence(&self) -> f64 {
        self.0.log_evidence()
    }

    #[getter]
    fn expected_right(&self) -> f64 {
        self.0.expected_right()
    }

    fn expected_counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut counts = run(py, true, |control| self.0.expected_counts(control))?;
        counts.pop();
        Ok(PyArray1::from_vec(py, counts))
    }

    #[pyo3(signature = (size, seed = None))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        size: &Bound<'py, PyAny>,
        seed: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (size, seed) = (count("m", size)?, seed_of(seed)?);
        let texts = run(py, true, |control| self.0.sample(size, seed, control))?;
        texts.into_iter().map(|text| given(py, text)).collect()
    }

    fn viterbi<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        given(py, run(py, true, |control| self.0.viterbi(control))?)
    }

    fn likeliest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let ids = run(py, true, |control| self.0.likeliest(control))?;
        Ok(PyArray1::from_vec(py, ids))
    }
}
