//! Measures how often common words come back unchanged: the first number to know about a policy.
//!
//! A bound per unit of distance does not show it: on the built-in words, a Tem at ε = 6 releases
//! most names unchanged. So every display of a mechanism shows this number beside the bound.

use super::each_word;
pub use crate::guarantee::Unchanged;
use crate::mechanism::Mechanism;
use crate::support::error::Result;
use crate::support::parallel::Control;
use crate::support::random::Randomness;

/// Number of common words: the first of the vocabulary, which is in order of frequency.
const WORDS: usize = 1000;
/// Draws per word.
const DRAWS: usize = 32;
/// Words that are examined closely to find the worst one.
const WORST: usize = 8;
/// Up to this many probabilities are computed instead of drawn.
const COMPUTED: usize = 1 << 22;
/// Maximum number of distances for the first draw of every word, for a mechanism with a law.
const LAW_DISTANCES: usize = 40_000_000;
/// Maximum number of distances for all draws of a noise mechanism.
const NOISE_DISTANCES: usize = 1_000_000_000;

/// Measures how often common words come back unchanged.
///
/// Common words are the first 1,000 of the vocabulary, or some of them if distances are expensive.
/// In small vocabularies the law is summed. Otherwise words are drawn with a fixed key, so that the
/// same mechanism gives the same number. (No text is involved, so the key may be known.) That of the
/// recommended policy is [kept](Mechanism::known_unchanged).
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted).
pub fn unchanged(mechanism: &dyn Mechanism, control: &Control) -> Result<Unchanged> {
    if let Some(known) = mechanism.known_unchanged() {
        return Ok(known);
    }
    let count = mechanism.vocabulary().len();
    let (common, has_law) = (count.min(WORDS), mechanism.has_law());
    if has_law && common * count <= COMPUTED {
        let ids: Vec<u32> = (0..common as u32).collect();
        let each = probabilities(mechanism, &ids, control)?;
        return Ok(Unchanged {
            mean: each.iter().sum::<f64>() / common as f64,
            worst: each.into_iter().fold(0.0, f64::max),
            words: common,
            draws: 0,
        });
    }
    let words = common.min((LAW_DISTANCES / count).max(WORDS / 10));
    let draws = match has_law {
        true => DRAWS,
        false => (NOISE_DISTANCES / count / words).clamp(10, DRAWS),
    };
    let ids: Vec<u32> = (0..words).map(|i| (i * common / words) as u32).collect();
    let counts = drawn_unchanged(mechanism, &ids, draws, control)?;
    let mean = counts.iter().sum::<usize>() as f64 / (words * draws) as f64;
    let mut order: Vec<usize> = (0..words).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(counts[i]));
    let closely: Vec<u32> = order.iter().take(WORST).map(|&i| ids[i]).collect();
    let worst = probabilities(mechanism, &closely, control)?
        .into_iter()
        .fold(0.0, f64::max);
    Ok(Unchanged {
        mean,
        worst,
        words,
        draws,
    })
}

/// Whether more than [`Unchanged::REFUSED_MEAN`] of common words come back unchanged. A few draws
/// find the usual case, that far fewer do, in a millisecond.
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted).
pub fn leaves_most(mechanism: &dyn Mechanism, control: &Control) -> Result<bool> {
    /// Each of these words is drawn once. Where half come back on average, less than a quarter of
    /// them do in one of 10⁵ cases.
    const FEW: usize = 64;
    let common = mechanism.vocabulary().len().min(WORDS);
    let words = common.min(FEW);
    let ids: Vec<u32> = (0..words).map(|i| (i * common / words) as u32).collect();
    let counts = drawn_unchanged(mechanism, &ids, FEW / words, control)?;
    if 4 * counts.iter().sum::<usize>() < words * (FEW / words) {
        return Ok(false);
    }
    Ok(unchanged(mechanism, control)?.mean > Unchanged::REFUSED_MEAN)
}

/// Counts the words of `ids` that come back unchanged with a probability above [`Unchanged::RELEASED_WORD`].
/// Of more than 4,000 words, only the first are examined.
///
/// # Errors
/// [`Error::WordId`](crate::Error::WordId), [`Error::Interrupted`](crate::Error::Interrupted).
pub fn nearly_always_unchanged(
    mechanism: &dyn Mechanism,
    ids: &[u32],
    control: &Control,
) -> Result<usize> {
    mechanism.vocabulary().check_ids(ids)?;
    let ids = &ids[..ids.len().min(4 * WORDS)];
    let counts = drawn_unchanged(mechanism, ids, DRAWS, control)?;
    // A word with probability 0.9 comes back less often than this in one of 10⁵ cases.
    let often = ids.iter().zip(counts).filter(|&(_, n)| n >= DRAWS * 5 / 8);
    let often: Vec<u32> = often.map(|(&id, _)| id).collect();
    let found = probabilities(mechanism, &often, control)?;
    Ok(found
        .iter()
        .filter(|&&p| p > Unchanged::RELEASED_WORD)
        .count())
}

