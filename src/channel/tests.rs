//! Everything against brute force: all texts of a few words over a few words, written out.

#![allow(clippy::needless_range_loop)] // words and outputs are numbers here, as in the formulas

mod behind;

use std::collections::HashMap;
use std::sync::Arc;

use rand::{Rng, RngExt};

use super::*;
use crate::Cover;
use crate::distance::metric::Metric;
use crate::language::NgramPrior;
use crate::mechanism::Mechanism;
use crate::mechanism::finite_law::FiniteLaw;
use crate::mechanism::neighbor_response::NeighborResponse;
use crate::mechanism::remapped::Remapped;
use crate::mechanism::tem::{Tem, Truncation};
use crate::testing::assert_law;
use crate::text::{Consistent, Oov, Policy};
use crate::words::embedding::Embedding;

const LETTERS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

fn generator(seed: u64) -> impl Rng {
    Randomness::new(Some(seed)).next_key().unwrap().stream(0)
}

fn space(words: usize, rng: &mut impl Rng) -> Arc<Embedding> {
    let vectors = (0..2 * words).map(|_| rng.random::<f32>() * 3.0).collect();
    let vocabulary = Vocabulary::new(&LETTERS[..words]).unwrap();
    Arc::new(Embedding::new(vocabulary, vectors, 2, Metric::Euclidean).unwrap())
}

type Mechanisms = Vec<Arc<dyn Mechanism>>;

/// One mechanism of every kind that has a law.
fn mechanisms(space: &Arc<Embedding>, rng: &mut impl Rng) -> Mechanisms {
    let words = space.vocabulary().len();
    let randomness = || Randomness::new(Some(1));
    let cover = |k: usize| {
        let sets =
            (0..words as u32).map(|y| (0..k as u32).map(|i| (y + i) % words as u32).collect());
        Cover::from_members(&**space, sets.collect()).unwrap()
    };
    let tem = |epsilon, gamma| Tem::new(space.clone(), epsilon, gamma, randomness()).unwrap();
    let plain = tem(3.0, Truncation::default());
    let short = tem(4.0, Truncation::Gamma(0.8));
    let covered = plain.with_cover(Some(Arc::new(cover(2)))).unwrap();
    let weighted = cover(3).weighted(|id| 1.0 + f64::from(id)).unwrap();
    let weighted = plain.with_cover(Some(Arc::new(weighted))).unwrap();
    let excluding = plain.excluding(&[1]).unwrap();
    let response =
        NeighborResponse::new(space.clone(), 2.0, Arc::new(cover(2)), randomness()).unwrap();
    let table: Vec<f64> = (0..words * words)
        .map(|_| {
            let x: f64 = rng.random();
            if x < 0.2 { 0.0 } else { x * x }
        })
        .collect();
    let rows = move |id: u32, out: &mut [f64]| {
        out.copy_from_slice(&table[id as usize * words..][..words]);
        // Some output of every word.
        out[id as usize] += 0.1;
        Ok(())
    };
    let finite = FiniteLaw::new(space.clone(), Arc::new(rows), None, randomness()).unwrap();
    let finite: Arc<dyn Mechanism> = Arc::new(finite);
    let remapped = |inner: Arc<dyn Mechanism>| {
        let remapped = Remapped::new(inner, Arc::new(cover(2))).unwrap();
        Arc::new(remapped) as Arc<dyn Mechanism>
    };
    vec![
        Arc::new(plain.clone()),
        Arc::new(short),
        Arc::new(covered),
        Arc::new(weighted),
        Arc::new(excluding.clone()),
        Arc::new(response),
        remapped(Arc::new(plain)),
        remapped(Arc::new(excluding)),
        remapped(finite.clone()),
        finite.excluding(&[2]).unwrap(),
        finite,
    ]
}

fn law(mechanism: &dyn Mechanism, id: u32) -> Vec<f64> {
    let mut law = vec![0.0; mechanism.vocabulary().len()];
    assert!(mechanism.law(id, &mut law));
    law
}

fn channel(mechanism: &Arc<dyn Mechanism>, policy: Policy) -> Arc<Channel> {
    let text = TextPrivatizer::new(mechanism.clone(), policy).unwrap();
    Arc::new(Channel::new(text, None).unwrap())
}

