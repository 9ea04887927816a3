//! The 8-bit bounds with AVX-512 VNNI.
//!
//! Products take one instruction for sixteen words and four coordinates. To turn a sum into a bound
//! and compare it takes six more, which is a third of the time at 50 coordinates. So whole
//! numbers are compared first: a panel's words have one unit and a tile's queries another, and the
//! sums begin with the rest of the bound in these units, rounded up. One comparison is left. Only a
//! query that it does not rule out gets bounds.

use std::arch::x86_64::*;

use super::{Hits, QuerySide, Scores, Sides, TILE, WIDTH, report_avx512, start_avx512};

/// Whole numbers below this are added without overflow.
const MOST: f32 = (1 << 28) as f32;
/// Sixteen times the relative error of an f32.
const RELATIVE: f32 = 16.0 / (1 << 24) as f32;

/// What the queries of a tile have in common.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TileSide {
    /// The reciprocal of the unit of all queries; infinite if they have several.
    per_scale: f32,
    /// The largest scale of their errors.
    error_scale: f32,
    /// The largest part of a bound besides the product.
    rest: f32,
    /// The largest sum of products.
    product: f32,
}

impl TileSide {
    /// `half` is the largest half of a word; queries have `width` coordinates.
    pub(crate) fn new(sides: &[QuerySide], half: f64, width: usize) -> Self {
        let scale = sides.first().map_or(0.0, |side| side.scale);
        let alike = sides.iter().all(|s| s.scale == scale && s.factor == 1.0);
        let error_scale = sides.iter().fold(0.0f32, |most, s| most.max(s.error_scale));
        TileSide {
            per_scale: if alike { scale.recip() } else { f32::INFINITY },
            error_scale,
            rest: error_scale + half as f32,
            product: width as f32 * 128.0 * 255.0,
        }
    }
}

/// The conversion of bounds to whole numbers for a panel and a tile.
#[derive(Clone, Copy)]
struct Whole {
    /// Sums of products in a bound of 1.
    per_bound: f32,
    /// The scale of errors, in sums of products.
    error_scale: f32,
    /// More than rounding can change.
    slack: f32,
}

impl Whole {
    /// `None` if numbers are too large.
    #[inline]
    fn new(tile: &TileSide, per_unit: f32) -> Option<Self> {
        let per_bound = per_unit * tile.per_scale;
        let rest = tile.rest * per_bound;
        // NaNs are not less.
        let fits = rest < MOST && tile.product < MOST;
        fits.then_some(Whole {
            per_bound,
            error_scale: tile.error_scale * per_bound,
            // A threshold that a sum can just reach is as large as these, or smaller.
            slack: 2.0 + 2.0 * (rest + tile.product) * RELATIVE,
        })
    }

    /// The rest of the bounds of a quarter of the words, rounded to whole numbers.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn rest(&self, sides: Sides, v: usize) -> __m512i {
        let at = 16 * v..16 * v + 16;
        // SAFETY: sixteen numbers of each.
        let (half, error_share) = unsafe {
            (
                _mm512_loadu_ps(sides.half[at.clone()].as_ptr()),
                _mm512_loadu_ps(sides.error_share[at].as_ptr()),
            )
        };
        let minus = _mm512_mul_ps(half, _mm512_set1_ps(-self.per_bound));
        let rest = _mm512_fmadd_ps(error_share, _mm512_set1_ps(self.error_scale), minus);
        // The half of padding is infinite.
        _mm512_cvtps_epi32(_mm512_max_ps(rest, _mm512_set1_ps(-MOST)))
    }

    /// Sums below this belong to bounds below the threshold.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn threshold(&self, side: &QuerySide) -> i32 {
        const MOST: f32 = (1 << 30) as f32;
        let reached = _mm_set_ss(side.threshold * self.per_bound - self.slack);
        // Thresholds may be infinite. No start and no sum is as large as half of MOST.
        let reached = _mm_max_ss(_mm_min_ss(reached, _mm_set_ss(MOST)), _mm_set_ss(-MOST));
        _mm_cvttss_si32(reached) - side.start
    }
}

/// See [`bounds_int8`](super::bounds_int8).
///
/// # Safety
/// The queries hold `Q` times as many integers as one word of the panel, a multiple of four.
#[target_feature(enable = "avx512f,avx512vnni")]
pub(super) unsafe fn int8<const Q: usize>(
    panel: &[u8],
    (unit, per_unit): (f32, f32),
    sides: Sides,
    queries: &[i8],
    (tile, query_sides): (&TileSide, &[QuerySide]),
    scores: &mut Scores,
) -> Hits {
    let n = panel.len() / WIDTH;
    let whole = Whole::new(tile, per_unit);
    let mut acc = [[_mm512_setzero_si512(); 4]; Q];
    if let Some(whole) = &whole {
        for v in 0..4 {
            let rest = whole.rest(sides, v);
            acc.iter_mut().for_each(|row| row[v] = rest);
        }
    }
    for g in 0..n / 4 {
        let mut words = [_mm512_setzero_si512(); 4];
        for (v, w) in words.iter_mut().enumerate() {
            // SAFETY: the panel holds n × 64 bytes.
            *w = unsafe { _mm512_loadu_si512(panel.as_ptr().add(g * 256 + 64 * v).cast()) };
        }
        for (q, row) in acc.iter_mut().enumerate() {
            // SAFETY: the queries hold Q × n bytes (the caller's).
            let four = unsafe {
                queries
                    .as_ptr()
                    .add(q * n + 4 * g)
                    .cast::<i32>()
                    .read_unaligned()
            };
            let x = _mm512_set1_epi32(four);
            for v in 0..4 {
                row[v] = _mm512_dpbusd_epi32(row[v], words[v], x);
            }
        }
    }
    let mut beyond = 0;
    match &whole {
        None => beyond = (1 << Q) - 1,
        Some(whole) => {
            for q in 0..Q {
                let least = _mm512_set1_epi32(whole.threshold(&query_sides[q]));
                let [a, b, c, d] = acc[q];
                let best = _mm512_max_epi32(_mm512_max_epi32(a, b), _mm512_max_epi32(c, d));
                beyond |= u32::from(_mm512_cmpge_epi32_mask(best, least) != 0) << q;
            }
        }
    }
    let mut hits = [0; TILE];
    if beyond != 0 {
        // A copy, so that the sums themselves stay in registers.
        let sums = acc;
        let sides = (sides, query_sides);
        report(&sums, beyond, &whole, unit, sides, (&mut hits, scores));
    }
    hits
}

/// Computes the bounds of some queries, a bit for each, and reports those that reach the thresholds.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f")]
fn report(
    sums: &[[__m512i; 4]],
    mut beyond: u32,
    whole: &Option<Whole>,
    unit: f32,
    (sides, query_sides): (Sides, &[QuerySide]),
    (hits, scores): (&mut Hits, &mut Scores),
) {
    while beyond != 0 {
        let q = beyond.trailing_zeros() as usize;
        beyond &= beyond - 1;
        let side = &query_sides[q];
        let scale = _mm512_set1_ps(side.scale);
        let mut row = [_mm512_setzero_ps(); 4];
        for v in 0..4 {
            let sum = match whole {
                Some(whole) => _mm512_sub_epi32(sums[q][v], whole.rest(sides, v)),
                None => sums[q][v],
            };
            let sum = _mm512_add_epi32(sum, _mm512_set1_epi32(side.start));
            let product = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(unit));
            row[v] = _mm512_fmadd_ps(product, scale, start_avx512(sides, v, side));
        }
        hits[q] = report_avx512(&row, side.threshold, &mut scores[q]);
    }
}
