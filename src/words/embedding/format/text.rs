//! Text formats: one word and its numbers per line, with the header "V n" (word2vec, fastText) or
//! without (GloVe). The mapped file is parsed in parallel.

use std::path::Path;

use super::{Table, format_error, header};
use crate::support::error::{Hidden, Result};
use crate::support::parallel::{Control, map_all};

/// Lines are split into blocks of about this many bytes, one block per task.
const BLOCK_BYTES: usize = 1 << 20;
/// Number of lines used to find the dimension if there is no header.
const SAMPLE: usize = 100;

pub(super) fn count_lines(bytes: &[u8]) -> usize {
    bytes
        .split(|&b| b == b'\n')
        .filter(|l| !trim(l).is_empty())
        .count()
}

/// Number of numbers after the word on the first line, if there is a line.
pub(super) fn first_line_numbers(body: &[u8]) -> Option<usize> {
    let line = trim(body.split(|&b| b == b'\n').next()?);
    (!line.is_empty()).then(|| trailing_numbers(line))
}

/// Number of numbers at the end of a line; the first field is the word.
fn trailing_numbers(line: &[u8]) -> usize {
    let number = |f: &&[u8]| std::str::from_utf8(f).is_ok_and(|f| f.parse::<f32>().is_ok());
    let trailing = line
        .rsplit(|b| b" \t".contains(b))
        .take_while(number)
        .count();
    trailing.min(fields(line) - 1)
}

pub(super) fn parse(
    path: &Path,
    bytes: &[u8],
    headed: bool,
    limit: usize,
    control: &Control,
) -> Result<Table> {
    let fail = |line, reason: String| Err(format_error(path, line, reason, None));
    let (promised, dim, body, first_line) = if headed {
        match header(bytes) {
            Some((words, dim, body)) => (Some(words), dim, body, 2),
            None => return fail(Some(1), "no header \"V n\"".into()),
        }
    } else {
        (None, common_numbers(bytes), bytes, 1)
    };
    if dim == 0 {
        return fail(Some(1), "a word without numbers".into());
    }
    // A number takes at least two bytes: do not believe a header that claims more than the file
    // holds.
    if dim > body.len() / 2 {
        return fail(Some(1), format!("the header promises {dim} numbers a word"));
    }
    let body = first_lines(body, limit);
    let blocks = blocks(body);
    let parsed: Vec<_> = crate::support::parallel::install(blocks.len(), 1, || {
        let parse = |block: &&[u8]| control.check().map(|()| parse_block(block, dim));
        map_all(&blocks, parse)
    })??;
    let rows: usize = parsed.iter().map(|p| p.words.len()).sum();
    let mut words = Vec::with_capacity(rows);
    let mut vectors = Vec::with_capacity(rows * dim);
    let mut lines = first_line;
    for block in parsed {
        if let Some((line, Wrong { reason, offender })) = block.error {
            return Err(format_error(path, Some(lines + line), reason, offender));
        }
        lines += block.lines;
        words.extend(block.words);
        vectors.extend(block.vectors);
    }
    if let Some(promised) = promised
        && rows != promised.min(limit)
    {
        let reason = format!("the header promises {promised} words, the file holds {rows}");
        return fail(None, reason);
    }
    if rows == 0 {
        return fail(None, "no words".into());
    }
    Ok(Table {
        words,
        vectors,
        dim,
        first_line: Some(first_line),
    })
}

/// How many numbers most of the first lines end with. A word may hold spaces or be a number itself,
/// but the numbers stand at the end, after the word.
///
/// All lines of a valid file end with equally many numbers. In a tie, one line is wrong, and the
/// result decides which line is reported. A line with a word in place of a number still has as many
/// fields as the others. If this decides nothing, the result is the smaller positive count.
fn common_numbers(bytes: &[u8]) -> usize {
    // For each count: lines that end with that many numbers, and lines with one field more.
    let mut counts = std::collections::BTreeMap::<usize, (usize, usize)>::new();
    for line in bytes.split(|&b| b == b'\n').take(SAMPLE).map(trim) {
        if !line.is_empty() {
            counts.entry(trailing_numbers(line)).or_default().0 += 1;
            counts.entry(fields(line) - 1).or_default().1 += 1;
        }
    }
    let best = counts
        .iter()
        .max_by_key(|&(&n, &count)| (count, n > 0, std::cmp::Reverse(n)));
    best.map_or(0, |(&n, _)| n)
}

