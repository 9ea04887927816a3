//! Distances of many vectors to many others in f32, with a proved bound of the error: what a search
//! for the few pairs that matter looks at before these are computed exactly. Euclidean, angular and
//! Poincaré distances, all by products of vectors.
//!
//! **Products.** With u = 2⁻²⁴ and s = ⌈n/16⌉ steps, a lane of ⟨a, b⟩ is a chain of s fused
//! multiplications and additions, and sixteen lanes are added in four levels: off by at most
//! γ·Σ|aᵢbᵢ| ≤ γ·‖a‖‖b‖ ≤ γ·(‖a‖² + ‖b‖²)/2, where γ = (s + 4)u/(1 - (s + 4)u).
//!
//! **Euclidean.** The squared norms come from f64 and are rounded once, their sum once more, and
//! ‖a‖² + ‖b‖² - 2⟨a, b⟩, at most twice that sum (and a little), once: 4u(‖a‖² + ‖b‖²) and a little. So a
//! square is off by at most E·(‖a‖² + ‖b‖²), E = (s + 9)u·(1 + 2⁻¹⁰). Where it is at least a quarter of
//! that sum, it is off by a relative 4E/(1 - 4E), its root by at most half as much and a little, and
//! its own rounding by u. All other distances, which are those of near vectors, are computed exactly
//! and rounded once.
//!
//! **Angular.** With r = 1/‖·‖, rounded once, cos θ = ⟨a, b⟩·r_a·r_b is off by γ + 4u and the square of the chord,
//! 2 - 2 cos θ, by 2γ + 12u. From 1/2 to 7/2 (others are computed exactly) θ = 2 asin(√(chord²)/2)
//! moves relatively by at most 0.523 times the square's relative change at 1/2, which is the most:
//! 2.1γ + 13u.
//!
//! **Poincaré.** d = 2 arsinh(s), s² = ‖a - b‖²/((1-‖a‖²)(1-‖b‖²)): the Euclidean square, near pairs
//! computed exactly again, two factors rounded once and two products, 4u; the root halves it, and arsinh's
//! relative change is at most its argument's.
//!
//! asin and arsinh are series whose remainder is below u, with less than 16 roundings of u each.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use super::Metric;

/// Squared norms that keep products, and the sums of their errors, far from both ends of f32.
#[cfg(target_arch = "x86_64")]
const NORMS: std::ops::Range<f64> = 1e-16..1e30;
/// The largest squared norm on the ball: closer to its edge 1 - ‖v‖² loses too many digits.
#[cfg(target_arch = "x86_64")]
const INNER: f64 = 1.0 - 1e-7;
/// Numbers in a vector at most: the bound's higher terms stay small.
#[cfg(target_arch = "x86_64")]
const MOST_DIMENSIONS: usize = 1 << 16;

/// How far [`distances`] is off at most, relatively, in `n` dimensions.
#[cfg(target_arch = "x86_64")]
fn error(metric: Metric, n: usize) -> f64 {
    let unit = f64::from(f32::EPSILON) / 2.0;
    let steps = n.div_ceil(16) as f64;
    let square = (steps + 9.0) * unit * (1.0 + 1.0 / 1024.0);
    // Half of the relative error of a square that is 4 times as large, and its higher terms.
    let root = 2.0 * square * (1.0 + 16.0 * square);
    match metric {
        Metric::Angular => (2.1 * (steps + 4.0) * (1.0 + 1.0 / 1024.0) + 13.0 + 18.0) * unit,
        Metric::Poincare => root + (2.0 + 18.0) * unit,
        _ => root + 2.0 * unit,
    }
}

