//! The information that one output reveals about one word: mutual information and Bayes capacity,
//! in one pass over all laws.

use super::source::Source;
use crate::guarantee::measured::calibration::sums::sums;
use crate::support::error::Result;
use crate::support::parallel::{Control, install, map_all};

pub(super) struct Survey {
    /// The normaliser of every word, where laws have them.
    pub(super) totals: Vec<f64>,
    pub(super) prior: Vec<f64>,
    /// I(W;Y) in bits under the prior.
    pub(super) bits: f64,
    /// log₂ Σ_y max_w Pr\[y|w\].
    pub(super) capacity: f64,
}

/// Parts that the words are dealt with in, whatever the number of threads: sums of floats do not
/// depend on it.
const PARTS: usize = 32;

/// Laws added up by weights.
pub(super) struct Sum {
    pub(super) outputs: Vec<f64>,
    /// Σ p ln p of the laws.
    pub(super) spread: f64,
}

impl Sum {
    pub(super) fn of_none(words: usize) -> Self {
        Sum {
            outputs: vec![0.0; words],
            spread: 0.0,
        }
    }

    pub(super) fn add(&mut self, other: &Sum) {
        self.spread += other.spread;
        let outputs = self.outputs.iter_mut().zip(&other.outputs);
        outputs.for_each(|(a, b)| *a += b);
    }
}

/// Adds up the laws of some words, and calls a function with each law and its normaliser. `control`
/// counts words.
pub(super) fn sum_of(
    source: &Source,
    words: usize,
    ids: &[u32],
    weight: impl Fn(u32) -> f64,
    control: &Control,
    mut each: impl FnMut(&[f64], f64),
) -> Result<Sum> {
    let mut sum = Sum::of_none(words);
    for ids in ids.chunks(64) {
        control.check()?;
        source.each_law(ids, words, &mut |w, law, total| {
            let weight = weight(w);
            sum.spread += weight * sums(law, 0).p_ln_p;
            let outputs = sum.outputs.iter_mut().zip(law);
            outputs.for_each(|(a, p)| *a += weight * p);
            each(law, total);
        })?;
        control.advance(ids.len());
    }
    Ok(sum)
}

/// One pass. `control` counts words.
pub(super) fn survey(source: &Source, prior: Vec<f64>, control: &Control) -> Result<Survey> {
    let words = prior.len();
    let ids: Vec<u32> = (0..words as u32).collect();
    let of_part = |ids: &[u32]| {
        let (mut totals, mut most) = (Vec::with_capacity(ids.len()), vec![0.0; words]);
        let weight = |w| prior[w as usize];
        let sum = sum_of(source, words, ids, weight, control, |law, total| {
            totals.push(total);
            for (most, &p) in most.iter_mut().zip(law) {
                *most = if p > *most { p } else { *most };
            }
        })?;
        Ok((sum, totals, most))
    };
    let parts = install(words * words, 0, || {
        map_all(ids.chunks(words.div_ceil(PARTS)), of_part)
    })??;
    let mut all = Sum::of_none(words);
    let (mut totals, mut most) = (Vec::with_capacity(words), vec![0.0f64; words]);
    for (sum, of_part, largest) in parts {
        all.add(&sum);
        totals.extend(of_part);
        let most = most.iter_mut().zip(largest);
        most.for_each(|(a, b)| *a = a.max(b));
    }
    let outputs = all.outputs.iter().filter(|p| **p > 0.0);
    let entropy: f64 = outputs.map(|p| -p * p.ln()).sum();
    Ok(Survey {
        totals,
        prior,
        bits: ((entropy + all.spread) / std::f64::consts::LN_2).max(0.0),
        capacity: most.iter().sum::<f64>().log2().max(0.0),
    })
}
