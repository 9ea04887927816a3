//! The 8-bit bounds with matrix instructions (AMX): sixteen queries against a panel.
//!
//! A tile register holds sixteen rows of 64 bytes. One instruction adds 64 coordinates of products
//! to 16 × 16 sums: sixteen queries, one per row, times sixteen words, four coordinates per row.
//! Panels already have this layout for VNNI. The sums are integers, so they equal VNNI's.
//!
//! A separate unit multiplies matrices. While it computes the sums of sixteen queries, the vector
//! units compare those of the previous sixteen, a few after each step.

use std::arch::asm;
use std::arch::x86_64::*;

use super::{Isa, Line, QuerySide, Sides, WIDTH, report_avx512};

/// Coordinates that one instruction takes.
const STEP: usize = 64;

/// Queries in a tile.
const QUERIES_PER_TILE: usize = 16;

/// Fewer queries than this are faster with VNNI.
const MIN_QUERIES: usize = 3;

/// Queries as matrices; working memory.
#[derive(Default)]
pub(crate) struct Tiles {
    /// For each sixteen queries: their first 64 coordinates, then the next 64, padded with 0.
    queries: Vec<Line>,
    /// The initial sum of each query, sixteen times.
    starts: Vec<Line>,
    steps: usize,
    /// The number of queries; 0 if there are too few.
    count: usize,
}

impl Tiles {
    /// Takes row-major `queries` of `width` coordinates.
    pub(crate) fn pack(&mut self, isa: Isa, queries: &[i8], width: usize, sides: &[QuerySide]) {
        self.count = sides.len();
        if !matches!(isa, Isa::Amx(_)) || self.count < MIN_QUERIES {
            self.count = 0;
            return;
        }
        let tiles = self.count.div_ceil(QUERIES_PER_TILE);
        self.steps = width.div_ceil(STEP);
        self.queries
            .resize(tiles * self.steps * QUERIES_PER_TILE, Line([0; 64]));
        self.starts.resize(tiles * QUERIES_PER_TILE, Line([0; 64]));
        for (i, (query, side)) in queries.chunks_exact(width).zip(sides).enumerate() {
            let (tile, row) = (i / QUERIES_PER_TILE, i % QUERIES_PER_TILE);
            for (step, part) in query.chunks(STEP).enumerate() {
                let line = &mut self.queries[(tile * self.steps + step) * QUERIES_PER_TILE + row].0;
                line[..part.len()].copy_from_slice(bytemuck::cast_slice(part));
                line[part.len()..].fill(0);
            }
            let starts = self.starts[i].0.as_chunks_mut().0;
            starts.fill(side.start.to_ne_bytes());
        }
    }

    /// Enables this thread's tile registers, if the machine has them and there are enough queries.
    pub(crate) fn begin(&self, isa: Isa) -> Option<Matrices<'_>> {
        (matches!(isa, Isa::Amx(_)) && self.count > 0).then(|| {
            let mut shapes = Line([0; 64]);
            // Palette 1: the bytes per row of each of eight registers start at 16, the numbers of
            // rows at 48.
            shapes.0[0] = 1;
            shapes.0[16..32].as_chunks_mut().0.fill(64u16.to_le_bytes());
            shapes.0[48..56].fill(16);
            // SAFETY: the machine has the instruction (`isa`), and 64 bytes are read. The compiler
            // uses no tile registers.
            unsafe {
                asm!("ldtilecfg [{}]", in(reg) &raw const shapes, options(nostack, readonly))
            };
            Matrices { tiles: self }
        })
    }
}

/// While this lives, tile registers are enabled on this thread.
pub(crate) struct Matrices<'a> {
    tiles: &'a Tiles,
}

