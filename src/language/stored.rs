//! Models in files: sections of a file in fastdx's format, tied to the model's words.

use std::path::Path;
use std::sync::Arc;

use super::{NgramPrior, Rows, Triples, words_fingerprint};
use crate::support::buffer::Backing;
use crate::support::error::{Error, Result};
use crate::support::file::{Kind, Parts, Sections, map};
use crate::words::space::MetricSpace;

type Parsed<T> = std::result::Result<T, String>;

/// The sections of rows: starts, words and weights.
const PAIRS: [Kind; 3] = [
    Kind::PriorPairStarts,
    Kind::PriorPairWords,
    Kind::PriorPairWeights,
];
const TRIPLES: [Kind; 3] = [
    Kind::PriorTripleStarts,
    Kind::PriorTripleWords,
    Kind::PriorTripleWeights,
];

impl Rows {
    fn store<'a>(&'a self, kinds: [Kind; 3], parts: &mut Parts<'a>) {
        parts.add(kinds[0], &self.starts);
        parts.add(kinds[1], &self.words);
        parts.add(kinds[2], &self.weights);
    }
}

impl NgramPrior {
    fn parts(&self) -> Parts<'_> {
        let vocabulary = self.space.vocabulary();
        let (order, words) = (self.order as u64, vocabulary.len() as u64);
        let mut parts = Parts::default();
        parts.add_made(
            Kind::PriorMeta,
            &[order, words, words_fingerprint(vocabulary)],
        );
        parts.add(Kind::PriorFrequencies, &self.frequencies);
        parts.add(Kind::PriorUnigram, &self.unigram);
        self.pairs.store(PAIRS, &mut parts);
        if self.order == 3 {
            parts.add(Kind::PriorFirst, &self.triples.first);
            parts.add(Kind::PriorLast, &self.triples.last);
            self.triples.rows.store(TRIPLES, &mut parts);
        }
        parts
    }

    /// The bytes that [`save`](Self::save) would write.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.parts().to_bytes()
    }

    /// Writes the model to a file: first to a temporary file beside it, which is then renamed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn save(&self, path: &Path) -> Result<()> {
        self.parts().save(path)
    }

    /// Reads a file that [`save`](Self::save) wrote; `space` must have the model's words in the
    /// same order.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] for a damaged file or one without a model;
    /// [`Error::Parameter`] for other words.
    pub fn open(space: Arc<dyn MetricSpace>, path: &Path) -> Result<Self> {
        Self::read(space, &map(path)?, path)
    }

    /// Reads the model from the bytes that [`to_bytes`](Self::to_bytes) returned.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn from_bytes(space: Arc<dyn MetricSpace>, bytes: &[u8]) -> Result<Self> {
        Self::read(space, &Backing::copy(bytes), Path::new("<bytes>"))
    }

    pub(super) fn read(
        space: Arc<dyn MetricSpace>,
        backing: &Backing,
        path: &Path,
    ) -> Result<Self> {
        let corrupt = Error::corrupt(path);
        let sections = Sections::parse(backing, true).map_err(&corrupt)?;
        let (order, words, print) = meta(&sections).map_err(&corrupt)?;
        let vocabulary = space.vocabulary();
        if words != vocabulary.len() || print != words_fingerprint(vocabulary) {
            let expected = format!("one with the {words} words that the model is of");
            let got = "one with other words, or in another order";
            return Err(Error::parameter("space", expected, got));
        }
        parsed(space, order, &sections).map_err(corrupt)
    }
}

fn meta(sections: &Sections) -> Parsed<(usize, usize, u64)> {
    let meta = sections.get::<u64>(Kind::PriorMeta)?;
    match meta.as_deref() {
        Some(&[order @ 1..=3, words, print]) => {
            let words = usize::try_from(words).map_err(|_| "a model of impossibly many words")?;
            Ok((order as usize, words, print))
        }
        Some(_) => Err("the model's meta section holds impossible values".into()),
        None => Err("holds no language model".into()),
    }
}

fn array<T: bytemuck::Pod>(sections: &Sections, kind: Kind) -> Parsed<Vec<T>> {
    let found = sections.get::<T>(kind)?;
    let found = found.ok_or("a part of the language model is missing")?;
    Ok(found.to_vec())
}

