//! A stream's numbers, many at a time.
//!
//! [`Bulk`] gives the numbers that its ChaCha12 generator would give, in the same order, from 16 blocks of
//! the cipher at once (8 with AVX2): with AVX-512 a number takes a third of the generator's own time. It is
//! for noise, which takes thousands; who draws a few words takes the generator.

use std::convert::Infallible;

use rand::rngs::ChaCha12Rng;
use rand::{Rng, TryRng};

#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512Foundation};

/// Bytes of a buffer and of a block, and 32-bit words of a block.
const BYTES: usize = 1024;
const BLOCK: usize = 64;
const WORDS: usize = 16;

/// A generator's stream from where it stands. Dropped, it leaves the generator behind the last word
/// that was taken.
pub(crate) struct Bulk<'a> {
    rng: &'a mut ChaCha12Rng,
    cipher: Option<Cipher>,
    /// The buffer's bytes from `at` on, whole words, are still to be taken.
    buffer: [u8; BYTES],
    at: usize,
    /// The block behind the buffer.
    next: u64,
}

impl<'a> Bulk<'a> {
    pub(crate) fn of(rng: &'a mut ChaCha12Rng) -> Self {
        let cipher = Cipher::detect(rng);
        Self::by(rng, cipher)
    }

    fn by(rng: &'a mut ChaCha12Rng, cipher: Option<Cipher>) -> Self {
        let position = rng.get_word_pos();
        let (block, word) = (position / WORDS as u128, position % WORDS as u128);
        rng.set_word_pos(block * WORDS as u128);
        let mut bulk = Bulk {
            rng,
            cipher,
            buffer: [0; BYTES],
            at: 0,
            next: block as u64,
        };
        bulk.refill();
        bulk.at = 4 * word as usize;
        bulk
    }

    #[inline(never)]
    fn refill(&mut self) {
        let Bulk { rng, cipher, .. } = self;
        generate(rng, cipher.as_ref(), self.next, &mut self.buffer);
        self.next = self.next.wrapping_add((BYTES / BLOCK) as u64);
        self.at = 0;
    }

    #[inline]
    fn word(&mut self) -> [u8; 4] {
        if self.at == BYTES {
            self.refill();
        }
        let [a, b, c, d, ..] = self.buffer[self.at..] else {
            unreachable!("whole words are left");
        };
        self.at += 4;
        [a, b, c, d]
    }

    /// As many whole words of the buffer as `out` takes; returns the bytes written.
    fn copy(&mut self, out: &mut [u8]) -> usize {
        let bytes = (out.len() / 4 * 4).min(BYTES - self.at);
        out[..bytes].copy_from_slice(&self.buffer[self.at..][..bytes]);
        self.at += bytes;
        bytes
    }
}

impl Drop for Bulk<'_> {
    fn drop(&mut self) {
        let end = u128::from(self.next) * WORDS as u128;
        self.rng.set_word_pos(end - ((BYTES - self.at) / 4) as u128);
    }
}

impl TryRng for Bulk<'_> {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_le_bytes(self.word()))
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        if let Some(bytes) = self.buffer[self.at..].first_chunk() {
            self.at += 8;
            return Ok(u64::from_le_bytes(*bytes));
        }
        let low = self.try_next_u32()?;
        Ok(u64::from(low) | u64::from(self.try_next_u32()?) << 32)
    }

    /// Whole words; of one that ends the bytes, what is left is not used.
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        let done = self.copy(out);
        let out = &mut out[done..];
        let direct = out.len() / BYTES * BYTES;
        let (whole, rest) = out.split_at_mut(direct);
        if direct > 0 {
            generate(self.rng, self.cipher.as_ref(), self.next, whole);
            self.next = self.next.wrapping_add((direct / BLOCK) as u64);
        }
        if !rest.is_empty() {
            if self.at == BYTES {
                self.refill();
            }
            let done = self.copy(rest);
            let rest = &mut rest[done..];
            if !rest.is_empty() {
                let word = self.word();
                rest.copy_from_slice(&word[..rest.len()]);
            }
        }
        Ok(())
    }
}

