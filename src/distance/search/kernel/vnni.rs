//! The 8-bit bounds with AVX-512 VNNI: one instruction takes sixteen words and four coordinates.

use std::arch::x86_64::*;

use super::{Hits, QuerySide, Scores, Sides, TILE, WIDTH, report_avx512, start_avx512};

/// See [`bounds_int8`](super::bounds_int8).
///
/// # Safety
/// The queries hold `Q` times as many integers as one word of the panel, a multiple of four.
#[target_feature(enable = "avx512f,avx512vnni")]
pub(super) unsafe fn int8<const Q: usize>(
    panel: &[u8],
    sides: Sides,
    queries: &[i8],
    query_sides: &[QuerySide],
    scores: &mut Scores,
) -> Hits {
    let n = panel.len() / WIDTH;
    let mut acc = [[_mm512_setzero_si512(); 4]; Q];
    for (row, side) in acc.iter_mut().zip(query_sides) {
        *row = [_mm512_set1_epi32(side.start); 4];
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
                let at = queries.as_ptr().add(q * n + 4 * g);
                at.cast::<i32>().read_unaligned()
            };
            let x = _mm512_set1_epi32(four);
            for v in 0..4 {
                row[v] = _mm512_dpbusd_epi32(row[v], words[v], x);
            }
        }
    }
    let mut hits = [0; TILE];
    for q in 0..Q {
        let side = &query_sides[q];
        let scale = _mm512_set1_ps(side.scale);
        let mut row = [_mm512_setzero_ps(); 4];
        for v in 0..4 {
            // SAFETY: there are 64 numbers.
            let unit = unsafe { _mm512_loadu_ps(sides.unit.as_ptr().add(16 * v)) };
            let product = _mm512_mul_ps(_mm512_cvtepi32_ps(acc[q][v]), unit);
            row[v] = _mm512_fmadd_ps(product, scale, start_avx512(sides, v, side));
        }
        hits[q] = report_avx512(&row, side.threshold, &mut scores[q]);
    }
    hits
}
