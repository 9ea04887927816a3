//! Finding the numbers and dates of a text.
//!
//! A text is read as runs between white space. Brackets and quotation marks before a run, and these and marks that
//! end a clause behind it, are not part of it. A run, or a few of them, is a figure if all of it is one: whatever
//! else holds digits is left to the words. So are numbers beside other digits (telephone numbers, cards, 1 249),
//! before "am" and "pm", behind "version", and beside a month's name. A date is never read as numbers: where none is
//! drawn, it is left to the words.

use std::ops::Range;

use rand::Rng;

use super::calendar::Civil;
use super::date_form::{DateForm, is_month};
use super::form::{Form, NO_BREAK, NumberForm, Reading};
use super::{Date, Number};

/// Runs that one number may have.
const MAX_RUNS: usize = 6;
/// Runs that stand between the parts of one number or code: 4111 - 1111.
const DASHES: [&str; 9] = [
    "-", "\u{2010}", "\u{2011}", "\u{2012}", "–", "—", "\u{2212}", "/", "·",
];
/// Signs that a number may have.
const SIGNS: [char; 4] = ['+', '-', '\u{2212}', '–'];
/// Words that may follow a time of day, and words that may precede a version.
const TIMES: [&str; 7] = ["am", "pm", "a.m", "p.m", "o'clock", "o’clock", "uhr"];
const VERSIONS: [&str; 3] = ["version", "versions", "v"];
/// Words that may stand between a day and its month.
const LINKS: [&str; 3] = ["of", "the", "de"];

/// The laws of numbers and dates in texts; by default they are treated as words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Numbers.
    pub numbers: Option<Number>,
    /// Dates.
    pub dates: Option<Date>,
}

/// A number or a date of a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Figure {
    /// Its place on its grid.
    pub place: i64,
    /// The form in which it is written.
    pub form: Form,
}

/// A run without white space: all of it, and without the marks around.
#[derive(Clone)]
struct Run<'a> {
    whole: Range<usize>,
    core: Range<usize>,
    text: &'a str,
}

impl<'a> Run<'a> {
    fn core(&self) -> &'a str {
        &self.text[self.core.clone()]
    }

    /// Whether nothing stands before, or behind, its core.
    fn begins_bare(&self) -> bool {
        self.whole.start == self.core.start
    }

    fn ends_bare(&self) -> bool {
        self.whole.end == self.core.end
    }

    /// The text after the core.
    fn behind(&self) -> &'a str {
        &self.text[self.core.end..self.whole.end]
    }
}

fn opens(c: char) -> bool {
    matches!(
        c,
        '(' | '[' | '{' | '"' | '\'' | '“' | '‘' | '„' | '«' | '¿' | '¡'
    )
}

fn ends_clause(c: char) -> bool {
    matches!(c, ',' | '.' | ';' | ':' | '!' | '?')
}

fn closes(c: char) -> bool {
    ends_clause(c) || matches!(c, ')' | ']' | '}' | '"' | '\'' | '”' | '’' | '»')
}

/// The runs of a text.
fn runs(text: &str) -> Vec<Run<'_>> {
    let run = |part: &str| {
        let start = part.as_ptr() as usize - text.as_ptr() as usize;
        let opened = part.trim_start_matches(opens);
        let core = opened.trim_end_matches(closes);
        let core_start = start + part.len() - opened.len();
        Run {
            whole: start..start + part.len(),
            core: core_start..core_start + core.len(),
            text,
        }
    };
    // Like the tokeniser: NEL occurs within wrongly decoded words.
    let parts = text.split(|c: char| c.is_whitespace() && c != '\u{85}');
    parts.filter(|part| !part.is_empty()).map(run).collect()
}