#[test]
fn columns_bits_and_capacity_are_those_of_the_law_that_is_drawn() {
    let mut rng = generator(1);
    let control = Control::new();
    for words in [5, 6, 8] {
        let space = space(words, &mut rng);
        for mechanism in mechanisms(&space, &mut rng) {
            let channel = channel(&mechanism, Policy::default());
            let laws: Vec<Vec<f64>> = (0..words as u32).map(|w| law(&*mechanism, w)).collect();
            for y in 0..words {
                let column = channel.columns(&[y as u32], false, &control).unwrap();
                for (w, law) in laws.iter().enumerate() {
                    let (own, drawn) = (column[w], law[y]);
                    assert!(
                        (own - drawn).abs() <= 1e-14 * drawn,
                        "{w} {y} {own} {drawn}"
                    );
                }
            }
            let uniform = vec![1.0; words];
            let random: Vec<f64> = (0..words).map(|_| rng.random()).collect();
            for given in [None, Some(&uniform[..]), Some(&random[..])] {
                let prior = channel.prior(given).unwrap();
                let output = |y: usize| (0..words).map(|w| prior[w] * laws[w][y]).sum::<f64>();
                let mut expected = 0.0;
                for w in 0..words {
                    for y in (0..words).filter(|&y| laws[w][y] > 0.0) {
                        expected += prior[w] * laws[w][y] * (laws[w][y] / output(y)).log2();
                    }
                }
                let bits = channel.bits(given, None, &control).unwrap();
                assert!((bits.value - expected).abs() < 1e-12, "{bits:?} {expected}");
                assert_eq!(
                    (bits.low, bits.high, bits.sampled),
                    (bits.value, bits.value, 0)
                );
                let sampled = channel.bits(given, Some(3000), &control).unwrap();
                assert!(
                    sampled.low - 1e-12 <= expected && expected <= sampled.high + 1e-12,
                    "{sampled:?} {expected}"
                );
            }
            let most = |y: usize| laws.iter().fold(0.0f64, |a, law| a.max(law[y]));
            let expected = (0..words).map(most).sum::<f64>().log2();
            assert!((channel.capacity(&control).unwrap().value - expected).abs() < 1e-12);
            // Unknown words are drawn by this law.
            let unknown = channel.unknown_law();
            let mut counts = vec![0u32; words];
            let mut stream = Randomness::new(Some(9)).next_key().unwrap().stream(0);
            const DRAWS: usize = 40_000;
            for _ in 0..DRAWS {
                counts[mechanism.draw_unknown(&mut stream) as usize] += 1;
            }
            assert_law(&counts, &unknown, "unknown words");
        }
    }
}

#[test]
fn columns_do_not_depend_on_what_is_kept() {
    let mut rng = generator(2);
    let space = space(8, &mut rng);
    for mechanism in mechanisms(&space, &mut rng) {
        let text = TextPrivatizer::new(mechanism.clone(), Policy::default()).unwrap();
        let none = Channel::new(text, Some(0)).unwrap();
        let kept = channel(&mechanism, Policy::default());
        let control = Control::new();
        for y in [3, 0, 3, 7] {
            let [first, again, made] = [&kept, &kept, &none]
                .map(|channel| channel.columns(&[y], false, &control).unwrap());
            assert!(first == made && again == made);
        }
        assert!(none.columns(&[8], false, &control).is_err());
    }
}

/// Texts of random words, unknown ones among them.
fn texts(words: usize, rng: &mut impl Rng) -> Vec<String> {
    let text = |rng: &mut dyn FnMut() -> usize| {
        let word = |n: usize| if n < words { LETTERS[n] } else { "zz" };
        let sentence = |rng: &mut dyn FnMut() -> usize| {
            let count = 1 + rng() % 5;
            let words: Vec<&str> = (0..count).map(|_| word(rng() % (words + 1))).collect();
            words.join(" ")
        };
        format!("{}. {}", sentence(rng), sentence(rng))
    };
    (0..12)
        .map(|_| text(&mut || rng.random_range(0..1000)))
        .collect()
}

/// A model of random texts.
fn prior(space: &Arc<Embedding>, order: usize, rng: &mut impl Rng) -> Arc<NgramPrior> {
    let public = texts(space.vocabulary().len(), rng);
    Arc::new(NgramPrior::train(space.clone(), &public, order, None, &Control::new()).unwrap())
}

struct Case {
    mechanism: Arc<dyn Mechanism>,
    policy: Policy,
    prior: Arc<NgramPrior>,
    released: Vec<String>,
    /// Whether a sentence begins at each word.
    starts: Vec<bool>,
}

/// The laws of all words at one place, and that of an unknown word.
type Laws = (Vec<Vec<f64>>, Vec<f64>);

