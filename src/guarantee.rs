//! What a mechanism proves, as data that can be printed, compared and defended.
//!
//! [`Guarantee`] is [`Serialize`](serde::Serialize): Python, the command and the service show the same
//! JSON, which `docs/reference/guarantee.schema.json` describes.

mod json;

use std::fmt;

use crate::random::Randomness;
use crate::vocabulary::Vocabulary;

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
    /// The computation that `epsilon` comes from, where it is below what the theorem gives.
    pub certificate: Option<NamedCertificate>,
    /// What arithmetic adds to the log-ratio at most, d being the *computed* distance: the
    /// sampler's rounding, and an absolute error of the distance times ε. Infinite where nothing
    /// is proved.
    pub slack: f64,
    /// Why nothing is proved of what is really drawn, where that is so.
    pub void: Option<&'static str>,
    /// What is said of its outputs, in sentences of their own: a floor, words never released.
    pub outputs: String,
    /// Why it holds, in one line with its source.
    pub theorem: &'static str,
    /// How exactly the implementation samples the proved law.
    pub arithmetic: &'static str,
    /// The log-ratio between an unknown word that is replaced at random and any word of the
    /// vocabulary; infinite where no bound is proved.
    pub unknown_bound: f64,
    /// Whether unknown words are replaced at random, with that bound; filled in by the handling
    /// of text.
    pub unknown_is_random: bool,
    /// How it composes over a text.
    pub scope: &'static str,
    /// What is not covered, one sentence each; filled in by the handling of text.
    pub exceptions: Vec<String>,
    /// How often common words come back as they were: measured, apart from what is proved. Filled in
    /// where the guarantee is shown.
    pub unchanged: Option<Unchanged>,
    /// The bits that a release tells of a word: measured, apart from what is proved. Filled in where
    /// that was asked for, because it takes a pass over all laws.
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

    /// The log-ratio that shows whether a word was in the vocabulary, where unknown words are replaced
    /// at random.
    pub fn unknown(&self) -> Option<f64> {
        self.unknown_is_random.then_some(self.unknown_bound)
    }

    /// What is said of words that are never released; nothing where all are.
    pub(crate) fn excluded(words: usize, released: usize) -> String {
        match words - released {
            0 => String::new(),
            excluded => format!(
                "{excluded} of the {words} words of the vocabulary are never released, and stay \
                 protected as inputs."
            ),
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
                " Unknown words are replaced uniformly at random; that a word was not in the \
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
    /// The same in plain words, for the people whose words they are: a paragraph.
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

/// A bound as a decimal number with so many digits behind the point, never below it.
pub(crate) fn decimals_up(x: f64, digits: usize) -> String {
    let nearest = format!("{x:.digits$}");
    match nearest.parse::<f64>() {
        Ok(shown) if shown < x => format!("{:.digits$}", shown + 0.1f64.powi(digits as i32)),
        _ => nearest,
    }
}

/// A bound with the digits that readers need, never below it: 2.563 for 2.562268875544929.
pub(crate) fn rounded_up(x: f64) -> String {
    let written = scientific_up(x, 4);
    match written.parse::<f64>() {
        Ok(shown) => shown.to_string(),
        Err(_) => written,
    }
}

/// A bound with so many digits and an exponent, never below it.
fn scientific_up(x: f64, digits: usize) -> String {
    let places = digits.saturating_sub(1);
    let nearest = format!("{x:.places$e}");
    let above = nearest.parse::<f64>().is_ok_and(|shown| shown >= x);
    let Some((mantissa, exponent)) = nearest.split_once('e').filter(|_| !above) else {
        return nearest;
    };
    let next = mantissa
        .replace('.', "")
        .parse::<u64>()
        .map(|last| last + 1);
    let (Ok(next), Ok(exponent)) = (next, exponent.parse::<i32>()) else {
        return nearest;
    };
    match format!("{next}e{}", exponent - places as i32).parse::<f64>() {
        Ok(shown) => format!("{shown:.places$e}"),
        Err(_) => nearest,
    }
}

/// A proved ε for one Tem on one vocabulary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Certificate {
    /// The ε that the mechanism was made with.
    pub nominal: f64,
    /// Its γ.
    pub gamma: f64,
    /// The certified ε per unit of distance.
    pub epsilon: f64,
    /// The pair of words whose loss it is.
    pub pair: (u32, u32),
    /// The output at which they lose it: the one of both that favours the first.
    pub output: u32,
    /// The fingerprint of the space: what the certificate holds for.
    pub vocabulary: u64,
    /// The fingerprint of the cover, 0 without one.
    pub cover: u64,
}

impl Certificate {
    /// How it was found.
    pub const METHOD: &'static str = "the supremum of the log-ratio per unit of distance over \
        all pairs of words and all outputs, computed from the law that is sampled";

    /// The same with a cover, where the supremum is looked for in the order of upper bounds.
    pub const COVER_METHOD: &'static str = "a bound of the log-ratio per unit of distance over \
        all pairs of words and all outputs, computed from the law that is sampled: the supremum \
        wherever the search of the pairs by their bounds came to an end";

    /// How it was found.
    pub fn method(&self) -> &'static str {
        match self.cover {
            0 => Self::METHOD,
            _ => Self::COVER_METHOD,
        }
    }

    /// The fingerprint of the space, as it is shown: 16 hexadecimal digits.
    pub fn vocabulary_name(&self) -> String {
        format!("{:016x}", self.vocabulary)
    }

    /// The fingerprint of the cover, as it is shown, if there is one.
    pub fn cover_name(&self) -> Option<String> {
        (self.cover != 0).then(|| format!("{:016x}", self.cover))
    }

    /// Looks its words up. A word that the vocabulary does not have is "?": a damaged file can name
    /// one.
    pub fn named(self, vocabulary: &Vocabulary) -> NamedCertificate {
        let word = |id: u32| match (id as usize) < vocabulary.len() {
            true => vocabulary.word(id).to_owned(),
            false => "?".to_owned(),
        };
        NamedCertificate {
            certificate: self,
            pair: (word(self.pair.0), word(self.pair.1)),
            output: word(self.output),
        }
    }

    /// Whether it is about the Tem of this ε and γ on the space of this fingerprint: the one place
    /// that decides. Another metric, other words or vectors, another cover, γ or ε are another mechanism.
    pub fn covers(
        &self,
        fingerprint: impl FnOnce() -> u64,
        epsilon: f64,
        gamma: f64,
        cover: u64,
    ) -> bool {
        (self.nominal, self.gamma, self.cover) == (epsilon, gamma, cover)
            && self.vocabulary == fingerprint()
    }
}

