//! The 8-bit bounds with matrices (AMX): sixteen queries against a panel.
//!
//! A tile register holds sixteen rows of 64 bytes. One instruction adds to 16 × 16 sums the products of 64
//! coordinates of sixteen queries, a row each, and of sixteen words, four coordinates a row: the
//! layout that panels have for VNNI. The sums are whole numbers, so they are the same as
//! VNNI's. They are first compared by a screen that leaves out the words' shares of the error; the
//! bounds themselves are computed for the queries that have a word beyond it, which after the
//! first panels are few.

use std::arch::asm;
use std::arch::x86_64::*;

use super::{Hits, Isa, Line, MOST, QuerySide, Scores, Sides, WIDTH, report_avx512, start_avx512};

/// Coordinates that one instruction takes.
const STEP: usize = 64;

/// Fewer queries than these are sooner done by VNNI.
const LEAST: usize = 3;

/// Whether the processor has the instructions and the system lets this process use them: Linux wants to be
/// asked, since a thread that uses them has 8 KiB more to be saved.
pub(super) fn allowed() -> bool {
    const TILE: u32 = 1 << 24;
    const INT8: u32 = 1 << 25;
    let leaf = __cpuid_count(7, 0);
    leaf.edx & (TILE | INT8) == TILE | INT8 && granted()
}

