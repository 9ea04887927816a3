//! Which words are certainly farther from a word than a limit, or nearer, seen from a byte a coordinate.
//!
//! Vectors x are kept as x̂ = c + unit·q, where q are integers from -127 to 127 and c is the mean. With
//! δ = ‖x - x̂‖₂, the triangle inequality gives |‖a - b‖₂ - unit·‖q_a - q_b‖₂| ≤ δ_a + δ_b, and
//! ‖q_a - q_b‖₂² is an integer. For the few words of which that does not say enough, whoever asks computes the distance.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::parallel::split;
use crate::prefetch::prefetch;
use crate::space::{Limits, Seen};

/// A cache line, on which every row starts.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([i8; 64]);

/// At most so many words are asked for at a time.
pub(crate) const TOGETHER: usize = 64;

/// Up to this dimension sums of squares of differences, at most 254² each, stay in i32.
const MOST_DIM: usize = 1 << 14;

/// Rows of 8-bit coordinates.
#[derive(Debug)]
pub(crate) struct Coarse {
    /// Lines a row.
    width: usize,
    lines: Vec<Line>,
    unit: f64,
    /// δ of every row, and a little for rounding.
    errors: Vec<f32>,
    avx512: bool,
}

impl Coarse {
    /// Bytes that the rows of so many words take.
    pub(crate) fn bytes(words: usize, dim: usize) -> usize {
        words.saturating_mul(dim.next_multiple_of(64))
    }

    /// Of row-major vectors; none where a byte a coordinate says nothing of them.
    pub(crate) fn new(vectors: &[f32], dim: usize) -> Option<Self> {
        let count = vectors.len() / dim.max(1);
        if count == 0 || dim > MOST_DIM {
            return None;
        }
        let mut center = vec![0.0f64; dim];
        for x in vectors.chunks_exact(dim) {
            center
                .iter_mut()
                .zip(x)
                .for_each(|(c, &x)| *c += f64::from(x));
        }
        center.iter_mut().for_each(|c| *c /= count as f64);
        let away = |x: &[f32]| {
            let each = x
                .iter()
                .zip(&center)
                .map(|(&x, c)| (f64::from(x) - c).abs());
            each.fold(0.0, f64::max)
        };
        let most = vectors.chunks_exact(dim).map(away).fold(0.0, f64::max);
        // A NaN is no size either.
        if !(1e-150..1e150).contains(&most) {
            return None;
        }
        // A smaller unit says more of most rows, and less of those with coordinates beyond 127 of it.
        let some = || vectors.chunks_exact(dim).step_by(count.div_ceil(1000));
        let errors = |unit| {
            some()
                .map(|x| rounded(x, &center, unit, |_, _| ()))
                .sum::<f64>()
        };
        let mut unit = most / 127.0;
        while errors(unit / 1.25) < errors(unit) {
            unit /= 1.25;
        }
        let width = dim.div_ceil(64);
        let mut lines = vec![Line([0; 64]); count * width];
        let mut errors = vec![0.0f32; count];
        const PIECE: usize = 1024;
        let pieces = lines
            .chunks_mut(PIECE * width)
            .zip(errors.chunks_mut(PIECE));
        let pieces = pieces.zip(vectors.chunks(PIECE * dim));
        // Rounding: f64 sums of n terms are off by a relative n·2⁻⁵³, differences from the mean by 2⁻⁵² of the
        // largest.
        let rounding = 1e-12 * most * (dim as f64).sqrt();
        split(pieces.collect(), |((lines, errors), vectors)| {
            let rows = lines.chunks_exact_mut(width).zip(vectors.chunks_exact(dim));
            for ((row, x), error) in rows.zip(errors) {
                let own = rounded(x, &center, unit, |d, q| row[d / 64].0[d % 64] = q);
                *error = ((own * (1.0 + 1e-9) + rounding) as f32).next_up();
            }
        });
        Some(Coarse {
            width,
            lines,
            unit,
            errors,
            avx512: has_avx512(),
        })
    }

    /// What can be said of the distances between `a` and the words `b`, at most [`TOGETHER`], as
    /// [`Metric::Euclidean`](super::Metric) computes them.
    #[inline]
    pub(crate) fn seen(&self, a: u32, b: &[u32], limits: &Limits) -> Seen {
        let lengths = [limits.far.len(), limits.near.len()];
        assert!(b.len() <= TOGETHER && lengths == [b.len(); 2]);
        #[cfg(target_arch = "x86_64")]
        if self.avx512 {
            // SAFETY: the features were detected, lengths were checked.
            return unsafe { self.seen_avx512(a, b, limits) };
        }
        let mut seen = Seen::default();
        for (i, &b) in b.iter().enumerate() {
            let apart2 = portable(self.row(a), self.row(b));
            self.say(apart2, self.error(a, b), limits, i, &mut seen);
        }
        seen
    }

    #[inline]
    fn error(&self, a: u32, b: u32) -> f64 {
        f64::from(self.errors[a as usize]) + f64::from(self.errors[b as usize])
    }

