//! Passes over a row of costs: the vectorised inner loops of both solvers, in f64 and f32.
//!
//! Rows are padded with +∞ to a multiple of [`Number::LANES`]. All arrays beside a row have the
//! same length, with 0 in the padding, so a padded column is never nearest. A pass minimises only
//! values; the position of the minimum is looked up afterwards, which costs less than carrying
//! positions along.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Sub, SubAssign};

use crate::support::simd::vectorised;

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Numbers that the portable loops take together; every row is a multiple of it.
const CHUNK: usize = 8;

/// The two smallest numbers of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TwoLeast<T> {
    pub(super) least: T,
    /// The position of the least number, the first on ties.
    pub(super) at: usize,
    pub(super) second: T,
    /// The next position of the least number, if the second is equal.
    pub(super) tie: Option<usize>,
}

/// The type that costs are computed in.
pub(super) trait Number:
    Copy
    + Default
    + PartialOrd
    + std::fmt::Debug
    + Add<Output = Self>
    + Sub<Output = Self>
    + Div<Output = Self>
    + AddAssign
    + SubAssign
    + Sum
{
    /// Rows are padded to multiples of it.
    const LANES: usize;
    /// +∞, the padding of rows.
    const INFINITY: Self;
    /// -∞.
    const NEG_INFINITY: Self;

    /// The nearest number of this kind.
    fn of(x: f64) -> Self;

    /// Shortens distances to columns through a row: (row - v) + base. Returns the nearest column's
    /// distance and the column, the first on ties. Columns that are done have v = -∞ and distance
    /// +∞; at least one is not done.
    fn relax(row: &[Self], v: &[Self], base: Self, distance: &mut [Self]) -> (Self, usize);

    /// The two smallest of row - v.
    fn two_least(row: &[Self], v: &[Self]) -> TwoLeast<Self>;

    /// The smallest of row - v.
    fn least(row: &[Self], v: &[Self]) -> Self;

    /// Lowers `least` to row - u if that is smaller, and records the row `from` in `of`.
    fn lower(row: &[Self], u: Self, from: u32, least: &mut [Self], of: &mut [u32]);

    /// Adds a row to `sums`.
    fn add_row(row: &[Self], sums: &mut [Self]);
}

/// The smaller one; the second if the first is NaN.
#[inline(always)]
fn smaller<T: PartialOrd>(x: T, y: T) -> T {
    if x < y { x } else { y }
}

#[inline(always)]
fn larger<T: PartialOrd>(x: T, y: T) -> T {
    if x > y { x } else { y }
}

fn least_of<T: Number>(lanes: [T; CHUNK]) -> T {
    lanes.into_iter().fold(T::INFINITY, smaller)
}

fn relax_body<T: Number>(row: &[T], v: &[T], base: T, distance: &mut [T]) -> (T, usize) {
    let mut least = [T::INFINITY; CHUNK];
    let (row, _) = row.as_chunks::<CHUNK>();
    let (v, _) = v.as_chunks::<CHUNK>();
    let (chunks, _) = distance.as_chunks_mut::<CHUNK>();
    for ((row, v), distance) in row.iter().zip(v).zip(chunks) {
        for l in 0..CHUNK {
            distance[l] = smaller((row[l] - v[l]) + base, distance[l]);
            least[l] = smaller(distance[l], least[l]);
        }
    }
    let least = least_of(least);
    let at = distance.iter().position(|&d| d == least);
    (least, at.unwrap_or(usize::MAX))
}

