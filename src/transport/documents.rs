//! Many documents: all distances, and the nearest ones with rigorous pruning.

use rayon::prelude::*;

use super::bags::{Bag, BagSolver};
use super::cost::CostMatrix;
use crate::error::{Error, Result};
use crate::metric::Metric;
use crate::parallel::{Control, install};
use crate::space::MetricSpace;

/// Bytes that a table of word distances may take.
const TABLE_BYTES: usize = 512 << 20;
/// Bounds are compared with this relative margin, far above what rounding does to them.
const MARGIN: f64 = 1e-9;

/// Words of documents, numbered, so that distances can stand in a table.
struct Words {
    ids: Vec<u32>,
}

impl Words {
    fn of<'a>(bags: impl Iterator<Item = &'a Bag>) -> Self {
        let mut ids: Vec<u32> = bags.flat_map(|bag| bag.ids().iter().copied()).collect();
        ids.sort_unstable();
        ids.dedup();
        Words { ids }
    }

    fn place(&self, id: u32) -> usize {
        // All words of the documents are there.
        self.ids.binary_search(&id).unwrap_or(0)
    }
}

/// Distances between some words (rows) and all words of the documents.
struct Table {
    rows: Vec<u32>,
    values: Vec<f64>,
    columns: usize,
}

impl Table {
    fn new(
        space: &dyn MetricSpace,
        rows: &[u32],
        words: &Words,
        control: &Control,
    ) -> Result<Self> {
        let columns = words.ids.len();
        let mut values = vec![0.0; rows.len() * columns];
        // Blocks of columns that stay in the cache.
        const ROWS: usize = 64;
        const COLUMNS: usize = 256;
        let parts = values
            .par_chunks_mut(ROWS * columns)
            .zip(rows.par_chunks(ROWS));
        parts.try_for_each(|(values, rows)| {
            control.check()?;
            for start in (0..columns).step_by(COLUMNS) {
                let some = &words.ids[start..columns.min(start + COLUMNS)];
                space.block(rows, some, &mut values[start..], columns);
            }
            Ok(())
        })?;
        Ok(Table {
            rows: rows.to_vec(),
            values,
            columns,
        })
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.columns..][..self.columns]
    }

    /// Costs of words of the rows and words of the columns.
    fn fill(&self, cost: &mut CostMatrix, words: &Words, left: &[Vec<u32>; 2]) {
        let places: Vec<usize> = left[1].iter().map(|&id| words.place(id)).collect();
        cost.fill_with(left[0].len(), places.len(), |i, out| {
            let row = self.of(left[0][i]);
            for (out, &place) in out.iter_mut().zip(&places) {
                *out = row[place];
            }
        });
    }

    /// The row of a word.
    fn of(&self, id: u32) -> &[f64] {
        self.row(self.rows.binary_search(&id).unwrap_or(0))
    }
}

