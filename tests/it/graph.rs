//! Word graphs: shortest paths. The law of Tem on them: covers.rs.

use crate::common::{edges, graph};
use fastdx::MetricSpace;
use fastdx::words::graph::WordGraph;
use proptest::prelude::*;

/// All distances by the Floyd-Warshall algorithm.
fn all_pairs(words: usize, pairs: &[(usize, usize)], weights: &[f64]) -> Vec<Vec<f64>> {
    let mut d = vec![vec![f64::INFINITY; words]; words];
    (0..words).for_each(|w| d[w][w] = 0.0);
    for (&(u, v), &w) in pairs.iter().zip(weights) {
        d[u][v] = d[u][v].min(w);
        d[v][u] = d[u][v];
    }
    for k in 0..words {
        for i in 0..words {
            for j in 0..words {
                d[i][j] = d[i][j].min(d[i][k] + d[k][j]);
            }
        }
    }
    d
}

fn rows(graph: &WordGraph) -> Vec<Vec<f64>> {
    let row = |a| {
        let mut row = vec![0.0; graph.len()];
        graph.distances(a, &mut row);
        row
    };
    (0..graph.len() as u32).map(row).collect()
}

fn check(words: usize, pairs: &[(usize, usize)], weights: &[f64]) {
    let graph = graph(words, pairs, Some(weights));
    let exact = all_pairs(words, pairs, weights);
    let finite = exact.iter().flatten().filter(|d| d.is_finite());
    let diameter = finite.clone().fold(0.0f64, |a, &d| a.max(d));
    let far = graph.unreachable_distance();
    assert_eq!(far.is_some(), finite.count() < words * words);
    assert!(far.is_none_or(|far| far > diameter));
    let found = rows(&graph);
    for (found, exact) in found.iter().flatten().zip(exact.iter().flatten()) {
        let expected = if exact.is_finite() {
            *exact
        } else {
            far.unwrap()
        };
        assert!(
            (found - expected).abs() <= 1e-9 * expected,
            "{found} {expected}"
        );
    }
    whole(&graph);
    assert_eq!(
        found,
        rows(&WordGraph::from_bytes(&graph.to_bytes()).unwrap())
    );
    part(&graph, words, pairs, weights);
}

/// Single distances are those of the rows.
fn whole(graph: &WordGraph) {
    let rows = rows(graph);
    for (a, row) in (0..).zip(&rows) {
        assert!((0..).zip(row).all(|(b, &d)| graph.distance(a, b) == d));
        assert!((0..).zip(row).all(|(b, &d)| graph.distance(b, a) == d));
    }
}

/// With only every third word, the last first, distances are the same.
fn part(all: &WordGraph, words: usize, pairs: &[(usize, usize)], weights: &[f64]) {
    let edges = edges(words, pairs);
    let only = (0..words).rev().step_by(3).map(|w| format!("w{w}"));
    let only: Vec<String> = only.collect();
    let names: Vec<&str> = only.iter().map(|w| &**w).collect();
    let part = WordGraph::new(&edges, Some(weights), Some(&names)).unwrap();
    let part = WordGraph::from_bytes(&part.to_bytes()).unwrap();
    assert_eq!(part.len(), names.len());
    whole(&part);
    let id = |w: u32| all.vocabulary().require(names[w as usize]).unwrap();
    for (a, b) in (0..part.len() as u32).flat_map(|a| (0..part.len() as u32).map(move |b| (a, b))) {
        let (expected, found) = (all.distance(id(a), id(b)), part.distance(a, b));
        if Some(expected) == all.unreachable_distance() {
            assert_eq!(Some(found), part.unreachable_distance());
        } else {
            // Fractional lengths are added in the order of the part's own ids: equal up to
            // rounding.
            assert!((found - expected).abs() <= 1e-12 * expected);
        }
    }
}

prop_compose! {
    fn forests()(words in 1usize..40)(
        parents in prop::collection::vec(prop::option::weighted(0.9, any::<prop::sample::Index>()), words),
        weights in prop::collection::vec(0u32..5, words),
        order in Just((0..words).collect::<Vec<_>>()).prop_shuffle(),
    ) -> (usize, Vec<(usize, usize)>, Vec<f64>) {
        let mut pairs = Vec::new();
        let mut lengths = Vec::new();
        for (i, parent) in parents.iter().enumerate().skip(1) {
            if let Some(parent) = parent {
                pairs.push((order[i], order[parent.index(i)]));
                lengths.push(f64::from(weights[i]) * 0.25);
            }
        }
        (parents.len(), pairs, lengths)
    }
}

prop_compose! {
    fn graphs()(words in 2usize..25)(
        pairs in prop::collection::vec((0..words, 0..words, 0u32..6), 0..60),
        words in Just(words),
    ) -> (usize, Vec<(usize, usize)>, Vec<f64>) {
        let pairs: Vec<_> = pairs.into_iter().filter(|(u, v, _)| u != v).collect();
        let edges = pairs.iter().map(|&(u, v, _)| (u, v)).collect();
        (words, edges, pairs.iter().map(|p| f64::from(p.2) * 0.5).collect())
    }
}

prop_compose! {
    /// Real lengths need rows.
    fn real_graphs()((words, pairs, weights) in graphs(), scale in 1e-3f64..1e3)
        -> (usize, Vec<(usize, usize)>, Vec<f64>)
    {
        let each = weights.iter().zip(1u32..);
        let weights = each.map(|(w, i)| (w + 1.0) * scale * (1.0 + f64::from(i).sqrt()));
        (words, pairs, weights.collect())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(900))]

    #[test]
    fn distances_are_those_of_floyd_and_warshall(
        (words, pairs, weights) in prop_oneof![forests(), graphs(), real_graphs()],
    ) {
        check(words, &pairs, &weights);
    }
}
