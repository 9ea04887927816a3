//! Collects the k nearest words of one query. It takes bounds while the filter runs, and later
//! computes exact distances only for words that can matter.
//!
//! The filter reports each word with an upper bound on its score. The score is at least that bound
//! less 2E: the filter adds E·e to the computed value, whose error is at most E·e, with e ≤ 1 (see
//! [`filter`](super::filter)). If k words have a bound of at least b, then k scores reach b - 2E. A
//! word whose bound is below b - 2E - 2R is therefore not among the k nearest, where R is the
//! effect of rounding distances on a score. This is the `threshold` of a scan: it rises as bounds
//! come in and costs no distance.
//!
//! If few words are wanted, computing some distances early pays: see [`take`](Collector::take).
//!
//! [`rank`](Collector::rank) then computes the distances of the k words with the largest bounds.
//! The score s of the k-th nearest of them is known up to R. Of the other words, only those with
//! bounds of at least s - 2R need exact distances.

use super::kernel::WIDTH;
use super::scoring::{QueryTerms, Scoring};

/// One panel in this many is scanned first to guess a threshold.
pub(crate) const STRIDE: usize = 16;

#[derive(Default)]
pub(crate) struct Collector {
    k: usize,
    query: QueryTerms,
    /// The scale E of the bounds' errors.
    error_scale: f32,
    /// The effect R of rounding distances on a score.
    rounding_error: f64,
    /// The margin 2E + 2R.
    margin: f32,
    /// Words with bounds below this cannot be among the k nearest.
    threshold: f32,
    /// While the first panels are scanned: the number of words kept to guess a threshold; 0
    /// afterwards.
    looking: usize,
    /// Bounds and ids packed into numbers that sort the largest bound first, then the smaller id.
    candidates: Vec<u64>,
    /// Number of candidates at which the threshold is raised.
    full: usize,
    /// Distances and ids of the best words so far. The bits of a non-negative distance sort like
    /// the distance.
    kept: Vec<u128>,
    ranked: usize,
    most: usize,
    guess: f32,
    /// The guessed threshold was too high: the query must be scanned again without a guess.
    pub(crate) missed: bool,
    /// The bounds decide too little: the query must be answered by other means.
    pub(crate) gave_up: bool,
}

#[derive(Default)]
pub(crate) struct Ranking {
    ids: Vec<u32>,
    distances: Vec<f64>,
}

/// Packs a bound and an id into one number: see [`Collector::candidates`].
#[inline]
fn candidate(bound: f32, id: u32) -> u64 {
    let bits = bound.to_bits();
    // The bits of negative numbers sort in reverse order.
    let descending = if bits >> 31 == 0 {
        !bits ^ 1 << 31
    } else {
        bits
    };
    u64::from(descending) << 32 | u64::from(id)
}

#[inline]
fn bound(candidate: u64) -> f32 {
    let descending = (candidate >> 32) as u32;
    let negative = descending >> 31 == 1;
    f32::from_bits(if negative {
        descending
    } else {
        !descending ^ 1 << 31
    })
}

impl Collector {
    /// Resets for the `k` nearest. Ranking more than `most` words would cost more than a second
    /// scan.
    pub(crate) fn reset(&mut self, k: usize, most: usize) {
        self.k = k;
        self.most = most;
        self.ranked = 0;
        self.looking = 0;
        self.full = first_full(k);
        // Finite, so that the padding's -∞ never passes.
        self.threshold = f32::MIN;
        self.guess = f32::MIN;
        self.candidates.clear();
        self.candidates.reserve(self.full);
        self.kept.clear();
        self.gave_up = false;
        self.missed = false;
    }

    pub(crate) fn begin(
        &mut self,
        reliable: bool,
        error_scale: f32,
        rounding_error: f64,
        query: QueryTerms,
    ) {
        self.error_scale = error_scale;
        self.query = query;
        self.rounding_error = rounding_error;
        // Slightly larger, for rounding of the difference itself and shares rounded up beyond 1.
        self.margin = ((f64::from(error_scale) + rounding_error) * 2.001) as f32;
        if !(reliable && rounding_error < 1e30) {
            self.give_up();
        }
    }

    pub(crate) fn k(&self) -> usize {
        self.k
    }

    /// Begins the scan of one panel in [`STRIDE`]; [`guess`](Self::guess) ends it.
    pub(crate) fn look(&mut self) {
        let expected = self.k as f64 / STRIDE as f64;
        self.looking = (expected + 4.0 * expected.sqrt() + 4.0) as usize;
        self.full = first_full(self.looking);
    }

