//! Hyperbolic space: the Poincaré ball, curvature -1.
//!
//! A point of the ball is x with ‖x‖ < 1; ‖x‖ = tanh(ρ/2), where ρ is its distance from the origin.
//! The formulas are those of Nickel and Kiela (2017) and Ganea, Bécigneul and Hofmann (2018).
//!
//! **Accuracy.** The limit is 1 - ‖x‖², whose absolute error is a few 2⁻⁵³. Distances and maps have
//! a relative error of 1e-10 up to ‖x‖ = 0.99999 (ρ = 12.2) and about 2⁻⁵¹/(1-‖x‖) beyond. They are
//! meaningless once ‖x‖ rounds to 1 (ρ ≈ 37).

pub mod noise;

use crate::distance::metric::norm2;

/// The parameter λ of the clamp.
pub const LAMBDA: f64 = 1e-5;

/// 1 - ‖x‖².
fn one_minus_norm2(x: &[f64]) -> f64 {
    1.0 - norm2(x)
}

/// Computes the Möbius addition a ⊕ b: the isometry that takes the origin to a, applied to b.
/// Writes to `out`.
pub fn mobius_add(a: &[f64], b: &[f64], out: &mut [f64]) {
    // 1 + 2ab + ‖a‖²‖b‖² = ‖a + b‖² + (1-‖a‖²)(1-‖b‖²) is accurate where a and b nearly cancel. The
    // coefficient of a, 1 + 2ab + ‖b‖², is (1-‖a‖²) + ‖a + b‖².
    let sum2: f64 = a.iter().zip(b).map(|(a, b)| (a + b) * (a + b)).sum();
    let a2 = one_minus_norm2(a);
    let below = sum2 + a2 * one_minus_norm2(b);
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = ((a + b) * a2 + a * sum2) / below;
    }
}

/// Clamps a point: proj(θ) = θ/‖θ‖·(1-λ) outside the ball of radius 1 - λ, unchanged inside.
/// (ICDM'19 prints 1 + λ.)
pub fn clamp(x: &mut [f64], lambda: f64) {
    let norm = norm2(x).sqrt();
    if norm > 1.0 - lambda {
        let scale = (1.0 - lambda) / norm;
        x.iter_mut().for_each(|x| *x *= scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// -a ⊕ (a ⊕ b) = b, also of neighbours and near the boundary.
        #[test]
        fn an_addition_is_undone(
            numbers in proptest::collection::vec((-1.0f64..1.0, -1.0f64..1.0), 1..9),
            norms in (0.0f64..1.0, 0.0f64..1.0), near: bool
        ) {
            let (mut a, mut b): (Vec<f64>, Vec<f64>) = numbers.into_iter().unzip();
            for (x, norm) in [(&mut a, norms.0), (&mut b, norms.1)] {
                let scale = (1.0 - (-9.0 * norm).exp()) / norm2(x).sqrt().max(1e-9);
                x.iter_mut().for_each(|x| *x *= scale);
            }
            if near {
                b = a.iter().map(|a| -a * (1.0 - 1e-9)).collect();
            }
            let minus: Vec<f64> = a.iter().map(|a| -a).collect();
            let (mut sum, mut back) = (vec![0.0; a.len()], vec![0.0; a.len()]);
            mobius_add(&a, &b, &mut sum);
            proptest::prop_assert!(norm2(&sum) < 1.0);
            mobius_add(&minus, &sum, &mut back);
            for (back, b) in back.iter().zip(&b) {
                proptest::prop_assert!((back - b).abs() < 1e-6, "{back} {b}");
            }
        }
    }
}
