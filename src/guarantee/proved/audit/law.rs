//! Computes the actual ε of any mechanism with a law, against any metric on its words.
//!
//! The result is the supremum of |ln Pr\[y|w\] - ln Pr\[y|w'\]| / d(w, w') over all pairs of words
//! and all outputs. It also gives the supremum of the log-ratio itself: the ε of local differential
//! privacy. All laws are held in memory, eight bytes for each word and output.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::mechanism::{Mechanism, finite_law};
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, for_all, install, map_all};
use crate::support::simd::vectorised;
use crate::words::space::MetricSpace;

/// Maximum memory for all laws.
const LIMIT: u64 = 8 << 30;
/// Pairs are compared in squares of this many words, with this many outputs at a time.
const TILE: usize = 32;
const OUTPUTS: usize = 512;
/// Two laws at distance 0 may differ by rounding.
const ROUNDING: f64 = finite_law::SLACK / 2.0;

/// A pair of words, the first the likelier input of the output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Witness {
    /// The two words.
    pub pair: (u32, u32),
    /// The output with the largest log-ratio for this pair.
    pub output: u32,
}

/// The largest losses of a mechanism over all pairs of words and all outputs.
#[derive(Clone, Copy, Debug)]
pub struct LargestLoss {
    /// The largest log-ratio per unit of distance. It is infinite if the laws of two words at
    /// distance 0 differ, or an output is possible for one word only.
    pub epsilon: f64,
    /// The pair and output that attain it.
    pub witness: Witness,
    /// The largest log-ratio of any two words: the ε of local differential privacy.
    pub local: f64,
    /// The pair and output that attain it.
    pub local_witness: Witness,
}

/// Computes the largest loss of a mechanism against `metric`, a metric on the same words; `control`
/// counts the words.
///
/// # Errors
/// [`Error::Parameter`] for a mechanism without a law or a metric on other words,
/// [`Error::TooLarge`], [`Error::Interrupted`].
pub fn largest_loss(
    mechanism: &dyn Mechanism,
    metric: &dyn MetricSpace,
    control: &Control,
) -> Result<LargestLoss> {
    let vocabulary = mechanism.vocabulary();
    let count = vocabulary.len();
    mechanism.check_one_law()?;
    if !mechanism.has_law() {
        let got = mechanism.guarantee().mechanism;
        let expected = "one whose law can be computed";
        return Err(Error::parameter("mechanism", expected, got));
    }
    if metric.vocabulary().len() != count || !metric.vocabulary().iter().eq(vocabulary.iter()) {
        let expected = "a metric on the words of the mechanism, in their order";
        return Err(Error::parameter("metric", expected, "one on others"));
    }
    let needed = 8 * (count as u64).pow(2);
    if needed > LIMIT {
        return Err(Error::TooLarge {
            what: format!("the laws of all {count} words"),
            needed,
            limit: LIMIT,
        });
    }
    let mut logs = vec![0.0f64; count * count];
    install(count * count, 0, || {
        for_all(logs.chunks_mut(count).enumerate(), |(word, row)| {
            control.check()?;
            mechanism.law(word as u32, row);
            row.iter_mut().for_each(|p| *p = p.ln());
            control.advance(1);
            Ok(())
        })
    })??;
    let (local, local_witness) = spread(&mut logs, count)?;
    if local == f64::INFINITY {
        return Ok(LargestLoss {
            epsilon: local,
            witness: local_witness,
            local,
            local_witness,
        });
    }
    let pairs = Pairs {
        logs: &logs,
        metric,
        count,
        local,
        best: AtomicU64::new(0),
    };
    let worst = pairs.worst(control)?;
    let witness = pairs.witness(worst.1);
    // Rounding is far below this.
    const ROUNDED_UP: f64 = 1.0 + 1e-10;
    Ok(LargestLoss {
        epsilon: worst.0 * ROUNDED_UP,
        witness,
        local: local * ROUNDED_UP,
        local_witness,
    })
}

/// Returns the largest difference in a column and where it occurs. Outputs that no word can have
/// become 0 everywhere.
fn spread(logs: &mut [f64], count: usize) -> Result<(f64, Witness)> {
    const COLUMNS: usize = 256;
    let parts = count.div_ceil(COLUMNS);
    let of_part = |part: usize| {
        let columns = part * COLUMNS..count.min((part + 1) * COLUMNS);
        let mut extremes = vec![((f64::INFINITY, 0u32), (f64::NEG_INFINITY, 0u32)); columns.len()];
        for (row, word) in logs.chunks_exact(count).zip(0u32..) {
            for (&x, (low, high)) in row[columns.clone()].iter().zip(&mut extremes) {
                if x < low.0 {
                    *low = (x, word);
                }
                if x > high.0 {
                    *high = (x, word);
                }
            }
        }
        extremes
    };
    let extremes = install(count * count, 0, || {
        map_all(0..parts, |part| Ok(of_part(part)))
    })??
    .concat();
    let never = |y: usize| extremes[y].1.0 == f64::NEG_INFINITY;
    let unreleased: Vec<usize> = (0..count).filter(|&y| never(y)).collect();
    for row in logs.chunks_exact_mut(count) {
        unreleased.iter().for_each(|&y| row[y] = 0.0);
    }
    let mut worst = (0.0, (0, 0), 0);
    for ((low, high), y) in extremes.iter().zip(0u32..) {
        if !never(y as usize) && high.0 - low.0 > worst.0 {
            worst = (high.0 - low.0, (high.1, low.1), y);
        }
    }
    let (pair, output) = (worst.1, worst.2);
    Ok((worst.0, Witness { pair, output }))
}

