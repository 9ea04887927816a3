//! Bounded distances: f32 distances of many vectors to many others, with a proved bound on the
//! relative error. A search for the few pairs that matter looks at these first and computes only
//! those pairs exactly. Euclidean, angular and Poincaré distances are computed by products of
//! vectors.
//!
//! **Products.** Let u = 2⁻²⁴ and s = ⌈n/16⌉. A lane of ⟨a, b⟩ is a chain of s fused multiply-adds,
//! and sixteen lanes are added in four levels. The error is at most γ·Σ|aᵢbᵢ| ≤ γ·‖a‖‖b‖ ≤
//! γ·(‖a‖² + ‖b‖²)/2, with γ = (s + 4)u/(1 - (s + 4)u).
//!
//! **Euclidean.** A squared norm is computed in f64 and rounded once. The sum of two norms is
//! rounded once. ‖a‖² + ‖b‖² - 2⟨a, b⟩, at most about twice that sum, is rounded once: together
//! about 4u(‖a‖² + ‖b‖²). So the error of a square is at most E·(‖a‖² + ‖b‖²), with
//! E = (s + 9)u·(1 + 2⁻¹⁰). If the square is at least a quarter of that sum,
//! its relative error is at most 4E/(1 - 4E). The root's relative error is about half of that, plus
//! u for its own rounding. All other distances, those of near vectors, are computed exactly and
//! rounded once.
//!
//! **Angular.** With r = 1/‖·‖, rounded once, cos θ = ⟨a, b⟩·r_a·r_b has an error of γ + 4u. The
//! square of the chord, 2 - 2 cos θ, has an error of 2γ + 12u. From 1/2 to 7/2, θ = 2
//! asin(√(chord²)/2); other angles are computed exactly. The relative change of θ is at most 0.523
//! times that of the square, attained at 1/2: 2.1γ + 13u.
//!
//! **Poincaré.** d = 2 arsinh(s) with s² = ‖a - b‖²/((1-‖a‖²)(1-‖b‖²)). The numerator is the
//! Euclidean square; near pairs are computed exactly. Two factors rounded once and two products add 4u. The root halves the
//! relative error, and arsinh's relative change is at most its argument's.
//!
//! asin and arsinh are series with a remainder below u and fewer than 16 roundings of u each.

use std::arch::x86_64::*;

use super::{Metric, norm2};
use crate::support::parallel::split;
use crate::support::prefetch::prefetch;
use crate::support::simd::Avx512;

/// Range of squared norms for which products, and the sums of their errors, stay far from both ends
/// of f32.
const NORMS: std::ops::Range<f64> = 1e-16..1e30;
/// The largest squared norm on the ball: closer to the boundary, 1 - ‖v‖² loses too many digits.
const INNER: f64 = 1.0 - 1e-7;
/// Maximum dimension: higher-order terms of the error bound stay small.
const MAX_DIM: usize = 1 << 16;

/// The largest relative error of [`BoundedRows::distances`] in `n` dimensions.
fn error(metric: Metric, n: usize) -> f64 {
    let unit = f64::from(f32::EPSILON) / 2.0;
    let steps = n.div_ceil(16) as f64;
    let square = (steps + 9.0) * unit * (1.0 + 1.0 / 1024.0);
    // Half of the relative error of a square that is 4 times as large, with higher-order terms.
    let root = 2.0 * square * (1.0 + 16.0 * square);
    match metric {
        Metric::Angular => (2.1 * (steps + 4.0) * (1.0 + 1.0 / 1024.0) + 13.0 + 18.0) * unit,
        Metric::Poincare => root + (2.0 + 18.0) * unit,
        _ => root + 2.0 * unit,
    }
}

/// The rows of a table of vectors, for bounded distances between them: each one's squared norm ‖v‖²,
/// NaN if it is out of range, and 1/‖v‖ for angles, 1/(1-‖v‖²) on the ball.
#[derive(Debug)]
pub(crate) struct BoundedRows {
    metric: Metric,
    rows: Vec<[f32; 2]>,
    /// The proof that the machine has the instructions.
    _avx512: Avx512,
}