/// A certificate with its words, as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedCertificate {
    /// The certificate.
    pub certificate: Certificate,
    /// The pair of words whose loss it is.
    pub pair: (String, String),
    /// The output at which they lose it.
    pub output: String,
}

impl fmt::Display for NamedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (certificate, (a, b)) = (&self.certificate, &self.pair);
        write!(
            f,
            "ε = {} per unit of distance on vocabulary {}, taken to be public, where the theorem \
             gives {}: {}. {a:?} and {b:?} bind, at the output {:?}.",
            rounded_up(certificate.epsilon),
            certificate.vocabulary_name(),
            rounded_up(certificate.nominal),
            certificate.method(),
            self.output
        )
    }
}

/// How often common words come back as they were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unchanged {
    /// Mean of Pr\[M(w) = w\] over common words.
    pub mean: f64,
    /// The largest one found.
    pub worst: f64,
    /// Words measured: of the first 1,000 of the vocabulary.
    pub words: usize,
    /// Draws of each word that `mean` was counted in; 0 where it was computed from the law.
    pub draws: usize,
}

impl Unchanged {
    /// Above this mean a policy is warned of.
    pub const MUCH: f64 = 0.2;
    /// Above this mean it is refused where it is chosen, unless somebody insists.
    pub const MOST: f64 = 0.5;
    /// Above this probability a single word counts as released.
    pub const WORD: f64 = 0.9;