/// Computes Pr\[M(w) = w\] of some words: from the law, or by many draws.
fn probabilities(mechanism: &dyn Mechanism, ids: &[u32], control: &Control) -> Result<Vec<f64>> {
    if mechanism.has_law() {
        return each_word(mechanism, ids, control, |id, scores, _, law| {
            mechanism.law_of_scores(id, scores, law);
            law[id as usize]
        });
    }
    let cost = mechanism.vocabulary().len() * ids.len().max(1);
    let draws = (NOISE_DISTANCES / cost).clamp(DRAWS, 1000);
    let counts = drawn_unchanged(mechanism, ids, draws, control)?;
    Ok(counts.iter().map(|&n| n as f64 / draws as f64).collect())
}

/// Counts how many of `draws` draws return each word itself, with a fixed key.
fn drawn_unchanged(
    mechanism: &dyn Mechanism,
    ids: &[u32],
    draws: usize,
    control: &Control,
) -> Result<Vec<usize>> {
    mechanism.check_one_law()?;
    let repeated: Vec<u32> = ids
        .iter()
        .flat_map(|&id| std::iter::repeat_n(id, draws))
        .collect();
    let mut drawn = repeated.clone();
    let key = Randomness::new(Some(0)).next_key()?;
    mechanism.draw(&repeated, &key, &mut drawn, control)?;
    let each = drawn.chunks_exact(draws.max(1)).zip(ids);
    Ok(each
        .map(|(drawn, id)| drawn.iter().filter(|&y| y == id).count())
        .collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::mechanism::tem::{Tem, Truncation};
    use crate::{Embedding, Metric, MultivariateLaplace, Vocabulary};

    fn tem(epsilon: f64) -> Tem {
        let space = Embedding::default_english().unwrap().first(2000);
        let space = Arc::new(space.unwrap());
        Tem::new(
            space,
            epsilon,
            Truncation::default(),
            Randomness::new(Some(7)),
        )
        .unwrap()
    }

    #[test]
    fn draws_agree_with_the_law() {
        for epsilon in [0.5, 3.0, 6.0] {
            let tem = tem(epsilon);
            let control = Control::new();
            let found = unchanged(&tem, &control).unwrap();
            let ids: Vec<u32> = (0..1000).collect();
            let exact = probabilities(&tem, &ids, &control).unwrap();
            let mean = exact.iter().sum::<f64>() / 1000.0;
            let deviation =
                (exact.iter().map(|p| p * (1.0 - p)).sum::<f64>() / 32.0).sqrt() / 1000.0;
            assert!(
                (found.mean - mean).abs() < 5.0 * deviation + 1e-4,
                "{found:?} {mean}"
            );
            let worst = exact.iter().copied().fold(0.0, f64::max);
            assert!(
                found.worst <= worst && found.worst > 0.9 * worst - 0.01,
                "{found:?} {worst}"
            );
            assert_eq!(found, unchanged(&tem, &control).unwrap());
            let nearly = nearly_always_unchanged(&tem, &ids, &control).unwrap();
            let above = exact
                .iter()
                .filter(|&&p| p > Unchanged::RELEASED_WORD)
                .count();
            assert_eq!(nearly, above);
        }
    }

    #[test]
    fn a_seeded_mechanism_draws_as_if_nobody_had_measured_it() {
        let ids = [5; 200];
        let (measured, other) = (tem(3.0), tem(3.0));
        unchanged(&measured, &Control::new()).unwrap();
        assert_eq!(
            measured.privatize_ids(&ids).unwrap(),
            other.privatize_ids(&ids).unwrap()
        );
    }

    #[test]
    fn noise_is_drawn_and_small_vocabularies_are_computed() {
        let words = Vocabulary::new(["a", "b"].map(String::from).to_vec()).unwrap();
        let e = Embedding::new(words, vec![0.0, 1.0], 1, Metric::Euclidean).unwrap();
        let e = Arc::new(e);
        let noise = MultivariateLaplace::new(e.clone(), 1e4, Randomness::new(None)).unwrap();
        let found = unchanged(&noise, &Control::new()).unwrap();
        assert_eq!((found.mean, found.worst, found.words), (1.0, 1.0, 2));
        assert!(found.draws > 0 && found.warning().unwrap().contains("100% of common words"));
        let tem = Tem::new(e, 2.0, Truncation::Gamma(9.0), Randomness::new(None)).unwrap();
        let found = unchanged(&tem, &Control::new()).unwrap();
        let law = 1.0 / (1.0 + (-1.0f64).exp());
        assert!((found.mean - law).abs() < 1e-9 && (found.worst - law).abs() < 1e-9);
        assert_eq!(found.draws, 0);
    }
}
