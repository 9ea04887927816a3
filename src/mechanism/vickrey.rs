//! The Vickrey mechanism: adds noise and releases the nearest or the second nearest word (Xu,
//! Aggarwal, Feyisetan, Teissier 2021).
//!
//! **Releases** u or v, the two words nearest to z = φ(w) + N (u the nearer). The probability of u
//! is (1-t)·‖z-φ(v)‖ / (t·‖z-φ(u)‖ + (1-t)·‖z-φ(v)‖). t = 0 always gives the nearest word, t = 1
//! the second nearest. N is round (as in MADLIB) or elliptical (as in Mahalanobis).
//!
//! **Guarantee**: that of the noise. Both words and both distances are functions of z, so the
//! choice is post-processing. Code that excludes the input word from the choice loses this
//! guarantee: see docs/research/mechanisms.md. If two words lie at z, the smaller id is released, whatever w
//! was.

use std::sync::Arc;

use rand::RngExt;
use rand::rngs::ChaCha12Rng;

use crate::guarantee::Guarantee;
use crate::mechanism::mahalanobis::EllipticalNoise;
use crate::mechanism::multivariate_laplace::check_euclidean;
use crate::mechanism::noisy_nearest::{Choice, NoisyNearest};
use crate::noise;
use crate::support::error::{Error, Result, check_epsilon};
use crate::support::parallel::Control;
use crate::support::random::Randomness;
use crate::words::embedding::Embedding;

/// The Vickrey mechanism with round noise.
///
/// ```
/// use fastdx::{Embedding, Mechanism, Randomness, mechanism::vickrey::Vickrey};
/// let vickrey = Vickrey::new(
///     Embedding::default_english()?.into(), 12.0, 0.75, Randomness::new(None))?;
/// assert_eq!(vickrey.sample("coffee", 3)?.len(), 3);
/// # Ok::<(), fastdx::Error>(())
/// ```
pub type Vickrey = NoisyNearest<noise::MultivariateLaplace, SecondNearest>;

/// The Vickrey mechanism with elliptical noise.
pub type EllipticalVickrey = NoisyNearest<EllipticalNoise, SecondNearest>;

/// Chooses the nearest or the second nearest word by their distances from the point.
#[derive(Clone, Copy, Debug)]
pub struct SecondNearest {
    tuning: f64,
}

impl Choice for SecondNearest {
    const WORDS: usize = 2;

    fn choose(&self, ranked: &[(f64, u32)], rng: &mut ChaCha12Rng) -> usize {
        let &[(first, _), (second, _)] = ranked else {
            return 0;
        };
        // The share of v. If both words lie at the point, 0/0 is NaN and the comparison chooses u.
        let (to_first, to_second) = (self.tuning * first, (1.0 - self.tuning) * second);
        usize::from(rng.random::<f64>() < to_first / (to_first + to_second))
    }

    fn adapt_guarantee(&self, noise: Guarantee) -> Guarantee {
        Guarantee {
            mechanism: "Vickrey",
            ..noise
        }
    }
}

impl SecondNearest {
    /// Creates the choice with the tuning parameter t.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a t outside [0, 1].
    pub fn new(tuning: f64) -> Result<Self> {
        if !(0.0..=1.0).contains(&tuning) {
            return Err(Error::parameter("tuning", "from 0 to 1", tuning));
        }
        Ok(SecondNearest { tuning })
    }

    /// The tuning parameter t.
    pub fn tuning(&self) -> f64 {
        self.tuning
    }
}

impl Vickrey {
    /// Creates the mechanism with round noise, `epsilon` per unit of Euclidean distance and t =
    /// `tuning`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an `epsilon` that is not positive and finite, a t outside [0, 1],
    /// or an embedding whose metric is not Euclidean.
    pub fn new(
        embedding: Arc<Embedding>,
        epsilon: f64,
        tuning: f64,
        randomness: Randomness,
    ) -> Result<Self> {
        check_euclidean(&embedding, "the Vickrey mechanism")?;
        let noise = noise::MultivariateLaplace::new(embedding.dim(), check_epsilon(epsilon)?)?;
        let choice = SecondNearest::new(tuning)?;
        Ok(Self::choosing(embedding, noise, choice, randomness))
    }
}

impl EllipticalVickrey {
    /// Creates the mechanism with elliptical noise, whose share of the covariance is `mixing`.
    /// `epsilon` is the proved value per unit of Euclidean distance, and t = `tuning`.
    ///
    /// # Errors
    /// The errors of [`Mahalanobis::new`](super::mahalanobis::Mahalanobis); [`Error::Parameter`]
    /// for a t outside [0, 1].
    pub fn new(
        embedding: Arc<Embedding>,
        epsilon: f64,
        mixing: f64,
        tuning: f64,
        randomness: Randomness,
        control: &Control,
    ) -> Result<Self> {
        let choice = SecondNearest::new(tuning)?;
        let noise = EllipticalNoise::around(&embedding, epsilon, mixing, control)?;
        Ok(Self::choosing(embedding, noise, choice, randomness))
    }
}