    /// A warning in plain words, where too many common words come back.
    pub fn warning(&self) -> Option<String> {
        let verdict = match self.mean {
            m if m > Self::MOST => "this protects hardly anything",
            m if m > Self::MUCH => "this protects little",
            _ => return None,
        };
        Some(format!(
            "at this ε {} of common words come back as they were: {verdict}",
            percent(self.mean)
        ))
    }
}

impl fmt::Display for Unchanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of common words come back as they were, the worst one found with probability {:.2}",
            percent(self.mean),
            // Never less than it is.
            (self.worst * 100.0 - 1e-9).ceil() / 100.0
        )
    }
}

/// A number of bits, and between what it lies where it is estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bits {
    /// Bits.
    pub value: f64,
    /// The lower end of the interval; the value itself where it is exact.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Words (of a capacity: outputs) that were drawn to estimate it; 0 where it is a sum over all.
    pub sampled: usize,
    /// Draws of every word that the law is estimated from; 0 where the law is exact.
    pub draws: usize,
}

impl Bits {
    pub(crate) fn exact(value: f64) -> Self {
        Bits {
            value,
            low: value,
            high: value,
            sampled: 0,
            draws: 0,
        }
    }
}

/// What a release tells of a word under the public prior [`PRIOR`](Self::PRIOR), or why no number is
/// known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WordBits {
    /// The mutual information of a word and its output, and the entropy of a word before its output is
    /// seen: no release tells more.
    Told {
        /// I(W;Y).
        told: Bits,
        /// H(W), in bits.
        entropy: f64,
    },
    /// Why there is no number.
    Unknown(&'static str),
}

impl WordBits {
    /// How often words are written, in the order of the vocabulary, its first word having rank 1.
    pub const PRIOR: &'static str = "1/(rank + 2.7)";
    /// Why noise mechanisms have no number.
    pub const NO_LAW: &'static str = "the law of this noise cannot be computed";
}

impl fmt::Display for WordBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (told, entropy) = match self {
            Self::Told { told, entropy } => (told, entropy),
            Self::Unknown(why) => {
                return write!(f, "how many bits a release tells is not known: {why}");
            }
        };
        // Never less than it is, nor more than there is to tell.
        write!(f, "a release tells {}", decimals_up(told.value, 2))?;
        if told.sampled > 0 {
            let (low, high) = (told.low, decimals_up(told.high, 2));
            write!(f, " ({low:.2} to {high}, estimated)")?;
        }
        write!(
            f,
            " of the {entropy:.2} bits of a word where words are written by {}, and of a text at most \
             so much for each of its words",
            Self::PRIOR
        )
    }
}

