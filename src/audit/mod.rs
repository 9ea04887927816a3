//! The ε that a Tem really has on its vocabulary, computed.
//!
//! The factor ½ in exp(-(ε/2)·d) pays for the normaliser Z: with η = ε/2 a log-ratio is
//! η·(score difference) + ln Z(w') - ln Z(w), and the proof bounds both by η·d. On a known
//! vocabulary the second can be computed. Seen from output y = w the score difference is all of
//! min(d, γ), as large as it gets, and of y = w and y = w' one has the sign of the normalisers
//! with it. So the supremum over all outputs is, exactly,
//!
//! > loss(w, w') = min(η·min(d, γ), 60 ln 2) + |ln Z(w) - ln Z(w')|
//!
//! (60 ln 2 is the floor of the integer weights), and the certified ε is the largest loss per
//! unit of distance over all pairs.

mod check;

use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::guarantee::Certificate;
use crate::mechanism::tem::law::{FLOOR_EXPONENT, weights};
use crate::mechanism::tem::{Tem, Truncation};
use crate::parallel::{Control, install};
use crate::random::Randomness;
use crate::space::{MetricSpace, rows_together};

pub use check::{Checked, Extend, check};

/// Nearest words of each that are looked at first. Pairs further apart can only bind where
/// normalisers differ more than they do.
const NEAR: usize = 16;
/// How often [`certified`] doubles ε in search of one that costs too much.
const DOUBLINGS: usize = 10;
/// How exactly [`certified`] solves for ε, relatively.
const EXACT: f64 = 1e-4;

/// One word's normaliser and nearest words.
struct Word {
    ln_z: f64,
    near: Vec<(f64, u32)>,
}

/// The certificate of a Tem; `control` counts the words. Three passes:
///
/// 1. every word's normaliser and its nearest words, in one pass over all distances;
/// 2. the loss of all near pairs, where most certificates bind;
/// 3. of words whose normaliser is so far from another that a further pair could bind, all pairs.
///
/// # Errors
/// [`Error::Interrupted`].
pub fn certify(tem: &Tem, control: &Control) -> Result<Certificate> {
    let space = tem.space();
    let count = space.vocabulary().len();
    let (eta, gamma) = (tem.nominal() / 2.0, tem.gamma());
    let ids: Vec<u32> = (0..count as u32).collect();
    let chunk = rows_together(count);
    let words: Vec<Word> = install(count * count, 0, || {
        let parts: Vec<Vec<Word>> = ids
            .par_chunks(chunk)
            .map_init(
                || (Vec::new(), Vec::new()),
                |(distances, values), ids| {
                    control.check()?;
                    distances.resize(ids.len() * count, 0.0);
                    space.rows(ids, distances);
                    let each = distances.chunks_exact(count);
                    let words = each.map(|row| Word {
                        ln_z: normaliser(row, eta, gamma, values).ln(),
                        near: nearest(row),
                    });
                    let words = words.collect();
                    control.advance(ids.len());
                    Ok(words)
                },
            )
            .collect::<Result<_>>()?;
        Ok::<_, Error>(parts.into_iter().flatten().collect())
    })??;
    let mut worst = Worst::default();
    let loss = |d: f64, a: usize, b: usize| {
        let score = (eta * d.min(gamma)).min(FLOOR_EXPONENT);
        (score + (words[a].ln_z - words[b].ln_z).abs()) / d
    };
    for (id, word) in words.iter().enumerate() {
        for &(d, other) in &word.near {
            worst.add(loss(d, id, other as usize), id as u32, other);
        }
    }
    // Further pairs: only of words whose normaliser is so far from another that they could bind.
    let extremes = words
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), w| {
            (low.min(w.ln_z), high.max(w.ln_z))
        });
    let open: Vec<u32> = words
        .iter()
        .zip(0u32..)
        .filter(|(word, _)| {
            let change = (extremes.1 - word.ln_z).max(word.ln_z - extremes.0);
            let from = word.near.last().map_or(f64::INFINITY, |n| n.0);
            word.near.len() == NEAR && eta + change / from > worst.loss
        })
        .map(|(_, id)| id)
        .collect();
    let further = install(open.len() * count, 0, || {
        open.par_chunks(chunk)
            .map_init(Vec::new, |distances, ids| {
                control.check()?;
                distances.resize(ids.len() * count, 0.0);
                space.rows(ids, distances);
                let mut worst = Worst::default();
                for (&id, row) in ids.iter().zip(distances.chunks_exact(count)) {
                    for (&d, other) in row.iter().zip(0u32..) {
                        if d > 0.0 {
                            worst.add(loss(d, id as usize, other as usize), id, other);
                        }
                    }
                }
                Ok(worst)
            })
            .try_reduce(Worst::default, |a, b| Ok(a.worse(b)))
    })??;
    let worst = worst.worse(further);
    let (a, b) = worst.pair;
    // The word with the smaller normaliser gives its own name the larger probability.
    let (a, b) = match words[a as usize].ln_z <= words[b as usize].ln_z {
        true => (a, b),
        false => (b, a),
    };
    Ok(Certificate {
        nominal: tem.nominal(),
        gamma,
        // Rounding is far below this, and the sampler's own is in the guarantee's slack.
        epsilon: (worst.loss * (1.0 + 1e-10)).min(tem.nominal()),
        pair: (a, b),
        output: a,
        vocabulary: space.fingerprint(),
    })
}

