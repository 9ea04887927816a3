//! Distances of many documents, and the nearest documents with rigorous pruning.

use super::bags::{Bag, BagSolver};
use super::cost::Costs;
use crate::distance::metric::Metric;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, for_all, for_all_with, install, map_all_with};
use crate::words::space::MetricSpace;

/// Maximum bytes of a table of word distances.
const TABLE_BYTES: usize = 512 << 20;
/// Relative margin when bounds are compared: far above their rounding errors.
const MARGIN: f64 = 1e-9;

/// The distinct words of some documents, numbered by position, so that their distances can stand in
/// a table.
#[derive(Clone)]
struct DocumentWords {
    ids: Vec<u32>,
}

impl DocumentWords {
    fn of<'a>(bags: impl Iterator<Item = &'a Bag>) -> Self {
        let mut ids: Vec<u32> = bags.flat_map(|bag| bag.ids().iter().copied()).collect();
        ids.sort_unstable();
        ids.dedup();
        DocumentWords { ids }
    }

    fn index(&self, id: u32) -> usize {
        // All words of the documents are in the list.
        self.ids.binary_search(&id).unwrap_or(0)
    }
}

/// Distances between words of documents.
struct Table {
    rows: DocumentWords,
    columns: DocumentWords,
    values: Vec<f64>,
}