fn two_least_body<T: Number>(row: &[T], v: &[T]) -> TwoLeast<T> {
    let (mut first, mut next) = ([T::INFINITY; CHUNK], [T::INFINITY; CHUNK]);
    let chunks = row.as_chunks::<CHUNK>().0.iter().zip(v.as_chunks().0);
    for (row, v) in chunks {
        let v: &[T; CHUNK] = v;
        for l in 0..CHUNK {
            let x = row[l] - v[l];
            next[l] = smaller(larger(x, first[l]), next[l]);
            first[l] = smaller(x, first[l]);
        }
    }
    let least = least_of(first);
    // Use the second of the lane with the least number, and the first of all other lanes.
    if let Some(lane) = first.iter().position(|&x| x == least) {
        first[lane] = next[lane];
    }
    let second = least_of(first);
    let place = |from: usize| {
        let mut rest = row.iter().zip(v).enumerate().skip(from);
        rest.find(|(_, (c, v))| **c - **v == least).map(|(j, _)| j)
    };
    let at = place(0).unwrap_or(usize::MAX);
    TwoLeast {
        least,
        at,
        second,
        tie: (second == least).then(|| place(at + 1)).flatten(),
    }
}

fn least_body<T: Number>(row: &[T], v: &[T]) -> T {
    let mut least = [T::INFINITY; CHUNK];
    for (row, v) in row.as_chunks::<CHUNK>().0.iter().zip(v.as_chunks().0) {
        let v: &[T; CHUNK] = v;
        for l in 0..CHUNK {
            least[l] = smaller(row[l] - v[l], least[l]);
        }
    }
    least_of(least)
}

fn lower_body<T: Number>(row: &[T], u: T, from: u32, least: &mut [T], of: &mut [u32]) {
    for ((&c, least), of) in row.iter().zip(least).zip(of) {
        let x = c - u;
        let lower = x < *least;
        *least = if lower { x } else { *least };
        *of = if lower { from } else { *of };
    }
}

fn add_body<T: Number>(row: &[T], sums: &mut [T]) {
    for (sum, &c) in sums.iter_mut().zip(row) {
        *sum += c;
    }
}

/// The two smallest numbers in two vectors; each lane of the first holds the smaller one.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn two_of_eight(first: __m512d, next: __m512d) -> (f64, f64) {
    let fold = |(first, next): (__m512d, __m512d), f: __m512d, n: __m512d| {
        (
            _mm512_min_pd(first, f),
            _mm512_min_pd(_mm512_min_pd(next, n), _mm512_max_pd(first, f)),
        )
    };
    let halves = |x| _mm512_shuffle_f64x2::<0b01_00_11_10>(x, x);
    let quarters = |x| _mm512_shuffle_f64x2::<0b10_11_00_01>(x, x);
    let lanes = |x| _mm512_permute_pd::<0b0101_0101>(x);
    let two = fold((first, next), halves(first), halves(next));
    let two = fold(two, quarters(two.0), quarters(two.1));
    let two = fold(two, lanes(two.0), lanes(two.1));
    (_mm512_cvtsd_f64(two.0), _mm512_cvtsd_f64(two.1))
}

/// See [`two_of_eight`].
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn two_of_sixteen(first: __m512, next: __m512) -> (f32, f32) {
    let fold = |(first, next): (__m512, __m512), f: __m512, n: __m512| {
        (
            _mm512_min_ps(first, f),
            _mm512_min_ps(_mm512_min_ps(next, n), _mm512_max_ps(first, f)),
        )
    };
    let halves = |x| _mm512_shuffle_f32x4::<0b01_00_11_10>(x, x);
    let quarters = |x| _mm512_shuffle_f32x4::<0b10_11_00_01>(x, x);
    let pairs = |x| _mm512_permute_ps::<0b01_00_11_10>(x);
    let lanes = |x| _mm512_permute_ps::<0b10_11_00_01>(x);
    let two = fold((first, next), halves(first), halves(next));
    let two = fold(two, quarters(two.0), quarters(two.1));
    let two = fold(two, pairs(two.0), pairs(two.1));
    let two = fold(two, lanes(two.0), lanes(two.1));
    (_mm512_cvtss_f32(two.0), _mm512_cvtss_f32(two.1))
}