/// Distances between every vector of `a` and every vector of `b`: row i of `out` starts at
/// i · `stride`, a multiple of 16 that is at least `b.len()`; what stands behind a row is undefined.
/// Each is off by at most a relative error that is returned; none where the machine, the metric or the
/// vectors do not allow it.
pub(crate) fn distances(
    metric: Metric,
    a: &[&[f32]],
    b: &[&[f32]],
    out: &mut [f32],
    stride: usize,
) -> Option<f64> {
    #[cfg(target_arch = "x86_64")]
    if matches!(
        metric,
        Metric::Euclidean | Metric::Angular | Metric::Poincare
    ) && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
    {
        let n = a.first()?.len();
        assert!(stride.is_multiple_of(16) && stride >= b.len() && out.len() >= a.len() * stride);
        assert!(a.iter().chain(b).all(|v| v.len() == n));
        if n > MOST_DIMENSIONS {
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

/// Vectors, and what products with them need, padded to a multiple of four.
#[cfg(target_arch = "x86_64")]
struct Side<'a> {
    vectors: &'a [&'a [f32]],
    /// ‖v‖².
    norms: Vec<f32>,
    /// 1/‖v‖ for angles, 1/(1-‖v‖²) on the ball.
    factors: Vec<f32>,
}

#[cfg(target_arch = "x86_64")]
impl<'a> Side<'a> {
    /// None where a vector is out of range.
    #[target_feature(enable = "avx512f")]
    fn of(metric: Metric, vectors: &'a [&'a [f32]]) -> Option<Self> {
        let padded = vectors.len().next_multiple_of(4);
        let (mut norms, mut factors) = (Vec::with_capacity(padded), Vec::with_capacity(padded));
        for vector in vectors {
            let norm = squared_norm(vector);
            // A vector of zeros has exact products.
            let zero = norm == 0.0 && vector.iter().all(|&x| x == 0.0);
            let usable = match metric {
                Metric::Angular => NORMS.contains(&norm),
                Metric::Poincare => (zero || norm >= NORMS.start) && norm <= INNER,
                _ => zero || NORMS.contains(&norm),
            };
            if !usable {
                return None;
            }
            norms.push(norm as f32);
            factors.push(match metric {
                Metric::Angular => norm.sqrt().recip() as f32,
                Metric::Poincare => (1.0 - norm).recip() as f32,
                _ => 1.0,
            });
        }
        norms.resize(padded, 1.0);
        factors.resize(padded, 1.0);
        Some(Side {
            vectors,
            norms,
            factors,
        })
    }
}

/// ‖v‖², off by less than an f32 can tell.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn squared_norm(vector: &[f32]) -> f64 {
    // Four chains, for the latency of an addition.
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

/// Vectors of each side in a tile: 16 sums, and 8 loads for 16 multiplications.
#[cfg(target_arch = "x86_64")]
const TILE: usize = 4;
/// Rows that stay in the first cache while the columns pass.
#[cfg(target_arch = "x86_64")]
const ROWS: usize = 24;

/// The sixteen sums of tiles' lanes: row by row, four columns each.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn sums(tile: [[__m512; TILE]; TILE]) -> __m512 {
    // Of a row: lanes of four vectors into four lanes, in each quarter.
    let rows = tile.map(|[a, b, c, d]| {
        let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
        let (ab, cd) = (_mm512_castps_pd(ab), _mm512_castps_pd(cd));
        _mm512_add_ps(
            _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)),
            _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)),
        )
    });
    // Quarters of two vectors: even ones and odd ones.
    let halve = |a, b| {
        _mm512_add_ps(
            _mm512_shuffle_f32x4::<0b10_00_10_00>(a, b),
            _mm512_shuffle_f32x4::<0b11_01_11_01>(a, b),
        )
    };
    halve(halve(rows[0], rows[1]), halve(rows[2], rows[3]))
}

/// 2 asin(√c/2) for 1/2 ≤ c ≤ 7/2: for c above 2 as π - 2 asin(√(4 - c)/2).
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn angle(squares: __m512) -> __m512 {
    let two = _mm512_set1_ps(2.0);
    let blunt = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(squares, two);
    let small = _mm512_mask_sub_ps(squares, blunt, _mm512_set1_ps(4.0), squares);
    // asin(x)/x in x² ≤ 1/2.
    let x2 = _mm512_mul_ps(small, _mm512_set1_ps(0.25));
    let mut series = _mm512_set1_ps(ASIN[0]);
    for &c in &ASIN[1..] {
        series = _mm512_fmadd_ps(series, x2, _mm512_set1_ps(c));
    }
    let acute = _mm512_mul_ps(_mm512_sqrt_ps(small), series);
    let pi = _mm512_set1_ps(std::f32::consts::PI);
    _mm512_mask_sub_ps(acute, blunt, pi, acute)
}

