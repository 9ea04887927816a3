//! Numbers and dates of a text that a law of their own draws ([`Figures`](crate::numbers::Figures)).
//!
//! They are found in the text before its words are, and each then counts as one word. Without
//! numbers and dates, words are found as without this policy. The draws use a stream of their own,
//! so that seeded words are the same with and without this policy.

use std::ops::Range;

use super::{Fate, TextPrivatizer, normalize};
use crate::guarantee::Guarantee;
use crate::numbers::{Date, Figure, Form, Number, Scale};
use crate::support::random::Key;

/// The stream of a call that numbers and dates draw from; no mechanism uses it.
const FIGURE_STREAM: u64 = u64::MAX - 1;

/// The replacements of a text's words, each kind in order.
pub(super) struct Replacing<'a> {
    pub(super) known: std::slice::Iter<'a, u32>,
    pub(super) unknown: std::slice::Iter<'a, u32>,
    pub(super) figures: std::slice::Iter<'a, String>,
}

pub(super) fn figure_fate(figure: &Figure) -> Fate {
    match figure.form {
        Form::Number(_) => Fate::Number,
        Form::Date(_) => Fate::Date,
    }
}

impl TextPrivatizer {
    /// The numbers and dates of a text that are drawn as such.
    pub(super) fn figures(&self, text: &str) -> Vec<(Range<usize>, Figure)> {
        let skip = &self.policy().skip;
        let skipped = |word: &str| !skip.is_empty() && skip.contains(&*normalize(word));
        self.policy().figures.find(text, skipped)
    }

    /// The words of a text, and what number or date each is, if it is drawn as one.
    pub fn units(&self, text: &str) -> Vec<(Range<usize>, Option<Figure>)> {
        let mut units = Vec::new();
        let mut done = 0;
        let add_words = |units: &mut Vec<_>, part: Range<usize>| {
            let words = self.words_only(&text[part.clone()]);
            units.extend(words.map(|word| (word.start + part.start..word.end + part.start, None)));
        };
        for (span, figure) in self.figures(text) {
            add_words(&mut units, done..span.start);
            done = span.end;
            units.push((span, Some(figure)));
        }
        add_words(&mut units, done..text.len());
        units
    }

    /// Whether the numbers and dates of each span are those that it has in the whole text: of a telephone number
    /// or a date a part alone may look like a number. Where they are not, all spans have words.
    pub(super) fn has_own_figures(&self, text: &str, spans: &[Range<usize>]) -> bool {
        let all = self.figures(text);
        let same = |span: &Range<usize>| {
            let first = all.partition_point(|(place, _)| place.start < span.start);
            let within = |found: &&(Range<usize>, Figure)| found.0.end <= span.end;
            let moved = |(place, figure): &(Range<usize>, Figure)| {
                (
                    place.start - span.start..place.end - span.start,
                    figure.clone(),
                )
            };
            let own = all[first..].iter().take_while(within).map(moved);
            own.eq(self.figures(&text[span.clone()]))
        };
        self.policy.figures.is_empty() || spans.iter().all(same)
    }

    /// The places that figures are drawn at.
    pub(super) fn draw_figures<'a>(
        &self,
        figures: impl Iterator<Item = &'a Figure>,
        key: &Key,
    ) -> Vec<i64> {
        let mut figures = figures.peekable();
        if figures.peek().is_none() {
            return Vec::new();
        }
        let mut rng = key.stream(FIGURE_STREAM);
        let policy = &self.policy().figures;
        figures
            .map(|figure| policy.draw(figure, &mut rng))
            .collect()
    }

    /// Places in the forms of figures.
    pub(super) fn written(&self, figures: &[Figure], places: &[i64]) -> Vec<String> {
        let policy = &self.policy().figures;
        let each = figures.iter().zip(places);
        each.map(|(figure, &place)| policy.write(&figure.form, place))
            .collect()
    }

    /// Says how numbers and dates are drawn, and what of them is released.
    pub(super) fn add_figures(&self, guarantee: &mut Guarantee) {
        let figures = &self.policy().figures;
        let mut said = Vec::new();
        said.extend(figures.numbers.as_ref().map(number_sentence));
        said.extend(figures.dates.as_ref().map(date_sentence));
        if said.is_empty() {
            return;
        }
        if !guarantee.outputs.is_empty() {
            said.insert(0, std::mem::take(&mut guarantee.outputs));
        }
        guarantee.outputs = said.join(" ");
        guarantee.exceptions.push(
            "which words are numbers or dates drawn as such, and so whether digits, a month's name, or a word such as \
             \"version\" or \"pm\" stands beside one that is not; the form of each: currency, separators, \
             decimals, the order and marks of a date's parts"
                .into(),
        );
    }
}

fn number_sentence(number: &Number) -> String {
    let settings = number.settings();
    let distance = match settings.scale {
        Scale::Log => "|ln x - ln x'| (for 0 and unlike signs along the grid)",
        Scale::Linear => "|x - x'|",
    };
    let [low, high, unit] =
        [settings.low, settings.high, settings.unit].map(Option::unwrap_or_default);
    format!(
        "Numbers are replaced by numbers of the same form: the likelihood ratio of two numbers is at most \
         exp({}·d), where d is {distance} after both are clamped to {low} to {high} and rounded to a grid of \
         {unit}, by the two-sided geometric law, drawn as integers.",
        number.epsilon(),
    )
}

fn date_sentence(date: &Date) -> String {
    let settings = date.settings();
    format!(
        "Dates are replaced by dates of the same form: the likelihood ratio of two dates is at most exp({}·d), \
         where d is the days between them after both are clamped to {} to {} and rounded to a grid of one day, by \
         the two-sided geometric law, drawn as integers.",
        date.epsilon(),
        settings.low,
        settings.high,
    )
}
