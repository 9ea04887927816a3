//! Texts whose words are drawn in order, each by what has been released before it.
//!
//! The history of a word is the release: words drawn, words kept, marks between them; a number or a
//! mask is a word that is not in the vocabulary. So who reads the release knows it, too. A text stays
//! on one thread; texts are drawn at the same time, unless they share their replacements.
//!
//! Under `consistent`, the first place of a word is drawn by its history, and the later places are no
//! draws, but part of the history of what follows. So the theorem of
//! [`consistent`](super::consistent) holds: a release is a function of the pattern and of one draw a
//! distinct word, and for each draw the log-ratio is at most ε·d, whatever was released before.

use super::consistent::{OneWord, Replacements};
use super::{Consistent, Drawn, Fate, FoundWords, Oov, TextPrivatizer, is_masked, normalize};
use crate::mechanism::contextual::{ContextualTem, InOrder, Released};
use crate::numbers::Figure;
use crate::support::error::Result;
use crate::support::parallel::{Control, map_all_with};

impl TextPrivatizer {
    /// Draws a word, or writes it again; `None` is one that is not in the vocabulary.
    fn draw_or_repeat(
        &self,
        (id, word): (Option<u32>, &str),
        order: &mut InOrder,
        kept: &mut Replacements,
    ) -> Result<u32> {
        if self.policy.consistent == Consistent::Never {
            return Ok(order.draw(id)?.id());
        }
        let word = match id {
            Some(id) => OneWord::Known(id),
            None => OneWord::Unknown(normalize(word).into()),
        };
        if let Some(before) = kept.in_order(&word) {
            order.released.again(before);
            return Ok(before.id());
        }
        let drawn = order.draw(id)?;
        kept.keep_in_order(word, drawn);
        Ok(drawn.id())
    }

    fn draw_words(
        &self,
        (text, found): (&str, &FoundWords),
        order: &mut InOrder,
        kept: &mut Replacements,
        control: &Control,
    ) -> Result<Drawn> {
        let mut drawn = Drawn::default();
        let mut done = 0;
        for place in &found.words {
            control.check()?;
            order.released.between(&text[done..place.start]);
            done = place.end;
            let word = &text[place.start..place.end];
            match (place.fate, self.policy.oov) {
                (Fate::Replace(id), _) => {
                    let y = self.draw_or_repeat((Some(id), word), order, kept)?;
                    drawn.known.push(y);
                }
                (Fate::Unknown, Oov::Random) => {
                    let y = self.draw_or_repeat((None, word), order, kept)?;
                    drawn.unknown.push(y);
                }
                (Fate::Skip, _) | (Fate::Unknown, Oov::Keep) => order.released.kept(word),
                (Fate::Number | Fate::Date, _) | (Fate::Unknown, Oov::Mask) => {
                    order.released.other();
                }
                (Fate::Unknown, Oov::Drop | Oov::Error) => {}
            }
        }
        control.advance(drawn.known.len());
        drawn.unchanged = self.came_back.note(&found.known, &drawn.known);
        Ok(drawn)
    }

    /// The history of the word behind a beginning of a release, as its receiver reads it: masks,
    /// numbers and dates are no words of the vocabulary.
    pub fn history(&self, released: &str) -> Released<'_> {
        let mut history = Released::nothing(self.mechanism.vocabulary());
        let mut done = 0;
        for (range, figure) in self.units(released) {
            history.between(&released[done..range.start]);
            match figure.is_some() || is_masked(released, &range) {
                true => history.other(),
                false => history.kept(&released[range.clone()]),
            }
            done = range.end;
        }
        history.between(&released[done..]);
        history
    }

    /// [`draw`](Self::draw) or [`draw_consistently`](Self::draw_consistently), in order. With `clear`
    /// the texts are parts of one text, with this clear text before each.
    pub(super) fn draw_in_order(
        &self,
        tem: &ContextualTem,
        texts: &[(&str, &FoundWords)],
        clear: Option<&[&str]>,
        kept: &mut Replacements,
        control: &Control,
    ) -> Result<Drawn> {
        let figures = texts.iter().map(|(_, found)| &found.figures[..]);
        let mut drawn = self.draw_figures_alone(figures, kept, control)?;
        let key = self.mechanism.randomness().next_key()?;
        let each: Vec<Drawn> = match (self.policy.consistent, clear) {
            (Consistent::Never | Consistent::Text, None) => {
                let first = || InOrder::new(tem, key.stream(0));
                map_all_with((0..).zip(texts), first, |order, (at, text)| {
                    order.begin(key.stream(at));
                    self.draw_words(*text, order, &mut Replacements::default(), control)
                })?
            }
            _ => {
                let mut order = InOrder::new(tem, key.stream(0));
                let mut end = "";
                let each = texts.iter().enumerate().map(|(at, &(text, found))| {
                    match clear {
                        None => order.released = Released::nothing(self.mechanism.vocabulary()),
                        Some(clear) => {
                            order.released.between(end);
                            order.released.read(clear[at]);
                        }
                    }
                    end = &text[found.words.last().map_or(0, |word| word.end)..];
                    self.draw_words((text, found), &mut order, kept, control)
                });
                each.collect::<Result<_>>()?
            }
        };
        for of_text in each {
            drawn.unchanged += of_text.unchanged;
            drawn.known.extend(of_text.known);
            drawn.unknown.extend(of_text.unknown);
        }
        Ok(drawn)
    }

    /// Draws numbers and dates, which have laws of their own and no history.
    fn draw_figures_alone<'a>(
        &self,
        figures: impl Iterator<Item = &'a [Figure]>,
        kept: &mut Replacements,
        control: &Control,
    ) -> Result<Drawn> {
        match self.policy.consistent {
            Consistent::Never => self.draw(&[], 0, figures.flatten(), control),
            _ => {
                let each = figures.map(|figures| (std::iter::empty(), figures));
                self.draw_consistently(each, kept, control)
            }
        }
    }
}
