//! Mutual information from the laws of some words.

use rand::rngs::ChaCha12Rng;

use super::bits::{Sum, sum_of};
use super::source::Source;
use crate::guarantee::Bits;
use crate::support::error::Result;
use crate::support::parallel::{Control, install, map_all};
use crate::support::random::uniform_below_u128;

/// Standard errors that an interval goes beyond its bounds: 99.7%.
const WIDTH: f64 = 3.0;
/// Groups that the drawn words are dealt out to.
const GROUPS: usize = 32;
/// Parts of the words that are not drawn, whatever the number of threads: sums of floats do not depend on it.
const PARTS: usize = 16;

/// I(W;Y) from so many laws. Words so common that two of the draws would be theirs are not drawn: their
/// laws are summed by their probabilities. The other words are drawn by the prior, in [`GROUPS`] groups.
///
/// With the drawn words in the place of those they were drawn from, W has another distribution, whose mean is
/// the prior. I(W;Y) is concave in the distribution of W: the information of the drawn words is a lower bound
/// in expectation. For an upper bound, each group is measured against the mixture of the heads and the
/// *other* groups, which does not depend on it and whose mean is p(y): E\[-ln mixture\] ≥ -ln p(y), as -ln
/// is convex. The interval reaches from one to the other, each with three standard errors among groups.
pub(super) fn sampled_bits(
    source: &Source,
    prior: &[f64],
    sample: usize,
    rng: &mut ChaCha12Rng,
    control: &Control,
) -> Result<Bits> {
    let words = prior.len();
    let common = |&id: &u32| prior[id as usize] * sample as f64 >= 2.0;
    let (heads, others): (Vec<u32>, Vec<u32>) = (0..words as u32).partition(common);
    let sums = running(others.iter().map(|&id| prior[id as usize]));
    let rest = sums.last().copied().unwrap_or(0.0);
    // Two of the draws for each head: half of them at least are left.
    let drawn: Vec<u32> = match rest > 0.0 {
        true => (heads.len()..sample)
            .map(|_| others[pick(&sums, rng)])
            .collect(),
        false => Vec::new(),
    };
    let count = GROUPS.min(drawn.len());
    let start = |group: usize| group * drawn.len() / count;
    let groups = (0..count).map(|group| &drawn[start(group)..start(group + 1)]);
    let mut head = Sum::of_none(words);
    let parts: Vec<Sum> = install(heads.len() * words, 0, || {
        let each = heads.chunks(heads.len().div_ceil(PARTS).max(1));
        map_all(each, |ids| {
            sum_of(
                source,
                words,
                ids,
                |w| prior[w as usize],
                control,
                |_, _| (),
            )
        })
    })??;
    parts.into_iter().for_each(|part| head.add(&part));
    let groups: Vec<Sum> = install(drawn.len() * words, 0, || {
        map_all(groups, |ids| {
            let share = 1.0 / ids.len() as f64;
            sum_of(source, words, ids, |_| share, control, |_, _| ())
        })
    })??;
    let entropy: f64 = prior.iter().map(|&p| minus_p_ln_p(p, p)).sum();
    let found = Bounds::of(&head, &groups, rest);
    // An output that only one group has makes the upper bound infinite, and its error no number.
    let bits = |nats: f64| nats.min(entropy).max(0.0) / std::f64::consts::LN_2;
    if groups.is_empty() {
        return Ok(Bits::exact(bits(found.below)));
    }
    let low = bits(found.below - WIDTH * found.low_error);
    let high = bits(found.above + WIDTH * found.high_error);
    let middle = 0.5 * (bits(found.below) + bits(found.above));
    Ok(Bits {
        value: middle.clamp(low, high),
        low,
        high,
        sampled: sample,
    })
}

/// The running sums of weights.
pub(super) fn running(weights: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sum = 0.0;
    let sums = weights.map(|weight| {
        sum += weight;
        sum
    });
    sums.collect()
}

/// A place drawn by running sums of weights.
pub(super) fn pick(sums: &[f64], rng: &mut ChaCha12Rng) -> usize {
    let total = sums.last().copied().unwrap_or(0.0);
    let u = uniform_below_u128(rng, 1 << 53) as f64 / (1u64 << 53) as f64 * total;
    sums.partition_point(|&s| s <= u)
        .min(sums.len().saturating_sub(1))
}

/// -p·ln q; 0 where p is.
fn minus_p_ln_p(p: f64, q: f64) -> f64 {
    if p > 0.0 { -p * q.ln() } else { 0.0 }
}

/// Bounds of I(W;Y) in nats, and their standard errors.
struct Bounds {
    below: f64,
    above: f64,
    low_error: f64,
    high_error: f64,
}

impl Bounds {
    fn of(head: &Sum, groups: &[Sum], rest: f64) -> Self {
        let count = groups.len() as f64;
        // For each group: against all groups, and against the others.
        let mut against = vec![(0.0, 0.0); groups.len()];
        let (mut below, mut above) = (head.spread, head.spread);
        let mut before = vec![0.0; groups.len()];
        for (y, &common) in head.outputs.iter().enumerate() {
            let mut sum = 0.0;
            for (before, group) in before.iter_mut().zip(groups) {
                *before = sum;
                sum += group.outputs[y];
            }
            let all = common + rest * sum / count.max(1.0);
            below += minus_p_ln_p(common, all);
            above += minus_p_ln_p(common, all);
            let mut behind = 0.0;
            for ((found, before), group) in against.iter_mut().zip(&before).zip(groups).rev() {
                let p = group.outputs[y];
                let others = common + rest * (before + behind) / (count - 1.0);
                found.0 += minus_p_ln_p(p, all);
                found.1 += minus_p_ln_p(p, others);
                behind += p;
            }
        }
        let own = |of: fn(&(f64, f64)) -> f64| {
            let each = against.iter().zip(groups);
            let each: Vec<f64> = each
                .map(|(found, group)| of(found) + group.spread)
                .collect();
            let mean = each.iter().sum::<f64>() / count;
            let squares: f64 = each.iter().map(|x| (x - mean).powi(2)).sum();
            (
                rest * mean,
                rest * (squares / (count * (count - 1.0))).sqrt(),
            )
        };
        let (mut low_error, mut high_error) = (0.0, 0.0);
        if !groups.is_empty() {
            let (with, without) = (own(|found| found.0), own(|found| found.1));
            below += with.0;
            above += without.0;
            (low_error, high_error) = (with.1, without.1);
        }
        Bounds {
            below,
            above,
            low_error,
            high_error,
        }
    }
}
