//! Rows of published laws, for [`FiniteLaw`](crate::mechanism::finite_law::FiniteLaw).
//!
//! A row costs as much as its numbers need, and no interpreter: several threads write rows at once.
//! `fastdx.lab.laws` in Python names the laws, their sources, claims and proofs.

use std::sync::Arc;

use crate::distance::neighbors;
use crate::mechanism::finite_law::Rows;
use crate::support::error::{Error, Result};
use crate::support::parallel::Control;
use crate::words::space::MetricSpace;

/// The word itself has one probability, every other output another.
pub fn alike(own: f64, other: f64) -> Arc<dyn Rows> {
    Arc::new(move |word: u32, row: &mut [f64]| {
        row.fill(other);
        row[word as usize] = own;
        Ok(())
    })
}

/// The output of rank r has the probability `weights[r]`: rank 0 is the word itself, rank 1 its
/// nearest word, and so on, ties by id.
///
/// # Errors
/// [`Error::Parameter`] if there is not one weight for every word.
pub fn by_rank(space: Arc<dyn MetricSpace>, weights: Vec<f64>) -> Result<Arc<dyn Rows>> {
    let words = space.vocabulary().len();
    if weights.len() != words {
        let got = format!("{} of {words}", weights.len());
        return Err(Error::parameter("weights", "one for every word", got));
    }
    Ok(Arc::new(move |word: u32, row: &mut [f64]| {
        // The row serves for the distances, until their order is known.
        space.distances(word, row);
        let ranked = neighbors::nearest(word, words, row, 0..words as u32);
        for (id, &weight) in ranked.into_iter().zip(&weights) {
            row[id as usize] = weight;
        }
        Ok(())
    }))
}

/// A line of all words.
struct Line {
    /// The place of every word.
    places: Vec<u32>,
    first: u32,
    last: u32,
}

/// An output has the weight of its distance from the word in a line of all words: `weights[n]` at n
/// places. The words at the two ends have `end` times as much. Of several lines, one is drawn.
///
/// # Errors
/// [`Error::Parameter`] for a line that is no permutation, no line, or another number of weights.
pub fn by_place(lines: &[Vec<u32>], weights: Vec<f64>, end: f64) -> Result<Arc<dyn Rows>> {
    let words = weights.len();
    let mut placed = Vec::with_capacity(lines.len());
    for line in lines {
        let mut of = vec![u32::MAX; words];
        for (&id, place) in line.iter().zip(0..) {
            if let Some(slot) = of.get_mut(id as usize) {
                *slot = place;
            }
        }
        if line.len() != words || of.contains(&u32::MAX) {
            let expected = "permutations of all ids";
            return Err(Error::parameter("lines", expected, "another list"));
        }
        let (Some(&first), Some(&last)) = (line.first(), line.last()) else {
            continue;
        };
        placed.push(Line {
            places: of,
            first,
            last,
        });
    }
    let (Some(&own), Some(&farthest)) = (weights.first(), weights.last()) else {
        return Err(Error::parameter("weights", "at least one", "none"));
    };
    if lines.is_empty() {
        return Err(Error::parameter("lines", "at least one", "none"));
    }
    let mut sum = 0.0;
    let sums: Vec<f64> = weights
        .iter()
        .map(|weight| {
            sum += weight;
            sum
        })
        .collect();
    // Words beyond some place are alike likely: a short list stays in the cache.
    let last = weights.iter().rposition(|&weight| weight != farthest);
    let last = last.map_or(0, |place| place + 1).min(words - 1);
    let near: Box<[f64]> = weights[..=last].into();
    let share = 1.0 / lines.len() as f64;
    Ok(Arc::new(move |word: u32, out: &mut [f64]| {
        for (nth, line) in placed.iter().enumerate() {
            let place = line.places[word as usize];
            let before = place as usize;
            let after = words - 1 - before;
            let weight = |apart: usize| near[apart.min(last)];
            // An end has `end` times its weight, unless it is the only word.
            let more = if words > 1 { end - 1.0 } else { 0.0 };
            let ends = more * (weight(before) + weight(after));
            let scale = share / (sums[before] + sums[after] - own + ends);
            let scaled = |at: u32| weight(at.abs_diff(place) as usize) * scale;
            for (p, &at) in out.iter_mut().zip(&line.places) {
                match nth {
                    0 => *p = scaled(at),
                    _ => *p += scaled(at),
                }
            }
            for (id, apart) in [(line.first, before), (line.last, after)] {
                out[id as usize] += more * weight(apart) * scale;
            }
        }
        Ok(())
    }))
}

