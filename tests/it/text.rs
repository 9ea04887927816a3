//! Text through the crate's public interface, as a Rust program uses it.

use std::sync::Arc;

use crate::common::from_vectors;
use fastdx::mechanism::tem::Truncation;
use fastdx::text::{Consistent, Oov, Policy, Replacements, TextPrivatizer};
use fastdx::{Control, Embedding, Error, Metric, Randomness, Tem, Vocabulary};

fn private(oov: Oov, skip: &[&str]) -> TextPrivatizer {
    let vocabulary = Vocabulary::new(["cat", "dog"]).unwrap();
    let e = Embedding::new(vocabulary, vec![0.0, 100.0], 1, Metric::Euclidean).unwrap();
    let gamma = Truncation::Gamma(f64::INFINITY);
    let tem = Tem::new(Arc::new(e), 10.0, gamma, Randomness::new(None)).unwrap();
    let skip = skip.iter().map(|w| (*w).to_owned()).collect();
    TextPrivatizer::new(
        Arc::new(tem),
        Policy {
            oov,
            skip,
            ..Policy::default()
        },
    )
}

#[test]
fn words_are_replaced_where_they_stand() {
    let p = private(Oov::Mask, &["The"]);
    assert_eq!(
        p.privatize("The Cat,\n x dog!").unwrap(),
        "The cat,\n [MASK] dog!"
    );
    let texts = vec!["cat dog", "", "x", "dog"];
    let (out, counts) = p.privatize_texts(&texts, &Control::new()).unwrap();
    assert_eq!(out, ["cat dog", "", "[MASK]", "dog"]);
    assert_eq!(
        (
            counts.words,
            counts.replaced,
            counts.unknown,
            counts.skipped
        ),
        (4, 3, 1, 0)
    );
}

#[test]
fn random_words_and_texts_stay_in_step() {
    // Known words come back with certainty here, so every draw must stand at its own position.
    let p = private(Oov::Random, &[]);
    let text = "x cat x x dog cat x";
    let texts = vec![text, "", "x", "cat", "dog x"];
    for _ in 0..100 {
        let (out, _) = p.privatize_texts(&texts, &Control::new()).unwrap();
        let words: Vec<&str> = out[0].split(' ').collect();
        assert_eq!((words[1], words[4], words[5]), ("cat", "dog", "cat"));
        assert_eq!((&*out[1], &*out[3]), ("", "cat"));
        assert!(out[4].starts_with("dog ") && ["cat", "dog"].contains(&&*out[2]));
    }
}

#[test]
fn an_unknown_word_is_given_by_its_place() {
    let result = private(Oov::Error, &[]).privatize("cat zyx");
    let Err(error @ Error::UnknownInText { .. }) = result else {
        panic!("{result:?}");
    };
    // Neither its message nor its Debug shows the word.
    assert!(!format!("{error} {error:?}").contains("zyx"));
    let Error::UnknownInText {
        word, at, length, ..
    } = error
    else {
        unreachable!()
    };
    assert_eq!((word.reveal(), at, length), ("zyx", Some((0, 4)), 3));
}

#[test]
fn blocks_of_text_are_joined_seamlessly() {
    let p = private(Oov::Keep, &[]);
    let long = "cat dog x ".repeat(1 << 20);
    let texts = vec![&*long, "dog", &*long];
    let (out, counts) = p.privatize_texts(&texts, &Control::new()).unwrap();
    assert!(out[0] == long && out[1] == "dog" && out[2] == long);
    assert_eq!(counts.words, 6 * (1 << 20) + 1);
}

#[test]
fn a_wrong_shape_is_refused() {
    let vocabulary = Vocabulary::new(["a", "b"]).unwrap();
    assert!(matches!(
        Embedding::new(vocabulary, vec![1.0; 3], 1, Metric::Euclidean),
        Err(Error::Shape { .. })
    ));
    from_vectors(vec![1.0; 4], 2, Metric::Euclidean);
}

/// Words on a line, e-mail among them, at ε = 2 without truncation.
fn line(policy: Policy, seed: Option<u64>) -> TextPrivatizer {
    let words = ["a", "b", "c", "e-mail", "mail"];
    let vocabulary = Vocabulary::new(words).unwrap();
    let vectors = vec![0.0, 1.0, 3.0, 4.0, 9.0];
    let e = Embedding::new(vocabulary, vectors, 1, Metric::Euclidean).unwrap();
    let gamma = Truncation::Gamma(10.0);
    let tem = Tem::new(Arc::new(e), 2.0, gamma, Randomness::new(seed)).unwrap();
    TextPrivatizer::new(Arc::new(tem), policy)
}

fn near(a: f64, b: f64) -> bool {
    a >= b && a < b + 1e-8
}

#[test]
fn a_bound_is_about_the_words_that_are_found() {
    let p = line(Policy::default(), None);
    assert_eq!(p.bound("a b", "a b"), 0.0);
    assert!(near(p.bound("a, b!", "b, c!"), 2.0 * (1.0 + 2.0)));
    assert!(near(p.bound("A e-mail", "b mail"), 2.0 * (1.0 + 5.0)));
    for (a, b) in [
        ("a b", "a"),
        ("a b", "a, b"),
        ("e-mail", "a-mail"),
        ("", "a"),
    ] {
        assert_eq!(p.bound(a, b), f64::INFINITY, "{a} {b}");
    }
    assert!(near(p.bound_tokens(&["e-mail"], &["a"]), 8.0));
    assert_eq!(p.bound_tokens(&["a", "b"], &["a"]), f64::INFINITY);
    // Two unknown words have the same law; between an unknown and a known word the law's own bound
    // holds.
    assert_eq!(p.bound("xyz", "uvw"), 0.0);
    assert!(near(p.bound("xyz", "a"), 2.0 / 2.0 * 10.0));
    assert!(near(p.bound("a", "xyz"), 10.0));
    let seeded = line(Policy::default(), Some(1));
    assert_eq!(seeded.bound("a", "b"), f64::INFINITY);
    assert_eq!(seeded.bound("A", "a"), 0.0);
}

