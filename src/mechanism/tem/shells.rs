//! The law where few distances occur: draw the distance first, then one of the words there, which
//! have equal weights.

use rand::Rng;

use crate::law::weight;
use crate::support::random::uniform_below_u128;

/// The law of one word over the distances around it, with the integers of [`law`](super::law).
#[derive(Debug, Default)]
pub(super) struct ShellLaw {
    /// All words, by their distance.
    words: Vec<u32>,
    shells: Vec<Shell>,
}

/// The words at one distance.
#[derive(Debug)]
struct Shell {
    /// The place of the first.
    first: usize,
    /// The weight of one word, and the sum of all weights at smaller distances.
    weight: u128,
    before: u128,
}

impl ShellLaw {
    /// Computes the law around a word from its distances; η = ε/2. Returns its bytes.
    pub(super) fn fill(&mut self, eta: f64, gamma: f64, distances: &[f64]) -> usize {
        let distance = |word: u32| distances[word as usize];
        self.words.clear();
        self.words.extend(0..distances.len() as u32);
        self.words
            .sort_unstable_by(|&a, &b| distance(a).total_cmp(&distance(b)));
        self.shells.clear();
        let (mut first, mut before) = (0, 0);
        for some in self.words.chunk_by(|&a, &b| distance(a) == distance(b)) {
            let weight = weight(eta * distance(some[0]).min(gamma));
            self.shells.push(Shell {
                first,
                weight,
                before,
            });
            first += some.len();
            before += weight * some.len() as u128;
        }
        size_of_val(&*self.words) + size_of_val(&*self.shells)
    }

    /// The sum of all weights.
    fn total(&self) -> u128 {
        self.shells.last().map_or(0, |last| {
            last.before + last.weight * (self.words.len() - last.first) as u128
        })
    }

    /// The word at `u`, a number below the total.
    fn find(&self, u: u128) -> u32 {
        let shell = &self.shells[self.shells.partition_point(|shell| shell.before <= u) - 1];
        self.words[shell.first + ((u - shell.before) / shell.weight) as usize]
    }

    /// Draws one word, with probability weight / total exactly.
    pub(super) fn sample(&self, rng: &mut impl Rng) -> u32 {
        self.find(uniform_below_u128(rng, self.total()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// Each word has an interval of its weight.
        #[test]
        fn words_have_their_weights(
            distances in proptest::collection::vec(0u8..9, 1..60), eta in 0.01f64..9.0, gamma in 0.0f64..9.0
        ) {
            let distances: Vec<f64> = distances.into_iter().map(f64::from).collect();
            let mut law = ShellLaw::default();
            // Twice, so that memory is used again.
            law.fill(eta, gamma, &[1.0; 70]);
            law.fill(eta, gamma, &distances);
            let (mut u, mut left) = (0, vec![true; distances.len()]);
            while u < law.total() {
                let word = law.find(u) as usize;
                let weight = weight(eta * distances[word].min(gamma));
                proptest::prop_assert!(std::mem::take(&mut left[word]));
                proptest::prop_assert_eq!(law.find(u + weight - 1) as usize, word);
                u += weight;
            }
            proptest::prop_assert_eq!(u, law.total());
            proptest::prop_assert!(left.into_iter().all(|left| !left));
        }
    }
}
