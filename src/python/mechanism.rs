//! `fastdx.Mechanism`: what Tem, MultivariateLaplace and their like share. Thin, frozen classes
//! around shared core objects.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use numpy::{PyArray1, PyArrayDyn};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyList, PyString};

use super::arguments::{Text, as_strs, count, real, seed as seed_of, shaped, strings, word_ids};
use super::cover::{PyCover, cover_of, exclusion};
use super::embedding::PyEmbedding;
use super::errors::{warn, wrong_type};
use super::registry::{Given, Registered, registered};
use super::run::{run, run_in};
use super::space::Space;
use super::text::{PyReplacements, consistency, dict_of, in_characters};
use crate::guarantee::Unchanged;
use crate::mechanism::remapped::Remapped;
use crate::parallel::{Control, MOST_THREADS};
use crate::text::{Consistent, Counts, Policy, TextPrivatizer};
use crate::{Error, Mechanism, Randomness, Result};

/// Words in a call above which it goes to the pool, where Ctrl-C is looked for.
const LONG: usize = 64;

/// What every word mechanism can do: the core of the classes in ``fastdx.mechanisms``.
///
/// Immutable: may be shared between threads. Every call draws fresh randomness from the operating
/// system, unless the mechanism was made with ``seed=``, which is for tests only.
#[pyclass(frozen, subclass, name = "MechanismCore", module = "fastdx._core")]
pub(super) struct PyMechanism {
    pub(super) text: TextPrivatizer,
    pub(super) space: Space,
    registered: &'static Registered,
    /// What `exclude=` named: with `remap=` not what is never released.
    exclude: Vec<u32>,
    seed: Option<u64>,
    oov: String,
    pad: Option<Duration>,
    /// Threads of a call; 0 for the default.
    threads: usize,
    cache_bytes: Option<usize>,
    /// Whether it has been said that a text looks wrongly decoded.
    warned: AtomicBool,
}

impl PyMechanism {
    pub(super) fn text(&self) -> &TextPrivatizer {
        &self.text
    }

    pub(super) fn mechanism(&self) -> &Arc<dyn Mechanism> {
        self.text.mechanism()
    }

    /// This mechanism's way with text around another word mechanism of its kind.
    pub(super) fn around(&self, space: Space, mechanism: Arc<dyn Mechanism>) -> PyMechanism {
        PyMechanism {
            text: TextPrivatizer::new(mechanism, self.text.policy().clone()),
            space,
            registered: self.registered,
            exclude: self.exclude.clone(),
            seed: self.seed,
            oov: self.oov.clone(),
            pad: self.pad,
            threads: self.threads,
            cache_bytes: self.cache_bytes,
            warned: AtomicBool::new(false),
        }
    }

