//! The regularised Mahalanobis mechanism: elliptical noise (Xu et al. 2020).
//!
//! **Releases** the word whose vector is nearest to φ(w) + N. The density of N is ∝ exp(-e‖N‖_M)
//! with ‖z‖_M = √(zᵀA⁻¹z) and A = λΣ + (1-λ)I. Σ is the covariance of the vocabulary's vectors,
//! scaled to trace n: directions in which the vectors spread get more noise.
//!
//! **Guarantee**: the log-density changes by at most e·‖φ(w) - φ(w')‖_M between two words. This is
//! at most e/√a · d(w,w'), with the Euclidean distance d and the smallest eigenvalue a of A.
//! Vectors along that eigenvector attain it, so the Euclidean ε is e/√a, not the paper's e. Since
//! 1-λ ≤ a, it exists for λ < 1. Σ has an eigenvalue of at most 1, so a ≤ 1 and ε ≥ e. The nearest
//! word is post-processing. Σ comes from the public vocabulary; no private text enters it.
//!
//! **Sampler**: N = R·L·U with R ~ Gamma(n, scale 1/e), U uniform on the sphere and A = LLᵀ. L
//! differs from A's symmetric root by a rotation, which does not change the law of U.
//! [`noisy_nearest`](super::noisy_nearest) does the rest.

use std::sync::Arc;

use rand::rngs::ChaCha12Rng;

use crate::guarantee::Guarantee;
use crate::mechanism::multivariate_laplace::{add_vectors, check_euclidean};
use crate::mechanism::noisy_nearest::{Noise, NoisyNearest, floating_point};
use crate::noise::MultivariateLaplace;
use crate::support::error::{Error, Result, check_epsilon};
use crate::support::parallel::{Control, install, map_all};
use crate::support::random::Randomness;
use crate::words::embedding::Embedding;

/// The mechanism on a Euclidean embedding.
pub type Mahalanobis = NoisyNearest<EllipticalNoise>;

/// Elliptical Laplace noise.
#[derive(Clone, Debug)]
pub struct EllipticalNoise {
    sphere: MultivariateLaplace,
    ellipse: Arc<Ellipse>,
    epsilon: f64,
}

/// The matrix A = λΣ + (1-λ)I.
#[derive(Debug)]
struct Ellipse {
    mixing: f64,
    /// L, row-major, zero above the diagonal.
    factor: Vec<f64>,
    /// A lower bound on √a.
    narrowest: f64,
}

impl Mahalanobis {
    /// Creates the mechanism with the proved `epsilon` per unit of Euclidean distance; `mixing` is
    /// λ.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an `epsilon` that is not positive and finite, a λ outside [0, 1),
    /// or an embedding whose metric is not Euclidean; [`Error::Interrupted`].
    pub fn new(
        embedding: Arc<Embedding>,
        epsilon: f64,
        mixing: f64,
        randomness: Randomness,
        control: &Control,
    ) -> Result<Self> {
        check_epsilon(epsilon)?;
        let ellipse = Arc::new(Ellipse::new(&embedding, mixing, control)?);
        let noise = EllipticalNoise::new(embedding.dim(), ellipse, epsilon)?;
        Ok(Self::around(embedding, noise, randomness))
    }
}

impl EllipticalNoise {
    fn new(n: usize, ellipse: Arc<Ellipse>, epsilon: f64) -> Result<Self> {
        let sphere = MultivariateLaplace::new(n, check_epsilon(epsilon)? * ellipse.narrowest)?;
        Ok(EllipticalNoise {
            sphere,
            ellipse,
            epsilon,
        })
    }

    /// The paper's ε, per unit of ‖·‖_M (e above).
    pub fn nominal(&self) -> f64 {
        self.sphere.epsilon()
    }

    /// The share λ of the covariance.
    pub fn mixing(&self) -> f64 {
        self.ellipse.mixing
    }
}

impl Noise for EllipticalNoise {
    fn perturb(
        &self,
        embedding: &Embedding,
        ids: &[u32],
        rng: &mut ChaCha12Rng,
        points: &mut [f64],
    ) {
        let n = embedding.dim();
        for point in points.chunks_exact_mut(n) {
            self.sphere.sample(rng, point);
            // Multiply by L from the last coordinate up: each uses only coordinates before it.
            for (i, row) in self.ellipse.factor.chunks_exact(n).enumerate().rev() {
                point[i] = row[..=i].iter().zip(&*point).map(|(l, u)| l * u).sum();
            }
        }
        add_vectors(embedding, ids, points);
    }

    fn guarantee(&self, _: &Embedding) -> Guarantee {
        floating_point(
            "Mahalanobis",
            "euclidean",
            self.epsilon,
            "the density exp(-e‖z-φ(w)‖_M) of the regularised Mahalanobis norm (Xu et al. \
                      2020) changes by at most exp(e·‖φ(w)-φ(w')‖_M) between two words, and \
                      ‖·‖_M is at most 1/√a times the Euclidean norm, a the smallest eigenvalue \
                      of λΣ + (1-λ)I; which word is released depends on z alone: post-processing",
            "2^-50",
        )
    }

