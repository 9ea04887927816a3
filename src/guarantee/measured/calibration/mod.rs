//! Statistics of a mechanism on its words, by which ε can be chosen: sums over its law, streamed.
//! `fastdx.calibration` in Python says what each of them is.

pub(crate) mod sums;
mod unchanged;
use statrs::function::beta::beta_reg;

use crate::mechanism::Mechanism;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, install, map_all_with};
use crate::words::space::rows_together;
use sums::{smallest_set, sums};

pub use unchanged::{Unchanged, leaves_most, nearly_always_unchanged, unchanged};

/// Closed forms for one word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Pr\[M(w) = w\].
    pub unchanged: f64,
    /// The size of the smallest set of outputs of probability at least 1 - η.
    pub outputs: u32,
    /// The expected number of distinct outputs in the given number of draws.
    pub distinct: f64,
    /// The Shannon entropy of the output, in bits.
    pub shannon: f64,
    /// The min-entropy of the output, in bits: -log₂ of the likeliest output's probability.
    pub min_entropy: f64,
    /// The probability of an output among the k nearest words, including the word itself.
    pub near: f64,
}

/// Computes the closed forms of `words`, with sets of mass 1 - `eta`, `near` neighbours and the
/// outputs of `draws` draws: of the mechanism, or of it at each of several ε, one after the other
/// for every word. Data that the laws share is computed once; `control` counts the words.
///
/// # Errors
/// [`Error::WordId`], [`Error::Parameter`] for `eta` or a mechanism without a law,
/// [`Error::Interrupted`]; the errors of [`with_epsilon`](crate::Mechanism::with_epsilon).
pub fn closed_forms(
    mechanism: &dyn Mechanism,
    epsilons: Option<&[f64]>,
    words: &[u32],
    (eta, near, draws): (f64, usize, usize),
    control: &Control,
) -> Result<Vec<Vec<Statistics>>> {
    if !(0.0..1.0).contains(&eta) {
        return Err(Error::parameter("eta", "from 0 to below 1", eta));
    }
    let made = epsilons.unwrap_or_default().iter();
    let made: Vec<_> = made
        .map(|&epsilon| mechanism.with_epsilon(epsilon))
        .collect::<Result<_>>()?;
    let at: Vec<&dyn Mechanism> = match epsilons {
        None => vec![mechanism],
        Some(_) => made.iter().map(|mechanism| &**mechanism).collect(),
    };
    each_word(mechanism, words, control, |id, scores, row, law| {
        let near = nearest(row, near);
        let each = at.iter().map(|mechanism| {
            mechanism.law_of_scores(id, scores, law);
            let sums = sums(law, draws);
            let near = near.iter().map(|&y| law[y as usize]);
            Statistics {
                unchanged: law[id as usize],
                outputs: smallest_set(law, 1.0 - eta),
                distinct: law.len() as f64 - sums.missing,
                shannon: -sums.p_ln_p / std::f64::consts::LN_2,
                min_entropy: -sums.most.log2(),
                near: near.sum::<f64>().min(1.0),
            }
        });
        each.collect()
    })
}

/// The k words at the smallest distances; ties go to the smaller id.
fn nearest(distances: &[f64], k: usize) -> Vec<u32> {
    let mut ids: Vec<u32> = (0..distances.len() as u32).collect();
    if k < ids.len() {
        let of = |id: u32| distances[id as usize];
        ids.select_nth_unstable_by(k, |&a, &b| of(a).total_cmp(&of(b)).then(a.cmp(&b)));
        ids.truncate(k);
    }
    ids
}

/// Words whose scores are computed together: their rows stay in the second-level cache.
const SCORED: usize = 8;

/// Calls a function with each word, its scores, its distances, and memory for a law, in parallel over
/// words.
fn each_word<T: Send>(
    mechanism: &dyn Mechanism,
    words: &[u32],
    control: &Control,
    one: impl Fn(u32, &[f64], &[f64], &mut [f64]) -> T + Sync,
) -> Result<Vec<T>> {
    mechanism.vocabulary().check_ids(words)?;
    mechanism.check_one_law()?;
    if !mechanism.has_law() {
        let got = mechanism.guarantee().mechanism;
        let expected = "one whose law can be computed";
        return Err(Error::parameter("mechanism", expected, got));
    }
    let count = mechanism.vocabulary().len();
    install(words.len() * count, 0, || {
        let parts = words.chunks(rows_together(count));
        let memory = || (Vec::new(), Vec::new(), vec![0.0; count]);
        let parts = map_all_with(parts, memory, |memory, ids| {
            control.check()?;
            let (distances, scores, law) = memory;
            distances.resize(ids.len() * count, 0.0);
            mechanism.space().rows(ids, distances);
            let mut done = Vec::with_capacity(ids.len());
            let some = distances.chunks(SCORED * count);
            for (rows, ids) in some.zip(ids.chunks(SCORED)) {
                mechanism.scores(rows, scores);
                let scores = scores.chunks_exact(scores.len() / ids.len());
                for ((row, scores), &id) in rows.chunks_exact(count).zip(scores).zip(ids) {
                    done.push(one(id, scores, row, law));
                }
            }
            control.advance(ids.len());
            Ok(done)
        })?;
        Ok(parts.into_iter().flatten().collect())
    })?
}

/// Exact confidence bounds on a probability, from `hits` in `draws` (Clopper and Pearson 1934).
/// Each is wrong with probability at most `alpha`, and is rounded outwards.
pub fn clopper_pearson(hits: u64, draws: u64, alpha: f64) -> (f64, f64) {
    let (h, n) = (hits as f64, draws as f64);
    // Rounding of the bounds, outwards.
    const OUT: f64 = 1e-9;
    let low = match hits {
        0 => 0.0,
        // The largest p at which this many hits have a probability of at most alpha.
        _ => bisect(|x| beta_reg(h, n - h + 1.0, x) < alpha) * (1.0 - OUT),
    };
    let high = match hits >= draws {
        true => 1.0,
        // By the upper tail, which is accurate where alpha is small.
        false => {
            let below = |x: f64| beta_reg(n - h, h + 1.0, 1.0 - x) > alpha;
            f64::min(bisect(below) * (1.0 + OUT), 1.0)
        }
    };
    (low, high)
}

/// Finds a quantile of a distribution on \[0, 1\] by bisection; `below` tells whether a number lies
/// below it.
fn bisect(below: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while high - low > 1e-12 * high {
        let middle = 0.5 * (low + high);
        match below(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_words_are_those_of_least_distance() {
        let expected: [&[u32]; 5] = [&[], &[2], &[0, 2], &[0, 1, 2], &[0, 1, 2, 3]];
        for (k, expected) in [0, 1, 2, 3, 9].into_iter().zip(expected) {
            let mut found = nearest(&[1.0, 1.0, 0.0, 2.0], k);
            found.sort_unstable();
            assert_eq!(found, expected);
        }
    }
}
