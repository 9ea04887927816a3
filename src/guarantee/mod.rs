//! The proved guarantee of a mechanism, as data that can be printed, compared and defended.
//!
//! [`Guarantee`] is [`Serialize`](serde::Serialize): Python, the command and the service show the same
//! JSON, which `docs/reference/guarantee.schema.json` describes.

mod json;
pub mod measured;
pub mod proved;

use std::fmt;

pub use measured::{Bits, Unchanged, WordBits};
pub use proved::certificate::{Certificate, NamedCertificate};

use crate::cover::Cover;
use crate::support::random::Randomness;
use proved::rounded::scientific_up;
pub(crate) use proved::rounded::{decimals_up, rounded_up};

/// A metric differential privacy guarantee.
///
/// For any two words w, w' and any output y: Pr\[M(w)=y\] ≤ exp(ε·d(w,w') + slack)·Pr\[M(w')=y\] + δ.
/// ε is per unit of distance: it means nothing without its metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Guarantee {
    /// The mechanism's name.
    pub mechanism: &'static str,
    /// The metric d.
    pub metric: &'static str,
    /// ε per unit of d, the provable value.
    pub epsilon: f64,
    /// δ; 0 for pure metric privacy.
    pub delta: f64,
    /// The computation behind `epsilon`, if it is below the theorem's value.
    pub certificate: Option<NamedCertificate>,
    /// The largest effect of arithmetic on the log-ratio, where d is the *computed* distance: the
    /// sampler's rounding, and an absolute error of the distance times ε. Infinite if nothing is
    /// proved.
    pub slack: f64,
    /// The reason why nothing is proved about the actual draws, if that is so.
    pub void: Option<&'static str>,
    /// Properties of the outputs in separate sentences: a floor, words that are never released.
    pub outputs: String,
    /// Why it holds, in one line with its source.
    pub theorem: &'static str,
    /// How exactly the implementation samples the proved law.
    pub arithmetic: &'static str,
    /// The log-ratio between an unknown word that is replaced at random and any word of the
    /// vocabulary; infinite where no bound is proved.
    pub unknown_bound: f64,
    /// Whether unknown words are replaced at random, with that bound; set by the handling of text.
    pub unknown_is_random: bool,
    /// How it composes over a text.
    pub scope: &'static str,
    /// Exceptions from the guarantee, one sentence each; set by the handling of text.
    pub exceptions: Vec<String>,
    /// How often common words come back unchanged: measured, not proved. Set where the guarantee is
    /// shown.
    pub unchanged: Option<Unchanged>,
    /// The bits that a release reveals about a word: measured, not proved. Set only on request,
    /// because it takes a pass over all laws.
    pub bits: Option<WordBits>,
}

impl Guarantee {
    /// Over a text the log-ratios of the words add up.
    pub const WORDS: &'static str = "word; a text by the sum over its words";
    /// Equal words get the same replacement: the log-ratios of distinct words add up.
    pub const DISTINCT: &'static str = "word; a text by the sum over its distinct words, \
        compared with texts of the same pattern of equal words";
    /// Why a seeded mechanism protects nothing.
    pub(crate) const SEEDED: &'static str = "the mechanism is SEEDED, for tests only: whoever knows the seed \
        computes its output";

    /// The guarantee of words that are drawn by their proved law, without a bound on unknown ones.
    pub(crate) fn of(
        mechanism: &'static str,
        metric: &'static str,
        epsilon: f64,
        theorem: &'static str,
        arithmetic: &'static str,
    ) -> Self {
        Guarantee {
            mechanism,
            metric,
            epsilon,
            delta: 0.0,
            certificate: None,
            slack: 0.0,
            void: None,
            outputs: String::new(),
            theorem,
            arithmetic,
            unknown_bound: f64::INFINITY,
            unknown_is_random: false,
            scope: Self::WORDS,
            exceptions: Vec::new(),
            unchanged: None,
            bits: None,
        }
    }

    /// The log-ratio that shows whether a word was in the vocabulary, where unknown words are replaced
    /// at random.
    pub fn unknown(&self) -> Option<f64> {
        self.unknown_is_random.then_some(self.unknown_bound)
    }

    /// The sentence about words that are never released; empty if all may be released.
    pub(crate) fn excluded(words: usize, released: usize) -> String {
        match words - released {
            0 => String::new(),
            excluded => format!(
                "{excluded} of the {words} words of the vocabulary are never released, and stay \
                 protected as inputs."
            ),
        }
    }