impl Case {
    /// A beginning of the release, up to a word.
    fn written(&self, places: usize) -> String {
        let mut written = String::new();
        for (place, word) in self.released[..places].iter().enumerate() {
            written.push_str(word);
            if let Some(start) = self.starts.get(place + 1) {
                written.push_str(if *start { ". " } else { ", " });
            }
        }
        written
    }

    /// The laws of each place.
    fn laws(&self) -> Vec<Laws> {
        let words = self.mechanism.vocabulary().len() as u32;
        let text = TextPrivatizer::new(self.mechanism.clone(), self.policy.clone()).unwrap();
        let places = 0..self.released.len();
        if let Some(tem) = self.mechanism.in_order() {
            let place = |place| behind::laws(tem, &text.history(&self.written(place)));
            return places.map(place).collect();
        }
        let laws: Vec<_> = (0..words).map(|w| law(&*self.mechanism, w)).collect();
        let unknown = Channel::new(text, None).unwrap().unknown_law();
        places.map(|_| (laws.clone(), unknown.to_vec())).collect()
    }
}

/// All texts and their probabilities with the release.
fn brute(case: &Case, laws: &[Laws]) -> Vec<(Vec<u32>, f64)> {
    let vocabulary = case.mechanism.vocabulary();
    let words = vocabulary.len();
    let places = case.released.len();
    let skipped = |word: &str| case.policy.skip.contains(word);
    let mut found = Vec::new();
    for number in 0..(words + 1).pow(places as u32) {
        let mut rest = number;
        let text: Vec<u32> = (0..places)
            .map(|_| {
                let token = rest % (words + 1);
                rest /= words + 1;
                token as u32
            })
            .collect();
        let mut p = 1.0;
        let mut start = 0;
        let mut drawn: HashMap<u32, u32> = HashMap::new();
        for place in 0..places {
            if case.starts[place] {
                start = place;
            }
            let token = text[place];
            p *= case.prior.probability(&text[start..place], token);
            let released = &case.released[place];
            let output = vocabulary.id(released);
            p *= match output {
                // It stands there as it was written.
                None => {
                    let id = vocabulary.id(&released.to_lowercase());
                    f64::from(u8::from(token == id.unwrap_or(words as u32)))
                }
                Some(y) if token as usize == words => match case.policy.oov {
                    Oov::Random => laws[place].1[y as usize],
                    _ => 0.0,
                },
                Some(y) if skipped(vocabulary.word(token)) => f64::from(u8::from(y == token)),
                Some(y) => match (case.policy.consistent, drawn.insert(token, y)) {
                    (Consistent::Never, _) | (_, None) => laws[place].0[token as usize][y as usize],
                    (_, Some(before)) => f64::from(u8::from(before == y)),
                },
            };
        }
        if p > 0.0 {
            found.push((text, p));
        }
    }
    found
}

