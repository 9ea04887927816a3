//! The multivariate Laplace mechanism, MADLIB (WSDM'20, Algorithm 1).
//!
//! **Releases** the word whose vector is nearest to φ(w) + N, where N has density ∝ exp(-ε‖N‖₂).
//!
//! **Guarantee**: ε·d-private for the Euclidean d (WSDM'20, Theorem 1). The density of φ(w) + N
//! changes by at most exp(ε‖φ(w) - φ(w')‖) between w and w'. The nearest word is post-processing:
//! ties go to the smaller id, whatever w was.
//!
//! **Sampler**: [`crate::noise`] draws N; [`noisy_nearest`](super::noisy_nearest) does the rest.

use std::sync::Arc;

use rand::rngs::ChaCha12Rng;

use crate::distance::metric::Metric;
use crate::guarantee::Guarantee;
use crate::mechanism::Mechanism;
use crate::mechanism::noisy_nearest::{Noise, NoisyNearest, floating_point};
use crate::noise;
use crate::support::error::{Error, Result, check_epsilon};
use crate::support::parallel::Control;
use crate::support::random::Randomness;
use crate::words::embedding::Embedding;

/// The multivariate Laplace mechanism on a Euclidean embedding.
///
/// ```
/// use fastdx::{Embedding, Mechanism, MultivariateLaplace, Randomness};
/// let madlib = MultivariateLaplace::new(
///     Embedding::default_english()?.into(), 12.0, Randomness::new(None))?;
/// let drawn = madlib.sample("coffee", 3)?;
/// assert_eq!(drawn.len(), 3);
/// # Ok::<(), fastdx::Error>(())
/// ```
pub type MultivariateLaplace = NoisyNearest<noise::MultivariateLaplace>;

impl MultivariateLaplace {
    /// Creates the mechanism with `epsilon` per unit of Euclidean distance.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an `epsilon` that is not positive and finite, or an embedding whose
    /// metric is not Euclidean.
    pub fn new(embedding: Arc<Embedding>, epsilon: f64, randomness: Randomness) -> Result<Self> {
        check_euclidean(&embedding, "the multivariate Laplace mechanism")?;
        let noise = noise::MultivariateLaplace::new(embedding.dim(), check_epsilon(epsilon)?)?;
        Ok(Self::around(embedding, noise, randomness))
    }

    /// Adds fresh noise to row-major vectors, without searching the nearest word.
    ///
    /// # Errors
    /// [`Error::Shape`] for a length that is no multiple of the dimension; [`Error::Vector`] for a
    /// number that is not finite; [`Error::Interrupted`].
    pub fn perturb(&self, vectors: &[f64], control: &Control) -> Result<Vec<f64>> {
        let n = self.embedding().dim();
        if !vectors.len().is_multiple_of(n) {
            return Err(Error::Shape {
                what: "vectors",
                expected: format!("(m, {n})"),
                got: format!("{} numbers", vectors.len()),
            });
        }
        if let Some(i) = vectors.iter().position(|x| !x.is_finite()) {
            return Err(Error::Vector {
                owner: format!("row {}", i / n),
                reason: format!("holds {} at position {}", vectors[i], i % n),
            });
        }
        let key = self.randomness().next_key()?;
        let mut noisy = self.noise().sample_many(vectors.len() / n, &key, control)?;
        for (z, x) in noisy.iter_mut().zip(vectors) {
            *z += x;
        }
        Ok(noisy)
    }
}

/// Refuses an embedding whose metric is not Euclidean: the proofs of noise in real vector space
/// need that metric.
pub(super) fn check_euclidean(embedding: &Embedding, mechanism: &str) -> Result<()> {
    if embedding.metric() == Metric::Euclidean {
        return Ok(());
    }
    let expected = format!(
        "Euclidean: the proof of {mechanism} is for metric=\"euclidean\" (Tem takes every metric)"
    );
    let got = format!("metric {:?}", embedding.metric().name());
    Err(Error::parameter("embedding", expected, got))
}

/// Adds a word's vector to the noise of each row.
pub(super) fn add_vectors(embedding: &Embedding, ids: &[u32], points: &mut [f64]) {
    for (point, &id) in points.chunks_exact_mut(embedding.dim()).zip(ids) {
        for (z, &x) in point.iter_mut().zip(embedding.vector(id)) {
            *z += f64::from(x);
        }
    }
}

impl Noise for noise::MultivariateLaplace {
    fn perturb(
        &self,
        embedding: &Embedding,
        ids: &[u32],
        rng: &mut ChaCha12Rng,
        points: &mut [f64],
    ) {
        for point in points.chunks_exact_mut(embedding.dim()) {
            self.sample(rng, point);
        }
        add_vectors(embedding, ids, points);
    }

    fn guarantee(&self, _: &Embedding) -> Guarantee {
        floating_point(
            "MultivariateLaplace",
            "euclidean",
            self.epsilon(),
            "the density exp(-ε‖z-φ(w)‖) changes by at most exp(ε·d(w,w')) between two \
                      words, and which word is released depends on z alone: post-processing (WSDM'20, \
                      Theorem 1)",
            "2^-50",
        )
    }

    fn epsilon(&self) -> f64 {
        self.epsilon()
    }

    fn with_epsilon(&self, embedding: &Embedding, epsilon: f64) -> Result<Self> {
        noise::MultivariateLaplace::new(embedding.dim(), check_epsilon(epsilon)?)
    }
}