impl Drop for Matrices<'_> {
    fn drop(&mut self) {
        // SAFETY: a value exists only if the machine has the instruction.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// The sums of sixteen queries and a panel.
#[repr(C, align(64))]
struct Sums([[i32; WIDTH]; QUERIES_PER_TILE]);

impl Matrices<'_> {
    /// Bounds all queries against a panel. `found(query, hits, bounds)` receives one bit per word
    /// whose bound reaches the query's threshold, and returns a new threshold. `panel` extends
    /// beyond the panel's end, see [`AFTER`](super::AFTER).
    #[inline]
    pub(crate) fn panel(
        &self,
        panel: &[Line],
        sides: Sides,
        query_sides: &mut [QuerySide],
        found: impl FnMut(usize, u64, &[f32; WIDTH]) -> f32,
    ) {
        let Tiles {
            queries,
            starts,
            steps,
            count,
        } = self.tiles;
        let tiles = count.div_ceil(QUERIES_PER_TILE);
        assert!(*steps > 0 && panel.len() >= STEP * steps && query_sides.len() == *count);
        assert!(
            queries.len() >= tiles * steps * QUERIES_PER_TILE
                && starts.len() >= tiles * QUERIES_PER_TILE
        );
        // SAFETY: `self` shows that the registers are enabled, which implies AVX-512 (`Amx`); the
        // lengths are asserted.
        unsafe { self.panel_within(panel, sides, query_sides, found) }
    }

    /// # Safety
    /// The conditions that [`panel`](Self::panel) asserts.
    #[target_feature(enable = "avx512f")]
    unsafe fn panel_within(
        &self,
        panel: &[Line],
        sides: Sides,
        query_sides: &mut [QuerySide],
        mut found: impl FnMut(usize, u64, &[f32; WIDTH]) -> f32,
    ) {
        let steps = self.tiles.steps;
        let words = Words::new(sides);
        let mut sums = [const { Sums([[0; WIDTH]; QUERIES_PER_TILE]) }; 2];
        let mut scores = [0.0; WIDTH];
        // Queries whose sums are computed but not yet compared.
        let mut before = 0..0;
        let mut first = 0;
        while first < query_sides.len() || !before.is_empty() {
            let now = first..query_sides.len().min(first + QUERIES_PER_TILE);
            let [even, odd] = &mut sums;
            let (to, from) = match first / QUERIES_PER_TILE % 2 {
                0 => (even, &*odd),
                _ => (odd, &*even),
            };
            let mut beyond = 0u32;
            let mut row = 0;
            let mut compare = |rows: usize| {
                while row < rows {
                    let side = &query_sides[before.start + row];
                    beyond |= u32::from(words.any(&from.0[row], side)) << row;
                    row += 1;
                }
            };
            if !now.is_empty() {
                // SAFETY: reads sixteen rows of 64 bytes, 64 rows of a step of the panel and
                // sixteen of a step of the queries; writes all sums.
                unsafe {
                    begin(self.tiles.starts.as_ptr().add(first));
                    for step in 0..steps {
                        multiply(
                            self.tiles
                                .queries
                                .as_ptr()
                                .add(first * steps + step * QUERIES_PER_TILE),
                            panel.as_ptr().add(step * STEP),
                        );
                        compare((before.len() * (step + 1)).div_ceil(steps));
                    }
                    store(to);
                }
            } else {
                compare(before.len());
            }
            while beyond != 0 {
                let row = beyond.trailing_zeros() as usize;
                beyond &= beyond - 1;
                let side = &mut query_sides[before.start + row];
                let hits = words.report(&from.0[row], side, &mut scores);
                side.threshold = found(before.start + row, hits, &scores);
            }
            before = now;
            first += QUERIES_PER_TILE;
        }
    }
}

/// Sets the sums of sixteen queries and a panel to their initial values.
///
/// # Safety
/// Tile registers are enabled; sixteen lines can be read.
#[inline(always)]
unsafe fn begin(starts: *const Line) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        asm!(
            "tileloadd tmm0, [{starts} + {row}*1]",
            "tileloadd tmm1, [{starts} + {row}*1]",
            "tileloadd tmm2, [{starts} + {row}*1]",
            "tileloadd tmm3, [{starts} + {row}*1]",
            starts = in(reg) starts,
            row = in(reg) 64usize,
            options(nostack, readonly, preserves_flags),
        );
    }
}

