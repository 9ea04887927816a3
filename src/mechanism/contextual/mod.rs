//! Tem whose base measure depends on what has been released so far.
//!
//! **Releases** a text y₁ … y_n in order with Pr\[y_i|w_i, h_i\] ∝ Q_h(y_i)·F(d(w_i, y_i)). F is
//! [Tem's](super::tem) weight of a distance, at ε/2. Q_h is a public [model of
//! language](LanguageModel), and h_i is a function of what was [released](Released) before place i.
//!
//! **Guarantee**: ε·Σ d(w_i, w'_i) between any two texts of a length, for every model and every
//! history. Fix h. Each weight Q_h(y)·F(d(w,y)) changes by at most a factor exp((ε/2)·d(w,w')) when w
//! becomes w', because Q_h(y) does not change; so does their sum. For a release y, Pr\[y|w\] is the
//! product of Pr\[y_i|w_i, h_i\], and h_i is the same for both texts, as it depends on y alone: the
//! log-ratios add up (adaptive composition). What breaks it: an original word in h, a model trained
//! on the texts to be protected, the nicest of several draws.
//!
//! **Law**: integers. Q_h(y) = Q(y) + S_h(y), see [`language`](crate::language). With Z = Σ
//! Q(y)·F(d(w,y)), the total of the word's own Tem, and A = Σ S_h(y)·F(d(w,y)), a number below Z + A
//! decides: below Z the word is drawn by that Tem, in all its ways, otherwise from S_h. The sums
//! stay below 2¹²⁸ ([`BaseMeasure`]). Where S_h is long, its words are
//! proposed by S_h and accepted by F, so that few distances are computed.

mod released;

use std::sync::Arc;

use rand::Rng;
use rand::rngs::ChaCha12Rng;

use super::Mechanism;
use super::tem::Tem;
use crate::cover::word_of;
use crate::distance::neighbors::Grid;
use crate::guarantee::Guarantee;
use crate::language::expected::{draw, total, weight};
use crate::language::{Expected, LanguageModel, words_fingerprint};
use crate::law::Law;
use crate::law::base::BaseMeasure;
use crate::law::word_cache::WordCache;
use crate::mechanism::tem::{after::Nearest, draw::DrawScratch};
use crate::support::error::{Error, Result};
use crate::support::parallel::Control;
use crate::support::random::{Key, Randomness, uniform_below, uniform_below_u128};
use crate::words::space::MetricSpace;
pub use released::{Released, ReleasedWord};

/// So many expected words are looked at one by one; of more, those near the word.
const FEW: usize = 64;
/// The words of a list that are near.
const NEAR: usize = 8;
/// Words between two looks at Ctrl-C.
const WORDS_PER_CHECK: usize = 1 << 10;

/// A [`Tem`] whose base measure is a model of language, given what has been released.
///
/// ```
/// use std::sync::Arc;
/// use fastdx::language::NgramWeights;
/// use fastdx::mechanism::contextual::{ContextualTem, Released};
/// use fastdx::{Embedding, Mechanism, NgramPrior, Randomness, Tem};
/// let space = Arc::new(Embedding::default_english()?);
/// let model = NgramWeights::new(Arc::new(NgramPrior::english(None)?));
/// let tem = Tem::new(space, 3.0, Default::default(), Randomness::new(None))?;
/// let tem = ContextualTem::new(&tem, Arc::new(model))?;
/// let words = tem.vocabulary();
/// let (tea, a) = (words.require("tea")?, words.require("coffee")? as usize);
/// let after = |text| tem.probabilities_after(tea, &Released::text(words, text));
/// assert!(after("a cup of")?[a] > after("it was")?[a]);
/// # Ok::<(), fastdx::Error>(())
/// ```
#[derive(Clone)]
pub struct ContextualTem {
    /// The Tem with the model's base measure.
    tem: Tem,
    model: Arc<dyn LanguageModel>,
    /// Z of each word.
    totals: Arc<WordCache<u128>>,
    nearest: Arc<WordCache<Nearest>>,
    base: Arc<BaseMeasure>,
}