    /// Guesses a threshold from the scanned panels: the score that slightly more than k words
    /// should reach.
    pub(crate) fn guess(&mut self) {
        let looking = std::mem::take(&mut self.looking);
        if self.gave_up {
            return;
        }
        self.threshold = f32::MIN;
        if self.candidates.len() >= looking {
            let (_, &mut last, _) = self.candidates.select_nth_unstable(looking - 1);
            // From the upper bound to the score itself.
            self.threshold = (bound(last) - self.error_scale).max(f32::MIN);
        }
        self.guess = self.threshold;
        self.candidates.clear();
        // The guess leaves about as many candidates as the bounds' errors allow; raising it would
        // save nothing.
        self.full = 8 * self.k;
    }

    /// Words with bounds below this cannot be among the k nearest.
    #[inline]
    pub(crate) fn threshold(&self) -> f32 {
        self.threshold
    }

    fn give_up(&mut self) {
        self.gave_up = true;
        self.threshold = f32::INFINITY;
        self.candidates.clear();
        self.kept.clear();
    }

    /// Takes the words of a panel whose bits are set in `hits`; `id(w)` is the word at place w of the
    /// panel. `distances(ids, out)` computes exact distances. If few words are wanted, words
    /// with better bounds than all so far are ranked at once. The bounds of later words are then
    /// compared with a score instead of another bound.
    #[inline]
    pub(crate) fn take(
        &mut self,
        mut hits: u64,
        bounds: &[f32; WIDTH],
        id: impl Fn(u32) -> u32,
        scoring: &Scoring,
        distances: impl FnMut(&[u32], &mut [f64]),
    ) {
        if self.few() {
            return self.take_few(hits, bounds, id, scoring, distances);
        }
        while hits != 0 {
            let w = hits.trailing_zeros();
            hits &= hits - 1;
            let bound = bounds[w as usize];
            if bound >= self.threshold {
                self.candidates.push(candidate(bound, id(w)));
            }
        }
        if self.candidates.len() >= self.full {
            self.raise();
        }
    }

    fn take_few(
        &mut self,
        mut hits: u64,
        bounds: &[f32; WIDTH],
        id: impl Fn(u32) -> u32,
        scoring: &Scoring,
        mut distances: impl FnMut(&[u32], &mut [f64]),
    ) {
        let (mut found, mut count) = ([0; WIDTH], 0);
        while hits != 0 {
            let w = hits.trailing_zeros();
            hits &= hits - 1;
            found[count] = candidate(bounds[w as usize], id(w));
            count += 1;
        }
        let found = &mut found[..count];
        // Rank the best first: they may rule out the others.
        found.sort_unstable();
        for &mut at in found {
            let (bound, id) = (bound(at), at as u32);
            if bound < self.threshold {
                break;
            }
            if bound - self.error_scale < self.threshold {
                self.candidates.push(at);
                continue;
            }
            let mut distance = [0.0];
            distances(&[id], &mut distance);
            self.add(distance[0], id);
            self.ranked += 1;
            if let Some(reached) = self.reached(scoring) {
                self.threshold = self.threshold.max(reached);
            }
        }
        if self.ranked > self.most {
            self.give_up();
        } else if self.candidates.len() >= self.full {
            self.raise();
        }
    }

    /// Whether so few words are wanted that it pays to rank some of them during the scan.
    #[inline]
    pub(crate) fn few(&self) -> bool {
        self.k < 16
    }

    /// The bound that other words must reach if k words have bounds of at least `bound`.
    #[inline]
    fn below(&self, bound: f32) -> f32 {
        match self.looking {
            0 => (bound - self.margin).next_down(),
            _ => bound,
        }
    }

    /// Raises the threshold by the k-th largest bound, and drops the words below it.
    fn raise(&mut self) {
        let k = if self.looking == 0 {
            self.k
        } else {
            self.looking
        };
        if self.few() {
            // `take` has raised the threshold.
            let left = partition(&mut self.candidates, self.threshold);
            self.candidates.truncate(left);
        } else if self.candidates.len() >= k {
            let (_, &mut kth, _) = self.candidates.select_nth_unstable(k - 1);
            self.threshold = self.threshold.max(self.below(bound(kth)));
            let left = partition(&mut self.candidates, self.threshold);
            self.candidates.truncate(left);
        }
        // Exact distances, once there are some, may rule out more.
        if self.looking == 0 && self.candidates.len() > 4 * self.most {
            self.give_up();
        }
        self.full = self.candidates.len() + first_full(k);
    }

