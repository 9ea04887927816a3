//! TEM'21 Algorithm 3, the reference sampler: Gumbel noise of scale 2/ε over the γ-neighbours and
//! ⊥.
//!
//! ⊥ stands for all words beyond γ. Its score is -γ + (2/ε)·ln|W∖L|; if it wins, one of those words
//! is drawn uniformly. If no word is beyond γ, there is no ⊥.

use rand::{Rng, RngExt};

use crate::support::random::uniform_below;

/// The mechanism for one input word.
pub struct Gumbel {
    scale: f64,
    near: Vec<(f64, u32)>,
    far: Vec<u32>,
    bottom: f64,
}

impl Gumbel {
    /// Creates the mechanism from the distances to every word.
    pub fn new(epsilon: f64, gamma: f64, distances: &[f64]) -> Self {
        let scale = 2.0 / epsilon;
        let (mut near, mut far) = (Vec::new(), Vec::new());
        for (&d, id) in distances.iter().zip(0..) {
            if d <= gamma {
                near.push((-d, id));
            } else {
                far.push(id);
            }
        }
        let bottom = -gamma + scale * (far.len() as f64).ln();
        Gumbel {
            scale,
            near,
            far,
            bottom,
        }
    }

    /// Draws one word.
    pub fn sample(&self, rng: &mut impl Rng) -> u32 {
        let mut gumbel = || {
            // u in (0, 1): 53 bits, shifted by half a step.
            let u = rng.random::<f64>() + 0.5f64.powi(54);
            -self.scale * (-u.ln()).ln()
        };
        let mut best = (f64::NEG_INFINITY, None);
        if !self.far.is_empty() {
            best.0 = self.bottom + gumbel();
        }
        for &(score, id) in &self.near {
            let noisy = score + gumbel();
            if noisy > best.0 {
                best = (noisy, Some(id));
            }
        }
        best.1.unwrap_or_else(|| {
            let far = self.far.len().max(1) as u32;
            let pick = uniform_below(rng, far) as usize;
            // `near` is never empty if `far` is: every word is in one of them.
            self.far.get(pick).copied().unwrap_or_default()
        })
    }
}
