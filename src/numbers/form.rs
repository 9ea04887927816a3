//! The form of a number or a date in a text: read with its value, and written with another one.
//!
//! A form is what is released of a figure beside its draw: currency, separators, decimals, an ordinal's ending, how
//! months are written. The sign and the number of digits are not part of it.

use super::date_form::DateForm;
use super::digits::{digits, ending};

/// Signs of currencies; codes stand apart from the number.
const SIGNS: [&str; 13] = [
    "$", "€", "£", "¥", "₹", "₩", "₽", "₺", "₴", "₪", "₫", "₦", "฿",
];
const CODES: [&str; 16] = [
    "USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR", "SEK", "NOK", "DKK", "PLN", "CZK", "CAD",
    "AUD", "NZD", "BRL",
];
const MINUS: [char; 3] = ['-', '\u{2212}', '–'];
/// White space within a number, beside its currency.
const SPACES: [char; 3] = [' ', '\u{a0}', '\u{202f}'];
/// White space that separates groups of digits.
pub(super) const NO_BREAK: [char; 3] = ['\u{a0}', '\u{202f}', '\u{2009}'];

/// The most digits of a number that nothing but its digits shows: four may be a year, a PIN, a part of a card.
const MAX_BARE: usize = 3;
/// The most groups behind the first that points or spaces separate in such a number: more may be an address or a
/// telephone number.
const MAX_BARE_GROUPS: usize = 1;
/// The most digits of a number with a currency, decimals or an exponent, of one with separators, and of decimals.
const MAX_WHOLE: usize = 15;
const MAX_GROUPED: usize = 15;
const MAX_DECIMALS: usize = 9;
/// Maximum digits of a number of the widest range as written.
const MAX_WRITTEN: usize = 202;

/// Whether a text is read before it is released, or is a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// A text before its release: a possible identifier is no number.
    Written,
    /// A number is whatever [`NumberForm::write`] writes.
    Released,
}

/// The form of a figure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The form of a number.
    Number(NumberForm),
    /// The form of a date.
    Date(DateForm),
}

/// The form of a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NumberForm {
    /// A currency before it, with the space between.
    prefix: &'static str,
    prefix_space: Option<char>,
    /// A currency or a per cent sign behind it, with the space between.
    suffix: &'static str,
    suffix_space: Option<char>,
    /// Between groups of three digits.
    group: Option<char>,
    decimal: char,
    decimals: usize,
    /// "e" or "E".
    exponent: Option<char>,
    /// "st", "nd", "rd", "th".
    ordinal: bool,
}

/// The first of `known` that the text begins with, and the rest.
fn begins<'a>(text: &'a str, known: &[&'static str]) -> Option<(&'static str, &'a str)> {
    let found = known.iter().find(|name| text.starts_with(**name))?;
    Some((found, &text[found.len()..]))
}

/// The space that a text begins with, if it does, and the rest.
fn spaced(text: &str) -> (Option<char>, &str) {
    match text.chars().next().filter(|c| SPACES.contains(c)) {
        Some(space) => (Some(space), &text[space.len_utf8()..]),
        None => (None, text),
    }
}

fn without_sign(text: &str) -> Option<&str> {
    text.strip_prefix(MINUS)
}

/// Digits and separators, as far as they go.
struct Numeral<'a> {
    whole: String,
    decimals: &'a str,
    group: Option<char>,
    /// Groups behind the first.
    groups: usize,
}

impl<'a> Numeral<'a> {
    fn read(text: &'a str, decimal: char, reading: Reading) -> Option<(Self, &'a str)> {
        let other = if decimal == '.' { ',' } else { '.' };
        let (first, mut rest) = digits(text);
        let mut whole = first.to_owned();
        let (mut group, mut groups) = (None, 0);
        while let Some(c) = rest.chars().next() {
            let separates = c == other || matches!(c, '\'' | '\u{2019}') || NO_BREAK.contains(&c);
            let (three, behind) = digits(&rest[c.len_utf8()..]);
            if !separates || three.len() != 3 || group.is_some_and(|group| group != c) {
                break;
            }
            (group, rest) = (Some(c), behind);
            groups += 1;
            whole.push_str(three);
        }
        let mut decimals = "";
        if let Some(behind) = rest.strip_prefix(decimal) {
            (decimals, rest) = digits(behind);
            if decimals.is_empty() {
                return None;
            }
        }
        let zero = first.len() > 1 || group.is_some();
        let most = match group {
            Some(_) if first.len() > 3 => 0,
            _ if reading == Reading::Released => MAX_WRITTEN,
            Some(_) => MAX_GROUPED,
            None => MAX_WHOLE,
        };
        let fits = !first.is_empty() && whole.len() <= most && decimals.len() <= MAX_DECIMALS;
        (fits && !(zero && first.starts_with('0'))).then_some((
            Numeral {
                whole,
                decimals,
                group,
                groups,
            },
            rest,
        ))
    }

