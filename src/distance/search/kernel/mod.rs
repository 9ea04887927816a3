//! The innermost loops of the exact search: bounds for a tile of queries against a panel of words.
//!
//! On a processor with matrix instructions (AMX), [`tiles`] takes sixteen queries at a time.
//!
//! A panel holds [`WIDTH`] words, coordinate by coordinate, so one vector load serves sixteen
//! words. Results stay in registers. They are stored only for a query that has a result at or above
//! its threshold, which is rare after the first panels.

/// Words in a panel.
pub(crate) const WIDTH: usize = 64;

/// Queries in a full tile: 6 × 4 accumulators, 4 loads and a broadcast use 29 of the 32 AVX-512
/// registers.
pub(crate) const TILE: usize = 6;

/// Results of one tile; valid for the words whose bound reaches the query's threshold.
pub(crate) type Scores = [[f32; WIDTH]; TILE];

/// For every query of a tile: one bit per word whose bound reaches the query's threshold.
pub(crate) type Hits = [u64; TILE];

/// 64 bytes, aligned to a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u8; 64]);

// SAFETY: bytes without padding, any of which may be 0.
unsafe impl bytemuck::Zeroable for Line {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Line {}

/// Lines that may be read beyond the last 8-bit panel: [`tiles`] reads 64 coordinates at a time.
pub(crate) const AFTER: usize = 64;

/// The machine's vector instructions, detected once per search structure. Each variant holds the
/// proof that the machine has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isa {
    /// `Avx512Vnni` with 8-bit matrices (AMX), if the system lets programs use them.
    #[cfg(target_arch = "x86_64")]
    Amx(Amx),
    /// AVX-512 with 8-bit products (VNNI).
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni(Avx512Vnni),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512Foundation),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2Fma),
    /// NEON with 8-bit products (dotprod); other code is the same as `Portable`.
    #[cfg(target_arch = "aarch64")]
    NeonDotprod(NeonDotprod),
    /// Plain Rust for the compiler to vectorise; on aarch64 it uses NEON, which is always present.
    Portable,
}

/// The byte that stands for 0 in an 8-bit panel: VNNI takes the words as unsigned integers.
pub(crate) const INT8_ZERO: u8 = if cfg!(target_arch = "x86_64") {
    0x80
} else {
    0
};

impl Isa {
    pub(crate) fn detect() -> Self {
        Self::available()[0]
    }

    /// All variants that this machine supports, best first.
    pub(crate) fn available() -> Vec<Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(Amx::detect().map(Isa::Amx));
            all.extend(Avx512Vnni::detect().map(Isa::Avx512Vnni));
            all.extend(Avx512Foundation::detect().map(Isa::Avx512));
            all.extend(Avx2Fma::detect().map(Isa::Avx2));
        }
        #[cfg(target_arch = "aarch64")]
        all.extend(NeonDotprod::detect().map(Isa::NeonDotprod));
        all.push(Isa::Portable);
        all
    }

    /// Whether [`bounds_int8`] can run.
    pub(crate) fn has_int8(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return matches!(self, Isa::Amx(_) | Isa::Avx512Vnni(_));
        #[cfg(target_arch = "aarch64")]
        return matches!(self, Isa::NeonDotprod(_));
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        false
    }

    /// Whether [`bounds_int8`] rules panels out sooner if the queries of a tile share a unit.
    pub(crate) fn shares_units(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return matches!(self, Isa::Avx512Vnni(_));
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// Whether [`bounds_int16`] can run, and nothing better.
    pub(crate) fn has_int16(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return matches!(self, Isa::Avx2(_));
        #[cfg(not(target_arch = "x86_64"))]
        false
    }
}

/// How a query's coordinate is combined with a word's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    /// Adds x·w.
    Product,
    /// Subtracts |x - w|.
    Difference,
    /// Takes the largest |x - w|, negated.
    LargestDifference,
}

