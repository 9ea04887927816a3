//! Hyperbolic Laplace noise around a word of a Poincaré embedding (ICDM'19, put right).
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

use rayon::prelude::*;

use crate::embedding::Embedding;
use crate::error::{Error, Result, check_epsilon};
use crate::hyperbolic::noise::{Base, HyperbolicLaplace as Noise};
use crate::hyperbolic::walk::Walk;
use crate::hyperbolic::{LAMBDA, clamp, mobius_add};
use crate::mechanism::Mechanism;
use crate::mechanism::guarantee::Guarantee;
use crate::metric::Metric;
use crate::parallel::{Control, install};
use crate::random::{Key, Randomness};
use crate::search::{BATCH, exact::Scratch};
use crate::space::MetricSpace;
use crate::vocabulary::Vocabulary;

/// How the noise is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoiseSampler {
    /// The radius from its law, the direction uniformly: independent draws.
    #[default]
    Exact,
    /// The paper's Markov chain: approximate, for comparison.
    Metropolis,
}

/// The hyperbolic Laplace mechanism on a Poincaré embedding.
#[derive(Clone, Debug)]
pub struct HyperbolicLaplace {
    embedding: Arc<Embedding>,
    noise: Noise,
    sampler: NoiseSampler,
    randomness: Randomness,
}

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
        check_epsilon(epsilon)?;
        if embedding.metric() != Metric::Poincare {
            return Err(Error::parameter(
                "embedding",
                "one with metric=\"poincare\"",
                format!("metric {:?}", embedding.metric().name()),
            ));
        }
        let n = embedding.dim();
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
        let noise = Noise::new(n, parameter, base)?;
        Ok(HyperbolicLaplace {
            embedding,
            noise,
            sampler,
            randomness,
        })
    }

    /// ICDM'19's mechanism at the paper's nominal ε. [`epsilon`](Mechanism::epsilon) is what it
    /// really costs, nominal + n.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_paper(
        embedding: Arc<Embedding>,
        nominal: f64,
        randomness: Randomness,
    ) -> Result<Self> {
        check_epsilon(nominal)?;
        let epsilon = nominal + embedding.dim() as f64;
        let exact = NoiseSampler::Exact;
        let mut made = Self::new(embedding, epsilon, Base::Ball, exact, randomness)?;
        // The sum was rounded; the parameter is the one asked for.
        made.noise = Noise::new(made.embedding.dim(), nominal, Base::Ball)?;
        Ok(made)
    }

    /// The same mechanism at another (provable) ε; everything else is shared.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_epsilon(&self, epsilon: f64) -> Result<Self> {
        let (embedding, randomness) = (self.embedding.clone(), self.randomness.clone());
        Self::new(
            embedding,
            epsilon,
            self.noise.base(),
            self.sampler,
            randomness,
        )
    }

    /// The embedding.
    pub fn embedding(&self) -> &Arc<Embedding> {
        &self.embedding
    }

    /// The noise; its parameter is the paper's nominal ε for [`Base::Ball`].
    pub fn noise(&self) -> &Noise {
        &self.noise
    }

    /// How the noise is drawn.
    pub fn sampler(&self) -> NoiseSampler {
        self.sampler
    }
}

impl Mechanism for HyperbolicLaplace {
    fn vocabulary(&self) -> &Vocabulary {
        self.embedding.vocabulary()
    }

    fn guarantee(&self) -> Guarantee {
        let exceptions: Vec<String> = vec![
            "the rounding of the noise: the proof is about real numbers, so outputs of a \
             probability below about 2^-40 are outside it (Tem's integer sampler has no such gap)"
                .into(),
        ];
        let guarantee = Guarantee {
            mechanism: "HyperbolicLaplace",
            metric: "poincare",
            epsilon: self.epsilon(),
            delta: 0.0,
            certificate: None,
            slack: self.epsilon() * self.embedding.distance_error(),
            void: None,
            theorem: match self.noise.base() {
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
            },
            arithmetic: "the noise is drawn in 64-bit floating point",
            unknown_bound: f64::INFINITY,
            unknown_is_random: false,
            scope: Guarantee::WORDS,
            exceptions,
        };
        match self.sampler {
            NoiseSampler::Exact => guarantee,
            NoiseSampler::Metropolis => guarantee.voided(
                "sampler=\"metropolis\" is for comparison only, how far its Markov chain has mixed \
                 is not proved",
            ),
        }
        .drawn_from(&self.randomness)
    }

    fn epsilon(&self) -> f64 {
        self.noise.provable_epsilon()
    }

    fn distance(&self, a: u32, b: u32) -> f64 {
        MetricSpace::distance(&*self.embedding, a, b)
    }

    fn randomness(&self) -> &Randomness {
        &self.randomness
    }

    fn draw(&self, ids: &[u32], key: &Key, out: &mut [u32], control: &Control) -> Result<()> {
        let n = self.embedding.dim();
        let vectors = self.embedding.vectors();
        let search = self.embedding.search();
        install(ids.len(), 8, || {
            ids.par_chunks(BATCH)
                .zip(out.par_chunks_mut(BATCH))
                .enumerate()
                .try_for_each_init(
                    || {
                        (
                            Scratch::default(),
                            vec![0.0; BATCH * n],
                            vec![0.0; n],
                            vec![0.0; n],
                        )
                    },
                    |(scratch, queries, word, z), (chunk, (ids, out))| {
                        control.check()?;
                        let mut rng = key.stream(chunk as u64);
                        let queries = &mut queries[..ids.len() * n];
                        match self.sampler {
                            NoiseSampler::Exact => queries
                                .chunks_exact_mut(n)
                                .for_each(|z| self.noise.sample(&mut rng, z)),
                            NoiseSampler::Metropolis => {
                                let walk = Walk::new(self.noise);
                                walk.fill(queries, &mut rng, control)?;
                            }
                        }
                        for (query, &id) in queries.chunks_exact_mut(n).zip(ids) {
                            let vector = self.embedding.vector(id);
                            word.iter_mut()
                                .zip(vector)
                                .for_each(|(w, &x)| *w = x.into());
                            z.copy_from_slice(query);
                            mobius_add(word, z, query);
                            clamp(query, LAMBDA);
                        }
                        search.nearest_batch(vectors, queries, 1, None, scratch, |i, ranked| {
                            out[i] = ranked[0].1;
                        });
                        control.advance(ids.len());
                        Ok(())
                    },
                )
        })?
    }
}
