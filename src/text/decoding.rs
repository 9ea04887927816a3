//! Detects text that was decoded wrongly: UTF-8 read as Latin-1, as a Windows code page, or as Mac
//! Roman.
//!
//! Such text ("MÃ¼ller", "Р§РµС…РѕРІ") spells names with characters that elsewhere stand between
//! words (“ ” • … and the no-break space among them). These would be released unchanged.

use encoding_rs::{
    Encoding, IBM866, ISO_8859_2, KOI8_R, MACINTOSH, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252,
    WINDOWS_1253, WINDOWS_1254,
};

/// Encodings that UTF-8 is often wrongly read as, besides Latin-1.
static PAGES: [&Encoding; 9] = [
    WINDOWS_1252,
    WINDOWS_1251,
    WINDOWS_1250,
    WINDOWS_1253,
    WINDOWS_1254,
    MACINTOSH,
    ISO_8859_2,
    KOI8_R,
    IBM866,
];

/// Whether a run of non-ASCII characters is UTF-8 that was read in another encoding. Encoded back,
/// its bytes are UTF-8 throughout, or mostly, if correctly read characters stand beside it.
pub fn looks_misdecoded(text: &str) -> bool {
    if text.is_ascii() {
        return false;
    }
    let mut runs = text
        .split(|c: char| c.is_ascii())
        .filter(|run| run.chars().nth(1).is_some());
    runs.any(|run| {
        let quotes = |c| "“”‘’„‚«»—–…".contains(c);
        is_misread(run) || is_misread(run.trim_matches(quotes))
    })
}

fn is_misread(run: &str) -> bool {
    PAGES.iter().enumerate().any(|(at, page)| {
        let (mut bytes, mut not_bytes) = (Vec::new(), 0);
        for c in run.chars() {
            // Latin-1 is Windows-1252 except for the C1 controls.
            let latin = u8::try_from(u32::from(c)).ok().filter(|_| at == 0);
            match latin.or_else(|| byte(page, c)) {
                Some(b) => bytes.push(b),
                None => not_bytes += 1,
            }
        }
        // Other scripts contain pairs of letters that are UTF-8 by chance ("Ні").
        is_utf8(&bytes, not_bytes, at == 0)
    })
}

/// The byte of a character in a code page.
fn byte(page: &'static Encoding, c: char) -> Option<u8> {
    let mut utf8 = [0; 4];
    let (bytes, _, lossy) = page.encode(c.encode_utf8(&mut utf8));
    bytes.first().copied().filter(|_| !lossy)
}

/// Whether bytes are UTF-8, with at least half as many multi-byte characters as stray bytes;
/// `not_bytes` characters could not be encoded. One character suffices if all bytes fit and `sure`
/// says that chance is unlikely; otherwise three are needed.
fn is_utf8(bytes: &[u8], not_bytes: usize, sure: bool) -> bool {
    let (mut whole, mut broken) = (0, not_bytes);
    for chunk in bytes.utf8_chunks() {
        whole += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += chunk.invalid().len();
    }
    whole >= 3 && 2 * whole > broken || sure && whole > 0 && broken == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 7] = [
        "Müller",
        "Чехов",
        "中文名",
        "a naïve café",
        "“so” it’s",
        "Škvorecký",
        "5 €",
    ];

    #[test]
    fn utf8_read_as_something_else_is_recognised() {
        for text in TEXTS {
            assert!(!looks_misdecoded(text), "{text}");
            let latin: String = text.bytes().map(char::from).collect();
            assert!(looks_misdecoded(&latin), "{latin}");
            assert!(looks_misdecoded(&format!("“{latin}”—x")), "{latin}");
        }
        for page in PAGES {
            for text in ["Президент Чехов", "中文名 中文名", "Ευριπίδης"]
            {
                let (read, _) = page.decode_without_bom_handling(text.as_bytes());
                if !read.contains('\u{fffd}') {
                    assert!(looks_misdecoded(&read), "{} {read}", page.name());
                }
            }
        }
    }

    #[test]
    fn other_text_is_not() {
        for text in [
            "plain",
            "",
            "voilà\u{a0}!",
            "«é»",
            "20°C ±5 §3",
            "naïveté — “quoted”",
            "Ärger, Öl, über ß",
            "Ні, дякую. Її ім'я…",
            "Привет, как дела? «Хорошо» — и ты?",
            "Příliš žluťoučký kůň",
            "Καλημέρα κόσμε",
            "İstanbul'da çok güzel",
            "日本語のテキスト。",
        ] {
            assert!(!looks_misdecoded(text), "{text}");
        }
    }
}
