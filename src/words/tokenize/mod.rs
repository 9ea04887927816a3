//! Finds the words of a text.
//!
//! Everything that carries content is a word or part of one: letters, digits, marks, control
//! characters, symbols such as emoji and currency signs. Between words stand only white space,
//! punctuation, the invisible marks of direction and joining ([`BETWEEN`]), and symbols (+ < = > ^
//! ` | ~ * # % & @ \ _) that touch no word. A word includes
//!
//! - an apostrophe between letters (don't),
//! - any character without white space between two digits (3.14, 123-45-6789, 1(555)12),
//! - symbols that touch it (C++, #tag, hunter2***, a+b),
//! - soft hyphens and zero-width joiners between word characters,
//! - punctuation of Latin-1 (§ ¡ « · …) between letters, which wrongly decoded text contains.
//!
//! An e-mail address or a web address is one word. Other punctuation, such as a hyphen, separates
//! words, unless a vocabulary has the compound ([`known_words`]).

mod compounds;

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

pub use compounds::known_words;
pub(crate) use compounds::{beginnings, compounds_of};

use crate::words::vocabulary::Vocabulary;

/// The text that is released unchanged, because it belongs to no word, in the words of the
/// guarantee.
pub const BETWEEN: &str = "white space, punctuation, symbols (+ < = > ^ ` | ~ * # % & @ \\ _) that \
    touch no word, invisible marks of direction and joining";

/// The class of a character, which decides whether it belongs to a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Part of a word.
    Word,
    /// Part of a word that it touches; no word by itself.
    Symbol,
    /// Between words, unless digits or letters on both sides make it part of one.
    Punctuation,
    Space,
}

/// The words of a text as byte ranges, in order.
pub fn words(text: &str) -> Words<'_> {
    Words {
        text,
        at: 0,
        chunk_end: 0,
    }
}

/// Iterator over the words of a text.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    text: &'a str,
    at: usize,
    /// The end of the current run without white space, which is no address.
    chunk_end: usize,
}

/// Classes of ASCII bytes that make up most text: letters and digits, white space, and marks that
/// end a clause.
const LETTER: u8 = 1;
const SPACE: u8 = 2;
const STOP: u8 = 3;

const BYTES: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        kinds[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => LETTER,
            b' ' | b'\t'..=b'\r' => SPACE,
            b',' | b'.' | b';' | b'!' | b'?' => STOP,
            _ => 0,
        };
        byte += 1;
    }
    kinds
};

impl Words<'_> {
    /// The next word if it is plain: ASCII letters and digits between white space, followed by at
    /// most one mark. Only the first rule applies to it.
    #[inline]
    fn plain(&mut self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let kind = |at: usize| bytes.get(at).map_or(SPACE, |&b| BYTES[usize::from(b)]);
        let mut start = self.at;
        while start < bytes.len() && kind(start) == SPACE {
            start += 1;
        }
        let mut end = start;
        while kind(end) == LETTER {
            end += 1;
        }
        let stop = usize::from(kind(end) == STOP);
        if end == start || kind(end + stop) != SPACE {
            return None;
        }
        self.at = end + stop;
        self.chunk_end = self.at;
        Some(start..end)
    }
}

impl Iterator for Words<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        if self.at >= self.chunk_end
            && let Some(word) = self.plain()
        {
            return Some(word);
        }
        loop {
            let c = char_at(self.text, self.at)?;
            let kind = class(c);
            if self.at >= self.chunk_end && kind != Class::Space {
                let end = chunk_end(self.text, self.at);
                if let Some(address) = address(self.text, self.at..end) {
                    self.at = address.end;
                    self.chunk_end = end;
                    return Some(address);
                }
                self.chunk_end = end;
            }
            if matches!(kind, Class::Word | Class::Symbol) {
                let start = self.at;
                let (end, is_word) = word_end(self.text, start);
                self.at = end;
                if is_word {
                    return Some(start..end);
                }
                continue;
            }
            self.at += c.len_utf8();
        }
    }
}

#[inline]
fn char_at(text: &str, at: usize) -> Option<char> {
    let first = *text.as_bytes().get(at)?;
    if first < 0x80 {
        Some(char::from(first))
    } else {
        text[at..].chars().next()
    }
}

fn chunk_end(text: &str, start: usize) -> usize {
    let length = text[start..].find(is_space);
    length.map_or(text.len(), |length| start + length)
}

