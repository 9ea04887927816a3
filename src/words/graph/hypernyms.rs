//! Covers whose outputs are kinds: "ohio → state", "techno → music", as in ICDM'19's table I.
//!
//! The output y stands for y and all words below it, A_y = {w : w is a … is a y}. It is released only
//! if A_y holds at least `least` words, so a word is at distance 0 from each of its kinds of that
//! size, and from no smaller one. The weight is 1/|A_y|, so that smaller kinds are likelier; else
//! every word would become "entity" as often as its next kind.
//!
//! Table I replaces a word by its kind alone. That is no d-privacy: a state never becomes "music", so
//! "music" proves that no state was written. The cover keeps Tem's law over all kinds, and its proof.

use super::Edges;
use crate::cover::Cover;
use crate::support::error::{Error, Result};
use crate::words::space::MetricSpace;

/// The most words that the sets of all kinds may hold in total.
const MOST: usize = 1 << 28;

/// The words of a cycle, each a kind of the one before, if there is one.
fn cycle(above: &[Vec<u32>]) -> Option<Vec<u32>> {
    let (mut path, mut done) = (Vec::new(), vec![false; above.len()]);
    // How many kinds of each word were followed; a word with some that is not done is on the path.
    let mut followed = vec![0; above.len()];
    for start in 0..above.len() as u32 {
        if !done[start as usize] {
            path.push(start);
        }
        while let Some(&word) = path.last() {
            let Some(&kind) = above[word as usize].get(followed[word as usize]) else {
                done[word as usize] = true;
                path.pop();
                continue;
            };
            followed[word as usize] += 1;
            if done[kind as usize] {
                continue;
            }
            if followed[kind as usize] > 0 {
                let at = path.iter().position(|&word| word == kind)?;
                return Some(path.split_off(at));
            }
            path.push(kind);
        }
    }
    None
}

/// The words of the space below each of its words, itself included, by id.
fn sets(space: &dyn MetricSpace, edges: &Edges, most: usize) -> Result<Vec<Vec<u32>>> {
    let (vocabulary, names) = (space.vocabulary(), edges.words());
    let mut above = vec![Vec::new(); names.len()];
    for &(word, kind) in edges.pairs() {
        above[word as usize].push(kind);
    }
    if let Some(cycle) = cycle(&above) {
        const SHOWN: usize = 10;
        let round = cycle.iter().take(SHOWN).chain(&cycle[..1]);
        let words = round.map(|&word| format!("{:?}", names[word as usize]));
        let got = format!(
            "{}, {} words in all",
            words.collect::<Vec<_>>().join(" → "),
            cycle.len()
        );
        let expected = "without a cycle: no word is its own kind";
        return Err(Error::parameter("edges", expected, got));
    }
    let ids: Vec<Option<u32>> = names.iter().map(|name| vocabulary.id(name)).collect();
    let mut sets = vec![Vec::new(); vocabulary.len()];
    let (mut seen, mut reached, mut total) = (vec![u32::MAX; names.len()], Vec::new(), 0);
    for (id, name) in (0..).zip(vocabulary.iter()) {
        let Some(start) = edges.id(name) else {
            sets[id as usize].push(id);
            continue;
        };
        reached.push(start);
        seen[start as usize] = id;
        while let Some(word) = reached.pop() {
            if let Some(kind) = ids[word as usize] {
                sets[kind as usize].push(id);
                total += 1;
            }
            for &kind in &above[word as usize] {
                if std::mem::replace(&mut seen[kind as usize], id) != id {
                    reached.push(kind);
                }
            }
        }
        if total > most {
            return Err(Error::TooLarge {
                what: "the sets of a cover of kinds".into(),
                needed: 8 * total as u64,
                limit: 8 * most as u64,
            });
        }
    }
    Ok(sets)
}

impl Cover {
    /// A cover in which the output y stands for y and all words below it, by edges (word, kind).
    /// Only kinds of at least `least` words of the space are released, with weight 1/|A_y|, and
    /// none of `exclude`.
    ///
    /// A word without such a kind, or without an edge, is at distance 0 from no output: like any
    /// word, it is replaced by kinds that are near in the space.
    ///
    /// ```
    /// use fastdx::words::graph::{Edges, WordGraph};
    /// use fastdx::Cover;
    /// let mut edges = Edges::new();
    /// for (word, kind) in [("ohio", "state"), ("utah", "state"), ("techno", "music")] {
    ///     edges.push(word, kind).unwrap();
    /// }
    /// let graph = WordGraph::new(&edges, None, None)?;
    /// let cover = Cover::hypernyms(&graph, &edges, 3, &[])?;
    /// assert_eq!(cover.released(), [1]); // state: itself, ohio, utah
    /// # Ok::<(), fastdx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parameter`] for a cycle, with its words, and for `least` = 0 or more words than the largest kind has;
    /// [`Error::WordId`]; [`Error::TooLarge`] for more than 2²⁸ words in all sets.
    pub fn hypernyms(
        space: &dyn MetricSpace,
        edges: &Edges,
        least: usize,
        exclude: &[u32],
    ) -> Result<Self> {
        space.vocabulary().check_ids(exclude)?;
        let mut sets = sets(space, edges, MOST)?;
        exclude.iter().for_each(|&y| sets[y as usize].clear());
        let largest = sets.iter().map(Vec::len).max().unwrap_or(0);
        if least == 0 || least > largest {
            let expected = format!("from 1 to {largest}, the words of the largest kind");
            return Err(Error::parameter("least", expected, least));
        }
        sets.iter_mut()
            .filter(|set| set.len() < least)
            .for_each(Vec::clear);
        let sizes: Vec<f64> = sets.iter().map(|set| set.len() as f64).collect();
        Self::from_members(space, sets)?.weighted(|y| 1.0 / sizes[y as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::graph::WordGraph;

    #[test]
    fn sets_that_do_not_fit_are_refused() {
        let names: Vec<String> = (0..50).map(|i| format!("w{i}")).collect();
        let mut edges = Edges::new();
        for pair in names.windows(2) {
            edges.push(&pair[0], &pair[1]).expect("an edge");
        }
        let graph = WordGraph::new(&edges, None, None).expect("a chain");
        assert!(sets(&graph, &edges, 50 * 51 / 2).is_ok());
        assert!(sets(&graph, &edges, 50 * 51 / 2 - 1).is_err());
    }
}
