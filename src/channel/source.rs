//! The laws of a mechanism by rows and by columns, each computed by the fastest method.

use std::any::Any;
use std::sync::Arc;

use super::estimated::Estimated;
use crate::cover::Cover;
use crate::mechanism::Mechanism;
use crate::mechanism::neighbor_response::NeighborResponse;
use crate::mechanism::remapped::Remapped;
use crate::mechanism::tem::Tem;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, install, map_all};
use crate::words::space::rows_together;

/// Pr\[y|w\] of one output y and every word w.
pub(super) type Column = Arc<[f64]>;

/// Columns whose distances are computed together.
const COLUMNS_TOGETHER: usize = 16;

/// Takes each word, its law and its normaliser.
type EachLaw<'a> = dyn FnMut(u32, &[f64], f64) + 'a;

/// The source of a mechanism's laws.
pub(super) enum Source {
    Tem(Tem),
    Response(NeighborResponse),
    Remapped(Box<Source>, Arc<Cover>, Remapped),
    /// Computes columns from the laws of all words.
    Rows(Arc<dyn Mechanism>),
    /// Estimates laws from draws.
    Estimated(Box<Estimated>),
}

/// The error for a law that could not be computed although its mechanism has one.
fn no_law() -> Error {
    Error::parameter(
        "mechanism",
        "one whose law can be computed",
        "one whose function of laws failed",
    )
}

impl Source {
    pub(super) fn of(mechanism: &Arc<dyn Mechanism>) -> Self {
        Self::closed(&**mechanism).unwrap_or_else(|| Source::Rows(mechanism.clone()))
    }

    /// The source of a mechanism whose columns have a closed form.
    fn closed(mechanism: &dyn Mechanism) -> Option<Self> {
        // The mechanism itself, not one that it wraps.
        let exactly = mechanism as &dyn Any;
        if let Some(tem) = exactly.downcast_ref::<Tem>() {
            return Some(Source::Tem(tem.clone()));
        }
        if let Some(response) = exactly.downcast_ref::<NeighborResponse>() {
            return Some(Source::Response(response.clone()));
        }
        let remapped = exactly.downcast_ref::<Remapped>()?;
        let inner = Box::new(Self::closed(remapped.inner()?)?);
        Some(Source::Remapped(
            inner,
            remapped.cover().clone(),
            remapped.clone(),
        ))
    }

    /// Whether columns are computed from normalisers, which need a pass over all words.
    pub(super) fn needs_totals(&self) -> bool {
        match self {
            Source::Tem(_) => true,
            Source::Remapped(inner, _, _) => inner.needs_totals(),
            Source::Response(_) | Source::Rows(_) | Source::Estimated(_) => false,
        }
    }

    /// Whether a column needs the laws of all words.
    pub(super) fn columns_by_rows(&self) -> bool {
        matches!(self, Source::Rows(_))
    }

    /// Calls a function with each word, its law and its normaliser (1 without one).
    pub(super) fn each_law(&self, ids: &[u32], words: usize, one: &mut EachLaw<'_>) -> Result<()> {
        let mut law = vec![0.0; words];
        let of: &dyn Fn(u32, &mut [f64]) -> bool = match self {
            Source::Tem(tem) => {
                tem.each_law(ids, one);
                return Ok(());
            }
            Source::Remapped(inner, _, remapped) => {
                return inner.each_law(ids, words, &mut |id, before, total| {
                    law.copy_from_slice(before);
                    remapped.spread(&mut law);
                    one(id, &law, total);
                });
            }
            Source::Response(response) => &|id, law| response.law(id, law),
            Source::Rows(mechanism) => &|id, law| mechanism.law(id, law),
            Source::Estimated(estimated) => &|id, law| {
                estimated.law(id, law);
                true
            },
        };
        for &id in ids {
            if !of(id, &mut law) {
                return Err(no_law());
            }
            one(id, &law, 1.0);
        }
        Ok(())
    }

