//! Bounds on an observer's knowledge about two texts, and the cost of a release, by the words that
//! the text layer actually finds.

use std::borrow::Cow;
use std::collections::HashMap;

use super::memo::Memo;
use super::spans::parts;
use super::{Consistent, Counts, Fate, FoundWords, Oov, TextPrivatizer, Unit, Word, normalize};
use crate::numbers::{Figures, Line};

impl TextPrivatizer {
    /// The proved bound on |ln(Pr\[y|a\] / Pr\[y|b\])| over all outputs y, for two texts of as many
    /// words with the same between them; infinite where nothing is proved. The guarantee's
    /// slack, once a word, comes on top.
    pub fn bound(&self, a: &str, b: &str) -> f64 {
        if a == b {
            return 0.0;
        }
        if self.between(a) != self.between(b) {
            return f64::INFINITY;
        }
        self.bound_units(&self.text_units(a), &self.text_units(b))
    }

    /// [`bound`](Self::bound) for [`privatize_spans`](Self::privatize_spans): `outside` is the text
    /// before, between and after the spans, which is released unchanged. Infinite for texts that
    /// differ from this around their spans, or if spans could lie in more than one way.
    pub fn bound_spans(&self, outside: &[String], a: &str, b: &str) -> f64 {
        if a == b {
            return 0.0;
        }
        let (whole_a, whole_b) = (a, b);
        let (Some(a), Some(b)) = (parts(a, outside), parts(b, outside)) else {
            return f64::INFINITY;
        };
        let [figures_a, figures_b] = [(whole_a, &a), (whole_b, &b)].map(|(whole, parts)| {
            let place = |part: &&str| {
                let start = part.as_ptr() as usize - whole.as_ptr() as usize;
                start..start + part.len()
            };
            let places: Vec<_> = parts.iter().map(place).collect();
            // Spans are whole words, so a part that cuts one is no span of this text.
            let whole_words = self.whole_words(whole, &places) == places;
            whole_words.then(|| self.has_own_figures(whole, &places))
        });
        let (Some(figures_a), Some(figures_b)) = (figures_a, figures_b) else {
            return f64::INFINITY;
        };
        if figures_a != figures_b {
            return f64::INFINITY;
        }
        let mut by = Cow::Borrowed(self);
        if !figures_a {
            by.to_mut().policy.figures = Figures::default();
        }
        let (mut units_a, mut units_b) = (Vec::new(), Vec::new());
        for (a, b) in a.into_iter().zip(b) {
            if by.between(a) != by.between(b) {
                return f64::INFINITY;
            }
            units_a.extend(by.text_units(a));
            units_b.extend(by.text_units(b));
        }
        self.bound_units(&units_a, &units_b)
    }

    /// [`bound`](Self::bound) for two lists of words that somebody else has found.
    pub fn bound_tokens(&self, a: &[&str], b: &[&str]) -> f64 {
        let [(a, found_a), (b, found_b)] = [a, b].map(|list| self.find_tokens(list, |_| true));
        self.bound_units(&self.units_of(&a, found_a), &self.units_of(&b, found_b))
    }

    /// The cost of releasing a text in ε·words: ε for every word (every *distinct* word, if equal
    /// words get the same replacement), times one unit of distance. An unknown word counts as a
    /// word at distance γ/2 from all others, as in Tem's law. No certificate covers it, so it costs
    /// the nominal ε. A number or a date that is drawn by its own law costs that law's ε, per unit
    /// of its own metric. Or why no finite number pays for it; and the counts that
    /// [`privatize`](Self::privatize) would return.
    pub fn price(&self, text: &str) -> (Result<f64, &'static str>, Counts) {
        self.price_found(text, self.find(text, &mut Memo::default()))
    }

    /// [`price`](Self::price) of a list of words that somebody else has found.
    pub fn price_tokens(&self, tokens: &[&str]) -> (Result<f64, &'static str>, Counts) {
        let (text, found) = self.find_tokens(tokens, |_| true);
        self.price_found(&text, found)
    }

    fn price_found(&self, text: &str, found: FoundWords) -> (Result<f64, &'static str>, Counts) {
        let counts = found.counts;
        (self.price_units(&self.units_of(text, found)), counts)
    }

    /// The ledger's note for a release of this many words, numbers and dates.
    pub fn note(&self, words: u64, numbers: u64, dates: u64) -> String {
        let figures = &self.policy().figures;
        let kinds = [
            (words, "words", Some(self.mechanism().epsilon())),
            (
                numbers,
                "numbers",
                figures.numbers.as_deref().map(Line::epsilon),
            ),
            (dates, "dates", figures.dates.as_deref().map(Line::epsilon)),
        ];
        let some = kinds.iter().filter(|(count, ..)| *count > 0);
        let notes = some.filter_map(|(count, kind, epsilon)| {
            let epsilon = (*epsilon)?;
            Some(format!("{count} {kind} at ε = {epsilon}"))
        });
        notes.collect::<Vec<_>>().join(", ")
    }

