//! Standard normals, many at a time: the ziggurat (Marsaglia and Tsang 2000, in Doornik's form of
//! 2005).
//!
//! 1,024 layers of equal area cover the right half of the density. With f(x) = exp(-x²/2), layer i
//! reaches from 0 to x_i and from f(x_i) up to f(x_{i+1}); the lowest also holds the tail beyond
//! x_1. Of a draw's 64 bits, ten choose the layer and 52 the position in (-x_i, x_i). The position
//! is accepted at once if it is within x_{i+1}: 199 of 200 times. Otherwise one more draw decides
//! by the density itself, or Marsaglia's method draws the tail.
//!
//! **Precision.** In a layer the numbers are 2⁻⁵¹·x_i apart, at most 2⁻⁴⁸. The tables' rounding
//! changes the density by at most a relative 2⁻⁴⁰, which a test computes. The tail ends at 13.1; a
//! normal lies beyond it with a probability below 2⁻¹²⁷.
//!
//! Every path does the same operations in the same order: a stream gives the same bits with and
//! without AVX-512. (The tail, one draw in 18,000, uses logarithms of the system's library.)

use rand::{Rng, RngExt};

use crate::arithmetic::exp_minus;

const LAYERS: usize = 1024;
/// x_1, chosen so that the layers' areas are equal, and that area (computed to fifty digits).
const TAIL: f64 = 4.038_849_846_109_504;
const AREA: f64 = 0.001_226_324_646_353_088;

struct Layers {
    /// x_0 = area/f(x_1), the width of the lowest layer without its tail; x_1024 = 0.
    x: [f64; LAYERS + 1],
    /// f(x_i); f_0 is not used.
    f: [f64; LAYERS + 1],
}

static LAYERS_OF_NORMAL: Layers = Layers::new();

/// exp(-x²/2).
#[inline]
const fn density(x: f64) -> f64 {
    exp_minus(0.5 * x * x)
}

impl Layers {
    const fn new() -> Self {
        let (mut x, mut f) = ([0.0; LAYERS + 1], [0.0; LAYERS + 1]);
        x[0] = AREA / density(TAIL);
        x[1] = TAIL;
        f[1] = density(TAIL);
        let mut i = 1;
        while i + 1 < LAYERS {
            // f(x_{i+1}) = f(x_i) + area/x_i by Newton's method.
            let height = f[i] + AREA / x[i];
            let mut at = x[i];
            let mut step = 0;
            while step < 6 {
                let here = density(at);
                at += (here - height) / (at * here);
                step += 1;
            }
            x[i + 1] = at;
            f[i + 1] = density(at);
            i += 1;
        }
        f[LAYERS] = 1.0;
        Layers { x, f }
    }

    /// The layer of a draw, and its position there.
    #[inline(always)]
    fn place(&self, bits: u64) -> (usize, f64) {
        let layer = bits as usize % LAYERS;
        // 52 bits as a number in [2, 4), minus 3.
        let u = f64::from_bits(bits >> 12 | 0x4000_0000_0000_0000) - 3.0;
        (layer, u * self.x[layer])
    }

    /// Completes a draw that is not accepted at once, with further bits.
    fn finish(&self, mut bits: u64, rng: &mut impl Rng) -> f64 {
        loop {
            let (layer, x) = self.place(bits);
            if x.abs() < self.x[layer + 1] {
                return x;
            }
            if layer == 0 {
                return tail(rng).copysign(x);
            }
            let (low, high) = (self.f[layer], self.f[layer + 1]);
            if low + (high - low) * rng.random::<f64>() < density(x) {
                return x;
            }
            bits = rng.next_u64();
        }
    }
}

/// Draws a normal given that it exceeds [`TAIL`]: an exponential of that rate, accepted with
/// probability exp(-y²/2) (Marsaglia 1964).
#[cold]
fn tail(rng: &mut impl Rng) -> f64 {
    let mut exponential = || -(1.0 - rng.random::<f64>()).ln();
    loop {
        let (y, z) = (exponential() / TAIL, exponential());
        if 2.0 * z > y * y {
            return TAIL + y;
        }
    }
}

