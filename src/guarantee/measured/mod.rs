//! Measurements, as opposed to proofs: words that come back unchanged, and bits.

pub mod calibration;

use std::fmt;

use super::decimals_up;
use super::proved::rounded::decimals_down;

/// How often common words come back unchanged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unchanged {
    /// Mean of Pr\[M(w) = w\] over common words.
    pub mean: f64,
    /// The largest one found.
    pub worst: f64,
    /// Words measured: of the first 1,000 of the vocabulary.
    pub words: usize,
    /// Draws per word behind `mean`; 0 if it was computed from the law.
    pub draws: usize,
}

impl Unchanged {
    /// Above this mean a policy is warned of.
    pub const WARNED_MEAN: f64 = 0.2;
    /// Above this mean a policy is refused where it is chosen, unless the user insists.
    pub const REFUSED_MEAN: f64 = 0.5;
    /// Above this probability a single word counts as released.
    pub const RELEASED_WORD: f64 = 0.9;

    /// A warning in plain words, where too many common words come back.
    pub fn warning(&self) -> Option<String> {
        let verdict = match self.mean {
            m if m > Self::REFUSED_MEAN => "this protects hardly anything",
            m if m > Self::WARNED_MEAN => "this protects little",
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

/// A number of bits, with an interval if it is estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bits {
    /// Bits.
    pub value: f64,
    /// The lower end of the interval; the value itself if it is exact.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Number of words (for a capacity: outputs) behind the estimate; 0 for a sum over all.
    pub sampled: usize,
}

impl Bits {
    pub(crate) fn exact(value: f64) -> Self {
        Bits {
            value,
            low: value,
            high: value,
            sampled: 0,
        }
    }
}

/// The bits that a release reveals about a word under the public prior [`PRIOR`](Self::PRIOR), or
/// the reason why no number is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WordBits {
    /// The mutual information of a word and its output, and the entropy of a word before its output is
    /// seen: no release tells more.
    Known {
        /// I(W;Y).
        bits: Bits,
        /// H(W), in bits.
        entropy: f64,
    },
    /// Why there is no number.
    Unknown(&'static str),
}

impl WordBits {
    /// The frequencies of words in the order of the vocabulary; its first word has rank 1.
    pub const PRIOR: &'static str = "1/(rank + 2.7)";
    /// Why noise mechanisms have no number.
    pub const NO_LAW: &'static str = "the law of this noise cannot be computed";
    /// Why mechanisms that draw in order have no number.
    pub const NO_ONE_LAW: &'static str = "a word's law depends on what was released before it: \
        language=\"frequency\" has one law of a word";
}

impl fmt::Display for WordBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bits, entropy) = match self {
            Self::Known { bits, entropy } => (bits, entropy),
            Self::Unknown(why) => {
                return write!(f, "how many bits a release tells is not known: {why}");
            }
        };
        // Rounded up, but at most the entropy.
        write!(f, "a release tells {}", decimals_up(bits.value, 2))?;
        if bits.sampled > 0 {
            let (low, high) = (decimals_down(bits.low, 2), decimals_up(bits.high, 2));
            let words = grouped(bits.sampled);
            write!(f, " ({low} to {high}, estimated from {words} words)")?;
        }
        write!(
            f,
            " of the {entropy:.2} bits of a word where words are written by {}, and of a text at most \
             so much for each of its words, not counting numbers and dates that have laws of their own",
            Self::PRIOR
        )?;
        match bits.sampled {
            0 => f.write_str(" (exact: a sum over all words)"),
            _ => Ok(()),
        }
    }
}

/// A number with commas between thousands.
pub(crate) fn grouped(n: usize) -> String {
    match n {
        0..1000 => n.to_string(),
        _ => format!("{},{:03}", grouped(n / 1000), n % 1000),
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
    use super::super::Guarantee;
    use super::super::tests::guarantee;
    use super::*;

    #[test]
    fn bits_are_a_measure_beside_what_is_proved() {
        let exact = Bits::exact(4.586);
        let bits = Some(WordBits::Known {
            bits: exact,
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
        assert!(printed.ends_with("laws of their own (exact: a sum over all words)."));
        let estimated = WordBits::Known {
            bits: Bits {
                low: 4.509,
                high: 4.601,
                sampled: 4096,
                ..exact
            },
            entropy: 11.11,
        };
        let estimated = estimated.to_string();
        assert!(estimated.contains("(4.50 to 4.61, estimated from 4,096 words)"));
        assert!(!estimated.contains("exact"));
        assert_eq!(grouped(1_002_003), "1,002,003");
        let lawless = WordBits::Unknown(WordBits::NO_LAW);
        assert!(lawless.to_string().contains("not known"));
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
}
