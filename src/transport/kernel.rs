//! Passes over a row of costs: the inner loops of both solvers, vectorised.
//!
//! Rows are padded to whole [`LANES`] with +∞, and everything that stands beside a row is as
//! long: a padded column is never nearest.

/// Numbers taken together; rows are padded to multiples of it.
pub(super) const LANES: usize = 8;

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Functions with a portable body and one of AVX-512, chosen when they are called: the
/// vectoriser makes branches of what are masks here.
macro_rules! widened {
    ($(#[$doc:meta])* $name:ident, $wide:ident, $body:ident, ($($arg:ident: $type:ty),*) -> $result:ty) => {
        $(#[$doc])*
        #[inline]
        pub(super) fn $name($($arg: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                // SAFETY: the features were detected.
                return unsafe { $wide($($arg),*) };
            }
            $body($($arg),*)
        }
    };
}

widened!(
    /// Shortens distances to columns by way of a row: cand = (row - v) + base. Remembers the
    /// row as `from` where it is nearer. Returns the nearest column and its distance. Columns
    /// that are done have v = -∞ and distance +∞.
    relax, relax_wide, relax_body,
    (row: &[f64], v: &[f64], base: f64, from: u64, distance: &mut [f64], via: &mut [u64]) -> (f64, usize)
);

widened!(
    /// The two smallest of row - v, and where they stand; the smaller index first on ties.
    two_least, two_least_wide, two_least_body, (row: &[f64], v: &[f64]) -> [(f64, usize); 2]
);

widened!(
    /// Lowers `least` to row - u where that is smaller, and remembers the row as `from` there.
    lower, lower_wide, lower_body, (row: &[f64], u: f64, from: u64, least: &mut [f64], of: &mut [u64]) -> ()
);

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn relax_body(
    row: &[f64],
    v: &[f64],
    base: f64,
    from: u64,
    distance: &mut [f64],
    via: &mut [u64],
) -> (f64, usize) {
    let (row, _) = row.as_chunks::<LANES>();
    let (v, _) = v.as_chunks::<LANES>();
    let (distance, _) = distance.as_chunks_mut::<LANES>();
    let (via, _) = via.as_chunks_mut::<LANES>();
    let mut least = [f64::INFINITY; LANES];
    let mut at = [0u64; LANES];
    let all = row.iter().zip(v).zip(distance).zip(via).zip(0u64..);
    for ((((row, v), distance), via), chunk) in all {
        for l in 0..LANES {
            let candidate = (row[l] - v[l]) + base;
            let nearer = candidate < distance[l];
            distance[l] = if nearer { candidate } else { distance[l] };
            via[l] = if nearer { from } else { via[l] };
            let smaller = distance[l] < least[l];
            least[l] = if smaller { distance[l] } else { least[l] };
            at[l] = if smaller { chunk } else { at[l] };
        }
    }
    smallest(least, at)
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn two_least_body(row: &[f64], v: &[f64]) -> [(f64, usize); 2] {
    let (row, _) = row.as_chunks::<LANES>();
    let (v, _) = v.as_chunks::<LANES>();
    let mut first = [f64::INFINITY; LANES];
    let mut second = [f64::INFINITY; LANES];
    let mut first_at = [0u64; LANES];
    let mut second_at = [0u64; LANES];
    for ((row, v), chunk) in row.iter().zip(v).zip(0u64..) {
        for l in 0..LANES {
            let x = row[l] - v[l];
            let below_first = x < first[l];
            let below_second = x < second[l];
            second_at[l] = if below_second { chunk } else { second_at[l] };
            second_at[l] = if below_first {
                first_at[l]
            } else {
                second_at[l]
            };
            second[l] = if below_second { x } else { second[l] };
            second[l] = if below_first { first[l] } else { second[l] };
            first[l] = if below_first { x } else { first[l] };
            first_at[l] = if below_first { chunk } else { first_at[l] };
        }
    }
    let mut best = [(f64::INFINITY, usize::MAX); 2];
    for l in 0..LANES {
        for (x, chunk) in [(first[l], first_at[l]), (second[l], second_at[l])] {
            let found = (x, chunk as usize * LANES + l);
            if found.0 < best[0].0 || found.0 == best[0].0 && found.1 < best[0].1 {
                best = [found, best[0]];
            } else if found.0 < best[1].0 || found.0 == best[1].0 && found.1 < best[1].1 {
                best[1] = found;
            }
        }
    }
    best
}

/// The smallest of the lanes, the smaller index on ties.
#[inline(always)]
fn smallest(least: [f64; LANES], at: [u64; LANES]) -> (f64, usize) {
    let mut best = (f64::INFINITY, usize::MAX);
    for (l, (least, chunk)) in least.into_iter().zip(at).enumerate() {
        let index = chunk as usize * LANES + l;
        if least < best.0 || least == best.0 && index < best.1 {
            best = (least, index);
        }
    }
    best
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn lower_body(row: &[f64], u: f64, from: u64, least: &mut [f64], of: &mut [u64]) {
    let (row, _) = row.as_chunks::<LANES>();
    let (least, _) = least.as_chunks_mut::<LANES>();
    let (of, _) = of.as_chunks_mut::<LANES>();
    for ((row, least), of) in row.iter().zip(least).zip(of) {
        for l in 0..LANES {
            let x = row[l] - u;
            let lower = x < least[l];
            least[l] = if lower { x } else { least[l] };
            of[l] = if lower { from } else { of[l] };
        }
    }
}

/// The least numbers so far, and in which chunk each lane's stands.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Least {
    least: __m512d,
    at: __m512i,
}

#[cfg(target_arch = "x86_64")]
impl Least {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    fn new() -> Self {
        Least {
            least: _mm512_set1_pd(f64::INFINITY),
            at: _mm512_setzero_si512(),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    fn add(&mut self, x: __m512d, chunk: usize) {
        let smaller = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(x, self.least);
        self.least = _mm512_mask_mov_pd(self.least, smaller, x);
        self.at = _mm512_mask_mov_epi64(self.at, smaller, _mm512_set1_epi64(chunk as i64));
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    fn smallest(&self) -> (f64, usize) {
        // Of the lanes with the least number the one of the smallest index.
        let least = _mm512_reduce_min_pd(self.least);
        let lanes = _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(self.least, _mm512_set1_pd(least));
        let lane = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
        let index = _mm512_add_epi64(_mm512_slli_epi64::<3>(self.at), lane);
        (least, _mm512_mask_reduce_min_epu64(lanes, index) as usize)
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn relax_wide(
    row: &[f64],
    v: &[f64],
    base: f64,
    from: u64,
    distance: &mut [f64],
    via: &mut [u64],
) -> (f64, usize) {
    let (row, _) = row.as_chunks::<LANES>();
    let (v, _) = v.as_chunks::<LANES>();
    let (distance, _) = distance.as_chunks_mut::<LANES>();
    let (via, _) = via.as_chunks_mut::<LANES>();
    let (base, from) = (_mm512_set1_pd(base), _mm512_set1_epi64(from as i64));
    let mut least = Least::new();
    let all = row.iter().zip(v).zip(distance).zip(via);
    for (chunk, (((row, v), distance), via)) in all.enumerate() {
        // SAFETY: each of them has eight numbers.
        let old = unsafe {
            let row = _mm512_loadu_pd(row.as_ptr());
            let v = _mm512_loadu_pd(v.as_ptr());
            let candidate = _mm512_add_pd(_mm512_sub_pd(row, v), base);
            let old = _mm512_loadu_pd(distance.as_ptr());
            let nearer = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(candidate, old);
            let new = _mm512_mask_mov_pd(old, nearer, candidate);
            _mm512_storeu_pd(distance.as_mut_ptr(), new);
            _mm512_mask_storeu_epi64(via.as_mut_ptr().cast(), nearer, from);
            new
        };
        least.add(old, chunk);
    }
    least.smallest()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn two_least_wide(row: &[f64], v: &[f64]) -> [(f64, usize); 2] {
    let (row, _) = row.as_chunks::<LANES>();
    let (v, _) = v.as_chunks::<LANES>();
    let (mut first, mut second) = (Least::new(), Least::new());
    for (chunk, (row, v)) in row.iter().zip(v).enumerate() {
        // SAFETY: both have eight numbers.
        let x =
            unsafe { _mm512_sub_pd(_mm512_loadu_pd(row.as_ptr()), _mm512_loadu_pd(v.as_ptr())) };
        // What is pushed out of the first place, or did not come in, tries the second.
        let smaller = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(x, first.least);
        let this = _mm512_set1_epi64(chunk as i64);
        let (loser, loser_at) = (
            _mm512_mask_mov_pd(x, smaller, first.least),
            _mm512_mask_mov_epi64(this, smaller, first.at),
        );
        first.least = _mm512_mask_mov_pd(first.least, smaller, x);
        first.at = _mm512_mask_mov_epi64(first.at, smaller, this);
        let smaller = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(loser, second.least);
        second.least = _mm512_mask_mov_pd(second.least, smaller, loser);
        second.at = _mm512_mask_mov_epi64(second.at, smaller, loser_at);
    }
    let best = first.smallest();
    // The second best: of the lane of the best its second, of the others their first.
    let lane = 1u8 << (best.1 % LANES);
    let rest = Least {
        least: _mm512_mask_mov_pd(first.least, lane, second.least),
        at: _mm512_mask_mov_epi64(first.at, lane, second.at),
    };
    [best, rest.smallest()]
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn lower_wide(row: &[f64], u: f64, from: u64, least: &mut [f64], of: &mut [u64]) {
    let (row, _) = row.as_chunks::<LANES>();
    let (least, _) = least.as_chunks_mut::<LANES>();
    let (of, _) = of.as_chunks_mut::<LANES>();
    let (from, u) = (_mm512_set1_epi64(from as i64), _mm512_set1_pd(u));
    for ((row, least), of) in row.iter().zip(least).zip(of) {
        // SAFETY: each of them has eight numbers.
        unsafe {
            let row = _mm512_sub_pd(_mm512_loadu_pd(row.as_ptr()), u);
            let old = _mm512_loadu_pd(least.as_ptr());
            let lower = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(row, old);
            // Blended, not stored by mask: at opt-level 0 with LTO, as doctests are built, LLVM
            // cannot compile two masked stores.
            _mm512_storeu_pd(least.as_mut_ptr(), _mm512_mask_mov_pd(old, lower, row));
            let before = _mm512_loadu_epi64(of.as_ptr().cast());
            let after = _mm512_mask_mov_epi64(before, lower, from);
            _mm512_storeu_epi64(of.as_mut_ptr().cast(), after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    #[test]
    fn every_width_does_the_same() {
        let mut rng = crate::Randomness::new(Some(1))
            .next_key()
            .unwrap()
            .stream(0);
        for columns in 1..70usize {
            for values in [3, 1000] {
                let stride = columns.next_multiple_of(LANES);
                let mut numbers = || -> Vec<f64> {
                    let mut numbers: Vec<f64> = (0..columns)
                        .map(|_| f64::from(rng.random_range(0..values)))
                        .collect();
                    numbers.resize(stride, f64::INFINITY);
                    numbers
                };
                let (row, mut distance, mut v) = (numbers(), numbers(), numbers());
                v[columns..].fill(0.0);
                assert_eq!(two_least(&row, &v), two_least_body(&row, &v));
                let mut via = vec![9; stride];
                let (mut distance_2, mut via_2) = (distance.clone(), via.clone());
                assert_eq!(
                    relax(&row, &v, 1.5, 4, &mut distance, &mut via),
                    relax_body(&row, &v, 1.5, 4, &mut distance_2, &mut via_2)
                );
                assert_eq!((&distance, &via), (&distance_2, &via_2));
                lower(&row, 0.25, 7, &mut distance, &mut via);
                lower_body(&row, 0.25, 7, &mut distance_2, &mut via_2);
                assert_eq!((&distance, &via), (&distance_2, &via_2));
            }
        }
    }
}