impl ContextualTem {
    /// A Tem with a model of its words. Its own base measure is replaced by the model's.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a model of other words, or a cover with weights.
    pub fn new(tem: &Tem, model: Arc<dyn LanguageModel>) -> Result<Self> {
        let (own, other) = (tem.space().vocabulary(), model.vocabulary());
        if !std::ptr::eq(own, other) && words_fingerprint(own) != words_fingerprint(other) {
            let expected = "a model of the mechanism's words";
            return Err(Error::parameter("language", expected, "one of others"));
        }
        let tem = tem.with_base(Some(model.base().clone()))?;
        let budget = tem.budget();
        let totals = WordCache::new(own.len(), budget.clone(), budget.limit() / 8);
        let nearest = WordCache::new(own.len(), budget.clone(), budget.limit() / 8);
        Ok(ContextualTem {
            base: tem.base().unwrap_or(model.base()).clone(),
            totals: Arc::new(totals),
            nearest: Arc::new(nearest),
            tem,
            model,
        })
    }

    /// The Tem whose base measure is the model without history.
    pub fn tem(&self) -> &Tem {
        &self.tem
    }

    /// The model.
    pub fn model(&self) -> &Arc<dyn LanguageModel> {
        &self.model
    }

    /// Q of the outputs.
    pub(crate) fn base(&self) -> &BaseMeasure {
        &self.base
    }