#[test]
fn a_bound_follows_the_policy() {
    for oov in [Oov::Mask, Oov::Drop, Oov::Error] {
        let policy = Policy {
            oov,
            ..Policy::default()
        };
        let p = line(policy, None);
        assert_eq!(p.bound("a", "xyz"), f64::INFINITY);
        assert_eq!(p.bound("uvw", "xyz"), 0.0);
        assert!(p.price("a xyz").is_err() && p.price("a b") == Ok(4.0));
    }
    let keep = Policy {
        oov: Oov::Keep,
        ..Policy::default()
    };
    let p = line(keep, None);
    assert_eq!(p.bound("uvw", "xyz"), f64::INFINITY);
    assert_eq!(p.bound("a uvw", "a uvw"), 0.0);
    assert_eq!(p.bound("a uvw", "b UVW"), f64::INFINITY);
    assert!(p.price("a").is_err());
    let skip = Policy {
        skip: ["b".to_owned()].into(),
        ..Policy::default()
    };
    let p = line(skip, None);
    assert_eq!(p.bound("a", "b"), f64::INFINITY);
    assert_eq!(p.bound("b", "B"), f64::INFINITY);
    assert!(near(p.bound("b a", "b c"), 6.0) && p.price("a").is_err());
    assert!(line(Policy::default(), Some(1)).price("a").is_err());
}

#[test]
fn a_price_counts_words_and_distinct_words() {
    let p = line(Policy::default(), None);
    assert_eq!(p.price("a A, e-mail xyz"), Ok(8.0));
    assert_eq!(p.price(""), Ok(0.0));
    assert_eq!(p.price_tokens(&["e-mail", "a b"]), Ok(4.0));
    assert_eq!(p.price_ids(&[0, 0, 1]), Ok(6.0));
    let consistent = Policy {
        consistent: Consistent::Text,
        ..Policy::default()
    };
    let p = line(consistent, None);
    assert_eq!(p.price("a A, e-mail xyz XYZ xyzz"), Ok(8.0));
    assert_eq!(p.price_ids(&[0, 0, 1]), Ok(4.0));
    assert!(near(p.bound("a a b", "b b c"), 2.0 * (1.0 + 2.0)));
    assert_eq!(p.bound("a a b", "b c c"), f64::INFINITY);
    assert_eq!(p.bound("a b", "c c"), f64::INFINITY);
    assert_eq!(p.guarantee().scope, fastdx::Guarantee::DISTINCT);
}

#[test]
fn consistent_text_draws_each_word_once() {
    let by_text = Policy {
        consistent: Consistent::Text,
        ..Policy::default()
    };
    let by_call = Policy {
        consistent: Consistent::Call,
        ..Policy::default()
    };
    let texts = vec!["a B a xyz", "", "b a xyz XYZ", "c a"];
    let mut differ = [false; 2];
    for _ in 0..60 {
        let (out, counts) = line(by_text.clone(), None)
            .privatize_texts(&texts, &Control::new())
            .unwrap();
        let words: Vec<Vec<&str>> = out.iter().map(|t| t.split(' ').collect()).collect();
        assert_eq!((words[0][0], words[2][2]), (words[0][2], words[2][3]));
        differ[0] |= words[0][0] != words[2][1];
        differ[1] |= words[0][3] != words[2][2];
        assert_eq!((counts.words, counts.replaced, counts.unknown), (10, 7, 3));
        let p = line(by_call.clone(), None);
        let mut kept = Replacements::default();
        let control = Control::new();
        let (first, _) = p.privatize_texts_with(&texts, &mut kept, &control).unwrap();
        let (again, _) = p.privatize_texts_with(&texts, &mut kept, &control).unwrap();
        assert_eq!(first, again);
        let words: Vec<Vec<&str>> = first.iter().map(|t| t.split(' ').collect()).collect();
        assert_eq!(
            words[0],
            [words[2][1], words[2][0], words[2][1], words[2][2]]
        );
        assert_eq!(words[3][1], words[0][0]);
        let other = line(by_call.clone(), None);
        assert!(
            other
                .privatize_texts_with(&texts, &mut kept, &control)
                .is_err()
        );
        let ids = p.privatize_ids(&[0, 1, 0, 4, 4], &control).unwrap();
        assert_eq!((ids[0], ids[3]), (ids[2], ids[4]));
    }
    assert_eq!(differ, [true; 2], "texts are drawn each by itself");
}

#[test]
fn a_token_is_what_its_word_is() {
    let p = line(Policy::default(), None);
    assert_eq!(p.tokenize("A, E-Mail c++ Xyz"), ["a", "e-mail", "c", "xyz"]);
    let counts = p.count_tokens(&["a", "E-Mail", "c++", "xyz"]);
    assert_eq!((counts.words, counts.replaced, counts.unknown), (4, 3, 1));
}
