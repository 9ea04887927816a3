//! `fastdx.Mechanism`: the features that all mechanisms share. Thin, frozen classes around shared
//! core objects.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use numpy::{PyArray1, PyArrayDyn};
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyList, PyString};

use super::arguments::{Text, as_strs, count, real, shaped, strings, word_ids};
use super::channel::{Interval, interval};
use super::cover::{PyCover, words_of};
use super::embedding::PyEmbedding;
use super::errors::{warn_repeated, warn_unreadable, wrong_type};
use super::language_model::object_of;
use super::mechanisms::details_of;
use super::run::{run, run_in};
use super::source::Origin;
use super::space::Space;
use super::spec::{Described, parsed, shown_consistent};
use super::text::{PyReplacements, dict_of};
use super::warned::Warned;
use crate::channel::word_bits;
use crate::guarantee::measured::calibration;
use crate::guarantee::{Unchanged, WordBits};
use crate::mechanism::remapped::Remapped;
use crate::numbers::{Date, Number};
use crate::policy::{Built, Kind, Language, Public, Spaces, Spec};
use crate::support::fork::Once;
use crate::support::parallel::Control;
use crate::text::{
    Counts, PositionUnit, Replacements, TextPrivatizer, byte_ranges, padded, spans_in,
};
use crate::words::index::Index;
use crate::{Cover, Error, Mechanism, Result};

/// Number of words from which a call runs in the pool, where Ctrl-C is checked.
const LONG: usize = 64;

/// The features that every word mechanism has: the core of the classes in ``fastdx.mechanisms``.
///
/// Immutable: may be shared between threads. Every call draws fresh randomness from the operating
/// system, unless the mechanism was created with ``seed=``, which is for tests only.
#[pyclass(frozen, subclass, name = "MechanismCore", module = "fastdx._core")]
pub(super) struct PyMechanism {
    pub(super) built: Built,
    pub(super) space: Space,
    pub(super) warned: Warned,
    /// The bits that a release reveals about a word, once requested.
    bits: Once<WordBits>,
}

impl PyMechanism {
    /// Builds the mechanism of a description; keeps the Python object of the space if it does not
    /// change.
    fn build(py: Python<'_>, described: Described<'_>) -> PyResult<Self> {
        let Described {
            spec,
            parts,
            space,
            progress,
        } = described;
        spec.check()?;
        let (mut spaces, threads) = (Spaces::default(), spec.threads.unwrap_or(0));
        let built = run_in(py, threads, true, progress.as_ref(), |control| {
            spec.build(parts, &mut spaces, control)
        })?;
        warn_repeated(py, spaces.repeated)?;
        let space = match space {
            Some(space) if space.is(&built.index) => space,
            space => {
                let source = built.given().index.clone().unwrap_or_default();
                let named = source.file.is_some() || source.builtin.is_some();
                let read = source.file.is_some() && space.is_none();
                if read {
                    warn_unreadable(py, built.index.space().vocabulary())?;
                }
                let origin = named.then_some(Origin::Words(source));
                Space::new(py, built.index.clone(), origin)?
            }
        };
        Ok(Self::from_built(built, space))
    }

    fn from_built(built: Built, space: Space) -> Self {
        PyMechanism {
            built,
            space,
            warned: Warned::default(),
            bits: Once::new(),
        }
    }

    pub(super) fn text(&self) -> &TextPrivatizer {
        &self.built.text
    }

    pub(super) fn mechanism(&self) -> &Arc<dyn Mechanism> {
        self.text().mechanism()
    }

    /// The handling of text of this mechanism, around another word mechanism of its kind.
    pub(super) fn around(
        &self,
        space: Space,
        mechanism: Arc<dyn Mechanism>,
        spec: Spec,
    ) -> PyResult<Self> {
        let built = self.built.around(mechanism, space.index.clone(), spec)?;
        Ok(Self::from_built(built, space))
    }

    /// Runs work that takes no part in the padding of a call.
    pub(super) fn run_unpadded<T: Send>(
        &self,
        py: Python<'_>,
        long: bool,
        work: impl FnOnce(&Control) -> Result<T> + Send,
    ) -> PyResult<T> {
        run_in(
            py,
            self.built.given().threads.unwrap_or(0),
            long,
            None,
            work,
        )
    }

