//! Outputs behind what was released before them: the channel of a mechanism that draws in order.
//!
//! Let K\[w,y\] = Q(y)·F(d(w,y)) / Z(w) be the law without a history, and s(y) = S_h(y)/Q(y) what the
//! history h adds to an output's weight. Then
//!
//! Pr\[y|w,h\] = K\[w,y\]·(1 + s(y)) / (1 + Σ_x K\[w,x\]·s(x)).
//!
//! So a place takes one column of K, and a sum for every word w. S_h consists of a few lists, and the sum
//! of theirs. A list's sums take the columns of all its words, thousands of them behind "the", so they are
//! kept, within a bound. An unknown word has the law Q in the place of K\[w,·\].
//!
//! h is the beginning of the sentence in the release: all that a receiver needs is public.

use std::collections::HashMap;
use std::sync::RwLock;

use super::read::{Observed, Reading};
use super::source::Column;
use super::{Channel, KEPT_BYTES};
use crate::language::Expected;
use crate::support::error::Result;
use crate::support::parallel::{Control, for_all, install};
use crate::text::id_of;

/// Columns that are added up at a time.
const COLUMNS: usize = 32;
/// Bytes of sums that are made together, in one pass over the columns.
const BATCH_BYTES: usize = 64 << 20;

/// Sums of lists, by [`Expected::key`]. Nobody waits for the lock, so a fork may leave it locked.
pub(super) struct Sums {
    /// With the number of the list's words.
    kept: RwLock<HashMap<u128, (usize, Column)>>,
    bytes: usize,
}

#[derive(Default)]
struct Behind {
    /// The first token of the sentence.
    start: usize,
    /// 1 + s(y) of the output.
    gain: f64,
    /// The lists.
    keys: Vec<u128>,
}

pub(super) struct Histories {
    tokens: Vec<u32>,
    places: Vec<Behind>,
}

impl Histories {
    /// Multiplies the likelihoods of an output by what its history makes of them.
    pub(super) fn scale(
        &self,
        place: usize,
        sums: &HashMap<u128, Column>,
        likelihoods: &mut [f64],
    ) {
        let behind = &self.places[place];
        let lists: Vec<&Column> = behind.keys.iter().filter_map(|key| sums.get(key)).collect();
        for (w, p) in likelihoods.iter_mut().enumerate() {
            let sum: f64 = lists.iter().map(|list| list[w]).sum();
            *p *= behind.gain / (1.0 + sum);
        }
    }
}

impl Sums {
    pub(super) fn of_bytes(bytes: usize) -> Self {
        Sums {
            kept: RwLock::default(),
            bytes,
        }
    }

    /// The lists whose sums fit, of `words` words each.
    fn most(&self, words: usize) -> usize {
        self.bytes / ((words + 1) * size_of::<f64>() + KEPT_BYTES)
    }

    fn get(&self, key: u128) -> Option<Column> {
        let kept = self.kept.try_read().ok()?;
        kept.get(&key).map(|(_, sums)| sums.clone())
    }

    /// Keeps the sums of the longest lists; others are made again when they are needed.
    fn keep(&self, words: usize, key: u128, count: usize, sums: &Column) {
        let Ok(mut kept) = self.kept.try_write() else {
            return;
        };
        if kept.len() >= self.most(words) {
            let shortest = kept.iter().map(|(key, (count, _))| (*count, *key)).min();
            match shortest.filter(|(least, _)| *least < count) {
                Some((_, shortest)) => kept.remove(&shortest),
                None => return,
            };
        }
        kept.insert(key, (count, sums.clone()));
    }
}

impl Channel {
    /// The histories of a release; `None` if the mechanism has none. The sums of the longest and most
    /// frequent lists are made at once, as many as are kept.
    pub(super) fn histories(
        &self,
        reading: &Reading,
        control: &Control,
    ) -> Result<Option<Histories>> {
        let Some(tem) = self.text.mechanism().in_order() else {
            return Ok(None);
        };
        let words = self.vocabulary();
        // As the drawing reads what it has released.
        let token = |seen: &Observed| match *seen {
            Observed::Output(y) => id_of(words, words.word(y)).unwrap_or(y),
            Observed::Written(token) => token,
        };
        let tokens: Vec<u32> = reading.observed.iter().map(token).collect();
        let mut places = Vec::with_capacity(tokens.len());
        let mut uses: HashMap<u128, (usize, Expected)> = HashMap::new();
        for sentence in &reading.sentences {
            for place in sentence.clone() {
                control.check()?;
                let mut behind = Behind {
                    start: sentence.start,
                    gain: 1.0,
                    ..Behind::default()
                };
                if let Observed::Output(y) = reading.observed[place] {
                    for list in tem.expected(&tokens[sentence.start..place])? {
                        let q = f64::from(tem.base().weight(y));
                        behind.gain += list.weight(y) as f64 / q;
                        let key = list.key();
                        behind.keys.push(key);
                        uses.entry(key).or_insert((0, list)).0 += 1;
                    }
                }
                places.push(behind);
            }
        }
        let mut uses: Vec<_> = uses.into_iter().collect();
        uses.sort_by_key(|(key, (uses, list))| (std::cmp::Reverse(uses * list.count()), *key));
        // One sentence makes its own.
        let most = if reading.sentences.len() > 1 {
            self.sums.most(self.words())
        } else {
            0
        };
        uses.truncate(most);
        let lists = uses.into_iter().map(|(key, (_, list))| (key, list));
        self.sums(lists.collect(), control)?;
        Ok(Some(Histories { tokens, places }))
    }

