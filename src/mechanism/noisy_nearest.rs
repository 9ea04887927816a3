//! Adds noise to a word's vector and releases a word near the noisy point. MADLIB (WSDM'20),
//! hyperbolic noise (ICDM'19) and similar mechanisms share this code.
//!
//! **Releases** the word nearest to a noisy point z. A [`Noise`] draws the point and proves its
//! guarantee. Which word is nearest depends on z alone, so it is post-processing. Of two words at the
//! same distance, the smaller id counts as nearer. This module adds batches, threads and the search.
//!
//! **The Vickrey mechanism** (Xu, Aggarwal, Feyisetan, Teissier 2021) releases u or v, the two words
//! nearest to z = φ(w) + N (u the nearer). The probability of u is (1-t)·‖z-φ(v)‖ / (t·‖z-φ(u)‖ +
//! (1-t)·‖z-φ(v)‖). t = 0 always gives the nearest word, t = 1 the second nearest. N is round (as in
//! MADLIB) or elliptical (as in Mahalanobis). Its guarantee is that of the noise: both words and both
//! distances are functions of z, so the choice is post-processing. Code that excludes the input word
//! from the choice loses this guarantee: see docs/research/mechanisms.md. If two words lie at z, the
//! smaller id is released, whatever w was.

use std::sync::Arc;

use rand::RngExt;
use rand::rngs::ChaCha12Rng;

use crate::distance::search::hnsw::{self, Hnsw};
use crate::distance::search::{BATCH, Search, exact::Scratch};
use crate::guarantee::Guarantee;
use crate::mechanism::Mechanism;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, for_all_with, install};
use crate::support::random::{Key, Randomness, uniform_below};
use crate::words::embedding::Embedding;
use crate::words::space::MetricSpace;
use crate::words::vocabulary::Vocabulary;

/// Draws random points around the words of an embedding.
pub trait Noise: Clone + std::fmt::Debug + Send + Sync + 'static {
    /// Writes a noisy point for each of `ids`, row-major in `points`.
    fn perturb(
        &self,
        embedding: &Embedding,
        ids: &[u32],
        rng: &mut ChaCha12Rng,
        points: &mut [f64],
    );

    /// The proved guarantee of the points, per unit of the embedding's distance.
    fn guarantee(&self, embedding: &Embedding) -> Guarantee;

    /// The proved ε per unit of the embedding's distance.
    fn epsilon(&self) -> f64;

    /// Returns the same noise at another proved ε.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an ε outside the noise's domain.
    fn with_epsilon(&self, embedding: &Embedding, epsilon: f64) -> Result<Self>;
}

/// The guarantee of noise drawn in floating point. The proof is about real numbers; it does not
/// cover outputs with a probability below about `outside`.
pub(super) fn floating_point(
    mechanism: &'static str,
    metric: &'static str,
    epsilon: f64,
    theorem: &'static str,
    outside: &str,
) -> Guarantee {
    let arithmetic = "the noise is drawn in 64-bit floating point";
    Guarantee {
        exceptions: vec![format!(
            "the rounding of the noise: the proof is about real numbers, so outputs of a \
             probability below about {outside} are outside it (Tem's integer sampler has no such \
             gap)"
        )],
        ..Guarantee::of(mechanism, metric, epsilon, theorem, arithmetic)
    }
}

/// A word mechanism that releases a word near a noisy point: by default the nearest.
#[derive(Clone, Debug)]
pub struct NoisyNearest<N> {
    embedding: Arc<Embedding>,
    noise: N,
    /// t of the Vickrey mechanism.
    tuning: Option<f64>,
    search: Search,
    /// The words that may be released, if some are excluded.
    released: Option<Arc<Released>>,
    randomness: Randomness,
}

/// The words that may be released, as an embedding of their own, with their ids.
#[derive(Debug)]
struct Released {
    embedding: Embedding,
    ids: Vec<u32>,
}

