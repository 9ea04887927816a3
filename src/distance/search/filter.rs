//! A filter: finds for every query all words that can be among its k nearest. It computes products
//! in f32 or integers of 8 or 16 bits and adds proved error bounds.
//!
//! Words v and queries q̃ (see [`scoring`](super::scoring)) are stored as v̂ and q̂: rounded to
//! f32, or to multiples of a unit: their own, but queries of a tile share one of 8 bits. The errors δ = ‖v - v̂‖ and δq = ‖q̃ - q̂‖ are
//! computed. With A = ‖q̃‖ + δq, the Cauchy-Schwarz inequality bounds the error of a product:
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

use std::ops::Range;

use super::collector::{Collector, STRIDE};
use super::kernel::{
    self, Combine, Hits, INT8_ZERO, Isa, Line, QuerySide, Scores, Sides, TILE, TileSide, Tiles,
    Units, WIDTH,
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

/// Above this dimension, sums of products could overflow i32.
const INTEGER_DIM: usize = 60_000;

/// The largest 16-bit integer for which `n` products of two of them never exceed 32 bits.
fn largest_int16(n: usize) -> f64 {
    let most = (f64::from(i32::MAX) / n.max(1) as f64).sqrt().floor();
    most.min(f64::from(i16::MAX))
}

/// All words in panels.
#[derive(Debug)]
pub(crate) struct Filter {
    isa: Isa,
    combine: Combine,
    /// Coordinates per word, including padding.
    width: usize,
    data: Data,
    half: Vec<f32>,
    error_share: Vec<f32>,
    /// The maxima V, D and M.
    largest: [f64; 3],
}

#[derive(Debug)]
enum Data {
    Single(Vec<f32>),
    /// [`AFTER`](kernel::AFTER) lines follow the last panel.
    Int8 {
        panels: Vec<Line>,
        units: Vec<Units>,
    },
    Int16 {
        panels: Vec<i16>,
        units: Vec<f32>,
    },
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

    /// Lays the words out in panels for the kernel, each with the parts of its bound: half of its
    /// offset, its norm, and the norm of its rounding error. `Single` rounds coordinates to f32.
    /// `Int8` and `Int16` give each word a unit and store multiples of it.
    pub(crate) fn new(isa: Isa, precision: Precision, scoring: &Scoring, vectors: &[f32]) -> Self {
        let n = scoring.dim;
        let count = vectors.len() / n;
        let padded = count.next_multiple_of(WIDTH);
        let width = match precision {
            Precision::Single => n,
            Precision::Int8 => n.next_multiple_of(4),
            Precision::Int16 => n.next_multiple_of(2),
        };
        // half, ‖v‖ and δ of every word.
        let mut sides = vec![[f64::INFINITY, 0.0, 0.0]; padded];
        let spread = Spread::over(padded);
        let combine = match scoring.metric {
            Metric::Manhattan => Combine::Difference,
            Metric::Chebyshev => Combine::LargestDifference,
            _ => Combine::Product,
        };
        let panel_words = |p: usize| {
            let ids = (0..WIDTH).map(move |w| spread.id(p, w) as usize);
            ids.take_while(|&id| id < count)
                .map(|id| &vectors[id * n..][..n])
        };
        // The units of words; padding has the unit 1.
        let mut units = vec![1.0f32; padded];
        let to = (&mut units[..], &mut sides[..]);
        let data = match precision {
            Precision::Single => {
                let mut panels = vec![0.0f32; padded * width];
                let place = |w, d| d * WIDTH + w;
                lay(scoring, width, panel_words, &mut panels, to, round, place);
                Data::Single(panels)
            }
            Precision::Int8 => {
                let lines = padded * width / size_of::<Line>();
                let mut panels = vec![Line([INT8_ZERO; 64]); lines + kernel::AFTER];
                let bytes = bytemuck::cast_slice_mut::<Line, u8>(&mut panels[..lines]);
                let round = |v: &[f64], out: &mut [u8]| {
                    let integers = bytemuck::cast_slice_mut::<u8, i8>(out);
                    let quantised = quantise(v, unit_of(v, 127.0), 127.0, integers);
                    out.iter_mut().for_each(|x| *x ^= INT8_ZERO);
                    quantised
                };
                let place = |w, d| d / 4 * 4 * WIDTH + 4 * w + d % 4;
                lay(scoring, width, panel_words, bytes, to, round, place);
                let units = units.as_chunks().0.iter().copied().map(Units::new);
                Data::Int8 {
                    panels,
                    units: units.collect(),
                }
            }
            Precision::Int16 => {
                let mut panels = vec![0i16; padded * width];
                let most = largest_int16(n);
                let round = |v: &[f64], out: &mut [i16]| quantise(v, unit_of(v, most), most, out);
                let place = |w, d| kernel::int16_place(width, w, d);
                lay(scoring, width, panel_words, &mut panels, to, round, place);
                Data::Int16 { panels, units }
            }
        };
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
            combine,
            width,
            data,
            // A word with NaNs, from a damaged file that was not verified, is never near.
            half: sides.iter().map(|s| finite_or_far(s[0] as f32)).collect(),
            error_share: sides.iter().enumerate().map(error_share).collect(),
            largest,
        }
    }

    /// Bytes of a query in the panels' format.
    pub(crate) fn query_bytes(&self) -> usize {
        match self.data {
            Data::Single(_) => 4 * self.width,
            Data::Int8 { .. } => self.width,
            Data::Int16 { .. } => 2 * self.width,
        }
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
        let Prepared {
            scoring: q,
            sides,
            tile_sides,
            single,
            int8,
            int16,
            tiles,
        } = prepared;
        let (n, m) = (scoring.dim, collectors.len());
        q.resize(TILE * n, 0.0);
        sides.clear();
        tile_sides.clear();
        match self.data {
            Data::Single(_) => single.resize(m * n, 0.0),
            Data::Int8 { .. } => int8.resize(m * self.width, 0),
            Data::Int16 { .. } => int16.resize(m * self.width, 0),
        }
        let largest_int16 = largest_int16(n);
        let is_int8 = matches!(self.data, Data::Int8 { .. });
        let largest = self.largest[0].max(self.largest[2]);
        let of_tiles = queries.chunks(TILE * n).zip(collectors.chunks_mut(TILE));
        for (first, (queries, collectors)) in (0..).step_by(TILE).zip(of_tiles) {
            let mut terms = [QueryTerms::default(); TILE];
            let each = queries.chunks_exact(n).zip(q.chunks_exact_mut(n));
            for ((query, q), terms) in each.zip(&mut terms) {
                *terms = scoring.query(query, step, largest, q);
            }
            let each = || q.chunks_exact(n).zip(&terms).take(collectors.len());
            // Where few words are wanted, most panels have none, and some kernels see that sooner if
            // the tile has one unit. What is not finite has its own.
            let few = collectors.iter().all(|collector| collector.few());
            let share = few && is_int8 && self.isa.shares_units();
            let alike = |terms: &QueryTerms| share && terms.norm.is_finite();
            let finite = each().filter(|(_, terms)| alike(terms));
            let common = finite.fold(0.0f32, |unit, (q, _)| unit.max(unit_of(q, 127.0)));
            for ((i, (q, &with)), collector) in (first..).zip(each()).zip(&mut *collectors) {
                let quantised = match self.data {
                    Data::Int8 { .. } => {
                        let unit = match alike(&with) {
                            true => common,
                            false => unit_of(q, 127.0),
                        };
                        quantise(q, unit, 127.0, &mut int8[i * self.width..][..self.width])
                    }
                    Data::Int16 { .. } => {
                        let (out, most) = (&mut int16[i * self.width..], largest_int16);
                        quantise(q, unit_of(q, most), most, &mut out[..self.width])
                    }
                    Data::Single(_) => round(q, &mut single[i * n..][..n]),
                };
                sides.push(self.begin(scoring, with, &quantised, collector));
            }
            tile_sides.push(match share {
                true => TileSide::new(&sides[first..], self.largest[2], self.width),
                false => TileSide::default(),
            });
        }
        if let Data::Int8 { .. } = self.data {
            tiles.pack(self.isa, int8, self.width, sides);
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
        let (r, spread) = match (&self.data, self.combine) {
            (Data::Int8 { .. } | Data::Int16 { .. }, _) => (10.0, 1.0),
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
        let Prepared {
            sides,
            tile_sides,
            single,
            int8,
            int16,
            tiles,
            ..
        } = prepared;
        let m = collectors.len();
        for (side, collector) in sides.iter_mut().zip(&*collectors) {
            side.threshold = collector.threshold();
        }
        let mut scores: Scores = [[0.0; WIDTH]; TILE];
        let (halves, error_shares) = (self.half.as_chunks().0, self.error_share.as_chunks().0);
        let matrices = match self.data {
            Data::Int8 { .. } => tiles.begin(self.isa),
            Data::Int16 { .. } | Data::Single(_) => None,
        };
        let spread = Spread::over(self.half.len());
        for p in panels {
            let of = Sides {
                half: &halves[p],
                error_share: &error_shares[p],
            };
            let ids = |w: u32| spread.id(p, w as usize);
            if let (Some(matrices), Data::Int8 { panels, units }) = (&matrices, &self.data) {
                let panel = &panels[p * self.width..];
                matrices.panel(panel, &units[p].unit, of, sides, |i, hits, scores| {
                    let distances = |ids: &[u32], out: &mut [f64]| distances(i, ids, out);
                    collectors[i].take(hits, scores, ids, scoring, distances);
                    collectors[i].threshold()
                });
                continue;
            }
            for (first, tile_side) in (0..m).step_by(TILE).zip(&*tile_sides) {
                let tile = first..m.min(first + TILE);
                let at = (&single[..], &int8[..], &int16[..]);
                let of_queries = (tile_side, &sides[tile.clone()]);
                let to = (tile.clone(), &mut scores);
                let hits = match tile.len() {
                    1 => self.tile::<1>(p, of, at, of_queries, to),
                    2 => self.tile::<2>(p, of, at, of_queries, to),
                    3 => self.tile::<3>(p, of, at, of_queries, to),
                    4 => self.tile::<4>(p, of, at, of_queries, to),
                    5 => self.tile::<5>(p, of, at, of_queries, to),
                    _ => self.tile::<TILE>(p, of, at, of_queries, to),
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
        p: usize,
        of: Sides,
        (single, int8, int16): (&[f32], &[i8], &[i16]),
        (tile_side, sides): (&TileSide, &[QuerySide]),
        (tile, scores): (Range<usize>, &mut Scores),
    ) -> Hits {
        let at = tile.start * self.width..tile.end * self.width;
        match &self.data {
            Data::Single(panels) => {
                let size = WIDTH * self.width;
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
                let panel = &panels[p * self.width..][..self.width];
                let sides = (tile_side, sides);
                kernel::bounds_int8::<Q>(self.isa, panel, &units[p], of, &int8[at], sides, scores)
            }
            Data::Int16 { panels, units } => {
                let size = WIDTH * self.width;
                let panel = &panels[p * size..][..size];
                let units = &units.as_chunks().0[p];
                kernel::bounds_int16::<Q>(self.isa, panel, units, of, &int16[at], sides, scores)
            }
        }
    }
}

/// Lays words out in panels, with their units and sides (half, ‖v‖ and δ): `round` writes the stored
/// numbers of one word, and `place(w, d)` is where those of word w stand in a panel.
fn lay<'a, T: Copy + Default + Send, W: Iterator<Item = &'a [f32]>>(
    scoring: &Scoring,
    width: usize,
    panel_words: impl Fn(usize) -> W + Sync,
    panels: &mut [T],
    (units, sides): (&mut [f32], &mut [[f64; 3]]),
    round: impl Fn(&[f64], &mut [T]) -> Quantised + Sync,
    place: impl Fn(usize, usize) -> usize + Sync,
) {
    let of_words = units.chunks_mut(WIDTH).zip(sides.chunks_mut(WIDTH));
    let out = panels.chunks_mut(WIDTH * width).zip(of_words).enumerate();
    split(out.collect(), |(p, (panel, (units, sides)))| {
        let (mut v, mut stored) = (vec![0.0; scoring.dim], vec![T::default(); width]);
        for (w, word) in panel_words(p).enumerate() {
            let half = scoring.word(word, &mut v);
            let quantised = round(&v, &mut stored);
            for (d, &x) in stored.iter().enumerate() {
                panel[place(w, d)] = x;
            }
            units[w] = quantised.unit;
            sides[w] = [half, quantised.norm, quantised.error];
        }
    });
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
    /// Of so many words, padding included.
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
    scoring: Vec<f64>,
    sides: Vec<QuerySide>,
    tile_sides: Vec<TileSide>,
    single: Vec<f32>,
    int8: Vec<i8>,
    int16: Vec<i16>,
    tiles: Tiles,
}

struct Quantised {
    unit: f32,
    norm: f64,
    error: f64,
    sum: i32,
}

/// Integers that a filter stores.
trait Integer: Copy + Default + Into<i32> {
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

/// Rounds to integers of at most `largest` times `unit`; `out` may be longer and is filled with 0.
/// NaNs give a NaN error.
fn quantise<I: Integer>(v: &[f64], unit: f32, largest: f64, out: &mut [I]) -> Quantised {
    // Eight sums of each kind, for vector registers.
    const L: usize = 8;
    let (parts, rest) = v.as_chunks::<L>();
    let mut last = [0.0; L];
    last[..rest.len()].copy_from_slice(rest);
    let parts = || parts.iter().chain((!rest.is_empty()).then_some(&last));
    let wide = f64::from(unit);
    let per_unit = wide.recip();
    let (mut sums, mut norm2, mut error2) = ([0i32; L], [0.0; L], [0.0; L]);
    out[v.len()..].fill(I::default());
    let mut out = out[..v.len()].chunks_mut(L);
    for part in parts() {
        let mut integers = [I::default(); L];
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
        let got = quantise(v, unit_of(v, largest), largest, &mut out);
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
            let got = quantise(&v, unit_of(&v, 127.0), 127.0, &mut [0i8; 12]);
            assert!(!got.error.is_finite(), "{}", got.error);
        }
    }
}
