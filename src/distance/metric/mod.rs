//! Metrics on embedding vectors, computed in f64 by direct differences.
//!
//! One function serves single distances and rows, so both agree bit for bit. Every formula is
//! symmetric in its arguments bit for bit: the privacy proofs need one metric, not two roundings of
//! it. Sums run in eight fixed lanes, so the result does not depend on the machine's vector width.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
#[cfg(target_arch = "x86_64")]
mod avx2;
pub(crate) mod block;
#[cfg(target_arch = "x86_64")]
pub(crate) mod bounded;

use std::fmt;

use crate::support::names::named;
#[cfg(target_arch = "x86_64")]
use crate::support::prefetch::prefetch;
use crate::support::simd::vectorised;
#[cfg(target_arch = "x86_64")]
use crate::support::simd::{Avx2, Avx512};

/// A metric on ℝⁿ (or a subset of it).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Metric {
    /// ‖a - b‖₂.
    Euclidean,
    /// ‖a - b‖₁.
    Manhattan,
    /// ‖a - b‖_∞.
    Chebyshev,
    /// The angle between a and b, in radians (0 to π). Parallel vectors have distance 0. No vector
    /// may be 0.
    Angular,
    /// Hyperbolic distance on the Poincaré ball, arcosh(1 + 2‖a-b‖²/((1-‖a‖²)(1-‖b‖²))).
    /// Every vector must have norm below 1.
    Poincare,
}

// In the order of their codes in index files.
named!(
    Metric, "metric",
    Metric::Euclidean => "euclidean",
    Metric::Manhattan => "manhattan",
    Metric::Chebyshev => "chebyshev",
    Metric::Angular => "angular",
    Metric::Poincare => "poincare";
    not "cosine" => " (1 - cos is no metric: it breaks the triangle inequality, and with it the \
                     proof; 'angular', the angle itself, is one)"
);

impl Metric {
    /// The distance between two vectors of equal length.
    pub fn distance<A: Coordinate>(self, a: &[A], b: &[f32]) -> f64 {
        let mut out = [0.0];
        self.distances(a, b, &mut out);
        out[0]
    }

    /// Writes the distances from `a` to the `out.len()` rows of `rows` (row-major, `a.len()` wide).
    pub fn distances<A: Coordinate>(self, a: &[A], rows: &[f32], out: &mut [f64]) {
        assert_eq!(rows.len(), a.len() * out.len());
        #[cfg(target_arch = "x86_64")]
        if self == Metric::Euclidean && !a.is_empty() {
            if Avx512::detect().is_some() {
                // SAFETY: the features were detected.
                return unsafe { euclidean_rows_avx512(a, rows, out) };
            }
            if Avx2::detect().is_some() {
                let row = |i: usize| &rows[i * a.len()..][..a.len()];
                // SAFETY: the feature was detected.
                return unsafe { avx2::euclidean(a, row, out) };
            }
        }
        distances_vectorised(self, a, rows, out);
    }

