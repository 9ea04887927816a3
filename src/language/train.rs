//! Counting n-grams: keys of packed tokens, sorted.

use std::sync::Arc;

use super::{NgramPrior, Rows, Triples, base, sentences};
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, install, map_all};
use crate::words::space::MetricSpace;

/// Bits of a token in a key of three.
const BITS: u32 = 21;
/// Texts that are read at a time.
const TEXTS_PER_BATCH: usize = 1 << 12;

/// Distinct keys, ascending, with their counts.
fn counted(mut keys: Vec<u64>) -> Vec<(u64, u32)> {
    keys.sort_unstable();
    let same = keys.chunk_by(|a, b| a == b);
    same.map(|same| (same[0], same.len() as u32)).collect()
}

/// Kneser and Ney's discount, n₁/(n₁ + 2n₂).
fn discount(times: impl Iterator<Item = u32> + Clone) -> f64 {
    let of = |n: u32| times.clone().filter(|&times| times == n).count() as f64;
    let (once, twice) = (of(1), of(2));
    match once + 2.0 * twice {
        0.0 => 0.5,
        all => (once / all).clamp(0.05, 0.95),
    }
}

const MASK: u64 = (1 << BITS) - 1;

/// The tokens of a key, the last one last.
fn unpack(key: u64) -> [u32; 3] {
    [key >> (2 * BITS), key >> BITS & MASK, key & MASK].map(|token| token as u32)
}

/// The discounted rows of contexts: `counts` ascending by context and token.
fn rows(contexts: usize, counts: impl Iterator<Item = (usize, u32, u32)>, discount: f64) -> Rows {
    let (mut starts, mut words, mut times) = (vec![0u32; contexts + 1], Vec::new(), Vec::new());
    for (context, token, n) in counts {
        starts[context + 1] += 1;
        words.push(token);
        times.push(n);
    }
    for context in 0..contexts {
        starts[context + 1] += starts[context];
    }
    let mut weights = Vec::with_capacity(times.len());
    for row in starts.windows(2) {
        let times = &times[row[0] as usize..row[1] as usize];
        let sum: f64 = times.iter().map(|&n| f64::from(n)).sum();
        let share = |&n: &u32| ((f64::from(n) - discount) / sum) as f32;
        weights.extend(times.iter().map(share));
    }
    Rows::new(starts, words, weights)
}

impl NgramPrior {
    /// Counts the n-grams of public texts. Words are found and looked up like a mechanism on this
    /// space does. `frequencies` (by default Zipf's law in the vocabulary's order) are the base for
    /// unseen words. `control` counts texts.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an order outside 1 to 3 or invalid frequencies; [`Error::TooLarge`]
    /// for more than two million words; [`Error::Interrupted`].
    pub fn train<S: AsRef<str> + Sync>(
        space: Arc<dyn MetricSpace>,
        texts: &[S],
        order: usize,
        frequencies: Option<&[f64]>,
        control: &Control,
    ) -> Result<Self> {
        if !(1..=Self::MAX_ORDER).contains(&order) {
            return Err(Error::parameter("order", "1, 2 or 3", order));
        }
        let words = space.vocabulary().len();
        if words + 2 > 1 << BITS {
            return Err(Error::TooLarge {
                what: "a model of this many words".into(),
                needed: words as u64,
                limit: (1 << BITS) - 2,
            });
        }
        base(words, frequencies, 0.0)?;
        let (unknown, start) = (words as u32, words as u64 + 1);
        let mut singles = vec![0u32; words + 1];
        let (mut two, mut three) = (Vec::new(), Vec::new());
        for texts in texts.chunks(TEXTS_PER_BATCH) {
            control.check()?;
            let size = texts.iter().map(|t| t.as_ref().len()).sum();
            let found = install(size, 1 << 14, || {
                map_all(texts, |text| {
                    Ok(sentences(space.vocabulary(), text.as_ref()))
                })
            })??;
            for sentence in found.iter().flatten() {
                let (mut first, mut last) = (None, start);
                for &token in sentence {
                    singles[token as usize] = singles[token as usize].saturating_add(1);
                    let token = u64::from(token);
                    if order > 1 {
                        two.push(last << BITS | token);
                    }
                    if let (Some(first), 3) = (first, order) {
                        three.push((first << BITS | last) << BITS | token);
                    }
                    (first, last) = (Some(last), token);
                }
            }
            control.advance(texts.len());
        }
        let tokens: f64 = singles.iter().map(|&n| f64::from(n)).sum();
        let share = (f64::from(singles[unknown as usize]) + 0.5) / (tokens + 1.0);
        let base = base(words, frequencies, if tokens > 0.0 { share } else { 0.0 })?;
        let own = filled(&singles, &base);
        let mut prior = NgramPrior {
            space,
            order,
            frequencies: own.clone(),
            unigram: own,
            pairs: Rows::empty(words + 2),
            triples: Triples::default(),
        };
        if order == 1 {
            return Ok(prior);
        }
        let times = |counts: &[(u64, u32)]| -> f64 { discount(counts.iter().map(|count| count.1)) };
        let pairs = counted(two);
        let mut before = vec![0u32; words + 1];
        for (key, _) in &pairs {
            before[(key & MASK) as usize] += 1;
        }
        prior.unigram = filled(&before, &base);
        let context = |&(key, n): &(u64, u32)| {
            let [_, last, token] = unpack(key);
            (last as usize, token, n)
        };
        if order == 2 {
            prior.pairs = rows(words + 2, pairs.iter().map(context), times(&pairs));
            return Ok(prior);
        }
        let triples = counted(three);
        // The number of different words before each pair. No word stands before a sentence's first
        // word, so those pairs are counted as often as they occur.
        let below = (triples.iter()).map(|(key, _)| key & ((1 << (2 * BITS)) - 1));
        let mut below = counted(below.collect());
        let seen = times(&below);
        // Start is the largest token, so the order is kept.
        let firsts = pairs.iter().filter(|(key, _)| key >> BITS == start);
        below.extend(firsts);
        prior.pairs = rows(words + 2, below.iter().map(context), seen);
        let mut contexts: Vec<u64> = triples.iter().map(|(key, _)| key >> BITS).collect();
        contexts.dedup();
        let mut at = 0;
        let counts = triples.iter().map(|&(key, n)| {
            while contexts[at] != key >> BITS {
                at += 1;
            }
            (at, (key & MASK) as u32, n)
        });
        let rows = rows(contexts.len(), counts, times(&triples));
        let mut found = Triples {
            first: contexts.iter().map(|key| (key >> BITS) as u32).collect(),
            last: contexts.iter().map(|key| (key & MASK) as u32).collect(),
            rows,
            ..Triples::default()
        };
        found.link(|u, v| prior.probability_behind(u, v));
        prior.triples = found;
        Ok(prior)
    }
}

