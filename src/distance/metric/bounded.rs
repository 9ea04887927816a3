//! Bounded distances: f32 distances of many vectors to many others, with a proved bound on the
//! relative error. A search for the few pairs that matter looks at these first and computes only
//! those pairs exactly. Euclidean, angular and Poincaré distances are computed by products of
//! vectors.
//!
//! **Products.** Let u = 2⁻²⁴ and s = ⌈n/16⌉. A lane of ⟨a, b⟩ is a chain of s fused multiply-adds,
//! and sixteen lanes are added in four levels. The error is at most γ·Σ|aᵢbᵢ| ≤ γ·‖a‖‖b‖ ≤
//! γ·(‖a‖² + ‖b‖²)/2, with γ = (s + 4)u/(1 - (s + 4)u).
//!
//! **Euclidean.** A squared norm is four chains of ⌈s/4⌉ fused steps in each of sixteen lanes,
//! added in six levels. All terms are positive, so its relative error is about (⌈s/4⌉ + 6)u. The
//! sum of two norms is rounded once. ‖a‖² + ‖b‖² - 2⟨a, b⟩, at most about twice that sum, is
//! rounded once: together about 3u(‖a‖² + ‖b‖²). So the error of a square is at most E·(‖a‖² +
//! ‖b‖²), with E = (s + ⌈s/4⌉ + 14)u·(1 + 2⁻¹⁰). If the square is at least a quarter of that sum,
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
//! Euclidean square with squared norms from f64, rounded once: E = (s + 9)u·(1 + 2⁻¹⁰); near pairs
//! are computed exactly. Two factors rounded once and two products add 4u. The root halves the
//! relative error, and arsinh's relative change is at most its argument's.
//!
//! asin and arsinh are series with a remainder below u and fewer than 16 roundings of u each.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Metric;
#[cfg(target_arch = "x86_64")]
use crate::support::prefetch::prefetch;

/// Range of squared norms for which products, and the sums of their errors, stay far from both ends
/// of f32.
#[cfg(target_arch = "x86_64")]
const NORMS: std::ops::Range<f64> = 1e-16..1e30;
/// The largest squared norm on the ball: closer to the boundary, 1 - ‖v‖² loses too many digits.
#[cfg(target_arch = "x86_64")]
const INNER: f64 = 1.0 - 1e-7;
/// Maximum dimension: higher-order terms of the error bound stay small.
#[cfg(target_arch = "x86_64")]
const MAX_DIM: usize = 1 << 16;

/// The largest relative error of [`distances`] in `n` dimensions.
#[cfg(target_arch = "x86_64")]
fn error(metric: Metric, n: usize) -> f64 {
    let unit = f64::from(f32::EPSILON) / 2.0;
    let steps = n.div_ceil(16) as f64;
    let norms = match metric {
        Metric::Poincare => 1.0,
        _ => (steps / 4.0).ceil() + 6.0,
    };
    let square = (steps + norms + 8.0) * unit * (1.0 + 1.0 / 1024.0);
    // Half of the relative error of a square that is 4 times as large, with higher-order terms.
    let root = 2.0 * square * (1.0 + 16.0 * square);
    match metric {
        Metric::Angular => (2.1 * (steps + 4.0) * (1.0 + 1.0 / 1024.0) + 13.0 + 18.0) * unit,
        Metric::Poincare => root + (2.0 + 18.0) * unit,
        _ => root + 2.0 * unit,
    }
}

/// Whether bounded distances of a metric are available on this machine.
pub(crate) fn available(metric: Metric) -> bool {
    #[cfg(target_arch = "x86_64")]
    return matches!(
        metric,
        Metric::Euclidean | Metric::Angular | Metric::Poincare
    ) && crate::support::simd::Avx512::detect().is_some();
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = metric;
        false
    }
}