    /// The lists of the words that a history makes likelier: the tokens of the sentence begun.
    pub(crate) fn expected(&self, sentence: &[u32]) -> Result<Vec<Expected<'_>>> {
        let mut lists = Vec::new();
        self.model.expected(sentence, &mut lists)?;
        let most = self.base.added();
        let got = total(&lists);
        if got > u128::from(most) {
            let expected = format!("a model whose expected words weigh at most {most}");
            return Err(Error::parameter("language", expected, got));
        }
        let words = self.vocabulary().len();
        if let Some(id) = lists.iter().find_map(|list| list.beyond(words)) {
            let expected = format!("a model that expects some of {words} words");
            return Err(Error::parameter("language", expected, format!("id {id}")));
        }
        Ok(lists)
    }

    /// The probability of every word as the output for word `id` behind what was released: the
    /// integers that are drawn from, divided by their sum.
    ///
    /// # Errors
    /// [`Error::WordId`]; those of the model.
    pub fn probabilities_after(&self, id: u32, released: &Released) -> Result<Vec<f64>> {
        self.vocabulary().check_ids(&[id])?;
        let law = self.law_after(id, &self.expected(released.sentence())?);
        let mut all = vec![0.0; self.vocabulary().len()];
        self.tem.place(&law.probabilities(), &mut all);
        Ok(all)
    }

    /// The word of a rank.
    fn word(&self, rank: u32) -> u32 {
        word_of(self.tem.cover().map(Arc::as_ref), rank)
    }

    /// The sentences of the guarantee about outputs.
    fn outputs_said(&self) -> String {
        let print = self.model.fingerprint();
        let print = print.map_or_else(String::new, |print| format!(" ({print:016x})"));
        self.tem.weighed_said(format!(
            "Outputs are weighed by a public model of language, given what was released before: \
             {}{print}. That is the same for every word, so it costs nothing, as long as the model \
             was not made from the texts to protect.",
            self.base.source()
        ))
    }

    /// The whole law, by rank.
    fn law_after(&self, id: u32, lists: &[Expected]) -> Law {
        let mut law = self.tem.law(id);
        if !lists.is_empty() {
            let mut added = vec![0; self.vocabulary().len()];
            for (y, weight) in lists.iter().flat_map(Expected::iter) {
                added[y as usize] += weight;
            }
            law.change(|rank, weight| {
                let y = self.word(rank as u32);
                // Q·F is a multiple of Q.
                weight + u128::from(added[y as usize]) * (weight / u128::from(self.base.weight(y)))
            });
        }
        law
    }

    /// Z of a word.
    fn total(&self, id: u32) -> u128 {
        let mut spare = 0;
        *self.totals.get_or_keep(id, &mut spare, |total| {
            *total = self.tem.law(id).total();
            size_of::<u128>()
        })
    }

    /// Draws a word's output behind what was released.
    fn draw_after(
        &self,
        id: u32,
        released: &Released,
        rng: &mut impl Rng,
        scratch: &mut DrawScratch,
    ) -> Result<u32> {
        self.vocabulary().check_ids(&[id])?;
        let lists = self.expected(released.sentence())?;
        Ok(match self.tem.few_distances() {
            None => self.word(self.law_after(id, &lists).sample(rng)),
            Some(_) if total(&lists) == 0 => self.tem.draw_one(id, rng, scratch),
            Some(grid) => match self.draw_near(id, grid, &lists, rng, scratch) {
                Some(y) => y,
                // The failed tries are independent of what follows.
                None => self.draw_from_all(id, grid, &lists, rng, scratch),
            },
        })
    }

    /// Draws with the distances of all expected words.
    fn draw_from_all(
        &self,
        id: u32,
        grid: Grid,
        lists: &[Expected],
        rng: &mut impl Rng,
        scratch: &mut DrawScratch,
    ) -> u32 {
        let each = lists.iter().flat_map(Expected::iter);
        let each = each.filter(|(_, weight)| *weight > 0);
        let (ranks, weights): (Vec<u32>, Vec<u64>) = each
            .filter_map(|(y, weight)| Some((self.tem.rank(y)?, weight)))
            .unzip();
        let mut sums = self.tem.factors(id, grid, &ranks);
        let own = self.total(id);
        let mut sum = own;
        for (reached, weight) in sums.iter_mut().zip(weights) {
            sum += *reached * u128::from(weight);
            *reached = sum;
        }
        let u = uniform_below_u128(rng, sum);
        match u < own {
            true => self.tem.draw_one(id, rng, scratch),
            false => self.word(ranks[sums.partition_point(|&sum| sum <= u)]),
        }
    }

    /// Draws with the distances of near words alone; `None` where that does not pay. Let N be the
    /// weight of the near words, M the sum of the measure over all words, and b a bound on F of all
    /// words that are not near. Of a number below N + M·b, the last part is a try: a word drawn by the
    /// measure, accepted with probability F/b unless it is near. The measure is Q_h, or S_h where Z is
    /// known: then the numbers below Z go before.
    fn draw_near(
        &self,
        id: u32,
        grid: Grid,
        lists: &[Expected],
        rng: &mut impl Rng,
        scratch: &mut DrawScratch,
    ) -> Option<u32> {
        let known = self.totals.get(id).copied();
        let few = lists.iter().map(Expected::count).sum::<usize>() <= FEW;
        if (few && known.is_some()) || !self.tem.releases_words() {
            return None;
        }
        let mut spare = Nearest::default();
        let nearest = self.nearest.get_or_keep(id, &mut spare, |nearest| {
            *nearest = self.tem.nearest(id, grid, NEAR);
            nearest.bytes()
        });
        let (own, base) = (known.unwrap_or(0), known.is_none().then_some(&self.base));
        let measure = u128::from(base.map_or(0, |base| base.total()));
        let mass = measure + total(lists);
        let mut near = own;
        let each = nearest.outputs.iter().map(|&(y, factor)| {
            let q = base.map_or(0, |base| base.weight(y).into());
            near += factor * u128::from(q + weight(lists, y));
            near
        });
        let sums: Vec<u128> = each.collect();
        let sum = near + mass * nearest.bound;
        let row = self.tem.tries_per_row();
        for made in 0..row {
            let u = uniform_below_u128(rng, sum);
            let y = if u < own {
                self.tem.draw_one(id, rng, scratch)
            } else if u < near {
                nearest.outputs[sums.partition_point(|&sum| sum <= u)].0
            } else {
                let y = match base {
                    Some(base) if uniform_below_u128(rng, mass) < measure => base.draw(rng),
                    _ => draw(lists, rng),
                };
                let output = self.tem.rank(y).is_some();
                let factor = output.then(|| self.tem.factor_outside(id, grid, y, nearest));
                match factor.flatten() {
                    Some(f) if uniform_below_u128(rng, nearest.bound) < f => y,
                    _ => continue,
                }
            };
            // Once the tries for a word have cost a row, on average, Z is made.
            if known.is_none() && uniform_below(rng, row) < made {
                self.total(id);
            }
            return Some(y);
        }
        None
    }

    /// Draws the output of an unknown word, by Q_h: its distance to all words is the same.
    fn draw_unknown_after(&self, released: &Released, rng: &mut ChaCha12Rng) -> Result<u32> {
        let lists = self.expected(released.sentence())?;
        let all = u128::from(self.base.total());
        let sum = all + total(&lists);
        loop {
            let y = match uniform_below_u128(rng, sum) < all {
                true => self.base.draw(rng),
                false => draw(&lists, rng),
            };
            if self.tem.rank(y).is_some() {
                break Ok(y);
            }
        }
    }
}