    /// The sentences about the outputs of a cover.
    pub(crate) fn covered(cover: &Cover) -> String {
        let floor = (cover.floor() * 1e6).ceil() / 1e6;
        let released = cover.released().len();
        let excluded = Self::excluded(cover.words(), released);
        if floor >= 1.0 {
            return excluded;
        }
        let mut said = match cover.is_weighted() {
            false => format!(
                "Every word has at least {} outputs that stand for it, so no output has a probability \
                 above {floor:.6}",
                cover.k()
            ),
            true => format!("No output has a probability above {floor:.6}"),
        };
        said.push_str(&format!(
            " (cover {:016x}, taken to be public).",
            cover.fingerprint()
        ));
        match excluded.is_empty() {
            true => said,
            false => format!("{said} {excluded}"),
        }
    }

    /// The guarantee of a mechanism with this randomness: with a seed, nothing is protected.
    pub(crate) fn drawn_from(self, randomness: &Randomness) -> Self {
        match randomness.seed() {
            Some(_) => self.voided(Self::SEEDED),
            None => self,
        }
    }

    /// The guarantee of a mechanism of which nothing is proved.
    pub(crate) fn voided(self, why: &'static str) -> Self {
        Guarantee {
            slack: f64::INFINITY,
            void: self.void.or(Some(why)),
            ..self
        }
    }
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Guarantee {
            mechanism,
            metric,
            epsilon,
            ..
        } = self;
        let epsilon = rounded_up(*epsilon);
        if let Some(why) = self.void {
            write!(f, "NOTHING IS PROTECTED: {why}. Otherwise: ")?;
        }
        write!(
            f,
            "{mechanism} protects every word of its vocabulary with metric differential privacy \
             of ε = {epsilon} per unit of {metric} distance d: whoever sees a released word y \
             can prefer one original word w to another w' by a likelihood ratio \
             Pr[y|w] / Pr[y|w'] of at most exp({epsilon}·d(w,w'))"
        )?;
        if self.slack.is_finite() && self.slack > 0.0 {
            write!(
                f,
                ", up to exp({}) of arithmetic",
                scientific_up(self.slack, 2)
            )?;
        }
        if self.delta > 0.0 {
            write!(f, ", except with probability δ = {:e}", self.delta)?;
        }
        f.write_str(match self.scope {
            Self::DISTINCT => {
                ". For two texts with the same pattern of equal words the exponents of their \
                 distinct words add up"
            }
            _ => ". For two texts of equal length the exponents of their words add up",
        })?;
        write!(
            f,
            ". Why: {}. Arithmetic: {}.",
            self.theorem, self.arithmetic
        )?;
        if !self.outputs.is_empty() {
            write!(f, " {}", self.outputs)?;
        }
        if self.unknown_is_random {
            write!(
                f,
                " Unknown words are replaced at random, all by one law; that a word was not in the \
                 vocabulary shows with a likelihood ratio of at most exp({}), whatever the \
                 distance.",
                decimals_up(self.unknown_bound, 3)
            )?;
        }
        if let Some(NamedCertificate { certificate, .. }) = &self.certificate {
            write!(
                f,
                " Certified: ε = {} where the theorem gives {}, {}; vocabulary {}, taken to \
                 be public.",
                rounded_up(certificate.epsilon),
                rounded_up(certificate.nominal),
                certificate.method(),
                certificate.vocabulary_name()
            )?;
        }
        for exception in &self.exceptions {
            write!(f, " Not covered: {exception}.")?;
        }
        if let Some(unchanged) = &self.unchanged {
            write!(f, " Measured, not proved: {unchanged}.")?;
            if let Some(warning) = unchanged.warning() {
                write!(f, " WARNING: {warning}.")?;
            }
        }
        if let Some(bits) = &self.bits {
            write!(f, " Measured, not proved: {bits}.")?;
        }
        Ok(())
    }
}

