//! Covers of kinds: sets against a closure by Warshall, cycles, Tem's law and bound on them.

use std::sync::Arc;

use crate::common::{allowed, assert_law, counts, edges};
use fastdx::mechanism::tem::Truncation;
use fastdx::words::graph::{Edges, WordGraph};
use fastdx::{Cover, Error, Mechanism, Randomness, Tem, WordMetric};
use proptest::prelude::*;

/// Whether each word is another one, in one or more steps.
fn closure(words: usize, pairs: &[(usize, usize)]) -> Vec<Vec<bool>> {
    let mut is = vec![vec![false; words]; words];
    pairs.iter().for_each(|&(u, v)| is[u][v] = true);
    for k in 0..words {
        for i in 0..words {
            for j in 0..words {
                is[i][j] |= is[i][k] && is[k][j];
            }
        }
    }
    is
}

/// The first output that stands for fewer words than `least`, by the sets.
fn too_small(cover: &Cover, least: usize) -> Option<u32> {
    let mut ranks = 0..cover.released().len() as u32;
    ranks.find(|&rank| cover.set(rank).len() < least)
}

/// The first two words and output whose probabilities are further apart than a guarantee allows.
fn further_apart(laws: &[Vec<f64>], claim: &Tem) -> Option<(usize, usize, usize)> {
    let words = laws.len();
    let split = |i| (i / words / words, i / words % words, i % words);
    (0..words.pow(3)).map(split).find(|&(a, b, y)| {
        let bound = allowed(&claim.guarantee(), claim.distance(a as u32, b as u32));
        // A float's probabilities are rounded.
        laws[a][y] > bound.exp() * laws[b][y] * (1.0 + 1e-9)
    })
}

fn laws(tem: &Tem) -> Vec<Vec<f64>> {
    let words = tem.space().vocabulary().len() as u32;
    (0..words).map(|w| tem.probabilities(w)).collect()
}

fn tem(graph: WordGraph, cover: Cover, epsilon: f64, randomness: Randomness) -> Tem {
    let gamma = Truncation::Gamma(f64::INFINITY);
    let tem = Tem::new(Arc::new(graph), epsilon, gamma, randomness).unwrap();
    tem.with_cover(Some(Arc::new(cover))).unwrap()
}

/// Two states of a country, two kinds of music, and a jazz club, which is of both.
fn places() -> (Edges, WordGraph) {
    let mut edges = Edges::new();
    for (word, kind) in [
        ("ohio", "state"),
        ("utah", "state"),
        ("state", "place"),
        ("club", "place"),
        ("techno", "music"),
        ("jazz", "music"),
        ("club", "music"),
    ] {
        edges.push(word, kind).unwrap();
    }
    let graph = WordGraph::new(&edges, None, None).unwrap();
    (edges, graph)
}

