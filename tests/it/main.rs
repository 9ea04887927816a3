//! Tests of the crate's public interface: one program, so that the crate is linked once.

mod common;
mod covers;
mod files;
mod graph;
mod graph_files;
#[cfg(feature = "hnsw")]
mod hnsw;
mod hyperbolic;
mod laws;
mod lists;
mod spec;
mod text;
mod transport;
