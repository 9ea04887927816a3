//! Metric differential privacy (d_χ-privacy) for text, with proofs that survive contact with
//! the code.
//!
//! A word mechanism M replaces each word by another. For all words w, w' and outputs y,
//! Pr\[M(w)=y\] ≤ exp(ε·d(w,w'))·Pr\[M(w')=y\], where d is a metric on the words.
//!
//! | paper | here |
//! |---|---|
//! | TEM'21: truncated exponential mechanism | [`mechanism::tem`] |
//! | WSDM'20: MADLIB, multivariate Laplace | [`mechanism::multivariate_laplace`], [`noise`] |
//! | POST'19: Earth Mover's privacy | [`transport::bags`] |
//! | ICDM'19: hyperbolic noise | [`mechanism::hyperbolic_laplace`], [`noise::hyperbolic`] |
//! | Xu et al. 2020: Mahalanobis noise | [`mechanism::mahalanobis`] |
//!
//! The rooms, from the ground up; each stands on those above it:
//!
//! | room | idea | here |
//! |---|---|---|
//! | [`support`] | keys, streams, exact uniform integers | [`support::random`] |
//! | | threads, Ctrl-C, progress | [`support::parallel`] |
//! | [`distance`] | a metric on vectors | [`distance::metric`] |
//! | | the nearest word of a point | [`distance::search`] |
//! | | exact neighbour lists | [`distance::neighbors`] |
//! | [`words`] | words and their ids | [`words::vocabulary`] |
//! | | a metric on words; in a hierarchy | [`words::space`], [`words::graph`] |
//! | | vectors for words, and their files | [`words::embedding`], [`words::embedding::format`] |
//! | | a file with what was computed for its words | [`words::index`] |
//! | | the words of a text | [`words::tokenize`] |
//! | [`language`] | which words follow which: public models | [`NgramPrior`] |
//! | [`cover`] | the words that an output stands for | [`Cover`] |
//! | [`law`] | a law as integers, drawn exactly | [`law::SLACK`] |
//! | [`mechanism`] | a word in, a word out | [`Tem`], [`FiniteLaw`] |
//! | | Tem behind what was released before | [`mechanism::contextual`] |
//! | | noise, then the nearest word | [`mechanism::noisy_nearest`] |
//! | [`guarantee`] | what is proved | [`Guarantee`] |
//! | | the ε that a Tem really has | [`guarantee::proved::audit`] |
//! | | what ε does to words | [`guarantee::measured::calibration`] |
//! | [`numbers`] | numbers and dates by their own metrics | [`numbers::Number`], [`numbers::Date`] |
//! | [`text`] | text in, text out | [`text::TextPrivatizer`] |
//! | | JSON records, copied but for their texts | [`text::records`] |
//! | [`transport`] | Earth Mover's distances, exactly | [`transport::bags`] |
//! | [`channel`] | what a release tells, exactly | [`channel::Channel`] |
//! | [`policy`] | a mechanism as data, from which every face builds it | [`Spec`] |
//!
//! ```
//! use std::sync::Arc;
//!
//! use fastdx::policy::{Parts, Spaces};
//! use fastdx::words::index::Index;
//! use fastdx::{Control, Embedding, Spec};
//!
//! // Without lists, the first occurrence of a word takes longer than later ones: its list is made.
//! let embedding = Embedding::default_english()?.build_lists(64, 1 << 30, &Control::new())?;
//! let index = Some(Index::Embedding(Arc::new(embedding)));
//! let parts = Parts { index, ..Parts::default() };
//! let private = Spec::recommended().build(parts, &mut Spaces::default(), &Control::new())?.text;
//! // Threads share it.
//! println!("{}", private.privatize("I would like a cup of coffee, please.")?);
//! println!("{} {}", private.bound("coffee", "tea"), private.guarantee());
//! # Ok::<(), fastdx::Error>(())
//! ```

// A library neither panics on purpose nor prints; tests may do both.
#![cfg_attr(
    not(test),
    warn(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::print_stdout,
        clippy::print_stderr
    )
)]

pub mod channel;
pub mod cover;
pub mod distance;
pub mod guarantee;
pub mod language;
pub mod law;
pub mod mechanism;
pub mod noise;
pub mod numbers;
pub mod policy;
#[cfg(feature = "python")]
mod python;
pub mod support;
#[cfg(test)]
mod testing;
pub mod text;
pub mod transport;
pub mod words;

pub use cover::Cover;
pub use distance::metric::Metric;
pub use distance::neighbors::NeighborLists;
pub use guarantee::Guarantee;
pub use language::NgramPrior;
pub use mechanism::Mechanism;
pub use mechanism::finite_law::FiniteLaw;
pub use mechanism::hyperbolic_laplace::HyperbolicLaplace;
pub use mechanism::multivariate_laplace::MultivariateLaplace;
pub use mechanism::neighbor_response::NeighborResponse;
pub use mechanism::tem::Tem;
pub use policy::Spec;
pub use support::error::{Error, Hidden, Result};
pub use support::parallel::Control;
pub use support::random::Randomness;
pub use words::embedding::Embedding;
pub use words::graph::WordGraph;
pub use words::space::MetricSpace;
pub use words::vocabulary::Vocabulary;

/// Checks at compile time that types shared between threads are `Send` and `Sync`.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Embedding>();
    shared::<WordGraph>();
    shared::<Cover>();
    shared::<Tem>();
    shared::<mechanism::contextual::ContextualTem>();
    shared::<MultivariateLaplace>();
    shared::<FiniteLaw>();
    shared::<NeighborResponse>();
    shared::<HyperbolicLaplace>();
    shared::<text::TextPrivatizer>();
};
