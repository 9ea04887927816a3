//! The ε that a mechanism is proved to have on its words, computed from its law.

pub mod audit;
pub(crate) mod certificate;
mod in_metric;
pub(crate) mod rounded;

pub use in_metric::in_metric;
