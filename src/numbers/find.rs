//! Finding the numbers and dates of a text.
//!
//! A text is read as runs between white space. Brackets and quotation marks before a run, and these and marks that
//! end a clause behind it, are not part of it. A run, or a few of them, is a figure if all of it is one: whatever
//! else holds digits is left to the words. So are numbers beside other digits (telephone numbers, cards, 1 249),
//! before "am" and "pm", and behind "version".

use std::ops::Range;

use rand::Rng;

use super::calendar::Civil;
use super::date_form::DateForm;
use super::form::{Form, NO_BREAK, NumberForm};
use super::{Date, Number};

/// Runs that one number may have.
const MOST_RUNS: usize = 6;

/// What numbers and dates of a text are drawn by; by default they are words.
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
    /// How it is written.
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

    /// What stands behind the core.
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
    // As the tokeniser has it: NEL stands within wrongly decoded words.
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
        let mut found = Vec::new();
        if self.is_empty() || !text.bytes().any(|b| b.is_ascii_digit()) {
            return found;
        }
        let runs = Runs {
            text,
            runs: runs(text),
        };
        let mut at = 0;
        while at < runs.runs.len() {
            let figure = self.date_at(&runs, at);
            let figure = figure.or_else(|| self.number_at(&runs, at));
            let figure = figure.map(|(count, figure)| (count, runs.span(at, count), figure));
            match figure.filter(|(_, span, _)| !skipped(&text[span.clone()])) {
                Some((count, span, figure)) => {
                    found.push((span, figure));
                    at += count;
                }
                None => at += 1,
            }
        }
        found
    }

    /// The numbers of a text, as they are written.
    pub fn numbers_of(&self, text: &str) -> Vec<f64> {
        let found = self.find(text, |_| false).into_iter();
        let read = |(span, _): (Range<usize>, Figure)| {
            let number = NumberForm::read(&text[span], self.numbers.as_ref()?.decimal())?;
            Some(number.0)
        };
        found.filter_map(read).collect()
    }

    /// The days of the dates of a text, counted from 1970-01-01; those without a year are of 2024.
    pub fn days_of(&self, text: &str) -> Vec<i64> {
        let runs = Runs {
            text,
            runs: runs(text),
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

    /// The date that begins with a run, and its runs.
    fn date_at(&self, runs: &Runs<'_>, at: usize) -> Option<(usize, Figure)> {
        let (count, (date, form)) = self.date_read(runs, at)?;
        let dates = self.dates.as_ref()?;
        let place = dates.grid(form.has_year()).place(date.days());
        let form = Form::Date(form);
        Some((count, Figure { place, form }))
    }

    /// That date itself.
    fn date_read(&self, runs: &Runs<'_>, at: usize) -> Option<(usize, (Civil, DateForm))> {
        let dates = self.dates.as_ref()?;
        let first = &runs.runs[at];
        let begin = first.core().as_bytes().first().copied()?;
        if !begin.is_ascii_digit() && !begin.is_ascii_uppercase() {
            return None;
        }
        match DateForm::read(first.core(), dates.order()) {
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
            || matches!(begin, '-' | '$'))
        {
            return None;
        }
        let most = (1..MOST_RUNS)
            .take_while(|&k| runs.joined(at + k - 1, |gap| gap == ' ' || NO_BREAK.contains(&gap)));
        let most = most.count() + 1;
        let (count, (x, form)) = (1..=most).rev().find_map(|count| {
            let found = NumberForm::read(&runs.text[runs.span(at, count)], numbers.decimal())?;
            Some((count, found))
        })?;
        if !form.has_prefix() && runs.digits_before(at)
            || !form.has_suffix() && runs.digits_behind(at + count - 1)
            || form.is_bare() && runs.is_time_or_version(at, count)
        {
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
        None if runs.digits_behind(at + 1) => None,
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

    /// From the core of a run to that of the last of so many.
    fn span(&self, at: usize, count: usize) -> Range<usize> {
        self.runs[at].core.start..self.runs[at + count - 1].core.end
    }

    /// Whether a run and the next stand beside each other: spaces between, and no mark that ends a clause.
    fn beside(&self, at: usize) -> bool {
        let space = |c: char| c == ' ' || NO_BREAK.contains(&c);
        let spaces = self.gap(at).is_some_and(|gap| gap.chars().all(space));
        spaces && !self.runs[at].behind().contains(ends_clause)
    }

    fn digits_before(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else {
            return false;
        };
        self.beside(before) && self.runs[before].core().ends_with(char::is_numeric)
    }

    fn digits_behind(&self, at: usize) -> bool {
        self.beside(at) && self.runs[at + 1].core().starts_with(char::is_numeric)
    }

    fn is_time_or_version(&self, at: usize, count: usize) -> bool {
        let last = at + count - 1;
        let named = |run: &Run<'_>, names: &[&str]| {
            names
                .iter()
                .any(|name| run.core().eq_ignore_ascii_case(name))
        };
        let time = ["am", "pm", "a.m", "p.m", "o'clock", "o’clock", "uhr"];
        let version = ["version", "versions", "v", "release"];
        self.beside(last) && named(&self.runs[last + 1], &time)
            || at > 0 && self.beside(at - 1) && named(&self.runs[at - 1], &version)
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
            ("12 May 26 12 May 10:30", vec!["12"]),
            ("31 April 2026", vec!["31"]),
            ("½ ² Ⅳ XIV ٣ １２ 0x1F 1.2.3 12/31/99", vec![]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
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
