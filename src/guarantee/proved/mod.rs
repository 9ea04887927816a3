//! The ε that a mechanism is proved to have on its words, computed from its law.

pub mod audit;
pub(crate) mod certificate;
pub(crate) mod rounded;
