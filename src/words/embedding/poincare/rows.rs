//! The table that threads train without locks: rows of sixteen numbers, with their reads and
//! writes.
//!
//! Each number is read and written like a relaxed atomic: a row may mix two updates, a number never
//! does. Rust has no relaxed access to sixteen numbers at once, so the vector paths use assembly.
//! The compiler treats it as what it is: whole aligned 32-bit accesses and nothing else.
//!
//! Arithmetic is the same everywhere, in sixteen lanes without fused multiply-adds: every machine
//! gives the same result.

#[cfg(target_arch = "x86_64")]
use std::arch::{asm, x86_64::*};
use std::sync::atomic::{AtomicU32, Ordering};

use bytemuck::Pod;

#[cfg(target_arch = "x86_64")]
use crate::support::simd::Avx2;

/// Numbers per line.
pub(super) const LANES: usize = 16;

/// Sixteen numbers of the shared table.
#[repr(C, align(64))]
pub(super) struct Line([AtomicU32; LANES]);

impl Line {
    /// Creates a line from up to sixteen numbers, padded with zeros.
    pub(super) fn new(values: &[f32]) -> Self {
        let value = |lane: usize| values.get(lane).copied().unwrap_or(0.0);
        Line(std::array::from_fn(|lane| {
            AtomicU32::new(value(lane).to_bits())
        }))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = f32> {
        let value = |x: &AtomicU32| f32::from_bits(x.load(Ordering::Relaxed));
        self.0.iter().map(value)
    }
}

/// Sixteen numbers that belong to one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub(super) struct Lanes(pub(super) [f32; LANES]);

/// Operations on sixteen numbers at once. A value proves that the machine has the instructions.
///
/// An implementation must be inlined into functions that enable the features: elsewhere, vectors
/// cannot be passed as arguments.
pub(super) trait Vectors: Copy {
    type X: Pod;

    fn read(self, line: &Line) -> Self::X;
    fn write(self, line: &Line, x: Self::X);
    fn plus(self, x: Self::X, y: Self::X) -> Self::X;
    fn minus(self, x: Self::X, y: Self::X) -> Self::X;
    fn times(self, x: Self::X, y: Self::X) -> Self::X;
    /// The sum, by halves: lanes 0 and 8, 1 and 9, ….
    fn total(self, x: Self::X) -> f32;

    #[inline(always)]
    fn get(self, lanes: &Lanes) -> Self::X {
        bytemuck::cast(lanes.0)
    }

    #[inline(always)]
    fn put(self, lanes: &mut Lanes, x: Self::X) {
        lanes.0 = bytemuck::cast(x);
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::X {
        bytemuck::cast([x; LANES])
    }
}

/// Plain Rust and atomics, for every machine.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Vectors for Portable {
    type X = [f32; LANES];

    #[inline(always)]
    fn read(self, line: &Line) -> Self::X {
        std::array::from_fn(|lane| f32::from_bits(line.0[lane].load(Ordering::Relaxed)))
    }

