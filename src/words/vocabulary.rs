//! Words and their ids: one byte array, offsets into it, and an open-addressing index that is
//! stored in the index file, so that opening a file builds nothing.

use std::collections::HashSet;
use std::sync::Arc;

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use crate::support::buffer::Buffer;
use crate::support::error::{Error, Result};
use crate::support::file::{Kind, Parts, Sections};
use crate::support::fork::Once;

const EMPTY: u32 = u32::MAX;

/// An ordered set of distinct words; a word's id is its position.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    pub(crate) bytes: Buffer<u8>,
    /// `len() + 1` byte positions.
    pub(crate) offsets: Buffer<u64>,
    /// Slots, a power of two in number and at most half occupied: [`EMPTY`] or a word id.
    pub(crate) slots: Buffer<u32>,
    /// The beginnings of its compounds, and the words that a text cannot release: both are computed by
    /// the rooms that need them, on first use.
    pub(crate) compounds: Arc<Once<HashSet<Box<str>>>>,
    pub(crate) unreadable: Arc<Once<Arc<[u32]>>>,
}

/// The words of a vocabulary as bytes: UTF-8, unless another process has changed the mapped file.
#[derive(Clone, Copy)]
pub(crate) struct WordTable<'a> {
    bytes: &'a [u8],
    offsets: &'a [u64],
}

impl<'a> WordTable<'a> {
    /// The bytes of all words, and the start and end of one word's bytes.
    #[inline]
    pub(crate) fn place(&self, id: u32) -> (&'a [u8], usize, usize) {
        let id = id as usize;
        let [start, end] = [self.offsets[id], self.offsets[id + 1]];
        (self.bytes, start as usize, end as usize)
    }

    /// The bytes of a word.
    #[inline]
    pub(crate) fn bytes(&self, id: u32) -> &'a [u8] {
        let (bytes, start, end) = self.place(id);
        &bytes[start..end]
    }
}

/// The slot of a word, or the empty one in which it would stand.
#[inline]
fn probe(slots: &[u32], words: WordTable, word: &str) -> usize {
    let mask = slots.len() - 1;
    let mut slot = xxh3_64(word.as_bytes()) as usize & mask;
    while slots[slot] != EMPTY && words.bytes(slots[slot]) != word.as_bytes() {
        slot = (slot + 1) & mask;
    }
    slot
}

impl Vocabulary {
    /// Builds the vocabulary of `words`, in their order.
    ///
    /// # Errors
    /// [`Error::Parameter`] for no word, an empty word or more than 2³¹ words;
    /// [`Error::DuplicateWord`] for a repeated word.
    pub fn new<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> Result<Self> {
        let mut bytes = Vec::new();
        let mut offsets = vec![0u64];
        for (i, word) in words.into_iter().enumerate() {
            if word.as_ref().is_empty() {
                let got = format!("\"\" at position {i}");
                return Err(Error::parameter("words", "non-empty strings", got));
            }
            bytes.extend_from_slice(word.as_ref().as_bytes());
            offsets.push(bytes.len() as u64);
        }
        let len = offsets.len() - 1;
        if len == 0 || len > 1 << 31 {
            return Err(Error::parameter("words", "between 1 and 2^31 words", len));
        }
        Self::of(bytes.into(), offsets.into(), Vec::new().into()).indexed()
    }

    fn of(bytes: Buffer<u8>, offsets: Buffer<u64>, slots: Buffer<u32>) -> Self {
        Vocabulary {
            bytes,
            offsets,
            slots,
            compounds: Arc::default(),
            unreadable: Arc::default(),
        }
    }

    /// Builds the index, which finds repeated words.
    fn indexed(mut self) -> Result<Self> {
        let mut slots = vec![EMPTY; (self.len() * 2).next_power_of_two().max(4)];
        for id in 0..self.len() as u32 {
            let word = self.word(id);
            let slot = probe(&slots, self.table(), word);
            if slots[slot] != EMPTY {
                return Err(Error::DuplicateWord {
                    word: word.to_owned(),
                    first: slots[slot] as usize,
                    second: id as usize,
                });
            }
            slots[slot] = id;
        }
        self.slots = slots.into();
        Ok(self)
    }