    /// [`run`], answering only after a multiple of the padding time.
    pub(super) fn run<T: Send>(
        &self,
        py: Python<'_>,
        long: bool,
        work: impl FnOnce(&Control) -> Result<T> + Send,
    ) -> PyResult<T> {
        let start = Instant::now();
        let result = self.run_unpadded(py, long, work);
        if let Some(pad) = self.built.pad {
            py.detach(|| {
                let end = padded(start, Instant::now(), pad);
                // A sleep returns some ten microseconds late: the last part is a busy wait.
                let sleep = end.saturating_duration_since(Instant::now());
                std::thread::sleep(sleep.saturating_sub(Duration::from_micros(150)));
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
            });
        }
        result
    }

    pub(super) fn texts(
        &self,
        py: Python<'_>,
        texts: &[PyBackedStr],
    ) -> PyResult<(Vec<String>, Counts)> {
        let size: usize = texts.iter().map(|t| t.len()).sum();
        self.run(py, size > 8 * LONG, |control| {
            self.text().privatize_texts(&as_strs(texts), control)
        })
    }

    /// Pieces of a text or column: with `consistent='call'` the earlier pieces, of `first` texts,
    /// count as this call's.
    pub(super) fn texts_with(
        &self,
        py: Python<'_>,
        texts: &[&str],
        kept: &PyReplacements,
        first: usize,
    ) -> PyResult<(Vec<String>, Counts)> {
        // Outside the pool: a worker that waits for a lock may hold up its holder.
        let Ok(mut kept) = kept.0.try_lock() else {
            let expected = "those of one call at a time";
            return Err(Error::parameter("replacements", expected, "in use").into());
        };
        let kept = &mut *kept;
        let size: usize = texts.iter().map(|t| t.len()).sum();
        self.run(py, size > 8 * LONG, |control| {
            let made = self.text().privatize_texts_with(texts, kept, control);
            made.map_err(|e| e.after_texts(first))
        })
    }

    /// How often common words come back unchanged; measured at the first call. Where the law depends
    /// on what was released before, that of the Tem without it.
    pub(super) fn unchanged(&self, py: Python<'_>) -> PyResult<Unchanged> {
        self.run_unpadded(py, true, |control| match self.mechanism().in_order() {
            None => self.text().unchanged(control),
            Some(tem) => calibration::unchanged(tem.tem(), control),
        })
    }

    /// The bits that a release reveals about a word; computed at the first call, at a bounded cost.
    pub(super) fn bits(&self, py: Python<'_>) -> PyResult<WordBits> {
        if let Some(known) = self.bits.get() {
            return Ok(*known);
        }
        let found = self.run_unpadded(py, true, |control| word_bits(self.text(), control))?;
        Ok(*self.bits.get_or_init(|| found))
    }
}

#[pymethods]
impl PyMechanism {
    /// A mechanism from keyword arguments, or one that shares everything with another.
    #[new]
    #[pyo3(signature = (kind, space = None, arguments = None))]
    fn new(
        kind: &Bound<'_, PyAny>,
        space: Option<&Bound<'_, PyAny>>,
        arguments: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let py = kind.py();
        if let Ok(other) = kind.cast::<PyMechanism>() {
            let other = other.get();
            let (made, spec) = (other.mechanism().clone(), other.built.given().clone());
            return other.around(other.space.clone_ref(py), made, spec);
        }
        let kind = kind.extract::<PyBackedStr>()?;
        let arguments = arguments.unwrap_or_else(|| PyDict::new(py));
        let described = match space {
            None => {
                let default = kind.parse::<Kind>()?.default_space().name();
                let default = PyEmbedding::default(py, default)?.into_pyobject(py)?;
                let mut described = Described::of_arguments(&kind, Some(&default), &arguments)?;
                described.spec.index = None;
                described
            }
            Some(space) => Described::of_arguments(&kind, Some(space), &arguments)?,
        };
        if described.spec.epsilon.is_none() && described.spec.mechanism != Kind::FiniteLaw {
            return Err(wrong_type(
                "epsilon is missing: give (space, epsilon), or epsilon=… alone for the default \
                 embedding"
                    .into(),
            ));
        }
        if described.spec.mechanism == Kind::FiniteLaw && described.spec.law.is_none() {
            return Err(wrong_type("law is missing: give (space, law)".into()));
        }
        Self::build(py, described)
    }

    /// The mechanism that a Spec (JSON) describes, with the parts in memory by name.
    #[staticmethod]
    fn _of_spec(spec: &str, held: &Bound<'_, PyDict>) -> PyResult<Self> {
        Self::build(held.py(), Described::of_json(spec, held)?)
    }

