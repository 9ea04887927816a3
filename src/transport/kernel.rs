//! Passes over a row of costs: the inner loops of both solvers, in f64 and f32.
//!
//! Rows are padded with +∞ to a multiple of [`LANES`]. All arrays beside a row have the same length,
//! with 0 in the padding, so a padded column is never nearest. A pass minimises only values, in lanes
//! that become vectors; the position of the minimum is looked up afterwards, which costs less than
//! carrying positions along.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Sub, SubAssign};

use crate::support::simd::vectorised;

/// Numbers that a loop takes together, some vectors, so that no minimum waits for the one before it.
pub(super) const LANES: usize = 32;

/// The two smallest numbers of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TwoLeast<T> {
    pub(super) least: T,
    /// The position of the least number, the first on ties.
    pub(super) at: usize,
    pub(super) second: T,
    /// The next position of the least number, if the second is equal.
    pub(super) tie: Option<usize>,
}

/// The type that costs are computed in.
pub(super) trait Number:
    Copy
    + Default
    + PartialOrd
    + std::fmt::Debug
    + Add<Output = Self>
    + Sub<Output = Self>
    + Div<Output = Self>
    + AddAssign
    + SubAssign
    + Sum
{
    /// +∞, the padding of rows.
    const INFINITY: Self;
    /// -∞.
    const NEG_INFINITY: Self;

    /// The nearest number of this kind.
    fn of(x: f64) -> Self;

    /// A whole number as a position.
    fn position(self) -> usize;
}

impl Number for f64 {
    const INFINITY: Self = f64::INFINITY;
    const NEG_INFINITY: Self = f64::NEG_INFINITY;

    #[inline(always)]
    fn of(x: f64) -> Self {
        x
    }

    #[inline(always)]
    fn position(self) -> usize {
        self as usize
    }
}

impl Number for f32 {
    const INFINITY: Self = f32::INFINITY;
    const NEG_INFINITY: Self = f32::NEG_INFINITY;

    #[inline(always)]
    fn of(x: f64) -> Self {
        x as f32
    }

    #[inline(always)]
    fn position(self) -> usize {
        self as usize
    }
}

vectorised! {
    /// Shortens distances to columns through a row: (row - v) + base. Returns the nearest column's
    /// distance and the column, the first on ties. Columns that are done have v = -∞ and distance
    /// +∞; at least one is not done.
    pub(super) fn relax[T: Number] = relax_body(row: &[T], v: &[T], base: T, distance: &mut [T]) -> (T, usize)
}

vectorised! {
    /// The smallest of row - v and its position, the first on ties.
    pub(super) fn nearest[T: Number] = nearest_body(row: &[T], v: &[T]) -> (T, usize)
}

vectorised! {
    /// The two smallest of row - v.
    pub(super) fn two_least[T: Number] = two_least_body(row: &[T], v: &[T]) -> TwoLeast<T>
}

vectorised! {
    /// The smallest of row - v.
    pub(super) fn least[T: Number] = least_body(row: &[T], v: &[T]) -> T
}

vectorised! {
    /// Lowers `least` to row - u if that is smaller, and records the row `from` in `of`.
    pub(super) fn lower[T: Number] = lower_body(row: &[T], u: T, from: u32, least: &mut [T], of: &mut [u32])
}

vectorised! {
    /// Adds a row to `sums`.
    pub(super) fn add_row[T: Number] = add_body(row: &[T], sums: &mut [T])
}

vectorised! {
    /// The smallest of row · scale - v, for bounded costs and exact dual potentials.
    pub(super) fn least_scaled = least_scaled_body(row: &[f32], v: &[f64], scale: f64) -> f64
}

vectorised! {
    /// Collects every position where row · scale - v is at most `limit`, with row · scale there.
    pub(super) fn at_most = at_most_body(row: &[f32], v: &[f64], scale: f64, limit: f64, found: &mut Vec<(usize, f64)>)
}

/// The smaller one; the second if the first is NaN.
#[inline(always)]
fn smaller<T: PartialOrd>(x: T, y: T) -> T {
    if x < y { x } else { y }
}

#[inline(always)]
fn larger<T: PartialOrd>(x: T, y: T) -> T {
    if x > y { x } else { y }
}

/// The chunks of two arrays of equal length.
#[inline(always)]
fn chunks<'a, A, B>(
    a: &'a [A],
    b: &'a [B],
) -> impl Iterator<Item = (&'a [A; LANES], &'a [B; LANES])> {
    a.as_chunks().0.iter().zip(b.as_chunks().0)
}