/// The Earth Mover's distance of every bag of `a` to every bag of `b`, row by row; of `a` to
/// itself, each pair computed once, where there is no `b`. `control` counts the rows.
///
/// # Errors
/// As [`bags::distance`](super::bags::distance).
pub fn pairwise(
    space: &dyn MetricSpace,
    a: &[Bag],
    b: Option<&[Bag]>,
    control: &Control,
) -> Result<Vec<f64>> {
    let others = b.unwrap_or(a);
    let columns = others.len();
    let mut out = vec![0.0; a.len() * columns];
    let words = Words::of(a.iter().chain(b.unwrap_or(&[])));
    let small = words.ids.len().saturating_mul(words.ids.len()) <= TABLE_BYTES / 8;
    // A table pays once its distances are used again.
    let used: u64 = a.iter().map(|x| x.ids().len() as u64).sum::<u64>()
        * others.iter().map(|x| x.ids().len() as u64).sum::<u64>();
    let pays = used > 2 * (words.ids.len() as u64).pow(2);
    install(a.len() * columns, 4, || {
        let table = match small && pays {
            true => Some(Table::new(space, &words.ids, &words, control)?),
            false => None,
        };
        let rows = out.par_chunks_mut(columns.max(1)).zip(a).enumerate();
        rows.with_max_len(1)
            .try_for_each_init(BagSolver::default, |solver, (i, (row, x))| {
                let first = if b.is_none() { i + 1 } else { 0 };
                for (out, y) in row.iter_mut().zip(others).skip(first) {
                    control.check()?;
                    *out = solver.distance(x, y, control, |cost, left| match &table {
                        None => cost.fill(space, &left[0], &left[1]),
                        Some(table) => table.fill(cost, &words, left),
                    })?;
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

/// The nearest documents, and how the others were ruled out.
#[derive(Clone, Debug, Default)]
pub struct Nearest {
    /// k places of documents a query, nearest first, ties by place.
    pub ids: Vec<u32>,
    /// Their Earth Mover's distances.
    pub distances: Vec<f64>,
    /// Pairs of a query and a document.
    pub pairs: u64,
    /// Pairs ruled out by the distance of centroids.
    pub by_centroid: u64,
    /// Pairs ruled out by a relaxed matching: every word of one document moves to its nearest
    /// word of the other.
    pub by_relaxation: u64,
    /// Pairs whose exact distance was computed.
    pub exact: u64,
}

/// The `k` documents nearest to every query, exactly. `control` counts the queries.
///
/// Lower bounds decide which distances are computed (Kusner et al. 2015): the distance of the
/// centroids, for metrics that come from a norm, and both relaxed matchings. They are exact
/// bounds, so pruning never changes an answer.
///
/// # Errors
/// [`Error::Parameter`] for `k` outside 1..=`documents.len()`; as
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
    let words = Words::of(documents.iter());
    let places: Vec<Vec<u32>> = documents
        .iter()
        .map(|bag| bag.ids().iter().map(|&id| words.place(id) as u32).collect())
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
        places,
        centroids,
    };
    let found: Vec<Nearest> = install(queries.len() * documents.len(), 1, || {
        let found = queries.par_iter().with_max_len(1);
        found
            .map_init(BagSolver::default, |solver, query| {
                let found = corpus.query(query, k, solver, control)?;
                control.advance(1);
                Ok(found)
            })
            .collect::<Result<_>>()
    })??;
    let mut all = Nearest::default();
    for one in found {
        all.ids.extend(one.ids);
        all.distances.extend(one.distances);
        all.pairs += one.pairs;
        all.by_centroid += one.by_centroid;
        all.by_relaxation += one.by_relaxation;
        all.exact += one.exact;
    }
    Ok(all)
}

/// Vectors whose weighted means are as far apart as two bags are, at most: the metric must come
/// from a norm.
#[derive(Clone, Copy, Debug)]
pub struct Centroids<'a> {
    embedding: &'a crate::Embedding,
}

impl<'a> Centroids<'a> {
    /// Those of an embedding, if its metric comes from a norm.
    pub fn of(embedding: &'a crate::Embedding) -> Option<Self> {
        let norm = matches!(
            embedding.metric(),
            Metric::Euclidean | Metric::Manhattan | Metric::Chebyshev
        );
        norm.then_some(Centroids { embedding })
    }

    fn centroid(&self, bag: &Bag) -> Vec<f64> {
        let mut mean = vec![0.0; self.embedding.dim()];
        for (&id, &count) in bag.ids().iter().zip(bag.counts()) {
            for (mean, &x) in mean.iter_mut().zip(self.embedding.vector(id)) {
                *mean += f64::from(x) * count as f64;
            }
        }
        let size = bag.size() as f64;
        mean.iter_mut().for_each(|x| *x /= size);
        mean
    }

    /// A little less than the distance, by more than rounding can have added.
    fn distance(&self, a: &[f64], b: &[f64]) -> f64 {
        let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
        let distance = match self.embedding.metric() {
            Metric::Manhattan => differences.sum(),
            Metric::Chebyshev => differences.fold(0.0, f64::max),
            _ => differences.map(|d| d * d).sum::<f64>().sqrt(),
        };
        let size: f64 = a.iter().chain(b).map(|x| x.abs()).sum();
        f64::max(distance - 1e-12 * size, 0.0)
    }
}

struct Corpus<'a> {
    space: &'a dyn MetricSpace,
    vectors: Option<Centroids<'a>>,
    documents: &'a [Bag],
    words: Words,
    places: Vec<Vec<u32>>,
    centroids: Vec<Vec<f64>>,
}

impl Corpus<'_> {
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
        let small = query.ids().len().saturating_mul(self.words.ids.len()) <= TABLE_BYTES / 8;
        let table = match small {
            true => Some(Table::new(self.space, query.ids(), &self.words, control)?),
            false => None,
        };
        // The nearest word of the query to every word of the documents.
        let nearest: Option<Vec<f64>> = table.as_ref().map(|table| {
            let mut nearest = table.row(0).to_vec();
            for i in 1..table.rows.len() {
                for (nearest, &d) in nearest.iter_mut().zip(table.row(i)) {
                    *nearest = if d < *nearest { d } else { *nearest };
                }
            }
            nearest
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
                    let words = self.places[document].iter().zip(bag.counts());
                    let sum: f64 = words.map(|(&p, &c)| nearest[p as usize] * c as f64).sum();
                    sum / bag.size() as f64
                });
                (by_centroid.max(relaxed), by_centroid >= relaxed, at)
            })
            .collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)));
        // The k best so far, ascending.
        let mut best: Vec<(f64, u32)> = Vec::with_capacity(k + 1);
        let limit = |best: &[(f64, u32)]| match best.get(k - 1) {
            Some(worst) => worst.0 * (1.0 + MARGIN),
            None => f64::INFINITY,
        };
        for &(bound, by_centroid, at) in &order {
            let document = &self.documents[at as usize];
            let beyond = bound > limit(&best);
            if beyond && by_centroid {
                found.by_centroid += 1;
                continue;
            }
            if beyond || self.relaxed(query, at as usize, table.as_ref()) > limit(&best) {
                found.by_relaxation += 1;
                continue;
            }
            control.check()?;
            found.exact += 1;
            let distance =
                solver.distance(query, document, control, |cost, left| match &table {
                    None => cost.fill(self.space, &left[0], &left[1]),
                    Some(table) => table.fill(cost, &self.words, left),
                })?;
            let at = (distance, at);
            let place = best.partition_point(|b| (b.0, b.1) < at);
            best.insert(place, at);
            best.truncate(k);
        }
        (found.distances, found.ids) = best.into_iter().unzip();
        Ok(found)
    }

    /// Every word of the query moves to its nearest word of the document.
    fn relaxed(&self, query: &Bag, document: usize, table: Option<&Table>) -> f64 {
        let Some(table) = table else { return 0.0 };
        let words = query.counts().iter().enumerate();
        let sum: f64 = words
            .map(|(i, &count)| {
                let row = table.row(i);
                let places = self.places[document].iter();
                let least = places.fold(f64::INFINITY, |least, &place| {
                    f64::min(least, row[place as usize])
                });
                least * count as f64
            })
            .sum();
        sum / query.size() as f64
    }
}
