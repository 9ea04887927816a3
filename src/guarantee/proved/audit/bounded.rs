//! Computes certificates from bounded distances: the same certificates, much faster.
//!
//! A space may have bounded distances: f32 distances within a proved relative error ρ. They are
//! then computed once for every pair. min(η·min(d, γ), 60 ln 2) has some maximum L and changes by
//! at most ρ·L, so ln Z is known to within ζ = ρ·L. The loss of a pair falls with d and rises with
//! |ln Z - ln Z'|, which gives a lower and an upper bound on it. A pair cannot be the certificate's
//! if its upper bound is below another pair's lower bound. Distances and normalisers are computed
//! exactly for the few pairs that remain. So the certificate equals that of exact distances to the
//! last bit.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{Losses, NEAR, Near, Worst, normaliser};
use crate::guarantee::Certificate;
use crate::law::FLOOR_EXPONENT;
use crate::mechanism::tem::Tem;
use crate::support::error::Result;
use crate::support::parallel::{Control, install, map_all};
use crate::words::space::rows_together;

/// Words in a block of columns, and of rows: distances and vectors stay in the second-level cache.
const COLUMNS: usize = 256;
const ROWS: usize = 128;
/// Numbers that are compared together.
pub(super) const LANES: usize = 16;
/// Maximum rounding error of ln Z: far more than 2²⁷ words can add.
const ROUNDING: f64 = 1e-7;
/// Sums of one thread.
struct Sums {
    error: f64,
    /// Normalisers by word.
    z: Vec<f64>,
    near: Vec<(f32, u32)>,
    /// The last distance in each word's list.
    limits: Vec<f32>,
    distances: Vec<f32>,
    weights: Vec<f64>,
}

impl Sums {
    fn new(count: usize) -> Self {
        Sums {
            error: 0.0,
            z: vec![0.0; count],
            near: vec![(f32::INFINITY, 0); count * NEAR],
            limits: vec![f32::INFINITY; count],
            distances: vec![0.0; ROWS * COLUMNS],
            weights: Vec::with_capacity(COLUMNS),
        }
    }

    /// Adds all pairs of the words `a` with the words `b`, to both sides unless `a` is among `b`.
    /// Returns `false` if there are no bounded distances.
    fn add(&mut self, tem: &Tem, a: &[u32], b: &[u32], both: bool) -> bool {
        let space = tem.space();
        let Some(error) = space.bounded_distances(a, b, &mut self.distances, COLUMNS) else {
            return false;
        };
        self.error = error;
        let first = b[0] as usize;
        for (i, &word) in a.iter().enumerate() {
            let row = &self.distances[i * COLUMNS..][..b.len()];
            self.weights.clear();
            self.weights.extend(row.iter().map(|&d| f64::from(d)));
            self.z[word as usize] += tem.weigh(&mut self.weights);
            if both {
                let columns = &mut self.z[first..][..b.len()];
                let each = columns.iter_mut().zip(&self.weights);
                each.for_each(|(z, weight)| *z += weight);
            }
            for at in (0..b.len()).step_by(LANES) {
                let chunk = at..b.len().min(at + LANES);
                let row = &self.distances[i * COLUMNS..][chunk.clone()];
                let limit = self.limits[word as usize];
                // Without branches, for the vectoriser.
                let any = match both {
                    false => row.iter().fold(false, |any, d| any | (*d < limit)),
                    true => {
                        let each = row.iter().zip(&self.limits[first + at..]);
                        each.fold(false, |any, (d, own)| any | (*d < limit) | (d < own))
                    }
                };
                if !any {
                    continue;
                }
                for (at, other) in chunk.zip(&b[at..]) {
                    let d = self.distances[i * COLUMNS + at];
                    if d > 0.0 {
                        self.meet(word, d, *other);
                        if both {
                            self.meet(*other, d, word);
                        }
                    }
                }
            }
        }
        true
    }

    fn meet(&mut self, word: u32, d: f32, other: u32) {
        let word = word as usize;
        if d < self.limits[word] {
            let list = &mut self.near[word * NEAR..][..NEAR];
            let at = list.partition_point(|near| near.0 <= d);
            list[at..].rotate_right(1);
            list[at] = (d, other);
            self.limits[word] = list[NEAR - 1].0;
        }
    }

