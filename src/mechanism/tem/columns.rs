//! The law of Tem by columns: Pr\[y|w\] of one output y for every word w, with the normalisers that
//! columns need.
//!
//! A weight is the integer that the sampler uses, as a float, which is exact. Normalisers are sums of
//! such floats, with a relative error of 10⁻¹⁵.

use super::Tem;
use crate::law::{self, base::BaseMeasure};
use crate::words::space::{MetricSpace, rows_together};

/// Words whose scores are computed together: their rows stay in the second-level cache.
const WORDS_PER_BATCH: usize = 8;

impl Tem {
    /// Calls a function with each word, its law (every output's probability, by id), and the
    /// normaliser relative to the largest weight.
    pub(crate) fn each_law(&self, ids: &[u32], mut one: impl FnMut(u32, &[f64], f64)) {
        let words = self.space.vocabulary().len();
        let (mut distances, mut covered) = (Vec::new(), Vec::new());
        let mut law = vec![0.0; words];
        for ids in ids.chunks(rows_together(words)) {
            // Compute distances of many words at once; compute scores of as many as stay in the
            // second-level cache.
            distances.resize(ids.len() * words, 0.0);
            self.space.rows(ids, &mut distances);
            let rows = distances.chunks_mut(WORDS_PER_BATCH * words);
            for (ids, rows) in ids.chunks(WORDS_PER_BATCH).zip(rows) {
                self.round(rows);
                let scores = match &self.cover {
                    None => rows,
                    Some(cover) => {
                        cover.scores_of_rows(rows, &mut covered);
                        &mut covered
                    }
                };
                let ranks = scores.len() / ids.len();
                for (&id, scores) in ids.iter().zip(scores.chunks_exact_mut(ranks)) {
                    let total = self.weigh(scores);
                    scores.iter_mut().for_each(|p| *p *= 1.0 / total);
                    self.place(scores, &mut law);
                    one(id, &law, total);
                }
            }
        }
    }

    /// Writes Pr\[y|w\] of some outputs y and every word w, a row for each output, from the normalisers
    /// that [`each_law`](Self::each_law) gives.
    pub(crate) fn columns(&self, outputs: &[u32], totals: &[f64], out: &mut [f64]) {
        let (eta, base) = (self.epsilon / 2.0, self.base.as_deref());
        if self.cover.is_none() {
            self.space.rows(outputs, out);
        }
        for (row, &y) in out.chunks_exact_mut(totals.len()).zip(outputs) {
            if let Some(cover) = &self.cover {
                let Some(rank) = cover.rank(y) else {
                    row.fill(0.0);
                    continue;
                };
                nearest_of(&*self.space, cover.set(rank), row);
            }
            self.round(row);
            law::weights(row, eta, self.gamma, base.map_or(0, BaseMeasure::shift));
            let share = base.map_or(1.0, |base| base.shares()[y as usize]);
            for (p, total) in row.iter_mut().zip(totals) {
                *p *= share / total;
            }
        }
    }
}

/// Writes the distance from every word to the nearest of `words`.
fn nearest_of(space: &dyn MetricSpace, words: &[u32], out: &mut [f64]) {
    out.fill(f64::INFINITY);
    let lower = |out: &mut [f64], row: &[f64]| {
        for (least, &d) in out.iter_mut().zip(row) {
            *least = if d < *least { d } else { *least };
        }
    };
    let mut rows = Vec::new();
    for words in words.chunks(rows_together(out.len())) {
        rows.resize(words.len() * out.len(), 0.0);
        space.rows(words, &mut rows);
        rows.chunks_exact(out.len()).for_each(|row| lower(out, row));
    }
}