/// The data of a panel's words besides coordinates.
#[derive(Clone, Copy)]
pub(crate) struct Sides<'a> {
    pub(crate) half: &'a [f32; WIDTH],
    pub(crate) error_share: &'a [f32; WIDTH],
}

/// The data of a query: bound = score + error_scale·(word's error_share), score = combination -
/// factor·half.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QuerySide {
    pub(crate) factor: f32,
    pub(crate) error_scale: f32,
    /// Bounds below this are not reported.
    pub(crate) threshold: f32,
    /// For quantised queries: the unit, and -[`INT8_ZERO`] times the sum of the integers.
    pub(crate) scale: f32,
    pub(crate) start: i32,
}

/// Computes bounds for `Q` queries (row-major, `n` wide) against a panel. `scores[q]` is filled if
/// query q has a bound at or above its threshold.
#[inline]
pub(crate) fn bounds<const Q: usize>(
    isa: Isa,
    combine: Combine,
    panel: &[f32],
    sides: Sides,
    queries: &[f32],
    query_sides: &[QuerySide],
    scores: &mut Scores,
) -> Hits {
    let n = panel.len() / WIDTH;
    assert!(queries.len() == n * Q && query_sides.len() == Q && Q <= TILE);
    match (isa, combine) {
        #[cfg(target_arch = "x86_64")]
        (Isa::Amx(_) | Isa::Avx512(_) | Isa::Avx512Vnni(_), Combine::Product) => {
            // SAFETY: the variants hold the proof of their features; lengths were checked.
            unsafe { products_avx512::<Q>(panel, sides, queries, query_sides, scores) }
        }
        #[cfg(target_arch = "x86_64")]
        (Isa::Amx(_) | Isa::Avx512(_) | Isa::Avx512Vnni(_), _) => {
            // SAFETY: as above.
            unsafe { plain_avx512::<Q>(combine, panel, sides, queries, query_sides, scores) }
        }
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx2(_), _) => {
            // SAFETY: as above.
            unsafe { plain_avx2::<Q>(combine, panel, sides, queries, query_sides, scores) }
        }
        // With or without NEON.
        _ => {
            const FMA: bool = cfg!(target_arch = "aarch64");
            plain::<Q, 16, FMA>(combine, panel, sides, queries, query_sides, scores)
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod tiles;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_tiles.rs"]
mod tiles;
#[cfg(target_arch = "x86_64")]
mod vnni;
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use tiles::TileSide;
pub(crate) use tiles::Tiles;
#[cfg(target_arch = "x86_64")]
pub(crate) use vnni::TileSide;

#[cfg(target_arch = "aarch64")]
use crate::support::simd::NeonDotprod;
#[cfg(target_arch = "x86_64")]
use crate::support::simd::{Amx, Avx2Fma, Avx512Foundation, Avx512Vnni};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// The initial scores of a quarter of the words: error_scale·error_share - factor·half.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn start_avx512(sides: Sides, v: usize, side: &QuerySide) -> __m512 {
    let at = 16 * v..16 * v + 16;
    // SAFETY: sixteen numbers of each.
    let (half, error_share) = unsafe {
        (
            _mm512_loadu_ps(sides.half[at.clone()].as_ptr()),
            _mm512_loadu_ps(sides.error_share[at].as_ptr()),
        )
    };
    let minus = _mm512_set1_ps(-side.factor);
    _mm512_fmadd_ps(
        half,
        minus,
        _mm512_mul_ps(error_share, _mm512_set1_ps(side.error_scale)),
    )
}

/// Returns the scores that reach the threshold as bits; stores all scores if one does.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn report_avx512(row: &[__m512; 4], threshold: f32, out: &mut [f32; WIDTH]) -> u64 {
    let threshold = _mm512_set1_ps(threshold);
    let mut hits = 0;
    for (v, &score) in row.iter().enumerate() {
        hits |= u64::from(_mm512_cmp_ps_mask::<_CMP_GE_OQ>(score, threshold)) << (16 * v);
    }
    if hits != 0 {
        for (v, &score) in row.iter().enumerate() {
            // SAFETY: out holds 64 numbers.
            unsafe { _mm512_storeu_ps(out.as_mut_ptr().add(16 * v), score) };
        }
    }
    hits
}

