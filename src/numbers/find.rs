//! Finding the numbers and dates of a text.
//!
//! A text is read as runs between white space. Brackets and quotation marks before a run, and these and marks that
//! end a clause behind it, are not part of it. A run is a number, perhaps with a sign behind it, and one or three are a date, if all of it is:
//! whatever else holds digits is left to the words. So are numbers beside other digits (telephone numbers, cards, 1 249),
//! before "am" and "pm", behind "version", and beside a month's name. A date is never read as numbers: where none is
//! drawn, it is left to the words.

use std::ops::Range;

use rand::Rng;

use super::calendar::Civil;
use super::date_form::{DateForm, is_month};
use super::form::{Form, NumberForm};
use super::{Date, Line, Number};

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
        let found = self.find_by(text, false, skipped).into_iter();
        found.map(|(span, (figure, _))| (span, figure)).collect()
    }

    /// The numbers and dates of a text as they are written, dates as days since 1970-01-01. In a `released` text every
    /// number is one, whatever stands beside it and however many digits it was drawn with.
    pub fn values_of(&self, text: &str, released: bool) -> Vec<f64> {
        let found = self.find_by(text, released, |_| false).into_iter();
        found.map(|(_, (_, value))| value).collect()
    }

    fn find_by(
        &self,
        text: &str,
        released: bool,
        skipped: impl Fn(&str) -> bool,
    ) -> Vec<(Range<usize>, (Figure, f64))> {
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
            let number = || {
                let (count, number) = self.number_at(&runs, at, released)?;
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

    /// The figure that all of a text is.
    pub fn read(&self, text: &str) -> Option<Figure> {
        let mut found = self.find(text, |_| false);
        let (span, figure) = found.pop()?;
        (found.is_empty() && span == (0..text.len())).then_some(figure)
    }

    /// The runs of a date that begins with one, and the date where dates are drawn.
    fn date_at(&self, runs: &Runs<'_>, at: usize) -> Option<(usize, Option<(Figure, f64)>)> {
        let first = &runs.runs[at];
        let begin = first.core().as_bytes().first().copied()?;
        if !begin.is_ascii_digit() && !begin.is_ascii_uppercase() {
            return None;
        }
        let order = self.dates.as_ref().and_then(|dates| dates.settings().order);
        let (count, (date, form)) = match DateForm::read(first.core(), order) {
            Some(found) => (1, found),
            None => (3, date_of_words(runs, at)?),
        };
        let days = date.days() as f64;
        let place = self.dates.as_ref().and_then(|dates| dates.place(days));
        let form = Form::Date(form);
        Some((count, place.map(|place| (Figure { place, form }, days))))
    }

    /// The number that begins with a run, and its runs: with a sign behind a space there are two.
    fn number_at(
        &self,
        runs: &Runs<'_>,
        at: usize,
        released: bool,
    ) -> Option<(usize, (Figure, f64))> {
        let numbers = self.numbers.as_ref()?;
        let decimal = numbers.settings().decimal;
        let most = (runs.runs.len() - at).min(2);
        let (count, (x, form)) = (1..=most).rev().find_map(|count| {
            let text = &runs.text[runs.span(at, count)];
            Some((count, NumberForm::read(text, decimal, released)?))
        })?;
        if !released && runs.is_part_of_more(at, &form) {
            return None;
        }
        let place = numbers.place(x)?;
        let form = Form::Number(form);
        Some((count, (Figure { place, form }, x)))
    }

    /// The law of what has a form. No figure is found without what draws it.
    fn line(&self, form: &Form) -> Option<&Line> {
        match form {
            Form::Number(_) => self.numbers.as_deref(),
            Form::Date(_) => self.dates.as_deref(),
        }
    }

    pub(crate) fn draw(&self, figure: &Figure, rng: &mut impl Rng) -> i64 {
        let line = self.line(&figure.form);
        line.map_or(0, |line| line.draw(figure.place, rng))
    }

    pub(crate) fn write(&self, form: &Form, place: i64) -> String {
        let value = self.line(form).map_or(0.0, |line| line.value(place));
        match form {
            Form::Number(form) => form.write(value),
            Form::Date(form) => form.write(Civil::of(value as i64)),
        }
    }

    /// The proved bound on the log-ratio of two figures: infinite where their forms differ.
    pub fn bound(&self, a: &Figure, b: &Figure) -> f64 {
        let line = self.line(&a.form).filter(|_| a.form == b.form);
        line.map_or(f64::INFINITY, |line| line.bound(a.place, b.place))
    }

    /// ε of what draws a figure.
    pub fn epsilon(&self, figure: &Figure) -> f64 {
        self.line(&figure.form).map_or(f64::INFINITY, Line::epsilon)
    }
}

/// 3 May 2026, May 3, 2026.
fn date_of_words(runs: &Runs<'_>, at: usize) -> Option<(Civil, DateForm)> {
    let one_space = |at: usize| runs.gap(at) == Some(" ");
    let first = &runs.runs[at];
    let second = runs.runs.get(at + 1)?;
    let third = runs.runs.get(at + 2)?;
    let month_first = !first.core().starts_with(|c: char| c.is_ascii_digit());
    let comma = month_first && second.behind() == ",";
    let joined = one_space(at)
        && one_space(at + 1)
        && first.ends_bare()
        && second.begins_bare()
        && (comma || second.ends_bare())
        && third.begins_bare();
    joined
        .then(|| DateForm::read_words(first.core(), second.core(), comma, third.core()))
        .flatten()
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

    /// The range from the core of a run to that of the last of `count` runs.
    fn span(&self, at: usize, count: usize) -> Range<usize> {
        self.runs[at].core.start..self.runs[at + count - 1].core.end
    }

    /// Whether the number of a run is a part of something else by what stands beside it.
    fn is_part_of_more(&self, at: usize, form: &NumberForm) -> bool {
        let (open, ends) = form.is_open();
        open && self.digits_before(at)
            || ends && self.digits_behind(at)
            || open
                && ends
                && (self.is_time_or_version(at) || self.is_of_a_date(at) || self.is_short_year(at))
    }

    /// Whether a run and the next stand beside each other: no mark that ends a clause is between them but a point, which
    /// may be one of "5. 12. 2026".
    fn beside(&self, at: usize) -> bool {
        let behind = self.runs[at].behind();
        at + 1 < self.runs.len() && (behind == "." || !behind.contains(ends_clause))
    }

    /// Whether an apostrophe stands for the first digits of a year: '84.
    fn is_short_year(&self, at: usize) -> bool {
        let run = &self.runs[at];
        let before = &self.text[run.whole.start..run.core.start];
        before.ends_with(['\'', '‘']) && !run.behind().contains(['\'', '’'])
    }

    fn is_dash(&self, at: usize) -> bool {
        let whole = self.runs.get(at).map(|run| &self.text[run.whole.clone()]);
        whole.is_some_and(|whole| DASHES.contains(&whole))
    }

    /// Whether digits end the text before a run.
    fn digits_before(&self, at: usize) -> bool {
        let mut before = (0..at).rev().take_while(|&before| self.beside(before));
        let first = before.find(|&before| !self.is_dash(before));
        first.is_some_and(|before| self.runs[before].core().ends_with(char::is_numeric))
    }

    /// Whether digits begin the text behind a run.
    fn digits_behind(&self, at: usize) -> bool {
        let mut behind = (at..).take_while(|&at| self.beside(at)).map(|at| at + 1);
        let first = behind.find(|&behind| !self.is_dash(behind));
        let core = first.map_or("", |behind| self.runs[behind].core());
        let unsigned = core.trim_start_matches(SIGNS);
        unsigned.starts_with(char::is_numeric)
    }

    fn is_one_of(&self, at: usize, words: &[&str]) -> bool {
        let core = self.runs.get(at).map(Run::core);
        core.is_some_and(|core| words.iter().any(|word| core.eq_ignore_ascii_case(word)))
    }

    fn is_time_or_version(&self, at: usize) -> bool {
        let near = |at: usize| matches!(self.runs[at].behind(), "" | "." | ":");
        near(at) && self.is_one_of(at + 1, &TIMES)
            || at > 0 && near(at - 1) && self.is_one_of(at - 1, &VERSIONS)
    }

    /// Whether a month's name stands before or behind a run: "Jan. 5", "3 of May", "3. Mai".
    fn is_of_a_date(&self, run: usize) -> bool {
        let close = |at: usize| matches!(self.runs[at].behind(), "" | ".");
        let month = |at: usize| self.runs.get(at).is_some_and(|run| is_month(run.core()));
        let behind = close(run)
            && (month(run + 1)
                || self.is_one_of(run + 1, &LINKS) && close(run + 1) && month(run + 2));
        let before = |at: usize| run >= at && close(run - at) && month(run - at);
        let linked = || run >= 2 && close(run - 1) && self.is_one_of(run - 1, &LINKS);
        behind || before(1) || linked() && before(2)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn figures() -> Figures {
        let dates = json!({"epsilon": 0.1, "order": "dmy"});
        Figures {
            numbers: Some(Number::of_value(&json!(10.0)).unwrap()),
            dates: Some(Date::of_value(&dates).unwrap()),
        }
    }

    fn found(text: &str) -> Vec<&str> {
        let found = figures().find(text, |word| word == "42");
        found.into_iter().map(|(span, _)| &text[span]).collect()
    }

    #[test]
    fn figures_are_found_where_they_stand() {
        // Bars enclose each match.
        for text in [
            "Refund |1,249.90 €| for order of 3 May",
            "(|12%|), \"|-3|\"; |$5|!",
            "|May 3, 2026| and |3 May 2026|, |03/05/2026|.",
            "|5|, |10| and |15|,\n|20|;\t|30|",
            "5\n10 tea 5\t10 5\n\n10",
            "1\u{a0}249,50 or 1\u{a0}249.50",
            "EUR |12| and |12| EUR and |€12| |€15|",
            "42 43",
            "42, |43|",
            "1 249,90 € 1 249",
            "call 555 123 4567 or (555) 123-4567 or +49 170 1234567",
            "4111 1111 1111 1111 DE89 3704 0044 0532 0130 00",
            "at 5 pm, 10:30, 192.168.0.1, version 2.5, v1.2.3, in 2019, #5",
            "x-3 3x 3/4 5-10 a.5 fe80::1 1=1 <5> **5**",
            "12 May 26 12 May 10:30",
            "31 April 2026",
            "12 May 26",
            "3 May, MAY 3, May 3rd, 2026, 3rd May 2026, 5th 1e6 3 MAY 2026",
            "12 Jun 84, 3 May '26, born '84 or ‘84",
            "the '|84|' and \"|84|\", (|84|)",
            "5. 12. 2026, 5 - 12 - 2026, 5 / 12",
            "Version: 2.5, release |25|; |–3|",
            "555 - 1234, tel. 0511 / 4567, +49 (0) 170 - 1234",
            "555\u{3000}123\u{2002}456 601\u{a0}234\u{a0}567",
            "Jan. 5, 2026 3 Sept 2026 3 may 2026, 3rd of May",
            "3  May, May\n3",
            "3. Mai 2026, le 3 mai, 3 de mayo, May the 3rd, 3\u{a0}May",
            "|3| maypoles, |5 %|  May, mayor 5.\n\nMay",
            "4111 - 1111 - 1111 - 1111, 10 – 20, 5 / 7",
            "411\u{2007}111 411 111 111\n111 111\n222",
            "10\n20\n30\t40 tea - |5| - cake",
            "1899 1900 9999 2019, 1234; |999|",
            "+5 -5 +49 170 1234567",
            "|+5|, |-5|",
            "½ ² Ⅳ XIV ٣ １２ 0x1F 1.2.3 12/31/99",
        ] {
            let expected: Vec<&str> = text.split('|').skip(1).step_by(2).collect();
            assert_eq!(found(&text.replace('|', "")), expected, "{text}");
        }
    }

    #[test]
    fn a_date_that_is_not_drawn_is_no_number() {
        let numbers = Figures {
            dates: None,
            ..figures()
        };
        let text = "on 3 May 2026, May 3, or 2026-05-03: 5 of 03/05/2026, 3.5.2026";
        assert_eq!(numbers.values_of(text, false), [5.0]);
        let dates = Figures {
            numbers: None,
            ..figures()
        };
        let found = dates.find(text, |_| false);
        let found: Vec<&str> = found.into_iter().map(|(span, _)| &text[span]).collect();
        let expected = ["3 May 2026", "2026-05-03", "03/05/2026", "3.5.2026"];
        assert_eq!(found, expected);
    }

    #[test]
    fn numbers_of_a_release_are_all_found() {
        let text = "€12 version 2013 -1234567 pm, 5.50";
        assert_eq!(figures().values_of(text, false), [12.0, 5.5]);
        let all = [12.0, 2013.0, -1_234_567.0, 5.5];
        assert_eq!(figures().values_of(text, true), all);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let all = figures();
        for text in ["€1,249.90", "-5", "3 May 2026", "2026-05-03", "12 %"] {
            let figure = all.read(text).unwrap();
            let written = all.write(&figure.form, figure.place);
            let again = all.read(&written).unwrap();
            assert_eq!(again, figure, "{text} {written}");
            assert_eq!(all.bound(&figure, &again), 0.0);
        }
    }
}