    fn merged(mut self, other: Sums) -> Sums {
        self.error = self.error.max(other.error);
        let both = self.z.iter_mut().zip(&other.z);
        both.for_each(|(z, other)| *z += other);
        for (word, list) in (0u32..).zip(other.near.chunks_exact(NEAR)) {
            for &(d, other) in list {
                self.meet(word, d, other);
            }
        }
        self
    }
}

/// The exact distance of a pair, and the pair.
type Exact = (f64, (u32, u32));

/// Computes a certificate of a Tem without a cover; `None` if the space has no bounded distances, or
/// too many pairs could be the worst.
pub(super) fn certificate(tem: &Tem, control: &Control) -> Result<Option<Certificate>> {
    let Some(losses) = losses(tem, control)? else {
        return Ok(None);
    };
    let near = losses.near_pairs();
    let further = losses.further_pairs(near.least, control)?;
    let all = near.merged(further);
    if all.left_out >= all.least {
        return Ok(None);
    }
    let pairs = all.largest_first.into_iter();
    let pairs = pairs.filter(|pair| pair.0 >= all.least);
    let mut pairs: Vec<_> = pairs.map(|(_, (a, b))| (a.min(b), a.max(b))).collect();
    pairs.sort_unstable();
    pairs.dedup();
    worst(losses, &pairs, control)
}

/// Makes the pass over all pairs; `None` if the space has no bounded distances. `control` counts the
/// words.
fn losses<'a>(tem: &'a Tem, control: &Control) -> Result<Option<Losses<'a>>> {
    let space = tem.space();
    let count = space.vocabulary().len();
    let ids: Vec<u32> = (0..count as u32).collect();
    let blocks: Vec<&[u32]> = ids.chunks(COLUMNS).collect();
    let (next, refused) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = |_: usize| -> Result<Option<Sums>> {
        let mut sums = Sums::new(count);
        // The longest rows of blocks come first.
        while let Some((block, others)) = blocks
            .get(next.fetch_add(1, Ordering::Relaxed)..)
            .and_then(<[_]>::split_first)
        {
            for rows in block.chunks(ROWS) {
                control.check()?;
                let bounded = sums.add(tem, rows, block, false)
                    && others.iter().all(|other| sums.add(tem, rows, other, true));
                if !bounded || refused.load(Ordering::Relaxed) {
                    refused.store(true, Ordering::Relaxed);
                    return Ok(None);
                }
            }
            control.advance(block.len());
        }
        Ok(Some(sums))
    };
    let found: Vec<Option<Sums>> = install(count * count, 0, || {
        map_all(0..rayon::current_num_threads(), work)
    })??;
    let found: Option<Vec<Sums>> = found.into_iter().collect();
    let Some(sums) = found.and_then(|all| all.into_iter().reduce(Sums::merged)) else {
        return Ok(None);
    };
    // No two words are farther apart; slightly larger, for its own rounding.
    let farthest = 2.0 * space.farthest() * (1.0 + 1e-6);
    let largest = tem.nominal() / 2.0 * farthest.min(tem.gamma());
    let near = |list: &[(f32, u32)]| -> Near {
        let list = list.iter().filter(|near| near.0.is_finite());
        list.map(|&(d, other)| (d.into(), other)).collect()
    };
    Ok(Some(Losses {
        tem,
        error: sums.error,
        change: sums.error * largest.min(FLOOR_EXPONENT) + ROUNDING,
        ln_z: sums.z.into_iter().map(f64::ln).collect(),
        near: sums.near.chunks_exact(NEAR).map(near).collect(),
    }))
}