    /// [`run`], answering only after a multiple of the padding time.
    pub(super) fn run<T: Send>(
        &self,
        py: Python<'_>,
        long: bool,
        work: impl FnOnce(&Control) -> Result<T> + Send,
    ) -> PyResult<T> {
        let start = Instant::now();
        let result = run_in(py, self.threads, long, None, work);
        if let Some(pad) = self.pad {
            py.detach(|| {
                let whole = start.elapsed().div_duration_f64(pad).ceil().max(1.0);
                let end = start + pad.mul_f64(whole);
                // A sleep comes back late by some ten microseconds; the rest is waited for.
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
            self.text.privatize_texts(&as_strs(texts), control)
        })
    }

    /// How often common words come back as they were; measured at the first call.
    pub(super) fn unchanged(&self, py: Python<'_>) -> PyResult<Unchanged> {
        run_in(py, self.threads, true, None, |control| {
            self.text.unchanged(control)
        })
    }

    /// Warns once that texts look wrongly decoded.
    pub(super) fn warn(&self, py: Python<'_>, counts: Counts) -> PyResult<()> {
        if counts.misdecoded == 0 || self.warned.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let message = "a text looks like UTF-8 that was read as another encoding (Latin-1, \
                       Windows-1251, …): parts of its words stand as punctuation and are released as they are";
        warn(py, message)
    }
}

#[pymethods]
impl PyMechanism {
    /// A mechanism of a registered kind, or one that shares everything with another.
    #[new]
    #[pyo3(signature = (kind, space = None, epsilon = None, parameters = None, *, oov = "random", skip = None, exclude = None, remap = None, consistent = None, seed = None, pad = None, cache_bytes = None, threads = None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        space: Option<&Bound<'_, PyAny>>,
        epsilon: Option<&Bound<'_, PyAny>>,
        parameters: Option<Bound<'_, PyDict>>,
        oov: &str,
        skip: Option<&Bound<'_, PyAny>>,
        exclude: Option<&Bound<'_, PyAny>>,
        remap: Option<&Bound<'_, PyAny>>,
        consistent: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        pad: Option<&Bound<'_, PyAny>>,
        cache_bytes: Option<&Bound<'_, PyAny>>,
        threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        if let Ok(other) = kind.cast::<PyMechanism>() {
            let other = other.get();
            return Ok(other.around(other.space.clone_ref(py), other.mechanism().clone()));
        }
        let registered = registered(&kind.extract::<PyBackedStr>()?)?;
        let space = match space {
            None => Space::Embedding(Py::new(py, PyEmbedding::default(py, "english")?)?),
            Some(given) => Space::of(given)?,
        };
        let Some(epsilon) = epsilon else {
            return Err(wrong_type(
                "epsilon is missing: give (space, epsilon), or epsilon=… alone for the default \
                 embedding"
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
        let pad = pad.map(|p| real("pad", p)).transpose()?;
        if let Some(pad) = pad
            && !(pad > 0.0 && pad <= 3600.0)
        {
            return Err(Error::parameter("pad", "positive, at most 3600 seconds", pad).into());
        }
        let cache_bytes = cache_bytes.map(|b| count("cache_bytes", b)).transpose()?;
        let threads = threads.map_or(Ok(0), |given| match count("threads", given)? {
            n @ 1..=MOST_THREADS => Ok(n),
            n => {
                let expected = format!("a number from 1 to {MOST_THREADS}");
                Err(PyErr::from(Error::parameter("threads", expected, n)))
            }
        })?;
        let policy = Policy {
            oov: oov.parse()?,
            skip,
            consistent: consistent.map_or(Ok(Consistent::Never), consistency)?,
        };
        let seed = seed_of(seed)?;
        let exclude = exclusion(space.space().vocabulary(), exclude)?;
        let mut given = Given {
            exclude,
            space,
            epsilon: real("epsilon", epsilon)?,
            randomness: Randomness::new(seed),
            parameters: parameters.unwrap_or_else(|| PyDict::new(py)),
            cache_bytes,
        };
        let mut mechanism = (registered.make)(&mut given)?;
        if let Some(remap) = remap {
            let cover = cover_of(py, &given.space, "remap", remap, &given.exclude, 0, None)?;
            mechanism = Arc::new(Remapped::new(mechanism, cover)?);
        }
        let done = mechanism.excluded();
        if given
            .exclude
            .iter()
            .any(|id| done.binary_search(id).is_err())
        {
            mechanism = mechanism.excluding(&given.exclude)?;
        }
        Ok(PyMechanism {
            text: TextPrivatizer::new(mechanism, policy),
            space: given.space,
            registered,
            exclude: given.exclude,
            seed,
            oov: oov.to_owned(),
            pad: pad.map(Duration::from_secs_f64),
            threads,
            cache_bytes,
            warned: AtomicBool::new(false),
        })
    }

    /// The same mechanism at another ε, as a core.
    fn _at(&self, py: Python<'_>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        let at = self.mechanism().with_epsilon(real("epsilon", epsilon)?)?;
        Ok(self.around(self.space.clone_ref(py), at))
    }

    /// What the mechanism is made of beyond its ε, by name.
    #[getter]
    fn _details<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let details = PyDict::new(py);
        (self.registered.details)(&**self.mechanism(), &details)?;
        Ok(details)
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

    /// mean, worst, words, draws of `calibration::unchanged`, and its warning.
    fn _unchanged(&self, py: Python<'_>) -> PyResult<(f64, f64, usize, usize, Option<String>)> {
        let found = self.unchanged(py)?;
        let warning = found.warning();
        Ok((found.mean, found.worst, found.words, found.draws, warning))
    }

    /// Words of the texts so far that came back as they were, and do so nearly always.
    fn _nearly_always_unchanged(&self, py: Python<'_>) -> PyResult<usize> {
        run_in(py, self.threads, true, None, |control| {
            self.text.nearly_always_unchanged(control)
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
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        word: Text,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mechanism = self.mechanism();
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
    fn embedding(&self, py: Python<'_>) -> PyResult<Py<PyEmbedding>> {
        self.space.embedding(py)
    }

    /// The words and their metric: an Embedding or a WordGraph.
    #[getter]
    fn space(&self, py: Python<'_>) -> Py<PyAny> {
        self.space.object(py)
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

    /// The words of the space that are never released, in order of their ids.
    #[getter]
    fn excluded(&self) -> Vec<String> {
        let mechanism = self.mechanism();
        let ids = mechanism.excluded().into_iter();
        ids.map(|id| mechanism.vocabulary().word(id).to_owned())
            .collect()
    }

    /// The words that `exclude=` named, of those in the space: what makes an equal mechanism. `excluded`
    /// names also those that no cover releases.
    #[getter]
    fn _exclude(&self) -> Vec<String> {
        let vocabulary = self.mechanism().vocabulary();
        let words = self.exclude.iter().map(|&id| vocabulary.word(id));
        words.map(str::to_owned).collect()
    }

    /// What outputs are remapped to, or None.
    #[getter]
    fn remap(&self, py: Python<'_>) -> Option<PyCover> {
        let remapped: Option<&Remapped> = self.mechanism().downcast_ref();
        remapped.map(|r| PyCover::new(r.cover().clone(), self.space.clone_ref(py)))
    }

    /// Whether equal words get the same replacement: False, True (within a text), 'call'.
    #[getter]
    fn consistent<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self.text.policy().consistent {
            Consistent::Call => "call".into_pyobject(py)?.into_any(),
            on => (on == Consistent::Text)
                .into_pyobject(py)?
                .to_owned()
                .into_any(),
        })
    }

    /// Seconds, of which every call takes a whole multiple, or None.
    #[getter]
    fn pad(&self) -> Option<f64> {
        self.pad.map(|p| p.as_secs_f64())
    }

    /// Bytes of lists and laws that it keeps at most where that was given, or None.
    #[getter]
    fn cache_bytes(&self) -> Option<usize> {
        self.cache_bytes
    }

    /// Threads of a call where that was given, or None.
    #[getter]
    fn threads(&self) -> Option<usize> {
        (self.threads > 0).then_some(self.threads)
    }

    /// The seed, or None. A seeded mechanism protects nobody: it is for tests.
    #[getter]
    fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// Replaces the words of a text, of each text of a list, or of a column.
    ///
    /// White space, punctuation and line structure stay. The number of words, the length of
    /// the text and its punctuation are not protected.
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
            return slf.call_method1("_privatize_column", (text,));
        }
        let (out, counts) = this.texts(py, &strings("text", text)?)?;
        this.warn(py, counts)?;
        Ok(PyList::new(py, out)?.into_any())
    }

    /// `privatize` of what is neither a str nor a list of str. The Python class knows columns.
    fn _privatize_column(&self, text: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let kind = text.get_type();
        let kind = kind.name()?;
        Err(wrong_type(format!(
            "text must be a str or a list of str, not {kind}"
        )))
    }

    /// `privatize_spans` on one text, spans being pairs of places in it.
    #[allow(clippy::type_complexity)]
    fn _privatize_spans<'py>(
        &self,
        py: Python<'py>,
        text: Text,
        spans: Vec<(usize, usize)>,
    ) -> PyResult<(String, Vec<(usize, usize)>, Bound<'py, PyDict>)> {
        // Python counts characters, Rust bytes.
        let at: Vec<usize> = text
            .char_indices()
            .map(|(byte, _)| byte)
            .chain([text.len()])
            .collect();
        let byte = |place: usize| at.get(place).copied().unwrap_or(usize::MAX);
        let ranges: Vec<_> = spans.iter().map(|&(a, b)| byte(a)..byte(b)).collect();
        if let Some(place) = ranges.iter().position(|r| r.end == usize::MAX) {
            let (a, b) = spans[place];
            let expected = format!("within the text of {} characters", at.len() - 1);
            let got = format!("{a} to {b} at place {place}");
            return Err(Error::parameter("spans", expected, got).into());
        }
        let (out, places, counts) = self.run(py, text.len() > LONG, |control| {
            self.text.privatize_spans(&text, &ranges, control)
        })?;
        let places = in_characters(&out, places.into_iter());
        self.warn(py, counts)?;
        Ok((out, places, dict_of(py, counts)?))
    }

    /// Where the words of a text stand, in characters.
    fn _word_spans(&self, text: Text) -> Vec<(usize, usize)> {
        in_characters(&text, self.text.words(&text))
    }

    /// As privatize for a list, with counts of what was done.
    ///
    /// Returns
    /// -------
    /// texts : list of str
    ///     The texts.
    /// counts : dict of str to int
    ///     'words' found, of these 'replaced' (words of the vocabulary), 'unknown', 'skipped';
    ///     and 'misdecoded', texts that look as if they had been decoded wrongly.
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
            // A piece of a text: with consistent='call' the earlier pieces count as this call's.
            Some(kept) => {
                // Outside the pool: a worker that waits for a lock may hold up its holder.
                let Ok(mut kept) = kept.get().0.try_lock() else {
                    let expected = "those of one call at a time";
                    return Err(Error::parameter("replacements", expected, "in use").into());
                };
                let kept = &mut *kept;
                self.run(py, true, |control| {
                    self.text
                        .privatize_texts_with(&as_strs(&texts), kept, control)
                })?
            }
        };
        Ok((PyList::new(py, out)?, dict_of(py, counts)?))
    }

    /// The words of a text as this mechanism finds them: as the vocabulary has them, where it
    /// does, else in lower case and NFC. A word that punctuation splits is one where the
    /// vocabulary knows it ("e-mail").
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
        self.text.tokenize(&text)
    }

    /// What `privatize_tokens` would do to words, without drawing.
    ///
    /// Parameters
    /// ----------
    /// tokens : iterable of str
    ///     The words.
    ///
    /// Returns
    /// -------
    /// dict of str to int
    ///     As `privatize_counted` counts.
    fn count_tokens<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        dict_of(
            py,
            self.text
                .count_tokens(&as_strs(&strings("tokens", tokens)?)),
        )
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
        let (out, _) = self.run(py, tokens.len() > LONG, |control| {
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
        let out = self.run(py, ids.len() > LONG, |control| {
            self.text.privatize_ids(&ids, control)
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
