//! Covers of kinds: sets against a closure by Warshall, cycles, Tem's law and bound on them.

use std::sync::Arc;

use crate::common::{beyond, edges, laws, tem};
use fastdx::mechanism::tem::Truncation;
use fastdx::words::graph::{Edges, WordGraph};
use fastdx::{Cover, Error, Mechanism, Tem};
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

fn on(graph: WordGraph, cover: Cover, epsilon: f64) -> Tem {
    let tem = tem(
        Arc::new(graph),
        epsilon,
        Truncation::Gamma(f64::INFINITY),
        5,
    );
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
        for (rank, &y) in (0..).zip(&kinds) {
            prop_assert_eq!(cover.set(rank), below(y));
            let ratio = cover.weight(rank) * below(y).len() as f64;
            let first = cover.weight(0) * below(kinds[0]).len() as f64;
            prop_assert!((ratio / first - 1.0).abs() < 1e-8, "{} {}", ratio, first);
        }
        let tem = on(graph, cover, epsilon);
        prop_assert!(beyond(&laws(&tem), |a, b| tem.distance(a, b), epsilon) <= 1e-9);
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
fn a_word_that_becomes_one_of_its_own_kinds_is_convicted() {
    // Table I as printed: whatever is near.
    let (edges, graph) = places();
    let cover = Cover::hypernyms(&graph, &edges, 4, &[]).unwrap();
    let claim = on(graph, cover.clone(), 8.0);
    let mut own = laws(&claim);
    assert!(beyond(&own, |a, b| claim.distance(a, b), 8.0) <= 1e-9);
    for (w, law) in (0..).zip(&mut own) {
        for (y, p) in (0..).zip(law.iter_mut()) {
            let rank = cover.rank(y);
            if rank.is_none_or(|rank| !cover.outputs(w).contains(&rank)) {
                *p = 0.0;
            }
        }
    }
    assert!(beyond(&own, |a, b| claim.distance(a, b), 8.0) > 1e-9);
}