    /// Writes the distances from `a` to the rows of `rows` (row-major, `a.len()` wide) that `ids`
    /// select. They equal those of [`distances`](Self::distances) bit for bit. For rows that lie
    /// apart in memory.
    ///
    /// # Panics
    /// Panics for an id beyond the rows, or if `ids` and `out` have different lengths.
    pub(crate) fn distances_to<A: Coordinate>(
        self,
        a: &[A],
        rows: &[f32],
        ids: &[u32],
        out: &mut [f64],
    ) {
        assert_eq!(ids.len(), out.len());
        let n = a.len();
        #[cfg(target_arch = "x86_64")]
        if self == Metric::Euclidean && Avx512::detect().is_some() {
            let at = |&id: &u32| -> *const f32 { rows[id as usize * n..][..n].as_ptr() };
            let (ids, rest) = ids.as_chunks::<ROWS_PER_BATCH>();
            let (out, out_rest) = out.as_chunks_mut::<ROWS_PER_BATCH>();
            let mut next = ids.first().map(|ids| ids.each_ref().map(at));
            for (i, out) in out.iter_mut().enumerate() {
                let Some(now) = next else { break };
                next = ids.get(i + 1).map(|ids| ids.each_ref().map(at));
                let next = next.unwrap_or(now);
                // SAFETY: the features were detected; each pointer has n numbers.
                unsafe { euclidean_avx512::<_, _, true>(n, a.as_ptr(), now, next, out) };
            }
            for (id, out) in rest.iter().zip(out_rest) {
                let (now, out) = ([at(id)], std::array::from_mut(out));
                // SAFETY: as above.
                unsafe { euclidean_avx512::<_, _, false>(n, a.as_ptr(), now, now, out) };
            }
            return;
        }
        #[cfg(target_arch = "x86_64")]
        if self == Metric::Euclidean && Avx2::detect().is_some() {
            let row = |i: usize| &rows[ids[i] as usize * n..][..n];
            // SAFETY: the feature was detected.
            return unsafe { avx2::euclidean(a, row, out) };
        }
        for (&id, out) in ids.iter().zip(out) {
            *out = self.distance(a, &rows[id as usize * n..][..n]);
        }
    }

    /// The absolute error of a computed distance beyond a relative (n/8 + 8)·2⁻⁵³, in n dimensions,
    /// if no ‖u‖² exceeds `largest`.
    ///
    /// For the angle, this is the rounding of the two unit vectors. On the Poincaré ball, d = 2
    /// arsinh(s) changes by at most twice the relative error of s. 1 - ‖u‖² contributes its own
    /// rounding error divided by itself.
    pub(crate) fn absolute_error(self, n: usize, largest: f64) -> f64 {
        let rounding = (n as f64 / 8.0 + 8.0) * f64::EPSILON;
        match self {
            Metric::Euclidean | Metric::Manhattan | Metric::Chebyshev => 0.0,
            Metric::Angular => 2.0 * rounding,
            Metric::Poincare => 2.0 * rounding / (1.0 - largest),
        }
    }

    /// The reason why `vector` is no point of this metric space, if it is none.
    pub(crate) fn refuse<A: Coordinate>(self, vector: &[A]) -> Option<String> {
        if let Some(i) = vector.iter().position(|x| !x.wide().is_finite()) {
            return Some(format!("holds {} at position {i}", vector[i].wide()));
        }
        let norm2 = || norm2(vector);
        match self {
            Metric::Angular if norm2() == 0.0 => {
                Some("is 0, which has no direction for the angular metric".into())
            }
            Metric::Angular if !norm2().is_normal() => {
                Some("is too small or too large for its direction to be computed".into())
            }
            Metric::Poincare if norm2() >= 1.0 => Some(format!(
                "has norm {}, and the Poincaré ball needs norms below 1",
                norm2().sqrt()
            )),
            _ => None,
        }
    }

