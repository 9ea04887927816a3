//! What is proved of a mechanism: the ε that it has on its words, computed from its law.

pub mod audit;
pub(crate) mod certificate;
pub(crate) mod rounded;
