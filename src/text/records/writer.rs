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

/// Appends the content of a string with well-formed escapes. Returns `None` for half of a surrogate
/// pair: `serde_json` refuses it everywhere, and fastdx copies it in values that it does not read.
pub(super) fn unescape(inner: &str, out: &mut String) -> Option<()> {
    out.reserve(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let kind = *rest.as_bytes().get(at + 1)?;
        rest = &rest[at + 2..];
        out.push(match kind {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let mut code = hex(rest)?;
                rest = &rest[4..];
                if (0xd800..0xdc00).contains(&code) {
                    let low = hex(rest.strip_prefix("\\u")?)?;
                    let low = low.checked_sub(0xdc00).filter(|&low| low < 0x400)?;
                    code = 0x10000 + ((code - 0xd800) << 10) + low;
                    rest = &rest[6..];
                }
                char::from_u32(code)?
            }
            same => char::from(same),
        });
    }
    out.push_str(rest);
    Some(())
}

/// The value of four hexadecimal digits.
fn hex(rest: &str) -> Option<u32> {
    let digits = rest.as_bytes().get(..4)?.iter();
    digits
        .map(|&b| char::from(b).to_digit(16))
        .try_fold(0, |n, digit| Some(16 * n + digit?))
}
