//! The posterior of all words of a text, given its release and a model of language.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use rand::rngs::ChaCha12Rng;
use rayon::prelude::*;

use super::Channel;
use super::chain::{Chain, Logs};
use super::consistent::{Enumerated, MOST, Messages, Problem, fits};
use super::read::{Given, Observed, Reading};
use super::source::Column;
use super::sweep::{Evidence, Likelihoods, View, ahead, sweep};
use super::viterbi::viterbi;
use crate::calibration::sums::sums;
use crate::error::{Error, Result};
use crate::parallel::{Control, install};
use crate::prior::{NgramPrior, words_fingerprint};
use crate::random::{Randomness, uniform_below_u128};
use crate::text::{Consistent, Oov};

/// Bytes of posteriors of single words that are kept from call to call.
const WINDOW_BYTES: usize = 128 << 20;
/// Columns of a sentence that are held at once.
const HELD: usize = 512;
/// Sentences that are worked on before their sums are added up.
const TOGETHER: usize = 64;

/// What is known of one word after the release.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WordPosterior {
    /// The likeliest token, V for an unknown word.
    pub best: u32,
    /// Its probability.
    pub certainty: f64,
    /// The entropy of the word, in bits.
    pub bits: f64,
    /// The probability that the word is not in the vocabulary.
    pub unknown: f64,
    /// Whether the release shows the word as it was written.
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
    /// What an output tells of an unknown word.
    unknown: Arc<[f64]>,
    skipped: Vec<u32>,
    enumerated: Option<Enumerated>,
    messages: Option<Messages>,
    /// Posteriors of places that stand side by side.
    window: Mutex<(Range<usize>, Vec<f64>)>,
    logs: OnceLock<Logs>,
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
    /// # Errors
    /// [`Error::Parameter`] for a text that is no release of this mechanism, a model of other words;
    /// [`Error::TooLarge`] for a long consistent text; a law that fails; [`Error::Interrupted`].
    pub fn decode(
        self: &Arc<Self>,
        given: Given,
        prior: &Arc<NgramPrior>,
        control: &Control,
    ) -> Result<Posterior> {
        self.decode_within(given, prior, MOST, control)
    }

    /// [`decode`](Self::decode), writing out at most so many sentences of a consistent text.
    pub(super) fn decode_within(
        self: &Arc<Self>,
        given: Given,
        prior: &Arc<NgramPrior>,
        most: usize,
        control: &Control,
    ) -> Result<Posterior> {
        let (own, other) = (self.vocabulary(), prior.space().vocabulary());
        if !std::ptr::eq(own, other) && words_fingerprint(own) != words_fingerprint(other) {
            let expected = "a model of the mechanism's words";
            return Err(Error::parameter("prior", expected, "one of others"));
        }
        let reading = self.read(given)?;
        let mut outputs: Vec<u32> = reading
            .observed
            .iter()
            .filter_map(|seen| match seen {
                Observed::Output(y) => Some(*y),
                Observed::Written(_) => None,
            })
            .collect();
        outputs.sort_unstable();
        outputs.dedup();
        let hidden = outputs.len();
        let pinned = match self.source.columns_by_rows() {
            true => outputs
                .iter()
                .copied()
                .zip(self.columns(&outputs, control)?)
                .collect(),
            false => {
                // As many as are kept, all at once.
                let bytes = 8 * self.words() + 64;
                outputs.truncate(self.kept.room(bytes));
                self.columns(&outputs, control)?;
                HashMap::new()
            }
        };
        let policy = self.text.policy();
        let unknown: Arc<[f64]> = match policy.oov {
            Oov::Random => self.unknown_law(),
            _ => vec![0.0; self.words()].into(),
        };
        let skip = policy.skip.iter().filter_map(|word| own.id(word));
        let mut posterior = Posterior {
            channel: self.clone(),
            prior: prior.clone(),
            words: Vec::new(),
            log_evidence: 0.0,
            pinned,
            unknown,
            skipped: skip.collect(),
            enumerated: None,
            messages: None,
            window: Mutex::default(),
            logs: OnceLock::new(),
            reading,
        };
        if policy.consistent != Consistent::Never && hidden > 0 {
            posterior.tie(most, control)?;
        }
        posterior.summarise(control)?;
        Ok(posterior)
    }
}

/// The likelihoods of a sentence's places.
struct Sentence<'a> {
    of: &'a Posterior,
    first: usize,
    held: HashMap<u32, Column>,
    control: &'a Control,
}

