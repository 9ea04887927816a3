//! Measures how an approximate search changes a mechanism's output, on the mechanism's own noisy
//! points.

use std::collections::HashMap;

use crate::distance::search::BATCH;
use crate::distance::search::exact::Scratch;
use crate::distance::search::hnsw::{Hnsw, HnswScratch};
use crate::mechanism::noisy_nearest::{Noise, NoisyNearest};
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, install, map_all_with};

/// How closely an approximate search agrees with the exact one on the same noisy points.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchQuality {
    /// Number of measured words.
    pub words: usize,
    /// Noisy points per word.
    pub draws: usize,
    /// Share of points whose nearest word was found; a word at the same distance counts.
    pub recall: f64,
    /// Mean ratio of the found distance to the true nearest distance.
    pub distance_ratio: f64,
    /// Total-variation distance between a word's laws under the exact and the approximate search,
    /// averaged over words. It is the share of outputs that would have to change. Both laws are
    /// estimated from common noise, so it is 0 if all answers agree, and at most 1 - recall.
    pub total_variation: f64,
    /// The largest total variation of a word, and that word.
    pub worst: (f64, u32),
}

/// Above this total variation the law counts as distorted.
pub const DISTORTED: f64 = 0.01;

impl SearchQuality {
    /// A warning in plain words if the law is distorted.
    pub fn warning(&self) -> Option<String> {
        (self.total_variation > DISTORTED).then(|| {
            format!(
                "the approximate search distorts the mechanism's law: {:.1}% of its outputs are \
                 not the nearest word, and the law of a word is off by {:.1}% on average (total \
                 variation), {:.1}% at worst. Privacy holds, but what was calibrated with the \
                 exact search does not; use search=\"exact\", or a larger ef",
                100.0 * (1.0 - self.recall),
                100.0 * self.total_variation,
                100.0 * self.worst.0,
            )
        })
    }
}

/// Compares `hnsw` (searched with `ef`) with the exact search, on `draws` noisy points of each of
/// `ids`.
///
/// # Errors
/// [`Error::Parameter`] for no words or draws, or a build without the feature `hnsw`;
/// [`Error::WordId`] for an id out of range; [`Error::Interrupted`].
pub fn measure<N: Noise>(
    mechanism: &NoisyNearest<N>,
    hnsw: &Hnsw,
    ef: usize,
    ids: &[u32],
    draws: usize,
    control: &Control,
) -> Result<SearchQuality> {
    if ids.is_empty() || draws == 0 {
        return Err(Error::parameter(
            "draws",
            "at least 1 for at least one word",
            draws,
        ));
    }
    let embedding = mechanism.embedding();
    embedding.vocabulary().check_ids(ids)?;
    let (n, vectors) = (embedding.dim(), embedding.vectors());
    let key = crate::WordMechanism::randomness(mechanism).next_key()?;
    let search = embedding.search();
    let measured: Vec<(usize, f64, f64)> = install(ids.len() * draws, 0, || {
        let memory = || {
            let queries = vec![0.0; BATCH * n];
            (Scratch::default(), HnswScratch::default(), queries)
        };
        map_all_with((0..).zip(ids), memory, |memory, (stream, &id)| {
            let (exact, approximate, queries) = memory;
            control.check()?;
            let mut rng = key.stream(stream);
            let (mut right, mut ratio) = (0, 0.0);
            let mut surplus: HashMap<u32, i64> = HashMap::new();
            for first in (0..draws).step_by(BATCH) {
                let count = BATCH.min(draws - first);
                let queries = &mut queries[..count * n];
                let noise = mechanism.noise();
                noise.perturb(embedding, &[id; BATCH][..count], &mut rng, queries, control)?;
                let queries = &*queries;
                search.nearest_batch(vectors, queries, 1, None, exact, |i, best| {
                    let query = &queries[i * n..][..n];
                    let found = hnsw.nearest(query, 1, ef, approximate)[0];
                    right += usize::from(found.0 == best[0].0);
                    ratio += match best[0].0 {
                        0.0 if found.0 == 0.0 => 1.0,
                        d => found.0 / d,
                    };
                    *surplus.entry(best[0].1).or_default() += 1;
                    *surplus.entry(found.1).or_default() -= 1;
                });
            }
            control.advance(draws);
            let apart: i64 = surplus.values().map(|x| x.abs()).sum();
            Ok((right, ratio, apart as f64 / 2.0 / draws as f64))
        })
    })??;
    let all = (ids.len() * draws) as f64;
    let worst = measured.iter().zip(ids).map(|(m, &id)| (m.2, id));
    let worst = worst.fold((0.0, ids[0]), |a, b| if b.0 > a.0 { b } else { a });
    Ok(SearchQuality {
        words: ids.len(),
        draws,
        recall: measured.iter().map(|m| m.0).sum::<usize>() as f64 / all,
        distance_ratio: measured.iter().map(|m| m.1).sum::<f64>() / all,
        total_variation: measured.iter().map(|m| m.2).sum::<f64>() / ids.len() as f64,
        worst,
    })
}
