//! Errors, files, threads and keys: every room above stands on them.

pub(crate) mod adjacency;
pub(crate) mod arithmetic;
pub(crate) mod buffer;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod fork;
pub(crate) mod names;
pub mod parallel;
pub(crate) mod prefetch;
pub mod random;
pub(crate) mod simd;
pub(crate) mod table;
