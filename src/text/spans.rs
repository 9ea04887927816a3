//! Privatises parts of a text and releases the rest unchanged: the bridge to tools that find names,
//! slot values or medical terms. The positions of the parts are not protected.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::{Consistent, Counts, Replacements, SMALL, TextPrivatizer};
use crate::numbers::Figures;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, install};
use crate::words::tokenize::is_space;

/// The parts of a text between the strings of `outside`, in order. `None` if the text does not have
/// these strings around its parts, or if the parts could lie in more than one way.
pub(super) fn parts<'a>(text: &'a str, outside: &[String]) -> Option<Vec<&'a str>> {
    let (first, rest) = outside.split_first()?;
    let Some((last, between)) = rest.split_last() else {
        return (text == first).then(Vec::new);
    };
    let inner = text.strip_prefix(&**first)?.strip_suffix(&**last)?;
    // The leftmost possible positions, and the rightmost.
    let (mut left, mut from_left) = (Vec::new(), inner);
    for string in between {
        let (part, rest) = from_left.split_once(&**string)?;
        left.push(part);
        from_left = rest;
    }
    left.push(from_left);
    let (mut right, mut from_right) = (Vec::new(), inner);
    for string in between.iter().rev() {
        let (rest, part) = from_right.rsplit_once(&**string)?;
        right.push(part);
        from_right = rest;
    }
    right.push(from_right);
    right.reverse();
    (left == right).then_some(left)
}

/// Puts the new parts in the places of the spans, with a space at each end of one that is `parted`
/// by its position without spaces; also returns where they are.
fn put_together(
    text: &str,
    spans: &[Range<usize>],
    new: &[String],
    parted: impl Fn(usize) -> bool,
) -> (String, Vec<Range<usize>>) {
    let (mut out, mut places) = (String::new(), Vec::new());
    let (mut done, mut added) = (0, 0);
    let mut space = |out: &mut String| {
        if parted(out.len() - added) {
            out.push(' ');
            added += 1;
        }
    };
    for (span, new) in spans.iter().zip(new) {
        out.push_str(&text[done..span.start]);
        space(&mut out);
        places.push(out.len()..out.len() + new.len());
        out.push_str(new);
        space(&mut out);
        done = span.end;
    }
    out.push_str(&text[done..]);
    (out, places)
}

impl TextPrivatizer {
    /// The union of spans, in any order, each widened to the words that it touches: the other half
    /// of a word would be released. Spans that touch become one. A part that would be read
    /// otherwise by itself, as "b@c" of "@a-b@c", is widened to white space on both sides.
    pub(super) fn whole_words(&self, text: &str, spans: &[Range<usize>]) -> Vec<Range<usize>> {
        let union = self.touched_words(text, spans);
        let words: Vec<Range<usize>> = self.words(text).collect();
        let within = |span: &Range<usize>| {
            let first = words.partition_point(|word| word.start < span.start);
            let count = words[first..].partition_point(|word| word.end <= span.end);
            &words[first..first + count]
        };
        let run = |span: &Range<usize>| {
            let before = text[..span.start]
                .char_indices()
                .rev()
                .find(|&(_, c)| is_space(c));
            let start = before.map_or(0, |(at, c)| at + c.len_utf8());
            let end = text[span.end..].find(is_space);
            start..end.map_or(text.len(), |at| span.end + at)
        };
        let widened = |span: &Range<usize>| {
            let run = run(span);
            // An address has words on both sides of an @, and what was a symbol of a word is not
            // released with its output.
            let may_be_address = text[run.clone()].contains('@') && within(&run).len() > 1;
            let own = self.words(&text[span.clone()]);
            let own = own.map(|word| word.start + span.start..word.end + span.start);
            match may_be_address || !own.eq(within(span).iter().cloned()) {
                true => run,
                false => span.clone(),
            }
        };
        let wide: Vec<Range<usize>> = union.iter().map(widened).collect();
        match wide == union {
            true => union,
            false => self.touched_words(text, &wide),
        }
    }

    fn touched_words(&self, text: &str, spans: &[Range<usize>]) -> Vec<Range<usize>> {
        let mut spans = spans.to_vec();
        spans.sort_unstable_by_key(|span| span.start);
        let mut words = self.words(text).peekable();
        let mut union: Vec<Range<usize>> = Vec::with_capacity(spans.len());
        for span in spans {
            let (mut start, mut end) = (span.start, span.end);
            while words.next_if(|word| word.end <= span.start).is_some() {}
            // A word that an earlier span took lies within that span.
            while let Some(word) = words.next_if(|word| word.start < span.end) {
                start = start.min(word.start);
                end = end.max(word.end);
            }
            match union.last_mut() {
                Some(last) if start <= last.end => last.end = last.end.max(end),
                _ => union.push(start..end),
            }
        }
        union
    }