/// Squared norms in f32 of the rows computed before, 0 for the others: saves a pass over the
/// vectors.
#[derive(Debug)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) struct Norms(Box<[AtomicU32]>);

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
impl Norms {
    pub(crate) fn new(rows: usize) -> Self {
        Norms((0..rows).map(|_| AtomicU32::new(0)).collect())
    }

    fn get(&self, row: u32) -> f32 {
        f32::from_bits(self.0[row as usize].load(Ordering::Relaxed))
    }

    /// Every thread computes the same number, so threads need not wait for each other.
    fn put(&self, row: u32, norm: f32) {
        self.0[row as usize].store(norm.to_bits(), Ordering::Relaxed);
    }
}

/// Vectors of one length. If they are rows of a table with cached norms, also their row numbers.
#[derive(Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) struct Vectors<'a> {
    pub(crate) vectors: &'a [&'a [f32]],
    pub(crate) rows: Option<(&'a Norms, &'a [u32])>,
}

/// Writes the distances between every vector of `a` and every vector of `b`. Row i of `out` starts
/// at i · `stride`, a multiple of 16 that is at least `b.len()`. A row is padded with +∞ to a
/// multiple of 16; the rest is not touched. Returns the largest relative error, or `None` if the
/// machine, the metric or the vectors do not allow it.
pub(crate) fn distances(
    metric: Metric,
    a: Vectors<'_>,
    b: Vectors<'_>,
    out: &mut [f32],
    stride: usize,
) -> Option<f64> {
    #[cfg(target_arch = "x86_64")]
    if available(metric) {
        let (rows, columns) = (a.vectors.len(), b.vectors.len());
        let n = a.vectors.first()?.len();
        assert!(stride.is_multiple_of(16) && stride >= columns && out.len() >= rows * stride);
        assert!(a.vectors.iter().chain(b.vectors).all(|v| v.len() == n));
        if n > MAX_DIM {
            return None;
        }
        // SAFETY: the features were detected; lengths were checked.
        unsafe {
            let (a, b) = (Side::of(metric, a)?, Side::of(metric, b)?);
            distances_avx512(metric, &a, &b, out, stride);
        }
        return Some(error(metric, n));
    }
    let _ = (metric, a, b, out, stride);
    None
}

/// Vectors and the values that products with them need, padded to a multiple of sixteen.
#[cfg(target_arch = "x86_64")]
struct Side<'a> {
    vectors: &'a [&'a [f32]],
    /// The squared norms ‖v‖².
    norms: Vec<f32>,
    /// 1/‖v‖ for angles, 1/(1-‖v‖²) on the ball, otherwise empty.
    factors: Vec<f32>,
}

#[cfg(target_arch = "x86_64")]
impl<'a> Side<'a> {
    /// Returns `None` if a vector is out of range.
    ///
    /// # Safety
    /// The vectors have one length.
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    unsafe fn of(metric: Metric, given: Vectors<'a>) -> Option<Self> {
        let vectors = given.vectors;
        let padded = vectors.len().next_multiple_of(16);
        let mut norms = Vec::with_capacity(padded);
        let mut factors = Vec::new();
        // A zero vector has exact products.
        let zero = |norm: f64, v: &[f32]| norm == 0.0 && v.iter().all(|&x| x == 0.0);
        if metric == Metric::Euclidean {
            let mut groups = vectors.chunks(4).enumerate().peekable();
            while let Some((k, four)) = groups.next() {
                let rows = given
                    .rows
                    .map(|(norms, rows)| (norms, &rows[4 * k..][..four.len()]));
                let mut found = [0.0; 4];
                if let Some((norms, rows)) = rows {
                    found
                        .iter_mut()
                        .zip(rows)
                        .for_each(|(f, &row)| *f = norms.get(row));
                }
                if found[..four.len()].contains(&0.0) {
                    let next = groups.peek().map_or(four, |next| next.1);
                    // SAFETY: guaranteed by the caller.
                    found = unsafe { squared_norms(four, next) };
                    if let Some((norms, rows)) = rows {
                        rows.iter()
                            .zip(found)
                            .for_each(|(&row, norm)| norms.put(row, norm));
                    }
                }
                for (&norm, vector) in found.iter().zip(four) {
                    let wide = f64::from(norm);
                    if !(NORMS.contains(&wide) || zero(wide, vector)) {
                        return None;
                    }
                    norms.push(norm);
                }
            }
        } else {
            factors.reserve(padded);
            for vector in vectors {
                let norm = squared_norm(vector);
                let usable = match metric {
                    Metric::Angular => NORMS.contains(&norm),
                    _ => (norm >= NORMS.start || zero(norm, vector)) && norm <= INNER,
                };
                if !usable {
                    return None;
                }
                norms.push(norm as f32);
                factors.push(match metric {
                    Metric::Angular => norm.sqrt().recip() as f32,
                    _ => (1.0 - norm).recip() as f32,
                });
            }
            factors.resize(padded, 1.0);
        }
        norms.resize(padded, 1.0);
        Some(Side {
            vectors,
            norms,
            factors,
        })
    }
}

