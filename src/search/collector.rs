//! The k nearest words of one query: bounds are collected while the filter runs, distances are computed
//! afterwards, and only those that can matter.
//!
//! A word that the filter reports comes with an upper bound of its score. Its score itself is at
//! least that bound less 2E (E·e is added to what was computed, and what was computed is off by
//! at most E·e, e ≤ 1; see [`filter`](super::filter)). So where k words have a bound of at least b, k scores
//! reach b - 2E, and a word whose bound is below b - 2E - 2R is not among the k nearest, R being
//! what rounding the distances can move a score by: that is the `threshold` of a scan, which rises as bounds
//! come in and costs no distance.
//!
//! Where few words are wanted, a distance now and then pays: see [`take`](Collector::take).
//!
//! [`rank`](Collector::rank) then computes the distances of the k words with the largest bounds. The score s of the
//! k-th nearest of them is known exactly but for R, and of the others only those with bounds of
//! at least s - 2R are left to be computed.

use super::kernel::WIDTH;
use super::scoring::{QueryTerms, Scoring};

/// One panel in so many is looked at to guess a threshold.
pub(crate) const STRIDE: usize = 16;

/// See the module.
#[derive(Default)]
pub(crate) struct Collector {
    k: usize,
    query: QueryTerms,
    /// E of the bounds' errors.
    error_scale: f32,
    /// R.
    rounding_error: f64,
    /// 2E + 2R.
    margin: f32,
    /// Words with bounds below cannot be among the k nearest.
    threshold: f32,
    /// Words that a look at some panels keeps, to guess by; 0 after it.
    looking: usize,
    /// Bound and id of words, as numbers that sort the largest bound first, then the smaller id.
    candidates: Vec<u64>,
    /// So many candidates are too many.
    full: usize,
    /// Distance and id: the bits of a distance that is not negative sort as it does.
    kept: Vec<u128>,
    ranked: usize,
    most: usize,
    guess: f32,
    /// The guessed threshold was too high: once more without.
    pub(crate) missed: bool,
    /// The filter says too little: the query must be answered otherwise.
    pub(crate) gave_up: bool,
}

/// Working memory of [`Collector::rank`].
#[derive(Default)]
pub(crate) struct Ranking {
    ids: Vec<u32>,
    distances: Vec<f64>,
}

