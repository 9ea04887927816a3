//! Builds covers from a space: each word's k nearest outputs, optionally balanced by frequency.

use super::Cover;
use crate::distance::neighbors::Grid;
use crate::distance::search::BATCH;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, for_all, install, map_all};
use crate::words::space::{MetricSpace, rows_together};

/// Options that every method of building a cover takes.
#[derive(Clone, Debug)]
pub struct Build {
    /// Minimum size of a set: outputs that stand for fewer words add their own nearest words.
    pub least: usize,
    /// Ids of words that are never released.
    pub exclude: Vec<u32>,
    /// Whether [`Cover::nearest`] may take approximately nearest outputs from an HNSW graph. The
    /// proof does not depend on which words a set holds.
    pub approximate: bool,
}

impl Default for Build {
    fn default() -> Self {
        Build {
            least: 3,
            exclude: Vec::new(),
            approximate: false,
        }
    }
}

/// Parameters by which a balanced cover evens out frequencies.
#[derive(Clone, Debug)]
pub struct Balance {
    /// log₂ of each word's frequency.
    pub log2_frequencies: Vec<f64>,
    /// The weight a: the cost of a factor of 2 in frequency, in median distances to the 20th
    /// neighbour.
    pub weight: f64,
}

impl Balance {
    /// Frequencies by rank, for a vocabulary in order of frequency: Zipf's law in Mandelbrot's
    /// form, f ∝ 1/(rank + 2.7).
    pub fn by_rank(words: usize, weight: f64) -> Self {
        let log2_frequencies = (1..=words).map(|rank| -(rank as f64 + 2.7).log2());
        Balance {
            log2_frequencies: log2_frequencies.collect(),
            weight,
        }
    }

    /// Balance from counts or frequencies, one per word; 0 becomes half of the smallest positive
    /// one.
    ///
    /// # Errors
    /// [`Error::Parameter`] for counts that are negative or not finite, or a wrong number of
    /// counts.
    pub fn of_counts(counts: &[f64], words: usize, weight: f64) -> Result<Self> {
        if counts.len() != words {
            let expected = format!("one for each of the {words} words");
            return Err(Error::parameter("frequencies", expected, counts.len()));
        }
        if let Some(at) = counts.iter().position(|c| !(*c >= 0.0 && c.is_finite())) {
            let got = format!("{} at {at}", counts[at]);
            return Err(Error::parameter(
                "frequencies",
                "at least 0 and finite",
                got,
            ));
        }
        let positive = counts.iter().filter(|&&c| c > 0.0);
        let least = positive.fold(f64::INFINITY, |least, &c| least.min(c));
        if least == f64::INFINITY {
            return Err(Error::parameter(
                "frequencies",
                "above 0 for a word",
                "0 for all",
            ));
        }
        Ok(Balance {
            log2_frequencies: counts.iter().map(|c| c.max(least / 2.0).log2()).collect(),
            weight,
        })
    }
}

/// Number of words whose distances give the scale of a balance.
const SAMPLE: usize = 1000;
/// The neighbour whose distance gives that scale.
const SCALE_NEIGHBOR: usize = 20;

impl Cover {
    /// A cover in which every word stands for itself, as in TEM'21, except the words of
    /// [`Build::exclude`]. Sets are not topped up.
    ///
    /// # Errors
    /// [`Error::WordId`]; [`Error::Parameter`] if no output is left.
    pub fn identity(space: &dyn MetricSpace, exclude: &[u32]) -> Result<Self> {
        let words = space.vocabulary().len() as u32;
        let cover = Self::from_members(space, (0..words).map(|id| vec![id]).collect())?;
        match exclude {
            [] => Ok(cover),
            _ => cover.excluding(exclude),
        }
    }

