//! Bounds on a word's distances to all outputs of a cover: four bits per output.
//!
//! A try outside the list takes the least distance to a set, which costs a bound for each of its
//! words. Most tries need to know only roughly how far the set is. So the distances of a word that
//! is drawn often are put on a ladder: a code tells between which two rungs an output's distance
//! lies, or that it is in the list. A code never decides which random bits are drawn, so draws are
//! the same with and without it.
//!
//! The codes of 64 words are made together. Each word of the vocabulary has a row of 64 codes, and
//! the code of a set is the least of its words' codes. So a set is looked up once for 64 words. Then
//! each word gets the codes of all outputs side by side, which fit into the nearer caches.

use super::terms::Terms;
use crate::cover::Cover;
use crate::law::FLOOR_EXPONENT;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512};
use crate::space::MetricSpace;

/// Words whose codes are made together.
pub(super) const LANES: usize = 64;
/// Outputs whose codes are written to the words together.
const TILE: usize = 16;
/// Bytes of the codes of [`LANES`] words for one output: those of the first half in the low bits.
const BYTES: usize = LANES / 2;
/// The code of outputs that are certainly in the list, and of those that may be.
const INSIDE: u8 = 0;
const UNSURE: u8 = 1;
/// The last code. It has no upper bound.
const LAST: u8 = 15;
/// Rungs between those.
const RUNGS: u8 = LAST - UNSURE - 1;
/// Words of the vocabulary whose distances are computed together.
const ROWS: usize = 256;

/// The rungs of one word: code c from 2 to 14 stands for distances from first + (c - 2)·step to
/// first + (c - 1)·step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ladder {
    first: f64,
    step: f64,
    /// Outputs nearer than this are in the list.
    inside: f64,
    /// Covers the errors of the distances and of the arithmetic.
    margin: f64,
}

/// A word whose codes are to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) id: u32,
    pub(super) ladder: Ladder,
    /// -ln of the envelope of the outputs outside its list, if they have one envelope.
    pub(super) exponent: f64,
}

/// The codes of one word.
#[derive(Debug)]
pub(super) struct OutputBounds {
    /// Two codes in a byte, that of the even output in the low bits. A few zeros follow, so that
    /// four bytes can be read at every place.
    codes: Box<[u8]>,
    ladder: Ladder,
    /// Two numbers for each code, compared with the first 32 bits of a try's u. Above `beyond`, the
    /// try is certainly refused; below `within`, it is certainly accepted.
    beyond: [u32; 16],
    within: [u32; 16],
}

/// Decisions that codes allow about tries; bit i is for try i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Decided {
    /// Certainly not accepted.
    pub(super) beyond: u64,
    /// Certainly outside the list, and accepted.
    pub(super) accepted: u64,
}

/// Working memory of one thread.
#[derive(Default)]
pub(super) struct Builder {
    columns: Vec<[u8; BYTES]>,
    rough: Vec<f32>,
    exact: Vec<f64>,
}

impl Ladder {
    /// The rungs for outputs farther than `least`, which are outside the list; `None` if the
    /// numbers are too extreme.
    pub(super) fn new(least: f64, terms: Terms) -> Option<Self> {
        // Above the rungs, a weight is below e^-3.5 of the envelope: few tries can be accepted.
        const RANGE: f64 = 3.5;
        let mut range = RANGE * terms.per_eta;
        if terms.gamma > least {
            range = range.min(terms.gamma - least);
        }
        let step = range / f64::from(RUNGS);
        // Far inside the range of f32.
        let fits = |x: f64| x > 1e-15 && x < 1e15;
        (fits(least) && fits(step)).then_some(Ladder {
            first: least,
            step,
            // `least` is a step of the grid beyond the list's end.
            inside: least - 3.0 * terms.grid.step(),
            margin: 0.0,
        })
    }

