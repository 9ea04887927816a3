//! The law of Tem by columns: Pr\[y|w\] of one output y for every word w, with the normalisers that
//! columns need.
//!
//! A weight is the integer that the sampler uses, as a float. It has at most 53 significant bits,
//! so the float is exact. Normalisers are sums of such floats, with a relative error of 10⁻¹⁵.

use super::Tem;
use super::law::{FLOOR_EXPONENT, LOG2_FLOOR, LOG2_LARGEST};
use crate::cover::word_of;
use crate::distance::neighbors::Grid;
use crate::law::base::BaseMeasure;
use crate::support::arithmetic::exp_minus;
use crate::support::simd::vectorised;
use crate::words::space::{MetricSpace, rows_together};

/// Words whose scores are computed together: their rows stay in the second-level cache.
const WORDS_PER_BATCH: usize = 8;
/// Words whose distances to a set, or whose weights, are computed together.
const COLUMNS_PER_BLOCK: usize = 256;

impl Tem {
    /// Calls a function with each word, its law (every output's probability, by id), the normaliser
    /// relative to the largest weight, and Σ p ln p.
    pub(crate) fn each_law(&self, ids: &[u32], mut one: impl FnMut(u32, &[f64], f64, f64)) {
        let words = self.space.vocabulary().len();
        let eta = self.epsilon / 2.0;
        let (mut distances, mut covered, mut law) = (Vec::new(), Vec::new(), Vec::new());
        for ids in ids.chunks(rows_together(words)) {
            // Compute distances of many words at once; compute scores of as many as stay in the
            // second-level cache.
            distances.resize(ids.len() * words, 0.0);
            self.space.rows(ids, &mut distances);
            let rows = distances.chunks_mut(WORDS_PER_BATCH * words);
            for (ids, rows) in ids.chunks(WORDS_PER_BATCH).zip(rows) {
                if let Some(grid) = self.grid() {
                    round(rows, grid);
                }
                let scores = match &self.cover {
                    None => rows,
                    Some(cover) => {
                        cover.scores_of_rows(rows, &mut covered);
                        &mut covered
                    }
                };
                let ranks = scores.len() / ids.len();
                for (&id, scores) in ids.iter().zip(scores.chunks_exact_mut(ranks)) {
                    let (total, spread) = match &self.base {
                        None => weights(scores, eta, self.gamma),
                        Some(base) => {
                            let id = |rank| word_of(self.cover.as_deref(), rank);
                            based_weights(scores, eta, self.gamma, base, id)
                        }
                    };
                    let share = 1.0 / total;
                    scores.iter_mut().for_each(|p| *p *= share);
                    // Σ p ln p, where ln p = -exponent - ln total.
                    let p_ln_p = -spread * share - total.ln();
                    match self.cover.as_deref().filter(|cover| cover.excluded() > 0) {
                        None => one(id, scores, total, p_ln_p),
                        Some(cover) => {
                            law.clear();
                            law.resize(words, 0.0);
                            for (&y, &p) in cover.released().iter().zip(&*scores) {
                                law[y as usize] = p;
                            }
                            one(id, &law, total, p_ln_p);
                        }
                    }
                }
            }
        }
    }

    /// Writes Pr\[y|w\] of some outputs y and every word w, a row for each output, from the normalisers
    /// that [`each_law`](Self::each_law) gives.
    pub(crate) fn columns(&self, outputs: &[u32], totals: &[f64], out: &mut [f64]) {
        let eta = self.epsilon / 2.0;
        if self.cover.is_none() {
            self.space.rows(outputs, out);
        }
        for (row, &y) in out.chunks_exact_mut(totals.len()).zip(outputs) {
            if let Some(cover) = &self.cover {
                let Some(rank) = cover.rank(y) else {
                    row.fill(0.0);
                    continue;
                };
                nearest_of(&*self.space, cover.set(rank), row);
            }
            if let Some(grid) = self.grid() {
                round(row, grid);
            }
            match &self.base {
                None => weights(row, eta, self.gamma),
                Some(base) => based_weights(row, eta, self.gamma, base, |_| y),
            };
            for (p, total) in row.iter_mut().zip(totals) {
                *p /= total;
            }
        }
    }
}

/// Rounds distances to the grid.
fn round(distances: &mut [f64], grid: Grid) {
    distances.iter_mut().for_each(|d| *d = grid.round(*d));
}

/// Writes the distance from every word to the nearest of `words`.
fn nearest_of(space: &dyn MetricSpace, words: &[u32], out: &mut [f64]) {
    out.fill(f64::INFINITY);
    let lower = |out: &mut [f64], row: &[f64]| {
        for (least, &d) in out.iter_mut().zip(row) {
            *least = if d < *least { d } else { *least };
        }
    };
    if space.distances_by_row() {
        let mut row = vec![0.0; out.len()];
        for &word in words {
            space.distances(word, &mut row);
            lower(out, &row);
        }
        return;
    }
    // Blocks that stay in the cache.
    let all: Vec<u32> = (0..out.len() as u32).collect();
    let mut block = vec![0.0; words.len() * COLUMNS_PER_BLOCK];
    let each = all.chunks(COLUMNS_PER_BLOCK);
    for (some, out) in each.zip(out.chunks_mut(COLUMNS_PER_BLOCK)) {
        space.block(words, some, &mut block, some.len());
        for row in block.chunks_exact(some.len()).take(words.len()) {
            lower(out, row);
        }
    }
}

