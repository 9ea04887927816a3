//! Consistent replacement: one draw for each distinct word.
//!
//! **Theorem.** Let x and x' be two texts with the same pattern of equal words and the same text
//! between their words. Let u₁ … u_k be the distinct words of x, and u'₁ … u'_k those of x' at the
//! same positions. The output is f(Y₁, …, Y_k) with independent Y_i ~ M(u_i), where f depends only
//! on the pattern. So it is post-processing of k independent draws. For every output y, Pr\[y|x\] ≤
//! exp(Σ_i ε·d(u_i, u'_i))·Pr\[y|x'\], however often each word occurs. The pattern is released.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use super::{Consistent, Drawn, Fate, Oov, TextPrivatizer, normalize};
use crate::mechanism::Mechanism;
use crate::mechanism::contextual::ReleasedWord;
use crate::numbers::Figure;
use crate::support::error::{Error, Result};
use crate::support::parallel::Control;

/// The replacements drawn so far: kept at most for one call, or for one text that arrives in parts.
/// It holds the original words.
#[derive(Default)]
pub struct Replacements {
    /// The mechanism that drew them: another mechanism has another law.
    of: Option<Arc<dyn Mechanism>>,
    known: HashMap<u32, u32>,
    unknown: HashMap<Box<str>, u32>,
    figures: HashMap<Figure, i64>,
    unknown_bytes: usize,
    /// Those of a mechanism that draws in order.
    in_order: HashMap<OneWord, ReleasedWord>,
}

/// A word that is drawn once.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum OneWord {
    Known(u32),
    Unknown(Box<str>),
}

impl Replacements {
    /// Binds the replacements to the mechanism that draws them.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) if they belong to another mechanism.
    pub(super) fn tie(&mut self, mechanism: &Arc<dyn Mechanism>) -> Result<()> {
        match self.of.get_or_insert_with(|| mechanism.clone()) {
            own if Arc::ptr_eq(own, mechanism) => Ok(()),
            _ => Err(Error::parameter(
                "replacements",
                "those of this mechanism",
                "another's",
            )),
        }
    }

    /// Approximate bytes of the unknown words. The vocabulary limits the known ones; these grow
    /// with the text.
    pub fn unknown_bytes(&self) -> usize {
        self.unknown_bytes
    }

    fn clear(&mut self) {
        *self = Replacements {
            of: self.of.take(),
            ..Replacements::default()
        };
    }

    pub(super) fn in_order(&self, word: &OneWord) -> Option<ReleasedWord> {
        self.in_order.get(word).copied()
    }

    pub(super) fn keep_in_order(&mut self, word: OneWord, drawn: ReleasedWord) {
        if let OneWord::Unknown(form) = &word {
            self.unknown_bytes += 2 * size_of::<(OneWord, ReleasedWord)>() + form.len();
        }
        self.in_order.insert(word, drawn);
    }
}

/// The source of a drawn word.
#[derive(Clone, Copy)]
enum DrawSource<T> {
    /// It was drawn in an earlier part of the text.
    Before(T),
    /// Its index among the draws of the call.
    New(usize),
}

/// Words or figures, each distinct one drawn once, and the source of each in order.
struct Distinct<K, T> {
    new: Vec<K>,
    at: HashMap<K, usize>,
    sources: Vec<DrawSource<T>>,
}

impl<K: Clone + Eq + Hash, T: Copy> Distinct<K, T> {
    fn none() -> Self {
        Distinct {
            new: Vec::new(),
            at: HashMap::new(),
            sources: Vec::new(),
        }
    }

    fn add(&mut self, key: K, before: Option<&T>) {
        let new = &mut self.new;
        self.sources.push(match before {
            Some(&before) => DrawSource::Before(before),
            None => DrawSource::New(*self.at.entry(key).or_insert_with_key(|key| {
                new.push(key.clone());
                new.len() - 1
            })),
        });
    }

    fn drawn(&self, new: &[T]) -> Vec<T> {
        let of = |source: &DrawSource<T>| match *source {
            DrawSource::Before(drawn) => drawn,
            DrawSource::New(at) => new[at],
        };
        self.sources.iter().map(of).collect()
    }
}

impl TextPrivatizer {
    /// Like `draw`, but draws once for each distinct word of a text or of the call.
    pub(super) fn draw_consistently<'a>(
        &self,
        texts: impl Iterator<Item = (impl Iterator<Item = (&'a str, Fate)>, &'a [Figure])>,
        kept: &mut Replacements,
        control: &Control,
    ) -> Result<Drawn> {
        let by_text = self.policy().consistent == Consistent::Text;
        let (mut known, mut unknown) = (Distinct::none(), Distinct::none());
        let (mut of_figures, mut ids) = (Distinct::none(), Vec::new());
        for (words, figures) in texts {
            if by_text {
                kept.clear();
                known.at.clear();
                unknown.at.clear();
                of_figures.at.clear();
            }
            for figure in figures {
                of_figures.add(figure, kept.figures.get(figure));
            }
            for (word, fate) in words {
                match fate {
                    Fate::Replace(id) => {
                        ids.push(id);
                        known.add(id, kept.known.get(&id));
                    }
                    Fate::Unknown if self.policy().oov == Oov::Random => {
                        let form = normalize(word);
                        let before = kept.unknown.get(&*form);
                        unknown.add(form, before);
                    }
                    Fate::Unknown | Fate::Skip | Fate::Number | Fate::Date => {}
                }
            }
        }
        let (count, figures) = (unknown.new.len() as u64, of_figures.new.iter().copied());
        let drawn = self.draw(&known.new, count, figures, control)?;
        let all = Drawn {
            known: known.drawn(&drawn.known),
            unknown: unknown.drawn(&drawn.unknown),
            figures: of_figures.drawn(&drawn.figures),
            unchanged: 0,
        };
        if !by_text {
            for (figure, at) in of_figures.at {
                kept.unknown_bytes += 4 * size_of::<(Figure, i64)>();
                kept.figures.insert(figure.clone(), drawn.figures[at]);
            }
            let new = known.at.into_iter();
            kept.known.extend(new.map(|(id, at)| (id, drawn.known[at])));
            for (form, at) in unknown.at {
                // An entry of the table, and its word.
                kept.unknown_bytes += 2 * size_of::<(Box<str>, u32)>() + form.len();
                kept.unknown.insert(form.into(), drawn.unknown[at]);
            }
        }
        let unchanged = ids.iter().zip(&all.known).filter(|(id, y)| id == y);
        Ok(Drawn {
            unchanged: unchanged.count() as u64,
            ..all
        })
    }
}
