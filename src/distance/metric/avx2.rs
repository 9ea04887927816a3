//! Euclidean distances with AVX2: those of `lanes` and `sum`, bit for bit, four rows side by side. A
//! single row would wait for each of its additions.

use std::arch::x86_64::*;

use super::Coordinate;

/// Rows side by side: with two sums each, half of the sixteen registers.
const ROWS: usize = 4;

/// The part of a vector behind its last whole eight coordinates, with zeros after it.
fn tail_of<A: Coordinate>(a: &[A]) -> [f64; 8] {
    let rest = a.as_chunks::<8>().1;
    std::array::from_fn(|l| rest.get(l).map_or(0.0, |x| x.wide()))
}

/// A mask that loads the first `count` of four lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn first_lanes(count: usize) -> __m128i {
    _mm_cmpgt_epi32(
        _mm_set1_epi32(count.min(4) as i32),
        _mm_setr_epi32(0, 1, 2, 3),
    )
}

/// Writes the distances from `a` to some rows, each as long as `a`.
#[target_feature(enable = "avx2")]
pub(super) fn euclidean<'r, A: Coordinate>(
    a: &[A],
    mut row: impl FnMut(usize) -> &'r [f32],
    out: &mut [f64],
) {
    let tail = tail_of(a);
    let (fours, rest) = out.as_chunks_mut::<ROWS>();
    let first = fours.len() * ROWS;
    for (i, out) in fours.iter_mut().enumerate() {
        let at = ROWS * i;
        of_rows(
            a,
            &tail,
            [row(at), row(at + 1), row(at + 2), row(at + 3)],
            out,
        );
    }
    for (i, out) in rest.iter_mut().enumerate() {
        of_rows(a, &tail, [row(first + i)], std::array::from_mut(out));
    }
}

/// # Panics
/// Panics if a row is not as long as `a`.
// No closures within: those that pass through other functions would be compiled without AVX2.
#[inline]
#[target_feature(enable = "avx2")]
fn of_rows<A: Coordinate, const R: usize>(
    a: &[A],
    tail: &[f64; 8],
    rows: [&[f32]; R],
    out: &mut [f64; R],
) {
    let (eights, rest) = a.as_chunks::<8>();
    for row in rows {
        assert!(row.len() == a.len());
    }
    let (mut low, mut high) = ([_mm256_setzero_pd(); R], [_mm256_setzero_pd(); R]);
    for (i, x) in eights.iter().enumerate() {
        let first = _mm256_setr_pd(x[0].wide(), x[1].wide(), x[2].wide(), x[3].wide());
        let last = _mm256_setr_pd(x[4].wide(), x[5].wide(), x[6].wide(), x[7].wide());
        for ((row, low), high) in rows.iter().zip(&mut low).zip(&mut high) {
            // SAFETY: each row has as many numbers as `a`.
            let (y, z) = unsafe {
                let at = row.as_ptr().add(8 * i);
                (_mm_loadu_ps(at), _mm_loadu_ps(at.add(4)))
            };
            add(low, first, _mm256_cvtps_pd(y));
            add(high, last, _mm256_cvtps_pd(z));
        }
    }
    if !rest.is_empty() {
        let (some, more) = (
            first_lanes(rest.len()),
            first_lanes(rest.len().saturating_sub(4)),
        );
        // SAFETY: the tail has eight numbers.
        let (first, last) = unsafe {
            let at = tail.as_ptr();
            (_mm256_loadu_pd(at), _mm256_loadu_pd(at.add(4)))
        };
        for ((row, low), high) in rows.iter().zip(&mut low).zip(&mut high) {
            // SAFETY: the lanes of the masks lie within the row; the others are not read.
            let (y, z) = unsafe {
                let at = row.as_ptr().add(8 * eights.len());
                (
                    _mm_maskload_ps(at, some),
                    _mm_maskload_ps(at.wrapping_add(4), more),
                )
            };
            add(low, first, _mm256_cvtps_pd(y));
            add(high, last, _mm256_cvtps_pd(z));
        }
    }
    for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
        let four = _mm256_add_pd(low, high);
        let (one, other) = (
            _mm256_castpd256_pd128(four),
            _mm256_extractf128_pd::<1>(four),
        );
        let two = _mm_add_pd(one, other);
        *out = (_mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two))).sqrt();
    }
}

/// Adds the squares of x - y. No fused multiply-add: the sum must be that of `lanes`, bit for bit.
#[inline]
#[target_feature(enable = "avx2")]
fn add(sum: &mut __m256d, x: __m256d, y: __m256d) {
    let d = _mm256_sub_pd(x, y);
    *sum = _mm256_add_pd(*sum, _mm256_mul_pd(d, d));
}
