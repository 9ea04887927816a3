//! Turns every metric into a score that panels of words can compute fast: a larger score means a
//! nearer word.
//!
//! | metric | score of word u for query q | v | half | H |
//! |---|---|---|---|---|
//! | Euclidean | q̃·v - H·half | u - c | ‖u - c‖²/2 | 1 |
//! | angular | q̃·v | u/‖u‖ - c | 0 | 1 |
//! | Poincaré | q̃·v - H·half | u·w - c, w = 1/(1 - ‖u‖²) | w/2 | 1 + ‖q‖² |
//! | Manhattan, Chebyshev | -‖q̃ - v‖₁, -‖q̃ - v‖_∞ | u | 0 | 1 |
//!
//! On the ball ‖q-u‖²/(1-‖u‖²) = (1+‖q‖²)w - 1 - 2q·(uw), which is linear in q and ‖q‖² and grows
//! with the distance. Subtracting the mean c does not change the order; it makes the numbers small,
//! so that few bits suffice. A power of two scales everything so that the largest v is about 1.

use crate::distance::metric::{Metric, norm2};

/// The words and queries of one metric as vectors to multiply (or to subtract).
#[derive(Debug)]
pub(crate) struct Scoring {
    pub(crate) metric: Metric,
    pub(crate) dim: usize,
    center: Vec<f64>,
    word_scale: f64,
    query_scale: f64,
}

/// The terms of a query's bounds; its vector goes to a separate buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueryTerms {
    /// The factor H.
    pub(crate) factor: f64,
    /// The norm ‖q̃‖₂.
    pub(crate) norm: f64,
    /// How much a score can change by rounding distances to f64 and to a grid.
    pub(crate) rounding_error: f64,
    /// The squared norm ‖q‖².
    norm2: f64,
    /// q̃·c, in the scale of a score.
    shift: f64,
}

impl Scoring {
    pub(crate) fn new(metric: Metric, dim: usize, vectors: &[f32]) -> Self {
        let mut scoring = Scoring {
            metric,
            dim,
            center: vec![0.0; dim],
            word_scale: 1.0,
            query_scale: 1.0,
        };
        let mut v = vec![0.0; dim];
        if !scoring.is_direct() {
            let mut center = vec![0.0; dim];
            for u in vectors.chunks_exact(dim) {
                scoring.word(u, &mut v);
                center.iter_mut().zip(&v).for_each(|(c, x)| *c += x);
            }
            let count = (vectors.len() / dim) as f64;
            center.iter_mut().for_each(|c| *c /= count);
            if center.iter().all(|c| c.is_finite()) {
                scoring.center = center;
            }
        }
        let mut largest = 0.0f64;
        for u in vectors.chunks_exact(dim) {
            scoring.word(u, &mut v);
            largest = largest.max(norm2(&v).sqrt());
        }
        // Scaling by a power of two is exact.
        if largest.is_normal() {
            let scale = 2f64.powi(-(largest.log2().ceil() as i32).clamp(-900, 900));
            scoring.word_scale = scale;
            scoring.query_scale = match metric {
                Metric::Angular | Metric::Poincare => 1.0,
                _ => scale,
            };
        }
        scoring
    }

    /// Whether distances are sums (or maxima) of differences, not products.
    pub(crate) fn is_direct(&self) -> bool {
        matches!(self.metric, Metric::Manhattan | Metric::Chebyshev)
    }

    /// Writes v of a word; returns half.
    pub(crate) fn word(&self, u: &[f32], v: &mut [f64]) -> f64 {
        let weight = match self.metric {
            Metric::Angular => norm2(u).sqrt().recip(),
            Metric::Poincare => (1.0 - norm2(u)).recip(),
            _ => 1.0,
        };
        for ((v, &u), c) in v.iter_mut().zip(u).zip(&self.center) {
            *v = (f64::from(u) * weight - c) * self.word_scale;
        }
        match self.metric {
            Metric::Euclidean => norm2(v) / 2.0,
            Metric::Poincare => weight / 2.0 * self.word_scale,
            _ => 0.0,
        }
    }

    /// Writes q̃. `step` is the step of the grid that distances are rounded to, or 0; `largest` is
    /// the largest ‖v‖.
    pub(crate) fn query(&self, q: &[f64], step: f64, largest: f64, out: &mut [f64]) -> QueryTerms {
        let rounding = (self.dim as f64 / 8.0 + 8.0) * f64::EPSILON;
        let norm2_q = norm2(q);
        let (scale, moves) = match self.metric {
            Metric::Angular => (norm2_q.sqrt().recip(), false),
            Metric::Poincare => (1.0, false),
            _ => (self.query_scale, true),
        };
        for ((out, &q), c) in out.iter_mut().zip(q).zip(&self.center) {
            *out = if moves { q - c } else { q } * scale;
        }
        let norm = norm2(out).sqrt();
        let step = step * self.query_scale;
        let (factor, rounding_error) = match self.metric {
            Metric::Euclidean => (1.0, norm * norm * rounding + 2.0 * (norm + largest) * step),
            Metric::Angular => (1.0, (4.0 * rounding + step) * self.word_scale),
            // x = sinh²(d/2) changes by at most (2x + 1)/2 per unit of distance, and x(1 - ‖q‖²) is
            // at most 4w ≤ 8·half.
            Metric::Poincare => (
                1.0 + norm2_q,
                (rounding * 64.0 + step) * (1.0 + 8.0 * largest.max(self.word_scale)),
            ),
            _ => (1.0, step),
        };
        let shift = match self.metric {
            Metric::Angular | Metric::Poincare => {
                let products = out.iter().zip(&self.center).map(|(q, c)| q * c);
                products.sum::<f64>() * self.word_scale
            }
            _ => 0.0,
        };
        QueryTerms {
            factor,
            norm,
            rounding_error,
            norm2: norm2_q,
            shift,
        }
    }

    /// The score of a word at `distance` from a query.
    pub(crate) fn score(&self, query: &QueryTerms, distance: f64) -> f64 {
        match self.metric {
            Metric::Euclidean => (query.norm.powi(2) - (distance * self.query_scale).powi(2)) / 2.0,
            Metric::Angular => distance.cos() * self.word_scale - query.shift,
            Metric::Poincare => {
                let x = (distance / 2.0).sinh().powi(2) * (1.0 - query.norm2);
                -(x + 1.0) / 2.0 * self.word_scale - query.shift
            }
            _ => -distance * self.query_scale,
        }
    }
}
