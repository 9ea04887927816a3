//! Rows of published laws, as functions of a word's id.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;

use super::arguments::{count, numbers, real, word_ids};
use super::run::run;
use super::space::Space;
use crate::Error;
use crate::mechanism::finite_law::Rows;
use crate::mechanism::published::{self, Outputs};

/// A function from a word's id to its row. A `FiniteLaw` reads the rows without the interpreter.
#[pyclass(name = "LawRows", module = "fastdx._core", frozen)]
pub(super) struct PyLawRows {
    pub(super) rows: Arc<dyn Rows>,
    pub(super) words: usize,
}

#[pymethods]
impl PyLawRows {
    /// The word itself has one probability, every other output another.
    #[staticmethod]
    fn alike(
        words: &Bound<'_, PyAny>,
        own: &Bound<'_, PyAny>,
        other: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let rows = published::alike(real("own", own)?, real("other", other)?);
        Ok(PyLawRows {
            rows,
            words: count("words", words)?,
        })
    }

    /// The output of rank r has the probability `weights[r]`.
    #[staticmethod]
    fn by_rank(space: &Bound<'_, PyAny>, weights: &Bound<'_, PyAny>) -> PyResult<Self> {
        let space = Space::of(space)?.space();
        let words = space.vocabulary().len();
        let rows = published::by_rank(space, numbers("weights", weights)?)?;
        Ok(PyLawRows { rows, words })
    }

    /// An output n places from the word in a line has the weight `weights[n]`, an end `end` times
    /// as much.
    #[staticmethod]
    fn by_place(
        lines: Vec<Bound<'_, PyAny>>,
        weights: &Bound<'_, PyAny>,
        end: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let weights = numbers("weights", weights)?;
        let words = weights.len();
        let lines = lines.iter().map(|line| Ok(word_ids(line, words)?.0));
        let lines = lines.collect::<PyResult<Vec<_>>>()?;
        let rows = published::by_place(&lines, weights, real("end", end)?)?;
        Ok(PyLawRows { rows, words })
    }

    /// The exponential mechanism on the words of the word's set.
    #[staticmethod]
    fn in_sets(
        space: &Bound<'_, PyAny>,
        epsilon: &Bound<'_, PyAny>,
        sets: &Bound<'_, PyAny>,
        kept: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let words = Space::of(space)?.space().vocabulary().len();
        let sets = Outputs::Sets(word_ids(sets, words)?.0);
        Self::on_outputs(space, epsilon, sets, kept)
    }

    /// The exponential mechanism on the k nearest words of the word.
    #[staticmethod]
    fn in_nearest(
        space: &Bound<'_, PyAny>,
        epsilon: &Bound<'_, PyAny>,
        k: &Bound<'_, PyAny>,
        kept: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        Self::on_outputs(space, epsilon, Outputs::Nearest(count("k", k)?), kept)
    }

    /// The row of a word.
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        word: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let id = id_of(word, self.words)?;
        let row = run(py, false, |_| {
            let mut row = vec![0.0; self.words];
            self.rows.write(id, &mut row)?;
            Ok(row)
        })?;
        Ok(PyArray1::from_vec(py, row))
    }
}

impl PyLawRows {
    fn on_outputs(
        space: &Bound<'_, PyAny>,
        epsilon: &Bound<'_, PyAny>,
        outputs: Outputs,
        kept: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let space = Space::of(space)?.space();
        let words = space.vocabulary().len();
        let (kept, _) = word_ids(kept, words)?;
        let rows = published::in_sets(space, real("epsilon", epsilon)?, outputs, &kept)?;
        Ok(PyLawRows { rows, words })
    }
}

/// The id of one word.
fn id_of(word: &Bound<'_, PyAny>, words: usize) -> PyResult<u32> {
    let id = count("word", word)?;
    let small = u32::try_from(id).ok().filter(|_| id < words);
    let error = Error::WordId {
        id: id as u64,
        position: 0,
        len: words,
    };
    small.ok_or_else(|| error.into())
}

/// The k nearest words of a word, the word itself first, ties by id.
#[pyfunction]
pub(super) fn nearest_words<'py>(
    py: Python<'py>,
    space: &Bound<'py, PyAny>,
    word: &Bound<'py, PyAny>,
    k: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let space = Space::of(space)?.space();
    let id = id_of(word, space.vocabulary().len())?;
    let k = count("k", k)?;
    let nearest = run(py, false, |_| Ok(published::nearest(&*space, id, k)))?;
    Ok(PyArray1::from_vec(py, nearest))
}

/// The number of every word's set, in a partition of the words into sets of k near words.
#[pyfunction]
pub(super) fn partition_words<'py>(
    py: Python<'py>,
    space: &Bound<'py, PyAny>,
    k: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let space = Space::of(space)?.space();
    let k = count("k", k)?;
    let sets = run(py, true, |control| {
        published::partition(&*space, k, control)
    })?;
    Ok(PyArray1::from_vec(py, sets))
}
