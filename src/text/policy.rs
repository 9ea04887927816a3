//! How words are handled that the mechanism is not applied to, and what is counted of a text.

use std::collections::HashSet;

use super::Fate;
use crate::names::named;
use crate::numbers::Figures;

/// What happens to a word that is not in the vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Oov {
    /// It becomes a word drawn uniformly from the vocabulary: all unknown words look alike.
    /// For Tem this is the law of a word farther than γ from all others.
    #[default]
    Random,
    /// It is an error that says where the word stands.
    Error,
    /// It is left out. That there was an unknown word stays visible in its absence.
    Drop,
    /// It becomes `[MASK]`. That there was an unknown word is visible.
    Mask,
    /// It is released as it is: **unprotected**.
    Keep,
}

named!(
    Oov, "oov",
    Oov::Random => "random",
    Oov::Error => "error",
    Oov::Drop => "drop",
    Oov::Mask => "mask",
    Oov::Keep => "keep",
);

/// The handling of words that the mechanism is not applied to.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Words that are not in the vocabulary.
    pub oov: Oov,
    /// Words released as they are, **unprotected**, in the form of [`normalize`](super::normalize).
    pub skip: HashSet<String>,
    /// Whether equal words get the same replacement.
    pub consistent: Consistent,
    /// What draws numbers and dates; those without are words.
    pub figures: Figures,
}

/// How far equal words get the same replacement.
///
/// For two texts with the same pattern of equal words the exponents of their *distinct* words add
/// up, however often each stands there: the output is a function of one independent draw for
/// each distinct word and of the pattern (post-processing). The pattern itself is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Consistent {
    /// Every occurrence is drawn by itself.
    #[default]
    Never,
    /// Within a text; a list of tokens or an array of ids is one text.
    Text,
    /// Within all texts of a call.
    Call,
}

/// What was done to a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Words found.
    pub words: u64,
    /// Of these, words of the vocabulary that the mechanism was applied to.
    pub replaced: u64,
    /// Of those, words that came back as they were. Like every count it tells something of the texts:
    /// for whoever holds them, not for release.
    pub unchanged: u64,
    /// Of these, words that are not in the vocabulary.
    pub unknown: u64,
    /// Of these, words skipped.
    pub skipped: u64,
    /// Of these, numbers drawn by a law of their own; 0 unless the policy has one.
    pub numbers: u64,
    /// Of these, dates drawn by a law of their own; 0 unless the policy has one.
    pub dates: u64,
    /// Texts that look as if they had been decoded wrongly, see [`looks_misdecoded`](super::looks_misdecoded).
    pub misdecoded: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.words += other.words;
        self.replaced += other.replaced;
        self.unchanged += other.unchanged;
        self.unknown += other.unknown;
        self.skipped += other.skipped;
        self.numbers += other.numbers;
        self.dates += other.dates;
        self.misdecoded += other.misdecoded;
    }
}

impl Counts {
    pub(super) fn add(&mut self, fate: Fate) {
        self.words += 1;
        match fate {
            Fate::Replace(_) => self.replaced += 1,
            Fate::Unknown => self.unknown += 1,
            Fate::Skip => self.skipped += 1,
            Fate::Number => self.numbers += 1,
            Fate::Date => self.dates += 1,
        }
    }
}
