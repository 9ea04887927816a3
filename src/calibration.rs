//! What a mechanism does to its words, in numbers that ε can be chosen by.
//!
//! For a word w: N_w, the probability that it comes back unchanged; the support, the size of the
//! smallest set of outputs of probability at least 1 - η; S_w, the number of distinct outputs in so
//! many draws; K_w, the size of the smallest set of inputs that are an output w with at least that probability, were all inputs equally likely; entropies of
//! the output (WSDM'20 section 4.1, ICDM'19 section V). Where a mechanism has a law (Tem), all are sums over
//! it, streamed; for the others they are counted in draws.

mod unchanged;

use rayon::prelude::*;
use statrs::function::beta::beta_reg;

use crate::error::{Error, Result};
use crate::mechanism::Mechanism;
use crate::parallel::{Control, install};
use crate::space::rows_together;

pub use unchanged::{Unchanged, nearly_always_unchanged, unchanged};

/// Closed forms of one word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Pr\[M(w) = w\].
    pub unchanged: f64,
    /// The size of the smallest set of outputs of probability at least 1 - η.
    pub outputs: u32,
    /// Distinct outputs to be expected in the given number of draws.
    pub distinct: f64,
    /// Shannon entropy of the output, bits.
    pub shannon: f64,
    /// Min-entropy of the output, bits: -log₂ of the likeliest output's probability.
    pub min_entropy: f64,
    /// Probability of an output among the k nearest words (the word itself among them).
    pub near: f64,
}

/// DrawCounts of one word in draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawCounts {
    /// Draws that gave the word itself.
    pub unchanged: u64,
    /// Distinct outputs.
    pub distinct: u32,
    /// The size of the smallest set of outputs that got at least the share 1 - η of the draws.
    pub outputs: u32,
    /// Of the measured words those that gave this one at least once.
    pub inputs: u32,
}

fn check_eta(eta: f64) -> Result<f64> {
    match (0.0..1.0).contains(&eta) {
        true => Ok(eta),
        false => Err(Error::parameter("eta", "from 0 to below 1", eta)),
    }
}

/// The closed forms of `words`, with sets of mass 1 - `eta`, `near` neighbours and the outputs
/// of `draws` draws; `control` counts the words.
///
/// # Errors
/// [`Error::WordId`], [`Error::Parameter`] for `eta` or a mechanism without a law,
/// [`Error::Interrupted`].
pub fn closed_form(
    mechanism: &dyn Mechanism,
    words: &[u32],
    eta: f64,
    near: usize,
    draws: usize,
    control: &Control,
) -> Result<Vec<Statistics>> {
    check_eta(eta)?;
    each_law(mechanism, words, control, |id, law, row, sets| Statistics {
        unchanged: law[id as usize],
        outputs: sets.smallest(law, 1.0 - eta),
        distinct: expected_distinct(law, draws),
        shannon: shannon(law),
        min_entropy: -law.iter().fold(0.0f64, |a, &p| a.max(p)).log2(),
        near: nearest_mass(law, row, near),
    })
}

