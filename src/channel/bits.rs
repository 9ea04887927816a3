//! The information that one output reveals about one word: mutual information and Bayes capacity,
//! in one pass over all laws.

use super::source::Source;
use crate::guarantee::Bits;
use crate::guarantee::measured::calibration::sums::sums;
use crate::support::error::Result;
use crate::support::parallel::{Control, install, map_all};

/// The results of a pass over all laws.
pub(super) struct Survey {
    /// The normaliser of every word, where laws have them.
    pub(super) totals: Vec<f64>,
    /// Σ p ln p of every law.
    pub(super) spreads: Vec<f64>,
    /// A prior, and the outputs' probabilities under it.
    pub(super) prior: Vec<f64>,
    outputs: Vec<f64>,
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

/// One pass. `control` counts words.
pub(super) fn survey(source: &Source, prior: Vec<f64>, control: &Control) -> Result<Survey> {
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
            source.each_law(ids, words, &mut |w, law, total| {
                part.totals.push(total);
                part.spreads.push(sums(law, 0).p_ln_p);
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
        map_all(ids.chunks(words.div_ceil(PARTS)), of_part)
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
    Ok(Survey {
        totals: all.totals,
        spreads: all.spreads,
        prior,
        outputs: all.outputs,
        capacity: all.most.iter().sum::<f64>().log2().max(0.0),
    })
}

impl Survey {
    /// I(W;Y) in bits under the prior.
    pub(super) fn bits(&self) -> Bits {
        let outputs = self.outputs.iter().filter(|p| **p > 0.0);
        let entropy: f64 = outputs.map(|p| -p * p.ln()).sum();
        let spreads = self.prior.iter().zip(&self.spreads);
        let given: f64 = spreads.map(|(p, s)| p * s).sum();
        Bits::exact(((entropy + given) / std::f64::consts::LN_2).max(0.0))
    }
}
