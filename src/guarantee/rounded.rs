//! Bounds as text, never below the bound.

/// A bound as a decimal number with a number of digits after the point, never below the bound.
pub(crate) fn decimals_up(x: f64, digits: usize) -> String {
    let nearest = format!("{x:.digits$}");
    match nearest.parse::<f64>() {
        Ok(shown) if shown < x => format!("{:.digits$}", shown + 0.1f64.powi(digits as i32)),
        _ => nearest,
    }
}

/// A lower bound as a decimal number with a number of digits after the point, never above the
/// bound.
pub(super) fn decimals_down(x: f64, digits: usize) -> String {
    let nearest = format!("{x:.digits$}");
    match nearest.parse::<f64>() {
        Ok(shown) if shown > x => format!("{:.digits$}", shown - 0.1f64.powi(digits as i32)),
        _ => nearest,
    }
}

/// A bound as a number with two digits and an exponent, never below it.
pub(super) fn two_digits_up(x: f64) -> String {
    let nearest = format!("{x:.1e}");
    let above = nearest.parse::<f64>().is_ok_and(|shown| shown >= x);
    let Some((digits, exponent)) = nearest.split_once('e').filter(|_| !above) else {
        return nearest;
    };
    let tenths = digits.replace('.', "").parse::<u32>();
    match (tenths, exponent.parse::<i32>()) {
        (Ok(99), Ok(exponent)) => format!("1.0e{}", exponent + 1),
        (Ok(tenths), Ok(exponent)) => {
            format!("{}.{}e{exponent}", (tenths + 1) / 10, (tenths + 1) % 10)
        }
        _ => nearest,
    }
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
            assert_eq!(two_digits_up(x), two_digits);
        }
        for i in 1..20_000 {
            let x = (f64::from(i) * 0.001_234_567).exp();
            for shown in [decimals_up(x, 3), two_digits_up(x)] {
                assert!(shown.parse::<f64>().unwrap() >= x, "{shown} {x}");
            }
            let below = decimals_down(x, 3).parse::<f64>().unwrap();
            assert!(below <= x && below >= x - 0.001 * (1.0 + 1e-12) - x * 1e-12);
            let most = (x + 0.001) * (1.0 + 1e-12);
            assert!(decimals_up(x, 3).parse::<f64>().unwrap() <= most);
            assert!(two_digits_up(x).parse::<f64>().unwrap() < x * 1.11);
        }
    }
}