    fn epsilon(&self) -> f64 {
        self.epsilon
    }

    fn with_epsilon(&self, embedding: &Embedding, epsilon: f64) -> Result<Self> {
        Self::new(embedding.dim(), self.ellipse.clone(), epsilon)
    }
}

impl Ellipse {
    fn new(embedding: &Embedding, mixing: f64, control: &Control) -> Result<Self> {
        check_euclidean(embedding, "the Mahalanobis mechanism")?;
        if !(0.0..1.0).contains(&mixing) {
            return Err(Error::parameter("mixing", "from 0 to below 1", mixing));
        }
        let n = embedding.dim();
        let mut matrix = covariance(embedding, control)?;
        let mut places = embedding.vectors().chunks_exact(n);
        let first = places.next();
        // Equal numbers have no spread, whatever their mean rounds to.
        let trace: f64 = match places.all(|place| Some(place) == first) {
            true => 0.0,
            false => (0..n).map(|i| matrix[i * n + i]).sum(),
        };
        for (at, x) in matrix.iter_mut().enumerate() {
            let unit = f64::from(u8::from(at / n == at % n));
            // One word, or words at one place, have no spread: use plain noise.
            let spread = if trace > 0.0 {
                *x * (n as f64 / trace)
            } else {
                unit
            };
            *x = mixing * spread + (1.0 - mixing) * unit;
        }
        let smallest = smallest_eigenvalue(&matrix, n, 1.0 - mixing, control)?;
        let factor = cholesky(&matrix, n, 0.0).ok_or_else(|| {
            let got = "one whose covariance is beyond 64-bit arithmetic";
            Error::parameter("space", "an embedding", got)
        })?;
        Ok(Ellipse {
            mixing,
            factor,
            narrowest: smallest.sqrt(),
        })
    }
}

/// The covariance matrix of the vectors, bit-identical at any number of threads.
fn covariance(embedding: &Embedding, control: &Control) -> Result<Vec<f64>> {
    const ROWS: usize = 1024;
    let (n, words) = (embedding.dim(), embedding.len() as f64);
    let mut mean = vec![0.0; n];
    for vector in embedding.vectors().chunks_exact(n) {
        mean.iter_mut()
            .zip(vector)
            .for_each(|(m, &x)| *m += f64::from(x) / words);
    }
    let parts: Vec<Vec<f64>> = install(embedding.len(), ROWS, || {
        map_all(embedding.vectors().chunks(ROWS * n), |rows| {
            control.check()?;
            let mut sums = vec![0.0; n * n];
            let mut centred = vec![0.0; n];
            for row in rows.chunks_exact(n) {
                for ((c, &x), m) in centred.iter_mut().zip(row).zip(&mean) {
                    *c = f64::from(x) - m;
                }
                for (sums, &a) in sums.chunks_exact_mut(n).zip(&centred) {
                    sums.iter_mut().zip(&centred).for_each(|(s, b)| *s += a * b);
                }
            }
            Ok(sums)
        })
    })??;
    let mut total = vec![0.0; n * n];
    for part in parts {
        total
            .iter_mut()
            .zip(part)
            .for_each(|(t, p)| *t += p / words);
    }
    Ok(total)
}

/// A tight lower bound on the smallest eigenvalue; `least` is a bound that is already proved.
///
/// A - μI is positive definite if its Cholesky factor exists, up to rounding. A factor found in
/// floating point proves that every eigenvalue exceeds μ - (n+2)·n·2⁻⁵²·max diag A (after Rump
/// 2006).
fn smallest_eigenvalue(matrix: &[f64], n: usize, least: f64, control: &Control) -> Result<f64> {
    let largest = (0..n).map(|i| matrix[i * n + i]).fold(0.0, f64::max);
    let margin = (n as f64 + 2.0) * n as f64 * f64::EPSILON * largest;
    // The smallest eigenvalue is at most the smallest diagonal entry.
    let mut high = (0..n)
        .map(|i| matrix[i * n + i])
        .fold(f64::INFINITY, f64::min);
    let mut low = least;
    while high - low > 1e-9 * high {
        control.check()?;
        let middle = 0.5 * (low + high);
        match cholesky(matrix, n, middle) {
            Some(_) => low = middle,
            None => high = middle,
        }
    }
    Ok((low - margin).max(least))
}

