//! The matrix of costs: given, or computed as distances between words.

use super::kernel::Number;
use crate::support::error::{Error, Result};
use crate::words::space::MetricSpace;

/// Costs of every row and column.
#[derive(Clone, Debug, Default)]
pub struct CostMatrix(pub(super) Costs<f64>);

impl CostMatrix {
    /// Creates costs from row-major order.
    ///
    /// # Errors
    /// [`Error::Parameter`] for no row or column or a cost that is not finite; [`Error::Shape`] if
    /// `costs` has another size.
    pub fn new(costs: &[f64], rows: usize, columns: usize) -> Result<Self> {
        if rows == 0 || columns == 0 {
            let expected = "of at least one row and column";
            let got = format!("{rows} × {columns}");
            return Err(Error::parameter("cost", expected, got));
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
        let mut matrix = Costs::default();
        let given = |i: usize| &costs[i * columns..][..columns];
        matrix.fill_with(rows, columns, |i, row| row.copy_from_slice(given(i)));
        Ok(CostMatrix(matrix))
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.0.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.0.columns
    }
}

/// Rows of costs, padded with +∞ to whole vectors.
#[derive(Clone, Debug, Default)]
pub(super) struct Costs<T> {
    rows: usize,
    columns: usize,
    stride: usize,
    values: Vec<T>,
}

impl<T: Number> Costs<T> {
    /// Fills row i by `row(i, …)`, in this matrix's memory.
    pub(super) fn fill_with(&mut self, rows: usize, columns: usize, row: impl Fn(usize, &mut [T])) {
        self.shape(rows, columns);
        for (i, out) in self.values.chunks_exact_mut(self.stride).enumerate() {
            row(i, &mut out[..columns]);
        }
    }

    fn shape(&mut self, rows: usize, columns: usize) {
        self.sized(rows, columns);
        for row in self.values.chunks_exact_mut(self.stride) {
            row[self.columns..].fill(T::INFINITY);
        }
    }

    /// Resizes the memory; its contents are arbitrary.
    fn sized(&mut self, rows: usize, columns: usize) {
        (self.rows, self.columns) = (rows, columns);
        self.stride = columns.next_multiple_of(T::LANES);
        self.values.resize(rows * self.stride, T::default());
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// A row with its padding.
    #[inline]
    pub(super) fn row(&self, i: usize) -> &[T] {
        &self.values[i * self.stride..][..self.stride]
    }

    /// One cost.
    #[inline]
    pub(super) fn at(&self, i: usize, j: usize) -> T {
        self.values[i * self.stride + j]
    }
}

impl Costs<f64> {
    /// Fills in the distances between words, reusing this matrix's memory: `a` are the rows.
    pub(super) fn fill(&mut self, space: &dyn MetricSpace, a: &[u32], b: &[u32]) {
        self.shape(a.len(), b.len());
        space.block(a, b, &mut self.values, self.stride);
    }

    /// The largest absolute cost.
    pub(super) fn largest(&self) -> f64 {
        let rows = (0..self.rows).flat_map(|i| &self.row(i)[..self.columns]);
        rows.fold(0.0, |largest, c| f64::max(largest, c.abs()))
    }
}

impl Costs<f32> {
    /// Fills in bounded distances between words, if the space has them. Returns their largest
    /// relative error.
    pub(super) fn fill_bounded(
        &mut self,
        space: &dyn MetricSpace,
        a: &[u32],
        b: &[u32],
    ) -> Option<f64> {
        self.sized(a.len(), b.len());
        // The space writes the padding here.
        space.bounded_distances(a, b, &mut self.values, self.stride)
    }

    /// Removes a cost: sets it to +∞.
    pub(super) fn remove(&mut self, i: usize, j: usize) {
        self.values[i * self.stride + j] = f32::INFINITY;
    }
}
