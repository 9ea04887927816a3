//! Builds all neighbour lists: blocks of words against all words, each block's lists in place.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::distance::neighbors::{Extent, Grid, NeighborLists};
use crate::distance::search::batch_size;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, for_all, install, map_all_with};
use crate::words::space::MetricSpace;

impl Grid {
    /// Returns the grid of a space. Its diameter is at most twice the largest distance from one
    /// word.
    pub fn of(space: &dyn MetricSpace) -> Self {
        Grid::new(space.vocabulary().len(), 2.0 * space.farthest())
    }
}

/// Words whose lists are counted to predict the total size.
const SAMPLE: usize = 128;

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
            extent: Extent::Nearest(k),
            entries: entries.into(),
        })
    }

    /// Builds the lists of all words within `radius` of each word; TEM'21 uses γ as the radius.
    /// Where TEM is useful, these lists hold nearly every word.
    ///
    /// `memory` limits the bytes of the result. It is compared with a prediction from a sample of
    /// words before the work begins, and with the actual size during the work.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a radius that is negative or NaN, [`Error::TooLarge`] with the
    /// predicted size, [`Error::Interrupted`].
    pub fn build_within(
        space: &dyn MetricSpace,
        radius: f64,
        memory: u64,
        control: &Control,
    ) -> Result<NeighborLists> {
        if radius.is_nan() || radius < 0.0 {
            return Err(Error::parameter("radius", "at least 0", radius));
        }
        let words = space.vocabulary().len();
        let grid = Grid::of(space);
        // No word is farther than the diameter.
        let last = grid.last_at(radius.min(grid.step() * 2f64.powi(51)));
        let too_large = |entries: f64| Error::TooLarge {
            what: format!(
                "lists of all words within {radius} of each of {words} words, predicted from some of \
                 them,"
            ),
            needed: (entries * 8.0) as u64,
            limit: memory,
        };
        let room = (memory / 8) as usize;
        let list = |id: u32, row: &mut Vec<f64>| {
            row.resize(words, 0.0);
            space.distances(id, row);
            let entries = row.iter().zip(0..).map(|(&d, y)| grid.entry(d, y));
            entries.filter(|&e| e <= last).collect::<Vec<u64>>()
        };
        install(words, 1, || {
            let sample: Vec<u32> = (0..words)
                .step_by(words.div_ceil(SAMPLE))
                .map(|w| w as u32)
                .collect();
            let count = |row: &mut Vec<f64>, &id: &u32| Ok(list(id, row).len());
            let counted: usize = map_all_with(&sample, Vec::new, count)?.iter().sum();
            let predicted = counted as f64 / sample.len() as f64 * words as f64;
            if predicted > room as f64 {
                return Err(too_large(predicted));
            }
            let (total, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let lists = map_all_with(0..words as u32, Vec::new, |row, id| {
                control.check()?;
                let mut list = list(id, row);
                list.sort_unstable();
                let total = total.fetch_add(list.len(), Ordering::Relaxed) + list.len();
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                if total > room {
                    return Err(too_large(total as f64 / done as f64 * words as f64));
                }
                control.advance(1);
                Ok(list)
            })?;
            let mut starts = vec![0u64];
            let mut entries = Vec::new();
            if entries.try_reserve_exact(total.into_inner()).is_err() {
                return Err(too_large(predicted));
            }
            for list in lists {
                entries.extend(list);
                starts.push(entries.len() as u64);
            }
            Ok(NeighborLists {
                grid,
                extent: Extent::Within(last, starts.into()),
                entries: entries.into(),
            })
        })?
    }
}