/// A type's passes by AVX-512: the same results, whole vectors at a time.
#[cfg(target_arch = "x86_64")]
macro_rules! wide {
    (
        $wide:ident, $type:ty, $lanes:expr, $mask:ty, $set:ident, $load:ident, $store:ident, $add:ident,
        $sub:ident, $min:ident, $max:ident, $reduce:ident, $equal:ident, $less:ident,
        $set_rows:ident, $load_rows:ident, $store_rows:ident, $choose_rows:ident, $two_of_lanes:ident
    ) => {
        mod $wide {
            use super::*;

            type Type = $type;
            const LANES: usize = $lanes;
            /// Vectors whose lanes fill a mask of 64 bits.
            const VECTORS_PER_MASK: usize = 64 / LANES;

            /// Positions in some vectors as bits: a branch for each would be mispredicted too
            /// often.
            #[inline(always)]
            fn places<V>(vectors: impl Iterator<Item = V>, equal: impl Fn(V) -> $mask) -> u64 {
                let each = vectors.zip((0..64).step_by(LANES));
                each.fold(0, |all, (vector, at)| all | u64::from(equal(vector)) << at)
            }

            /// A vector of row - v.
            #[inline(always)]
            fn chunks<'a>(
                row: &'a [Type],
                v: &'a [Type],
            ) -> impl Iterator<Item = (&'a [Type; LANES], &'a [Type; LANES])> {
                let (row, v) = (row.as_chunks().0, v.as_chunks().0);
                row.iter().zip(v)
            }

            #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
            pub(super) fn relax(
                row: &[Type],
                v: &[Type],
                base: Type,
                distance: &mut [Type],
            ) -> (Type, usize) {
                let base = $set(base);
                // Alternate between two, to hide the latency of a minimum.
                let (mut least, mut other) = ($set(Type::INFINITY), $set(Type::INFINITY));
                let (vectors, _) = distance.as_chunks_mut::<LANES>();
                for ((row, v), distance) in chunks(row, v).zip(&mut *vectors) {
                    // SAFETY: each of them has LANES numbers.
                    let new = unsafe {
                        let by = $add($sub($load(row.as_ptr()), $load(v.as_ptr())), base);
                        let new = $min(by, $load(distance.as_ptr()));
                        $store(distance.as_mut_ptr(), new);
                        new
                    };
                    (least, other) = (other, $min(least, new));
                }
                let least = $reduce($min(least, other));
                let all = $set(least);
                for (k, some) in vectors.chunks(VECTORS_PER_MASK).enumerate() {
                    let places = places(some.iter(), |distance| {
                        // SAFETY: as above.
                        $equal(unsafe { $load(distance.as_ptr()) }, all)
                    });
                    if places != 0 {
                        return (least, 64 * k + places.trailing_zeros() as usize);
                    }
                }
                (least, usize::MAX)
            }

            #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
            pub(super) fn two_least(row: &[Type], v: &[Type]) -> TwoLeast<Type> {
                let (mut first, mut next) = ($set(Type::INFINITY), $set(Type::INFINITY));
                for (row, v) in chunks(row, v) {
                    // SAFETY: both have LANES numbers.
                    let x = unsafe { $sub($load(row.as_ptr()), $load(v.as_ptr())) };
                    next = $min(next, $max(x, first));
                    first = $min(first, x);
                }
                let (least, second) = $two_of_lanes(first, next);
                let all = $set(least);
                let (mut at, mut tie) = (usize::MAX, None);
                let (row, v) = (row.as_chunks::<LANES>().0, v.as_chunks::<LANES>().0);
                for (k, (row, v)) in row
                    .chunks(VECTORS_PER_MASK)
                    .zip(v.chunks(VECTORS_PER_MASK))
                    .enumerate()
                {
                    let mut places = places(row.iter().zip(v), |(row, v)| {
                        // SAFETY: as above.
                        $equal(unsafe { $sub($load(row.as_ptr()), $load(v.as_ptr())) }, all)
                    });
                    if places != 0 && at == usize::MAX {
                        at = 64 * k + places.trailing_zeros() as usize;
                        if second != least {
                            break;
                        }
                        places &= places - 1;
                    }
                    if places != 0 {
                        tie = Some(64 * k + places.trailing_zeros() as usize);
                        break;
                    }
                }
                TwoLeast {
                    least,
                    at,
                    second,
                    tie,
                }
            }

            #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
            pub(super) fn least(row: &[Type], v: &[Type]) -> Type {
                let mut least = $set(Type::INFINITY);
                for (row, v) in chunks(row, v) {
                    // SAFETY: both have LANES numbers.
                    least = $min(least, unsafe {
                        $sub($load(row.as_ptr()), $load(v.as_ptr()))
                    });
                }
                $reduce(least)
            }

            #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
            pub(super) fn lower(
                row: &[Type],
                u: Type,
                from: u32,
                least: &mut [Type],
                of: &mut [u32],
            ) {
                let (row, _) = row.as_chunks::<LANES>();
                let (least, _) = least.as_chunks_mut::<LANES>();
                let (of, _) = of.as_chunks_mut::<LANES>();
                let (u, from) = ($set(u), $set_rows(from as i32));
                for ((row, least), of) in row.iter().zip(least).zip(of) {
                    // SAFETY: each of them has LANES numbers.
                    unsafe {
                        let x = $sub($load(row.as_ptr()), u);
                        let old = $load(least.as_ptr());
                        $store(least.as_mut_ptr(), $min(x, old));
                        // Blended instead of stored by mask: at opt-level 0 with LTO, as doctests
                        // are built, LLVM cannot compile two masked stores.
                        let before = $load_rows(of.as_ptr().cast());
                        let after = $choose_rows(before, $less(x, old), from);
                        $store_rows(of.as_mut_ptr().cast(), after);
                    }
                }
            }

            #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
            pub(super) fn add_row(row: &[Type], sums: &mut [Type]) {
                add_body(row, sums);
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
wide!(
    wide_f64,
    f64,
    8,
    u8,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_add_pd,
    _mm512_sub_pd,
    _mm512_min_pd,
    _mm512_max_pd,
    _mm512_reduce_min_pd,
    _mm512_cmpeq_pd_mask,
    _mm512_cmplt_pd_mask,
    _mm256_set1_epi32,
    _mm256_loadu_epi32,
    _mm256_storeu_epi32,
    _mm256_mask_mov_epi32,
    two_of_eight
);
#[cfg(target_arch = "x86_64")]
wide!(
    wide_f32,
    f32,
    16,
    u16,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_add_ps,
    _mm512_sub_ps,
    _mm512_min_ps,
    _mm512_max_ps,
    _mm512_reduce_min_ps,
    _mm512_cmpeq_ps_mask,
    _mm512_cmplt_ps_mask,
    _mm512_set1_epi32,
    _mm512_loadu_epi32,
    _mm512_storeu_epi32,
    _mm512_mask_mov_epi32,
    two_of_sixteen
);

vectorised! {
    /// The smallest of row · scale - v, for bounded costs and exact dual potentials.
    pub(super) fn least_scaled = least_scaled_body(row: &[f32], v: &[f64], scale: f64) -> f64
}

#[inline(always)]
fn least_scaled_body(row: &[f32], v: &[f64], scale: f64) -> f64 {
    let mut least = [f64::INFINITY; 2 * CHUNK];
    for (row, v) in row.as_chunks().0.iter().zip(v.as_chunks().0) {
        let (row, v): (&[f32; 2 * CHUNK], &[f64; 2 * CHUNK]) = (row, v);
        for l in 0..2 * CHUNK {
            least[l] = smaller(f64::from(row[l]) * scale - v[l], least[l]);
        }
    }
    least.into_iter().fold(f64::INFINITY, smaller)
}

/// Calls a function with every position where row · scale - v is at most `limit`, and with row ·
/// scale there.
pub(super) fn each_at_most(
    row: &[f32],
    v: &[f64],
    scale: f64,
    limit: f64,
    each: impl FnMut(usize, f64),
) {
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        // SAFETY: the features were detected.
        return unsafe { each_at_most_wide(row, v, scale, limit, each) };
    }
    each_at_most_body(row, v, scale, limit, each);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn each_at_most_wide(
    row: &[f32],
    v: &[f64],
    scale: f64,
    limit: f64,
    mut each: impl FnMut(usize, f64),
) {
    let (scales, limits) = (_mm512_set1_pd(scale), _mm512_set1_pd(limit));
    let (chunks, _) = row.as_chunks::<CHUNK>();
    for (k, (row, v)) in chunks.iter().zip(v.as_chunks::<CHUNK>().0).enumerate() {
        // SAFETY: both have eight numbers.
        let mut here = unsafe {
            let scaled = _mm512_mul_pd(_mm512_cvtps_pd(_mm256_loadu_ps(row.as_ptr())), scales);
            let above = _mm512_sub_pd(scaled, _mm512_loadu_pd(v.as_ptr()));
            _mm512_cmp_pd_mask::<_CMP_LE_OQ>(above, limits)
        };
        while here != 0 {
            let l = here.trailing_zeros() as usize;
            each(k * CHUNK + l, f64::from(row[l]) * scale);
            here &= here - 1;
        }
    }
}

fn each_at_most_body(
    row: &[f32],
    v: &[f64],
    scale: f64,
    limit: f64,
    mut each: impl FnMut(usize, f64),
) {
    for (j, (&c, v)) in row.iter().zip(v).enumerate() {
        let scaled = f64::from(c) * scale;
        if scaled - v <= limit {
            each(j, scaled);
        }
    }
}

/// Whether the machine has the instructions of the AVX-512 passes.
#[cfg(any(test, target_arch = "x86_64"))]
#[inline]
pub(super) fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return crate::support::simd::Avx512::detect().is_some();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

macro_rules! number {
    ($type:ty, $lanes:expr, $wide:ident) => {
        impl Number for $type {
            const LANES: usize = $lanes;
            const INFINITY: Self = <$type>::INFINITY;
            const NEG_INFINITY: Self = <$type>::NEG_INFINITY;

            #[inline]
            fn of(x: f64) -> Self {
                x as $type
            }

            number!(@pass $wide relax relax_body(
                row: &[Self], v: &[Self], base: Self, distance: &mut [Self]
            ) -> (Self, usize));
            number!(@pass $wide two_least two_least_body(row: &[Self], v: &[Self]) -> TwoLeast<Self>);
            number!(@pass $wide least least_body(row: &[Self], v: &[Self]) -> Self);
            number!(@pass $wide lower lower_body(
                row: &[Self], u: Self, from: u32, least: &mut [Self], of: &mut [u32]
            ) -> ());
            number!(@pass $wide add_row add_body(row: &[Self], sums: &mut [Self]) -> ());
        }
    };
    (@pass $wide:ident $name:ident $body:ident($($arg:ident: $type:ty),*) -> $result:ty) => {
        #[inline]
        fn $name($($arg: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            if has_avx512() {
                // SAFETY: the features were detected.
                return unsafe { $wide::$name($($arg),*) };
            }
            $body($($arg),*)
        }
    };
}

number!(f64, 8, wide_f64);
number!(f32, 16, wide_f32);

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    /// Compares the passes with their definition, column by column, for both implementations. The
    /// numbers are integers, so that many are equal.
    fn every_width_does_the_same<T: Number>() {
        let mut rng = crate::testing::rng(1);
        for columns in 1..70usize {
            for values in [3, 1000] {
                let stride = columns.next_multiple_of(T::LANES);
                let mut numbers = |padding: T| -> Vec<T> {
                    let mut numbers: Vec<T> = (0..columns)
                        .map(|_| T::of(f64::from(rng.random_range(0..values))))
                        .collect();
                    numbers.resize(stride, padding);
                    numbers
                };
                let (row, distance) = (numbers(T::INFINITY), numbers(T::INFINITY));
                let v = numbers(T::of(0.0));
                let differences: Vec<T> = row.iter().zip(&v).map(|(&c, &v)| c - v).collect();
                let mut order: Vec<usize> = (0..stride).collect();
                order.sort_by(|&i, &j| {
                    let by_value = differences[i].partial_cmp(&differences[j]);
                    by_value.unwrap().then(i.cmp(&j))
                });
                let (first, second) = (order[0], order[1]);
                let expected = TwoLeast {
                    least: differences[first],
                    at: first,
                    second: differences[second],
                    tie: (differences[first] == differences[second]).then_some(second),
                };
                assert_eq!(T::two_least(&row, &v), expected);
                assert_eq!(two_least_body(&row, &v), expected);
                assert_eq!(T::least(&row, &v), expected.least);
                assert_eq!(least_body(&row, &v), expected.least);

                let base = T::of(1.5);
                let by = |(&d, &x): (&T, &T)| smaller(x + base, d);
                let expected: Vec<T> = distance.iter().zip(&differences).map(by).collect();
                let nearest = expected.iter().fold(T::INFINITY, |m, &d| smaller(d, m));
                let at = expected.iter().position(|&d| d == nearest).unwrap();
                for relax in [T::relax, relax_body] {
                    let mut distance = distance.clone();
                    assert_eq!(relax(&row, &v, base, &mut distance), (nearest, at));
                    assert_eq!(distance, expected);
                }

                let u = T::of(0.25);
                for lower in [T::lower, lower_body] {
                    let (mut least, mut of) = (distance.clone(), vec![9; stride]);
                    lower(&row, u, 7, &mut least, &mut of);
                    for j in 0..stride {
                        let lower = row[j] - u < distance[j];
                        assert_eq!(least[j], if lower { row[j] - u } else { distance[j] });
                        assert_eq!(of[j], if lower { 7 } else { 9 });
                    }
                }

                for add in [T::add_row, add_body] {
                    let mut sums = v.clone();
                    add(&row, &mut sums);
                    assert!((0..stride).all(|j| sums[j] == v[j] + row[j]));
                }
            }
        }
    }

    #[test]
    fn scaled_rows_are_passed_as_they_are_defined() {
        let mut rng = crate::testing::rng(2);
        for columns in 1..70usize {
            let stride = columns.next_multiple_of(f32::LANES);
            let mut row: Vec<f32> = (0..columns).map(|_| rng.random()).collect();
            row.resize(stride, f32::INFINITY);
            let mut v: Vec<f64> = (0..columns).map(|_| rng.random()).collect();
            v.resize(stride, 0.0);
            let scale = 1.0 - 1e-6;
            let at = |j: usize| f64::from(row[j]) * scale;
            let least = (0..stride)
                .map(|j| at(j) - v[j])
                .fold(f64::INFINITY, f64::min);
            assert_eq!(least_scaled(&row, &v, scale), least);
            assert_eq!(least_scaled_body(&row, &v, scale), least);
            for limit in [least, 0.2, f64::NEG_INFINITY] {
                let expected: Vec<(usize, f64)> = (0..stride)
                    .filter(|&j| at(j) - v[j] <= limit)
                    .map(|j| (j, at(j)))
                    .collect();
                let mut found = Vec::new();
                each_at_most(&row, &v, scale, limit, |j, scaled| found.push((j, scaled)));
                assert_eq!(found, expected);
                found.clear();
                each_at_most_body(&row, &v, scale, limit, |j, scaled| found.push((j, scaled)));
                assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn every_width_does_the_same_in_f64() {
        every_width_does_the_same::<f64>();
    }

    #[test]
    fn every_width_does_the_same_in_f32() {
        every_width_does_the_same::<f32>();
    }
}
