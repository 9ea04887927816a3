//! Post-processing that replaces a mechanism's output by one of the outputs near it.
//!
//! **Releases** a word drawn uniformly from C(y), where y is the output of another mechanism and
//! C(y) its outputs in a [cover](crate::cover). **Guarantee**: that of the other mechanism, for any
//! sets. The sets are public and the draw does not see the text, so this is post-processing.

use std::sync::Arc;

use rand::rngs::ChaCha12Rng;

use crate::cover::Cover;
use crate::guarantee::Guarantee;
use crate::mechanism::Mechanism;
use crate::support::error::{Error, Result};
use crate::support::parallel::Control;
use crate::support::random::{Key, Randomness, uniform_below};
use crate::words::space::MetricSpace;

/// The random streams of the remapping count down from here; no mechanism uses them.
const LAST_STREAM: u64 = u64::MAX - 1;

/// A mechanism whose outputs are remapped.
#[derive(Clone)]
pub struct Remapped {
    inner: Arc<dyn Mechanism>,
    cover: Arc<Cover>,
}

impl Remapped {
    /// Wraps `inner`; each of its outputs becomes one of the outputs that `cover` has for it.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a cover of other words or another metric, a cover without an
    /// output for some word, or an `inner` without one law of a word.
    pub fn new(inner: Arc<dyn Mechanism>, cover: Arc<Cover>) -> Result<Self> {
        inner.check_one_law()?;
        cover.check_space(inner.space())?;
        if cover.k() == 0 {
            let expected = "a cover with an output for every word";
            return Err(Error::parameter("remap", expected, "one without"));
        }
        Ok(Remapped { inner, cover })
    }

    /// The cover that outputs are remapped by.
    pub fn cover(&self) -> &Arc<Cover> {
        &self.cover
    }

    /// The mechanism whose outputs are remapped.
    pub(crate) fn remaps(&self) -> &Arc<dyn Mechanism> {
        &self.inner
    }

    fn remap(&self, y: u32, rng: &mut ChaCha12Rng) -> u32 {
        let outputs = self.cover.outputs(y);
        self.cover
            .id(outputs[uniform_below(rng, outputs.len() as u32) as usize])
    }

    /// Turns the law of `inner` into the law of the remapped output.
    pub(crate) fn spread(&self, probabilities: &mut [f64]) {
        let law = probabilities.to_vec();
        probabilities.fill(0.0);
        for (&p, y) in law.iter().zip(0u32..) {
            let outputs = self.cover.outputs(y);
            let each = p / outputs.len() as f64;
            for &rank in outputs {
                probabilities[self.cover.id(rank) as usize] += each;
            }
        }
    }
}

impl Mechanism for Remapped {
    fn space(&self) -> &dyn MetricSpace {
        self.inner.space()
    }

    fn guarantee(&self) -> Guarantee {
        let mut guarantee = self.inner.guarantee();
        let (words, released) = (self.cover.words(), self.cover.released().len());
        let outputs = format!(
            "Outputs are remapped to one of the words near them, which costs nothing \
             (post-processing). {}",
            Guarantee::excluded(words, released)
        );
        guarantee.outputs = outputs.trim_end().to_owned();
        guarantee
    }

    fn epsilon(&self) -> f64 {
        self.inner.epsilon()
    }

    fn with_epsilon(&self, epsilon: f64) -> Result<Arc<dyn Mechanism>> {
        let inner = self.inner.with_epsilon(epsilon)?;
        Ok(Arc::new(Self::new(inner, self.cover.clone())?))
    }

    fn excluding(&self, ids: &[u32]) -> Result<Arc<dyn Mechanism>> {
        let cover = Arc::new(self.cover.excluding(ids)?);
        Ok(Arc::new(Self::new(self.inner.clone(), cover)?))
    }

    fn excluded(&self) -> Vec<u32> {
        self.cover.excluded_ids()
    }

    fn randomness(&self) -> &Randomness {
        self.inner.randomness()
    }

    fn draw(&self, ids: &[u32], key: &Key, out: &mut [u32], control: &Control) -> Result<()> {
        self.inner.draw(ids, key, out, control)?;
        const WORDS_PER_STREAM: usize = 1 << 16;
        for (out, index) in out.chunks_mut(WORDS_PER_STREAM).zip(0..) {
            control.check()?;
            let mut rng = key.stream(LAST_STREAM - index);
            out.iter_mut().for_each(|y| *y = self.remap(*y, &mut rng));
        }
        Ok(())
    }
    fn inner(&self) -> Option<&dyn Mechanism> {
        Some(&*self.inner)
    }

    fn bound(&self, a: u32, b: u32) -> f64 {
        self.inner.bound(a, b)
    }

    fn has_law(&self) -> bool {
        self.inner.has_law()
    }

    fn law(&self, id: u32, probabilities: &mut [f64]) -> bool {
        let known = self.inner.law(id, probabilities);
        if known {
            self.spread(probabilities);
        }
        known
    }

    fn scores(&self, rows: &[f64], scores: &mut Vec<f64>) {
        self.inner.scores(rows, scores);
    }

    fn law_of_scores(&self, id: u32, scores: &[f64], probabilities: &mut [f64]) -> bool {
        let known = self.inner.law_of_scores(id, scores, probabilities);
        if known {
            self.spread(probabilities);
        }
        known
    }

    fn draw_unknown(&self, rng: &mut ChaCha12Rng) -> u32 {
        let y = self.inner.draw_unknown(rng);
        self.remap(y, rng)
    }
}
