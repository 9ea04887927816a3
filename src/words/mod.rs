//! The words, their ids, and where they lie: vectors, graphs, and the files of both.

pub(crate) mod claims;
pub mod embedding;
pub mod graph;
pub mod index;
pub mod space;
pub mod tokenize;
pub mod vocabulary;
