//! Who wrote a text: "authorship attribution in the wild" (Koppel, Schler and Argamon 2011), the
//! attack that POST'19 measures its mechanism against.
//!
//! Texts are counts of character 4-grams without spaces; an author is all known texts together.
//! In each of many rounds a random part of the features is kept, and the author whose counts
//! have the largest cosine with the text's wins the round. The author of most rounds is the
//! answer, if the share of rounds won reaches a threshold; else the answer is "don't know".

use std::collections::HashMap;

use rand::RngExt;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::parallel::{Control, install};
use crate::random::Randomness;

/// Length of a gram.
const GRAM: usize = 4;

/// How the attack is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttributionParameters {
    /// The most frequent grams of the known texts, at most so many, are the features.
    pub features: usize,
    /// Rounds.
    pub rounds: usize,
    /// Probability that a feature is kept in a round.
    pub fraction: f64,
    /// Of the random parts: one seed, one attack. The attack protects nobody.
    pub seed: u64,
}

impl Default for AttributionParameters {
    fn default() -> Self {
        AttributionParameters {
            features: 20_000,
            rounds: 100,
            fraction: 0.4,
            seed: 0,
        }
    }
}

/// Known texts of some authors, ready to attribute others.
#[derive(Clone, Debug)]
pub struct Attribution {
    authors: usize,
    features: HashMap<u128, u32>,
    /// For every feature the weight each author gives it.
    weights: Vec<f32>,
    /// For every round and author the norm of the author's kept weights.
    norms: Vec<f32>,
    /// For every round which features are kept, a bit each.
    kept: Vec<Vec<u64>>,
}

/// The grams of a text: every four neighbouring characters of a word, and shorter words whole.
fn grams(text: &str, mut each: impl FnMut(u128)) {
    for word in text.split_whitespace() {
        // A character has 21 bits; a shorter gram differs by its leading zeros.
        let (mut gram, mut length) = (0u128, 0);
        for c in word.chars() {
            gram = (gram << 21 | u128::from(u32::from(c))) & ((1 << (21 * GRAM)) - 1);
            length += 1;
            if length >= GRAM {
                each(gram);
            }
        }
        if length < GRAM {
            each(gram);
        }
    }
}

/// What a gram that was counted so often weighs: repetition counts less and less.
fn weight(count: f32) -> f32 {
    count.ln_1p()
}

impl Attribution {
    /// Learns from `texts` by `authors`, numbers below `count`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for no text, a parameter outside its range, or not one author a text.
    pub fn new(
        texts: &[&str],
        authors: &[u32],
        count: usize,
        parameters: AttributionParameters,
    ) -> Result<Self> {
        let AttributionParameters {
            features: most,
            rounds,
            fraction,
            seed,
        } = parameters;
        if texts.is_empty() || texts.len() != authors.len() {
            let expected = format!("one for each of {} texts, at least one", texts.len());
            return Err(Error::parameter("authors", expected, authors.len()));
        }
        if !(1..=1 << 22).contains(&most) {
            return Err(Error::parameter("features", "from 1 to 4194304", most));
        }
        if !(1..=100_000).contains(&rounds) {
            return Err(Error::parameter("rounds", "from 1 to 100000", rounds));
        }
        if !(fraction > 0.0 && fraction <= 1.0) {
            return Err(Error::parameter("fraction", "above 0, at most 1", fraction));
        }
        if let Some(&author) = authors.iter().find(|&&a| a as usize >= count) {
            return Err(Error::parameter(
                "authors",
                format!("below {count}"),
                author,
            ));
        }
        let mut totals: HashMap<u128, u64> = HashMap::new();
        for text in texts {
            grams(text, |gram| *totals.entry(gram).or_default() += 1);
        }
        let mut order: Vec<(u128, u64)> = totals.into_iter().collect();
        order.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        order.truncate(most);
        let features: HashMap<u128, u32> = order.iter().map(|f| f.0).zip(0..).collect();
        let mut weights = vec![0.0f32; features.len() * count];
        for (text, &author) in texts.iter().zip(authors) {
            grams(text, |gram| {
                if let Some(&feature) = features.get(&gram) {
                    weights[feature as usize * count + author as usize] += 1.0;
                }
            });
        }
        weights.iter_mut().for_each(|w| *w = weight(*w));
        let key = Randomness::new(Some(seed)).next_key()?;
        let kept: Vec<Vec<u64>> = (0..rounds as u64)
            .map(|round| {
                let mut rng = key.stream(round);
                let mut bits = vec![0u64; features.len().div_ceil(64)];
                for feature in 0..features.len() {
                    if rng.random_bool(fraction) {
                        bits[feature / 64] |= 1 << (feature % 64);
                    }
                }
                bits
            })
            .collect();
        let norms = install(rounds, 0, || {
            kept.par_iter()
                .flat_map_iter(|kept| {
                    let mut squares = vec![0.0f32; count];
                    for (feature, weights) in weights.chunks_exact(count).enumerate() {
                        if kept[feature / 64] >> (feature % 64) & 1 == 1 {
                            let each = squares.iter_mut().zip(weights);
                            each.for_each(|(s, w)| *s += w * w);
                        }
                    }
                    squares.into_iter().map(f32::sqrt)
                })
                .collect()
        })?;
        Ok(Attribution {
            authors: count,
            features,
            weights,
            norms,
            kept,
        })
    }