    /// Computes the distances that are needed; `distances(ids, out)` computes those of some words.
    /// Then sets [`missed`](Self::missed) if the guess was too high.
    pub(crate) fn rank(
        &mut self,
        scoring: &Scoring,
        ranking: &mut Ranking,
        mut distances: impl FnMut(&[u32], &mut [f64]),
    ) {
        self.raise();
        if self.gave_up {
            return;
        }
        let mut candidates = std::mem::take(&mut self.candidates);
        // If few words are wanted, update the threshold after every four. Otherwise `raise` has put
        // the k largest bounds in front.
        const SOME: usize = 4;
        let few = self.few();
        if few {
            candidates.sort_unstable();
        }
        let first = if few { SOME } else { self.k }.min(candidates.len());
        let (mut some, mut rest) = candidates.split_at_mut(first);
        loop {
            ranking.ids.clear();
            ranking.ids.extend(some.iter().map(|&c| c as u32));
            ranking.distances.resize(some.len(), 0.0);
            distances(&ranking.ids, &mut ranking.distances);
            for (&distance, &id) in ranking.distances.iter().zip(&ranking.ids) {
                self.add(distance, id);
            }
            self.ranked += some.len();
            if let Some(reached) = self.reached(scoring) {
                self.threshold = self.threshold.max(reached);
            }
            let left = partition(rest, self.threshold);
            if left == 0 {
                break;
            }
            if self.ranked + left > self.most {
                self.candidates = candidates;
                return self.give_up();
            }
            rest = &mut rest[..left];
            if few && left > SOME {
                (some, rest) = rest.split_at_mut(SOME);
            } else {
                (some, rest) = (rest, &mut []);
            }
        }
        self.candidates = candidates;
        if self.guess > f32::MIN {
            // Whether every word that the guess excluded is behind the k nearest of the others.
            let reached = self.reached(scoring);
            self.missed = reached.is_none_or(|r| r.is_nan() || r < self.guess);
        }
    }

    /// Adds a word; among words at the same distance the smaller ids stay.
    #[inline]
    pub(crate) fn add(&mut self, distance: f64, id: u32) {
        self.kept
            .push(u128::from(distance.to_bits()) << 32 | u128::from(id));
    }

    #[cfg(test)]
    pub(crate) fn work(&self) -> (usize, bool) {
        (self.ranked, self.gave_up)
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(crate) fn nearest(&mut self) -> impl Iterator<Item = (f64, u32)> {
        self.cut();
        self.kept.sort_unstable();
        let apart = |&key: &u128| (f64::from_bits((key >> 32) as u64), key as u32);
        self.kept.iter().map(apart)
    }

    fn cut(&mut self) {
        // Also with exactly k words: the k-th is then the last.
        if self.kept.len() >= self.k {
            self.kept.select_nth_unstable(self.k - 1);
            self.kept.truncate(self.k);
        }
    }

    /// Keeps the k nearest. Returns the bound below which no other word is among them.
    fn reached(&mut self, scoring: &Scoring) -> Option<f32> {
        self.cut();
        let &kth = self.kept.get(self.k - 1)?;
        let score = scoring.score(&self.query, f64::from_bits((kth >> 32) as u64));
        Some(((score - 2.0 * self.rounding_error) as f32).next_down())
    }
}

/// Number of candidates at which the threshold is first raised.
fn first_full(k: usize) -> usize {
    k + k / 2 + 32
}

/// Moves candidates whose bounds reach a threshold to the front, in order; returns their number.
/// The entries behind them are meaningless.
fn partition(candidates: &mut [u64], threshold: f32) -> usize {
    let mut front = 0;
    for i in 0..candidates.len() {
        let at = candidates[i];
        // Without a branch, because the outcome is hard to predict.
        candidates[front] = at;
        front += usize::from(bound(at) >= threshold);
    }
    front
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_sort_by_bound_then_id() {
        let bounds = [
            f32::MIN,
            -2.5,
            -1e-40,
            0.0,
            f32::MIN_POSITIVE,
            1.0,
            1.0f32.next_up(),
            f32::MAX,
        ];
        for (i, &a) in bounds.iter().enumerate() {
            assert_eq!(bound(candidate(a, 7)).to_bits(), a.to_bits());
            assert!(candidate(a, 7) < candidate(a, 8));
            for &b in &bounds[i + 1..] {
                assert!(candidate(b, u32::MAX) < candidate(a, 0), "{a} {b}");
            }
        }
    }

    #[test]
    fn partition_keeps_what_reaches_the_threshold() {
        let bounds = [5.0, 1.0, 8.0, -3.0, 2.0, 9.0, 0.5];
        let mut candidates: Vec<u64> = (0..).zip(bounds).map(|(i, b)| candidate(b, i)).collect();
        let front = partition(&mut candidates, 2.0);
        let kept: Vec<f32> = candidates[..front].iter().map(|&c| bound(c)).collect();
        assert_eq!(kept, [5.0, 8.0, 2.0, 9.0]);
        assert_eq!(partition(&mut candidates[..front], f32::INFINITY), 0);
    }
}
