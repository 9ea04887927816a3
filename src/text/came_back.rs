//! Records the words that came back unchanged, for a warning about the policy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag for each word of a vocabulary, set once a draw returned the word itself.
///
/// It reveals something about the texts, so it stays in the process: it is neither saved nor shown.
#[derive(Clone)]
pub(super) struct CameBack(Arc<[AtomicBool]>);

impl CameBack {
    pub(super) fn new(words: usize) -> Self {
        CameBack((0..words).map(|_| AtomicBool::new(false)).collect())
    }

    /// Records and counts the positions at which a word was drawn for itself.
    pub(super) fn note(&self, words: &[u32], drawn: &[u32]) -> u64 {
        let mut count = 0;
        for (&word, &y) in words.iter().zip(drawn) {
            if word == y {
                count += 1;
                let seen = &self.0[word as usize];
                // Most are set already, and reading leaves the cache line shared between threads.
                if !seen.load(Ordering::Relaxed) {
                    seen.store(true, Ordering::Relaxed);
                }
            }
        }
        count
    }

    /// The recorded words, ascending.
    pub(super) fn ids(&self) -> Vec<u32> {
        let flags = (0..).zip(&*self.0);
        let seen = flags.filter(|(_, seen)| seen.load(Ordering::Relaxed));
        seen.map(|(id, _)| id).collect()
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
