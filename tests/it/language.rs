//! Tem whose base measure is a model of language: whole texts against enumeration, and the bound over
//! all pairs of texts.

use std::collections::{BTreeMap, HashMap};
use std::panic::catch_unwind;
use std::sync::Arc;

use fastdx::language::{Expected, LanguageModel, NgramWeights};
use fastdx::law::base::BaseMeasure;
use fastdx::mechanism::contextual::{ContextualTem, InOrder, Released};
use fastdx::mechanism::tem::Truncation;
use fastdx::text::{Consistent, Oov, Policy, Replacements, TextPrivatizer};
use fastdx::words::space::MetricSpace;
use fastdx::{
    Control, Cover, Embedding, Mechanism, Metric, NgramPrior, Randomness, Result, Tem, Vocabulary,
};

use crate::common::{assert_law, beyond, counts, embedding, with};

/// Texts that make a model with seen and unseen pairs, and unknown words.
const PUBLIC: [&str; 4] = [
    "w0 w1 w2 w1 w0. w3 w1 w2 zz w2",
    "w1 w2 w0 w0 w1 w2. zz w3 w1",
    "w2 w1 w0 w1 w2 w3 w3",
    "w0 w1 w3. w0 w1 w2 w0",
];

fn prior(space: &Arc<Embedding>, order: usize) -> Arc<NgramPrior> {
    let trained = NgramPrior::train(space.clone(), &PUBLIC, order, None, &Control::new());
    Arc::new(trained.unwrap())
}

fn tem(space: &Arc<Embedding>, epsilon: f64, randomness: Randomness) -> Tem {
    Tem::new(space.clone(), epsilon, Truncation::Gamma(1.5), randomness).unwrap()
}

fn contextual(tem: &Tem, prior: &Arc<NgramPrior>) -> ContextualTem {
    ContextualTem::new(tem, Arc::new(NgramWeights::new(prior.clone()))).unwrap()
}

/// The law of a text by enumeration, in floating point, from the model and the distances alone.
struct Enumeration<'a> {
    space: &'a Embedding,
    prior: &'a NgramPrior,
    epsilon: f64,
    excluded: &'a [u32],
    policy: &'a Policy,
    law: BTreeMap<String, f64>,
}

impl Enumeration<'_> {
    fn of(mut self, text: &str) -> Self {
        let words: Vec<&str> = text.split(' ').collect();
        self.add(&words, "", &HashMap::new(), 1.0);
        self
    }

    /// The tokens of the last sentence of a release.
    fn history(&self, released: &str) -> Vec<u32> {
        let sentence = released.rsplit(['.', '!']).next().unwrap();
        let unknown = self.space.vocabulary().len() as u32;
        let id = |word: &str| self.space.vocabulary().id(word).unwrap_or(unknown);
        sentence.split_whitespace().map(id).collect()
    }

    /// The law of one word; every distance is the same for an unknown one.
    fn one(&self, id: Option<u32>, released: &str) -> Vec<f64> {
        let mut law = Vec::new();
        self.prior.fill_next(&self.history(released), &mut law);
        law.pop();
        for (p, y) in law.iter_mut().zip(0u32..) {
            let d = id.map_or(0.0, |id| self.space.distance(id, y));
            *p *= (-self.epsilon / 2.0 * d.min(1.5)).exp();
            *p *= f64::from(u8::from(!self.excluded.contains(&y)));
        }
        let sum: f64 = law.iter().sum();
        law.iter().map(|p| p / sum).collect()
    }

    fn add(&mut self, words: &[&str], released: &str, said: &HashMap<&str, u32>, p: f64) {
        let Some((&word, rest)) = words.split_first() else {
            *self.law.entry(released.into()).or_default() += p;
            return;
        };
        let bare = word.trim_end_matches(['.', '!']);
        let mark = &word[bare.len()..];
        let joined = |new: &str| match (released, new) {
            ("", new) => format!("{new}{mark}"),
            (old, "") => format!("{old}{mark}"),
            (old, new) => format!("{old} {new}{mark}"),
        };
        let id = self.space.vocabulary().id(bare);
        let kept = self.policy.skip.contains(bare);
        match (id, self.policy.oov) {
            _ if kept => self.add(rest, &joined(bare), said, p),
            (None, Oov::Keep) => self.add(rest, &joined(bare), said, p),
            (None, Oov::Mask) => self.add(rest, &joined("[MASK]"), said, p),
            (None, Oov::Drop) => self.add(rest, &joined(""), said, p),
            _ => {
                let law: Vec<(u32, f64)> = match said.get(bare) {
                    Some(&y) => vec![(y, 1.0)],
                    None => (0..).zip(self.one(id, released)).collect(),
                };
                for (y, q) in law.into_iter().filter(|(_, q)| *q > 0.0) {
                    let mut said = said.clone();
                    if self.policy.consistent != Consistent::Never {
                        said.insert(bare, y);
                    }
                    let new = self.space.vocabulary().word(y).to_owned();
                    self.add(rest, &joined(&new), &said, p * q);
                }
            }
        }
    }

    /// χ² of releases.
    fn assert(&self, released: &[String], what: &str) {
        let mut counts: BTreeMap<&String, u64> = self.law.keys().map(|text| (text, 0)).collect();
        for text in released {
            let count = counts.get_mut(text);
            *count.unwrap_or_else(|| panic!("{what}: {text:?} is impossible")) += 1;
        }
        let counts: Vec<u64> = counts.into_values().collect();
        let law: Vec<f64> = self.law.values().copied().collect();
        assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{what}");
        assert_law(&counts, &law, what);
    }
}

