//! The bounds by AVX-512, sixteen words at a time.
//!
//! Loops stand in the place of `map` of arrays: the compiler leaves that as a call, since it is compiled
//! without these instructions.

use std::arch::x86_64::*;

use super::{Line, QuantisedBounds, ROUND_DOWN, ROUND_UP, ROW_SUMS, RowSums};
use crate::distance::metric::{Limits, Proven};
use crate::support::prefetch::prefetch;

impl QuantisedBounds {
    /// Checks that all words exist, prefetches the rows of `b`, and returns what
    /// [`sixteen_avx512`](Self::sixteen_avx512) needs to know of `a`. Rows have `W` lines, or any number
    /// if that is 0.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn own_avx512<const W: usize>(&self, a: u32, b: &[u32]) -> Own {
        let width = if W > 0 { W } else { self.width };
        let mut last = a;
        for &b in b {
            last = last.max(b);
        }
        assert!(width == self.width && (last as usize + 1) * width <= self.lines.len());
        for &b in b {
            for line in 0..width {
                // Any address may be prefetched.
                prefetch(self.lines.as_ptr().wrapping_add(b as usize * width + line));
            }
        }
        let row = self.row(a);
        let RowSums { norm, error, .. } = RowSums::of(row);
        Own {
            row: row.as_ptr(),
            norm: _mm256_set1_epi32(norm),
            error: _mm512_set1_pd(error.into()),
        }
    }

    /// Computes [`between`](Self::between) for up to sixteen words: the lower and the upper bounds of
    /// the first eight, then those of the others. Bounds of missing words say nothing.
    ///
    /// # Safety
    /// All words exist, and rows have `W` lines if that is not 0.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn sixteen_avx512<const W: usize>(&self, own: &Own, b: &[u32]) -> [[__m512d; 2]; 2] {
        let mut words = [b[0]; 16];
        words[..b.len()].copy_from_slice(b);
        let none = FourWords {
            products: _mm512_setzero_si512(),
            sums: _mm_setzero_si128(),
            errors: _mm_setzero_si128(),
        };
        let (mut second, mut third, mut fourth) = (none, none, none);
        // SAFETY: all words exist, as the caller promises.
        let first = unsafe { self.four_avx512::<W>(own, &words, 0) };
        if b.len() > 4 {
            // SAFETY: as above.
            second = unsafe { self.four_avx512::<W>(own, &words, 4) };
        }
        if b.len() > 8 {
            // SAFETY: as above.
            third = unsafe { self.four_avx512::<W>(own, &words, 8) };
        }
        if b.len() > 12 {
            // SAFETY: as above.
            fourth = unsafe { self.four_avx512::<W>(own, &words, 12) };
        }
        let products = [
            first.products,
            second.products,
            third.products,
            fourth.products,
        ];
        let products = sums_of_quarters(products);
        [
            self.eight_avx512(own, _mm512_castsi512_si256(products), first, second),
            self.eight_avx512(own, _mm512_extracti64x4_epi64::<1>(products), third, fourth),
        ]
    }

    /// Computes the lower and the upper bounds of eight words.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn eight_avx512(
        &self,
        own: &Own,
        products: __m256i,
        first: FourWords,
        second: FourWords,
    ) -> [__m512d; 2] {
        // No value reaches 2³¹: each sums at most 2¹⁴ terms, of up to 127², 256·127 and 2·255·127.
        let sums = _mm256_add_epi32(_mm256_set_m128i(second.sums, first.sums), own.norm);
        let squares = _mm256_sub_epi32(sums, _mm256_slli_epi32::<1>(products));
        let errors = _mm256_set_m128i(second.errors, first.errors);
        let unit = _mm512_set1_pd(self.unit);
        let apart = _mm512_mul_pd(unit, _mm512_sqrt_pd(_mm512_cvtepi32_pd(squares)));
        let error = _mm512_add_pd(own.error, _mm512_cvtps_pd(_mm256_castsi256_ps(errors)));
        [
            _mm512_mul_pd(_mm512_sub_pd(apart, error), _mm512_set1_pd(ROUND_DOWN)),
            _mm512_mul_pd(_mm512_add_pd(apart, error), _mm512_set1_pd(ROUND_UP)),
        ]
    }

    /// Computes four of the `words`, from `at` on.
    ///
    /// # Safety
    /// They exist, and rows have `W` lines if that is not 0.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    #[allow(clippy::needless_range_loop)] // rows and products together
    unsafe fn four_avx512<const W: usize>(
        &self,
        own: &Own,
        words: &[u32; 16],
        at: usize,
    ) -> FourWords {
        let width = if W > 0 { W } else { self.width };
        let mut rows = [std::ptr::null::<Line>(); 4];
        for k in 0..4 {
            // SAFETY: the word exists.
            rows[k] = unsafe { self.lines.as_ptr().add(words[at + k] as usize * width) };
        }
        let mut products = [_mm512_setzero_si512(); 4];
        for line in 0..width {
            // SAFETY: own rows have `width` lines of 64 bytes, too.
            let x = unsafe { _mm512_load_si512(own.row.add(line).cast()) };
            let x = _mm512_xor_si512(x, _mm512_set1_epi8(i8::MIN));
            // The bytes of `RowSums` are no coordinates.
            let others = if line + 1 == width { ROW_SUMS } else { 0 };
            let x = _mm512_maskz_mov_epi8(u64::MAX >> others, x);
            for k in 0..4 {
                // SAFETY: rows have `width` lines of 64 bytes.
                let y = unsafe { _mm512_load_si512(rows[k].add(line).cast()) };
                products[k] = _mm512_dpbusd_epi32(products[k], x, y);
            }
        }
        // The last sixteen bytes of each row: four others, and `RowSums`.
        let mut ends = [_mm_setzero_si128(); 4];
        for k in 0..4 {
            // SAFETY: as above.
            ends[k] = unsafe { _mm_load_si128(rows[k].add(width - 1).cast::<__m128i>().add(3)) };
        }
        let [a, b, c, d] = ends;
        let norms = _mm_unpackhi_epi64(_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
        let (ab, cd) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
        let (sums, errors) = (_mm_unpacklo_epi64(ab, cd), _mm_unpackhi_epi64(ab, cd));
        let [a, b, c, d] = products;
        let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
        let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
        FourWords {
            products: _mm512_add_epi32(
                _mm512_unpacklo_epi64(ab, cd),
                _mm512_unpackhi_epi64(ab, cd),
            ),
            sums: _mm_add_epi32(norms, sums),
            errors,
        }
    }

    /// Computes [`compare`](Self::compare), sixteen words at a time.
    ///
    /// # Safety
    /// `far` and `near` have one limit per word, and rows have `W` lines if that is not 0.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) unsafe fn compare_avx512<const W: usize>(
        &self,
        a: u32,
        b: &[u32],
        limits: &Limits,
    ) -> Proven {
        let own = self.own_avx512::<W>(a, b);
        let inner = _mm512_set1_pd(limits.least);
        let mut proven = Proven::default();
        for (i, some) in b.chunks(16).enumerate() {
            // SAFETY: all words exist, as `own_avx512` has checked.
            let bounds = unsafe { self.sixteen_avx512::<W>(&own, some) };
            for ((eight, [least, most]), first) in some.chunks(8).zip(bounds).zip([0, 8]) {
                let (first, mask) = (16 * i + first, 0xFF >> (8 - eight.len()));
                // SAFETY: the mask covers only existing limits.
                let (far, near) = unsafe {
                    (
                        _mm512_maskz_loadu_pd(mask, limits.far.as_ptr().add(first)),
                        _mm512_maskz_loadu_pd(mask, limits.near.as_ptr().add(first)),
                    )
                };
                let beyond = _mm512_mask_cmp_pd_mask::<_CMP_GT_OQ>(mask, least, far);
                let within = _mm512_mask_cmp_pd_mask::<_CMP_LE_OQ>(mask, most, near);
                let outside = _mm512_mask_cmp_pd_mask::<_CMP_GT_OQ>(mask, least, inner);
                proven.beyond |= u64::from(beyond) << first;
                proven.within |= u64::from(within) << first;
                proven.outside |= u64::from(outside) << first;
            }
        }
        proven
    }

    /// Computes [`nearest`](Self::nearest) for at most [`MAX_WORDS`] words, sixteen at a time.
    ///
    /// # Safety
    /// Rows have `W` lines if that is not 0.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) unsafe fn nearest_avx512<const W: usize>(&self, a: u32, b: &[u32]) -> (f64, f64) {
        let own = self.own_avx512::<W>(a, b);
        let mut least = _mm512_set1_pd(f64::INFINITY);
        let mut most = least;
        for some in b.chunks(16) {
            // SAFETY: all words exist, as `own_avx512` has checked.
            let [first, second] = unsafe { self.sixteen_avx512::<W>(&own, some) };
            let mask = 0xFFFF >> (16 - some.len());
            least = _mm512_mask_min_pd(least, mask as u8, least, first[0]);
            most = _mm512_mask_min_pd(most, mask as u8, most, first[1]);
            least = _mm512_mask_min_pd(least, (mask >> 8) as u8, least, second[0]);
            most = _mm512_mask_min_pd(most, (mask >> 8) as u8, most, second[1]);
        }
        (_mm512_reduce_min_pd(least), _mm512_reduce_min_pd(most))
    }
}