impl Figures {
    /// Whether numbers and dates are words.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_none() && self.dates.is_none()
    }

    /// The numbers and dates of a text and where they stand, in order; those that are `skipped` are not
    /// found.
    pub fn find(&self, text: &str, skipped: impl Fn(&str) -> bool) -> Vec<(Range<usize>, Figure)> {
        self.find_by(text, Reading::Written, skipped)
    }

    fn find_by(
        &self,
        text: &str,
        reading: Reading,
        skipped: impl Fn(&str) -> bool,
    ) -> Vec<(Range<usize>, Figure)> {
        let mut found = Vec::new();
        if self.is_empty() || !text.bytes().any(|b| b.is_ascii_digit()) {
            return found;
        }
        let runs = Runs {
            text,
            runs: runs(text),
            reading,
        };
        let mut at = 0;
        while at < runs.runs.len() {
            let number = || {
                let (count, number) = self.number_at(&runs, at)?;
                Some((count, Some(number)))
            };
            let read = self.date_at(&runs, at).or_else(number);
            let (count, figure) = read.unwrap_or((1, None));
            let span = runs.span(at, count);
            let figure = figure.filter(|_| !skipped(&text[span.clone()]));
            found.extend(figure.map(|figure| (span, figure)));
            at += count;
        }
        found
    }

    /// The numbers of a text, as they are written. In a `released` text every number is one, whatever stands
    /// beside it and however many digits it was drawn with.
    pub fn numbers_of(&self, text: &str, released: bool) -> Vec<f64> {
        let reading = match released {
            true => Reading::Released,
            false => Reading::Written,
        };
        let found = self.find_by(text, reading, |_| false).into_iter();
        let read = |(span, _): (Range<usize>, Figure)| {
            let decimal = self.numbers.as_ref()?.decimal();
            Some(NumberForm::read(&text[span], decimal, reading)?.0)
        };
        found.filter_map(read).collect()
    }

    /// The days of the dates of a text, counted from 1970-01-01; those without a year are of 2024.
    pub fn days_of(&self, text: &str) -> Vec<i64> {
        let runs = Runs {
            text,
            runs: runs(text),
            reading: Reading::Written,
        };
        let (mut found, mut at) = (Vec::new(), 0);
        while at < runs.runs.len() {
            match self.date_read(&runs, at) {
                Some((count, (date, _))) => {
                    found.push(date.days());
                    at += count;
                }
                None => at += 1,
            }
        }
        found
    }

    /// The figure that all of a text is.
    pub fn read(&self, text: &str) -> Option<Figure> {
        let mut found = self.find(text, |_| false);
        let (span, figure) = found.pop()?;
        (found.is_empty() && span == (0..text.len())).then_some(figure)
    }

    /// The runs of a date that begins with one, and the date where dates are drawn.
    fn date_at(&self, runs: &Runs<'_>, at: usize) -> Option<(usize, Option<Figure>)> {
        let (count, (date, form)) = self.date_read(runs, at)?;
        let figure = self.dates.as_ref().map(|dates| Figure {
            place: dates.grid(form.has_year()).place(date.days()),
            form: Form::Date(form),
        });
        Some((count, figure))
    }

    /// Parses the date that begins with a run.
    fn date_read(&self, runs: &Runs<'_>, at: usize) -> Option<(usize, (Civil, DateForm))> {
        let first = &runs.runs[at];
        let begin = first.core().as_bytes().first().copied()?;
        if !begin.is_ascii_digit() && !begin.is_ascii_uppercase() {
            return None;
        }
        match DateForm::read(first.core(), self.dates.as_ref().and_then(Date::order)) {
            Some(found) => Some((1, found)),
            None => date_of_words(runs, at),
        }
    }

    /// The number that begins with a run, and its runs: as many as make one.
    fn number_at(&self, runs: &Runs<'_>, at: usize) -> Option<(usize, Figure)> {
        let numbers = self.numbers.as_ref()?;
        let begin = runs.runs[at].core().chars().next()?;
        if !(begin.is_ascii_digit()
            || begin.is_ascii_uppercase()
            || !begin.is_ascii()
            || matches!(begin, '-' | '+' | '$'))
        {
            return None;
        }
        let most = (1..MAX_RUNS)
            .take_while(|&k| runs.joined(at + k - 1, |gap| gap == ' ' || NO_BREAK.contains(&gap)));
        let most = most.count() + 1;
        let (count, (x, form)) = (1..=most).rev().find_map(|count| {
            let text = &runs.text[runs.span(at, count)];
            let found = NumberForm::read(text, numbers.decimal(), runs.reading)?;
            Some((count, found))
        })?;
        if runs.reading == Reading::Written && runs.is_part_of_more(at, at + count - 1, &form) {
            return None;
        }
        let place = numbers.place(x)?;
        let form = Form::Number(form);
        Some((count, Figure { place, form }))
    }

    /// Draws a place for a figure.
    pub(crate) fn draw(&self, figure: &Figure, rng: &mut impl Rng) -> i64 {
        match (&figure.form, &self.numbers, &self.dates) {
            (Form::Number(_), Some(numbers), _) => numbers.draw(figure.place, rng),
            (Form::Date(form), _, Some(dates)) => dates.draw(figure.place, form.has_year(), rng),
            // No figure is found without what draws it.
            _ => 0,
        }
    }

    /// A place in the form of a figure.
    pub(crate) fn write(&self, form: &Form, place: i64) -> String {
        match (form, &self.numbers, &self.dates) {
            (Form::Number(form), Some(numbers), _) => form.write(numbers.value(place)),
            (Form::Date(form), _, Some(dates)) => {
                let days = dates.grid(form.has_year()).days(place);
                form.write(Civil::of(days))
            }
            _ => String::new(),
        }
    }

    /// The proved bound on the log-ratio of two figures: infinite where their forms differ.
    pub fn bound(&self, a: &Figure, b: &Figure) -> f64 {
        match (&a.form, &self.numbers, &self.dates) {
            _ if a.form != b.form => f64::INFINITY,
            (Form::Number(_), Some(numbers), _) => numbers.bound(a.place, b.place),
            (Form::Date(_), _, Some(dates)) => dates.bound(a.place, b.place),
            _ => f64::INFINITY,
        }
    }

    /// ε of what draws a figure.
    pub fn epsilon(&self, figure: &Figure) -> f64 {
        let epsilon = match figure.form {
            Form::Number(_) => self.numbers.as_ref().map(Number::epsilon),
            Form::Date(_) => self.dates.as_ref().map(Date::epsilon),
        };
        epsilon.unwrap_or(f64::INFINITY)
    }
}

