//! A filter: finds for every query all words that can be among its k nearest. It computes products
//! in f32 or integers of 8 or 16 bits and adds proved error bounds.
//!
//! Words v and queries q̃ (see [`scoring`](super::scoring)) are stored as v̂ and q̂: rounded to
//! f32, or to multiples of a unit of their own. The errors δ = ‖v - v̂‖ and δq = ‖q̃ - q̂‖ are computed. With A = ‖q̃‖ + δq, the Cauchy-Schwarz inequality bounds the error of a product:
//!
//! |q̃·v - q̂·v̂| ≤ δq·‖v‖ + A·δ.
//!
//! Arithmetic adds a relative error r of A·(‖v‖ + δ) and of H·half. In f32, r = u/(1-u) with
//! u = (n + 16)·2⁻²⁴ for sums of n + 2 terms (Higham 2002, §3.1). If the sum is an exact integer,
//! r = 10·2⁻²⁴. A word's share of this error is at most E·e. Here e = max(‖v‖/V, δ/D, half/M) is its
//! *error share*, with the maxima V, D, M, and E = (δq + rA)V + (1+r)AD + rHM. So an upper bound on
//! the score costs one more product. Differences have the same bounds times √n, and no products;
//! the query's part is then the same for all words. `rounding_error` bounds the effect of rounding
//! f64 distances. A word is discarded if its bound stays below a score that the k-th nearest
//! certainly reaches. The others go to the query's [`Collector`](super::collector::Collector).

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::collector::{Collector, STRIDE};
#[cfg(target_arch = "x86_64")]
use super::kernel::tiles::Tiles;
use super::kernel::{
    self, Combine, Hits, INT8_ZERO, Isa, Line, QuerySide, Scores, Sides, TILE, WIDTH,
};
use super::scoring::{QueryTerms, Scoring};
use crate::distance::metric::Metric;
use crate::support::parallel::split;

/// The storage format of coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    Int8,
    Int16,
    Single,
}

impl Precision {
    fn bytes(self) -> usize {
        match self {
            Precision::Int8 => 1,
            Precision::Int16 => 2,
            Precision::Single => 4,
        }
    }

    /// Stores a vector in the space of `out`, whose rest becomes 0.
    fn store(self, v: &[f64], out: &mut [u32]) -> Quantised {
        match self {
            Precision::Int8 => quantise::<i8>(v, 127.0, cast_slice_mut(out)),
            Precision::Int16 => quantise::<i16>(v, largest_int16(v.len()), cast_slice_mut(out)),
            Precision::Single => round(v, cast_slice_mut(out)),
        }
    }
}

/// Above this dimension, sums of products could overflow i32.
const INTEGER_DIM: usize = 60_000;

/// The largest 16-bit integer for which `n` products of two of them never exceed 32 bits.
fn largest_int16(n: usize) -> f64 {
    let most = (f64::from(i32::MAX) / n.max(1) as f64).sqrt().floor();
    most.min(f64::from(i16::MAX))
}

#[derive(Debug)]
pub(crate) struct Filter {
    isa: Isa,
    combine: Combine,
    precision: Precision,
    /// Numbers per word, whole 32 bits: coordinates and padding.
    width: usize,
    /// [`AFTER`](kernel::AFTER) lines follow the last panel.
    panels: Vec<Line>,
    unit: Vec<f32>,
    half: Vec<f32>,
    error_share: Vec<f32>,
    /// The maxima V, D and M.
    largest: [f64; 3],
}

impl Filter {
    /// The integers that serve a scoring on this machine better than f32. On the ball, words near
    /// the boundary have bounds too wide for them.
    pub(crate) fn integers(isa: Isa, scoring: &Scoring) -> Option<Precision> {
        let serve = scoring.dim <= INTEGER_DIM
            && matches!(scoring.metric, Metric::Euclidean | Metric::Angular);
        match serve {
            true if isa.has_int8() => Some(Precision::Int8),
            true if isa.has_int16() => Some(Precision::Int16),
            _ => None,
        }
    }

