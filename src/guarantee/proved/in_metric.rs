//! A guarantee in another metric of the same words: Corollary 1 of POST'19 (Fernandes, Dras,
//! McIver). If ε·d(w,w') ≤ ε'·D(w,w') for all words w and w', then whatever is ε·d-private is
//! ε'·D-private. The least such ε' is the largest quotient over all pairs.

use crate::mechanism::Mechanism;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, install, map_all_with};

/// Covers the rounding of D and of the quotient; that of d is in the mechanism's bound.
const ROUNDED_UP: f64 = 1.0 + 1.0 / (1u64 << 36) as f64;

/// Computes the least ε' per unit of a metric whose rows `row` writes; `control` counts the words.
///
/// # Errors
/// [`Error::Parameter`] where D is negative or NaN, or 0 for two words that can be told apart, by the
/// words; [`Error::Interrupted`].
pub fn in_metric(
    mechanism: &dyn Mechanism,
    row: impl Fn(u32, &mut [f64]) + Sync,
    control: &Control,
) -> Result<f64> {
    let words = mechanism.vocabulary();
    let count = words.len();
    let refused = |expected: &str, distance: f64, a: u32, b: u32| {
        let (a, b) = (words.word(a), words.word(b));
        Error::parameter(
            "metric",
            expected,
            format!("{distance} from {a:?} to {b:?}"),
        )
    };
    let of_word = |distances: &mut Vec<f64>, a: u32| {
        control.check()?;
        distances.resize(count, 0.0);
        row(a, distances);
        let mut most = 0.0f64;
        for (b, &distance) in (0..).zip(&*distances) {
            if distance.is_nan() || distance < 0.0 {
                return Err(refused("at least 0", distance, a, b));
            }
            let bound = mechanism.bound(a, b);
            if bound > 0.0 && distance == 0.0 {
                let expected = "above 0 between words that can be told apart";
                return Err(refused(expected, distance, a, b));
            }
            if bound > 0.0 {
                most = most.max(bound / distance);
            }
        }
        control.advance(1);
        Ok(most)
    };
    let words = 0..count as u32;
    let all = install(count * count, 0, || map_all_with(words, Vec::new, of_word))??;
    Ok(all.into_iter().fold(0.0, f64::max) * ROUNDED_UP)
}
