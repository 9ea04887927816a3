//! Distances from a word to outputs, for tries outside the list.

use crate::cover::Cover;
use crate::words::space::MetricSpace;

/// Writes the distances from a word to some outputs: to words, or to the sets of a cover's ranks.
pub(super) fn output_distances(
    space: &dyn MetricSpace,
    id: u32,
    cover: Option<&Cover>,
    outputs: &[u32],
    out: &mut [f64],
) {
    let Some(cover) = cover else {
        return space.distances_to(id, outputs, out);
    };
    outputs.iter().for_each(|&y| cover.prefetch(y));
    let mut each = [0.0; 64];
    for (&y, out) in outputs.iter().zip(out) {
        *out = f64::INFINITY;
        let set = cover.set(y);
        if set.contains(&id) {
            let own = std::slice::from_mut(out);
            space.distances_to(id, &[id], own);
            if own == [0.0] {
                // No other word is nearer.
                continue;
            }
        }
        for some in set.chunks(each.len()) {
            let each = &mut each[..some.len()];
            space.distances_to(id, some, each);
            *out = each.iter().copied().fold(*out, f64::min);
        }
    }
}