/// 3 May 2026, May 3, 2026, 3 May, May 3.
fn date_of_words(runs: &Runs<'_>, at: usize) -> Option<(usize, (Civil, DateForm))> {
    let one_space = |at: usize| runs.gap(at) == Some(" ");
    let first = &runs.runs[at];
    let second = runs.runs.get(at + 1)?;
    if !(one_space(at) && first.ends_bare() && second.begins_bare()) {
        return None;
    }
    let month_first = !first.core().starts_with(|c: char| c.is_ascii_digit());
    let comma = month_first && second.behind() == ",";
    let third = runs.runs.get(at + 2);
    let third = third
        .filter(|third| one_space(at + 1) && third.begins_bare() && (comma || second.ends_bare()));
    let whole = third.and_then(|third| {
        DateForm::read_words(first.core(), second.core(), comma, Some(third.core()))
    });
    match whole {
        Some(found) => Some((3, found)),
        None if runs.digits_behind(at + 1) || month_first && runs.digits_before(at) => None,
        None => Some((
            2,
            DateForm::read_words(first.core(), second.core(), false, None)?,
        )),
    }
}

/// The runs of a text, as neighbours.
struct Runs<'a> {
    text: &'a str,
    runs: Vec<Run<'a>>,
    reading: Reading,
}

