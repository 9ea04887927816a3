//! Draws from laws that know two probabilities: of the word itself, and of any other output.
//!
//! Such a law is known without its row, and a draw takes two random numbers.

use rand::Rng;

use super::integers::{Scale, see};
use super::{Result, Rows};
use crate::support::random::{uniform_below, uniform_below_u128};

/// The word itself has one probability, every other output another.
#[derive(Clone, Copy, Debug)]
pub struct Alike {
    /// Of the word itself.
    pub own: f64,
    /// Of every other output.
    pub other: f64,
}

impl Rows for Alike {
    fn write(&self, word: u32, row: &mut [f64]) -> Result<()> {
        row.fill(self.other);
        row[word as usize] = self.own;
        Ok(())
    }

    fn alike(&self) -> Option<Alike> {
        Some(*self)
    }
}

/// The same as integers.
pub(super) struct AlikeLaw {
    words: u32,
    own: u128,
    total: u128,
}

impl AlikeLaw {
    /// The law on so many words; `None` for what is no law, as reading a row then says.
    pub(super) fn of(Alike { own, other }: Alike, words: u32) -> Option<Self> {
        // A single word has no other.
        let numbers = [own, if words > 1 { other } else { own }];
        let most = see(&numbers).most;
        if most == 0 || most >= f64::INFINITY.to_bits() {
            return None;
        }
        let scale = Scale::of(f64::from_bits(most));
        let [own, other] = numbers.map(|p| scale.integer(p));
        Some(AlikeLaw {
            words,
            own,
            // At most 2²⁷ words of at most 2¹⁰⁰: no overflow.
            total: own + other * u128::from(words - 1),
        })
    }

    /// Draws an output of a word.
    #[inline]
    pub(super) fn sample(&self, word: u32, rng: &mut impl Rng) -> u32 {
        if uniform_below_u128(rng, self.total) < self.own {
            return word;
        }
        let other = uniform_below(rng, self.words - 1);
        other + u32::from(other >= word)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::mechanism::finite_law::FiniteLaw;
    use crate::mechanism::{Mechanism, WordMechanism};
    use crate::testing::assert_law;
    use crate::{Embedding, Randomness};

    fn law(words: usize, rows: Arc<dyn Rows>) -> FiniteLaw {
        let e = Arc::new(Embedding::default_english().unwrap().first(words).unwrap());
        FiniteLaw::new(e, rows, None, Randomness::known_keys(4)).unwrap()
    }

    #[test]
    fn draws_have_the_law_of_the_rows() {
        for (words, own, other) in [
            (2, 0.75, 0.25),
            (30, 0.3, 0.02),
            (30, 0.0, 1.0),
            (30, 1.0, 1.0),
        ] {
            let rows = Arc::new(Alike { own, other });
            let law = law(words, rows);
            for id in [0, words as u32 / 2, words as u32 - 1] {
                let draws = 300_000;
                let mut counts = vec![0u32; words];
                for y in law.privatize_ids(&vec![id; draws]).unwrap() {
                    counts[y as usize] += 1;
                }
                let mut p = vec![0.0; words];
                assert!(law.law(id, &mut p));
                assert_law(&counts, &p, &format!("{words} {own} {id}"));
            }
        }
        let one = law(
            1,
            Arc::new(Alike {
                own: 0.5,
                other: 0.0,
            }),
        );
        assert_eq!(one.privatize_ids(&[0, 0]).unwrap(), [0, 0]);
    }

    #[test]
    fn excluded_outputs_are_never_drawn() {
        let rows = Arc::new(Alike {
            own: 0.1,
            other: 0.3,
        });
        let law = law(4, rows).excluding(&[1, 2]).unwrap();
        let drawn = law.privatize_ids(&[1; 1000]).unwrap();
        assert!(drawn.iter().all(|&y| y == 0 || y == 3));
    }

    #[test]
    fn what_is_no_law_is_refused() {
        for (own, other) in [
            (0.0, 0.0),
            (f64::NAN, 1.0),
            (1.0, -1.0),
            (1.0, f64::INFINITY),
        ] {
            let law = law(3, Arc::new(Alike { own, other }));
            let error = law.privatize_ids(&[1]).unwrap_err().to_string();
            assert!(error.contains("in the row of word 1"), "{error}");
        }
    }
}