impl Likelihoods for Sentence<'_> {
    fn fill(&self, place: usize, out: &mut Vec<f64>) -> Result<()> {
        self.control.check()?;
        let place = self.first + place;
        self.of.fill(
            place,
            |y| match self.held.get(&y) {
                Some(column) => Ok(column.clone()),
                None => self.of.column(y, self.control),
            },
            out,
        )?;
        if let Some(factor) = self
            .of
            .messages
            .as_ref()
            .and_then(|m| m.factors.get(&place))
        {
            out.iter_mut().zip(factor).for_each(|(l, f)| *l *= f);
        }
        Ok(())
    }
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
            None => self.channel.likelihood(y, control),
        }
    }

    /// Writes the likelihood of every token at a place by itself.
    fn fill(
        &self,
        place: usize,
        column: impl Fn(u32) -> Result<Column>,
        out: &mut Vec<f64>,
    ) -> Result<()> {
        out.clear();
        match self.reading.observed[place] {
            Observed::Written(token) => {
                out.resize(self.tokens(), 0.0);
                out[token as usize] = 1.0;
            }
            Observed::Output(y) => {
                out.extend_from_slice(&column(y)?);
                out.push(self.unknown[y as usize]);
                // Skipped words stand for themselves.
                for &id in &self.skipped {
                    out[id as usize] = f64::from(u8::from(id == y));
                }
            }
        }
        Ok(())
    }

    fn sentence<'a>(&'a self, places: &Range<usize>, control: &'a Control) -> Result<Sentence<'a>> {
        let mut held = HashMap::new();
        if places.len() <= HELD && self.pinned.is_empty() {
            let seen = self.reading.observed[places.clone()].iter();
            let mut outputs: Vec<u32> = seen
                .filter_map(|seen| match seen {
                    Observed::Output(y) => Some(*y),
                    Observed::Written(_) => None,
                })
                .collect();
            outputs.sort_unstable();
            outputs.dedup();
            let columns = self.channel.columns(&outputs, control)?;
            held = outputs.into_iter().zip(columns).collect();
        }
        Ok(Sentence {
            of: self,
            first: places.start,
            held,
            control,
        })
    }

    /// Visits every place of a sentence, the last one first.
    fn pass(
        &self,
        places: &Range<usize>,
        control: &Control,
        visit: &mut dyn FnMut(usize, &View<'_>),
    ) -> Result<Evidence> {
        let sentence = self.sentence(places, control)?;
        sweep(&self.chain(), places.len(), &sentence, &mut |at, view| {
            visit(places.start + at, view);
        })
    }

    /// What `work` makes of every sentence, in order.
    fn sentences<T: Send>(
        &self,
        work: impl Fn(&Range<usize>) -> Result<T> + Sync,
        mut each: impl FnMut(T) + Send,
    ) -> Result<()> {
        let sentences = &self.reading.sentences;
        install(sentences.len() * self.tokens(), 0, || {
            for some in sentences.chunks(TOGETHER) {
                let found: Vec<T> = some.par_iter().map(&work).collect::<Result<_>>()?;
                found.into_iter().for_each(&mut each);
            }
            Ok(())
        })?
    }

    /// Makes what consistent replacement needs.
    fn tie(&mut self, most: usize, control: &Control) -> Result<()> {
        let observed = self.reading.observed.clone();
        let hidden = observed
            .iter()
            .filter(|seen| matches!(seen, Observed::Output(_)))
            .count();
        let mut drawn = vec![true; self.tokens()];
        drawn[self.prior.words()] = false;
        self.skipped
            .iter()
            .for_each(|&id| drawn[id as usize] = false);
        let alone = |place: usize| {
            let mut likelihood = Vec::new();
            self.fill(place, |y| self.column(y, control), &mut likelihood)?;
            Ok(likelihood)
        };
        if hidden < 2 {
            return Ok(());
        }
        if fits(self.tokens(), hidden, most) {
            let likelihoods = (0..observed.len()).map(alone).collect::<Result<Vec<_>>>()?;
            let mut first = vec![false; observed.len()];
            self.reading
                .sentences
                .iter()
                .for_each(|s| first[s.start] = true);
            let problem = Problem {
                prior: &self.prior,
                observed: &observed,
                first: &first,
                likelihoods: &likelihoods,
                drawn: &drawn,
            };
            let found = problem.enumerate();
            if found.weights.is_empty() {
                return Err(self.unexplained(None));
            }
            self.enumerated = Some(found);
            return Ok(());
        }
        self.messages = Some(Messages::new(&observed, self.tokens())?);
        for _ in 0..Messages::ROUNDS {
            let mut marginals = HashMap::new();
            let mut wrong = None;
            self.sentences(
                |places| {
                    let mut found = Vec::new();
                    let evidence = self.pass(places, control, &mut |place, view| {
                        found.push((place, view.marginal.to_vec()));
                    })?;
                    Ok((found, evidence.1))
                },
                |(found, place)| {
                    marginals.extend(found);
                    wrong = wrong.or(place);
                },
            )?;
            if wrong.is_some() {
                return Err(self.unexplained(None));
            }
            if let Some(mut messages) = self.messages.take() {
                let of = |place: usize| {
                    let mut likelihood = Vec::new();
                    self.fill(place, |y| self.column(y, control), &mut likelihood)?;
                    Ok(likelihood)
                };
                messages.update(&marginals, of, &drawn)?;
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
        let (certainty, best) =
            each.fold((0.0, 0), |a, (&p, id)| if p > a.0 { (p, id) } else { a });
        WordPosterior {
            best,
            certainty,
            bits: (-sums(marginal, 0).p_ln_p / std::f64::consts::LN_2).max(0.0),
            unknown: marginal[self.prior.words()],
            written: matches!(self.reading.observed[place], Observed::Written(_)),
        }
    }

    fn summarise(&mut self, control: &Control) -> Result<()> {
        if let Some(found) = &self.enumerated {
            self.log_evidence = found.log_evidence;
            let words = 0..self.reading.observed.len();
            let words = words.map(|place| self.word(place, &self.written_out(found, place)));
            self.words = words.collect();
            return Ok(());
        }
        let (mut words, mut log, mut wrong) = (Vec::new(), 0.0, None);
        self.sentences(
            |places| {
                let mut found = Vec::with_capacity(places.len());
                let (log, wrong) = self.pass(places, control, &mut |place, view| {
                    found.push(self.word(place, view.marginal));
                })?;
                control.advance(places.len());
                Ok((found, log, wrong.map(|place| places.start + place)))
            },
            |(mut found, part, place)| {
                found.reverse();
                words.extend(found);
                log += part;
                wrong = wrong.or(place);
            },
        )?;
        if wrong.is_some() {
            return Err(self.unexplained(wrong));
        }
        (self.words, self.log_evidence) = (words, log);
        if self.messages.is_some() {
            self.log_evidence = f64::NAN;
        }
        Ok(())
    }

    /// The posterior of a place, of sentences that were written out.
    fn written_out(&self, found: &Enumerated, place: usize) -> Vec<f64> {
        let mut marginal = vec![0.0; self.tokens()];
        let rows = found.tokens.chunks_exact(self.reading.observed.len());
        for (row, weight) in rows.zip(&found.weights) {
            marginal[row[place] as usize] += weight;
        }
        marginal
    }

    /// Whether all numbers are exact sums. They are, but for consistent texts of more than a few words.
    pub fn is_exact(&self) -> bool {
        self.messages.is_none()
    }

    /// What is known of every word.
    pub fn words(&self) -> &[WordPosterior] {
        &self.words
    }

    /// The channel.
    pub fn channel(&self) -> &Arc<Channel> {
        &self.channel
    }

    /// ln of the probability of the release; NaN where it is not exact.
    pub fn log_evidence(&self) -> f64 {
        self.log_evidence
    }

    /// The expected share of the replaced words that their likeliest words are: the most that anybody
    /// names who knows the model; NaN where no word was replaced.
    pub fn expected_right(&self) -> f64 {
        let replaced = || self.words.iter().filter(|word| !word.written);
        replaced().map(|word| word.certainty).sum::<f64>() / replaced().count() as f64
    }

    fn check_place(&self, place: usize) -> Result<()> {
        match place < self.words.len() {
            true => Ok(()),
            false => {
                let expected = format!("a place below the number of words, {}", self.words.len());
                Err(Error::parameter("i", expected, place))
            }
        }
    }

    /// The posterior of the word at a place: of every word of the vocabulary, the unknown one last.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a place that there is not, [`Error::Interrupted`].
    pub fn marginal(&self, place: usize, control: &Control) -> Result<Vec<f64>> {
        self.check_place(place)?;
        if let Some(found) = &self.enumerated {
            return Ok(self.written_out(found, place));
        }
        let tokens = self.tokens();
        let of = |window: &(Range<usize>, Vec<f64>)| {
            let at = window.0.contains(&place).then(|| place - window.0.start)?;
            Some(window.1[at * tokens..][..tokens].to_vec())
        };
        // Not waited for: whoever holds it makes the same.
        if let Some(found) = self.window.try_lock().ok().and_then(|window| of(&window)) {
            return Ok(found);
        }
        let at = self.reading.sentences.partition_point(|s| s.end <= place);
        let places = self.reading.sentences[at].clone();
        let most = (WINDOW_BYTES / 8 / tokens).max(1);
        let first = place.saturating_sub(most / 2).max(places.start);
        let window = first..places.end.min(first + most);
        let mut kept = vec![0.0; window.len() * tokens];
        install(tokens, 0, || {
            self.pass(&places, control, &mut |place, view| {
                if window.contains(&place) {
                    let at = (place - window.start) * tokens;
                    kept[at..][..tokens].copy_from_slice(view.marginal);
                }
            })
        })??;
        let window = (window, kept);
        let found = of(&window).unwrap_or_default();
        if let Ok(mut kept) = self.window.try_lock() {
            *kept = window;
        }
        Ok(found)
    }

    /// Adds up what `add` makes of the posteriors of all places.
    fn fold(
        &self,
        size: usize,
        control: &Control,
        add: impl Fn(&mut [f64], usize, &[f64]) + Sync,
    ) -> Result<Vec<f64>> {
        let mut sum = vec![0.0; size];
        if let Some(found) = &self.enumerated {
            for place in 0..self.words.len() {
                add(&mut sum, place, &self.written_out(found, place));
            }
            return Ok(sum);
        }
        self.sentences(
            |places| {
                let mut part = vec![0.0; size];
                self.pass(places, control, &mut |place, view| {
                    add(&mut part, place, view.marginal);
                })?;
                Ok(part)
            },
            |part| sum.iter_mut().zip(part).for_each(|(a, b)| *a += b),
        )?;
        Ok(sum)
    }

    /// How often each word stands in the text, in expectation; the unknown one last.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn expected_counts(&self, control: &Control) -> Result<Vec<f64>> {
        self.fold(self.tokens(), control, |sum, _, marginal| {
            sum.iter_mut().zip(marginal).for_each(|(a, b)| *a += b);
        })
    }

    /// The posterior mean of each word's vector, row by row, of vectors of `dim` numbers; an unknown word
    /// counts as the mean by the model's frequencies.
    ///
    /// # Errors
    /// [`Error::Shape`] for vectors of other words, [`Error::Interrupted`].
    pub fn means(&self, vectors: &[f32], dim: usize, control: &Control) -> Result<Vec<f64>> {
        if vectors.len() != self.prior.words() * dim {
            return Err(Error::Shape {
                what: "vectors",
                expected: format!("({}, n)", self.prior.words()),
                got: format!("{} numbers for n = {dim}", vectors.len()),
            });
        }
        let mean = |shares: &[f64], out: &mut [f64]| {
            for (row, &p) in vectors.chunks_exact(dim.max(1)).zip(shares) {
                if p > 0.0 {
                    out.iter_mut()
                        .zip(row)
                        .for_each(|(m, &x)| *m += p * f64::from(x));
                }
            }
        };
        let mut middle = vec![0.0; dim];
        mean(&self.prior.frequencies(), &mut middle);
        let one = |marginal: &[f64]| {
            let mut out = vec![0.0; dim];
            mean(marginal, &mut out);
            let unknown = marginal[self.prior.words()];
            out.iter_mut()
                .zip(&middle)
                .for_each(|(m, x)| *m += unknown * x);
            out
        };
        if let Some(found) = &self.enumerated {
            let places = 0..self.words.len();
            return Ok(places
                .flat_map(|place| one(&self.written_out(found, place)))
                .collect());
        }
        let mut means = Vec::with_capacity(self.words.len() * dim);
        self.sentences(
            |places| {
                let mut found = Vec::with_capacity(places.len());
                self.pass(places, control, &mut |_, view| {
                    found.push(one(view.marginal))
                })?;
                Ok(found)
            },
            |found| found.into_iter().rev().for_each(|mean| means.extend(mean)),
        )?;
        Ok(means)
    }

    /// H(text | release) in bits: what the release leaves open of the whole text. At most the sum of the
    /// words' own entropies; NaN where it is not exact.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn bits_left(&self, control: &Control) -> Result<f64> {
        if let Some(found) = &self.enumerated {
            return Ok(-sums(&found.weights, 0).p_ln_p / std::f64::consts::LN_2);
        }
        if !self.is_exact() {
            return Ok(f64::NAN);
        }
        let logs = self.logs.get_or_init(|| Logs::of(&self.prior));
        let chain = self.chain();
        let mut mean = 0.0;
        self.sentences(
            |places| {
                let mut sum = 0.0;
                self.pass(places, control, &mut |_, view| {
                    let (l, beta) = (view.likelihood, view.beta);
                    sum += chain.mean_log(view.before, l, beta, view.sum, logs);
                    let each = view.marginal.iter().zip(l).filter(|(p, _)| **p > 0.0);
                    sum += each.map(|(p, l)| p * l.ln()).sum::<f64>();
                })?;
                Ok(sum)
            },
            |sum| mean += sum,
        )?;
        Ok(((self.log_evidence - mean) / std::f64::consts::LN_2).max(0.0))
    }

    /// Texts drawn from the posterior: as likely as they are to stand behind the release.
    ///
    /// # Errors
    /// [`Error::System`] if the operating system gives no entropy, [`Error::Interrupted`].
    pub fn sample(&self, count: usize, seed: Option<u64>, control: &Control) -> Result<Vec<Given>> {
        let key = Randomness::new(seed).next_key()?;
        let places = self.words.len();
        let mut drawn = vec![0u32; count * places];
        if let Some(found) = &self.enumerated {
            let sums = running(found.weights.iter().copied());
            let mut rng = key.stream(0);
            for row in drawn.chunks_exact_mut(places.max(1)) {
                let at = pick(&sums, &mut rng);
                row.copy_from_slice(&found.tokens[at * places..][..places]);
            }
        } else if places > 0 {
            let chain = self.chain();
            self.sentences(
                |range| {
                    let sentence = self.sentence(range, control)?;
                    let mut rng = key.stream(range.start as u64);
                    let mut found = vec![Vec::with_capacity(range.len()); count];
                    let mut weights = Vec::new();
                    ahead(
                        &chain,
                        range.len(),
                        &sentence,
                        &mut |_, likelihood, beta| {
                            for path in &mut found {
                                chain.conditional(path, likelihood, beta, &mut weights);
                                let sums = running(weights.iter().copied());
                                path.push(pick(&sums, &mut rng) as u32);
                            }
                        },
                    )?;
                    Ok((range.start, found))
                },
                |(first, found)| {
                    for (row, path) in drawn.chunks_exact_mut(places).zip(found) {
                        row[first..first + path.len()].copy_from_slice(&path);
                    }
                },
            )?;
        }
        let text = |at: usize| {
            self.reading
                .with(&self.channel, &drawn[at * places..][..places])
        };
        Ok((0..count).map(text).collect())
    }

    /// The tokens of the likeliest text.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn likeliest(&self, control: &Control) -> Result<Vec<u32>> {
        if let Some(found) = &self.enumerated {
            let weights = found.weights.iter().zip(0usize..);
            let best = weights.fold((0.0, 0), |a, (&p, i)| if p > a.0 { (p, i) } else { a });
            let places = self.words.len();
            return Ok(found.tokens[best.1 * places..][..places].to_vec());
        }
        let mut tokens = Vec::with_capacity(self.words.len());
        self.sentences(
            |places| {
                viterbi(
                    &self.chain(),
                    places.len(),
                    &self.sentence(places, control)?,
                )
            },
            |path| tokens.extend(path),
        )?;
        Ok(tokens)
    }

    /// The likeliest text.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn viterbi(&self, control: &Control) -> Result<Given> {
        Ok(self.reading.with(&self.channel, &self.likeliest(control)?))
    }
}

fn running(weights: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sum = 0.0;
    let sums = weights.map(|weight| {
        sum += weight;
        sum
    });
    sums.collect()
}

/// A place drawn by running sums of weights.
fn pick(sums: &[f64], rng: &mut ChaCha12Rng) -> usize {
    let total = sums.last().copied().unwrap_or(0.0);
    let u = uniform_below_u128(rng, 1 << 53) as f64 / (1u64 << 53) as f64 * total;
    sums.partition_point(|&s| s <= u)
        .min(sums.len().saturating_sub(1))
}
