//! The built-in model: pairs of English words, in a compact file.
//!
//! `data/english.ngrams` is gzip (RFC 1952) of, little-endian and without padding,
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `FDXNGRAM` |
//! | 4 + 4 | version 1; V, the number of words |
//! | 8 | XXH3-64 of the words, each with a zero byte behind it |
//! | 8 | B, the number of pairs |
//! | 2 (V + 1) | how often each word is written, the unknown one last: code c means 2^(-c/2048) |
//! | 2 (V + 1) | by which frequencies histories are filled up, in the same code |
//! | 4 (V + 2) | how many words were seen behind each word, the unknown one and a sentence's beginning |
//! | 1 to 5 each | B numbers (LEB128): a word behind a context, less the one before it (0 for the first) |
//! | B | the weight of each pair: code c means 2^(-c/12) |
//!
//! Frequencies are scaled to sum to 1 as they are read. `tools/english_prior.py` writes the file.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;

use super::stored::{Parsed, checked_rows, checked_shares};
use super::{NgramPrior, Rows, Triples, words_fingerprint};
use crate::support::error::{Error, Result};
use crate::words::embedding::Embedding;
use crate::words::embedding::format::DAMAGED;
use crate::words::space::MetricSpace;
use crate::words::vocabulary::Vocabulary;

static BYTES: &[u8] = include_bytes!("../../data/english.ngrams");
const MAGIC: &[u8; 8] = b"FDXNGRAM";
const VERSION: u32 = 1;
/// More than any such file holds.
const MAX_BYTES: usize = 1 << 26;
/// Where the frequencies begin.
const FREQUENCIES: usize = 32;

impl NgramPrior {
    /// The built-in bigrams of English. Without a space, they are those of the [built-in
    /// words](Embedding::default_english). With a space of some of these words, in any order, the
    /// other words count as unknown.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a space with words that are not built in.
    pub fn english(space: Option<Arc<dyn MetricSpace>>) -> Result<Self> {
        let all = Arc::new(Embedding::default_english()?);
        let model = Self::compact(all, BYTES, Path::new("english.ngrams"))?;
        let Some(space) = space else {
            return Ok(model);
        };
        if words_fingerprint(space.vocabulary()) == words_fingerprint(model.space.vocabulary()) {
            return Ok(NgramPrior { space, ..model });
        }
        model.restricted(space)
    }

    /// How often words are written in English; `None` if some of them are not built in.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a damaged program.
    pub(crate) fn english_frequencies(words: &Vocabulary) -> Result<Option<Vec<f64>>> {
        let all = Embedding::default_english()?;
        let all = all.vocabulary();
        let ids: Option<Vec<u32>> = words.iter().map(|word| all.id(word)).collect();
        let Some(ids) = ids else { return Ok(None) };
        // The file begins with them: the pairs need not be unpacked.
        let codes = unpack(BYTES, FREQUENCIES + 2 * all.len()).and_then(|bytes| {
            let mut reader = Reader(bytes.get(FREQUENCIES..).unwrap_or_default());
            reader.array::<u16>(all.len())
        });
        let codes = codes.map_err(Error::corrupt(Path::new("english.ngrams")))?;
        let share = |id| (f64::from(codes[id as usize]) / -2048.0).exp2();
        Ok(Some(ids.into_iter().map(share).collect()))
    }

    fn compact(space: Arc<dyn MetricSpace>, packed: &[u8], path: &Path) -> Result<Self> {
        let print = words_fingerprint(space.vocabulary());
        let parsed = unpack(packed, MAX_BYTES).and_then(|bytes| parse(space, print, &bytes));
        parsed.map_err(Error::corrupt(path))
    }

