//! TEM, the truncated exponential mechanism (TEM'21, Algorithms 2 and 3).
//!
//! **Releases** y with Pr\[y|w\] ∝ exp(-(ε/2)·min(d(w,y), γ)). The paper's ⊥ element only groups
//! the words beyond γ, which all have the same weight.
//!
//! **Guarantee**: ε·d-private for every metric d and every γ. The score -min(d(w,·), γ) is
//! 1-Lipschitz in w by the triangle inequality. So each weight changes by at most a factor
//! exp((ε/2)·d(w,w')), and so does the normaliser. The proof needs *every* distance exactly: if an
//! approximate search missed a neighbour, its score would change by up to γ.
//!
//! **Law**: integers, in [`crate::law`]. **Sampler**: `rejection` draws from the integer law
//! exactly, using the k nearest words. README.md, beside this file, explains it step by step.

pub(in crate::mechanism) mod after;
mod ahead;
pub(crate) mod columns;
mod covered;
pub(in crate::mechanism) mod draw;
mod law_cache;
mod level_bins;
mod level_cuts;
mod levels;
mod neighborhoods;
mod parameters;
pub mod recommended;
mod rejection;
mod row_table;
mod shells;
mod tries;

use std::sync::Arc;

use rand::rngs::ChaCha12Rng;
use xxhash_rust::xxh3::xxh3_64;

use crate::cover::{Cover, word_of};
use crate::distance::neighbors::{Grid, NeighborLists};
use crate::guarantee::{Certificate, Guarantee, Unchanged};
use crate::law::base::{BaseMeasure, shortened};
use crate::law::word_cache::CacheBudget;
use crate::law::{self, Law};
use crate::mechanism::Mechanism;
use crate::support::error::{Error, Result, check_epsilon};
use crate::support::parallel::Control;
use crate::support::random::{Key, Randomness, uniform_below};
use crate::words::space::MetricSpace;

use law_cache::LawCache;
use neighborhoods::{Neighborhoods, Row};

/// The distance up to which words count as neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Truncation {
    /// γ as given; 0 and infinity are valid.
    Gamma(f64),
    /// γ by TEM'21 Theorem 3: words beyond γ are released with probability at most β.
    Beta(f64),
}

impl Default for Truncation {
    fn default() -> Self {
        Truncation::Beta(1e-3)
    }
}

/// The truncated exponential mechanism on a finite metric space.
///
/// ```
/// use std::sync::Arc;
/// use fastdx::{Embedding, Mechanism, Randomness, Tem};
/// let embedding = Embedding::default_english()?;
/// let tem = Tem::new(Arc::new(embedding), 6.0, Default::default(), Randomness::new(None))?;
/// let law = tem.probabilities(tem.vocabulary().require("coffee")?);
/// assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-9);
/// # Ok::<(), fastdx::Error>(())
/// ```
#[derive(Clone)]
pub struct Tem {
    space: Arc<dyn MetricSpace>,
    neighborhoods: Arc<Neighborhoods>,
    cache: Arc<LawCache>,
    epsilon: f64,
    truncation: Truncation,
    gamma: f64,
    cover: Option<Arc<Cover>>,
    /// The base measure that was given.
    language: Option<Arc<BaseMeasure>>,
    /// The base measure of the law: the language's, or the cover's weights. It is 1 for all words
    /// that are never released.
    base: Option<Arc<BaseMeasure>>,
    /// Its sum over all outputs.
    released_mass: u64,
    randomness: Randomness,
    certificate: Option<Certificate>,
}

impl std::fmt::Debug for Tem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tem")
            .field("words", &self.space.vocabulary().len())
            .field("metric", &self.space.metric_name())
            .field("epsilon", &self.epsilon)
            .field("gamma", &self.gamma)
            .finish_non_exhaustive()
    }
}

impl Tem {
    /// Creates the mechanism with `epsilon` per unit of the space's distance.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an `epsilon` that is not positive and finite, a γ that is negative
    /// or NaN, or a β outside (0, 1).
    pub fn new(
        space: Arc<dyn MetricSpace>,
        epsilon: f64,
        truncation: Truncation,
        randomness: Randomness,
    ) -> Result<Self> {
        let words = space.vocabulary().len();
        if words > law::MOST_WORDS {
            let expected = format!("of at most {} words", law::MOST_WORDS);
            return Err(Error::parameter("embedding", expected, words));
        }
        let k = covered::list_length(words, None);
        let neighborhoods = Neighborhoods::new(&*space, k, CacheBudget::standard()?);
        let tem = Tem {
            cache: Arc::new(LawCache::new(&*space, None, neighborhoods.budget())),
            neighborhoods: Arc::new(neighborhoods),
            space,
            epsilon,
            truncation,
            gamma: 0.0,
            cover: None,
            language: None,
            base: None,
            released_mass: 0,
            randomness,
            certificate: None,
        };
        tem.settled()
    }