/// The discounted shares of tokens, completed by a base.
fn filled(times: &[u32], base: &[f64]) -> Vec<f64> {
    let sum: f64 = times.iter().map(|&n| f64::from(n)).sum();
    if sum == 0.0 {
        return base.to_vec();
    }
    let discount = discount(times.iter().copied());
    let shares = times
        .iter()
        .map(|&n| (f64::from(n) - discount).max(0.0) / sum);
    let shares: Vec<f64> = shares.collect();
    let rest = 1.0 - shares.iter().sum::<f64>();
    shares.iter().zip(base).map(|(p, b)| p + rest * b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::line;

    const TEXTS: [&str; 4] = [
        "a b c. a b d!",
        "a b c; x a c d",
        "d a b c a b c d. c c",
        "b",
    ];

    fn trained(order: usize) -> NgramPrior {
        let space = line(&["a", "b", "c", "d", "e"]);
        NgramPrior::train(space, &TEXTS, order, None, &Control::new()).unwrap()
    }

    #[test]
    fn every_history_has_a_distribution_that_sums_to_one() {
        for order in 1..=3 {
            let prior = trained(order);
            let mut all = Vec::new();
            for u in 0..=5u32 {
                for v in 0..=5u32 {
                    for history in [&[][..], &[v], &[u, v], &[3, u, v]] {
                        prior.fill_next(history, &mut all);
                        let sum: f64 = all.iter().sum();
                        assert!((sum - 1.0).abs() < 1e-12, "{order} {history:?} {sum}");
                        for token in 0..=5 {
                            let p = prior.probability(history, token);
                            assert!(p > 0.0 && (p - all[token as usize]).abs() < 1e-15);
                        }
                    }
                }
            }
            let sum: f64 = prior.next(&["a", "nobody", "B"]).iter().sum();
            assert!((sum - 1.0).abs() < 1e-12);
            assert!((prior.frequencies().iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn probabilities_are_those_of_the_formula() {
        let prior = trained(3);
        // After "a b": c four times, d once.
        let (a, b, c, d) = (0, 1, 2, 3);
        let row = prior.triples.find(a, b).unwrap();
        let seen: Vec<_> = prior.triples.rows.row(row).map(|(w, _)| w).collect();
        assert_eq!(seen, [c as usize, d as usize]);
        let rest = prior.triples.rows.rest[row];
        // Two words seen in five places, one discount each.
        let discount = rest * 5.0 / 2.0;
        let weights: Vec<f64> = prior.triples.rows.row(row).map(|(_, p)| p).collect();
        assert!((weights[0] - (4.0 - discount) / 5.0).abs() < 1e-7);
        assert!((weights[1] - (1.0 - discount) / 5.0).abs() < 1e-7);
        let expected = weights[0] + rest * prior.probability_behind(b, c);
        assert!((prior.probability(&[a, b], c) - expected).abs() < 1e-15);
        // Only "a" stands before "b c", so the pair counts once.
        let before_c: Vec<_> = prior.pairs.row(b as usize).collect();
        assert_eq!(before_c.len(), 2);
        assert!((before_c[0].1 - before_c[1].1).abs() < 1e-7);
        // "x" is unknown and a history like any word.
        assert!(prior.probability(&[5], a) > prior.probability(&[5], b));
        // A sentence begins with "a" more often than with anything else.
        let first = prior.next::<&str>(&[]);
        assert!(first[0] > first[1..].iter().fold(0.0, |x: f64, &y| x.max(y)));
    }

    #[test]
    fn longer_histories_predict_what_they_saw_better() {
        let [one, two, three] = [1, 2, 3].map(|order| trained(order).perplexity(&TEXTS));
        assert!(
            one > two && two > three && three > 1.0,
            "{one} {two} {three}"
        );
        assert!(trained(2).perplexity(&["nobody"]).is_nan());
    }

    #[test]
    fn without_texts_it_is_zipf() {
        let none: [&str; 0] = [];
        let space = line(&["a", "b", "c"]);
        for order in 1..=3 {
            let prior = NgramPrior::train(space.clone(), &none, order, None, &Control::new());
            let next = prior.unwrap().next(&["a"]);
            let zipf = [1.0 / 3.7, 1.0 / 4.7, 1.0 / 5.7];
            let sum: f64 = zipf.iter().sum();
            for (p, z) in next.iter().zip(zipf) {
                assert!((p - z / sum).abs() < 1e-15);
            }
        }
        let wrong = NgramPrior::train(space, &none, 4, None, &Control::new());
        assert!(wrong.unwrap_err().to_string().contains("order"));
    }
}