    /// Leaves room for distances with a relative error of `error`.
    fn with_error(mut self, error: f64) -> Self {
        // Each f32 operation has a relative error of 2⁻²⁴, of at most the last rung.
        const ARITHMETIC: f64 = 1.0 / (1u64 << 19) as f64;
        let last = self.first + 16.0 * self.step;
        self.margin = last * (2.0 * error + ARITHMETIC);
        // The first rung is beyond the list, whatever the errors, and what is inside is inside.
        self.first += 2.0 * self.margin;
        self.inside -= 2.0 * self.margin;
        self
    }

    /// A lower and an upper bound on the distance of an output with this code, if it is outside the
    /// list. The lower one is beyond the list.
    fn between(&self, code: u8) -> Option<(f64, f64)> {
        let rung = f64::from(code.checked_sub(UNSURE + 1)?);
        let least = self.first + rung * self.step - self.margin;
        let most = match code {
            LAST => f64::INFINITY,
            _ => self.first + (rung + 1.0) * self.step + self.margin,
        };
        Some((least, most))
    }

    /// For each code, the first 32 bits of u above which a try is not accepted, and below which it
    /// is: see [`limits`](super::outside::limits).
    fn decided(&self, exponent: f64, terms: Terms) -> ([u32; 16], [u32; 16]) {
        // Covers the rounding of the exponentials and logarithms, like `Terms::limits`.
        const ROUNDING: f64 = 1e-6;
        const ALL: f64 = (1u64 << 32) as f64;
        let step = terms.grid.step();
        let exponent_at = |d: f64| terms.eta * d.min(terms.gamma);
        let (mut beyond, mut within) = ([u32::MAX; 16], [0; 16]);
        beyond[usize::from(INSIDE)] = 0;
        for code in 0..=LAST {
            let Some((least, most)) = self.between(code) else {
                continue;
            };
            // u = x/2³² + r with r in [0, 2⁻³²). Weights end at the floor.
            let lightest = exponent_at(least - step).min(FLOOR_EXPONENT - 1e-3);
            let above = ALL * (exponent + ROUNDING - lightest).exp();
            let heaviest = exponent_at(most + step);
            let below = ALL * (exponent - ROUNDING - heaviest).exp() - 1.0;
            // As conversions saturate, `above` from 2³² - 1 on is never exceeded. A NaN, from an
            // extreme ε, decides nothing.
            beyond[usize::from(code)] = if above >= 0.0 {
                above.ceil() as u32
            } else {
                u32::MAX
            };
            within[usize::from(code)] = below.max(0.0).floor() as u32;
        }
        (beyond, within)
    }
}

impl OutputBounds {
    /// Bytes of one word's codes.
    pub(super) fn bytes(outputs: usize) -> usize {
        size_of::<Self>() + Self::length(outputs)
    }

    /// Bytes of the codes, with room for whole tiles and for reading four bytes at each place.
    fn length(outputs: usize) -> usize {
        outputs.next_multiple_of(TILE) / 2 + 3
    }

    #[inline]
    fn code(&self, y: u32) -> u8 {
        self.codes[y as usize / 2] >> (4 * (y % 2)) & LAST
    }

    /// A lower and an upper bound on the distance to an output, if its code says something.
    /// The lower one is beyond the list.
    #[inline]
    pub(super) fn between(&self, y: u32) -> Option<(f64, f64)> {
        self.ladder.between(self.code(y))
    }

    /// Decides tries of outputs as far as their codes allow; `x` has the first 64 bits of each u.
    /// All outputs must share one envelope, that of `Wanted`.
    #[inline]
    pub(super) fn decide<const N: usize>(&self, outputs: &[u32; N], x: &[u64; N]) -> Decided {
        #[cfg(target_arch = "x86_64")]
        if N <= 16 && Avx512::detect().is_some() {
            let most = 2 * (self.codes.len() - 3);
            assert!(outputs.iter().all(|&y| (y as usize) < most));
            // SAFETY: the machine has the set; the outputs have codes.
            return unsafe { self.decide_avx512(outputs, x) };
        }
        self.decide_portable(outputs, x)
    }

    fn decide_portable<const N: usize>(&self, outputs: &[u32; N], x: &[u64; N]) -> Decided {
        let mut decided = Decided::default();
        for i in 0..N {
            let (code, x) = (usize::from(self.code(outputs[i])), (x[i] >> 32) as u32);
            decided.beyond |= u64::from(x > self.beyond[code]) << i;
            decided.accepted |= u64::from(x < self.within[code]) << i;
        }
        decided
    }

