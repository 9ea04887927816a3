//! What one output tells of one word: mutual information and Bayes capacity, by one pass over all laws.

use rand::rngs::ChaCha12Rng;
use rayon::prelude::*;

use super::source::Source;
use crate::error::Result;
use crate::guarantee::Bits;
use crate::parallel::{Control, install};
use crate::random::uniform_below_u128;

/// What a pass over all laws finds.
pub(super) struct Survey {
    /// The normaliser of every word, where laws have them.
    pub(super) totals: Vec<f64>,
    /// Σ p ln p of every law.
    pub(super) spreads: Vec<f64>,
    /// The outputs' probabilities under 1/(rank + 2.7), if they are known.
    pub(super) by_rank: Option<Vec<f64>>,
    /// log₂ Σ_y max_w Pr\[y|w\].
    pub(super) capacity: f64,
}

/// Parts that the words are dealt with in, whatever the number of threads: sums of floats do not
/// depend on it.
const PARTS: usize = 32;

/// Outputs weighed by a prior over the words, and the largest probability of each.
#[derive(Default)]
struct Part {
    totals: Vec<f64>,
    spreads: Vec<f64>,
    outputs: Vec<f64>,
    most: Vec<f64>,
}

/// One pass: the survey and Σ_w π_w·Pr\[y|w\] of every output. `control` counts words.
pub(super) fn survey(
    source: &Source,
    prior: &[f64],
    control: &Control,
) -> Result<(Survey, Vec<f64>)> {
    let words = prior.len();
    let ids: Vec<u32> = (0..words as u32).collect();
    let of_part = |ids: &[u32]| -> Result<Part> {
        let mut part = Part {
            outputs: vec![0.0; words],
            most: vec![0.0; words],
            ..Part::default()
        };
        for ids in ids.chunks(64) {
            control.check()?;
            source.each_law(ids, words, |w, law, total, p_ln_p| {
                part.totals.push(total);
                part.spreads.push(p_ln_p);
                let share = prior[w as usize];
                let each = part.outputs.iter_mut().zip(&mut part.most).zip(law);
                for ((sum, most), &p) in each {
                    *sum += share * p;
                    *most = if p > *most { p } else { *most };
                }
            })?;
            control.advance(ids.len());
        }
        Ok(part)
    };
    let parts: Vec<Part> = install(words * words, 0, || {
        let chunks = ids.par_chunks(words.div_ceil(PARTS));
        chunks.map(of_part).collect::<Result<_>>()
    })??;
    let mut all = Part {
        outputs: vec![0.0; words],
        most: vec![0.0; words],
        ..Part::default()
    };
    for part in parts {
        all.totals.extend(part.totals);
        all.spreads.extend(part.spreads);
        let sums = all.outputs.iter_mut().zip(part.outputs);
        sums.for_each(|(a, b)| *a += b);
        let most = all.most.iter_mut().zip(part.most);
        most.for_each(|(a, b)| *a = a.max(b));
    }
    let survey = Survey {
        totals: all.totals,
        spreads: all.spreads,
        by_rank: None,
        capacity: all.most.iter().sum::<f64>().log2().max(0.0),
    };
    Ok((survey, all.outputs))
}

impl Survey {
    /// I(W;Y) in bits, from the outputs' probabilities under the prior.
    pub(super) fn bits(&self, prior: &[f64], outputs: &[f64]) -> Bits {
        let entropy: f64 = outputs
            .iter()
            .filter(|p| **p > 0.0)
            .map(|p| -p * p.ln())
            .sum();
        let given: f64 = prior.iter().zip(&self.spreads).map(|(p, s)| p * s).sum();
        Bits::exact(((entropy + given) / std::f64::consts::LN_2).max(0.0))
    }
}

/// Standard errors that an estimate's interval goes beyond its bounds: 99.7%.
const WIDTH: f64 = 3.0;