/// The smallest of some lanes, by halves.
#[inline(always)]
fn least_of<T: Number>(mut lanes: [T; LANES]) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for l in 0..half {
            lanes[l] = smaller(lanes[l], lanes[l + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// The numbers of the lanes of the first chunk; those of a later one are larger by [`LANES`] each.
#[inline(always)]
fn positions<T: Number>() -> [T; LANES] {
    let mut at = [T::default(); LANES];
    for (l, at) in at.iter_mut().enumerate() {
        *at = T::of(l as f64);
    }
    at
}

/// The first position of a number that some chunks have; each is a function of the lane.
#[inline(always)]
fn first_at<T: Number, F: Fn(usize) -> T>(all: impl Iterator<Item = F>, number: T) -> usize {
    let (mut first, mut here) = ([T::INFINITY; LANES], positions());
    for of in all {
        for l in 0..LANES {
            let at = if of(l) == number {
                here[l]
            } else {
                T::INFINITY
            };
            first[l] = smaller(at, first[l]);
            here[l] += T::of(LANES as f64);
        }
    }
    least_of(first).position()
}

#[inline(always)]
fn relax_body<T: Number>(row: &[T], v: &[T], base: T, distance: &mut [T]) -> (T, usize) {
    let mut least = [T::INFINITY; LANES];
    let (all, _) = distance.as_chunks_mut::<LANES>();
    for ((row, v), distance) in chunks(row, v).zip(&mut *all) {
        for l in 0..LANES {
            distance[l] = smaller((row[l] - v[l]) + base, distance[l]);
            least[l] = smaller(distance[l], least[l]);
        }
    }
    let least = least_of(least);
    let all = all.iter().map(|distance| |l: usize| distance[l]);
    (least, first_at(all, least))
}

#[inline(always)]
fn nearest_body<T: Number>(row: &[T], v: &[T]) -> (T, usize) {
    let least = least_body(row, v);
    let all = chunks(row, v).map(|(row, v)| |l: usize| row[l] - v[l]);
    (least, first_at(all, least))
}

/// The smallest of some lanes, of which one is `least`: that one counts as the next of its lane.
#[inline(always)]
fn second_of<T: Number>(first: [T; LANES], next: [T; LANES], least: T) -> T {
    let mut rest = first;
    for l in 0..LANES {
        rest[l] = if first[l] == least { next[l] } else { first[l] };
    }
    least_of(rest)
}

#[inline(always)]
fn two_least_body<T: Number>(row: &[T], v: &[T]) -> TwoLeast<T> {
    let (mut first, mut next) = ([T::INFINITY; LANES], [T::INFINITY; LANES]);
    for (row, v) in chunks(row, v) {
        for l in 0..LANES {
            let x = row[l] - v[l];
            next[l] = smaller(larger(x, first[l]), next[l]);
            first[l] = smaller(x, first[l]);
        }
    }
    let least = least_of(first);
    // The same of the positions of the least number, which differ.
    let (mut one, mut other) = ([T::INFINITY; LANES], [T::INFINITY; LANES]);
    let mut here = positions::<T>();
    for (row, v) in chunks(row, v) {
        for l in 0..LANES {
            let equal = row[l] - v[l] == least;
            let at = if equal { here[l] } else { T::INFINITY };
            other[l] = smaller(larger(at, one[l]), other[l]);
            one[l] = smaller(at, one[l]);
            here[l] += T::of(LANES as f64);
        }
    }
    let at = least_of(one);
    let tie = second_of(one, other, at);
    let tied = tie < T::INFINITY;
    TwoLeast {
        least,
        at: at.position(),
        second: if tied {
            least
        } else {
            second_of(first, next, least)
        },
        tie: tied.then(|| tie.position()),
    }
}

#[inline(always)]
fn least_body<T: Number>(row: &[T], v: &[T]) -> T {
    let mut least = [T::INFINITY; LANES];
    for (row, v) in chunks(row, v) {
        for l in 0..LANES {
            least[l] = smaller(row[l] - v[l], least[l]);
        }
    }
    least_of(least)
}

#[inline(always)]
fn lower_body<T: Number>(row: &[T], u: T, from: u32, least: &mut [T], of: &mut [u32]) {
    for ((&c, least), of) in row.iter().zip(least).zip(of) {
        let x = c - u;
        let lower = x < *least;
        *least = if lower { x } else { *least };
        *of = if lower { from } else { *of };
    }
}

#[inline(always)]
fn add_body<T: Number>(row: &[T], sums: &mut [T]) {
    for (sum, &c) in sums.iter_mut().zip(row) {
        *sum += c;
    }
}

#[inline(always)]
fn least_scaled_body(row: &[f32], v: &[f64], scale: f64) -> f64 {
    let mut least = [f64::INFINITY; LANES];
    for (row, v) in chunks(row, v) {
        for l in 0..LANES {
            least[l] = smaller(f64::from(row[l]) * scale - v[l], least[l]);
        }
    }
    least_of(least)
}

#[inline(always)]
fn at_most_body(row: &[f32], v: &[f64], scale: f64, limit: f64, found: &mut Vec<(usize, f64)>) {
    for (k, (row, v)) in chunks(row, v).enumerate() {
        let mut any = false;
        for l in 0..LANES {
            any |= f64::from(row[l]) * scale - v[l] <= limit;
        }
        if any {
            let scaled = (0..LANES).map(|l| (l, f64::from(row[l]) * scale));
            let here = scaled.filter(|&(l, scaled)| scaled - v[l] <= limit);
            found.extend(here.map(|(l, scaled)| (k * LANES + l, scaled)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    /// Compares the passes with their definition, column by column. The numbers are integers, so that
    /// many are equal.
    fn passes_are_as_defined<T: Number>() {
        let mut rng = crate::testing::rng(1);
        for columns in 1..70usize {
            for values in [3, 1000] {
                let stride = columns.next_multiple_of(LANES);
                let mut numbers = |padding: T| -> Vec<T> {
                    let mut numbers: Vec<T> = (0..columns)
                        .map(|_| T::of(f64::from(rng.random_range(0..values))))
                        .collect();
                    numbers.resize(stride, padding);
                    numbers
                };
                let (row, distance) = (numbers(T::INFINITY), numbers(T::INFINITY));
                let v = numbers(T::of(0.0));
                let differences: Vec<T> = row.iter().zip(&v).map(|(&c, &v)| c - v).collect();
                let mut order: Vec<usize> = (0..stride).collect();
                order.sort_by(|&i, &j| {
                    let by_value = differences[i].partial_cmp(&differences[j]);
                    by_value.unwrap().then(i.cmp(&j))
                });
                let (first, second) = (order[0], order[1]);
                let expected = TwoLeast {
                    least: differences[first],
                    at: first,
                    second: differences[second],
                    tie: (differences[first] == differences[second]).then_some(second),
                };
                assert_eq!(two_least(&row, &v), expected);
                assert_eq!(nearest(&row, &v), (expected.least, first));
                assert_eq!(least(&row, &v), expected.least);

                let base = T::of(1.5);
                let by = |(&d, &x): (&T, &T)| smaller(x + base, d);
                let expected: Vec<T> = distance.iter().zip(&differences).map(by).collect();
                let nearest = expected.iter().fold(T::INFINITY, |m, &d| smaller(d, m));
                let at = expected.iter().position(|&d| d == nearest).unwrap();
                let mut relaxed = distance.clone();
                assert_eq!(relax(&row, &v, base, &mut relaxed), (nearest, at));
                assert_eq!(relaxed, expected);

                let u = T::of(0.25);
                let (mut lowered, mut of) = (distance.clone(), vec![9; stride]);
                lower(&row, u, 7, &mut lowered, &mut of);
                for j in 0..stride {
                    let lower = row[j] - u < distance[j];
                    assert_eq!(lowered[j], if lower { row[j] - u } else { distance[j] });
                    assert_eq!(of[j], if lower { 7 } else { 9 });
                }

                let mut sums = v.clone();
                add_row(&row, &mut sums);
                assert!((0..stride).all(|j| sums[j] == v[j] + row[j]));
            }
        }
    }

    #[test]
    fn scaled_rows_are_passed_as_they_are_defined() {
        let mut rng = crate::testing::rng(2);
        for columns in 1..70usize {
            let stride = columns.next_multiple_of(LANES);
            let mut row: Vec<f32> = (0..columns).map(|_| rng.random()).collect();
            row.resize(stride, f32::INFINITY);
            let mut v: Vec<f64> = (0..columns).map(|_| rng.random()).collect();
            v.resize(stride, 0.0);
            let scale = 1.0 - 1e-6;
            let at = |j: usize| f64::from(row[j]) * scale;
            let least = (0..stride)
                .map(|j| at(j) - v[j])
                .fold(f64::INFINITY, f64::min);
            assert_eq!(least_scaled(&row, &v, scale), least);
            for limit in [least, 0.2, f64::NEG_INFINITY] {
                let expected: Vec<(usize, f64)> = (0..stride)
                    .filter(|&j| at(j) - v[j] <= limit)
                    .map(|j| (j, at(j)))
                    .collect();
                let mut found = Vec::new();
                at_most(&row, &v, scale, limit, &mut found);
                assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn passes_in_both_types_are_as_defined() {
        passes_are_as_defined::<f64>();
        passes_are_as_defined::<f32>();
    }
}
