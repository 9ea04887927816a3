//! The law where few distances occur: draw the distance first, then one of the words there, which
//! have equal weights.

use rand::Rng;

use crate::law::weight;
use crate::support::random::uniform_below_u128;
use crate::words::graph::Shells;

/// The law of one word over the distances around it, with the integers of [`law`](super::law).
#[derive(Debug, Default)]
pub(super) struct ShellLaw {
    shells: Vec<Shell>,
}

#[derive(Debug)]
struct Shell {
    /// Sum of all weights up to and including this distance.
    cumulative: u128,
    /// The weight of one word.
    weight: u128,
    distance: f64,
}

impl ShellLaw {
    /// Computes the law around a word; η = ε/2.
    pub(super) fn fill(&mut self, eta: f64, gamma: f64, around: &Shells) {
        let mut counts = Vec::new();
        around.fill(&mut counts);
        self.shells.clear();
        let mut cumulative = 0;
        for (distance, count) in counts {
            let weight = weight(eta * distance.min(gamma));
            cumulative += weight * u128::from(count);
            self.shells.push(Shell {
                cumulative,
                weight,
                distance,
            });
        }
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Shell>() * self.shells.capacity()
    }

    /// Draws one word, with probability weight / total exactly.
    pub(super) fn sample(&self, around: &Shells, rng: &mut impl Rng) -> u32 {
        let total = self.shells.last().map_or(1, |s| s.cumulative);
        let u = uniform_below_u128(rng, total);
        let at = self.shells.partition_point(|s| s.cumulative <= u);
        let shell = &self.shells[at];
        let before = at.checked_sub(1).map_or(0, |b| self.shells[b].cumulative);
        // u - before is uniform below count · weight, so the quotient is uniform below the count.
        let index = ((u - before) / shell.weight) as u32;
        around.pick(at, shell.distance, index)
    }
}
