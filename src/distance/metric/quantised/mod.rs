//! Lower and upper bounds on distances, from vectors quantised to one byte per coordinate.
//!
//! A vector x is stored as x̂ = c + unit·q, where c is the mean and q holds integers from -127
//! to 127. With δ = ‖x - x̂‖₂, the triangle inequality gives |‖a - b‖₂ - unit·‖q_a - q_b‖₂| ≤
//! δ_a + δ_b, and ‖q_a - q_b‖₂² is an integer. Callers compute the exact distance of the few words that
//! these bounds leave undecided.

#[cfg(target_arch = "x86_64")]
mod avx512;

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::distance::metric::{Limits, Proven};
use crate::support::parallel::split;
use crate::support::prefetch::prefetch;
#[cfg(target_arch = "x86_64")]
use crate::support::simd::{Avx2, Avx512VnniBytes};

/// A cache line; every row starts on one.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u8; 64]);

// SAFETY: bytes without padding, any of which may be 0.
unsafe impl bytemuck::Zeroable for Line {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Line {}

/// The values at the end of a row's last line, behind the integers.
#[derive(Clone, Copy)]
struct RowSums {
    /// The squared norm ‖q‖₂².
    norm: i32,
    /// 256 times the sum of q.
    sum: i32,
    /// δ, slightly larger for rounding.
    error: f32,
}

/// Bytes of [`RowSums`].
const ROW_SUMS: usize = 12;

impl RowSums {
    #[inline]
    fn of(row: &[Line]) -> Self {
        let bytes = row.last().map_or([[0; 4]; 3], |line| {
            let [.., a, b, c] = *line.0.as_chunks().0 else {
                return [[0; 4]; 3];
            };
            [a, b, c]
        });
        RowSums {
            norm: i32::from_ne_bytes(bytes[0]),
            sum: i32::from_ne_bytes(bytes[1]),
            error: f32::from_ne_bytes(bytes[2]),
        }
    }

    fn store(self, row: &mut [Line]) {
        let bytes = [
            self.norm.to_ne_bytes(),
            self.sum.to_ne_bytes(),
            self.error.to_ne_bytes(),
        ];
        if let Some(line) = row.last_mut() {
            line.0[64 - ROW_SUMS..].copy_from_slice(bytes.as_flattened());
        }
    }
}

/// Maximum number of words in one call.
pub(crate) const MAX_WORDS: usize = 64;

/// Up to this dimension, sums of squared differences (at most 254² each) fit in i32.
const MAX_DIM: usize = 1 << 14;

/// Rows of 8-bit coordinates.
#[derive(Debug)]
pub(crate) struct QuantisedBounds {
    /// Cache lines per row.
    width: usize,
    lines: Vec<Line>,
    unit: f64,
    isa: Isa,
}

/// The machine's instructions for products of 8-bit integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Isa {
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni(Avx512VnniBytes),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    Portable,
}

impl Isa {
    fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(proof) = Avx512VnniBytes::detect() {
            return Isa::Avx512Vnni(proof);
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(proof) = Avx2::detect() {
            return Isa::Avx2(proof);
        }
        Isa::Portable
    }
}

