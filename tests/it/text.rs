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
    seed: Option<u64>,
    policy: Policy,
) -> TextPrivatizer {
    let vocabulary = Vocabulary::new(words.iter().copied()).unwrap();
    let e = Embedding::new(vocabulary, places.to_vec(), 1, Metric::Euclidean).unwrap();
    let (gamma, randomness) = (Truncation::Gamma(f64::INFINITY), Randomness::new(seed));
    let tem = Tem::new(Arc::new(e), 0.5, gamma, randomness).unwrap();
    TextPrivatizer::new(Arc::new(tem), policy).unwrap()
}

fn words(words: &[&str]) -> std::collections::HashSet<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

// Its place: tests/python/texts/test_text.py.
#[test]
fn neither_message_nor_debug_shows_an_unknown_word() {
    let strict = with(|p: &mut Policy| p.oov = Oov::Error);
    let error = private((&["cat"], &[0.0]), None, strict).privatize("cat zyx");
    let error = error.unwrap_err();
    assert!(matches!(error, Error::UnknownInText { .. }));
    assert!(!format!("{error} {error:?}").contains("zyx"));
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
    private((&all, &places), Some(7), with(change))
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
    let p = private(labels, None, Policy::default());
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
