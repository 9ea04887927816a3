//! Computes the actual ε of a Tem on its vocabulary.
//!
//! The factor ½ in exp(-(ε/2)·d) pays for the normaliser Z. With η = ε/2, a log-ratio is η·(score
//! difference) + ln Z(w') - ln Z(w), and the proof bounds each of the two parts by η·d. On a known
//! vocabulary the second part can be computed. At output y = w, the score difference has its
//! largest value, min(d, γ). At one of y = w and y = w', the normalisers' difference has the same
//! sign. So the supremum over all outputs is exactly
//!
//! > loss(w, w') = min(η·min(d, γ), 60 ln 2) + |ln Z(w) - ln Z(w')|
//!
//! where 60 ln 2 is the floor of the integer weights. The certified ε is the largest loss per unit
//! of distance over all pairs.

mod bounded;
mod check;
mod law;

use crate::cover::Cover;
use crate::guarantee::Certificate;
use crate::mechanism::tem::Tem;
use crate::support::error::Result;
use crate::support::parallel::{Control, install, map_all, map_all_with};
use crate::words::space::rows_together;

pub use check::{Checked, check};
pub use law::{LargestLoss, Witness, largest_loss};

/// Number of each word's nearest words that are compared first. Farther pairs attain the maximum
/// only if their normalisers differ more.
const NEAR: usize = 16;
/// Maximum number of pairs that are compared over all outputs, and the number compared at a time.
const MAX_COMPARED_PAIRS: usize = 4096;
const PAIRS_PER_BATCH: usize = 16;
/// How often [`certified`] doubles ε in search of an ε that costs too much.
const DOUBLINGS: usize = 10;
/// Relative accuracy to which [`certified`] solves for ε.
const ACCURACY: f64 = 1e-4;

/// Computes the certificate of a Tem; `control` counts the words. There are three passes:
///
/// 1. every word's normaliser and its nearest words, in one pass over all distances;
/// 2. the loss of all near pairs, where most certificates attain their maximum;
/// 3. all pairs of words whose normalisers differ so much that a farther pair could attain it.
///
/// With a cover, the loss above is only an upper bound: an output's score difference may be less
/// than the distance. Pairs are then compared over all outputs, in the order of their bounds. This
/// stops when no bound exceeds the largest loss found, or after 4,096 pairs: the largest remaining
/// bound is then the certificate.
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted).
pub fn certify(tem: &Tem, control: &Control) -> Result<Certificate> {
    // The sets of a cover and a base measure need whole rows.
    let plain = tem.cover().is_none() && tem.base().is_none();
    if plain
        && tem.space().vocabulary().len() >= MIN_BOUNDED_WORDS
        && let Some(found) = bounded::certificate(tem, control)?
    {
        return Ok(found);
    }
    Losses::of_all_distances(tem, control)?.certificate(control)
}

/// With fewer words, exact distances are as fast.
const MIN_BOUNDED_WORDS: usize = 2048;

/// A word's nearest words and their distances, ascending.
type Near = Vec<(f64, u32)>;

/// The losses of all pairs.
struct Losses<'a> {
    tem: &'a Tem,
    /// The logarithm of every word's normaliser, and its nearest words.
    ln_z: Vec<f64>,
    near: Vec<Near>,
    /// The relative error of distances, and the error of each ln Z; 0 if they are exact.
    error: f64,
    change: f64,
}

/// A pair of words, and its loss at the output that favours the first most, or an upper bound on
/// it.
#[derive(Clone, Copy, Debug, Default)]
struct Worst {
    loss: f64,
    pair: (u32, u32),
    output: u32,
}

