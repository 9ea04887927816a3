//! Laplace noise in hyperbolic space: a radius times a uniform direction.
//!
//! Let ρ be the distance from the origin and r = tanh(ρ/2) the radius in the ball. There are two
//! laws:
//!
//! - [`Base::Volume`]: density ∝ e^(-ερ) with respect to hyperbolic volume, sinh^(n-1)ρ dρ. Its
//!   Möbius translations are exactly ε·d-private. t = e^(-2ρ) is Beta((ε-n+1)/2, n), so the law
//!   exists only for ε > n - 1.
//! - [`Base::Ball`]: ICDM'19's density ((1-r)/(1+r))^ε with respect to Lebesgue measure on the
//!   ball, r^(n-1) dr, for every ε > 0. That measure is not invariant under translation. With
//!   respect to volume the density is e^(-ερ)(2cosh²(ρ/2))^(-n), whose logarithm has slopes up to ε
//!   + n. **The translated noise is (ε + n)·d-private, not ε·d-private** as the paper claims.
//!
//! Exact sampling needs no Markov chain, as the paper's Algorithm 2 is one.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1, Gamma};

use crate::noise::{normals, sample_rows};
use crate::support::error::{Error, Result, check_epsilon};
use crate::support::names::named;
use crate::support::parallel::Control;
use crate::support::random::Key;

/// The reference measure of the density e^(-ερ).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// Hyperbolic volume.
    #[default]
    Volume,
    /// Lebesgue measure on the ball, as in ICDM'19.
    Ball,
}

named!(Base, "base", Base::Volume => "volume", Base::Ball => "ball");

/// Centred noise of one law, in n dimensions.
///
/// ```
/// use fastdx::{Randomness, noise::hyperbolic::noise::{Base, HyperbolicLaplace}};
/// let law = HyperbolicLaplace::new(5, 6.0, Base::Volume)?;
/// let mut rng = Randomness::new(None).next_key()?.stream(0);
/// let mut z = [0.0; 5];
/// law.sample(&mut rng, &mut z);
/// assert!(z.iter().map(|x| x * x).sum::<f64>() < 1.0);
/// # Ok::<(), fastdx::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HyperbolicLaplace {
    dim: usize,
    epsilon: f64,
    base: Base,
    radius: Radius,
}

#[derive(Clone, Copy, Debug)]
enum Radius {
    /// The gamma distributions for a + 1 and n, and a, for t ~ Beta(a, n).
    Volume {
        upper: Gamma<f64>,
        lower: Gamma<f64>,
        a: f64,
    },
    Ball(LogConcave),
}

impl HyperbolicLaplace {
    /// Creates the law in `dim` dimensions.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a `dim` of 0, an `epsilon` that is not positive and finite, or at
    /// most n - 1 for [`Base::Volume`].
    pub fn new(dim: usize, epsilon: f64, base: Base) -> Result<Self> {
        check_epsilon(epsilon)?;
        if dim == 0 {
            return Err(Error::parameter("n", "at least 1", dim));
        }
        let n = dim as f64;
        let radius = match base {
            Base::Volume => {
                let a = (epsilon - (n - 1.0)) / 2.0;
                let gammas = (Gamma::new(a + 1.0, 1.0), Gamma::new(n, 1.0));
                match gammas {
                    (Ok(upper), Ok(lower)) if a > 0.0 => Radius::Volume { upper, lower, a },
                    _ => {
                        let expected = format!(
                            "more than n - 1 = {}: in {dim} dimensions the density e^(-ερ) has no \
                             integral below, because volume grows as e^((n-1)ρ); Tem on the \
                             Poincaré metric takes every ε, and base=\"ball\" every ε above n",
                            dim - 1
                        );
                        return Err(Error::parameter("epsilon", expected, epsilon));
                    }
                }
            }
            Base::Ball => Radius::Ball(LogConcave::new(dim, epsilon)),
        };
        Ok(HyperbolicLaplace {
            dim,
            epsilon,
            base,
            radius,
        })
    }

    /// The dimension.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The parameter of the density.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The measure.
    pub fn base(&self) -> Base {
        self.base
    }

    /// The proved ε of the translated noise per unit of hyperbolic distance: ε, or ε + n for the
    /// ball's measure.
    pub fn provable_epsilon(&self) -> f64 {
        match self.base {
            Base::Volume => self.epsilon,
            Base::Ball => self.epsilon + self.dim as f64,
        }
    }

    /// Draws the radius in the ball, below 1.
    #[inline]
    pub fn radius(&self, rng: &mut impl Rng) -> f64 {
        match &self.radius {
            Radius::Volume { .. } => (self.distance(rng) / 2.0).tanh().min(MAX_RADIUS),
            Radius::Ball(law) => law.sample(rng),
        }
    }

    /// Draws the distance ρ from the origin.
    #[inline]
    pub fn distance(&self, rng: &mut impl Rng) -> f64 {
        match &self.radius {
            Radius::Volume { upper, lower, a } => {
                // t = X/(X+Y), so ρ = ½ ln(1 + Y/X). X ~ Gamma(a) is drawn as Gamma(a+1)·U^(1/a) in
                // logarithms, because a may be tiny. This is accurate at both ends.
                let log_x = upper.sample(rng).ln() - rng.sample::<f64, _>(Exp1) / a;
                let ratio = lower.sample(rng).ln() - log_x;
                0.5 * if ratio > 0.0 {
                    ratio + (-ratio).exp().ln_1p()
                } else {
                    ratio.exp().ln_1p()
                }
            }
            Radius::Ball(law) => 2.0 * law.sample(rng).atanh(),
        }
    }

