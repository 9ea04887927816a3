//! Draws from laws that are the same for every word but for the order of the outputs.
//!
//! Such a law gives the output of rank r the probability p(r), whatever the word is. So a draw takes a
//! rank first, from one table for all words. Then it finds the word of this rank, which needs no row of
//! probabilities and no complete order.

use std::sync::Arc;
use std::time::Instant;

use rand::Rng;

use super::integers::{Scale, see};
use super::tables::{Tables, WordOrder};
use super::{Result, Rows};
use crate::distance::neighbors::Order;
use crate::law::alias::AliasTable;
use crate::support::error::Error;
use crate::support::fork::Once;
use crate::words::space::MetricSpace;

/// A law whose output of rank r has the probability `weights[r]`: rank 0 is the word itself, rank 1
/// its nearest word, and so on, ties by id.
pub struct LawByRank {
    space: Arc<dyn MetricSpace>,
    weights: Vec<f64>,
    /// Of all words together; `None` for weights that are no probabilities.
    ranks: Once<Option<RankTable>>,
}

/// The weights as integers, and a table of their ranks.
struct RankTable {
    scale: Scale,
    table: AliasTable,
}

/// From this many draws on, all words are ordered.
const MANY: usize = 8;

impl LawByRank {
    /// Creates a law from one weight for every word.
    ///
    /// # Errors
    /// [`Error::Parameter`] for another number of weights.
    pub fn new(space: Arc<dyn MetricSpace>, weights: Vec<f64>) -> Result<Self> {
        let words = space.vocabulary().len();
        if weights.len() != words {
            let got = format!("{} of {words}", weights.len());
            return Err(Error::parameter("weights", "one for every word", got));
        }
        Ok(LawByRank {
            space,
            weights,
            ranks: Once::new(),
        })
    }

    fn ranks(&self) -> Option<&RankTable> {
        let made = || {
            let most = see(&self.weights).most;
            let is_law = most > 0 && most < f64::INFINITY.to_bits();
            is_law.then(|| {
                let scale = Scale::of(f64::from_bits(most));
                let table = AliasTable::new(&scale.law(&self.weights));
                RankTable { scale, table }
            })
        };
        self.ranks.get_or_init(made).as_ref()
    }
}

/// A law by rank, with the table of its ranks.
pub struct Ranks<'a> {
    law: &'a LawByRank,
    table: &'a RankTable,
}

impl Rows for LawByRank {
    fn write(&self, word: u32, row: &mut [f64]) -> Result<()> {
        // The row serves for the distances, until their order is known.
        self.space.distances(word, row);
        let ranked: Vec<u32> = Order::default().all(word, row).collect();
        for (id, &weight) in ranked.into_iter().zip(&self.weights) {
            row[id as usize] = weight;
        }
        Ok(())
    }

    fn by_rank(&self) -> Option<Ranks<'_>> {
        // Without a table, reading a row says what is wrong with it.
        let table = self.ranks()?;
        Some(Ranks { law: self, table })
    }
}

/// Working memory of one thread.
#[derive(Default)]
pub(super) struct Ranked {
    ranks: Vec<u32>,
    distances: Vec<f64>,
    order: Order,
}