    /// The sums of the lists of some places.
    pub(super) fn sums_behind(
        &self,
        histories: &Histories,
        places: impl Iterator<Item = usize>,
        control: &Control,
    ) -> Result<HashMap<u128, Column>> {
        let (mut found, mut missing) = (HashMap::new(), HashMap::new());
        let Some(tem) = self.text.mechanism().in_order() else {
            return Ok(found);
        };
        for place in places {
            let behind = &histories.places[place];
            let mut all = true;
            for key in &behind.keys {
                all &= match self.sums.get(*key) {
                    _ if found.contains_key(key) || missing.contains_key(key) => true,
                    Some(sums) => found.insert(*key, sums).is_none(),
                    None => false,
                };
            }
            if !all {
                let lists = tem.expected(&histories.tokens[behind.start..place])?;
                missing.extend(lists.into_iter().map(|list| (list.key(), list)));
            }
        }
        found.extend(self.sums(missing.into_iter().collect(), control)?);
        Ok(found)
    }

    /// The sums of lists: those that are kept, and new ones.
    fn sums(&self, lists: Vec<(u128, Expected)>, control: &Control) -> Result<Vec<(u128, Column)>> {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for (key, list) in lists {
            match self.sums.get(key) {
                Some(sums) => found.push((key, sums)),
                None => missing.push((key, list)),
            }
        }
        let size = (self.words() + 1) * size_of::<f64>();
        for some in missing.chunks((BATCH_BYTES / size).max(1)) {
            let lists: Vec<&Expected> = some.iter().map(|(_, list)| list).collect();
            let made = self.made_sums(&lists, control)?;
            for ((key, list), sums) in some.iter().zip(made) {
                self.sums.keep(self.words(), *key, list.count(), &sums);
                found.push((*key, sums));
            }
        }
        Ok(found)
    }

    fn made_sums(&self, lists: &[&Expected], control: &Control) -> Result<Vec<Column>> {
        let Some(tem) = self.text.mechanism().in_order() else {
            return Ok(Vec::new());
        };
        let words = self.words();
        let totals = &self.surveyed(control)?.totals[..];
        let unknown = self.unknown_law();
        // s of the words that are outputs.
        let relative = |list: &&Expected| -> Vec<(u32, f64)> {
            let released = |&(y, s): &(u32, u64)| s > 0 && unknown[y as usize] > 0.0;
            let share = |(y, s)| (y, s as f64 / f64::from(tem.base().weight(y)));
            list.iter().filter(released).map(share).collect()
        };
        let terms: Vec<Vec<(u32, f64)>> = lists.iter().map(relative).collect();
        let mut outputs: Vec<u32> = terms.iter().flatten().map(|&(y, _)| y).collect();
        outputs.sort_unstable();
        outputs.dedup();
        let mut sums = vec![vec![0.0; words]; lists.len()];
        for outputs in outputs.chunks(COLUMNS) {
            let columns = self.source.columns(outputs, words, totals, control)?;
            install(words * lists.len(), 0, || {
                for_all(sums.iter_mut().zip(&terms), |(sums, terms)| {
                    for (y, column) in outputs.iter().zip(&columns) {
                        if let Ok(at) = terms.binary_search_by_key(y, |(y, _)| *y) {
                            let each = sums.iter_mut().zip(&**column);
                            each.for_each(|(sum, p)| *sum += terms[at].1 * p);
                        }
                    }
                    Ok(())
                })
            })??;
        }
        let made = sums.into_iter().zip(&terms).map(|(mut sums, terms)| {
            sums.push(terms.iter().map(|&(y, s)| unknown[y as usize] * s).sum());
            sums.into()
        });
        Ok(made.collect())
    }
}
