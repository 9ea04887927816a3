//! TEM, the truncated exponential mechanism (TEM'21, Algorithms 2 and 3).
//!
//! **Releases** y with Pr\[y|w\] ∝ exp(-(ε/2)·min(d(w,y), γ)). The paper's ⊥ element is only a
//! way to group the words beyond γ, which all have the same weight.
//!
//! **Guarantee**: ε·d-private for every metric d and every γ. The score -min(d(w,·), γ) is
//! 1-Lipschitz in w by the triangle inequality, so a weight changes by at most
//! exp((ε/2)·d(w,w')) and so does the normaliser. It needs *every* distance exactly: a
//! neighbour that an approximate search overlooked would change its score by up to γ.
//!
//! **Law** in [`law`], as integers; **samplers**: [`law::Law::sample`] draws the integer law
//! exactly, [`gumbel`] is the paper's, kept as the reference.

pub mod gumbel;
pub mod law;

use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Error, Result, check_epsilon};
use crate::mechanism::Mechanism;
use crate::mechanism::guarantee::Guarantee;
use crate::parallel::{Control, install};
use crate::random::{Key, Randomness};
use crate::space::MetricSpace;
use crate::vocabulary::Vocabulary;
use law::Law;

/// Positions that are grouped by word at a time.
const BLOCK: usize = 1 << 20;
/// Draws of one word in one task.
const PIECE: usize = 1 << 14;

/// How the law is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Sampler {
    /// Integer weights and exact integer randomness.
    #[default]
    Exact,
    /// Gumbel noise in floating point, as TEM'21 Algorithm 3 has it: the same law but for words
    /// more than about 40 scales below the best, which it never draws. For comparison.
    Gumbel,
}

/// How far apart words still count as neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Truncation {
    /// γ as given; 0 and infinity are ordinary values.
    Gamma(f64),
    /// γ by TEM'21 Theorem 3, so that a word beyond γ is released with probability at most β.
    Beta(f64),
}

impl Default for Truncation {
    fn default() -> Self {
        Truncation::Beta(1e-3)
    }
}

/// The truncated exponential mechanism on a finite metric space.
///
/// ```
/// use fastdx::{Embedding, Mechanism, Randomness, Tem};
/// let embedding = Embedding::default_english()?;
/// let tem = Tem::new(embedding.into(), 6.0, Default::default(), Randomness::new(None))?;
/// let law = tem.probabilities(tem.vocabulary().require("coffee")?);
/// assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-9);
/// # Ok::<(), fastdx::Error>(())
/// ```
#[derive(Clone)]
pub struct Tem {
    space: Arc<dyn MetricSpace>,
    epsilon: f64,
    truncation: Truncation,
    gamma: f64,
    sampler: Sampler,
    randomness: Randomness,
}

impl std::fmt::Debug for Tem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tem")
            .field("words", &self.space.vocabulary().len())
            .field("metric", &self.space.metric_name())
            .field("epsilon", &self.epsilon)
            .field("gamma", &self.gamma)
            .field("sampler", &self.sampler)
            .finish_non_exhaustive()
    }
}

impl Tem {
    /// The mechanism with `epsilon` per unit of the space's distance.
    ///
    /// # Errors
    /// `epsilon` not positive and finite, γ negative or NaN, β not between 0 and 1.
    pub fn new(
        space: Arc<dyn MetricSpace>,
        epsilon: f64,
        truncation: Truncation,
        randomness: Randomness,
    ) -> Result<Self> {
        check_epsilon(epsilon)?;
        let gamma = match truncation {
            Truncation::Gamma(gamma) if gamma >= 0.0 => gamma,
            Truncation::Gamma(gamma) => {
                return Err(Error::parameter(
                    "gamma",
                    "at least 0 (infinity is allowed)",
                    gamma,
                ));
            }
            Truncation::Beta(beta) if beta > 0.0 && beta < 1.0 => {
                gamma_of(epsilon, beta, space.vocabulary().len())
            }
            Truncation::Beta(beta) => {
                return Err(Error::parameter(
                    "beta",
                    "between 0 and 1, both excluded",
                    beta,
                ));
            }
        };
        Ok(Tem {
            space,
            epsilon,
            truncation,
            gamma,
            sampler: Sampler::default(),
            randomness,
        })
    }

    /// The same mechanism at another ε; γ follows if it came from β.
    ///
    /// # Errors
    /// `epsilon` not positive and finite.
    pub fn with_epsilon(&self, epsilon: f64) -> Result<Self> {
        let randomness = self.randomness.clone();
        Ok(
            Self::new(self.space.clone(), epsilon, self.truncation, randomness)?
                .with_sampler(self.sampler),
        )
    }

    /// The same mechanism with another sampler.
    pub fn with_sampler(mut self, sampler: Sampler) -> Self {
        self.sampler = sampler;
        self
    }

    /// ε per unit of distance.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The distance beyond which all words are alike.
    pub fn gamma(&self) -> f64 {
        self.gamma
    }

