//! The bits that a release reveals about a whole text, from draws.

use std::sync::Arc;

use super::sampled::WIDTH;
use super::{Channel, TextOrTokens};
use crate::guarantee::Bits;
use crate::language::NgramPrior;
use crate::support::error::{Error, Result};
use crate::support::parallel::Control;
use crate::text::{Oov, id_of, normalize};

impl Channel {
    /// The bits that a release reveals about a whole text, estimated from one release of each text: the
    /// mean of log₂ Pr\[y|x\]/Pr\[y\], where y is the release of x, and the model gives Pr\[y\]. Its interval
    /// is three standard errors wide on both sides.
    ///
    /// If the texts are drawn from the model, its expectation is I(X;Y). For other texts it is more, by
    /// the divergence of the releases from the model's, and so a bound of their I(X;Y). `control`
    /// counts words.
    ///
    /// # Errors
    /// [`Error::Parameter`] for fewer than two texts, releases whose posteriors are not exact sums, a model
    /// of other words; [`Error::UnknownInText`] under [`Oov::Error`]; [`Error::Interrupted`].
    pub fn text_bits(
        self: &Arc<Self>,
        texts: &[&str],
        prior: &Arc<NgramPrior>,
        control: &Control,
    ) -> Result<Bits> {
        let count = texts.len() as f64;
        if texts.len() < 2 {
            return Err(Error::parameter("texts", "at least two", texts.len()));
        }
        let (released, _) = self.text.privatize_texts(texts, &Control::new())?;
        let mut each = Vec::with_capacity(texts.len());
        for (text, released) in texts.iter().zip(released) {
            let (words, tokens): (Vec<&str>, Vec<u32>) = self.written(text).into_iter().unzip();
            let mut found = self.decode(TextOrTokens::Text(released), prior, None, control)?;
            if found.words().len() != words.len() {
                // Adjacent replacements can form another word of the vocabulary.
                let (released, _) = self.text.privatize_tokens(&words, &Control::new())?;
                found = self.decode(TextOrTokens::Tokens(released), prior, None, control)?;
            }
            if !found.is_exact() {
                let expected = "False for the bits of texts of so many words";
                return Err(Error::parameter("consistent", expected, "another"));
            }
            let log_ratio = found.log_likelihood(&tokens, control)? - found.log_evidence();
            each.push(log_ratio / std::f64::consts::LN_2);
        }
        let mean = each.iter().sum::<f64>() / count;
        let squares: f64 = each.iter().map(|bits| (bits - mean).powi(2)).sum();
        let width = WIDTH * (squares / (count * (count - 1.0))).sqrt();
        Ok(Bits {
            value: mean.max(0.0),
            low: (mean - width).max(0.0),
            high: (mean + width).max(0.0),
            sampled: texts.len(),
            draws: self.draws(),
        })
    }

    /// The words of a text that have a place in its release, and their tokens.
    fn written<'a>(&self, text: &'a str) -> Vec<(&'a str, u32)> {
        let (policy, unknown) = (self.text.policy(), self.words() as u32);
        let units = self
            .text
            .units(text)
            .into_iter()
            .filter_map(|(range, figure)| {
                let word = &text[range];
                let id = id_of(self.vocabulary(), word).filter(|_| figure.is_none());
                let stays = figure.is_some() || id.is_some() || policy.oov != Oov::Drop;
                let token = (word, id.unwrap_or(unknown));
                (stays || policy.skip.contains(&*normalize(word))).then_some(token)
            });
        units.collect()
    }
}