    /// A cover in which C(w) holds the k nearest outputs of w, including w; ties go to the smaller
    /// id. They come from the space's lists if these are long enough, else from an exact search.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a k outside 1 to the number of outputs, [`Error::WordId`],
    /// [`Error::TooLarge`], [`Error::Interrupted`].
    pub fn nearest(
        space: &dyn MetricSpace,
        k: usize,
        build: &Build,
        control: &Control,
    ) -> Result<Self> {
        let allowed = Allowed::new(space, k, build)?;
        let grid = space.lists().map_or_else(|| Grid::of(space), |l| l.grid());
        if build.approximate && space.approximate_neighbors(&[0], 1)?.is_none() {
            let expected = "False, or for an embedding with an HNSW graph (build_hnsw)";
            return Err(Error::parameter("approximate", expected, true));
        }
        let chosen = each_block(space, BATCH, control, |ids| {
            let about = build
                .approximate
                .then(|| about_nearest(space, ids, k, &allowed))
                .transpose()?;
            Ok(nearest_allowed(space, ids, grid, k, &allowed, about))
        })?;
        finish(space, chosen, build, &allowed, grid, control)
    }

    /// A cover in which C(w) holds the k outputs with the smallest d(w, y) + a·m·|log₂ f(w) - log₂
    /// f(y)|. f are the words' frequencies, and m is the median distance to the 20th neighbour.
    /// Sets then hold words of similar frequency, so that the most frequent word of a set is not an
    /// easy guess.
    ///
    /// # Errors
    /// The errors of [`nearest`](Self::nearest); [`Error::Parameter`] for a weight that is negative
    /// or not finite.
    pub fn balanced(
        space: &dyn MetricSpace,
        k: usize,
        balance: &Balance,
        build: &Build,
        control: &Control,
    ) -> Result<Self> {
        let Balance {
            log2_frequencies: frequencies,
            weight,
        } = balance;
        if !(*weight >= 0.0 && weight.is_finite()) {
            return Err(Error::parameter("weight", "at least 0 and finite", weight));
        }
        let words = space.vocabulary().len();
        if frequencies.len() != words {
            let expected = format!("one for each of the {words} words");
            return Err(Error::parameter("frequencies", expected, frequencies.len()));
        }
        let allowed = Allowed::new(space, k, build)?;
        let grid = space.lists().map_or_else(|| Grid::of(space), |l| l.grid());
        let scores = Scores {
            space,
            frequencies,
            scale: weight * median_neighbor(space, grid),
            excluded: &build.exclude,
            allowed: &allowed,
            all: (0..words as u32).collect(),
            k,
        };
        let chosen = each_block(space, rows_together(words), control, |ids| {
            Ok(scores.lowest(ids))
        })?;
        finish(space, chosen, build, &allowed, grid, control)
    }
}

/// The scores by which a balanced cover selects outputs: d(w, y) + scale·|log₂ f(w) - log₂ f(y)|.
struct Scores<'a> {
    space: &'a dyn MetricSpace,
    frequencies: &'a [f64],
    scale: f64,
    excluded: &'a [u32],
    allowed: &'a Allowed,
    /// The ids of all words.
    all: Vec<u32>,
    k: usize,
}

/// Segments of a row. The k-th least of their minima is an upper bound on the k-th least score.
const SEGMENTS: usize = 16;