/// Probability of the k words at the smallest distances, ties by id; the distances lose their order.
fn nearest_mass(law: &[f64], distances: &mut [f64], k: usize) -> f64 {
    if k >= law.len() {
        return 1.0;
    }
    if k == 0 {
        return 0.0;
    }
    let (law_of, kth) = {
        let mut order = distances.to_vec();
        let (_, &mut kth, _) = order.select_nth_unstable_by(k - 1, f64::total_cmp);
        (law.iter().zip(&*distances), kth)
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

/// -Σ p log₂ p.
fn shannon(law: &[f64]) -> f64 {
    const LANES: usize = 16;
    let mut sums = [0.0; LANES];
    let (rows, rest) = law.as_chunks::<LANES>();
    for row in rows {
        for (sum, &p) in sums.iter_mut().zip(row) {
            *sum += p * ln(p);
        }
    }
    let rest: f64 = rest.iter().map(|&p| p * ln(p)).sum();
    -(sums.iter().sum::<f64>() + rest) / std::f64::consts::LN_2
}

/// ln x for a positive normal number, of 0 and subnormal ones a finite one, to a relative 1e-13: as
/// the vectoriser likes it.
#[inline(always)]
fn ln(x: f64) -> f64 {
    // x = m·2^e with m from √½ to √2.
    const HALF_ROOT: u64 = 0x3FE6_A09E_667F_3BCD;
    let shifted = x.to_bits().wrapping_sub(HALF_ROOT);
    let exponent = (shifted.cast_signed() >> 52) as f64;
    let m = f64::from_bits((shifted & ((1 << 52) - 1)).wrapping_add(HALF_ROOT));
    // ln m = 2 artanh z, |z| below 0.172.
    let z = (m - 1.0) / (m + 1.0);
    let z2 = z * z;
    let mut series = 1.0 / 17.0;
    for odd in [15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        series = series * z2 + 1.0 / odd;
    }
    exponent * std::f64::consts::LN_2 + 2.0 * z * series
}

/// Σ 1 - (1 - p)^draws over all outputs.
fn expected_distinct(law: &[f64], draws: usize) -> f64 {
    const LANES: usize = 16;
    let mut missing = [0.0; LANES];
    let mut rest = 0.0;
    let (chunks, tail) = law.as_chunks::<LANES>();
    let power = |mut base: [f64; LANES]| {
        let mut result = [1.0; LANES];
        let mut left = draws;
        while left > 0 {
            for (result, base) in result.iter_mut().zip(&mut base) {
                *result *= if left & 1 == 1 { *base } else { 1.0 };
                *base *= *base;
            }
            left >>= 1;
        }
        result
    };
    for chunk in chunks {
        let never = power(chunk.map(|p| 1.0 - p));
        missing.iter_mut().zip(never).for_each(|(m, n)| *m += n);
    }
    for p in tail {
        rest += power([1.0 - p; LANES])[0];
    }
    law.len() as f64 - missing.iter().sum::<f64>() - rest
}

/// Bytes of columns that [`inputs`] holds at a time.
const COLUMN_BYTES: usize = 256 << 20;

/// K_w for `words`: the laws of all words, once for every so many of `words` as fit in memory.
///
/// # Errors
/// As [`closed_form`].
pub fn inputs(
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

/// For every output the inputs that explain it best: what an attacker knows who knows the mechanism and
/// how often each word is written.
#[derive(Clone, Debug)]
pub struct LikeliestInputs {
    /// Inputs an output.
    pub count: usize,
    /// Of every output its inputs by their joint probability, the largest first.
    pub words: Vec<u32>,
    /// π_w·Pr\[y|w\] of each.
    pub joint: Vec<f64>,
    /// Σ over all words of π_w·Pr\[y|w\]: how often the output is released.
    pub totals: Vec<f64>,
}

/// The `count` likeliest inputs of every output under a prior π over the words; `control` counts the
/// words. Ties go to the smaller id.
///
/// # Errors
/// [`Error::Parameter`] for a prior that is none, a count that is not from 1 to the number of words, a
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
    let mut best: Vec<Vec<(f64, u32)>> = vec![Vec::new(); words];
    let mut totals = vec![0.0; words];
    let ids: Vec<u32> = (0..words as u32).collect();
    // Laws of some words at a time, then the outputs in parallel.
    for some in ids.chunks((COLUMN_BYTES / 16 / words).clamp(1, 512)) {
        let laws = each_law(mechanism, some, control, |_, law, _, _| law.to_vec())?;
        install(words * some.len(), 0, || {
            let outputs = best.par_iter_mut().zip(totals.par_iter_mut()).enumerate();
            outputs.for_each(|(y, (best, total))| {
                for (law, &w) in laws.iter().zip(some) {
                    let joint = law[y] * prior[w as usize] / sum;
                    *total += joint;
                    let full = best.len() == count;
                    if full && best.last().is_some_and(|least| joint <= least.0) {
                        continue;
                    }
                    if full {
                        best.pop();
                    }
                    best.insert(best.partition_point(|b| b.0 >= joint), (joint, w));
                }
            });
        })?;
    }
    let (joint, words) = best.into_iter().flatten().unzip();
    Ok(LikeliestInputs {
        count,
        words,
        joint,
        totals,
    })
}

/// Of every word the largest log-ratio of an output to any of its `near` nearest words: what an
/// output can tell between a word and those that are most like it. Infinite where an output is possible
/// for one of them alone.
///
/// # Errors
/// As [`closed_form`].
pub fn near_losses(
    mechanism: &dyn Mechanism,
    words: &[u32],
    near: usize,
    control: &Control,
) -> Result<Vec<f64>> {
    let space = mechanism.space();
    let count = space.vocabulary().len();
    each_law(mechanism, words, control, |id, _, row, _| {
        let mut order: Vec<u32> = (0..count as u32).filter(|&other| other != id).collect();
        if near < order.len() {
            let by_distance = |&a: &u32, &b: &u32| row[a as usize].total_cmp(&row[b as usize]);
            order.select_nth_unstable_by(near, by_distance);
            order.truncate(near);
        }
        let logs = |id| {
            let mut law = vec![0.0; count];
            mechanism.law(id, &mut law);
            law.iter_mut().for_each(|p| *p = p.ln());
            law
        };
        let own = logs(id);
        let ratio = |other: u32| {
            let pairs = own.iter().zip(logs(other)).map(|(x, y)| (x - y).abs());
            // Outputs that neither has give no number, which `max` leaves out.
            pairs.fold(0.0, f64::max)
        };
        order.into_iter().map(ratio).fold(0.0, f64::max)
    })
}

/// Calls a function with each word, its law and its distances, many words in parallel.
fn each_law<T: Send>(
    mechanism: &dyn Mechanism,
    words: &[u32],
    control: &Control,
    one: impl Fn(u32, &[f64], &mut [f64], &mut Sets) -> T + Sync,
) -> Result<Vec<T>> {
    mechanism.vocabulary().check_ids(words)?;
    if !mechanism.has_law() {
        let got = mechanism.guarantee().mechanism;
        return Err(Error::parameter(
            "mechanism",
            "one whose law can be computed",
            got,
        ));
    }
    let space = mechanism.space();
    let count = space.vocabulary().len();
    install(words.len() * count, 0, || {
        let parts: Vec<Vec<T>> = words
            .par_chunks(rows_together(count))
            .map_init(
                || (Vec::new(), vec![0.0; count], Sets::default()),
                |(distances, law, sets), ids| {
                    control.check()?;
                    distances.resize(ids.len() * count, 0.0);
                    space.rows(ids, distances);
                    let rows = distances.chunks_exact_mut(count).zip(ids);
                    let done = rows.map(|(row, &id)| {
                        mechanism.law_of_row(id, row, law);
                        one(id, law, row, sets)
                    });
                    let done = done.collect();
                    control.advance(ids.len());
                    Ok(done)
                },
            )
            .collect::<Result<_>>()?;
        Ok(parts.into_iter().flatten().collect())
    })?
}

/// Draws every word `draws` times and counts; `control` counts as the mechanism's draws do.
///
/// # Errors
/// [`Error::WordId`], [`Error::Parameter`] for `eta` or no draw, [`Error::Interrupted`].
pub fn simulate(
    mechanism: &dyn Mechanism,
    words: &[u32],
    draws: usize,
    eta: f64,
    control: &Control,
) -> Result<Vec<DrawCounts>> {
    check_eta(eta)?;
    mechanism.vocabulary().check_ids(words)?;
    if draws == 0 {
        return Err(Error::parameter("draws", "at least 1", draws));
    }
    let mut inputs = vec![0u32; mechanism.vocabulary().len()];
    let mut all = Vec::with_capacity(words.len());
    // As many words at a time as keep the draws in a few megabytes.
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
            let each = drawn.par_chunks_mut(draws).zip(ids);
            each.map(|(drawn, &id)| count_draws(drawn, id, eta))
                .collect()
        })?;
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

/// Exact bounds of a probability that gave `hits` in `draws` (Clopper and Pearson 1934): each is
/// wrong with probability `alpha` at most, and rounded outwards.
pub fn clopper_pearson(hits: u64, draws: u64, alpha: f64) -> (f64, f64) {
    let (h, n) = (hits as f64, draws as f64);
    // Rounding of the bounds, outwards.
    const OUT: f64 = 1e-9;
    let low = match hits {
        0 => 0.0,
        // The largest p at which as many hits are no likelier than alpha.
        _ => bisect(h, n - h + 1.0, |x| beta_reg(h, n - h + 1.0, x) < alpha) * (1.0 - OUT),
    };
    let high = match hits >= draws {
        true => 1.0,
        // By the upper tail, which keeps its digits where alpha is small.
        false => {
            let below = |x: f64| beta_reg(n - h, h + 1.0, 1.0 - x) > alpha;
            f64::min(bisect(h + 1.0, n - h, below) * (1.0 + OUT), 1.0)
        }
    };
    (low, high)
}

/// Where a quantile of Beta(a, b) is, by bisection of whether a number lies below it.
fn bisect(a: f64, b: f64, below: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // The quantile lies within some deviations of the mean, unless it is extreme.
    let (mean, spread) = (a / (a + b), (a * b / (a + b + 1.0)).sqrt() / (a + b));
    let (from, to) = (mean - 10.0 * spread, mean + 10.0 * spread);
    if from > 0.0 && below(from) {
        low = from;
    }
    if to < 1.0 && !below(to) {
        high = to;
    }
    while high - low > 1e-12 * high {
        let middle = 0.5 * (low + high);
        match below(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    0.5 * (low + high)
}

/// Sizes of smallest sets, by counting values in buckets of a sixteenth of an octave.
#[derive(Default)]
struct Sets {
    buckets: Vec<(f64, u32)>,
    within: Vec<f64>,
}

/// The bucket of a positive number: its exponent and the first four bits of its mantissa, which
/// ascend with the number.
fn bucket(value: f64) -> usize {
    (value.to_bits() >> 48) as usize
}

impl Sets {
    /// How many of the largest of `values`, all ≥ 0, sum to at least `mass`.
    fn smallest(&mut self, values: &[f64], mass: f64) -> u32 {
        let buckets = 1 << 15;
        self.buckets.clear();
        self.buckets.resize(buckets, (0.0, 0));
        let (mut low, mut high) = (buckets, 0);
        for &value in values {
            let at = bucket(value);
            self.buckets[at].0 += value;
            self.buckets[at].1 += 1;
            low = low.min(at);
            high = high.max(at);
        }
        let (mut sum, mut count) = (0.0, 0);
        for at in (low..=high).rev() {
            let (held, members) = self.buckets[at];
            if sum + held < mass {
                sum += held;
                count += members;
                continue;
            }
            // The border runs through this bucket.
            self.within.clear();
            self.within
                .extend(values.iter().filter(|&&v| bucket(v) == at));
            self.within.sort_unstable_by(|a, b| b.total_cmp(a));
            for &value in &self.within {
                sum += value;
                count += 1;
                if sum >= mass {
                    break;
                }
            }
            return count;
        }
        // Rounding left a little over.
        values.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    #[test]
    fn the_logarithm_is_accurate() {
        for i in -1000..1000 {
            let x = (f64::from(i) * 0.7).exp();
            if x.is_normal() {
                assert!(
                    (ln(x) - x.ln()).abs() <= 1e-13 * (1.0 + x.ln().abs()),
                    "{x}"
                );
            }
        }
        assert_eq!(shannon(&[1.0, 0.0, 0.0]), 0.0);
        assert!((shannon(&[0.125; 8]) - 3.0).abs() < 1e-14);
    }

    #[test]
    fn the_nearest_words_are_those_of_least_distance() {
        let law = [0.1, 0.2, 0.3, 0.4];
        for (k, mass) in [(0, 0.0), (1, 0.3), (2, 0.4), (3, 0.6), (4, 1.0), (9, 1.0)] {
            let found = nearest_mass(&law, &mut [1.0, 1.0, 0.0, 2.0], k);
            assert!((found - mass).abs() < 1e-15, "{k}");
        }
    }

    #[test]
    fn smallest_sets_are_those_of_a_sort() {
        let mut rng = crate::Randomness::new(Some(2))
            .next_key()
            .unwrap()
            .stream(0);
        let mut sets = Sets::default();
        for count in [1usize, 2, 10, 1000] {
            for steep in [0.0, 1.0, 30.0] {
                let values: Vec<f64> = (0..count)
                    .map(|_| (-steep * rng.random::<f64>()).exp())
                    .collect();
                let total: f64 = values.iter().sum();
                let mut sorted = values.clone();
                sorted.sort_by(|a, b| b.total_cmp(a));
                for share in [0.01, 0.5, 0.95, 0.999] {
                    let mut sum = 0.0;
                    let expected = sorted.iter().position(|v| {
                        sum += v;
                        sum >= share * total
                    });
                    let found = sets.smallest(&values, share * total) as usize;
                    assert!(found.abs_diff(expected.unwrap() + 1) <= usize::from(steep == 0.0));
                }
            }
        }
    }
}