    #[inline]
    fn row(&self, id: u32) -> &[Line] {
        &self.lines[id as usize * self.width..][..self.width]
    }

    /// What ‖q_a - q_b‖₂² says of word i. A distance is computed to a relative (n/8 + 8)·2⁻⁵³ < 10⁻¹², and so
    /// is all here.
    #[inline]
    fn say(&self, apart2: i32, error: f64, limits: &Limits, i: usize, seen: &mut Seen) {
        let apart = self.unit * f64::from(apart2).sqrt();
        let (least, most) = (apart - error, apart + error);
        let (least, most) = (least * LESS, most * MORE);
        seen.beyond |= u64::from(least > limits.far[i]) << i;
        seen.within |= u64::from(most <= limits.near[i]) << i;
        seen.outside |= u64::from(least > limits.least) << i;
    }

    /// The same as [`say`](Self::say) of each, eight at a time.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn seen_avx512(&self, a: u32, b: &[u32], limits: &Limits) -> Seen {
        for &b in b {
            for line in self.row(b) {
                prefetch(line);
            }
        }
        let own = self.row(a);
        let (mut apart2, mut errors) = ([0i32; TOGETHER], [0f32; TOGETHER]);
        let (four, rest) = b.as_chunks::<4>();
        for (apart2, b) in apart2.as_chunks_mut().0.iter_mut().zip(four) {
            *apart2 = sums(b.map(|b| squares(own, self.row(b))));
        }
        for (apart2, &b) in apart2[b.len() - rest.len()..].iter_mut().zip(rest) {
            *apart2 = _mm512_reduce_add_epi32(squares(own, self.row(b)));
        }
        for (error, &b) in errors.iter_mut().zip(b) {
            *error = self.errors[b as usize];
        }
        let unit = _mm512_set1_pd(self.unit);
        let error_a = _mm512_set1_pd(f64::from(self.errors[a as usize]));
        let mut seen = Seen::default();
        for first in (0..b.len()).step_by(8) {
            let some: u8 = 0xFF >> (8 - (b.len() - first).min(8));
            // SAFETY: eight of the arrays' 64 numbers; of the limits those that there are.
            let (apart2, error_b, far, near) = unsafe {
                (
                    _mm256_loadu_si256(apart2.as_ptr().add(first).cast()),
                    _mm256_loadu_ps(errors.as_ptr().add(first)),
                    _mm512_maskz_loadu_pd(some, limits.far.as_ptr().add(first)),
                    _mm512_maskz_loadu_pd(some, limits.near.as_ptr().add(first)),
                )
            };
            let apart = _mm512_mul_pd(unit, _mm512_sqrt_pd(_mm512_cvtepi32_pd(apart2)));
            let error = _mm512_add_pd(error_a, _mm512_cvtps_pd(error_b));
            let least = _mm512_mul_pd(_mm512_sub_pd(apart, error), _mm512_set1_pd(LESS));
            let most = _mm512_mul_pd(_mm512_add_pd(apart, error), _mm512_set1_pd(MORE));
            let beyond = _mm512_mask_cmp_pd_mask::<_CMP_GT_OQ>(some, least, far);
            let within = _mm512_mask_cmp_pd_mask::<_CMP_LE_OQ>(some, most, near);
            let least_of_all = _mm512_set1_pd(limits.least);
            let outside = _mm512_mask_cmp_pd_mask::<_CMP_GT_OQ>(some, least, least_of_all);
            seen.beyond |= u64::from(beyond) << first;
            seen.within |= u64::from(within) << first;
            seen.outside |= u64::from(outside) << first;
        }
        seen
    }
}

/// For the rounding of what is computed in f64.
const LESS: f64 = 1.0 - 1e-9;
const MORE: f64 = 1.0 + 1e-9;

/// Sixteen sums that make ‖q_a - q_b‖₂² together.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn squares(a: &[Line], b: &[Line]) -> __m512i {
    let mut sum = _mm512_setzero_si512();
    for (x, y) in a.iter().zip(b) {
        let [x0, x1] = widened(x);
        let [y0, y1] = widened(y);
        let (d0, d1) = (_mm512_sub_epi16(x0, y0), _mm512_sub_epi16(x1, y1));
        sum = _mm512_add_epi32(sum, _mm512_madd_epi16(d0, d0));
        sum = _mm512_add_epi32(sum, _mm512_madd_epi16(d1, d1));
    }
    sum
}

/// The sum of each.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn sums([a, b, c, d]: [__m512i; 4]) -> [i32; 4] {
    let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    let abcd = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    let half = _mm256_add_epi32(
        _mm512_castsi512_si256(abcd),
        _mm512_extracti64x4_epi64::<1>(abcd),
    );
    let quarter = _mm_add_epi32(
        _mm256_castsi256_si128(half),
        _mm256_extracti128_si256::<1>(half),
    );
    let mut out = [0; 4];
    // SAFETY: four integers.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), quarter) };
    out
}

