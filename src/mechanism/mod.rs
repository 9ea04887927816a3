//! Word mechanisms: each draws a word to release in place of a given word.

pub mod contextual;
pub mod finite_law;
mod grouped;
pub mod hyperbolic_laplace;
pub mod mahalanobis;
pub mod multivariate_laplace;
pub mod neighbor_response;
pub mod noisy_nearest;
pub mod remapped;
pub mod tem;

use std::any::Any;
use std::sync::Arc;

use rand::rngs::ChaCha12Rng;

use crate::guarantee::{Guarantee, Unchanged};
use crate::support::error::Result;
use crate::support::parallel::Control;
use crate::support::random::{Key, Randomness, uniform_below};
use crate::words::space::MetricSpace;
use crate::words::vocabulary::Vocabulary;
use contextual::ContextualTem;

/// A mechanism that replaces words of a vocabulary by words of the same vocabulary.
///
/// Mechanisms are immutable and shared between threads; every call draws fresh randomness. After
/// the required methods come those with defaults:
///
/// | where | one may implement |
/// |---|---|
/// | its laws can be computed | [`has_law`](Self::has_law), [`law`](Self::law); for speed [`scores`](Self::scores), [`law_of_scores`](Self::law_of_scores) |
/// | it does not release all words alike | [`draw_unknown`](Self::draw_unknown) |
/// | it knows how often words come back | [`known_unchanged`](Self::known_unchanged) |
/// | its log-ratios are not bounded by ε·d alone | [`bound`](Self::bound) |
/// | it post-processes another mechanism | [`inner`](Self::inner) |
/// | it draws a text in order, each word by what was released before | [`in_order`](Self::in_order) |
pub trait Mechanism: Any + Send + Sync {
    /// The words that serve as inputs and outputs, and the metric of the guarantee.
    fn space(&self) -> &dyn MetricSpace;

    /// The proved guarantee for words of the vocabulary.
    fn guarantee(&self) -> Guarantee;

    /// The proved ε per unit of the guarantee's distance.
    fn epsilon(&self) -> f64;

    /// Returns the same mechanism at another ε; all other data is shared.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) for an ε outside the mechanism's domain.
    fn with_epsilon(&self, epsilon: f64) -> Result<Arc<dyn Mechanism>>;

    /// Returns the mechanism that never releases some words. They remain protected inputs.
    ///
    /// # Errors
    /// [`Error::WordId`](crate::Error::WordId); [`Error::Parameter`](crate::Error::Parameter) if no
    /// word is left.
    fn excluding(&self, ids: &[u32]) -> Result<Arc<dyn Mechanism>>;

    /// Ids of the words that are never released, ascending.
    fn excluded(&self) -> Vec<u32>;

    /// The source of its randomness.
    fn randomness(&self) -> &Randomness;

    /// Draws a replacement for every id with the key of one call. The output does not depend on the
    /// number of threads. The caller checks that ids are in range and that `out` has their length.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) once `control` is cancelled.
    fn draw(&self, ids: &[u32], key: &Key, out: &mut [u32], control: &Control) -> Result<()>;

    // Methods that a mechanism may override.

    /// Whether [`law`](Self::law) can compute the laws.
    fn has_law(&self) -> bool {
        false
    }

    /// Writes the probability of every output for a word; returns `false` if it cannot be computed.
    /// The sampler draws from this law.
    fn law(&self, id: u32, probabilities: &mut [f64]) -> bool {
        let _ = (id, probabilities);
        false
    }

    /// Writes the part of each word's law that is the same at every ε, row by row. It is computed
    /// from rows of distances to all words; the default copies these distances.
    fn scores(&self, rows: &[f64], scores: &mut Vec<f64>) {
        scores.clear();
        scores.extend_from_slice(rows);
    }

    /// Computes [`law`](Self::law) in 64-bit floating point from the word's row of
    /// [`scores`](Self::scores). It is fast enough for statistics over a whole vocabulary. Where an
    /// output's probability exceeds 2⁻⁶⁰, it agrees with `law` to a relative 2⁻³⁹.
    fn law_of_scores(&self, id: u32, scores: &[f64], probabilities: &mut [f64]) -> bool {
        let _ = scores;
        self.law(id, probabilities)
    }

