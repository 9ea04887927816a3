//! A filter: for every query all words that can still be among its k nearest, by products in
//! f32 or in 8-bit integers with proved error bounds.
//!
//! Words v and queries q̃ (see [`scoring`](super::scoring)) are stored as v̂ and q̂, rounded to f32 or to
//! multiples of a unit of their own. With δ = ‖v - v̂‖ and δq = ‖q̃ - q̂‖, both computed, and A =
//! ‖q̃‖ + δq, Cauchy and Schwarz bound the error of a product:
//!
//! |q̃·v - q̂·v̂| ≤ δq·‖v‖ + A·δ.
//!
//! Arithmetic adds a relative r of A·(‖v‖ + δ) and of H·half: r = u/(1-u) with u = (n + 16)·2⁻²⁴ where n + 2
//! terms are summed in f32 (Higham 2002, §3.1), 10·2⁻²⁴ where the sum is an exact integer. A
//! word's share of all this is at most E·e, with its *error share* e = max(‖v‖/V, δ/D, half/M) (V, D,
//! M the maxima) and E = (δq + rA)V + (1+r)AD + rHM, so an upper bound of its score costs one
//! more product. Differences have the same bounds times √n, and no products: the part of the
//! query is then the same for all words. What rounding f64 distances can do is the query's
//! `rounding_error`. A word whose bound stays below the score of the k-th nearest so far is out; the
//! others are ranked by their distance in f64 at once, while their panel is in the cache.

use std::ops::Range;

use super::kernel::{self, Combine, Hits, INT8_ZERO, Isa, QuerySide, Scores, Sides, TILE, WIDTH};
use super::scoring::{QueryTerms, Scoring};
use crate::metric::Metric;
use crate::parallel::split;

/// How coordinates are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    Int8,
    Single,
}

/// One panel in so many is looked at to guess a threshold.
const STRIDE: usize = 16;

/// Above this dimension sums of 8-bit products could leave i32.
const INT8_DIM: usize = 60_000;

/// All words in panels.
#[derive(Debug)]
pub(crate) struct Filter {
    isa: Isa,
    combine: Combine,
    /// Coordinates a word, with padding.
    width: usize,
    data: Data,
    half: Vec<f32>,
    error_share: Vec<f32>,
    /// V, D, M.
    largest: [f64; 3],
}

#[derive(Debug)]
enum Data {
    Single(Vec<f32>),
    Int8 { panels: Vec<u8>, units: Vec<f32> },
}

impl Filter {
    /// Whether 8 bits serve a scoring on this machine. (On the ball the words near the boundary
    /// have bounds too wide for them.)
    pub(crate) fn int8_serves(isa: Isa, scoring: &Scoring) -> bool {
        isa.has_int8()
            && scoring.dim <= INT8_DIM
            && matches!(scoring.metric, Metric::Euclidean | Metric::Angular)
    }