impl<'a> Losses<'a> {
    /// Makes the first pass with exact distances.
    fn of_all_distances(tem: &'a Tem, control: &Control) -> Result<Self> {
        let (space, cover) = (tem.space(), tem.cover());
        let count = space.vocabulary().len();
        let ids: Vec<u32> = (0..count as u32).collect();
        let parts: Vec<Vec<(f64, Near)>> = install(count * count, 0, || {
            let memory = || (Vec::new(), Vec::new(), Vec::new());
            map_all_with(ids.chunks(rows_together(count)), memory, |memory, ids| {
                let (distances, scores, values) = memory;
                control.check()?;
                distances.resize(ids.len() * count, 0.0);
                space.rows(ids, distances);
                let scores: &[f64] = match cover {
                    None => distances,
                    Some(cover) => {
                        cover.scores_of_rows(distances, scores);
                        scores
                    }
                };
                let scores = scores.chunks_exact(scores.len() / ids.len());
                let rows = distances.chunks_exact(count).zip(scores);
                let each = rows.map(|(row, scores)| {
                    let ln_z = normaliser(scores, tem, values).ln();
                    (ln_z, nearest(row))
                });
                let each = each.collect();
                control.advance(ids.len());
                Ok(each)
            })
        })??;
        let (ln_z, near) = parts.into_iter().flatten().unzip();
        Ok(Losses {
            tem,
            ln_z,
            near,
            error: 0.0,
            change: 0.0,
        })
    }

    fn certificate(&self, control: &Control) -> Result<Certificate> {
        let mut bounds = self.near_pairs();
        let looked = match self.tem.cover() {
            // Without a cover the bound is the loss: the largest is the certificate.
            None => bounds.largest(),
            Some(cover) => self.look(&mut bounds, Worst::default(), cover, control)?,
        };
        let mut further = self.further_pairs(looked.loss, control)?;
        let worst = match self.tem.cover() {
            None => looked.worse(further.largest()),
            Some(cover) => self.look(&mut further, looked, cover, control)?,
        };
        Ok(self.certified(worst))
    }

    /// Creates the certificate of the worst pair.
    fn certified(&self, worst: Worst) -> Certificate {
        let (tem, space) = (self.tem, self.tem.space());
        let (a, b) = worst.pair;
        let (pair, output) = match tem.cover() {
            Some(_) => ((a, b), worst.output),
            // The word with the smaller normaliser gives itself the larger probability as an
            // output.
            None if self.ln_z[a as usize] <= self.ln_z[b as usize] => ((a, b), a),
            None => ((b, a), b),
        };
        Certificate {
            nominal: tem.nominal(),
            gamma: tem.gamma(),
            // Rounding is far below this; the sampler's own rounding is in the guarantee's slack.
            epsilon: (worst.loss * (1.0 + 1e-10)).min(tem.nominal()),
            pair,
            output,
            vocabulary: space.fingerprint(),
            cover: tem.outputs_fingerprint(),
        }
    }

    /// A lower and an upper bound on the loss per unit of distance of a pair at distance `d`: its loss
    /// if nothing has an error. With a cover, only the upper one is a bound.
    fn bounds(&self, d: f64, a: u32, b: u32) -> (f64, f64) {
        let (eta, gamma) = (self.tem.nominal() / 2.0, self.tem.gamma());
        let apart = (self.ln_z[a as usize] - self.ln_z[b as usize]).abs();
        let loss = |d: f64, apart: f64| {
            let score = (eta * d.min(gamma)).min(self.tem.floor_exponent());
            (score + apart) / d
        };
        if self.change == 0.0 {
            return (loss(d, apart), loss(d, apart));
        }
        let twice = 2.0 * self.change;
        let low = loss(d / (1.0 - self.error), (apart - twice).max(0.0));
        let high = loss(d / (1.0 + self.error), apart + twice);
        // Slightly wider, for the rounding of these lines.
        (low * (1.0 - 1e-12), high * (1.0 + 1e-12))
    }

    /// The bounds of all near pairs.
    fn near_pairs(&self) -> Bounds {
        let mut bounds = Bounds::default();
        for (near, id) in self.near.iter().zip(0u32..) {
            for &(d, other) in near {
                bounds.add(self.bounds(d, id, other), (id, other));
            }
        }
        bounds
    }