    /// Derives what follows from ε, the rule for γ and the outputs.
    fn settled(mut self) -> Result<Self> {
        check_epsilon(self.epsilon)?;
        let (words, base) = (self.space.vocabulary().len(), self.base.as_ref());
        self.gamma = match self.truncation {
            Truncation::Gamma(gamma) if gamma >= 0.0 => gamma,
            Truncation::Gamma(gamma) => {
                let expected = "at least 0 (infinity is allowed)";
                return Err(Error::parameter("gamma", expected, gamma));
            }
            Truncation::Beta(beta) if beta > 0.0 && beta < 1.0 => {
                let others = base.map_or((words - 1) as f64, |base| {
                    base.total() as f64 / f64::from(base.range().0) - 1.0
                });
                gamma_of(self.epsilon, beta, others)
            }
            Truncation::Beta(beta) => {
                let expected = "between 0 and 1, both excluded";
                return Err(Error::parameter("beta", expected, beta));
            }
        };
        self.released_mass = base.map_or(words as u64, |base| {
            let unreleased = self.cover.as_ref().map_or(0, |cover| cover.excluded());
            base.total() - unreleased as u64
        });
        let sets = self.outputs_fingerprint();
        self.certificate = self.space.certificate(self.epsilon, self.gamma, sets);
        self.cache = self.new_cache();
        Ok(self)
    }

    fn new_cache(&self) -> Arc<LawCache> {
        let (cover, budget) = (self.cover.as_deref(), self.neighborhoods.budget());
        Arc::new(LawCache::new(&*self.space, cover, budget))
    }

    /// Returns the same mechanism at another ε. A γ that came from β is recomputed.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an `epsilon` that is not positive and finite.
    pub fn with_epsilon(&self, epsilon: f64) -> Result<Self> {
        let mut tem = self.clone();
        tem.epsilon = epsilon;
        tem.settled()
    }

    /// Returns the same mechanism with a cache of at most `bytes` bytes for lists and laws. The
    /// default is `FASTDX_CACHE_BYTES`, or 128 MiB. The law does not depend on it. Mechanisms
    /// derived from the result share the cache.
    pub fn with_cache_bytes(&self, bytes: usize) -> Self {
        let budget = CacheBudget::new(bytes);
        let (words, cover) = (self.space.vocabulary().len(), self.cover.as_deref());
        let k = covered::list_length(words, cover);
        let mut tem = self.clone();
        tem.neighborhoods = Arc::new(Neighborhoods::new(&*self.space, k, budget));
        tem.cache = tem.new_cache();
        tem
    }

    /// The limit of the cache of lists and laws, and the bytes it holds now.
    pub fn cache_bytes(&self) -> (usize, usize) {
        let budget = self.neighborhoods.budget();
        (budget.limit(), budget.limit() - budget.free())
    }

    /// Returns the same mechanism with a cover: each output stands for its set. Without a cover,
    /// each output stands for itself.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a cover of other words or another metric, or one with weights beside a
    /// base measure.
    pub fn with_cover(&self, cover: Option<Arc<Cover>>) -> Result<Self> {
        if let Some(cover) = &cover {
            cover.check_space(&*self.space)?;
        }
        self.with_outputs(cover, self.language.clone())
    }

    /// Returns the same mechanism with a base measure: Pr\[y|w\] ∝ Q(y)·exp(-(ε/2)·min(d(w,y), γ)).
    /// Q is public and the same for every word, so it cancels in the proof, whatever it is. `None`
    /// is the uniform measure, that of TEM'21.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a measure of another number of words, or beside a cover with weights.
    pub fn with_base(&self, base: Option<Arc<BaseMeasure>>) -> Result<Self> {
        self.with_outputs(self.cover.clone(), base)
    }

