//! Placeholder for machines without 8-bit matrix instructions.

use std::convert::Infallible;
use std::marker::PhantomData;

use super::{Isa, Line, QuerySide, Sides, WIDTH};

/// Empty: these machines have no tile registers.
#[derive(Default)]
pub(crate) struct Tiles;

impl Tiles {
    pub(crate) fn pack(&mut self, _: Isa, _: &[i8], _: usize, _: &[QuerySide]) {}

    pub(crate) fn begin(&self, _: Isa) -> Option<Matrices<'_>> {
        None
    }
}

/// Empty: what the queries of a tile have in common matters to AVX-512 alone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TileSide;

impl TileSide {
    pub(crate) fn new(_: &[QuerySide], _: f64, _: usize) -> Self {
        TileSide
    }
}

/// Has no values.
pub(crate) struct Matrices<'a>(Infallible, PhantomData<&'a Tiles>);

impl Matrices<'_> {
    pub(crate) fn panel(
        &self,
        _: &[Line],
        _: &[f32; WIDTH],
        _: Sides,
        _: &mut [QuerySide],
        _: impl FnMut(usize, u64, &[f32; WIDTH]) -> f32,
    ) {
        match self.0 {}
    }
}
