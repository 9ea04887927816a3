//! Reads a NumPy array file (float16, float32 or float64, C order, two-dimensional) and a text file
//! with one word per line. The array format is NumPy Enhancement Proposal 1.

use std::path::{Path, PathBuf};

use super::{Table, format_error};
use crate::support::error::{Error, Result};

pub(super) fn parse(
    path: &Path,
    bytes: &[u8],
    vocabulary: Option<&Path>,
    limit: usize,
) -> Result<Table> {
    let fail = |reason: String| format_error(path, None, reason, None);
    let (numbers, rows, dim) = matrix(bytes).map_err(fail)?;
    if rows == 0 || dim == 0 {
        return Err(fail(format!("an array of ({rows}, {dim})")));
    }
    let vocabulary = match vocabulary {
        Some(given) => given.to_owned(),
        None => sibling(path).ok_or_else(|| {
            fail("no vocabulary file given, and none beside the array (.vocab, .txt)".into())
        })?,
    };
    let text = std::fs::read(&vocabulary).map_err(Error::io(&vocabulary))?;
    let text = super::without_mark(&text);
    let lines = text.strip_suffix(b"\n").unwrap_or(text);
    let lines: Vec<&[u8]> = lines.split(|&b| b == b'\n').collect();
    if lines.len() != rows {
        let reason = format!("{} words, and the array has {rows} rows", lines.len());
        return Err(format_error(&vocabulary, None, reason, None));
    }
    let word = |(line, number): (&&[u8], u64)| {
        let reason = match std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)) {
            Err(_) => "is not UTF-8",
            Ok("") => "is empty",
            Ok(word) => return Ok(word.to_owned()),
        };
        Err(format_error(&vocabulary, Some(number), reason, None))
    };
    let words: Vec<String> = lines
        .iter()
        .zip(1..)
        .take(limit)
        .map(word)
        .collect::<Result<_>>()?;
    let numbers = numbers.take(words.len() * dim);
    Ok(Table {
        words,
        vectors: numbers.map(|x| x as f32).collect(),
        dim,
        first_line: Some(1),
    })
}

/// Reads a matrix. Returns its numbers row by row, the number of rows and of columns.
pub(super) fn matrix(
    bytes: &[u8],
) -> std::result::Result<(impl Iterator<Item = f64>, usize, usize), String> {
    if !bytes.starts_with(b"\x93NUMPY") {
        return Err("this is no .npy file".into());
    }
    let (Header { descr, shape, .. }, data) = header(bytes)?;
    let &[rows, columns] = shape.as_slice() else {
        return Err(format!("the array has {} dimensions, not 2", shape.len()));
    };
    let width = match descr.as_str() {
        "<f2" => 2,
        "<f4" => 4,
        "<f8" => 8,
        other => {
            return Err(format!(
                "the array's dtype is {other:?}; float16, float32 or float64 (little-endian) is needed"
            ));
        }
    };
    let size = rows.checked_mul(columns).and_then(|c| c.checked_mul(width));
    if size != Some(data.len()) {
        return Err(format!(
            "an array of ({rows}, {columns}) {descr} does not fit the {} bytes of data",
            data.len()
        ));
    }
    let numbers = data.chunks_exact(width).map(move |b| match width {
        2 => half(u16::from_le_bytes([b[0], b[1]])).into(),
        4 => f64::from(bytemuck::pod_read_unaligned::<f32>(b)),
        _ => bytemuck::pod_read_unaligned(b),
    });
    Ok((numbers, rows, columns))
}

fn sibling(path: &Path) -> Option<PathBuf> {
    let tries = ["vocab", "txt"].map(|ending| path.with_extension(ending));
    tries.into_iter().find(|p| p.is_file())
}

/// Converts float16 to float32, exactly.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0f32 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        e => (1024.0 + fraction) * 2f32.powi(e - 25),
    }
}

#[derive(serde::Deserialize)]
struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<usize>,
}

/// Reads the header; returns the bytes behind it too.
fn header(bytes: &[u8]) -> std::result::Result<(Header, &[u8]), String> {
    let truncated = || "truncated in the array's header".to_owned();
    let (start, len) = match bytes.get(6..12).ok_or_else(truncated)? {
        &[1, _, a, b, ..] => (10, usize::from(u16::from_le_bytes([a, b]))),
        &[2 | 3, _, a, b, c, d] => (12, u32::from_le_bytes([a, b, c, d]) as usize),
        other => {
            let version = other[0];
            return Err(format!("version {version} of the array format is unknown"));
        }
    };
    let text = bytes.get(start..start + len).ok_or_else(truncated)?;
    let text = std::str::from_utf8(text).map_err(|_| "the array's header is not text")?;
    // Such a dictionary is JSON but for these.
    let mut json = text.replace([' ', '\n'], "");
    for (python, same) in [
        ("'", "\""),
        ("False", "false"),
        ("True", "true"),
        ("(", "["),
        (")", "]"),
        (",]", "]"),
        (",}", "}"),
    ] {
        json = json.replace(python, same);
    }
    let header: Header = serde_json::from_str(&json)
        .map_err(|_| "the array's header names no dtype, order or shape that numbers have")?;
    if header.fortran_order {
        return Err("the array is in Fortran order; save it in C order".into());
    }
    Ok((header, &bytes[start + len..]))
}
