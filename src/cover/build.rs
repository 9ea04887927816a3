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
}

impl Default for Build {
    fn default() -> Self {
        Build {
            least: 3,
            exclude: Vec::new(),
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
        let chosen = each_block(space, BATCH, control, |ids| {
            nearest_allowed(space, ids, grid, k, &allowed)
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
            allowed: &allowed,
            all: (0..words as u32).collect(),
            k,
        };
        let chosen = each_block(space, rows_together(words), control, |ids| {
            scores.lowest(ids)
        })?;
        finish(space, chosen, build, &allowed, grid, control)
    }
}

/// The scores by which a balanced cover selects outputs: d(w, y) + scale·|log₂ f(w) - log₂ f(y)|.
struct Scores<'a> {
    space: &'a dyn MetricSpace,
    frequencies: &'a [f64],
    scale: f64,
    allowed: &'a Allowed,
    /// The ids of all words.
    all: Vec<u32>,
    k: usize,
}

impl Scores<'_> {
    /// Returns the k outputs of lowest score for each of some words; ties go to the smaller id.
    ///
    /// If the space has bounded distances (f32 with a proved error), these leave few candidates.
    /// Exact distances of the candidates decide, so the result is the same either way.
    fn lowest(&self, ids: &[u32]) -> Vec<Vec<u32>> {
        let words = self.all.len();
        let stride = words.next_multiple_of(16);
        let mut bounded = vec![0.0f32; ids.len() * stride];
        let mut rows = vec![0.0; ids.len() * words];
        let bound = self
            .space
            .bounded_distances(ids, &self.all, &mut bounded, stride);
        match bound {
            None => self.space.rows(ids, &mut rows),
            Some(_) => {
                let each = rows.chunks_exact_mut(words).zip(bounded.chunks(stride));
                each.flat_map(|(row, bounded)| row.iter_mut().zip(bounded))
                    .for_each(|(d, &bounded)| *d = bounded.into());
            }
        }
        let each = ids.iter().zip(rows.chunks_exact_mut(words));
        each.map(|(&w, row)| self.lowest_of(w, row, bound.unwrap_or(0.0)))
            .collect()
    }

    /// The same for one word, from its distances with a relative error of `error`.
    fn lowest_of(&self, w: u32, row: &mut [f64], error: f64) -> Vec<u32> {
        let more = |y: u32| {
            let [own, other] = [w, y].map(|id| self.frequencies[id as usize]);
            self.scale * (own - other).abs()
        };
        for (score, y) in row.iter_mut().zip(0..) {
            *score = match self.allowed.is(y) {
                true => *score + more(y),
                false => f64::INFINITY,
            };
        }
        let mut order = row.to_vec();
        let (_, &mut limit, _) = order.select_nth_unstable_by(self.k - 1, f64::total_cmp);
        // Both this score and the one it is compared with may be off by `error` and by rounding.
        let limit = limit * (1.0 + 4.0 * (error + 1e-9));
        // A NaN score, from an infinite scale, does not exclude an output.
        let beyond = |score: f64| score > limit;
        let each = row.iter().zip(0..);
        let near = each.filter(|&(&score, y)| !beyond(score) && self.allowed.is(y));
        let near: Vec<u32> = near.map(|(_, y)| y).collect();
        let mut exact = vec![0.0; near.len()];
        self.space.block(&[w], &near, &mut exact, near.len());
        // The bits of non-negative numbers sort like the numbers.
        let each = near.iter().zip(exact);
        let mut keys: Vec<(u64, u32)> = each.map(|(&y, d)| ((d + more(y)).to_bits(), y)).collect();
        if self.k < keys.len() {
            keys.select_nth_unstable(self.k - 1);
        }
        keys[..self.k].iter().map(|key| key.1).collect()
    }
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
) -> Vec<Vec<u32>> {
    let words = space.vocabulary().len();
    let chosen = |list: &[u64]| -> Vec<u32> {
        let near = list.iter().map(|&entry| grid.id(entry));
        near.filter(|&y| allowed.is(y)).take(k).collect()
    };
    let stored = |&id: &u32| space.lists().map_or_else(Vec::new, |l| chosen(l.list(id)));
    let mut found: Vec<Vec<u32>> = ids.iter().map(stored).collect();
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
    lists: impl Fn(&[u32]) -> Vec<Vec<u32>> + Sync,
) -> Result<Vec<Vec<u32>>> {
    let ids: Vec<u32> = (0..space.vocabulary().len() as u32).collect();
    let blocks: Vec<Vec<Vec<u32>>> = install(ids.len(), 1, || {
        map_all(ids.chunks(block), |ids| {
            control.check()?;
            let found = lists(ids);
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
