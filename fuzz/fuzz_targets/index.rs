//! The readers of fastdx's own files, embeddings and word graphs. For any bytes there is no panic
//! and no read out of bounds, and mechanisms can draw from accepted files.
//!
//! Checksums would reject nearly every mutation, so each input is tried twice: unchanged, and with
//! corrected checksums.

#![no_main]

use std::sync::Arc;

use fastdx::distance::search::Search;
use fastdx::words::embedding::format::native;
use fastdx::{Embedding, Mechanism, MetricSpace, MultivariateLaplace, Randomness, Tem, WordGraph};
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::xxh3_64;

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let eight = bytes.get(at..at.checked_add(8)?)?;
    usize::try_from(u64::from_le_bytes(eight.try_into().ok()?)).ok()
}

/// Corrects the length and every checksum, as far as the section table makes sense.
fn repaired(data: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = data.to_vec();
    let length = (bytes.len() as u64).to_le_bytes();
    bytes.get_mut(16..24)?.copy_from_slice(&length);
    let count = u32::from_le_bytes(bytes.get(12..16)?.try_into().ok()?) as usize;
    let front = count.min(64) * 32 + 32;
    for entry in (32..front).step_by(32) {
        let (start, length) = (number(&bytes, entry + 8)?, number(&bytes, entry + 16)?);
        let end = start.checked_add(length)?.checked_next_multiple_of(64)?;
        let end = end.min(bytes.len());
        let hash = xxh3_64(bytes.get(start..end)?);
        bytes
            .get_mut(entry + 24..entry + 32)?
            .copy_from_slice(&hash.to_le_bytes());
    }
    let front = front.next_multiple_of(64);
    let hash = xxh3_64(&[&bytes[..24], bytes.get(32..front)?].concat());
    bytes[24..32].copy_from_slice(&hash.to_le_bytes());
    Some(bytes)
}

fn use_it(space: impl MetricSpace + 'static) {
    let words = space.vocabulary().len() as u32;
    let Ok(tem) = Tem::new(
        Arc::new(space),
        1.0,
        Default::default(),
        Randomness::new(Some(1)),
    ) else {
        return;
    };
    let ids: Vec<u32> = (0..words.min(50)).collect();
    let drawn = tem.privatize_ids(&ids).unwrap();
    assert!(drawn.iter().all(|&y| y < words));
}

/// Searches a graph: hnsw_rs receives its lists, which may be any that fit the words.
fn search_its_graph(embedding: &Embedding) {
    if embedding.hnsw().is_none() {
        return;
    }
    let words = embedding.len() as u32;
    let randomness = Randomness::new(Some(1));
    let Ok(laplace) = MultivariateLaplace::new(embedding.clone().into(), 1.0, randomness) else {
        return;
    };
    let laplace = laplace.with_search(Search::Hnsw { ef: 5 }).unwrap();
    let ids: Vec<u32> = (0..words.min(50)).collect();
    let drawn = laplace.privatize_ids(&ids).unwrap();
    assert!(drawn.iter().all(|&y| y < words));
}

fuzz_target!(|data: &[u8]| {
    let _ = native::from_bytes(data);
    let _ = WordGraph::from_bytes(data);
    if let Some(bytes) = repaired(data)
        && let Ok(embedding) = native::from_bytes(&bytes)
        && embedding.len() <= 100_000
    {
        search_its_graph(&embedding);
        use_it(embedding);
    }
    if let Some(bytes) = repaired(data)
        && let Ok(graph) = WordGraph::from_bytes(&bytes)
        && graph.len() <= 10_000
    {
        use_it(graph);
    }
});
