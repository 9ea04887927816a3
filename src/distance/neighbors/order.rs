//! All words from the nearest to the farthest, by exact distances.

/// Bits of a digit: two digits order most words, and their counters fit the cache.
const DIGIT: u32 = 11;
const VALUES: usize = 1 << DIGIT;

/// Orders words by their distance from a word: the word itself first, then the nearest, ties by id.
/// A distance is not negative.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The leading bits of a distance above the word's id.
    keys: Vec<u64>,
    moved: Vec<u64>,
}

impl Order {
    /// The words from the nearest to the farthest.
    pub(crate) fn all(&mut self, word: u32, distances: &[f64]) -> impl Iterator<Item = u32> {
        let bits = |id: u32| bits_of(distances[id as usize]);
        let ids = || others(word, distances);
        let (least, most) = least_and_most(ids().map(bits));
        // The two leading digits of the bits above the least.
        let shift = u64::BITS - most.saturating_sub(least).leading_zeros();
        let shift = shift.saturating_sub(2 * DIGIT);
        let low = |key: u64| (key >> 32) as usize & (VALUES - 1);
        let high = |key: u64| (key >> (32 + DIGIT)) as usize & (VALUES - 1);
        self.keys.clear();
        let key = |id| (bits(id) - least) >> shift << 32 | u64::from(id);
        self.keys.extend(ids().map(key));
        self.moved.resize(self.keys.len(), 0);
        spread(&self.keys, &mut self.moved, low);
        spread(&self.moved, &mut self.keys, high);
        // Words with the same digits are few, and in the order of their ids.
        for alike in self.keys.chunk_by_mut(|a, b| a >> 32 == b >> 32) {
            if alike.len() > 1 && shift > 0 {
                alike.sort_unstable_by_key(|&key| (bits(key as u32), key));
            }
        }
        let others = self.keys.iter().map(|&key| key as u32);
        std::iter::once(word).chain(others)
    }

    /// The word of one rank: that at this place of [`all`](Self::all).
    pub(crate) fn at(&mut self, word: u32, rank: usize, distances: &[f64]) -> u32 {
        let Some(place) = rank.checked_sub(1) else {
            return word;
        };
        let Order {
            keys,
            moved: counts,
        } = self;
        let bits = |id: u32| bits_of(distances[id as usize]);
        let ids = || others(word, distances);
        let (least, most) = least_and_most(ids().map(bits));
        // Count the words by the leading digit above the least, and order those with the digit at
        // which the rank falls.
        let shift = u64::BITS - most.saturating_sub(least).leading_zeros();
        let shift = shift.saturating_sub(DIGIT);
        let digit = |id: u32| ((bits(id) - least) >> shift) as usize;
        counts.clear();
        counts.resize(VALUES, 0);
        ids().for_each(|id| counts[digit(id)] += 1);
        let (mut at, mut before) = (0, 0);
        while before + counts[at] as usize <= place {
            before += counts[at] as usize;
            at += 1;
        }
        keys.clear();
        keys.extend(ids().filter(|&id| digit(id) == at).map(u64::from));
        let by = |&id: &u64| (bits(id as u32), id);
        let (_, &mut found, _) = keys.select_nth_unstable_by_key(place - before, by);
        found as u32
    }

    /// The `k` nearest of the words `among`, with `word` first, which is one of them.
    pub(crate) fn nearest(
        word: u32,
        k: usize,
        distances: &[f64],
        among: impl Iterator<Item = u32>,
    ) -> Vec<u32> {
        let others = among.filter(|&id| id != word);
        let mut others: Vec<(u64, u32)> = others
            .map(|id| (bits_of(distances[id as usize]), id))
            .collect();
        let wanted = k.saturating_sub(1);
        if wanted == 0 {
            others.clear();
        } else if wanted < others.len() {
            others.select_nth_unstable(wanted - 1);
            others.truncate(wanted);
        }
        others.sort_unstable();
        let others = others.into_iter().map(|(_, id)| id);
        std::iter::once(word).chain(others).take(k).collect()
    }
}

/// All words but `word`.
fn others(word: u32, distances: &[f64]) -> impl Iterator<Item = u32> {
    (0..distances.len() as u32).filter(move |&id| id != word)
}

fn least_and_most(bits: impl Iterator<Item = u64>) -> (u64, u64) {
    bits.fold((u64::MAX, 0), |(least, most), x| {
        (least.min(x), most.max(x))
    })
}

/// The bits of a distance. They sort like distances.
#[inline]
fn bits_of(distance: f64) -> u64 {
    // The sum turns -0 into 0.
    (distance + 0.0).to_bits()
}

/// Sorts keys by one digit; keys with the same digit keep their order.
fn spread(keys: &[u64], sorted: &mut [u64], digit: impl Fn(u64) -> usize) {
    let mut next = [0u32; VALUES];
    for &key in keys {
        next[digit(key)] += 1;
    }
    let mut start = 0;
    for slot in &mut next {
        start += std::mem::replace(slot, start);
    }
    for &key in keys {
        let slot = &mut next[digit(key)];
        sorted[*slot as usize] = key;
        *slot += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slowly(word: u32, distances: &[f64]) -> Vec<u32> {
        let mut ids: Vec<u32> = (0..distances.len() as u32).collect();
        ids.sort_by(|&a, &b| {
            let by = |id: u32| distances[id as usize];
            (a != word)
                .cmp(&(b != word))
                .then(by(a).total_cmp(&by(b)))
                .then(a.cmp(&b))
        });
        ids
    }

    fn agree(word: u32, distances: &[f64]) {
        let expected = slowly(word, distances);
        // Memory that was used before.
        let mut order = Order {
            keys: vec![7; 5],
            ..Order::default()
        };
        assert!(order.all(word, distances).eq(expected.iter().copied()));
        for rank in (0..expected.len()).step_by(1 + expected.len() / 40) {
            assert_eq!(order.at(word, rank, distances), expected[rank]);
        }
        let all = || 0..distances.len() as u32;
        for k in [0, 1, 2, 24, distances.len(), distances.len() + 3] {
            let found = Order::nearest(word, k, distances, all());
            assert_eq!(found, expected[..k.min(expected.len())]);
        }
    }

    #[test]
    fn words_at_one_distance_are_ordered_by_id() {
        agree(0, &[0.0]);
        agree(1, &[0.0, 0.0]);
        agree(2, &[1.0; 100]);
        agree(0, &[0.0, f64::INFINITY, 1.0, f64::INFINITY]);
        // A far word, and many whose leading bits agree.
        let mut close: Vec<f64> = (0..500)
            .map(|i| 1.0 + f64::from(i * 7 % 500) * 1e-15)
            .collect();
        close[3] = 1e300;
        close[4] = 0.0;
        agree(9, &close);
    }

    proptest::proptest! {
        #[test]
        fn it_is_the_order_of_a_slow_sort(
            distances in proptest::collection::vec(0f64..2.0, 1..400), tied in 0usize..50, word: proptest::sample::Index
        ) {
            let mut distances = distances;
            for i in 0..tied.min(distances.len()) {
                distances[i] = (distances[i] * 4.0).floor();
            }
            agree(word.index(distances.len()) as u32, &distances);
        }
    }
}