    /// The words laid out in panels for the kernel, each with what its bound is made of: half of its
    /// offset, its norm, and the norm of what rounding took away. In `Single` precision coordinates are
    /// rounded to f32; in `Int8` each word has a unit, and its coordinates are multiples of it.
    pub(crate) fn new(isa: Isa, precision: Precision, scoring: &Scoring, vectors: &[f32]) -> Self {
        let n = scoring.dim;
        let count = vectors.len() / n;
        let padded = count.next_multiple_of(WIDTH);
        let width = match precision {
            Precision::Single => n,
            Precision::Int8 => n.next_multiple_of(4),
        };
        // half, ‖v‖, δ of every word.
        let mut sides = vec![[f64::INFINITY, 0.0, 0.0]; padded];
        for side in &mut sides[..count] {
            side[0] = 0.0;
        }
        let combine = match scoring.metric {
            Metric::Manhattan => Combine::Difference,
            Metric::Chebyshev => Combine::LargestDifference,
            _ => Combine::Product,
        };
        let panel_words =
            |p: usize| &vectors[p * WIDTH * n..vectors.len().min((p + 1) * WIDTH * n)];
        let data = match precision {
            Precision::Single => {
                let mut panels = vec![0.0f32; padded * width];
                let out = panels
                    .chunks_mut(WIDTH * width)
                    .zip(sides.chunks_mut(WIDTH));
                split(out.enumerate().collect(), |(p, (panel, sides))| {
                    let mut v = vec![0.0; n];
                    for (w, word) in panel_words(p).chunks_exact(n).enumerate() {
                        let half = scoring.word(word, &mut v);
                        let (mut norm2, mut error2) = (0.0, 0.0);
                        for (d, &x) in v.iter().enumerate() {
                            let stored = x as f32;
                            panel[d * WIDTH + w] = stored;
                            norm2 += x * x;
                            error2 += (x - f64::from(stored)).powi(2);
                        }
                        sides[w] = [half, norm2.sqrt(), error2.sqrt()];
                    }
                });
                Data::Single(panels)
            }
            Precision::Int8 => {
                let mut panels = vec![INT8_ZERO; padded * width];
                let mut units = vec![0.0f32; padded];
                let out = panels
                    .chunks_mut(WIDTH * width)
                    .zip(sides.chunks_mut(WIDTH));
                let out = out.zip(units.chunks_mut(WIDTH)).enumerate();
                split(out.collect(), |(p, ((panel, sides), units))| {
                    let (mut v, mut integers) = (vec![0.0; n], vec![0i8; width]);
                    for (w, word) in panel_words(p).chunks_exact(n).enumerate() {
                        let half = scoring.word(word, &mut v);
                        let quantised = quantise(&v, &mut integers);
                        for (d, &x) in integers.iter().enumerate() {
                            panel[d / 4 * 4 * WIDTH + 4 * w + d % 4] =
                                x.cast_unsigned() ^ INT8_ZERO;
                        }
                        units[w] = quantised.unit;
                        sides[w] = [half, quantised.norm, quantised.error];
                    }
                });
                Data::Int8 { panels, units }
            }
        };
        let mut largest = [0.0f64; 3];
        for &[half, norm, error] in &sides[..count] {
            for (most, x) in largest.iter_mut().zip([norm, error, half]) {
                *most = most.max(x);
            }
        }
        let share = |x: f64, most: f64| if most > 0.0 { x / most } else { 0.0 };
        let error_share = |&[half, norm, error]: &[f64; 3]| {
            if half == f64::INFINITY {
                return 0.0; // padding
            }
            let parts = [norm, error, half].into_iter().zip(largest);
            let most = parts.fold(0.0, |e: f64, (x, most)| e.max(share(x, most)));
            (most as f32).next_up()
        };
        Filter {
            isa,
            combine,
            width,
            data,
            half: sides.iter().map(|s| s[0] as f32).collect(),
            error_share: sides.iter().map(error_share).collect(),
            largest,
        }
    }

    /// Scans all words for row-major `queries`. Collector i afterwards holds the k nearest of
    /// query i by `distance(i, word)`, unless it says it is [`gave_up`](Collector::gave_up) or
    /// [`missed`](Collector::missed).
    ///
    /// `guess`: a look at one panel in [`STRIDE`] first gives a threshold that leaves hardly
    /// more than k words to rank; a running top k would rank k·(1 + ln(V/k)).
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn scan(
        &self,
        scoring: &Scoring,
        queries: &[f64],
        distance: impl Fn(usize, u32) -> f64,
        step: f64,
        guess: bool,
        prepared: &mut Prepared,
        collectors: &mut [Collector],
    ) {
        self.prepare(scoring, queries, step, prepared, collectors);
        if collectors.iter().all(|c| c.gave_up) {
            return;
        }
        let panels = self.half.len() / WIDTH;
        let k = collectors[0].k;
        // Fewer panels than words in a list: a look would cost more than it saves.
        let guess = guess && k >= 64 && panels >= 4 * STRIDE && k < panels * WIDTH / 4;
        if guess {
            let seen = (0..panels).step_by(STRIDE);
            self.pass(seen, prepared, collectors, |_, collector, _, scores| {
                collector.sample.extend(scores);
            });
            collectors.iter_mut().for_each(|c| c.guess(STRIDE));
        }
        self.pass(
            0..panels,
            prepared,
            collectors,
            |i, collector, hits, scores| {
                let (p, hits) = hits;
                let distance = |w| distance(i, (p * WIDTH + w) as u32);
                collector.take(hits, scores, (p * WIDTH) as u32, scoring, distance);
            },
        );
        if guess {
            collectors.iter_mut().for_each(|c| c.confirm(scoring));
        }
    }

