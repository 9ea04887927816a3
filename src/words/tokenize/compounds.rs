//! Words joined by punctuation that a vocabulary has as one word ("e-mail").
//!
//! A run of joined words may be long, and a vocabulary has few compounds. It keeps their beginnings
//! ([`beginning`]), so a run is looked up only while some compound begins like it. The time is
//! therefore linear in the text, whatever the text contains.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::{Class, class, is_space, normalize, words};
use crate::words::vocabulary::Vocabulary;

/// Maximum number of joined parts in which a vocabulary's word is searched.
const MAX_PARTS: usize = 16;

/// The form in which the beginning of a run of words is looked up: that of [`normalize`], which
/// changes nothing across the punctuation behind it. The two forms of a small sigma, which count as
/// one here, are an exception.
fn beginning(run: &str) -> Cow<'_, str> {
    match normalize(run) {
        form if form.contains('ς') => form.replace('ς', "σ").into(),
        form => form,
    }
}

/// The beginnings of compounds: for each, the parts that end before punctuation.
pub fn beginnings<'a>(compounds: impl IntoIterator<Item = &'a str>) -> HashSet<Box<str>> {
    let mut found = HashSet::new();
    for word in compounds {
        // Most words are not compounds.
        if word.bytes().all(|b| b.is_ascii_alphanumeric()) {
            continue;
        }
        let form = beginning(word);
        let marks = form.match_indices(|c| class(c) == Class::Punctuation);
        let ends = marks.map(|(at, _)| at).filter(|&at| at > 0);
        found.extend(ends.map(|at| Box::from(&form[..at])));
    }
    found
}

/// The beginnings of a vocabulary's compounds, computed on first use.
pub fn compounds_of(vocabulary: &Vocabulary) -> &HashSet<Box<str>> {
    let found = || beginnings(vocabulary.iter());
    vocabulary.compounds.get_or_init(found)
}

/// The words of a text. Words joined by punctuation without white space are one word if it is
/// `known`; the longest known one counts.
///
/// `begins` may be false only if no known word continues such a beginning by punctuation.
pub fn known_words(
    text: &str,
    known: impl Fn(&str) -> bool,
    begins: impl Fn(&str) -> bool,
) -> impl Iterator<Item = Range<usize>> {
    let mut plain = words(text);
    std::iter::from_fn(move || {
        let first = plain.next()?;
        if !is_joined(text, first.end) {
            return Some(first);
        }
        let (mut ahead, mut end) = (plain.clone(), first.end);
        let mut longest = None;
        for _ in 1..MAX_PARTS {
            if !begins(&beginning(&text[first.start..end])) {
                break;
            }
            let Some(next) = ahead.next() else { break };
            if text[end..next.start].contains(is_space) {
                break;
            }
            end = next.end;
            if known(&text[first.start..end]) {
                longest = Some((end, ahead.clone()));
            }
        }
        Some(match longest {
            None => first,
            Some((end, rest)) => {
                plain = rest;
                first.start..end
            }
        })
    })
}

