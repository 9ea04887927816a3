//! Randomness: one fresh key from the operating system for every call.
//!
//! A mechanism holds no generator state. Every call draws a 256-bit ChaCha key from the operating
//! system and derives one independent stream from it for each fixed-size part of the work. So draws
//! differ between objects, calls, threads, forked processes and unpickled copies, and the parts can
//! run on any number of threads.
//!
//! A seed replaces the key by one derived from the seed and the number of the call. It is for tests
//! only: anyone who knows the seed can undo the protection. Mechanisms then draw in the simplest way
//! that they have, which does not depend on the machine, on threads or on earlier calls.
//! [`Randomness::known_keys`] is for tests of all other ways.

use std::sync::atomic::{AtomicU64, Ordering};

use rand::Rng;
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

use crate::support::error::{Error, Result};

/// The source of keys: the operating system, or (tests only) a seed.
#[derive(Debug)]
pub struct Randomness {
    seed: Option<u64>,
    simple: bool,
    calls: AtomicU64,
}

impl Randomness {
    /// Takes keys from the operating system, or from `seed` for a reproducible test.
    pub fn new(seed: Option<u64>) -> Self {
        Randomness {
            seed,
            simple: seed.is_some(),
            calls: AtomicU64::new(0),
        }
    }

    /// Keys as with a seed, but draws by any way, as without: for tests of these ways. What is
    /// drawn also depends on the machine, on threads and on earlier calls.
    pub fn known_keys(seed: u64) -> Self {
        Randomness {
            simple: false,
            ..Randomness::new(Some(seed))
        }
    }

    /// Whether draws are made in the simplest way.
    pub(crate) fn takes_the_simple_draw(&self) -> bool {
        self.simple
    }

    /// The seed, if there is one.
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// Returns the key of the next call.
    ///
    /// # Errors
    /// [`Error::System`] if the operating system supplies no entropy.
    pub fn next_key(&self) -> Result<Key> {
        let mut key = [0u8; 32];
        match self.seed {
            None => getrandom::fill(&mut key).map_err(Error::system("entropy"))?,
            Some(seed) => {
                // Relaxed: no other memory access depends on the counter.
                let call = self.calls.fetch_add(1, Ordering::Relaxed);
                key[..8].copy_from_slice(&seed.to_le_bytes());
                key[8..22].copy_from_slice(b"fastdx seed v1");
                let mut rng = ChaCha12Rng::from_seed(key);
                rng.set_stream(call);
                rng.fill_bytes(&mut key);
            }
        }
        Ok(Key(key))
    }
}

impl Clone for Randomness {
    /// Clones the source; a seeded clone starts again at its first call.
    fn clone(&self) -> Self {
        Randomness {
            simple: self.simple,
            ..Randomness::new(self.seed)
        }
    }
}

/// The key of one call; its streams are independent generators.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// The generator of one part of the call's work.
    pub fn stream(&self, index: u64) -> ChaCha12Rng {
        let mut rng = ChaCha12Rng::from_seed(self.0);
        rng.set_stream(index);
        rng
    }
}

/// Draws a uniform integer below `bound`, exactly (by rejection); `bound` must not be 0.
#[inline]
pub fn uniform_below(rng: &mut impl Rng, bound: u32) -> u32 {
    debug_assert!(bound > 0);
    // Lemire (2019): the high half of a product, rejecting the few low halves that would cause a
    // bias.
    let mut product = u64::from(rng.next_u32()) * u64::from(bound);
    if (product as u32) < bound {
        let threshold = bound.wrapping_neg() % bound;
        while (product as u32) < threshold {
            product = u64::from(rng.next_u32()) * u64::from(bound);
        }
    }
    (product >> 32) as u32
}

/// Draws a uniform 128-bit integer below `bound`, exactly; `bound` must not be 0.
#[inline]
pub fn uniform_below_u128(rng: &mut impl Rng, bound: u128) -> u128 {
    debug_assert!(bound > 0);
    let shift = (bound - 1).leading_zeros().min(127);
    loop {
        let high = u128::from(rng.next_u64());
        let draw = ((high << 64) | u128::from(rng.next_u64())) >> shift;
        if draw < bound {
            return draw;
        }
    }
}

/// Returns ⌊(x·bound + more)/2⁶⁴⌋ for `more` below `bound`. With a uniform `more`, this is
/// ⌊u·bound⌋ for a u that is uniform among the numbers in [0, 1) whose first 64 bits are x. For
/// bounds of at most 2¹²⁷.
pub(crate) fn continued(x: u64, bound: u128, more: u128) -> u128 {
    let low = u128::from(x) * u128::from(bound as u64);
    let carry = (u128::from(low as u64) + u128::from(more as u64)) >> 64;
    u128::from(x) * (bound >> 64) + (low >> 64) + (more >> 64) + carry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_below_is_uniform() {
        let mut rng = Randomness::new(Some(7)).next_key().unwrap().stream(0);
        for bound in [1u32, 2, 3, 10] {
            let draws = 400_000;
            let (mut narrow, mut wide) = (vec![0u64; bound as usize], vec![0u64; bound as usize]);
            for _ in 0..draws {
                narrow[uniform_below(&mut rng, bound) as usize] += 1;
                wide[uniform_below_u128(&mut rng, u128::from(bound)) as usize] += 1;
            }
            let law = vec![1.0 / f64::from(bound); bound as usize];
            for counts in [narrow, wide] {
                crate::testing::assert_law(&counts, &law, &format!("below {bound}"));
            }
        }
    }

    #[test]
    fn a_continued_number_is_the_long_product() {
        for (x, bound, more) in [
            (0, 1u128, 0u128),
            (u64::MAX, 1 << 127, (1 << 127) - 1),
            (1 << 63, 5, 4),
            (u64::MAX, 3, 2),
            (0x1234_5678_9abc_def0, (1 << 100) + 77, 1 << 99),
        ] {
            // Digit by digit, in base 2³².
            let digits = |n: u128| -> Vec<u128> {
                (0..5)
                    .map(|i| n.unbounded_shr(32 * i) & 0xffff_ffff)
                    .collect()
            };
            let mut sums = [0u128; 8];
            for (i, a) in digits(u128::from(x)).into_iter().enumerate() {
                for (j, b) in digits(bound)
                    .into_iter()
                    .enumerate()
                    .filter(|(j, _)| i + j < 8)
                {
                    sums[i + j] += a * b;
                }
            }
            digits(more)
                .into_iter()
                .enumerate()
                .for_each(|(i, m)| sums[i] += m);
            for i in 0..7 {
                sums[i + 1] += sums[i] >> 32;
                sums[i] &= 0xffff_ffff;
            }
            let expected = (2..6).rev().fold(0, |n, i| n << 32 | sums[i]);
            assert_eq!(continued(x, bound, more), expected);
        }
    }

    #[test]
    fn keys_differ_unless_seeded() {
        let os = Randomness::new(None);
        assert_ne!(os.next_key().unwrap().0, os.next_key().unwrap().0);
        let (a, b) = (Randomness::new(Some(1)), Randomness::new(Some(1)));
        let first = a.next_key().unwrap();
        assert_eq!(first.0, b.next_key().unwrap().0);
        assert_ne!(first.0, a.next_key().unwrap().0);
        assert_ne!(first.stream(0).next_u64(), first.stream(1).next_u64());
    }
}