    /// Where γ came from.
    pub fn truncation(&self) -> Truncation {
        self.truncation
    }

    /// The sampler.
    pub fn sampler(&self) -> Sampler {
        self.sampler
    }

    /// The law of the output for word `id`: its probability for every word. This is the law
    /// that the exact sampler draws from, integer weights divided by their sum.
    pub fn probabilities(&self, id: u32) -> Vec<f64> {
        self.law(id).probabilities()
    }

    /// The law as the integers that are sampled.
    pub fn law(&self, id: u32) -> Law {
        let mut law = Law::default();
        self.fill_law(id, &mut vec![0.0; self.space.vocabulary().len()], &mut law);
        law
    }

    fn fill_law(&self, id: u32, distances: &mut [f64], law: &mut Law) {
        self.space.distances(id, distances);
        law.fill(self.epsilon / 2.0, self.gamma, distances);
    }

    fn draw_block(
        &self,
        block: u64,
        ids: &[u32],
        key: &Key,
        out: &mut [u32],
        control: &Control,
    ) -> Result<()> {
        // One row of distances serves all draws of a word: group the positions by word.
        let mut order: Vec<u64> = ids
            .iter()
            .zip(0u64..)
            .map(|(&id, i)| u64::from(id) << 32 | i)
            .collect();
        order.par_sort_unstable();
        let word = |entry: &u64| (entry >> 32) as u32;
        let pieces: Vec<(u64, &[u64])> = order
            .chunk_by(|a, b| word(a) == word(b))
            .flat_map(|group| group.chunks(PIECE).enumerate())
            .map(|(piece, entries)| {
                // A stream for each word and piece: the outcome does not depend on threads.
                let piece = block * (BLOCK / PIECE) as u64 + piece as u64;
                (u64::from(word(&entries[0])) << 32 | piece, entries)
            })
            .collect();
        let drawn: Vec<Vec<u32>> = pieces
            .par_iter()
            .map_init(
                || (vec![0.0; self.space.vocabulary().len()], Law::default()),
                |(distances, law), &(stream, entries)| {
                    control.check()?;
                    let mut rng = key.stream(stream);
                    let id = word(&entries[0]);
                    let draws = match self.sampler {
                        Sampler::Exact => {
                            self.fill_law(id, distances, law);
                            entries.iter().map(|_| law.sample(&mut rng)).collect()
                        }
                        Sampler::Gumbel => {
                            self.space.distances(id, distances);
                            let gumbel = gumbel::Gumbel::new(self.epsilon, self.gamma, distances);
                            entries.iter().map(|_| gumbel.sample(&mut rng)).collect()
                        }
                    };
                    control.advance(entries.len());
                    Ok(draws)
                },
            )
            .collect::<Result<_>>()?;
        for ((_, entries), drawn) in pieces.iter().zip(drawn) {
            for (entry, y) in entries.iter().zip(drawn) {
                out[*entry as u32 as usize] = y;
            }
        }
        Ok(())
    }
}

/// γ = (2/ε)·ln((1-β)(|W|-1)/β), TEM'21 Theorem 3; 0 where that is negative.
fn gamma_of(epsilon: f64, beta: f64, words: usize) -> f64 {
    (2.0 / epsilon * ((1.0 - beta) * (words - 1) as f64 / beta).ln()).max(0.0)
}

impl Mechanism for Tem {
    fn vocabulary(&self) -> &Vocabulary {
        self.space.vocabulary()
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee {
            mechanism: "Tem",
            metric: self.space.metric_name(),
            epsilon: self.epsilon,
            delta: 0.0,
            slack: law::SLACK,
            theorem: "the score -min(d(w,y),γ) changes by at most d(w,w') between two words, and \
                      the exponential mechanism with exponent ε/2 pays once for the score and \
                      once for the normaliser (TEM'21, Theorem 1)",
            arithmetic: match self.sampler {
                Sampler::Exact => {
                    "integer weights drawn with exact integer randomness; every word keeps a \
                     positive weight"
                }
                Sampler::Gumbel => {
                    "Gumbel noise in 64-bit floating point, for comparison only: words more \
                     than about 40 scales below the best are never drawn, which the proof does \
                     not cover"
                }
            },
            // A word at distance γ from every other has this law but for itself.
            unknown_bound: self.epsilon / 2.0 * self.gamma,
            exceptions: Vec::new(),
        }
    }

    fn distance(&self, a: u32, b: u32) -> f64 {
        self.space.distance(a, b)
    }

    fn randomness(&self) -> &Randomness {
        &self.randomness
    }

    fn draw(&self, ids: &[u32], key: &Key, out: &mut [u32], control: &Control) -> Result<()> {
        install(ids.len(), 4, || {
            let blocks = ids.chunks(BLOCK).zip(out.chunks_mut(BLOCK));
            (0..)
                .zip(blocks)
                .try_for_each(|(block, (ids, out))| self.draw_block(block, ids, key, out, control))
        })?
    }
}