    /// The name of the mechanism of a Spec (JSON).
    #[staticmethod]
    fn _kind_of(spec: &str) -> PyResult<&'static str> {
        Ok(parsed(spec)?.mechanism.name())
    }

    /// The Spec as given, without fingerprints, as JSON: `_of_spec` makes an equal mechanism of it,
    /// with the same parts.
    fn _given_spec(&self) -> String {
        self.built.given().to_json()
    }

    /// The complete Spec as JSON; without files it has fingerprints only.
    #[pyo3(signature = (files = true))]
    fn _complete_spec(&self, py: Python<'_>, files: bool) -> PyResult<String> {
        run(py, false, |_| {
            let spec = self.built.spec();
            Ok(match files {
                true => spec.to_json(),
                false => spec.without_files().to_json(),
            })
        })
    }

    /// The card of its channel, as JSON.
    fn _card(&self, py: Python<'_>) -> PyResult<String> {
        run(py, false, |_| Ok(format!("{:#}", self.built.spec().card())))
    }

    /// The parts in memory that `_of_spec` takes, by name: None for what the Spec says itself.
    fn _held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let cover = |cover: &Option<Arc<Cover>>| {
            let cover = cover.clone();
            cover.map(|cover| PyCover::new(cover, self.space.clone_ref(py)))
        };
        let language = match &self.built.given().language {
            Some(Language::Stored(stored)) if stored.file.is_none() => self._language(py)?,
            _ => None,
        };
        let held = PyDict::new(py);
        held.set_item("space", self.space.clone_ref(py))?;
        held.set_item("cover", cover(&self.built.cover))?;
        held.set_item("remap", cover(&self.built.remap))?;
        held.set_item("language", language)?;
        Ok(held)
    }

    /// The base measure, or the model of language, wherever it came from, or None.
    fn _language(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match &self.built.language {
            None => Ok(None),
            Some(Public::Fixed(measure)) => {
                let weights = PyArray1::from_slice(py, measure.weights());
                Ok(Some(weights.into_any().unbind()))
            }
            Some(Public::History(model)) => object_of(py, &**model, &self.space),
        }
    }

    /// Returns the core of the same mechanism at another ε.
    fn _at(&self, py: Python<'_>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        let built = self.built.with_epsilon(real("epsilon", epsilon)?)?;
        Ok(Self::from_built(built, self.space.clone_ref(py)))
    }

    /// The mechanism's properties besides its ε, by name.
    #[getter]
    fn _details<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        details_of(py, self)
    }

    /// The space, in a few words.
    #[getter]
    fn _shown_space(&self) -> String {
        self.space.describe()
    }

    /// Whether the law of a word can be computed: `probabilities`, closed forms, certificates.
    #[getter]
    fn has_law(&self) -> bool {
        self.mechanism().has_law()
    }

    /// Whether the law of a word depends on what was released before it.
    #[getter]
    fn _has_history(&self) -> bool {
        self.mechanism().in_order().is_some()
    }

    /// Raises where the law of a word depends on what was released before it.
    fn _check_one_law(&self) -> PyResult<()> {
        Ok(self.mechanism().check_one_law()?)
    }

    /// mean, worst, words, draws and warning of `calibration::unchanged`; where the law depends on
    /// what was released before, of the Tem without it.
    fn _unchanged(&self, py: Python<'_>) -> PyResult<(f64, f64, usize, usize, Option<String>)> {
        let found = self.unchanged(py)?;
        let warning = found.warning();
        Ok((found.mean, found.worst, found.words, found.draws, warning))
    }

    /// value, low, high and sampled of `channel::word_bits`, or why there is no number.
    fn _bits(&self, py: Python<'_>) -> PyResult<(Option<Interval>, Option<&'static str>)> {
        Ok(match self.bits(py)? {
            WordBits::Known { bits, .. } => (Some(interval(bits)), None),
            WordBits::Unknown(why) => (None, Some(why)),
        })
    }

    /// The number of words of the texts so far that nearly always come back unchanged, and did.
    fn _nearly_always_unchanged(&self, py: Python<'_>) -> PyResult<usize> {
        self.run_unpadded(py, true, |control| {
            self.text().nearly_always_unchanged(control)
        })
    }

    /// The exact law of the output for a word: float64, shape (V,).
    ///
    /// Raises
    /// ------
    /// UnknownWordError
    ///     The word is not in the vocabulary.
    /// ParameterError
    ///     The law can't be computed (`has_law`).
    pub(super) fn probabilities<'py>(
        &self,
        py: Python<'py>,
        word: Text,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mechanism = self.mechanism();
        mechanism.check_one_law()?;
        let id = mechanism.vocabulary().require(&word)?;
        let mut law = vec![0.0; mechanism.vocabulary().len()];
        if !run(py, false, |_| Ok(mechanism.law(id, &mut law)))? {
            let expected = "one whose law can be computed";
            let got = mechanism.guarantee().mechanism;
            return Err(Error::parameter("mechanism", expected, got).into());
        }
        Ok(PyArray1::from_vec(py, law))
    }

    /// The embedding. A mechanism on a WordGraph has none: see `space`.
    #[getter]
    fn embedding(&self, py: Python<'_>) -> PyResult<Space> {
        match self.space.index {
            Index::Embedding(_) => Ok(self.space.clone_ref(py)),
            Index::Graph(_) => Err(PyAttributeError::new_err(
                "the mechanism works on a WordGraph: see .space",
            )),
        }
    }

    /// The words and their metric: an Embedding or a WordGraph.
    #[getter]
    fn space(&self, py: Python<'_>) -> Space {
        self.space.clone_ref(py)
    }

    /// The proved ε per unit of the metric's distance.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.mechanism().epsilon()
    }

    /// How unknown words are handled: 'random', 'error', 'drop', 'mask' or 'keep'.
    #[getter]
    fn oov(&self) -> &'static str {
        self.text().policy().oov.name()
    }

    /// Words released unchanged, unprotected.
    #[getter]
    fn skip(&self) -> HashSet<String> {
        self.text().policy().skip.clone()
    }

    /// The words of the space that are never released, in order of their ids.
    #[getter]
    fn excluded(&self) -> Vec<String> {
        words_of(self.mechanism().vocabulary(), &self.mechanism().excluded())
    }

    /// The cover that outputs are remapped by, or None.
    #[getter]
    fn remap(&self, py: Python<'_>) -> Option<PyCover> {
        let remapped: Option<&Remapped> = self.mechanism().downcast_ref();
        remapped.map(|r| PyCover::new(r.cover().clone(), self.space.clone_ref(py)))
    }

    /// Whether equal words get the same replacement: False, True (within a text), 'call'.
    #[getter]
    fn consistent<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        shown_consistent(py, self.text().policy().consistent)
    }

    /// The mechanisms for numbers and dates in texts, each as JSON or None.
    #[getter]
    fn _figures(&self) -> (Option<String>, Option<String>) {
        let figures = &self.text().policy().figures;
        let number = figures.numbers.as_ref().map(Number::value_of);
        let date = figures.dates.as_ref().map(Date::value_of);
        (number.map(|v| v.to_string()), date.map(|v| v.to_string()))
    }

    /// Every call takes a multiple of this number of seconds; None without padding.
    #[getter]
    fn pad(&self) -> Option<f64> {
        self.built.given().pad
    }

    /// The given maximum bytes of cached lists and laws, or None.
    #[getter]
    fn cache_bytes(&self) -> Option<usize> {
        self.built.given().cache_bytes
    }

    /// The given number of threads of a call, or None.
    #[getter]
    fn threads(&self) -> Option<usize> {
        self.built.given().threads
    }

    /// The seed, or None. A seeded mechanism protects nobody: it is for tests.
    #[getter]
    fn seed(&self) -> Option<u64> {
        self.built.given().seed
    }

    /// Replaces the words of a text, of each text of a list, or of a column.
    ///
    /// White space, punctuation and line structure do not change. The number of words, the length
    /// of the text and its punctuation are not protected.
    ///
    /// Parameters
    /// ----------
    /// text : str, list or column
    ///     The text or texts: a list of str, of None and of further lists; a pandas Series or
    ///     Index, a polars Series, a pyarrow Array or ChunkedArray, a DuckDB relation of one column,
    ///     any object with Arrow's ``__arrow_c_array__`` or ``__arrow_c_stream__``.
    ///
    /// Returns
    /// -------
    /// str, list or column
    ///     As given: nulls, nesting, name, index and type are kept (indices of dictionaries get 32
    ///     bits at least, categories are those of the outputs).
    ///
    /// Raises
    /// ------
    /// UnknownWordError
    ///     With ``oov='error'``: says where the word stands; its ``.word`` holds it.
    ///
    /// Warns
    /// -----
    /// FastdxWarning
    ///     Once, if a text looks wrongly decoded (UTF-8 read as Latin-1): parts of its words stand
    ///     as punctuation.
    /// UnchangedWarning
    ///     Once, if more than half of the common words come back as they were.
    /// UnknownWordsWarning
    ///     Once, if more than half of the words so far, at least 50, are not in the vocabulary.
    fn privatize<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        if let Ok(text) = text.cast::<PyString>() {
            let text = [Text::of(text)?];
            let (mut out, counts) = this.texts(py, &text)?;
            this.warn(py, counts)?;
            let out = out.pop().unwrap_or_default();
            return Ok(PyString::new(py, &out).into_any());
        }
        let plain = text
            .cast::<PyList>()
            .is_ok_and(|list| list.iter().all(|item| item.is_instance_of::<PyString>()));
        if !plain {
            let columns = py.import("fastdx._shared.columns")?;
            return columns.call_method1("privatize_column", (slf, text));
        }
        let (out, counts) = this.texts(py, &strings("text", text)?)?;
        this.warn(py, counts)?;
        Ok(PyList::new(py, out)?.into_any())
    }

    /// `privatize_spans` on one text: the new text, its spans, the counts, and the parts outside.
    #[allow(clippy::type_complexity)]
    fn _privatize_spans<'py>(
        &self,
        py: Python<'py>,
        text: Text,
        spans: Vec<(i64, i64)>,
        unit: &str,
    ) -> PyResult<(String, Vec<(u64, u64)>, Bound<'py, PyDict>, Vec<String>)> {
        let unit: PositionUnit = unit.parse()?;
        let ranges = byte_ranges(&text, &spans, unit)?;
        let (out, places, counts) = self.run(py, text.len() > LONG, |control| {
            self.text()
                .privatize_spans(&text, &ranges, &mut Replacements::default(), control)
        })?;
        self.warn(py, counts)?;
        let ends = places.iter().map(|place| place.end);
        let starts = places.iter().map(|place| place.start);
        let between = [0].into_iter().chain(ends).zip(starts.chain([out.len()]));
        let outside = between.map(|(end, start)| out[end..start].to_owned());
        let outside = outside.collect();
        let places = spans_in(&out, places, unit);
        Ok((out, places, dict_of(py, counts)?, outside))
    }

    /// The positions of a text's words, in characters.
    fn _word_spans(&self, text: Text) -> Vec<(u64, u64)> {
        spans_in(&text, self.text().words(&text), PositionUnit::Codepoint)
    }

    /// As privatize for a list, with counts of what was done.
    ///
    /// Returns
    /// -------
    /// texts : list of str
    ///     The texts.
    /// counts : dict of str to int
    ///     'words' found, of these 'replaced' (words of the vocabulary), 'unknown', 'skipped',
    ///     'numbers' and 'dates' drawn by laws of their own; and 'misdecoded', texts that look as if they had been decoded wrongly.
    #[pyo3(signature = (texts, *, replacements = None))]
    fn privatize_counted<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        replacements: Option<&Bound<'py, PyReplacements>>,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyDict>)> {
        let texts = strings("texts", texts)?;
        let (out, counts) = match replacements {
            None => self.texts(py, &texts)?,
            Some(kept) => self.texts_with(py, &as_strs(&texts), kept.get(), 0)?,
        };
        Ok((PyList::new(py, out)?, dict_of(py, counts)?))
    }

    /// The words of a text as this mechanism finds them: in the vocabulary's spelling if it has
    /// them, else in lower case and NFC. A word with punctuation inside is one word if the
    /// vocabulary has it ("e-mail").
    ///
    /// Parameters
    /// ----------
    /// text : str
    ///     The text.
    ///
    /// Returns
    /// -------
    /// list of str
    ///     The words that `privatize` replaces; `privatize_tokens` makes the same of them.
    fn tokenize(&self, text: Text) -> Vec<String> {
        self.text().tokenize(&text)
    }

    /// Replaces words that were found elsewhere: each string is one word, whatever it contains. With
    /// `chosen`, returns the replacements of the words at these positions alone.
    #[pyo3(signature = (tokens, chosen = None))]
    fn _privatize_tokens(
        &self,
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        chosen: Option<Vec<usize>>,
    ) -> PyResult<Vec<String>> {
        let (tokens, text) = (strings("tokens", tokens)?, self.text());
        let (out, _) = self.run(py, tokens.len() > LONG, |control| match &chosen {
            None => text.privatize_tokens(&as_strs(&tokens), control),
            Some(chosen) => text.privatize_chosen_tokens(&as_strs(&tokens), chosen, control),
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
        let out = self.run(py, ids.len() > LONG, |control| {
            self.text().privatize_ids(&ids, control)
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
        word: Text,
        size: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        self.mechanism().check_one_law()?;
        let size = count("size", size)?;
        let id = self.mechanism().vocabulary().require(&word)?;
        let mut ids = Vec::new();
        ids.try_reserve_exact(size)
            .map_err(|_| Error::parameter("size", "small enough to fit in memory", size))?;
        ids.resize(size, id);
        let out = self.run(py, size > LONG, |control| {
            self.mechanism().privatize_ids_with(&ids, control)
        })?;
        Ok(PyArray1::from_vec(py, out))
    }
}
