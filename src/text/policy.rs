//! The handling of words that the mechanism is not applied to, and the counts of a text.

use std::collections::HashSet;

use serde::Serialize;

use super::Fate;
use crate::numbers::Figures;
use crate::support::names::named;

/// The handling of a word that is not in the vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Oov {
    /// Replace it by a word drawn uniformly from the vocabulary: all unknown words have the same
    /// law. For Tem this is the law of a word farther than γ from all others.
    #[default]
    Random,
    /// Return an error with the position of the word.
    Error,
    /// Remove it. Its absence shows that there was an unknown word.
    Drop,
    /// Replace it by `[MASK]`, which shows that there was an unknown word.
    Mask,
    /// Release it unchanged: **unprotected**.
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
    /// The handling of words that are not in the vocabulary.
    pub oov: Oov,
    /// Words released unchanged, **unprotected**, in the form of [`normalize`](super::normalize).
    pub skip: HashSet<String>,
    /// Whether equal words get the same replacement.
    pub consistent: Consistent,
    /// The laws of numbers and dates; without a law, they are words.
    pub figures: Figures,
}

/// The scope in which equal words get the same replacement.
///
/// For two texts with the same pattern of equal words, the exponents of their *distinct* words add
/// up, however often each occurs. The output is a function of the pattern and of one independent
/// draw per distinct word (post-processing). The pattern itself is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Consistent {
    /// Every occurrence has a draw of its own.
    #[default]
    Never,
    /// Within a text; a list of tokens or an array of ids is one text.
    Text,
    /// Within all texts of a call.
    Call,
}

/// Counts of how the words of a text were treated.
///
/// As JSON without what is for the texts' owner alone, and without numbers and dates where none is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Words found.
    pub words: u64,
    /// Of these, words of the vocabulary that the mechanism was applied to.
    pub replaced: u64,
    /// Of those, words that came back unchanged. Like every count it reveals something about the
    /// texts: it is for their owner, not for release.
    #[serde(skip)]
    pub unchanged: u64,
    /// Of these, words that are not in the vocabulary.
    pub unknown: u64,
    /// Of these, words skipped.
    pub skipped: u64,
    /// Of these, numbers drawn by their own law; 0 unless the policy has one.
    #[serde(skip_serializing_if = "is_zero")]
    pub numbers: u64,
    /// Of these, dates drawn by their own law; 0 unless the policy has one.
    #[serde(skip_serializing_if = "is_zero")]
    pub dates: u64,
    /// Texts that look wrongly decoded, see [`looks_misdecoded`](super::looks_misdecoded).
    #[serde(skip)]
    pub misdecoded: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
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