/// Computes ‖v‖² of up to four vectors of one length in f32, and prefetches the `next` ones.
///
/// # Safety
/// The vectors have one length; there is at least one vector, and at least one in `next`.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
unsafe fn squared_norms(vectors: &[&[f32]], next: &[&[f32]]) -> [f32; 4] {
    let n = vectors[0].len();
    // The last vector replaces those beyond the end.
    let [of, next] = [vectors, next].map(|vectors| -> [*const f32; 4] {
        std::array::from_fn(|t| vectors[t.min(vectors.len() - 1)].as_ptr())
    });
    let mut chains = [[_mm512_setzero_ps(); 4]; 4];
    for first in (0..n).step_by(4 * 16) {
        for c in 0..4 {
            let at = first + 16 * c;
            let mask = lanes(n.saturating_sub(at));
            if mask == 0 {
                break;
            }
            for ((chains, of), next) in chains.iter_mut().zip(of).zip(next) {
                prefetch(next.wrapping_add(at));
                // SAFETY: the lanes in the mask lie within the vector, which has n numbers.
                let x = unsafe { _mm512_maskz_loadu_ps(mask, of.add(at)) };
                chains[c] = _mm512_fmadd_ps(x, x, chains[c]);
            }
        }
    }
    let mut parts = [0.0f32; 16];
    // SAFETY: the array has 16 numbers.
    unsafe { _mm512_storeu_ps(parts.as_mut_ptr(), sums(chains.as_flattened())) };
    std::array::from_fn(|t| {
        (parts[4 * t] + parts[4 * t + 1]) + (parts[4 * t + 2] + parts[4 * t + 3])
    })
}

/// A mask of the first lanes of sixteen.
#[cfg(target_arch = "x86_64")]
#[inline]
fn lanes(count: usize) -> u16 {
    match count {
        0..16 => (1 << count) - 1,
        _ => u16::MAX,
    }
}

/// Computes ‖v‖² with an error below f32 precision.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn squared_norm(vector: &[f32]) -> f64 {
    // Four chains, to hide the latency of an addition.
    let mut sums = [_mm512_setzero_pd(); 4];
    let (chunks, rest) = vector.as_chunks::<32>();
    for chunk in chunks {
        for (sum, eight) in sums.iter_mut().zip(chunk.as_chunks::<8>().0) {
            // SAFETY: there are eight numbers.
            let x = _mm512_cvtps_pd(unsafe { _mm256_loadu_ps(eight.as_ptr()) });
            *sum = _mm512_fmadd_pd(x, x, *sum);
        }
    }
    let (chunks, rest) = rest.as_chunks::<8>();
    for (sum, eight) in sums.iter_mut().zip(chunks) {
        // SAFETY: as above.
        let x = _mm512_cvtps_pd(unsafe { _mm256_loadu_ps(eight.as_ptr()) });
        *sum = _mm512_fmadd_pd(x, x, *sum);
    }
    let rest: f64 = rest.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    let [a, b, c, d] = sums;
    _mm512_reduce_add_pd(_mm512_add_pd(_mm512_add_pd(a, b), _mm512_add_pd(c, d))) + rest
}

