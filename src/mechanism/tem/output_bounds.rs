//! Bounds on a word's distances to all outputs of a cover: four bits per output.
//!
//! A try outside the list takes the least distance to a set, which costs a bound for each of its
//! words. Most tries need to know only roughly how far the set is. So the distances of a word that
//! is drawn often are put on a ladder: a code tells between which two rungs an output's distance
//! lies, or that it is in the list. A code never decides which random bits are drawn, so draws are
//! the same with and without it.
//! [`output_codes`](super::output_codes) makes them.

use super::terms::Terms;
use crate::law::FLOOR_EXPONENT;
#[cfg(target_arch = "x86_64")]
use crate::simd::Avx512;

/// The code of outputs that are certainly in the list, and of those that may be.
pub(super) const INSIDE: u8 = 0;
pub(super) const UNSURE: u8 = 1;
/// The last code. It has no upper bound.
pub(super) const LAST: u8 = 15;
/// Rungs between those.
const RUNGS: u8 = LAST - UNSURE - 1;
/// Codes that are written together.
pub(super) const TILE: usize = 16;

/// The rungs of one word: code c from 2 to 14 stands for distances from first + (c - 2)·step to
/// first + (c - 1)·step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ladder {
    pub(super) first: f64,
    pub(super) step: f64,
    /// Outputs nearer than this are in the list.
    pub(super) inside: f64,
    /// Covers the errors of the distances and of the arithmetic.
    margin: f64,
}

/// The codes of one word.
#[derive(Debug)]
pub(super) struct OutputBounds {
    /// Two codes in a byte, that of the even output in the low bits. A few zeros follow, so that
    /// four bytes can be read at every place.
    codes: Box<[u8]>,
    ladder: Ladder,
    /// Two numbers for each code, compared with the first 32 bits of a try's u. Above `beyond`, the
    /// try is certainly refused; below `within`, it is certainly accepted.
    pub(super) beyond: [u32; 16],
    pub(super) within: [u32; 16],
}

/// Decisions that codes allow about tries; bit i is for try i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Decided {
    /// Certainly not accepted.
    pub(super) beyond: u64,
    /// Certainly outside the list, and accepted.
    pub(super) accepted: u64,
}

impl Ladder {
    /// The rungs for outputs farther than `least`, which are outside the list; `None` if the
    /// numbers are too extreme.
    pub(super) fn new(least: f64, terms: Terms) -> Option<Self> {
        // Above the rungs, a weight is below e^-3.5 of the envelope: few tries can be accepted.
        const RANGE: f64 = 3.5;
        let mut range = RANGE * terms.per_eta;
        if terms.gamma > least {
            range = range.min(terms.gamma - least);
        }
        let step = range / f64::from(RUNGS);
        // Far inside the range of f32.
        let fits = |x: f64| x > 1e-15 && x < 1e15;
        (fits(least) && fits(step)).then_some(Ladder {
            first: least,
            step,
            // `least` is a step of the grid beyond the list's end.
            inside: least - 3.0 * terms.grid.step(),
            margin: 0.0,
        })
    }

    /// Leaves room for distances with a relative error of `error`.
    pub(super) fn with_error(mut self, error: f64) -> Self {
        // Each f32 operation has a relative error of 2⁻²⁴, of at most the last rung.
        const ARITHMETIC: f64 = 1.0 / (1u64 << 19) as f64;
        let last = self.first + 16.0 * self.step;
        self.margin = last * (2.0 * error + ARITHMETIC);
        // The first rung is beyond the list, whatever the errors, and what is inside is inside.
        self.first += 2.0 * self.margin;
        self.inside -= 2.0 * self.margin;
        self
    }

    /// A lower and an upper bound on the distance of an output with this code, if it is outside the
    /// list. The lower one is beyond the list.
    fn between(&self, code: u8) -> Option<(f64, f64)> {
        let rung = f64::from(code.checked_sub(UNSURE + 1)?);
        let least = self.first + rung * self.step - self.margin;
        let most = match code {
            LAST => f64::INFINITY,
            _ => self.first + (rung + 1.0) * self.step + self.margin,
        };
        Some((least, most))
    }

    /// For each code, the first 32 bits of u above which a try is not accepted, and below which it
    /// is: see [`limits`](super::outside::limits).
    fn decided(&self, exponent: f64, terms: Terms) -> ([u32; 16], [u32; 16]) {
        // Covers the rounding of the exponentials and logarithms, like `Terms::limits`.
        const ROUNDING: f64 = 1e-6;
        const ALL: f64 = (1u64 << 32) as f64;
        let step = terms.grid.step();
        let exponent_at = |d: f64| terms.eta * d.min(terms.gamma);
        let (mut beyond, mut within) = ([u32::MAX; 16], [0; 16]);
        beyond[usize::from(INSIDE)] = 0;
        for code in 0..=LAST {
            let Some((least, most)) = self.between(code) else {
                continue;
            };
            // u = x/2³² + r with r in [0, 2⁻³²). Weights end at the floor.
            let lightest = exponent_at(least - step).min(FLOOR_EXPONENT - 1e-3);
            let above = ALL * (exponent + ROUNDING - lightest).exp();
            let heaviest = exponent_at(most + step);
            let below = ALL * (exponent - ROUNDING - heaviest).exp() - 1.0;
            // As conversions saturate, `above` from 2³² - 1 on is never exceeded. A NaN, from an
            // extreme ε, decides nothing.
            beyond[usize::from(code)] = if above >= 0.0 {
                above.ceil() as u32
            } else {
                u32::MAX
            };
            within[usize::from(code)] = below.max(0.0).floor() as u32;
        }
        (beyond, within)
    }
}

