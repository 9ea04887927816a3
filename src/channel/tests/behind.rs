//! Outputs behind a history, against brute force.

use super::*;
use crate::language::{Expected, NgramWeights};
use crate::mechanism::contextual::{ContextualTem, Released};

/// Tems with models of orders 1 to 3, without and with covers and exclusions.
pub(super) fn mechanisms(space: &Arc<Embedding>, rng: &mut impl Rng) -> Mechanisms {
    let words = space.vocabulary().len() as u32;
    let (gamma, seeded) = (Truncation::Gamma(1.5), Randomness::new(Some(1)));
    let tem = Tem::new(space.clone(), 3.0, gamma, seeded).unwrap();
    let sets = (0..words).map(|y| vec![y, (y + 2) % words]).collect();
    let cover = Cover::from_members(&**space, sets).unwrap();
    let covered = tem.with_cover(Some(Arc::new(cover))).unwrap();
    let excluding = covered.excluding(&[1, 4]).unwrap();
    let mut all: Mechanisms = Vec::new();
    for order in [1, 2, 3] {
        let model = Arc::new(NgramWeights::new(prior(space, order, rng)));
        for tem in [&tem.excluding(&[2]).unwrap(), &tem, &covered, &excluding] {
            all.push(Arc::new(ContextualTem::new(tem, model.clone()).unwrap()));
        }
    }
    all
}

/// The laws behind a history, that of an unknown word from the integers of the model.
pub(super) fn laws(tem: &ContextualTem, history: &Released) -> Laws {
    let words = 0..tem.vocabulary().len() as u32;
    let laws = words.clone().map(|w| tem.probabilities_after(w, history));
    let mut lists = Vec::new();
    let model = tem.model();
    model.expected(history.sentence(), &mut lists).unwrap();
    let weight = |y: u32| {
        let added: u64 = lists.iter().map(|list: &Expected| list.weight(y)).sum();
        let released = tem.excluded().binary_search(&y).is_err();
        f64::from(u8::from(released)) * (f64::from(model.base().weight(y)) + added as f64)
    };
    let sum: f64 = words.clone().map(weight).sum();
    let unknown = words.map(|y| weight(y) / sum).collect();
    (laws.map(|law| law.unwrap()).collect(), unknown)
}

#[test]
fn posteriors_are_those_of_all_texts_written_out() {
    for seed in 70..73 {
        cases((seed, generator(seed)), mechanisms);
    }
}

#[test]
fn columns_are_those_of_the_law_and_one_without_a_history_is_convicted() {
    let mut rng = generator(80);
    let control = Control::new();
    let space = space(7, &mut rng);
    let prior = NgramPrior::of_frequencies(space.clone(), None, 0.1).unwrap();
    let prior = Arc::new(prior);
    for (at, mechanism) in mechanisms(&space, &mut rng).into_iter().enumerate() {
        let text = TextPrivatizer::new(mechanism.clone(), Policy::default()).unwrap();
        let words = ["a", "c", "zz", "b", "a", "a", "g", "f"];
        let case = Case {
            mechanism: mechanism.clone(),
            policy: Policy::default(),
            prior: prior.clone(),
            released: text.privatize_tokens(&words, &control).unwrap().0,
            starts: (0..8).map(|place| place % 5 == 0).collect(),
        };
        let (written, laws) = (case.written(8), case.laws());
        let alone = self::laws(
            mechanism.in_order().unwrap(),
            &Released::nothing(space.vocabulary()),
        );
        let mut liar = 0.0f64;
        // With all sums kept, and with none.
        for bytes in [None, Some(0)] {
            let channel = Arc::new(Channel::new(text.clone(), bytes).unwrap());
            let given = TextOrTokens::Text(written.clone());
            let found = channel.decode(given, &prior, None, &control).unwrap();
            for (place, (known, unknown)) in laws.iter().enumerate() {
                let y = space.vocabulary().id(&case.released[place]).unwrap() as usize;
                let own = found.likelihood(place, &control).unwrap();
                for (w, p) in own.iter().enumerate() {
                    let law = known.get(w).unwrap_or(unknown);
                    assert!((p / law[y] - 1.0).abs() < 1e-12, "{at} {place} {w}");
                    let without = alone.0.get(w).unwrap_or(&alone.1)[y];
                    liar = liar.max((without / law[y] - 1.0).abs());
                }
            }
        }
        assert!((liar > 0.05) == (at >= 4), "{at} {liar}");
    }
}

#[test]
fn what_needs_one_law_is_refused() {
    let mut rng = generator(91);
    let control = Control::new();
    let space = space(5, &mut rng);
    let mechanism = mechanisms(&space, &mut rng).remove(5);
    let channel = channel(&mechanism, Policy::default());
    let errors = [
        channel.bits(None, None, &control).err(),
        channel.capacity(&control).err(),
        channel.columns(&[0], true, &control).err(),
        channel.laws(&[0], true, &control).err(),
        channel.observed(&["a"], true, &control).err(),
    ];
    for error in errors {
        let error = error.unwrap().to_string();
        assert!(error.contains("\"frequency\""), "{error}");
    }
}