    /// Draws a point of the ball into `out` (of length n).
    #[inline]
    pub fn sample(&self, rng: &mut impl Rng, out: &mut [f64]) {
        let radius = self.radius(rng);
        direction(rng, radius, out);
    }

    /// Draws `size` points, row-major, in parallel; the result depends on the key, not on the
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

/// The largest radius below 1.
const MAX_RADIUS: f64 = 1.0 - f64::EPSILON / 2.0;

/// Draws a uniform direction times `radius`.
pub(super) fn direction(rng: &mut impl Rng, radius: f64, out: &mut [f64]) {
    let scale = radius / normals(rng, out);
    out.iter_mut().for_each(|x| *x *= scale);
}

/// Draws the radius of the ball's law, with the log-concave density ∝ r^(n-1)((1-r)/(1+r))^ε on (0,
/// 1).
///
/// Rejection sampling (Devroye 1986, chapter VII.2). On each side of the mode, the density has fallen
/// to 1/e of its height, or less, at some width w. Up to there the envelope is the mode's height, and
/// beyond it e^(-y/w) of it at the distance y: log-concave densities stay below that line. More than
/// half of the proposals are accepted for every n and ε.
#[derive(Clone, Copy, Debug)]
struct LogConcave {
    power: f64,
    epsilon: f64,
    mode: f64,
    /// The logarithm of the mode's height.
    top: f64,
    /// The widths on both sides.
    left: f64,
    right: f64,
}

impl LogConcave {
    fn new(dim: usize, epsilon: f64) -> Self {
        let power = (dim - 1) as f64;
        // power/r = 2ε/(1-r²): power·r² + 2εr - power = 0.
        let mode = match power > 0.0 {
            true => (power / (epsilon + epsilon.hypot(power))).min(MAX_RADIUS),
            false => 0.0,
        };
        let mut law = LogConcave {
            power,
            epsilon,
            mode,
            top: 0.0,
            left: 0.0,
            right: 0.0,
        };
        law.top = law.log_density(mode);
        law.left = law.width(mode, -1.0);
        law.right = law.width(1.0 - mode, 1.0);
        law
    }

    /// The distance from the mode, in a direction, at which the density has fallen. It has at `most`,
    /// where it is 0.
    fn width(&self, most: f64, direction: f64) -> f64 {
        let fallen = |y: f64| self.log_density(self.mode + direction * y) <= self.top - 1.0;
        let mut far = most;
        while far > 0.0 && fallen(far / 2.0) {
            far /= 2.0;
        }
        let mut near = far / 2.0;
        for _ in 0..60 {
            let middle = (near + far) / 2.0;
            match fallen(middle) {
                true => far = middle,
                false => near = middle,
            }
        }
        far
    }

    #[inline]
    fn log_density(&self, r: f64) -> f64 {
        // (1-r)/(1+r) = e^(-2 artanh r), which is accurate near 0.
        let power = if self.power > 0.0 {
            self.power * r.ln()
        } else {
            0.0
        };
        power - 2.0 * self.epsilon * r.atanh()
    }

    #[inline]
    fn sample(&self, rng: &mut impl Rng) -> f64 {
        loop {
            if let Some(r) = self.propose(rng) {
                return r;
            }
        }
    }

    /// Makes one proposal; `None` if it is rejected.
    #[inline]
    fn propose(&self, rng: &mut impl Rng) -> Option<f64> {
        let side = rng.random::<f64>() * (self.left + self.right);
        let width = if side < self.left {
            -self.left
        } else {
            self.right
        };
        // The areas of the middle and the tail are 1 and 1/e, in widths.
        let place = rng.random::<f64>() * (1.0 + (-1.0f64).exp());
        let (y, log_envelope) = match place < 1.0 {
            true => (place, self.top),
            false => {
                let y = 1.0 + rng.sample::<f64, _>(Exp1);
                (y, self.top - y)
            }
        };
        let r = self.mode + width * y;
        if !(r > 0.0 && r < 1.0) {
            return None;
        }
        let accept = -rng.sample::<f64, _>(Exp1);
        (log_envelope + accept <= self.log_density(r)).then_some(r)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ball_sampler_accepts_at_every_n_and_epsilon() {
        let mut rng = crate::testing::rng(1);
        for n in [1, 2, 3, 5, 20, 100, 300, 3000] {
            for epsilon in [1e-300, 1e-3, 0.125, 1.0, 8.0, 60.0, 1e4, 1e17, 1e20, 1e100] {
                let law = LogConcave::new(n, epsilon);
                let tries = 20_000;
                let accepted = (0..tries)
                    .filter(|_| law.propose(&mut rng).is_some())
                    .count();
                let share = accepted as f64 / f64::from(tries);
                assert!(share > 0.55, "n = {n}, ε = {epsilon}: {share}, {law:?}");
            }
        }
    }
}
