//! Word mechanisms: given a word, they draw the word to release in its place.

pub mod finite_law;
mod grouped;
pub mod hyperbolic_laplace;
pub mod mahalanobis;
pub mod multivariate_laplace;
pub mod neighbor_response;
pub mod noisy_nearest;
pub mod quality;
pub mod remapped;
pub mod tem;
pub mod vickrey;

use std::any::Any;
use std::sync::Arc;

use rand::rngs::ChaCha12Rng;

use crate::error::Result;
use crate::guarantee::Guarantee;
use crate::parallel::Control;
use crate::random::{Key, Randomness, uniform_below};
use crate::space::MetricSpace;
use crate::vocabulary::Vocabulary;

/// A mechanism that replaces words of a vocabulary by words of the same vocabulary: what one must
/// say of it.
///
/// Immutable and shared freely between threads: randomness is drawn afresh for every call.
/// [`Mechanism`] adds what one may say; it has a default for everything.
pub trait WordMechanism: Any + Send + Sync {
    /// The words of inputs and outputs, and the metric of the guarantee.
    fn space(&self) -> &dyn MetricSpace;

    /// What is proved about it, for words of the vocabulary.
    fn guarantee(&self) -> Guarantee;

    /// ε per unit of the guarantee's distance, the provable one.
    fn epsilon(&self) -> f64;

    /// The same mechanism at another ε; everything else is shared.
    ///
    /// # Errors
    /// An ε outside its domain.
    fn with_epsilon(&self, epsilon: f64) -> Result<Arc<dyn Mechanism>>;

    /// The same mechanism that never releases some words; they stay protected inputs.
    ///
    /// # Errors
    /// [`Error::WordId`](crate::Error::WordId); [`Error::Parameter`](crate::Error::Parameter) if no
    /// word is left.
    fn excluding(&self, ids: &[u32]) -> Result<Arc<dyn Mechanism>>;

    /// Ids of the words that are never released, ascending.
    fn excluded(&self) -> Vec<u32>;

    /// Where its randomness comes from.
    fn randomness(&self) -> &Randomness;

    /// Draws a replacement for every id with the randomness of one call, the same at any
    /// number of threads. The ids are in range and `out` has their length.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) once `control` is cancelled.
    fn draw(&self, ids: &[u32], key: &Key, out: &mut [u32], control: &Control) -> Result<()>;
}

/// A [`WordMechanism`] with everything that the text layer, calibration and audits ask of it. Every
/// method has a default: `impl Mechanism for Mine {}` is complete.
///
/// | where | one may implement |
/// |---|---|
/// | its laws can be computed | [`has_law`](Self::has_law), [`law`](Self::law); for speed [`scores`](Self::scores), [`law_of_scores`](Self::law_of_scores) |
/// | it does not release all words alike | [`draw_unknown`](Self::draw_unknown) |
/// | its log-ratios are not bounded by ε·d alone | [`bound`](Self::bound) |
/// | it post-processes another mechanism | [`inner`](Self::inner) |
///
/// The other methods are what callers use.
pub trait Mechanism: WordMechanism {
    // One may implement.

    /// Whether [`law`](Self::law) can compute its laws.
    fn has_law(&self) -> bool {
        false
    }

    /// Writes the probability of every output for a word, where it can be computed; else says
    /// so. It is the law that is drawn.
    fn law(&self, id: u32, probabilities: &mut [f64]) -> bool {
        let _ = (id, probabilities);
        false
    }

    /// Writes what the laws of some words need of their distances to all words, row by row, the
    /// same at every ε: by default these distances.
    fn scores(&self, rows: &[f64], scores: &mut Vec<f64>) {
        scores.clear();
        scores.extend_from_slice(rows);
    }

    /// [`law`](Self::law) in 64-bit floating point, from the word's row of
    /// [`scores`](Self::scores): as fast as statistics over a whole vocabulary need it, and to a
    /// relative 2⁻³⁹ the same where an output has a probability above 2⁻⁶⁰.
    fn law_of_scores(&self, id: u32, scores: &[f64], probabilities: &mut [f64]) -> bool {
        let _ = scores;
        self.law(id, probabilities)
    }

    /// Draws the word that an unknown word becomes, with nothing known of it: uniform, unless the
    /// mechanism releases some words more readily or not at all.
    fn draw_unknown(&self, rng: &mut ChaCha12Rng) -> u32 {
        uniform_below(rng, self.vocabulary().len() as u32)
    }

    /// What is proved of the log-ratio between two words of the vocabulary, but for the
    /// guarantee's slack: ε·d, rounded up. A computed distance is off by a relative
    /// (n/8 + 8)·2⁻⁵³ at most, so 2⁻³⁶ covers the distance itself for every n up to a million.
    fn bound(&self, a: u32, b: u32) -> f64 {
        const ROUNDED_UP: f64 = 1.0 + 1.0 / (1u64 << 36) as f64;
        match a == b {
            true => 0.0,
            false => self.epsilon() * self.distance(a, b) * ROUNDED_UP,
        }
    }

    /// The mechanism whose outputs this one post-processes, if that is what it does.
    fn inner(&self) -> Option<&dyn Mechanism> {
        None
    }

    // What callers use of it: no mechanism has a reason to replace these.

    /// The vocabulary of inputs and outputs.
    fn vocabulary(&self) -> &Vocabulary {
        self.space().vocabulary()
    }

    /// The distance of the guarantee, between two words of the vocabulary.
    fn distance(&self, a: u32, b: u32) -> f64 {
        self.space().distance(a, b)
    }

    /// [`law_of_scores`](Self::law_of_scores) from the word's distances to all words.
    fn law_of_row(&self, id: u32, distances: &[f64], probabilities: &mut [f64]) -> bool {
        let mut scores = Vec::new();
        self.scores(distances, &mut scores);
        self.law_of_scores(id, &scores, probabilities)
    }

    /// Replaces every word id, independently.
    ///
    /// # Errors
    /// [`Error::WordId`](crate::Error::WordId) for an id out of range.
    fn privatize_ids(&self, ids: &[u32]) -> Result<Vec<u32>> {
        self.privatize_ids_with(ids, &Control::new())
    }

    /// [`privatize_ids`](Self::privatize_ids), cancellable.
    ///
    /// # Errors
    /// The same, and [`Error::Interrupted`](crate::Error::Interrupted).
    fn privatize_ids_with(&self, ids: &[u32], control: &Control) -> Result<Vec<u32>> {
        self.vocabulary().check_ids(ids)?;
        let mut out = vec![0; ids.len()];
        self.draw(ids, &self.randomness().next_key()?, &mut out, control)?;
        Ok(out)
    }

    /// `size` independent replacements of one word.
    ///
    /// # Errors
    /// [`Error::UnknownWord`](crate::Error::UnknownWord).
    fn sample(&self, word: &str, size: usize) -> Result<Vec<u32>> {
        self.privatize_ids(&vec![self.vocabulary().require(word)?; size])
    }
}

impl dyn Mechanism {
    /// The mechanism as what it was made as, for what only that can do; or the one whose outputs it
    /// post-processes.
    pub fn downcast_ref<M: Mechanism>(&self) -> Option<&M> {
        let found = (self as &dyn Any).downcast_ref();
        found.or_else(|| self.inner()?.downcast_ref())
    }
}
