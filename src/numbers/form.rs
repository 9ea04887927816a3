//! The form of a number or a date in a text: read with its value, and written with another one.
//!
//! A form is what is released of a figure beside its draw: currency, separators, decimals, how months are written. The
//! sign and the number of digits are not part of it.

use super::date_form::DateForm;

/// Signs of currencies.
const SIGNS: [char; 13] = [
    '$', '€', '£', '¥', '₹', '₩', '₽', '₺', '₴', '₪', '₫', '₦', '฿',
];
const MINUS: [char; 3] = ['-', '\u{2212}', '–'];
/// White space before a currency or a per cent sign.
const SPACES: [char; 3] = [' ', '\u{a0}', '\u{202f}'];

/// The most digits of a number that nothing but its digits shows: four may be a year, a PIN, a part of a card.
const MAX_BARE: usize = 3;
/// The most groups behind the first that points separate in such a number: more may be an address or a
/// telephone number.
const MAX_BARE_GROUPS: usize = 1;
/// The most digits of a number with a currency or decimals, of one with separators, and of decimals.
const MAX_WHOLE: usize = 15;
const MAX_GROUPED: usize = 15;
const MAX_DECIMALS: usize = 9;
/// Maximum digits of a number of the widest range as written.
const MAX_WRITTEN: usize = 202;

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
    /// A currency before it.
    prefix: Option<char>,
    /// A currency or a per cent sign behind it, and the space between.
    suffix: Option<char>,
    suffix_space: Option<char>,
    /// Between groups of three digits.
    group: Option<char>,
    decimal: char,
    decimals: usize,
}

/// Splits a text into its leading ASCII digits and the rest.
fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at(end)
}

/// The currency that a text begins with, if it does, and the rest.
fn currency(text: &str) -> (Option<char>, &str) {
    match text.strip_prefix(SIGNS) {
        Some(rest) => (text.chars().next(), rest),
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
    fn read(text: &'a str, decimal: char, released: bool) -> Option<(Self, &'a str)> {
        let other = if decimal == '.' { ',' } else { '.' };
        let (first, mut rest) = digits(text);
        let mut whole = first.to_owned();
        let (mut group, mut groups) = (None, 0);
        while let Some(c) = rest.chars().next() {
            let separates = c == other || matches!(c, '\'' | '\u{2019}');
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
            _ if released => MAX_WRITTEN,
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
            Some(group) => group == '.' && self.groups > MAX_BARE_GROUPS,
        };
        code && self.decimals.is_empty()
    }
}

impl NumberForm {
    /// The number that all of a text is, and its form. A plus sign is read, and is not part of the form. Before its release
    /// a possible identifier is no number; in a `released` text a number is whatever [`write`](Self::write) writes.
    pub(super) fn read(text: &str, decimal: char, released: bool) -> Option<(f64, Self)> {
        let (mut negative, rest) = match without_sign(text) {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (prefix, mut rest) = currency(rest);
        if let (false, Some(_), Some(behind)) = (negative, prefix, without_sign(rest)) {
            (negative, rest) = (true, behind);
        }
        let (numeral, rest) = Numeral::read(rest, decimal, released)?;
        let suffix_space = rest.chars().next().filter(|c| SPACES.contains(c));
        let rest = rest.strip_prefix(SPACES).unwrap_or(rest);
        let (suffix, rest) = match rest.strip_prefix('%') {
            Some(rest) => (Some('%'), rest),
            None => currency(rest),
        };
        let wrong =
            suffix.is_some() && prefix.is_some() || suffix.is_none() && suffix_space.is_some();
        if wrong || !rest.is_empty() {
            return None;
        }
        let bare = prefix.is_none() && suffix.is_none();
        if bare && !released && numeral.is_bare_code() {
            return None;
        }
        let shown = format!("{}.{}", numeral.whole, numeral.decimals);
        let size: f64 = shown.parse().ok()?;
        let form = NumberForm {
            prefix,
            suffix,
            suffix_space,
            group: numeral.group,
            decimal,
            decimals: numeral.decimals.len(),
        };
        Some((if negative { -size } else { size }, form))
    }

    /// Whether nothing stands before its sign and digits, and whether nothing stands behind them.
    pub(super) fn is_open(&self) -> (bool, bool) {
        (self.prefix.is_none(), self.suffix.is_none())
    }

    /// Another number in this form.
    pub(super) fn write(&self, x: f64) -> String {
        let size = format!("{:.*}", self.decimals, x.abs());
        let mut out = String::with_capacity(size.len() + 16);
        if x < 0.0 && size.bytes().any(|b| matches!(b, b'1'..=b'9')) {
            out.push('-');
        }
        out.extend(self.prefix);
        let (whole, decimals) = size.split_once('.').unwrap_or((&size, ""));
        for (at, digit) in whole.char_indices() {
            let left = whole.len() - at;
            if at > 0 && left.is_multiple_of(3) {
                out.extend(self.group);
            }
            out.push(digit);
        }
        if !decimals.is_empty() {
            out.push(self.decimal);
            out.push_str(decimals);
        }
        out.extend(self.suffix_space);
        out.extend(self.suffix);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, decimal: char) -> Option<(f64, NumberForm)> {
        NumberForm::read(text, decimal, false)
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
            ("1,249.90", 1249.9),
            ("€12", 12.0),
            ("12%", 12.0),
            ("12 %", 12.0),
            ("1,249\u{a0}€", 1249.0),
            ("-3", -3.0),
            ("\u{2212}3.5", -3.5),
            ("$1,000,000", 1e6),
            ("-$5", -5.0),
            ("$-5", -5.0),
            ("1'249.90", 1249.9),
            ("€2019", 2019.0),
            ("12345.67", 12345.67),
            ("$1234567890", 1_234_567_890.0),
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
        assert_eq!(read("1.249.000€", ',').unwrap().0, 1_249_000.0);
        // An address, a telephone number and a version.
        for text in ["192.168.100.200", "555.123.456", "1.200.300"] {
            assert_eq!(read(text, ','), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_not_read() {
        let all = concat!(
            "|-|€|1.2.3|1,2|1,24|12,3456|1,249,90|1234,567|007|00|0,123|12:30|0x1F|½|3½|5²|٣|１２|12345",
            "|2019|1999|+|+-5|-+5|1234|1000|12  €|€ 12|EUR 12|12 EUR|1\u{a0}234|5th|1e6|5kg|--5|$-",
            "|5-10|1/2|192.168.1.1|XIV|1.|.5|5 |12 %%|$5%|$5 €|EUR12|12EUR|1 249|4111111111111111",
            "|1.249,90|-2019|1,249'000|1234567890123456.12|0.1234567890",
        );
        for text in all.split('|') {
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
        assert_eq!(written("12€", 1e9), "1000000000€");
        assert_eq!(written("1'000", 12_345.0), "12'345");
        // A release is read again, whatever its number has become.
        for (text, x) in [("5", 2013.0), ("5", 1e9), ("0.5", 1e12), ("€5", 0.0)] {
            let written = written(text, x);
            let found = NumberForm::read(&written, '.', true).unwrap();
            assert_eq!(found.0, x, "{text} {written}");
        }
        let german = read("1.249,90€", ',').unwrap().1;
        assert_eq!(german.write(98_765.432), "98.765,43€");
    }
}