/// The blocks from `next` on, where the generator stands if it has to make them; `out` is a multiple of
/// the buffer long.
fn generate(rng: &mut ChaCha12Rng, cipher: Option<&Cipher>, next: u64, out: &mut [u8]) {
    match cipher {
        #[cfg(target_arch = "x86_64")]
        Some(cipher) => cipher.generate(next, out),
        _ => {
            let _ = next;
            rng.fill_bytes(out);
        }
    }
}

/// The vector path: ChaCha12's state without its counter.
#[cfg(target_arch = "x86_64")]
struct Cipher {
    state: [u32; WORDS],
    isa: Isa,
}

#[cfg(not(target_arch = "x86_64"))]
enum Cipher {}

#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
enum Isa {
    Avx512(Avx512Foundation),
    Avx2(Avx2),
}

#[cfg(target_arch = "x86_64")]
impl Isa {
    /// All that this machine has, best first.
    fn available() -> impl Iterator<Item = Isa> {
        let avx512 = Avx512Foundation::detect().map(Isa::Avx512);
        let avx2 = Avx2::detect().map(Isa::Avx2);
        avx512.into_iter().chain(avx2)
    }
}

impl Cipher {
    #[cfg(not(target_arch = "x86_64"))]
    fn detect(_: &ChaCha12Rng) -> Option<Self> {
        None
    }

    #[cfg(target_arch = "x86_64")]
    fn detect(rng: &ChaCha12Rng) -> Option<Self> {
        Some(Self::new(rng, Isa::available().next()?))
    }
}