/// Computes the certificate from exact distances of the words of `pairs`; `None` if they are too many.
fn worst(bounded: Losses, pairs: &[(u32, u32)], control: &Control) -> Result<Option<Certificate>> {
    let (tem, count) = (bounded.tem, bounded.ln_z.len());
    let mut words: Vec<u32> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
    words.sort_unstable();
    words.dedup();
    if words.len() > count / 8 + 64 {
        return Ok(None);
    }
    let of_words = |ids: &[u32]| -> Result<Vec<(f64, Vec<Exact>)>> {
        control.check()?;
        let mut rows = vec![0.0; ids.len() * count];
        tem.space().rows(ids, &mut rows);
        let each = ids.iter().zip(rows.chunks_exact(count));
        let each = each.map(|(&id, row)| {
            let first = pairs.partition_point(|pair| pair.0 < id);
            let own = pairs[first..].iter().take_while(|pair| pair.0 == id);
            let own = own.map(|&(a, b)| (row[b as usize], (a, b)));
            let z = normaliser(row, tem, &mut Vec::new());
            (z.ln(), own.collect())
        });
        Ok(each.collect())
    };
    let found: Vec<Vec<_>> = install(words.len() * count, 0, || {
        map_all(words.chunks(rows_together(count).min(8)), of_words)
    })??;
    let mut losses = Losses {
        error: 0.0,
        change: 0.0,
        ..bounded
    };
    let mut exact = Vec::with_capacity(pairs.len());
    for (&word, (z, pairs)) in words.iter().zip(found.into_iter().flatten()) {
        losses.ln_z[word as usize] = z;
        exact.extend(pairs);
    }
    let mut worst = Worst::default();
    for (d, (a, b)) in exact {
        let (loss, _) = losses.bounds(d, a, b);
        if loss > worst.loss {
            worst = Worst {
                loss,
                pair: (a, b),
                output: 0,
            };
        }
    }
    Ok(Some(losses.certified(worst)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::mechanism::tem::Truncation;
    use crate::{Embedding, Metric, MetricSpace, Randomness, Vocabulary};
    use rand::RngExt;

    /// The result equals the certificate of exact distances of all pairs, on words of many kinds:
    /// the maximum at near or far pairs, and words that are equal or nearly so.
    #[test]
    fn certificates_equal_those_of_exact_distances() {
        let mut rng = crate::testing::rng(8);
        let mut found = 0;
        for case in 0..120 {
            let metric = [Metric::Euclidean, Metric::Angular, Metric::Poincare][case % 3];
            let kind = case / 3 % 5;
            // Some take more than two blocks of columns.
            let most = [300, 300, 300, 700][case / 15 % 4];
            let count = rng.random_range(1..most);
            let dim = rng.random_range(2..40usize);
            // A cluster as tight as its spread, and the other words.
            let spread = [1.0, 1.0, 0.01, 0.2, 1e-6][kind];
            let tight = count / rng.random_range(2..9usize);
            let mut vectors: Vec<f32> = Vec::with_capacity(count * dim);
            for i in 0..count {
                for _ in 0..dim {
                    let x = (rng.random::<f32>() - 0.5) * if i < tight { spread } else { 1.0 };
                    let x = if kind == 1 {
                        (4.0 * x).round() / 4.0
                    } else {
                        x
                    };
                    vectors.push((x + 0.3) / (dim as f32).sqrt());
                }
            }
            let words = (0..count).map(|i| i.to_string());
            let e = Embedding::new(Vocabulary::new(words).unwrap(), vectors, dim, metric).unwrap();
            let gamma = [f64::INFINITY, 0.5, 1.5][rng.random_range(0..3)];
            let epsilon = [0.3, 2.0, 9.0, 400.0][rng.random_range(0..4)];
            let space: Arc<Embedding> = Arc::new(e);
            let gamma = Truncation::Gamma(gamma);
            let tem = Tem::new(space.clone(), epsilon, gamma, Randomness::new(None)).unwrap();
            let control = Control::new();
            let exact = Losses::of_all_distances(&tem, &control).unwrap();
            let exact = exact.certificate(&control).unwrap();
            if let Some(bounded) = certificate(&tem, &control).unwrap() {
                found += 1;
                assert_eq!(bounded.epsilon, exact.epsilon, "{case} {metric} {count}");
                let d = |(a, b): (u32, u32)| MetricSpace::distance(&*space, a, b);
                // Among pairs with the same loss, any may be named.
                let apart = d(bounded.pair) / d(exact.pair) - 1.0;
                assert!(bounded.pair == exact.pair || apart.abs() < 1e-9 || kind == 1);
            }
        }
        let mut out = [0.0; 16];
        let e = Embedding::default_english().unwrap();
        match e.bounded_distances(&[0], &[1], &mut out, 16) {
            Some(_) => assert!(found > 60, "{found}"),
            None => assert_eq!(found, 0),
        }
    }

    /// Words with distances from 1 to 2, which are always a metric. Their bounded distances have
    /// the largest allowed errors, in the directions that change losses most. Distances from even
    /// words to the last ones are too large, from odd words too small, and between the two kinds
    /// either.
    struct Off {
        vocabulary: Vocabulary,
        distances: Vec<f64>,
        signs: Vec<f64>,
        error: f64,
    }

    /// Words of the two kinds, and other words whose weights determine their normalisers.
    const OF_TWO_KINDS: usize = 12;
    const OTHERS: usize = 150;

    impl Off {
        fn new(rng: &mut impl rand::Rng, error: f64, wide: f64) -> Self {
            let count = OF_TWO_KINDS + OTHERS;
            let words = (0..count).map(|i| i.to_string());
            let (mut distances, mut signs) = (vec![0.0; count * count], vec![0.0; count * count]);
            let aside: Vec<f64> = (0..count).map(|_| wide * rng.random::<f64>()).collect();
            let side = |word: usize| if word.is_multiple_of(2) { 1.0 } else { -1.0 };
            for a in 0..count {
                for (b, aside) in aside[..a].iter().enumerate() {
                    // b is the smaller.
                    let (d, sign) = match (a < OF_TWO_KINDS, b < OF_TWO_KINDS) {
                        (true, _) => (
                            1.2 + 0.8 * rng.random::<f64>(),
                            side(rng.random_range(0..2)),
                        ),
                        (false, true) => (1.0 + aside, side(b)),
                        _ => (1.0 + rng.random::<f64>(), side(rng.random_range(0..2))),
                    };
                    for at in [a * count + b, b * count + a] {
                        (distances[at], signs[at]) = (d, sign);
                    }
                }
            }
            Off {
                vocabulary: Vocabulary::new(words).unwrap(),
                distances,
                signs,
                error,
            }
        }

        fn at(&self, a: u32, b: u32) -> usize {
            a as usize * self.vocabulary.len() + b as usize
        }

        fn bounded(&self, a: u32, b: u32) -> f64 {
            let (d, sign) = (self.distances[self.at(a, b)], self.signs[self.at(a, b)]);
            // Within the error, whichever way the value is rounded to f32.
            f64::from((d * (1.0 + sign * (self.error - 1e-6))) as f32)
        }
    }

    impl MetricSpace for Off {
        fn vocabulary(&self) -> &Vocabulary {
            &self.vocabulary
        }

        fn metric_name(&self) -> &'static str {
            "off"
        }

        fn distance(&self, a: u32, b: u32) -> f64 {
            self.distances[self.at(a, b)]
        }

        fn fingerprint(&self) -> u64 {
            7
        }

        fn distances(&self, a: u32, out: &mut [f64]) {
            out.copy_from_slice(&self.distances[self.at(a, 0)..][..out.len()]);
        }

        fn bounded_distances(
            &self,
            a: &[u32],
            b: &[u32],
            out: &mut [f32],
            stride: usize,
        ) -> Option<f64> {
            for (&a, row) in a.iter().zip(out.chunks_mut(stride)) {
                let whole = b.len().next_multiple_of(16);
                row[..whole].fill(f32::INFINITY);
                b.iter()
                    .zip(row)
                    .for_each(|(&b, out)| *out = self.bounded(a, b) as f32);
            }
            Some(self.error)
        }
    }

    /// Each pair's exact loss lies between its two bounds. Cases: bounded distances of many kinds,
    /// and distances with the largest allowed errors. With a quarter of one of the errors, the
    /// bounds fail. That machines keep their error: src/distance/metric/bounded.rs.
    #[test]
    fn every_loss_is_between_its_bounds() {
        let mut rng = crate::testing::rng(13);
        // How closely losses approach their bounds, relative to the width between a pair's bounds.
        let mut closest = [f64::INFINITY; 2];
        for case in 0..60 {
            let error = [0.02, 0.004][case % 2];
            let gamma = [f64::INFINITY, 1.1, 1.1][case % 3];
            let epsilon = rng.random_range(0.5..8.0);
            let space = Arc::new(Off::new(&mut rng, error, [0.0, 0.06][case / 2 % 2]));
            let gamma = Truncation::Gamma(gamma);
            let tem = Tem::new(space.clone(), epsilon, gamma, Randomness::new(None)).unwrap();
            let bounded = losses(&tem, &Control::new()).unwrap().unwrap();
            let exact = Losses::of_all_distances(&tem, &Control::new()).unwrap();
            for a in 0..OF_TWO_KINDS as u32 {
                for b in 0..a {
                    let (low, high) = bounded.bounds(space.bounded(a, b), a, b);
                    let (loss, _) = exact.bounds(space.distance(a, b), a, b);
                    assert!(
                        low <= loss && loss <= high,
                        "{low} {loss} {high} in case {case}"
                    );
                    closest[0] = f64::min(closest[0], (loss - low) / (high - low));
                    closest[1] = f64::min(closest[1], (high - loss) / (high - low));
                }
            }
        }
        assert!(closest[0] < 0.12 && closest[1] < 0.12, "{closest:?}");
    }
}
