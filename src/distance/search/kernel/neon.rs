//! The 8-bit bounds with NEON's dot products.

use std::arch::aarch64::*;
use std::arch::asm;

use super::{Hits, QuerySide, Scores, Sides, TILE, WIDTH};

/// Adds to each of four lanes the dot product of four 8-bit integers with four others. It is
/// written in assembly because Rust's `vdotq_s32` is not stable.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn dot(mut sums: int32x4_t, words: int8x16_t, query: int8x16_t) -> int32x4_t {
    // SAFETY: the instruction belongs to the feature; it touches three registers and no memory.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {words:v}.16b, {query:v}.16b",
            sums = inout(vreg) sums,
            words = in(vreg) words,
            query = in(vreg) query,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}

/// See [`super::bounds_int8`]. Takes sixteen words at a time: 6 × 4 accumulators, 4 loads and a
/// broadcast use 29 of the 32 registers.
///
/// # Safety
/// The queries hold `Q` times as many integers as one word of the panel, a multiple of four.
#[target_feature(enable = "neon,dotprod")]
pub(super) unsafe fn int8<const Q: usize>(
    panel: &[u8],
    units: &[f32; WIDTH],
    sides: Sides,
    queries: &[i8],
    query_sides: &[QuerySide],
    scores: &mut Scores,
) -> Hits {
    let n = panel.len() / WIDTH;
    let mut hits = [0; TILE];
    for block in (0..WIDTH).step_by(16) {
        let mut acc = [[vdupq_n_s32(0); 4]; Q];
        for g in 0..n / 4 {
            let mut words = [vdupq_n_s8(0); 4];
            for (v, w) in words.iter_mut().enumerate() {
                // SAFETY: the panel holds n × 64 bytes.
                *w = unsafe { vld1q_s8(panel.as_ptr().add(g * 256 + 4 * block + 16 * v).cast()) };
            }
            for (q, row) in acc.iter_mut().enumerate() {
                // SAFETY: the queries hold Q × n bytes (the caller's).
                let four = unsafe { queries.as_ptr().add(q * n + 4 * g).cast::<i32>() };
                // SAFETY: as above.
                let x = vreinterpretq_s8_s32(vdupq_n_s32(unsafe { four.read_unaligned() }));
                for v in 0..4 {
                    row[v] = dot(row[v], words[v], x);
                }
            }
        }
        for q in 0..Q {
            let side = &query_sides[q];
            for v in 0..4 {
                let at = block + 4 * v;
                // SAFETY: each of them holds 64 numbers.
                let (unit, half, error_share) = unsafe {
                    (
                        vld1q_f32(units.as_ptr().add(at)),
                        vld1q_f32(sides.half.as_ptr().add(at)),
                        vld1q_f32(sides.error_share.as_ptr().add(at)),
                    )
                };
                let start = vfmaq_n_f32(
                    vmulq_n_f32(error_share, side.error_scale),
                    half,
                    -side.factor,
                );
                let sum = vaddq_s32(acc[q][v], vdupq_n_s32(side.start));
                let product = vmulq_f32(vcvtq_f32_s32(sum), unit);
                let score = vfmaq_n_f32(start, product, side.scale);
                // SAFETY: a row of scores holds 64 numbers.
                unsafe { vst1q_f32(scores[q].as_mut_ptr().add(at), score) };
                let reached = vcgeq_f32(score, vdupq_n_f32(side.threshold));
                // SAFETY: four numbers are read.
                let bits = unsafe { vld1q_u32([1u32, 2, 4, 8].as_ptr()) };
                hits[q] |= u64::from(vaddvq_u32(vandq_u32(reached, bits))) << at;
            }
        }
    }
    hits
}