/// The e-mail or web address in a run without white space, without the punctuation around it;
/// `None` if there is none.
fn address(text: &str, run: Range<usize>) -> Option<Range<usize>> {
    let bytes = &text.as_bytes()[run.clone()];
    if !bytes.iter().any(|&b| b == b'@' || b == b':' || b == b'.') {
        return None;
    }
    let inner = text[run.clone()].trim_matches(|c: char| class(c) == Class::Punctuation);
    let word = |part: &str| part.contains(|c| class(c) == Class::Word);
    let at_sign = || {
        inner
            .split_once('@')
            .is_some_and(|(a, b)| word(a) && word(b))
    };
    let bare = inner.trim_start_matches(|c: char| class(c) != Class::Word);
    let www = bare
        .get(..4)
        .is_some_and(|p| p.eq_ignore_ascii_case("www."));
    (inner.contains("://") || www || at_sign()).then(|| {
        let start = inner.as_ptr() as usize - text.as_ptr() as usize;
        start..start + inner.len()
    })
}

/// The end of the run of word characters and symbols at `start`, and whether the run is a word.
fn word_end(text: &str, start: usize) -> (usize, bool) {
    let mut at = start;
    let mut last = ' ';
    let mut is_word = false;
    while let Some(c) = char_at(text, at) {
        match class(c) {
            Class::Word => is_word = true,
            Class::Symbol => {}
            Class::Space => break,
            Class::Punctuation => match joined(text, at, last) {
                Some(next) => {
                    at = next;
                    last = ' ';
                    continue;
                }
                None => break,
            },
        }
        last = c;
        at += c.len_utf8();
    }
    (at, is_word)
}

/// The position at which a word continues after punctuation at `at`; the word so far ends with
/// `last`.
fn joined(text: &str, at: usize, last: char) -> Option<usize> {
    if last.is_numeric() {
        let between = |c| matches!(class(c), Class::Punctuation | Class::Symbol);
        let run = text[at..].find(|c| !between(c)).unwrap_or(0);
        if char_at(text, at + run).is_some_and(char::is_numeric) {
            return Some(at + run);
        }
    }
    let c = char_at(text, at)?;
    let after = at + c.len_utf8();
    let next = char_at(text, after).filter(|&n| class(n) == Class::Word)?;
    let joins = match c {
        '\'' | '\u{2019}' | '\u{a1}'..='\u{bf}' => last.is_alphabetic() && next.is_alphabetic(),
        // Characters of the code pages 125x and Mac Roman for bytes that UTF-8 uses. Beside a
        // non-ASCII letter, they are more likely part of a wrongly decoded one.
        '\u{2010}'..='\u{2026}' | '\u{2039}' | '\u{203a}' => {
            last.is_alphabetic() && next.is_alphabetic() && !(last.is_ascii() && next.is_ascii())
        }
        _ => false,
    };
    let invisible = matches!(c, '\u{200c}' | '\u{200d}' | '\u{ad}');
    (joins || invisible && matches!(class(last), Class::Word | Class::Symbol)).then_some(after)
}

/// White space except NEL (U+0085), which wrongly decoded text has in the middle of words.
#[inline]
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() && c != '\u{85}'
}

#[inline]
fn class(c: char) -> Class {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '$' => Class::Word,
        ' ' | '\t'..='\r' => Class::Space,
        '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~' => Class::Symbol,
        '*' | '#' | '%' | '&' | '@' | '\\' | '_' => Class::Symbol,
        '!'..='~' => Class::Punctuation,
        // Controls may carry content, above all letters of wrongly decoded text.
        '\0'..='\u{9f}' => Class::Word,
        _ if c.is_alphanumeric() => Class::Word,
        // Full-width and small forms of the symbols above, and signs that follow numbers.
        '\u{ff03}' | '\u{ff05}' | '\u{ff06}' | '\u{ff0a}' | '\u{ff20}' | '\u{ff3c}' => {
            Class::Symbol
        }
        '\u{ff3f}' | '\u{fe5f}'..='\u{fe61}' | '\u{fe68}'..='\u{fe6b}' => Class::Symbol,
        '\u{66a}' | '\u{609}' | '\u{60a}' | '\u{2030}'..='\u{2037}' => Class::Symbol,
        _ if c.is_whitespace() => Class::Space,
        _ => match c.general_category_group() {
            GeneralCategoryGroup::Punctuation | GeneralCategoryGroup::Separator => {
                Class::Punctuation
            }
            // Marks of direction and joining carry no content. Other format characters do (tag
            // characters spell invisible text), and so may private-use and unassigned ones.
            GeneralCategoryGroup::Other
                if matches!(
                    c,
                    '\u{ad}' | '\u{61c}' | '\u{feff}'
                        | '\u{200b}'..='\u{200f}'
                        | '\u{202a}'..='\u{202e}'
                        | '\u{2060}'..='\u{2064}'
                        | '\u{2066}'..='\u{2069}'
                ) =>
            {
                Class::Punctuation
            }
            _ => Class::Word,
        },
    }
}