    fn with_outputs(
        &self,
        cover: Option<Arc<Cover>>,
        language: Option<Arc<BaseMeasure>>,
    ) -> Result<Self> {
        let words = self.space.vocabulary().len();
        if let (Some(_), Some(cover)) = (&language, &cover)
            && cover.is_weighted()
        {
            let expected = "\"uniform\" beside a cover with weights, which are its base measure";
            return Err(Error::parameter("language", expected, "another measure"));
        }
        if let Some(base) = language.as_ref().filter(|base| base.len() != words) {
            let expected = format!("a weight for each of the {words} words");
            return Err(Error::parameter("language", expected, base.len()));
        }
        let k = covered::list_length(words, cover.as_deref());
        let mut tem = self.clone();
        tem.neighborhoods = self.neighborhoods.of_length(&*self.space, k);
        tem.base = match (&language, &cover) {
            (None, cover) => cover.as_ref().and_then(|cover| cover.base()).cloned(),
            (Some(language), Some(cover)) if cover.excluded() > 0 => {
                Some(Arc::new(language.of_released(cover.released())))
            }
            (Some(language), _) => Some(language.clone()),
        };
        (tem.cover, tem.language) = (cover, language);
        tem.settled()
    }

    /// Returns the same mechanism that never releases some words: their sets in the cover become
    /// empty.
    ///
    /// # Errors
    /// [`Error::WordId`]; [`Error::Parameter`] if no word is left.
    pub fn excluding(&self, ids: &[u32]) -> Result<Self> {
        let cover = match &self.cover {
            None => Arc::new(Cover::identity(&*self.space, ids)?),
            Some(cover) if cover.excludes(ids) => return Ok(self.clone()),
            Some(cover) => Arc::new(cover.excluding(ids)?),
        };
        self.with_cover(Some(cover))
    }

    /// The base measure that it was given, over all words; `None` if it is uniform or a cover's weights.
    pub fn language(&self) -> Option<&Arc<BaseMeasure>> {
        self.language.as_ref()
    }

    /// The base measure of its law: the one that it was given, or its cover's weights; `None` if it is uniform. It is 1
    /// for words that are never released.
    pub fn base(&self) -> Option<&Arc<BaseMeasure>> {
        self.base.as_ref()
    }

    /// The cover of its outputs, if it has one.
    pub fn cover(&self) -> Option<&Arc<Cover>> {
        self.cover.as_ref()
    }

    /// Returns the same mechanism on another space, such as the same words with lists.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the mechanism has a cover of other words or another metric.
    pub fn on(&self, space: Arc<dyn MetricSpace>) -> Result<Self> {
        let randomness = self.randomness.clone();
        let tem = Self::new(space, self.epsilon, self.truncation, randomness)?;
        tem.with_cache_bytes(self.cache_bytes().0)
            .with_base(self.language.clone())?
            .with_cover(self.cover.clone())
    }

    /// The words and their metric.
    pub fn space(&self) -> &dyn MetricSpace {
        &*self.space
    }

    /// The ε that the mechanism was created with; the certified ε is smaller.
    pub fn nominal(&self) -> f64 {
        self.epsilon
    }