fn skipping(word: &str) -> Policy {
    with(|p: &mut Policy| p.skip = [word.to_owned()].into())
}

/// Known keys draw by the fast ways, a seed by the simple one.
fn sources(seed: u64) -> [Randomness; 2] {
    [Randomness::known_keys(seed), Randomness::new(Some(seed))]
}

#[test]
fn texts_are_drawn_by_the_law_of_the_whole_text() {
    const DRAWS: usize = 20_000;
    let plain = Policy::default;
    let consistent = || with::<Policy>(|p| p.consistent = Consistent::Text);
    let oov = |oov| with::<Policy>(|p| p.oov = oov);
    let cases = [
        (1, 2.0, "w0 w1 w2", &[][..], plain()),
        (2, 2.0, "w0 w1. w2", &[], plain()),
        (2, 6.0, "w3 w1 w2", &[2], plain()),
        (3, 3.0, "w0 w1 w2", &[], plain()),
        (3, 1.0, "w2 zz w0", &[0], plain()),
        (3, 3.0, "w1 w0! w1", &[], consistent()),
        (2, 3.0, "zz w0 zz", &[1], consistent()),
        (2, 3.0, "w0 zz. w2", &[], oov(Oov::Drop)),
        (3, 3.0, "w0 zz w2", &[], oov(Oov::Mask)),
        (3, 3.0, "zz w0 w2", &[], oov(Oov::Keep)),
        (3, 3.0, "w0 w1 w2", &[], skipping("w1")),
    ];
    for (case, (order, epsilon, text, excluded, policy)) in cases.into_iter().enumerate() {
        let space = embedding(3 + case % 3 + 1, 2, 1.0, Metric::Euclidean, case as u64);
        let prior = prior(&space, order);
        let law = Enumeration {
            space: &space,
            prior: &prior,
            epsilon,
            excluded,
            policy: &policy,
            law: BTreeMap::new(),
        };
        let law = law.of(text);
        for (path, source) in sources(7).into_iter().enumerate() {
            let all = contextual(&tem(&space, epsilon, source), &prior);
            let mechanism: Arc<dyn Mechanism> = match excluded {
                [] => Arc::new(all),
                _ => all.excluding(excluded).unwrap(),
            };
            let private = TextPrivatizer::new(mechanism, policy.clone()).unwrap();
            let texts = vec![text; DRAWS];
            let (released, counts) = private.privatize_texts(&texts, &Control::new()).unwrap();
            let what = format!("case {case}, path {path}");
            law.assert(&released, &what);
            // The receiver reads the history that was drawn by.
            let history = private.history(&released[0]);
            assert_eq!(history.sentence(), law.history(&released[0]), "{what}");
            assert_eq!(counts.words as usize, 3 * DRAWS);
        }
    }
}

