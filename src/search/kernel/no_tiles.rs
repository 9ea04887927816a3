//! Machines without matrices of 8-bit integers.

use std::convert::Infallible;
use std::marker::PhantomData;

use super::{Hits, Isa, Line, QuerySide, Scores, Sides, WIDTH};

/// Nothing: no machine of this kind has them.
#[derive(Default)]
pub(crate) struct Tiles;

impl Tiles {
    pub(crate) fn pack(&mut self, _: Isa, _: &[i8], _: usize, _: &[QuerySide]) {}

    pub(crate) fn begin(&self, _: Isa) -> Option<Matrices<'_>> {
        None
    }
}

/// There are none.
pub(crate) struct Matrices<'a>(Infallible, PhantomData<&'a Tiles>);

impl Matrices<'_> {
    pub(crate) fn serve(&self, _: usize) -> bool {
        match self.0 {}
    }

    pub(crate) fn bounds(
        &self,
        _: usize,
        _: &[Line],
        _: &[f32; WIDTH],
        _: Sides,
        _: &[QuerySide],
        _: &mut Scores,
    ) -> Hits {
        match self.0 {}
    }
}
