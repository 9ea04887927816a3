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

/// Operations on sixteen numbers at once.
///
/// # Safety
/// For every function: the machine has the instructions that the implementation names.
pub(super) trait Vectors {
    type X: Copy;

    unsafe fn read(line: &Line) -> Self::X;
    unsafe fn write(line: &Line, x: Self::X);
    unsafe fn get(lanes: &Lanes) -> Self::X;
    unsafe fn put(lanes: &mut Lanes, x: Self::X);
    unsafe fn splat(x: f32) -> Self::X;
    unsafe fn plus(x: Self::X, y: Self::X) -> Self::X;
    unsafe fn minus(x: Self::X, y: Self::X) -> Self::X;
    unsafe fn times(x: Self::X, y: Self::X) -> Self::X;
    /// The sum, by halves: lanes 0 and 8, 1 and 9, ….
    unsafe fn total(x: Self::X) -> f32;
}

/// Plain Rust and atomics, for every machine.
pub(super) struct Portable;

impl Vectors for Portable {
    type X = [f32; LANES];

    #[inline(always)]
    unsafe fn read(line: &Line) -> Self::X {
        std::array::from_fn(|lane| f32::from_bits(line.0[lane].load(Ordering::Relaxed)))
    }

    #[inline(always)]
    unsafe fn write(line: &Line, x: Self::X) {
        for (number, x) in line.0.iter().zip(x) {
            number.store(x.to_bits(), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    unsafe fn get(lanes: &Lanes) -> Self::X {
        lanes.0
    }

    #[inline(always)]
    unsafe fn put(lanes: &mut Lanes, x: Self::X) {
        lanes.0 = x;
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::X {
        [x; LANES]
    }

    #[inline(always)]
    unsafe fn plus(x: Self::X, y: Self::X) -> Self::X {
        std::array::from_fn(|lane| x[lane] + y[lane])
    }

    #[inline(always)]
    unsafe fn minus(x: Self::X, y: Self::X) -> Self::X {
        std::array::from_fn(|lane| x[lane] - y[lane])
    }

    #[inline(always)]
    unsafe fn times(x: Self::X, y: Self::X) -> Self::X {
        std::array::from_fn(|lane| x[lane] * y[lane])
    }

    #[inline(always)]
    unsafe fn total(x: Self::X) -> f32 {
        let eight: [f32; 8] = std::array::from_fn(|lane| x[lane] + x[lane + 8]);
        let four: [f32; 4] = std::array::from_fn(|lane| eight[lane] + eight[lane + 4]);
        (four[0] + four[2]) + (four[1] + four[3])
    }
}

/// For machines with AVX2. AVX-512 trains no faster: a step waits for rows.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2;

// These must be inlined into functions that enable the features: elsewhere, vectors cannot be
// passed as arguments.
#[cfg(target_arch = "x86_64")]
impl Vectors for Avx2 {
    type X = [__m256; 2];

    #[inline(always)]
    unsafe fn read(line: &Line) -> Self::X {
        // SAFETY: guaranteed by the caller.
        unsafe { read_avx2(line) }
    }

    #[inline(always)]
    unsafe fn write(line: &Line, x: Self::X) {
        // SAFETY: guaranteed by the caller.
        unsafe { write_avx2(line, x) }
    }

    #[inline(always)]
    unsafe fn get(lanes: &Lanes) -> Self::X {
        // SAFETY: sixteen numbers.
        unsafe {
            let at = lanes.0.as_ptr();
            [_mm256_load_ps(at), _mm256_load_ps(at.add(8))]
        }
    }

    #[inline(always)]
    unsafe fn put(lanes: &mut Lanes, [a, b]: Self::X) {
        // SAFETY: sixteen numbers.
        unsafe {
            let at = lanes.0.as_mut_ptr();
            _mm256_store_ps(at, a);
            _mm256_store_ps(at.add(8), b);
        }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::X {
        // SAFETY: guaranteed by the caller.
        unsafe { [_mm256_set1_ps(x); 2] }
    }

    #[inline(always)]
    unsafe fn plus(x: Self::X, y: Self::X) -> Self::X {
        // SAFETY: guaranteed by the caller.
        unsafe { [_mm256_add_ps(x[0], y[0]), _mm256_add_ps(x[1], y[1])] }
    }

    #[inline(always)]
    unsafe fn minus(x: Self::X, y: Self::X) -> Self::X {
        // SAFETY: guaranteed by the caller.
        unsafe { [_mm256_sub_ps(x[0], y[0]), _mm256_sub_ps(x[1], y[1])] }
    }

    #[inline(always)]
    unsafe fn times(x: Self::X, y: Self::X) -> Self::X {
        // SAFETY: guaranteed by the caller.
        unsafe { [_mm256_mul_ps(x[0], y[0]), _mm256_mul_ps(x[1], y[1])] }
    }

    #[inline(always)]
    unsafe fn total([a, b]: Self::X) -> f32 {
        // SAFETY: guaranteed by the caller.
        unsafe { total_of_eight(_mm256_add_ps(a, b)) }
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

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn total_of_eight(x: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}

/// Copies a row; returns its ‖x‖².
///
/// # Safety
/// The conditions of [`Vectors`].
#[inline(always)]
pub(super) unsafe fn load<V: Vectors>(row: &[Line], out: &mut [Lanes]) -> f32 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut norm2 = V::splat(0.0);
        for (out, line) in out.iter_mut().zip(row) {
            let x = V::read(line);
            V::put(out, x);
            norm2 = V::plus(norm2, V::times(x, x));
        }
        V::total(norm2)
    }
}

/// Copies a row x; returns ‖x‖² and ‖u - x‖².
///
/// # Safety
/// The conditions of [`Vectors`].
#[inline(always)]
pub(super) unsafe fn load_beside<V: Vectors>(
    row: &[Line],
    u: &[Lanes],
    out: &mut [Lanes],
) -> (f32, f32) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (mut norm2, mut apart2) = (V::splat(0.0), V::splat(0.0));
        for ((out, line), u) in out.iter_mut().zip(row).zip(u) {
            let x = V::read(line);
            V::put(out, x);
            let apart = V::minus(V::get(u), x);
            norm2 = V::plus(norm2, V::times(x, x));
            apart2 = V::plus(apart2, V::times(apart, apart));
        }
        (V::total(norm2), V::total(apart2))
    }
}

/// Computes x -= rate·(x·of - (u - x)) and gradient += scale·(u - x); returns the new ‖x‖².
///
/// # Safety
/// The conditions of [`Vectors`].
#[inline(always)]
pub(super) unsafe fn pull<V: Vectors>(
    x: &mut [Lanes],
    u: &[Lanes],
    gradient: &mut [Lanes],
    [scale, rate, of]: [f32; 3],
) -> f32 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut norm2 = V::splat(0.0);
        let (scale, rate, of) = (V::splat(scale), V::splat(rate), V::splat(of));
        for ((x, u), gradient) in x.iter_mut().zip(u).zip(gradient) {
            let old = V::get(x);
            let apart = V::minus(V::get(u), old);
            V::put(gradient, V::plus(V::get(gradient), V::times(scale, apart)));
            let step = V::times(rate, V::minus(V::times(old, of), apart));
            let new = V::minus(old, step);
            V::put(x, new);
            norm2 = V::plus(norm2, V::times(new, new));
        }
        V::total(norm2)
    }
}

/// Computes u -= rate·(gradient + own·u); returns ‖u‖².
///
/// # Safety
/// The conditions of [`Vectors`].
#[inline(always)]
pub(super) unsafe fn descend<V: Vectors>(
    u: &mut [Lanes],
    gradient: &[Lanes],
    [own, rate]: [f32; 2],
) -> f32 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut norm2 = V::splat(0.0);
        let (own, rate) = (V::splat(own), V::splat(rate));
        for (u, gradient) in u.iter_mut().zip(gradient) {
            let old = V::get(u);
            let along = V::plus(V::get(gradient), V::times(own, old));
            let new = V::minus(old, V::times(rate, along));
            V::put(u, new);
            norm2 = V::plus(norm2, V::times(new, new));
        }
        V::total(norm2)
    }
}

