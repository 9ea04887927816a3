//! Summaries of a mechanism with a law, over words of its vocabulary: how often one guess names the
//! word, and how often a word comes back unchanged.

use super::check_law;
use crate::mechanism::Mechanism;
use crate::support::error::Result;
use crate::support::parallel::Control;

/// Number of words measured: up to `SAMPLE`, at least `MIN_WORDS`, and as many as keep the number of
/// probabilities below `PROBABILITIES`.
const SAMPLE: usize = 200;
const MIN_WORDS: usize = 20;
const PROBABILITIES: usize = 20_000_000;

/// The success of one guess, and the probability of unchanged words, computed from a mechanism's
/// law.
///
/// The words are spread evenly over the vocabulary: at most 200 and at least 20. In a large
/// vocabulary there are fewer, so that at most 20 million probabilities are computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measures {
    /// Number of measured words.
    pub words: usize,
    /// Number of words in the vocabulary.
    pub vocabulary: usize,
    /// R: how often one guess of an attacker names the word. The attacker knows the mechanism, and
    /// that the word is one of those measured, each equally likely.
    pub named: f64,
    /// The mean of N_w, the probability that a word comes back unchanged.
    pub unchanged: f64,
    /// The largest N_w.
    pub most_unchanged: f64,
}

impl Measures {
    /// Measures a mechanism that has a law; `control` counts the words. The best guess for an
    /// output is its likeliest input, so R is the sum over outputs of the largest probability,
    /// divided by the number of words.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) for a mechanism without a law,
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn of(mechanism: &dyn Mechanism, control: &Control) -> Result<Self> {
        check_law(mechanism)?;
        let vocabulary = mechanism.vocabulary().len();
        let affordable = (PROBABILITIES / vocabulary.max(1)).max(MIN_WORDS);
        let words = SAMPLE.min(affordable).min(vocabulary);
        let (mut law, mut likeliest) = (vec![0.0; vocabulary], vec![0.0f64; vocabulary]);
        let (mut sum, mut most) = (0.0, 0.0f64);
        for i in 0..words {
            control.check()?;
            let id = i * (vocabulary - 1) / (words - 1).max(1);
            mechanism.law(id as u32, &mut law);
            sum += law[id];
            most = most.max(law[id]);
            for (likeliest, p) in likeliest.iter_mut().zip(&law) {
                *likeliest = likeliest.max(*p);
            }
            control.advance(1);
        }
        let count = words.max(1) as f64;
        Ok(Measures {
            words,
            vocabulary,
            named: likeliest.iter().sum::<f64>() / count,
            unchanged: sum / count,
            most_unchanged: most,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::mechanism::tem::Truncation;
    use crate::testing::from_vectors;
    use crate::{Embedding, Metric, MultivariateLaplace, Randomness, Tem};

    fn embedding(words: u32) -> Arc<Embedding> {
        let vectors = (0..words).map(|i| (i * i % 31) as f32 / 4.0).collect();
        from_vectors(vectors, 1, Metric::Euclidean)
    }

    fn tem(words: u32, epsilon: f64) -> Tem {
        let randomness = Randomness::new(None);
        Tem::new(embedding(words), epsilon, Truncation::default(), randomness).unwrap()
    }

    /// The measures of words by definition, from the matrix of their laws.
    fn by_definition(tem: &Tem, ids: &[usize]) -> (f64, f64, f64) {
        let size = tem.vocabulary().len();
        let laws: Vec<Vec<f64>> = (ids.iter())
            .map(|&id| {
                let mut law = vec![0.0; size];
                Mechanism::law(tem, id as u32, &mut law);
                law
            })
            .collect();
        let count = ids.len() as f64;
        let best = |y: usize| laws.iter().map(|law| law[y]).fold(0.0, f64::max);
        let own: Vec<f64> = ids.iter().zip(&laws).map(|(&id, law)| law[id]).collect();
        (
            (0..size).map(best).sum::<f64>() / count,
            own.iter().sum::<f64>() / count,
            own.into_iter().fold(0.0, f64::max),
        )
    }

    #[test]
    fn measures_agree_with_their_definitions() {
        for (words, epsilon) in [(1, 1.0), (30, 0.5), (30, 4.0), (601, 2.0)] {
            let tem = tem(words, epsilon);
            let control = Control::new();
            let found = Measures::of(&tem, &control).unwrap();
            let measured = (words as usize).min(SAMPLE);
            let last = (words - 1) as usize;
            let ids: Vec<usize> = (0..measured)
                .map(|i| i * last / (measured - 1).max(1))
                .collect();
            let (named, unchanged, most) = by_definition(&tem, &ids);
            assert_eq!((found.words, found.vocabulary), (measured, words as usize));
            assert_eq!(control.done(), measured as u64);
            assert!((found.named - named).abs() < 1e-12, "{found:?} {named}");
            assert!((found.unchanged - unchanged).abs() < 1e-12);
            assert_eq!(found.most_unchanged, most);
            assert!(found.unchanged <= found.named + 1e-12 && found.named <= 1.0 + 1e-9);
        }
    }

    #[test]
    fn a_mechanism_without_a_law_is_refused_and_an_interrupt_ends_it() {
        let laplace = MultivariateLaplace::new(embedding(30), 1.0, Randomness::new(None)).unwrap();
        let refused = Measures::of(&laplace, &Control::new()).unwrap_err();
        assert!(refused.to_string().contains("mechanism"), "{refused}");
        let control = Control::new();
        control.cancel();
        assert!(Measures::of(&tem(30, 1.0), &control).is_err());
    }
}