const SCALE: f64 = (1u128 << LOG2_LARGEST) as f64;
const LEAST: f64 = 1.0 / (1u64 << (LOG2_LARGEST - LOG2_FLOOR)) as f64;

/// The integer weight of an exponent relative to the largest weight, 2¹⁰⁰.
#[inline(always)]
fn weight(exponent: f64) -> f64 {
    shortened_weight(exponent, SCALE, LEAST)
}

/// The same for a largest weight of `scale`, without the bits behind; none is below `least`.
#[inline(always)]
fn shortened_weight(exponent: f64, scale: f64, least: f64) -> f64 {
    const ROUND: f64 = (1u64 << 52) as f64;
    let capped = if exponent < FLOOR_EXPONENT + 0.25 {
        exponent
    } else {
        FLOOR_EXPONENT + 0.25
    };
    let v = exp_minus(capped);
    let v = if v > least { v } else { least };
    let v = if v < 1.0 { v } else { 1.0 };
    let scaled = v * scale;
    // Round down: from 2⁵² on, every float is an integer.
    let nearest = (scaled + ROUND) - ROUND;
    let below = nearest - if nearest > scaled { 1.0 } else { 0.0 };
    (if scaled < ROUND { below } else { scaled }) / scale
}

vectorised! {
    /// Turns scores into weights relative to the largest. Returns their sum, and the sum of each
    /// weight times its exponent.
    fn weights = weights_portable(scores: &mut [f64], eta: f64, gamma: f64) -> (f64, f64)
}

/// The same with a base measure; `id` is the word of each score.
fn based_weights(
    scores: &mut [f64],
    eta: f64,
    gamma: f64,
    base: &BaseMeasure,
    id: impl Fn(u32) -> u32,
) -> (f64, f64) {
    let scale = SCALE / 2f64.powi(base.shift() as i32);
    let least = (1u64 << LOG2_FLOOR) as f64 / scale;
    let (mut sum, mut spread, mut rank) = (0.0, 0.0, 0);
    let mut exponents = [0.0; COLUMNS_PER_BLOCK];
    for scores in scores.chunks_mut(COLUMNS_PER_BLOCK) {
        let exponents = &mut exponents[..scores.len()];
        shortened_weights(scores, exponents, (eta, gamma), (scale, least));
        for (score, exponent) in scores.iter_mut().zip(exponents) {
            let id = id(rank) as usize;
            rank += 1;
            *score *= base.shares()[id];
            sum += *score;
            spread += *score * (*exponent + base.penalties()[id]);
        }
    }
    (sum, spread)
}

vectorised! {
    /// Turns scores into weights of at most `scale` as [`shortened_weight`] does; writes their
    /// exponents.
    fn shortened_weights = shortened_portable(
        scores: &mut [f64],
        exponents: &mut [f64],
        law: (f64, f64),
        integers: (f64, f64)
    )
}

#[inline(always)]
fn shortened_portable(
    scores: &mut [f64],
    exponents: &mut [f64],
    (eta, gamma): (f64, f64),
    (scale, least): (f64, f64),
) {
    let floor = -least.ln();
    for (score, exponent) in scores.iter_mut().zip(exponents) {
        let x = eta * if *score < gamma { *score } else { gamma };
        *exponent = if x < floor { x } else { floor };
        *score = shortened_weight(*exponent, scale, least);
    }
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn weights_portable(scores: &mut [f64], eta: f64, gamma: f64) -> (f64, f64) {
    const LANES: usize = 16;
    let (mut sums, mut spreads) = ([0.0; LANES], [0.0; LANES]);
    let exponent = |d: f64| eta * if d < gamma { d } else { gamma };
    let capped = |x: f64| {
        if x < FLOOR_EXPONENT {
            x
        } else {
            FLOOR_EXPONENT
        }
    };
    let (chunks, rest) = scores.as_chunks_mut::<LANES>();
    for chunk in chunks {
        for l in 0..LANES {
            let x = exponent(chunk[l]);
            chunk[l] = weight(x);
            sums[l] += chunk[l];
            spreads[l] += chunk[l] * capped(x);
        }
    }
    let (mut sum, mut spread) = (sums.iter().sum(), spreads.iter().sum());
    for d in rest {
        let x = exponent(*d);
        *d = weight(x);
        sum += *d;
        spread += *d * capped(x);
    }
    (sum, spread)
}

#[cfg(test)]
mod tests {
    use super::super::law;
    use super::*;

    #[test]
    fn a_weight_is_the_integer_that_is_drawn() {
        for i in 0..45_000 {
            let x = f64::from(i) * 1e-3;
            assert_eq!(weight(x) * SCALE, law::weight(x) as f64, "{x}");
        }
        assert_eq!(weight(f64::INFINITY) * SCALE, law::weight(1e9) as f64);
        assert_eq!((weight(0.0), SCALE), (1.0, 2f64.powi(100)));
    }
}
