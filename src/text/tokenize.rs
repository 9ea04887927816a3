//! Finding the words of a text.
//!
//! Everything that carries content is a word or part of one: letters, digits, marks, and
//! symbols such as emoji. Only white space, punctuation, ASCII symbols (+ < = > | ~ $ ^ `) and
//! the invisible marks of direction and joining stand between words. Inside a word stay
//!
//! - an apostrophe between letters (don't),
//! - a point, comma or colon between digits (3.14, 1,000, 10:30),
//! - an underscore or a zero-width joiner between word characters.
//!
//! An e-mail address or a web address is one word. A hyphen separates words.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

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
    /// End of the run without white space that `at` is in; it is no address.
    chunk_end: usize,
}

impl Iterator for Words<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        loop {
            let c = char_at(self.text, self.at)?;
            if self.at >= self.chunk_end && !c.is_whitespace() {
                let end = chunk_end(self.text, self.at);
                if let Some(address) = address(self.text, self.at..end) {
                    self.at = address.end;
                    self.chunk_end = end;
                    return Some(address);
                }
                self.chunk_end = end;
            }
            if is_word(c) {
                let start = self.at;
                self.at = word_end(self.text, start);
                return Some(start..self.at);
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
    let mut at = start;
    while let Some(c) = char_at(text, at) {
        if c.is_whitespace() {
            break;
        }
        at += c.len_utf8();
    }
    at
}

/// The e-mail or web address that a run without white space is, without the punctuation
/// around it.
fn address(text: &str, run: Range<usize>) -> Option<Range<usize>> {
    let bytes = &text.as_bytes()[run.clone()];
    if !bytes.iter().any(|&b| b == b'@' || b == b':' || b == b'.') {
        return None;
    }
    let inner = text[run.clone()].trim_matches(|c: char| !is_word(c));
    let at_sign = inner
        .find('@')
        .is_some_and(|i| i > 0 && i + 1 < inner.len());
    let web = inner.contains("://")
        || inner
            .get(..4)
            .is_some_and(|p| p.eq_ignore_ascii_case("www."));
    (at_sign || web).then(|| {
        let start = inner.as_ptr() as usize - text.as_ptr() as usize;
        start..start + inner.len()
    })
}

fn word_end(text: &str, start: usize) -> usize {
    let mut at = start;
    let mut last = ' ';
    while let Some(c) = char_at(text, at) {
        if is_word(c) {
            last = c;
            at += c.len_utf8();
            continue;
        }
        let next = char_at(text, at + c.len_utf8()).filter(|&n| is_word(n));
        let joins = next.is_some_and(|next| match c {
            '\'' | '\u{2019}' => last.is_alphabetic() && next.is_alphabetic(),
            '.' | ',' | ':' => last.is_numeric() && next.is_numeric(),
            '_' | '\u{200c}' | '\u{200d}' | '\u{ad}' => true,
            _ => false,
        });
        if !joins {
            break;
        }
        at += c.len_utf8();
    }
    at
}

#[inline]
fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric();
    }
    if c.is_alphanumeric() {
        return true;
    }
    if c.is_whitespace() || c.is_control() {
        return false;
    }
    match c.general_category_group() {
        GeneralCategoryGroup::Punctuation | GeneralCategoryGroup::Separator => false,
        // Marks of direction and joining carry no content of their own. Other format characters
        // do (tag characters spell invisible text), and private use and unassigned ones may.
        GeneralCategoryGroup::Other => !matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{feff}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{2064}'
                | '\u{2066}'..='\u{2069}'
        ),
        _ => true,
    }
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
                &["e", "mail", "me.you+x@example.co.uk"],
            ),
            (
                "see https://a.b/c?d=1, www.x.org!",
                &["see", "https://a.b/c?d=1", "www.x.org"],
            ),
            ("snake_case _x_ a@ @b", &["snake_case", "x", "a", "b"]),
            ("I ❤️ 👩‍👩‍👧 €5 $5", &["I", "❤️", "👩‍👩‍👧", "€5", "5"]),
            (
                "cafe\u{301} \u{202e}abc\u{202c} 日本語。",
                &["cafe\u{301}", "abc", "日本語"],
            ),
            ("a\0b\u{feff}c", &["a", "b", "c"]),
            ("end.Start", &["end", "Start"]),
            ("a \u{e0073}\u{e0065} b", &["a", "\u{e0073}\u{e0065}", "b"]),
        ];
        for (text, expected) in cases {
            assert_eq!(&split(text), expected, "{text:?}");
        }
    }

    #[test]
    fn look_up_form() {
        assert_eq!(normalize("Don’T"), "don't");
        assert_eq!(normalize("CAFE\u{301}"), "café");
        assert!(matches!(normalize("plain"), Cow::Borrowed("plain")));
    }

    proptest! {
        #[test]
        fn ranges_are_ordered_and_nothing_with_content_is_left_between(text in "\\PC{0,60}") {
            let mut done = 0;
            for range in words(&text) {
                prop_assert!(range.start >= done && range.end > range.start);
                prop_assert!(!text[done..range.start].chars().any(is_word));
                done = range.end;
            }
            prop_assert!(!text[done..].chars().any(is_word));
        }
    }
}
