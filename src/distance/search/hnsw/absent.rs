//! Replaces hnsw_rs in a build without the feature `hnsw`: refuses to build.

use super::{HnswParameters, Rows};
use crate::support::error::{Error, Result};
use crate::support::parallel::Control;

fn refusal() -> Error {
    let expected = "\"exact\": this build of fastdx has no graph search (feature `hnsw`)";
    Error::parameter("search", expected, "\"hnsw\"")
}

pub(super) fn require() -> Result<()> {
    Err(refusal())
}

/// Has no values.
#[derive(Debug)]
pub(super) enum Graph {}

impl Graph {
    pub(super) fn build(_: &Rows, _: HnswParameters, _: &Control) -> Result<Self> {
        Err(refusal())
    }

    pub(super) fn unreachable(&self) -> &[u32] {
        match *self {}
    }

    pub(super) fn search(&self, _: &[u8], _: usize) -> std::iter::Empty<u32> {
        match *self {}
    }
}
