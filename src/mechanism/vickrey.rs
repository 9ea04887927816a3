//! The Vickrey mechanism: noise, then the nearest or the second nearest word (Xu, Aggarwal,
//! Feyisetan, Teissier 2021).
//!
//! **Releases**, of the two words u and v nearest to z = φ(w) + N (u the nearer), u with probability
//! (1-t)·‖z-φ(v)‖ / (t·‖z-φ(u)‖ + (1-t)·‖z-φ(v)‖), else v. t = 0 is the nearest word always, t = 1 the
//! second nearest. N is round (as in MADLIB) or elliptical (as in Mahalanobis).
//!
//! **Guarantee**: that of the noise. Both words and both distances are functions of z, so the choice
//! is post-processing. (Code that leaves the written word itself out of the choice loses that:
//! docs/mechanisms.md.) Two words at the place of z: u, the one of the smaller id, whatever w was.

use std::sync::Arc;

use rand::RngExt;
use rand::rngs::ChaCha12Rng;

use crate::embedding::Embedding;
use crate::error::{Error, Result, check_epsilon};
use crate::guarantee::Guarantee;
use crate::mechanism::mahalanobis::EllipticalNoise;
use crate::mechanism::multivariate_laplace::check_euclidean;
use crate::mechanism::noisy_nearest::{Choice, NoisyNearest};
use crate::noise;
use crate::parallel::Control;
use crate::random::Randomness;

/// The mechanism with round noise.
///
/// ```
/// use fastdx::{Embedding, Mechanism, Randomness, mechanism::vickrey::Vickrey};
/// let vickrey = Vickrey::new(
///     Embedding::default_english()?.into(), 12.0, 0.75, Randomness::new(None))?;
/// assert_eq!(vickrey.sample("coffee", 3)?.len(), 3);
/// # Ok::<(), fastdx::Error>(())
/// ```
pub type Vickrey = NoisyNearest<noise::MultivariateLaplace, SecondNearest>;

/// The mechanism with elliptical noise.
pub type EllipticalVickrey = NoisyNearest<EllipticalNoise, SecondNearest>;

/// The nearest word or the second nearest, by their distances from the point.
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
        // The share of v. 0/0, two words at the very point, is no number and chooses u.
        let (to_first, to_second) = (self.tuning * first, (1.0 - self.tuning) * second);
        usize::from(rng.random::<f64>() < to_first / (to_first + to_second))
    }

    fn told(&self, noise: Guarantee) -> Guarantee {
        Guarantee {
            mechanism: "Vickrey",
            ..noise
        }
    }
}

impl SecondNearest {
    /// The choice with the tuning t.
    ///
    /// # Errors
    /// t not in [0, 1].
    pub fn new(tuning: f64) -> Result<Self> {
        if !(0.0..=1.0).contains(&tuning) {
            return Err(Error::parameter("tuning", "from 0 to 1", tuning));
        }
        Ok(SecondNearest { tuning })
    }

    /// t.
    pub fn tuning(&self) -> f64 {
        self.tuning
    }
}

impl Vickrey {
    /// The mechanism with round noise, `epsilon` per unit of Euclidean distance, t = `tuning`.
    ///
    /// # Errors
    /// `epsilon` not positive and finite, t not in [0, 1], an embedding whose metric is not
    /// Euclidean.
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
    /// The mechanism with elliptical noise of the share `mixing` of the covariance, the provable
    /// `epsilon` per unit of Euclidean distance, t = `tuning`.
    ///
    /// # Errors
    /// As [`Mahalanobis::new`](super::mahalanobis::Mahalanobis), and t not in [0, 1].
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
