//! Text through the crate's public interface, as a Rust program uses it.

use std::sync::Arc;

use proptest::prelude::*;

use crate::common::with;
use fastdx::mechanism::tem::Truncation;
use fastdx::text::{Consistent, Oov, Policy, Replacements, TextPrivatizer};
use fastdx::{Control, Embedding, Error, Metric, Randomness, Tem, Vocabulary};

/// Words on a line.
fn private(
    (words, places): (&[&str], &[f32]),
    epsilon: f64,
    gamma: f64,
    seed: Option<u64>,
    policy: Policy,
) -> TextPrivatizer {
    let vocabulary = Vocabulary::new(words.iter().copied()).unwrap();
    let e = Embedding::new(vocabulary, places.to_vec(), 1, Metric::Euclidean).unwrap();
    let (gamma, randomness) = (Truncation::Gamma(gamma), Randomness::new(seed));
    let tem = Tem::new(Arc::new(e), epsilon, gamma, randomness).unwrap();
    TextPrivatizer::new(Arc::new(tem), policy).unwrap()
}

fn words(words: &[&str]) -> std::collections::HashSet<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

/// Every known word becomes itself.
fn sure(oov: Oov, skip: &[&str]) -> TextPrivatizer {
    let policy = with(|p: &mut Policy| (p.oov, p.skip) = (oov, words(skip)));
    private(
        (&["cat", "dog"], &[0.0, 100.0]),
        10.0,
        f64::INFINITY,
        None,
        policy,
    )
}

// What becomes of known, unknown and skipped words: tests/python/texts/test_text.py.
#[test]
fn random_words_and_texts_stay_in_step() {
    // Known words come back with certainty here, so every draw must stand at its own position.
    let p = sure(Oov::Random, &[]);
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

// Its place: tests/python/texts/test_text.py.
#[test]
fn neither_message_nor_debug_shows_an_unknown_word() {
    let error = sure(Oov::Error, &[]).privatize("cat zyx").unwrap_err();
    assert!(matches!(error, Error::UnknownInText { .. }));
    assert!(!format!("{error} {error:?}").contains("zyx"));
}

#[test]
fn blocks_of_text_are_joined_seamlessly() {
    let p = sure(Oov::Keep, &[]);
    let long = "cat dog x ".repeat(1 << 20);
    let texts = vec![&*long, "dog", &*long];
    let (out, counts) = p.privatize_texts(&texts, &Control::new()).unwrap();
    assert!(out[0] == long && out[1] == "dog" && out[2] == long);
    assert_eq!(counts.words, 6 * (1 << 20) + 1);
}

/// Words on a line, e-mail among them, at ε = 2.
fn line(policy: Policy, seed: Option<u64>) -> TextPrivatizer {
    let some = (
        &["a", "b", "c", "e-mail", "mail"][..],
        &[0.0, 1.0, 3.0, 4.0, 9.0][..],
    );
    private(some, 2.0, 10.0, seed, policy)
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
        let policy = with(|p: &mut Policy| p.oov = oov);
        let p = line(policy, None);
        assert_eq!(p.bound("a", "xyz"), f64::INFINITY);
        assert_eq!(p.bound("uvw", "xyz"), 0.0);
        assert!(p.price("a xyz").0.is_err() && p.price("a b").0 == Ok(4.0));
    }
    let p = line(with(|p: &mut Policy| p.oov = Oov::Keep), None);
    assert_eq!(p.bound("uvw", "xyz"), f64::INFINITY);
    assert_eq!(p.bound("a uvw", "a uvw"), 0.0);
    assert_eq!(p.bound("a uvw", "b UVW"), f64::INFINITY);
    assert!(p.price("a").0.is_err());
    let p = line(
        with(|p: &mut Policy| p.skip = ["b".to_owned()].into()),
        None,
    );
    assert_eq!(p.bound("a", "b"), f64::INFINITY);
    assert_eq!(p.bound("b", "B"), f64::INFINITY);
    assert!(near(p.bound("b a", "b c"), 6.0) && p.price("a").0.is_err());
    assert!(line(Policy::default(), Some(1)).price("a").0.is_err());
}

#[test]
fn a_price_counts_words_and_distinct_words() {
    let p = line(Policy::default(), None);
    assert_eq!(p.price("a A, e-mail xyz").0, Ok(8.0));
    assert_eq!(p.price("").0, Ok(0.0));
    assert_eq!(p.price_tokens(&["e-mail", "a b"]).0, Ok(4.0));
    let consistent = with::<Policy>(|p| p.consistent = Consistent::Text);
    let p = line(consistent, None);
    assert_eq!(p.price("a A, e-mail xyz XYZ xyzz").0, Ok(8.0));
    assert!(near(p.bound("a a b", "b b c"), 2.0 * (1.0 + 2.0)));
    assert_eq!(p.bound("a a b", "b c c"), f64::INFINITY);
    assert_eq!(p.bound("a b", "c c"), f64::INFINITY);
    assert_eq!(p.guarantee().scope, fastdx::Guarantee::DISTINCT);
}

/// Words of real vocabularies, of which some cannot be read back.
const ODD: &str = "game|Game|Paris|e|mail|e-mail|u.s.|'s|new york|'90s|</s>|<unk>|,|.|-|–|...|@|\
    a\u{a0}b|\u{2028}|game.|3.5|½|7|2010|www|http|a@b|x.org|c++|#tag|don't|it’s|café|caf\u{e9}s|\
    CAFÉ|日本|\u{200b}z|co\u{ad}op|may|MASK|unknown|i|İ|ß|SS|σ|ς|Σ|§|a§b|n.y.c|and/or|or|\u{301}|\
    e\u{301}|€|$5|😀";

