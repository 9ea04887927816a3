//! Reads and writes JSON strings: resolves escapes and quotes texts.

/// Writes a string as JSON, like Python's `json` with `ensure_ascii=False`.
pub(super) fn quote(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (before, after) = rest.split_at(plain(rest));
        out.extend_from_slice(before);
        let Some((&special, after)) = after.split_first() else {
            break;
        };
        match special {
            b'"' | b'\\' => out.extend([b'\\', special]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            8 => out.extend(b"\\b"),
            12 => out.extend(b"\\f"),
            _ => out.extend(format!("\\u{special:04x}").into_bytes()),
        }
        rest = after;
    }
    out.push(b'"');
}

/// The number of bytes before a quote, a backslash or a control character in a JSON string.
#[inline]
fn plain(rest: &[u8]) -> usize {
    let special = |b: u8| (b == b'"') | (b == b'\\') | (b < b' ');
    let whole = |chunk: &&[u8]| !chunk.iter().fold(false, |found, &b| found | special(b));
    let before = 32 * rest.chunks_exact(32).take_while(whole).count();
    let within = rest[before..].iter().position(|&b| special(b));
    within.map_or(rest.len(), |at| before + at)
}

/// Appends the content of a string in quotes with well-formed escapes. Returns `None` for half of a
/// surrogate pair: `serde_json` refuses it, and fastdx copies it in values that it does not read.
pub(super) fn unescape(quoted: &str, out: &mut String) -> Option<()> {
    out.push_str(&serde_json::from_str::<String>(quoted).ok()?);
    Some(())
}