impl Scores<'_> {
    /// Returns the k outputs of lowest score for each of some words; ties go to the smaller id.
    ///
    /// If the space has bounded distances (f32 with a proved error), these leave few candidates.
    /// Exact distances of the candidates decide, so the result is the same either way.
    fn lowest(&self, ids: &[u32]) -> Vec<Vec<u32>> {
        let words = self.all.len();
        let stride = words.next_multiple_of(16);
        let mut bounded = vec![0.0f32; ids.len() * stride];
        let error = self
            .space
            .bounded_distances(ids, &self.all, &mut bounded, stride);
        let (mut work, mut candidates, mut exact) = (Scratch::default(), Vec::new(), Vec::new());
        let mut chosen = Vec::with_capacity(ids.len());
        match error {
            Some(error) => {
                for (&w, row) in ids.iter().zip(bounded.chunks_exact(stride)) {
                    let distances = row[..words].iter().map(|&d| f64::from(d));
                    self.candidates(w, distances, error, &mut work, &mut candidates);
                    exact.resize(candidates.len(), 0.0);
                    self.space
                        .block(&[w], &candidates, &mut exact, candidates.len());
                    chosen.push(self.least(w, &candidates, &exact, &mut work));
                }
            }
            None => {
                let mut rows = vec![0.0; ids.len() * words];
                self.space.rows(ids, &mut rows);
                for (&w, row) in ids.iter().zip(rows.chunks_exact(words)) {
                    self.candidates(w, row.iter().copied(), 0.0, &mut work, &mut candidates);
                    exact.clear();
                    exact.extend(candidates.iter().map(|&y| row[y as usize]));
                    chosen.push(self.least(w, &candidates, &exact, &mut work));
                }
            }
        }
        chosen
    }

    fn score(&self, w: u32, y: u32, distance: f64) -> f64 {
        let [own, other] = [w, y].map(|id| self.frequencies[id as usize]);
        distance + self.scale * (own - other).abs()
    }

    /// Finds the outputs that can be among the k of lowest score, ascending, from distances with a
    /// relative error of `error`.
    fn candidates(
        &self,
        w: u32,
        distances: impl ExactSizeIterator<Item = f64>,
        error: f64,
        work: &mut Scratch,
        found: &mut Vec<u32>,
    ) {
        let Scratch { scores, minima, .. } = work;
        let own = self.frequencies[w as usize];
        scores.clear();
        scores.extend(
            distances
                .zip(self.frequencies)
                .map(|(d, f)| d + self.scale * (own - f).abs()),
        );
        for &y in self.excluded {
            scores[y as usize] = f64::INFINITY;
        }
        // The minima belong to different outputs, so at least k outputs score at most the k-th
        // minimum.
        minima.clear();
        minima.resize(scores.len().div_ceil(SEGMENTS), f64::INFINITY);
        for segment in scores.chunks(minima.len()) {
            for (least, &score) in minima.iter_mut().zip(segment) {
                *least = if score < *least { score } else { *least };
            }
        }
        let limit = match self.k <= minima.len() {
            true => *minima.select_nth_unstable_by(self.k - 1, f64::total_cmp).1,
            false => f64::INFINITY,
        };
        // Both this score and the one it is compared with may be off by `error` and by rounding.
        let limit = limit * (1.0 + 4.0 * (error + 1e-9));
        // A NaN score, from an infinite scale, does not exclude an output.
        let beyond = |score: f64| score > limit;
        found.clear();
        for (scores, first) in scores.chunks(SEGMENTS).zip((0u32..).step_by(SEGMENTS)) {
            if !scores.iter().all(|&score| beyond(score)) {
                let each = scores.iter().zip(first..);
                let near = each.filter(|&(&score, y)| !beyond(score) && self.allowed.is(y));
                found.extend(near.map(|(_, y)| y));
            }
        }
    }

    /// Returns the k outputs of lowest score among some outputs, by their exact distances.
    fn least(&self, w: u32, outputs: &[u32], distances: &[f64], work: &mut Scratch) -> Vec<u32> {
        let keys = &mut work.keys;
        keys.clear();
        keys.extend(outputs.iter().zip(distances).map(|(&y, &d)| {
            // The bits of non-negative numbers sort like the numbers.
            (self.score(w, y, d).to_bits(), y)
        }));
        if self.k < keys.len() {
            keys.select_nth_unstable(self.k - 1);
        }
        keys[..self.k].iter().map(|key| key.1).collect()
    }
}

/// Working memory that the words of a block share.
#[derive(Default)]
struct Scratch {
    scores: Vec<f64>,
    minima: Vec<f64>,
    keys: Vec<(u64, u32)>,
}

/// The words that may be outputs.
pub(crate) struct Allowed {
    excluded: Vec<bool>,
    count: usize,
}

impl Allowed {
    pub(crate) fn new(space: &dyn MetricSpace, k: usize, build: &Build) -> Result<Self> {
        space.vocabulary().check_ids(&build.exclude)?;
        let words = space.vocabulary().len();
        let mut excluded = vec![false; words];
        for &id in &build.exclude {
            excluded[id as usize] = true;
        }
        let count = excluded.iter().filter(|&&out| !out).count();
        if count == 0 {
            return Err(Error::parameter("exclude", "less than all words", words));
        }
        if k == 0 || k > count {
            let expected = format!("between 1 and the {count} outputs");
            return Err(Error::parameter("k", expected, k));
        }
        Ok(Allowed { excluded, count })
    }

    pub(crate) fn is(&self, id: u32) -> bool {
        !self.excluded[id as usize]
    }
}

