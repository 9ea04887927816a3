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
//! | ICDM'19: hyperbolic noise | [`mechanism::hyperbolic_laplace`], [`hyperbolic`] |
//! | Xu et al. 2020: Mahalanobis noise | [`mechanism::mahalanobis`] |
//!
//! | idea | here |
//! |---|---|
//! | words and their ids | [`vocabulary`] |
//! | a metric on words | [`space`]; on vectors: [`metric`]; in a hierarchy: [`graph`] |
//! | vectors for words, and their files | [`embedding`], [`embedding::format`] |
//! | the nearest word of a point | [`search`] |
//! | noise, then the nearest word | [`mechanism::noisy_nearest`] |
//! | a file with what was computed for its words | [`index`] |
//! | the words that an output stands for | [`cover`] |
//! | exact neighbour lists | [`neighbors`] |
//! | Earth Mover's distances, exactly | [`transport`] |
//! | the ε that a Tem really has | [`audit`] |
//! | what ε does to words | [`calibration`] |
//! | a law as integers, drawn exactly | [`law`] |
//! | what a release tells, exactly | [`channel`] |
//! | which words follow which | [`prior`] |
//! | what is proved | [`guarantee`] |
//! | text in, text out | [`text`] |
//! | JSON records, copied but for their texts | [`records`] |
//! | a mechanism as data, from which every face builds it | [`spec`] |
//! | numbers and dates by their own metrics | [`numbers`] |
//! | keys, streams, exact uniform integers | [`random`] |
//! | threads, Ctrl-C, progress | [`parallel`] |
//!
//! ```
//! use std::sync::Arc;
//!
//! use fastdx::text::{Policy, TextPrivatizer};
//! use fastdx::{Embedding, Randomness, Tem};
//!
//! let embedding = Embedding::default_english()?;
//! let tem = Tem::new(Arc::new(embedding), 3.0, Default::default(), Randomness::new(None))?;
//! let private = TextPrivatizer::new(Arc::new(tem), Policy::default())?;
//! println!("{}", private.privatize("I would like a cup of coffee, please.")?);
//! println!("{}", private.guarantee());
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

mod arithmetic;
pub mod audit;
mod buffer;
pub mod calibration;
pub mod channel;
pub mod cover;
pub mod embedding;
mod error;
mod file;
mod fork;
pub mod graph;
pub mod guarantee;
mod gzip;
pub mod hyperbolic;
pub mod index;
pub mod law;
pub mod mechanism;
pub mod metric;
mod names;
pub mod neighbors;
pub mod noise;
pub mod numbers;
pub mod parallel;
mod prefetch;
pub mod prior;
#[cfg(feature = "python")]
mod python;
pub mod random;
pub mod records;
pub mod search;
mod simd;
pub mod space;
pub mod spec;
#[cfg(test)]
mod testing;
pub mod text;
pub mod transport;
pub mod vocabulary;
mod word_cache;

pub use cover::Cover;
pub use embedding::Embedding;
pub use error::{Error, Hidden, Result};
pub use graph::WordGraph;
pub use guarantee::Guarantee;
pub use mechanism::finite_law::FiniteLaw;
pub use mechanism::hyperbolic_laplace::HyperbolicLaplace;
pub use mechanism::multivariate_laplace::MultivariateLaplace;
pub use mechanism::neighbor_response::NeighborResponse;
pub use mechanism::tem::Tem;
pub use mechanism::{Mechanism, WordMechanism};
pub use metric::Metric;
pub use neighbors::NeighborLists;
pub use parallel::Control;
pub use prior::NgramPrior;
pub use random::Randomness;
pub use space::{MetricSpace, WordMetric};
pub use spec::Spec;
pub use vocabulary::Vocabulary;

/// Checks at compile time that types shared between threads are `Send` and `Sync`.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Embedding>();
    shared::<WordGraph>();
    shared::<Cover>();
    shared::<Tem>();
    shared::<MultivariateLaplace>();
    shared::<FiniteLaw>();
    shared::<NeighborResponse>();
    shared::<HyperbolicLaplace>();
    shared::<text::TextPrivatizer>();
};