/// The drawing of a text in order.
pub struct InOrder<'a> {
    tem: &'a ContextualTem,
    rng: ChaCha12Rng,
    scratch: DrawScratch,
    /// The release so far. The caller adds what it releases beside the draws.
    pub released: Released<'a>,
}

impl<'a> InOrder<'a> {
    /// Begins a text, with the generator of its draws.
    pub fn new(tem: &'a ContextualTem, rng: ChaCha12Rng) -> Self {
        InOrder {
            tem,
            rng,
            scratch: DrawScratch::default(),
            released: Released::nothing(tem.vocabulary()),
        }
    }

    /// Begins another text.
    pub fn begin(&mut self, rng: ChaCha12Rng) {
        self.rng = rng;
        self.released = Released::nothing(self.tem.vocabulary());
    }

    /// Draws the output of the next word; `None` is one that is not in the vocabulary.
    ///
    /// # Errors
    /// [`Error::WordId`]; those of the model.
    pub fn draw(&mut self, id: Option<u32>) -> Result<ReleasedWord> {
        let (rng, released) = (&mut self.rng, &self.released);
        let drawn = match id {
            Some(id) => self.tem.draw_after(id, released, rng, &mut self.scratch),
            None => self.tem.draw_unknown_after(released, rng),
        };
        let drawn = ReleasedWord(drawn?);
        self.released.again(drawn);
        Ok(drawn)
    }
}

impl Mechanism for ContextualTem {
    fn space(&self) -> &dyn MetricSpace {
        self.tem.space()
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee {
            // A certificate is about one base measure.
            certificate: None,
            epsilon: self.tem.nominal(),
            outputs: self.outputs_said(),
            theorem: "the base measure of a word depends only on what is public or was released \
                      before it, so it cancels in every ratio; the score -min(d(w,A_y),γ) changes \
                      by at most d(w,w') between two words (A_y = {y} without a cover), and the \
                      exponential mechanism with exponent ε/2 pays once for the score and once for \
                      the normaliser (TEM'21, Theorem 2); the words of a text add up (adaptive \
                      composition)",
            ..self.tem.guarantee()
        }
    }

    fn epsilon(&self) -> f64 {
        self.tem.nominal()
    }

    fn with_epsilon(&self, epsilon: f64) -> Result<Arc<dyn Mechanism>> {
        let tem = self.tem.with_epsilon(epsilon)?;
        Ok(Arc::new(Self::new(&tem, self.model.clone())?))
    }

    fn excluding(&self, ids: &[u32]) -> Result<Arc<dyn Mechanism>> {
        let tem = self.tem.excluding(ids)?;
        Ok(Arc::new(Self::new(&tem, self.model.clone())?))
    }

    fn excluded(&self) -> Vec<u32> {
        self.tem.excluded()
    }

    fn randomness(&self) -> &Randomness {
        self.tem.randomness()
    }

    /// Draws the ids as one text, in order.
    fn draw(&self, ids: &[u32], key: &Key, out: &mut [u32], control: &Control) -> Result<()> {
        let mut text = InOrder::new(self, key.stream(0));
        for (at, (&id, out)) in ids.iter().zip(out).enumerate() {
            if at % WORDS_PER_CHECK == 0 {
                control.check()?;
            }
            *out = text.draw(Some(id))?.id();
        }
        control.advance(ids.len());
        Ok(())
    }
    fn in_order(&self) -> Option<&ContextualTem> {
        Some(self)
    }

    fn draw_unknown(&self, rng: &mut ChaCha12Rng) -> u32 {
        self.tem.draw_unknown(rng)
    }
}