impl QuantisedBounds {
    /// Quantises row-major vectors; `None` if one byte per coordinate cannot represent them.
    pub(crate) fn new(vectors: &[f32], dim: usize) -> Option<Self> {
        let count = vectors.len() / dim.max(1);
        if count == 0 || dim > MAX_DIM {
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
        let finite = center.iter().all(|c| c.is_finite());
        if !(finite && (1e-150..1e150).contains(&most)) {
            return None;
        }
        // A smaller unit is more exact for most rows, and less exact for rows with coordinates
        // beyond 127 units.
        let mut integers = vec![0; dim];
        let mut errors = |unit| {
            let some = vectors.chunks_exact(dim).step_by(count.div_ceil(1000));
            let each = some.map(|x| rounded(x, &center, unit, &mut integers));
            each.sum::<f64>()
        };
        let mut unit = most / 127.0;
        let mut error = errors(unit);
        loop {
            let smaller = errors(unit / 1.25);
            if smaller >= error {
                break;
            }
            (unit, error) = (unit / 1.25, smaller);
        }
        let width = (dim + ROW_SUMS).div_ceil(64);
        let mut lines = vec![Line([0; 64]); count * width];
        const ROWS_PER_TASK: usize = 1024;
        let tasks = lines
            .chunks_mut(ROWS_PER_TASK * width)
            .zip(vectors.chunks(ROWS_PER_TASK * dim));
        // Rounding: f64 sums of n terms have a relative error of n·2⁻⁵³, differences from the mean
        // one of 2⁻⁵² of the largest.
        let rounding = 1e-12 * most * (dim as f64).sqrt();
        split(tasks.collect(), |(lines, vectors)| {
            let rows = lines.chunks_exact_mut(width).zip(vectors.chunks_exact(dim));
            for (row, x) in rows {
                let integers = &mut bytemuck::cast_slice_mut(row)[..dim];
                let own = rounded(x, &center, unit, integers);
                let each = integers.iter().map(|&q| i32::from(q));
                let (norm, sum) = (each.clone().map(|q| q * q).sum(), 256 * each.sum::<i32>());
                let error = ((own * (1.0 + 1e-9) + rounding) as f32).next_up();
                RowSums { norm, sum, error }.store(row);
            }
        });
        Some(QuantisedBounds {
            width,
            lines,
            unit,
            isa: Isa::detect(),
        })
    }

    /// Compares bounds on the distances between `a` and up to [`MAX_WORDS`] words `b` with limits.
    /// The distances are those that [`Metric::Euclidean`](super::Metric) computes.
    #[inline]
    pub(crate) fn compare(&self, a: u32, b: &[u32], limits: &Limits) -> Proven {
        let lengths = [limits.far.len(), limits.near.len()];
        assert!(b.len() <= MAX_WORDS && lengths == [b.len(); 2]);
        match self.isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the variant holds the proof of its features; lengths were checked.
            Isa::Avx512Vnni(_) => unsafe {
                match self.width {
                    1 => self.compare_avx512::<1>(a, b, limits),
                    _ => self.compare_avx512::<0>(a, b, limits),
                }
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the variant holds the proof of its feature.
            Isa::Avx2(_) => unsafe { self.compare_avx2(a, b, limits) },
            Isa::Portable => self.compare_by(product_portable, a, b, limits),
        }
    }

    /// Returns a lower and an upper bound on the least distance between `a` and one of the words
    /// `b`.
    #[inline]
    pub(crate) fn nearest(&self, a: u32, b: &[u32]) -> (f64, f64) {
        let mut nearest = (f64::INFINITY, f64::INFINITY);
        for b in b.chunks(MAX_WORDS) {
            let (least, most) = self.nearest_of_few(a, b);
            nearest = (nearest.0.min(least), nearest.1.min(most));
        }
        nearest
    }

    fn nearest_of_few(&self, a: u32, b: &[u32]) -> (f64, f64) {
        match self.isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the variant holds the proof of its features.
            Isa::Avx512Vnni(_) => unsafe {
                match self.width {
                    1 => self.nearest_avx512::<1>(a, b),
                    _ => self.nearest_avx512::<0>(a, b),
                }
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the variant holds the proof of its feature.
            Isa::Avx2(_) => unsafe { self.nearest_avx2(a, b) },
            Isa::Portable => self.nearest_by(product_portable, a, b),
        }
    }

    /// Compares, by a function that computes ⟨q_a, q_b⟩.
    #[inline(always)]
    fn compare_by(
        &self,
        product: impl Fn(&[Line], &[Line]) -> i32,
        a: u32,
        b: &[u32],
        limits: &Limits,
    ) -> Proven {
        let mut proven = Proven::default();
        b.iter().for_each(|&b| self.prefetch(b));
        for (i, &b) in b.iter().enumerate() {
            let (least, most) = self.between(&product, self.row(a), self.row(b));
            proven.beyond |= u64::from(least > limits.far[i]) << i;
            proven.within |= u64::from(most <= limits.near[i]) << i;
            proven.outside |= u64::from(least > limits.least) << i;
        }
        proven
    }

    /// Finds the bounds on the nearest word, by a function that computes ⟨q_a, q_b⟩.
    #[inline(always)]
    fn nearest_by(
        &self,
        product: impl Fn(&[Line], &[Line]) -> i32,
        a: u32,
        b: &[u32],
    ) -> (f64, f64) {
        let mut nearest = (f64::INFINITY, f64::INFINITY);
        b.iter().for_each(|&b| self.prefetch(b));
        for &b in b {
            let (least, most) = self.between(&product, self.row(a), self.row(b));
            nearest = (nearest.0.min(least), nearest.1.min(most));
        }
        nearest
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn compare_avx2(&self, a: u32, b: &[u32], limits: &Limits) -> Proven {
        self.compare_by(|x, y| product_avx2(x, y), a, b, limits)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn nearest_avx2(&self, a: u32, b: &[u32]) -> (f64, f64) {
        self.nearest_by(|x, y| product_avx2(x, y), a, b)
    }

    /// Prefetches the row of a word.
    #[inline(always)]
    fn prefetch(&self, id: u32) {
        for line in 0..self.width {
            // Any address may be prefetched.
            prefetch(
                self.lines
                    .as_ptr()
                    .wrapping_add(id as usize * self.width + line),
            );
        }
    }

    #[inline]
    fn row(&self, id: u32) -> &[Line] {
        &self.lines[id as usize * self.width..][..self.width]
    }

    /// Returns a lower and an upper bound on a distance. Computed distances have a relative error
    /// of (n/8 + 8)·2⁻⁵³ < 10⁻¹², and so has everything here.
    #[inline(always)]
    fn between(
        &self,
        product: impl Fn(&[Line], &[Line]) -> i32,
        a: &[Line],
        b: &[Line],
    ) -> (f64, f64) {
        let product = product(a, b);
        let [a, b] = [a, b].map(RowSums::of);
        let apart2 = a.norm + b.norm - 2 * product;
        let apart = self.unit * f64::from(apart2).sqrt();
        let error = f64::from(a.error) + f64::from(b.error);
        ((apart - error) * ROUND_DOWN, (apart + error) * ROUND_UP)
    }
}

/// ⟨q_a, q_b⟩.
fn product_portable(a: &[Line], b: &[Line]) -> i32 {
    let [x, y] = [a, b].map(|row| {
        let bytes: &[u8] = bytemuck::cast_slice(row);
        &bytes[..bytes.len() - ROW_SUMS]
    });
    let each = x.iter().zip(y);
    let each = each.map(|(&x, &y)| i32::from(x.cast_signed()) * i32::from(y.cast_signed()));
    each.sum()
}

/// ⟨q_a, q_b⟩.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn product_avx2(a: &[Line], b: &[Line]) -> i32 {
    let mut sum = _mm256_setzero_si256();
    let mut left = a.len();
    for (x, y) in a.iter().zip(b) {
        left -= 1;
        for part in 0..4 {
            // SAFETY: a line is four times 16 bytes.
            let [mut x, y] = [x, y].map(|line| unsafe {
                _mm_load_si128(line.0.as_ptr().add(16 * part).cast::<__m128i>())
            });
            if left == 0 && part == 3 {
                // The bytes of `RowSums` are no coordinates.
                x = _mm_and_si128(x, _mm_setr_epi32(-1, 0, 0, 0));
            }
            let (x, y) = (_mm256_cvtepi8_epi16(x), _mm256_cvtepi8_epi16(y));
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, y));
        }
    }
    let half = _mm_add_epi32(
        _mm256_castsi256_si128(sum),
        _mm256_extracti128_si256::<1>(sum),
    );
    let quarter = _mm_add_epi32(half, _mm_shuffle_epi32::<0b00_00_11_10>(half));
    let last = _mm_add_epi32(quarter, _mm_shuffle_epi32::<0b00_00_00_01>(quarter));
    _mm_cvtsi128_si32(last)
}