    /// The first of row-major vectors that is no point of this metric space, and why.
    pub(crate) fn first_refused<A: Coordinate>(
        self,
        vectors: &[A],
        dim: usize,
    ) -> Option<(usize, String)> {
        let mut each = vectors.chunks_exact(dim).enumerate();
        each.find_map(|(i, vector)| Some((i, self.refuse(vector)?)))
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of a coordinate: f32 (a stored vector) or f64 (a noisy one).
pub trait Coordinate: Copy + Send + Sync + 'static {
    /// The coordinate as f64, exactly.
    fn wide(self) -> f64;

    /// Loads eight coordinates from `at` on as f64; those outside the mask are 0.
    ///
    /// # Safety
    /// The machine has the features; the lanes in the mask can be read.
    #[cfg(target_arch = "x86_64")]
    #[doc(hidden)]
    unsafe fn eight(at: *const Self, mask: u8) -> __m512d;
}

impl Coordinate for f32 {
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    unsafe fn eight(at: *const Self, mask: u8) -> __m512d {
        // SAFETY: the caller guarantees that the lanes in the mask can be read; the others are not
        // touched.
        _mm512_cvtps_pd(unsafe { _mm256_maskz_loadu_ps(mask, at) })
    }
}

impl Coordinate for f64 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    unsafe fn eight(at: *const Self, mask: u8) -> __m512d {
        // SAFETY: the caller guarantees that the lanes in the mask can be read; the others are not
        // touched.
        unsafe { _mm512_maskz_loadu_pd(mask, at) }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn euclidean_rows_avx512<A: Coordinate>(a: &[A], rows: &[f32], out: &mut [f64]) {
    let n = a.len();
    let groups = rows.chunks_exact(n * ROWS_PER_BATCH);
    let rest = groups.remainder();
    let (out, out_rest) = out.as_chunks_mut::<ROWS_PER_BATCH>();
    for (group, out) in groups.zip(out) {
        let of: [*const f32; ROWS_PER_BATCH] = std::array::from_fn(|t| group[t * n..].as_ptr());
        // SAFETY: each pointer has n numbers.
        unsafe { euclidean_avx512::<_, _, false>(n, a.as_ptr(), of, of, out) };
    }
    for (b, out) in rest.chunks_exact(n).zip(out_rest) {
        let (of, out) = ([b.as_ptr()], std::array::from_mut(out));
        // SAFETY: as above.
        unsafe { euclidean_avx512::<_, _, false>(n, a.as_ptr(), of, of, out) };
    }
}

/// Rows whose sums are computed side by side: a single sum would wait for its last addition.
#[cfg(target_arch = "x86_64")]
const ROWS_PER_BATCH: usize = 4;

/// Computes ‖a - b‖₂ of a vector of n numbers and all `now`; with `FETCH`, prefetches the `next` vectors
/// meanwhile.
///
/// # Safety
/// Each pointer has n numbers.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
unsafe fn euclidean_avx512<A: Coordinate, const R: usize, const FETCH: bool>(
    n: usize,
    a: *const A,
    now: [*const f32; R],
    next: [*const f32; R],
    out: &mut [f64; R],
) {
    let whole = n / 8 * 8;
    let mut acc = [_mm512_setzero_pd(); R];
    // The mask is a constant in the loop, so these are plain loads with conversion.
    let mut add = |at: usize, mask: u8| {
        // SAFETY: the lanes in the mask lie within the vectors, which have n numbers.
        let x = unsafe { A::eight(a.add(at), mask) };
        for r in 0..R {
            if FETCH && at.is_multiple_of(16) {
                prefetch(next[r].wrapping_add(at));
            }
            // SAFETY: as for `a`.
            let d = _mm512_sub_pd(x, unsafe { f32::eight(now[r].add(at), mask) });
            // No fused multiply-add: the sum must be that of `lanes`, bit for bit.
            acc[r] = _mm512_add_pd(acc[r], _mm512_mul_pd(d, d));
        }
    };
    for at in (0..whole).step_by(8) {
        add(at, u8::MAX);
    }
    if whole < n {
        add(whole, (1 << (n - whole)) - 1);
    }
    for (out, acc) in out.iter_mut().zip(acc) {
        *out = sum_avx512(acc).sqrt();
    }
}

/// The sum of eight lanes, in the order of `sum`.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn sum_avx512(lanes: __m512d) -> f64 {
    let four = _mm256_add_pd(
        _mm512_castpd512_pd256(lanes),
        _mm512_extractf64x4_pd::<1>(lanes),
    );
    let two = _mm_add_pd(
        _mm256_castpd256_pd128(four),
        _mm256_extractf128_pd::<1>(four),
    );
    _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two))
}

vectorised! {
    fn distances_vectorised[A: Coordinate] =
        distances_portable(metric: Metric, a: &[A], rows: &[f32], out: &mut [f64])
}