/// Computes [`bounds`] by [`Combine::Product`].
///
/// # Safety
/// The queries hold `Q` times as many numbers as one word of the panel.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn products_avx512<const Q: usize>(
    panel: &[f32],
    sides: Sides,
    queries: &[f32],
    query_sides: &[QuerySide],
    scores: &mut Scores,
) -> Hits {
    let n = panel.len() / WIDTH;
    let mut acc = [[_mm512_setzero_ps(); 4]; Q];
    for (row, side) in acc.iter_mut().zip(query_sides) {
        for (v, a) in row.iter_mut().enumerate() {
            *a = start_avx512(sides, v, side);
        }
    }
    for d in 0..n {
        let mut words = [_mm512_setzero_ps(); 4];
        for (v, w) in words.iter_mut().enumerate() {
            // SAFETY: the panel holds n × 64 numbers.
            *w = unsafe { _mm512_loadu_ps(panel.as_ptr().add(d * WIDTH + 16 * v)) };
        }
        for (q, row) in acc.iter_mut().enumerate() {
            // SAFETY: the queries hold Q × n numbers (the caller's).
            let x = _mm512_set1_ps(unsafe { *queries.get_unchecked(q * n + d) });
            for v in 0..4 {
                row[v] = _mm512_fmadd_ps(x, words[v], row[v]);
            }
        }
    }
    let mut hits = [0; TILE];
    for q in 0..Q {
        hits[q] = report_avx512(&acc[q], query_sides[q].threshold, &mut scores[q]);
    }
    hits
}

/// The units of a panel's 8-bit words.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    pub(crate) unit: [f32; WIDTH],
    /// Their reciprocals, and the largest of these, for AVX-512.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    per_unit: [f32; WIDTH],
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    most_per_unit: f32,
}

impl Units {
    pub(crate) fn new(unit: [f32; WIDTH]) -> Self {
        let per_unit = unit.map(f32::recip);
        Units {
            unit,
            per_unit,
            most_per_unit: per_unit.into_iter().fold(0.0, f32::max),
        }
    }
}

/// Computes [`bounds`] with 8-bit integers. `panel` holds the words' integers, with 0 stored as
/// [`INT8_ZERO`], four coordinates of sixteen words together. `queries` holds 4·`groups` integers
/// per query. A score is integer product · word's unit · query's unit.
#[inline]
pub(crate) fn bounds_int8<const Q: usize>(
    isa: Isa,
    panel: &[Line],
    units: &Units,
    sides: Sides,
    queries: &[i8],
    (tile, query_sides): (&TileSide, &[QuerySide]),
    scores: &mut Scores,
) -> Hits {
    #[cfg(not(target_arch = "x86_64"))]
    let _ = tile;
    let panel: &[u8] = bytemuck::cast_slice(panel);
    let n = panel.len() / WIDTH;
    assert!(n.is_multiple_of(4) && queries.len() == n * Q && query_sides.len() == Q && Q <= TILE);
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the variants hold the proof of their features; lengths were checked.
        Isa::Amx(_) | Isa::Avx512Vnni(_) => unsafe {
            vnni::int8::<Q>(panel, units, sides, queries, (tile, query_sides), scores)
        },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        Isa::NeonDotprod(_) => unsafe {
            neon::int8::<Q>(panel, &units.unit, sides, queries, query_sides, scores)
        },
        // Not called if `has_int8` is false.
        _ => [0; TILE],
    }
}

/// Words of a 16-bit block: as many as two AVX2 registers hold with two coordinates each.
const INT16_BLOCK: usize = 16;