/// A share as people read it.
fn percent(share: f64) -> String {
    match 100.0 * share {
        p if p >= 99.5 && share < 1.0 => "over 99%".into(),
        p if p >= 10.0 => format!("{p:.0}%"),
        p if p >= 0.1 => format!("{p:.1}%"),
        0.0 => "0%".into(),
        _ => "under 0.1%".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn guarantee() -> Guarantee {
        Guarantee {
            mechanism: "Tem",
            metric: "euclidean",
            epsilon: 2.5,
            delta: 0.0,
            certificate: None,
            slack: 0.0,
            void: None,
            outputs: String::new(),
            theorem: "a theorem",
            arithmetic: "integers",
            unknown_bound: 3.0,
            unknown_is_random: false,
            scope: Guarantee::WORDS,
            exceptions: Vec::new(),
            unchanged: None,
            bits: None,
        }
    }

    #[test]
    fn bits_are_a_measure_beside_what_is_proved() {
        let told = Bits::exact(4.586);
        let bits = Some(WordBits::Told {
            told,
            entropy: 11.11,
        });
        let plain = guarantee().to_string();
        assert!(!plain.contains("bits of a word"));
        let shown = Guarantee {
            bits,
            ..guarantee()
        };
        let sentence = "a release tells 4.59 of the 11.11 bits of a word where words are written by \
                        1/(rank + 2.7)";
        let (printed, plainly) = (shown.to_string(), shown.for_users());
        assert!(printed.starts_with(&plain) && printed.contains(sentence));
        assert!(printed.contains(" Measured, not proved: a release"));
        assert!(plainly.contains(sentence));
        let estimated = WordBits::Told {
            told: Bits {
                low: 4.5,
                high: 4.601,
                sampled: 9,
                ..told
            },
            entropy: 11.11,
        };
        assert!(estimated.to_string().contains("(4.50 to 4.61, estimated)"));
        let lawless = WordBits::Unknown(WordBits::NO_LAW);
        assert!(lawless.to_string().contains("not known"));
    }

    #[test]
    fn a_certificate_covers_what_it_is_about_and_nothing_else() {
        let certificate = Certificate {
            nominal: 4.0,
            gamma: 1.5,
            epsilon: 3.0,
            pair: (0, 1),
            output: 0,
            vocabulary: 77,
            cover: 5,
        };
        assert!(certificate.covers(|| 77, 4.0, 1.5, 5));
        assert!(!certificate.covers(|| 78, 4.0, 1.5, 5));
        assert!(!certificate.covers(|| 77, 4.1, 1.5, 5));
        assert!(!certificate.covers(|| 77, 4.0, 1.6, 5));
        assert!(!certificate.covers(|| 77, 4.0, 1.5, 0));
        assert_eq!(certificate.method(), Certificate::COVER_METHOD);
        let plain = Certificate {
            cover: 0,
            ..certificate
        };
        assert_eq!(plain.method(), Certificate::METHOD);
        let shown = Guarantee {
            certificate: Some(plain.named(&Vocabulary::new(["tea".to_owned()]).unwrap())),
            ..guarantee()
        }
        .to_string();
        assert!(shown.contains("Certified: ε = 3 where the theorem gives 4"));
        assert!(shown.contains("000000000000004d"));
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
    fn shares_are_said_as_people_read_them() {
        let shown = [0.0, 0.0004, 0.033, 0.2, 0.57, 0.996, 1.0].map(percent);
        let expected = ["0%", "under 0.1%", "3.3%", "20%", "57%", "over 99%", "100%"];
        assert_eq!(shown, expected);
        let at = |mean| Unchanged {
            mean,
            worst: 0.3101,
            words: 1,
            draws: 0,
        };
        assert_eq!(at(0.2).warning(), None);
        assert!(
            at(0.21)
                .warning()
                .unwrap()
                .ends_with("this protects little")
        );
        assert!(
            at(0.51)
                .warning()
                .unwrap()
                .ends_with("this protects hardly anything")
        );
        assert!(
            at(0.1)
                .to_string()
                .ends_with("the worst one found with probability 0.32")
        );
    }

    #[test]
    fn printed_bounds_are_never_below_the_bound() {
        for (x, decimals, two_digits) in [
            (1.0004, "1.001", "1.1e0"),
            (10.7991, "10.800", "1.1e1"),
            (0.0004, "0.001", "4.0e-4"),
            (9.999, "9.999", "1.0e1"),
            (9.9991, "10.000", "1.0e1"),
            (9.91, "9.910", "1.0e1"),
            (0.25, "0.250", "2.5e-1"),
            (f64::INFINITY, "inf", "inf"),
        ] {
            assert_eq!(decimals_up(x, 3), decimals);
            assert_eq!(scientific_up(x, 2), two_digits);
        }
        for (x, shown) in [
            (2.562268875544929, "2.563"),
            (2.25, "2.25"),
            (3.0, "3"),
            (99.999, "100"),
            (0.000_123_41, "0.0001235"),
            (0.0, "0"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(rounded_up(x), shown);
        }
        for i in 1..20_000 {
            let x = (f64::from(i) * 0.001_234_567).exp();
            for shown in [decimals_up(x, 3), scientific_up(x, 2), rounded_up(x)] {
                assert!(shown.parse::<f64>().unwrap() >= x, "{shown} {x}");
            }
            let most = (x + 0.001) * (1.0 + 1e-12);
            assert!(decimals_up(x, 3).parse::<f64>().unwrap() <= most);
            assert!(scientific_up(x, 2).parse::<f64>().unwrap() < x * 1.11);
            assert!(rounded_up(x).parse::<f64>().unwrap() < x * 1.001_01);
        }
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