/// The words that a word of CusText may become.
#[derive(Clone, Debug)]
pub enum Outputs {
    /// The number of every word's set: the words of the set.
    Sets(Vec<u32>),
    /// This number of nearest words, the word itself first.
    Nearest(usize),
}

/// The least exponent of a weight: outputs that are less likely are as likely as it says, so that
/// no output becomes impossible by underflow.
pub const LEAST_EXPONENT: f64 = -650.0;

/// The exponential mechanism on a set of outputs for every word: weights fall from 1 at the nearest
/// output to exp(-ε/2) at the farthest, by the distance. Words of `kept` become themselves.
///
/// # Errors
/// [`Error::Parameter`] if there is not one set for every word; [`Error::WordId`].
pub fn in_sets(
    space: Arc<dyn MetricSpace>,
    epsilon: f64,
    outputs: Outputs,
    kept: &[u32],
) -> Result<Arc<dyn Rows>> {
    let vocabulary = space.vocabulary();
    let words = vocabulary.len();
    vocabulary.check_ids(kept)?;
    let mut unchanged = vec![false; words];
    for &id in kept {
        unchanged[id as usize] = true;
    }
    let mut members = Vec::new();
    if let Outputs::Sets(sets) = &outputs {
        if sets.len() != words || sets.iter().any(|&set| set as usize >= words) {
            let got = format!("{} of {words}", sets.len());
            return Err(Error::parameter("sets", "one number for every word", got));
        }
        members = vec![Vec::new(); words];
        for (&set, id) in sets.iter().zip(0u32..) {
            members[set as usize].push(id);
        }
    }
    Ok(Arc::new(move |word: u32, out: &mut [f64]| {
        if unchanged[word as usize] {
            out.fill(0.0);
            out[word as usize] = 1.0;
            return Ok(());
        }
        let nearest;
        let mut distances = Vec::new();
        let set = match &outputs {
            Outputs::Sets(sets) => {
                let set = &members[sets[word as usize] as usize];
                distances.resize(set.len(), 0.0);
                space.distances_to(word, set, &mut distances);
                set
            }
            Outputs::Nearest(k) => {
                // The row serves for the distances.
                space.distances(word, out);
                nearest = neighbors::nearest(word, *k, out, 0..words as u32);
                distances.extend(nearest.iter().map(|&id| out[id as usize]));
                &nearest
            }
        };
        out.fill(0.0);
        let least = distances.iter().fold(f64::INFINITY, |a, &b| a.min(b));
        let most = distances.iter().fold(0.0, |a: f64, &b| a.max(b - least));
        let mut sum = 0.0;
        for (&id, distance) in set.iter().zip(&distances) {
            // Words at equal distances are equally likely.
            let far = if most > 0.0 {
                (distance - least) / most
            } else {
                0.0
            };
            let weight = (-epsilon / 2.0 * far).max(LEAST_EXPONENT).exp();
            out[id as usize] = weight;
            sum += weight;
        }
        set.iter().for_each(|&id| out[id as usize] /= sum);
        Ok(())
    }))
}

/// The number of every word's set, in a partition into sets of k words: the first word without a
/// set makes one with the k - 1 nearest words that have none, and so on.
///
/// # Errors
/// [`Error::Interrupted`].
pub fn partition(space: &dyn MetricSpace, k: usize, control: &Control) -> Result<Vec<u32>> {
    const NONE: u32 = u32::MAX;
    let words = space.vocabulary().len();
    let mut sets = vec![NONE; words];
    let mut distances = vec![0.0; words];
    let mut number = 0;
    for word in 0..words as u32 {
        if sets[word as usize] != NONE {
            continue;
        }
        control.check()?;
        space.distances(word, &mut distances);
        let free = (0..words as u32).filter(|&id| sets[id as usize] == NONE);
        for id in neighbors::nearest(word, k, &distances, free) {
            sets[id as usize] = number;
        }
        number += 1;
    }
    Ok(sets)
}