#[test]
fn spans_have_the_clear_text_before_them_and_calls_share_replacements() {
    let space = embedding(4, 2, 1.0, Metric::Euclidean, 3);
    let prior = prior(&space, 3);
    for source in sources(11) {
        let tem = contextual(&tem(&space, 3.0, source), &prior);
        // As a whole text, in which the clear words are skipped.
        let policy = skipping("w1");
        let text = "w1 w0 w1. w1 w2";
        let law = Enumeration {
            space: &space,
            prior: &prior,
            epsilon: 3.0,
            excluded: &[],
            policy: &policy,
            law: BTreeMap::new(),
        };
        let law = law.of(text);
        let private = TextPrivatizer::new(Arc::new(tem.clone()), Policy::default()).unwrap();
        let (spans, control) = ([13..15, 3..5], Control::new());
        let one = |_| {
            let mut kept = Replacements::default();
            let drawn = private.privatize_spans(text, &spans, &mut kept, &control);
            drawn.unwrap().0
        };
        let released: Vec<String> = (0..10_000).map(one).collect();
        law.assert(&released, "spans");
        let of_call = with::<Policy>(|p| p.consistent = Consistent::Call);
        let private = TextPrivatizer::new(Arc::new(tem), of_call).unwrap();
        let drawn = private.privatize_texts(&["w0 w1", "w1 w0"], &control);
        let (texts, _) = drawn.unwrap();
        let turned: Vec<&str> = texts[1].split(' ').rev().collect();
        assert_eq!(texts[0].split(' ').collect::<Vec<_>>(), turned);
    }
}

/// Words of one form, of which one can be kept where another is drawn: a receiver cannot tell.
#[test]
fn the_receiver_has_the_history_whatever_the_case() {
    let vocabulary = Vocabulary::new(["The", "the", "a", "A"]).unwrap();
    let vectors = vec![0.0, 0.1, 0.2, 0.3];
    let space = Arc::new(Embedding::new(vocabulary, vectors, 1, Metric::Euclidean).unwrap());
    let prior = NgramPrior::train(space.clone(), &["the a the"], 2, None, &Control::new());
    let tem = contextual(
        &tem(&space, 1.0, Randomness::new(None)),
        &Arc::new(prior.unwrap()),
    );
    let key = tem.randomness().next_key().unwrap();
    let text = TextPrivatizer::new(Arc::new(tem.clone()), Policy::default()).unwrap();
    let (mut order, mut released) = (InOrder::new(&tem, key.stream(0)), String::new());
    for id in (0..4).cycle().take(40) {
        let drawn = order.draw(Some(id)).unwrap().id();
        released = format!("{released} {}", space.vocabulary().word(drawn));
        assert_eq!(
            order.released.sentence(),
            text.history(&released).sentence()
        );
    }
}

/// The probability of a release of single spaces, by the laws that a receiver computes.
fn of_text(tem: &ContextualTem, original: &[u32], released: &[u32], lie: bool) -> f64 {
    let words = tem.vocabulary();
    let text = |ids: &[u32]| {
        let each: Vec<&str> = ids.iter().map(|&id| words.word(id)).collect();
        each.join(" ")
    };
    let place = |(i, (&w, &y)): (usize, (&u32, &u32))| {
        let before = if lie { original } else { released };
        let history = Released::text(words, &text(&before[..i]));
        tem.probabilities_after(w, &history).unwrap()[y as usize]
    };
    original
        .iter()
        .zip(released)
        .enumerate()
        .map(place)
        .product()
}

