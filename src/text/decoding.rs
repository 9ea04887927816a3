//! Recognising text that was decoded wrongly: UTF-8 read as Latin-1 or Windows-1252.
//!
//! Such text ("MÃ¼ller", "Ð§ÐµÑ…Ð¾Ð²") spells names with signs that stand between words
//! elsewhere (“ ” • … and the no-break space among them), which are released as they are.

/// Whether a run of the text without ASCII white space is UTF-8 that was read as Latin-1 or
/// Windows-1252: read back, its bytes are UTF-8, and not ASCII.
pub fn looks_misdecoded(text: &str) -> bool {
    if text.is_ascii() {
        return false;
    }
    let mut bytes = Vec::new();
    text.split(|c: char| c.is_ascii_whitespace()).any(|run| {
        bytes.clear();
        for c in run.chars() {
            match byte(c) {
                Some(b) => bytes.push(b),
                None => return false,
            }
        }
        !run.is_ascii() && std::str::from_utf8(&bytes).is_ok()
    })
}

/// The byte that Latin-1 or Windows-1252 reads as this character.
fn byte(c: char) -> Option<u8> {
    /// Windows-1252 from 0x80; U+FFFD where it has nothing.
    const C1: [char; 32] = [
        '€', '\u{fffd}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{fffd}', 'Ž',
        '\u{fffd}', '\u{fffd}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ',
        '\u{fffd}', 'ž', 'Ÿ',
    ];
    if let Ok(b) = u8::try_from(u32::from(c)) {
        return Some(b);
    }
    let at = C1.iter().position(|&read| read == c)?;
    (c != '\u{fffd}').then_some(0x80 + at as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf8_read_as_latin_1_is_recognised_and_other_text_is_not() {
        let latin = |text: &str| text.bytes().map(char::from).collect::<String>();
        for text in [
            "Müller",
            "Чехов",
            "中文",
            "a naïve café",
            "👍",
            "“so”",
            "5 €",
        ] {
            assert!(!looks_misdecoded(text), "{text}");
            assert!(looks_misdecoded(&latin(text)), "{text}");
        }
        for text in ["MÃ¼ller", "itâ€™s", "Ð§ÐµÑ…Ð¾Ð²"] {
            assert!(looks_misdecoded(text), "{text}");
        }
        for text in [
            "plain",
            "",
            "voilà\u{a0}!",
            "«é»",
            "20°C ±5 §3",
            "naïveté — “quoted”",
            "Ärger, Öl, über ß",
        ] {
            assert!(!looks_misdecoded(text), "{text}");
        }
    }
}