/// I(W;Y) from the laws of so many words drawn by the prior. Of m words, the mean log-ratio of a law and
/// the mixture of all m is at most I in expectation, of a law and the mixture of the m - 1 others at least
/// (van den Oord et al. 2018; Poole et al. 2019): the interval is from one to the other, each with three
/// standard errors.
pub(super) fn sampled_bits(
    source: &Source,
    prior: &[f64],
    sample: usize,
    rng: &mut ChaCha12Rng,
    control: &Control,
) -> Result<Bits> {
    let words = prior.len();
    let drawn = draw(prior, sample, rng);
    let m = sample as f64;
    let mixture: Vec<Vec<f64>> = install(sample * words, 0, || {
        let parts = drawn.par_chunks(sample.div_ceil(PARTS)).map(|ids| {
            let mut sum = vec![0.0; words];
            for ids in ids.chunks(64) {
                control.check()?;
                source.each_law(ids, words, |_, law, _, _| {
                    sum.iter_mut().zip(law).for_each(|(a, p)| *a += p);
                })?;
                control.advance(ids.len());
            }
            Ok(sum)
        });
        parts.collect::<Result<_>>()
    })??;
    let mut sums = vec![0.0; words];
    for part in mixture {
        sums.iter_mut().zip(part).for_each(|(a, b)| *a += b);
    }
    let ratios: Vec<Vec<(f64, f64)>> = install(sample * words, 0, || {
        let parts = drawn.par_chunks(sample.div_ceil(PARTS)).map(|ids| {
            let mut found = Vec::with_capacity(ids.len());
            for ids in ids.chunks(64) {
                control.check()?;
                source.each_law(ids, words, |_, law, _, _| {
                    let (mut with, mut without) = (0.0, 0.0);
                    for (&p, &sum) in law.iter().zip(&sums).filter(|(p, _)| **p > 0.0) {
                        with += p * (p * m / sum).ln();
                        let others = (sum - p).max(0.0);
                        without += p * (p * (m - 1.0) / others).ln();
                    }
                    found.push((with, without));
                })?;
                control.advance(ids.len());
            }
            Ok(found)
        });
        parts.collect::<Result<_>>()
    })??;
    let ratios: Vec<(f64, f64)> = ratios.into_iter().flatten().collect();
    let interval = |of: fn(&(f64, f64)) -> f64| {
        let mean = ratios.iter().map(of).sum::<f64>() / m;
        let squares: f64 = ratios.iter().map(|r| (of(r) - mean).powi(2)).sum();
        (mean, (squares / (m * (m - 1.0))).sqrt())
    };
    let entropy: f64 = prior
        .iter()
        .filter(|p| **p > 0.0)
        .map(|p| -p * p.ln())
        .sum();
    let (below, low_error) = interval(|r| r.0);
    let (above, high_error) = interval(|r| r.1);
    let bits = |nats: f64| nats.clamp(0.0, entropy) / std::f64::consts::LN_2;
    let (low, high) = (
        bits(below - WIDTH * low_error),
        bits(
            above
                + WIDTH
                    * if high_error.is_finite() {
                        high_error
                    } else {
                        f64::INFINITY
                    },
        ),
    );
    let middle = 0.5
        * (bits(below)
            + bits(if above.is_finite() {
                above
            } else {
                f64::INFINITY
            }));
    Ok(Bits {
        value: middle.clamp(low, high),
        low,
        high,
        sampled: sample,
        draws: 0,
    })
}

/// Words drawn by a distribution.
fn draw(prior: &[f64], count: usize, rng: &mut ChaCha12Rng) -> Vec<u32> {
    let mut sum = 0.0;
    let sums: Vec<f64> = prior
        .iter()
        .map(|p| {
            sum += p;
            sum
        })
        .collect();
    let one = |rng: &mut ChaCha12Rng| {
        let u = uniform_below_u128(rng, 1 << 53) as f64 / (1u64 << 53) as f64 * sum;
        sums.partition_point(|&s| s <= u).min(prior.len() - 1) as u32
    };
    (0..count).map(|_| one(rng)).collect()
}
