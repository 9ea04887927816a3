//! A screen: for every query all words that can still be among its k nearest, by products in
//! f32 or in 8-bit integers with proved error bounds.
//!
//! Words v and queries q̃ (see [`form`](super::form)) are stored as v̂ and q̂, rounded to f32 or to
//! multiples of a unit of their own. With δ = ‖v - v̂‖ and δq = ‖q̃ - q̂‖, both computed, and A =
//! ‖q̃‖ + δq, Cauchy and Schwarz bound the error of a product:
//!
//! |q̃·v - q̂·v̂| ≤ δq·‖v‖ + A·δ.
//!
//! Arithmetic adds a relative r of A·(‖v‖ + δ) and of H·half: r = (n + 16)·2⁻²⁴·1.01 where n + 2
//! terms are summed in f32 (Higham 2002, §3.1), 10·2⁻²⁴ where the sum is an exact integer. A
//! word's share of all this is at most E·e, with its *reach* e = max(‖v‖/V, δ/D, half/M) (V, D,
//! M the maxima) and E = (δq + rA)V + (1+r)AD + rHM, so an upper bound of its score costs one
//! more product. Differences have the same bounds times √n, and no products: the part of the
//! query is then the same for all words. What rounding f64 distances can do is the query's
//! `room`. With L the k-th largest lower bound, a word whose upper bound stays below L is out;
//! the others are ranked by their distance in f64.

use std::ops::Range;

use super::form::{Form, QueryForm};
use super::kernel::{self, Combine, Hits, Isa, QuerySide, Scores, Sides, TILE, WIDTH};
use crate::metric::Metric;
use crate::parallel::split;

/// How coordinates are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    Int8,
    Single,
}

/// Above this dimension sums of 8-bit products could leave i32.
const INT8_DIM: usize = 60_000;

/// All words in panels.
#[derive(Debug)]
pub(crate) struct Screen {
    isa: Isa,
    combine: Combine,
    /// Coordinates a word, with padding.
    width: usize,
    data: Data,
    half: Vec<f32>,
    reach: Vec<f32>,
    /// V, D, M.
    largest: [f64; 3],
}

#[derive(Debug)]
enum Data {
    Single(Vec<f32>),
    Int8 { panels: Vec<u8>, units: Vec<f32> },
}

impl Screen {
    /// Whether a form can be screened in this precision on this machine.
    pub(crate) fn supports(isa: Isa, precision: Precision, form: &Form) -> bool {
        match precision {
            Precision::Single => true,
            // On the ball the words near the boundary have bounds too wide for 8 bits.
            Precision::Int8 => {
                isa.has_int8()
                    && form.dim <= INT8_DIM
                    && matches!(form.metric, Metric::Euclidean | Metric::Angular)
            }
        }
    }