/// A loss per unit of distance, and its pair.
type Worst = (f64, (u32, u32));

struct Pairs<'a> {
    /// ln Pr\[y|w\], row by row.
    logs: &'a [f64],
    metric: &'a dyn MetricSpace,
    count: usize,
    /// The largest log-ratio of any pair.
    local: f64,
    /// The bits of the largest loss per unit of distance found so far. Non-negative numbers sort
    /// like their bits.
    best: AtomicU64,
}

impl Pairs<'_> {
    fn row(&self, word: u32) -> &[f64] {
        &self.logs[word as usize * self.count..][..self.count]
    }

    fn loss(&self, ratio: f64, distance: f64) -> f64 {
        match (distance > 0.0, ratio <= ROUNDING) {
            (true, _) => ratio / distance,
            (false, true) => 0.0,
            (false, false) => f64::INFINITY,
        }
    }

    /// Compares all pairs that are near enough to lose more than the largest loss found; returns the
    /// worst, the first of equal ones.
    fn worst(&self, control: &Control) -> Result<Worst> {
        let ids: Vec<u32> = (0..self.count as u32).collect();
        let tile = |a: &[u32]| -> Result<Worst> {
            let mut worst = (0.0, (0, 0));
            let (mut distances, mut most) = (vec![0.0; TILE * TILE], vec![0.0f64; TILE * TILE]);
            for b in ids[a[0] as usize..].chunks(TILE) {
                control.check()?;
                self.metric.block(a, b, &mut distances, TILE);
                let best = f64::from_bits(self.best.load(Ordering::Relaxed));
                let open = |i: usize, j: usize| {
                    // The last bits of a block's distances may differ from those of `distance`.
                    a[i] < b[j] && distances[i * TILE + j] * best <= self.local * (1.0 + 1e-6)
                };
                let pairs = (0..a.len()).flat_map(|i| (0..b.len()).map(move |j| (i, j)));
                let open: Vec<(usize, usize)> = pairs.filter(|&(i, j)| open(i, j)).collect();
                most.fill(0.0);
                for first in (0..self.count).step_by(OUTPUTS) {
                    let outputs = first..self.count.min(first + OUTPUTS);
                    for &(i, j) in &open {
                        let most = &mut most[i * TILE + j];
                        let (x, y) = (self.row(a[i]), self.row(b[j]));
                        let change = largest_difference(&x[outputs.clone()], &y[outputs.clone()]);
                        *most = most.max(change);
                    }
                }
                for &(i, j) in &open {
                    let distance = self.metric.distance(a[i], b[j]);
                    let loss = self.loss(most[i * TILE + j], distance);
                    if loss > worst.0 {
                        worst = (loss, (a[i], b[j]));
                    }
                }
                self.best.fetch_max(worst.0.to_bits(), Ordering::Relaxed);
            }
            Ok(worst)
        };
        let all = install(self.count * self.count, 0, || {
            map_all(ids.chunks(TILE), tile)
        })??;
        let larger = |a: Worst, b: Worst| if b.0 > a.0 { b } else { a };
        Ok(all.into_iter().fold((0.0, (0, 0)), larger))
    }

    fn witness(&self, (a, b): (u32, u32)) -> Witness {
        let ratios = self.row(a).iter().zip(self.row(b)).map(|(x, y)| x - y);
        let mut worst = (0.0f64, 0);
        for (ratio, y) in ratios.zip(0u32..) {
            if ratio.abs() > worst.0.abs() {
                worst = (ratio, y);
            }
        }
        Witness {
            pair: if worst.0 >= 0.0 { (a, b) } else { (b, a) },
            output: worst.1,
        }
    }
}

vectorised! {
    /// The largest |x - y|, the same on every machine.
    fn largest_difference = largest_portable(x: &[f64], y: &[f64]) -> f64
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn largest_portable(x: &[f64], y: &[f64]) -> f64 {
    const LANES: usize = 32;
    let mut most = [0.0f64; LANES];
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in x.iter().zip(y) {
        for l in 0..LANES {
            let change = (x[l] - y[l]).abs();
            most[l] = if change > most[l] { change } else { most[l] };
        }
    }
    let rest = x_rest.iter().zip(y_rest).map(|(x, y)| (x - y).abs());
    rest.chain(most).fold(0.0, f64::max)
}