impl Ranked {
    /// Draws `count` outputs of a word. The random bits do not depend on what is kept.
    pub(super) fn draw(
        &mut self,
        Ranks { law, table }: Ranks<'_>,
        tables: &Tables,
        word: u32,
        count: usize,
        rng: &mut impl Rng,
        mut drawn: impl FnMut(u32),
    ) {
        let RankTable { scale, table } = table;
        let again = || scale.law(&law.weights);
        if let Some(order) = tables.order(word) {
            return table.sample_many(count, rng, again, |r| drawn(order.at(r)));
        }
        let Ranked {
            ranks,
            distances,
            order,
        } = self;
        let start = Instant::now();
        ranks.clear();
        table.sample_many(count, rng, again, |r| ranks.push(r));
        let words = law.weights.len();
        distances.resize(words, 0.0);
        law.space.distances(word, distances);
        let pays = tables.order_pays(word, count, start.elapsed());
        if pays || count >= MANY {
            let order = WordOrder::of(words, order.all(word, distances));
            ranks.iter().for_each(|&r| drawn(order.at(r)));
            if pays {
                tables.keep_order(word, order);
            }
        } else {
            for &r in &*ranks {
                drawn(order.at(word, r as usize, distances));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::Mechanism;
    use crate::mechanism::finite_law::FiniteLaw;
    use crate::testing::assert_law;
    use crate::{Embedding, Metric, Randomness, Vocabulary};

    /// A few draws and many, with orders kept and without room for them.
    #[test]
    fn draws_have_the_law_of_the_rows() {
        const WORDS: usize = 40;
        let names: Vec<String> = (0..WORDS).map(|i| format!("w{i}")).collect();
        // Many words at the same distance.
        let vectors = (0..WORDS).map(|i| (i * 7 % 13) as f32).collect();
        let vocabulary = Vocabulary::new(names).unwrap();
        let e = Embedding::new(vocabulary, vectors, 1, Metric::Euclidean).unwrap();
        let e = Arc::new(e);
        let weights = (0..WORDS).map(|r| (-0.08 * r as f64).exp()).collect();
        let rows = Arc::new(LawByRank::new(e.clone(), weights).unwrap());
        for (cache, size) in [(0, 3), (0, 40), (1 << 20, 3), (1 << 20, 4000)] {
            let os = Randomness::new(None);
            let law = FiniteLaw::new(e.clone(), rows.clone(), Some(cache), os).unwrap();
            let draws = 240_000;
            let mut counts = vec![[0u32; WORDS]; 2];
            for _ in 0..draws / size {
                let ids: Vec<u32> = (0..size as u32).map(|i| 5 + i % 2 * 20).collect();
                for (id, y) in ids.iter().zip(law.privatize_ids(&ids).unwrap()) {
                    counts[(*id / 20) as usize][y as usize] += 1;
                }
            }
            for (id, counts) in [5, 25].into_iter().zip(counts) {
                let mut p = [0.0; WORDS];
                assert!(law.law(id, &mut p));
                assert_law(&counts, &p, &format!("{cache}, {size}"));
            }
        }
    }

    #[test]
    fn a_seed_fixes_the_draws_whatever_is_kept() {
        let e = Arc::new(Embedding::default_english().unwrap().first(300).unwrap());
        let weights = (0..300).map(|r| (-0.01 * f64::from(r)).exp()).collect();
        let rows = Arc::new(LawByRank::new(e.clone(), weights).unwrap());
        let ids: Vec<u32> = (0..1000).map(|i| i * i % 300).collect();
        let drawn = |cache, passes| {
            let seed = Randomness::new(Some(1));
            let law = FiniteLaw::new(e.clone(), rows.clone(), Some(cache), seed).unwrap();
            let outputs = (0..passes).map(|_| law.privatize_ids(&ids).unwrap());
            outputs.last().unwrap()
        };
        // Each call of a mechanism with a seed has its own stream.
        for passes in [1, 20] {
            assert_eq!(drawn(0, passes), drawn(1 << 24, passes));
        }
    }

    #[test]
    fn weights_that_are_no_probabilities_are_refused() {
        let e = Arc::new(Embedding::default_english().unwrap().first(3).unwrap());
        for bad in [vec![0.0; 3], vec![1.0, f64::NAN, 0.0], vec![-1.0, 1.0, 1.0]] {
            let rows = Arc::new(LawByRank::new(e.clone(), bad).unwrap());
            let law = FiniteLaw::new(e.clone(), rows, None, Randomness::new(None)).unwrap();
            let error = law.privatize_ids(&[1]).unwrap_err().to_string();
            assert!(error.contains("in the row of word 1"), "{error}");
        }
        assert!(LawByRank::new(e, vec![1.0]).is_err());
    }
}
