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
        let places = self.words.len();
        let mut drawn = vec![0u32; count * places];
        if places > 0 {
            let chain = self.chain();
            self.sentences(
                |range| {
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
                    Ok((range.start, found))
                },
                |(first, found)| {
                    for (row, path) in drawn.chunks_exact_mut(places).zip(found) {
                        row[first..first + path.len()].copy_from_slice(&path);
                    }
                },
            )?;
        }
        let text = |at: usize| {
            self.reading
                .with(&self.channel, &drawn[at * places..][..places])
        };
        Ok((0..count).map(text).collect())
    }

    /// The tokens of the likeliest text.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn likeliest(&self, control: &Control) -> Result<Vec<u32>> {
        let mut tokens = Vec::with_capacity(self.words.len());
        self.sentences(
            |places| {
                viterbi(
                    &self.chain(),
                    places.len(),
                    &self.likelihoods(std::slice::from_ref(places), control)?,
                )
            },
            |path| tokens.extend(path),
        )?;
        Ok(tokens)
    }

    /// The likeliest text.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn viterbi(&self, control: &Control) -> Result<TextOrTokens> {
        Ok(self.reading.with(&self.channel, &self.likeliest(control)?))
    }
}