impl BoundedRows {
    /// Looks at row-major vectors; `None` if the machine or the metric has no bounded distances.
    pub(crate) fn new(metric: Metric, vectors: &[f32], dim: usize) -> Option<Self> {
        let avx512 = Avx512::detect()?;
        if matches!(metric, Metric::Manhattan | Metric::Chebyshev) || dim > MAX_DIM {
            return None;
        }
        let mut rows = vec![[0.0; 2]; vectors.len() / dim.max(1)];
        const ROWS_PER_TASK: usize = 1024;
        let vectors = vectors.chunks(ROWS_PER_TASK * dim.max(1));
        let tasks = rows.chunks_mut(ROWS_PER_TASK).zip(vectors);
        split(tasks.collect(), |(rows, vectors)| {
            for (row, vector) in rows.iter_mut().zip(vectors.chunks_exact(dim)) {
                let norm = norm2(vector);
                // A zero vector has exact products.
                let zero = norm == 0.0 && vector.iter().all(|&x| x == 0.0);
                let (usable, factor) = match metric {
                    Metric::Angular => (NORMS.contains(&norm), norm.sqrt().recip()),
                    Metric::Poincare => (
                        (norm >= NORMS.start || zero) && norm <= INNER,
                        (1.0 - norm).recip(),
                    ),
                    _ => (NORMS.contains(&norm) || zero, 1.0),
                };
                *row = [if usable { norm as f32 } else { f32::NAN }, factor as f32];
            }
        });
        Some(BoundedRows {
            metric,
            rows,
            _avx512: avx512,
        })
    }

    /// Writes the distances between every row of `a` and every row of `b` of the table's `vectors`.
    /// Row i of `out` starts at i · `stride`, a multiple of 16 that is at least `b.len()`. A row is
    /// padded with +∞ to a multiple of 16; the rest is not touched. Returns the largest relative
    /// error, or `None` if a vector is out of range.
    pub(crate) fn distances(
        &self,
        vectors: &[f32],
        a: &[u32],
        b: &[u32],
        out: &mut [f32],
        stride: usize,
    ) -> Option<f64> {
        assert!(stride.is_multiple_of(16) && stride >= b.len() && out.len() >= a.len() * stride);
        let dim = vectors.len() / self.rows.len();
        let (a, b) = (self.side(vectors, dim, a)?, self.side(vectors, dim, b)?);
        // SAFETY: the features were detected; all vectors have one length.
        unsafe { distances_avx512(self.metric, &a, &b, out, stride) };
        Some(error(self.metric, dim))
    }

    fn side<'v>(&self, vectors: &'v [f32], dim: usize, ids: &[u32]) -> Option<Side<'v>> {
        let padded = ids.len().next_multiple_of(16);
        let mut side = Side {
            vectors: Vec::with_capacity(ids.len()),
            norms: vec![1.0; padded],
            factors: vec![1.0; padded],
        };
        let slots = side.norms.iter_mut().zip(&mut side.factors);
        for (&id, slot) in ids.iter().zip(slots) {
            let at = id as usize;
            side.vectors.push(&vectors[at * dim..][..dim]);
            (*slot.0, *slot.1) = self.rows[at].into();
        }
        (!side.norms.iter().any(|norm| norm.is_nan())).then_some(side)
    }
}

/// Vectors and the values that products with them need, padded to a multiple of sixteen.
struct Side<'a> {
    vectors: Vec<&'a [f32]>,
    norms: Vec<f32>,
    factors: Vec<f32>,
}

/// A mask of the first lanes of sixteen.
#[inline]
fn lanes(count: usize) -> u16 {
    match count {
        0..16 => (1 << count) - 1,
        _ => u16::MAX,
    }
}

/// Vectors of each side in a tile: 25 sums, and 10 loads for 25 multiplications.
const TILE: usize = 5;
/// Rows that stay in the first-level cache while the columns pass: whole tiles.
const ROWS: usize = 5 * TILE;

/// The lane sums of up to sixteen vectors, in order; 0 for missing vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn sums(vectors: &[__m512]) -> __m512 {
    let of = |t: usize| vectors.get(t).copied().unwrap_or(_mm512_setzero_ps());
    // Combine four vectors' lanes into four lanes in each quarter. Blends replace shuffles where
    // possible, because only one port shuffles.
    let pair = |a, b| {
        _mm512_add_ps(
            _mm512_mask_blend_ps(0b1100_1100_1100_1100, a, b),
            _mm512_shuffle_ps::<0b01_00_11_10>(a, b),
        )
    };
    let four = |t: usize| {
        let (ab, cd) = (pair(of(t), of(t + 1)), pair(of(t + 2), of(t + 3)));
        _mm512_add_ps(
            _mm512_shuffle_ps::<0b10_00_10_00>(ab, cd),
            _mm512_shuffle_ps::<0b11_01_11_01>(ab, cd),
        )
    };
    // Combine the quarters of two vectors: even ones and odd ones.
    let halve = |a, b| {
        _mm512_add_ps(
            _mm512_shuffle_f32x4::<0b10_00_10_00>(a, b),
            _mm512_shuffle_f32x4::<0b11_01_11_01>(a, b),
        )
    };
    halve(halve(four(0), four(4)), halve(four(8), four(12)))
}

