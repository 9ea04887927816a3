//! The laws of a mechanism by rows and by columns, each computed by the fastest method.

use std::any::Any;
use std::sync::Arc;

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

pub(super) enum Source {
    Tem(Tem),
    Response(NeighborResponse),
    Remapped(Box<Source>, Remapped),
    /// Computes columns from the laws of all words.
    Rows(Arc<dyn Mechanism>),
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
        // The mechanism itself, not one that it wraps.
        let exactly: &dyn Any = &**mechanism;
        if let Some(tem) = exactly.downcast_ref::<Tem>() {
            Source::Tem(tem.clone())
        } else if let Some(response) = exactly.downcast_ref::<NeighborResponse>() {
            Source::Response(response.clone())
        } else if let Some(remapped) = exactly.downcast_ref::<Remapped>() {
            Source::Remapped(Box::new(Self::of(remapped.remaps())), remapped.clone())
        } else {
            Source::Rows(mechanism.clone())
        }
    }

    fn mechanism(&self) -> &dyn Mechanism {
        match self {
            Source::Tem(tem) => tem,
            Source::Response(response) => response,
            Source::Remapped(_, remapped) => remapped,
            Source::Rows(mechanism) => &**mechanism,
        }
    }

    /// The source whose outputs are remapped; a source without remapping itself.
    fn innermost(&self) -> &Self {
        match self {
            Source::Remapped(inner, _) => inner.innermost(),
            _ => self,
        }
    }

    /// Whether columns are computed from normalisers, which need a pass over all words.
    pub(super) fn needs_totals(&self) -> bool {
        matches!(self.innermost(), Source::Tem(_))
    }

    /// Whether a column needs the laws of all words.
    pub(super) fn columns_by_rows(&self) -> bool {
        matches!(self.innermost(), Source::Rows(_))
    }

    /// Calls a function with each word, its law and its normaliser (1 without one).
    pub(super) fn each_law(&self, ids: &[u32], words: usize, one: &mut EachLaw<'_>) -> Result<()> {
        let mut law = vec![0.0; words];
        match self {
            Source::Tem(tem) => {
                tem.each_law(ids, one);
                Ok(())
            }
            Source::Remapped(inner, remapped) => {
                inner.each_law(ids, words, &mut |id, before, total| {
                    law.copy_from_slice(before);
                    remapped.spread(&mut law);
                    one(id, &law, total);
                })
            }
            Source::Response(_) | Source::Rows(_) => ids.iter().try_for_each(|&id| {
                self.fill(id, &mut law)?;
                one(id, &law, 1.0);
                Ok(())
            }),
        }
    }

    fn fill(&self, id: u32, law: &mut [f64]) -> Result<()> {
        match self.mechanism().law(id, law) {
            true => Ok(()),
            false => Err(no_law()),
        }
    }

    /// The law of the replacement of an unknown word.
    pub(super) fn unknown(&self, words: usize) -> Vec<f64> {
        if let Source::Remapped(inner, remapped) = self {
            let mut law = inner.unknown(words);
            remapped.spread(&mut law);
            return law;
        }
        let mut law = vec![1.0; words];
        if let Source::Tem(tem) = self
            && let Some(base) = tem.base()
        {
            law = base.weights().iter().map(|&q| q.into()).collect();
        }
        let excluded = self.mechanism().excluded();
        excluded.iter().for_each(|&id| law[id as usize] = 0.0);
        let sum: f64 = law.iter().sum();
        law.iter_mut().for_each(|p| *p /= sum);
        law
    }

    /// Writes a column that has a closed form.
    fn column(&self, y: u32, totals: &[f64], out: &mut [f64]) {
        match self {
            Source::Tem(tem) => tem.columns(&[y], totals, out),
            Source::Response(response) => response.column(y, out),
            Source::Remapped(inner, remapped) => {
                out.fill(0.0);
                let mut before = vec![0.0; out.len()];
                let cover = remapped.cover();
                let set = cover.rank(y).map_or(&[][..], |rank| cover.set(rank));
                for &from in set {
                    inner.column(from, totals, &mut before);
                    let each = cover.outputs(from).len() as f64;
                    for (p, b) in out.iter_mut().zip(&before) {
                        *p += b / each;
                    }
                }
            }
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
        if !self.columns_by_rows() {
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
        }
        let ids: Vec<u32> = (0..words as u32).collect();
        let parts: Vec<Vec<f64>> = install(words * words, 0, || {
            map_all(ids.chunks(rows_together(words)), |ids| {
                control.check()?;
                let mut law = vec![0.0; words];
                let mut part = Vec::with_capacity(ids.len() * outputs.len());
                for &id in ids {
                    self.fill(id, &mut law)?;
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