fn odd_words() -> Vec<&'static str> {
    ODD.split('|').collect()
}

fn odd(oov: Oov, skip: &[&str], consistent: Consistent) -> TextPrivatizer {
    let (all, skip) = (odd_words(), words(skip));
    let places: Vec<f32> = (0..all.len()).map(|i| (i % 7) as f32).collect();
    let change = |p: &mut Policy| (p.oov, p.skip, p.consistent) = (oov, skip, consistent);
    private((&all, &places), 0.5, f64::INFINITY, Some(7), with(change))
}

#[test]
fn words_that_are_not_read_back_are_inputs_only() {
    let p = odd(Oov::Random, &[], Consistent::Never);
    let vocabulary = p.mechanism().vocabulary();
    let excluded = p.mechanism().excluded();
    let excluded: Vec<&str> = excluded.iter().map(|&id| vocabulary.word(id)).collect();
    // "Game" is read as "game", "it’s" as "it's"; "İ" has no lower case of one character.
    for word in "Game|u.s.|'s|new york|</s>|,|...|@|a\u{a0}b|game.|CAFÉ|\u{200b}z".split('|') {
        assert!(excluded.contains(&word), "{word}");
    }
    for word in "game|Paris|e-mail|<unk>|3.5|½|c++|#tag|日本|n.y.c|a@b|😀".split('|') {
        assert!(!excluded.contains(&word), "{word}");
    }
    assert!(p.guarantee().outputs.contains("never released"));
    // As inputs they are protected as before.
    assert!(p.mechanism().space().distance(0, 1) > 0.0);
    // Labels of which no text has any are outputs all the same.
    let labels = (&["new york", "u.s."][..], &[0.0, 1.0][..]);
    let p = private(labels, 1.0, f64::INFINITY, None, Policy::default());
    assert!(p.mechanism().excluded().is_empty());
}

/// The words of a release are the words that were drawn, in their number and their order.
fn reads_as_drawn(
    p: &TextPrivatizer,
    again: &TextPrivatizer,
    text: &str,
) -> Result<(), TestCaseError> {
    let words: Vec<&str> = p.words(text).map(|range| &text[range]).collect();
    let (release, _) = p.privatize_texts(&[text], &Control::new()).unwrap();
    let (drawn, _) = again.privatize_tokens(&words, &Control::new()).unwrap();
    let found: Vec<&str> = p
        .words(&release[0])
        .map(|range| &release[0][range])
        .collect();
    let mask = |word: &String| word.trim_matches(['[', ']']).to_owned();
    let masks = drawn.iter().filter(|word| *word == "[MASK]").count();
    prop_assert!(release[0].matches("[MASK]").count() >= masks);
    let drawn: Vec<String> = drawn.iter().map(mask).collect();
    prop_assert_eq!(found, drawn, "{:?} {:?}", text, release[0]);
    Ok(())
}

fn odd_text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        proptest::sample::select(odd_words()).prop_map(str::to_owned),
        "[a-z0-9]{1,3}",
        "[#@+*$<>€½²]{0,2}[a-zA-Zé7½]{1,2}[#@+*_~€]{0,2}",
        any::<char>().prop_map(String::from),
    ];
    let gap = prop_oneof![
        4 => Just(" ".to_owned()),
        4 => "[-'’.,:/@+#·§…\u{ad}\u{200d}\u{200b}\u{a0}\u{2028}\u{85}()\\[\\]!^ ]{0,3}",
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec((word, gap), 0..10)
        .prop_map(|parts| parts.into_iter().flat_map(|(a, b)| [a, b]).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_release_is_read_as_it_was_drawn(
        texts in proptest::collection::vec(odd_text(), 60),
        oov in proptest::sample::select(&[Oov::Random, Oov::Mask, Oov::Keep][..]),
        skip in proptest::sample::subsequence(odd_words(), 0..4),
        consistent in proptest::bool::ANY,
    ) {
        let consistent = if consistent { Consistent::Text } else { Consistent::Never };
        let (p, again) = (odd(oov, &skip, consistent), odd(oov, &skip, consistent));
        for text in texts {
            reads_as_drawn(&p, &again, &text)?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn spans_are_read_as_they_were_drawn(
        text in odd_text(),
        spans in proptest::collection::vec((any::<prop::sample::Index>(), 1usize..6), 1..4),
        oov in proptest::sample::select(&[Oov::Random, Oov::Mask, Oov::Keep][..]),
    ) {
        let p = odd(oov, &[], Consistent::Never);
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let spans = spans.iter().filter_map(|(start, length)| {
            let start = start.index(places.len());
            let end = (start + length).min(places.len() - 1);
            (start < end).then(|| places[start]..places[end])
        });
        let spans: Vec<_> = spans.collect();
        let (release, new, _) = p.privatize_spans(&text, &spans, &mut Replacements::default(), &Control::new()).unwrap();
        // As many words as before, none of them across the end of a span.
        prop_assert_eq!(p.words(&release).count(), p.words(&text).count(), "{:?} {:?}", &text, &release);
        for end in new.iter().flat_map(|place| [place.start, place.end]) {
            prop_assert!(p.words(&release).all(|w| w.end <= end || end <= w.start), "{:?}", &release);
        }
    }
}