/// Vectors of each side in a tile: 25 sums, and 10 loads for 25 multiplications.
#[cfg(target_arch = "x86_64")]
const TILE: usize = 5;
/// Rows that stay in the first-level cache while the columns pass: whole tiles.
#[cfg(target_arch = "x86_64")]
const ROWS: usize = 5 * TILE;

/// The lane sums of up to sixteen vectors, in order; 0 for missing vectors.
#[cfg(target_arch = "x86_64")]
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
#[cfg(target_arch = "x86_64")]
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
#[cfg(target_arch = "x86_64")]
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
#[cfg(target_arch = "x86_64")]
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

/// Computes [`distances`].
///
/// # Safety
/// The vectors of both sides have one length.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
unsafe fn distances_avx512(
    metric: Metric,
    side_a: &Side<'_>,
    side_b: &Side<'_>,
    out: &mut [f32],
    stride: usize,
) {
    let (a, b) = (side_a.vectors, side_b.vectors);
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
#[cfg(target_arch = "x86_64")]
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
#[cfg(target_arch = "x86_64")]
#[cold]
#[inline(never)]
fn copy_part(out: &mut [f32], found: &[f32; TILE]) {
    out.copy_from_slice(&found[..out.len()]);
}

/// Turns the products of row i, which are in `out`, into distances, padded with +∞ to a multiple of
/// sixteen.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn finish(metric: Metric, side_a: &Side<'_>, i: usize, side_b: &Side<'_>, out: &mut [f32]) {
    let (a, b) = (side_a.vectors[i], side_b.vectors);
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
            let mut rng = crate::Randomness::new(Some(seed)).next_key().unwrap().stream(0);
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
            let [a, b] = [&a, &b].map(|v| v.iter().map(|v| &v[..]).collect::<Vec<_>>());
            // Norms of table rows, first unknown and then cached, must equal those of vectors.
            let norms = Norms::new(rows + columns);
            let ids: Vec<u32> = (0..(rows + columns) as u32).collect();
            let (ids_a, ids_b) = ids.split_at(rows);
            for metric in [Metric::Euclidean, Metric::Angular, Metric::Poincare] {
                let inside = a.iter().chain(&b).all(|v| metric.refuse(v).is_none());
                if !inside {
                    continue;
                }
                let plain = |vectors| Vectors { vectors, rows: None };
                let found = distances(metric, plain(&a), plain(&b), &mut out, stride);
                for _ in 0..2 {
                    let a = Vectors { vectors: &a, rows: Some((&norms, ids_a)) };
                    let b = Vectors { vectors: &b, rows: Some((&norms, ids_b)) };
                    let mut again = vec![0.0; out.len()];
                    let error = distances(metric, a, b, &mut again, stride);
                    prop_assert_eq!(error, found);
                    prop_assert!(error.is_none() || again == out);
                }
                let Some(error) = found else { continue };
                prop_assert!(error < 1e-5);
                for (i, &a) in a.iter().enumerate() {
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
        let (one, tiny, huge) = ([1.0f32; 3], [1e-12f32; 3], [1e18f32; 3]);
        let mut out = [0.0; 16];
        let mut in_range = |a: &[f32], b: &[f32]| {
            let (a, b) = ([a], [b]);
            let plain = |vectors| Vectors {
                vectors,
                rows: None,
            };
            distances(
                Metric::Euclidean,
                plain(&a[..]),
                plain(&b[..]),
                &mut out,
                16,
            )
            .is_some()
        };
        assert!(!in_range(&one, &tiny) && !in_range(&huge, &one));
    }
}