    /// Privatises only the `spans` of a text, byte ranges in any order: the new text, where the
    /// union of the spans is in it, and counts of their words. A span that touches a word has the
    /// whole word. The spans of a text count as one text to [`Consistent`]; the replacements of
    /// earlier pieces of the same text are kept as
    /// [`privatize_texts_with`](Self::privatize_texts_with) keeps them.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a span that is empty, or lies outside the text or within a
    /// character; as [`privatize_texts_with`](Self::privatize_texts_with).
    pub fn privatize_spans(
        &self,
        text: &str,
        spans: &[Range<usize>],
        replacements: &mut Replacements,
        control: &Control,
    ) -> Result<(String, Vec<Range<usize>>, Counts)> {
        for (at, span) in spans.iter().enumerate() {
            if text.get(span.clone()).is_none_or(str::is_empty) {
                let expected = "non-empty ranges of the text, between its characters";
                let got = format!("{} to {} at position {at}", span.start, span.end);
                return Err(Error::parameter("spans", expected, got));
            }
        }
        let spans = &self.whole_words(text, spans);
        let parts: Vec<&str> = spans.iter().map(|span| &text[span.clone()]).collect();
        let mut done = 0;
        let clear = spans.iter().map(|span| {
            let before = std::mem::replace(&mut done, span.end)..span.start;
            &text[before]
        });
        let clear: Vec<&str> = clear.collect();
        let mut by = Cow::Borrowed(self);
        if !self.has_own_figures(text, spans) {
            by.to_mut().policy.figures = Figures::default();
        }
        let (mut of_text, mut kept) = (Replacements::default(), replacements);
        if by.policy.consistent == Consistent::Text {
            (by.to_mut().policy.consistent, kept) = (Consistent::Call, &mut of_text);
        }
        let (mut new, mut counts) = (Vec::new(), Counts::default());
        kept.tie(&by.mechanism)?;
        install(text.len(), SMALL, || {
            by.privatize_block(&parts, Some(&clear), &mut new, &mut counts, kept, control)
        })??;
        let (mut out, mut places) = put_together(text, spans, &new, |_| false);
        // A space parts what would be read as one word: an output and the text beside it.
        let ends: Vec<usize> = places.iter().flat_map(|p| [p.start, p.end]).collect();
        let mut inside = HashSet::new();
        for word in self.words(&out) {
            let first = ends.partition_point(|&end| end <= word.start);
            let ends = ends[first..].iter().take_while(|&&end| end < word.end);
            inside.extend(ends.copied());
        }
        if !inside.is_empty() {
            (out, places) = put_together(text, spans, &new, |end| inside.contains(&end));
        }
        Ok((out, places, counts))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::mechanism::tem::{Tem, Truncation};
    use crate::text::{Oov, Policy};
    use crate::{Embedding, Metric, Randomness, Vocabulary};

    /// Masks every word but "e-mail", "x" and "y", so that a part of a word that is released is seen.
    fn masking() -> TextPrivatizer {
        let vocabulary = Vocabulary::new(["e-mail", "x", "y"]).unwrap();
        let e = Embedding::new(vocabulary, vec![0.0, 1.0, 2.0], 1, Metric::Euclidean).unwrap();
        let random = Randomness::new(None);
        let tem = Tem::new(Arc::new(e), 1.0, Truncation::Gamma(9.0), random).unwrap();
        let policy = Policy {
            oov: Oov::Mask,
            ..Policy::default()
        };
        TextPrivatizer::new(Arc::new(tem), policy).unwrap()
    }

    proptest! {
        #[test]
        fn spans_are_the_words_that_they_touch(
            text in "([ae5é😀.,@:/#'+ -]|e-mail|a@b[.]c|\u{ad}){0,12}",
            given in proptest::collection::vec((0usize..40, 1usize..9), 0..5),
        ) {
            let masking = masking();
            let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let span = |&(start, length): &(usize, usize)| {
                let end = ends.get(start + length).copied().unwrap_or(text.len());
                Some(*ends.get(start)?..end)
            };
            let spans: Vec<Range<usize>> = given.iter().filter_map(span).collect();
            // Byte by byte: the spans, and the words that they touch.
            let mut wanted = vec![false; text.len()];
            spans.iter().for_each(|span| wanted[span.clone()].fill(true));
            let given = wanted.clone();
            for word in masking.words(&text) {
                if given[word.clone()].contains(&true) {
                    wanted[word].fill(true);
                }
            }
            let union = masking.whole_words(&text, &spans);
            let mut covered = vec![false; text.len()];
            union.iter().for_each(|span| covered[span.clone()].fill(true));
            prop_assert!(covered.iter().zip(&wanted).all(|(covered, wanted)| covered | !wanted));
            // More than the words that are touched only where an address may begin.
            prop_assert!(covered == wanted || text.contains('@'));
            prop_assert!(union.is_sorted_by(|a, b| a.end < b.start));
            // A part by itself has the words that it has in the text.
            let words: Vec<_> = masking.words(&text).filter(|word| covered[word.start]).collect();
            let of_parts = union.iter().flat_map(|span| {
                let words = masking.words(&text[span.clone()]);
                words.map(|word| word.start + span.start..word.end + span.start).collect::<Vec<_>>()
            });
            prop_assert_eq!(of_parts.collect::<Vec<_>>(), words);
            let (new, places, _) = masking
                .privatize_spans(&text, &spans, &mut Replacements::default(), &Control::new())
                .unwrap();
            let outside = |text: &str, spans: &[Range<usize>]| {
                let mut out = text.to_owned();
                spans.iter().rev().for_each(|span| out.replace_range(span.clone(), "|"));
                out
            };
            // A space may part a new word from the text beside it.
            let [new, old] = [outside(&new, &places), outside(&text, &union)];
            let between = |text: &str| -> Vec<String> {
                text.split('|').map(|part| part.trim_matches(' ').to_owned()).collect()
            };
            prop_assert_eq!(between(&new), between(&old));
        }
    }

    #[test]
    fn a_span_is_a_range_of_the_text() {
        for span in [0..0, 0..9, 1..2, 9..10] {
            let error = masking().privatize_spans(
                "éa",
                &[0..2, span],
                &mut Replacements::default(),
                &Control::new(),
            );
            assert!(error.unwrap_err().to_string().ends_with("at position 1"));
        }
    }

    #[test]
    fn a_part_that_cuts_a_word_is_no_span() {
        let outside = ["".to_owned(), "-mail".to_owned()];
        let bound = |a, b| masking().bound_spans(&outside, a, b);
        assert!(bound("x-mail", "y-mail").is_finite());
        assert_eq!(bound("x-mail", "e-mail"), f64::INFINITY);
    }
}
