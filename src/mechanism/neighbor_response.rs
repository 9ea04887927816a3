//! The neighbour response: k-ary randomised response with one set of likely outputs per word (after
//! Warner 1965). Its law is a staircase of two probabilities.
//!
//! **Releases** y with Pr\[y|w\] ∝ e^s if y is one of the outputs C(w) of a [cover](crate::cover)
//! that stand for w, and ∝ 1 otherwise.
//!
//! **Guarantee**: ε-*local* differential privacy, for any two words at any distance. The score
//! costs s. The normalisers n_w·(e^s - 1) + V differ where words have different numbers n_w of
//! likely outputs. The code takes the largest s with s + ln(Z_max/Z_min) ≤ ε, which is ε itself if
//! every word has k likely outputs.

use std::sync::Arc;

use rand::rngs::ChaCha12Rng;

use crate::cover::Cover;
use crate::guarantee::Guarantee;
use crate::mechanism::Mechanism;
use crate::support::error::{Error, Result, check_epsilon};
use crate::support::parallel::{Control, for_all, install};
use crate::support::random::{Key, Randomness, uniform_below_u128};
use crate::words::space::MetricSpace;

/// The integer weight of a likely output. Other outputs have this times e^-s, rounded up.
const LIKELY: u128 = 1 << 80;
/// Number of words drawn from one random stream.
const WORDS_PER_STREAM: usize = 4096;

/// The neighbour-response mechanism.
#[derive(Clone)]
pub struct NeighborResponse {
    space: Arc<dyn MetricSpace>,
    cover: Arc<Cover>,
    epsilon: f64,
    /// The log-ratio s between a likely output and another.
    score: f64,
    /// The integer weight of an unlikely output, from 1 to [`LIKELY`].
    other: u128,
    randomness: Randomness,
}

impl NeighborResponse {
    /// Creates the mechanism with `epsilon` for any two words.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an `epsilon` that is not positive and finite, or a cover of other
    /// words or another metric.
    pub fn new(
        space: Arc<dyn MetricSpace>,
        epsilon: f64,
        cover: Arc<Cover>,
        randomness: Randomness,
    ) -> Result<Self> {
        check_epsilon(epsilon)?;
        cover.check_space(&*space)?;
        if cover.is_weighted() {
            return Err(Error::parameter(
                "cover",
                "one without weights",
                "one with weights",
            ));
        }
        let counts = (0..cover.words() as u32).map(|word| cover.outputs(word).len());
        let (least, most) = counts.fold((usize::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
        let released = cover.released().len() as f64;
        // Compute ln(Z_max/Z_min) without subtracting two logarithms, which loses all digits of a
        // small s.
        let spread = |s: f64| {
            let [more, least] = [most - least, least].map(|n| n as f64 * s.exp_m1());
            (more / (least + released)).ln_1p()
        };
        let cost = |s: f64| match s < 700.0 {
            true => s + spread(s),
            false => {
                s + (most as f64 / least.max(1) as f64).ln() + if least == 0 { s } else { 0.0 }
            }
        };
        // The cost grows with s, from 0. Stay a little below ε to cover the rounding here.
        let (mut low, mut high) = (0.0, epsilon);
        let allowed = epsilon * (1.0 - 1e-12);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            match cost(middle) <= allowed {
                true => low = middle,
                false => high = middle,
            }
        }
        // Rounded up, so that the ratio of two weights is at most e^s.
        let other = (LIKELY as f64 * (-low).exp() * (1.0 + 1e-13)).ceil();
        Ok(NeighborResponse {
            space,
            cover,
            epsilon,
            score: low,
            other: (other as u128).clamp(1, LIKELY),
            randomness,
        })
    }

    /// The likely outputs of every word.
    pub fn cover(&self) -> &Arc<Cover> {
        &self.cover
    }

    /// The log-ratio s between an output that stands for the word and any other.
    pub fn score(&self) -> f64 {
        self.score
    }

    /// Writes Pr\[y|w\] of every word w, as [`law`](Mechanism::law) computes it.
    pub(crate) fn column(&self, y: u32, out: &mut [f64]) {
        let Some(rank) = self.cover.rank(y) else {
            return out.fill(0.0);
        };
        let ratio = self.other as f64 / LIKELY as f64;
        let all = self.cover.released().len() as f64 * ratio;
        for (p, w) in out.iter_mut().zip(0..) {
            let likely = self.cover.outputs(w);
            let total = likely.len() as f64 * (1.0 - ratio) + all;
            let stands = likely.binary_search(&rank).is_ok();
            *p = if stands { 1.0 } else { ratio } / total;
        }
    }

    /// Draws one output of a word: a likely one by its extra weight, otherwise any output.
    #[inline]
    fn draw_word(&self, id: u32, rng: &mut ChaCha12Rng) -> u32 {
        let outputs = self.cover.outputs(id);
        let more = LIKELY - self.other;
        let likely = more * outputs.len() as u128;
        let all = self.other * self.cover.released().len() as u128;
        let u = uniform_below_u128(rng, likely + all);
        let rank = match u < likely {
            true => outputs[(u / more) as usize],
            false => ((u - likely) / self.other) as u32,
        };
        self.cover.id(rank)
    }
}

impl Mechanism for NeighborResponse {
    fn space(&self) -> &dyn MetricSpace {
        &*self.space
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee {
            outputs: Guarantee::covered(&self.cover),
            // A uniform output's law is within e^s of every word's law.
            unknown_bound: self.epsilon,
            ..Guarantee::of(
                "NeighborResponse",
                "discrete (1 between any two words: local differential privacy)",
                self.epsilon,
                "the weights of an output differ by a factor of e^s at most, and the sums of the \
                 weights by what ε leaves",
                "integer weights, rounded so that no ratio grows, drawn with exact integer \
                 randomness",
            )
        }
        .drawn_from(&self.randomness)
    }

