//! The form of a date in a text: read with its day, and written with another one.
//!
//! A form must not depend on the date: whether a month is abbreviated and a day has a zero before it is not part of
//! it. "May" is either, and so is 12; what a draw made of them would tell which they were. So names are written in
//! full, days beside names without a zero, and numeric dates with two digits.

use super::Order;
use super::calendar::Civil;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The form of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DateForm {
    /// 2026-05-03.
    Iso(char),
    /// 03/05/2026.
    Numeric {
        /// Day or month first.
        month_first: bool,
        /// Between its parts.
        between: char,
    },
    /// 3 May 2026.
    Written {
        /// May 3 2026.
        month_first: bool,
        /// May 3, 2026.
        comma: bool,
    },
}

/// Names of months in other languages than English, and other abbreviations: dates with them are not read.
const OTHER_MONTHS: &str = "sept januar jänner februar märz mai juni juli oktober dezember okt dez janvier février mars \
    avril juin juillet août septembre octobre novembre décembre enero febrero marzo abril mayo junio julio agosto \
    septiembre octubre noviembre diciembre gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre \
    janeiro fevereiro março maio junho julho setembro outubro novembro dezembro januari februari maart mei \
    augustus";

/// Whether a word is, in any case of its letters, a month's name or its abbreviation.
pub(super) fn is_month(word: &str) -> bool {
    let is = |name: &str| name.eq_ignore_ascii_case(word);
    // The longest has ten letters; few of them are not ASCII.
    if !(3..=12).contains(&word.len()) {
        return false;
    }
    MONTHS.iter().any(|name| is(name) || is(&name[..3])) || {
        let lower = word.to_lowercase();
        OTHER_MONTHS.split(' ').any(|name| name == lower)
    }
}

/// A month's number by its name, which has one capital letter.
fn month(text: &str) -> Option<u8> {
    let is = |name: &str| name == text || name[..3] == *text;
    let found = (1..).zip(MONTHS).find(|(_, name)| is(name));
    found.map(|(number, _)| number)
}

/// A day's or a month's number: one or two digits.
fn number(text: &str) -> Option<u8> {
    let digits = text.bytes().all(|b| b.is_ascii_digit()) && matches!(text.len(), 1 | 2);
    text.parse().ok().filter(|_| digits)
}

fn year(text: &str) -> Option<i64> {
    let all = text.len() == 4 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|&year: &i64| all && year >= 1000)
}

impl DateForm {
    /// The date that a run without white space is, and its form.
    pub(super) fn read(text: &str, order: Option<Order>) -> Option<(Civil, Self)> {
        let between = text.chars().find(|c| !c.is_ascii_digit())?;
        if !matches!(between, '-' | '/' | '.') {
            return None;
        }
        let mut parts = text.split(between);
        let (a, b, c) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        if let Some(year) = year(a) {
            let two = b.len() == 2 && c.len() == 2 && between != '.';
            let date = Civil::new(year, number(b)?, number(c)?)?;
            return two.then_some((date, DateForm::Iso(between)));
        }
        let month_first = order? == Order::Mdy;
        let (day, month) = if month_first { (b, a) } else { (a, b) };
        let date = Civil::new(year(c)?, number(month)?, number(day)?)?;
        let form = DateForm::Numeric {
            month_first,
            between,
        };
        Some((date, form))
    }

    /// The date that a day, a month's name and a year are; which of the first two is the day, is seen.
    pub(super) fn read_words(
        first: &str,
        second: &str,
        comma: bool,
        last: &str,
    ) -> Option<(Civil, Self)> {
        let month_first = first.starts_with(|c: char| c.is_ascii_alphabetic());
        let (day, name) = match month_first {
            true => (second, first),
            false => (first, second),
        };
        let date = Civil::new(year(last)?, month(name)?, number(day)?)?;
        Some((date, DateForm::Written { month_first, comma }))
    }

    /// Another date in this form.
    pub(super) fn write(self, date: Civil) -> String {
        let Civil { year, month, day } = date;
        let name = MONTHS[usize::from(month - 1)];
        match self {
            DateForm::Iso(c) => format!("{year:04}{c}{month:02}{c}{day:02}"),
            DateForm::Numeric {
                month_first,
                between: c,
            } => {
                let (a, b) = if month_first {
                    (month, day)
                } else {
                    (day, month)
                };
                format!("{a:02}{c}{b:02}{c}{year:04}")
            }
            DateForm::Written { month_first, comma } => {
                let comma = if comma { "," } else { "" };
                match month_first {
                    true => format!("{name} {day}{comma} {year:04}"),
                    false => format!("{day} {name} {year:04}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_written() {
        let other = Civil::new(2027, 11, 2).unwrap();
        let dmy = Some(Order::Dmy);
        for (text, order, same, shown) in [
            ("2026-05-03", None, "2026-05-03", "2027-11-02"),
            ("2026/05/03", None, "2026/05/03", "2027/11/02"),
            ("03/05/2026", dmy, "3/5/2026", "02/11/2027"),
            ("05/03/2026", Some(Order::Mdy), "5/3/2026", "11/02/2027"),
            ("03.05.2026", dmy, "3.05.2026", "02.11.2027"),
        ] {
            let (date, form) = DateForm::read(text, order).unwrap();
            assert_eq!(date, Civil::new(2026, 5, 3).unwrap());
            assert_eq!(form.write(date), text);
            assert_eq!(form.write(other), shown);
            // A form does not tell whether its date needed a zero.
            assert_eq!(DateForm::read(same, order), Some((date, form)));
        }
        for text in [
            "03/05/2026",
            "1.2.3",
            "2026-02-29",
            "12/31/99",
            "2026-05",
            "2026-05-03T10:00",
            "5-3-2026",
            "2026-5-3",
            "",
        ] {
            assert_eq!(DateForm::read(text, None), None, "{text}");
        }
        assert_eq!(DateForm::read("31/12/2026", Some(Order::Mdy)), None);
        for (first, second, comma, shown) in [
            ("3", "May", false, "2 November 2027"),
            ("03", "Feb", false, "2 November 2027"),
            ("May", "3", true, "November 2, 2027"),
            ("May", "3", false, "November 2 2027"),
        ] {
            let (_, form) = DateForm::read_words(first, second, comma, "2026").unwrap();
            assert_eq!(form.write(other), shown);
        }
        // Forms do not depend on the date: not on a month that has no abbreviation, nor on a day of two digits.
        let form = |day, month| DateForm::read_words(day, month, false, "2026").unwrap().1;
        assert_eq!(form("3", "May"), form("03", "Jun"));
        assert_eq!(form("12", "May"), form("3", "June"));
        for (word, expected) in [
            ("may", true),
            ("SEPT", true),
            ("März", true),
            ("MÄRZ", true),
            ("décembre", true),
            ("ma", false),
            ("mayor", false),
            ("", false),
            ("sept januar", false),
        ] {
            assert_eq!(is_month(word), expected, "{word}");
        }
        for (first, second, last) in [
            ("3", "may", "2026"),
            ("3", "MAY", "2026"),
            ("3", "mAY", "2026"),
            ("3rd", "May", "2026"),
            ("31", "April", "2026"),
            ("3", "May", "26"),
            ("3", "May", "0026"),
            ("May", "May", "2026"),
            ("3", "4", "2026"),
            ("303", "May", "2026"),
        ] {
            assert_eq!(DateForm::read_words(first, second, false, last), None);
        }
    }
}
