//! MADLIB, the multivariate Laplace mechanism (WSDM'20, Algorithm 1).
//!
//! **Releases** the word whose vector is nearest to φ(w) + N, the density of N ∝ exp(-ε‖N‖₂).
//!
//! **Guarantee**: ε·d-private for the Euclidean d (WSDM'20, Theorem 1): the density of
//! φ(w) + N changes by at most exp(ε‖φ(w) - φ(w')‖) between w and w', and the nearest word is
//! post-processing. Ties go to the smaller id, whatever w was.
//!
//! **Sampler**: N as in [`crate::noise`]; the nearest word exactly, as in [`crate::search`], or on
//! request approximately, which keeps the guarantee and changes the law.

use std::sync::Arc;

use rand::Rng;
use rayon::prelude::*;

use crate::embedding::Embedding;
use crate::error::{Error, Result, check_epsilon};
use crate::mechanism::Mechanism;
use crate::mechanism::guarantee::Guarantee;
use crate::metric::Metric;
use crate::noise;
use crate::parallel::{Control, install};
use crate::random::{Key, Randomness};
use crate::search::hnsw::HnswScratch;
use crate::search::{BATCH, Search, exact::Scratch};
use crate::vocabulary::Vocabulary;

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
#[derive(Clone, Debug)]
pub struct MultivariateLaplace {
    embedding: Arc<Embedding>,
    epsilon: f64,
    noise: noise::MultivariateLaplace,
    randomness: Randomness,
    search: Search,
}

impl MultivariateLaplace {
    /// The mechanism with `epsilon` per unit of Euclidean distance.
    ///
    /// # Errors
    /// `epsilon` not positive and finite, or an embedding whose metric is not Euclidean.
    pub fn new(embedding: Arc<Embedding>, epsilon: f64, randomness: Randomness) -> Result<Self> {
        check_epsilon(epsilon)?;
        if embedding.metric() != Metric::Euclidean {
            return Err(Error::parameter(
                "embedding",
                "Euclidean: the proof of the multivariate Laplace mechanism is for \
                 metric=\"euclidean\" (Tem takes every metric)",
                format!("metric {:?}", embedding.metric().name()),
            ));
        }
        let noise = noise::MultivariateLaplace::new(embedding.dim(), epsilon)?;
        Ok(MultivariateLaplace {
            embedding,
            epsilon,
            noise,
            randomness,
            search: Search::Exact,
        })
    }

    /// The same mechanism at another ε; everything else is shared.
    ///
    /// # Errors
    /// `epsilon` not positive and finite.
    pub fn with_epsilon(&self, epsilon: f64) -> Result<Self> {
        let fresh = Self::new(self.embedding.clone(), epsilon, self.randomness.clone())?;
        Ok(MultivariateLaplace {
            search: self.search,
            ..fresh
        })
    }

    /// The same mechanism with another search. An approximate one keeps the guarantee and
    /// changes the law; [`quality`](crate::search::quality) measures by how much.
    ///
    /// # Errors
    /// `ef` outside 1..=10,000; an embedding without a graph
    /// ([`build_hnsw`](Embedding::build_hnsw)).
    pub fn with_search(self, search: Search) -> Result<Self> {
        if let Search::Hnsw { ef } = search {
            if !(1..=10_000).contains(&ef) {
                return Err(Error::parameter("ef", "between 1 and 10000", ef));
            }
            if self.embedding.hnsw().is_none() {
                let expected = "\"exact\", or an embedding with an HNSW graph (build_hnsw)";
                return Err(Error::parameter("search", expected, "\"hnsw\""));
            }
        }
        Ok(MultivariateLaplace { search, ..self })
    }

    /// How the nearest word is found.
    pub fn search(&self) -> Search {
        self.search
    }

    /// Writes a word's vector with fresh noise.
    #[inline]
    pub(crate) fn noisy(&self, id: u32, rng: &mut impl Rng, out: &mut [f64]) {
        self.noise.sample(rng, out);
        for (z, &x) in out.iter_mut().zip(self.embedding.vector(id)) {
            *z += f64::from(x);
        }
    }

    /// The embedding.
    pub fn embedding(&self) -> &Arc<Embedding> {
        &self.embedding
    }

    /// Adds fresh noise to row-major vectors, without looking for the nearest word.
    ///
    /// # Errors
    /// A length that is no multiple of the dimension, a number that is not finite.
    pub fn perturb(&self, vectors: &[f64], control: &Control) -> Result<Vec<f64>> {
        let n = self.embedding.dim();
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
        let key = self.randomness.next_key()?;
        let mut noisy = self.noise.sample_many(vectors.len() / n, &key, control)?;
        for (z, x) in noisy.iter_mut().zip(vectors) {
            *z += x;
        }
        Ok(noisy)
    }
}

impl Mechanism for MultivariateLaplace {
    fn vocabulary(&self) -> &Vocabulary {
        self.embedding.vocabulary()
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee {
            mechanism: "MultivariateLaplace",
            metric: "euclidean",
            epsilon: self.epsilon,
            delta: 0.0,
            certificate: None,
            slack: 0.0,
            void: None,
            theorem: "the density exp(-ε‖z-φ(w)‖) changes by at most exp(ε·d(w,w')) between two \
                      words, and taking the nearest word is post-processing (WSDM'20, Theorem 1)",
            arithmetic: "the noise is drawn in 64-bit floating point",
            unknown_bound: f64::INFINITY,
            unknown_is_random: false,
            scope: Guarantee::WORDS,
            exceptions: vec![
                "the rounding of the noise: the proof is about real numbers, so outputs of a \
                 probability below about 2^-50 are outside it (Tem's integer sampler has no such \
                 gap)"
                    .into(),
            ],
        }
        .drawn_from(&self.randomness)
    }

    fn epsilon(&self) -> f64 {
        self.epsilon
    }

    fn distance(&self, a: u32, b: u32) -> f64 {
        let vector = |id| self.embedding.vector(id);
        Metric::Euclidean.distance(vector(a), vector(b))
    }

    fn randomness(&self) -> &Randomness {
        &self.randomness
    }

    fn draw(&self, ids: &[u32], key: &Key, out: &mut [u32], control: &Control) -> Result<()> {
        let n = self.embedding.dim();
        let vectors = self.embedding.vectors();
        install(ids.len(), 8, || {
            ids.par_chunks(BATCH)
                .zip(out.par_chunks_mut(BATCH))
                .enumerate()
                .try_for_each_init(
                    || {
                        (
                            Scratch::default(),
                            HnswScratch::default(),
                            vec![0.0; BATCH * n],
                        )
                    },
                    |(scratch, approximate, queries), (chunk, (ids, out))| {
                        control.check()?;
                        let mut rng = key.stream(chunk as u64);
                        let queries = &mut queries[..ids.len() * n];
                        for (query, &id) in queries.chunks_exact_mut(n).zip(ids) {
                            self.noisy(id, &mut rng, query);
                        }
                        if let (Search::Hnsw { ef }, Some(hnsw)) =
                            (self.search, self.embedding.hnsw())
                        {
                            let of = (self.embedding.metric(), vectors);
                            for (query, out) in queries.chunks_exact(n).zip(out) {
                                *out = hnsw.nearest(of, query, 1, ef, approximate)[0].1;
                            }
                            control.advance(ids.len());
                            return Ok(());
                        }
                        let search = self.embedding.search();
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