/// The place of a coordinate of a word in a 16-bit panel of `n` coordinates, an even number. A panel
/// holds four blocks of sixteen words, and a block two coordinates of each word together.
#[inline]
pub(crate) fn int16_place(n: usize, w: usize, d: usize) -> usize {
    w / INT16_BLOCK * INT16_BLOCK * n + d / 2 * 2 * INT16_BLOCK + w % INT16_BLOCK * 2 + d % 2
}

/// Computes [`bounds`] with 16-bit integers, laid out by [`int16_place`]. A score is integer product
/// · word's unit · query's unit. No sum of products exceeds 32 bits.
#[inline]
pub(crate) fn bounds_int16<const Q: usize>(
    isa: Isa,
    panel: &[i16],
    units: &[f32; WIDTH],
    sides: Sides,
    queries: &[i16],
    query_sides: &[QuerySide],
    scores: &mut Scores,
) -> Hits {
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (units, sides, scores);
    let n = panel.len() / WIDTH;
    assert!(n.is_multiple_of(2) && queries.len() == n * Q && query_sides.len() == Q && Q <= TILE);
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the variant holds the proof of its features; lengths were checked.
        Isa::Avx2(_) => unsafe {
            // Registers for sums: 8, 8, 12, 8, 10, 12 of the sixteen.
            match Q {
                1 => int16_avx2::<Q, 8>(panel, units, sides, queries, query_sides, scores),
                2 | 3 => int16_avx2::<Q, 4>(panel, units, sides, queries, query_sides, scores),
                _ => int16_avx2::<Q, 2>(panel, units, sides, queries, query_sides, scores),
            }
        },
        // Not called if `has_int16` is false.
        _ => [0; TILE],
    }
}