fn check(case: &Case, seed: u64) {
    let control = Control::new();
    let channel = channel(&case.mechanism, case.policy.clone());
    let laws = case.laws();
    let written = case.written(laws.len());
    let all = brute(case, &laws);
    let sum: f64 = all.iter().map(|(_, p)| p).sum();
    let decoded = channel.decode(
        TextOrTokens::Text(written.clone()),
        &case.prior,
        None,
        &control,
    );
    if sum == 0.0 {
        assert!(decoded.unwrap_err().to_string().contains("text"));
        return;
    }
    let decoded = decoded.unwrap();
    assert!(decoded.is_exact());
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-10, "{written}: {a} {b}");
    near(decoded.log_evidence(), sum.ln());
    let words = case.mechanism.vocabulary().len();
    let (mut right, mut hidden, mut counts) = (0.0, 0.0, vec![0.0; words + 1]);
    for (place, word) in decoded.words().iter().enumerate() {
        let mut expected = vec![0.0; words + 1];
        for (text, p) in &all {
            expected[text[place] as usize] += p / sum;
        }
        let own = decoded.marginal(place, &control).unwrap();
        for (token, (a, b)) in own.iter().zip(&expected).enumerate() {
            near(*a, *b);
            counts[token] += b;
        }
        near(word.unknown, expected[words]);
        let most = expected.iter().fold(0.0f64, |a, &b| a.max(b));
        near(word.certainty, most);
        if !word.written {
            hidden += 1.0;
            right += most;
        }
    }
    if hidden > 0.0 {
        near(decoded.expected_right(), right / hidden);
    }
    let own = decoded.expected_counts(&control).unwrap();
    own.iter().zip(&counts).for_each(|(a, b)| near(*a, *b));
    let best = all.iter().fold(0.0f64, |a, (_, p)| a.max(*p));
    let likeliest = decoded.likeliest(&control).unwrap();
    let own = all.iter().find(|(text, _)| *text == likeliest);
    near(own.map_or(0.0, |(_, p)| *p) / best, 1.0);
    // Drawn texts are as frequent as they are likely.
    const DRAWS: usize = 2000;
    let shown = |text: &[u32]| {
        let mut out = String::new();
        for (place, &token) in text.iter().enumerate() {
            if place > 0 {
                out.push_str(if case.starts[place] { ". " } else { ", " });
            }
            let word = match case.mechanism.vocabulary().id(&case.released[place]) {
                None => case.released[place].as_str(),
                Some(_) if token as usize == words => UNKNOWN,
                Some(_) => case.mechanism.vocabulary().word(token),
            };
            out.push_str(word);
        }
        out
    };
    let mut law: HashMap<String, f64> = HashMap::new();
    for (text, p) in &all {
        *law.entry(shown(text)).or_default() += p / sum;
    }
    let mut seen: HashMap<String, u64> = HashMap::new();
    for text in decoded.sample(DRAWS, Some(seed), &control).unwrap() {
        let TextOrTokens::Text(text) = text else {
            panic!("a text")
        };
        *seen.entry(text).or_default() += 1;
    }
    assert!(seen.keys().all(|text| law.contains_key(text)));
    let count = |text| seen.get(text).copied().unwrap_or(0);
    let counts: Vec<u64> = law.keys().map(count).collect();
    assert_law(&counts, &law.into_values().collect::<Vec<_>>(), &written);
}

fn cases<R: Rng>((seed, mut rng): (u64, R), mechanisms: fn(&Arc<Embedding>, &mut R) -> Mechanisms) {
    for (words, places) in [(5, 4), (6, 3), (8, 3), (5, 1), (7, 2)] {
        let space = space(words, &mut rng);
        for (at, mechanism) in mechanisms(&space, &mut rng).into_iter().enumerate() {
            let prior = prior(&space, 1 + at % 3, &mut rng);
            let skip = match rng.random_range(0..3) {
                0 => [LETTERS[2].to_owned(), "yy".to_owned()].into(),
                _ => Default::default(),
            };
            let oov = [Oov::Random, Oov::Keep, Oov::Random][rng.random_range(0..3)];
            let policy = Policy {
                oov,
                skip,
                ..Policy::default()
            };
            // A text and its release.
            let written: Vec<&str> = (0..places)
                .map(|_| match rng.random_range(0..words + 2) {
                    n if n < words => LETTERS[n],
                    n if n == words => "zz",
                    // A skipped word in another case.
                    _ => "C",
                })
                .collect();
            let text = TextPrivatizer::new(mechanism.clone(), policy.clone()).unwrap();
            let released = text.privatize_tokens(&written, &Control::new()).unwrap().0;
            let starts = (0..places).map(|at| at == 0 || rng.random_range(0..4) == 0);
            let case = Case {
                mechanism,
                policy,
                prior,
                released,
                starts: starts.collect(),
            };
            check(&case, seed);
        }
    }
}

#[test]
fn posteriors_are_those_of_all_texts_written_out() {
    for seed in 10..14 {
        cases((seed, generator(seed)), mechanisms);
    }
}