    /// The certificate of this mechanism, if its space carries one.
    pub fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }

    /// Returns the same mechanism with a certificate. If its space can carry certificates, it
    /// carries this one from now on.
    ///
    /// # Errors
    /// [`Error::Parameter`] for the certificate of another mechanism or vocabulary.
    pub fn with_certificate(&self, certificate: Certificate) -> Result<Self> {
        let sets = self.outputs_fingerprint();
        if !certificate.covers(|| self.space.fingerprint(), self.epsilon, self.gamma, sets) {
            let got = "one of another";
            return Err(Error::parameter(
                "certificate",
                "one of this mechanism",
                got,
            ));
        }
        let mut tem = self.clone();
        // A file holds no base measure that its certificates could be checked by.
        if self.language.is_none()
            && let Some(space) = self.space.with_certificate(certificate)
        {
            tem.space = space;
        }
        tem.certificate = Some(certificate);
        Ok(tem)
    }

    /// The stored lists that it draws from, if the space has them.
    pub fn lists(&self) -> Option<&NeighborLists> {
        self.space.lists()
    }

    /// The distance beyond which all words have the same weight.
    pub fn gamma(&self) -> f64 {
        self.gamma
    }

    /// How γ was chosen.
    pub fn truncation(&self) -> Truncation {
        self.truncation
    }

    /// The probability of every word as the output for word `id`: the integer weights that are
    /// drawn from, divided by their sum.
    pub fn probabilities(&self, id: u32) -> Vec<f64> {
        let mut all = vec![0.0; self.space.vocabulary().len()];
        self.place(&self.law(id).probabilities(), &mut all);
        all
    }

    /// Places a law by rank at the ids of its outputs.
    pub(in crate::mechanism) fn place(&self, law: &[f64], all: &mut [f64]) {
        let Some(cover) = &self.cover else {
            return all.copy_from_slice(law);
        };
        all.fill(0.0);
        for (&y, &p) in cover.released().iter().zip(law) {
            all[y as usize] = p;
        }
    }

    /// The law as the integers that the sampler draws from: one for every word, or for every rank
    /// of a cover.
    pub fn law(&self, id: u32) -> Law {
        self.law_with(self.cover.as_deref(), id)
    }

    fn law_with(&self, cover: Option<&Cover>, id: u32) -> Law {
        let mut law = Law::default();
        self.fill_law(cover, id, &mut Row::default(), &mut law);
        law
    }

    fn fill_law(&self, cover: Option<&Cover>, id: u32, row: &mut Row, law: &mut Law) {
        let scores = self.distances_to_outputs(cover, id, row);
        law.fill(self.epsilon / 2.0, self.gamma, scores);
        if let Some(base) = &self.base {
            law.change(|rank, weight| {
                let id = word_of(cover, rank as u32);
                shortened(weight, base.shift()) * u128::from(base.weight(id))
            });
        }
    }

    /// The distances to all outputs, on the grid.
    fn distances_to_outputs<'a>(
        &self,
        cover: Option<&Cover>,
        id: u32,
        row: &'a mut Row,
    ) -> &'a mut [f64] {
        self.round(row.distances(&*self.space, id));
        match cover {
            None => &mut row.distances,
            Some(cover) => {
                cover.scores(&row.distances, &mut row.scores);
                &mut row.scores
            }
        }
    }

    /// Rounds distances to the grid, if there is one.
    fn round(&self, distances: &mut [f64]) {
        if let Some(grid) = self.grid() {
            distances.iter_mut().for_each(|d| *d = grid.round(*d));
        }
    }

    /// Turns the distances to all outputs into their weights Q·F, relative to the largest; returns the
    /// sum.
    pub(crate) fn weigh(&self, scores: &mut [f64]) -> f64 {
        let base = self.base.as_deref();
        let shift = base.map_or(0, BaseMeasure::shift);
        let sum = law::weights(scores, self.epsilon / 2.0, self.gamma, shift);
        base.map_or(sum, |base| {
            let each = scores.iter_mut().zip(0..).map(|(weight, rank)| {
                *weight *= base.shares()[word_of(self.cover.as_deref(), rank) as usize];
                *weight
            });
            each.sum()
        })
    }

    /// The exponent (ε/2)·d from which on all F are equal.
    pub(crate) fn floor_exponent(&self) -> f64 {
        parameters::floor_exponent(self.base.as_ref().map_or(0, |base| base.shift()))
    }

    /// Identifies the outputs' sets and their base measure: 0 for the words themselves, uniformly.
    pub(crate) fn outputs_fingerprint(&self) -> u64 {
        let sets = self.cover.as_ref().map_or(0, |cover| cover.fingerprint());
        self.language.as_ref().map_or(sets, |base| {
            xxh3_64(bytemuck::bytes_of(&[sets, base.fingerprint()])).max(1)
        })
    }

    /// No two words are farther apart: twice the distance from the first word to the farthest, and
    /// room for rounding.
    fn diameter(&self) -> f64 {
        2.0 * self.space.farthest() * (1.0 + 1e-9)
    }

    /// The sentences of the guarantee about outputs.
    fn outputs_said(&self) -> String {
        let cover = self.cover.as_deref();
        let covered = cover.map_or_else(String::new, Guarantee::covered);
        let Some(language) = &self.language else {
            return covered;
        };
        self.weighed_said(format!(
            "Outputs are weighed by a public base measure: {} ({:016x}). It is the same for every \
             word, so it costs nothing, as long as it was not made from the texts to protect.",
            language.source(),
            language.fingerprint()
        ))
    }

    /// The guarantee's sentence about weighed outputs and their cover. The bound of a cover counts outputs,
    /// so the sentence leaves it out where they are weighed.
    pub(in crate::mechanism) fn weighed_said(&self, said: String) -> String {
        let Some(cover) = &self.cover else {
            return said;
        };
        let print = cover.fingerprint();
        let sets = match cover.is_identity() {
            true => String::new(),
            false => {
                format!("Each stands for a set of words (cover {print:016x}, taken to be public). ")
            }
        };
        let excluded = Guarantee::excluded(cover.words(), cover.released().len());
        format!("{said} {sets}{excluded}").trim_end().to_owned()
    }

    /// The grid, if lists are useful and it is fine enough for this ε.
    fn grid(&self) -> Option<Grid> {
        if self.space.distances_by_row() {
            return None;
        }
        let grid = self.neighborhoods.grid();
        (self.epsilon * grid.step() <= law::GRID_SLACK).then_some(grid)
    }
}