#[inline(always)]
fn distances_portable<A: Coordinate>(metric: Metric, a: &[A], rows: &[f32], out: &mut [f64]) {
    // Plain loops: a closure passed to an iterator would be compiled separately, without the
    // caller's vector width.
    let n = a.len().max(1);
    match metric {
        Metric::Euclidean => {
            for (b, out) in rows.chunks_exact(n).zip(out) {
                *out = squared(a, b).sqrt();
            }
        }
        Metric::Manhattan => {
            for (b, out) in rows.chunks_exact(n).zip(out) {
                *out = sum(lanes(a, b, |sum, x, y| sum + (x - y).abs()));
            }
        }
        Metric::Chebyshev => {
            for (b, out) in rows.chunks_exact(n).zip(out) {
                let largest = lanes(a, b, |max, x, y| f64::max(max, (x - y).abs()));
                *out = largest.iter().fold(0.0, |m, &x| m.max(x));
            }
        }
        Metric::Angular => {
            let scale_a = norm2(a).sqrt().recip();
            for (b, out) in rows.chunks_exact(n).zip(out) {
                let scale_b = norm2(b).sqrt().recip();
                // Kahan's formula: accurate at every angle, where arccos loses half the digits near
                // 0.
                let minus = sum(lanes(a, b, |s, x, y| {
                    s + (x * scale_a - y * scale_b).powi(2)
                }));
                let plus = sum(lanes(a, b, |s, x, y| {
                    s + (x * scale_a + y * scale_b).powi(2)
                }));
                *out = 2.0 * f64::atan2(minus.sqrt(), plus.sqrt());
            }
        }
        Metric::Poincare => {
            let a2 = 1.0 - norm2(a);
            for (b, out) in rows.chunks_exact(n).zip(out) {
                // arcosh(1 + 2s²) = 2 arsinh(s), which is accurate for small distances.
                *out = poincare(squared(a, b), a2 * (1.0 - norm2(b)));
            }
        }
    }
}

/// The hyperbolic distance on the ball, from ‖a - b‖² and (1 - ‖a‖²)(1 - ‖b‖²).
#[inline]
pub(crate) fn poincare(apart2: f64, inside: f64) -> f64 {
    2.0 * (apart2 / inside).sqrt().asinh()
}

/// ‖a - b‖₂².
#[inline(always)]
fn squared<A: Coordinate>(a: &[A], b: &[f32]) -> f64 {
    sum(lanes(a, b, |s, x, y| s + (x - y) * (x - y)))
}

#[inline(always)]
pub(crate) fn norm2<A: Coordinate>(a: &[A]) -> f64 {
    let mut acc = [0.0f64; 8];
    let (chunks, rest) = a.as_chunks::<8>();
    for x in chunks {
        for l in 0..8 {
            acc[l] += x[l].wide() * x[l].wide();
        }
    }
    for (l, x) in rest.iter().enumerate() {
        acc[l] += x.wide() * x.wide();
    }
    sum(acc)
}

#[inline(always)]
fn lanes<A: Coordinate>(a: &[A], b: &[f32], step: impl Fn(f64, f64, f64) -> f64) -> [f64; 8] {
    let mut acc = [0.0f64; 8];
    let (a, a_rest) = a.as_chunks::<8>();
    let (b, b_rest) = b.as_chunks::<8>();
    for (x, y) in a.iter().zip(b) {
        for l in 0..8 {
            acc[l] = step(acc[l], x[l].wide(), y[l].wide());
        }
    }
    for (l, (x, y)) in a_rest.iter().zip(b_rest).enumerate() {
        acc[l] = step(acc[l], x.wide(), y.wide());
    }
    acc
}

