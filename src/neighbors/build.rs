//! Building all lists: blocks of words against all words, each block's lists in place.

use rayon::prelude::*;

use super::{Grid, NeighborLists};
use crate::error::{Error, Result};
use crate::parallel::{Control, install};
use crate::search::BATCH;
use crate::space::MetricSpace;

pub(super) fn build(
    space: &dyn MetricSpace,
    k: usize,
    memory: u64,
    control: &Control,
) -> Result<NeighborLists> {
    let words = space.vocabulary().len();
    if k == 0 || k > words {
        return Err(Error::parameter(
            "k",
            format!("between 1 and the {words} words"),
            k,
        ));
    }
    let needed = words as u64 * k as u64 * 8;
    let too_large = Error::TooLarge {
        what: format!("lists of {k} neighbours for {words} words"),
        needed,
        limit: memory,
    };
    let mut entries: Vec<u64> = Vec::new();
    if needed > memory || entries.try_reserve_exact(words * k).is_err() {
        return Err(too_large);
    }
    entries.resize(words * k, 0);
    let grid = Grid::of(space);
    install(words, 1, || {
        entries
            .par_chunks_mut(BATCH * k)
            .enumerate()
            .try_for_each(|(block, lists)| {
                control.check()?;
                let first = (block * BATCH) as u32;
                let count = lists.len() / k;
                let words: Vec<u32> = (first..first + count as u32).collect();
                space.neighbors(&words, grid, k, lists);
                control.advance(count);
                Ok(())
            })
    })??;
    Ok(NeighborLists {
        grid,
        k,
        entries: entries.into(),
    })
}