    pub(crate) fn new(isa: Isa, precision: Precision, form: &Form, vectors: &[f32]) -> Self {
        let n = form.dim;
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
        let combine = match form.metric {
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
                        let half = form.word(word, &mut v);
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
                let mut panels = vec![128u8; padded * width];
                let mut units = vec![0.0f32; padded];
                let out = panels
                    .chunks_mut(WIDTH * width)
                    .zip(sides.chunks_mut(WIDTH));
                let out = out.zip(units.chunks_mut(WIDTH)).enumerate();
                split(out.collect(), |(p, ((panel, sides), units))| {
                    let (mut v, mut integers) = (vec![0.0; n], vec![0i8; width]);
                    for (w, word) in panel_words(p).chunks_exact(n).enumerate() {
                        let half = form.word(word, &mut v);
                        let quantised = quantise(&v, &mut integers);
                        for (d, &x) in integers.iter().enumerate() {
                            panel[d / 4 * 4 * WIDTH + 4 * w + d % 4] = x.cast_unsigned() ^ 0x80;
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
        let reach = |&[half, norm, error]: &[f64; 3]| {
            if half == f64::INFINITY {
                return 0.0; // padding
            }
            let parts = [norm, error, half].into_iter().zip(largest);
            let most = parts.fold(0.0, |e: f64, (x, most)| e.max(share(x, most)));
            (most as f32).next_up()
        };
        Screen {
            isa,
            combine,
            width,
            data,
            half: sides.iter().map(|s| s[0] as f32).collect(),
            reach: sides.iter().map(reach).collect(),
            largest,
        }
    }

    /// Scans all words for row-major `queries`. Collector i afterwards holds every word that can
    /// be among the k nearest of query i, unless it says it is [`lost`](Collector::lost).
    pub(crate) fn scan(
        &self,
        form: &Form,
        queries: &[f64],
        step: f64,
        prepared: &mut Prepared,
        collectors: &mut [Collector],
    ) {
        let Prepared {
            form: q,
            sides,
            single,
            int8,
        } = prepared;
        let (n, m) = (form.dim, collectors.len());
        q.resize(n, 0.0);
        sides.clear();
        single.resize(m * n, 0.0);
        int8.resize(m * self.width, 0);
        let [v, d, half] = self.largest;
        let largest = v.max(half);
        let parts = queries.chunks_exact(n).zip(&mut *collectors);
        for (i, (query, collector)) in parts.enumerate() {
            let with = form.query(query, step, largest, q);
            let quantised = match self.data {
                Data::Int8 { .. } => quantise(q, &mut int8[i * self.width..][..self.width]),
                Data::Single(_) => round(q, &mut single[i * n..][..n]),
            };
            let reliable = with.norm < 1e30 && with.factor < 1e30 && largest < 1e30;
            let a = with.norm + quantised.error;
            let (r, spread) = match (&self.data, self.combine) {
                (Data::Int8 { .. }, _) => (10.0, 1.0),
                (_, Combine::Product) => ((n + 16) as f64, 1.0),
                _ => ((n + 16) as f64, (n as f64).sqrt()),
            };
            let r = r * 1.01 / f64::from(1u32 << 24);
            let tiny = (n as f64 + 2.0) * 2f64.powi(-110) * (1.0 + a);
            let own = spread * (quantised.error + r * a);
            let (reach, constant) = if self.combine == Combine::Product {
                (own * v + (1.0 + r) * a * d + r * with.factor * half, 0.0)
            } else {
                (spread * (r * v + (1.0 + r) * d), own)
            };
            let room = with.room + constant + tiny;
            sides.push(QuerySide {
                factor: with.factor as f32,
                reach: (reach * 1.0001) as f32,
                threshold: 0.0,
                scale: quantised.unit,
                start: -128 * quantised.sum,
            });
            collector.begin(reliable, 2.0002 * reach, 2.0002 * room, with);
        }
        if collectors.iter().all(|c| c.lost) {
            return;
        }
        let mut scores: Scores = [[0.0; WIDTH]; TILE];
        let (halves, reaches) = (self.half.as_chunks().0, self.reach.as_chunks().0);
        for (p, (half, reach)) in halves.iter().zip(reaches).enumerate() {
            let of = Sides { half, reach };
            for first in (0..m).step_by(TILE) {
                let tile = first..m.min(first + TILE);
                for (side, collector) in sides[tile.clone()]
                    .iter_mut()
                    .zip(&collectors[tile.clone()])
                {
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
                for (q, collector) in collectors[tile].iter_mut().enumerate() {
                    if hits[q] != 0 {
                        collector.take(hits[q], &scores[q], reach, (p * WIDTH) as u32);
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

/// Queries in the form of a screen; working memory.
#[derive(Default)]
pub(crate) struct Prepared {
    form: Vec<f64>,
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

/// All words that can still be among the k best of one query.
#[derive(Default)]
pub(crate) struct Collector {
    k: usize,
    /// Twice E, twice the room.
    reach: f32,
    room: f32,
    best: f32,
    threshold: f32,
    /// Lower bound and upper bound of the score, word; both up to the room.
    kept: Vec<(f32, f32, u32)>,
    prune_at: usize,
    most: usize,
    /// The screen says too little: the query must be answered otherwise.
    pub(crate) lost: bool,
    pub(crate) query: QueryForm,
}

impl Collector {
    /// For the `k` nearest; more than `most` candidates are not worth keeping.
    pub(crate) fn reset(&mut self, k: usize, most: usize) {
        self.k = k;
        self.most = most;
        self.best = f32::NEG_INFINITY;
        // Finite, so that the padding's -∞ never passes.
        self.threshold = f32::MIN;
        self.kept.clear();
        self.prune_at = 4 * k + 4 * WIDTH;
        self.lost = false;
    }

    fn begin(&mut self, reliable: bool, reach: f64, room: f64, query: QueryForm) {
        self.query = query;
        self.reach = (reach as f32).next_up();
        self.room = (room as f32).next_up();
        if !(reliable && self.reach < 1e30 && self.room < 1e30) {
            self.lose();
        }
    }

    fn lose(&mut self) {
        self.lost = true;
        self.threshold = f32::INFINITY;
        self.kept.clear();
    }

    /// Leaves the candidates only, those with the k largest upper bounds first.
    pub(crate) fn settle(&mut self) {
        self.prune();
        if self.k < self.kept.len() {
            self.kept
                .select_nth_unstable_by(self.k - 1, |a, b| b.1.total_cmp(&a.1));
        }
    }

    /// Lower bound, upper bound and id of the candidates.
    pub(crate) fn candidates(&self) -> &[(f32, f32, u32)] {
        &self.kept
    }

    /// Whether a word of this upper bound is behind a true score.
    pub(crate) fn behind(&self, upper: f32, score: f64) -> bool {
        f64::from(upper) + f64::from(self.room) < score
    }

    fn take(&mut self, mut hits: u64, upper: &[f32; WIDTH], reach: &[f32; WIDTH], first: u32) {
        while hits != 0 {
            let w = hits.trailing_zeros() as usize;
            hits &= hits - 1;
            let upper = upper[w];
            if upper >= self.threshold {
                let lower = upper - self.reach * reach[w];
                self.kept.push((lower, upper, first + w as u32));
                if self.k == 1 && lower > self.best {
                    self.raise(lower);
                }
            }
        }
        if self.kept.len() >= self.prune_at {
            self.prune();
            self.prune_at = self.prune_at.max(2 * self.kept.len());
            if self.kept.len() > self.most {
                self.lose();
            }
        }
    }

    fn raise(&mut self, best: f32) {
        self.best = best;
        self.threshold = (best - self.room).next_down().max(f32::MIN);
    }

    fn prune(&mut self) {
        if self.k > 1 && self.kept.len() >= self.k {
            let (_, kth, _) = self
                .kept
                .select_nth_unstable_by(self.k - 1, |a, b| b.0.total_cmp(&a.0));
            let kth = kth.0;
            self.raise(kth);
        }
        let threshold = self.threshold;
        self.kept.retain(|&(_, upper, _)| upper >= threshold);
    }
}
