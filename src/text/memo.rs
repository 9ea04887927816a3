//! A memo of how the mechanism treats short words: most words of a text have occurred before.
//!
//! It outlives a call, so it remembers only words that the mechanism or the policy knows anyway.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::Fate;
use crate::support::prefetch::prefetch;

/// Number of slots; each remembers the last word that fell on it.
const SLOTS: usize = 1 << 15;
/// Bytes of text after which memos pay for their memory.
const MANY_BYTES: usize = 4 * SLOTS;

/// The remembered words of one thread. An empty memo remembers nothing.
#[derive(Default)]
pub(super) struct Memo {
    slots: Vec<([u64; 2], Fate)>,
}

/// The memos of one mechanism and policy: threads check them out for a block and return them.
#[derive(Clone, Default)]
pub(super) struct MemoPool(Arc<Pool>);

#[derive(Default)]
struct Pool {
    /// Bytes of all texts so far.
    bytes: AtomicUsize,
    /// Never waited for: a thread that was lost by a fork may hold it.
    idle: Mutex<Vec<Memo>>,
}

/// A memo checked out of the pool by one thread; returned on drop.
pub(super) struct CheckedOutMemo<'a> {
    pub(super) memo: Memo,
    pool: &'a Pool,
}

/// A word of a text that is looked up soon; its slot is being prefetched.
#[derive(Clone, Default)]
pub(super) struct UpcomingWord {
    pub(super) range: Range<usize>,
    /// Zeros if nothing is remembered about the word.
    key: [u64; 2],
    slot: usize,
}

impl MemoPool {
    /// Counts the texts of a call.
    pub(super) fn expect(&self, bytes: usize) {
        let before = self.0.bytes.load(Ordering::Relaxed);
        if before <= MANY_BYTES {
            self.0
                .bytes
                .store(before.saturating_add(bytes), Ordering::Relaxed);
        }
    }

    /// Checks out a memo for this thread.
    pub(super) fn check_out(&self) -> CheckedOutMemo<'_> {
        let pool = &*self.0;
        let memo = match pool.bytes.load(Ordering::Relaxed) > MANY_BYTES {
            true => {
                let idle = pool.idle.try_lock().ok();
                idle.and_then(|mut idle| idle.pop())
                    .unwrap_or_else(Memo::with_slots)
            }
            false => Memo::default(),
        };
        CheckedOutMemo { memo, pool }
    }
}

impl Drop for CheckedOutMemo<'_> {
    fn drop(&mut self) {
        if !self.memo.slots.is_empty()
            && let Ok(mut idle) = self.pool.idle.try_lock()
        {
            idle.push(std::mem::take(&mut self.memo));
        }
    }
}

impl Memo {
    fn with_slots() -> Self {
        // No word has this key.
        let slots = vec![([0; 2], Fate::Unknown); SLOTS];
        Memo { slots }
    }

    /// Prefetches the slot of a word, so that it is in the cache when [`fate`](Self::fate) reads
    /// it.
    #[inline]
    pub(super) fn prefetch(&self, text: &str, range: Range<usize>) -> UpcomingWord {
        let key = key(text.as_bytes(), &range).filter(|_| !self.slots.is_empty());
        let key = key.unwrap_or_default();
        // Multiplicative hashing: the highest bits depend on all others.
        let hash =
            key[0].wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ key[1].wrapping_mul(0xd1b5_4a32_d192_ed03);
        let slot = (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.ilog2())) as usize;
        self.slots.get(slot).into_iter().for_each(|at| prefetch(at));
        UpcomingWord { range, key, slot }
    }

    /// Returns the fate of a word: the remembered one, or the result of `find`.
    #[inline]
    pub(super) fn fate(&mut self, word: &UpcomingWord, find: impl FnOnce() -> Fate) -> Fate {
        if word.key == [0; 2] {
            return find();
        }
        let (kept, fate) = &mut self.slots[word.slot];
        if *kept == word.key {
            return *fate;
        }
        let found = find();
        if found != Fate::Unknown {
            (*kept, *fate) = (word.key, found);
        }
        found
    }
}

/// A word of at most 15 bytes with its length, as two integers that are never both zero.
#[inline]
fn key(text: &[u8], range: &Range<usize>) -> Option<[u64; 2]> {
    let length = range.len();
    if length > 15 {
        return None;
    }
    let bytes = match text.get(range.start..range.start + 16) {
        Some(bytes) => bytes.try_into().unwrap_or_default(),
        None => {
            let mut bytes = [0; 16];
            bytes[..length].copy_from_slice(&text[range.clone()]);
            bytes
        }
    };
    let word = u128::from_le_bytes(bytes) & ((1 << (8 * length)) - 1);
    Some([word as u64, (word >> 64) as u64 | (length as u64) << 56])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn unknown_words_are_not_kept() {
        let mut memo = Memo::with_slots();
        let text = "known secret";
        for (range, fate) in [(0..5, Fate::Replace(7)), (6..12, Fate::Unknown)] {
            let word = memo.prefetch(text, range);
            assert_eq!(memo.fate(&word, || fate), fate);
        }
        let kept: Vec<_> = memo.slots.iter().filter(|slot| slot.0 != [0; 2]).collect();
        assert_eq!(kept.len(), 1);
        assert_eq!(Some(kept[0].0), key(text.as_bytes(), &(0..5)));
    }

    /// Words that share a slot never get each other's fate.
    #[test]
    fn words_in_one_slot_keep_their_fates() {
        // Short words, and long ones of which many begin with the same eight digits.
        let word = |i: usize| match i % 2 {
            0 => format!("{:x}", i % 4099),
            _ => format!("{:0w$b}", i / 8 % 16_384, w = 14 + i / 2 % 4),
        };
        let words: Vec<String> = (0..400_000).map(word).collect();
        let mut memo = Memo::with_slots();
        let find = |word: &str| {
            let bytes = word.bytes();
            Fate::Replace(bytes.fold(7, |n, b| 31 * (n % 1_000_003) + u32::from(b)))
        };
        let text = words.join(" ");
        let mut start = 0;
        for word in &words {
            let upcoming = memo.prefetch(&text, start..start + word.len());
            start += word.len() + 1;
            assert_eq!(memo.fate(&upcoming, || find(word)), find(word));
        }
    }

    proptest! {
        #[test]
        fn equal_words_have_equal_keys_and_no_others(words in proptest::collection::vec("[a-c\0é]{1,20}", 1..30)) {
            let text = words.concat();
            let mut start = 0;
            let keys: Vec<_> = words
                .iter()
                .map(|word| {
                    start += word.len();
                    key(text.as_bytes(), &(start - word.len()..start))
                })
                .collect();
            for (a, x) in words.iter().zip(&keys) {
                prop_assert_eq!(x.is_none(), a.len() > 15);
                prop_assert_ne!(*x, Some([0; 2]));
                for (b, y) in words.iter().zip(&keys).filter(|_| x.is_some()) {
                    prop_assert_eq!(a == b, x == y);
                }
            }
        }
    }
}