#[cfg(target_arch = "x86_64")]
impl Cipher {
    fn new(rng: &ChaCha12Rng, isa: Isa) -> Self {
        // "expand 32-byte k", the key, the counter, the stream.
        let mut state = [0; WORDS];
        state[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
        let seed = rng.get_seed();
        for (word, four) in state[4..12].iter_mut().zip(seed.as_chunks().0) {
            *word = u32::from_le_bytes(*four);
        }
        let stream = rng.get_stream();
        state[14] = stream as u32;
        state[15] = (stream >> 32) as u32;
        Cipher { state, isa }
    }

    /// The blocks from `counter` on, as many as `out` holds: a multiple of 16.
    fn generate(&self, counter: u64, out: &mut [u8]) {
        let sixteen = out.as_chunks_mut().0;
        for (counter, out) in (0..).map(|i| counter.wrapping_add(16 * i)).zip(sixteen) {
            // SAFETY: the variant holds the proof of its features.
            unsafe {
                match self.isa {
                    Isa::Avx512(_) => avx512(&self.state, counter, out),
                    Isa::Avx2(_) => avx2(&self.state, counter, out),
                }
            }
        }
    }
}

/// The counters of `N` blocks: their low and their high halves.
#[cfg(target_arch = "x86_64")]
fn counters<const N: usize>(first: u64) -> [[u32; N]; 2] {
    let counter = |lane: usize| first.wrapping_add(lane as u64);
    [
        std::array::from_fn(|lane| counter(lane) as u32),
        std::array::from_fn(|lane| (counter(lane) >> 32) as u32),
    ]
}

/// The twelve rounds of ChaCha (Bernstein 2008) on `$x`, a vector for each word of the state.
#[cfg(target_arch = "x86_64")]
macro_rules! rounds {
    ($x:ident, $add:ident, $xor:ident, $rotate:ident) => {
        for _ in 0..6 {
            rounds!($x, $add, $xor, $rotate, 0, 4, 8, 12);
            rounds!($x, $add, $xor, $rotate, 1, 5, 9, 13);
            rounds!($x, $add, $xor, $rotate, 2, 6, 10, 14);
            rounds!($x, $add, $xor, $rotate, 3, 7, 11, 15);
            rounds!($x, $add, $xor, $rotate, 0, 5, 10, 15);
            rounds!($x, $add, $xor, $rotate, 1, 6, 11, 12);
            rounds!($x, $add, $xor, $rotate, 2, 7, 8, 13);
            rounds!($x, $add, $xor, $rotate, 3, 4, 9, 14);
        }
    };
    ($x:ident, $add:ident, $xor:ident, $rotate:ident, $a:expr, $b:expr, $c:expr, $d:expr) => {
        $x[$a] = $add($x[$a], $x[$b]);
        $x[$d] = $rotate::<16>($xor($x[$d], $x[$a]));
        $x[$c] = $add($x[$c], $x[$d]);
        $x[$b] = $rotate::<12>($xor($x[$b], $x[$c]));
        $x[$a] = $add($x[$a], $x[$b]);
        $x[$d] = $rotate::<8>($xor($x[$d], $x[$a]));
        $x[$c] = $add($x[$c], $x[$d]);
        $x[$b] = $rotate::<7>($xor($x[$b], $x[$c]));
    };
}

/// In every 128 bits the 4×4 matrices of `$x`'s words, transposed: from `[4g + k]` on lane q holds words
/// 4g to 4g + 3 of block 4q + k.
#[cfg(target_arch = "x86_64")]
macro_rules! transposed {
    ($x:ident, $low32:ident, $high32:ident, $low64:ident, $high64:ident) => {
        for four in $x.as_chunks_mut::<4>().0 {
            let [a, b, c, d] = *four;
            let (ab, more_ab) = ($low32(a, b), $high32(a, b));
            let (cd, more_cd) = ($low32(c, d), $high32(c, d));
            *four = [
                $low64(ab, cd),
                $high64(ab, cd),
                $low64(more_ab, more_cd),
                $high64(more_ab, more_cd),
            ];
        }
    };
}

/// Sixteen blocks.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(state: &[u32; WORDS], counter: u64, out: &mut [u8; BYTES]) {
    use std::arch::x86_64::*;
    let mut x: [__m512i; WORDS] = std::array::from_fn(|i| _mm512_set1_epi32(state[i] as i32));
    let [low, high] = counters::<16>(counter);
    // SAFETY: sixteen numbers of 32 bits each.
    unsafe {
        x[12] = _mm512_loadu_si512(low.as_ptr().cast());
        x[13] = _mm512_loadu_si512(high.as_ptr().cast());
    }
    let start = x;
    rounds!(x, _mm512_add_epi32, _mm512_xor_si512, _mm512_rol_epi32);
    for (x, start) in x.iter_mut().zip(start) {
        *x = _mm512_add_epi32(*x, start);
    }
    transposed!(
        x,
        _mm512_unpacklo_epi32,
        _mm512_unpackhi_epi32,
        _mm512_unpacklo_epi64,
        _mm512_unpackhi_epi64
    );
    for k in 0..4 {
        let [a, b, c, d] = [x[k], x[4 + k], x[8 + k], x[12 + k]];
        let (ab, more_ab) = (
            _mm512_shuffle_i32x4::<0x44>(a, b),
            _mm512_shuffle_i32x4::<0xee>(a, b),
        );
        let (cd, more_cd) = (
            _mm512_shuffle_i32x4::<0x44>(c, d),
            _mm512_shuffle_i32x4::<0xee>(c, d),
        );
        let blocks = [
            _mm512_shuffle_i32x4::<0x88>(ab, cd),
            _mm512_shuffle_i32x4::<0xdd>(ab, cd),
            _mm512_shuffle_i32x4::<0x88>(more_ab, more_cd),
            _mm512_shuffle_i32x4::<0xdd>(more_ab, more_cd),
        ];
        for (q, block) in blocks.into_iter().enumerate() {
            // SAFETY: block 4q + k of sixteen, of 64 bytes each.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().add(64 * (4 * q + k)).cast(), block) };
        }
    }
}

