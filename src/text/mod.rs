//! Text in, text out: finds words, looks them up, replaces them, and puts the replacements in their
//! positions.
//!
//! White space, punctuation and line structure do not change, except one space beside a dropped
//! word. They are **not protected**. Neither
//! are the number of words, nor which words the policy exempts.

mod bound;
mod byte_span;
mod came_back;
mod consistent;
mod decoding;
mod figures;
mod in_order;
mod memo;
mod pad;
mod places;
mod policy;
pub mod records;
mod release;
mod spans;
mod tokens;

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use byte_span::ByteSpan;
use came_back::CameBack;
pub use consistent::Replacements;
pub use decoding::looks_misdecoded;
use figures::{Replacing, figure_fate};
use memo::{Memo, MemoPool, UpcomingWord};
pub use pad::padded;
pub use places::{PositionUnit, byte_ranges, spans_in};
pub use policy::{Consistent, Counts, Oov, Policy};
use release::Assembly;
pub use release::{unreadable, unreadable_beside};

use crate::guarantee::Guarantee;
use crate::guarantee::measured::calibration::{self, Unchanged};
use crate::mechanism::{self, Mechanism};
use crate::numbers::Figure;
use crate::support::error::{Error, Hidden, Result};
use crate::support::fork::Once;
use crate::support::parallel::{Control, both, install, map_all, map_all_with};
pub(crate) use crate::words::tokenize::compounds_of;
pub use crate::words::tokenize::{
    BETWEEN, Words, ends_sentence, id_of, known_words, look_up, normalize, word_ids, words,
};
use crate::words::tokenize::{beginnings, without_symbols};
use crate::words::vocabulary::{Beginning, WordTable};

/// Bytes of text that are processed at a time.
const BLOCK: usize = 8 << 20;
/// Number of texts that are processed at a time: an empty one takes memory, too.
const TEXTS: usize = 1 << 17;
/// Number of words that wait while their memo slots are prefetched.
const AHEAD: usize = 8;
/// Texts below this many bytes are processed on the calling thread.
const SMALL: usize = 4096;
/// The stream of a call that unknown words draw from; no mechanism uses it.
const UNKNOWN_STREAM: u64 = u64::MAX;

/// Characters that may follow a word without a space between.
const AFTER_SPACELESS: [char; 10] = [' ', '\n', '\r', ',', '.', ';', ':', '!', '?', ')'];

/// The text that replaces a masked word.
pub const MASK: &str = "[MASK]";

/// Whether a word of a released text stands in brackets that make it a mask.
pub(crate) fn is_masked(text: &str, word: &Range<usize>) -> bool {
    text[word.clone()] == *MASK.trim_matches(['[', ']'])
        && text[..word.start].ends_with('[')
        && text[word.end..].starts_with(']')
}

/// A mechanism applied to text.
#[derive(Clone)]
pub struct TextPrivatizer {
    mechanism: Arc<dyn Mechanism>,
    policy: Policy,
    came_back: CameBack,
    unchanged: Once<Unchanged>,
    /// The beginnings of the compounds among the skipped words.
    skipped: Arc<HashSet<Beginning>>,
    /// A clone shares them: it has the same vocabulary and the same skipped words.
    memos: MemoPool,
}

/// The treatment of one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Replace(u32),
    Unknown,
    Skip,
    Number,
    Date,
}