fn texts(words: u32, length: u32) -> Vec<Vec<u32>> {
    let digit = |n: u32, i| n / words.pow(i) % words;
    let text = |n| (0..length).map(|i| digit(n, i)).collect();
    (0..words.pow(length)).map(text).collect()
}

/// The largest log-ratio of two texts of a length beyond ε·Σd and the slack of each word.
fn excess(tem: &ContextualTem, length: u32, lie: bool) -> f64 {
    let texts = texts(tem.vocabulary().len() as u32, length);
    let law = |x: &Vec<u32>| texts.iter().map(|y| of_text(tem, x, y, lie)).collect();
    let laws: Vec<Vec<f64>> = texts.iter().map(law).collect();
    let distance = |a: u32, b: u32| {
        let pairs = texts[a as usize].iter().zip(&texts[b as usize]);
        pairs.map(|(&a, &b)| tem.distance(a, b)).sum()
    };
    beyond(&laws, distance, tem.tem().nominal()) - fastdx::law::SLACK * f64::from(length)
}

#[test]
fn the_bound_holds_for_all_pairs_of_texts() {
    for (seed, order) in (0..).zip([1, 2, 3, 2, 3]) {
        let words = if seed < 2 { 4 } else { 3 };
        let space = embedding(words, 2, 1.0, Metric::Euclidean, 40 + seed);
        let all = tem(&space, 4.0, Randomness::new(None));
        let cover = Cover::from_members(&*space, (0..words as u32).map(|y| vec![y, 0]).collect());
        let tems = [
            all.clone(),
            all.excluding(&[1]).unwrap(),
            all.with_cover(Some(Arc::new(cover.unwrap()))).unwrap(),
        ];
        for tem in tems {
            let tem = contextual(&tem, &prior(&space, order));
            for length in 1..=3 {
                let excess = excess(&tem, length, false);
                assert!(excess <= 0.0, "{seed} {order} {length}: {excess}");
            }
        }
    }
}

#[test]
fn an_original_word_in_the_history_is_convicted() {
    // Nearly the same words, of which the model expects different ones next.
    let space = embedding(3, 2, 1e-3, Metric::Euclidean, 5);
    for order in [2, 3] {
        let tem = contextual(
            &tem(&space, 4.0, Randomness::new(None)),
            &prior(&space, order),
        );
        assert!(excess(&tem, 2, false) <= 0.0);
        let liar = excess(&tem, 2, true);
        assert!(liar > 0.1, "{liar}");
    }
}

/// A model that expects many words, whatever was said.
struct Many {
    space: Arc<Embedding>,
    base: Arc<BaseMeasure>,
    weights: Vec<u64>,
}

impl LanguageModel for Many {
    fn vocabulary(&self) -> &Vocabulary {
        self.space.vocabulary()
    }

    fn base(&self) -> &Arc<BaseMeasure> {
        &self.base
    }

    fn expected<'a>(&'a self, _: &[u32], lists: &mut Vec<Expected<'a>>) -> Result<()> {
        let even = (0..self.weights.len() as u32).step_by(2).collect();
        lists.push(Expected::new(
            even,
            self.weights.iter().step_by(2).copied().collect(),
        )?);
        let all = (0..self.weights.len() as u32).collect();
        lists.push(Expected::new(all, self.weights.clone())?);
        Ok(())
    }
}

fn many(words: usize) -> (Arc<Embedding>, Many) {
    let space = embedding(words, 2, 2.0, Metric::Euclidean, 9);
    let q: Vec<f64> = (0..words).map(|i| 1.0 / (i as f64 + 2.7)).collect();
    let base = Arc::new(BaseMeasure::new(&q).unwrap().unwrap());
    let weights = (0..words as u64)
        .map(|i| (i * i * 7919 % 1000) << 20)
        .collect();
    let model = Many {
        space: space.clone(),
        base,
        weights,
    };
    (space, model)
}