    /// Restricts the model to some of its words, by spelling: all others become the unknown word.
    fn restricted(&self, space: Arc<dyn MetricSpace>) -> Result<Self> {
        let (from, to) = (self.space.vocabulary(), space.vocabulary());
        let (before, words) = (from.len(), to.len());
        // Tokens and contexts: the unknown word and a sentence's start come after the words.
        let old: Option<Vec<usize>> = to.iter().map(|w| Some(from.id(w)? as usize)).collect();
        let Some(mut old) = old else {
            let expected = "words that are built in: train a model on public texts for others";
            let foreign = to.iter().filter(|w| from.id(w).is_none()).count();
            let got = format!("{foreign} of {words} that are not");
            return Err(Error::parameter("space", expected, got));
        };
        old.extend([before, before + 1]);
        let mut new = vec![words as u32; before + 1];
        for (at, &word) in old[..words].iter().enumerate() {
            new[word] = at as u32;
        }
        let shares = |given: &[f64]| {
            let mut found = vec![0.0; words + 1];
            let each = given.iter().zip(&new);
            each.for_each(|(p, &at)| found[at as usize] += p);
            found
        };
        let (mut starts, mut seen, mut weights) = (vec![0], Vec::new(), Vec::new());
        for &context in &old {
            let row = self.pairs.row(context).map(|(w, p)| (new[w], p));
            let mut row: Vec<(u32, f64)> = row.collect();
            row.sort_unstable_by_key(|pair| pair.0);
            for same in row.chunk_by(|a, b| a.0 == b.0) {
                seen.push(same[0].0);
                weights.push(same.iter().map(|pair| pair.1).sum::<f64>().min(1.0) as f32);
            }
            starts.push(seen.len() as u32);
        }
        Ok(NgramPrior {
            frequencies: shares(&self.frequencies),
            unigram: shares(&self.unigram),
            pairs: Rows::new(starts, seen, weights),
            triples: Triples::empty(),
            order: self.order,
            space,
        })
    }
}

/// Unpacks the file, or its beginning up to `enough` bytes.
fn unpack(packed: &[u8], enough: usize) -> Parsed<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut beginning = MultiGzDecoder::new(packed).take(enough as u64);
    beginning.read_to_end(&mut bytes).map_err(|_| DAMAGED)?;
    Ok(bytes)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Parsed<&'a [u8]> {
        let parts = self.0.split_at_checked(count);
        let (taken, rest) = parts.ok_or("the language model is truncated")?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<T: bytemuck::AnyBitPattern>(&mut self, count: usize) -> Parsed<Vec<T>> {
        let size = size_of::<T>();
        let bytes = count
            .checked_mul(size)
            .ok_or("the language model is damaged")?;
        let items = self.take(bytes)?.chunks_exact(size);
        Ok(items.map(bytemuck::pod_read_unaligned).collect())
    }

    fn one<T: bytemuck::AnyBitPattern>(&mut self) -> Parsed<T> {
        Ok(bytemuck::pod_read_unaligned(self.take(size_of::<T>())?))
    }

    fn number(&mut self) -> Parsed<u32> {
        let mut number = 0;
        for shift in (0..5).map(|group| 7 * group) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(number).map_err(|_| "a number is too large".into());
            }
        }
        Err("a number is too large".into())
    }
}