/// The `k` nearest words of a word, the word itself first, by exact distances, ties by id.
pub fn nearest(space: &dyn MetricSpace, word: u32, k: usize) -> Vec<u32> {
    let words = space.vocabulary().len();
    let mut distances = vec![0.0; words];
    space.distances(word, &mut distances);
    neighbors::nearest(word, k, &distances, 0..words as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Embedding, Metric};

    fn space(places: &[f32]) -> Arc<Embedding> {
        crate::testing::from_vectors(places.to_vec(), 1, Metric::Euclidean)
    }

    fn row(rows: &dyn Rows, words: usize, word: u32) -> Vec<f64> {
        let mut row = vec![0.0; words];
        rows.write(word, &mut row).unwrap();
        row
    }

    fn near(a: &[f64], b: &[f64]) {
        assert_eq!(a.len(), b.len());
        let far = a.iter().zip(b).map(|(a, b)| (a - b).abs());
        assert!(far.fold(0.0, f64::max) < 1e-12, "{a:?} {b:?}");
    }

    #[test]
    fn rows_by_hand() {
        near(&row(&*alike(0.5, 0.25), 3, 1), &[0.25, 0.5, 0.25]);
        // Ties by id: from 0, the words at -1 and 1.
        let e = space(&[0.0, 1.0, -1.0, 5.0]);
        let ranked = by_rank(e.clone(), vec![0.4, 0.3, 0.2, 0.1]).unwrap();
        near(&row(&*ranked, 4, 0), &[0.4, 0.3, 0.2, 0.1]);
        near(&row(&*ranked, 4, 3), &[0.2, 0.3, 0.1, 0.4]);
        assert!(by_rank(e.clone(), vec![1.0]).is_err());

        let line = vec![2, 0, 1];
        let placed = by_place(std::slice::from_ref(&line), vec![4.0, 2.0, 1.0], 2.0).unwrap();
        near(&row(&*placed, 3, 0), &[0.5 / 1.5, 0.5 / 1.5, 0.5 / 1.5]);
        near(&row(&*placed, 3, 2), &[2.0 / 12.0, 2.0 / 12.0, 8.0 / 12.0]);
        let two = by_place(&[line, vec![0, 1, 2]], vec![4.0, 2.0, 1.0], 2.0).unwrap();
        near(
            &row(&*two, 3, 2),
            &[(2.0 / 12.0 + 2.0 / 12.0) / 2.0, 2.0 / 12.0, 8.0 / 12.0],
        );
        near(
            &row(&*by_place(&[vec![0]], vec![3.0], 7.0).unwrap(), 1, 0),
            &[1.0],
        );
        for bad in [
            vec![],
            vec![vec![0, 0, 1]],
            vec![vec![0, 1]],
            vec![vec![0, 1, 9]],
        ] {
            assert!(by_place(&bad, vec![1.0; 3], 1.0).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sets_by_hand() {
        let e = space(&[0.0, 9.0, 1.0, 10.0]);
        let sets = partition(&*e, 2, &Control::new()).unwrap();
        assert_eq!(sets, [0, 1, 0, 1]);
        assert_eq!(partition(&*e, 3, &Control::new()).unwrap(), [0, 0, 0, 1]);
        let (one, less) = (1.0 / (1.0 + (-0.5f64).exp()), 1.0 / (1.0 + 0.5f64.exp()));
        let rows = in_sets(e.clone(), 1.0, Outputs::Sets(sets), &[3]).unwrap();
        near(&row(&*rows, 4, 0), &[one, 0.0, less, 0.0]);
        near(&row(&*rows, 4, 3), &[0.0, 0.0, 0.0, 1.0]);
        let rows = in_sets(e.clone(), 1.0, Outputs::Nearest(2), &[]).unwrap();
        near(&row(&*rows, 4, 1), &[0.0, one, 0.0, less]);
        assert_eq!(nearest(&*e, 2, 3), [2, 0, 1]);
        assert!(in_sets(e.clone(), 1.0, Outputs::Sets(vec![0]), &[]).is_err());
        assert!(in_sets(e, 1.0, Outputs::Nearest(2), &[4]).is_err());
    }
}
