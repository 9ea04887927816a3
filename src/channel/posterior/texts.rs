//! Texts of a posterior: drawn from it, and the likeliest one.

use super::Posterior;
use crate::channel::read::TextOrTokens;
use crate::channel::sampled::{pick, running};
use crate::channel::sweep::ahead;
use crate::channel::viterbi::viterbi;
use crate::support::error::Result;
use crate::support::parallel::Control;
use crate::support::random::Randomness;

impl Posterior {
    /// Texts drawn from the posterior: as likely as they are to stand behind the release.
    ///
    /// # Errors
    /// [`Error::System`](crate::Error::System) if the operating system gives no entropy, [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn sample(
        &self,
        count: usize,
        seed: Option<u64>,
        control: &Control,
    ) -> Result<Vec<TextOrTokens>> {
        let key = Randomness::new(seed).next_key()?;
        let chain = self.chain();
        let sentences = self.sentences(|range| {
            let sentence = self.likelihoods(std::slice::from_ref(range), control)?;
            let mut rng = key.stream(range.start as u64);
            let mut found = vec![Vec::with_capacity(range.len()); count];
            let mut weights = Vec::new();
            ahead(&chain, range.len(), &sentence, &mut |likelihood, beta| {
                for path in &mut found {
                    chain.conditional(path, likelihood, beta, &mut weights);
                    let sums = running(weights.iter().copied());
                    path.push(pick(&sums, &mut rng) as u32);
                }
            })?;
            Ok(found)
        })?;
        let mut texts = vec![Vec::with_capacity(self.words.len()); count];
        for sentence in sentences {
            let paths = texts.iter_mut().zip(sentence);
            paths.for_each(|(text, path)| text.extend(path));
        }
        let text = |tokens: &Vec<u32>| self.reading.with(&self.channel, tokens);
        Ok(texts.iter().map(text).collect())
    }

    /// The tokens of the likeliest text.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn likeliest(&self, control: &Control) -> Result<Vec<u32>> {
        let paths = self.sentences(|places| {
            let sentence = self.likelihoods(std::slice::from_ref(places), control)?;
            viterbi(&self.chain(), places.len(), &sentence)
        })?;
        Ok(paths.concat())
    }

    /// The likeliest text.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn viterbi(&self, control: &Control) -> Result<TextOrTokens> {
        Ok(self.reading.with(&self.channel, &self.likeliest(control)?))
    }
}