    /// # Safety
    /// There are at most 16 outputs, each below the number of codes.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    unsafe fn decide_avx512<const N: usize>(&self, outputs: &[u32; N], x: &[u64; N]) -> Decided {
        use std::arch::x86_64::*;
        let lanes = (u32::MAX >> (32 - N)) as __mmask16;
        // SAFETY: masked loads of N numbers; each read of four bytes lies within the codes, as the
        // caller and `length` say.
        unsafe {
            let y = _mm512_maskz_loadu_epi32(lanes, outputs.as_ptr().cast());
            let bytes = _mm512_mask_i32gather_epi32::<1>(
                _mm512_setzero_si512(),
                lanes,
                _mm512_srli_epi32::<1>(y),
                self.codes.as_ptr().cast(),
            );
            let odd = _mm512_and_si512(y, _mm512_set1_epi32(1));
            let code = _mm512_srlv_epi32(bytes, _mm512_slli_epi32::<2>(odd));
            // A permutation reads the four low bits of each index only.
            let of = |table: &[u32; 16]| {
                _mm512_permutexvar_epi32(code, _mm512_loadu_si512(table.as_ptr().cast()))
            };
            let high = |from: usize| {
                let lanes = (lanes >> from) as __mmask8;
                let x = _mm512_maskz_loadu_epi64(lanes, x.as_ptr().wrapping_add(from).cast());
                _mm512_cvtepi64_epi32(_mm512_srli_epi64::<32>(x))
            };
            let x = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(high(0)), high(8));
            Decided {
                beyond: _mm512_mask_cmpgt_epu32_mask(lanes, x, of(&self.beyond)).into(),
                accepted: _mm512_mask_cmplt_epu32_mask(lanes, x, of(&self.within)).into(),
            }
        }
    }
}

impl Builder {
    /// Makes the codes of up to [`LANES`] words for the outputs of a cover.
    pub(super) fn build(
        &mut self,
        space: &dyn MetricSpace,
        cover: &Cover,
        terms: Terms,
        words: &[Wanted],
    ) -> Vec<OutputBounds> {
        let ids: Vec<u32> = words.iter().map(|wanted| wanted.id).collect();
        let count = space.vocabulary().len();
        self.columns.resize(count, [0; BYTES]);
        self.rough.resize(ROWS * LANES, 0.0);
        let mut error = 0.0;
        let mut ladders: Vec<Ladder> = Vec::new();
        let mut lanes = Lanes::default();
        let all: Vec<u32> = (0..count as u32).collect();
        for (some, columns) in all.chunks(ROWS).zip(self.columns.chunks_mut(ROWS)) {
            let rough = &mut self.rough[..some.len() * LANES];
            let relative = match space.bounded_distances(some, &ids, rough, LANES) {
                Some(relative) => relative,
                None => {
                    self.exact.resize(ROWS * LANES, 0.0);
                    space.block(some, &ids, &mut self.exact, LANES);
                    for (rough, &exact) in rough.iter_mut().zip(&self.exact) {
                        *rough = exact as f32;
                    }
                    f64::from(f32::EPSILON)
                }
            };
            // A part with a larger error makes the ladders anew, and with them all codes so far.
            if ladders.is_empty() {
                error = relative;
                let each = words.iter().map(|wanted| wanted.ladder.with_error(error));
                ladders = each.collect();
                for (lane, ladder) in ladders.iter().enumerate() {
                    lanes.inside[lane] = ladder.inside as f32;
                    lanes.first[lane] = ladder.first as f32;
                    lanes.per_step[lane] = ladder.step.recip() as f32;
                }
            } else if relative > error {
                return Vec::new();
            }
            code_all(rough, &lanes, columns);
        }
        let length = OutputBounds::length(cover.released().len());
        let mut codes: Vec<Box<[u8]>> = words.iter().map(|_| vec![0; length].into()).collect();
        pack_all(cover, &self.columns, &mut codes);
        let each = ladders.into_iter().zip(words).zip(codes);
        let each = each.map(|((ladder, wanted), codes)| {
            let (beyond, within) = ladder.decided(wanted.exponent, terms);
            OutputBounds {
                codes,
                ladder,
                beyond,
                within,
            }
        });
        each.collect()
    }
}