fn first_lines(body: &[u8], limit: usize) -> &[u8] {
    if limit == usize::MAX {
        return body;
    }
    let ends = body.iter().enumerate().filter(|&(_, &b)| b == b'\n');
    let end = ends.map(|(i, _)| i + 1).nth(limit - 1);
    &body[..end.unwrap_or(body.len())]
}

fn blocks(mut body: &[u8]) -> Vec<&[u8]> {
    let mut blocks = Vec::new();
    while body.len() > BLOCK_BYTES {
        let end = match body[BLOCK_BYTES..].iter().position(|&b| b == b'\n') {
            Some(at) => BLOCK_BYTES + at + 1,
            None => break,
        };
        blocks.push(&body[..end]);
        body = &body[end..];
    }
    blocks.push(body);
    blocks
}

fn trim(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|b| !b" \t\r".contains(b));
    &line[..end.map_or(0, |e| e + 1)]
}

/// Counts fields between single separators. GloVe's words may hold (or be) other white space, so
/// only space and tab separate fields.
fn fields(line: &[u8]) -> usize {
    line.split(|b| b" \t".contains(b)).count()
}

#[derive(Default)]
struct ParsedBlock {
    words: Vec<String>,
    vectors: Vec<f32>,
    lines: u64,
    /// Line within the block, from 0, and its error.
    error: Option<(u64, Wrong)>,
}

/// The error in a line: a reason that shows nothing of the line, and the word or field.
struct Wrong {
    reason: String,
    offender: Option<Hidden>,
}

impl Wrong {
    fn new(reason: impl Into<String>, offender: &str) -> Self {
        Wrong {
            reason: reason.into(),
            offender: (!offender.is_empty()).then(|| Hidden::new(offender)),
        }
    }
}

fn parse_block(bytes: &[u8], dim: usize) -> ParsedBlock {
    let mut block = ParsedBlock::default();
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if bytes.is_empty() {
        return block;
    }
    for line in bytes.split(|&b| b == b'\n') {
        match parse_line(line, dim, &mut block.vectors) {
            Ok(word) => block.words.push(word.to_owned()),
            Err(reason) => {
                block.error = Some((block.lines, reason));
                return block;
            }
        }
        block.lines += 1;
    }
    block
}

fn parse_line<'a>(
    line: &'a [u8],
    dim: usize,
    vectors: &mut Vec<f32>,
) -> std::result::Result<&'a str, Wrong> {
    let line = trim(line);
    if line.is_empty() {
        return Err(Wrong::new("an empty line", ""));
    }
    let text = std::str::from_utf8(line).map_err(|e| {
        let at = e.valid_up_to() + 1;
        Wrong::new(format!("byte {at} of the line is not UTF-8"), "")
    })?;
    let start = vectors.len();
    vectors.resize(start + dim, 0.0);
    let mut rest = text;
    // From the right: the last `dim` fields are numbers, and the word stands before them.
    for (i, slot) in vectors[start..].iter_mut().enumerate().rev() {
        let (before, field) = rest.rsplit_once([' ', '\t']).ok_or_else(|| {
            let have = dim - 1 - i;
            Wrong::new(format!("{have} numbers, expected {dim}"), first(text))
        })?;
        let wrong = |what| Wrong::new(format!("number {} of {dim} is {what}", i + 1), field);
        *slot = field.parse::<f32>().map_err(|_| wrong("not a number"))?;
        if !slot.is_finite() {
            return Err(wrong("not finite in float32"));
        }
        rest = before;
    }
    if rest.is_empty() {
        return Err(Wrong::new("a line without a word", ""));
    }
    // A word may hold spaces, but "the 0.1" is a line with one number too many.
    if let Some((_, last)) = rest.rsplit_once([' ', '\t'])
        && last.parse::<f32>().is_ok()
    {
        let reason = format!("more than the expected {dim} numbers");
        return Err(Wrong::new(reason, first(text)));
    }
    Ok(rest)
}

fn first(text: &str) -> &str {
    text.split([' ', '\t']).next().unwrap_or(text)
}