/// Sentences go through the chain side by side; each has the numbers that it has alone.
#[test]
fn sentences_together_have_the_numbers_that_each_has_alone() {
    let mut rng = generator(50);
    let words = 7;
    let space = space(words, &mut rng);
    let control = Control::new();
    let priors = [1, 2, 3].map(|order| prior(&space, order, &mut rng));
    let mut mechanisms = mechanisms(&space, &mut rng);
    mechanisms.extend(behind::mechanisms(&space, &mut rng));
    for mechanism in mechanisms {
        let text = TextPrivatizer::new(mechanism.clone(), Policy::default()).unwrap();
        let sentences: Vec<String> = (0..21)
            .map(|i| {
                let length = [1, 2, 3, 40, 90][i % 5];
                let words: Vec<&str> = (0..length)
                    .map(|_| LETTERS[rng.random_range(0..words)])
                    .collect();
                text.privatize(&words.join(" ")).unwrap()
            })
            .collect();
        let channel = channel(&mechanism, Policy::default());
        for prior in &priors {
            let decode = |text: String| {
                let posterior = channel.decode(TextOrTokens::Text(text), prior, None, &control);
                posterior.unwrap()
            };
            let together = decode(sentences.join("\n\n"));
            let some = [1, 4, 5];
            let text = TextOrTokens::Text(sentences.join("\n\n"));
            let named = channel.decode(text, prior, Some(&some), &control).unwrap();
            for (i, word) in named.words().iter().enumerate() {
                let marginal = together.marginal(i, &control).unwrap();
                let most = some
                    .iter()
                    .map(|&id| marginal[id as usize])
                    .fold(0.0, f64::max);
                assert_eq!(word.certainty, most);
                assert!(most == 0.0 || marginal[word.best as usize] == most);
                assert!(most == 0.0 || some.contains(&word.best));
            }
            let counts = together.expected_counts(&control).unwrap();
            let (mut place, mut log, mut sums) = (0, 0.0, vec![0.0; words + 1]);
            for sentence in &sentences {
                let alone = decode(sentence.clone());
                for (i, word) in alone.words().iter().enumerate() {
                    assert_eq!(together.words()[place + i], *word);
                    assert_eq!(
                        together.marginal(place + i, &control).unwrap(),
                        alone.marginal(i, &control).unwrap()
                    );
                }
                place += alone.words().len();
                log += alone.log_evidence();
                let each = alone.expected_counts(&control).unwrap();
                sums.iter_mut().zip(each).for_each(|(sum, p)| *sum += p);
            }
            assert_eq!(together.words().len(), place);
            assert!((together.log_evidence() - log).abs() < 1e-9 * log.abs());
            for (sum, count) in sums.iter().zip(counts) {
                assert!((sum - count).abs() < 1e-9 * place as f64);
            }
        }
    }
}

/// Sums over all pairs of words, for texts too long to write out: α(u,v) and β(u,v) as tables.
#[test]
fn long_sentences_are_those_of_tables_over_all_pairs_of_words() {
    let mut rng = generator(40);
    let words = 5;
    let space = space(words, &mut rng);
    let mechanism = mechanisms(&space, &mut rng).remove(0);
    let control = Control::new();
    let channel = channel(&mechanism, Policy::default());
    let laws: Vec<Vec<f64>> = (0..words as u32).map(|w| law(&*mechanism, w)).collect();
    let unknown = channel.unknown_law();
    // More than the memory of a test holds, so that states are computed twice.
    let released: Vec<u32> = (0..301)
        .map(|_| rng.random_range(0..words as u32))
        .collect();
    let tokens = words + 1;
    let likelihood = |place: usize, token: usize| match token < words {
        true => laws[token][released[place] as usize],
        false => unknown[released[place] as usize],
    };
    let pairs = |value: f64| vec![vec![value; tokens]; tokens];
    for order in 1..=3 {
        let prior = prior(&space, order, &mut rng);
        // Pr[w | the words u, v at i-2, i-1].
        let step = |i: usize, u: usize, v: usize, w: usize| {
            let history = [9, u as u32, v as u32];
            prior.probability(&history[3 - i.min(3)..], w as u32)
        };
        let n = released.len();
        let (mut alphas, mut log) = (Vec::<Vec<Vec<f64>>>::new(), 0.0);
        for i in 0..n {
            let mut alpha = pairs(0.0);
            for v in 0..tokens {
                for w in 0..tokens {
                    let before: f64 = match alphas.last() {
                        None => f64::from(u8::from(v == 0)) * step(0, 0, 0, w),
                        Some(a) => (0..tokens).map(|u| a[u][v] * step(i, u, v, w)).sum(),
                    };
                    alpha[v][w] = before * likelihood(i, w);
                }
            }
            let sum: f64 = alpha.iter().flatten().sum();
            log += sum.ln();
            alpha.iter_mut().flatten().for_each(|a| *a /= sum);
            alphas.push(alpha);
        }
        let given = released.iter().map(|&y| LETTERS[y as usize].to_owned());
        let given = TextOrTokens::Tokens(given.collect());
        let decoded = channel.decode(given, &prior, None, &control).unwrap();
        assert!((decoded.log_evidence() - log).abs() < 1e-9, "{order}");
        let mut beta = pairs(1.0);
        for i in (0..n).rev() {
            let of = |w: usize| (0..tokens).map(|v| alphas[i][v][w] * beta[v][w]).sum();
            let expected: Vec<f64> = (0..tokens).map(of).collect();
            let sum: f64 = expected.iter().sum();
            let own = decoded.marginal(i, &control).unwrap();
            for (a, b) in own.iter().zip(expected) {
                assert!((a - b / sum).abs() < 1e-11, "{order} {i}: {a} {b}");
            }
            let mut before = pairs(0.0);
            for u in 0..tokens {
                for v in 0..tokens {
                    let next = |w: usize| step(i, u, v, w) * likelihood(i, w) * beta[v][w];
                    before[u][v] = (0..tokens).map(next).sum();
                }
            }
            let most = before.iter().flatten().fold(0.0f64, |a, &b| a.max(b));
            before.iter_mut().flatten().for_each(|b| *b /= most);
            beta = before;
        }
        let counts = decoded.expected_counts(&control).unwrap();
        assert!((counts.iter().sum::<f64>() - n as f64).abs() < 1e-9);
        // Drawn texts have each word as often as it is likely.
        let draws = 400;
        let mut seen = vec![0.0; tokens];
        for text in decoded.sample(draws, Some(1), &control).unwrap() {
            let TextOrTokens::Tokens(text) = text else {
                panic!("tokens")
            };
            for word in text {
                let token = LETTERS[..words].iter().position(|l| *l == word);
                seen[token.unwrap_or(words)] += 1.0 / draws as f64;
            }
        }
        for (a, b) in seen.iter().zip(&counts) {
            // Far beyond six standard errors of sums over 301 words.
            assert!(
                (a - b).abs() < 6.0 * (3.0 * b / draws as f64).sqrt() + 0.2,
                "{a} {b}"
            );
        }
        // No text that was drawn, nor the words that are likeliest one by one, is likelier.
        let score = |text: &[u32]| -> f64 {
            let each = text
                .iter()
                .enumerate()
                .map(|(i, &w)| (prior.probability(&text[..i], w) * likelihood(i, w as usize)).ln());
            each.sum()
        };
        let best = score(&decoded.likeliest(&control).unwrap());
        let singly: Vec<u32> = decoded.words().iter().map(|word| word.best).collect();
        assert!(best >= score(&singly) - 1e-9);
    }
}