/// A bound and an id as one number: see [`Collector::candidates`].
#[inline]
fn candidate(bound: f32, id: u32) -> u64 {
    let bits = bound.to_bits();
    // The bits of a negative number sort the other way round.
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
    /// For the `k` nearest; ranking more than `most` words is worse than a second scan.
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

    /// What the filter found out of the query.
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
        // A little more: rounding of the difference itself, and shares rounded up beyond 1.
        self.margin = ((f64::from(error_scale) + rounding_error) * 2.001) as f32;
        if !(reliable && rounding_error < 1e30) {
            self.give_up();
        }
    }

    /// Words that are wanted.
    pub(crate) fn k(&self) -> usize {
        self.k
    }

    /// A look at one panel in [`STRIDE`] begins: it ends with [`guess`](Self::guess).
    pub(crate) fn look(&mut self) {
        let expected = self.k as f64 / STRIDE as f64;
        self.looking = (expected + 4.0 * expected.sqrt() + 4.0) as usize;
        self.full = first_full(self.looking);
    }

    /// Takes as threshold the score that somewhat more than k words should reach, going by
    /// the panels that were looked at.
    pub(crate) fn guess(&mut self) {
        let looking = std::mem::take(&mut self.looking);
        if self.gave_up {
            return;
        }
        self.threshold = f32::MIN;
        if self.candidates.len() >= looking {
            let (_, &mut last, _) = self.candidates.select_nth_unstable(looking - 1);
            // From an upper bound to the score itself.
            self.threshold = (bound(last) - self.error_scale).max(f32::MIN);
        }
        self.guess = self.threshold;
        self.candidates.clear();
        // The guess leaves about as many as the bounds' errors want; to raise it saves nothing.
        self.full = 8 * self.k;
    }

    /// Words with bounds below are of no use.
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

    /// Takes the words of a panel whose bits are set in `hits`; `first` is the id of the panel's
    /// first word, `distances(ids, out)` has distances. Where few words are wanted, those that look
    /// nearer than all so far are ranked at once: the bounds of the others are then compared with a score and not with
    /// another bound.
    #[inline]
    pub(crate) fn take(
        &mut self,
        mut hits: u64,
        bounds: &[f32; WIDTH],
        first: u32,
        scoring: &Scoring,
        distances: impl FnMut(&[u32], &mut [f64]),
    ) {
        if self.few() {
            return self.take_few(hits, bounds, first, scoring, distances);
        }
        while hits != 0 {
            let w = hits.trailing_zeros();
            hits &= hits - 1;
            let bound = bounds[w as usize];
            if bound >= self.threshold {
                self.candidates.push(candidate(bound, first + w));
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
        first: u32,
        scoring: &Scoring,
        mut distances: impl FnMut(&[u32], &mut [f64]),
    ) {
        let (mut found, mut count) = ([0; WIDTH], 0);
        while hits != 0 {
            let w = hits.trailing_zeros();
            hits &= hits - 1;
            found[count] = candidate(bounds[w as usize], first + w);
            count += 1;
        }
        let found = &mut found[..count];
        // The best first: they may leave the others behind.
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

    /// Whether so few words are wanted that it pays to rank some of them while others are looked for.
    #[inline]
    fn few(&self) -> bool {
        self.k < 16
    }

    /// What the bounds of others must reach where k words have bounds of at least `bound`.
    #[inline]
    fn below(&self, bound: f32) -> f32 {
        match self.looking {
            0 => (bound - self.margin).next_down(),
            _ => bound,
        }
    }

    /// Lets the k-th largest bound set the threshold, and drops words that it leaves behind.
    fn raise(&mut self) {
        let k = if self.looking == 0 {
            self.k
        } else {
            self.looking
        };
        if self.few() {
            // `take` has raised it.
            let left = partition(&mut self.candidates, self.threshold);
            self.candidates.truncate(left);
        } else if self.candidates.len() >= k {
            let (_, &mut kth, _) = self.candidates.select_nth_unstable(k - 1);
            self.threshold = self.threshold.max(self.below(bound(kth)));
            let left = partition(&mut self.candidates, self.threshold);
            self.candidates.truncate(left);
        }
        // Distances, once there are some, may leave fewer.
        if self.looking == 0 && self.candidates.len() > 4 * self.most {
            self.give_up();
        }
        self.full = self.candidates.len() + first_full(k);
    }

    /// Computes the distances that are needed: `distances(ids, out)` has those of some words.
    /// Says then whether the guess was wrong, see [`missed`](Self::missed).
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
        // Where few are wanted it pays to look again after each four; else `raise` left the k with the largest
        // bounds in front.
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
            // Whether all words that the guess left out are behind the k nearest of the others.
            let reached = self.reached(scoring);
            self.missed = reached.is_none_or(|r| r.is_nan() || r < self.guess);
        }
    }

    /// Adds a word; of words at one distance the smaller ids stay.
    #[inline]
    pub(crate) fn add(&mut self, distance: f64, id: u32) {
        self.kept
            .push(u128::from(distance.to_bits()) << 32 | u128::from(id));
    }

    /// How many words it was given, and whether it gave up.
    #[cfg(test)]
    pub(crate) fn work(&self) -> (usize, bool) {
        (self.ranked, self.gave_up)
    }

    /// Words it holds.
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Distance and id of the k nearest, nearest first.
    pub(crate) fn nearest(&mut self) -> impl Iterator<Item = (f64, u32)> {
        self.cut();
        self.kept.sort_unstable();
        let apart = |&key: &u128| (f64::from_bits((key >> 32) as u64), key as u32);
        self.kept.iter().map(apart)
    }

    fn cut(&mut self) {
        // With exactly k, too: the k-th is then the last.
        if self.kept.len() >= self.k {
            self.kept.select_nth_unstable(self.k - 1);
            self.kept.truncate(self.k);
        }
    }

    /// Keeps the k nearest; the bound below which no other word is one of them.
    fn reached(&mut self, scoring: &Scoring) -> Option<f32> {
        self.cut();
        let &kth = self.kept.get(self.k - 1)?;
        let score = scoring.score(&self.query, f64::from_bits((kth >> 32) as u64));
        Some(((score - 2.0 * self.rounding_error) as f32).next_down())
    }
}

/// Candidates beyond those that are wanted before the threshold is raised.
fn first_full(k: usize) -> usize {
    k + k / 2 + 32
}

/// Brings those whose bounds reach a threshold to the front, in their order; how many there are.
/// What stands behind them is of no use.
fn partition(candidates: &mut [u64], threshold: f32) -> usize {
    let mut front = 0;
    for i in 0..candidates.len() {
        let at = candidates[i];
        // Without a branch: which of them reach it is hard to foretell.
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