    /// The text with its words left out.
    fn between(&self, text: &str) -> String {
        let mut rest = String::new();
        let mut done = 0;
        for word in self.words(text) {
            rest.push_str(&text[done..word.start]);
            // No character: what is between words holds no noncharacter that could be taken
            // for it, because those are words.
            rest.push('\u{ffff}');
            done = word.end;
        }
        rest + &text[done..]
    }

    fn text_units<'a>(&self, text: &'a str) -> Vec<Unit<'a>> {
        self.units_of(text, self.find(text, &mut Memo::default()))
    }

    /// The units of the words found in a text.
    fn units_of<'a>(&self, text: &'a str, found: FoundWords) -> Vec<Unit<'a>> {
        let mut figures = found.figures.into_iter();
        let unit = |word: &Word| {
            let form = &text[word.start..word.end];
            Some(match word.fate {
                Fate::Replace(id) => Unit::Known(id),
                Fate::Skip => Unit::Raw(form),
                Fate::Unknown if self.policy().oov == Oov::Keep => Unit::Raw(form),
                Fate::Unknown => Unit::Unknown(normalize(form)),
                Fate::Number | Fate::Date => Unit::Figure(figures.next()?),
            })
        };
        found.words.iter().filter_map(unit).collect()
    }

    fn bound_units(&self, a: &[Unit<'_>], b: &[Unit<'_>]) -> f64 {
        if a == b {
            return 0.0;
        }
        let guarantee = self.mechanism().guarantee();
        if a.len() != b.len() || !guarantee.slack.is_finite() {
            return f64::INFINITY;
        }
        let mut pairs: Vec<_> = a.iter().zip(b).collect();
        if self.policy().consistent != Consistent::Never {
            let (first_a, first_b) = (firsts(a), firsts(b));
            if first_a != first_b {
                return f64::INFINITY;
            }
            let mut at = (0..).zip(first_a);
            pairs.retain(|_| at.next().is_some_and(|(i, first)| i == first));
        }
        let each = pairs.into_iter().map(|pair| match pair {
            (Unit::Known(a), Unit::Known(b)) => self.mechanism().bound(*a, *b),
            (Unit::Unknown(_), Unit::Unknown(_)) => 0.0,
            (Unit::Figure(a), Unit::Figure(b)) => self.policy().figures.bound(a, b),
            (Unit::Unknown(_), Unit::Known(_)) | (Unit::Known(_), Unit::Unknown(_))
                if self.policy().oov == Oov::Random =>
            {
                guarantee.unknown_bound
            }
            (a, b) if a == b => 0.0,
            _ => f64::INFINITY,
        });
        each.sum()
    }

    fn price_units(&self, units: &[Unit<'_>]) -> Result<f64, &'static str> {
        let guarantee = self.mechanism().guarantee();
        let policy = self.policy();
        if self.mechanism().randomness().seed().is_some() {
            return Err("a seed makes the output predictable");
        }
        if !guarantee.slack.is_finite() {
            return Err("it proves nothing");
        }
        if !policy.skip.is_empty() {
            return Err("skip= releases words unprotected");
        }
        if policy.oov == Oov::Keep {
            return Err("oov='keep' releases words unprotected");
        }
        if units.iter().any(|unit| matches!(unit, Unit::Unknown(_))) {
            if policy.oov != Oov::Random {
                return Err("a word is not in the vocabulary, and its oov= shows that");
            }
            if !guarantee.unknown_bound.is_finite() {
                return Err(
                    "a word is not in the vocabulary, and the mechanism proves nothing about that",
                );
            }
        }
        let (mut known, mut unknown, mut figures) = (0usize, 0usize, 0.0);
        let mut count = |unit: &Unit<'_>| match unit {
            Unit::Unknown(_) => unknown += 1,
            Unit::Known(_) | Unit::Raw(_) => known += 1,
            Unit::Figure(figure) => figures += policy.figures.epsilon(figure),
        };
        match policy.consistent {
            Consistent::Never => units.iter().for_each(&mut count),
            _ => (0..)
                .zip(firsts(units))
                .filter(|(i, first)| i == first)
                .for_each(|(i, _): (usize, _)| count(&units[i])),
        }
        let words = match guarantee.certificate {
            None => guarantee.epsilon * (known + unknown) as f64,
            Some(named) => {
                guarantee.epsilon * known as f64 + named.certificate.nominal * unknown as f64
            }
        };
        Ok(words + figures)
    }
}

/// For every unit, the position of its first occurrence.
fn firsts(units: &[Unit<'_>]) -> Vec<usize> {
    let mut seen = HashMap::new();
    let first = |(i, unit)| *seen.entry(unit).or_insert(i);
    units.iter().enumerate().map(first).collect()
}