    /// Returns the bounds above `loss` of pairs that are not near. It compares only words whose
    /// normalisers differ enough from some other.
    fn further_pairs(&self, loss: f64, control: &Control) -> Result<Bounds> {
        let count = self.ln_z.len();
        let eta = self.tem.nominal() / 2.0;
        let low = self.ln_z.iter().fold(f64::INFINITY, |a, &z| a.min(z));
        let high = self.ln_z.iter().fold(f64::NEG_INFINITY, |a, &z| a.max(z));
        let open = |id: &u32| {
            let (ln_z, near) = (self.ln_z[*id as usize], &self.near[*id as usize]);
            let change = (high - ln_z).max(ln_z - low) + 2.0 * self.change;
            let from = near.last().map_or(f64::INFINITY, |n| n.0) / (1.0 + self.error);
            near.len() == NEAR && (eta + change / from) * (1.0 + 1e-12) > loss
        };
        let open: Vec<u32> = (0..count as u32).filter(open).collect();
        let of_part = |rows: &mut Rows, part: &[u32]| {
            let mut bounds = Bounds::default();
            for ids in part.chunks(rows_together(count)) {
                control.check()?;
                self.each_distance(ids, &open, rows, |d, id, other| {
                    let both = self.bounds(d, id, other);
                    if both.1 > loss {
                        bounds.add(both, (id, other));
                    }
                });
            }
            Ok(bounds)
        };
        let all = install(open.len() * count, 0, || {
            let parts = open.chunks(open.len().div_ceil(PARTS).max(1));
            map_all_with(parts, Rows::default, of_part)
        })??;
        Ok(all.into_iter().fold(Bounds::default(), Bounds::merged))
    }

    /// Calls a function with each distance above 0 from some words to others, bounded or exact.
    fn each_distance(
        &self,
        ids: &[u32],
        others: &[u32],
        (exact, bounded): &mut Rows,
        mut one: impl FnMut(f64, u32, u32),
    ) {
        let (space, count) = (self.tem.space(), self.ln_z.len());
        let mut pair = |d: f64, id: u32, other: u32| {
            if d > 0.0 {
                one(d, id, other);
            }
        };
        if self.change > 0.0 {
            let stride = others.len().next_multiple_of(bounded::LANES);
            bounded.resize(ids.len() * stride, 0.0);
            // The first pass had bounded distances of all pairs.
            let error = space.bounded_distances(ids, others, bounded, stride);
            debug_assert!(error.is_some());
            for (&id, row) in ids.iter().zip(bounded.chunks_exact(stride)) {
                let each = others.iter().zip(row);
                each.for_each(|(&other, &d)| pair(d.into(), id, other));
            }
            return;
        }
        exact.resize(ids.len() * count, 0.0);
        space.rows(ids, exact);
        for (&id, row) in ids.iter().zip(exact.chunks_exact(count)) {
            let each = others.iter();
            each.for_each(|&other| pair(row[other as usize], id, other));
        }
    }

    /// Compares pairs over all outputs in the order of their bounds; returns the largest loss, at
    /// least `best`.
    fn look(
        &self,
        bounds: &mut Bounds,
        best: Worst,
        cover: &Cover,
        control: &Control,
    ) -> Result<Worst> {
        let mut best = best;
        bounds.sort();
        for pairs in bounds.largest_first.chunks(PAIRS_PER_BATCH) {
            control.check()?;
            if pairs[0].0 <= best.loss {
                break;
            }
            let open: Vec<_> = pairs.iter().filter(|pair| pair.0 > best.loss).collect();
            let found: Vec<Worst> = install(open.len() * cover.words(), 0, || {
                map_all(open, |(_, pair)| Ok(self.loss(*pair, cover)))
            })??;
            best = found.into_iter().fold(best, Worst::worse);
        }
        // Bounds that were left out because there were too many are valid, but no pair need attain
        // them.
        if bounds.left_out > best.loss {
            best.loss = bounds.left_out;
        }
        Ok(best)
    }

    /// Returns the largest log-ratio of a pair over all outputs, per unit of distance.
    fn loss(&self, (a, b): (u32, u32), cover: &Cover) -> Worst {
        let (tem, space) = (self.tem, self.tem.space());
        let exponents = |id| {
            let mut row = vec![0.0; cover.words()];
            space.distances(id, &mut row);
            let mut out = Vec::new();
            cover.scores(&row, &mut out);
            let (eta, gamma, floor) = (tem.nominal() / 2.0, tem.gamma(), tem.floor_exponent());
            // The base measure is the same for both words.
            out.iter_mut()
                .for_each(|x| *x = (eta * x.min(gamma)).min(floor));
            out
        };
        let (of_a, of_b) = (exponents(a), exponents(b));
        let change = self.ln_z[b as usize] - self.ln_z[a as usize];
        let d = space.distance(a, b);
        let mut worst = Worst::default();
        for ((x, y), rank) in of_a.iter().zip(&of_b).zip(0u32..) {
            let ratio = y - x + change;
            if ratio.abs() / d > worst.loss {
                worst = Worst {
                    loss: ratio.abs() / d,
                    pair: if ratio > 0.0 { (a, b) } else { (b, a) },
                    output: cover.id(rank),
                };
            }
        }
        worst
    }
}