    /// Brings queries into the scoring of the panels, and collectors to their start.
    fn prepare(
        &self,
        scoring: &Scoring,
        queries: &[f64],
        step: f64,
        prepared: &mut Prepared,
        collectors: &mut [Collector],
    ) {
        let Prepared {
            scoring: q,
            sides,
            single,
            int8,
        } = prepared;
        let (n, m) = (scoring.dim, collectors.len());
        q.resize(n, 0.0);
        sides.clear();
        single.resize(m * n, 0.0);
        int8.resize(m * self.width, 0);
        let [v, d, half] = self.largest;
        let largest = v.max(half);
        let parts = queries.chunks_exact(n).zip(&mut *collectors);
        for (i, (query, collector)) in parts.enumerate() {
            let with = scoring.query(query, step, largest, q);
            let quantised = match self.data {
                Data::Int8 { .. } => quantise(q, &mut int8[i * self.width..][..self.width]),
                Data::Single(_) => round(q, &mut single[i * n..][..n]),
            };
            let ordinary = with.norm < 1e30 && with.factor < 1e30 && largest < 1e30;
            let reliable = ordinary && n <= 1 << 20;
            let a = with.norm + quantised.error;
            let (r, spread) = match (&self.data, self.combine) {
                (Data::Int8 { .. }, _) => (10.0, 1.0),
                (_, Combine::Product) => ((n + 16) as f64, 1.0),
                _ => ((n + 16) as f64, (n as f64).sqrt()),
            };
            let r = r / f64::from(1u32 << 24);
            let r = r / (1.0 - r).max(0.5);
            let tiny = (n as f64 + 2.0) * 2f64.powi(-110) * (1.0 + a);
            let own = spread * (quantised.error + r * a);
            let (error_scale, constant) = if self.combine == Combine::Product {
                (own * v + (1.0 + r) * a * d + r * with.factor * half, 0.0)
            } else {
                (spread * (r * v + (1.0 + r) * d), own)
            };
            let error_scale = (error_scale * (1.0001 + r)) as f32;
            let rounding_error = (with.rounding_error + constant + tiny) * 1.0001;
            sides.push(QuerySide {
                factor: with.factor as f32,
                error_scale,
                threshold: 0.0,
                scale: quantised.unit,
                start: -i32::from(INT8_ZERO) * quantised.sum,
            });
            collector.begin(
                reliable && error_scale < 1e30,
                error_scale,
                rounding_error,
                with,
            );
        }
    }