impl OutputBounds {
    /// Takes the codes that were made by a ladder; `exponent` is -ln of the envelope of the outputs
    /// outside the list.
    pub(super) fn new(codes: Box<[u8]>, ladder: Ladder, exponent: f64, terms: Terms) -> Self {
        let (beyond, within) = ladder.decided(exponent, terms);
        OutputBounds {
            codes,
            ladder,
            beyond,
            within,
        }
    }

    /// Bytes of one word's codes.
    pub(super) fn bytes(outputs: usize) -> usize {
        size_of::<Self>() + Self::length(outputs)
    }

    /// Bytes of the codes, with room for whole tiles and for reading four bytes at each place.
    pub(super) fn length(outputs: usize) -> usize {
        outputs.next_multiple_of(TILE) / 2 + 3
    }

    #[inline]
    pub(super) fn code(&self, y: u32) -> u8 {
        self.codes[y as usize / 2] >> (4 * (y % 2)) & LAST
    }

    /// A lower and an upper bound on the distance to an output, if its code says something.
    /// The lower one is beyond the list.
    #[inline]
    pub(super) fn between(&self, y: u32) -> Option<(f64, f64)> {
        self.ladder.between(self.code(y))
    }

    /// Decides tries of outputs as far as their codes allow; `x` has the first 64 bits of each u.
    /// All outputs must share one envelope, that of [`new`](Self::new).
    #[inline]
    pub(super) fn decide<const N: usize>(&self, outputs: &[u32; N], x: &[u64; N]) -> Decided {
        #[cfg(target_arch = "x86_64")]
        if N <= 16 && Avx512::detect().is_some() {
            let most = 2 * (self.codes.len() - 3);
            assert!(outputs.iter().all(|&y| (y as usize) < most));
            // SAFETY: the machine has the set; the outputs have codes.
            return unsafe { self.decide_avx512(outputs, x) };
        }
        self.decide_portable(outputs, x)
    }

    pub(super) fn decide_portable<const N: usize>(
        &self,
        outputs: &[u32; N],
        x: &[u64; N],
    ) -> Decided {
        let mut decided = Decided::default();
        for i in 0..N {
            let (code, x) = (usize::from(self.code(outputs[i])), (x[i] >> 32) as u32);
            decided.beyond |= u64::from(x > self.beyond[code]) << i;
            decided.accepted |= u64::from(x < self.within[code]) << i;
        }
        decided
    }

    /// # Safety
    /// There are at most 16 outputs, each below the number of codes.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    unsafe fn decide_avx512<const N: usize>(&self, outputs: &[u32; N], x: &[u64; N]) -> Decided {
        use std::arch::x86_64::*;
        let lanes = (u32::MAX >> (32 - N)) as __mmask16;
        // SAFETY: masked loads of N numbers; each read of four bytes lies within the codes, as the
        // caller and `length` say.
        unsafe {
            let y = _mm512_maskz_loadu_epi32(lanes, outputs.as_ptr().cast());
            let bytes = _mm512_mask_i32gather_epi32::<1>(
                _mm512_setzero_si512(),
                lanes,
                _mm512_srli_epi32::<1>(y),
                self.codes.as_ptr().cast(),
            );
            let odd = _mm512_and_si512(y, _mm512_set1_epi32(1));
            let code = _mm512_srlv_epi32(bytes, _mm512_slli_epi32::<2>(odd));
            // A permutation reads the four low bits of each index only.
            let of = |table: &[u32; 16]| {
                _mm512_permutexvar_epi32(code, _mm512_loadu_si512(table.as_ptr().cast()))
            };
            let high = |from: usize| {
                let lanes = (lanes >> from) as __mmask8;
                let x = _mm512_maskz_loadu_epi64(lanes, x.as_ptr().wrapping_add(from).cast());
                _mm512_cvtepi64_epi32(_mm512_srli_epi64::<32>(x))
            };
            let x = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(high(0)), high(8));
            Decided {
                beyond: _mm512_mask_cmpgt_epu32_mask(lanes, x, of(&self.beyond)).into(),
                accepted: _mm512_mask_cmplt_epu32_mask(lanes, x, of(&self.within)).into(),
            }
        }
    }
}
