//! Bayes capacity from some outputs: an unbiased estimate of the sum of the columns' largest numbers.

use rand::rngs::ChaCha12Rng;

use super::mean::interval_of_mean;
use crate::channel::source::Source;
use crate::guarantee::Bits;
use crate::mechanism::tem::Tem;
use crate::support::error::Result;
use crate::support::parallel::{Control, install, map_all};
use crate::support::random::uniform_below;

/// How often the interval misses, at most: as three standard errors do.
const MISS_RATE: f64 = 0.0027;
/// Outputs whose laws are computed together.
const OUTPUTS_PER_TASK: usize = 8;
/// Outputs that an estimate draws at least.
const MIN_OUTPUTS: usize = 64;

/// log₂ Σ_y max_w Pr\[y|w\] from so many laws; `None` for mechanisms whose columns' largest number takes
/// more than a few laws.
///
/// A word's normaliser changes by at most a factor e^(η·d) over a distance d. So among all words w, one of
/// the set that y stands for (of plain Tem: y itself) has the largest Pr\[y|w\], and a column's largest
/// number takes the laws of that set only. Outputs are drawn uniformly; the interval of their mean is
/// [`interval_of_mean`] at 99.7%.
pub(in crate::channel) fn sampled_capacity(
    source: &Source,
    words: usize,
    laws: usize,
    rng: &mut ChaCha12Rng,
    control: &Control,
) -> Option<Result<Bits>> {
    let Source::Tem(tem) = source else {
        return None;
    };
    Some(estimate(source, tem, words, laws, rng, control))
}

fn estimate(
    source: &Source,
    tem: &Tem,
    words: usize,
    laws: usize,
    rng: &mut ChaCha12Rng,
    control: &Control,
) -> Result<Bits> {
    let cover = tem.cover().map(|cover| &**cover);
    let outputs = cover.map_or(words, |cover| cover.released().len());
    let mean_set = cover.map_or(1.0, |cover| cover.mean_set().max(1.0));
    let sample = ((laws as f64 / mean_set) as usize).max(MIN_OUTPUTS);
    let ranks: Vec<u32> = (0..sample)
        .map(|_| uniform_below(rng, outputs as u32))
        .collect();
    let parts: Vec<Vec<f64>> = install(laws * words, 0, || {
        map_all(ranks.chunks(OUTPUTS_PER_TASK), |ranks| {
            control.check()?;
            let found = largest_of(source, tem, ranks, words)?;
            control.advance(ranks.len());
            Ok(found)
        })
    })??;
    let largest = parts.concat();
    let most = bound(tem, words);
    let shares: Vec<f64> = largest.iter().map(|x| (x / most).min(1.0)).collect();
    let (low, high) = interval_of_mean(&shares, MISS_RATE);
    let bits = |mean: f64| {
        (mean * outputs as f64)
            .log2()
            .clamp(0.0, (words as f64).log2())
    };
    Ok(Bits {
        value: bits(largest.iter().sum::<f64>() / sample as f64),
        low: bits(low * most),
        high: bits(high * most),
        sampled: sample,
        draws: 0,
    })
}

/// The largest Pr\[y|w\] of some outputs y, by the laws of the words that they stand for.
fn largest_of(source: &Source, tem: &Tem, ranks: &[u32], words: usize) -> Result<Vec<f64>> {
    let Some(cover) = tem.cover() else {
        let mut found = Vec::with_capacity(ranks.len());
        source.each_law(ranks, words, |y, law, _, _| found.push(law[y as usize]))?;
        return Ok(found);
    };
    let mut found = Vec::with_capacity(ranks.len());
    for &rank in ranks {
        let (y, mut most) = (cover.id(rank), 0.0);
        source.each_law(cover.set(rank), words, |_, law, _, _| {
            most = law[y as usize].max(most);
        })?;
        found.push(most);
    }
    Ok(found)
}

/// At most so much is any Pr\[y|w\]: a word's outputs at distance 0 share what they weigh.
fn bound(tem: &Tem, words: usize) -> f64 {
    let Some(cover) = tem.cover().filter(|_| tem.base().is_none()) else {
        return 1.0;
    };
    let of_word = |word| 1.0 / cover.outputs(word).len() as f64;
    // Words that no set has are as far from every output as they may be.
    let all = (0..words as u32).map(of_word);
    all.map(|share| if share.is_finite() { share } else { 1.0 })
        .fold(0.0, f64::max)
        .min(1.0)
}