/// Parts of the words whose bounds are merged, of which each may hold twice the largest.
const PARTS: usize = 64;

/// Memory for rows of distances, exact and bounded.
type Rows = (Vec<f64>, Vec<f32>);

/// Pairs with bounds on their losses: the largest [`MAX_COMPARED_PAIRS`].
#[derive(Default)]
struct Bounds {
    largest_first: Vec<(f64, (u32, u32))>,
    /// No omitted bound is larger than this.
    left_out: f64,
    /// The largest lower bound.
    least: f64,
}

impl Bounds {
    fn add(&mut self, (low, bound): (f64, f64), pair: (u32, u32)) {
        self.least = self.least.max(low);
        if bound <= self.left_out {
            return;
        }
        self.largest_first.push((bound, pair));
        if self.largest_first.len() >= 2 * MAX_COMPARED_PAIRS {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.largest_first.sort_by(|x, y| y.0.total_cmp(&x.0));
        if let Some(left) = self.largest_first.get(MAX_COMPARED_PAIRS) {
            self.left_out = self.left_out.max(left.0);
        }
        self.largest_first.truncate(MAX_COMPARED_PAIRS);
    }

    fn merged(mut self, other: Self) -> Self {
        self.left_out = self.left_out.max(other.left_out);
        self.least = self.least.max(other.least);
        self.largest_first.extend(other.largest_first);
        self.sort();
        self
    }

    fn largest(&self) -> Worst {
        let most = self.largest_first.iter();
        let most = most.fold(
            (0.0, (0, 0)),
            |most, pair| if pair.0 > most.0 { *pair } else { most },
        );
        Worst {
            loss: most.0,
            pair: most.1,
            output: 0,
        }
    }
}

impl Worst {
    fn worse(self, other: Self) -> Self {
        if other.loss > self.loss { other } else { self }
    }
}

/// Finds the largest ε whose certificate is at most the wanted ε, which `first` has as its own.
/// Returns the Tem at that ε and its certificate. The search stops at 1024 times the wanted ε, for
/// a γ so small that more costs nothing.
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted).
pub fn certified(first: &Tem, control: &Control) -> Result<(Tem, Certificate)> {
    let epsilon = first.nominal();
    let at = |nominal: f64| certify(&first.with_epsilon(nominal)?, control);
    // The nominal ε is at least the certified one. It is at most its double, unless γ limits the
    // loss: then a larger ε may cost no more.
    let mut low = (epsilon, at(epsilon)?);
    let mut high = (epsilon, 0.0);
    for _ in 0..DOUBLINGS {
        if high.0 > f64::MAX / 2.0 {
            // A larger ε is not finite.
            break;
        }
        high.0 *= 2.0;
        let certificate = at(high.0)?;
        high.1 = certificate.epsilon;
        if certificate.epsilon > epsilon {
            break;
        }
        low = (high.0, certificate);
    }
    let mut halve = false;
    while high.0 / low.0 > 1.0 + ACCURACY && low.0 < high.0 {
        control.check()?;
        // Use the line through both ends, or the middle if that did not help.
        let (x0, x1, y0, y1) = (low.0, high.0, low.1.epsilon, high.1);
        let line = x0 + (x1 - x0) * (epsilon - y0) / (y1 - y0);
        let inside = line > x0 * (1.0 + ACCURACY / 4.0) && line < x1 * (1.0 - ACCURACY / 4.0);
        let x = match inside && !halve {
            true => line,
            false => 0.5 * (x0 + x1),
        };
        if x <= x0 || x >= x1 {
            // No number lies between these two.
            break;
        }
        let certificate = at(x)?;
        match certificate.epsilon <= epsilon {
            true => low = (x, certificate),
            false => high = (x, certificate.epsilon),
        }
        halve = high.0 - low.0 > 0.5 * (x1 - x0) && !halve;
    }
    let tem = first.with_epsilon(low.0)?.with_certificate(low.1)?;
    Ok((tem, low.1))
}

