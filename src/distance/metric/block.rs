//! All distances between two short lists of vectors, for cost matrices.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use super::Metric;

/// Writes the distances between every vector of `a` and every vector of `b`; row i of `out` starts
/// at i · `stride`. They are computed by differences, so equal vectors have distance 0. The last
/// bits may differ from those of [`Metric::distances`].
pub(crate) fn distances(
    metric: Metric,
    a: &[&[f32]],
    b: &[&[f32]],
    out: &mut [f64],
    stride: usize,
) {
    #[cfg(target_arch = "x86_64")]
    if metric == Metric::Euclidean && crate::support::simd::Avx512::detect().is_some() {
        let width = a.first().map_or(8, |v| v.len().next_multiple_of(8));
        let (wide_a, wide_b) = (widened(a, width), widened(b, width));
        // SAFETY: the features were detected; `widened` makes whole rows.
        return unsafe { euclidean_avx512(&wide_a, &wide_b, width, b.len(), out, stride) };
    }
    let rows = b.concat();
    for (a, out) in a.iter().zip(out.chunks_mut(stride)) {
        metric.distances(a, &rows, &mut out[..b.len()]);
    }
}

#[cfg(target_arch = "x86_64")]
fn widened(vectors: &[&[f32]], width: usize) -> Vec<f64> {
    let mut wide = vec![0.0; vectors.len() * width];
    for (wide, vector) in wide.chunks_exact_mut(width).zip(vectors) {
        for (wide, &x) in wide.iter_mut().zip(*vector) {
            *wide = f64::from(x);
        }
    }
    wide
}

/// Computes ‖a - b‖ for all rows of two arrays, in tiles of 4 × 4 sums in registers.
///
/// # Safety
/// `a` holds whole rows of `width` numbers, a multiple of eight; `b` holds `columns` of them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
#[allow(clippy::needless_range_loop)] // unrolled
unsafe fn euclidean_avx512(
    a: &[f64],
    b: &[f64],
    width: usize,
    columns: usize,
    out: &mut [f64],
    stride: usize,
) {
    const TILE: usize = 4;
    let rows = a.len() / width;
    for i in (0..rows).step_by(TILE) {
        for j in (0..columns).step_by(TILE) {
            // The last vector replaces those beyond the end.
            let of = |array: &[f64], at: usize, end: usize| -> [*const f64; TILE] {
                std::array::from_fn(|t| array[(at + t).min(end - 1) * width..].as_ptr())
            };
            let (pa, pb) = (of(a, i, rows), of(b, j, columns));
            // Loops over constants are unrolled. Array functions that take closures are compiled
            // without these instructions, and a call for every vector takes ten times as long.
            let mut sums = [[_mm512_setzero_pd(); TILE]; TILE];
            for at in (0..width).step_by(8) {
                let mut y = [_mm512_setzero_pd(); TILE];
                for c in 0..TILE {
                    // SAFETY: each pointer has `width` numbers, a multiple of eight.
                    y[c] = unsafe { _mm512_loadu_pd(pb[c].add(at)) };
                }
                for r in 0..TILE {
                    // SAFETY: as above.
                    let x = unsafe { _mm512_loadu_pd(pa[r].add(at)) };
                    for c in 0..TILE {
                        let d = _mm512_sub_pd(x, y[c]);
                        sums[r][c] = _mm512_fmadd_pd(d, d, sums[r][c]);
                    }
                }
            }
            // Store the registers first: an index known only at run time would keep the sums in
            // memory throughout.
            let mut distances = [[0.0; TILE]; TILE];
            for r in 0..TILE {
                for c in 0..TILE {
                    distances[r][c] = _mm512_reduce_add_pd(sums[r][c]).sqrt();
                }
            }
            for (row, distances) in (i..rows).zip(distances) {
                let out = &mut out[row * stride + j..][..(columns - j).min(TILE)];
                out.copy_from_slice(&distances[..out.len()]);
            }
        }
    }
}
