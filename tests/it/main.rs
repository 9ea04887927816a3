//! Tests of the crate's public interface: one program, so that the crate is linked once.

mod common;
mod covers;
mod files;
mod graph;
#[cfg_attr(not(feature = "hnsw"), path = "no_hnsw.rs")]
mod hnsw;
mod hyperbolic;
mod language;
mod laws;
mod lists;
mod spec;
mod text;
mod transport;