/// A word without the symbols around it, if it has any: "c" for "c++", "5" for "$5".
pub(crate) fn without_symbols(word: &str) -> Option<&str> {
    let symbol = |c: char| {
        c == '$'
            || class(c) == Class::Symbol
            || !c.is_ascii() && c.general_category_group() == GeneralCategoryGroup::Symbol
    };
    let core = word.trim_matches(symbol);
    (!core.is_empty() && core.len() < word.len()).then_some(core)
}

/// The form in which a word is looked up: lower case, NFC, with a straight apostrophe.
pub fn normalize(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        return if word.bytes().any(|b| b.is_ascii_uppercase()) {
            Cow::Owned(word.to_ascii_lowercase())
        } else {
            Cow::Borrowed(word)
        };
    }
    let straight = word.replace('\u{2019}', "'");
    Cow::Owned(straight.to_lowercase().nfc().collect())
}

/// The id of a word in the form of [`normalize`], or as written if the vocabulary has only that
/// spelling ("Paris").
pub fn look_up(vocabulary: &Vocabulary, form: &str, word: &str) -> Option<u32> {
    vocabulary.id(form).or_else(|| vocabulary.id(word))
}

/// The id under which a mechanism replaces a word as written, if the vocabulary has it.
pub fn id_of(vocabulary: &Vocabulary, word: &str) -> Option<u32> {
    let form = normalize(word);
    let bare = || look_up(vocabulary, without_symbols(&form)?, without_symbols(word)?);
    look_up(vocabulary, &form, word).or_else(bare)
}

/// The words of a text with their positions and ids, as a mechanism on this vocabulary finds them.
pub fn word_ids<'a>(
    vocabulary: &'a Vocabulary,
    text: &'a str,
) -> impl Iterator<Item = (Range<usize>, Option<u32>)> + 'a {
    let known = |word: &str| look_up(vocabulary, &normalize(word), word).is_some();
    let begins = |beginning: &str| compounds_of(vocabulary).contains(beginning);
    known_words(text, known, begins).map(|range| {
        let id = id_of(vocabulary, &text[range.clone()]);
        (range, id)
    })
}

/// Whether a word after `between` begins a sentence: `between` has a full stop, an exclamation or
/// question mark, or an empty line.
pub fn ends_sentence(between: &str) -> bool {
    let mut gap = Gap::default();
    gap.add(between);
    gap.ends_sentence()
}

/// The text between two words, which may come in parts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gap {
    mark: bool,
    breaks: usize,
}

impl Gap {
    pub(crate) fn add(&mut self, part: &str) {
        for c in part.chars() {
            self.mark |= matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？');
            self.breaks += usize::from(c == '\n');
        }
    }

    pub(crate) fn ends_sentence(&self) -> bool {
        self.mark || self.breaks > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> Vec<&str> {
        words(text).map(|r| &text[r]).collect()
    }

    #[test]
    fn words_are_found() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            (" \t\n ", &[]),
            ("...!?", &[]),
            ("Hello, world!", &["Hello", "world"]),
            (
                "don't 'quote' it’s dogs'",
                &["don't", "quote", "it’s", "dogs"],
            ),
            ("3.14 1,000 10:30, 5.", &["3.14", "1,000", "10:30", "5"]),
            (
                "e-mail <me.you+x@example.co.uk>.",
                &["e", "mail", "<me.you+x@example.co.uk>"],
            ),
            (
                "see https://a.b/c?d=1, www.x.org!",
                &["see", "https://a.b/c?d=1", "www.x.org"],
            ),
            (
                "snake_case _x_ a@ @b __ *",
                &["snake_case", "_x_", "a@", "@b"],
            ),
            (
                "I ❤️ 👩‍👩‍👧 €5 $5 5 $",
                &["I", "❤️", "👩‍👩‍👧", "€5", "$5", "5", "$"],
            ),
            (
                "cafe\u{301} \u{202e}abc\u{202c} 日本語。",
                &["cafe\u{301}", "abc", "日本語"],
            ),
            (
                "a\0b\u{feff}c \u{7f} \u{1b}[31m",
                &["a\0b", "c", "\u{7f}", "\u{1b}", "31m"],
            ),
            (
                "123-45-6789 +1(555)-123.4567 #42 5/6, (7) 8-ball 9:",
                &[
                    "123-45-6789",
                    "+1(555)-123.4567",
                    "#42",
                    "5/6",
                    "7",
                    "8",
                    "ball",
                    "9",
                ],
            ),
            (
                "C++ hunter2*** a+b x=5; R&D **bold** ++ 50%",
                &["C++", "hunter2***", "a+b", "x=5", "R&D", "**bold**", "50%"],
            ),
            // UTF-8 read as Latin-1: Чехов, 中.
            ("Ð§ÐµÑ\u{85}Ð¾Ð² ä¸\u{ad}.", &["Ð§ÐµÑ\u{85}Ð¾Ð²", "ä¸"]),
            ("<b>bold</b> “a”", &["<b>bold<", "b>", "a"]),
            ("end.Start", &["end", "Start"]),
            ("a \u{e0073}\u{e0065} b", &["a", "\u{e0073}\u{e0065}", "b"]),
            ("tea,cake;a-b (c)d", &["tea", "cake", "a", "b", "c", "d"]),
            (
                "rock'n'roll 'tis dogs' 7'x",
                &["rock'n'roll", "tis", "dogs", "7", "x"],
            ),
            ("5,600.7 a5,b 5,b", &["5,600.7", "a5", "b", "5", "b"]),
            ("co\u{ad}op +\u{ad}a", &["co\u{ad}op", "+\u{ad}a"]),
            (
                "caf\u{e9}\u{2013}bar cafe\u{2013}bar",
                &["caf\u{e9}\u{2013}bar", "cafe", "bar"],
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(&split(text), expected, "{text:?}");
        }
    }

