//! Statistics of a mechanism on its words, by which ε can be chosen: sums over its law, streamed, or
//! counts of draws where it has none. `fastdx.calibration` in Python says what each of them is.

mod explained;
pub(crate) mod sums;
mod unchanged;
use statrs::function::beta::beta_reg;

use crate::mechanism::Mechanism;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, install, map_all, map_all_with};
use crate::words::space::rows_together;
pub use explained::{LikeliestInputs, likeliest_inputs};
use sums::{Sets, sums};

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

/// Counts of one word's draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawCounts {
    /// Draws in which the word came back unchanged.
    pub unchanged: u64,
    /// Distinct outputs.
    pub distinct: u32,
    /// The size of the smallest set of outputs with at least the share 1 - η of the draws.
    pub outputs: u32,
    /// K_w: the number of measured words that gave this word as an output at least once.
    pub inputs: u32,
}

fn check_eta(eta: f64) -> Result<f64> {
    match (0.0..1.0).contains(&eta) {
        true => Ok(eta),
        false => Err(Error::parameter("eta", "from 0 to below 1", eta)),
    }
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
    check_eta(eta)?;
    let made = epsilons.unwrap_or_default().iter();
    let made: Vec<_> = made
        .map(|&epsilon| mechanism.with_epsilon(epsilon))
        .collect::<Result<_>>()?;
    let at: Vec<&dyn Mechanism> = match epsilons {
        None => vec![mechanism],
        Some(_) => made.iter().map(|mechanism| &**mechanism).collect(),
    };
    each_word(mechanism, words, control, |id, scores, row, law, sets| {
        let each = at.iter().map(|mechanism| {
            mechanism.law_of_scores(id, scores, law);
            statistics(id, law, row, sets, (eta, near, draws))
        });
        each.collect()
    })
}

fn statistics(
    id: u32,
    law: &[f64],
    row: &[f64],
    sets: &mut Sets,
    (eta, near, draws): (f64, usize, usize),
) -> Statistics {
    let sums = sums(law, draws);
    Statistics {
        unchanged: law[id as usize],
        outputs: sets.smallest(law, 1.0 - eta),
        distinct: law.len() as f64 - sums.missing,
        shannon: -sums.p_ln_p / std::f64::consts::LN_2,
        min_entropy: -sums.most.log2(),
        near: nearest_mass(law, row, near),
    }
}

/// The probability of the k words at the smallest distances; ties go to the smaller id.
fn nearest_mass(law: &[f64], distances: &[f64], k: usize) -> f64 {
    if k >= law.len() {
        return 1.0;
    }
    if k == 0 {
        return 0.0;
    }
    let (law_of, kth) = {
        let mut order = distances.to_vec();
        let (_, &mut kth, _) = order.select_nth_unstable_by(k - 1, f64::total_cmp);
        (law.iter().zip(distances), kth)
    };
    let (mut mass, mut count, mut ties) = (0.0, 0, Vec::new());
    for (p, &d) in law_of {
        if d < kth {
            mass += p;
            count += 1;
        } else if d == kth {
            ties.push(p);
        }
    }
    mass + ties.iter().take(k - count).copied().sum::<f64>()
}

/// Maximum bytes of columns that [`credible_inputs`] holds at a time.
const COLUMN_BYTES: usize = 256 << 20;

/// Computes the size of the smallest credible set of inputs for each of `words`: posterior
/// probability at least 1 - `eta`, all inputs being equally likely. The laws of all words are
/// computed once for every block of `words` that fits in memory.
///
/// # Errors
/// The errors of [`closed_forms`].
pub fn credible_inputs(
    mechanism: &dyn Mechanism,
    words: &[u32],
    eta: f64,
    control: &Control,
) -> Result<Vec<u32>> {
    check_eta(eta)?;
    mechanism.vocabulary().check_ids(words)?;
    let count = mechanism.vocabulary().len();
    let all: Vec<u32> = (0..count as u32).collect();
    let mut found = Vec::with_capacity(words.len());
    for outputs in words.chunks((COLUMN_BYTES / 8 / count).max(1)) {
        let laws = each_law(mechanism, &all, control, |_, law, _, _| {
            let column: Vec<f64> = outputs.iter().map(|&y| law[y as usize]).collect();
            column
        })?;
        let mut sets = Sets::default();
        for place in 0..outputs.len() {
            let column: Vec<f64> = laws.iter().map(|law| law[place]).collect();
            let total: f64 = column.iter().sum();
            found.push(sets.smallest(&column, (1.0 - eta) * total));
        }
    }
    Ok(found)
}