/// The ladders of words that are coded together.
struct Lanes {
    inside: [f32; LANES],
    first: [f32; LANES],
    per_step: [f32; LANES],
}

impl Default for Lanes {
    fn default() -> Self {
        Lanes {
            inside: [0.0; LANES],
            first: [0.0; LANES],
            per_step: [0.0; LANES],
        }
    }
}

/// Writes the codes of rows of distances.
fn code_all(rows: &[f32], lanes: &Lanes, columns: &mut [[u8; BYTES]]) {
    #[cfg(target_arch = "x86_64")]
    if Avx512::detect().is_some() {
        // SAFETY: the machine has the set, as the proof says.
        return unsafe { code_avx512(rows, lanes, columns) };
    }
    #[cfg(target_arch = "x86_64")]
    if Avx2::detect().is_some() {
        // SAFETY: as above.
        return unsafe { code_avx2(rows, lanes, columns) };
    }
    code_portable(rows, lanes, columns);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn code_avx2(rows: &[f32], lanes: &Lanes, columns: &mut [[u8; BYTES]]) {
    code_portable(rows, lanes, columns);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn code_avx512(rows: &[f32], lanes: &Lanes, columns: &mut [[u8; BYTES]]) {
    code_portable(rows, lanes, columns);
}

#[inline(always)]
#[allow(clippy::needless_range_loop, clippy::manual_clamp)] // lanes, for the vectoriser
fn code_portable(rows: &[f32], lanes: &Lanes, columns: &mut [[u8; BYTES]]) {
    const FIRST: f32 = UNSURE as f32 + 1.0;
    for (row, packed) in rows.as_chunks::<LANES>().0.iter().zip(columns) {
        let mut codes = [0i32; LANES];
        for lane in 0..LANES {
            // A NaN becomes `UNSURE`, which says nothing.
            let rungs = (row[lane] - lanes.first[lane]) * lanes.per_step[lane] + FIRST;
            let code = rungs.max(f32::from(UNSURE)).min(f32::from(LAST));
            let inside = row[lane] < lanes.inside[lane];
            codes[lane] = if inside {
                i32::from(INSIDE)
            } else {
                code as i32
            };
        }
        for i in 0..BYTES {
            packed[i] = (codes[i] | codes[i + BYTES] << 4) as u8;
        }
    }
}

/// Writes each word's codes of all outputs: the least of the codes of their sets' words.
fn pack_all(cover: &Cover, columns: &[[u8; BYTES]], codes: &mut [Box<[u8]>]) {
    #[cfg(target_arch = "x86_64")]
    if Avx2::detect().is_some() {
        // SAFETY: the machine has the set, as the proof says.
        return unsafe { pack_avx2(cover, columns, codes) };
    }
    pack_portable(cover, columns, codes);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn pack_avx2(cover: &Cover, columns: &[[u8; BYTES]], codes: &mut [Box<[u8]>]) {
    pack_portable(cover, columns, codes);
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn pack_portable(cover: &Cover, columns: &[[u8; BYTES]], codes: &mut [Box<[u8]>]) {
    let outputs = cover.released().len();
    for first in (0..outputs).step_by(TILE) {
        let mut tile = [[0; LANES]; TILE];
        for (codes, y) in tile.iter_mut().zip(first..outputs) {
            // The codes in the high bits are compared where they are.
            let (mut low, mut high) = ([LAST; BYTES], [LAST << 4; BYTES]);
            for &a in cover.set(y as u32) {
                let packed = &columns[a as usize];
                for i in 0..BYTES {
                    low[i] = low[i].min(packed[i] & LAST);
                    high[i] = high[i].min(packed[i] & LAST << 4);
                }
            }
            for i in 0..BYTES {
                (codes[i], codes[i + BYTES]) = (low[i], high[i] >> 4);
            }
        }
        let mut pairs = [[0; LANES]; TILE / 2];
        for i in 0..TILE / 2 {
            for lane in 0..LANES {
                pairs[i][lane] = tile[2 * i][lane] | tile[2 * i + 1][lane] << 4;
            }
        }
        for (eight, codes) in (0..).step_by(8).zip(codes.chunks_mut(8)) {
            let mut bytes = [0u64; 8];
            for i in 0..8 {
                let pair = &pairs[i][eight..][..8];
                bytes[i] = u64::from_le_bytes([
                    pair[0], pair[1], pair[2], pair[3], pair[4], pair[5], pair[6], pair[7],
                ]);
            }
            transpose(&mut bytes);
            for (codes, bytes) in codes.iter_mut().zip(bytes) {
                codes[first / 2..][..TILE / 2].copy_from_slice(&bytes.to_le_bytes());
            }
        }
    }
}

/// Transposes a square of eight times eight bytes (Warren 2013, section 7-3).
#[inline(always)]
fn transpose(rows: &mut [u64; 8]) {
    for (apart, mask) in [
        (4, 0x0000_0000_FFFF_FFFF),
        (2, 0x0000_FFFF_0000_FFFF),
        (1, 0x00FF_00FF_00FF_00FF),
    ] {
        for i in (0..8).filter(|i| i & apart == 0) {
            let swapped = (rows[i] >> (8 * apart) ^ rows[i + apart]) & mask;
            rows[i + apart] ^= swapped;
            rows[i] ^= swapped << (8 * apart);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use rand::RngExt;

    use super::super::outside::{Class, Outside};
    use super::super::{Tem, Truncation};
    use super::*;
    use crate::law::weight;
    use crate::neighbors::Grid;
    use crate::random::continued;
    use crate::{Embedding, Mechanism, Metric, Randomness, Vocabulary};

    /// Random words, and a cover of `k` random words or near words for each output.
    fn covered(count: usize, dim: usize, k: usize, seed: u64) -> (Embedding, Cover) {
        let mut rng = Randomness::new(Some(seed)).next_key().unwrap().stream(0);
        let words = Vocabulary::new((0..count).map(|i| i.to_string())).expect("distinct");
        let vectors = (0..count * dim).map(|_| rng.random::<f32>()).collect();
        let e = Embedding::new(words, vectors, dim, Metric::Euclidean).expect("points");
        let members = (0..count as u32)
            .map(|y| {
                (0..k as u32)
                    .map(|i| (y + i * i * 7) % count as u32)
                    .collect()
            })
            .collect();
        let cover = Cover::from_members(&e, members).expect("a cover");
        (e, cover)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        /// The bounds hold for every set, and nearly all codes say something.
        #[test]
        fn a_set_is_between_its_bounds(
            count in 2usize..400, dim in 1usize..20, k in 1usize..9, lanes in 1usize..=LANES,
            eta in 0.1f64..20.0, least in 0.01f64..1.0, seed: u64,
            gamma in prop_oneof![Just(f64::INFINITY), 0.0..2.0f64]
        ) {
            let (e, cover) = covered(count, dim, k, seed);
            let grid = Grid::of(&e);
            let outputs = count as u32;
            let terms = Terms { eta, per_eta: eta.recip(), gamma, grid, cover: Some(&cover), outputs };
            let ladder = Ladder::new(least, terms).unwrap();
            let words = (0..lanes.min(count)).map(|id| Wanted { id: id as u32, ladder, exponent: 0.0 });
            let words: Vec<_> = words.collect();
            let mut builder = Builder::default();
            for _ in 0..2 {
                let built = builder.build(&e, &cover, terms, &words);
                prop_assert_eq!(built.len(), words.len());
                let (mut row, mut scores) = (vec![0.0; count], Vec::new());
                for (bounds, &Wanted { id, .. }) in built.iter().zip(&words) {
                    e.distances(id, &mut row);
                    cover.scores(&row, &mut scores);
                    for (&d, y) in scores.iter().zip(0..) {
                        match bounds.between(y) {
                            Some((low, high)) => prop_assert!(least < low && low <= d && d <= high),
                            None if bounds.code(y) == INSIDE => prop_assert!(d < least - 2.0 * grid.step()),
                            None => prop_assert!((d - least).abs() <= least * 1e-4 + 16e-4 / eta),
                        }
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        /// Codes decide a try as the exact weight does, whatever further bits u has. The first 32
        /// bits are tried where the decision changes, too.
        #[test]
        fn codes_decide_as_weights_do(
            count in 2usize..300, dim in 1usize..20, k in 1usize..9, seed: u64,
            eta in prop_oneof![0.01f64..1.0, 1.0..60.0], near in 0.01f64..1.0,
            gamma in prop_oneof![Just(f64::INFINITY), 0.0..2.0f64],
            xs in proptest::array::uniform16(any::<u64>()), bits in proptest::array::uniform16(0u32..40),
        ) {
            let (e, cover) = covered(count, dim, k, seed);
            let (grid, outputs) = (Grid::of(&e), count as u32);
            let terms = Terms { eta, per_eta: eta.recip(), gamma, grid, cover: Some(&cover), outputs };
            let (mut row, mut scores) = (vec![0.0; count], Vec::new());
            e.distances(0, &mut row);
            cover.scores(&row, &mut scores);
            let end = grid.first_at(grid.entry(near, 0));
            let envelope = weight(eta * grid.distance(end).min(gamma));
            let mut outside = Outside::default();
            outside.fill(end, grid, [Class { envelope, first: 0, count: outputs }].into_iter());
            let ladder = Ladder::new(outside.least, terms).unwrap();
            let wanted = Wanted { id: 0, ladder, exponent: outside.exponent };
            let bounds = &Builder::default().build(&e, &cover, terms, &[wanted])[0];
            for first in (0..outputs).step_by(16) {
                let tried: [u32; 16] = std::array::from_fn(|i| (first + i as u32) % outputs);
                for change in 0..4u32 {
                    let x: [u64; 16] = std::array::from_fn(|i| {
                        let code = usize::from(bounds.code(tried[i]));
                        let high = match change {
                            0 => return xs[i] >> bits[i],
                            1 => bounds.within[code].saturating_sub(1),
                            2 => bounds.beyond[code].saturating_add(1),
                            _ => bounds.beyond[code],
                        };
                        u64::from(high) << 32 | xs[i] >> 32
                    });
                    let decided = bounds.decide(&tried, &x);
                    prop_assert_eq!(decided, bounds.decide_portable(&tried, &x));
                    for i in 0..16 {
                        let entry = grid.entry(scores[tried[i] as usize], tried[i]);
                        let weight = weight(terms.exponent(entry, tried[i]));
                        let inside = entry < end;
                        if decided.beyond >> i & 1 == 1 {
                            prop_assert!(inside || continued(x[i], envelope, 0) >= weight);
                        }
                        if decided.accepted >> i & 1 == 1 {
                            prop_assert!(!inside && continued(x[i], envelope, envelope - 1) < weight);
                        }
                    }
                }
            }
        }
    }

    /// Codes leave few tries open: less than a quarter for these points, whose distances are much
    /// alike.
    #[test]
    fn codes_decide_most_tries() {
        let (e, cover) = covered(4000, 10, 8, 3);
        let tem = Tem::new(
            Arc::new(e.clone()),
            3.0,
            Truncation::Gamma(f64::INFINITY),
            Randomness::new(Some(7)),
        );
        let tem = tem.unwrap().with_cover(Some(Arc::new(cover))).unwrap();
        let ids: Vec<u32> = (0..100 * 100).map(|i| i % 100).collect();
        tem.privatize_ids(&ids).unwrap();
        let mut rng = Randomness::new(Some(1)).next_key().unwrap().stream(0);
        let (mut open, mut tries) = (0, 0);
        for id in 0..100 {
            let bounds = tem.cache.bounds.get(id).expect("codes");
            for _ in 0..100 {
                let outputs: [u32; 16] = std::array::from_fn(|_| rng.random_range(0..4000));
                let decided = bounds.decide(&outputs, &std::array::from_fn(|_| rng.random()));
                open += 16 - (decided.beyond | decided.accepted).count_ones();
                tries += 16;
            }
        }
        assert!(open * 4 < tries, "{open} of {tries}");
    }

    /// Draws of a seed are the same with codes, without codes, and after other draws.
    #[test]
    fn codes_do_not_change_the_draws() {
        let (e, cover) = covered(4000, 10, 8, 1);
        let ids: Vec<u32> = (0..100 * 90).map(|i| i % 100).collect();
        for (epsilon, weighted) in [(3.0, false), (8.0, false), (5.0, true)] {
            let cover = match weighted {
                true => cover.weighted(|id| f64::from(id % 9 + 1)).unwrap(),
                false => cover.clone(),
            };
            let tem = |bytes| {
                let tem = Tem::new(
                    Arc::new(e.clone()),
                    epsilon,
                    Truncation::Gamma(f64::INFINITY),
                    Randomness::new(Some(7)),
                );
                let tem = tem.unwrap().with_cover(Some(Arc::new(cover.clone())));
                tem.unwrap().with_cache_bytes(bytes)
            };
            let (with, without) = (tem(64 << 20), tem(0));
            for _ in 0..3 {
                let [a, b] = [&with, &without].map(|tem| tem.privatize_ids(&ids).unwrap());
                assert_eq!(a, b);
            }
            assert!((0..100).all(|id| with.cache.bounds.get(id).is_some()));
            assert!((0..100).all(|id| without.cache.bounds.get(id).is_none()));
            let (limit, used) = with.cache_bytes();
            assert!(used <= limit);
        }
    }

    /// Draws without a seed, from codes, have the law of the row: χ² over outputs in bins of like
    /// expected counts.
    #[test]
    fn draws_by_codes_have_the_law() {
        let (e, cover) = covered(4000, 10, 8, 2);
        for epsilon in [2.0, 6.0] {
            let tem = Tem::new(
                Arc::new(e.clone()),
                epsilon,
                Truncation::Gamma(f64::INFINITY),
                Randomness::new(None),
            );
            let tem = tem
                .unwrap()
                .with_cover(Some(Arc::new(cover.clone())))
                .unwrap();
            let ids: Vec<u32> = (0..64 * 100).map(|i| i % 64).collect();
            let laws: Vec<Vec<f64>> = (0..64).map(|id| tem.probabilities(id)).collect();
            let mut counts = vec![vec![0u32; 4000]; 64];
            let (mut calls, mut by_codes, mut tem) = (0, 0, tem);
            while calls < 100 {
                // Few calls each: words that are drawn more often get a row.
                if calls % 4 == 0 {
                    tem = tem.with_cache_bytes(64 << 20);
                }
                let out = tem.privatize_ids(&ids).unwrap();
                let codes =
                    |id| tem.cache.bounds.get(id).is_some() && tem.cache.rows.get(id).is_none();
                by_codes += (0..64).filter(|&id| codes(id)).count();
                for (&id, y) in ids.iter().zip(out) {
                    counts[id as usize][y as usize] += 1;
                }
                calls += 1;
            }
            assert_eq!(by_codes, 64 * calls);
            let draws = calls as f64 * 100.0;
            let (mut chi2, mut freedom) = (0.0, 0.0);
            for (law, counts) in laws.iter().zip(&counts) {
                let mut order: Vec<usize> = (0..4000).collect();
                order.sort_by(|&a, &b| law[b].total_cmp(&law[a]));
                let (mut expected, mut found) = (0.0, 0.0);
                for y in order {
                    expected += law[y] * draws;
                    found += f64::from(counts[y]);
                    if expected >= 20.0 {
                        chi2 += (found - expected) * (found - expected) / expected;
                        freedom += 1.0;
                        (expected, found) = (0.0, 0.0);
                    }
                }
                freedom -= 1.0;
            }
            let z = (chi2 - freedom) / (2.0f64 * freedom).sqrt();
            assert!(z.abs() < 5.5, "ε = {epsilon}: χ² = {chi2} at {freedom}");
        }
    }
}