/// Fills `out` with independent standard normals; returns the sum of their squares.
#[inline]
pub(super) fn fill(rng: &mut impl Rng, out: &mut [f64]) -> f64 {
    if out.len() < 8 {
        // One by one: for less than a vector, the setup does not pay.
        return out.iter_mut().fold(0.0, |squares, x| {
            *x = LAYERS_OF_NORMAL.finish(rng.next_u64(), rng);
            squares + *x * *x
        });
    }
    rng.fill_bytes(bytemuck::cast_slice_mut(out));
    #[cfg(target_arch = "x86_64")]
    if crate::simd::Avx512Foundation::detect().is_some() {
        // SAFETY: the feature was detected.
        return unsafe { convert_avx512(rng, out) };
    }
    convert(rng, out)
}

/// Turns random bits into normals, in place; returns the sum of their squares.
fn convert(rng: &mut impl Rng, out: &mut [f64]) -> f64 {
    let mut squares = [0.0; 8];
    for chunk in out.chunks_mut(8) {
        let mut bits = [0; 8];
        let mut late = 0u8;
        for (lane, (x, bits)) in chunk.iter_mut().zip(&mut bits).enumerate() {
            *bits = u64::from_le(x.to_bits());
            let (layer, place) = LAYERS_OF_NORMAL.place(*bits);
            *x = place;
            late |= u8::from(place.abs() >= LAYERS_OF_NORMAL.x[layer + 1]) << lane;
        }
        if late != 0 {
            finish(late, &bits, rng, chunk);
        }
        for (sum, x) in squares.iter_mut().zip(chunk) {
            *sum += *x * *x;
        }
    }
    squares.iter().sum()
}

