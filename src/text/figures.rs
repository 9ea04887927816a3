//! Numbers and dates of a text that a law of their own draws ([`Figures`](crate::numbers::Figures)).
//!
//! They are found in the text before its words are, and each is one word from then on. Where no number or date is,
//! words are found as they are without this policy. The draws of a call come from a stream of their own, so that
//! seeded words are the same with and without.

use std::ops::Range;

use super::{Fate, TextPrivatizer, normalize};
use crate::guarantee::Guarantee;
use crate::numbers::{Civil, Date, Figure, Form, Number, Scale};
use crate::random::{Bulk, Key};

/// The stream of a call that numbers and dates draw from; no mechanism uses it.
const FIGURE_STREAM: u64 = u64::MAX - 1;

/// What the words of a text become, each kind in its order.
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
    pub(crate) fn units(&self, text: &str) -> impl Iterator<Item = (Range<usize>, Option<Figure>)> {
        let mut figures = self.figures(text).into_iter();
        let mut start = 0;
        // A part of the text without figures, and the figure behind it.
        let mut last = false;
        let parts = std::iter::from_fn(move || {
            if last {
                return None;
            }
            let figure = figures.next();
            last = figure.is_none();
            let end = figure.as_ref().map_or(text.len(), |(span, _)| span.start);
            let part = start..end;
            start = figure.as_ref().map_or(text.len(), |(span, _)| span.end);
            Some((part, figure))
        });
        parts.flat_map(move |(part, figure)| {
            let words = self.words_only(&text[part.clone()]);
            let words =
                words.map(move |word| (word.start + part.start..word.end + part.start, None));
            words.chain(figure.map(|(span, figure)| (span, Some(figure))))
        })
    }

    /// What becomes of a word that somebody else has found.
    pub(super) fn fate_of_token(&self, token: &str) -> (Fate, Option<Figure>) {
        let figures = &self.policy().figures;
        let fate = self.fate(token);
        match figures.read(token).filter(|_| fate != Fate::Skip) {
            Some(figure) => (figure_fate(&figure), Some(figure)),
            None => (fate, None),
        }
    }

    pub(super) fn fates_of_tokens(&self, tokens: &[&str]) -> (Vec<Fate>, Vec<Figure>) {
        let mut figures = Vec::new();
        let fate = |token: &&str| {
            let (fate, figure) = self.fate_of_token(token);
            figures.extend(figure);
            fate
        };
        let fates = tokens.iter().map(fate).collect();
        (fates, figures)
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
        let mut stream = key.stream(FIGURE_STREAM);
        let mut rng = Bulk::of(&mut stream);
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
            "which words are numbers or dates drawn as such, and the form of each: currency, separators, \
             decimals, exponent, ordinal, the order, names and padding of a date's parts, whether it has a year"
                .into(),
        );
    }
}

fn number_sentence(number: &Number) -> String {
    let (low, high) = number.range();
    let distance = match number.scale() {
        Scale::Log => "|ln x - ln x'|",
        Scale::Linear => "|x - x'|",
    };
    format!(
        "Numbers are replaced by numbers of the same form: the likelihood ratio of two numbers is at most \
         exp({}·d), where d is {distance} after both are clamped to {low} to {high} and rounded to a grid of \
         {}, by the two-sided geometric law, drawn as integers.",
        number.epsilon(),
        number.unit(),
    )
}

fn date_sentence(date: &Date) -> String {
    let (low, high) = date.range();
    let shown = |date: Civil| format!("{:04}-{:02}-{:02}", date.year, date.month, date.day);
    format!(
        "Dates are replaced by dates of the same form: the likelihood ratio of two dates is at most exp({}·d), \
         where d is the days between them after both are clamped to {} to {} (those without a year to a leap \
         year) and rounded to a grid of one {}, by the two-sided geometric law, drawn as integers.",
        date.epsilon(),
        shown(low),
        shown(high),
        date.unit().name(),
    )
}
