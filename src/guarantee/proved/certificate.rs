//! A proved ε below the one that a theorem gives.

use std::fmt;

use super::rounded::rounded_up;
use crate::words::vocabulary::Vocabulary;

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
    /// The method of computation.
    pub const METHOD: &'static str = "the supremum of the log-ratio per unit of distance over \
        all pairs of words and all outputs, computed from the law that is sampled";

    /// The method with a cover: the supremum is searched in the order of upper bounds.
    pub const COVER_METHOD: &'static str = "a bound of the log-ratio per unit of distance over \
        all pairs of words and all outputs, computed from the law that is sampled: the supremum \
        wherever the search of the pairs by their bounds came to an end";

    /// The method of computation.
    pub fn method(&self) -> &'static str {
        match self.cover {
            0 => Self::METHOD,
            _ => Self::COVER_METHOD,
        }
    }

    /// The fingerprint of the space in its shown form: 16 hexadecimal digits.
    pub fn vocabulary_name(&self) -> String {
        format!("{:016x}", self.vocabulary)
    }

    /// The fingerprint of the cover in its shown form, if there is one.
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

    /// Whether it concerns the Tem of this ε and γ on the space of this fingerprint; no other code
    /// decides this. Another metric, other words or vectors, another cover, γ or ε are another
    /// mechanism.
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

/// A certificate with its words, in its shown form.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Guarantee;
    use crate::guarantee::tests::guarantee;

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
        let named = plain.named(&Vocabulary::new(["tea".to_owned()]).unwrap());
        // A damaged file names a word that is not there.
        assert_eq!(named.pair, ("tea".to_owned(), "?".to_owned()));
        let shown = Guarantee {
            certificate: Some(named),
            ..guarantee()
        }
        .to_string();
        assert!(shown.contains("Certified: ε = 3 where the theorem gives 4"));
        assert!(shown.contains("000000000000004d"));
    }
}