/// See [`bounds_int16`]; `V` registers of eight words at a time.
///
/// # Safety
/// The queries hold `Q` times as many integers as one word of the panel, an even number.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn int16_avx2<const Q: usize, const V: usize>(
    panel: &[i16],
    units: &[f32; WIDTH],
    sides: Sides,
    queries: &[i16],
    query_sides: &[QuerySide],
    scores: &mut Scores,
) -> Hits {
    let n = panel.len() / WIDTH;
    let mut hits = [0; TILE];
    for first in (0..WIDTH / 8).step_by(V) {
        let mut acc = [[_mm256_setzero_si256(); V]; Q];
        for pair in 0..n / 2 {
            let mut words = [_mm256_setzero_si256(); V];
            for (v, w) in words.iter_mut().enumerate() {
                let at = int16_place(n, 8 * (first + v), 2 * pair);
                // SAFETY: the panel holds n × 64 numbers.
                *w = unsafe { _mm256_loadu_si256(panel.as_ptr().add(at).cast()) };
            }
            for (q, row) in acc.iter_mut().enumerate() {
                // SAFETY: the queries hold Q × n numbers (the caller's).
                let two = unsafe {
                    let at = queries.as_ptr().add(q * n + 2 * pair);
                    at.cast::<i32>().read_unaligned()
                };
                let x = _mm256_set1_epi32(two);
                for v in 0..V {
                    row[v] = _mm256_add_epi32(row[v], _mm256_madd_epi16(words[v], x));
                }
            }
        }
        for (q, (sums, side)) in acc.iter().zip(query_sides).enumerate() {
            let scale = _mm256_set1_ps(side.scale);
            let threshold = _mm256_set1_ps(side.threshold);
            for (v, &sum) in sums.iter().enumerate() {
                let at = 8 * (first + v);
                // SAFETY: each holds 64 numbers.
                let (unit, half, error_share) = unsafe {
                    (
                        _mm256_loadu_ps(units.as_ptr().add(at)),
                        _mm256_loadu_ps(sides.half.as_ptr().add(at)),
                        _mm256_loadu_ps(sides.error_share.as_ptr().add(at)),
                    )
                };
                let error = _mm256_mul_ps(error_share, _mm256_set1_ps(side.error_scale));
                let start = _mm256_fmadd_ps(half, _mm256_set1_ps(-side.factor), error);
                let product = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), unit);
                let score = _mm256_fmadd_ps(product, scale, start);
                let reached = _mm256_cmp_ps::<_CMP_GE_OQ>(score, threshold);
                let reached = _mm256_movemask_ps(reached).cast_unsigned();
                if reached != 0 {
                    hits[q] |= u64::from(reached) << at;
                    // SAFETY: a row holds 64 numbers.
                    unsafe { _mm256_storeu_ps(scores[q].as_mut_ptr().add(at), score) };
                }
            }
        }
    }
    hits
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn plain_avx512<const Q: usize>(
    combine: Combine,
    panel: &[f32],
    sides: Sides,
    queries: &[f32],
    query_sides: &[QuerySide],
    scores: &mut Scores,
) -> Hits {
    plain::<Q, 32, true>(combine, panel, sides, queries, query_sides, scores)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn plain_avx2<const Q: usize>(
    combine: Combine,
    panel: &[f32],
    sides: Sides,
    queries: &[f32],
    query_sides: &[QuerySide],
    scores: &mut Scores,
) -> Hits {
    // Registers for sums: 8, 8, 12, 8, 10, 12 of the sixteen. Fewer would wait for each other.
    match Q {
        1 => plain::<Q, 64, true>(combine, panel, sides, queries, query_sides, scores),
        2 | 3 => plain::<Q, 32, true>(combine, panel, sides, queries, query_sides, scores),
        _ => plain::<Q, 16, true>(combine, panel, sides, queries, query_sides, scores),
    }
}

#[inline(always)]
fn plain<const Q: usize, const L: usize, const FMA: bool>(
    combine: Combine,
    panel: &[f32],
    sides: Sides,
    queries: &[f32],
    query_sides: &[QuerySide],
    scores: &mut Scores,
) -> Hits {
    // One loop per case, so that the choice stands outside the loop.
    match combine {
        Combine::Product => rows::<Q, L>(panel, queries, scores, |a, x, w| {
            if FMA { x.mul_add(w, a) } else { x * w + a }
        }),
        Combine::Difference => {
            rows::<Q, L>(panel, queries, scores, |a, x, w| a - (x - w).abs());
        }
        Combine::LargestDifference => {
            rows::<Q, L>(panel, queries, scores, |a, x, w| a.min(-(x - w).abs()));
        }
    }
    let mut hits = [0; TILE];
    for (q, side) in query_sides.iter().enumerate() {
        for (w, score) in scores[q].iter_mut().enumerate() {
            *score += side.error_scale * sides.error_share[w] - side.factor * sides.half[w];
            hits[q] |= u64::from(*score >= side.threshold) << w;
        }
    }
    hits
}

#[inline(always)]
fn rows<const Q: usize, const L: usize>(
    panel: &[f32],
    queries: &[f32],
    scores: &mut Scores,
    combine: impl Fn(f32, f32, f32) -> f32,
) {
    let n = panel.len() / WIDTH;
    // Slices of equal length, so that nothing is checked within the loop.
    let queries: [&[f32]; Q] = std::array::from_fn(|q| &queries[q * n..][..n]);
    let coordinates = &panel.as_chunks::<WIDTH>().0[..n];
    for block in (0..WIDTH).step_by(L) {
        let mut acc = [[0.0f32; L]; Q];
        for d in 0..n {
            let words = &coordinates[d][block..block + L];
            for (row, query) in acc.iter_mut().zip(&queries) {
                let x = query[d];
                for l in 0..L {
                    row[l] = combine(row[l], x, words[l]);
                }
            }
        }
        for (row, out) in acc.iter().zip(scores.iter_mut()) {
            out[block..block + L].copy_from_slice(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::ChaCha12Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// The 8-bit bounds of every machine equal those of plain arithmetic, bit for bit.
    #[test]
    fn int8_bounds() {
        let mut rng = ChaCha12Rng::seed_from_u64(20);
        let shapes = [
            (4, 6),
            (8, 16),
            (60, 3),
            (64, 35),
            (52, 600),
            (300, 37),
            (9000, 6),
        ];
        for ((n, queries_in_all), alike) in shapes.into_iter().flat_map(|s| [(s, true), (s, false)])
        {
            let words: Vec<i8> = (0..n * WIDTH).map(|_| rng.random()).collect();
            let queries: Vec<i8> = (0..n * queries_in_all).map(|_| rng.random()).collect();
            let units = Units::new(std::array::from_fn(|_| rng.random()));
            let mut half: [f32; WIDTH] = std::array::from_fn(|_| rng.random());
            half[WIDTH - 1] = f32::INFINITY;
            let error_share: [f32; WIDTH] = std::array::from_fn(|_| rng.random());
            let sides = Sides {
                half: &half,
                error_share: &error_share,
            };
            // Bytes behind the panel belong to no word.
            let mut panel = vec![Line([77; 64]); n + AFTER];
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut panel);
            for (at, &x) in words.iter().enumerate() {
                let (w, d) = (at / n, at % n);
                bytes[d / 4 * 4 * WIDTH + 4 * w + d % 4] = x.cast_unsigned() ^ INT8_ZERO;
            }
            let of = |q: usize| &queries[q * n..][..n];
            let (spread, common, error) = (2000.0 * n as f32, rng.random(), rng.random::<f32>());
            let mut query_sides: Vec<QuerySide> = (0..queries_in_all)
                .map(|q| QuerySide {
                    factor: 1.0,
                    threshold: rng.random_range(-spread..2.0 * spread),
                    error_scale: spread * if alike { error } else { rng.random() },
                    scale: if alike { common } else { rng.random() },
                    start: -i32::from(INT8_ZERO) * of(q).iter().map(|&x| i32::from(x)).sum::<i32>(),
                })
                .collect();
            let expected = |side: &QuerySide, q: usize, w: usize, tiles: bool| {
                let pairs = words[w * n..][..n].iter().zip(of(q));
                let sum: i32 = pairs.map(|(&x, &y)| i32::from(x) * i32::from(y)).sum();
                let start = match tiles {
                    true => error_share[w].mul_add(side.error_scale, -half[w]),
                    false => half[w].mul_add(-side.factor, error_share[w] * side.error_scale),
                };
                (sum as f32 * units.unit[w]).mul_add(side.scale, start)
            };
            // The largest bound just reaches the threshold, or just fails.
            for (q, side) in query_sides
                .iter_mut()
                .enumerate()
                .filter(|(q, _)| q % 3 > 0)
            {
                let each = (0..WIDTH).map(|w| expected(side, q, w, false));
                let most = each.fold(f32::NEG_INFINITY, f32::max);
                side.threshold = if q % 3 == 1 { most } else { most.next_up() };
            }
            let check = |isa: Isa, q: usize, tiles: bool, hits: u64, scores: &[f32; WIDTH]| {
                let mut reached = 0;
                for (w, got) in scores.iter().enumerate() {
                    let score = expected(&query_sides[q], q, w, tiles);
                    reached |= u64::from(score >= query_sides[q].threshold) << w;
                    if hits != 0 {
                        assert_eq!(got.to_bits(), score.to_bits(), "{isa:?}");
                    }
                }
                assert_eq!(hits, reached, "{isa:?}, n = {n}");
            };
            for isa in Isa::available() {
                if !isa.has_int8() {
                    continue;
                }
                let mut scores = [[0.0; WIDTH]; TILE];
                for first in (0..queries_in_all.saturating_sub(TILE - 1)).step_by(TILE) {
                    let (at, some) = (first * n..(first + TILE) * n, first..first + TILE);
                    let (queries, sides_of) = (&queries[at], &query_sides[some]);
                    let panel = &panel[..n];
                    let hits = bounds_int8::<TILE>(
                        isa,
                        panel,
                        &units,
                        sides,
                        queries,
                        (&TileSide::new(sides_of, 1.0, n), sides_of),
                        &mut scores,
                    );
                    for q in 0..TILE {
                        check(isa, first + q, false, hits[q], &scores[q]);
                    }
                }
                let mut tiles = Tiles::default();
                tiles.pack(isa, &queries, n, &query_sides);
                let Some(matrices) = tiles.begin(isa) else {
                    continue;
                };
                let mut found = vec![(0, [0.0; WIDTH]); queries_in_all];
                let mut sides_of = query_sides.clone();
                matrices.panel(
                    &panel,
                    &units.unit,
                    sides,
                    &mut sides_of,
                    |q, hits, scores| {
                        found[q] = (hits, *scores);
                        query_sides[q].threshold
                    },
                );
                for (q, (hits, scores)) in found.iter().enumerate() {
                    check(isa, q, true, *hits, scores);
                }
            }
        }
    }
    /// The 16-bit bounds of every machine equal those of plain arithmetic, bit for bit.
    #[test]
    fn int16_bounds() {
        let mut rng = ChaCha12Rng::seed_from_u64(21);
        for isa in Isa::available() {
            if isa.has_int16() {
                for (n, largest) in [(2, i16::MAX), (60, 5982), (300, 2675)] {
                    check_int16::<1>(isa, n, largest, &mut rng);
                    check_int16::<2>(isa, n, largest, &mut rng);
                    check_int16::<3>(isa, n, largest, &mut rng);
                    check_int16::<5>(isa, n, largest, &mut rng);
                    check_int16::<TILE>(isa, n, largest, &mut rng);
                }
            }
        }
    }

    fn check_int16<const Q: usize>(isa: Isa, n: usize, largest: i16, rng: &mut ChaCha12Rng) {
        let mut integers = |count: usize| -> Vec<i16> {
            let some = (0..count).map(|_| rng.random_range(-largest..=largest));
            some.collect()
        };
        let (mut words, queries) = (integers(n * WIDTH), integers(n * Q));
        // The largest product there is.
        for (x, &y) in words.iter_mut().zip(&queries[..n]) {
            *x = y.signum() * largest;
        }
        let mut panel = vec![0; n * WIDTH];
        for (at, &x) in words.iter().enumerate() {
            panel[int16_place(n, at / n, at % n)] = x;
        }
        let units: [f32; WIDTH] = std::array::from_fn(|_| rng.random());
        let mut half: [f32; WIDTH] = std::array::from_fn(|_| rng.random());
        half[WIDTH - 1] = f32::INFINITY;
        let error_share: [f32; WIDTH] = std::array::from_fn(|_| rng.random());
        let spread = f32::from(largest).powi(2) * (n as f32).sqrt();
        let query_sides: [QuerySide; Q] = std::array::from_fn(|_| QuerySide {
            factor: 1.0,
            threshold: rng.random_range(-spread..spread),
            error_scale: spread * rng.random::<f32>(),
            scale: rng.random(),
            start: 0,
        });
        let mut scores = [[f32::NAN; WIDTH]; TILE];
        let sides = Sides {
            half: &half,
            error_share: &error_share,
        };
        let hits = bounds_int16::<Q>(
            isa,
            &panel,
            &units,
            sides,
            &queries,
            &query_sides,
            &mut scores,
        );
        for (q, side) in query_sides.iter().enumerate() {
            for w in 0..WIDTH {
                let pairs = words[w * n..][..n].iter().zip(&queries[q * n..][..n]);
                let sum: i32 = pairs.map(|(&x, &y)| i32::from(x) * i32::from(y)).sum();
                let start = half[w].mul_add(-side.factor, error_share[w] * side.error_scale);
                let expected = (sum as f32 * units[w]).mul_add(side.scale, start);
                let hit = hits[q] >> w & 1 == 1;
                assert_eq!(hit, expected >= side.threshold, "{isa:?}, n = {n}, Q = {Q}");
                if hit {
                    assert_eq!(scores[q][w].to_bits(), expected.to_bits());
                }
            }
        }
    }
}