/// The coefficients (2k)!/(4^k·k!²·(2k + 1)) of asin, the highest first: what follows is below
/// 2⁻²⁵ for x² ≤ 1/2.
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

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn distances_avx512(
    metric: Metric,
    side_a: &Side<'_>,
    side_b: &Side<'_>,
    out: &mut [f32],
    stride: usize,
) {
    let (a, b) = (side_a.vectors, side_b.vectors);
    let n = a[0].len();
    let whole = n / 16 * 16;
    let mask = (1u16 << (n - whole)) - 1;
    let spread = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
    for first in (0..a.len()).step_by(ROWS) {
        let rows = a.len().min(first + ROWS);
        for j in (0..b.len()).step_by(TILE) {
            // The last vector stands in for those beyond the end.
            let pb: [*const f32; TILE] =
                std::array::from_fn(|t| b[(j + t).min(b.len() - 1)].as_ptr());
            // SAFETY: both are padded to multiples of four.
            let [norm_b, factor_b] = [&side_b.norms, &side_b.factors]
                .map(|of| _mm512_broadcast_f32x4(unsafe { _mm_loadu_ps(of[j..].as_ptr()) }));
            for i in (first..rows).step_by(TILE) {
                let pa: [*const f32; TILE] =
                    std::array::from_fn(|t| a[(i + t).min(a.len() - 1)].as_ptr());
                let mut tile = [[_mm512_setzero_ps(); TILE]; TILE];
                let mut add = |at: usize, mask: u16| {
                    // SAFETY: the lanes in the mask lie within the vectors, which have n numbers.
                    let y: [__m512; TILE] = std::array::from_fn(|t| unsafe {
                        _mm512_maskz_loadu_ps(mask, pb[t].add(at))
                    });
                    for (sums, pa) in tile.iter_mut().zip(pa) {
                        // SAFETY: as above.
                        let x = unsafe { _mm512_maskz_loadu_ps(mask, pa.add(at)) };
                        for (sum, y) in sums.iter_mut().zip(y) {
                            *sum = _mm512_fmadd_ps(x, y, *sum);
                        }
                    }
                };
                for at in (0..whole).step_by(16) {
                    add(at, 0xffff);
                }
                if mask != 0 {
                    add(whole, mask);
                }
                let [norm_a, factor_a] = [&side_a.norms, &side_a.factors].map(|of| {
                    // SAFETY: as above.
                    let four = unsafe { _mm_loadu_ps(of[i..].as_ptr()) };
                    _mm512_permutexvar_ps(spread, _mm512_castps128_ps512(four))
                });
                let products = sums(tile);
                let factor = _mm512_mul_ps(factor_a, factor_b);
                let (both, products) = match metric {
                    Metric::Angular => (_mm512_set1_ps(2.0), _mm512_mul_ps(products, factor)),
                    _ => (_mm512_add_ps(norm_a, norm_b), products),
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
                    Metric::Poincare => ball(_mm512_mul_ps(squares, factor)),
                    _ => _mm512_sqrt_ps(squares),
                };
                let mut distances = [0.0f32; TILE * TILE];
                // SAFETY: the array has 16 numbers.
                unsafe { _mm512_storeu_ps(distances.as_mut_ptr(), found) };
                if near != 0 {
                    for (at, distance) in distances.iter_mut().enumerate() {
                        let (i, j) = (i + at / TILE, j + at % TILE);
                        if near >> at & 1 == 1 && i < rows && j < b.len() {
                            *distance = metric.distance(a[i], b[j]) as f32;
                        }
                    }
                }
                for (row, distances) in (i..rows).zip(distances.as_chunks::<TILE>().0) {
                    out[row * stride + j..][..TILE].copy_from_slice(distances);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        /// Against plain f64, at odd sizes: far, near, equal and parallel vectors of any scale.
        #[test]
        fn it_is_within_its_error(
            n in 1usize..90, rows in 1usize..30, columns in 1usize..10,
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
            for metric in [Metric::Euclidean, Metric::Angular, Metric::Poincare] {
                let inside = a.iter().chain(&b).all(|v| metric.refuse(v).is_none());
                let found = match inside {
                    true => distances(metric, &a, &b, &mut out, stride),
                    false => continue,
                };
                let Some(error) = found else { continue };
                prop_assert!(error < 1e-5);
                for (i, &a) in a.iter().enumerate() {
                    for (j, b) in b.iter().enumerate() {
                        let exact = metric.distance(a, b);
                        let found = f64::from(out[i * stride + j]);
                        let off = (found - exact).abs();
                        prop_assert!(off <= error * exact, "{metric} {found} {exact}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_f32_cannot_hold_is_refused() {
        let (one, tiny, huge) = ([1.0f32; 3], [1e-12f32; 3], [1e18f32; 3]);
        let mut out = [0.0; 16];
        let mut screen =
            |a: &[f32], b: &[f32]| distances(Metric::Euclidean, &[a], &[b], &mut out, 16).is_some();
        assert!(!screen(&one, &tiny) && !screen(&huge, &one));
    }
}