/// The frequencies of words and of unknown ones, if they are valid.
fn shares(sections: &Sections, kind: Kind, words: usize) -> Parsed<Vec<f64>> {
    let shares: Vec<f64> = array(sections, kind)?;
    let sum: f64 = shares.iter().sum();
    let positive = shares.iter().all(|&p| p >= 0.0);
    match shares.len() == words + 1 && positive && (sum - 1.0).abs() < 1e-9 {
        true => Ok(shares),
        false => Err("the frequencies of the language model are none".into()),
    }
}

/// Rows whose starts and words are in order and in range, and whose weights sum to at most 1.
fn rows(sections: &Sections, kinds: [Kind; 3], words: usize, contexts: usize) -> Parsed<Rows> {
    let starts: Vec<u32> = array(sections, kinds[0])?;
    let seen: Vec<u32> = array(sections, kinds[1])?;
    let weights: Vec<f32> = array(sections, kinds[2])?;
    let whole = starts.len() == contexts + 1
        && starts[0] == 0
        && starts.is_sorted()
        && starts[contexts] as usize == seen.len()
        && weights.len() == seen.len()
        && weights.iter().all(|p| (0.0..=1.0).contains(p));
    let ascending = |row: &[u32]| {
        row.windows(2).all(|w| w[0] < w[1]) && row.iter().all(|&w| w as usize <= words)
    };
    let mut each = starts.windows(2);
    if !whole || !each.all(|w| ascending(&seen[w[0] as usize..w[1] as usize])) {
        return Err("the rows of the language model are out of order".into());
    }
    let rows = Rows::new(starts, seen, weights);
    let sums = (0..contexts).map(|c| rows.row(c).map(|(_, p)| p).sum::<f64>());
    match sums.into_iter().all(|sum| sum < 1.0 + 1e-5) {
        true => Ok(rows),
        false => Err("a row of the language model sums to more than 1".into()),
    }
}

/// Everything is checked: words out of range would cause reads out of bounds.
fn parsed(space: Arc<dyn MetricSpace>, order: usize, sections: &Sections) -> Parsed<NgramPrior> {
    let words = space.vocabulary().len();
    let mut prior = NgramPrior {
        space,
        order,
        frequencies: shares(sections, Kind::PriorFrequencies, words)?,
        unigram: shares(sections, Kind::PriorUnigram, words)?,
        pairs: rows(sections, PAIRS, words, words + 2)?,
        triples: Triples::default(),
    };
    if order < 3 {
        return Ok(prior);
    }
    let first: Vec<u32> = array(sections, Kind::PriorFirst)?;
    let last: Vec<u32> = array(sections, Kind::PriorLast)?;
    let contexts = first.iter().zip(&last);
    let known = |(&u, &v): (&u32, &u32)| u as usize <= words + 1 && v as usize <= words;
    if first.len() != last.len()
        || !contexts.clone().all(known)
        || !contexts.clone().zip(contexts.skip(1)).all(|(a, b)| a < b)
    {
        return Err("the contexts of the language model are out of order".into());
    }
    let mut triples = Triples {
        rows: rows(sections, TRIPLES, words, first.len())?,
        first,
        last,
        ..Triples::default()
    };
    triples.link(|u, v| prior.probability_behind(u, v));
    prior.triples = triples;
    Ok(prior)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::parallel::Control;
    use crate::testing::line;

    #[test]
    fn saved_models_are_read_back_and_damaged_ones_refused() {
        let words = line(&["a", "b", "c"]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prior.fdx");
        for order in 1..=3 {
            let texts = ["a b c a b", "b a c. c a x"];
            let control = Control::new();
            let prior = NgramPrior::train(words.clone(), &texts, order, None, &control).unwrap();
            prior.save(&path).unwrap();
            let back = NgramPrior::open(words.clone(), &path).unwrap();
            assert_eq!((back.order, &back.pairs), (order, &prior.pairs));
            assert_eq!(back.triples, prior.triples);
            assert_eq!(back.next(&["a", "b"]), prior.next(&["a", "b"]));
            let other = NgramPrior::open(line(&["a", "c", "b"]), &path).unwrap_err();
            assert!(other.to_string().contains("space"), "{other}");
            let bytes = prior.to_bytes();
            for at in (0..bytes.len()).step_by(7) {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x10;
                assert!(
                    NgramPrior::from_bytes(words.clone(), &damaged).is_err(),
                    "{at}"
                );
            }
        }
        let cover = crate::Cover::identity(&*words, &[]).unwrap().to_bytes();
        let foreign = NgramPrior::from_bytes(words, &cover).unwrap_err();
        assert!(
            foreign.to_string().contains("no language model"),
            "{foreign}"
        );
    }
}
