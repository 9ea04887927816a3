//! Text formats: one word and its numbers per line, with the header "V n" (word2vec, fastText) or
//! without (GloVe). The mapped file is parsed in parallel.

use std::path::Path;

use memchr::memchr_iter;

use super::{Table, format_error, header};
use crate::support::error::{Hidden, Result};
use crate::support::parallel::{Control, install, map_all};

/// Lines that one task parses.
const LINES_PER_TASK: usize = 512;
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
    let body = body.strip_suffix(b"\n").unwrap_or(body);
    let (mut start, ends) = (0, memchr_iter(b'\n', body).chain([body.len()]));
    let line = |end| &body[std::mem::replace(&mut start, end + 1)..end];
    let lines = ends.map(line).take(limit);
    let lines: Vec<&[u8]> = lines.filter(|_| !body.is_empty()).collect();
    let tasks = lines.chunks(LINES_PER_TASK);
    let tasks = tasks.zip((first_line..).step_by(LINES_PER_TASK));
    let parsed = install(lines.len(), LINES_PER_TASK, || {
        map_all(tasks, |(lines, first)| {
            control.check()?;
            let mut vectors = Vec::new();
            let words = lines.iter().zip(first..).map(|(line, number)| {
                let word = parse_line(line, dim, &mut vectors);
                word.map_err(|wrong| (number, wrong))
            });
            let words: std::result::Result<Vec<&str>, _> = words.collect();
            Ok(words.map(|words| (words, vectors)))
        })
    })??;
    let mut words = Vec::with_capacity(lines.len());
    let mut vectors = Vec::new();
    for part in parsed {
        let (some, numbers) = part.map_err(|(line, (reason, offender)): (_, Wrong)| {
            let offender = (!offender.is_empty()).then(|| Hidden::new(offender));
            format_error(path, Some(line), reason, offender)
        })?;
        words.extend(some.into_iter().map(str::to_owned));
        vectors.extend(numbers);
    }
    let rows = words.len();
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

fn trim(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|b| !b" \t\r".contains(b));
    &line[..end.map_or(0, |e| e + 1)]
}

/// Counts fields between single separators. GloVe's words may hold (or be) other white space, so
/// only space and tab separate fields.
fn fields(line: &[u8]) -> usize {
    line.split(|b| b" \t".contains(b)).count()
}

/// The error in a line: a reason that shows nothing of the line, and the word or field.
type Wrong<'a> = (String, &'a str);

fn parse_line<'a>(
    line: &'a [u8],
    dim: usize,
    vectors: &mut Vec<f32>,
) -> std::result::Result<&'a str, Wrong<'a>> {
    let line = trim(line);
    if line.is_empty() {
        return Err(("an empty line".into(), ""));
    }
    let text = std::str::from_utf8(line).map_err(|e| {
        let at = e.valid_up_to() + 1;
        (format!("byte {at} of the line is not UTF-8"), "")
    })?;
    let start = vectors.len();
    vectors.resize(start + dim, 0.0);
    let mut rest = text;
    // From the right: the last `dim` fields are numbers, and the word stands before them.
    for (i, slot) in vectors[start..].iter_mut().enumerate().rev() {
        let (before, field) = rest.rsplit_once([' ', '\t']).ok_or_else(|| {
            let have = dim - 1 - i;
            (format!("{have} numbers, expected {dim}"), first(text))
        })?;
        let wrong = |what| (format!("number {} of {dim} is {what}", i + 1), field);
        *slot = field.parse::<f32>().map_err(|_| wrong("not a number"))?;
        if !slot.is_finite() {
            return Err(wrong("not finite in float32"));
        }
        rest = before;
    }
    if rest.is_empty() {
        return Err(("a line without a word".into(), ""));
    }
    // A word may hold spaces, but "the 0.1" is a line with one number too many.
    if let Some((_, last)) = rest.rsplit_once([' ', '\t'])
        && last.parse::<f32>().is_ok()
    {
        let reason = format!("more than the expected {dim} numbers");
        return Err((reason, first(text)));
    }
    Ok(rest)
}

fn first(text: &str) -> &str {
    text.split([' ', '\t']).next().unwrap_or(text)
}