    /// Lays the words out in panels for the kernel, each with its unit and the parts of its bound:
    /// half of its offset, its norm, and the norm of its rounding error.
    pub(crate) fn new(isa: Isa, precision: Precision, scoring: &Scoring, vectors: &[f32]) -> Self {
        let n = scoring.dim;
        let count = vectors.len() / n;
        let padded = count.next_multiple_of(WIDTH);
        let per_line = size_of::<u32>() / precision.bytes();
        let width = n.next_multiple_of(per_line);
        // half, ‖v‖ and δ of every word; padding has the unit 1.
        let mut sides = vec![[f64::INFINITY, 0.0, 0.0]; padded];
        let mut unit = vec![1.0f32; padded];
        let spread = Spread::over(padded);
        let lines = width * precision.bytes();
        let mut panels = vec![Line([0; 64]); padded / WIDTH * lines + kernel::AFTER];
        let of_words = unit.chunks_mut(WIDTH).zip(sides.chunks_mut(WIDTH));
        let out = panels.chunks_exact_mut(lines).zip(of_words).enumerate();
        split(out.collect(), |(p, (panel, (units, sides)))| {
            let (mut v, mut stored) = (vec![0.0; n], vec![0u32; width / per_line]);
            let ids = (0..WIDTH).map(|w| spread.id(p, w) as usize);
            for (w, id) in ids.take_while(|&id| id < count).enumerate() {
                let half = scoring.word(&vectors[id * n..][..n], &mut v);
                let quantised = precision.store(&v, &mut stored);
                match precision {
                    Precision::Int8 => {
                        let place = |d| d / 4 * 4 * WIDTH + 4 * w + d % 4;
                        scatter::<u8>(&stored, panel, place);
                    }
                    Precision::Int16 => {
                        scatter::<i16>(&stored, panel, |d| kernel::int16_place(width, w, d));
                    }
                    Precision::Single => scatter::<f32>(&stored, panel, |d| d * WIDTH + w),
                }
                units[w] = quantised.unit;
                sides[w] = [half, quantised.norm, quantised.error];
            }
            if precision == Precision::Int8 {
                let bytes = cast_slice_mut::<Line, u8>(panel);
                bytes.iter_mut().for_each(|x| *x ^= INT8_ZERO);
            }
        });
        let mut largest = [0.0f64; 3];
        let is_padding = |at: usize| spread.id(at / WIDTH, at % WIDTH) as usize >= count;
        let words = (0..padded).filter(|&at| !is_padding(at));
        for [half, norm, error] in words.map(|at| sides[at]) {
            for (most, x) in largest.iter_mut().zip([norm, error, half]) {
                *most = most.max(x);
            }
        }
        let share = |x: f64, most: f64| if most > 0.0 { x / most } else { 0.0 };
        let error_share = |(at, &[half, norm, error]): (usize, &[f64; 3])| {
            if is_padding(at) {
                return 0.0;
            }
            let parts = [norm, error, half].into_iter().zip(largest);
            let most = parts.fold(0.0, |e: f64, (x, most)| e.max(share(x, most)));
            (most as f32).next_up()
        };
        Filter {
            isa,
            combine: match scoring.metric {
                Metric::Manhattan => Combine::Difference,
                Metric::Chebyshev => Combine::LargestDifference,
                _ => Combine::Product,
            },
            precision,
            width,
            panels,
            unit,
            // A word with NaNs, from a damaged file that was not verified, is never near.
            half: sides.iter().map(|s| finite_or_far(s[0] as f32)).collect(),
            error_share: sides.iter().enumerate().map(error_share).collect(),
            largest,
        }
    }

    pub(crate) fn query_bytes(&self) -> usize {
        self.width * self.precision.bytes()
    }

    /// Scans all words for row-major `queries`. Afterwards collector i holds all words that can be
    /// among the k nearest of query i. Exceptions: the collector [`gave_up`](Collector::gave_up),
    /// or ranking shows that it [`missed`](Collector::missed) some.
    ///
    /// `distances(i, ids, out)` computes the distances of query i to some words. With `guess`, one
    /// panel in [`STRIDE`] is scanned first. The guessed threshold leaves few more than k words; a
    /// running top k would take k·(1 + ln(V/k)).
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn scan(
        &self,
        scoring: &Scoring,
        queries: &[f64],
        distances: impl Fn(usize, &[u32], &mut [f64]),
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
        let k = collectors[0].k();
        // Too few panels for the list length: the first scan would cost more than it saves.
        if guess && k >= 64 && panels >= 4 * STRIDE && k < panels * WIDTH / 4 {
            collectors.iter_mut().for_each(Collector::look);
            let seen = (0..panels).step_by(STRIDE);
            self.pass(scoring, seen, &distances, prepared, collectors);
            collectors.iter_mut().for_each(Collector::guess);
        }
        self.pass(scoring, 0..panels, &distances, prepared, collectors);
    }

