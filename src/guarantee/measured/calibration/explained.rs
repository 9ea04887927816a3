//! The likeliest inputs of every output, in one pass over the laws of all words.

use super::{COLUMN_BYTES, Rows, check_law};
use crate::mechanism::Mechanism;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, for_all, install};
use crate::words::space::rows_together;

/// The inputs that best explain each output: the conclusion of an attacker who knows the mechanism
/// and how often each word is written.
#[derive(Clone, Debug)]
pub struct LikeliestInputs {
    /// Inputs per output.
    pub count: usize,
    /// For every output, its inputs by joint probability, the largest first.
    pub words: Vec<u32>,
    /// π_w·Pr\[y|w\] of each.
    pub joint: Vec<f64>,
    /// Σ over all words of π_w·Pr\[y|w\]: how often the output is released.
    pub totals: Vec<f64>,
}

/// Computes the `count` likeliest inputs of every output under a prior π over the words; `control`
/// counts the words. Ties go to the smaller id.
///
/// # Errors
/// [`Error::Parameter`] for an invalid prior, a count outside 1 to the number of words, or a
/// mechanism without a law; [`Error::Interrupted`].
pub fn likeliest_inputs(
    mechanism: &dyn Mechanism,
    prior: &[f64],
    count: usize,
    control: &Control,
) -> Result<LikeliestInputs> {
    let words = mechanism.vocabulary().len();
    let sum: f64 = prior.iter().sum();
    let positive = prior.iter().all(|&p| p >= 0.0);
    if prior.len() != words || !positive || !(sum > 0.0 && sum.is_finite()) {
        let expected = format!("{words} numbers, at least 0 and of a positive, finite sum");
        return Err(Error::parameter("prior", expected, "others"));
    }
    if !(1..=words).contains(&count) {
        let expected = format!("from 1 to the {words} words");
        return Err(Error::parameter("guesses", expected, count));
    }
    check_law(mechanism)?;
    let mut outputs: Vec<Explained> = (0..words)
        .step_by(Explained::OUTPUTS)
        .map(|first| Explained::new(Explained::OUTPUTS.min(words - first)))
        .collect();
    let ids: Vec<u32> = (0..words as u32).collect();
    install(words * words, 0, || {
        // A few laws for each thread, then a part of the outputs for each thread.
        let threads = rayon::current_num_threads();
        let most = (COLUMN_BYTES / 16 / words / threads).max(1);
        let together = rows_together(words).min(most);
        let mut memory: Vec<Rows> = (0..threads).map(|_| Rows::default()).collect();
        let mut laws = vec![0.0; (together * threads).min(words) * words];
        for ids in ids.chunks(together * threads) {
            let laws = &mut laws[..ids.len() * words];
            let slots = laws.chunks_mut(together * words);
            let each = ids.chunks(together).zip(slots).zip(&mut memory);
            for_all(each, |((ids, slots), rows)| {
                control.check()?;
                let mut slots = slots.chunks_exact_mut(words);
                rows.each(mechanism, ids, |id, scores, _| {
                    if let Some(law) = slots.next() {
                        mechanism.law_of_scores(id, scores, law);
                    }
                });
                control.advance(ids.len());
                Ok(())
            })?;
            let laws = &*laws;
            for_all(outputs.iter_mut().enumerate(), |(i, outputs)| {
                let first = i * Explained::OUTPUTS;
                for (law, &w) in laws.chunks_exact(words).zip(ids) {
                    let law = &law[first..first + outputs.totals.len()];
                    outputs.meet(w, law, prior[w as usize] / sum, count);
                }
                Ok(())
            })?;
        }
        Ok(())
    })??;
    let mut totals = Vec::with_capacity(words);
    let (mut joint, mut words) = (Vec::new(), Vec::new());
    for outputs in outputs {
        totals.extend(outputs.totals);
        for (p, w) in outputs.best.into_iter().flatten() {
            joint.push(p);
            words.push(w);
        }
    }
    Ok(LikeliestInputs {
        count,
        words,
        joint,
        totals,
    })
}

/// The likeliest inputs so far for a range of outputs.
struct Explained {
    totals: Vec<f64>,
    /// Joint probabilities, descending, and their words.
    best: Vec<Vec<(f64, u32)>>,
    /// The last joint probability of each full list; -1 while a list is not full.
    least: Vec<f64>,
}

impl Explained {
    const OUTPUTS: usize = 1024;
    /// Outputs that are processed together.
    const LANES: usize = 16;

    fn new(outputs: usize) -> Self {
        Explained {
            totals: vec![0.0; outputs],
            best: vec![Vec::new(); outputs],
            least: vec![-1.0; outputs],
        }
    }

    /// Adds a word that is written with probability `share`.
    fn meet(&mut self, word: u32, law: &[f64], share: f64, count: usize) {
        let Explained {
            totals,
            best,
            least,
        } = self;
        let mut insert = |at: usize, joint: f64, least: &mut f64| {
            let best = &mut best[at];
            if best.len() == count {
                best.pop();
            }
            best.insert(best.partition_point(|b| b.0 >= joint), (joint, word));
            if best.len() == count {
                *least = best[count - 1].0;
            }
        };
        let (chunks, rest) = law.as_chunks::<{ Self::LANES }>();
        let (totals, totals_rest) = totals.as_chunks_mut::<{ Self::LANES }>();
        let (leasts, leasts_rest) = least.as_chunks_mut::<{ Self::LANES }>();
        let mut first = 0;
        for ((law, totals), leasts) in chunks.iter().zip(totals).zip(leasts) {
            let joint = law.map(|p| p * share);
            let mut any = false;
            for l in 0..Self::LANES {
                totals[l] += joint[l];
                any |= joint[l] > leasts[l];
            }
            if any {
                for l in 0..Self::LANES {
                    if joint[l] > leasts[l] {
                        insert(first + l, joint[l], &mut leasts[l]);
                    }
                }
            }
            first += Self::LANES;
        }
        let rest = rest.iter().zip(totals_rest).zip(leasts_rest);
        for (((p, total), least), at) in rest.zip(first..) {
            *total += p * share;
            if p * share > *least {
                insert(at, p * share, least);
            }
        }
    }
}
