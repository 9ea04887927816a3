//! Default values and parts for descriptions that do not give them.

use std::sync::Arc;

use super::Builtin;
use crate::cover::Cover;
use crate::support::error::Result;
use crate::words::embedding::Embedding;
use crate::words::index::Index;

/// The default λ of [`Mahalanobis`](crate::mechanism::mahalanobis::Mahalanobis).
pub(super) const MIXING: f64 = 0.2;
/// The default t of the [Vickrey](crate::mechanism::noisy_nearest) mechanism: the paper's choice.
pub(super) const TUNING: f64 = 0.75;

/// A built-in embedding.
pub(super) fn builtin_index(builtin: Builtin) -> Result<Index> {
    let embedding = match builtin {
        Builtin::English => Embedding::default_english()?,
        Builtin::Nouns => Embedding::default_nouns()?,
    };
    Ok(Index::Embedding(Arc::new(embedding)))
}

/// The built-in embedding with a fingerprint, if there is one.
pub(super) fn builtin_of(fingerprint: u64) -> Option<Builtin> {
    Builtin::ALL.into_iter().find(|&builtin| {
        builtin_index(builtin).is_ok_and(|index| index.space().fingerprint() == fingerprint)
    })
}

/// The cover in an index file, unless all that it says is which words are never released.
pub(super) fn index_cover(index: &Index) -> Option<Arc<Cover>> {
    stored(index).filter(|cover| !only_excludes(cover)).cloned()
}

/// The ids of the words that an index file says are never released, where it has no other cover.
pub(super) fn index_exclusion(index: &Index) -> Vec<u32> {
    let cover = stored(index).filter(|cover| only_excludes(cover));
    cover.map_or_else(Vec::new, |cover| cover.excluded_ids())
}

fn stored(index: &Index) -> Option<&Arc<Cover>> {
    match index {
        Index::Embedding(embedding) => embedding.cover(),
        Index::Graph(graph) => graph.cover(),
    }
}

fn only_excludes(cover: &Cover) -> bool {
    cover.is_identity() && !cover.is_weighted()
}
