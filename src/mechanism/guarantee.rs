//! What a mechanism proves, as data that can be printed, compared and defended.

use std::fmt;

use crate::audit::Certificate;

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
    pub certificate: Option<Certificate>,
    /// What the arithmetic of the sampler adds to the log-ratio, at most.
    pub slack: f64,
    /// Why it holds, in one line with its source.
    pub theorem: &'static str,
    /// How exactly the implementation samples the proved law.
    pub arithmetic: &'static str,
    /// The log-ratio between an unknown word that is replaced at random and any word of the
    /// vocabulary; infinite where no bound is proved.
    pub unknown_bound: f64,
    /// What is not covered, one sentence each; filled in by the handling of text.
    pub exceptions: Vec<String>,
}

impl Guarantee {
    /// How it composes: over a text the log-ratios of the words add up.
    pub const SCOPE: &'static str = "word; a text by the sum over its words";
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Guarantee {
            mechanism,
            metric,
            epsilon,
            ..
        } = self;
        write!(
            f,
            "{mechanism} protects every word of its vocabulary with metric differential privacy \
             of ε = {epsilon} per unit of {metric} distance d: whoever sees a released word y \
             can prefer one original word w to another w' by a likelihood ratio \
             Pr[y|w] / Pr[y|w'] of at most exp({epsilon}·d(w,w'))"
        )?;
        if self.slack.is_infinite() {
            f.write_str(", were it drawn exactly, which it is not")?;
        } else if self.slack > 0.0 {
            write!(f, ", up to exp({:.1e}) of arithmetic", self.slack)?;
        }
        if self.delta > 0.0 {
            write!(f, ", except with probability δ = {:e}", self.delta)?;
        }
        write!(
            f,
            ". For two texts of equal length the exponents of their words add up. Why: {}. \
             Arithmetic: {}.",
            self.theorem, self.arithmetic
        )?;
        if let Some(certificate) = &self.certificate {
            write!(
                f,
                " Certified: ε = {} where the theorem gives {}, {}; vocabulary {:016x}, taken to \
                 be public.",
                certificate.epsilon,
                certificate.nominal,
                Certificate::METHOD,
                certificate.vocabulary
            )?;
        }
        for exception in &self.exceptions {
            write!(f, " Not covered: {exception}.")?;
        }
        Ok(())
    }
}
