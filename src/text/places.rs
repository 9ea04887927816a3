//! Positions in a text, in the unit of whoever names them.

use std::ops::Range;

use crate::support::error::{Error, Result};
use crate::support::names::named;

/// The unit in which positions in a text are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionUnit {
    /// 16-bit units of UTF-16: JavaScript, Java, C#.
    Utf16,
    /// Unicode code points: Python.
    Codepoint,
    /// Bytes of UTF-8: Rust, Go.
    Byte,
}

named!(
    PositionUnit, "unit",
    PositionUnit::Utf16 => "utf16",
    PositionUnit::Codepoint => "codepoint",
    PositionUnit::Byte => "byte",
);

impl PositionUnit {
    /// The length of a character in this unit.
    fn of(self, character: char) -> i64 {
        match self {
            PositionUnit::Utf16 => character.len_utf16() as i64,
            PositionUnit::Codepoint => 1,
            PositionUnit::Byte => character.len_utf8() as i64,
        }
    }
}

/// Converts spans, in any order, to ranges of bytes.
///
/// # Errors
/// [`Error::Parameter`] for a span that is empty, ends before it begins, or does not begin and end
/// between characters of the text.
pub fn byte_ranges(
    text: &str,
    spans: &[(i64, i64)],
    unit: PositionUnit,
) -> Result<Vec<Range<usize>>> {
    let wrong = |at: usize, expected: String| {
        let (start, end) = spans[at];
        let got = format!("{start} to {end} at position {at} of the list");
        Error::parameter("spans", expected, got)
    };
    for (at, &(start, end)) in spans.iter().enumerate() {
        if start < 0 {
            return Err(wrong(at, "positions from 0 on".into()));
        }
        if start >= end {
            return Err(wrong(at, "pairs of a start and a later end".into()));
        }
    }
    let mut positions: Vec<i64> = spans.iter().flat_map(|&(a, b)| [a, b]).collect();
    positions.sort_unstable();
    positions.dedup();
    // For each position the first boundary of characters that is not before it, and its byte.
    let (mut passed, mut byte, mut rest) = (0, 0, text.chars());
    let boundary = |&position: &i64| {
        while passed < position
            && let Some(character) = rest.next()
        {
            passed += unit.of(character);
            byte += character.len_utf8();
        }
        (passed, byte)
    };
    let boundaries: Vec<(i64, usize)> = positions.iter().map(boundary).collect();
    let byte = |at: usize, position: i64| {
        let (found, byte) = boundaries[positions.partition_point(|&p| p < position)];
        let unit = unit.name();
        match found.cmp(&position) {
            std::cmp::Ordering::Equal => Ok(byte),
            std::cmp::Ordering::Less => {
                let expected = format!("within the text, which ends at {found} (unit '{unit}')");
                Err(wrong(at, expected))
            }
            std::cmp::Ordering::Greater => {
                let expected = format!("between characters, and {position} lies within one");
                Err(wrong(at, format!("{expected} (unit '{unit}')")))
            }
        }
    };
    let range = |(at, &(start, end)): (usize, &(i64, i64))| Ok(byte(at, start)?..byte(at, end)?);
    spans.iter().enumerate().map(range).collect()
}

/// Converts ascending ranges of bytes to spans.
pub fn spans_in(
    text: &str,
    ranges: impl IntoIterator<Item = Range<usize>>,
    unit: PositionUnit,
) -> Vec<(u64, u64)> {
    let (mut passed, mut done) = (0, 0);
    let mut position = |byte: usize| {
        let between = text[done..byte].chars();
        passed += between
            .map(|character| unit.of(character) as u64)
            .sum::<u64>();
        done = byte;
        passed
    };
    let spans = ranges
        .into_iter()
        .map(|range| (position(range.start), position(range.end)));
    spans.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The position of every boundary of characters, by the definition of each unit.
    fn positions(text: &str, unit: PositionUnit) -> Vec<(i64, usize)> {
        let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        let position = |byte: usize| {
            let before = &text[..byte];
            match unit {
                PositionUnit::Utf16 => before.encode_utf16().count() as i64,
                PositionUnit::Codepoint => before.chars().count() as i64,
                PositionUnit::Byte => byte as i64,
            }
        };
        ends.map(|byte| (position(byte), byte)).collect()
    }

    proptest! {
        #[test]
        fn positions_of_every_unit(
            text in "[a-é漢☕😀\u{301} ]{0,8}",
            spans in proptest::collection::vec((-1i64..40, -1i64..40), 0..4),
        ) {
            for unit in PositionUnit::ALL {
                let places = positions(&text, unit);
                let byte = |at: i64| places.iter().find(|(place, _)| *place == at).map(|p| p.1);
                let expected: Option<Vec<_>> = spans
                    .iter()
                    .map(|&(start, end)| Some(byte(start)?..byte(end)?).filter(|r| !r.is_empty()))
                    .collect();
                let found = byte_ranges(&text, &spans, unit);
                prop_assert_eq!(found.as_ref().ok(), expected.as_ref());
                if let (Ok(ranges), true) = (found, spans.is_sorted_by(|a, b| a.1 <= b.0)) {
                    let back = spans_in(&text, ranges, unit);
                    let given: Vec<_> = spans.iter().map(|s| (s.0 as u64, s.1 as u64)).collect();
                    prop_assert_eq!(back, given);
                }
            }
        }
    }

    #[test]
    fn wrong_positions_are_named() {
        use PositionUnit::{Byte, Codepoint, Utf16};
        // "é" is 1, 1 and 2 units long, "😀" 2, 1 and 4.
        for (span, unit, expected) in [
            ((-1, 2), Codepoint, "positions from 0 on"),
            ((i64::MIN, i64::MAX), Codepoint, "positions from 0 on"),
            ((3, 2), Codepoint, "a later end"),
            ((2, 2), Codepoint, "a later end"),
            ((0, 5), Codepoint, "ends at 4 (unit 'codepoint')"),
            ((1, i64::MAX), Utf16, "ends at 5 (unit 'utf16')"),
            ((3, 4), Utf16, "3 lies within one (unit 'utf16')"),
            ((0, 1), Byte, "1 lies within one (unit 'byte')"),
            ((0, 9), Byte, "ends at 8 (unit 'byte')"),
        ] {
            let whole = match unit {
                Byte => 8,
                Utf16 => 5,
                Codepoint => 4,
            };
            let error = byte_ranges("éa😀b", &[(0, whole), span], unit);
            let message = error.unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            assert!(message.ends_with("at position 1 of the list"), "{message}");
        }
        assert!("utf-16".parse::<PositionUnit>().is_err());
    }
}