/// Redraws, in order, the lanes of `late`, which were not accepted at once.
#[cold]
fn finish(mut late: u8, bits: &[u64; 8], rng: &mut impl Rng, out: &mut [f64]) {
    while late != 0 {
        let lane = late.trailing_zeros() as usize;
        out[lane] = LAYERS_OF_NORMAL.finish(bits[lane], rng);
        late &= late - 1;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn convert_avx512(rng: &mut impl Rng, out: &mut [f64]) -> f64 {
    use std::arch::x86_64::*;
    let table = LAYERS_OF_NORMAL.x.as_ptr();
    let last = _mm512_set1_epi64(LAYERS as i64 - 1);
    let exponent = _mm512_set1_epi64(0x4000_0000_0000_0000);
    let mut squares = _mm512_setzero_pd();
    // Convert the numbers of a mask in place.
    let mut add = |at: *mut f64, lanes: u8| {
        // SAFETY: the caller guarantees the lanes.
        let bits = unsafe { _mm512_maskz_loadu_epi64(lanes, at.cast()) };
        let layer = _mm512_and_si512(bits, last);
        let u = _mm512_or_si512(_mm512_srli_epi64::<12>(bits), exponent);
        let u = _mm512_sub_pd(_mm512_castsi512_pd(u), _mm512_set1_pd(3.0));
        let mut layers = [0u64; 8];
        // SAFETY: eight numbers of 64 bits.
        unsafe { _mm512_storeu_si512(layers.as_mut_ptr().cast(), layer) };
        // A layer's two numbers are adjacent: eight loads of both are faster than two gathers.
        // SAFETY: layers are below 1024, and the table has one more entry.
        let both = layers.map(|layer| unsafe { _mm_loadu_pd(table.add(layer as usize)) });
        let four = |a, b, c, d| {
            let (low, high) = (_mm256_set_m128d(b, a), _mm256_set_m128d(d, c));
            _mm512_insertf64x4::<1>(_mm512_castpd256_pd512(low), high)
        };
        let even = four(both[0], both[2], both[4], both[6]);
        let odd = four(both[1], both[3], both[5], both[7]);
        let (wide, within) = (_mm512_unpacklo_pd(even, odd), _mm512_unpackhi_pd(even, odd));
        let mut x = _mm512_maskz_mul_pd(lanes, u, wide);
        let late = _mm512_mask_cmp_pd_mask::<_CMP_GE_OQ>(lanes, _mm512_abs_pd(x), within);
        if late != 0 {
            let (mut drawn, mut numbers) = ([0; 8], [0.0; 8]);
            // SAFETY: eight numbers of 64 bits each.
            unsafe {
                _mm512_storeu_si512(drawn.as_mut_ptr().cast(), bits);
                _mm512_storeu_pd(numbers.as_mut_ptr(), x);
            }
            finish(late, &drawn, rng, &mut numbers);
            // SAFETY: eight numbers.
            x = unsafe { _mm512_loadu_pd(numbers.as_ptr()) };
        }
        // SAFETY: as above.
        unsafe { _mm512_mask_storeu_pd(at, lanes, x) };
        // No fused multiply-add: the sums are those of `convert`.
        squares = _mm512_add_pd(squares, _mm512_mul_pd(x, x));
    };
    let (chunks, rest) = out.as_chunks_mut::<8>();
    for chunk in chunks {
        add(chunk.as_mut_ptr(), 0xff);
    }
    if !rest.is_empty() {
        add(rest.as_mut_ptr(), (1 << rest.len()) - 1);
    }
    let mut sums = [0.0f64; 8];
    // SAFETY: eight numbers.
    unsafe { _mm512_storeu_pd(sums.as_mut_ptr(), squares) };
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Randomness;
    use proptest::prelude::*;
    use statrs::distribution::{ContinuousCDF, Normal};
    use statrs::function::erf::erfc;

    fn rng(seed: u64) -> impl Rng {
        let key = Randomness::new(Some(seed)).next_key().expect("a key");
        key.stream(0)
    }

    /// The largest distance of an empirical distribution from its law (Massart 1990), at a
    /// false-alarm rate of 1e-7.
    fn massart(draws: usize) -> f64 {
        ((2.0 / 1e-7f64).ln() / (2.0 * draws as f64)).sqrt()
    }

    fn off(drawn: &mut [f64], cdf: impl Fn(f64) -> f64) -> f64 {
        drawn.sort_by(f64::total_cmp);
        let n = drawn.len() as f64;
        drawn.iter().enumerate().fold(0.0, |off, (i, &x)| {
            let p = cdf(x);
            off.max((p - i as f64 / n).abs())
                .max((p - (i + 1) as f64 / n).abs())
        })
    }

    /// The density at x is the sum of 1/x_i over the layers that hold x: with equal areas it equals
    /// f(x).
    #[test]
    fn layers_have_one_area_to_forty_bits() {
        let Layers { x, f } = &LAYERS_OF_NORMAL;
        // The mass of all layers above x, compared with f there, in units of the area.
        let mut height = 1.0 / x[0];
        for i in 1..LAYERS {
            assert!(x[i + 1] < x[i] && f[i] < f[i + 1], "layer {i}");
            let exact = (-0.5 * x[i] * x[i]).exp();
            assert!((f[i] / exact - 1.0).abs() < 2f64.powi(-49), "f({})", x[i]);
            assert!((height * AREA / f[i] - 1.0).abs() < 2f64.powi(-42), "{i}");
            height += 1.0 / x[i];
        }
        assert!((height * AREA - 1.0).abs() < 2f64.powi(-42), "{height}");
        // The lowest layer is its rectangle plus the tail. The tail's mass uses Laplace's continued
        // fraction: f(x)/(x + 1/(x + 2/(x + …))).
        let fraction = (1..=200)
            .rev()
            .fold(TAIL, |below, k| TAIL + f64::from(k) / below);
        let lowest = TAIL * density(TAIL) + density(TAIL) / fraction;
        assert!((lowest / AREA - 1.0).abs() < 2f64.powi(-48), "{lowest}");
        assert!((x[0] * density(TAIL) / AREA - 1.0).abs() < 2f64.powi(-50));
    }

    #[test]
    fn numbers_are_normal() {
        const DRAWS: usize = 4_000_000;
        let (mut rng, mut z) = (rng(31), vec![0.0; DRAWS]);
        let squares = fill(&mut rng, &mut z);
        assert!((squares / z.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-12);
        // Neighbours are independent: the angle of a pair is uniform, its square exponential.
        let mut pairs: Vec<(f64, f64)> = z.as_chunks().0.iter().map(|&[a, b]| (a, b)).collect();
        let mut angles: Vec<f64> = pairs.iter().map(|(a, b)| a.atan2(*b)).collect();
        let turn = |t: f64| t / std::f64::consts::TAU + 0.5;
        assert!(off(&mut angles, turn) < massart(DRAWS / 2));
        let mut radii: Vec<f64> = pairs.drain(..).map(|(a, b)| a * a + b * b).collect();
        assert!(off(&mut radii, |r| -(-0.5 * r).exp_m1()) < massart(DRAWS / 2));
        let normal = Normal::standard();
        assert!(off(&mut z, |x| normal.cdf(x)) < massart(DRAWS));
        // The number of draws beyond the tail's start agrees with its expectation: 214 ± 15.
        let beyond = z.iter().filter(|x| x.abs() > TAIL).count();
        let expected = DRAWS as f64 * erfc(TAIL / 2f64.sqrt());
        assert!(
            (beyond as f64 - expected).abs() < 5.6 * expected.sqrt(),
            "{beyond}"
        );
    }

    /// Draws not accepted at once, and the tail, each follow their own law.
    #[test]
    fn seldom_numbers_have_their_laws() {
        const DRAWS: usize = 200_000;
        let mut rng = rng(32);
        let mut tails: Vec<f64> = (0..DRAWS).map(|_| tail(&mut rng)).collect();
        let above = |x: f64| erfc(x / 2f64.sqrt()) / erfc(TAIL / 2f64.sqrt());
        assert!(tails.iter().all(|&x| x >= TAIL));
        assert!(off(&mut tails, |x| 1.0 - above(x)) < massart(DRAWS));
        // Draws of the highest layer alone are uniform below the density from f_1023 up.
        let layers = &LAYERS_OF_NORMAL;
        let (wide, low) = (layers.x[LAYERS - 1], layers.f[LAYERS - 1]);
        let mut highest = Vec::with_capacity(DRAWS);
        while highest.len() < DRAWS {
            let bits = rng.next_u64() | (LAYERS as u64 - 1);
            let (layer, x) = layers.place(bits);
            assert_eq!(layer, LAYERS - 1);
            if low + (1.0 - low) * rng.random::<f64>() < density(x) {
                highest.push(x);
            }
        }
        let normal = Normal::standard();
        let scale = (2.0 * std::f64::consts::PI).sqrt();
        let mass = |x: f64| scale * (normal.cdf(x) - normal.cdf(-wide)) - low * (x + wide);
        assert!(off(&mut highest, |x| mass(x) / mass(wide)) < massart(DRAWS));
    }

    #[cfg(target_arch = "x86_64")]
    proptest! {
        /// AVX-512 and portable code give the same bits, and use the same number of draws.
        #[test]
        fn every_path_gives_the_same_bits(seed: u64, n in 0usize..400, lowest in 0usize..40) {
            if crate::simd::Avx512Foundation::detect().is_some() {
                let (mut a, mut b) = (rng(seed), rng(seed));
                let mut plain = vec![0.0f64; n];
                a.fill_bytes(bytemuck::cast_slice_mut(&mut plain));
                // Put some draws into the lowest and the highest layer, which are rare.
                for (i, x) in plain.iter_mut().enumerate().take(lowest) {
                    let bits = x.to_bits() >> 10 << 10;
                    *x = f64::from_bits(bits | if i % 2 == 0 { 0 } else { 1023 });
                }
                b.fill_bytes(bytemuck::cast_slice_mut(&mut vec![0.0f64; n]));
                let mut wide = plain.clone();
                // SAFETY: the feature was detected.
                let sum = unsafe { convert_avx512(&mut b, &mut wide) };
                prop_assert_eq!(convert(&mut a, &mut plain).to_bits(), sum.to_bits());
                let bits = |v: &[f64]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                prop_assert_eq!(bits(&plain), bits(&wide));
                prop_assert_eq!(a.next_u64(), b.next_u64());
            }
        }
    }
}