/// The word a: its row, and ‖q_a‖₂² and δ_a in all lanes.
struct Own {
    row: *const Line,
    norm: __m256i,
    error: __m512d,
}

/// Four words b.
#[derive(Clone, Copy)]
struct FourWords {
    /// ⟨q_a + 128, q_b⟩ = ⟨q_a, q_b⟩ + 128·Σq_b, as partial sums: lane i of each quarter belongs to
    /// word i. VNNI needs an unsigned first factor.
    products: __m512i,
    /// ‖q_b‖₂² + 256·Σq_b.
    sums: __m128i,
    /// δ_b, as bits of f32.
    errors: __m128i,
}

/// Adds up the quarters of each vector: quarter k of the outcome is the sum of vector k's.
#[inline]
#[target_feature(enable = "avx512f")]
fn sums_of_quarters([a, b, c, d]: [__m512i; 4]) -> __m512i {
    const EVEN: i32 = 0b10_00_10_00;
    const ODD: i32 = 0b11_01_11_01;
    let ab = _mm512_add_epi32(
        _mm512_shuffle_i32x4::<EVEN>(a, b),
        _mm512_shuffle_i32x4::<ODD>(a, b),
    );
    let cd = _mm512_add_epi32(
        _mm512_shuffle_i32x4::<EVEN>(c, d),
        _mm512_shuffle_i32x4::<ODD>(c, d),
    );
    _mm512_add_epi32(
        _mm512_shuffle_i32x4::<EVEN>(ab, cd),
        _mm512_shuffle_i32x4::<ODD>(ab, cd),
    )
}