#[inline(always)]
fn sum(acc: [f64; 8]) -> f64 {
    ((acc[0] + acc[4]) + (acc[2] + acc[6])) + ((acc[1] + acc[5]) + (acc[3] + acc[7]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(metric: Metric, a: &[f32], b: &[f32]) -> f64 {
        let diff = || a.iter().zip(b).map(|(&x, &y)| f64::from(x) - f64::from(y));
        let norm2 = |v: &[f32]| v.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
        match metric {
            Metric::Euclidean => diff().map(|d| d * d).sum::<f64>().sqrt(),
            Metric::Manhattan => diff().map(f64::abs).sum(),
            Metric::Chebyshev => diff().map(f64::abs).fold(0.0, f64::max),
            Metric::Angular => {
                let dot: f64 = a
                    .iter()
                    .zip(b)
                    .map(|(&x, &y)| f64::from(x) * f64::from(y))
                    .sum();
                (dot / (norm2(a) * norm2(b)).sqrt()).clamp(-1.0, 1.0).acos()
            }
            Metric::Poincare => {
                let s = diff().map(|d| d * d).sum::<f64>();
                (1.0 + 2.0 * s / ((1.0 - norm2(a)) * (1.0 - norm2(b)))).acosh()
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn is_a_metric_and_equals_the_textbook(
            (a, b, c) in (1usize..40).prop_flat_map(|n| {
                let v = prop::collection::vec(-0.15f32..0.15, n);
                (v.clone(), v.clone(), v)
            })
        ) {
            for metric in Metric::ALL {
                if metric == Metric::Angular && [&a, &b, &c].iter().any(|v| metric.refuse(v).is_some()) {
                    continue;
                }
                let d = |x: &[f32], y: &[f32]| metric.distance(x, y);
                prop_assert_eq!(d(&a, &a), 0.0);
                prop_assert_eq!(d(&a, &b).to_bits(), d(&b, &a).to_bits());
                prop_assert!(d(&a, &c) <= (d(&a, &b) + d(&b, &c)) * (1.0 + 1e-12));
                let mut row = vec![0.0; 3];
                metric.distances(&a, &[a.clone(), b.clone(), c.clone()].concat(), &mut row);
                prop_assert_eq!(row[1].to_bits(), d(&a, &b).to_bits());
                let expected = plain(metric, &a, &b);
                let tolerance = if metric == Metric::Angular { 3e-8 } else { 1e-7 * expected + 1e-8 };
                prop_assert!((d(&a, &b) - expected).abs() <= tolerance, "{} {} {}", metric, d(&a, &b), expected);
            }
        }
    }

    #[test]
    fn vector_widths_agree_bit_for_bit() {
        for n in 1..40 {
            let number = |i: usize| ((i * 7919 % 1000) as f32 - 500.0) * 0.001_23;
            let a: Vec<f32> = (0..n).map(number).collect();
            let wide: Vec<f64> = a.iter().map(|&x| f64::from(x) + 1e-9).collect();
            let rows: Vec<f32> = (0..n * 5).map(|i| number(i + 17)).collect();
            let (mut here, mut plain) = ([0.0; 5], [0.0; 5]);
            Metric::Euclidean.distances(&a, &rows, &mut here);
            distances_portable(Metric::Euclidean, &a, &rows, &mut plain);
            assert_eq!(here, plain);
            Metric::Euclidean.distances(&wide, &rows, &mut here);
            distances_portable(Metric::Euclidean, &wide, &rows, &mut plain);
            assert_eq!(here, plain);
            // Also on machines that have something wider.
            #[cfg(target_arch = "x86_64")]
            if Avx2::detect().is_some() {
                // SAFETY: the feature was detected.
                unsafe { avx2::euclidean(&wide, |i| &rows[i * n..][..n], &mut here) };
                assert_eq!(here, plain);
            }
            // Rows that are apart in memory, one of them twice.
            for ids in [&[4, 0, 2, 2, 1, 3, 0, 4, 1][..], &[3], &[]] {
                for metric in Metric::ALL {
                    let (mut one, mut each) = (vec![0.0; ids.len()], [0.0; 5]);
                    metric.distances_to(&wide, &rows, ids, &mut one);
                    metric.distances(&wide, &rows, &mut each);
                    let expected = ids.iter().map(|&id| each[id as usize].to_bits());
                    assert!(one.iter().map(|d| d.to_bits()).eq(expected), "{metric}");
                }
            }
        }
    }

    #[test]
    fn cosine_is_refused_with_the_reason() {
        let message = "cosine".parse::<Metric>().unwrap_err().to_string();
        assert!(message.contains("triangle inequality") && message.contains("angular"));
    }
}