/// For every word, computes the largest log-ratio of an output between the word and any of its
/// `near` nearest words. It bounds what an output reveals about the difference between similar
/// words. It is infinite if an output is possible for only one of them.
///
/// # Errors
/// The errors of [`closed_forms`].
pub fn near_losses(
    mechanism: &dyn Mechanism,
    words: &[u32],
    near: usize,
    control: &Control,
) -> Result<Vec<f64>> {
    let count = mechanism.vocabulary().len();
    each_law(mechanism, words, control, |id, own, row, _| {
        let mut order: Vec<u32> = (0..count as u32).filter(|&other| other != id).collect();
        if near < order.len() {
            let by_distance = |&a: &u32, &b: &u32| row[a as usize].total_cmp(&row[b as usize]);
            order.select_nth_unstable_by(near, by_distance);
            order.truncate(near);
        }
        let mut largest = 1.0f64;
        let (mut rows, mut law) = (Rows::default(), vec![0.0; count]);
        for some in order.chunks(rows_together(count)) {
            rows.each(mechanism, some, |id, scores, _| {
                mechanism.law_of_scores(id, scores, &mut law);
                // An output that neither word can have gives NaN, which is never larger.
                for (p, q) in own.iter().zip(&law) {
                    let ratio = if p > q { p / q } else { q / p };
                    largest = if ratio > largest { ratio } else { largest };
                }
            });
        }
        largest.ln()
    })
}

fn check_law(mechanism: &dyn Mechanism) -> Result<()> {
    mechanism.check_one_law()?;
    match mechanism.has_law() {
        true => Ok(()),
        false => {
            let got = mechanism.guarantee().mechanism;
            let expected = "one whose law can be computed";
            Err(Error::parameter("mechanism", expected, got))
        }
    }
}

/// Calls a function with each word, its law and its distances, in parallel over words.
fn each_law<T: Send>(
    mechanism: &dyn Mechanism,
    words: &[u32],
    control: &Control,
    one: impl Fn(u32, &[f64], &[f64], &mut Sets) -> T + Sync,
) -> Result<Vec<T>> {
    each_word(mechanism, words, control, |id, scores, row, law, sets| {
        mechanism.law_of_scores(id, scores, law);
        one(id, law, row, sets)
    })
}

/// Calls a function with each word, its scores, its distances, and memory for a law and for
/// counting sets, in parallel over words.
fn each_word<T: Send>(
    mechanism: &dyn Mechanism,
    words: &[u32],
    control: &Control,
    one: impl Fn(u32, &[f64], &[f64], &mut [f64], &mut Sets) -> T + Sync,
) -> Result<Vec<T>> {
    mechanism.vocabulary().check_ids(words)?;
    check_law(mechanism)?;
    let count = mechanism.vocabulary().len();
    install(words.len() * count, 0, || {
        let parts = words.chunks(rows_together(count));
        let parts = map_all_with(parts, Memory::default, |(rows, law, sets), ids| {
            control.check()?;
            law.resize(count, 0.0);
            let mut done = Vec::with_capacity(ids.len());
            rows.each(mechanism, ids, |id, scores, row| {
                done.push(one(id, scores, row, law, sets));
            });
            control.advance(ids.len());
            Ok(done)
        })?;
        Ok(parts.into_iter().flatten().collect())
    })?
}

/// Working memory of one thread: rows, a law and the set counter.
type Memory = (Rows, Vec<f64>, Sets);

/// Memory for the distances and scores of some words.
#[derive(Default)]
struct Rows {
    distances: Vec<f64>,
    scores: Vec<f64>,
}

impl Rows {
    /// Words whose scores are computed together: their rows stay in the second-level cache.
    const SCORED: usize = 8;