fn parse(space: Arc<dyn MetricSpace>, print: u64, bytes: &[u8]) -> Parsed<NgramPrior> {
    let words = space.vocabulary().len();
    let mut reader = Reader(bytes);
    if reader.take(8)? != MAGIC {
        return Err("holds no compact language model".into());
    }
    let version: u32 = reader.one()?;
    if version != VERSION {
        return Err(format!("a language model of version {version}"));
    }
    if (reader.one::<u32>()? as usize, reader.one::<u64>()?) != (words, print) {
        return Err("a language model of other words".into());
    }
    let pairs = usize::try_from(reader.one::<u64>()?).map_err(|_| "too many pairs")?;
    let shares = |codes: Vec<u16>| {
        let shares = codes.iter().map(|&c| (f64::from(c) / -2048.0).exp2());
        let mut shares: Vec<f64> = shares.collect();
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|p| *p /= sum);
        checked_shares(words, shares)
    };
    let frequencies = shares(reader.array(words + 1)?)?;
    let unigram = shares(reader.array(words + 1)?)?;
    let lengths: Vec<u32> = reader.array(words + 2)?;
    if lengths.iter().map(|&n| u64::from(n)).sum::<u64>() != pairs as u64
        || pairs > reader.0.len()
        || u32::try_from(pairs).is_err()
    {
        return Err("the rows of the language model are out of order".into());
    }
    let (mut starts, mut seen) = (vec![0], Vec::with_capacity(pairs));
    for length in lengths {
        let mut word = 0u32;
        for _ in 0..length {
            let next = word.checked_add(reader.number()?);
            word = next.ok_or("a word of the language model is out of range")?;
            seen.push(word);
        }
        starts.push(seen.len() as u32);
    }
    let codes: Vec<u8> = reader.array(pairs)?;
    let weights = codes.iter().map(|&c| (f32::from(c) / -12.0).exp2());
    if !reader.0.is_empty() {
        return Err("the language model goes on behind its end".into());
    }
    let pairs = checked_rows(words, words + 2, (starts, seen, weights.collect()))?;
    Ok(NgramPrior {
        space,
        order: 2,
        frequencies,
        unigram,
        pairs,
        triples: Triples::empty(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::parallel::Control;

    #[test]
    fn the_built_in_model_knows_english() {
        let prior = NgramPrior::english(None).unwrap();
        let words = prior.space.vocabulary();
        let after = prior.next(&["at", "the", "same"]);
        let best = (0..after.len()).max_by(|&a, &b| after[a].total_cmp(&after[b]));
        assert_eq!(words.word(best.unwrap() as u32), "time");
        assert!((after.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(after.iter().all(|&p| p > 0.0));
        let text = ["I would like to know what you think of it."];
        let rank = NgramPrior::of_frequencies(prior.space.clone(), None, 0.0).unwrap();
        assert!(prior.perplexity(&text) < 0.2 * rank.perplexity(&text));
    }

    #[test]
    fn frequencies_are_those_of_the_model() {
        let model = NgramPrior::english(None).unwrap();
        let all = Embedding::default_english().unwrap();
        let some = all.first(700).unwrap();
        let found = NgramPrior::english_frequencies(some.vocabulary())
            .unwrap()
            .unwrap();
        let expected = model.frequencies();
        let scale = expected[0] / found[0];
        for (p, q) in found.iter().zip(&expected) {
            assert!((p * scale / q - 1.0).abs() < 1e-12, "{p} {q}");
        }
        let foreign = Vocabulary::new(["tea", "xyzzyx"]).unwrap();
        assert!(NgramPrior::english_frequencies(&foreign).unwrap().is_none());
    }

    #[test]
    fn some_of_the_words_have_the_model_in_which_the_others_are_unknown() {
        let whole = NgramPrior::english(None).unwrap();
        let all = Embedding::default_english().unwrap();
        let some = Arc::new(all.first(300).unwrap());
        let prior = NgramPrior::english(Some(some)).unwrap();
        let (mut short, mut long) = (Vec::new(), Vec::new());
        for history in [&[][..], &["of"], &["in", "the"]] {
            prior.fill_next(&prior.tokens(history), &mut short);
            whole.fill_next(&whole.tokens(history), &mut long);
            for (a, b) in short[..300].iter().zip(&long) {
                assert!(
                    (a - b).abs() < 1e-9 && (a / b - 1.0).abs() < 1e-5,
                    "{a} {b}"
                );
            }
            assert!((short.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        let control = Control::new();
        let words = crate::words::vocabulary::Vocabulary::new(["tea", "xyzzyx"]).unwrap();
        let metric = crate::distance::metric::Metric::Euclidean;
        let foreign = Arc::new(Embedding::new(words, vec![0.0, 1.0], 1, metric).unwrap());
        let refused = NgramPrior::english(Some(foreign.clone())).unwrap_err();
        assert!(refused.to_string().contains("1 of 2"), "{refused}");
        let texts = ["tea"];
        assert!(NgramPrior::train(foreign, &texts, 2, None, &control).is_ok());
    }

    #[test]
    fn damaged_models_are_refused() {
        let embedding = Arc::new(Embedding::default_english().unwrap());
        let all = || Arc::clone(&embedding);
        let path = Path::new("x");
        for at in (10..BYTES.len()).step_by(BYTES.len() / 20) {
            let mut damaged = BYTES.to_vec();
            damaged[at] ^= 0x10;
            assert!(NgramPrior::compact(all(), &damaged, path).is_err(), "{at}");
        }
        let cut = NgramPrior::compact(all(), &BYTES[..BYTES.len() / 2], path);
        assert!(cut.unwrap_err().to_string().contains("truncated"));
        let other = Arc::new(all().first(10).unwrap());
        let refused = NgramPrior::compact(other, BYTES, path).unwrap_err();
        assert!(refused.to_string().contains("other words"), "{refused}");
        // Unpacked bytes, which gzip's checksum no longer protects: every change is detected or
        // gives another complete model.
        let bytes = unpack(BYTES, MAX_BYTES).unwrap();
        let print = words_fingerprint(all().vocabulary());
        for at in (0..bytes.len()).step_by(bytes.len() / 100) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x84;
            let _ = parse(all(), print, &damaged);
        }
        for cut in [0, 7, 30, 40_000, bytes.len() - 1] {
            assert!(parse(all(), print, &bytes[..cut]).is_err());
        }
        assert!(parse(all(), print, &[&bytes[..], &[0]].concat()).is_err());
    }
}
