//! Laplace noise in hyperbolic space: a radius times a uniform direction.
//!
//! With ρ the distance from the origin and r = tanh(ρ/2) the radius in the ball, two laws:
//!
//! - [`Base::Volume`]: density ∝ e^(-ερ) with respect to hyperbolic volume, sinh^(n-1)ρ dρ. Its
//!   Möbius translations are exactly ε·d-private. t = e^(-2ρ) is Beta((ε-n+1)/2, n), so it exists
//!   for ε > n - 1 only.
//! - [`Base::Ball`]: ICDM'19's density ((1-r)/(1+r))^ε with respect to Lebesgue measure on the ball,
//!   r^(n-1) dr, for every ε > 0. That measure is not invariant under translation: with respect
//!   to volume the density is e^(-ερ)(2cosh²(ρ/2))^(-n), whose logarithm has slopes up to ε + n.
//!   **Translated it is (ε + n)·d-private, not ε·d** as the paper has it.
//!
//! Exact sampling needs no Markov chain; the paper's, on the hyperboloid, is in [`Walk`].

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1, Gamma, StandardNormal};
use rayon::prelude::*;

use super::{LAMBDA, clamp};
use crate::error::{Error, Result, check_epsilon};
use crate::metric::norm2;
use crate::parallel::{Control, install};
use crate::random::Key;

/// The measure that a density e^(-ερ) refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// Hyperbolic volume.
    #[default]
    Volume,
    /// Lebesgue measure on the ball, as in ICDM'19.
    Ball,
}

/// Centred noise of one law, in n dimensions.
///
/// ```
/// use fastdx::{Randomness, hyperbolic::noise::{Base, HyperbolicLaplace}};
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
    /// Gammas of a + 1 and n, and a, for t ~ Beta(a, n).
    Volume {
        upper: Gamma<f64>,
        lower: Gamma<f64>,
        a: f64,
    },
    Ball(LogConcave),
}

impl HyperbolicLaplace {
    /// The law in `dim` dimensions.
    ///
    /// # Errors
    /// `dim` is 0, `epsilon` not positive and finite, or at most n - 1 for [`Base::Volume`].
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

    /// Dimensions.
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

    /// What the translated noise costs, per unit of hyperbolic distance: ε, or ε + n for the
    /// ball's measure.
    pub fn provable_epsilon(&self) -> f64 {
        match self.base {
            Base::Volume => self.epsilon,
            Base::Ball => self.epsilon + self.dim as f64,
        }
    }

    /// The radius in the ball, below 1.
    #[inline]
    pub fn radius(&self, rng: &mut impl Rng) -> f64 {
        match &self.radius {
            Radius::Volume { .. } => (self.distance(rng) / 2.0).tanh().min(MOST),
            Radius::Ball(law) => law.sample(rng),
        }
    }