/// Rounds a vector to integers of at most 127, which `keep` is told; the norm of what is lost.
fn rounded(x: &[f32], center: &[f64], unit: f64, mut keep: impl FnMut(usize, i8)) -> f64 {
    let mut error2 = 0.0;
    for (d, (&x, c)) in x.iter().zip(center).enumerate() {
        let x = f64::from(x) - c;
        let q = (x / unit).round_ties_even().clamp(-127.0, 127.0);
        keep(d, q as i8);
        error2 += (x - q * unit).powi(2);
    }
    error2.sqrt()
}

/// The 64 integers of a line in 16 bits.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn widened(line: &Line) -> [__m512i; 2] {
    let at = line.0.as_ptr();
    // SAFETY: a line is 64 bytes.
    unsafe {
        [
            _mm512_cvtepi8_epi16(_mm256_loadu_si256(at.cast())),
            _mm512_cvtepi8_epi16(_mm256_loadu_si256(at.add(32).cast())),
        ]
    }
}

fn portable(a: &[Line], b: &[Line]) -> i32 {
    let mut sum = 0;
    for (a, b) in a.iter().zip(b) {
        for (&x, &y) in a.0.iter().zip(&b.0) {
            let d = i32::from(x) - i32::from(y);
            sum += d * d;
        }
    }
    sum
}

fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{Rng, RngExt};

    use super::*;
    use crate::metric::Metric;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        /// Against the distances themselves, with limits just below and above them.
        #[test]
        fn what_is_seen_is_so(
            n in 1usize..140, count in 1usize..=64, exponent in -40i32..40, offset in -3f32..3.0,
            duplicates: bool, seed: u64
        ) {
            let key = crate::Randomness::new(Some(seed)).next_key().unwrap();
            let mut rng = key.stream(0);
            let scale = 2f32.powi(exponent);
            let mut vectors: Vec<f32> = (0..n * count)
                .map(|_| scale * (offset + rng.random_range(-1f32..1.0)))
                .collect();
            if duplicates {
                let first = vectors[..n].to_vec();
                vectors.chunks_exact_mut(n).step_by(3).for_each(|x| x.copy_from_slice(&first));
            }
            let Some(mut coarse) = Coarse::new(&vectors, n) else {
                // All words at one point.
                let first = &vectors[..n];
                prop_assert!(vectors.chunks_exact(n).all(|x| x == first));
                return Ok(());
            };
            let ids: Vec<u32> = (0..count as u32).collect();
            let row = |id: u32| &vectors[id as usize * n..][..n];
            for _ in 0..4 {
                let a = rng.random_range(0..count as u32);
                let each: Vec<f64> = ids.iter().map(|&b| Metric::Euclidean.distance(row(a), row(b))).collect();
                for factor in [0.0, 0.5, 1.0 - 1e-9, 1.0, 1.1] {
                    let limits: Vec<f64> = each.iter().map(|d| d * factor).collect();
                    let limits = Limits { far: &limits, near: &limits, least: each[0] * factor };
                    let seen = coarse.seen(a, &ids, &limits);
                    coarse.avx512 = false;
                    prop_assert_eq!(seen, coarse.seen(a, &ids, &limits));
                    coarse.avx512 = has_avx512();
                    for (i, &d) in each.iter().enumerate() {
                        prop_assert!(seen.beyond >> i & 1 == 0 || d > limits.far[i], "{d}");
                        prop_assert!(seen.within >> i & 1 == 0 || d <= limits.near[i], "{d}");
                        prop_assert!(seen.outside >> i & 1 == 0 || d > limits.least, "{d}");
                    }
                }
            }
        }
    }

    /// It is of use: of words in a ball, those at twice the limit are seen to be beyond.
    #[test]
    fn it_sees_far_words() {
        let mut rng = crate::Randomness::new(Some(1))
            .next_key()
            .unwrap()
            .stream(0);
        let n = 50;
        let vectors: Vec<f32> = (0..40 * n).map(|_| (rng.next_u32() >> 8) as f32).collect();
        let coarse = Coarse::new(&vectors, n).unwrap();
        let row = |id: usize| &vectors[id * n..][..n];
        for b in 1..40 {
            let apart = Metric::Euclidean.distance(row(0), row(b));
            let limits = Limits {
                far: &[apart * 0.95],
                near: &[apart * 1.05],
                least: apart * 0.9,
            };
            let certain = Seen {
                beyond: 1,
                within: 1,
                outside: 1,
            };
            assert_eq!(coarse.seen(0, &[b as u32], &limits), certain);
            let limits = Limits {
                far: &[apart],
                near: &[apart],
                least: apart,
            };
            assert_eq!(coarse.seen(0, &[b as u32], &limits), Seen::default());
        }
    }

    #[test]
    fn what_has_no_unit_has_no_coarse() {
        assert!(Coarse::new(&[], 3).is_none());
        assert!(Coarse::new(&[1.0; 9], 3).is_none());
        assert!(Coarse::new(&[f32::NAN, 1.0], 1).is_none());
        assert!(Coarse::new(&[f32::INFINITY, 1.0], 1).is_none());
        assert!(Coarse::new(&vec![0.5; MOST_DIM + 1], MOST_DIM + 1).is_none());
    }
}