/// Returns the k nearest outputs of each of some words.
fn nearest_allowed(
    space: &dyn MetricSpace,
    ids: &[u32],
    grid: Grid,
    k: usize,
    allowed: &Allowed,
    about: Option<Vec<Vec<u32>>>,
) -> Vec<Vec<u32>> {
    let words = space.vocabulary().len();
    let chosen = |list: &[u64]| -> Vec<u32> {
        let near = list.iter().map(|&entry| grid.id(entry));
        near.filter(|&y| allowed.is(y)).take(k).collect()
    };
    let given = about.is_some();
    let mut found = about.unwrap_or_else(|| vec![Vec::new(); ids.len()]);
    if let (Some(lists), false) = (space.lists(), given) {
        let each = found.iter_mut().zip(ids);
        each.for_each(|(found, &id)| *found = chosen(lists.list(id)));
    }
    let mut longer = k + (words - allowed.count).min(k);
    loop {
        let open: Vec<usize> = (0..ids.len()).filter(|&i| found[i].len() < k).collect();
        if open.is_empty() {
            return found;
        }
        let some: Vec<u32> = open.iter().map(|&i| ids[i]).collect();
        longer = longer.min(words);
        let mut lists = vec![0; some.len() * longer];
        space.neighbors(&some, grid, longer, &mut lists);
        for (&i, list) in open.iter().zip(lists.chunks_exact(longer)) {
            found[i] = chosen(list);
        }
        longer = longer.saturating_mul(4);
    }
}

/// Returns approximately the k nearest outputs of each of some words, including the word itself;
/// fewer if the graph finds fewer.
fn about_nearest(
    space: &dyn MetricSpace,
    ids: &[u32],
    k: usize,
    allowed: &Allowed,
) -> Result<Vec<Vec<u32>>> {
    let longer = k + (space.vocabulary().len() - allowed.count).min(k);
    let lists = space
        .approximate_neighbors(ids, longer)?
        .unwrap_or_default();
    let each = lists.into_iter().zip(ids).map(|(list, &id)| {
        let others = list.into_iter().filter(|&y| y != id);
        let near = std::iter::once(id).chain(others);
        near.filter(|&y| allowed.is(y)).take(k).collect()
    });
    Ok(each.collect())
}