/// Sixteen blocks, in two halves.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(state: &[u32; WORDS], counter: u64, out: &mut [u8; BYTES]) {
    use std::arch::x86_64::*;

    #[inline]
    #[target_feature(enable = "avx2")]
    fn rotate<const LEFT: i32>(x: __m256i) -> __m256i {
        // By whole bytes in one instruction.
        let by_bytes = |a: i64, b: i64| _mm256_shuffle_epi8(x, _mm256_set_epi64x(b, a, b, a));
        match LEFT {
            16 => by_bytes(0x0504_0706_0100_0302, 0x0d0c_0f0e_0908_0b0a),
            12 => _mm256_or_si256(_mm256_slli_epi32::<12>(x), _mm256_srli_epi32::<20>(x)),
            8 => by_bytes(0x0605_0407_0201_0003, 0x0e0d_0c0f_0a09_080b),
            _ => _mm256_or_si256(_mm256_slli_epi32::<7>(x), _mm256_srli_epi32::<25>(x)),
        }
    }

    for half in 0..2 {
        let mut x: [__m256i; WORDS] = std::array::from_fn(|i| _mm256_set1_epi32(state[i] as i32));
        let [low, high] = counters::<8>(counter.wrapping_add(8 * half as u64));
        // SAFETY: eight numbers of 32 bits each.
        unsafe {
            x[12] = _mm256_loadu_si256(low.as_ptr().cast());
            x[13] = _mm256_loadu_si256(high.as_ptr().cast());
        }
        let start = x;
        rounds!(x, _mm256_add_epi32, _mm256_xor_si256, rotate);
        for (x, start) in x.iter_mut().zip(start) {
            *x = _mm256_add_epi32(*x, start);
        }
        transposed!(
            x,
            _mm256_unpacklo_epi32,
            _mm256_unpackhi_epi32,
            _mm256_unpacklo_epi64,
            _mm256_unpackhi_epi64
        );
        for k in 0..4 {
            for g in 0..2 {
                let (a, b) = (x[8 * g + k], x[8 * g + 4 + k]);
                let blocks = [
                    _mm256_permute2x128_si256::<0x20>(a, b),
                    _mm256_permute2x128_si256::<0x31>(a, b),
                ];
                for (q, block) in blocks.into_iter().enumerate() {
                    let at = 512 * half + 64 * (4 * q + k) + 32 * g;
                    // SAFETY: half a block of 64 bytes, of sixteen blocks.
                    unsafe { _mm256_storeu_si256(out.as_mut_ptr().add(at).cast(), block) };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;

    fn generator(seed: [u8; 32], stream: u64, position: u128) -> ChaCha12Rng {
        let mut rng = ChaCha12Rng::from_seed(seed);
        rng.set_stream(stream);
        rng.set_word_pos(position);
        rng
    }

    /// Every path of this machine.
    fn ciphers(rng: &ChaCha12Rng) -> Vec<Option<Cipher>> {
        let mut all = vec![None];
        #[cfg(target_arch = "x86_64")]
        all.extend(Isa::available().map(|isa| Some(Cipher::new(rng, isa))));
        #[cfg(not(target_arch = "x86_64"))]
        let _ = rng;
        all
    }

    proptest! {
        /// The same numbers as the generator's, whatever is asked for and wherever it stands, across
        /// the counter's 32 bits too; and the generator goes on behind them.
        #[test]
        fn a_bulk_is_its_generators_stream(
            seed: [u8; 32],
            stream: u64,
            block in prop_oneof![0u64..1000, (1u64 << 32) - 40..(1 << 32) + 5],
            offset in 0u128..16,
            asked in prop::collection::vec(0usize..5000, 0..12),
        ) {
            let at = u128::from(block) * 16 + offset;
            let mut plain = generator(seed, stream, at);
            let mut expected: Vec<Vec<u8>> = Vec::new();
            for &bytes in &asked {
                expected.push(match bytes {
                    0 => plain.next_u32().to_le_bytes().to_vec(),
                    1 => plain.next_u64().to_le_bytes().to_vec(),
                    _ => {
                        let mut out = vec![0; bytes];
                        plain.fill_bytes(&mut out);
                        out
                    }
                });
            }
            let end = plain.next_u64();
            for cipher in ciphers(&plain) {
                let mut rng = generator(seed, stream, at);
                let mut bulk = Bulk::by(&mut rng, cipher);
                for (&bytes, expected) in asked.iter().zip(&expected) {
                    let got = match bytes {
                        0 => bulk.next_u32().to_le_bytes().to_vec(),
                        1 => bulk.next_u64().to_le_bytes().to_vec(),
                        _ => {
                            let mut out = vec![0; bytes];
                            bulk.fill_bytes(&mut out);
                            out
                        }
                    };
                    prop_assert_eq!(&got, expected);
                }
                drop(bulk);
                prop_assert_eq!(rng.next_u64(), end);
            }
        }
    }
}
