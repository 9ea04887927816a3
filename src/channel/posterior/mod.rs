//! The posterior of all words of a text, given its release and a model of language.

mod expectations;
mod texts;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::Channel;
use super::behind::Histories;
use super::chain::Chain;
use super::consistent::Messages;
use super::read::{Observed, Reading, TextOrTokens};
use super::source::Column;
use super::sweep::{Evidence, sweep};
use crate::language::{NgramPrior, words_fingerprint};
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, install, map_all};
use crate::text::{Consistent, Oov};

/// Columns of a sentence that are held at once.
const HELD: usize = 512;
/// Sentences that are sorted by length.
const SENTENCES_PER_BLOCK: usize = 512;
/// Groups of sentences that are worked on before their sums are added up.
const GROUPS_PER_BLOCK: usize = 64;
/// Sentences that are worked on together, one in each lane.
const LANES: usize = 8;
/// Fewer sentences than these are worked on one by one: idle lanes cost as much as others, and one by
/// one they share the processors.
const FEWEST_TOGETHER: usize = 6;
/// Bytes of states above which sentences are worked on one by one, to save memory.
const LANE_BYTES: usize = 8 << 20;

/// The knowledge about one word after the release.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WordPosterior {
    /// The likeliest token, V for an unknown word; or the likeliest of those that may be named.
    pub best: u32,
    /// Its probability.
    pub certainty: f64,
    /// The probability that the word is not in the vocabulary.
    pub unknown: f64,
    /// Whether the release shows the original word.
    pub written: bool,
}

/// The posterior of all words of a text: exact sums over all texts that could stand behind a release.
pub struct Posterior {
    channel: Arc<Channel>,
    prior: Arc<NgramPrior>,
    reading: Reading,
    words: Vec<WordPosterior>,
    log_evidence: f64,
    /// Columns that only a pass over all laws gives.
    pinned: HashMap<u32, Column>,
    histories: Option<Histories>,
    /// The likelihood of an output for an unknown word.
    unknown: Arc<[f64]>,
    skipped: Vec<u32>,
    /// Which tokens may be named as the likeliest; all without it.
    among: Option<Vec<bool>>,
    messages: Option<Messages>,
    /// Posteriors of places that stand side by side.
    window: Mutex<(Range<usize>, Vec<f64>)>,
}

impl std::fmt::Debug for Posterior {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Posterior")
            .field("words", &self.words.len())
            .field("exact", &self.is_exact())
            .finish_non_exhaustive()
    }
}

impl Channel {
    /// The posterior of the words behind a release. Unknown words, skipped words and consistent
    /// replacement are what the mechanism's policy makes of them. `control` counts words.
    ///
    /// With `among`, for a reader who names none but these words: the `best` of each place is the
    /// likeliest of these. So nobody names more words of a kind than one who names no others.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a text that is no release of this mechanism, a model of other words, no
    /// ids in `among` or one beyond the vocabulary; [`Error::TooLarge`] for a long consistent text; a law
    /// that fails; [`Error::Interrupted`].
    pub fn decode(
        self: &Arc<Self>,
        given: TextOrTokens,
        prior: &Arc<NgramPrior>,
        among: Option<&[u32]>,
        control: &Control,
    ) -> Result<Posterior> {
        let (own, other) = (self.vocabulary(), prior.space().vocabulary());
        if !std::ptr::eq(own, other) && words_fingerprint(own) != words_fingerprint(other) {
            let expected = "a model of the mechanism's words";
            return Err(Error::parameter("prior", expected, "one of others"));
        }
        let among = among.map(|ids| self.named(ids)).transpose()?;
        let reading = self.read(given)?;
        let mut outputs = outputs(&reading.observed);
        let pinned = match self.source.columns_by_rows() {
            true => outputs
                .iter()
                .copied()
                .zip(self.columns_of_source(&outputs, control)?)
                .collect(),
            false => {
                // As many as are kept, all at once.
                let bytes = 8 * self.words() + 64;
                outputs.truncate(self.kept.room(bytes));
                self.columns_of_source(&outputs, control)?;
                HashMap::new()
            }
        };
        let histories = self.histories(&reading, control)?;
        let policy = self.text.policy();
        let unknown: Arc<[f64]> = match policy.oov {
            Oov::Random => self.unknown_law(),
            _ => vec![0.0; self.words()].into(),
        };
        let mut posterior = Posterior {
            channel: self.clone(),
            prior: prior.clone(),
            words: Vec::new(),
            log_evidence: 0.0,
            pinned,
            histories,
            unknown,
            skipped: self.shown(),
            among,
            messages: None,
            window: Mutex::default(),
            reading,
        };
        if policy.consistent != Consistent::Never {
            posterior.tie(control)?;
        }
        posterior.summarise(control)?;
        Ok(posterior)
    }