/// The median distance to the 20th neighbour, not counting the word itself, over words spread
/// across the vocabulary.
fn median_neighbor(space: &dyn MetricSpace, grid: Grid) -> f64 {
    let words = space.vocabulary().len();
    let k = (SCALE_NEIGHBOR + 1).min(words);
    let count = SAMPLE.min(words);
    let ids: Vec<u32> = (0..count).map(|i| (i * words / count) as u32).collect();
    let mut lists = vec![0; count * k];
    for (ids, lists) in ids.chunks(BATCH).zip(lists.chunks_mut(BATCH * k)) {
        space.neighbors(ids, grid, k, lists);
    }
    let last = |list: &[u64]| list.last().map_or(0.0, |&entry| grid.distance(entry));
    let mut distances: Vec<f64> = lists.chunks_exact(k).map(last).collect();
    let middle = distances.len() / 2;
    *distances.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// Computes a list for every word, in parallel, some words at a time.
pub(crate) fn each_block(
    space: &dyn MetricSpace,
    block: usize,
    control: &Control,
    lists: impl Fn(&[u32]) -> Result<Vec<Vec<u32>>> + Sync,
) -> Result<Vec<Vec<u32>>> {
    let ids: Vec<u32> = (0..space.vocabulary().len() as u32).collect();
    let blocks: Vec<Vec<Vec<u32>>> = install(ids.len(), 1, || {
        map_all(ids.chunks(block), |ids| {
            control.check()?;
            let found = lists(ids)?;
            control.advance(ids.len());
            Ok(found)
        })
    })??;
    Ok(blocks.into_iter().flatten().collect())
}

/// Builds the cover in which each word is at distance 0 from its chosen outputs, and tops up small
/// sets.
pub(crate) fn finish(
    space: &dyn MetricSpace,
    chosen: Vec<Vec<u32>>,
    build: &Build,
    allowed: &Allowed,
    grid: Grid,
    control: &Control,
) -> Result<Cover> {
    let words = space.vocabulary().len();
    let mut sets: Vec<Vec<u32>> = vec![Vec::new(); words];
    for (outputs, word) in chosen.iter().zip(0u32..) {
        for &y in outputs {
            sets[y as usize].push(word);
        }
    }
    let least = build.least.min(words);
    let short = |y: &u32| allowed.is(*y) && sets[*y as usize].len() < least;
    let short: Vec<u32> = (0..words as u32).filter(short).collect();
    let mut lists = vec![0; short.len() * least];
    if least > 0 {
        install(short.len(), 1, || {
            let blocks = short.chunks(BATCH).zip(lists.chunks_mut(BATCH * least));
            for_all(blocks, |(ids, lists)| {
                control.check()?;
                space.neighbors(ids, grid, least, lists);
                Ok(())
            })
        })??;
        for (&y, list) in short.iter().zip(lists.chunks_exact(least)) {
            let set = &mut sets[y as usize];
            for word in list.iter().map(|&entry| grid.id(entry)) {
                if set.len() < least && !set.contains(&word) {
                    set.push(word);
                }
            }
        }
    }
    Cover::from_members(space, sets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::metric::Metric;
    use crate::words::embedding::Embedding;
    use crate::words::vocabulary::Vocabulary;
    use rand::RngExt;

    /// Words of which every fifth has the vector of the one before.
    fn embedding(words: usize, metric: Metric) -> Embedding {
        const DIMENSIONS: usize = 24;
        let mut rng = crate::testing::rng(3);
        let mut vectors: Vec<f32> = Vec::new();
        for i in 0..words {
            match i % 5 {
                4 => vectors.extend_from_within(vectors.len() - DIMENSIONS..),
                _ => vectors.extend((0..DIMENSIONS).map(|_| 0.1 * (rng.random::<f32>() - 0.5))),
            }
        }
        let names = Vocabulary::new((0..words).map(|i| format!("w{i}"))).expect("distinct");
        Embedding::new(names, vectors, DIMENSIONS, metric).expect("points")
    }

    #[test]
    fn balanced_sets_are_those_of_a_sort_of_all_exact_scores() {
        const WORDS: usize = 700;
        for metric in [
            Metric::Euclidean,
            Metric::Angular,
            Metric::Poincare,
            Metric::Manhattan,
        ] {
            let e = embedding(WORDS, metric);
            let all: Vec<u32> = (0..WORDS as u32).collect();
            let mut rows = vec![0.0; WORDS * WORDS];
            e.rows(&all, &mut rows);
            let excluded: Vec<u32> = all.iter().copied().filter(|y| y % 11 == 2).collect();
            // Pairs of equal counts, so that words at one place tie.
            let counts: Vec<f64> = (0..WORDS).map(|i| 1e6 / (1 + i / 2) as f64).collect();
            for (k, weight, exclude) in [
                (1, 0.1, &[][..]),
                (7, 0.0, &excluded),
                (40, 0.1, &excluded),
                (43, 2.0, &[]),
                (300, 0.1, &excluded),
                (WORDS, 0.1, &[]),
            ] {
                let balance = Balance::of_counts(&counts, WORDS, weight).expect("counts");
                let build = Build {
                    least: 0,
                    exclude: exclude.to_vec(),
                    approximate: false,
                };
                let cover = Cover::balanced(&e, k, &balance, &build, &Control::new());
                let cover = cover.expect("a cover");
                let scale = weight * median_neighbor(&e, Grid::of(&e));
                let each = all.iter().copied();
                let allowed: Vec<u32> = each.filter(|y| !exclude.contains(y)).collect();
                for (w, row) in all.iter().zip(rows.chunks_exact(WORDS)) {
                    let logs = &balance.log2_frequencies;
                    let factor = |log: f64| (logs[*w as usize] - log).abs();
                    let each = row.iter().zip(logs);
                    let scores = each.map(|(d, &log)| d + scale * factor(log));
                    let scores: Vec<f64> = scores.collect();
                    let score = |y: u32| scores[y as usize];
                    let mut outputs: Vec<u32> = allowed.clone();
                    outputs.sort_by(|&a, &b| score(a).total_cmp(&score(b)).then(a.cmp(&b)));
                    outputs.truncate(k);
                    outputs.sort_unstable();
                    let found = cover.outputs(*w).iter().map(|&rank| cover.id(rank));
                    assert_eq!(found.collect::<Vec<_>>(), outputs, "{metric:?} {w} {k}");
                }
            }
        }
    }
}