    #[inline(always)]
    fn write(self, line: &Line, x: Self::X) {
        for (number, x) in line.0.iter().zip(x) {
            number.store(x.to_bits(), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn plus(self, x: Self::X, y: Self::X) -> Self::X {
        std::array::from_fn(|lane| x[lane] + y[lane])
    }

    #[inline(always)]
    fn minus(self, x: Self::X, y: Self::X) -> Self::X {
        std::array::from_fn(|lane| x[lane] - y[lane])
    }

    #[inline(always)]
    fn times(self, x: Self::X, y: Self::X) -> Self::X {
        std::array::from_fn(|lane| x[lane] * y[lane])
    }

    #[inline(always)]
    fn total(self, x: Self::X) -> f32 {
        let eight: [f32; 8] = std::array::from_fn(|lane| x[lane] + x[lane + 8]);
        let four: [f32; 4] = std::array::from_fn(|lane| eight[lane] + eight[lane + 4]);
        (four[0] + four[2]) + (four[1] + four[3])
    }
}

/// Operations on two vectors of eight, each named by its instruction.
#[cfg(target_arch = "x86_64")]
macro_rules! by_halves {
    ($($name:ident $instruction:ident),*) => {$(
        #[inline(always)]
        fn $name(self, x: Self::X, y: Self::X) -> Self::X {
            // SAFETY: the value proves the feature.
            unsafe { [$instruction(x[0], y[0]), $instruction(x[1], y[1])] }
        }
    )*};
}

/// AVX-512 trains no faster: a step waits for rows.
#[cfg(target_arch = "x86_64")]
impl Vectors for Avx2 {
    type X = [__m256; 2];

    by_halves!(plus _mm256_add_ps, minus _mm256_sub_ps, times _mm256_mul_ps);

    #[inline(always)]
    fn read(self, line: &Line) -> Self::X {
        // SAFETY: the value proves the feature.
        unsafe { read_avx2(line) }
    }

    #[inline(always)]
    fn write(self, line: &Line, x: Self::X) {
        // SAFETY: the value proves the feature.
        unsafe { write_avx2(line, x) }
    }

    #[inline(always)]
    fn total(self, [a, b]: Self::X) -> f32 {
        // SAFETY: the value proves the feature.
        unsafe {
            let x = _mm256_add_ps(a, b);
            let four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn read_avx2(line: &Line) -> [__m256; 2] {
    let (a, b): (__m256, __m256);
    // SAFETY: aligned reads of the line.
    unsafe {
        asm!(
            "vmovaps {a}, ymmword ptr [{line}]",
            "vmovaps {b}, ymmword ptr [{line} + 32]",
            line = in(reg) line, a = out(ymm_reg) a, b = lateout(ymm_reg) b,
            options(nostack, preserves_flags, readonly),
        );
    }
    [a, b]
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn write_avx2(line: &Line, [a, b]: [__m256; 2]) {
    // SAFETY: aligned writes of the line, which is shared as atomics.
    unsafe {
        asm!(
            "vmovaps ymmword ptr [{line}], {a}",
            "vmovaps ymmword ptr [{line} + 32], {b}",
            line = in(reg) line, a = in(ymm_reg) a, b = in(ymm_reg) b,
            options(nostack, preserves_flags),
        );
    }
}

/// Copies a row; returns its ‖x‖².
#[inline(always)]
pub(super) fn load<V: Vectors>(v: V, row: &[Line], out: &mut [Lanes]) -> f32 {
    let mut norm2 = v.splat(0.0);
    for (out, line) in out.iter_mut().zip(row) {
        let x = v.read(line);
        v.put(out, x);
        norm2 = v.plus(norm2, v.times(x, x));
    }
    v.total(norm2)
}

/// Copies a row x; returns ‖x‖² and ‖u - x‖².
#[inline(always)]
pub(super) fn load_beside<V: Vectors>(
    v: V,
    row: &[Line],
    u: &[Lanes],
    out: &mut [Lanes],
) -> (f32, f32) {
    let (mut norm2, mut apart2) = (v.splat(0.0), v.splat(0.0));
    for ((out, line), u) in out.iter_mut().zip(row).zip(u) {
        let x = v.read(line);
        v.put(out, x);
        let apart = v.minus(v.get(u), x);
        norm2 = v.plus(norm2, v.times(x, x));
        apart2 = v.plus(apart2, v.times(apart, apart));
    }
    (v.total(norm2), v.total(apart2))
}

/// Computes x -= rate·(x·of - (u - x)) and gradient += scale·(u - x); returns the new ‖x‖².
#[inline(always)]
pub(super) fn pull<V: Vectors>(
    v: V,
    x: &mut [Lanes],
    u: &[Lanes],
    gradient: &mut [Lanes],
    by: [f32; 3],
) -> f32 {
    let mut norm2 = v.splat(0.0);
    let [scale, rate, of] = by.map(|by| v.splat(by));
    for ((x, u), gradient) in x.iter_mut().zip(u).zip(gradient) {
        let old = v.get(x);
        let apart = v.minus(v.get(u), old);
        v.put(gradient, v.plus(v.get(gradient), v.times(scale, apart)));
        let step = v.times(rate, v.minus(v.times(old, of), apart));
        let new = v.minus(old, step);
        v.put(x, new);
        norm2 = v.plus(norm2, v.times(new, new));
    }
    v.total(norm2)
}

/// Computes u -= rate·(gradient + own·u); returns ‖u‖².
#[inline(always)]
pub(super) fn descend<V: Vectors>(
    v: V,
    u: &mut [Lanes],
    gradient: &[Lanes],
    [own, rate]: [f32; 2],
) -> f32 {
    let mut norm2 = v.splat(0.0);
    let (own, rate) = (v.splat(own), v.splat(rate));
    for (u, gradient) in u.iter_mut().zip(gradient) {
        let old = v.get(u);
        let along = v.plus(v.get(gradient), v.times(own, old));
        let new = v.minus(old, v.times(rate, along));
        v.put(u, new);
        norm2 = v.plus(norm2, v.times(new, new));
    }
    v.total(norm2)
}

/// Writes a vector to a row; `norm2` is its squared norm. A vector beyond the norm `reach` is
/// scaled back to it. A vector with an infinite or NaN norm is not written.
#[inline(always)]
pub(super) fn store<V: Vectors>(v: V, row: &[Line], x: &[Lanes], norm2: f32, reach: f32) {
    let norm = norm2.sqrt();
    if !norm.is_finite() {
        return;
    }
    let scale = v.splat(if norm > reach { reach / norm } else { 1.0 });
    for (line, x) in row.iter().zip(x) {
        v.write(line, v.times(scale, v.get(x)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Numbers = Vec<u32>;

    /// Calls all row operations in turn; returns every resulting number as bits.
    #[inline(always)]
    fn all<V: Vectors>(v: V, u: &[f32], x: &[f32], by: [f32; 3], reach: f32) -> Numbers {
        let lines = |values: &[f32]| -> Vec<Line> { values.chunks(LANES).map(Line::new).collect() };
        let (row_u, row_x) = (lines(u), lines(x));
        let zeros = vec![Lanes::default(); row_u.len()];
        let (mut u, mut x, mut gradient) = (zeros.clone(), zeros.clone(), zeros);
        let mut seen = vec![load(v, &row_u, &mut u)];
        seen.extend(<[f32; 2]>::from(load_beside(v, &row_x, &u, &mut x)));
        let norm2 = pull(v, &mut x, &u, &mut gradient, by);
        store(v, &row_x, &x, norm2, reach);
        seen.push(norm2);
        let norm2 = descend(v, &mut u, &gradient, [by[2], by[1]]);
        store(v, &row_u, &u, norm2, reach);
        seen.push(norm2);
        let rows = row_u.iter().chain(&row_x).flat_map(Line::values);
        seen.into_iter().chain(rows).map(f32::to_bits).collect()
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn all_avx2(v: Avx2, u: &[f32], x: &[f32], by: [f32; 3], reach: f32) -> Numbers {
        all(v, u, x, by, reach)
    }

    proptest! {
        /// Every machine gives the same bits, which agree with 64-bit arithmetic up to rounding.
        #[test]
        fn every_path_gives_the_same_bits(
            both in (1usize..70).prop_flat_map(|n| {
                let numbers = || prop::collection::vec(-0.2f32..0.2, n);
                (numbers(), numbers())
            }),
            by in prop::array::uniform3(-2.0f32..2.0),
            reach in prop_oneof![Just(1.0f32 - 1e-5), Just(0.1)],
        ) {
            let (u, x) = &both;
            let plain = all(Portable, u, x, by, reach);
            #[cfg(target_arch = "x86_64")]
            {
                if let Some(avx2) = Avx2::detect() {
                    // SAFETY: the feature was detected.
                    let wide = unsafe { all_avx2(avx2, u, x, by, reach) };
                    prop_assert_eq!(&plain, &wide);
                }
            }
            let [scale, rate, of] = by.map(f64::from);
            let wide = |v: &[f32]| v.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
            let norm2 = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
            let (u, x) = (wide(u), wide(x));
            let apart: Vec<f64> = u.iter().zip(&x).map(|(u, x)| u - x).collect();
            let pulled: Vec<f64> =
                x.iter().zip(&apart).map(|(x, apart)| x - rate * (x * of - apart)).collect();
            let descended: Vec<f64> =
                u.iter().zip(&apart).map(|(u, apart)| u - rate * (scale * apart + of * u)).collect();
            let mut expected =
                vec![norm2(&u), norm2(&x), norm2(&apart), norm2(&pulled), norm2(&descended)];
            for v in [descended, pulled] {
                let norm = norm2(&v).sqrt();
                let shrink = if norm > f64::from(reach) { f64::from(reach) / norm } else { 1.0 };
                expected.extend(v.iter().map(|x| x * shrink));
                let lines = v.len().div_ceil(LANES);
                expected.resize(expected.len() + lines * LANES - v.len(), 0.0);
            }
            prop_assert_eq!(expected.len(), plain.len());
            for (bits, expected) in plain.into_iter().zip(expected) {
                let got = f64::from(f32::from_bits(bits));
                prop_assert!((got - expected).abs() < 2e-6 * (1.0 + expected.abs()), "{} {}", got, expected);
            }
        }
    }

    /// A vector that is not finite leaves its row unchanged.
    #[test]
    fn infinite_vectors_are_not_written() {
        let row = [Line::new(&[0.5, 0.25])];
        let x = [Lanes([f32::INFINITY; LANES])];
        for norm2 in [f32::INFINITY, f32::NAN] {
            store(Portable, &row, &x, norm2, 1.0);
        }
        let values: Vec<f32> = row[0].values().collect();
        assert_eq!(values[..3], [0.5, 0.25, 0.0]);
    }
}
