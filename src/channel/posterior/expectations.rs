//! Expectations over a posterior's words: marginals and counts.

use std::ops::Range;

use super::Posterior;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, install};

/// Bytes of posteriors of single words that are kept from call to call.
const WINDOW_BYTES: usize = 128 << 20;

impl Posterior {
    pub(super) fn check_place(&self, place: usize) -> Result<()> {
        let places = self.reading.observed.len();
        match place < places {
            true => Ok(()),
            false => {
                let expected = format!("a place below the number of words, {places}");
                Err(Error::parameter("i", expected, place))
            }
        }
    }

    /// The posterior of the word at a place: of every word of the vocabulary, the unknown one last.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a place that there is not, [`Error::Interrupted`].
    pub fn marginal(&self, place: usize, control: &Control) -> Result<Vec<f64>> {
        self.check_place(place)?;
        let tokens = self.tokens();
        let of = |window: &(Range<usize>, Vec<f64>)| {
            let at = window.0.contains(&place).then(|| place - window.0.start)?;
            Some(window.1[at * tokens..][..tokens].to_vec())
        };
        // Not waited for: whoever holds it makes the same.
        if let Some(found) = self.window.try_lock().ok().and_then(|window| of(&window)) {
            return Ok(found);
        }
        let at = self.reading.sentences.partition_point(|s| s.end <= place);
        let places = self.reading.sentences[at].clone();
        let most = (WINDOW_BYTES / 8 / tokens).max(1);
        let first = place.saturating_sub(most / 2).max(places.start);
        let window = first..places.end.min(first + most);
        let mut kept = vec![0.0; window.len() * tokens];
        install(tokens, 0, || {
            self.pass(&[places], control, &mut |place, marginal| {
                if window.contains(&place) {
                    let at = (place - window.start) * tokens;
                    kept[at..][..tokens].copy_from_slice(marginal);
                }
            })
        })??;
        let window = (window, kept);
        let found = of(&window).unwrap_or_default();
        if let Ok(mut kept) = self.window.try_lock() {
            *kept = window;
        }
        Ok(found)
    }

    /// The expected count of each word in the text; the unknown one last.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn expected_counts(&self, control: &Control) -> Result<Vec<f64>> {
        let mut sum = vec![0.0; self.tokens()];
        self.together(
            |sentences| {
                let mut part = vec![0.0; self.tokens()];
                self.pass(sentences, control, &mut |_, marginal| {
                    part.iter_mut().zip(marginal).for_each(|(a, b)| *a += b);
                })?;
                Ok(part)
            },
            |part| sum.iter_mut().zip(part).for_each(|(a, b)| *a += b),
        )?;
        Ok(sum)
    }
}
