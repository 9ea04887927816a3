//! Hyperbolic Laplace noise around a word of a Poincaré embedding (ICDM'19, at the price that holds).
//!
//! **Releases** the word hyperbolically nearest to proj(φ(w) ⊕ N): the noise N is centred at the
//! origin, Möbius addition carries it to the word, and the clamp proj keeps it within 1 - 1e-5.
//!
//! **Guarantee**: Möbius addition is an isometry, so the density of φ(w) ⊕ N with respect to
//! hyperbolic volume is that of N, moved. For [`Base::Volume`] it is ∝ e^(-ε·d(z,φ(w))), which
//! changes by at most e^(ε·d(w,w')). For [`Base::Ball`], the paper's noise at its nominal e, it is
//! ∝ e^(-eρ)(2cosh²(ρ/2))^(-n), whose logarithm changes by at most (e + n)·d(w,w'): the paper's e·d
//! does not hold (a test shows it broken). Clamp and nearest word are post-processing.

use std::sync::Arc;

use rand::rngs::ChaCha12Rng;

use crate::embedding::Embedding;
use crate::error::{Error, Result, check_epsilon};
use crate::guarantee::Guarantee;
use crate::hyperbolic::noise::{Base, HyperbolicLaplace as Law};
use crate::hyperbolic::walk::Walk;
use crate::hyperbolic::{LAMBDA, clamp, mobius_add};
use crate::mechanism::noisy_nearest::{Noise, NoisyNearest, floating_point};
use crate::metric::Metric;
use crate::names::named;
use crate::parallel::Control;
use crate::random::{Bulk, Randomness};
use crate::space::MetricSpace;

/// How the noise is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoiseSampler {
    /// The radius from its law, the direction uniformly: independent draws.
    #[default]
    Exact,
    /// The paper's Markov chain: approximate, for comparison.
    Metropolis,
}

named!(NoiseSampler, "sampler", NoiseSampler::Exact => "exact", NoiseSampler::Metropolis => "metropolis");

/// Hyperbolic noise, carried to a word.
#[derive(Clone, Debug)]
pub struct HyperbolicNoise {
    law: Law,
    sampler: NoiseSampler,
}

impl HyperbolicNoise {
    /// Its law around the origin; its parameter is the paper's nominal ε for [`Base::Ball`].
    pub fn law(&self) -> &Law {
        &self.law
    }

    /// How it is drawn.
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
    /// The mechanism with `epsilon` per unit of hyperbolic distance, the provable one: for
    /// [`Base::Ball`] the noise has the parameter ε - n.
    ///
    /// # Errors
    /// An embedding with another metric; `epsilon` not positive and finite, at most n - 1 for
    /// [`Base::Volume`], at most n for [`Base::Ball`].
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

    /// ICDM'19's mechanism at the paper's nominal ε. What it really costs, its
    /// [`epsilon`](crate::WordMechanism::epsilon), is nominal + n.
    ///
    /// # Errors
    /// As [`new`](Self::new).
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
                let mut rng = Bulk::of(rng);
                let points = points.chunks_exact_mut(n);
                points.for_each(|z| self.law.sample(&mut rng, z));
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