/// 2 asin(√c/2) for 1/2 ≤ c ≤ 7/2; for c above 2 computed as π - 2 asin(√(4 - c)/2).
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn angle(squares: __m512) -> __m512 {
    let two = _mm512_set1_ps(2.0);
    let blunt = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(squares, two);
    let small = _mm512_mask_sub_ps(squares, blunt, _mm512_set1_ps(4.0), squares);
    // asin(x)/x as a series in x² ≤ 1/2.
    let x2 = _mm512_mul_ps(small, _mm512_set1_ps(0.25));
    let mut series = _mm512_set1_ps(ASIN[0]);
    for &c in &ASIN[1..] {
        series = _mm512_fmadd_ps(series, x2, _mm512_set1_ps(c));
    }
    let acute = _mm512_mul_ps(_mm512_sqrt_ps(small), series);
    let pi = _mm512_set1_ps(std::f32::consts::PI);
    _mm512_mask_sub_ps(acute, blunt, pi, acute)
}

/// The coefficients (2k)!/(4^k·k!²·(2k + 1)) of asin, highest first; the remainder is below 2⁻²⁵
/// for x² ≤ 1/2.
const ASIN: [f32; 19] = {
    let mut series = [0.0; 19];
    let (mut k, mut c) = (0, 1.0f64);
    while k < series.len() {
        series[series.len() - 1 - k] = (c / (2 * k + 1) as f64) as f32;
        c *= (2 * k + 1) as f64 / (2 * k + 2) as f64;
        k += 1;
    }
    series
};

/// 2 arsinh(√q).
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn ball(q: __m512) -> __m512 {
    let (one, two) = (_mm512_set1_ps(1.0), _mm512_set1_ps(2.0));
    // arsinh(s) = ln(1 + y), y = s + s²/(1 + √(1 + s²)).
    let root = _mm512_add_ps(one, _mm512_sqrt_ps(_mm512_add_ps(one, q)));
    let y = _mm512_add_ps(_mm512_sqrt_ps(q), _mm512_div_ps(q, root));
    // 1 + y = 2ᵏ·(1 + f), f from √½ - 1 to √2 - 1, and f = y where k = 0.
    let x = _mm512_add_ps(one, y);
    let k = _mm512_getexp_ps(_mm512_mul_ps(x, _mm512_set1_ps(std::f32::consts::SQRT_2)));
    let whole = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(k, _mm512_setzero_ps());
    let scaled = _mm512_scalef_ps(x, _mm512_sub_ps(_mm512_setzero_ps(), k));
    let f = _mm512_mask_sub_ps(y, whole, scaled, one);
    // ln(1 + f) = 2 atanh(t), t = f/(2 + f), |t| ≤ 0.172.
    let t = _mm512_div_ps(f, _mm512_add_ps(two, f));
    let t2 = _mm512_mul_ps(t, t);
    let mut series = _mm512_set1_ps(1.0 / 11.0);
    for c in [1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0] {
        series = _mm512_fmadd_ps(series, t2, _mm512_set1_ps(c));
    }
    let ln = _mm512_mul_ps(_mm512_mul_ps(two, t), series);
    let ln = _mm512_fmadd_ps(k, _mm512_set1_ps(std::f32::consts::LN_2), ln);
    _mm512_mul_ps(two, ln)
}

