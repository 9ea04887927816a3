//! What short words are to the mechanism, remembered for a while: most words of a text have come before.

use std::ops::{Deref, DerefMut, Range};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Fate;
use crate::prefetch::prefetch;

/// Words that are remembered at most: one in each place, the last that came.
const PLACES: usize = 1 << 15;

/// The words of one thread's texts, while it works on them.
#[derive(Default)]
pub(super) struct Memo {
    places: Vec<([u64; 2], Fate)>,
}

/// Those of the threads of one call, between its blocks.
pub(super) struct Memos {
    bytes: usize,
    idle: Mutex<Vec<Memo>>,
}

/// One that a thread has now.
pub(super) struct Lent<'a> {
    memo: Memo,
    of: &'a Memos,
}

/// A word of a text that is looked at soon.
#[derive(Clone, Default)]
pub(super) struct Soon {
    pub(super) range: Range<usize>,
    /// Zeros where nothing is remembered.
    key: [u64; 2],
    place: usize,
}

impl Memos {
    /// For texts of so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let idle = Mutex::default();
        Memos { bytes, idle }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Memo>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One for this thread.
    pub(super) fn lend(&self) -> Lent<'_> {
        let idle = self.idle().pop();
        let memo = idle.unwrap_or_else(|| Memo::new(self.bytes));
        Lent { memo, of: self }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.of.idle().push(std::mem::take(&mut self.memo));
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut Memo {
        &mut self.memo
    }
}

impl Deref for Lent<'_> {
    type Target = Memo;

    fn deref(&self) -> &Memo {
        &self.memo
    }
}

impl Memo {
    /// For texts of so many bytes: for few it remembers nothing.
    pub(super) fn new(bytes: usize) -> Self {
        let places = match bytes > 4 * PLACES {
            // No word has this key.
            true => vec![([0; 2], Fate::Unknown); PLACES],
            false => Vec::new(),
        };
        Memo { places }
    }

    /// A word whose place is asked for, so that it is there when [`fate`](Self::fate) looks at it.
    #[inline]
    pub(super) fn soon(&self, text: &str, range: Range<usize>) -> Soon {
        let key = key(text.as_bytes(), &range).filter(|_| !self.places.is_empty());
        let key = key.unwrap_or_default();
        // Multiplicative hashing: the highest bits depend on all others.
        let hash =
            key[0].wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ key[1].wrapping_mul(0xd1b5_4a32_d192_ed03);
        let place = (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES.ilog2())) as usize;
        self.places
            .get(place)
            .into_iter()
            .for_each(|at| prefetch(at));
        Soon { range, key, place }
    }

    /// What a word is: as remembered, or as `find` finds it.
    #[inline]
    pub(super) fn fate(&mut self, word: &Soon, find: impl FnOnce() -> Fate) -> Fate {
        if word.key == [0; 2] {
            return find();
        }
        let (kept, fate) = &mut self.places[word.place];
        if *kept != word.key {
            *fate = find();
            *kept = word.key;
        }
        *fate
    }
}

/// A word of at most 15 bytes with its length, as two integers; never zeros.
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

        /// However many words share a place, each is what it is.
        #[test]
        fn what_is_remembered_is_what_is_found(words in proptest::collection::vec("[a-z]{1,3}|[a-z]{14,17}", 1..3000)) {
            let mut memo = Memo::new(1 << 20);
            let find = |word: &str| Fate::Replace(word.bytes().fold(7, |n, b| 31 * (n % 1_000_003) + u32::from(b)));
            let text = words.join(" ");
            let mut start = 0;
            for word in &words {
                let soon = memo.soon(&text, start..start + word.len());
                start += word.len() + 1;
                prop_assert_eq!(memo.fate(&soon, || find(word)), find(word));
            }
        }
    }
}
