//! ChaCha12, sixteen blocks at once.
//!
//! The cipher of Bernstein (2008), with 12 rounds, a 256-bit key, a 64-bit block counter and a
//! 64-bit stream number. It is the one that [`ChaCha12Rng`](rand::rngs::ChaCha12Rng) runs, here in
//! vectors of sixteen blocks (AVX-512) or eight (AVX2). It exists only for speed: with AVX-512, a
//! number takes a third of the generator's time. Machines without these instructions run the
//! generator itself.
//!
//! The tests compare both paths with published test vectors and with the generator. Neither the
//! order of instructions nor any memory access depends on a key, a counter or output.

use std::arch::x86_64::*;

use crate::simd::{Avx2, Avx512Foundation};

/// 32-bit words of a block, and bytes of sixteen blocks.
const WORDS: usize = 16;
pub(super) const GROUP: usize = 16 * 4 * WORDS;

/// A key and a stream, ready for any block: the initial state without its counter.
pub(super) struct ChaCha12 {
    state: [u32; WORDS],
    instructions: Instructions,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Instructions {
    Avx512(Avx512Foundation),
    Avx2(Avx2),
}

impl Instructions {
    /// All paths of this machine, best first.
    pub(super) fn available() -> impl Iterator<Item = Instructions> {
        let avx512 = Avx512Foundation::detect().map(Instructions::Avx512);
        let avx2 = Avx2::detect().map(Instructions::Avx2);
        avx512.into_iter().chain(avx2)
    }
}

impl ChaCha12 {
    pub(super) fn new(key: &[u8; 32], stream: u64, instructions: Instructions) -> Self {
        // "expand 32-byte k", the key, the counter, the stream.
        let mut state = [0; WORDS];
        state[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
        for (word, bytes) in state[4..12].iter_mut().zip(key.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        state[14] = stream as u32;
        state[15] = (stream >> 32) as u32;
        ChaCha12 {
            state,
            instructions,
        }
    }

    /// Writes the blocks from `counter` on, as many whole groups of sixteen as `out` holds.
    pub(super) fn generate(&self, counter: u64, out: &mut [u8]) {
        let groups = out.as_chunks_mut().0;
        for (counter, out) in (0..).map(|i| counter.wrapping_add(16 * i)).zip(groups) {
            // SAFETY: the variant holds the proof of its features.
            unsafe {
                match self.instructions {
                    Instructions::Avx512(_) => avx512(&self.state, counter, out),
                    Instructions::Avx2(_) => avx2(&self.state, counter, out),
                }
            }
        }
    }
}

/// The counters of `N` blocks: their low and their high halves.
fn counters<const N: usize>(first: u64) -> [[u32; N]; 2] {
    let counter = |lane: usize| first.wrapping_add(lane as u64);
    [
        std::array::from_fn(|lane| counter(lane) as u32),
        std::array::from_fn(|lane| (counter(lane) >> 32) as u32),
    ]
}

/// The twelve rounds of ChaCha (Bernstein 2008) on `$x`, a vector for each word of the state.
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

/// Transposes the 4×4 matrices of `$x`'s words in every 128 bits. Afterwards lane q of `[4g + k]`
/// holds words 4g to 4g + 3 of block 4q + k.
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
#[target_feature(enable = "avx512f")]
fn avx512(state: &[u32; WORDS], counter: u64, out: &mut [u8; GROUP]) {
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
#[target_feature(enable = "avx2")]
fn avx2(state: &[u32; WORDS], counter: u64, out: &mut [u8; GROUP]) {
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
    use rand::rngs::ChaCha12Rng;
    use rand::{Rng, SeedableRng};

    /// Key, stream (the draft's IV) and the first two blocks: draft-strombergson-chacha-test-vectors-01, all
    /// its cases of 12 rounds and 256 bits.
    const PUBLISHED: [(&str, &str, &str); 8] = [
        // TC1
        (
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0000000000000000",
            "9bf49a6a0755f953811fce125f2683d50429c3bb49e074147e0089a52eae155f0564f879d27ae3c02ce82834acfa8c79\
             3a629f2ca0de6919610be82f411326be0bd58841203e74fe86fc71338ce0173dc628ebb719bdcbcc151585214cc089b4\
             42258dcda14cf111c602b8971b8cc843e91e46ca905151c02744a6b017e69316",
        ),
        // TC2
        (
            "0100000000000000000000000000000000000000000000000000000000000000",
            "0000000000000000",
            "12056e595d56b0f6eef090f0cd25a20949248c2790525d0f930218ff0b4ddd10a6002239d9a454e29e107a7d06fefdfe\
             f0210feba044f9f29b1772c960dc29c00c7366c5cbc604240e665eb02a69372a7af979b26fbb78092ac7c4b88029a7c8\
             54513bc217bbfc7d90432e308eba15afc65aeb48ef100d5601e6afba257117a9",
        ),
        // TC3
        (
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0100000000000000",
            "64b8bdf87b828c4b6dbaf7ef698de03df8b33f635714418f9836ade59be1296946c953a0f38ecffc9ecb98e81d5d99a5\
             edfc8f9a0a45b9e41ef3b31f028f1d0f559db4a7f222c442fe23b9a2596a88285122ee4f1363896ea77ca150912ac723\
             bff04b026a2f807e03b29c02077d7b06fc1ab9827c13c8013a6d83bd3b52a26f",
        ),
        // TC4
        (
            "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            "ffffffffffffffff",
            "04bf88dae8e47a228fa47b7e6379434ba664a7d28f4dab84e5f8b464add20c3acaa69c5ab221a23a57eb5f345c96f4d1\
             322d0a2ff7a9cd43401cd536639a615a5c9429b55ca3c1b55354559669a154aca46cd761c41ab8ace385363b95675f06\
             8e18db5a673c11291bd4187892a9a3a33514f3712b26c13026103298ed76bc9a",
        ),
        // TC5
        (
            "5555555555555555555555555555555555555555555555555555555555555555",
            "5555555555555555",
            "a600f07727ff93f3da00dd74cc3e8bfb5ca7302f6a0a2944953de00450eecd40b860f66049f2eaed63b2ef39cc310d2c\
             488f5d9a241b615dc0ab70f921b91b95140eff4aa495ac61289b6bc57de072419d09daa7a7243990daf348a8f2831e59\
             7cf379b3b284f00bda27a4c68085374a8a5c38ded62d1141cae0bb838ddc2232",
        ),
        // TC6
        (
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "aaaaaaaaaaaaaaaa",
            "856505b01d3b47aae03d6a97aa0f033a9adcc94377babd8608864fb3f625b6e314f086158f9f725d811eeb953b7f7470\
             76e4c3f639fa841fad6c9a709e6213976dd6ee9b5e1e2e676b1c9e2b82c2e96c1648437bff2f0126b74e8ce0a9b06d17\
             20ac0b6f09086f28bc201587f0535ed9385270d08b4a9382f18f82dbde18210e",
        ),
        // TC7
        (
            "00112233445566778899aabbccddeeffffeeddccbbaa99887766554433221100",
            "0f1e2d3c4b5a6978",
            "7ed12a3a63912ae941ba6d4c0d5e862e568b0e5589346935505f064b8c2698dbf7d850667d8e67be639f3b4f6a16f92e\
             65ea80f6c7429445da1fc2c1b9365040e32e50c4106f3b3da1ce7ccb1e7140b153493c0f3ad9a9bcff077ec4596f1d0f\
             29bf9cbaa502820f732af5a93c49eee33d1c4f12af3b4297af91fe41ea9e94a2",
        ),
        // TC8
        (
            "c46ec1b18ce8a878725a37e780dfb7351f68ed2e194c79fbc6aebee1a667975d",
            "1ada31d5cf688221",
            "1482072784bc6d06b4e73bdc118bc0103c7976786ca918e06986aa251f7e9cc1b2749a0a16ee83b4242d2e99b08d7c20\
             092b80bc466c87283b61b1b39d0ffbabd94b116bc1ebdb329b9e4f620db695544a8e3d9b68473d0c975a46ad966ed631\
             e42aff530ad5eac7d8047adfa1e5113c91f3e3b883f1d189ac1c8fe07ba5a42b",
        ),
    ];

    fn bytes<const N: usize>(hex: &str) -> [u8; N] {
        assert_eq!(hex.len(), 2 * N);
        std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..][..2], 16).unwrap())
    }