#[cfg(target_os = "linux")]
fn granted() -> bool {
    use std::ffi::{c_int, c_long};
    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }
    const ARCH_PRCTL: c_long = 158;
    const ARCH_REQ_XCOMP_PERM: c_int = 0x1023;
    const TILE_DATA: c_long = 18;
    // SAFETY: the call takes two numbers and touches no memory; a system that does not know it
    // returns an error.
    unsafe { syscall(ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn granted() -> bool {
    false
}

/// Queries as matrices; working memory.
#[derive(Default)]
pub(crate) struct Tiles {
    /// Of every sixteen queries the first 64 coordinates, then the next, filled with 0.
    queries: Vec<Line>,
    /// What each query's sums start from, sixteen times.
    starts: Vec<Line>,
    steps: usize,
}

impl Tiles {
    /// Takes row-major `queries` of `width` coordinates.
    pub(crate) fn pack(&mut self, isa: Isa, queries: &[i8], width: usize, sides: &[QuerySide]) {
        let tiles = sides.len().div_ceil(MOST);
        if isa != Isa::Amx || sides.len() < LEAST {
            return;
        }
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

    /// Brings this thread's tile registers into use, where the machine has them.
    pub(crate) fn begin(&self, isa: Isa) -> Option<Matrices<'_>> {
        (isa == Isa::Amx).then(|| {
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
    /// Whether so many queries are enough.
    pub(crate) fn serve(&self, queries: usize) -> bool {
        queries >= LEAST
    }

    /// As [`super::bounds_int8`] for the queries from `first` on, a multiple of [`MOST`]; `panel` goes on
    /// beyond the panel's end, see [`AFTER`](super::AFTER).
    #[inline]
    pub(crate) fn bounds(
        &self,
        first: usize,
        panel: &[Line],
        units: &[f32; WIDTH],
        sides: Sides,
        query_sides: &[QuerySide],
        scores: &mut Scores,
    ) -> Hits {
        let Tiles {
            queries,
            starts,
            steps,
        } = self.tiles;
        let queries = &queries[first * steps..][..MOST * steps];
        let starts = &starts[first..][..MOST];
        assert!(panel.len() >= STEP * steps && *steps > 0 && query_sides.len() <= MOST);
        let mut sums = std::mem::MaybeUninit::<Sums>::uninit();
        // SAFETY: `self` shows that the registers are in use. Rows of 64 bytes are read: of `starts` sixteen, of
        // `queries` sixteen a step, of `panel` 64 a step (asserted); all of `sums` is written.
        let sums = unsafe {
            products(
                queries.as_ptr(),
                panel.as_ptr(),
                starts.as_ptr(),
                sums.as_mut_ptr(),
                *steps,
            );
            sums.assume_init_ref()
        };
        // SAFETY: where there are matrices there is AVX-512 (`Isa::available`).
        unsafe { report(sums, units, sides, query_sides, scores) }
    }
}

/// # Safety
/// As [`Matrices::bounds`] has it.
#[inline(always)]
unsafe fn products(
    queries: *const Line,
    panel: *const Line,
    starts: *const Line,
    sums: *mut Sums,
    steps: usize,
) {
    // SAFETY: the caller's.
    unsafe {
        asm!(
            "tileloadd tmm0, [{starts} + {row}*1]",
            "tileloadd tmm1, [{starts} + {row}*1]",
            "tileloadd tmm2, [{starts} + {row}*1]",
            "tileloadd tmm3, [{starts} + {row}*1]",
            "2:",
            "tileloadd tmm4, [{queries} + {row}*1]",
            "tileloadd tmm5, [{panel} + {words}*1]",
            "tileloadd tmm6, [{panel} + {words}*1 + 64]",
            "tileloadd tmm7, [{panel} + {words}*1 + 128]",
            "tdpbsud tmm0, tmm4, tmm5",
            "tileloadd tmm5, [{panel} + {words}*1 + 192]",
            "tdpbsud tmm1, tmm4, tmm6",
            "tdpbsud tmm2, tmm4, tmm7",
            "tdpbsud tmm3, tmm4, tmm5",
            "add {queries}, 1024",
            "add {panel}, 4096",
            "dec {steps}",
            "jnz 2b",
            "tilestored [{sums} + {words}*1], tmm0",
            "tilestored [{sums} + {words}*1 + 64], tmm1",
            "tilestored [{sums} + {words}*1 + 128], tmm2",
            "tilestored [{sums} + {words}*1 + 192], tmm3",
            queries = inout(reg) queries => _,
            panel = inout(reg) panel => _,
            steps = inout(reg) steps => _,
            starts = in(reg) starts,
            sums = in(reg) sums,
            // Bytes from row to row.
            row = in(reg) 64usize,
            words = in(reg) 256usize,
            options(nostack),
        );
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn report(
    sums: &Sums,
    units: &[f32; WIDTH],
    sides: Sides,
    query_sides: &[QuerySide],
    scores: &mut Scores,
) -> Hits {
    let (mut unit, mut half) = ([_mm512_setzero_ps(); 4], [_mm512_setzero_ps(); 4]);
    for v in 0..4 {
        // SAFETY: each of them holds 64 numbers.
        unsafe {
            unit[v] = _mm512_loadu_ps(units.as_ptr().add(16 * v));
            half[v] = _mm512_loadu_ps(sides.half.as_ptr().add(16 * v));
        }
    }
    let mut hits = [0; MOST];
    for (q, side) in query_sides.iter().enumerate() {
        let scale = _mm512_set1_ps(side.scale);
        debug_assert_eq!(side.factor, 1.0, "H is 1 wherever 8 bits serve");
        let mut products = [_mm512_setzero_ps(); 4];
        let mut score = products;
        for v in 0..4 {
            // SAFETY: a row holds 64 numbers.
            let sum = unsafe { _mm512_loadu_si512(sums.0[q].as_ptr().add(16 * v).cast()) };
            products[v] = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), unit[v]);
            score[v] = _mm512_fmsub_ps(products[v], scale, half[v]);
        }
        // No NaN: half is none, and products are finite.
        let [a, b, c, d] = score;
        let best = _mm512_max_ps(_mm512_max_ps(a, b), _mm512_max_ps(c, d));
        let beyond = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(best, _mm512_set1_ps(side.screen));
        if beyond == 0 {
            continue;
        }
        for v in 0..4 {
            let start = start_avx512(sides, v, side);
            score[v] = _mm512_fmadd_ps(products[v], scale, start);
        }
        hits[q] = report_avx512(&score, side.threshold, &mut scores[q]);
    }
    hits
}
