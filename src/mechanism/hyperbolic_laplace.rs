//! The hyperbolic Laplace mechanism on a Poincaré embedding (ICDM'19), with an ε that is proved.
//!
//! **Releases** the word hyperbolically nearest to proj(φ(w) ⊕ N). The noise N is centred at the
//! origin, Möbius addition ⊕ moves it to the word, and proj clamps the norm to 1 - 1e-5.
//!
//! **Guarantee**: Möbius addition is an isometry, so φ(w) ⊕ N has the density of N, moved to φ(w),
//! with respect to hyperbolic volume. For [`Base::Volume`] the density is ∝ e^(-ε·d(z,φ(w))), which
//! changes by at most e^(ε·d(w,w')). For [`Base::Ball`], the paper's noise at its nominal e, it is
//! ∝ e^(-eρ)(2cosh²(ρ/2))^(-n). Its logarithm changes by at most (e + n)·d(w,w'). The paper's claim
//! e·d does not hold, and a test shows a violation. The clamp and the nearest word are
//! post-processing.

use std::sync::Arc;

use rand::rngs::ChaCha12Rng;

use crate::distance::metric::Metric;
use crate::guarantee::Guarantee;
use crate::mechanism::noisy_nearest::{Noise, NoisyNearest, floating_point};
use crate::noise::hyperbolic::noise::{Base, HyperbolicLaplace as Law};
use crate::noise::hyperbolic::walk::Walk;
use crate::noise::hyperbolic::{LAMBDA, clamp, mobius_add};
use crate::support::error::{Error, Result, check_epsilon};
use crate::support::names::named;
use crate::support::parallel::Control;
use crate::support::random::Randomness;
use crate::words::embedding::Embedding;
use crate::words::space::MetricSpace;

/// The sampling method of the noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoiseSampler {
    /// Draws the radius from its law and the direction uniformly, independently for each draw.
    #[default]
    Exact,
    /// The paper's Markov chain: approximate, for comparison.
    Metropolis,
}

named!(NoiseSampler, "sampler", NoiseSampler::Exact => "exact", NoiseSampler::Metropolis => "metropolis");

/// Hyperbolic noise, moved to a word by Möbius addition.
#[derive(Clone, Debug)]
pub struct HyperbolicNoise {
    law: Law,
    sampler: NoiseSampler,
}

impl HyperbolicNoise {
    /// The noise around the origin; for [`Base::Ball`] its parameter is the paper's nominal ε.
    pub fn law(&self) -> &Law {
        &self.law
    }

    /// The sampling method.
    pub fn sampler(&self) -> NoiseSampler {
        self.sampler
    }

    fn new(n: usize, epsilon: f64, base: Base, sampler: NoiseSampler) -> Result<Self> {
        check_epsilon(epsilon)?;
        let parameter = match base {
            Base::Volume => epsilon,
            Base::Ball if epsilon > n as f64 => epsilon - n as f64,
            Base::Ball => {
                let expected = format!(
                    "more than n = {n} for base=\"ball\", whose noise costs its nominal ε + n (Tem \
                     on the Poincaré metric takes every ε)"
                );
                return Err(Error::parameter("epsilon", expected, epsilon));
            }
        };
        let law = Law::new(n, parameter, base)?;
        Ok(HyperbolicNoise { law, sampler })
    }
}

/// The hyperbolic Laplace mechanism on a Poincaré embedding.
pub type HyperbolicLaplace = NoisyNearest<HyperbolicNoise>;

impl HyperbolicLaplace {
    /// Creates the mechanism with the proved `epsilon` per unit of hyperbolic distance. For
    /// [`Base::Ball`] the noise parameter is ε - n.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an embedding with another metric, or an `epsilon` that is not
    /// positive and finite. It must exceed n - 1 for [`Base::Volume`] and n for [`Base::Ball`].
    pub fn new(
        embedding: Arc<Embedding>,
        epsilon: f64,
        base: Base,
        sampler: NoiseSampler,
        randomness: Randomness,
    ) -> Result<Self> {
        check_poincare(&embedding)?;
        let noise = HyperbolicNoise::new(embedding.dim(), epsilon, base, sampler)?;
        Ok(Self::around(embedding, noise, randomness))
    }

    /// Creates ICDM'19's mechanism at the paper's nominal ε. Its proved
    /// [`epsilon`](crate::WordMechanism::epsilon) is nominal + n.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn from_paper(
        embedding: Arc<Embedding>,
        nominal: f64,
        randomness: Randomness,
    ) -> Result<Self> {
        check_poincare(&embedding)?;
        let law = Law::new(embedding.dim(), check_epsilon(nominal)?, Base::Ball)?;
        let sampler = NoiseSampler::Exact;
        let noise = HyperbolicNoise { law, sampler };
        Ok(Self::around(embedding, noise, randomness))
    }
}

fn check_poincare(embedding: &Embedding) -> Result<()> {
    if embedding.metric() == Metric::Poincare {
        return Ok(());
    }
    let got = format!("metric {:?}", embedding.metric().name());
    let expected = "one with metric=\"poincare\"";
    Err(Error::parameter("embedding", expected, got))
}

impl Noise for HyperbolicNoise {
    fn perturb(
        &self,
        embedding: &Embedding,
        ids: &[u32],
        rng: &mut ChaCha12Rng,
        points: &mut [f64],
        control: &Control,
    ) -> Result<()> {
        let n = embedding.dim();
        match self.sampler {
            NoiseSampler::Exact => {
                let points = points.chunks_exact_mut(n);
                points.for_each(|z| self.law.sample(rng, z));
            }
            NoiseSampler::Metropolis => Walk::new(self.law).fill(points, rng, control)?,
        }
        let (mut word, mut z) = (vec![0.0; n], vec![0.0; n]);
        for (point, &id) in points.chunks_exact_mut(n).zip(ids) {
            let vector = embedding.vector(id).iter();
            word.iter_mut()
                .zip(vector)
                .for_each(|(w, &x)| *w = x.into());
            z.copy_from_slice(point);
            mobius_add(&word, &z, point);
            clamp(point, LAMBDA);
        }
        Ok(())
    }

    fn guarantee(&self, embedding: &Embedding) -> Guarantee {
        let theorem = match self.law.base() {
            Base::Volume => {
                "the density exp(-ε·d(z,w)) with respect to hyperbolic volume, moved by an \
                     isometry, changes by at most exp(ε·d(w,w')) between two words; clamp and \
                     nearest word are post-processing"
            }
            Base::Ball => {
                "with respect to hyperbolic volume the noise of ICDM'19 with parameter e has \
                     the density exp(-eρ)(2cosh²(ρ/2))^-n, whose logarithm changes by at most \
                     (e + n)·d(w,w') between two words (the paper's e·d does not hold); clamp \
                     and nearest word are post-processing"
            }
        };
        let epsilon = self.epsilon();
        let drawn = floating_point("HyperbolicLaplace", "poincare", epsilon, theorem, "2^-40");
        let guarantee = Guarantee {
            slack: epsilon * embedding.distance_error(),
            ..drawn
        };
        match self.sampler {
            NoiseSampler::Exact => guarantee,
            NoiseSampler::Metropolis => guarantee.voided(
                "sampler=\"metropolis\" is for comparison only, how far its Markov chain has mixed \
                 is not proved",
            ),
        }
    }

    fn epsilon(&self) -> f64 {
        self.law.provable_epsilon()
    }

    fn with_epsilon(&self, embedding: &Embedding, epsilon: f64) -> Result<Self> {
        Self::new(embedding.dim(), epsilon, self.law.base(), self.sampler)
    }
}