/// The Tem of the largest ε whose certificate is at most `epsilon`, with its certificate; at most
/// 1024 times `epsilon`, where γ is so small that more costs nothing.
///
/// # Errors
/// As [`Tem::new`], and [`Error::Interrupted`].
pub fn certified(
    space: Arc<dyn MetricSpace>,
    epsilon: f64,
    truncation: Truncation,
    randomness: Randomness,
    control: &Control,
) -> Result<(Tem, Certificate)> {
    // The nominal ε is at least the certified one, and at most its double unless γ binds: then a
    // larger one may cost no more.
    let first = Tem::new(space, epsilon, truncation, randomness)?;
    let mut low = (epsilon, certify(&first, control)?);
    let mut high = (epsilon, 0.0);
    for _ in 0..DOUBLINGS {
        high.0 *= 2.0;
        let certificate = certify(&first.with_epsilon(high.0)?, control)?;
        high.1 = certificate.epsilon;
        if certificate.epsilon > epsilon {
            break;
        }
        low = (high.0, certificate);
    }
    let mut halve = false;
    while high.0 / low.0 > 1.0 + EXACT && low.0 < high.0 {
        control.check()?;
        // By the line through both ends, or in the middle where that did not help.
        let (x0, x1, y0, y1) = (low.0, high.0, low.1.epsilon, high.1);
        let line = x0 + (x1 - x0) * (epsilon - y0) / (y1 - y0);
        let inside = line > x0 * (1.0 + EXACT / 4.0) && line < x1 * (1.0 - EXACT / 4.0);
        let x = match inside && !halve {
            true => line,
            false => 0.5 * (x0 + x1),
        };
        let certificate = certify(&first.with_epsilon(x)?, control)?;
        let before = x1 - x0;
        match certificate.epsilon <= epsilon {
            true => low = (x, certificate),
            false => high = (x, certificate.epsilon),
        }
        halve = high.0 - low.0 > 0.5 * before && !halve;
    }
    let tem = first.with_epsilon(low.0)?.with_certificate(low.1)?;
    Ok((tem, low.1))
}

#[derive(Clone, Copy, Default)]
struct Worst {
    loss: f64,
    pair: (u32, u32),
}

impl Worst {
    fn add(&mut self, loss: f64, a: u32, b: u32) {
        if loss > self.loss {
            (self.loss, self.pair) = (loss, (a, b));
        }
    }

    fn worse(self, other: Self) -> Self {
        if other.loss > self.loss { other } else { self }
    }
}

/// Z = Σ exp(-η·min(d, γ)), each at least the floor.
fn normaliser(row: &[f64], eta: f64, gamma: f64, values: &mut Vec<f64>) -> f64 {
    values.clear();
    values.extend_from_slice(row);
    weights(values, eta, gamma)
}

/// The nearest words at a distance above 0, ascending.
fn nearest(row: &[f64]) -> Vec<(f64, u32)> {
    let mut near: Vec<(f64, u32)> = Vec::with_capacity(NEAR + 1);
    let mut limit = f64::INFINITY;
    for (&d, other) in row.iter().zip(0u32..) {
        if d < limit && d > 0.0 {
            near.insert(near.partition_point(|n| n.0 <= d), (d, other));
            if near.len() > NEAR {
                near.pop();
            }
            if near.len() == NEAR {
                limit = near[NEAR - 1].0;
            }
        }
    }
    near
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Embedding, Metric, Vocabulary};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        /// Against all pairs and outputs of the law that is sampled: not below, and not above.
        #[test]
        fn a_certificate_is_the_largest_log_ratio_per_distance(
            rows in proptest::collection::vec([-2.0f32..2.0, -2.0f32..2.0], 2..40),
            epsilon in prop_oneof![0.05..1.0f64, 1.0..12.0f64],
            gamma in prop_oneof![Just(f64::INFINITY), 0.05..3.0f64],
            metric in 0usize..3
        ) {
            let words = (0..rows.len()).map(|i| i.to_string());
            let vectors: Vec<f32> = rows.iter().flatten().copied().collect();
            let vocabulary = Vocabulary::new(words).expect("distinct words");
            let e = Embedding::new(vocabulary, vectors, 2, Metric::ALL[metric]).expect("points");
            let space: Arc<dyn MetricSpace> = Arc::new(e);
            let truncation = Truncation::Gamma(gamma);
            let tem = Tem::new(space.clone(), epsilon, truncation, Randomness::new(None))
                .expect("a mechanism");
            let certificate = certify(&tem, &Control::new()).expect("a certificate");
            let ids = 0..rows.len() as u32;
            let laws: Vec<Vec<f64>> = ids
                .clone()
                .map(|w| tem.probabilities(w).iter().map(|p| p.ln()).collect())
                .collect();
            let mut worst = 0.0f64;
            for a in ids.clone() {
                for b in 0..a {
                    let d = space.distance(a, b);
                    let pairs = laws[a as usize].iter().zip(&laws[b as usize]);
                    let loss = pairs.fold(0.0f64, |m, (x, y)| m.max((x - y).abs()));
                    if d > 1e-3 {
                        worst = worst.max(loss / d);
                    }
                }
            }
            prop_assert!(worst <= certificate.epsilon + 1e-6, "{worst} {certificate:?}");
            let near = ids.clone().any(|a| (0..a).any(|b| space.distance(a, b) <= 1e-3));
            prop_assert!(near || certificate.epsilon <= worst + 1e-6, "{worst} {certificate:?}");
        }
    }
}