impl Runs<'_> {
    /// The white space behind a run, unless it is the last.
    fn gap(&self, at: usize) -> Option<&str> {
        let next = self.runs.get(at + 1)?;
        Some(&self.text[self.runs[at].whole.end..next.whole.start])
    }

    /// Whether one space of some kind, and nothing else, stands between a run's core and the next one's.
    fn joined(&self, at: usize, kind: impl Fn(char) -> bool) -> bool {
        let Some(gap) = self.gap(at) else {
            return false;
        };
        let mut chars = gap.chars();
        let one = chars.next().is_some_and(kind) && chars.next().is_none();
        one && self.runs[at].ends_bare() && self.runs[at + 1].begins_bare()
    }

    /// The range from the core of a run to that of the last of `count` runs.
    fn span(&self, at: usize, count: usize) -> Range<usize> {
        self.runs[at].core.start..self.runs[at + count - 1].core.end
    }

    /// Whether a number of the runs from `first` to `last` is a part of something else by what stands beside it.
    fn is_part_of_more(&self, first: usize, last: usize, form: &NumberForm) -> bool {
        let (open, ends) = (!form.has_prefix(), !form.has_suffix());
        open && self.digits_before(first)
            || ends && self.digits_behind(last)
            || form.is_bare() && self.is_time_or_version(first, last)
            || open && ends && (self.is_of_a_date(first, last) || self.is_short_year(first, last))
    }

    /// Whether a run and the next stand in one line and cell of a table.
    fn in_line(&self, at: usize) -> bool {
        let ends_line = |c| matches!(c, '\t'..='\r' | '\u{2028}' | '\u{2029}');
        self.gap(at).is_some_and(|gap| !gap.contains(ends_line))
    }

    /// Whether a run and the next stand beside each other: in a line, and no mark that ends a clause between them
    /// but a point, which may be one of "5. 12. 2026".
    fn beside(&self, at: usize) -> bool {
        let behind = self.runs[at].behind();
        self.in_line(at) && (behind == "." || !behind.contains(ends_clause))
    }

    /// Whether an apostrophe stands for the first digits of a year: '84.
    fn is_short_year(&self, first: usize, last: usize) -> bool {
        let (first, last) = (&self.runs[first], self.runs[last].behind());
        let before = &self.text[first.whole.start..first.core.start];
        before.ends_with(['\'', '‘']) && !last.contains(['\'', '’'])
    }

    /// Whether a line, but no paragraph, ends between two runs, and nothing else stands between them.
    fn broken(&self, at: usize) -> bool {
        let one_line = self
            .gap(at)
            .is_some_and(|gap| gap.matches('\n').count() == 1);
        one_line && self.runs[at].ends_bare() && self.runs[at + 1].begins_bare()
    }

    fn is_dash(&self, at: usize) -> bool {
        let whole = self.runs.get(at).map(|run| &self.text[run.whole.clone()]);
        whole.is_some_and(|whole| DASHES.contains(&whole))
    }

    /// Whether digits end the text before a run; of a line before only where more digits stand there.
    fn digits_before(&self, at: usize) -> bool {
        let Some(mut before) = at.checked_sub(1) else {
            return false;
        };
        let broken = self.broken(before);
        if !broken && !self.beside(before) {
            return false;
        }
        while before > 0 && self.is_dash(before) && self.beside(before - 1) {
            before -= 1;
        }
        let digits = self.runs[before].core().ends_with(char::is_numeric);
        digits && (!broken || before > 0 && self.beside(before - 1) && self.numeric(before - 1))
    }

    /// Whether digits begin the text behind a run; of a line behind only where more digits stand there.
    fn digits_behind(&self, at: usize) -> bool {
        let broken = self.broken(at);
        if !broken && !self.beside(at) {
            return false;
        }
        let mut behind = at + 1;
        while self.is_dash(behind) && self.beside(behind) {
            behind += 1;
        }
        let unsigned = self.runs[behind].core().trim_start_matches(SIGNS);
        let digits = unsigned.starts_with(char::is_numeric);
        digits && (!broken || self.beside(behind) && self.numeric(behind + 1))
    }

    /// Whether a run has nothing but digits.
    fn numeric(&self, at: usize) -> bool {
        let core = self.runs[at].core();
        !core.is_empty() && core.chars().all(char::is_numeric)
    }

    fn is_one_of(&self, at: usize, words: &[&str]) -> bool {
        let core = self.runs.get(at).map(Run::core);
        core.is_some_and(|core| words.iter().any(|word| core.eq_ignore_ascii_case(word)))
    }

    fn is_time_or_version(&self, first: usize, last: usize) -> bool {
        let behind = |at: usize| matches!(self.runs[at].behind(), "" | "." | ":");
        let near = |at: usize| self.in_line(at) && behind(at);
        near(last) && self.is_one_of(last + 1, &TIMES)
            || first > 0 && near(first - 1) && self.is_one_of(first - 1, &VERSIONS)
    }

    /// Whether a month's name stands before or behind these runs, in a line or across the end of one: "Jan. 5",
    /// "3rd of May", "3. Mai".
    fn is_of_a_date(&self, first: usize, last: usize) -> bool {
        let close = |at: usize| {
            let gap = self.gap(at);
            let paragraph = gap.is_none_or(|gap| gap.matches('\n').count() > 1);
            !paragraph && matches!(self.runs[at].behind(), "" | ".")
        };
        let month = |at: usize| self.runs.get(at).is_some_and(|run| is_month(run.core()));
        let behind = close(last)
            && (month(last + 1)
                || self.is_one_of(last + 1, &LINKS) && close(last + 1) && month(last + 2));
        let before = |at: usize| first >= at && close(first - at) && month(first - at);
        let linked = || first >= 2 && close(first - 1) && self.is_one_of(first - 1, &LINKS);
        behind || before(1) || linked() && before(2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DateUnit, NumberSettings, Order, Scale};
    use super::*;

    fn figures() -> Figures {
        let numbers = Number::new(&NumberSettings::new(10.0, Scale::Log)).unwrap();
        let dates = Date::new(0.1, DateUnit::Day, Date::RANGE, Some(Order::Dmy)).unwrap();
        Figures {
            numbers: Some(numbers),
            dates: Some(dates),
        }
    }

    fn found(text: &str) -> Vec<&str> {
        let found = figures().find(text, |word| word == "42");
        found.into_iter().map(|(span, _)| &text[span]).collect()
    }

    #[test]
    fn figures_are_found_where_they_stand() {
        for (text, expected) in [
            (
                "Refund 1,249.90 € for order of 3 May",
                vec!["1,249.90 €", "3 May"],
            ),
            ("(12%), \"-3\"; $5!", vec!["12%", "-3", "$5"]),
            (
                "May 3rd, 2026 and 3 May 2026, 03/05/2026.",
                vec!["May 3rd, 2026", "3 May 2026", "03/05/2026"],
            ),
            ("5, 10 and 15\n20\t30", vec!["5", "10", "15", "20", "30"]),
            ("1\u{a0}249,50 or 1\u{a0}249.50 €", vec!["1\u{a0}249.50 €"]),
            (
                "EUR 12 and 12 EUR and €12 €15",
                vec!["EUR 12", "12 EUR", "€12", "€15"],
            ),
            ("42 43", vec![]),
            ("42, 43", vec!["43"]),
            ("1 249,90 € 1 249", vec![]),
            (
                "call 555 123 4567 or (555) 123-4567 or +49 170 1234567",
                vec![],
            ),
            ("4111 1111 1111 1111 DE89 3704 0044 0532 0130 00", vec![]),
            (
                "at 5 pm, 10:30, 192.168.0.1, version 2.5, v1.2.3, in 2019, #5",
                vec![],
            ),
            ("x-3 3x 3/4 5-10 a.5 fe80::1 1=1 <5> **5**", vec![]),
            ("12 May 26 12 May 10:30", vec![]),
            ("31 April 2026", vec![]),
            ("12 May 26", vec![]),
            ("12 Jun 84, 3 May '26, born '84 or ‘84", vec![]),
            ("the '84' and \"84\", (84)", vec!["84", "84", "84"]),
            ("5. 12. 2026, 5 - 12 - 2026, 5 / 12", vec![]),
            ("Version: 2.5, release 25; –3", vec!["25", "–3"]),
            ("555 - 1234, tel. 0511 / 4567, +49 (0) 170 - 1234", vec![]),
            ("555\u{3000}123\u{2002}456 601\u{a0}234\u{a0}567", vec![]),
            ("Jan. 5, 2026 3 Sept 2026 3 may 2026, 3rd of May", vec![]),
            ("3  May, May\n3", vec![]),
            (
                "3. Mai 2026, le 3 mai, 3 de mayo, May the 3rd, 3\u{a0}May",
                vec![],
            ),
            (
                "3 maypoles, 5 %  May, mayor 5.\n\nMay",
                vec!["3", "5 %", "5"],
            ),
            ("4111 - 1111 - 1111 - 1111, 10 – 20, 5 / 7", vec![]),
            ("411\u{2007}111 411 111 111\n111 111\n222", vec![]),
            (
                "10\n20\n30\t40 tea - 5 - cake",
                vec!["10", "20", "30", "40", "5"],
            ),
            ("1899 1900 9999 2019, 1234; 999", vec!["999"]),
            ("+5 -5 +49 170 1234567", vec![]),
            ("+5, -5", vec!["+5", "-5"]),
            ("½ ² Ⅳ XIV ٣ １２ 0x1F 1.2.3 12/31/99", vec![]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn a_date_that_is_not_drawn_is_no_number() {
        let numbers = Figures {
            dates: None,
            ..figures()
        };
        let text = "on 3 May 2026, May 3rd, or 2026-05-03: 5 of 03/05/2026, 3.5.2026";
        assert_eq!(numbers.numbers_of(text, false), [5.0]);
        let dates = Figures {
            numbers: None,
            ..figures()
        };
        let found = dates.find(text, |_| false);
        let found: Vec<&str> = found.into_iter().map(|(span, _)| &text[span]).collect();
        let expected = [
            "3 May 2026",
            "May 3rd",
            "2026-05-03",
            "03/05/2026",
            "3.5.2026",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn numbers_of_a_release_are_all_found() {
        let text = "€12 version 2013 -1234567 pm, 5.50";
        assert_eq!(figures().numbers_of(text, false), [12.0, 5.5]);
        let all = [12.0, 2013.0, -1_234_567.0, 5.5];
        assert_eq!(figures().numbers_of(text, true), all);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let all = figures();
        for text in [
            "€1,249.90",
            "-5",
            "3 May 2026",
            "May 3",
            "2026-05-03",
            "12th",
            "12 %",
        ] {
            let Some(figure) = all.read(text) else {
                assert_eq!(text, "12 %");
                continue;
            };
            let written = all.write(&figure.form, figure.place);
            let again = all.read(&written).unwrap();
            assert_eq!(again, figure, "{text} {written}");
            assert_eq!(all.bound(&figure, &again), 0.0);
        }
    }
}
