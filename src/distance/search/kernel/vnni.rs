//! The 8-bit bounds with AVX-512 VNNI.
//!
//! Products take one instruction for sixteen words and four coordinates. To turn a sum into a bound
//! and compare it takes six more, which is a third of the time at 50 coordinates. So a coarse
//! comparison comes first. A tile's queries have one unit, and the sums begin with the rest of the
//! bound, as whole numbers. Then three instructions tell whether any of 64 words can reach
//! a query's threshold. Only if one can, the query gets bounds. Where many words are wanted, most
//! panels have one, and all queries get bounds at once.

use std::arch::x86_64::*;

use super::{Hits, QuerySide, Scores, Sides, TILE, Units, WIDTH, report_avx512, start_avx512};

/// Whole numbers below this are added without overflow.
const MOST: f32 = (1 << 28) as f32;
/// Sixteen times the relative error of an f32.
const RELATIVE: f32 = 16.0 / (1 << 24) as f32;

/// What the queries of a tile have in common; by default nothing, and all get bounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TileSide {
    /// The reciprocal of the unit of all queries; 0 if they have several.
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
            per_scale: if alike { scale.recip() } else { 0.0 },
            error_scale,
            rest: error_scale + half as f32,
            product: width as f32 * 128.0 * 255.0,
        }
    }
}

/// Bounds of a tile, in units of its queries.
#[derive(Clone, Copy)]
struct Coarse {
    /// The reciprocal of the queries' unit.
    per_scale: f32,
    error_scale: f32,
    /// More than rounding can change, as a multiple of a word's unit.
    slack: f32,
}

impl Coarse {
    /// `None` if numbers are too large. `per_unit` is the reciprocal of the words' least unit.
    #[inline]
    fn new(tile: &TileSide, per_unit: f32) -> Option<Self> {
        let rest = tile.rest * tile.per_scale * per_unit;
        // NaNs are not less.
        let fits = tile.per_scale > 0.0 && rest < MOST && tile.product < MOST;
        fits.then_some(Coarse {
            per_scale: tile.per_scale,
            error_scale: tile.error_scale * tile.per_scale,
            // A threshold that a sum can just reach is as large as these, or smaller.
            slack: 2.0 + 4.0 * (rest + tile.product) * RELATIVE,
        })
    }

    /// The rest of the bounds of a quarter of the words, rounded to whole multiples of their units.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn rest(&self, sides: Sides, units: &Units, v: usize) -> __m512i {
        let (half, error_share) = (load(sides.half, v), load(sides.error_share, v));
        let per_unit = load(&units.per_unit, v);
        let minus = _mm512_mul_ps(half, _mm512_set1_ps(-self.per_scale));
        let rest = _mm512_fmadd_ps(error_share, _mm512_set1_ps(self.error_scale), minus);
        let rest = _mm512_fmadd_ps(rest, per_unit, _mm512_set1_ps(self.slack));
        // The half of padding is infinite.
        _mm512_cvtps_epi32(_mm512_max_ps(rest, _mm512_set1_ps(-MOST)))
    }
}