impl Guarantee {
    /// The guarantee in plain words, one paragraph for the people whose words it protects.
    pub fn for_users(&self) -> String {
        if let Some(why) = self.void {
            return format!("NOTHING IS PROTECTED: {why}. Do not release these texts as private.");
        }
        let whole = match self.scope == Self::DISTINCT {
            true => "Every different word",
            false => "Every word",
        };
        // The exponential is rounded to nearest.
        let one = self.epsilon.exp().next_up();
        let factor = match one < 1e6 {
            true => decimals_up(one, 3),
            false if one.is_finite() => scientific_up(one, 2),
            false => format!("exp({})", rounded_up(self.epsilon)),
        };
        let means = match self.metric.starts_with("discrete") {
            true => format!(
                "For any two words, no output is more than {factor} times as likely for one as for \
                 the other, whatever else the observer knows."
            ),
            false => format!(
                "For two words at distance 1 (in the {} metric), no output is more than {factor} \
                 times as likely for one as for the other, whatever else the observer knows; at \
                 twice the distance the square of that. So words of like meaning are hard to \
                 tell apart, and words that have little in common are not.",
                self.metric
            ),
        };
        let texts = "In a longer text these factors multiply: the more words, the more is told.";
        let outputs = match self.outputs.is_empty() {
            true => String::new(),
            false => format!(" {}", self.outputs),
        };
        let exceptions = match self.exceptions.is_empty() {
            true => String::new(),
            false => format!(" Not protected: {}.", self.exceptions.join("; ")),
        };
        let unchanged = match &self.unchanged {
            Some(unchanged) => format!(" A word can be drawn for itself: {unchanged}."),
            None => String::new(),
        };
        let bits = match &self.bits {
            Some(bits) => format!(" Measured: {bits}."),
            None => String::new(),
        };
        format!(
            "{whole} of these texts is replaced by a word drawn at random before it leaves. {means} \
             {texts}{unchanged}{bits}{outputs}{exceptions}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn guarantee() -> Guarantee {
        Guarantee {
            unknown_bound: 3.0,
            ..Guarantee::of("Tem", "euclidean", 2.5, "a theorem", "integers")
        }
    }

    #[test]
    fn the_sentence_says_what_is_so_and_no_more() {
        let plain = guarantee().to_string();
        assert!(
            plain.starts_with("Tem protects") && plain.contains("ε = 2.5 per unit of euclidean")
        );
        assert!(plain.contains("equal length") && plain.contains("Why: a theorem."));
        for absent in [
            "NOTHING",
            "arithmetic,",
            "of arithmetic",
            "δ",
            "Unknown",
            "Certified",
            "Not",
        ] {
            assert!(!plain.contains(absent), "{absent}");
        }
        let all = Guarantee {
            slack: 1e-9,
            delta: 0.25,
            scope: Guarantee::DISTINCT,
            unknown_is_random: true,
            outputs: "No output has a probability above 0.5.".into(),
            exceptions: vec!["white space".into()],
            ..guarantee()
        };
        let all = all.to_string();
        for said in [
            "1.0e-9) of arithmetic",
            "δ = 2.5e-1",
            "distinct words add up",
            "exp(3.000)",
            "above 0.5.",
            "Not covered: white space.",
        ] {
            assert!(all.contains(said), "{said}: {all}");
        }
        let plainly = guarantee().for_users();
        assert!(plainly.contains("12.183 times") && plainly.starts_with("Every word of"));
        assert!(plainly.contains("distance 1 (in the euclidean metric)"));
        let local = Guarantee {
            metric: "discrete (1 between any two words)",
            epsilon: 50.0,
            exceptions: vec!["white space".into()],
            scope: Guarantee::DISTINCT,
            ..guarantee()
        };
        let plainly = local.for_users();
        assert!(plainly.contains("any two words") && plainly.contains("5.2e21 times"));
        assert!(plainly.contains("Every different word") && !plainly.contains("twice"));
        assert!(plainly.ends_with("Not protected: white space."));
        let no_bound = Guarantee {
            epsilon: 800.0,
            ..guarantee()
        };
        assert!(no_bound.for_users().contains("more than exp(800) times"));
        let void = guarantee().voided("why not").voided("and why else");
        assert!(void.slack == f64::INFINITY && void.void == Some("why not"));
        assert!(
            void.to_string()
                .starts_with("NOTHING IS PROTECTED: why not.")
        );
        assert!(!void.to_string().contains("of arithmetic"));
        assert!(
            void.for_users()
                .starts_with("NOTHING IS PROTECTED: why not.")
        );
        assert_eq!(Guarantee::excluded(7, 7), "");
        assert!(Guarantee::excluded(7, 5).starts_with("2 of the 7 words"));
    }

    #[test]
    fn bounds_in_sentences_are_never_below_the_bound() {
        let said = Guarantee {
            slack: 1.04e-9,
            unknown_bound: 10.799_1,
            unknown_is_random: true,
            epsilon: 0.000_4,
            ..guarantee()
        };
        assert!(said.to_string().contains("exp(1.1e-9)"));
        assert!(said.to_string().contains("exp(10.800)"));
        assert!(said.for_users().contains("1.001 times"));
    }
}
