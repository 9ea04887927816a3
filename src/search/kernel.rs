//! The innermost loops of the exact scan: scores of a tile of queries against a panel of words.
//!
//! A panel holds [`WIDTH`] words, coordinate by coordinate, so that one vector load serves
//! sixteen words. The score of word u for query q is q·u - ‖u‖²/2, whose maximum is the
//! Euclidean nearest word. Scores stay in registers; they are stored only for a query that has
//! one above its threshold, which after the first panels is rare.

/// Words in a panel.
pub(crate) const WIDTH: usize = 64;

/// Queries in a full tile: 6 × 4 accumulators, 4 loads and a broadcast fill 29 of the 32
/// AVX-512 registers.
pub(crate) const TILE: usize = 6;

/// Scores of one tile, valid where the returned bit is set.
pub(crate) type Scores = [[f32; WIDTH]; TILE];

/// How the machine multiplies; found once for each search structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isa {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl Isa {
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                return Isa::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Isa::Avx2;
            }
        }
        Isa::Portable
    }

    /// All that this machine has, for tests.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Self> {
        let mut all = vec![Isa::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                all.push(Isa::Avx2);
            }
            if is_x86_feature_detected!("avx512f") {
                all.push(Isa::Avx512);
            }
        }
        all
    }
}

/// Scores `Q` queries (row-major, `n` wide) against a panel. Bit q of the result is set, and
/// `scores[q]` filled, when query q has a score of at least `thresholds[q]`.
#[inline]
pub(crate) fn tile<const Q: usize>(
    isa: Isa,
    panel: &[f32],
    half_norms: &[f32; WIDTH],
    queries: &[f32],
    n: usize,
    thresholds: &[f32; Q],
    scores: &mut Scores,
) -> u32 {
    assert!(panel.len() == n * WIDTH && queries.len() == n * Q && Q <= TILE);
    match isa {
        // SAFETY: Isa::Avx512 and Isa::Avx2 are made only where the features were detected.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { tile_avx512(panel, half_norms, queries, n, thresholds, scores) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 => unsafe { tile_avx2(panel, half_norms, queries, n, thresholds, scores) },
        Isa::Portable => {
            tile_plain::<Q, 16, false>(panel, half_norms, queries, n, thresholds, scores)
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn tile_avx512<const Q: usize>(
    panel: &[f32],
    half_norms: &[f32; WIDTH],
    queries: &[f32],
    n: usize,
    thresholds: &[f32; Q],
    scores: &mut Scores,
) -> u32 {
    use std::arch::x86_64::*;
    let mut acc = [[_mm512_setzero_ps(); 4]; Q];
    for v in 0..4 {
        // SAFETY: half_norms holds 64 numbers.
        let half = unsafe { _mm512_loadu_ps(half_norms.as_ptr().add(16 * v)) };
        let start = _mm512_sub_ps(_mm512_setzero_ps(), half);
        for row in &mut acc {
            row[v] = start;
        }
    }
    for d in 0..n {
        let mut words = [_mm512_setzero_ps(); 4];
        for (v, w) in words.iter_mut().enumerate() {
            // SAFETY: the panel holds n × 64 numbers (asserted by the caller).
            *w = unsafe { _mm512_loadu_ps(panel.as_ptr().add(d * WIDTH + 16 * v)) };
        }
        for (q, row) in acc.iter_mut().enumerate() {
            // SAFETY: the queries hold Q × n numbers (asserted by the caller).
            let x = _mm512_set1_ps(unsafe { *queries.get_unchecked(q * n + d) });
            for v in 0..4 {
                row[v] = _mm512_fmadd_ps(x, words[v], row[v]);
            }
        }
    }
    let mut hits = 0;
    for q in 0..Q {
        let threshold = _mm512_set1_ps(thresholds[q]);
        let mut any = 0;
        for &score in &acc[q] {
            any |= _mm512_cmp_ps_mask::<_CMP_GE_OQ>(score, threshold);
        }
        if any != 0 {
            hits |= 1 << q;
            for (v, &score) in acc[q].iter().enumerate() {
                // SAFETY: scores[q] holds 64 numbers.
                unsafe { _mm512_storeu_ps(scores[q].as_mut_ptr().add(16 * v), score) };
            }
        }
    }
    hits
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn tile_avx2<const Q: usize>(
    panel: &[f32],
    half_norms: &[f32; WIDTH],
    queries: &[f32],
    n: usize,
    thresholds: &[f32; Q],
    scores: &mut Scores,
) -> u32 {
    tile_plain::<Q, 16, true>(panel, half_norms, queries, n, thresholds, scores)
}

/// The same in plain Rust, `L` words at a time, for the compiler to vectorise.
#[inline(always)]
fn tile_plain<const Q: usize, const L: usize, const FMA: bool>(
    panel: &[f32],
    half_norms: &[f32; WIDTH],
    queries: &[f32],
    n: usize,
    thresholds: &[f32; Q],
    scores: &mut Scores,
) -> u32 {
    for block in (0..WIDTH).step_by(L) {
        let mut acc = [[0.0f32; L]; Q];
        for row in &mut acc {
            for l in 0..L {
                row[l] = -half_norms[block + l];
            }
        }
        for d in 0..n {
            let words: &[f32] = &panel[d * WIDTH + block..][..L];
            for (q, row) in acc.iter_mut().enumerate() {
                let x = queries[q * n + d];
                for l in 0..L {
                    row[l] = if FMA {
                        x.mul_add(words[l], row[l])
                    } else {
                        x * words[l] + row[l]
                    };
                }
            }
        }
        for (row, out) in acc.iter().zip(scores.iter_mut()) {
            out[block..block + L].copy_from_slice(row);
        }
    }
    let mut hits = 0;
    for q in 0..Q {
        hits |= u32::from(scores[q].iter().any(|&s| s >= thresholds[q])) << q;
    }
    hits
}
