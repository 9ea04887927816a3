//! The 8-bit bounds with matrices (AMX): sixteen queries against a panel.
//!
//! A tile register holds sixteen rows of 64 bytes. One instruction adds to 16 × 16 sums the products of 64
//! coordinates of sixteen queries, a row each, and of sixteen words, four coordinates a row: the
//! layout that panels have for VNNI. The sums are whole numbers, so they are the same as
//! VNNI's.
//!
//! Matrices are multiplied by a unit of their own. While it has the sums of sixteen queries to make, the
//! vector units compare those of the sixteen before, a few after each step.

use std::arch::asm;
use std::arch::x86_64::*;

use super::{Isa, Line, QuerySide, Sides, WIDTH, report_avx512};

/// Coordinates that one instruction takes.
const STEP: usize = 64;

/// Queries in a tile.
const MOST: usize = 16;

/// Fewer queries than these are sooner done by VNNI.
const LEAST: usize = 3;

/// Queries as matrices; working memory.
#[derive(Default)]
pub(crate) struct Tiles {
    /// Of every sixteen queries the first 64 coordinates, then the next, filled with 0.
    queries: Vec<Line>,
    /// What each query's sums start from, sixteen times.
    starts: Vec<Line>,
    steps: usize,
    /// How many there are; 0 for too few.
    count: usize,
}

impl Tiles {
    /// Takes row-major `queries` of `width` coordinates.
    pub(crate) fn pack(&mut self, isa: Isa, queries: &[i8], width: usize, sides: &[QuerySide]) {
        self.count = sides.len();
        if !matches!(isa, Isa::Amx(_)) || self.count < LEAST {
            self.count = 0;
            return;
        }
        let tiles = self.count.div_ceil(MOST);
        self.steps = width.div_ceil(STEP);
        self.queries
            .resize(tiles * self.steps * MOST, Line([0; 64]));
        self.starts.resize(tiles * MOST, Line([0; 64]));
        for (i, (query, side)) in queries.chunks_exact(width).zip(sides).enumerate() {
            let (tile, row) = (i / MOST, i % MOST);
            for (step, part) in query.chunks(STEP).enumerate() {
                let line = &mut self.queries[(tile * self.steps + step) * MOST + row].0;
                line[..part.len()].copy_from_slice(bytemuck::cast_slice(part));
                line[part.len()..].fill(0);
            }
            let starts = self.starts[i].0.as_chunks_mut().0;
            starts.fill(side.start.to_ne_bytes());
        }
    }

    /// Brings this thread's tile registers into use, where the machine has them and there are queries
    /// enough.
    pub(crate) fn begin(&self, isa: Isa) -> Option<Matrices<'_>> {
        (matches!(isa, Isa::Amx(_)) && self.count > 0).then(|| {
            let mut shapes = Line([0; 64]);
            // Palette 1: eight registers, the bytes of a row of each from 16 on, the rows from 48 on.
            shapes.0[0] = 1;
            shapes.0[16..32].as_chunks_mut().0.fill(64u16.to_le_bytes());
            shapes.0[48..56].fill(16);
            // SAFETY: the machine has the instruction (`isa`), and 64 bytes are read. The compiler uses no
            // tile registers.
            unsafe {
                asm!("ldtilecfg [{}]", in(reg) &raw const shapes, options(nostack, readonly))
            };
            Matrices { tiles: self }
        })
    }
}

/// While it lives, tile registers are in use on this thread.
pub(crate) struct Matrices<'a> {
    tiles: &'a Tiles,
}