    /// White space, punctuation, and symbols that touch no word.
    fn nothing_with_content(between: &str, text: &str) -> bool {
        let at = between.as_ptr() as usize - text.as_ptr() as usize;
        let touches = |c: Option<char>| c.is_some_and(|c| class(c) == Class::Word);
        between.char_indices().all(|(i, c)| match class(c) {
            Class::Word => false,
            Class::Symbol => {
                let before = text[..at + i].chars().next_back();
                !touches(before) && !touches(text[at + i + c.len_utf8()..].chars().next())
            }
            _ => true,
        })
    }

    #[test]
    fn the_short_way_finds_what_the_long_one_finds() {
        let slow = |text: &str| {
            let (mut found, mut at) = (Vec::new(), 0);
            while let Some(c) = char_at(text, at) {
                if class(c) == Class::Space {
                    at += c.len_utf8();
                    continue;
                }
                let end = chunk_end(text, at);
                match address(text, at..end) {
                    Some(address) => found.push(address),
                    None => {
                        // Inside a run without white space the fast path is not used.
                        let chunk_end = usize::MAX;
                        let within = Words {
                            text,
                            at,
                            chunk_end,
                        };
                        found.extend(within.take_while(|word| word.start < end));
                    }
                }
                at = end;
            }
            found
        };
        let text = r"([a-zA-Z0-9]{0,3}[,.;!?'@:_$-]{0,2}[ \t\x0bé]{0,2}(www\.|5,6|a\.b)?){0,6}";
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(5000));
        let checked = runner.run(&text, |text| {
            prop_assert_eq!(words(&text).collect::<Vec<_>>(), slow(&text), "{:?}", text);
            Ok(())
        });
        checked.unwrap();
    }

    #[test]
    fn symbols_are_dropped_for_look_up() {
        let cases = [
            ("c++", Some("c")),
            ("$5", Some("5")),
            ("€5", Some("5")),
            ("a+b", None),
        ];
        for (word, core) in cases {
            assert_eq!(without_symbols(word), core);
        }
        assert_eq!(without_symbols("$"), None);
    }

    #[test]
    fn look_up_form() {
        assert_eq!(normalize("Don’T"), "don't");
        assert_eq!(normalize("CAFE\u{301}"), "café");
        assert!(matches!(normalize("plain"), Cow::Borrowed("plain")));
    }

    #[test]
    fn words_become_their_ids() {
        let vocabulary = Vocabulary::new(["c", "e-mail", "the"]).unwrap();
        let text = "The E-mail, $c x";
        let found: Vec<_> = word_ids(&vocabulary, text).collect();
        let ids: Vec<_> = found.iter().map(|found| found.1).collect();
        assert_eq!(ids, [Some(2), Some(1), Some(0), None]);
        assert_eq!(&text[found[1].0.clone()], "E-mail");
    }

    #[test]
    fn sentences_end_at_their_marks() {
        for between in [". ", "?", "!\" ", "\n \n"] {
            assert!(ends_sentence(between), "{between:?}");
        }
        for between in [" ", ", ", "\n", "; \r\n", ""] {
            assert!(!ends_sentence(between), "{between:?}");
        }
    }

    proptest! {
        #[test]
        fn ranges_are_ordered_and_nothing_with_content_is_left_between(text in "\\PC{0,60}") {
            let mut done = 0;
            for range in words(&text) {
                prop_assert!(range.start >= done && range.end > range.start);
                prop_assert!(nothing_with_content(&text[done..range.start], &text));
                prop_assert!(!text[range.clone()].contains(is_space));
                done = range.end;
            }
            prop_assert!(nothing_with_content(&text[done..], &text));
        }
    }
}