/// The identity of a word for the mechanism; equal units are the same word to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Unit<'a> {
    /// A word of the vocabulary.
    Known(u32),
    /// A word that the mechanism does not know, in the form of [`normalize`].
    Unknown(Cow<'a, str>),
    /// A word released unchanged.
    Raw(&'a str),
    /// A number or a date drawn by its own law.
    Figure(Figure),
}

/// A word of a text: its bytes and its fate.
#[derive(Clone, Copy)]
struct Word {
    start: usize,
    end: usize,
    fate: Fate,
}

/// The words found in a text.
struct FoundWords {
    words: Vec<Word>,
    /// The ids of the words that the mechanism is applied to.
    known: Vec<u32>,
    /// Numbers and dates, in their order.
    figures: Vec<Figure>,
    counts: Counts,
}

/// The draws for known and for unknown words, each in order.
#[derive(Default)]
struct Drawn {
    known: Vec<u32>,
    unknown: Vec<u32>,
    /// The places drawn for numbers and dates.
    figures: Vec<i64>,
    /// Number of words that were drawn as themselves.
    unchanged: u64,
}

impl TextPrivatizer {
    /// Applies `mechanism` under `policy`. The words of `policy.skip` are normalised. Words that a
    /// reader of the release would not read back ([`unreadable_beside`]) are excluded from the
    /// outputs.
    ///
    /// # Errors
    /// [`Error::Parameter`] if no output is left.
    pub fn new(mechanism: Arc<dyn Mechanism>, policy: Policy) -> Result<Self> {
        let never = unreadable_beside(mechanism.vocabulary(), &policy.figures);
        let mechanism = match never.is_empty() {
            true => mechanism,
            false => mechanism::excluding(mechanism, &never)?,
        };
        let skip = policy.skip.iter().map(|w| normalize(w).into_owned());
        let policy = Policy {
            skip: skip.collect(),
            ..policy
        };
        let came_back = CameBack::new(mechanism.vocabulary().len());
        let skipped = beginnings(policy.skip.iter().map(String::as_str)).into();
        Ok(TextPrivatizer {
            mechanism,
            policy,
            came_back,
            unchanged: Once::new(),
            skipped,
            memos: MemoPool::default(),
        })
    }

    /// The mechanism.
    pub fn mechanism(&self) -> &Arc<dyn Mechanism> {
        &self.mechanism
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The words of a text as byte ranges. If the vocabulary, or the policy's `skip`, has a
    /// compound joined by punctuation ("e-mail"), it is one word. So is a number or a date that is
    /// drawn by its own law.
    pub fn words(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        self.units(text).into_iter().map(|(range, _)| range)
    }

    /// The words of a text without numbers and dates.
    fn words_only(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        let vocabulary = self.mechanism.vocabulary();
        let known = |word: &str| {
            let form = normalize(word);
            self.policy.skip.contains(&*form) || look_up(vocabulary, &form, word).is_some()
        };
        known_words(text, known, |beginning| {
            self.skipped.contains(beginning) || compounds_of(vocabulary).contains(beginning)
        })
    }

    /// The words of a text: known ones in the vocabulary's spelling, skipped ones as written,
    /// others in the form of [`normalize`]. [`privatize_tokens`](Self::privatize_tokens) treats
    /// them like [`privatize`](Self::privatize) treats the text's words.
    pub fn tokenize(&self, text: &str) -> Vec<String> {
        let found = self.find(text, &mut Memo::default());
        let form = |(word, fate): (&str, Fate)| match fate {
            Fate::Replace(id) => self.mechanism.vocabulary().word(id).to_owned(),
            Fate::Unknown => normalize(word).into_owned(),
            Fate::Skip | Fate::Number | Fate::Date => word.to_owned(),
        };
        found.strs(text).map(form).collect()
    }

    /// The mechanism's guarantee, with the exceptions that the handling of text adds.
    pub fn guarantee(&self) -> Guarantee {
        let mut guarantee = self.mechanism.guarantee();
        let exceptions = &mut guarantee.exceptions;
        exceptions.push(format!(
            "{BETWEEN}; the number of words of a text, and so about its length"
        ));
        if self.policy.consistent != Consistent::Never {
            guarantee.scope = Guarantee::DISTINCT;
            exceptions.push(
                match self.policy.consistent {
                    Consistent::Call => {
                        "which words of the texts of one call are equal: the same word gets the \
                         same replacement (consistent=\"call\"), and the texts of a call count as \
                         one text"
                    }
                    _ => {
                        "which words of a text are equal: the same word gets the same replacement \
                         (consistent=True)"
                    }
                }
                .into(),
            );
        }
        let unknown = match self.policy.oov {
            Oov::Random if guarantee.unknown_bound.is_finite() => {
                guarantee.unknown_is_random = true;
                None
            }
            Oov::Random => Some(
                "whether a word is in the vocabulary (unknown words are replaced uniformly at \
                 random and cannot be told from each other)",
            ),
            Oov::Error => Some("that a released text held no unknown word"),
            Oov::Drop => Some("whether a word is in the vocabulary (unknown words are dropped)"),
            Oov::Mask => Some("whether a word is in the vocabulary (unknown words are masked)"),
            Oov::Keep => Some("unknown words, which are RELEASED AS THEY ARE (oov=\"keep\")"),
        };
        exceptions.extend(unknown.map(String::from));
        if !self.policy.skip.is_empty() {
            exceptions.push(format!(
                "the {} skipped words, which are RELEASED AS THEY ARE",
                self.policy.skip.len()
            ));
        }
        self.add_figures(&mut guarantee);
        guarantee
    }

    /// How often common words come back unchanged: measured once, see [`calibration::unchanged`].
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn unchanged(&self, control: &Control) -> Result<Unchanged> {
        if let Some(known) = self.unchanged.get() {
            return Ok(*known);
        }
        let found = calibration::unchanged(&*self.mechanism, control)?;
        Ok(*self.unchanged.get_or_init(|| found))
    }

    /// Counts the words of the texts so far that came back unchanged and nearly always do, with a
    /// probability above [`Unchanged::RELEASED_WORD`].
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn nearly_always_unchanged(&self, control: &Control) -> Result<usize> {
        let ids = self.came_back.ids();
        calibration::nearly_always_unchanged(&*self.mechanism, &ids, control)
    }

    /// Privatises one text.
    ///
    /// # Errors
    /// [`Error::UnknownInText`] under [`Oov::Error`].
    pub fn privatize(&self, text: &str) -> Result<String> {
        let (mut texts, _) = self.privatize_texts(&[text], &Control::new())?;
        Ok(texts.pop().unwrap_or_default())
    }

    /// Privatises many texts in one call, in parallel.
    ///
    /// # Errors
    /// [`Error::UnknownInText`] under [`Oov::Error`], [`Error::Interrupted`].
    pub fn privatize_texts(
        &self,
        texts: &[&str],
        control: &Control,
    ) -> Result<(Vec<String>, Counts)> {
        self.privatize_texts_with(texts, &mut Replacements::default(), control)
    }

    /// Like [`privatize_texts`](Self::privatize_texts), but keeps the replacements of earlier parts
    /// of the same text, for text that arrives in parts under [`Consistent::Call`].
    ///
    /// # Errors
    /// The errors of [`privatize_texts`](Self::privatize_texts); [`Error::Parameter`] for
    /// replacements of another mechanism.
    pub fn privatize_texts_with(
        &self,
        texts: &[&str],
        replacements: &mut Replacements,
        control: &Control,
    ) -> Result<(Vec<String>, Counts)> {
        replacements.tie(&self.mechanism)?;
        let mut out = Vec::with_capacity(texts.len());
        let mut counts = Counts::default();
        self.memos.expect(texts.iter().map(|text| text.len()).sum());
        let mut rest = texts;
        while !rest.is_empty() {
            let mut size = 0;
            let fits = rest.iter().take(TEXTS).take_while(|t| {
                size += t.len();
                size <= BLOCK
            });
            let (block, later) = rest.split_at(fits.count().max(1));
            install(block.iter().map(|t| t.len()).sum(), SMALL, || {
                self.privatize_block(block, None, &mut out, &mut counts, replacements, control)
            })??;
            rest = later;
        }
        Ok((out, counts))
    }

    /// With `clear`, the texts are parts of one text: the clear text before each.
    fn privatize_block(
        &self,
        texts: &[&str],
        clear: Option<&[&str]>,
        out: &mut Vec<String>,
        counts: &mut Counts,
        replacements: &mut Replacements,
        control: &Control,
    ) -> Result<()> {
        let found = map_all_with(
            texts,
            || self.memos.check_out(),
            |checked_out, text| {
                control.check()?;
                Ok(self.find(text, &mut checked_out.memo))
            },
        )?;
        for (i, (text, found)) in (out.len()..).zip(texts.iter().zip(&found)) {
            *counts += found.counts;
            self.refuse_unknown(found.strs(text), |n| {
                let start = found.words[n].start;
                let place = format!("word {n} of text {i}, at byte {start},");
                (place, Some((i, start)))
            })?;
        }
        let all: Vec<_> = texts.iter().copied().zip(&found).collect();
        let drawn = self.draw_found(&all, clear, replacements, control)?;
        counts.unchanged += drawn.unchanged;
        let (mut known, mut unknown) = (&drawn.known[..], &drawn.unknown[..]);
        let mut places = &drawn.figures[..];
        let parts = texts.iter().zip(&found).map(|(text, found)| {
            let of_text = known.split_off(..found.known.len()).unwrap_or_default();
            // Words that are not drawn have no replacement.
            let most = unknown.len().min(found.counts.unknown as usize);
            let places = places.split_off(..found.figures.len()).unwrap_or_default();
            let unknown = unknown.split_off(..most).unwrap_or_default();
            (*text, found, of_text, unknown, places)
        });
        out.extend(map_all(parts, |(text, found, known, unknown, places)| {
            let figures = self.written(&found.figures, places);
            Ok(self.assembled(text, &found.words, known, unknown, &figures))
        })?);
        Ok(())
    }

    /// Draws for the words found in texts. With `clear`, these are parts of one text.
    fn draw_found(
        &self,
        texts: &[(&str, &FoundWords)],
        clear: Option<&[&str]>,
        replacements: &mut Replacements,
        control: &Control,
    ) -> Result<Drawn> {
        match (self.mechanism.in_order(), self.policy.consistent) {
            (Some(tem), _) => self.draw_in_order(tem, texts, clear, replacements, control),
            (None, Consistent::Never) => {
                let known: Vec<&[u32]> = texts.iter().map(|(_, found)| &found.known[..]).collect();
                let unknown = texts.iter().map(|(_, found)| found.counts.unknown).sum();
                let figures = texts.iter().flat_map(|(_, found)| &found.figures);
                self.draw(&known.concat(), unknown, figures, control)
            }
            (None, _) => {
                let each = texts.iter();
                let each = each.map(|(text, found)| (found.strs(text), &found.figures[..]));
                self.draw_consistently(each, replacements, control)
            }
        }
    }

    /// Finds the words of a text and their fates.
    fn find(&self, text: &str, memo: &mut Memo) -> FoundWords {
        // A word and the text after it take about six bytes.
        let mut found = FoundWords::with_capacity(text.len() / 5 + 1);
        let mut done = 0;
        for (place, figure) in self.figures(text) {
            self.find_within(text, done..place.start, memo, &mut found);
            done = place.end;
            found.add(place, figure_fate(&figure));
            found.figures.push(figure);
        }
        self.find_within(text, done..text.len(), memo, &mut found);
        found.counts.misdecoded = looks_misdecoded(text).into();
        found
    }

    /// Finds the words in a part of a text without numbers and dates.
    fn find_within(&self, text: &str, part: Range<usize>, memo: &mut Memo, found: &mut FoundWords) {
        let mut settle = |memo: &mut Memo, word: UpcomingWord| {
            let fate = memo.fate(&word, || self.fate(&text[word.range.clone()]));
            found.add(word.range, fate);
        };
        // A word waits until the next ones are found: meanwhile its memo slot is prefetched.
        let mut waiting: [UpcomingWord; AHEAD] = Default::default();
        let mut count = 0;
        for range in self.words_only(&text[part.clone()]) {
            let upcoming = memo.prefetch(text, range.start + part.start..range.end + part.start);
            let word = std::mem::replace(&mut waiting[count % AHEAD], upcoming);
            if count >= AHEAD {
                settle(memo, word);
            }
            count += 1;
        }
        for at in count.saturating_sub(AHEAD)..count {
            settle(memo, std::mem::take(&mut waiting[at % AHEAD]));
        }
    }

    /// Assembles a text with replaced words.
    fn assembled(
        &self,
        text: &str,
        words: &[Word],
        known: &[u32],
        unknown: &[u32],
        figures: &[String],
    ) -> String {
        let table = self.mechanism.vocabulary().table();
        let mut drawn = Replacing {
            known: known.iter(),
            unknown: unknown.iter(),
            figures: figures.iter(),
        };
        let mut result = Assembly::new(text.len() + text.len() / 8 + 32, |run, words| {
            self.words_only(run).eq(words)
        });
        let bytes = text.as_bytes();
        let mut done = 0;
        for word in words {
            result.between(ByteSpan::new(bytes, done, word.start));
            done = word.end;
            let original = ByteSpan::new(bytes, word.start, word.end);
            match (
                word.fate,
                self.replacement(word.fate, original, table, &mut drawn),
            ) {
                (Fate::Number | Fate::Date, Some(figure)) => result.figure(figure),
                (Fate::Unknown, Some(mask)) if self.policy.oov == Oov::Mask => {
                    result.word(mask, 1);
                }
                (_, Some(replacement)) => result.word(replacement, 0),
                // A dropped word also removes one of the two spaces around it.
                (_, None) if done == text.len() || text[done..].starts_with(AFTER_SPACELESS) => {
                    result.drop_space();
                }
                (_, None) => {}
            }
        }
        result.between(ByteSpan::new(bytes, done, bytes.len()));
        into_string(result.finish())
    }

    /// Replaces word ids, consistently if the policy says so: the array is one text.
    ///
    /// # Errors
    /// [`Error::WordId`], [`Error::Interrupted`].
    pub fn privatize_ids(&self, ids: &[u32], control: &Control) -> Result<Vec<u32>> {
        self.mechanism.vocabulary().check_ids(ids)?;
        let mut kept = Replacements::default();
        if self.mechanism.in_order().is_none() && self.policy.consistent == Consistent::Never {
            return self.mechanism.privatize_ids_with(ids, control);
        }
        let mut found = FoundWords::with_capacity(ids.len());
        ids.iter()
            .for_each(|&id| found.add(0..0, Fate::Replace(id)));
        let drawn = self.draw_found(&[("", &found)], None, &mut kept, control)?;
        Ok(drawn.known)
    }

    /// Under [`Oov::Error`], returns an error for the first unknown word, with its position.
    fn refuse_unknown<'a>(
        &self,
        mut words: impl Iterator<Item = (&'a str, Fate)>,
        place: impl Fn(usize) -> (String, Option<(usize, usize)>),
    ) -> Result<()> {
        if self.policy.oov != Oov::Error {
            return Ok(());
        }
        match words
            .by_ref()
            .enumerate()
            .find(|(_, (_, fate))| *fate == Fate::Unknown)
        {
            None => Ok(()),
            Some((n, (word, _))) => {
                let (place, at) = place(n);
                Err(Error::UnknownInText {
                    place,
                    at,
                    length: word.chars().count(),
                    word: Hidden::new(word),
                })
            }
        }
    }

    fn fate(&self, word: &str) -> Fate {
        // Most words are short and ASCII: their lower case needs no allocation.
        let mut lower = [0; 32];
        let form = match lower.get_mut(..word.len()) {
            Some(lower) if word.is_ascii() => {
                lower.copy_from_slice(word.as_bytes());
                lower.make_ascii_lowercase();
                Cow::Borrowed(std::str::from_utf8(lower).unwrap_or(word))
            }
            _ => normalize(word),
        };
        if self.policy.skip.contains(&*form) {
            return Fate::Skip;
        }
        let vocabulary = self.mechanism.vocabulary();
        let bare = || look_up(vocabulary, without_symbols(&form)?, without_symbols(word)?);
        match look_up(vocabulary, &form, word).or_else(bare) {
            Some(id) => Fate::Replace(id),
            None => Fate::Unknown,
        }
    }

    /// Draws for all words that need it; `unknown` of them are not in the vocabulary.
    fn draw<'a>(
        &self,
        known: &[u32],
        unknown: u64,
        figures: impl Iterator<Item = &'a Figure>,
        control: &Control,
    ) -> Result<Drawn> {
        let key = self.mechanism.randomness().next_key()?;
        let drawn = match self.policy.oov {
            Oov::Random => unknown,
            _ => 0,
        };
        let mut ids = vec![0; known.len()];
        let (done, unknown) = both(
            || self.mechanism.draw(known, &key, &mut ids, control),
            || {
                let mut rng = key.stream(UNKNOWN_STREAM);
                let random = (0..drawn).map(|_| self.mechanism.draw_unknown(&mut rng));
                random.collect::<Vec<u32>>()
            },
        );
        done?;
        let unchanged = self.came_back.note(known, &ids);
        Ok(Drawn {
            known: ids,
            unknown,
            figures: self.draw_figures(figures, &key),
            unchanged,
        })
    }

    /// The bytes that replace a word.
    #[inline]
    fn replacement<'a>(
        &self,
        fate: Fate,
        original: ByteSpan<'a>,
        table: WordTable<'a>,
        drawn: &mut Replacing<'a>,
    ) -> Option<ByteSpan<'a>> {
        let word = |&id: &u32| {
            let (bytes, start, end) = table.place(id);
            ByteSpan::new(bytes, start, end)
        };
        match fate {
            Fate::Skip => Some(original),
            Fate::Replace(_) => drawn.known.next().map(word),
            Fate::Number | Fate::Date => {
                drawn.figures.next().map(|f| ByteSpan::whole(f.as_bytes()))
            }
            Fate::Unknown => match self.policy.oov {
                Oov::Random => drawn.unknown.next().map(word),
                Oov::Keep => Some(original),
                Oov::Mask => Some(ByteSpan::whole(MASK.as_bytes())),
                Oov::Drop | Oov::Error => None,
            },
        }
    }
}

/// A string from bytes that are UTF-8, unless another process changed a mapped file.
fn into_string(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|wrong| String::from_utf8_lossy(wrong.as_bytes()).into_owned())
}

impl FoundWords {
    fn with_capacity(words: usize) -> Self {
        FoundWords {
            words: Vec::with_capacity(words),
            known: Vec::with_capacity(words),
            figures: Vec::new(),
            counts: Counts::default(),
        }
    }

    #[inline]
    fn add(&mut self, Range { start, end }: Range<usize>, fate: Fate) {
        self.counts.add(fate);
        if let Fate::Replace(id) = fate {
            self.known.push(id);
        }
        self.words.push(Word { start, end, fate });
    }

    /// The words as written in their text.
    fn strs<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (&'a str, Fate)> {
        self.words.iter().map(|w| (&text[w.start..w.end], w.fate))
    }
}