    /// Converts queries to the panels' scoring, and initialises the collectors.
    fn prepare(
        &self,
        scoring: &Scoring,
        queries: &[f64],
        step: f64,
        prepared: &mut Prepared,
        collectors: &mut [Collector],
    ) {
        let (n, size) = (scoring.dim, self.query_bytes() / size_of::<u32>());
        let mut q = vec![0.0; n];
        prepared.sides.clear();
        prepared.queries.resize(collectors.len() * size, 0);
        let largest = self.largest[0].max(self.largest[2]);
        let stored = prepared.queries.chunks_exact_mut(size);
        let each = queries.chunks_exact(n).zip(stored).zip(collectors);
        for ((query, stored), collector) in each {
            let with = scoring.query(query, step, largest, &mut q);
            let quantised = self.precision.store(&q, stored);
            let side = self.begin(scoring, with, &quantised, collector);
            prepared.sides.push(side);
        }
        #[cfg(target_arch = "x86_64")]
        if self.precision == Precision::Int8 {
            let queries = cast_slice(&prepared.queries);
            let (tiles, sides) = (&mut prepared.tiles, &prepared.sides);
            tiles.pack(self.isa, queries, self.width, sides);
        }
    }

    /// Begins the collection of a query; returns what its bounds need.
    fn begin(
        &self,
        scoring: &Scoring,
        with: QueryTerms,
        quantised: &Quantised,
        collector: &mut Collector,
    ) -> QuerySide {
        let n = scoring.dim;
        let [v, d, half] = self.largest;
        let ordinary = with.norm < 1e30 && with.factor < 1e30 && v.max(half) < 1e30;
        let reliable = ordinary && n <= 1 << 20;
        let a = with.norm + quantised.error;
        let (r, spread) = match (self.precision, self.combine) {
            (Precision::Int8 | Precision::Int16, _) => (10.0, 1.0),
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
        collector.begin(
            reliable && error_scale < 1e30,
            error_scale,
            rounding_error,
            with,
        );
        QuerySide {
            factor: with.factor as f32,
            error_scale,
            scale: quantised.unit,
            start: -i32::from(INT8_ZERO) * quantised.sum,
            ..QuerySide::default()
        }
    }

    /// Bounds the words of some panels, and gives every collector those that reach its threshold.
    fn pass(
        &self,
        scoring: &Scoring,
        panels: impl Iterator<Item = usize>,
        distances: impl Fn(usize, &[u32], &mut [f64]),
        prepared: &mut Prepared,
        collectors: &mut [Collector],
    ) {
        let Prepared { sides, queries, .. } = prepared;
        let m = collectors.len();
        for (side, collector) in sides.iter_mut().zip(&*collectors) {
            side.threshold = collector.threshold();
        }
        let mut scores: Scores = [[0.0; WIDTH]; TILE];
        let size = self.query_bytes() / size_of::<u32>();
        let lines = self.query_bytes();
        #[cfg(target_arch = "x86_64")]
        let matrices = match self.precision {
            Precision::Int8 => prepared.tiles.begin(self.isa),
            Precision::Int16 | Precision::Single => None,
        };
        let spread = Spread::over(self.half.len());
        for p in panels {
            let of = Sides {
                unit: &self.unit.as_chunks().0[p],
                half: &self.half.as_chunks().0[p],
                error_share: &self.error_share.as_chunks().0[p],
            };
            let panel = &self.panels[p * lines..];
            let ids = |w: u32| spread.id(p, w as usize);
            #[cfg(target_arch = "x86_64")]
            if let Some(matrices) = &matrices {
                matrices.panel(panel, of, sides, |i, hits, scores| {
                    let distances = |ids: &[u32], out: &mut [f64]| distances(i, ids, out);
                    collectors[i].take(hits, scores, ids, scoring, distances);
                    collectors[i].threshold()
                });
                continue;
            }
            let panel = &panel[..lines];
            for first in (0..m).step_by(TILE) {
                let tile = first..m.min(first + TILE);
                let queries = &queries[tile.start * size..tile.end * size];
                let of_queries = (queries, &sides[tile.clone()]);
                let hits = match tile.len() {
                    1 => self.tile::<1>(panel, of, of_queries, &mut scores),
                    2 => self.tile::<2>(panel, of, of_queries, &mut scores),
                    3 => self.tile::<3>(panel, of, of_queries, &mut scores),
                    4 => self.tile::<4>(panel, of, of_queries, &mut scores),
                    5 => self.tile::<5>(panel, of, of_queries, &mut scores),
                    _ => self.tile::<TILE>(panel, of, of_queries, &mut scores),
                };
                if hits == [0; TILE] {
                    continue;
                }
                for (q, i) in tile.enumerate() {
                    if hits[q] != 0 {
                        let distances = |ids: &[u32], out: &mut [f64]| distances(i, ids, out);
                        collectors[i].take(hits[q], &scores[q], ids, scoring, distances);
                        sides[i].threshold = collectors[i].threshold();
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn tile<const Q: usize>(
        &self,
        panel: &[Line],
        of: Sides,
        (queries, sides): (&[u32], &[QuerySide]),
        to: &mut Scores,
    ) -> Hits {
        let isa = self.isa;
        match self.precision {
            Precision::Int8 => {
                kernel::bounds_int8::<Q>(isa, panel, of, cast_slice(queries), sides, to)
            }
            Precision::Int16 => {
                let (panel, queries) = (cast_slice(panel), cast_slice(queries));
                kernel::bounds_int16::<Q>(isa, panel, of, queries, sides, to)
            }
            Precision::Single => {
                let (panel, queries) = (cast_slice(panel), cast_slice(queries));
                kernel::bounds::<Q>(isa, self.combine, panel, of, queries, sides, to)
            }
        }
    }
}

/// Puts the numbers of a word where they stand in its panel.
fn scatter<T: Pod>(stored: &[u32], panel: &mut [Line], place: impl Fn(usize) -> usize) {
    let panel = cast_slice_mut::<Line, T>(panel);
    for (d, &x) in cast_slice::<u32, T>(stored).iter().enumerate() {
        panel[place(d)] = x;
    }
}

/// Which word stands where: panel p of P panels holds the words p, p + P, p + 2P, … So every panel is
/// a sample of the whole vocabulary. Frequent words stand together in a vocabulary and are often near
/// each other, or near all words. A threshold that is guessed from panels of neighbouring ids was too
/// high for every word of a real embedding.
#[derive(Clone, Copy)]
struct Spread {
    panels: usize,
}

impl Spread {
    fn over(padded: usize) -> Self {
        Spread {
            panels: padded / WIDTH,
        }
    }

    /// The word at place `w` of a panel; at least the number of words for padding.
    #[inline]
    fn id(self, panel: usize, w: usize) -> u32 {
        (w * self.panels + panel) as u32
    }
}

/// A word's half; NaN becomes infinity, so that no bound of the word reaches any threshold.
fn finite_or_far(half: f32) -> f32 {
    if half.is_nan() { f32::INFINITY } else { half }
}

/// Queries in the filter's format; working memory.
#[derive(Default)]
pub(crate) struct Prepared {
    sides: Vec<QuerySide>,
    queries: Vec<u32>,
    #[cfg(target_arch = "x86_64")]
    tiles: Tiles,
}

struct Quantised {
    unit: f32,
    norm: f64,
    error: f64,
    sum: i32,
}

/// Integers that a filter stores.
trait Integer: Pod + Into<i32> {
    /// From the lowest bits of a number.
    fn lowest(bits: u64) -> Self;
}

impl Integer for i8 {
    fn lowest(bits: u64) -> Self {
        bits as i8
    }
}

impl Integer for i16 {
    fn lowest(bits: u64) -> Self {
        bits as i16
    }
}

/// A unit of which no number needs more than `largest`; NaNs are passed over.
fn unit_of(v: &[f64], largest: f64) -> f32 {
    // Eight maxima, for vector registers.
    let (parts, rest) = v.as_chunks::<8>();
    let mut most = [0.0f64; 8];
    let larger = |most: &mut f64, x: &f64| *most = if x.abs() > *most { x.abs() } else { *most };
    for part in parts {
        most.iter_mut()
            .zip(part)
            .for_each(|(most, x)| larger(most, x));
    }
    most.iter_mut()
        .zip(rest)
        .for_each(|(most, x)| larger(most, x));
    let most = most.into_iter().fold(0.0, f64::max);
    // Rounded up slightly, so that `largest` units always suffice.
    ((most / largest) as f32).next_up()
}

/// Rounds to integers of at most `largest` times a unit; `out` may be longer and is filled with 0.
/// NaNs give a NaN error.
fn quantise<I: Integer>(v: &[f64], largest: f64, out: &mut [I]) -> Quantised {
    let unit = unit_of(v, largest);
    // Eight sums of each kind, for vector registers.
    const L: usize = 8;
    let (parts, rest) = v.as_chunks::<L>();
    let mut last = [0.0; L];
    last[..rest.len()].copy_from_slice(rest);
    let parts = || parts.iter().chain((!rest.is_empty()).then_some(&last));
    let wide = f64::from(unit);
    let per_unit = wide.recip();
    let (mut sums, mut norm2, mut error2) = ([0i32; L], [0.0; L], [0.0; L]);
    out[v.len()..].fill(I::zeroed());
    let mut out = out[..v.len()].chunks_mut(L);
    for part in parts() {
        let mut integers = [I::zeroed(); L];
        for l in 0..L {
            // Adding 1.5·2⁵² rounds to an integer, ties to even, and leaves it in the lowest bits.
            const ROUND: f64 = (3u64 << 51) as f64;
            let x = part[l];
            let rounded = (x * per_unit).clamp(-largest, largest) + ROUND;
            integers[l] = I::lowest(rounded.to_bits());
            sums[l] += integers[l].into();
            norm2[l] += x * x;
            let error = x - (rounded - ROUND) * wide;
            error2[l] += error * error;
        }
        if let Some(out) = out.next() {
            out.copy_from_slice(&integers[..out.len()]);
        }
    }
    Quantised {
        unit,
        norm: norm2.iter().sum::<f64>().sqrt(),
        error: error2.iter().sum::<f64>().sqrt(),
        sum: sums.iter().sum(),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with plain arithmetic: every integer is the nearest, and the norms of the
        /// vector and of the rounding error agree.
        #[test]
        fn quantised_numbers_are_the_nearest(
            v in prop::collection::vec(-1.0f64..1.0, 0..70), exponent in -30i32..30, padding in 0usize..5
        ) {
            let v: Vec<f64> = v.iter().map(|x| x * 10f64.powi(exponent)).collect();
            nearest_integers::<i8>(&v, padding, 127.0)?;
            nearest_integers::<i16>(&v, padding, largest_int16(v.len()))?;
        }
    }

    fn nearest_integers<I: Integer>(
        v: &[f64],
        padding: usize,
        largest: f64,
    ) -> Result<(), TestCaseError> {
        let mut out = vec![I::lowest(99); v.len() + padding];
        let got = quantise(v, largest, &mut out);
        let out: Vec<i32> = out.into_iter().map(I::into).collect();
        let (mut norm2, mut error2, unit) = (0.0, 0.0, f64::from(got.unit));
        for (&x, &integer) in v.iter().zip(&out) {
            prop_assert!(f64::from(integer).abs() <= largest);
            prop_assert_eq!(f64::from(integer), (x / unit).round_ties_even());
            norm2 += x * x;
            error2 += (x - f64::from(integer) * unit).powi(2);
        }
        prop_assert!(out[v.len()..].iter().all(|&x| x == 0));
        prop_assert_eq!(got.sum, out.iter().sum::<i32>());
        prop_assert!((got.norm - norm2.sqrt()).abs() <= 1e-12 * norm2.sqrt());
        prop_assert!((got.error - error2.sqrt()).abs() <= 1e-12 * error2.sqrt());
        Ok(())
    }

    #[test]
    fn numbers_that_are_none_are_seen() {
        for bad in [f64::NAN, f64::INFINITY] {
            let v = [0.5, bad, -0.25, 0.1, 0.0, 0.0, 0.0, 0.0, 1.0];
            let got = quantise(&v, 127.0, &mut [0i8; 12]);
            assert!(!got.error.is_finite(), "{}", got.error);
        }
    }
}