/// Adds the products of all coordinates to the sums. Searches took 9% longer when it was a function.
macro_rules! add_products {
    ($acc:ident, $panel:ident, $queries:ident) => {
        let n = $panel.len() / WIDTH;
        for g in 0..n / 4 {
            let mut words = [_mm512_setzero_si512(); 4];
            for (v, w) in words.iter_mut().enumerate() {
                // SAFETY: the panel holds n × 64 bytes.
                *w = unsafe { _mm512_loadu_si512($panel.as_ptr().add(g * 256 + 64 * v).cast()) };
            }
            for (q, row) in $acc.iter_mut().enumerate() {
                // SAFETY: the queries hold Q × n bytes (the caller's).
                let four = unsafe {
                    $queries
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
    };
}

/// See [`bounds_int8`](super::bounds_int8).
///
/// # Safety
/// The queries hold `Q` times as many integers as one word of the panel, a multiple of four.
#[target_feature(enable = "avx512f,avx512vnni")]
pub(super) unsafe fn int8<const Q: usize>(
    panel: &[u8],
    units: &Units,
    sides: Sides,
    queries: &[i8],
    (tile, query_sides): (&TileSide, &[QuerySide]),
    scores: &mut Scores,
) -> Hits {
    if tile.per_scale == 0.0 {
        // SAFETY: the same conditions.
        return unsafe { all_bounds::<Q>(panel, units, sides, queries, query_sides, scores) };
    }
    let coarse = Coarse::new(tile, units.most_per_unit);
    let mut acc = [[_mm512_setzero_si512(); 4]; Q];
    let rest = rest(&coarse, sides, units);
    for (row, side) in acc.iter_mut().zip(query_sides) {
        *row = rest.map(|rest| _mm512_add_epi32(rest, _mm512_set1_epi32(side.start)));
    }
    add_products!(acc, panel, queries);
    let mut beyond = (1 << Q) - 1;
    if let Some(coarse) = &coarse {
        beyond = 0;
        let unit: [__m512; 4] = std::array::from_fn(|v| load(&units.unit, v));
        for q in 0..Q {
            let [a, b, c, d] =
                std::array::from_fn(|v| _mm512_mul_ps(_mm512_cvtepi32_ps(acc[q][v]), unit[v]));
            let best = _mm512_max_ps(_mm512_max_ps(a, b), _mm512_max_ps(c, d));
            let least = _mm512_set1_ps(query_sides[q].threshold * coarse.per_scale);
            beyond |= u32::from(_mm512_cmp_ps_mask::<_CMP_GE_OQ>(best, least) != 0) << q;
        }
    }
    let mut hits = [0; TILE];
    if beyond != 0 {
        // A copy, so that the sums themselves stay in registers.
        let sums = acc;
        let of_words = (sides, units);
        report(
            &sums,
            beyond,
            &coarse,
            of_words,
            query_sides,
            (&mut hits, scores),
        );
    }
    hits
}

/// Computes and stores the bounds of all queries. Where most panels have a word for a query, that
/// takes less time than to find out first. A function of its own: with two uses of the sums, neither
/// would keep them in registers.
///
/// # Safety
/// As for [`int8`].
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn all_bounds<const Q: usize>(
    panel: &[u8],
    units: &Units,
    sides: Sides,
    queries: &[i8],
    query_sides: &[QuerySide],
    scores: &mut Scores,
) -> Hits {
    let mut acc = [[_mm512_setzero_si512(); 4]; Q];
    for (row, side) in acc.iter_mut().zip(query_sides) {
        *row = [_mm512_set1_epi32(side.start); 4];
    }
    add_products!(acc, panel, queries);
    let mut hits = [0; TILE];
    for q in 0..Q {
        hits[q] = bounds(&acc[q], sides, units, &query_sides[q], &mut scores[q]);
    }
    hits
}

/// Computes and stores the bounds of a query.
#[inline]
#[target_feature(enable = "avx512f")]
fn bounds(
    sums: &[__m512i; 4],
    sides: Sides,
    units: &Units,
    side: &QuerySide,
    scores: &mut [f32; WIDTH],
) -> u64 {
    let scale = _mm512_set1_ps(side.scale);
    let threshold = _mm512_set1_ps(side.threshold);
    let mut hits = 0;
    for (v, &sum) in sums.iter().enumerate() {
        let product = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), load(&units.unit, v));
        let bound = _mm512_fmadd_ps(product, scale, start_avx512(sides, v, side));
        hits |= u64::from(_mm512_cmp_ps_mask::<_CMP_GE_OQ>(bound, threshold)) << (16 * v);
        // SAFETY: there are 64 numbers.
        unsafe { _mm512_storeu_ps(scores.as_mut_ptr().add(16 * v), bound) };
    }
    hits
}

/// What the sums of a panel begin with, besides the queries' starts.
#[inline]
#[target_feature(enable = "avx512f")]
fn rest(coarse: &Option<Coarse>, sides: Sides, units: &Units) -> [__m512i; 4] {
    std::array::from_fn(|v| match coarse {
        Some(coarse) => coarse.rest(sides, units, v),
        None => _mm512_setzero_si512(),
    })
}

/// A quarter of the numbers of a panel's words.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(numbers: &[f32; WIDTH], v: usize) -> __m512 {
    // SAFETY: there are sixteen numbers.
    unsafe { _mm512_loadu_ps(numbers[16 * v..16 * v + 16].as_ptr()) }
}

/// Computes the bounds of some queries, a bit for each, and reports those that reach the thresholds.
#[inline(never)]
#[target_feature(enable = "avx512f")]
fn report(
    sums: &[[__m512i; 4]],
    mut beyond: u32,
    coarse: &Option<Coarse>,
    (sides, units): (Sides, &Units),
    query_sides: &[QuerySide],
    (hits, scores): (&mut Hits, &mut Scores),
) {
    let rest = rest(coarse, sides, units);
    while beyond != 0 {
        let q = beyond.trailing_zeros() as usize;
        beyond &= beyond - 1;
        let side = &query_sides[q];
        let scale = _mm512_set1_ps(side.scale);
        let row: [__m512; 4] = std::array::from_fn(|v| {
            let sum = _mm512_cvtepi32_ps(_mm512_sub_epi32(sums[q][v], rest[v]));
            let product = _mm512_mul_ps(sum, load(&units.unit, v));
            _mm512_fmadd_ps(product, scale, start_avx512(sides, v, side))
        });
        hits[q] = report_avx512(&row, side.threshold, &mut scores[q]);
    }
}