    fn generator(key: [u8; 32], stream: u64, block: u64) -> ChaCha12Rng {
        let mut rng = ChaCha12Rng::from_seed(key);
        rng.set_stream(stream);
        rng.set_word_pos(u128::from(block) * WORDS as u128);
        rng
    }

    #[test]
    fn published_test_vectors() {
        for (key, stream, blocks) in PUBLISHED {
            let (key, stream) = (bytes(key), u64::from_le_bytes(bytes(stream)));
            let expected: [u8; 128] = bytes(blocks);
            for instructions in Instructions::available() {
                let mut out = [0; GROUP];
                ChaCha12::new(&key, stream, instructions).generate(0, &mut out);
                assert_eq!(out[..128], expected, "{instructions:?}");
            }
            let mut out = [0; 128];
            generator(key, stream, 0).fill_bytes(&mut out);
            assert_eq!(
                out, expected,
                "the generator of machines without these instructions"
            );
        }
    }

    /// The test vectors cover two blocks; these cover every lane, and counters that carry from the
    /// low half into the high one at each lane, and from the last block to the first.
    #[test]
    fn every_lane_and_carry_is_the_generators() {
        let mut choices = ChaCha12Rng::seed_from_u64(32);
        let mut counters: Vec<u64> = (0..=20).map(|back| (1u64 << 32) - back).collect();
        counters.extend((0..=20).map(|back| 0u64.wrapping_sub(back)));
        counters.extend((0..200).map(|_| choices.next_u64()));
        for counter in counters {
            let mut key = [0; 32];
            choices.fill_bytes(&mut key);
            let stream = choices.next_u64();
            let mut expected = [0; 3 * GROUP];
            generator(key, stream, counter).fill_bytes(&mut expected);
            for instructions in Instructions::available() {
                let mut out = [0; 3 * GROUP];
                ChaCha12::new(&key, stream, instructions).generate(counter, &mut out);
                assert!(out == expected, "block {counter}, {instructions:?}");
            }
        }
    }
}