/// Z from the distances to all words or all sets, as a share of the largest weight.
fn normaliser(scores: &[f64], tem: &Tem, values: &mut Vec<f64>) -> f64 {
    values.clear();
    values.extend_from_slice(scores);
    tem.weigh(values)
}

/// Returns the nearest words at a distance above 0, ascending.
fn nearest(row: &[f64]) -> Near {
    let mut near: Vec<(f64, u32)> = Vec::with_capacity(NEAR + 1);
    let mut limit = f64::INFINITY;
    for (&d, other) in row.iter().zip(0u32..) {
        if d < limit && d > 0.0 {
            near.insert(near.partition_point(|n| n.0 <= d), (d, other));
            if near.len() > NEAR {
                near.pop();
            }
            if near.len() == NEAR {
                limit = near[NEAR - 1].0;
            }
        }
    }
    near
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::mechanism::tem::Truncation;
    use crate::{Embedding, Mechanism, Metric, MetricSpace, Randomness, Vocabulary};
    use proptest::prelude::*;

    /// Two clusters whose words are not among each other's nearest: the maximum is attained by a
    /// pair that is not near. All distances within a cluster are equal, and so are all between
    /// them. The loss is η + |ln Z - ln Z'|/d in closed form, and η for a near pair.
    #[test]
    fn pairs_that_are_not_near_bind_too() {
        let eta = 1.5f64;
        let sizes = [(NEAR + 4, 90), (90, NEAR + 4), (NEAR + 2, NEAR + 9)];
        let spreads = [2f64.powi(-10), 0.5];
        for ((small, large), aside) in sizes.iter().flat_map(|&s| spreads.map(|a| (s, a))) {
            let count = small + large;
            let words = (0..count).map(|i| i.to_string());
            // Move every word slightly in a direction of its own.
            let mut vectors = vec![0.0f32; count * (count + 1)];
            for (i, vector) in vectors.chunks_exact_mut(count + 1).enumerate() {
                vector[i] = aside as f32;
                vector[count] = f32::from(u8::from(i >= small));
            }
            let vocabulary = Vocabulary::new(words).expect("distinct words");
            let e = Embedding::new(vocabulary, vectors, count + 1, Metric::Euclidean);
            let truncation = Truncation::Gamma(f64::INFINITY);
            let space = Arc::new(e.expect("points"));
            let tem = Tem::new(space, 2.0 * eta, truncation, Randomness::new(None));
            let found =
                certify(&tem.expect("a mechanism"), &Control::new()).expect("a certificate");
            let within = (-eta * (2.0 * aside * aside).sqrt()).exp();
            let d = (1.0 + 2.0 * aside * aside).sqrt();
            let far = (-eta * d).exp();
            let z =
                |own: usize, other: usize| 1.0 + (own as f64 - 1.0) * within + other as f64 * far;
            let expected = eta + (z(small, large) / z(large, small)).ln().abs() / d;
            assert!(expected > eta + 0.01);
            assert!(
                (found.epsilon - expected).abs() < 1e-9,
                "{} {expected}",
                found.epsilon
            );
        }
    }

    /// No loss of a pair that is not compared is forgotten.
    #[test]
    fn bounds_that_are_left_out_count() {
        let mut bounds = Bounds::default();
        let count = 3 * MAX_COMPARED_PAIRS as u32;
        let bound = |i: u32| (0.0, f64::from(i));
        (0..count).for_each(|i| bounds.add(bound(i), (i, i)));
        bounds.sort();
        let kept = bounds.largest_first.len() as u32;
        assert_eq!(kept as usize, MAX_COMPARED_PAIRS);
        assert_eq!(bounds.left_out, f64::from(count - kept - 1));
        let words = Vocabulary::new(["a", "b"].map(str::to_owned)).expect("two words");
        let e = Embedding::new(words, vec![0.0, 1.0], 1, Metric::Euclidean).expect("points");
        let cover = Arc::new(Cover::identity(&e, &[]).expect("a cover"));
        let tem = Tem::new(
            Arc::new(e),
            1.0,
            Truncation::default(),
            Randomness::new(None),
        );
        let tem = tem.expect("a mechanism").with_cover(Some(cover.clone()));
        let losses = Losses {
            tem: &tem.expect("its words"),
            ln_z: vec![0.0; 2],
            near: Vec::new(),
            error: 0.0,
            change: 0.0,
        };
        bounds.largest_first = vec![(9e9, (0, 1))];
        let found = losses.look(&mut bounds, Worst::default(), &cover, &Control::new());
        assert_eq!(found.expect("a loss").loss, bounds.left_out);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        /// The certificate equals the largest loss over all pairs and outputs of the sampled law:
        /// not below, and not above.
        #[test]
        fn a_certificate_is_the_largest_log_ratio_per_distance(
            rows in proptest::collection::vec([-2.0f32..2.0, -2.0f32..2.0], 2..40),
            // At the largest, weights are at the floor.
            epsilon in prop_oneof![0.05..1.0f64, 1.0..12.0f64, 30.0..60.0f64],
            gamma in prop_oneof![Just(f64::INFINITY), 0.05..3.0f64],
            metric in 0usize..3,
            sets in proptest::option::of(proptest::collection::vec(0u64..1 << 40, 40)),
            spread in 0.0..4.0f64
        ) {
            let words = (0..rows.len()).map(|i| i.to_string());
            let vectors: Vec<f32> = rows.iter().flatten().copied().collect();
            let vocabulary = Vocabulary::new(words).expect("distinct words");
            let e = Embedding::new(vocabulary, vectors, 2, Metric::ALL[metric]).expect("points");
            let space: Arc<dyn MetricSpace> = Arc::new(e);
            let truncation = Truncation::Gamma(gamma);
            let mut tem = Tem::new(space.clone(), epsilon, truncation, Randomness::new(None))
                .expect("a mechanism");
            let ids = 0..rows.len() as u32;
            if let Some(bits) = &sets {
                // The first set holds at least one word.
                let holds = |y: u32, a: u32| {
                    bits[y as usize] >> a & 1 == 1 || (y, a) == (0, 0)
                };
                let set = |y| ids.clone().filter(|&a| holds(y, a)).collect();
                let cover = Cover::from_members(&*space, ids.clone().map(set).collect());
                let mut cover = cover.expect("a cover");
                if spread > 2.0 {
                    let weight = |y: u32| 10f64.powf(spread * f64::from(y % 7) / 7.0);
                    cover = cover.weighted(weight).expect("weights");
                }
                tem = tem.with_cover(Some(Arc::new(cover))).expect("its own words");
            }
            let certificate = certify(&tem, &Control::new()).expect("a certificate");
            let laws: Vec<Vec<f64>> = ids
                .clone()
                .map(|w| {
                    let (mut row, mut law) = (vec![0.0; rows.len()], vec![0.0f64; rows.len()]);
                    space.distances(w, &mut row);
                    let mut scores = Vec::new();
                    tem.scores(&row, &mut scores);
                    tem.law_of_scores(w, &scores, &mut law);
                    law.iter().map(|p| p.ln()).collect()
                })
                .collect();
            let mut worst = 0.0f64;
            for a in ids.clone() {
                for b in 0..a {
                    let d = space.distance(a, b);
                    let pairs = laws[a as usize].iter().zip(&laws[b as usize]);
                    // An output that is never released has probability 0 for both words.
                    let pairs = pairs.filter(|(x, y)| x.is_finite() || y.is_finite());
                    let loss = pairs.fold(0.0f64, |m, (x, y)| m.max((x - y).abs()));
                    if d > 1e-3 {
                        worst = worst.max(loss / d);
                    }
                }
            }
            prop_assert!(worst <= certificate.epsilon + 1e-9, "{worst} {certificate:?}");
            let near = ids.clone().any(|a| (0..a).any(|b| space.distance(a, b) <= 1e-3));
            prop_assert!(near || certificate.epsilon <= worst + 1e-9 * (1.0 + worst), "{worst} {certificate:?}");
            // The certificate's pair has that loss at the certificate's output.
            let (a, b) = certificate.pair;
            let y = certificate.output as usize;
            let ratio = laws[a as usize][y] - laws[b as usize][y];
            let claimed = certificate.epsilon * space.distance(a, b);
            prop_assert!(worst == 0.0 || near || (ratio - claimed).abs() < 1e-8, "{ratio} {certificate:?}");
        }
    }
}