    /// Reads the vocabulary of an index file, after checking that look-ups stay within its arrays;
    /// `Err` holds the reason.
    pub(crate) fn of_sections(sections: &Sections) -> std::result::Result<Self, String> {
        let bytes: Buffer<u8> = sections.get(Kind::WordBytes)?.ok_or("no words")?;
        let offsets: Buffer<u64> = sections.get(Kind::WordOffsets)?.ok_or("no word offsets")?;
        let slots: Option<Buffer<u32>> = sections.get(Kind::WordSlots)?;
        let len = offsets.len().saturating_sub(1);
        if len == 0 || offsets[0] != 0 || offsets[len] != bytes.len() as u64 {
            return Err("the word table does not fit its words".into());
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| "a word is not UTF-8".to_string())?;
        if !offsets
            .windows(2)
            .all(|w| w[0] < w[1] && text.is_char_boundary(w[1] as usize))
        {
            return Err("the word offsets are out of order".into());
        }
        let Some(slots) = slots else {
            let vocabulary = Self::of(bytes, offsets, Vec::new().into());
            return vocabulary.indexed().map_err(|e| e.to_string());
        };
        if slots.len() < 2 * len
            || !slots.len().is_power_of_two()
            || slots.iter().any(|&s| s != EMPTY && s as usize >= len)
            || slots.iter().filter(|&&s| s != EMPTY).count() != len
        {
            return Err("the word index does not fit its words".into());
        }
        Ok(Self::of(bytes, offsets, slots))
    }

    /// Adds the sections of the words, without the index.
    pub(crate) fn store<'a>(&'a self, parts: &mut Parts<'a>) {
        parts.add(Kind::WordOffsets, &self.offsets);
        parts.add(Kind::WordBytes, &self.bytes);
    }

    /// XXH3-64 of the words and their order.
    pub fn fingerprint(&self) -> u64 {
        self.hashed().digest()
    }

    /// The hash of the words and their order, to which a space adds its distances.
    pub(crate) fn hashed(&self) -> Xxh3Default {
        let mut hash = Xxh3Default::new();
        hash.update(&self.bytes);
        hash.update(bytemuck::cast_slice(&self.offsets));
        hash
    }

    /// Number of words.
    #[allow(clippy::len_without_is_empty)] // a vocabulary is never empty
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The word of an id.
    ///
    /// # Panics
    /// Panics if `id` is not below [`len`](Self::len).
    pub fn word(&self, id: u32) -> &str {
        // UTF-8 was checked when the vocabulary was created. Check it again, because another
        // process could have changed a mapped file; words are short.
        std::str::from_utf8(self.table().bytes(id)).unwrap_or("\u{fffd}")
    }

    pub(crate) fn table(&self) -> WordTable<'_> {
        WordTable {
            bytes: &self.bytes,
            offsets: &self.offsets,
        }
    }

    /// The id of a word, if it is in the vocabulary.
    pub fn id(&self, word: &str) -> Option<u32> {
        let slots = &*self.slots;
        let id = slots[probe(slots, self.table(), word)];
        (id != EMPTY).then_some(id)
    }

    /// The id of a word.
    ///
    /// # Errors
    /// [`Error::UnknownWord`].
    pub fn require(&self, word: &str) -> Result<u32> {
        self.id(word).ok_or_else(|| Error::UnknownWord {
            word: word.to_owned(),
        })
    }

    /// All words in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len() as u32).map(|id| self.word(id))
    }

    /// Checks that every id is in range.
    ///
    /// # Errors
    /// [`Error::WordId`] with the first offender and its position.
    pub fn check_ids(&self, ids: &[u32]) -> Result<()> {
        let len = self.len();
        // The largest first: this is vectorised, and nearly all calls end here.
        let largest = ids.iter().fold(0, |largest, &id| id.max(largest));
        if ids.is_empty() || (largest as usize) < len {
            return Ok(());
        }
        let Some(position) = ids.iter().position(|&id| id as usize >= len) else {
            return Ok(());
        };
        let id = ids[position].into();
        Err(Error::WordId { id, position, len })
    }
}