/// Whether the text after a word is neither its end, nor white space, nor punctuation followed by
/// white space or the end.
#[inline]
fn is_joined(text: &str, end: usize) -> bool {
    // Most words end like this.
    let bytes = text.as_bytes();
    if matches!(&bytes[end..], [] | [b' ', ..] | [b',' | b'.', b' ', ..]) {
        return false;
    }
    let mut rest = text[end..].chars();
    let punctuation = rest.next().is_some_and(|c| !is_space(c));
    punctuation && rest.next().is_some_and(|c| !is_space(c))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::look_up;
    use super::*;

    /// The rule without beginnings: looks up all runs of at most 16 words; the longest known one
    /// counts.
    fn slow(text: &str, known: impl Fn(&str) -> bool) -> Vec<Range<usize>> {
        let plain: Vec<_> = words(text).collect();
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(first) = plain.get(at) {
            let together = plain[at..].windows(2).take(MAX_PARTS - 1);
            let joined =
                together.take_while(|pair| !text[pair[0].end..pair[1].start].contains(is_space));
            let ends: Vec<usize> = joined.map(|pair| pair[1].end).collect();
            let longest = ends.iter().rposition(|&end| known(&text[first.start..end]));
            let more = longest.map_or(0, |n| n + 1);
            found.push(first.start..plain[at + more].end);
            at += more + 1;
        }
        found
    }

    /// The words of a text by a vocabulary, by both methods.
    fn both(text: &str, vocabulary: &[String]) -> [Vec<Range<usize>>; 2] {
        let vocabulary = Vocabulary::new(vocabulary).unwrap();
        let known = |run: &str| look_up(&vocabulary, &normalize(run), run).is_some();
        let begins = |beginning: &str| compounds_of(&vocabulary).contains(beginning);
        [
            known_words(text, known, begins).collect(),
            slow(text, known),
        ]
    }

    #[test]
    fn compounds() {
        let known = ["e-mail", "merry-go-round", "go-round", "and/or"];
        let beginnings = beginnings(known);
        let split = |text| -> Vec<_> {
            known_words(text, |w| known.contains(&w), |b| beginnings.contains(b))
                .map(|r| &text[r])
                .collect()
        };
        assert_eq!(split("my e-mail, e- mail"), ["my", "e-mail", "e", "mail"]);
        assert_eq!(
            split("(merry-go-round)-go-round and/or/and"),
            ["merry-go-round", "go-round", "and/or", "and"]
        );
        // e merry merry-go go and
        assert_eq!(beginnings.len(), 5);
    }

    #[test]
    fn a_run_is_looked_up_as_far_as_something_known_begins_so() {
        let known = ["a-b-c", "x-y"];
        let beginnings = beginnings(known);
        let asked = std::cell::Cell::new(0);
        let looked_up = |run: &str| {
            asked.set(asked.get() + run.len());
            known.contains(&run)
        };
        let text = "é-b-a-q-x-".repeat(1000);
        let found = known_words(&text, looked_up, |b| beginnings.contains(b)).count();
        // For each "a" one look-up of the next word, and likewise for each "x".
        assert_eq!((found, asked.get()), (5000, 1000 * 3 + 999 * 4));
    }

    /// The properties of punctuation that [`beginning`] relies on.
    #[test]
    fn punctuation_stays_punctuation_and_keeps_what_is_around_it_apart() {
        let marks: Vec<char> = ('\u{300}'..'\u{370}')
            .chain(['\u{3099}', '\u{1161}', '\u{11a8}'])
            .collect();
        let ends = ["a", "Σ", "E\u{301}", "\u{1100}", "K", "İ", "1", "か"];
        for c in ('\0'..=char::MAX).filter(|&c| class(c) == Class::Punctuation) {
            for after in [String::new(), "Σ".into(), "A".into()]
                .into_iter()
                .chain(marks.iter().map(char::to_string))
            {
                let rest = format!("{c}{after}");
                let form = beginning(&rest);
                let first = form.chars().next().unwrap();
                assert!(class(first) == Class::Punctuation, "{c:?} {after:?}");
                for end in ends {
                    assert_eq!(
                        beginning(&format!("{end}{rest}")),
                        beginning(end) + &*form,
                        "{c:?} {after:?}"
                    );
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_same_words_are_found_as_by_looking_up_every_run(
            text in "[ab-]{0,4}( ?[ab/.'-]{1,3}){0,8}|([aΣσςÉé\u{301}İK’'5]{1,2}[-./’·\u{ad}+@ ]{0,2}){0,30}|\\PC{0,60}",
            cuts in proptest::collection::vec((any::<prop::sample::Index>(), 1usize..24, 0u8..4), 0..8),
            more in proptest::collection::vec("[ab]([-/.'][ab]){1,3}", 0..20),
        ) {
            // Words that the text contains, in the same or another form.
            let chars: Vec<char> = text.chars().collect();
            let mut vocabulary: Vec<String> = more;
            vocabulary.push("x".into());
            for (at, length, form) in cuts {
                let start = at.index(chars.len() + 1);
                let part: String = chars[start..].iter().take(length).collect();
                vocabulary.push(match form {
                    0 => part,
                    1 => part.to_uppercase(),
                    2 => normalize(&normalize(&part)).into_owned(),
                    _ => normalize(&part).into_owned(),
                });
            }
            vocabulary.retain(|word| !word.is_empty());
            vocabulary.sort();
            vocabulary.dedup();
            let [fast, slow] = both(&text, &vocabulary);
            prop_assert_eq!(fast, slow);
        }
    }
}
