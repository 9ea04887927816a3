//! Distances of many documents, and the nearest documents with rigorous pruning.

use super::bags::{Bag, BagSolver};
use super::cost::Costs;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, for_all, for_all_with, install, map_all_with};
use crate::words::space::MetricSpace;

/// Maximum bytes of a table of word distances.
const TABLE_BYTES: usize = 512 << 20;
/// Relative margin when bounds are compared: far above their rounding errors.
const MARGIN: f64 = 1e-9;

/// The distinct words of some documents, ascending: their distances stand in a table by position.
fn words_of<'a>(bags: impl Iterator<Item = &'a Bag>) -> Vec<u32> {
    let mut ids: Vec<u32> = bags.flat_map(|bag| bag.ids().iter().copied()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The position of a word, which is one of them.
fn place(words: &[u32], id: u32) -> usize {
    words.binary_search(&id).unwrap_or(0)
}

/// Distances between words of documents.
struct Table {
    rows: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Table {
    /// Computes the table; `None` if it would take too much memory.
    fn new(
        space: &dyn MetricSpace,
        rows: Vec<u32>,
        columns: Vec<u32>,
        control: &Control,
    ) -> Result<Option<Self>> {
        let width = columns.len();
        let size = rows.len().saturating_mul(width);
        if size > TABLE_BYTES / size_of::<f64>() {
            return Ok(None);
        }
        let mut values = vec![0.0; size];
        // Blocks that stay in the cache.
        const ROWS: usize = 64;
        const COLUMNS: usize = 256;
        let parts = values.chunks_mut(ROWS * width);
        for_all(parts.zip(rows.chunks(ROWS)), |(values, rows)| {
            control.check()?;
            for (i, some) in columns.chunks(COLUMNS).enumerate() {
                space.block(rows, some, &mut values[i * COLUMNS..], width);
            }
            Ok(())
        })?;
        Ok(Some(Table {
            rows,
            columns,
            values,
        }))
    }

    fn row(&self, place: usize) -> &[f64] {
        let width = self.columns.len();
        &self.values[place * width..][..width]
    }

    /// Fills in the costs between words of the rows and words of the columns.
    fn fill(&self, cost: &mut Costs<f64>, left: &[Vec<u32>; 2]) {
        let indices: Vec<usize> = left[1].iter().map(|&id| place(&self.columns, id)).collect();
        cost.fill_with(left[0].len(), indices.len(), |i, out| {
            let row = self.row(place(&self.rows, left[0][i]));
            for (out, &place) in out.iter_mut().zip(&indices) {
                *out = row[place];
            }
        });
    }
}

/// Computes the Earth Mover's distance of every bag of `a` to every bag of `b`, row by row. Without
/// `b`, it compares `a` with itself and computes each pair once. `control` counts the rows.
///
/// # Errors
/// The errors of [`bags::distance`](super::bags::distance).
pub fn pairwise(
    space: &dyn MetricSpace,
    a: &[Bag],
    b: Option<&[Bag]>,
    control: &Control,
) -> Result<Vec<f64>> {
    let others = b.unwrap_or(a);
    let columns = others.len();
    let mut out = vec![0.0; a.len() * columns];
    let words = words_of(a.iter().chain(b.unwrap_or(&[])));
    // A table pays only if its distances are used several times.
    let used: u64 = a.iter().map(|x| x.ids().len() as u64).sum::<u64>()
        * others.iter().map(|x| x.ids().len() as u64).sum::<u64>();
    let pays = used > 2 * (words.len() as u64).pow(2);
    install(a.len() * columns, 0, || {
        let table = match pays {
            true => Table::new(space, words.clone(), words, control)?,
            false => None,
        };
        let rows = out.chunks_mut(columns.max(1)).zip(a).enumerate();
        for_all_with(rows, BagSolver::default, |solver, (i, (row, x))| {
            let first = if b.is_none() { i + 1 } else { 0 };
            for (out, y) in row.iter_mut().zip(others).skip(first) {
                control.check()?;
                *out = match &table {
                    None => solver.between(space, x, y, control)?,
                    Some(table) => {
                        solver.distance(x, y, control, |cost, left| table.fill(cost, left))?
                    }
                };
            }
            control.advance(1);
            Ok(())
        })
    })??;
    if b.is_none() {
        for i in 0..columns {
            for j in 0..i {
                out[i * columns + j] = out[j * columns + i];
            }
        }
    }
    Ok(out)
}

/// The nearest documents, and statistics of the pruning.
#[derive(Clone, Debug, Default)]
pub struct Nearest {
    /// The indices of k documents per query, nearest first, ties by index.
    pub ids: Vec<u32>,
    /// Their Earth Mover's distances.
    pub distances: Vec<f64>,
    /// Pairs of a query and a document.
    pub pairs: u64,
    /// Pairs ruled out by a relaxed matching, which moves every word of the document to its nearest
    /// word of the query.
    pub by_relaxation: u64,
    /// Pairs ruled out by dual potentials: a few passes over the costs, without the common words.
    pub by_dual_bound: u64,
    /// Pairs whose exact distance was computed.
    pub exact: u64,
}

/// Finds the `k` documents nearest to every query, exactly. `control` counts the queries.
///
/// Lower bounds decide which distances are computed: a relaxed matching (Kusner et al. 2015) and dual
/// potentials. The bounds are proved, so pruning never changes an answer.
///
/// # Errors
/// [`Error::Parameter`] for `k` outside 1..=`documents.len()`; the errors of
/// [`bags::distance`](super::bags::distance).
pub fn nearest(
    space: &dyn MetricSpace,
    queries: &[Bag],
    documents: &[Bag],
    k: usize,
    control: &Control,
) -> Result<Nearest> {
    if k == 0 || k > documents.len() {
        let expected = format!("from 1 to the number of documents, {}", documents.len());
        return Err(Error::parameter("k", expected, k));
    }
    let words = words_of(documents.iter());
    let places = |bag: &Bag| -> Vec<usize> {
        let ids = bag.ids().iter();
        ids.map(|&id| place(&words, id)).collect()
    };
    let corpus = Corpus {
        space,
        documents,
        places: documents.iter().map(places).collect(),
        words,
    };
    let found: Vec<Nearest> = install(queries.len() * documents.len(), 0, || {
        map_all_with(queries, BagSolver::default, |solver, query| {
            let found = corpus.query(query, k, solver, control)?;
            control.advance(1);
            Ok(found)
        })
    })??;
    let mut all = Nearest::default();
    for one in found {
        all.ids.extend(one.ids);
        all.distances.extend(one.distances);
        all.pairs += one.pairs;
        all.by_relaxation += one.by_relaxation;
        all.by_dual_bound += one.by_dual_bound;
        all.exact += one.exact;
    }
    Ok(all)
}

struct Corpus<'a> {
    space: &'a dyn MetricSpace,
    documents: &'a [Bag],
    words: Vec<u32>,
    /// The places of each document's words.
    places: Vec<Vec<usize>>,
}

impl Corpus<'_> {
    /// Finds the `k` documents nearest to a bag, exactly, with as few exact distances as possible:
    ///
    /// 1. a cheap lower bound of every distance (the relaxed word mover's distance of Kusner et al.
    ///    2015), by which documents are ordered;
    /// 2. the exact distances of the first k documents, which give a limit;
    /// 3. of the others whose bound is within the limit, the bounds by dual potentials;
    /// 4. of these, in their order, the exact distances while the bound is within the limit.
    fn query(
        &self,
        query: &Bag,
        k: usize,
        solver: &mut BagSolver,
        control: &Control,
    ) -> Result<Nearest> {
        let own = query.ids().to_vec();
        let table = Table::new(self.space, self.words.clone(), own, control)?;
        // The distance from every word of the documents to the nearest word of the query.
        let nearest: Option<Vec<f64>> = table.as_ref().map(|table| {
            let least = |row: &[f64]| row.iter().copied().fold(f64::INFINITY, f64::min);
            let places = 0..self.words.len();
            places.map(|place| least(table.row(place))).collect()
        });
        let relaxed = |(bag, places): (&Bag, &Vec<usize>)| {
            let Some(nearest) = &nearest else { return 0.0 };
            let words = places.iter().zip(bag.counts());
            let sum: f64 = words.map(|(&p, &c)| nearest[p] * c as f64).sum();
            sum / bag.size() as f64
        };
        let bounds = self.documents.iter().zip(&self.places).map(relaxed);
        let mut order: Vec<(f64, u32)> = bounds.zip(0..).collect();
        let by_bound = |a: &(f64, u32), b: &(f64, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        order.sort_by(by_bound);
        let fill = |cost: &mut Costs<f64>, left: &[Vec<u32>; 2]| match &table {
            None => cost.fill(self.space, &left[0], &left[1]),
            Some(table) => table.fill(cost, left),
        };
        // The k best so far, ascending.
        let mut best: Vec<(f64, u32)> = Vec::with_capacity(k + 1);
        let limit = |best: &[(f64, u32)]| best[k - 1].0 * (1.0 + MARGIN);
        let mut found = Nearest {
            pairs: self.documents.len() as u64,
            ..Nearest::default()
        };
        let mut compute = |at: u32, best: &mut Vec<(f64, u32)>, solver: &mut BagSolver| {
            control.check()?;
            found.exact += 1;
            let document = &self.documents[at as usize];
            let entry = (solver.distance(document, query, control, fill)?, at);
            best.insert(best.partition_point(|b| *b < entry), entry);
            best.truncate(k);
            Ok::<(), Error>(())
        };
        for &(_, at) in &order[..k] {
            compute(at, &mut best, solver)?;
        }
        let within = order[k..]
            .iter()
            .filter(|(bound, _)| *bound <= limit(&best));
        let mut closer: Vec<(f64, u32)> = Vec::new();
        for &(_, at) in within {
            control.check()?;
            closer.push((solver.bound(&self.documents[at as usize], query, fill), at));
        }
        closer.sort_by(by_bound);
        for &(bound, at) in &closer {
            if bound <= limit(&best) {
                compute(at, &mut best, solver)?;
            }
        }
        found.by_relaxation = (order.len() - k - closer.len()) as u64;
        found.by_dual_bound = found.pairs - found.by_relaxation - found.exact;
        (found.distances, found.ids) = best.into_iter().unzip();
        Ok(found)
    }
}
