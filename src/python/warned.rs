//! Warnings about a mechanism and the texts that it gets, each of them once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pyo3::prelude::*;

use super::errors::{FastdxWarning, UnchangedWarning, UnknownWordsWarning, warn};
use super::mechanism::PyMechanism;
use crate::Mechanism;
use crate::guarantee::measured::calibration;
use crate::text::Counts;

/// With fewer words than this, unknown ones say nothing about the language of the texts.
const FEW_WORDS: u64 = 50;

/// The warnings that were given, and the words so far.
#[derive(Default)]
pub(super) struct Warned {
    misdecoded: AtomicBool,
    unchanged: AtomicBool,
    unknown: AtomicBool,
    words: AtomicU64,
    unknown_words: AtomicU64,
}

/// Whether nobody asked before. Most calls only read, so the cache line stays shared.
fn first(asked: &AtomicBool) -> bool {
    !asked.load(Ordering::Relaxed) && !asked.swap(true, Ordering::Relaxed)
}

impl PyMechanism {
    /// Warns of texts that look wrongly decoded, of a policy that releases most words as they are,
    /// and of texts of another language than the vocabulary's. With padding it gives the first of
    /// these only.
    pub(super) fn warn(&self, py: Python<'_>, counts: Counts) -> PyResult<()> {
        let warned = &self.warned;
        if counts.misdecoded > 0 && first(&warned.misdecoded) {
            let message = "a text looks like UTF-8 that was read as another encoding (Latin-1, \
                           Windows-1251, …): parts of its words stand as punctuation and are released as they are";
            warn::<FastdxWarning>(py, message)?;
        }
        if self.built.pad.is_some() {
            // Time must not depend on the text, and the padded part of the call is over.
            return Ok(());
        }
        if counts.replaced > 0 && first(&warned.unchanged) {
            let (tem, without) = match self.mechanism().in_order() {
                Some(tem) => (tem.tem() as &dyn Mechanism, "without a history, "),
                None => (&**self.mechanism(), ""),
            };
            let leaves_most =
                self.run_unpadded(py, false, |control| calibration::leaves_most(tem, control))?;
            if leaves_most && let Some(warning) = self.unchanged(py)?.warning() {
                warn::<UnchangedWarning>(py, &format!("{without}{warning}"))?;
            }
        }
        let add = |sum: &AtomicU64, count| sum.fetch_add(count, Ordering::Relaxed) + count;
        let words = add(&warned.words, counts.words);
        let unknown = add(&warned.unknown_words, counts.unknown);
        if words >= FEW_WORDS && 2 * unknown > words && first(&warned.unknown) {
            let share = 100 * unknown / words;
            warn::<UnknownWordsWarning>(
                py,
                &format!(
                    "{share}% of the words are not in the vocabulary: is it of the language of these texts?"
                ),
            )?;
        }
        Ok(())
    }
}