    /// The law of the replacement of an unknown word.
    pub(super) fn unknown(&self, words: usize) -> Vec<f64> {
        let uniform = |excluded: &[u32]| {
            let mut law = vec![1.0 / (words - excluded.len()) as f64; words];
            excluded.iter().for_each(|&id| law[id as usize] = 0.0);
            law
        };
        match self {
            Source::Tem(tem) => {
                let excluded = tem.cover().map_or_else(Vec::new, |c| c.excluded_ids());
                let Some(base) = tem.base() else {
                    return uniform(&excluded);
                };
                let mut law: Vec<f64> = base.weights().iter().map(|&q| q.into()).collect();
                excluded.iter().for_each(|&id| law[id as usize] = 0.0);
                let sum: f64 = law.iter().sum();
                law.iter_mut().for_each(|p| *p /= sum);
                law
            }
            Source::Response(response) => uniform(&response.excluded()),
            Source::Rows(mechanism) => unknown_of(&**mechanism, uniform),
            Source::Estimated(estimated) => unknown_of(&*estimated.mechanism, uniform),
            Source::Remapped(inner, _, remapped) => {
                let mut law = inner.unknown(words);
                remapped.spread(&mut law);
                law
            }
        }
    }

    /// Writes a column if it has a closed form.
    fn column(&self, y: u32, totals: &[f64], out: &mut [f64]) {
        match self {
            Source::Tem(tem) => tem.columns(&[y], totals, out),
            Source::Response(response) => response.column(y, out),
            Source::Remapped(inner, cover, _) => {
                out.fill(0.0);
                let mut before = vec![0.0; out.len()];
                let set = cover.rank(y).map_or(&[][..], |rank| cover.set(rank));
                for &from in set {
                    inner.column(from, totals, &mut before);
                    let each = cover.outputs(from).len() as f64;
                    for (p, b) in out.iter_mut().zip(&before) {
                        *p += b / each;
                    }
                }
            }
            Source::Estimated(estimated) => estimated.column(y, out),
            Source::Rows(_) => out.fill(0.0),
        }
    }

    /// The columns of some outputs, in parallel.
    pub(super) fn columns(
        &self,
        outputs: &[u32],
        words: usize,
        totals: &[f64],
        control: &Control,
    ) -> Result<Vec<Column>> {
        let Source::Rows(mechanism) = self else {
            return install(outputs.len() * words, 0, || {
                let each = outputs.len().div_ceil(rayon::current_num_threads());
                let each = each.clamp(1, COLUMNS_TOGETHER);
                let parts: Vec<Vec<Column>> = map_all(outputs.chunks(each), |outputs| {
                    control.check()?;
                    let mut columns = vec![0.0; outputs.len() * words];
                    match self {
                        Source::Tem(tem) => tem.columns(outputs, totals, &mut columns),
                        _ => {
                            let each = columns.chunks_exact_mut(words).zip(outputs);
                            each.for_each(|(column, &y)| self.column(y, totals, column));
                        }
                    }
                    Ok(columns.chunks_exact(words).map(Column::from).collect())
                })?;
                Ok(parts.concat())
            })?;
        };
        let ids: Vec<u32> = (0..words as u32).collect();
        let together = rows_together(words);
        let parts: Vec<Vec<f64>> = install(words * words, 0, || {
            map_all(ids.chunks(together), |ids| {
                control.check()?;
                let mut law = vec![0.0; words];
                let mut part = Vec::with_capacity(ids.len() * outputs.len());
                for &id in ids {
                    if !mechanism.law(id, &mut law) {
                        return Err(no_law());
                    }
                    part.extend(outputs.iter().map(|&y| law[y as usize]));
                }
                Ok(part)
            })
        })??;
        let rows = || parts.iter().flat_map(|part| part.chunks(outputs.len()));
        let column = |at: usize| rows().map(|row| row[at]).collect();
        Ok((0..outputs.len()).map(column).collect())
    }
}

/// The law of the replacement of an unknown word: that of the mechanism, or of the mechanism that
/// it remaps.
fn unknown_of(mechanism: &dyn Mechanism, uniform: impl Fn(&[u32]) -> Vec<f64>) -> Vec<f64> {
    let Some(remapped) = (mechanism as &dyn Any).downcast_ref::<Remapped>() else {
        return uniform(&mechanism.excluded());
    };
    // For a remapping, take the inner mechanism's draw.
    let inner = remapped.inner().map_or_else(Vec::new, Mechanism::excluded);
    let mut law = uniform(&inner);
    remapped.spread(&mut law);
    law
}