/// Words and edges from each to later ones: no cycle.
fn hierarchies() -> impl Strategy<Value = (usize, Vec<(usize, usize)>)> {
    (1usize..12).prop_flat_map(|words| {
        let pairs = prop::collection::vec((0..words, 0..words), 0..24);
        let upward = pairs.prop_map(|pairs| {
            let pairs = pairs.into_iter().filter(|(u, v)| u != v);
            pairs.map(|(u, v)| (u.min(v), u.max(v))).collect()
        });
        (Just(words), upward)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn sets_are_those_of_the_closure(
        (words, pairs) in hierarchies(),
        least in 1usize..5,
        out in 0u32..12,
        epsilon in 0.1..9.0,
    ) {
        let edges = edges(words, &pairs);
        let graph = WordGraph::new(&edges, None, None).unwrap();
        let is = closure(words, &pairs);
        let exclude: Vec<u32> = (out < words as u32).then_some(out).into_iter().collect();
        let below = |y: u32| -> Vec<u32> {
            let all = 0..words as u32;
            all.filter(|&w| w == y || is[w as usize][y as usize]).collect()
        };
        let kind = |y: &u32| below(*y).len() >= least && !exclude.contains(y);
        let kinds: Vec<u32> = (0..words as u32).filter(kind).collect();
        let cover = Cover::hypernyms(&graph, &edges, least, &exclude);
        if kinds.is_empty() {
            let refused = matches!(cover, Err(Error::Parameter { name: "least", .. }));
            prop_assert!(refused, "{cover:?}");
            return Ok(());
        }
        let cover = cover.unwrap();
        prop_assert_eq!(cover.released(), &kinds);
        prop_assert_eq!(too_small(&cover, least), None);
        for (rank, &y) in (0..).zip(&kinds) {
            prop_assert_eq!(cover.set(rank), below(y));
            let ratio = cover.weight(rank) * below(y).len() as f64;
            let first = cover.weight(0) * below(kinds[0]).len() as f64;
            prop_assert!((ratio / first - 1.0).abs() < 1e-8, "{} {}", ratio, first);
        }
        let tem = tem(graph, cover, epsilon, Randomness::new(None));
        prop_assert_eq!(further_apart(&laws(&tem), &tem), None);
    }

    #[test]
    fn cycles_are_found(words in 2usize..9, ends in prop::collection::vec((0usize..9, 0usize..9), 1..20)) {
        let ends = ends.into_iter().map(|(u, v)| (u % words, v % words));
        let pairs: Vec<(usize, usize)> = ends.filter(|(u, v)| u != v).collect();
        let is = closure(words, &pairs);
        let edges = edges(words, &pairs);
        let graph = WordGraph::new(&edges, None, None).unwrap();
        let made = Cover::hypernyms(&graph, &edges, 1, &[]);
        prop_assert_eq!(made.is_err(), (0..words).any(|w| is[w][w]));
        let Err(error) = made else { return Ok(()) };
        // The words that it names are one cycle, each a kind of the one before.
        let error = error.to_string();
        let named = error.split("got ").nth(1).unwrap().split(", ").next().unwrap();
        let names = named.split(" → ").map(|word| word.trim_matches(['"', 'w']).parse());
        let names: Vec<usize> = names.collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(names[0], names[names.len() - 1], "{}", error);
        prop_assert!(names.len() > 2 && names.windows(2).all(|two| pairs.contains(&(two[0], two[1]))));
    }
}

#[test]
fn draws_have_the_law_of_kinds() {
    let (edges, graph) = places();
    let cover = Cover::hypernyms(&graph, &edges, 3, &[]).unwrap();
    let names: Vec<&str> = cover
        .released()
        .iter()
        .map(|&y| graph.vocabulary().word(y))
        .collect();
    assert_eq!(names, ["state", "place", "music"]);
    let words = graph.len();
    // From ohio: itself a state and a place; through state, place and club, three steps to music.
    let law = |distances: [f64; 3]| {
        let sizes = [3.0, 5.0, 4.0];
        let weights = [0, 1, 2].map(|i| (-distances[i]).exp() / sizes[i]);
        weights.map(|weight| weight / weights.iter().sum::<f64>())
    };
    let ids: Vec<u32> = cover.released().to_vec();
    let tem = tem(graph, cover, 2.0, Randomness::known_keys(5));
    for (word, distances) in [("ohio", [0.0, 0.0, 3.0]), ("club", [2.0, 0.0, 0.0])] {
        let mut expected = vec![0.0; words];
        for (id, p) in ids.iter().zip(law(distances)) {
            expected[*id as usize] = p;
        }
        let drawn = tem.sample(word, 200_000).unwrap();
        assert_law(&counts(&drawn, words), &expected, word);
    }
}

#[test]
fn liars_are_convicted() {
    let (edges, graph) = places();
    // A kind of fewer words than promised: music without the club.
    let cover = Cover::hypernyms(&graph, &edges, 4, &[]).unwrap();
    assert_eq!(too_small(&cover, 4), None);
    let vocabulary = WordMetric::vocabulary(&graph);
    let id = |word: &str| vocabulary.require(word).unwrap();
    let mut small = vec![Vec::new(); vocabulary.len()];
    small[id("place") as usize] = ["ohio", "utah", "state", "club", "place"].map(id).to_vec();
    small[id("state") as usize] = vec![id("ohio")];
    let small = Cover::from_members(&graph, small).unwrap();
    assert_eq!(too_small(&small, 4), Some(0));
    // Table I as printed: a word becomes one of its own kinds, whatever is near.
    let claim = tem(graph, cover.clone(), 8.0, Randomness::new(None));
    let mut own = laws(&claim);
    assert_eq!(further_apart(&own, &claim), None);
    for (w, law) in (0..).zip(&mut own) {
        for (y, p) in (0..).zip(law.iter_mut()) {
            let kind = cover
                .rank(y)
                .is_some_and(|rank| cover.outputs(w).contains(&rank));
            *p = if kind { *p } else { 0.0 };
        }
    }
    assert!(further_apart(&own, &claim).is_some());
}

#[test]
fn small_and_deep_hierarchies() {
    let mut one = Edges::new();
    one.word("a");
    let graph = WordGraph::new(&one, None, None).unwrap();
    assert_eq!(
        Cover::hypernyms(&graph, &one, 1, &[]).unwrap().released(),
        [0]
    );
    for least in [0, 2] {
        let error = Cover::hypernyms(&graph, &one, least, &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains("least must be from 1 to 1"), "{error}");
    }
    // Words that the space lacks count for nothing, but kinds are found through them.
    let chain = edges(4000, &(1..4000).map(|i| (i - 1, i)).collect::<Vec<_>>());
    let only = ["w0", "w3999", "w7"];
    let some = WordGraph::new(&chain, None, Some(&only)).unwrap();
    let cover = Cover::hypernyms(&some, &chain, 2, &[]).unwrap();
    assert_eq!(cover.released(), [1, 2]);
    assert_eq!([cover.set(0), cover.set(1)], [&[0, 1, 2][..], &[0, 2]]);
    let all = WordGraph::new(&chain, None, None).unwrap();
    let cover = Cover::hypernyms(&all, &chain, 3998, &[]).unwrap();
    assert_eq!(cover.released(), [3997, 3998, 3999]);
    // A word without an edge stands for itself, but no output of two words stands for it.
    let (edges, _) = places();
    let wider = Cover::hypernyms(&all, &edges, 1, &[]).unwrap();
    assert_eq!((wider.released().len(), wider.k()), (4000, 1));
    let (_, graph) = places();
    let mut fewer = Edges::new();
    fewer.push("ohio", "state").unwrap();
    let cover = Cover::hypernyms(&graph, &fewer, 2, &[]).unwrap();
    assert_eq!((cover.released(), cover.k()), (&[1][..], 0));
}
