//! The paper's method for hyperbolic noise: a Markov chain, with diagnostics.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1, StandardNormal};

use super::noise::{Base, HyperbolicLaplace, direction};
use super::{LAMBDA, clamp};
use crate::distance::metric::norm2;
use crate::noise::rows;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, install, map_all};
use crate::support::random::Key;

/// ICDM'19's Algorithm 2 with the correct stationary law: a Metropolis-Hastings walk on the
/// hyperboloid.
///
/// The state is a point's n spatial coordinates x, with ‖x‖ = sinh ρ; they have no boundary. With
/// respect to dx the laws have densities e^(-ερ)/cosh ρ (volume) and e^(-ερ)(1 + cosh ρ)^(-n)/cosh
/// ρ (ball). The second factor and the last come from the Jacobian of r = tanh(ρ/2), which the
/// paper omits. The tail of ‖x‖ is as heavy as s^(-2-ε), in which steps of one size get stuck (at n
/// = 300 such chains did not agree). So a step makes two proposals in turn. The first adds a normal
/// vector of standard deviation scale·cosh ρ, which turns the point. The second multiplies ‖x‖ by a
/// log-normal factor. Each is accepted or rejected, and Hastings' ratio corrects for both.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    law: HyperbolicLaplace,
    /// Steps before the first draw; only during these is the proposals' scale tuned.
    pub burn_in: usize,
    /// Steps between two draws.
    pub thin: usize,
    /// Independent chains.
    pub chains: usize,
}

/// Statistics of the chains.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostics {
    /// Share of proposals accepted after burn-in.
    pub acceptance: f64,
    /// Effective number of independent draws of the distance over all chains (Geyer's initial
    /// positive sequence).
    pub effective_size: f64,
    /// Split R̂ of the distance (Gelman et al., Bayesian Data Analysis 3, §11.4): near 1 if the
    /// chains agree, NaN with fewer than 4 draws per chain.
    pub r_hat: f64,
    /// The tuned standard deviation of a proposed step, averaged over the chains.
    pub scale: f64,
}

impl Walk {
    /// Creates a walk with that law, 2,000 steps of burn-in, 500 between draws, and 8 chains.
    pub fn new(law: HyperbolicLaplace) -> Self {
        Walk {
            law,
            burn_in: 2000,
            thin: 500,
            chains: 8,
        }
    }

    /// The log-density with respect to dx, from ‖x‖².
    #[inline]
    fn log_density(&self, norm2: f64) -> f64 {
        let cosh = (1.0 + norm2).sqrt();
        let ball = match self.law.base() {
            Base::Volume => 0.0,
            Base::Ball => self.law.dim() as f64 * cosh.ln_1p(),
        };
        -self.law.epsilon() * norm2.sqrt().asinh() - ball - cosh.ln()
    }

    /// Draws `size` points of the ball, row-major, clamped like the paper's, with diagnostics.
    ///
    /// # Errors
    /// [`Error::Parameter`] for no burn-in, thinning or chains, or too little memory;
    /// [`Error::Interrupted`].
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
        let n = self.law.dim();
        let mut out = rows(size, n)?;
        let each = size.div_ceil(self.chains).max(1);
        let chains: Vec<Chain> = install(size, 0, || {
            map_all(out.chunks_mut(each * n).enumerate(), |(chain, rows)| {
                self.chain(rows, &mut key.stream(chain as u64), control)
            })
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
        let n = self.law.dim();
        let mut state = State {
            walk: self,
            at: vec![0.0; n],
            proposed: vec![0.0; n],
            norm2: 0.0,
            density: 0.0,
        };
        // Start at a typical distance, in a random direction.
        let distance = self.law.distance(rng).min(30.0);
        direction(rng, distance.sinh(), &mut state.at);
        state.norm2 = norm2(&state.at);
        state.density = self.log_density(state.norm2);
        let mut scales = [(n as f64).powf(-0.75), 1.0];
        for i in 0..self.burn_in {
            if i % 1024 == 0 {
                control.check()?;
            }
            // Robbins and Monro, towards an acceptance of 0.4.
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
    /// Makes both proposals; returns whether each was accepted.
    #[inline]
    fn step(&mut self, [scale, spread]: [f64; 2], rng: &mut impl Rng) -> [bool; 2] {
        [self.turn(scale, rng), self.stretch(spread, rng)]
    }

    fn stretch(&mut self, spread: f64, rng: &mut impl Rng) -> bool {
        let normal: f64 = StandardNormal.sample(rng);
        let log = spread * normal;
        let norm2 = self.norm2 * (2.0 * log).exp();
        let density = self.walk.log_density(norm2);
        // The factor stretches the volume.
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
        // ln of the proposal density backwards over that forwards.
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

/// n / (1 + 2 Σ autocorrelations), summed over pairs of lags while the pair's sum is positive
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
