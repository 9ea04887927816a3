//! The nearest outputs of a cover, from a word's nearest words.
//!
//! Of w's nearest words a, in order of distance, each is in the sets of its outputs C(a): the first
//! appearance of an output y is d(w, A_y), for every word nearer has been looked at.

use super::neighborhoods::List;
use crate::cover::Cover;
use crate::neighbors::Grid;

/// No more words are looked at once so many outputs have been found. More outputs cost more to find
/// and to keep, and save tries outside.
const ENOUGH: usize = 1024;

/// The outputs nearest to a word: entries of their ranks, by distance.
#[derive(Debug, Default)]
pub(super) struct Head {
    entries: Vec<u64>,
    end: u64,
}

/// Which outputs have been found: working memory.
#[derive(Default)]
pub(super) struct Found {
    stamps: Vec<u32>,
    stamp: u32,
}

impl Head {
    /// From the list of a word's nearest words.
    pub(super) fn fill(&mut self, cover: &Cover, list: List, grid: Grid, found: &mut Found) {
        found.begin(cover.released().len());
        self.entries.clear();
        self.end = u64::MAX;
        let mut last = 0;
        for &entry in list.entries {
            let start = grid.first_at(entry);
            // All words at one distance, or none: an output is at the least of its words'. Those at
            // the list's last distance may not all be in it.
            let unsure = list.entries.len() < cover.words()
                && start == grid.first_at(list.end.saturating_sub(1));
            if unsure || (start > last && self.entries.len() >= ENOUGH) {
                self.end = start;
                break;
            }
            last = start;
            // A damaged file that was not verified may hold any id.
            for &rank in cover.outputs(grid.id(entry).min(cover.words() as u32 - 1)) {
                if found.is_new(rank) {
                    self.entries.push(start | u64::from(rank));
                }
            }
        }
        // Lists within a radius are complete up to it.
        if self.end == u64::MAX && list.entries.len() < cover.words() {
            self.end = grid.first_at(list.end.saturating_sub(1));
        }
    }

    pub(super) fn list(&self) -> List<'_> {
        List {
            entries: &self.entries,
            end: self.end,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.entries)
    }

    pub(super) fn shrink(&mut self) {
        self.entries.shrink_to_fit();
    }
}

impl Found {
    fn begin(&mut self, outputs: usize) {
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamps.len() != outputs || self.stamp == 0 {
            self.stamps.clear();
            self.stamps.resize(outputs, 0);
            self.stamp = 1;
        }
    }

    fn is_new(&mut self, rank: u32) -> bool {
        std::mem::replace(&mut self.stamps[rank as usize], self.stamp) != self.stamp
    }
}
