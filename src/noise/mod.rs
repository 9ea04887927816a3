//! Noise in Euclidean space, and in [hyperbolic] space.
//!
//! [`MultivariateLaplace`] is the n-dimensional Laplace law of WSDM'20 §2.6 (after Wu et al. 2017)
//! with density ∝ exp(-ε‖z‖₂). A Gamma(n, 1/ε) radius is multiplied by a uniform direction, that of
//! n independent normals. All arithmetic is 64-bit floating point.

pub mod hyperbolic;

use rand::Rng;
use rand::rngs::ChaCha12Rng;
use rand_distr::{Distribution, Gamma, StandardNormal};

use crate::support::error::{Error, Result, check_epsilon};
use crate::support::parallel::{Control, for_all, install};
use crate::support::random::Key;

/// The law on ℝⁿ with density ∝ exp(-ε‖z‖₂).
///
/// ```
/// use fastdx::{Randomness, noise::MultivariateLaplace};
/// let law = MultivariateLaplace::new(50, 5.0)?;
/// let mut rng = Randomness::new(None).next_key()?.stream(0);
/// let mut z = [0.0; 50];
/// law.sample(&mut rng, &mut z); // ‖z‖ is about n/ε = 10
/// # Ok::<(), fastdx::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MultivariateLaplace {
    dim: usize,
    epsilon: f64,
    radius: Gamma<f64>,
}

impl MultivariateLaplace {
    /// Creates the law in `dim` dimensions with parameter `epsilon` (1/distance).
    ///
    /// # Errors
    /// [`Error::Parameter`] for a `dim` of 0, or an `epsilon` that is not positive and finite.
    pub fn new(dim: usize, epsilon: f64) -> Result<Self> {
        check_epsilon(epsilon)?;
        if dim == 0 {
            return Err(Error::parameter("n", "at least 1", dim));
        }
        // Far beyond any radius that is ever drawn.
        let largest = (2.0 * dim as f64 + 1000.0) / epsilon;
        let radius = Gamma::new(dim as f64, 1.0 / epsilon).ok();
        let radius = radius
            .filter(|_| largest.is_finite())
            .ok_or_else(|| Error::parameter("epsilon", "large enough for finite noise", epsilon))?;
        Ok(MultivariateLaplace {
            dim,
            epsilon,
            radius,
        })
    }

    /// The parameter ε, 1/distance.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// Draws one vector into `out` (of length n).
    #[inline]
    pub fn sample(&self, rng: &mut impl Rng, out: &mut [f64]) {
        debug_assert_eq!(out.len(), self.dim);
        let norm = normals(rng, out);
        let scale = self.radius.sample(rng) / norm;
        for x in out {
            *x *= scale;
        }
    }

    /// Draws `size` vectors, row-major, in parallel; the result depends on the key, not on the
    /// number of threads.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::Parameter`] if size·n numbers do not fit in memory.
    pub fn sample_many(&self, size: usize, key: &Key, control: &Control) -> Result<Vec<f64>> {
        sample_rows(size, self.dim, key, control, |rng, row| {
            self.sample(rng, row)
        })
    }
}

/// Fills `out` with normals and returns their norm, which is not 0: the direction is uniform on the
/// sphere.
#[inline]
pub(crate) fn normals(rng: &mut impl Rng, out: &mut [f64]) -> f64 {
    // A zero vector has no direction: draw again.
    loop {
        let mut norm2 = 0.0;
        for x in out.iter_mut() {
            *x = StandardNormal.sample(rng);
            norm2 += *x * *x;
        }
        if norm2 > 0.0 {
            return norm2.sqrt();
        }
    }
}

/// Zeros for `size` vectors.
pub(crate) fn rows(size: usize, dim: usize) -> Result<Vec<f64>> {
    let len = size
        .checked_mul(dim)
        .filter(|&len| len <= isize::MAX as usize / 8);
    let mut out = Vec::new();
    len.and_then(|len| out.try_reserve_exact(len).ok())
        .ok_or_else(|| {
            let expected = format!("small enough that (size, {dim}) fits in memory");
            Error::parameter("size", expected, size)
        })?;
    out.resize(size * dim, 0.0);
    Ok(out)
}

/// Draws `size` vectors with `sample`, in parallel; the result depends on the key, not on the
/// number of threads.
pub(crate) fn sample_rows(
    size: usize,
    dim: usize,
    key: &Key,
    control: &Control,
    sample: impl Fn(&mut ChaCha12Rng, &mut [f64]) + Sync,
) -> Result<Vec<f64>> {
    const ROWS: usize = 256;
    let mut out = rows(size, dim)?;
    install(size, ROWS, || {
        for_all(out.chunks_mut(ROWS * dim).enumerate(), |(chunk, rows)| {
            control.check()?;
            let mut rng = key.stream(chunk as u64);
            for row in rows.chunks_exact_mut(dim) {
                sample(&mut rng, row);
            }
            Ok(())
        })
    })??;
    Ok(out)
}