impl Drop for Matrices<'_> {
    fn drop(&mut self) {
        // SAFETY: there is one only where the machine has the instruction.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// The sums of sixteen queries and a panel.
#[repr(C, align(64))]
struct Sums([[i32; WIDTH]; MOST]);

impl Matrices<'_> {
    /// Bounds all queries against a panel: `found(query, hits, bounds)` is told the words, a bit each, whose bounds
    /// reach the query's threshold, and gives it a new one. `panel` goes on beyond the panel's
    /// end, see [`AFTER`](super::AFTER).
    #[inline]
    pub(crate) fn panel(
        &self,
        panel: &[Line],
        units: &[f32; WIDTH],
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
        let tiles = count.div_ceil(MOST);
        assert!(*steps > 0 && panel.len() >= STEP * steps && query_sides.len() == *count);
        assert!(queries.len() >= tiles * steps * MOST && starts.len() >= tiles * MOST);
        // SAFETY: `self` shows that the registers are in use, and where they are there is AVX-512
        // (`Amx`); the lengths are asserted.
        unsafe { self.panel_within(panel, units, sides, query_sides, found) }
    }

    /// # Safety
    /// As [`panel`](Self::panel) asserts.
    #[target_feature(enable = "avx512f")]
    unsafe fn panel_within(
        &self,
        panel: &[Line],
        units: &[f32; WIDTH],
        sides: Sides,
        query_sides: &mut [QuerySide],
        mut found: impl FnMut(usize, u64, &[f32; WIDTH]) -> f32,
    ) {
        let steps = self.tiles.steps;
        let words = Words::new(units, sides);
        let mut sums = [const { Sums([[0; WIDTH]; MOST]) }; 2];
        let mut scores = [0.0; WIDTH];
        // Queries whose sums are there, and have not been looked at.
        let mut before = 0..0;
        let mut first = 0;
        while first < query_sides.len() || !before.is_empty() {
            let now = first..query_sides.len().min(first + MOST);
            let [even, odd] = &mut sums;
            let (to, from) = match first / MOST % 2 {
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
                // SAFETY: sixteen rows of 64 bytes, 64 rows of a step of the panel and sixteen of one of the
                // queries are read; all of the sums is written.
                unsafe {
                    begin(self.tiles.starts.as_ptr().add(first));
                    for step in 0..steps {
                        multiply(
                            self.tiles.queries.as_ptr().add(first * steps + step * MOST),
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
            first += MOST;
        }
    }
}

/// Clears the sums of sixteen queries and a panel to what they start from.
///
/// # Safety
/// Tile registers are in use; sixteen lines can be read.
#[inline(always)]
unsafe fn begin(starts: *const Line) {
    // SAFETY: the caller's.
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
/// Tile registers are in use; of the queries sixteen lines can be read, of the panel 64.
#[inline(always)]
unsafe fn multiply(queries: *const Line, panel: *const Line) {
    // SAFETY: the caller's.
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

/// Takes the sums out of the registers.
///
/// # Safety
/// Tile registers are in use.
#[inline(always)]
unsafe fn store(sums: &mut Sums) {
    // SAFETY: the caller's; 16 × 4 rows of 64 bytes are what `Sums` has.
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

/// What is known of a panel's words, in registers. H is 1 wherever 8 bits serve.
struct Words {
    unit: [__m512; 4],
    half: [__m512; 4],
    error_share: [__m512; 4],
}

impl Words {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(units: &[f32; WIDTH], sides: Sides) -> Self {
        let load = |of: &[f32; WIDTH]| -> [__m512; 4] {
            // SAFETY: there are 64 numbers.
            std::array::from_fn(|v| unsafe { _mm512_loadu_ps(of.as_ptr().add(16 * v)) })
        };
        Words {
            unit: load(units),
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
        // None is NaN: half is none, and products are finite; or the query's hits are of no use.
        let [a, b, c, d] = self.bounds(sums, side);
        let best = _mm512_max_ps(_mm512_max_ps(a, b), _mm512_max_ps(c, d));
        _mm512_cmp_ps_mask::<_CMP_GE_OQ>(best, _mm512_set1_ps(side.threshold)) != 0
    }

    /// The words whose bounds reach the threshold, and all bounds.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn report(&self, sums: &[i32; WIDTH], side: &QuerySide, bounds: &mut [f32; WIDTH]) -> u64 {
        report_avx512(&self.bounds(sums, side), side.threshold, bounds)
    }
}