    /// For every text the likeliest author and the share of rounds won; `control` counts texts.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn attribute(&self, texts: &[&str], control: &Control) -> Result<Vec<(u32, f64)>> {
        install(texts.len(), 0, || {
            texts
                .par_iter()
                .map(|text| {
                    control.check()?;
                    let found = self.one(text);
                    control.advance(1);
                    Ok(found)
                })
                .collect()
        })?
    }

    fn one(&self, text: &str) -> (u32, f64) {
        let mut counts: HashMap<u32, f32> = HashMap::new();
        grams(text, |gram| {
            if let Some(&feature) = self.features.get(&gram) {
                *counts.entry(feature).or_default() += 1.0;
            }
        });
        let mut counts: Vec<(u32, f32)> = counts.into_iter().collect();
        counts.sort_unstable_by_key(|c| c.0);
        let mut won = vec![0u32; self.authors];
        let mut products = vec![0.0f32; self.authors];
        for (kept, norms) in self.kept.iter().zip(self.norms.chunks_exact(self.authors)) {
            products.fill(0.0);
            for &(feature, count) in &counts {
                let feature = feature as usize;
                if kept[feature / 64] >> (feature % 64) & 1 == 0 {
                    continue;
                }
                let weights = &self.weights[feature * self.authors..][..self.authors];
                let (count, each) = (weight(count), products.iter_mut().zip(weights));
                each.for_each(|(product, weight)| *product += count * weight);
            }
            // The text's own norm is the same for all authors.
            let cosine = |author: usize| match norms[author] {
                0.0 => 0.0,
                norm => products[author] / norm,
            };
            let best =
                (0..self.authors).max_by(|&a, &b| cosine(a).total_cmp(&cosine(b)).then(b.cmp(&a)));
            won[best.unwrap_or(0)] += 1;
        }
        let best = (0..self.authors).max_by_key(|&a| (won[a], std::cmp::Reverse(a)));
        let best = best.unwrap_or(0);
        (best as u32, f64::from(won[best]) / self.kept.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grams_stay_within_words() {
        let of = |text: &str| {
            let mut found = Vec::new();
            grams(text, |gram| {
                let chars = (0..4).rev().map(|i| (gram >> (21 * i)) as u32 & 0x1f_ffff);
                let chars = chars.filter(|&c| c > 0).filter_map(char::from_u32);
                found.push(chars.collect::<String>());
            });
            found
        };
        assert_eq!(of("the  quick é\n"), ["the", "quic", "uick", "é"]);
        assert!(of(" \t").is_empty());
    }

    #[test]
    fn authors_are_told_apart_and_parameters_checked() {
        let texts = [
            "alpha alphabet alphas",
            "omega omegas mega",
            "alphanumeric",
            "megalith",
        ];
        let attribution =
            Attribution::new(&texts, &[0, 1, 0, 1], 2, AttributionParameters::default());
        let attribution = attribution.unwrap();
        let found = attribution
            .attribute(&["alphabetical", "omega", ""], &Control::new())
            .unwrap();
        assert_eq!((found[0].0, found[1].0), (0, 1));
        assert!(found[0].1 > 0.6 && found[1].1 > 0.6);
        let again = attribution
            .attribute(&["alphabetical", "omega", ""], &Control::new())
            .unwrap();
        assert_eq!(found, again);
        let wrong = |parameters| Attribution::new(&texts, &[0, 1, 0, 1], 2, parameters).is_err();
        let fine = AttributionParameters::default();
        assert!(wrong(AttributionParameters {
            features: 0,
            ..fine
        }));
        assert!(wrong(AttributionParameters { rounds: 0, ..fine }));
        assert!(wrong(AttributionParameters {
            fraction: f64::NAN,
            ..fine
        }));
        assert!(Attribution::new(&texts, &[0, 1, 0, 2], 2, fine).is_err());
        assert!(Attribution::new(&texts, &[0, 1], 2, fine).is_err());
        assert!(Attribution::new(&[], &[], 0, fine).is_err());
    }
}
