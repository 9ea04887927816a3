//! Covers from words that are near in a graph.

use super::WordGraph;
use crate::cover::{Allowed, Build, Cover, each_block, finish};
use crate::distance::neighbors::Grid;
use crate::distance::search::BATCH;
use crate::support::error::{Error, Result};
use crate::support::parallel::Control;
use crate::words::space::{MetricSpace, WordMetric};

impl Cover {
    /// A cover in which C(w) holds the outputs within `steps` of w in a graph, including w. With
    /// `k`, only the k of them nearest in the space. Words that the graph does not know stand for
    /// themselves.
    ///
    /// # Errors
    /// The errors of [`nearest`](Self::nearest); [`Error::Parameter`] for steps that are negative
    /// or NaN.
    pub fn within(
        space: &dyn MetricSpace,
        graph: &WordGraph,
        steps: f64,
        k: Option<usize>,
        build: &Build,
        control: &Control,
    ) -> Result<Self> {
        if steps.is_nan() || steps < 0.0 {
            return Err(Error::parameter("steps", "at least 0", steps));
        }
        let allowed = Allowed::new(space, k.unwrap_or(1), build)?;
        let (vocabulary, nodes) = (space.vocabulary(), WordMetric::vocabulary(graph));
        // Map both ways: from a word to the graph's node, and from a node to the word.
        let node: Vec<Option<u32>> = vocabulary.iter().map(|word| nodes.id(word)).collect();
        let mut word = vec![None; nodes.len()];
        for (node, id) in node.iter().zip(0u32..) {
            if let Some(node) = node {
                word[*node as usize] = Some(id);
            }
        }
        let chosen = each_block(space, BATCH, control, |ids| {
            let mut steps_to = vec![0.0; nodes.len()];
            let each = ids.iter().map(|&w| {
                let mut near: Vec<(u64, u32)> = Vec::new();
                let distance = |y: u32| space.distance(w, y).to_bits();
                match node[w as usize] {
                    None => near.push((0, w)),
                    Some(from) => {
                        graph.distances(from, &mut steps_to);
                        let within = steps_to.iter().zip(&word);
                        let within = within.filter(|(d, _)| **d <= steps);
                        near.extend(within.filter_map(|(_, y)| y.map(|y| (distance(y), y))));
                    }
                }
                near.retain(|&(_, y)| allowed.is(y));
                near.sort_unstable();
                near.truncate(k.unwrap_or(usize::MAX));
                near.into_iter().map(|(_, y)| y).collect()
            });
            each.collect()
        })?;
        let grid = space.lists().map_or_else(|| Grid::of(space), |l| l.grid());
        finish(space, chosen, build, &allowed, grid, control)
    }
}