/// Adds the products of 64 coordinates.
///
/// # Safety
/// Tile registers are enabled; sixteen lines of the queries and 64 of the panel can be read.
#[inline(always)]
unsafe fn multiply(queries: *const Line, panel: *const Line) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        asm!(
            "tileloadd tmm4, [{queries} + {row}*1]",
            "tileloadd tmm5, [{panel} + {words}*1]",
            "tileloadd tmm6, [{panel} + {words}*1 + 64]",
            "tileloadd tmm7, [{panel} + {words}*1 + 128]",
            "tdpbsud tmm0, tmm4, tmm5",
            "tileloadd tmm5, [{panel} + {words}*1 + 192]",
            "tdpbsud tmm1, tmm4, tmm6",
            "tdpbsud tmm2, tmm4, tmm7",
            "tdpbsud tmm3, tmm4, tmm5",
            queries = in(reg) queries,
            panel = in(reg) panel,
            // Bytes from row to row.
            row = in(reg) 64usize,
            words = in(reg) 256usize,
            options(nostack, readonly, preserves_flags),
        );
    }
}

/// Stores the sums from the registers.
///
/// # Safety
/// Tile registers are enabled.
#[inline(always)]
unsafe fn store(sums: &mut Sums) {
    // SAFETY: guaranteed by the caller; `Sums` has 16 × 4 rows of 64 bytes.
    unsafe {
        asm!(
            "tilestored [{sums} + {words}*1], tmm0",
            "tilestored [{sums} + {words}*1 + 64], tmm1",
            "tilestored [{sums} + {words}*1 + 128], tmm2",
            "tilestored [{sums} + {words}*1 + 192], tmm3",
            sums = in(reg) sums,
            words = in(reg) 256usize,
            options(nostack, preserves_flags),
        );
    }
}

/// The data of a panel's words, in registers. H is 1 whenever 8 bits are used.
struct Words {
    unit: [__m512; 4],
    half: [__m512; 4],
    error_share: [__m512; 4],
}

impl Words {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(sides: Sides) -> Self {
        let load = |of: &[f32; WIDTH]| -> [__m512; 4] {
            // SAFETY: there are 64 numbers.
            std::array::from_fn(|v| unsafe { _mm512_loadu_ps(of.as_ptr().add(16 * v)) })
        };
        Words {
            unit: load(sides.unit),
            half: load(sides.half),
            error_share: load(sides.error_share),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn bounds(&self, sums: &[i32; WIDTH], side: &QuerySide) -> [__m512; 4] {
        debug_assert_eq!(side.factor, 1.0);
        let scale = _mm512_set1_ps(side.scale);
        let error_scale = _mm512_set1_ps(side.error_scale);
        let mut bounds = [_mm512_setzero_ps(); 4];
        for (v, bound) in bounds.iter_mut().enumerate() {
            // SAFETY: there are 64 numbers.
            let sum = unsafe { _mm512_loadu_si512(sums.as_ptr().add(16 * v).cast()) };
            let product = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), self.unit[v]);
            let start = _mm512_fmsub_ps(self.error_share[v], error_scale, self.half[v]);
            *bound = _mm512_fmadd_ps(product, scale, start);
        }
        bounds
    }

    /// Whether a word's bound reaches the threshold.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn any(&self, sums: &[i32; WIDTH], side: &QuerySide) -> bool {
        // No sum is NaN: `half` is never NaN and products are finite. Otherwise the query's hits
        // are not used.
        let [a, b, c, d] = self.bounds(sums, side);
        let best = _mm512_max_ps(_mm512_max_ps(a, b), _mm512_max_ps(c, d));
        _mm512_cmp_ps_mask::<_CMP_GE_OQ>(best, _mm512_set1_ps(side.threshold)) != 0
    }

    /// Returns the words whose bounds reach the threshold; stores all bounds.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn report(&self, sums: &[i32; WIDTH], side: &QuerySide, bounds: &mut [f32; WIDTH]) -> u64 {
        report_avx512(&self.bounds(sums, side), side.threshold, bounds)
    }
}