/// Factors that cover the rounding of f64 arithmetic.
const ROUND_DOWN: f64 = 1.0 - 1e-9;
const ROUND_UP: f64 = 1.0 + 1e-9;

/// Rounds a vector to integers of at most 127; returns the norm of the rounding error.
fn rounded(x: &[f32], center: &[f64], unit: f64, out: &mut [i8]) -> f64 {
    // Adding 1.5·2⁵² rounds to an integer, ties to even. `round_ties_even` is a call where the
    // compiler may not assume SSE 4.1.
    const ROUND: f64 = (3u64 << 51) as f64;
    // Eight sums, for vector registers.
    const L: usize = 8;
    let per_unit = unit.recip();
    let mut error2 = [0.0; L];
    let one = |error2: &mut f64, x: f32, c: f64, out: &mut i8| {
        let x = f64::from(x) - c;
        let rounded = (x * per_unit).clamp(-127.0, 127.0) + ROUND;
        // The integer is in the lowest bits.
        *out = rounded.to_bits() as i8;
        *error2 += (x - (rounded - ROUND) * unit).powi(2);
    };
    let ((x, x_rest), (c, c_rest)) = (x.as_chunks::<L>(), center.as_chunks::<L>());
    let (out, out_rest) = out.as_chunks_mut::<L>();
    for ((x, c), out) in x.iter().zip(c).zip(out) {
        for l in 0..L {
            one(&mut error2[l], x[l], c[l], &mut out[l]);
        }
    }
    for (((e, &x), &c), out) in error2.iter_mut().zip(x_rest).zip(c_rest).zip(out_rest) {
        one(e, x, c, out);
    }
    error2.iter().sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{Rng, RngExt};

    use super::*;
    use crate::distance::metric::Metric;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        /// Compares with exact distances, with limits just below and above them.
        #[test]
        fn proven_comparisons_hold(
            n in 1usize..140, count in 1usize..=64, exponent in -40i32..40, offset in -3f32..3.0,
            duplicates: bool, seed: u64
        ) {
            let mut rng = crate::testing::rng(seed);
            let scale = 2f32.powi(exponent);
            let mut vectors: Vec<f32> = (0..n * count)
                .map(|_| scale * (offset + rng.random_range(-1f32..1.0)))
                .collect();
            if duplicates {
                let first = vectors[..n].to_vec();
                vectors.chunks_exact_mut(n).step_by(3).for_each(|x| x.copy_from_slice(&first));
            }
            let Some(mut bounds) = QuantisedBounds::new(&vectors, n) else {
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
                    let proven = bounds.compare(a, &ids, &limits);
                    let (least, most) = bounds.nearest(a, &ids[1..]);
                    let nearest = each[1..].iter().copied().fold(f64::INFINITY, f64::min);
                    prop_assert!(least <= nearest && nearest <= most);
                    bounds.isa = Isa::Portable;
                    prop_assert_eq!(proven, bounds.compare(a, &ids, &limits));
                    prop_assert_eq!((least, most), bounds.nearest(a, &ids[1..]));
                    bounds.isa = Isa::detect();
                    for (i, &d) in each.iter().enumerate() {
                        prop_assert!(proven.beyond >> i & 1 == 0 || d > limits.far[i], "{d}");
                        prop_assert!(proven.within >> i & 1 == 0 || d <= limits.near[i], "{d}");
                        prop_assert!(proven.outside >> i & 1 == 0 || d > limits.least, "{d}");
                    }
                }
            }
        }
    }

    /// The bounds are useful: they prove that words a little farther than the limit are beyond it.
    #[test]
    fn bounds_prove_that_far_words_are_beyond() {
        let mut rng = crate::testing::rng(1);
        let n = 50;
        let vectors: Vec<f32> = (0..40 * n).map(|_| (rng.next_u32() >> 8) as f32).collect();
        let bounds = QuantisedBounds::new(&vectors, n).unwrap();
        let row = |id: usize| &vectors[id * n..][..n];
        for b in 1..40 {
            let apart = Metric::Euclidean.distance(row(0), row(b));
            let limits = Limits {
                far: &[apart * 0.95],
                near: &[apart * 1.05],
                least: apart * 0.9,
            };
            let certain = Proven {
                beyond: 1,
                within: 1,
                outside: 1,
            };
            assert_eq!(bounds.compare(0, &[b as u32], &limits), certain);
            let limits = Limits {
                far: &[apart],
                near: &[apart],
                least: apart,
            };
            assert_eq!(bounds.compare(0, &[b as u32], &limits), Proven::default());
        }
    }

    #[test]
    fn vectors_without_a_unit_have_no_bounds() {
        assert!(QuantisedBounds::new(&[], 3).is_none());
        assert!(QuantisedBounds::new(&[1.0; 9], 3).is_none());
        assert!(QuantisedBounds::new(&[f32::NAN, 1.0], 1).is_none());
        assert!(QuantisedBounds::new(&[f32::NAN, 1.0, 0.0, 2.0], 2).is_none());
        assert!(QuantisedBounds::new(&[f32::INFINITY, 1.0], 1).is_none());
        assert!(QuantisedBounds::new(&vec![0.5; MAX_DIM + 1], MAX_DIM + 1).is_none());
    }
}