impl Released {
    fn new(embedding: &Embedding, excluded: &[u32]) -> Result<Self> {
        embedding.vocabulary().check_ids(excluded)?;
        let mut out = vec![false; embedding.len()];
        excluded.iter().for_each(|&id| out[id as usize] = true);
        let ids: Vec<u32> = (0..embedding.len() as u32)
            .filter(|&id| !out[id as usize])
            .collect();
        if ids.is_empty() {
            return Err(Error::parameter(
                "exclude",
                "less than all words",
                out.len(),
            ));
        }
        let words = ids.iter().map(|&id| embedding.vocabulary().word(id));
        let vectors = ids.iter().flat_map(|&id| embedding.vector(id)).copied();
        let (dim, metric) = (embedding.dim(), embedding.metric());
        let embedding = Embedding::new(Vocabulary::new(words)?, vectors.collect(), dim, metric)?;
        Ok(Released { embedding, ids })
    }
}

impl<N: Noise> NoisyNearest<N> {
    /// Combines an embedding with a noise that fits it and the exact search.
    pub(super) fn around(embedding: Arc<Embedding>, noise: N, randomness: Randomness) -> Self {
        NoisyNearest {
            embedding,
            noise,
            tuning: None,
            search: Search::Exact,
            released: None,
            randomness,
        }
    }

    /// Returns the Vickrey mechanism with the same noise and t = `tuning`.
    ///
    /// ```
    /// use fastdx::{Embedding, Mechanism, MultivariateLaplace, Randomness};
    /// let embedding = Embedding::default_english()?.into();
    /// let noise = MultivariateLaplace::new(embedding, 12.0, Randomness::new(None))?;
    /// assert_eq!(noise.vickrey(0.75)?.sample("coffee", 3)?.len(), 3);
    /// # Ok::<(), fastdx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parameter`] for a t outside [0, 1].
    pub fn vickrey(self, tuning: f64) -> Result<Self> {
        if !(0.0..=1.0).contains(&tuning) {
            return Err(Error::parameter("tuning", "from 0 to 1", tuning));
        }
        let tuning = Some(tuning);
        Ok(NoisyNearest { tuning, ..self })
    }

    /// t of the Vickrey mechanism; `None` if the nearest word is always released.
    pub fn tuning(&self) -> Option<f64> {
        self.tuning
    }

    /// Returns the same mechanism with another search. An approximate search keeps the guarantee
    /// and changes the law. One seed gives both searches the same points, so that they compare.
    ///
    /// # Errors
    /// [`Error::Parameter`] for `ef` outside 1..=10,000, an embedding without a graph
    /// ([`build_hnsw`](Embedding::build_hnsw)), or a build without the feature `hnsw`.
    pub fn with_search(self, search: Search) -> Result<Self> {
        if let Search::Hnsw { ef } = search {
            if !(1..=10_000).contains(&ef) {
                return Err(Error::parameter("ef", "between 1 and 10000", ef));
            }
            hnsw::require()?;
            if self.embedding.hnsw().is_none() {
                let expected = "\"exact\", or an embedding with an HNSW graph (build_hnsw)";
                return Err(Error::parameter("search", expected, "\"hnsw\""));
            }
        }
        Ok(NoisyNearest { search, ..self })
    }

    /// The search for the nearest words.
    pub fn search(&self) -> Search {
        self.search
    }

    /// The embedding.
    pub fn embedding(&self) -> &Arc<Embedding> {
        &self.embedding
    }

    /// The noise.
    pub fn noise(&self) -> &N {
        &self.noise
    }

    /// How many of the nearest words the choice needs, if there are as many.
    fn needed(&self) -> usize {
        1 + usize::from(self.tuning.is_some())
    }

    /// The place of the released word in the nearest words with their distances from the point.
    fn choose(&self, ranked: &[(f64, u32)], rng: &mut ChaCha12Rng) -> usize {
        let (Some(tuning), &[(first, _), (second, _)]) = (self.tuning, ranked) else {
            return 0;
        };
        // The share of v. If both words lie at the point, 0/0 is NaN and the comparison chooses u.
        let (to_first, to_second) = (tuning * first, (1.0 - tuning) * second);
        usize::from(rng.random::<f64>() < to_first / (to_first + to_second))
    }

    /// Returns the graph and the number of candidates of an approximate search.
    fn graph(&self) -> Option<(&Hnsw, usize)> {
        match self.search {
            Search::Hnsw { ef } => self.embedding.hnsw().map(|hnsw| (&**hnsw, ef)),
            _ => None,
        }
    }

