//! The matrix of costs: given, or the distances between words.

use super::kernel::LANES;
use crate::error::{Error, Result};
use crate::space::MetricSpace;

/// Costs of every row and column, rows padded with +∞ to whole lanes.
#[derive(Clone, Debug, Default)]
pub struct CostMatrix {
    rows: usize,
    columns: usize,
    stride: usize,
    values: Vec<f64>,
}

impl CostMatrix {
    /// Costs in row-major order.
    ///
    /// # Errors
    /// [`Error::Parameter`] for no row or column, [`Error::Shape`] where `costs` has another
    /// size, [`Error::Parameter`] for a cost that is not finite.
    pub fn new(costs: &[f64], rows: usize, columns: usize) -> Result<Self> {
        if rows == 0 || columns == 0 {
            let got = format!("{rows} × {columns}");
            return Err(Error::parameter(
                "cost",
                "of at least one row and column",
                got,
            ));
        }
        if Some(costs.len()) != rows.checked_mul(columns) {
            return Err(Error::Shape {
                what: "cost",
                expected: format!("({rows}, {columns})"),
                got: format!("({},)", costs.len()),
            });
        }
        // Sums along a path must stay finite.
        if let Some(at) = costs.iter().position(|c| c.is_nan() || c.abs() > 1e290) {
            let (i, j) = (at / columns, at % columns);
            let got = format!("{} at ({i}, {j})", costs[at]);
            return Err(Error::parameter("cost", "finite, at most 1e290", got));
        }
        let mut matrix = CostMatrix::default();
        matrix.shape(rows, columns);
        for (row, costs) in matrix
            .values
            .chunks_exact_mut(matrix.stride)
            .zip(costs.chunks_exact(columns))
        {
            row[..columns].copy_from_slice(costs);
        }
        Ok(matrix)
    }

    /// Distances between words: those of `a` are the rows.
    pub fn between(space: &dyn MetricSpace, a: &[u32], b: &[u32]) -> Self {
        let mut matrix = CostMatrix::default();
        matrix.fill(space, a, b);
        matrix
    }

    /// [`between`](Self::between) in this matrix's memory.
    pub(super) fn fill(&mut self, space: &dyn MetricSpace, a: &[u32], b: &[u32]) {
        self.shape(a.len(), b.len());
        space.block(a, b, &mut self.values, self.stride);
    }

    /// Costs from a function that fills row i, in this matrix's memory.
    pub(super) fn fill_with(
        &mut self,
        rows: usize,
        columns: usize,
        row: impl Fn(usize, &mut [f64]),
    ) {
        self.shape(rows, columns);
        for (i, out) in self.values.chunks_exact_mut(self.stride).enumerate() {
            row(i, &mut out[..columns]);
        }
    }

    fn shape(&mut self, rows: usize, columns: usize) {
        (self.rows, self.columns) = (rows, columns);
        let stride = columns.next_multiple_of(LANES);
        if self.stride != stride || self.values.len() != rows * stride {
            self.stride = stride;
            self.values.resize(rows * stride, 0.0);
        }
        for row in self.values.chunks_exact_mut(stride) {
            row[columns..].fill(f64::INFINITY);
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// A row with its padding.
    #[inline]
    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.stride..][..self.stride]
    }

    /// One cost.
    #[inline]
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.stride + j]
    }

    /// The largest absolute cost.
    pub(super) fn largest(&self) -> f64 {
        let rows = (0..self.rows).flat_map(|i| &self.row(i)[..self.columns]);
        rows.fold(0.0, |largest, c| f64::max(largest, c.abs()))
    }
}
