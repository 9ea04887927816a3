//! Passes over a row of costs: the inner loops of both solvers, vectorised.
//!
//! Rows are padded to whole [`LANES`] with +∞, and everything that stands beside a row is as
//! long: a padded column is never nearest.

/// Numbers taken together; rows are padded to multiples of it.
pub(super) const LANES: usize = 8;

/// `inline` functions compiled once more for wider vectors, chosen when they are called.
macro_rules! widened {
    ($(#[$doc:meta])* $name:ident, $wide:ident, $body:ident, ($($arg:ident: $type:ty),*) -> $result:ty) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
        fn $wide($($arg: $type),*) -> $result {
            $body($($arg),*)
        }

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
    /// Lowers `least` to the row where that is smaller, and remembers the row as `from` there.
    lower, lower_wide, lower_body, (row: &[f64], from: u64, least: &mut [f64], of: &mut [u64]) -> ()
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

widened!(
    /// The smallest number and where it stands.
    least, least_wide, least_body, (numbers: &[f64]) -> (f64, usize)
);

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn least_body(numbers: &[f64]) -> (f64, usize) {
    let (numbers, _) = numbers.as_chunks::<LANES>();
    let mut least = [f64::INFINITY; LANES];
    let mut at = [0u64; LANES];
    for (x, chunk) in numbers.iter().zip(0u64..) {
        for l in 0..LANES {
            let smaller = x[l] < least[l];
            least[l] = if smaller { x[l] } else { least[l] };
            at[l] = if smaller { chunk } else { at[l] };
        }
    }
    smallest(least, at)
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
fn lower_body(row: &[f64], from: u64, least: &mut [f64], of: &mut [u64]) {
    let (row, _) = row.as_chunks::<LANES>();
    let (least, _) = least.as_chunks_mut::<LANES>();
    let (of, _) = of.as_chunks_mut::<LANES>();
    for ((row, least), of) in row.iter().zip(least).zip(of) {
        for l in 0..LANES {
            let lower = row[l] < least[l];
            least[l] = if lower { row[l] } else { least[l] };
            of[l] = if lower { from } else { of[l] };
        }
    }
}
