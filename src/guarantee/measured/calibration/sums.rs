//! Sums over a law of tens of thousands of outputs, vectorised.

use crate::support::simd::vectorised;

/// Sums over a law.
pub(crate) struct Sums {
    /// Σ p ln p.
    pub(crate) p_ln_p: f64,
    /// Σ (1 - p)^draws.
    pub(super) missing: f64,
    /// The largest p.
    pub(super) most: f64,
}

vectorised! {
    /// Computes the sums; the results are the same on every machine.
    pub(crate) fn sums = sums_portable(law: &[f64], draws: usize) -> Sums
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // lanes, for the vectoriser
fn sums_portable(law: &[f64], draws: usize) -> Sums {
    const LANES: usize = 16;
    let power = |mut base: [f64; LANES]| {
        let mut result = [1.0; LANES];
        let mut left = draws;
        while left > 0 {
            for l in 0..LANES {
                result[l] *= if left & 1 == 1 { base[l] } else { 1.0 };
                base[l] *= base[l];
            }
            left >>= 1;
        }
        result
    };
    let (mut p_ln_p, mut missing, mut most) = ([0.0; LANES], [0.0; LANES], [0.0f64; LANES]);
    let (chunks, rest) = law.as_chunks::<LANES>();
    for chunk in chunks {
        let never = power(chunk.map(|p| 1.0 - p));
        for l in 0..LANES {
            p_ln_p[l] += chunk[l] * ln(chunk[l]);
            missing[l] += never[l];
            most[l] = if chunk[l] > most[l] {
                chunk[l]
            } else {
                most[l]
            };
        }
    }
    let never = rest.iter().map(|&p| power([1.0 - p; LANES])[0]);
    Sums {
        p_ln_p: p_ln_p.iter().sum::<f64>() + rest.iter().map(|&p| p * ln(p)).sum::<f64>(),
        missing: missing.iter().sum::<f64>() + never.sum::<f64>(),
        most: most.iter().chain(rest).fold(0.0f64, |a, &p| a.max(p)),
    }
}

/// ln x of a positive normal number, with a relative error of 1e-13, in a form that the vectoriser
/// handles. For 0 and subnormal numbers the result is finite.
#[inline(always)]
fn ln(x: f64) -> f64 {
    // x = m·2^e with m from √½ to √2.
    const HALF_ROOT: u64 = 0x3FE6_A09E_667F_3BCD;
    let shifted = x.to_bits().wrapping_sub(HALF_ROOT);
    let exponent = (shifted.cast_signed() >> 52) as f64;
    let m = f64::from_bits((shifted & ((1 << 52) - 1)).wrapping_add(HALF_ROOT));
    // ln m = 2 artanh z, |z| below 0.172.
    let z = (m - 1.0) / (m + 1.0);
    let z2 = z * z;
    let mut series = 1.0 / 17.0;
    for odd in [15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        series = series * z2 + 1.0 / odd;
    }
    exponent * std::f64::consts::LN_2 + 2.0 * z * series
}

/// Returns how many of the largest of `values`, all ≥ 0, sum to at least `mass`; all of them if
/// rounding left a small remainder.
pub(super) fn smallest_set(values: &[f64], mass: f64) -> u32 {
    let mut values = values.to_vec();
    let (mut rest, mut sum, mut count) = (&mut *values, 0.0, 0);
    while rest.len() > 1 {
        let half = rest.len() / 2;
        rest.select_nth_unstable_by(half, |a, b| b.total_cmp(a));
        let (larger, smaller) = rest.split_at_mut(half);
        let held: f64 = larger.iter().sum();
        rest = match sum + held >= mass {
            true => larger,
            false => {
                sum += held;
                count += half;
                smaller
            }
        };
    }
    (count + rest.len()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    #[test]
    fn the_logarithm_is_accurate() {
        for i in -1000..1000 {
            let x = (f64::from(i) * 0.7).exp();
            if x.is_normal() {
                assert!(
                    (ln(x) - x.ln()).abs() <= 1e-13 * (1.0 + x.ln().abs()),
                    "{x}"
                );
            }
        }
        assert_eq!(sums(&[1.0, 0.0, 0.0], 1).p_ln_p, 0.0);
        let eighths = sums(&[0.125; 8], 1).p_ln_p / std::f64::consts::LN_2;
        assert!((eighths + 3.0).abs() < 1e-14);
    }

    #[test]
    fn smallest_sets_are_those_of_a_sort() {
        let mut rng = crate::testing::rng(2);
        for count in [1usize, 2, 10, 1000] {
            for steep in [0.0, 1.0, 30.0] {
                let values: Vec<f64> = (0..count)
                    .map(|_| (-steep * rng.random::<f64>()).exp())
                    .collect();
                let total: f64 = values.iter().sum();
                let mut sorted = values.clone();
                sorted.sort_by(|a, b| b.total_cmp(a));
                for share in [0.01, 0.5, 0.95, 0.999] {
                    let mut sum = 0.0;
                    let expected = sorted.iter().position(|v| {
                        sum += v;
                        sum >= share * total
                    });
                    let found = smallest_set(&values, share * total) as usize;
                    assert!(found.abs_diff(expected.unwrap() + 1) <= usize::from(steep == 0.0));
                }
            }
        }
    }
}