/// Returns the row-major L with LLᵀ = A - `shift`·I, or `None` if that matrix is not positive
/// definite.
fn cholesky(matrix: &[f64], n: usize, shift: f64) -> Option<Vec<f64>> {
    let mut l = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let (above, row) = l.split_at(i * n);
            let other = if i == j { row } else { &above[j * n..] };
            let dot: f64 = row[..j].iter().zip(other).map(|(a, b)| a * b).sum();
            let rest = matrix[i * n + j] - dot;
            l[i * n + j] = match i == j {
                false => rest / l[j * n + j],
                true if rest - shift > 0.0 => (rest - shift).sqrt(),
                true => return None,
            };
        }
    }
    Some(l)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metric;
    use crate::testing::from_vectors;
    use proptest::prelude::*;

    proptest! {
        /// Against xᵀAx of random directions, and a matrix whose eigenvalues are known.
        #[test]
        fn the_smallest_eigenvalue_is_bounded_closely_from_below(
            values in proptest::collection::vec(0.05..3.0f64, 1..7), angle in 0.0..6.3f64
        ) {
            let n = values.len();
            // Rotated in every coordinate plane (i, i+1).
            let mut matrix = vec![0.0; n * n];
            (0..n).for_each(|i| matrix[i * n + i] = values[i]);
            let (s, c) = angle.sin_cos();
            for i in 0..n.saturating_sub(1) {
                for k in 0..n {
                    let (a, b) = (matrix[k * n + i], matrix[k * n + i + 1]);
                    (matrix[k * n + i], matrix[k * n + i + 1]) = (c * a - s * b, s * a + c * b);
                }
                for k in 0..n {
                    let (a, b) = (matrix[i * n + k], matrix[(i + 1) * n + k]);
                    (matrix[i * n + k], matrix[(i + 1) * n + k]) = (c * a - s * b, s * a + c * b);
                }
            }
            let true_one = values.iter().copied().fold(f64::INFINITY, f64::min);
            let found = smallest_eigenvalue(&matrix, n, 0.01, &Control::new()).expect("found");
            prop_assert!(found <= true_one + 1e-13 && found > true_one - 1e-8, "{found} {true_one}");
            let l = cholesky(&matrix, n, 0.0).expect("positive definite");
            for i in 0..n {
                for j in 0..n {
                    let product: f64 = (0..n).map(|k| l[i * n + k] * l[j * n + k]).sum();
                    prop_assert!((product - matrix[i * n + j]).abs() < 1e-12);
                }
            }
        }
    }

    /// 40 words that spread ten times as far in one direction.
    fn spread() -> Arc<Embedding> {
        let vectors = (0..40).flat_map(|i| [i as f32, (i % 7) as f32 * 0.3, (i % 3) as f32]);
        from_vectors(vectors.collect(), 3, Metric::Euclidean)
    }

    /// ‖L⁻¹z‖ ~ Gamma(n, 1/e) by Kolmogorov and Smirnov, and E zzᵀ ∝ A.
    #[test]
    fn the_noise_has_the_law_that_is_proved() {
        use statrs::distribution::{ContinuousCDF, Gamma};
        let (e, draws) = (spread(), 200_000);
        let ellipse = Ellipse::new(&e, 0.7, &Control::new()).expect("an ellipse");
        let epsilon = 2.0 / ellipse.narrowest;
        let noise = EllipticalNoise::new(3, ellipse.into(), epsilon).expect("noise");
        assert!((noise.nominal() - 2.0).abs() < 1e-12 && noise.epsilon() > 2.0);
        let mut rng = crate::testing::rng(2);
        // The first word lies at the origin.
        let mut points = vec![0.0; 3 * draws];
        let ids = vec![0; draws];
        noise.perturb(&e, &ids, &mut rng, &mut points);
        let l = &noise.ellipse.factor;
        let mut radii = Vec::with_capacity(draws);
        let mut moments = [0.0; 9];
        for z in points.chunks_exact(3) {
            let a = z[0] / l[0];
            let b = (z[1] - l[3] * a) / l[4];
            let c = (z[2] - l[6] * a - l[7] * b) / l[8];
            radii.push((a * a + b * b + c * c).sqrt());
            (0..9).for_each(|i| moments[i] += z[i / 3] * z[i % 3] / draws as f64);
        }
        radii.sort_by(f64::total_cmp);
        let law = Gamma::new(3.0, 2.0).expect("a law");
        let n = draws as f64;
        let off = radii.iter().enumerate().fold(0.0f64, |off, (i, &r)| {
            let p = law.cdf(r);
            off.max((p - i as f64 / n).abs())
                .max((p - (i + 1) as f64 / n).abs())
        });
        // Massart's bound at a false-alarm rate of 1e-7.
        assert!(off < ((2.0 / 1e-7f64).ln() / (2.0 * n)).sqrt(), "{off}");
        // E R² / n = (n+1)/e².
        for i in 0..9 {
            let a: f64 = (0..3).map(|k| l[i / 3 * 3 + k] * l[i % 3 * 3 + k]).sum();
            assert!((moments[i] - a).abs() < 0.05, "{i}: {} {a}", moments[i]);
        }
    }

    /// Words at one place have the noise of [`MultivariateLaplace`], bit for bit, whatever the mean of equal
    /// numbers rounds to.
    #[test]
    fn equal_words_have_plain_noise() {
        for words in 1..12 {
            let vectors = [0.1f32, 0.7, -0.3].repeat(words);
            let e = from_vectors(vectors, 3, Metric::Euclidean);
            let ellipse = Ellipse::new(&e, 0.9, &Control::new()).expect("an ellipse");
            assert_eq!(
                ellipse.factor,
                [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
            );
        }
    }
}
