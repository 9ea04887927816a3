//! The innermost loops of the exact search: bounds for a tile of queries against a panel of words.
//!
//! On a processor with matrix instructions (AMX), `tiles` takes sixteen queries at a time.
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

/// Lines that may be read beyond the last 8-bit panel: `tiles` reads 64 coordinates at a time.
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
    /// Plain Rust for the compiler to vectorise; on aarch64 it uses NEON, which is always present.
    Portable,
}

/// The byte that stands for 0 in an 8-bit panel: VNNI takes the words as unsigned integers.
pub(crate) const INT8_ZERO: u8 = 0x80;

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
        all.push(Isa::Portable);
        all
    }

    pub(crate) fn has_int8(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return matches!(self, Isa::Amx(_) | Isa::Avx512Vnni(_));
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
    /// The units of integers, which x86-64 alone multiplies.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) unit: &'a [f32; WIDTH],
    pub(crate) half: &'a [f32; WIDTH],
    pub(crate) error_share: &'a [f32; WIDTH],
}

/// The data of a query: bound = score + error_scale·(word's error_share), score = combination -
/// factor·half.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
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

#[cfg(target_arch = "x86_64")]
pub(crate) mod tiles;
#[cfg(target_arch = "x86_64")]
mod vnni;

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

/// Computes [`bounds`] with 8-bit integers. `panel` holds the words' integers, with 0 stored as
/// [`INT8_ZERO`], four coordinates of sixteen words together. `queries` holds 4·`groups` integers
/// per query. A score is integer product · word's unit · query's unit.
#[inline]
pub(crate) fn bounds_int8<const Q: usize>(
    isa: Isa,
    panel: &[Line],
    sides: Sides,
    queries: &[i8],
    query_sides: &[QuerySide],
    scores: &mut Scores,
) -> Hits {
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (sides, scores);
    let panel: &[u8] = bytemuck::cast_slice(panel);
    let n = panel.len() / WIDTH;
    assert!(n.is_multiple_of(4) && queries.len() == n * Q && query_sides.len() == Q && Q <= TILE);
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the variants hold the proof of their features; lengths were checked.
        Isa::Amx(_) | Isa::Avx512Vnni(_) => unsafe {
            vnni::int8::<Q>(panel, sides, queries, query_sides, scores)
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
    sides: Sides,
    queries: &[i16],
    query_sides: &[QuerySide],
    scores: &mut Scores,
) -> Hits {
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (sides, scores);
    let n = panel.len() / WIDTH;
    assert!(n.is_multiple_of(2) && queries.len() == n * Q && query_sides.len() == Q && Q <= TILE);
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the variant holds the proof of its features; lengths were checked.
        Isa::Avx2(_) => unsafe {
            // Registers for sums: 8, 8, 12, 8, 10, 12 of the sixteen.
            match Q {
                1 => int16_avx2::<Q, 8>(panel, sides, queries, query_sides, scores),
                2 | 3 => int16_avx2::<Q, 4>(panel, sides, queries, query_sides, scores),
                _ => int16_avx2::<Q, 2>(panel, sides, queries, query_sides, scores),
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
                        _mm256_loadu_ps(sides.unit.as_ptr().add(at)),
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
    use rand::RngExt;
    use rand::rngs::ChaCha12Rng;

    use super::*;

    /// Words and queries of integers up to a largest one, and what plain arithmetic makes of them.
    struct Case {
        n: usize,
        words: Vec<i16>,
        queries: Vec<i16>,
        /// Units, halves and error shares.
        numbers: [[f32; WIDTH]; 3],
        sides: Vec<QuerySide>,
    }

    impl Case {
        fn new(n: usize, count: usize, largest: i16, zero: u8, rng: &mut ChaCha12Rng) -> Self {
            let mut integers = |count: usize| -> Vec<i16> {
                let some = (0..count).map(|_| rng.random_range(-largest..=largest));
                some.collect()
            };
            let (mut words, queries) = (integers(n * WIDTH), integers(n * count));
            // The largest product there is.
            for (x, &y) in words.iter_mut().zip(&queries[..n]) {
                *x = y.signum() * largest;
            }
            let mut numbers = [(); 3].map(|()| std::array::from_fn(|_| rng.random()));
            numbers[1][WIDTH - 1] = f32::INFINITY;
            let spread = f32::from(largest).powi(2) * (n as f32).sqrt();
            let sides = queries.chunks_exact(n).map(|query| QuerySide {
                factor: 1.0,
                threshold: rng.random_range(-spread..spread),
                error_scale: spread * rng.random::<f32>(),
                scale: rng.random(),
                start: -i32::from(zero) * query.iter().map(|&x| i32::from(x)).sum::<i32>(),
            });
            let mut case = Case {
                n,
                sides: sides.collect(),
                words,
                queries,
                numbers,
            };
            // The largest bound just reaches the threshold, or just fails.
            for q in (0..count).filter(|q| q % 3 > 0) {
                let each = (0..WIDTH).map(|w| case.expected(q, w, false));
                let most = each.fold(f32::NEG_INFINITY, f32::max);
                case.sides[q].threshold = if q % 3 == 1 { most } else { most.next_up() };
            }
            case
        }

        fn of_words(&self) -> Sides<'_> {
            let [unit, half, error_share] = &self.numbers;
            Sides {
                unit,
                half,
                error_share,
            }
        }

        /// A bound, bit for bit; tiles add its parts in another order.
        fn expected(&self, q: usize, w: usize, tiles: bool) -> f32 {
            let side = &self.sides[q];
            let [unit, half, error_share] = self.numbers.each_ref().map(|of| of[w]);
            let pairs = self.words[w * self.n..][..self.n].iter();
            let pairs = pairs.zip(&self.queries[q * self.n..]);
            let sum: i32 = pairs.map(|(&x, &y)| i32::from(x) * i32::from(y)).sum();
            let start = match tiles {
                true => error_share.mul_add(side.error_scale, -half),
                false => half.mul_add(-side.factor, error_share * side.error_scale),
            };
            (sum as f32 * unit).mul_add(side.scale, start)
        }

        fn check(&self, q: usize, tiles: bool, hits: u64, scores: &[f32; WIDTH]) {
            for (w, got) in scores.iter().enumerate() {
                let expected = self.expected(q, w, tiles);
                let hit = hits >> w & 1 == 1;
                assert_eq!(hit, expected >= self.sides[q].threshold, "n = {}", self.n);
                if hit {
                    assert_eq!(got.to_bits(), expected.to_bits());
                }
            }
        }
    }

    fn int8<const Q: usize>(isa: Isa, panel: &[Line], case: &Case, queries: &[i8]) {
        let mut scores = [[0.0; WIDTH]; TILE];
        let each = queries.chunks_exact(Q * case.n).zip(case.sides.chunks(Q));
        for (tile, (queries, sides)) in each.enumerate() {
            let of_words = case.of_words();
            let hits = bounds_int8::<Q>(isa, panel, of_words, queries, sides, &mut scores);
            (0..Q).for_each(|q| case.check(Q * tile + q, false, hits[q], &scores[q]));
        }
    }

    /// The 8-bit bounds of every machine equal those of plain arithmetic, bit for bit.
    #[test]
    fn int8_bounds() {
        let mut rng = crate::testing::rng(20);
        let shapes = [
            (4, 6),
            (8, 16),
            (60, 3),
            (64, 35),
            (52, 600),
            (300, 37),
            (9000, 6),
        ];
        for (n, count) in shapes {
            let case = Case::new(n, count, 127, INT8_ZERO, &mut rng);
            // Bytes behind the panel belong to no word.
            let mut panel = vec![Line([77; 64]); n + AFTER];
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut panel);
            for (at, &x) in case.words.iter().enumerate() {
                let (w, d) = (at / n, at % n);
                bytes[d / 4 * 4 * WIDTH + 4 * w + d % 4] = (x as i8).cast_unsigned() ^ INT8_ZERO;
            }
            let queries: Vec<i8> = case.queries.iter().map(|&x| x as i8).collect();
            for isa in Isa::available().into_iter().filter(|isa| isa.has_int8()) {
                int8::<1>(isa, &panel[..n], &case, &queries);
                int8::<TILE>(isa, &panel[..n], &case, &queries);
                #[cfg(target_arch = "x86_64")]
                {
                    let mut tiles = tiles::Tiles::default();
                    tiles.pack(isa, &queries, n, &case.sides);
                    let Some(matrices) = tiles.begin(isa) else {
                        continue;
                    };
                    let mut seen = vec![false; count];
                    let mut sides = case.sides.clone();
                    matrices.panel(&panel, case.of_words(), &mut sides, |q, hits, scores| {
                        case.check(q, true, hits, scores);
                        seen[q] = true;
                        case.sides[q].threshold
                    });
                    for q in (0..count).filter(|&q| !seen[q]) {
                        case.check(q, true, 0, &[0.0; WIDTH]);
                    }
                }
            }
        }
    }

    fn int16<const Q: usize>(isa: Isa, n: usize, largest: i16, rng: &mut ChaCha12Rng) {
        let case = Case::new(n, Q, largest, 0, rng);
        let mut panel = vec![0; n * WIDTH];
        for (at, &x) in case.words.iter().enumerate() {
            panel[int16_place(n, at / n, at % n)] = x;
        }
        let mut scores = [[f32::NAN; WIDTH]; TILE];
        let (of_words, queries) = (case.of_words(), &case.queries);
        let hits = bounds_int16::<Q>(isa, &panel, of_words, queries, &case.sides, &mut scores);
        (0..Q).for_each(|q| case.check(q, false, hits[q], &scores[q]));
    }

    /// The 16-bit bounds of every machine equal those of plain arithmetic, bit for bit.
    #[test]
    fn int16_bounds() {
        let mut rng = crate::testing::rng(21);
        for isa in Isa::available().into_iter().filter(|isa| isa.has_int16()) {
            for (n, largest) in [(2, i16::MAX), (60, 5982), (300, 2675)] {
                int16::<1>(isa, n, largest, &mut rng);
                int16::<2>(isa, n, largest, &mut rng);
                int16::<3>(isa, n, largest, &mut rng);
                int16::<5>(isa, n, largest, &mut rng);
                int16::<TILE>(isa, n, largest, &mut rng);
            }
        }
    }
}
