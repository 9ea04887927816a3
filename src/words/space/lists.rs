//! Builds all neighbour lists: blocks of words against all words, each block's lists in place.

use crate::distance::neighbors::{Grid, NeighborLists};
use crate::distance::search::batch_size;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, for_all, install};
use crate::words::space::MetricSpace;

impl Grid {
    /// Returns the grid of a space. Its diameter is at most twice the largest distance from one
    /// word.
    pub fn of(space: &dyn MetricSpace) -> Self {
        Grid::new(space.vocabulary().len(), 2.0 * space.farthest())
    }
}

impl NeighborLists {
    /// Builds the lists of a space, in parallel, exactly.
    ///
    /// `memory` limits the bytes of the result; it is checked before anything is allocated.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a `k` outside 1..=V, [`Error::TooLarge`], [`Error::Interrupted`].
    pub fn build(
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
            let block = batch_size(words, rayon::current_num_threads());
            for_all(entries.chunks_mut(block * k).enumerate(), |(i, lists)| {
                control.check()?;
                let first = (i * block) as u32;
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
}