/// Writes a vector to a row; `norm2` is its squared norm. A vector beyond the norm `reach` is
/// scaled back to it. A vector with an infinite or NaN norm is not written.
///
/// # Safety
/// The conditions of [`Vectors`].
#[inline(always)]
pub(super) unsafe fn store<V: Vectors>(row: &[Line], x: &[Lanes], norm2: f32, reach: f32) {
    let norm = norm2.sqrt();
    if !norm.is_finite() {
        return;
    }
    let scale = if norm > reach { reach / norm } else { 1.0 };
    // SAFETY: guaranteed by the caller.
    unsafe {
        let scale = V::splat(scale);
        for (line, x) in row.iter().zip(x) {
            V::write(line, V::times(scale, V::get(x)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Numbers = Vec<u32>;

    /// Calls all row operations in turn; returns every resulting number as bits.
    ///
    /// # Safety
    /// The conditions of [`Vectors`].
    #[inline(always)]
    unsafe fn all<V: Vectors>(u: &[f32], x: &[f32], by: [f32; 3], reach: f32) -> Numbers {
        let lines = |values: &[f32]| -> Vec<Line> { values.chunks(LANES).map(Line::new).collect() };
        let (row_u, row_x) = (lines(u), lines(x));
        let zeros = vec![Lanes::default(); row_u.len()];
        let (mut u, mut x, mut gradient) = (zeros.clone(), zeros.clone(), zeros);
        let mut seen = Vec::new();
        // SAFETY: guaranteed by the caller.
        unsafe {
            seen.push(load::<V>(&row_u, &mut u));
            let (norm2, apart2) = load_beside::<V>(&row_x, &u, &mut x);
            seen.extend([norm2, apart2]);
            let norm2 = pull::<V>(&mut x, &u, &mut gradient, by);
            store::<V>(&row_x, &x, norm2, reach);
            seen.push(norm2);
            let norm2 = descend::<V>(&mut u, &gradient, [by[2], by[1]]);
            store::<V>(&row_u, &u, norm2, reach);
            seen.push(norm2);
        }
        let rows = row_u.iter().chain(&row_x).flat_map(Line::values);
        seen.into_iter().chain(rows).map(f32::to_bits).collect()
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn all_avx2(u: &[f32], x: &[f32], by: [f32; 3], reach: f32) -> Numbers {
        // SAFETY: the feature is here.
        unsafe { all::<Avx2>(u, x, by, reach) }
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
            // SAFETY: it needs no feature.
            let plain = unsafe { all::<Portable>(u, x, by, reach) };
            #[cfg(target_arch = "x86_64")]
            {
                if crate::support::simd::Avx2::detect().is_some() {
                    // SAFETY: the feature was detected.
                    let wide = unsafe { all_avx2(u, x, by, reach) };
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
            // SAFETY: it needs no feature.
            unsafe { store::<Portable>(&row, &x, norm2, 1.0) };
        }
        let values: Vec<f32> = row[0].values().collect();
        assert_eq!(values[..3], [0.5, 0.25, 0.0]);
    }
}