    /// Bounds the words of some panels; `found(query, collector, (panel, hits), bounds)` is told
    /// where one reaches the collector's threshold.
    fn pass(
        &self,
        panels: impl Iterator<Item = usize>,
        prepared: &mut Prepared,
        collectors: &mut [Collector],
        mut found: impl FnMut(usize, &mut Collector, (usize, u64), &[f32; WIDTH]),
    ) {
        let Prepared {
            sides,
            single,
            int8,
            ..
        } = prepared;
        let m = collectors.len();
        let mut scores: Scores = [[0.0; WIDTH]; TILE];
        let (halves, error_shares) = (self.half.as_chunks().0, self.error_share.as_chunks().0);
        for p in panels {
            let of = Sides {
                half: &halves[p],
                error_share: &error_shares[p],
            };
            for first in (0..m).step_by(TILE) {
                let tile = first..m.min(first + TILE);
                let with = sides[tile.clone()].iter_mut();
                for (side, collector) in with.zip(&collectors[tile.clone()]) {
                    side.threshold = collector.threshold;
                }
                let at = (&single[..], &int8[..], &sides[..]);
                let hits = match tile.len() {
                    1 => self.tile::<1>(p, of, tile.clone(), at, &mut scores),
                    2 => self.tile::<2>(p, of, tile.clone(), at, &mut scores),
                    3 => self.tile::<3>(p, of, tile.clone(), at, &mut scores),
                    4 => self.tile::<4>(p, of, tile.clone(), at, &mut scores),
                    5 => self.tile::<5>(p, of, tile.clone(), at, &mut scores),
                    _ => self.tile::<TILE>(p, of, tile.clone(), at, &mut scores),
                };
                for (q, i) in tile.enumerate() {
                    if hits[q] != 0 {
                        found(i, &mut collectors[i], (p, hits[q]), &scores[q]);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn tile<const Q: usize>(
        &self,
        p: usize,
        of: Sides,
        tile: Range<usize>,
        (single, int8, sides): (&[f32], &[i8], &[QuerySide]),
        scores: &mut Scores,
    ) -> Hits {
        let size = WIDTH * self.width;
        let at = tile.start * self.width..tile.end * self.width;
        let sides = &sides[tile];
        match &self.data {
            Data::Single(panels) => {
                let panel = &panels[p * size..][..size];
                kernel::bounds::<Q>(
                    self.isa,
                    self.combine,
                    panel,
                    of,
                    &single[at],
                    sides,
                    scores,
                )
            }
            Data::Int8 { panels, units } => {
                let panel = &panels[p * size..][..size];
                let units = &units.as_chunks().0[p];
                kernel::bounds_int8::<Q>(self.isa, panel, units, of, &int8[at], sides, scores)
            }
        }
    }
}

/// Queries as the filter takes them; working memory.
#[derive(Default)]
pub(crate) struct Prepared {
    scoring: Vec<f64>,
    sides: Vec<QuerySide>,
    single: Vec<f32>,
    int8: Vec<i8>,
}

struct Quantised {
    unit: f32,
    norm: f64,
    error: f64,
    sum: i32,
}

/// Rounds to integers of at most 127 times a unit; `out` may be longer, and is filled with 0.
fn quantise(v: &[f64], out: &mut [i8]) -> Quantised {
    let most = v.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    // Rounded up a little, so that 127 units always suffice.
    let unit = ((most / 127.0) as f32).next_up();
    let wide = f64::from(unit);
    let per_unit = wide.recip();
    let (mut sum, mut norm2, mut error2) = (0, 0.0, 0.0);
    out[v.len()..].fill(0);
    for (&x, out) in v.iter().zip(out) {
        // A NaN becomes 0, and an error of NaN.
        let integer = (x * per_unit).round_ties_even().clamp(-127.0, 127.0);
        *out = integer as i8;
        sum += i32::from(*out);
        norm2 += x * x;
        error2 += (x - integer * wide).powi(2);
    }
    Quantised {
        unit,
        norm: norm2.sqrt(),
        error: error2.sqrt(),
        sum,
    }
}

/// Rounds to f32.
fn round(v: &[f64], out: &mut [f32]) -> Quantised {
    let (mut norm2, mut error2) = (0.0, 0.0);
    for (&x, out) in v.iter().zip(out) {
        *out = x as f32;
        norm2 += x * x;
        error2 += (x - f64::from(*out)).powi(2);
    }
    Quantised {
        unit: 1.0,
        norm: norm2.sqrt(),
        error: error2.sqrt(),
        sum: 0,
    }
}

/// The k nearest words so far of one query.
#[derive(Default)]
pub(crate) struct Collector {
    k: usize,
    query: QueryTerms,
    /// E of the bounds' errors.
    error_scale: f32,
    rounding_error: f64,
    /// Words with bounds below cannot be among the k nearest.
    threshold: f32,
    /// Distance and id: the bits of a distance that is not negative sort as it does.
    kept: Vec<u128>,
    ranked: usize,
    most: usize,
    sample: Vec<f32>,
    guess: f32,
    /// The guessed threshold was too high: once more without.
    pub(crate) missed: bool,
    /// The filter says too little: the query must be answered otherwise.
    pub(crate) gave_up: bool,
}

impl Collector {
    /// For the `k` nearest; ranking more than `most` words is worse than a second scan.
    pub(crate) fn reset(&mut self, k: usize, most: usize) {
        self.k = k;
        self.most = most;
        self.ranked = 0;
        // Finite, so that the padding's -∞ never passes.
        self.threshold = f32::MIN;
        self.kept.clear();
        self.sample.clear();
        self.gave_up = false;
        self.missed = false;
    }

    /// Takes as threshold the bound that somewhat more than k words should reach, going by
    /// those of one word in `stride`.
    fn guess(&mut self, stride: usize) {
        let expected = self.k as f64 / stride as f64;
        let rank = (expected + 4.0 * expected.sqrt() + 4.0) as usize;
        if !self.gave_up && rank < self.sample.len() {
            let (_, &mut bound, _) = self
                .sample
                .select_nth_unstable_by(rank, |a, b| b.total_cmp(a));
            // From an upper bound to the score itself.
            self.threshold = (bound - self.error_scale).max(f32::MIN);
        }
        self.guess = self.threshold;
    }

    /// Whether all words that the guess left out are behind the k nearest of the others.
    fn confirm(&mut self, scoring: &Scoring) {
        if !self.gave_up && self.guess > f32::MIN {
            self.threshold = f32::MIN;
            self.raise(scoring);
            self.missed = self.threshold < self.guess;
        }
    }

    fn begin(&mut self, reliable: bool, error_scale: f32, rounding_error: f64, query: QueryTerms) {
        self.error_scale = error_scale;
        self.query = query;
        self.rounding_error = rounding_error;
        if !(reliable && rounding_error < 1e30) {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        self.gave_up = true;
        self.threshold = f32::INFINITY;
        self.kept.clear();
    }

    /// Adds a word; of words at one distance the smaller ids stay.
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

    fn take(
        &mut self,
        mut hits: u64,
        upper: &[f32; WIDTH],
        first: u32,
        scoring: &Scoring,
        distance: impl Fn(usize) -> f64,
    ) {
        // The best first: where it is the nearest, the others need not be ranked.
        let mut w = hits.trailing_zeros() as usize;
        if self.k == 1 {
            let mut rest = hits & (hits - 1);
            while rest != 0 {
                let other = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                if upper[other] > upper[w] {
                    w = other;
                }
            }
        }
        loop {
            hits &= !(1 << w);
            if upper[w] >= self.threshold {
                self.ranked += 1;
                self.add(distance(w), first + w as u32);
                // Few more than k for a small k, whose threshold soon keeps most words away.
                if self.kept.len() >= self.k + self.k / 4 + (8 * (self.k - 1)).min(32) {
                    self.raise(scoring);
                }
            }
            if hits == 0 {
                break;
            }
            w = hits.trailing_zeros() as usize;
        }
        if self.ranked > self.most {
            self.give_up();
        }
    }

    /// Keeps the k nearest and lets the k-th set the threshold.
    fn raise(&mut self, scoring: &Scoring) {
        self.cut();
        let Some(&kth) = self.kept.get(self.k - 1) else {
            return;
        };
        let score = scoring.score(&self.query, f64::from_bits((kth >> 32) as u64));
        let threshold = (score - 2.0 * self.rounding_error) as f32;
        self.threshold = threshold.next_down().max(self.threshold);
    }
}
