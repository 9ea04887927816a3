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
    pub(crate) fn seen(&self, a: u32, b: &[u32], limits: &[Limits]) -> Seen {
        debug_assert!(b.len() <= TOGETHER && b.len() == limits.len());
        #[cfg(target_arch = "x86_64")]
        if self.avx512 {
            // SAFETY: the features were detected.
            return unsafe { self.seen_avx512(a, b, limits) };
        }
        let mut seen = Seen::default();
        for (i, (&b, limits)) in b.iter().zip(limits).enumerate() {
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
        let (least, most) = (least * (1.0 - 1e-9), most * (1.0 + 1e-9));
        seen.beyond |= u64::from(least > limits.far) << i;
        seen.within |= u64::from(most <= limits.near) << i;
        seen.outside |= u64::from(least > limits.least) << i;
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn seen_avx512(&self, a: u32, b: &[u32], limits: &[Limits]) -> Seen {
        for &b in b {
            for line in self.row(b) {
                prefetch(line);
            }
        }
        let row = self.row(a);
        let mut seen = Seen::default();
        for (i, (&b, limits)) in b.iter().zip(limits).enumerate() {
            let mut sum = _mm512_setzero_si512();
            for (x, y) in row.iter().zip(self.row(b)) {
                let [x0, x1] = widened(x);
                let [y0, y1] = widened(y);
                let (d0, d1) = (_mm512_sub_epi16(x0, y0), _mm512_sub_epi16(x1, y1));
                sum = _mm512_add_epi32(sum, _mm512_madd_epi16(d0, d0));
                sum = _mm512_add_epi32(sum, _mm512_madd_epi16(d1, d1));
            }
            let apart2 = _mm512_reduce_add_epi32(sum);
            self.say(apart2, self.error(a, b), limits, i, &mut seen);
        }
        seen
    }
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
            n in 1usize..140, count in 1usize..40, exponent in -40i32..40, offset in -3f32..3.0,
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
                    let limit = |d: &f64| Limits { far: d * factor, near: d * factor, least: d * factor };
                    let limits: Vec<Limits> = each.iter().map(limit).collect();
                    let seen = coarse.seen(a, &ids, &limits);
                    coarse.avx512 = false;
                    prop_assert_eq!(seen, coarse.seen(a, &ids, &limits));
                    coarse.avx512 = has_avx512();
                    for (i, (&d, limits)) in each.iter().zip(&limits).enumerate() {
                        prop_assert!(seen.beyond >> i & 1 == 0 || d > limits.far, "{d}");
                        prop_assert!(seen.within >> i & 1 == 0 || d <= limits.near, "{d}");
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
                far: apart * 0.95,
                near: apart * 1.05,
                least: apart * 0.9,
            };
            let certain = Seen {
                beyond: 1,
                within: 1,
                outside: 1,
            };
            assert_eq!(coarse.seen(0, &[b as u32], &[limits]), certain);
            let limits = Limits {
                far: apart,
                near: apart,
                least: apart,
            };
            assert_eq!(coarse.seen(0, &[b as u32], &[limits]), Seen::default());
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