    /// Returns the chosen word for each point.
    fn chosen(
        &self,
        graph: Option<(&Hnsw, usize)>,
        points: &[f64],
        scratch: &mut Scratch,
        rng: &mut ChaCha12Rng,
        out: &mut [u32],
    ) {
        let Some((hnsw, ef)) = graph else {
            return self.chosen_exactly(points, scratch, rng, out);
        };
        let n = self.embedding.dim();
        let released = self.released.as_deref();
        let (k, allowed) = match released {
            None => (self.needed(), self.embedding.len()),
            Some(released) => (ef, released.ids.len()),
        };
        for (point, out) in points.chunks_exact(n).zip(out) {
            let mut near = hnsw.nearest(point, k.min(self.embedding.len()), ef);
            near.retain(|(_, id)| released.is_none_or(|r| r.ids.binary_search(id).is_ok()));
            near.truncate(self.needed());
            match near.len() < self.needed().min(allowed) {
                false => *out = near[self.choose(&near, rng)].1,
                true => self.chosen_exactly(point, scratch, rng, std::slice::from_mut(out)),
            }
        }
    }

    fn chosen_exactly(
        &self,
        points: &[f64],
        scratch: &mut Scratch,
        rng: &mut ChaCha12Rng,
        out: &mut [u32],
    ) {
        let released = self.released.as_deref();
        let embedding = released.map_or(&*self.embedding, |r| &r.embedding);
        let (search, vectors) = (embedding.search(), embedding.vectors());
        let k = self.needed().min(embedding.len());
        search.nearest_batch(vectors, points, k, None, scratch, |i, ranked| {
            let chosen = ranked[self.choose(ranked, rng)].1;
            out[i] = released.map_or(chosen, |r| r.ids[chosen as usize]);
        });
    }
}

impl<N: Noise> Mechanism for NoisyNearest<N> {
    fn space(&self) -> &dyn MetricSpace {
        &*self.embedding
    }

    fn guarantee(&self) -> Guarantee {
        let mut guarantee = self.noise.guarantee(&self.embedding);
        if self.tuning.is_some() {
            guarantee.mechanism = "Vickrey";
        }
        if let Some(released) = &self.released {
            guarantee.outputs = Guarantee::excluded(self.embedding.len(), released.ids.len());
        }
        guarantee.drawn_from(&self.randomness)
    }

    fn excluding(&self, ids: &[u32]) -> Result<Arc<dyn Mechanism>> {
        let all = [self.excluded(), ids.to_vec()].concat();
        let released = Some(Arc::new(Released::new(&self.embedding, &all)?));
        Ok(Arc::new(NoisyNearest {
            released,
            ..self.clone()
        }))
    }

    fn excluded(&self) -> Vec<u32> {
        let Some(released) = &self.released else {
            return Vec::new();
        };
        let ids = 0..self.embedding.len() as u32;
        ids.filter(|id| released.ids.binary_search(id).is_err())
            .collect()
    }

    fn epsilon(&self) -> f64 {
        self.noise.epsilon()
    }

    fn with_epsilon(&self, epsilon: f64) -> Result<Arc<dyn Mechanism>> {
        Ok(Arc::new(NoisyNearest {
            noise: self.noise.with_epsilon(&self.embedding, epsilon)?,
            ..self.clone()
        }))
    }

    fn randomness(&self) -> &Randomness {
        &self.randomness
    }

    fn draw(&self, ids: &[u32], key: &Key, out: &mut [u32], control: &Control) -> Result<()> {
        let n = self.embedding.dim();
        let graph = self.graph();
        let memory = || (Scratch::default(), vec![0.0; BATCH.min(ids.len()) * n]);
        install(ids.len(), 8, || {
            let each = ids.chunks(BATCH).zip(out.chunks_mut(BATCH)).enumerate();
            for_all_with(each, memory, |(scratch, points), (chunk, (ids, out))| {
                control.check()?;
                let mut rng = key.stream(chunk as u64);
                let points = &mut points[..ids.len() * n];
                self.noise.perturb(&self.embedding, ids, &mut rng, points);
                self.chosen(graph, points, scratch, &mut rng, out);
                control.advance(ids.len());
                Ok(())
            })
        })?
    }
    fn draw_unknown(&self, rng: &mut ChaCha12Rng) -> u32 {
        match &self.released {
            None => uniform_below(rng, self.embedding.len() as u32),
            Some(released) => released.ids[uniform_below(rng, released.ids.len() as u32) as usize],
        }
    }
}
