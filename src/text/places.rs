//! Positions in a text: people and Python count characters (Unicode code points), Rust counts
//! bytes.

use std::ops::Range;

use crate::error::{Error, Result};

/// Converts spans of characters to ranges of bytes.
///
/// # Errors
/// [`Error::Parameter`] for a span that ends before it begins, overlaps the one before, or ends
/// outside the text.
pub fn byte_ranges(
    text: &str,
    spans: impl IntoIterator<Item = (u64, u64)>,
) -> Result<Vec<Range<usize>>> {
    let mut bytes = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let mut out = Vec::new();
    // The number of characters passed, and the byte at which the last of them starts.
    let (mut given, mut last) = (0u64, 0);
    let mut byte = |at: u64| {
        if given.checked_sub(1) == Some(at) {
            return Some(last);
        }
        let skip = usize::try_from(at.checked_sub(given)?).ok()?;
        last = bytes.nth(skip)?;
        given = at + 1;
        Some(last)
    };
    for (place, (start, end)) in spans.into_iter().enumerate() {
        let ends = match start <= end {
            true => byte(start).and_then(|start| Some(start..byte(end)?)),
            false => None,
        };
        out.push(ends.ok_or_else(|| {
            let expected = format!(
                "ascending ranges that do not overlap, within the text of {} characters",
                text.chars().count()
            );
            let got = format!("{start} to {end} at place {place}");
            Error::parameter("spans", expected, got)
        })?);
    }
    Ok(out)
}

/// Converts ascending ranges of bytes to spans of characters.
pub fn character_spans(
    text: &str,
    ranges: impl IntoIterator<Item = Range<usize>>,
) -> Vec<(u64, u64)> {
    let (mut characters, mut done) = (0, 0);
    let mut character = |byte: usize| {
        characters += text[done..byte].chars().count() as u64;
        done = byte;
        characters
    };
    let spans = ranges
        .into_iter()
        .map(|range| (character(range.start), character(range.end)));
    spans.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_in_characters_and_bytes() {
        let text = "a☕é漢b";
        let places: Vec<usize> = text
            .char_indices()
            .map(|(at, _)| at)
            .chain([text.len()])
            .collect();
        for a in 0..8u64 {
            for b in 0..8u64 {
                for (c, d) in [
                    (0, 0),
                    (b, b),
                    (b, 5),
                    (4, 5),
                    (5, 5),
                    (5, 6),
                    (3, u64::MAX),
                ] {
                    let spans = [(a, b), (c, d)];
                    let good = a <= b && b <= c && c <= d && d <= 5;
                    let found = byte_ranges(text, spans);
                    assert_eq!(found.is_ok(), good, "{spans:?}");
                    if let Ok(bytes) = found {
                        let expected = spans.map(|(a, b)| places[a as usize]..places[b as usize]);
                        assert_eq!(bytes, expected);
                        assert_eq!(character_spans(text, bytes), spans);
                    }
                }
            }
        }
        let wrong = byte_ranges(text, [(0, 1), (3, 9)]).unwrap_err().to_string();
        assert!(wrong.contains("5 characters") && wrong.contains("3 to 9 at place 1"));
    }
}