#[test]
fn long_lists_are_drawn_by_the_law() {
    const WORD: u32 = 7;
    let (space, model) = many(200);
    let expected: Vec<u64> = (0..)
        .zip(&model.weights)
        .map(|(y, w)| w * (2 - y % 2))
        .collect();
    let base = model.base.clone();
    let model: Arc<dyn LanguageModel> = Arc::new(model);
    let set = |y: u32, sets: bool| if sets { vec![y, 7 * y % 200] } else { vec![y] };
    let cases = [
        (1.0, &[][..], false),
        (4.0, &[3, 5, 6], false),
        (9.0, &[], false),
        (4.0, &[8], true),
    ];
    for (epsilon, excluded, sets) in cases {
        let cover = Cover::from_members(&*space, (0..200).map(|y| set(y, sets)).collect());
        let cover = Some(Arc::new(cover.unwrap().excluding(excluded).unwrap()));
        // The fast ways with and without memory for Z, and the simple one.
        let [fast, simple] = sources(5);
        for (source, bytes, draws) in [
            (fast.clone(), 1 << 27, 30_000),
            (fast, 0, 10_000),
            (simple, 0, 10_000),
        ] {
            let tem = Tem::new(space.clone(), epsilon, Truncation::Gamma(2.0), source).unwrap();
            let tem = tem
                .with_cache_bytes(bytes)
                .with_cover(cover.clone())
                .unwrap();
            let tem = ContextualTem::new(&tem, model.clone()).unwrap();
            let law = tem.probabilities_after(WORD, &Released::nothing(space.vocabulary()));
            let law = law.unwrap();
            // By its definition: the parts of Q and of S.
            let part = |q: &dyn Fn(usize) -> u64| -> Vec<f64> {
                let each = (0..200u32).map(|y| {
                    let to_set = set(y, sets).into_iter().map(|a| space.distance(WORD, a));
                    let f = (-epsilon / 2.0 * to_set.fold(2.0, f64::min)).exp();
                    q(y as usize) as f64 * f * f64::from(u8::from(!excluded.contains(&y)))
                });
                each.collect()
            };
            let (own, added) = (part(&|y| base.weights()[y].into()), part(&|y| expected[y]));
            let sum = |weights: &[f64]| weights.iter().sum::<f64>();
            let all = sum(&own) + sum(&added);
            for ((p, q), s) in law.iter().zip(&own).zip(&added) {
                assert!((p - (q + s) / all).abs() < 1e-9);
            }
            let drawn = tem.privatize_ids(&vec![WORD; draws]).unwrap();
            let counts = counts(&drawn, 200);
            assert_law(
                &counts,
                &law,
                &format!("{epsilon} {excluded:?} {sets} {bytes}"),
            );
            // One that chooses the part by the masses of the measures, without distances. (With a
            // small ε these matter little.)
            let masses = [
                base.weights().iter().map(|&q| u64::from(q)).sum(),
                expected.iter().sum::<u64>(),
            ];
            let share = masses[1] as f64 / masses.iter().sum::<u64>() as f64;
            let mixed = own.iter().zip(&added);
            let liar = mixed.map(|(q, s)| (1.0 - share) * q / sum(&own) + share * s / sum(&added));
            let liar: Vec<f64> = liar.collect();
            let convicted = catch_unwind(|| assert_law(&counts, &liar, "a liar")).is_err();
            assert!(convicted || epsilon < 4.0, "{epsilon}");
        }
    }
}

#[test]
fn models_that_do_not_fit_are_refused() {
    // A model that is heavier than the integers of its base allow, and one of more words.
    let [mut heavy, mut long] = [many(10), many(10)];
    heavy.1.weights[3] = u64::MAX / 4;
    long.1.weights.push(1);
    for ((space, model), why) in [(heavy, "weigh at most"), (long, "of 10 words, got id 10")] {
        let all = tem(&space, 3.0, Randomness::new(None));
        let tem = ContextualTem::new(&all, Arc::new(model)).unwrap();
        let law = tem.probabilities_after(1, &Released::nothing(space.vocabulary()));
        for error in [law.err(), tem.privatize_ids(&[0]).err()] {
            let error = error.unwrap().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
