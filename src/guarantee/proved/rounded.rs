//! Bounds as text, never below the bound.

/// A bound as a decimal number with a number of digits after the point, never below the bound.
pub(crate) fn decimals_up(x: f64, digits: usize) -> String {
    moved(x, 0.1f64.powi(digits as i32), |x| format!("{x:.digits$}"))
}

/// A lower bound as a decimal number with a number of digits after the point, never above the
/// bound.
pub(in crate::guarantee) fn decimals_down(x: f64, digits: usize) -> String {
    moved(x, -0.1f64.powi(digits as i32), |x| format!("{x:.digits$}"))
}

/// The number as it is written, one `unit` farther if that is not on the unit's side of it.
fn moved(x: f64, unit: f64, written: impl Fn(f64) -> String) -> String {
    let nearest = written(x);
    match nearest.parse::<f64>() {
        Ok(shown) if (x - shown) * unit > 0.0 => written(shown + unit),
        _ => nearest,
    }
}

/// A bound with the digits that readers need, never below it: 2.563 for 2.562268875544929.
pub(crate) fn rounded_up(x: f64) -> String {
    let written = scientific_up(x, 4);
    match written.parse::<f64>() {
        Ok(shown) => shown.to_string(),
        Err(_) => written,
    }
}

/// A bound with a number of digits and an exponent, never below it.
pub(in crate::guarantee) fn scientific_up(x: f64, digits: usize) -> String {
    let places = digits.saturating_sub(1);
    let written = |x: f64| format!("{x:.places$e}");
    let exponent = |written: String| written.split_once('e')?.1.parse::<i32>().ok();
    let exponent = exponent(written(x)).unwrap_or(0);
    moved(x, 10f64.powi(exponent - places as i32), written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_bounds_are_never_below_the_bound() {
        for (x, decimals, two_digits) in [
            (1.0004, "1.001", "1.1e0"),
            (10.7991, "10.800", "1.1e1"),
            (0.0004, "0.001", "4.0e-4"),
            (9.999, "9.999", "1.0e1"),
            (9.9991, "10.000", "1.0e1"),
            (9.91, "9.910", "1.0e1"),
            (0.25, "0.250", "2.5e-1"),
            (f64::INFINITY, "inf", "inf"),
        ] {
            assert_eq!(decimals_up(x, 3), decimals);
            assert_eq!(scientific_up(x, 2), two_digits);
        }
        for (x, shown) in [
            (2.562268875544929, "2.563"),
            (2.25, "2.25"),
            (3.0, "3"),
            (99.999, "100"),
            (0.000_123_41, "0.0001235"),
            (0.0, "0"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(rounded_up(x), shown);
        }
        for i in 1..20_000 {
            let x = (f64::from(i) * 0.001_234_567).exp();
            for shown in [decimals_up(x, 3), scientific_up(x, 2), rounded_up(x)] {
                assert!(shown.parse::<f64>().unwrap() >= x, "{shown} {x}");
            }
            let below = decimals_down(x, 3).parse::<f64>().unwrap();
            assert!(below <= x && below >= x - 0.001 * (1.0 + 1e-12) - x * 1e-12);
            let most = (x + 0.001) * (1.0 + 1e-12);
            assert!(decimals_up(x, 3).parse::<f64>().unwrap() <= most);
            assert!(scientific_up(x, 2).parse::<f64>().unwrap() < x * 1.11);
            assert!(rounded_up(x).parse::<f64>().unwrap() < x * 1.001_01);
        }
    }
}
