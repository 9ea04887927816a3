//! Consistent replacement: one draw for each distinct word.
//!
//! **Theorem.** Let x and x' be two texts with the same pattern of equal words and the same text
//! between their words. Let u₁ … u_k be the distinct words of x, and u'₁ … u'_k those of x' at the
//! same positions. The output is f(Y₁, …, Y_k) with independent Y_i ~ M(u_i), where f depends only
//! on the pattern. So it is post-processing of k independent draws. For every output y, Pr\[y|x\] ≤
//! exp(Σ_i ε·d(u_i, u'_i))·Pr\[y|x'\], however often each word occurs. The pattern is released.

use std::collections::HashMap;
use std::sync::Arc;

use super::in_order::Said;
use super::{Consistent, Drawn, Fate, Oov, TextPrivatizer, normalize};
use crate::mechanism::Mechanism;
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
    pub(super) said: Said,
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
        self.unknown_bytes + self.said.unknown_bytes
    }

    fn clear(&mut self) {
        self.known.clear();
        self.unknown.clear();
        self.figures.clear();
        self.unknown_bytes = 0;
        self.said.clear();
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

/// The numbers and dates that are still to be drawn.
#[derive(Default)]
struct NewFigures<'a> {
    drawn: Vec<&'a Figure>,
    at: HashMap<&'a Figure, usize>,
}

impl<'a> NewFigures<'a> {
    /// The source of a figure's draw: equal figures are drawn once.
    fn place(&mut self, figure: &'a Figure, kept: &HashMap<Figure, i64>) -> DrawSource<i64> {
        match kept.get(figure) {
            Some(&before) => DrawSource::Before(before),
            None => DrawSource::New(*self.at.entry(figure).or_insert_with(|| {
                self.drawn.push(figure);
                self.drawn.len() - 1
            })),
        }
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
        let (mut known, mut unknown) = (Vec::new(), 0);
        let (mut new, mut new_unknown) = (HashMap::new(), HashMap::new());
        // For every word in order: the id if it has one, then the source of its draw.
        let (mut places, mut unknown_places) = (Vec::new(), Vec::new());
        let (mut new_figures, mut figure_places) = (NewFigures::default(), Vec::new());
        for (words, figures) in texts {
            if by_text {
                kept.clear();
                new.clear();
                new_unknown.clear();
                new_figures.at.clear();
            }
            let place = |figure| new_figures.place(figure, &kept.figures);
            figure_places.extend(figures.iter().map(place));
            for (word, fate) in words {
                match fate {
                    Fate::Replace(id) => {
                        let place = match kept.known.get(&id) {
                            Some(&before) => DrawSource::Before(before),
                            None => DrawSource::New(*new.entry(id).or_insert_with(|| {
                                known.push(id);
                                known.len() - 1
                            })),
                        };
                        places.push((id, place));
                    }
                    Fate::Unknown if self.policy().oov == Oov::Random => {
                        let form = normalize(word);
                        unknown_places.push(match kept.unknown.get(&*form) {
                            Some(&before) => DrawSource::Before(before),
                            None => {
                                DrawSource::New(*new_unknown.entry(form).or_insert_with(|| {
                                    unknown += 1;
                                    unknown - 1
                                }))
                            }
                        });
                    }
                    Fate::Unknown | Fate::Skip | Fate::Number | Fate::Date => {}
                }
            }
        }
        let new_ones = new_figures.drawn.iter().copied();
        let drawn = self.draw(&known, unknown as u64, new_ones, control)?;
        if !by_text {
            for (figure, at) in new_figures.at {
                kept.unknown_bytes += 4 * size_of::<(Figure, i64)>();
                kept.figures.insert(figure.clone(), drawn.figures[at]);
            }
            let ids = new.into_iter().map(|(id, at)| (id, drawn.known[at]));
            kept.known.extend(ids);
            for (form, at) in new_unknown {
                // An entry of the table, and its word.
                kept.unknown_bytes += 2 * size_of::<(Box<str>, u32)>() + form.len();
                kept.unknown.insert(form.into(), drawn.unknown[at]);
            }
        }
        let of = |place, drawn: &[u32]| match place {
            DrawSource::Before(id) => id,
            DrawSource::New(at) => drawn[at],
        };
        let each = places.iter().map(|&(_, place)| of(place, &drawn.known));
        let each: Vec<u32> = each.collect();
        let unchanged = places.iter().zip(&each).filter(|((id, _), y)| id == *y);
        let figures = figure_places.into_iter().map(|place| match place {
            DrawSource::Before(drawn) => drawn,
            DrawSource::New(at) => drawn.figures[at],
        });
        Ok(Drawn {
            figures: figures.collect(),
            unchanged: unchanged.count() as u64,
            unknown: unknown_places
                .into_iter()
                .map(|place| of(place, &drawn.unknown))
                .collect(),
            known: each,
        })
    }
}

/// Draws once for each distinct id.
pub(super) fn privatize_ids(
    mechanism: &dyn Mechanism,
    ids: &[u32],
    control: &Control,
) -> Result<Vec<u32>> {
    mechanism.vocabulary().check_ids(ids)?;
    let mut distinct = ids.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let mut drawn = vec![0; distinct.len()];
    let key = mechanism.randomness().next_key()?;
    mechanism.draw(&distinct, &key, &mut drawn, control)?;
    let replacements: HashMap<u32, u32> = distinct.into_iter().zip(drawn).collect();
    Ok(ids.iter().map(|id| replacements[id]).collect())
}