    fn epsilon(&self) -> f64 {
        self.epsilon
    }

    fn with_epsilon(&self, epsilon: f64) -> Result<Arc<dyn Mechanism>> {
        let (space, cover) = (self.space.clone(), self.cover.clone());
        Ok(Arc::new(Self::new(
            space,
            epsilon,
            cover,
            self.randomness.clone(),
        )?))
    }

    fn excluding(&self, ids: &[u32]) -> Result<Arc<dyn Mechanism>> {
        let cover = Arc::new(self.cover.excluding(ids)?);
        let (space, randomness) = (self.space.clone(), self.randomness.clone());
        Ok(Arc::new(Self::new(space, self.epsilon, cover, randomness)?))
    }

    fn excluded(&self) -> Vec<u32> {
        self.cover.excluded_ids()
    }

    fn randomness(&self) -> &Randomness {
        &self.randomness
    }

    fn draw(&self, ids: &[u32], key: &Key, out: &mut [u32], control: &Control) -> Result<()> {
        install(ids.len(), WORDS_PER_STREAM, || {
            let out = out.chunks_mut(WORDS_PER_STREAM);
            let each = ids.chunks(WORDS_PER_STREAM).zip(out).enumerate();
            for_all(each, |(piece, (ids, out))| {
                control.check()?;
                let mut rng = key.stream(piece as u64);
                for (&id, out) in ids.iter().zip(out) {
                    *out = self.draw_word(id, &mut rng);
                }
                control.advance(ids.len());
                Ok(())
            })
        })?
    }
    fn bound(&self, a: u32, b: u32) -> f64 {
        if a == b { 0.0 } else { self.epsilon }
    }

    fn has_law(&self) -> bool {
        true
    }

    fn law(&self, id: u32, probabilities: &mut [f64]) -> bool {
        let (likely, all) = (self.cover.outputs(id), self.cover.released());
        let ratio = self.other as f64 / LIKELY as f64;
        let total = likely.len() as f64 * (1.0 - ratio) + all.len() as f64 * ratio;
        probabilities.fill(0.0);
        for &y in all {
            probabilities[y as usize] = ratio / total;
        }
        for &rank in likely {
            probabilities[self.cover.id(rank) as usize] = 1.0 / total;
        }
        true
    }

    fn draw_unknown(&self, rng: &mut ChaCha12Rng) -> u32 {
        self.cover.draw_uniformly(rng)
    }
}