impl Table {
    /// Computes the table; `None` if it would take too much memory.
    fn new(
        space: &dyn MetricSpace,
        rows: DocumentWords,
        columns: DocumentWords,
        control: &Control,
    ) -> Result<Option<Self>> {
        let width = columns.ids.len();
        let size = rows.ids.len().saturating_mul(width);
        if size > TABLE_BYTES / size_of::<f64>() {
            return Ok(None);
        }
        let mut values = vec![0.0; size];
        // Blocks that stay in the cache.
        const ROWS: usize = 64;
        const COLUMNS: usize = 256;
        let parts = values.chunks_mut(ROWS * width);
        for_all(parts.zip(rows.ids.chunks(ROWS)), |(values, rows)| {
            control.check()?;
            for (i, some) in columns.ids.chunks(COLUMNS).enumerate() {
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
        let width = self.columns.ids.len();
        &self.values[place * width..][..width]
    }

    /// Fills in the costs between words of the rows and words of the columns.
    fn fill(&self, cost: &mut Costs<f64>, left: &[Vec<u32>; 2]) {
        let indices: Vec<usize> = left[1].iter().map(|&id| self.columns.index(id)).collect();
        cost.fill_with(left[0].len(), indices.len(), |i, out| {
            let row = self.row(self.rows.index(left[0][i]));
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
    let words = DocumentWords::of(a.iter().chain(b.unwrap_or(&[])));
    // A table pays only if its distances are used several times.
    let used: u64 = a.iter().map(|x| x.ids().len() as u64).sum::<u64>()
        * others.iter().map(|x| x.ids().len() as u64).sum::<u64>();
    let pays = used > 2 * (words.ids.len() as u64).pow(2);
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
    /// Pairs ruled out by the distance of their centroids.
    pub by_centroid: u64,
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
/// Lower bounds decide which distances are computed (Kusner et al. 2015): the distance of the
/// centroids (for metrics from a norm), a relaxed matching, and dual potentials. The bounds are
/// proved, so pruning never changes an answer.
///
/// # Errors
/// [`Error::Parameter`] for `k` outside 1..=`documents.len()`; the errors of
/// [`bags::distance`](super::bags::distance).
pub fn nearest(
    space: &dyn MetricSpace,
    vectors: Option<Centroids<'_>>,
    queries: &[Bag],
    documents: &[Bag],
    k: usize,
    control: &Control,
) -> Result<Nearest> {
    if k == 0 || k > documents.len() {
        let expected = format!("from 1 to the number of documents, {}", documents.len());
        return Err(Error::parameter("k", expected, k));
    }
    let words = DocumentWords::of(documents.iter());
    let indices: Vec<Vec<u32>> = documents
        .iter()
        .map(|bag| bag.ids().iter().map(|&id| words.index(id) as u32).collect())
        .collect();
    let centroids: Vec<Vec<f64>> = match &vectors {
        Some(vectors) => documents.iter().map(|bag| vectors.centroid(bag)).collect(),
        None => Vec::new(),
    };
    let corpus = Corpus {
        space,
        vectors,
        documents,
        words,
        indices,
        centroids,
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
        all.by_centroid += one.by_centroid;
        all.by_relaxation += one.by_relaxation;
        all.by_dual_bound += one.by_dual_bound;
        all.exact += one.exact;
    }
    Ok(all)
}

/// Vectors whose weighted means give a lower bound on the distance of two bags; the metric must
/// come from a norm.
#[derive(Clone, Copy, Debug)]
pub struct Centroids<'a> {
    embedding: &'a crate::Embedding,
}

impl<'a> Centroids<'a> {
    /// Returns the vectors of an embedding, if its metric comes from a norm.
    pub fn of(embedding: &'a crate::Embedding) -> Option<Self> {
        let norm = matches!(
            embedding.metric(),
            Metric::Euclidean | Metric::Manhattan | Metric::Chebyshev
        );
        norm.then_some(Centroids { embedding })
    }

    /// Returns the mean of a bag's vectors, followed by a bound on its rounding error.
    fn centroid(&self, bag: &Bag) -> Vec<f64> {
        let mut mean = vec![0.0; self.embedding.dim()];
        let mut size_of_terms = 0.0;
        for (&id, &count) in bag.ids().iter().zip(bag.counts()) {
            for (mean, &x) in mean.iter_mut().zip(self.embedding.vector(id)) {
                let term = f64::from(x) * count as f64;
                *mean += term;
                size_of_terms += term.abs();
            }
        }
        let size = bag.size() as f64;
        mean.iter_mut().for_each(|x| *x /= size);
        let roundings = bag.ids().len() as f64 + 8.0;
        mean.push(size_of_terms / size * roundings * f64::EPSILON);
        mean
    }

    /// Returns the distance of two centroids, reduced by more than rounding can have added.
    fn distance(&self, a: &[f64], b: &[f64]) -> f64 {
        let [Some((off_a, a)), Some((off_b, b))] = [a, b].map(<[f64]>::split_last) else {
            return 0.0;
        };
        let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
        let distance = match self.embedding.metric() {
            Metric::Manhattan => differences.sum(),
            Metric::Chebyshev => differences.fold(0.0, f64::max),
            _ => differences.map(|d| d * d).sum::<f64>().sqrt(),
        };
        let size: f64 = a.iter().chain(b).map(|x| x.abs()).sum();
        f64::max(distance - 1e-12 * size - off_a - off_b, 0.0)
    }
}

struct Corpus<'a> {
    space: &'a dyn MetricSpace,
    vectors: Option<Centroids<'a>>,
    documents: &'a [Bag],
    words: DocumentWords,
    indices: Vec<Vec<u32>>,
    centroids: Vec<Vec<f64>>,
}

impl Corpus<'_> {
    /// Finds the `k` documents nearest to a bag, exactly, with as few exact distances as possible:
    ///
    /// 1. two cheap lower bounds of every distance (centroids; the relaxed word mover's distance of
    ///    Kusner et al. 2015), by which documents are ordered;
    /// 2. the exact distances of the first k documents, which give a limit;
    /// 3. the other documents in order, until their bound exceeds the limit: first the bound by
    ///    dual potentials (`bound`), then the exact distance if that bound does not exceed the
    ///    limit.
    fn query(
        &self,
        query: &Bag,
        k: usize,
        solver: &mut BagSolver,
        control: &Control,
    ) -> Result<Nearest> {
        let mut found = Nearest {
            pairs: self.documents.len() as u64,
            ..Nearest::default()
        };
        let centroid = self.vectors.map(|vectors| vectors.centroid(query));
        let own = DocumentWords {
            ids: query.ids().to_vec(),
        };
        let table = Table::new(self.space, self.words.clone(), own, control)?;
        // The distance from every word of the documents to the nearest word of the query.
        let nearest: Option<Vec<f64>> = table.as_ref().map(|table| {
            let least = |row: &[f64]| {
                row.iter()
                    .fold(f64::INFINITY, |least, &d| f64::min(least, d))
            };
            (0..self.words.ids.len())
                .map(|place| least(table.row(place)))
                .collect()
        });
        let mut order: Vec<(f64, bool, u32)> = (0..self.documents.len() as u32)
            .map(|at| {
                let document = at as usize;
                let by_centroid = match (&self.vectors, &centroid) {
                    (Some(vectors), Some(centroid)) => {
                        vectors.distance(centroid, &self.centroids[document])
                    }
                    _ => 0.0,
                };
                let relaxed = nearest.as_ref().map_or(0.0, |nearest| {
                    let bag = &self.documents[document];
                    let words = self.indices[document].iter().zip(bag.counts());
                    let sum: f64 = words.map(|(&p, &c)| nearest[p as usize] * c as f64).sum();
                    sum / bag.size() as f64
                });
                (by_centroid.max(relaxed), by_centroid >= relaxed, at)
            })
            .collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)));
        let fill = |cost: &mut Costs<f64>, left: &[Vec<u32>; 2]| match &table {
            None => cost.fill(self.space, &left[0], &left[1]),
            Some(table) => table.fill(cost, left),
        };
        // The k best so far, ascending.
        let mut best: Vec<(f64, u32)> = Vec::with_capacity(k + 1);
        let limit = |best: &[(f64, u32)]| match best.get(k - 1) {
            Some(worst) => worst.0 * (1.0 + MARGIN),
            None => f64::INFINITY,
        };
        let mut compute = |at: u32, best: &mut Vec<(f64, u32)>, solver: &mut BagSolver| {
            control.check()?;
            let document = &self.documents[at as usize];
            found.exact += 1;
            let distance = solver.distance(document, query, control, fill)?;
            let entry = (distance, at);
            best.insert(best.partition_point(|b| (b.0, b.1) < entry), entry);
            best.truncate(k);
            Ok::<(), Error>(())
        };
        // Compute some exact distances first, then bounds by dual potentials and the other
        // distances in order.
        for &(_, _, at) in &order[..k] {
            compute(at, &mut best, solver)?;
        }
        let mut closer: Vec<(f64, u32)> = Vec::new();
        let (mut by_centroid, mut by_relaxation) = (0, 0);
        for &(bound, centroid, at) in &order[k..] {
            if bound > limit(&best) {
                *(if centroid {
                    &mut by_centroid
                } else {
                    &mut by_relaxation
                }) += 1;
                continue;
            }
            control.check()?;
            closer.push((solver.bound(&self.documents[at as usize], query, fill), at));
        }
        closer.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut by_dual_bound = 0;
        for &(bound, at) in &closer {
            match bound > limit(&best) {
                true => by_dual_bound += 1,
                false => compute(at, &mut best, solver)?,
            }
        }
        (found.by_centroid, found.by_relaxation) = (by_centroid, by_relaxation);
        found.by_dual_bound = by_dual_bound;
        (found.distances, found.ids) = best.into_iter().unzip();
        Ok(found)
    }
}
