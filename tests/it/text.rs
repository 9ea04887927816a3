//! Text through the crate's public face, as a Rust program uses it.

use std::sync::Arc;

use crate::common::from_vectors;
use fastdx::mechanism::tem::Truncation;
use fastdx::text::{Policy, TextPrivatizer, Unknown};
use fastdx::{Control, Embedding, Error, Metric, Randomness, Tem, Vocabulary};

fn private(unknown: Unknown, skip: &[&str]) -> TextPrivatizer {
    let vocabulary = Vocabulary::new(["cat", "dog"]).unwrap();
    let e = Embedding::new(vocabulary, vec![0.0, 100.0], 1, Metric::Euclidean).unwrap();
    let gamma = Truncation::Gamma(f64::INFINITY);
    let tem = Tem::new(Arc::new(e), 10.0, gamma, Randomness::new(None)).unwrap();
    let skip = skip.iter().map(|w| (*w).to_owned()).collect();
    TextPrivatizer::new(
        Arc::new(tem),
        Policy {
            unknown,
            skip,
            ..Policy::default()
        },
    )
}

#[test]
fn words_are_replaced_where_they_stand() {
    let p = private(Unknown::Mask, &["The"]);
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
    // Known words are certain here, so every draw must land in its own place.
    let p = private(Unknown::Random, &[]);
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
    let result = private(Unknown::Error, &[]).privatize("cat zyx");
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
    let p = private(Unknown::Keep, &[]);
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