    /// Whether each token is one of these words.
    fn named(&self, ids: &[u32]) -> Result<Vec<bool>> {
        self.vocabulary().check_ids(ids)?;
        if ids.is_empty() {
            return Err(Error::parameter("among", "at least one word", "none"));
        }
        let mut named = vec![false; self.words() + 1];
        ids.iter().for_each(|&id| named[id as usize] = true);
        Ok(named)
    }
}

/// The outputs among some observations, ascending.
fn outputs<'a>(seen: impl IntoIterator<Item = &'a Observed>) -> Vec<u32> {
    let outputs = seen.into_iter().filter_map(|seen| match seen {
        Observed::Output(y) => Some(*y),
        Observed::Written(_) => None,
    });
    let outputs: BTreeSet<u32> = outputs.collect();
    outputs.into_iter().collect()
}

/// Columns that are held for some places; others are made when they are needed.
#[derive(Default)]
struct Held {
    columns: HashMap<u32, Column>,
    /// Of the lists behind the places.
    sums: HashMap<u128, Column>,
}

impl Posterior {
    fn tokens(&self) -> usize {
        self.prior.words() + 1
    }

    fn chain(&self) -> Chain<'_> {
        Chain { prior: &self.prior }
    }

    fn column(&self, y: u32, control: &Control) -> Result<Column> {
        match self.pinned.get(&y) {
            Some(column) => Ok(column.clone()),
            None => self.channel.column(y, control),
        }
    }

    /// Writes the likelihood of every token at a place by itself.
    fn fill(
        &self,
        place: usize,
        held: Option<&Held>,
        control: &Control,
        out: &mut Vec<f64>,
    ) -> Result<()> {
        out.clear();
        match self.reading.observed[place] {
            Observed::Written(token) => {
                out.resize(self.tokens(), 0.0);
                out[token as usize] = 1.0;
            }
            Observed::Output(y) => {
                match held.and_then(|held| held.columns.get(&y)) {
                    Some(column) => out.extend_from_slice(column),
                    None => out.extend_from_slice(&self.column(y, control)?),
                }
                out.push(self.unknown[y as usize]);
                if let Some(histories) = &self.histories {
                    let made;
                    let sums = match held {
                        Some(held) => &held.sums,
                        None => {
                            let place = std::iter::once(place);
                            made = self.channel.sums_behind(histories, place, control)?;
                            &made
                        }
                    };
                    histories.scale(place, sums, out);
                }
                // Skipped words stand for themselves.
                for &id in &self.skipped {
                    out[id as usize] = f64::from(u8::from(id == y));
                }
            }
        }
        Ok(())
    }

    /// Pr\[what the release has at a place | w, what was released before\] of every word w, the unknown
    /// one last.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a place that there is not, [`Error::Interrupted`].
    pub fn likelihood(&self, place: usize, control: &Control) -> Result<Vec<f64>> {
        self.check_place(place)?;
        let mut likelihood = Vec::new();
        self.fill(place, None, control, &mut likelihood)?;
        Ok(likelihood)
    }

    /// Likelihoods that are held for the places of some sentences; `None` if these are too many.
    fn held(&self, sentences: &[Range<usize>], control: &Control) -> Result<Option<Held>> {
        let count: usize = sentences.iter().map(Range::len).sum();
        if count > HELD || !self.pinned.is_empty() {
            return Ok(None);
        }
        let places = || sentences.iter().cloned().flatten();
        let outputs = outputs(places().map(|place| &self.reading.observed[place]));
        let columns = self.channel.columns_of_source(&outputs, control)?;
        let sums = match &self.histories {
            Some(histories) => self.channel.sums_behind(histories, places(), control)?,
            None => HashMap::new(),
        };
        let columns = outputs.into_iter().zip(columns).collect();
        Ok(Some(Held { columns, sums }))
    }

    /// The likelihoods at the places of some sentences, with what other places say of them.
    fn likelihoods<'a>(
        &'a self,
        sentences: &'a [Range<usize>],
        control: &'a Control,
    ) -> Result<impl Fn(usize, usize, &mut Vec<f64>) -> Result<()> + 'a> {
        let held = self.held(sentences, control)?;
        Ok(move |sentence: usize, place: usize, out: &mut Vec<f64>| {
            control.check()?;
            let place = sentences[sentence].start + place;
            self.fill(place, held.as_ref(), control, out)?;
            let messages = self.messages.as_ref();
            if let Some(factor) = messages.and_then(|messages| messages.factors.get(&place)) {
                out.iter_mut().zip(factor).for_each(|(l, f)| *l *= f);
            }
            Ok(())
        })
    }

    /// Visits every place of some sentences with its posterior, the last places first. Returns the sum
    /// of the logarithms of their evidence, and a place that nothing explains.
    fn pass(
        &self,
        sentences: &[Range<usize>],
        control: &Control,
        visit: &mut dyn FnMut(usize, &[f64]),
    ) -> Result<Evidence> {
        let likelihoods = self.likelihoods(sentences, control)?;
        let length = |lane: usize| sentences.get(lane).map_or(0, Range::len);
        let place = |lane: usize, at: usize| sentences[lane].start + at;
        let chain = self.chain();
        let mut visit = |lane: usize, at: usize, marginal: &[f64]| visit(place(lane, at), marginal);
        let found = match sentences.len() {
            1 => sweep(&chain, [length(0)], &likelihoods, &mut visit)?.to_vec(),
            _ => {
                let lengths: [usize; LANES] = std::array::from_fn(length);
                sweep(&chain, lengths, &likelihoods, &mut visit)?.to_vec()
            }
        };
        let mut all = (0.0, None);
        for (lane, (log, wrong)) in found.into_iter().enumerate() {
            all.0 += log;
            all.1 = all.1.or(wrong.map(|at| place(lane, at)));
        }
        Ok(all)
    }

    /// Applies `work` to every sentence; its results in order.
    fn sentences<T: Send>(
        &self,
        work: impl Fn(&Range<usize>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let sentences = &self.reading.sentences;
        install(sentences.len() * self.tokens(), 0, || {
            map_all(sentences, &work)
        })?
    }

    /// Applies `work` to all sentences, some at a time, those of about the same length together.
    fn together<T: Send>(
        &self,
        work: impl Fn(&[Range<usize>]) -> Result<T> + Sync,
        mut each: impl FnMut(T) + Send,
    ) -> Result<()> {
        let mut sentences = self.reading.sentences.clone();
        for some in sentences.chunks_mut(SENTENCES_PER_BLOCK) {
            some.sort_by_key(|places| std::cmp::Reverse(places.len()));
        }
        let fits = LANES * self.chain().bytes() <= LANE_BYTES;
        let groups: Vec<&[Range<usize>]> = sentences
            .chunks(SENTENCES_PER_BLOCK)
            .flat_map(|some| some.chunks(LANES))
            .flat_map(|some| match fits && some.len() >= FEWEST_TOGETHER {
                true => some.chunks(LANES),
                false => some.chunks(1),
            })
            .collect();
        install(sentences.len() * self.tokens(), 0, || {
            for some in groups.chunks(GROUPS_PER_BLOCK) {
                let found = map_all(some, |some| work(some))?;
                found.into_iter().for_each(&mut each);
            }
            Ok(())
        })?
    }

    /// Applies a function to the posterior at every place; returns its values in order, and the evidence of
    /// all.
    fn each_place<T: Send>(
        &self,
        control: &Control,
        one: impl Fn(usize, &[f64]) -> T + Sync,
    ) -> Result<(Vec<T>, Evidence)> {
        let (mut all, mut evidence) = (Vec::new(), (0.0, None));
        self.together(
            |sentences| {
                let mut found = Vec::new();
                let evidence = self.pass(sentences, control, &mut |place, marginal| {
                    found.push((place, one(place, marginal)));
                })?;
                Ok((found, evidence))
            },
            |(found, (log, wrong))| {
                all.extend(found);
                evidence.0 += log;
                evidence.1 = evidence.1.into_iter().chain(wrong).min();
            },
        )?;
        all.sort_unstable_by_key(|(place, _)| *place);
        Ok((all.into_iter().map(|(_, one)| one).collect(), evidence))
    }

    /// Makes what consistent replacement needs.
    fn tie(&mut self, control: &Control) -> Result<()> {
        let hidden = |seen: &&Observed| matches!(seen, Observed::Output(_));
        if self.reading.observed.iter().filter(hidden).count() < 2 {
            return Ok(());
        }
        // Which tokens were drawn once, wherever they stand.
        let mut drawn = vec![true; self.tokens()];
        drawn[self.prior.words()] = false;
        self.skipped
            .iter()
            .for_each(|&id| drawn[id as usize] = false);
        self.messages = Some(Messages::new(&self.reading.observed, self.tokens())?);
        for _ in 0..Messages::ROUNDS {
            let (marginals, (_, wrong)) = self.each_place(control, |_, p| p.to_vec())?;
            if wrong.is_some() {
                return Err(self.unexplained(None));
            }
            if let Some(mut messages) = self.messages.take() {
                let alone = |place| self.likelihood(place, control);
                messages.update(&marginals, alone, &drawn)?;
                self.messages = Some(messages);
            }
        }
        Ok(())
    }

    fn unexplained(&self, place: Option<usize>) -> Error {
        let expected = "a release of this mechanism, of words that the model allows";
        let got = match place {
            Some(place) => format!("one whose word {place} nothing explains"),
            None => "one that nothing explains".to_owned(),
        };
        Error::parameter("text", expected, got)
    }

    fn word(&self, place: usize, marginal: &[f64]) -> WordPosterior {
        let each = marginal.iter().zip(0u32..);
        let likelier = |a: (f64, u32), (&p, id): (&f64, u32)| if p > a.0 { (p, id) } else { a };
        let (certainty, best) = match &self.among {
            None => each.fold((0.0, 0), likelier),
            Some(among) => {
                let named = each.zip(among).filter(|(_, named)| **named);
                named.map(|(each, _)| each).fold((0.0, 0), likelier)
            }
        };
        WordPosterior {
            best,
            certainty,
            unknown: marginal[self.prior.words()],
            written: matches!(self.reading.observed[place], Observed::Written(_)),
        }
    }

    fn summarise(&mut self, control: &Control) -> Result<()> {
        let (words, (log, wrong)) = self.each_place(control, |place, p| self.word(place, p))?;
        if wrong.is_some() {
            return Err(self.unexplained(wrong));
        }
        control.advance(words.len());
        self.words = words;
        self.log_evidence = if self.is_exact() { log } else { f64::NAN };
        Ok(())
    }

    /// Whether all numbers are exact sums. They are, except for consistent texts of two replaced words or more.
    pub fn is_exact(&self) -> bool {
        self.messages.is_none()
    }

    /// The knowledge about every word.
    pub fn words(&self) -> &[WordPosterior] {
        &self.words
    }

    /// ln of the probability of the release; NaN if it is not exact.
    pub fn log_evidence(&self) -> f64 {
        self.log_evidence
    }

    /// The expected share of the replaced words that their likeliest words are: the most that anybody
    /// names who knows the model; NaN where no word was replaced.
    pub fn expected_right(&self) -> f64 {
        let replaced = || self.words.iter().filter(|word| !word.written);
        replaced().map(|word| word.certainty).sum::<f64>() / replaced().count() as f64
    }
}