    /// Calls a function with each word, its scores and its distances.
    fn each(
        &mut self,
        mechanism: &dyn Mechanism,
        ids: &[u32],
        mut one: impl FnMut(u32, &[f64], &[f64]),
    ) {
        let count = mechanism.vocabulary().len();
        self.distances.resize(ids.len() * count, 0.0);
        mechanism.space().rows(ids, &mut self.distances);
        let some = self.distances.chunks(Self::SCORED * count);
        for (rows, ids) in some.zip(ids.chunks(Self::SCORED)) {
            mechanism.scores(rows, &mut self.scores);
            let scores = self.scores.chunks_exact(self.scores.len() / ids.len());
            for ((row, scores), &id) in rows.chunks_exact(count).zip(scores).zip(ids) {
                one(id, scores, row);
            }
        }
    }
}

/// Draws every word `draws` times and counts the outputs; `control` counts like the mechanism's
/// draws.
///
/// # Errors
/// [`Error::WordId`]; [`Error::Parameter`] for `eta` or zero draws; [`Error::Interrupted`].
pub fn simulate(
    mechanism: &dyn Mechanism,
    words: &[u32],
    draws: usize,
    eta: f64,
    control: &Control,
) -> Result<Vec<DrawCounts>> {
    check_eta(eta)?;
    mechanism.check_one_law()?;
    mechanism.vocabulary().check_ids(words)?;
    if draws == 0 {
        return Err(Error::parameter("draws", "at least 1", draws));
    }
    let mut inputs = vec![0u32; mechanism.vocabulary().len()];
    let mut all = Vec::with_capacity(words.len());
    // As many words at a time as keep the draws within a few megabytes.
    for ids in words.chunks(((1 << 20) / draws).max(1)) {
        let mut repeated = Vec::new();
        repeated
            .try_reserve_exact(ids.len().saturating_mul(draws))
            .map_err(|_| Error::parameter("draws", "few enough to fit in memory", draws))?;
        repeated.extend(ids.iter().flat_map(|&id| std::iter::repeat_n(id, draws)));
        let mut drawn = repeated.clone();
        let key = mechanism.randomness().next_key()?;
        mechanism.draw(&repeated, &key, &mut drawn, control)?;
        control.check()?;
        let counted: Vec<(DrawCounts, Vec<u32>)> = install(drawn.len(), 0, || {
            map_all(drawn.chunks_mut(draws).zip(ids), |(drawn, &id)| {
                Ok(count_draws(drawn, id, eta))
            })
        })??;
        for (counts, outputs) in counted {
            all.push(counts);
            outputs.iter().for_each(|&y| inputs[y as usize] += 1);
        }
    }
    for (counts, &id) in all.iter_mut().zip(words) {
        counts.inputs = inputs[id as usize];
    }
    Ok(all)
}

fn count_draws(drawn: &mut [u32], id: u32, eta: f64) -> (DrawCounts, Vec<u32>) {
    drawn.sort_unstable();
    let groups = drawn.chunk_by(|a, b| a == b);
    let (outputs, mut times): (Vec<u32>, Vec<u64>) =
        groups.map(|group| (group[0], group.len() as u64)).unzip();
    let unchanged = outputs.binary_search(&id).map_or(0, |at| times[at]);
    times.sort_unstable_by(|a, b| b.cmp(a));
    let enough = (1.0 - eta) * drawn.len() as f64;
    let mut sum = 0;
    let covered = times.iter().position(|&n| {
        sum += n;
        sum as f64 >= enough
    });
    let counts = DrawCounts {
        unchanged,
        distinct: outputs.len() as u32,
        outputs: covered.map_or(outputs.len(), |at| at + 1) as u32,
        inputs: 0,
    };
    (counts, outputs)
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
        let law = [0.1, 0.2, 0.3, 0.4];
        for (k, mass) in [(0, 0.0), (1, 0.3), (2, 0.4), (3, 0.6), (4, 1.0), (9, 1.0)] {
            let found = nearest_mass(&law, &[1.0, 1.0, 0.0, 2.0], k);
            assert!((found - mass).abs() < 1e-15, "{k}");
        }
    }
}
