//! Consistent replacement: one draw for each distinct word.
//!
//! **Theorem.** Let x and x' be two texts with the same pattern of equal words and the same
//! between their words; u₁ … u_k the distinct words of x, u'₁ … u'_k those of x' at the same
//! places. The output is f(Y₁, …, Y_k), Y_i ~ M(u_i) independent, where f depends on the pattern
//! only. So it is post-processing of k independent draws, and for every output y:
//! Pr\[y|x\] ≤ exp(Σ_i ε·d(u_i, u'_i))·Pr\[y|x'\], however often each word stands there. The pattern
//! is released.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Consistent, Counts, Fate, Oov, Starts, TextPrivatizer, UNKNOWN_STREAM, normalize};
use crate::error::{Error, Result};
use crate::mechanism::Mechanism;
use crate::parallel::Control;

/// The replacements drawn so far, while they are of use: at most for one call, or one text that
/// comes in pieces. It holds the words that were written.
#[derive(Default)]
pub struct Replacements {
    /// The mechanism that drew them: another one's draws have another law.
    of: Option<Arc<dyn Mechanism>>,
    known: HashMap<u32, u32>,
    unknown: HashMap<Box<str>, u32>,
}

impl Replacements {
    /// Ties them to the mechanism that draws them.
    ///
    /// # Errors
    /// They are another's.
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

    fn clear(&mut self) {
        self.known.clear();
        self.unknown.clear();
    }
}

/// A drawn word, by its place among the draws of the call.
#[derive(Clone, Copy)]
enum Drawn {
    Before(u32),
    Known(usize),
    Unknown(usize),
}

impl TextPrivatizer {
    /// As `draw`, once for each distinct word of a text or of the call.
    pub(super) fn draw_consistently<'a>(
        &self,
        all: impl Iterator<Item = (&'a str, Fate)>,
        lengths: impl Iterator<Item = usize>,
        counts: &mut Counts,
        kept: &mut Replacements,
        control: &Control,
    ) -> Result<(Vec<u32>, Vec<usize>)> {
        let by_text = self.policy().consistent == Consistent::Text;
        let (mut known, mut unknown) = (Vec::new(), 0);
        let (mut new, mut new_unknown) = (HashMap::new(), HashMap::new());
        let (mut places, mut words) = (Vec::new(), Vec::new());
        let mut texts = Starts::new(lengths);
        for (word, fate) in all {
            if texts.word(places.len()) && by_text {
                kept.clear();
                new.clear();
                new_unknown.clear();
            }
            counts.add(fate);
            match fate {
                Fate::Replace(id) => {
                    words.push((id, places.len()));
                    places.push(match kept.known.get(&id) {
                        Some(&before) => Drawn::Before(before),
                        None => Drawn::Known(*new.entry(id).or_insert_with(|| {
                            known.push(id);
                            known.len() - 1
                        })),
                    });
                }
                Fate::Unknown if self.policy().oov == Oov::Random => {
                    let form = normalize(word);
                    places.push(match kept.unknown.get(&*form) {
                        Some(&before) => Drawn::Before(before),
                        None => Drawn::Unknown(*new_unknown.entry(form).or_insert_with(|| {
                            unknown += 1;
                            unknown - 1
                        })),
                    });
                }
                Fate::Unknown | Fate::Skip => {}
            }
        }
        let starts = texts.finish(places.len());
        let key = self.mechanism().randomness().next_key()?;
        let mut ids = vec![0; known.len()];
        self.mechanism().draw(&known, &key, &mut ids, control)?;
        let mut rng = key.stream(UNKNOWN_STREAM);
        let random: Vec<u32> = (0..unknown)
            .map(|_| self.mechanism().draw_unknown(&mut rng))
            .collect();
        if !by_text {
            kept.known
                .extend(new.into_iter().map(|(id, at)| (id, ids[at])));
            let forms = new_unknown.into_iter();
            kept.unknown
                .extend(forms.map(|(form, at)| (form.into(), random[at])));
        }
        let drawn = places.into_iter().map(|place| match place {
            Drawn::Before(id) => id,
            Drawn::Known(at) => ids[at],
            Drawn::Unknown(at) => random[at],
        });
        let drawn: Vec<u32> = drawn.collect();
        let unchanged = words.iter().filter(|&&(id, at)| drawn[at] == id);
        counts.unchanged += unchanged.count() as u64;
        Ok((drawn, starts))
    }
}

/// One draw for each distinct id.
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