    /// The distance from the origin, ρ.
    #[inline]
    pub fn distance(&self, rng: &mut impl Rng) -> f64 {
        match &self.radius {
            Radius::Volume { upper, lower, a } => {
                // t = X/(X+Y), so ρ = ½ ln(1 + Y/X); X ~ Gamma(a) by Gamma(a+1)·U^(1/a), in
                // logarithms, for a may be tiny. Digits are kept at both ends.
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

    /// One draw, written to `out` (of length n): a point of the ball.
    #[inline]
    pub fn sample(&self, rng: &mut impl Rng, out: &mut [f64]) {
        let radius = self.radius(rng);
        direction(rng, radius, out);
    }

    /// `size` draws, row-major, in parallel; the same for one key at any number of threads.
    ///
    /// # Errors
    /// [`Error::Interrupted`], or [`Error::Parameter`] when size·n numbers cannot be held.
    pub fn sample_many(&self, size: usize, key: &Key, control: &Control) -> Result<Vec<f64>> {
        const ROWS: usize = 256;
        let mut out = rows(size, self.dim)?;
        install(size, ROWS, || {
            out.par_chunks_mut(ROWS * self.dim)
                .enumerate()
                .try_for_each(|(chunk, rows)| {
                    control.check()?;
                    let mut rng = key.stream(chunk as u64);
                    for row in rows.chunks_exact_mut(self.dim) {
                        self.sample(&mut rng, row);
                    }
                    Ok(())
                })
        })??;
        Ok(out)
    }
}

/// The largest radius below 1.
const MOST: f64 = 1.0 - f64::EPSILON / 2.0;

/// Zeros for `size` vectors.
fn rows(size: usize, dim: usize) -> Result<Vec<f64>> {
    let mut out = Vec::new();
    let len = size
        .checked_mul(dim)
        .filter(|&n| n <= isize::MAX as usize / 8);
    match len.map(|len| out.try_reserve_exact(len).map(|()| len)) {
        Some(Ok(len)) => {
            out.resize(len, 0.0);
            Ok(out)
        }
        _ => {
            let expected = format!("small enough that (size, {dim}) fits in memory");
            Err(Error::parameter("size", expected, size))
        }
    }
}

/// A uniform direction times `radius`.
fn direction(rng: &mut impl Rng, radius: f64, out: &mut [f64]) {
    let norm = loop {
        let mut norm2 = 0.0;
        for x in &mut *out {
            *x = StandardNormal.sample(rng);
            norm2 += *x * *x;
        }
        if norm2 > 0.0 {
            break norm2.sqrt();
        }
    };
    let scale = radius / norm;
    out.iter_mut().for_each(|x| *x *= scale);
}

/// The radius of the ball's law, density ∝ r^(n-1)((1-r)/(1+r))^ε on (0, 1), which is log-concave.
///
/// Rejection from its mode's height between two points where the density is 1/e of it or
/// more, and exponential tails along the tangents there (Devroye 1986, chapter VII.2): more
/// than 0.6 are accepted whatever n and ε.
#[derive(Clone, Copy, Debug)]
struct LogConcave {
    power: f64,
    epsilon: f64,
    top: f64,
    /// Where the tails begin: the tangents reach the mode's height.
    from: f64,
    to: f64,
    /// Slopes of the tails; 0 where there is none.
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
        law.top = law.log_density(mode.min(MOST));
        let slope = |r: f64| power / r - 2.0 * epsilon / ((1.0 - r) * (1.0 + r));
        // The density falls monotonically on both sides: double or halve until it is below 1/e
        // of the mode's, then bisect.
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
        // (1-r)/(1+r) = e^(-2 artanh r), which keeps its digits near 0.
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

    /// One try.
    #[inline]
    fn propose(&self, rng: &mut impl Rng) -> Option<f64> {
        let [left, middle, right] = self.areas;
        let place: f64 = rng.random::<f64>() * (left + middle + right);
        let (r, log_envelope) = if place < middle {
            (self.from + place, self.top)
        } else if place < middle + right {
            // An exponential, cut off at 1.
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

/// ICDM'19's Algorithm 2 put right: a Metropolis-Hastings walk on the hyperboloid.
///
/// The state is a point's n spatial coordinates x, ‖x‖ = sinh ρ, which have no border. With
/// respect to dx the laws have densities e^(-ερ)/cosh ρ (volume) and e^(-ερ)(1 + cosh ρ)^(-n)/cosh ρ
/// (ball): the second factor and the last are the Jacobian of r = tanh(ρ/2), which the paper leaves
/// out. ‖x‖ has a tail as heavy as s^(-2-ε), in which steps of one size stick (at n = 300 such chains
/// did not meet), so a step has two proposals in turn, each accepted or not: a normal vector of
/// standard deviation scale·cosh ρ is added, which turns the point, and ‖x‖ is multiplied by a
/// log-normal factor; Hastings' ratio corrects for both.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    law: HyperbolicLaplace,
    /// Steps before the first draw, in which alone the proposal's scale is tuned.
    pub burn_in: usize,
    /// Steps from one draw to the next.
    pub thin: usize,
    /// Independent chains.
    pub chains: usize,
}

/// What chains did.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostics {
    /// Share of proposals accepted after burn-in.
    pub acceptance: f64,
    /// Effective number of independent draws of the distance, all chains together (Geyer's
    /// initial positive sequence).
    pub effective_size: f64,
    /// Split R̂ of the distance (Gelman et al., Bayesian Data Analysis 3, §11.4): near 1 where
    /// chains agree; NaN with fewer than 4 draws a chain.
    pub r_hat: f64,
    /// The tuned standard deviation of a proposed step, mean of the chains.
    pub scale: f64,
}

impl Walk {
    /// A walk with that law, 2,000 steps of burn-in, 500 between draws, and 8 chains.
    pub fn new(law: HyperbolicLaplace) -> Self {
        Walk {
            law,
            burn_in: 2000,
            thin: 500,
            chains: 8,
        }
    }

    /// The same with another number of chains.
    pub fn with_chains(self, chains: usize) -> Self {
        Walk { chains, ..self }
    }

    /// Fills `out` with draws of one chain.
    pub(crate) fn fill(
        &self,
        out: &mut [f64],
        rng: &mut impl Rng,
        control: &Control,
    ) -> Result<()> {
        self.chain(out, rng, control).map(drop)
    }

    /// log density with respect to dx, from ‖x‖².
    #[inline]
    fn log_density(&self, norm2: f64) -> f64 {
        let cosh = (1.0 + norm2).sqrt();
        let ball = match self.law.base {
            Base::Volume => 0.0,
            Base::Ball => self.law.dim as f64 * cosh.ln_1p(),
        };
        -self.law.epsilon * norm2.sqrt().asinh() - ball - cosh.ln()
    }

    /// Draws `size` points of the ball, row-major, clamped as the paper does, with diagnostics.
    ///
    /// # Errors
    /// No burn-in, thinning or chains; memory; [`Error::Interrupted`].
    pub fn sample(
        &self,
        size: usize,
        key: &Key,
        control: &Control,
    ) -> Result<(Vec<f64>, Diagnostics)> {
        for (name, value) in [
            ("burn_in", self.burn_in),
            ("thin", self.thin),
            ("chains", self.chains),
        ] {
            if value == 0 {
                return Err(Error::parameter(name, "at least 1", value));
            }
        }
        let n = self.law.dim;
        let mut out = rows(size, n)?;
        let each = size.div_ceil(self.chains).max(1);
        let chains: Vec<Chain> = install(size, 0, || {
            out.par_chunks_mut(each * n)
                .enumerate()
                .map(|(chain, rows)| self.chain(rows, &mut key.stream(chain as u64), control))
                .collect::<Result<_>>()
        })??;
        let distances: Vec<&[f64]> = chains.iter().map(|c| &*c.distances).collect();
        let steps: f64 = chains.iter().map(|c| c.steps as f64).sum();
        let accepted: f64 = chains.iter().map(|c| c.accepted as f64).sum();
        let diagnostics = Diagnostics {
            acceptance: accepted / steps.max(1.0),
            effective_size: distances.iter().map(|d| effective_size(d)).sum(),
            r_hat: r_hat(&distances),
            scale: chains.iter().map(|c| c.scale).sum::<f64>() / chains.len().max(1) as f64,
        };
        Ok((out, diagnostics))
    }

    fn chain(&self, out: &mut [f64], rng: &mut impl Rng, control: &Control) -> Result<Chain> {
        let n = self.law.dim;
        let mut state = State {
            walk: self,
            at: vec![0.0; n],
            proposed: vec![0.0; n],
            norm2: 0.0,
            density: 0.0,
        };
        // It begins at a typical distance, in a random direction.
        let distance = self.law.distance(rng).min(30.0);
        direction(rng, distance.sinh(), &mut state.at);
        state.norm2 = norm2(&state.at);
        state.density = self.log_density(state.norm2);
        let mut scales = [(n as f64).powf(-0.75), 1.0];
        for i in 0..self.burn_in {
            if i % 1024 == 0 {
                control.check()?;
            }
            // Robbins and Monro, towards 0.4 accepted.
            let rate = 4.0 / (10.0 + i as f64).powf(0.6);
            let both = state.step(scales, rng);
            for (scale, accepted) in scales.iter_mut().zip(both) {
                *scale *= (rate * (f64::from(u8::from(accepted)) - 0.4)).exp();
            }
        }
        let mut chain = Chain {
            distances: Vec::with_capacity(out.len() / n),
            accepted: 0,
            steps: 0,
            scale: scales[0],
        };
        for row in out.chunks_exact_mut(n) {
            control.check()?;
            for _ in 0..self.thin {
                let accepted = state.step(scales, rng);
                chain.accepted += accepted.into_iter().filter(|&yes| yes).count();
            }
            chain.steps += 2 * self.thin;
            let sinh = state.norm2.sqrt();
            chain.distances.push(sinh.asinh());
            // r/‖x‖ = 1/(1 + cosh ρ).
            let time = 1.0 + sinh.hypot(1.0);
            for (out, x) in row.iter_mut().zip(&state.at) {
                *out = x / time;
            }
            clamp(row, LAMBDA);
        }
        Ok(chain)
    }
}

struct State<'a> {
    walk: &'a Walk,
    at: Vec<f64>,
    proposed: Vec<f64>,
    norm2: f64,
    density: f64,
}

impl State<'_> {
    /// Both proposals; whether they were accepted.
    #[inline]
    fn step(&mut self, [scale, spread]: [f64; 2], rng: &mut impl Rng) -> [bool; 2] {
        [self.turn(scale, rng), self.stretch(spread, rng)]
    }

    fn stretch(&mut self, spread: f64, rng: &mut impl Rng) -> bool {
        let normal: f64 = StandardNormal.sample(rng);
        let log = spread * normal;
        let norm2 = self.norm2 * (2.0 * log).exp();
        let density = self.walk.log_density(norm2);
        // The volume that the factor stretches.
        let stretched = self.at.len() as f64 * log;
        let ratio = density - self.density + stretched;
        let accepted = norm2.is_normal() && -rng.sample::<f64, _>(Exp1) <= ratio;
        if accepted {
            let factor = log.exp();
            self.at.iter_mut().for_each(|x| *x *= factor);
            (self.norm2, self.density) = (norm2, density);
        }
        accepted
    }

    fn turn(&mut self, scale: f64, rng: &mut impl Rng) -> bool {
        let n = self.at.len() as f64;
        let cosh2 = 1.0 + self.norm2;
        let step = scale * cosh2.sqrt();
        let (mut norm2, mut length2) = (0.0, 0.0);
        for (p, x) in self.proposed.iter_mut().zip(&self.at) {
            let normal: f64 = StandardNormal.sample(rng);
            *p = x + step * normal;
            norm2 += *p * *p;
            length2 += normal * normal;
        }
        let density = self.walk.log_density(norm2);
        // ln of the density of the way back over that of the way there.
        let ratio = cosh2 / (1.0 + norm2);
        let back = 0.5 * (n * ratio.ln() + length2 * (1.0 - ratio));
        let accepted = -rng.sample::<f64, _>(Exp1) <= density - self.density + back;
        if accepted {
            std::mem::swap(&mut self.at, &mut self.proposed);
            (self.norm2, self.density) = (norm2, density);
        }
        accepted
    }
}

struct Chain {
    distances: Vec<f64>,
    accepted: usize,
    steps: usize,
    scale: f64,
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

/// n / (1 + 2 Σ autocorrelations), the sum over pairs of lags as long as a pair is positive
/// (Geyer 1992).
fn effective_size(x: &[f64]) -> f64 {
    let (n, mean) = (x.len(), mean(x));
    let covariance = |lag: usize| {
        let pairs = x.iter().zip(&x[lag..]);
        pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / n as f64
    };
    let variance = if n > 1 { covariance(0) } else { 0.0 };
    if variance <= 0.0 {
        return n as f64;
    }
    let mut sum = 0.0;
    for lag in (0..n.saturating_sub(1)).step_by(2) {
        let pair = (covariance(lag) + covariance(lag + 1)) / variance;
        if pair <= 0.0 {
            break;
        }
        sum += pair;
    }
    n as f64 / (2.0 * sum - 1.0).max(1.0 / n as f64)
}

/// Split R̂: every chain in two halves.
fn r_hat(chains: &[&[f64]]) -> f64 {
    let half = chains.iter().map(|c| c.len() / 2).min().unwrap_or(0);
    if half < 2 {
        return f64::NAN;
    }
    let halves: Vec<&[f64]> = chains
        .iter()
        .flat_map(|c| [&c[..half], &c[half..2 * half]])
        .collect();
    let variance = |x: &[f64]| {
        let m = mean(x);
        x.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / (x.len() - 1) as f64
    };
    let means: Vec<f64> = halves.iter().map(|h| mean(h)).collect();
    let within = mean(&halves.iter().map(|h| variance(h)).collect::<Vec<_>>());
    let between = variance(&means);
    ((half as f64 - 1.0) / half as f64 + between / within).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ball_sampler_accepts_at_every_n_and_epsilon() {
        let mut rng = crate::Randomness::new(Some(1))
            .next_key()
            .unwrap()
            .stream(0);
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