/// Consistent texts are approximate, and say so; the approximation is near what is exact.
#[test]
fn messages_between_places_come_near_to_all_texts_written_out() {
    let mut rng = generator(60);
    let control = Control::new();
    let (mut apart, mut without) = (0.0, 0.0);
    for round in 0..12 {
        let space = space(6, &mut rng);
        let mechanism = match round % 6 {
            i @ (4 | 5) => behind::mechanisms(&space, &mut rng).remove(i),
            i => mechanisms(&space, &mut rng).remove(i),
        };
        let prior = prior(&space, 2, &mut rng);
        let policy = Policy {
            consistent: Consistent::Text,
            ..Policy::default()
        };
        let text = TextPrivatizer::new(mechanism.clone(), policy.clone()).unwrap();
        let written = ["a", "b", "a", "c", "b"];
        let released = text.privatize_tokens(&written, &control).unwrap().0;
        let given = || TextOrTokens::Tokens(released.clone());
        let near = channel(&mechanism, policy.clone());
        let near = near.decode(given(), &prior, None, &control).unwrap();
        assert!(!near.is_exact() && near.log_evidence().is_nan());
        let case = Case {
            mechanism: mechanism.clone(),
            policy,
            prior: prior.clone(),
            released: released.clone(),
            starts: vec![true, false, false, false, false],
        };
        let all = brute(&case, &case.laws());
        let sum: f64 = all.iter().map(|(_, p)| p).sum();
        let single = channel(&mechanism, Policy::default());
        let single = single.decode(given(), &prior, None, &control).unwrap();
        for place in 0..written.len() {
            let [near, single] = [&near, &single].map(|p| p.marginal(place, &control).unwrap());
            let mut exact = vec![0.0; near.len()];
            all.iter()
                .for_each(|(text, p)| exact[text[place] as usize] += p / sum);
            let distance = |a: &[f64]| -> f64 {
                let each = a.iter().zip(&exact).map(|(a, b)| (a - b).abs() / 2.0);
                each.sum()
            };
            assert!((near.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            apart += distance(&near) / 60.0;
            without += distance(&single) / 60.0;
        }
    }
    // Total variation from the exact posterior, with messages and as if all were drawn by themselves.
    assert!(apart < 0.7 * without && apart < 0.1, "{apart} {without}");
}
