//! The binary format of word2vec: a line "V n", then V entries. Each is a word, a space, n
//! little-endian float32 and, from some writers, a line feed.

use std::path::Path;

use super::{Table, format_error, header};
use crate::support::error::Result;

/// Whether the bytes after the header line are raw numbers rather than text.
pub(super) fn is_binary(body: &[u8], dim: usize) -> bool {
    if super::text::first_line_numbers(body).is_some_and(|n| n > 0 && n == dim) {
        return false;
    }
    let space = body
        .iter()
        .take(4096)
        .position(|&b| b == b' ')
        .unwrap_or(body.len());
    let numbers = body[space..].iter().take(dim.saturating_mul(4).min(4096));
    let text = |b: &u8| b.is_ascii_alphanumeric() || b" \t\r\n+-.".contains(b);
    !numbers.clone().all(text)
}

pub(super) fn parse(path: &Path, bytes: &[u8], limit: usize) -> Result<Table> {
    let fail = |reason: String| format_error(path, None, reason, None);
    let (count, dim, mut body) =
        header(bytes).ok_or_else(|| fail("no header \"V n\" on the first line".into()))?;
    if count == 0 || dim == 0 {
        return Err(fail(format!("the header promises {count} words × {dim}")));
    }
    let row = dim
        .checked_mul(4)
        .ok_or_else(|| fail(format!("a dimension of {dim}")))?;
    // Each word takes at least its numbers, a byte and a space: do not believe a header that claims
    // more than the file holds.
    let possible = body.len() / (row + 2);
    if count > possible {
        return Err(fail(format!(
            "the header promises {count} words × {dim}, the file holds at most {possible}: truncated"
        )));
    }
    let take = count.min(limit);
    let mut words = Vec::with_capacity(take);
    let mut vectors = Vec::with_capacity(take * dim);
    for i in 0..take {
        while let [b'\n' | b'\r', rest @ ..] = body {
            body = rest;
        }
        let space = body.iter().position(|&b| b == b' ');
        let space = space.ok_or_else(|| fail(format!("truncated in word {i}")))?;
        let word = std::str::from_utf8(&body[..space])
            .map_err(|_| fail(format!("word {i} (counted from 0) is not UTF-8")))?;
        let Some(numbers) = body.get(space + 1..space + 1 + row) else {
            return Err(fail(format!("truncated in the vector of word {i}")));
        };
        words.push(word.to_owned());
        let numbers = numbers.chunks_exact(4);
        vectors.extend(numbers.map(bytemuck::pod_read_unaligned::<f32>));
        body = &body[space + 1 + row..];
    }
    if take == count && body.iter().any(|b| !b.is_ascii_whitespace()) {
        return Err(fail(format!(
            "{} bytes follow the {count} words the header promises",
            body.len()
        )));
    }
    Ok(Table {
        words,
        vectors,
        dim,
        first_line: None,
    })
}
