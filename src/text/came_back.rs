//! Records the words that came back unchanged, for a warning about the policy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One bit per word of a vocabulary, set once a draw returned the word itself.
///
/// It reveals something about the texts, so it stays in the process: it is neither saved nor shown.
#[derive(Clone)]
pub(super) struct CameBack(Arc<[AtomicU64]>);

impl CameBack {
    pub(super) fn new(words: usize) -> Self {
        let words = words.div_ceil(64);
        CameBack((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    /// Records and counts the positions at which a word was drawn for itself.
    pub(super) fn note(&self, words: &[u32], drawn: &[u32]) -> u64 {
        let mut count = 0;
        for (&word, &y) in words.iter().zip(drawn) {
            if word == y {
                count += 1;
                let (at, bit) = (&self.0[word as usize / 64], 1 << (word % 64));
                // Most bits are set already, and reading leaves the cache line shared between
                // threads.
                if at.load(Ordering::Relaxed) & bit == 0 {
                    at.fetch_or(bit, Ordering::Relaxed);
                }
            }
        }
        count
    }

    /// The recorded words, ascending.
    pub(super) fn ids(&self) -> Vec<u32> {
        let mut ids = Vec::new();
        for (at, word) in self.0.iter().zip(0u32..) {
            let mut bits = at.load(Ordering::Relaxed);
            while bits != 0 {
                ids.push(64 * word + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_drawn_for_themselves_are_noted() {
        let noted = CameBack::new(130);
        assert_eq!(
            noted.note(&[0, 5, 63, 64, 129, 5], &[0, 6, 63, 64, 129, 5]),
            5
        );
        assert_eq!(noted.note(&[1, 5], &[2, 5]), 1);
        assert_eq!(noted.clone().ids(), [0, 5, 63, 64, 129]);
        assert!(CameBack::new(0).ids().is_empty());
    }
}