/// Computes [`BoundedRows::distances`].
///
/// # Safety
/// The vectors of both sides have one length.
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
unsafe fn distances_avx512(
    metric: Metric,
    side_a: &Side<'_>,
    side_b: &Side<'_>,
    out: &mut [f32],
    stride: usize,
) {
    let (a, b) = (&side_a.vectors[..], &side_b.vectors[..]);
    for first in (0..a.len()).step_by(ROWS) {
        let rows = first..a.len().min(first + ROWS);
        for j in (0..b.len()).step_by(TILE) {
            for (tile, i) in rows.clone().step_by(TILE).enumerate() {
                // Each tile of these columns prefetches one of the next.
                let next = b.get(j + TILE + tile).unwrap_or(&a[i]);
                let (a, out) = (&a[i..], &mut out[i * stride..]);
                // SAFETY: guaranteed by the caller.
                unsafe {
                    match rows.end - i {
                        1 => products::<1>(a, b, j, next, out, stride),
                        2 => products::<2>(a, b, j, next, out, stride),
                        3 => products::<3>(a, b, j, next, out, stride),
                        4 => products::<4>(a, b, j, next, out, stride),
                        _ => products::<TILE>(a, b, j, next, out, stride),
                    }
                }
            }
        }
        for i in rows {
            finish(metric, side_a, i, side_b, &mut out[i * stride..][..stride]);
        }
    }
}

/// Computes ⟨a, b⟩ of the first R vectors of `a` and [`TILE`] of `b` from j on, and prefetches
/// `next`. Row i of `out` starts at i · `stride`.
///
/// # Safety
/// The vectors of `a` and `b` have one length.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
unsafe fn products<const R: usize>(
    a: &[&[f32]],
    b: &[&[f32]],
    j: usize,
    next: &[f32],
    out: &mut [f32],
    stride: usize,
) {
    let n = a[0].len();
    let next = next.as_ptr();
    let pa: [*const f32; R] = std::array::from_fn(|t| a[t].as_ptr());
    // The last vector replaces those beyond the end.
    let pb: [*const f32; TILE] = std::array::from_fn(|t| b[(j + t).min(b.len() - 1)].as_ptr());
    let mut tile = [[_mm512_setzero_ps(); TILE]; R];
    let mut add = |at: usize, mask: u16| {
        prefetch(next.wrapping_add(at));
        // SAFETY: the lanes in the mask lie within the vectors, which have n numbers.
        let y: [__m512; TILE] =
            std::array::from_fn(|t| unsafe { _mm512_maskz_loadu_ps(mask, pb[t].add(at)) });
        for (sums, pa) in tile.iter_mut().zip(pa) {
            // SAFETY: as above.
            let x = unsafe { _mm512_maskz_loadu_ps(mask, pa.add(at)) };
            for (sum, y) in sums.iter_mut().zip(y) {
                *sum = _mm512_fmadd_ps(x, y, *sum);
            }
        }
    };
    let whole = n / 16 * 16;
    for at in (0..whole).step_by(16) {
        add(at, u16::MAX);
    }
    if whole < n {
        add(whole, lanes(n - whole));
    }
    let tile = tile.as_flattened();
    let mut found = [0.0f32; 32];
    // SAFETY: the array has twice 16 numbers.
    unsafe {
        _mm512_storeu_ps(found.as_mut_ptr(), sums(&tile[..tile.len().min(16)]));
        if tile.len() > 16 {
            _mm512_storeu_ps(found.as_mut_ptr().add(16), sums(&tile[16..]));
        }
    }
    let rows = found.as_chunks::<TILE>().0;
    for (out, found) in out.chunks_mut(stride).zip(&rows[..R]) {
        match out[j..b.len()].first_chunk_mut::<TILE>() {
            Some(out) => *out = *found,
            None => copy_part(&mut out[j..b.len()], found),
        }
    }
}

/// A separate function, so that whole tiles are copied by instructions instead of a call.
#[cold]
#[inline(never)]
fn copy_part(out: &mut [f32], found: &[f32; TILE]) {
    out.copy_from_slice(&found[..out.len()]);
}

