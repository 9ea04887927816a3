//! Privatises parts of a text and releases the rest unchanged: the bridge to tools that find names,
//! slot values or medical terms. The positions of the parts are not protected.

use std::ops::Range;

use super::{Consistent, Counts, Policy, Replacements, TextPrivatizer};
use crate::error::{Error, Result};
use crate::parallel::Control;

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

impl TextPrivatizer {
    /// Privatises only the `spans` of a text, byte ranges in order that do not overlap: the new
    /// text, where the spans are in it, and counts of their words. The spans of a text count as one
    /// text to [`Consistent`].
    ///
    /// # Errors
    /// [`Error::Parameter`] for spans that are out of order, overlap, or lie outside or within a
    /// character; as [`privatize_texts`](Self::privatize_texts).
    pub fn privatize_spans(
        &self,
        text: &str,
        spans: &[Range<usize>],
        control: &Control,
    ) -> Result<(String, Vec<Range<usize>>, Counts)> {
        self.privatize_spans_with(text, spans, &mut Replacements::default(), control)
    }

    /// [`privatize_spans`](Self::privatize_spans), where the replacements of earlier pieces of the
    /// same text are kept, as [`privatize_texts_with`](Self::privatize_texts_with) keeps them.
    ///
    /// # Errors
    /// The errors of [`privatize_spans`](Self::privatize_spans); [`Error::Parameter`] for
    /// replacements of another mechanism.
    pub fn privatize_spans_with(
        &self,
        text: &str,
        spans: &[Range<usize>],
        replacements: &mut Replacements,
        control: &Control,
    ) -> Result<(String, Vec<Range<usize>>, Counts)> {
        let mut parts = Vec::with_capacity(spans.len());
        let mut done = 0;
        for (i, span) in spans.iter().enumerate() {
            let part = text.get(span.clone()).filter(|_| span.start >= done);
            let Some(part) = part else {
                let expected = "ascending ranges of the text that do not overlap";
                let got = format!("{} to {} at place {i}", span.start, span.end);
                return Err(Error::parameter("spans", expected, got));
            };
            parts.push(part);
            done = span.end;
        }
        let own_figures = self.has_own_figures(text, spans);
        let (new, counts) = match self.policy().consistent {
            Consistent::Text => {
                let policy = Policy {
                    consistent: Consistent::Call,
                    ..self.policy().clone()
                };
                let of_call = TextPrivatizer {
                    policy,
                    ..self.clone()
                };
                of_call.privatize_parts(
                    &parts,
                    &own_figures,
                    &mut Replacements::default(),
                    control,
                )?
            }
            _ => self.privatize_parts(&parts, &own_figures, replacements, control)?,
        };
        let (mut out, mut places, mut done) = (String::new(), Vec::new(), 0);
        for (span, new) in spans.iter().zip(&new) {
            out.push_str(&text[done..span.start]);
            places.push(out.len()..out.len() + new.len());
            out.push_str(new);
            done = span.end;
        }
        out.push_str(&text[done..]);
        Ok((out, places, counts))
    }

    /// The parts of a text, of which some have their numbers and dates and others words alone.
    fn privatize_parts(
        &self,
        parts: &[&str],
        own_figures: &[bool],
        replacements: &mut Replacements,
        control: &Control,
    ) -> Result<(Vec<String>, Counts)> {
        if own_figures.iter().all(|&own| own) {
            return self.privatize_texts_with(parts, replacements, control);
        }
        let of = |kind: bool| {
            let each = parts.iter().zip(own_figures);
            each.filter(|(_, own)| **own == kind)
                .map(|(part, _)| *part)
                .collect::<Vec<_>>()
        };
        let plain = self.without_figures();
        let (with, mut counts) = self.privatize_texts_with(&of(true), replacements, control)?;
        let (without, more) = plain.privatize_texts_with(&of(false), replacements, control)?;
        counts += more;
        let (mut with, mut without) = (with.into_iter(), without.into_iter());
        let new = own_figures.iter().filter_map(|own| match own {
            true => with.next(),
            false => without.next(),
        });
        Ok((new.collect(), counts))
    }
}