    /// A year, or what may be an identifier or an address, where nothing says that it is a number.
    fn is_bare_code(&self) -> bool {
        let code = match self.group {
            None => self.whole.len() > MAX_BARE,
            Some('.') => self.groups > MAX_BARE_GROUPS,
            Some(group) => NO_BREAK.contains(&group) && self.groups > MAX_BARE_GROUPS,
        };
        code && self.decimals.is_empty()
    }
}

impl NumberForm {
    /// The number that all of a text is, and its form. A plus sign is read, and is not part of the form.
    pub(super) fn read(text: &str, decimal: char, reading: Reading) -> Option<(f64, Self)> {
        let (mut negative, mut rest) = match without_sign(text) {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mut prefix, mut prefix_space) = ("", None);
        if let Some((sign, behind)) = begins(rest, &SIGNS) {
            prefix = sign;
            (prefix_space, rest) = spaced(behind);
        } else if let Some((code, behind)) = begins(rest, &CODES) {
            prefix = code;
            (prefix_space, rest) = spaced(behind);
            prefix_space?;
        }
        if let (false, false, Some(behind)) = (negative, prefix.is_empty(), without_sign(rest)) {
            (negative, rest) = (true, behind);
        }
        let (numeral, mut rest) = Numeral::read(rest, decimal, reading)?;
        let (mut exponent, mut power) = (None, 0i32);
        if let Some(behind) = rest.strip_prefix(['e', 'E']) {
            let (minus, behind) = match behind.strip_prefix('-') {
                Some(behind) => (true, behind),
                None => (false, behind.strip_prefix('+').unwrap_or(behind)),
            };
            let (shown, behind) = digits(behind);
            if !(1..=2).contains(&shown.len()) {
                return None;
            }
            exponent = rest.chars().next();
            power = shown.parse::<i32>().ok()? * if minus { -1 } else { 1 };
            rest = behind;
        }
        let plain = numeral.group.is_none() && numeral.decimals.is_empty() && exponent.is_none();
        let ordinal = plain && prefix.is_empty() && matches!(rest, "st" | "nd" | "rd" | "th");
        let (mut suffix, mut suffix_space) = ("", None);
        if ordinal {
            if rest != ending(numeral.whole.parse().ok()?) {
                return None;
            }
        } else if !rest.is_empty() {
            let (space, behind) = spaced(rest);
            let known = begins(behind, &SIGNS).or_else(|| match space {
                Some(_) => begins(behind, &CODES),
                None => begins(behind, &["%"]),
            });
            let (found, "") = known.or_else(|| begins(behind, &["%"]))? else {
                return None;
            };
            if !prefix.is_empty() {
                return None;
            }
            (suffix, suffix_space) = (found, space);
        }
        let bare = prefix.is_empty() && suffix.is_empty() && exponent.is_none();
        if bare && reading == Reading::Written && numeral.is_bare_code() {
            return None;
        }
        let shown = format!("{}.{}e{power}", numeral.whole, numeral.decimals);
        let size: f64 = shown.parse().ok()?;
        let form = NumberForm {
            prefix,
            prefix_space,
            suffix,
            suffix_space,
            group: numeral.group,
            decimal,
            decimals: numeral.decimals.len(),
            exponent,
            ordinal,
        };
        Some((if negative { -size } else { size }, form))
    }

    /// Whether a currency stands before it.
    pub(super) fn has_prefix(&self) -> bool {
        !self.prefix.is_empty()
    }

    /// Whether a currency or a per cent sign stands behind it.
    pub(super) fn has_suffix(&self) -> bool {
        !self.suffix.is_empty()
    }

    /// Whether nothing but digits and separators stands there.
    pub(super) fn is_bare(&self) -> bool {
        self.prefix.is_empty() && self.suffix.is_empty() && !self.ordinal
    }

    /// Another number in this form.
    pub(super) fn write(&self, x: f64) -> String {
        let size = match self.exponent {
            Some(_) => format!("{:.*e}", self.decimals, x.abs()),
            None => format!("{:.*}", self.decimals, x.abs()),
        };
        let mut out = String::with_capacity(size.len() + 16);
        let mantissa = size.split('e').next().unwrap_or_default();
        if x < 0.0 && mantissa.bytes().any(|b| matches!(b, b'1'..=b'9')) {
            out.push('-');
        }
        out.push_str(self.prefix);
        out.extend(self.prefix_space);
        let (whole, rest) = size.split_at(size.find(['.', 'e']).unwrap_or(size.len()));
        for (at, digit) in whole.char_indices() {
            let left = whole.len() - at;
            if at > 0 && left.is_multiple_of(3) {
                out.extend(self.group);
            }
            out.push(digit);
        }
        out.extend(rest.chars().map(|c| match c {
            '.' => self.decimal,
            'e' => self.exponent.unwrap_or('e'),
            c => c,
        }));
        if self.ordinal {
            out.push_str(ending(whole.parse().unwrap_or(0)));
        }
        out.extend(self.suffix_space);
        out.push_str(self.suffix);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, decimal: char) -> Option<(f64, NumberForm)> {
        NumberForm::read(text, decimal, Reading::Written)
    }