/// Turns the products of row i, which are in `out`, into distances, padded with +∞ to a multiple of
/// sixteen.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn finish(metric: Metric, side_a: &Side<'_>, i: usize, side_b: &Side<'_>, out: &mut [f32]) {
    let (a, b) = (side_a.vectors[i], &side_b.vectors);
    let norm_a = _mm512_set1_ps(side_a.norms[i]);
    for (j, out) in (0..b.len()).step_by(16).zip(out.as_chunks_mut::<16>().0) {
        let valid = lanes(b.len() - j);
        // SAFETY: there are 16 numbers each.
        let products = unsafe { _mm512_loadu_ps(out.as_ptr()) };
        let factor = || {
            let factor_a = _mm512_set1_ps(side_a.factors[i]);
            // SAFETY: as above.
            let factor_b = unsafe { _mm512_loadu_ps(side_b.factors[j..][..16].as_ptr()) };
            _mm512_mul_ps(factor_a, factor_b)
        };
        let (both, products) = match metric {
            Metric::Angular => (_mm512_set1_ps(2.0), _mm512_mul_ps(products, factor())),
            _ => {
                // SAFETY: as above.
                let norm_b = unsafe { _mm512_loadu_ps(side_b.norms[j..][..16].as_ptr()) };
                (_mm512_add_ps(norm_a, norm_b), products)
            }
        };
        let squares = _mm512_fnmadd_ps(_mm512_set1_ps(2.0), products, both);
        let quarter = _mm512_mul_ps(both, _mm512_set1_ps(0.25));
        let mut near = _mm512_cmp_ps_mask::<_CMP_NGE_UQ>(squares, quarter);
        let found = match metric {
            Metric::Angular => {
                let most = _mm512_set1_ps(3.5);
                near |= _mm512_cmp_ps_mask::<_CMP_NLE_UQ>(squares, most);
                angle(squares)
            }
            Metric::Poincare => ball(_mm512_mul_ps(squares, factor())),
            _ => _mm512_sqrt_ps(squares),
        };
        let found = _mm512_mask_mov_ps(_mm512_set1_ps(f32::INFINITY), valid, found);
        // SAFETY: as above.
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), found) };
        let mut near = near & valid;
        while near != 0 {
            let l = near.trailing_zeros() as usize;
            out[l] = metric.distance(a, b[j + l]) as f32;
            near &= near - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        /// Compares with plain f64 at odd sizes: far, near, equal and parallel vectors of any
        /// scale.
        #[test]
        fn bounded_distances_are_within_their_error(
            n in 1usize..90, rows in 1usize..60, columns in 1usize..40,
            scale in -20i32..4, common in 0.0f32..1.0, seed: u64
        ) {
            use rand::RngExt;
            let mut rng = crate::testing::rng(seed);
            let scale = 2f32.powi(scale);
            let mut vector = || -> Vec<f32> {
                (0..n).map(|_| (rng.random::<f32>() - 0.5 + common) * scale).collect()
            };
            let a: Vec<Vec<f32>> = (0..rows).map(|_| vector()).collect();
            let mut b: Vec<Vec<f32>> = (0..columns).map(|_| vector()).collect();
            b[0] = a[0].clone();
            if let Some(b) = b.get_mut(1) {
                *b = a[0].iter().map(|x| x * (1.0 + 2f32.powi(-12))).collect();
            }
            let stride = columns.next_multiple_of(16);
            let mut out = vec![0.0; rows * stride];
            let table = [a.concat(), b.concat()].concat();
            let ids: Vec<u32> = (0..(rows + columns) as u32).collect();
            let (ids_a, ids_b) = ids.split_at(rows);
            for metric in [Metric::Euclidean, Metric::Angular, Metric::Poincare] {
                let inside = a.iter().chain(&b).all(|v| metric.refuse(v).is_none());
                if !inside {
                    continue;
                }
                let found = BoundedRows::new(metric, &table, n)
                    .and_then(|all| all.distances(&table, ids_a, ids_b, &mut out, stride));
                let Some(error) = found else { continue };
                prop_assert!(error < 1e-5);
                for (i, a) in a.iter().enumerate() {
                    for (j, b) in b.iter().enumerate() {
                        let exact = metric.distance(a, b);
                        let found = f64::from(out[i * stride + j]);
                        let off = (found - exact).abs();
                        prop_assert!(off <= error * exact, "{metric} {found} {exact}");
                    }
                    let padding = &out[i * stride..][columns..stride];
                    prop_assert!(padding.iter().all(|&d| d == f32::INFINITY));
                }
            }
        }
    }

    #[test]
    fn numbers_beyond_f32_are_refused() {
        if Avx512::detect().is_none() {
            return;
        }
        let table = [[1.0f32; 3], [1e-12; 3], [1e18; 3], [0.0; 3]].concat();
        let rows = BoundedRows::new(Metric::Euclidean, &table, 3).unwrap();
        let in_range = |a, b| {
            rows.distances(&table, &[a], &[b], &mut [0.0; 16], 16)
                .is_some()
        };
        assert!(in_range(0, 3) && !in_range(0, 1) && !in_range(2, 0));
        let none = |metric| BoundedRows::new(metric, &table, 3).is_none();
        assert!(none(Metric::Manhattan) && none(Metric::Chebyshev));
    }
}
