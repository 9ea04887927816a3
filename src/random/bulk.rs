//! Takes many numbers of a stream at a time.
//!
//! [`Bulk`] returns the numbers that its ChaCha12 generator would return, in the same order, from a
//! buffer that [`chacha12`](super::chacha12) fills. It is for noise, which takes thousands of
//! numbers; a draw of a few words uses the generator directly.

use std::convert::Infallible;

use rand::rngs::ChaCha12Rng;
use rand::{Rng, TryRng};

#[cfg(target_arch = "x86_64")]
use super::chacha12::{ChaCha12, GROUP, Instructions};

/// Bytes of a buffer and of a block, and 32-bit words of a block.
const BYTES: usize = 1024;
const BLOCK: usize = 64;
const WORDS: usize = 16;

/// The vector path, if the machine has one.
#[cfg(target_arch = "x86_64")]
type Cipher = ChaCha12;
#[cfg(not(target_arch = "x86_64"))]
type Cipher = Infallible;

#[cfg(target_arch = "x86_64")]
const _: () = assert!(BYTES.is_multiple_of(GROUP));

/// A generator's stream from its current position. When dropped, it moves the generator to just
/// after the last word that was taken.
pub(crate) struct Bulk<'a> {
    rng: &'a mut ChaCha12Rng,
    cipher: Option<Cipher>,
    /// The bytes of the buffer from `at` on, whole words, are not yet taken.
    buffer: [u8; BYTES],
    at: usize,
    /// The block after the buffer.
    next: u64,
}

impl<'a> Bulk<'a> {
    pub(crate) fn of(rng: &'a mut ChaCha12Rng) -> Self {
        #[cfg(target_arch = "x86_64")]
        let cipher = Instructions::available().next().map(|set| cipher(rng, set));
        #[cfg(not(target_arch = "x86_64"))]
        let cipher = None;
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

    /// Copies as many whole words of the buffer as `out` takes; returns the number of bytes.
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
        // Blocks are counted modulo 2⁶⁴.
        self.rng
            .set_word_pos(end.wrapping_sub(((BYTES - self.at) / 4) as u128));
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

    /// Takes whole words; unused bytes of the last word are dropped.
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

#[cfg(target_arch = "x86_64")]
fn cipher(rng: &ChaCha12Rng, instructions: Instructions) -> Cipher {
    ChaCha12::new(&rng.get_seed(), rng.get_stream(), instructions)
}

/// Generates the blocks from `next` on. If there is no cipher, the generator itself must stand
/// there. The length of `out` is a multiple of the buffer's.
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
        all.extend(Instructions::available().map(|set| Some(cipher(rng, set))));
        #[cfg(not(target_arch = "x86_64"))]
        let _ = rng;
        all
    }

    proptest! {
        /// The numbers equal the generator's for all request sizes and positions, also across the
        /// counter's 32 and 64 bits. Afterwards the generator continues behind them.
        #[test]
        fn a_bulk_is_its_generators_stream(
            seed: [u8; 32],
            stream: u64,
            block in prop_oneof![
                0u64..1000,
                (1u64 << 32) - 40..(1 << 32) + 5,
                (0u64..40).prop_map(|back| u64::MAX - back),
                any::<u64>(),
            ],
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