/// γ = (2/ε)·ln((1-β)·others/β), TEM'21 Theorem 3, where the words beside a word weigh at most
/// `others` times as much as the word itself: |W|-1 times under the uniform measure. 0 if that is
/// negative.
fn gamma_of(epsilon: f64, beta: f64, others: f64) -> f64 {
    (2.0 / epsilon * ((1.0 - beta) * others / beta).ln()).max(0.0)
}

impl Mechanism for Tem {
    fn space(&self) -> &dyn MetricSpace {
        &*self.space
    }

    fn with_epsilon(&self, epsilon: f64) -> Result<Arc<dyn Mechanism>> {
        Ok(Arc::new(self.with_epsilon(epsilon)?))
    }

    fn excluding(&self, ids: &[u32]) -> Result<Arc<dyn Mechanism>> {
        Ok(Arc::new(self.excluding(ids)?))
    }

    fn excluded(&self) -> Vec<u32> {
        self.cover
            .as_ref()
            .map_or_else(Vec::new, |cover| cover.excluded_ids())
    }

    fn guarantee(&self) -> Guarantee {
        let theorem = match self.cover {
            None => {
                "the score -min(d(w,y),γ) changes by at most d(w,w') between two words, and the \
                 exponential mechanism with exponent ε/2 pays once for the score and once for the \
                 normaliser (TEM'21, Theorem 2)"
            }
            Some(_) => {
                "the score -min(d(w,A_y),γ), A_y the public set of words that y stands for, \
                 changes by at most d(w,w') between two words, and the exponential mechanism with \
                 exponent ε/2 pays once for the score and once for the normaliser (TEM'21, \
                 Theorem 2, with sets)"
            }
        };
        let arithmetic = "integer weights drawn with exact integer randomness; every word that can \
                          be released keeps a positive weight";
        let (metric, epsilon) = (self.space.metric_name(), Mechanism::epsilon(self));
        Guarantee {
            certificate: self.certificate().map(|c| c.named(self.space.vocabulary())),
            // A score has four errors (two weights, two sums) of (ε/2)·error each, and the distance
            // between the two words has one more.
            slack: law::SLACK + 3.0 * self.epsilon * self.space.distance_error(),
            outputs: self.outputs_said(),
            // An unknown word has the law of F = 1 for all; that of a known one is at least of its
            // farthest word.
            unknown_bound: self.epsilon / 2.0 * self.gamma.min(self.diameter()),
            ..Guarantee::of("Tem", metric, epsilon, theorem, arithmetic)
        }
        .drawn_from(&self.randomness)
    }

    fn epsilon(&self) -> f64 {
        self.certificate().map_or(self.epsilon, |c| c.epsilon)
    }

    fn randomness(&self) -> &Randomness {
        &self.randomness
    }

    fn draw(&self, ids: &[u32], key: &Key, out: &mut [u32], control: &Control) -> Result<()> {
        self.draw_ids(ids, key, out, control)
    }
    fn has_law(&self) -> bool {
        true
    }

    fn law(&self, id: u32, probabilities: &mut [f64]) -> bool {
        probabilities.copy_from_slice(&self.probabilities(id));
        true
    }

    fn known_unchanged(&self) -> Option<Unchanged> {
        let (cover, base) = (self.cover.as_ref()?, self.language.as_ref()?);
        let recommended = cover.fingerprint() == recommended::COVER
            && base.fingerprint() == recommended::BASE
            && self.epsilon == recommended::EPSILON
            && self.truncation == Truncation::default();
        recommended.then_some(recommended::UNCHANGED)
    }

    fn scores(&self, rows: &[f64], scores: &mut Vec<f64>) {
        match &self.cover {
            None => {
                scores.clear();
                scores.extend_from_slice(rows);
            }
            Some(cover) => cover.scores_of_rows(rows, scores),
        }
    }

    fn law_of_scores(&self, _: u32, scores: &[f64], probabilities: &mut [f64]) -> bool {
        let mut law = scores.to_vec();
        let total = self.weigh(&mut law);
        law.iter_mut().for_each(|p| *p *= 1.0 / total);
        self.place(&law, probabilities);
        true
    }

    fn draw_unknown(&self, rng: &mut ChaCha12Rng) -> u32 {
        let words = self.space.vocabulary().len() as u32;
        match (&self.base, &self.cover) {
            (None, None) => uniform_below(rng, words),
            (None, Some(cover)) => cover.draw_uniformly(rng),
            (Some(base), cover) => loop {
                let id = base.draw(rng);
                if cover.as_ref().is_none_or(|cover| cover.rank(id).is_some()) {
                    break id;
                }
            },
        }
    }
}