    /// How often common words come back unchanged, if that is known without measuring it.
    fn known_unchanged(&self) -> Option<Unchanged> {
        None
    }

    /// Draws the replacement of an unknown word, without using any knowledge of that word. The
    /// default is uniform; a mechanism with weights or exclusions overrides it.
    fn draw_unknown(&self, rng: &mut ChaCha12Rng) -> u32 {
        uniform_below(rng, self.vocabulary().len() as u32)
    }

    /// A bound on the log-ratio between two words of the vocabulary, without the guarantee's slack:
    /// ε·d, rounded up. A computed distance has a relative error of at most (n/8 + 8)·2⁻⁵³. The
    /// factor 1 + 2⁻³⁶ covers that for every n up to a million.
    fn bound(&self, a: u32, b: u32) -> f64 {
        const ROUNDED_UP: f64 = 1.0 + 1.0 / (1u64 << 36) as f64;
        match a == b {
            true => 0.0,
            false => self.epsilon() * self.distance(a, b) * ROUNDED_UP,
        }
    }

    /// The mechanism whose outputs this one post-processes, if any.
    fn inner(&self) -> Option<&dyn Mechanism> {
        None
    }

    /// The mechanism as one that draws a text in order, each word by what has been released before
    /// it. It has no law of one word.
    fn in_order(&self) -> Option<&ContextualTem> {
        None
    }

    // Methods for callers; no mechanism has a reason to override these.

    /// The vocabulary of inputs and outputs.
    fn vocabulary(&self) -> &Vocabulary {
        self.space().vocabulary()
    }

    /// The guarantee's distance between two words of the vocabulary.
    fn distance(&self, a: u32, b: u32) -> f64 {
        self.space().distance(a, b)
    }

    /// Refuses what needs one law of a word, wherever it stands.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) for a mechanism that draws a text [in order](Self::in_order).
    fn check_one_law(&self) -> Result<()> {
        match self.in_order() {
            None => Ok(()),
            Some(_) => Err(crate::Error::parameter(
                "language",
                "\"frequency\" or \"uniform\" for what needs one law of a word",
                "a model of what was released before it, which has a law for each history",
            )),
        }
    }

    /// Replaces every word id, independently.
    ///
    /// # Errors
    /// [`Error::WordId`](crate::Error::WordId) for an id out of range.
    fn privatize_ids(&self, ids: &[u32]) -> Result<Vec<u32>> {
        self.privatize_ids_with(ids, &Control::new())
    }

    /// [`privatize_ids`](Self::privatize_ids) that can be cancelled.
    ///
    /// # Errors
    /// The errors of [`privatize_ids`](Self::privatize_ids);
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    fn privatize_ids_with(&self, ids: &[u32], control: &Control) -> Result<Vec<u32>> {
        self.vocabulary().check_ids(ids)?;
        let mut out = vec![0; ids.len()];
        self.draw(ids, &self.randomness().next_key()?, &mut out, control)?;
        Ok(out)
    }

    /// Draws `size` independent replacements of one word.
    ///
    /// # Errors
    /// [`Error::UnknownWord`](crate::Error::UnknownWord); the errors of
    /// [`check_one_law`](Self::check_one_law).
    fn sample(&self, word: &str, size: usize) -> Result<Vec<u32>> {
        self.check_one_law()?;
        self.privatize_ids(&vec![self.vocabulary().require(word)?; size])
    }
}

impl dyn Mechanism {
    /// Returns the mechanism as its concrete type, for methods that only this type has. If the type
    /// does not match, the mechanism that this one post-processes is tried.
    pub fn downcast_ref<M: Mechanism>(&self) -> Option<&M> {
        let found = (self as &dyn Any).downcast_ref();
        found.or_else(|| self.inner()?.downcast_ref())
    }
}

/// The mechanism without some outputs: itself if it has none of them.
///
/// # Errors
/// The errors of [`Mechanism::excluding`].
pub(crate) fn excluding(mechanism: Arc<dyn Mechanism>, ids: &[u32]) -> Result<Arc<dyn Mechanism>> {
    let done = mechanism.excluded();
    match ids.iter().all(|id| done.binary_search(id).is_ok()) {
        true => Ok(mechanism),
        false => mechanism.excluding(ids),
    }
}
