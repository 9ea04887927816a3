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
/// Rejection sampling (Devroye 1986, chapter VII.2). The envelope is the mode's height between two
/// points where the density is at least 1/e of it, and exponential tails along the tangents there.
/// More than 0.6 of the proposals are accepted for every n and ε.
#[derive(Clone, Copy, Debug)]
struct LogConcave {
    power: f64,
    epsilon: f64,
    top: f64,
    /// Where the tails begin: there the tangents reach the mode's height.
    from: f64,
    to: f64,
    /// Slopes of the tails; 0 without a tail.
    left: f64,
    right: f64,
    /// Areas of the left tail, the middle, the right tail.
    areas: [f64; 3],
}

impl LogConcave {
    fn new(dim: usize, epsilon: f64) -> Self {
        let power = (dim - 1) as f64;
        let mut law = LogConcave {
            power,
            epsilon,
            top: 0.0,
            from: 0.0,
            to: 1.0,
            left: 0.0,
            right: 0.0,
            areas: [0.0; 3],
        };
        // power/r = 2ε/(1-r²): power·r² + 2εr - power = 0.
        let mode = if power > 0.0 {
            power / (epsilon + epsilon.hypot(power))
        } else {
            0.0
        };
        law.top = law.log_density(mode.min(MAX_RADIUS));
        let slope = |r: f64| power / r - 2.0 * epsilon / ((1.0 - r) * (1.0 + r));
        // The density falls monotonically on both sides: double or halve until it is below 1/e of
        // the mode's, then bisect.
        let start = law;
        let fallen = |r: f64| start.log_density(r) <= start.top - 1.0;
        let fall = |factor: f64| {
            let mut near = mode;
            let mut far = (mode * factor).min(1.0);
            while far > 0.0 && far < 1.0 && !fallen(far) {
                near = far;
                far = (far * factor).min(1.0);
            }
            for _ in 0..60 {
                let middle = (near + far) / 2.0;
                if fallen(middle) {
                    far = middle;
                } else {
                    near = middle;
                }
            }
            near
        };
        if power > 0.0 {
            let at = fall(0.5);
            let left = slope(at);
            if left > 0.0 && at > 0.0 {
                law.left = left;
                law.from = (at + (law.top - law.log_density(at)) / left).min(mode);
                // The tail ends at 0.
                law.areas[0] = -(-left * law.from).exp_m1() / left;
            }
        }
        let at = if power > 0.0 {
            fall(2.0)
        } else {
            // 2ε artanh r = 1.
            (0.5 / epsilon).tanh()
        };
        let right = -slope(at);
        if right > 0.0 && at < 1.0 {
            law.right = right;
            law.to = (at - (law.top - law.log_density(at)) / right).max(mode);
            law.areas[2] = -(-right * (1.0 - law.to)).exp_m1() / right;
        }
        law.areas[1] = law.to - law.from;
        law
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
        let [left, middle, right] = self.areas;
        let place: f64 = rng.random::<f64>() * (left + middle + right);
        let (r, log_envelope) = if place < middle {
            (self.from + place, self.top)
        } else if place < middle + right {
            // An exponential, truncated at 1.
            let past = -(-(place - middle) * self.right).ln_1p() / self.right;
            (self.to + past, self.top - self.right * past)
        } else {
            let past = -(-(place - middle - right) * self.left).ln_1p() / self.left;
            (self.from - past, self.top - self.left * past)
        };
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
                assert!(share > 0.5, "n = {n}, ε = {epsilon}: {share}, {law:?}");
            }
        }
    }
}
