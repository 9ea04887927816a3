//! The built-in model: pairs of English words. `data/english.ngrams` is a saved model, packed by
//! gzip; `tools/english_prior.py` writes it.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;

use super::{NgramPrior, Rows, Triples, words_fingerprint};
use crate::support::buffer::Backing;
use crate::support::error::{Error, Result};
use crate::words::embedding::Embedding;
use crate::words::embedding::format::DAMAGED;
use crate::words::space::MetricSpace;
use crate::words::vocabulary::Vocabulary;

static BYTES: &[u8] = include_bytes!("../../data/english.ngrams");

impl NgramPrior {
    /// The built-in bigrams of English. Without a space, they are those of the [built-in
    /// words](Embedding::default_english). With a space of some of these words, in any order, the
    /// other words count as unknown.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a space with words that are not built in.
    pub fn english(space: Option<Arc<dyn MetricSpace>>) -> Result<Self> {
        let all = Arc::new(Embedding::default_english()?);
        let model = Self::unpacked(all, BYTES)?;
        let Some(space) = space else {
            return Ok(model);
        };
        if words_fingerprint(space.vocabulary()) == words_fingerprint(model.space.vocabulary()) {
            return Ok(NgramPrior { space, ..model });
        }
        model.restricted(space)
    }

    /// How often words are written in English; `None` if some of them are not built in.
    pub(crate) fn english_frequencies(words: &Vocabulary) -> Result<Option<Vec<f64>>> {
        let model = Self::english(None)?;
        let all = model.space.vocabulary();
        let share = |word| Some(model.frequencies[all.id(word)? as usize]);
        Ok(words.iter().map(share).collect())
    }

    fn unpacked(space: Arc<dyn MetricSpace>, packed: &[u8]) -> Result<Self> {
        let (path, mut bytes) = (Path::new("english.ngrams"), Vec::new());
        let read = MultiGzDecoder::new(packed).read_to_end(&mut bytes);
        read.map_err(|_| Error::corrupt(path)(DAMAGED.into()))?;
        Self::read(space, &Backing::copy(&bytes), path)
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
            triples: Triples::default(),
            order: self.order,
            space,
        })
    }
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
        let some = ["tea", "the"];
        let vocabulary = Vocabulary::new(some).unwrap();
        let found = NgramPrior::english_frequencies(&vocabulary).unwrap();
        let expected = some.map(|word| model.frequencies[model.tokens(&[word])[0] as usize]);
        assert_eq!(found.unwrap(), expected);
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
        let foreign = crate::testing::line(&["tea", "xyzzyx"]);
        let refused = NgramPrior::english(Some(foreign.clone())).unwrap_err();
        assert!(refused.to_string().contains("1 of 2"), "{refused}");
        let texts = ["tea"];
        assert!(NgramPrior::train(foreign, &texts, 2, None, &control).is_ok());
    }

    #[test]
    fn damaged_models_are_refused() {
        let embedding = Arc::new(Embedding::default_english().unwrap());
        for at in (10..BYTES.len()).step_by(BYTES.len() / 20) {
            let mut damaged = BYTES.to_vec();
            damaged[at] ^= 0x10;
            let refused = NgramPrior::unpacked(embedding.clone(), &damaged);
            assert!(refused.is_err(), "{at}");
        }
        let cut = NgramPrior::unpacked(embedding, &BYTES[..BYTES.len() / 2]);
        assert!(cut.unwrap_err().to_string().contains("truncated"));
    }
}
