//! Replaces hnsw_rs in a build without the feature `hnsw`: refuses to build and to search.

use super::{HnswParameters, Lists, Rows};
use crate::error::{Error, Result};
use crate::parallel::Control;

fn refusal() -> Error {
    let expected = "\"exact\": this build of fastdx has no graph search (feature `hnsw`)";
    Error::parameter("search", expected, "\"hnsw\"")
}

pub(super) fn require() -> Result<()> {
    Err(refusal())
}

pub(super) fn build(_: &Rows, _: HnswParameters, _: &Control) -> Result<Lists> {
    Err(refusal())
}

/// Has no values.
#[derive(Debug)]
pub(crate) enum Searcher {}

impl Searcher {
    pub(super) fn new(_: Rows, _: HnswParameters, _: &Lists) -> Result<Self> {
        Err(refusal())
    }

    pub(super) fn rows(&self) -> &Rows {
        match *self {}
    }

    pub(super) fn entry(&self) -> u32 {
        match *self {}
    }

    pub(super) fn candidates(&self, _: &[u8], _: usize, _: impl FnMut(u32)) {
        match *self {}
    }
}