    fn written(text: &str, x: f64) -> String {
        read(text, '.').unwrap().1.write(x)
    }

    #[test]
    fn numbers_are_read() {
        for (text, expected) in [
            ("0", 0.0),
            ("7", 7.0),
            ("123", 123.0),
            ("1,234", 1234.0),
            ("1,234,567", 1_234_567.0),
            ("1'234'567", 1_234_567.0),
            ("1\u{a0}234\u{a0}567 €", 1_234_567.0),
            ("1,249.90", 1249.9),
            ("€12", 12.0),
            ("12%", 12.0),
            ("-3", -3.0),
            ("\u{2212}3.5", -3.5),
            ("5th", 5.0),
            ("1e6", 1e6),
            ("2.5E-3", 2.5e-3),
            ("$1,000,000", 1e6),
            ("-$5", -5.0),
            ("$-5", -5.0),
            ("12 €", 12.0),
            ("EUR 12.5", 12.5),
            ("12.50 EUR", 12.5),
            ("1'249.90", 1249.9),
            ("1\u{a0}249\u{a0}€", 1249.0),
            ("€2019", 2019.0),
            ("12345.67", 12345.67),
            ("$1234567890", 1_234_567_890.0),
            ("1e+6", 1e6),
            ("–3", -3.0),
        ] {
            let (x, form) = read(text, '.').unwrap_or_else(|| panic!("{text}"));
            assert_eq!(x, expected, "{text}");
            let same = form.write(x);
            assert_eq!(read(&same, '.'), Some((x, form)), "{text} {same}");
        }
        // The plus sign is not kept: "+5" and "-5" have the form of "5".
        assert_eq!(read("+5", '.'), read("5", '.'));
        assert_eq!(read("+$5", '.'), read("$5", '.'));
        assert_eq!(read("1.249,90", ',').unwrap().0, 1249.9);
        assert_eq!(read("12,5", ',').unwrap().0, 12.5);
        assert_eq!(read("1.249", ',').unwrap().0, 1249.0);
        assert_eq!(read("1.249.000,50", ',').unwrap().0, 1_249_000.5);
        assert_eq!(read("1.249.000 €", ',').unwrap().0, 1_249_000.0);
        // An address, a telephone number and a version.
        for text in ["192.168.100.200", "555.123.456", "1.200.300"] {
            assert_eq!(read(text, ','), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_not_read() {
        for text in [
            "",
            "-",
            "€",
            "1.2.3",
            "1,2",
            "1,24",
            "12,3456",
            "1,249,90",
            "1234,567",
            "007",
            "00",
            "0,123",
            "12:30",
            "0x1F",
            "½",
            "3½",
            "5²",
            "٣",
            "１２",
            "12345",
            "2019",
            "1999",
            "5st",
            "1st.",
            "+",
            "+-5",
            "-+5",
            "1234",
            "1000",
            "1\u{a0}234\u{a0}567",
            "1000th",
            "5kg",
            "1e",
            "1e123",
            "1e++6",
            "--5",
            "$-",
            "5-10",
            "1/2",
            "192.168.1.1",
            "XIV",
            "1.",
            ".5",
            "5 ",
            "12 %%",
            "$5%",
            "$5 €",
            "EUR12",
            "12EUR",
            "1 249",
            "4111111111111111",
            "1.249,90",
            "-2019",
            "1,249'000",
            "12  €",
            "1234567890123456.12",
            "0.1234567890",
        ] {
            assert_eq!(read(text, '.'), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_written_in_their_form() {
        assert_eq!(written("1,249.90", 987.126), "987.13");
        assert_eq!(written("1,249.90", 1_234_567.0), "1,234,567.00");
        assert_eq!(written("249.90", 1_234.5), "1234.50");
        assert_eq!(written("€12", -3.4), "-€3");
        assert_eq!(written("€12", -0.4), "€0");
        assert_eq!(written("12 €", 1e9), "1000000000 €");
        assert_eq!(written("5th", 21.2), "21st");
        assert_eq!(written("5th", -12.0), "-12th");
        assert_eq!(written("1.5E6", 2.26e-4), "2.3E-4");
        assert_eq!(written("1e6", 0.0), "0e0");
        assert_eq!(written("1'000", 12_345.0), "12'345");
        // A release is read again, whatever its number has become.
        for (text, x) in [
            ("5", 2013.0),
            ("5", 1e9),
            ("5th", -12_345.0),
            ("0.5", 1e12),
            ("€5", 0.0),
        ] {
            let written = written(text, x);
            let found = NumberForm::read(&written, '.', Reading::Released).unwrap();
            assert_eq!(found.0, x, "{text} {written}");
        }
        let german = read("1.249,90 €", ',').unwrap().1;
        assert_eq!(german.write(98_765.432), "98.765,43 €");
    }
}
