//! fastdx's own file format: one embedding or word graph, checksummed, aligned for memory-mapping.
//!
//! All numbers are little-endian. The file consists of a header, a section table and the sections.
//! Each starts at a multiple of 64 and is padded with zeros to the next.
//!
//! | bytes | header field |
//! |---|---|
//! | 0..8 | magic `89 46 44 58 0D 0A 1A 0A` ("\x89FDX\r\n\x1a\n") |
//! | 8..12 | version, 1 |
//! | 12..16 | number of sections |
//! | 16..24 | length of the file |
//! | 24..32 | XXH3-64 of bytes 0..24 and of everything from 32 to the first section |
//! | 32.. | the section table, 32 bytes a section: kind u32, 0 u32, offset u64, length u64, XXH3-64 of the section with its padding u64 |
//!
//! | kind | section |
//! |---|---|
//! | 1 | meta: words u64, dimension u64, metric u32 (its place in `Metric::ALL`), 0 u32 |
//! | 2 | word offsets, u64 × (V + 1), into section 3 |
//! | 3 | the words, UTF-8, end to end |
//! | 4 | the word index: u32 slots, open addressing by XXH3-64, `FFFFFFFF` empty; left out of small files, which rebuild it |
//! | 5 | vectors, f32 × V × n, or |
//! | 6 and 7 | vectors as i16 × V × n and f32 scales × V: number = i16 · scale |
//! | 8 and 9 | neighbour lists, where there are any: k u64, bits of an id u64, step f64 (a power of two); entries u64 × V × k, distance/step in the high bits, id in the low ones, ascending |
//! | 17 | certificates of Tem: nominal ε f64, γ f64, certified ε f64, two words and an output u64, XXH3-64 of the vocabulary u64, that of the cover or 0 u64, each |
//!
//! A word graph has sections 2 to 4, and
//!
//! | kind | section |
//! |---|---|
//! | 14 | words u64, nodes u64 (words first), step f64 (a power of two) |
//! | 15 | edges, two ids u32 each, the smaller first |
//! | 16 | their lengths in steps, u64 |
//!
//! Checksums cover every bit, including padding and header, so any flipped bit is detected. Even
//! without verification the structure is checked: no read goes out of bounds.

use std::path::Path;

use crate::distance::metric::Metric;
use crate::distance::neighbors::{Grid, NeighborLists};
use crate::support::buffer::{Backing, Buffer};
use crate::support::error::{Error, Result};
use crate::support::file::{Kind, Parts, Sections, map};
use crate::words::claims::Claims;
use crate::words::embedding::Embedding;
use crate::words::space::MetricSpace;
use crate::words::vocabulary::Vocabulary;

/// The storage of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Unchanged, so that they can be mapped without copying.
    F32,
    /// 16-bit integers with a scale per word: half the size. They are decoded on opening, and the
    /// word index is rebuilt.
    I16,
}

crate::support::names::named!(Storage, "storage", Storage::F32 => "float32", Storage::I16 => "int16");

/// Writes `embedding` to `path`: first to a temporary file beside it, which is then renamed.
///
/// # Errors
/// [`Error::Io`]; [`Error::Vector`] for a vector that 16-bit rounding would move out of the
/// metric's space.
pub fn save_as(embedding: &Embedding, path: &Path, storage: Storage) -> Result<()> {
    if storage == Storage::I16 {
        let (scales, integers) = quantise(embedding);
        let rows = integers.chunks_exact(embedding.dim()).zip(scales);
        for (id, (row, scale)) in (0..).zip(rows) {
            let decoded: Vec<f32> = row.iter().map(|&x| f32::from(x) * scale).collect();
            if let Some(reason) = embedding.metric().refuse(&decoded) {
                return Err(Error::Vector {
                    owner: format!("{:?}, rounded to int16,", embedding.vocabulary().word(id)),
                    reason,
                });
            }
        }
    }
    parts(embedding, storage).save(path)
}

/// The bytes that [`Embedding::save`] would write.
pub fn to_bytes(embedding: &Embedding) -> Vec<u8> {
    parts(embedding, Storage::F32).to_bytes()
}

/// Reads the embedding from the bytes that [`to_bytes`] returned; verifies checksums.
///
/// # Errors
/// [`Error::Corrupt`].
pub fn from_bytes(bytes: &[u8]) -> Result<Embedding> {
    read(&Backing::copy(bytes), Path::new("<bytes>"), true)
}

fn parts(embedding: &Embedding, storage: Storage) -> Parts<'_> {
    let vocabulary = embedding.vocabulary();
    let metric = Metric::ALL.iter().position(|&m| m == embedding.metric());
    let meta = [
        embedding.len() as u64,
        embedding.dim() as u64,
        metric.unwrap_or(usize::MAX) as u64,
    ];
    let mut parts = Parts::default();
    parts.add_made(Kind::Meta, &meta);
    vocabulary.store(&mut parts);
    if storage == Storage::I16 {
        let (scales, integers) = quantise(embedding);
        parts.add_made(Kind::VectorsI16, &integers);
        parts.add_made(Kind::RowScales, &scales);
        return parts;
    }
    parts.add(Kind::WordSlots, &vocabulary.slots);
    parts.add(Kind::Vectors, embedding.vectors());
    if let Some(lists) = embedding.lists() {
        let grid = lists.grid();
        let meta = [
            lists.k() as u64,
            grid.id_bits().into(),
            grid.step().to_bits(),
        ];
        parts.add_made(Kind::ListMeta, &meta);
        parts.add(Kind::Lists, &lists.entries);
    }
    embedding.derived.claims.store(&mut parts);
    parts
}

fn quantise(embedding: &Embedding) -> (Vec<f32>, Vec<i16>) {
    let mut scales = Vec::with_capacity(embedding.len());
    let mut integers = Vec::with_capacity(embedding.vectors().len());
    for row in embedding.vectors().chunks_exact(embedding.dim()) {
        let largest = row.iter().fold(0.0f32, |m, x| m.max(x.abs()));
        let scale = (largest / 32767.0).max(f32::MIN_POSITIVE);
        scales.push(scale);
        integers.extend(row.iter().map(|x| (x / scale).round() as i16));
    }
    (scales, integers)
}

/// Opens a file by memory-mapping it. With `verify`, reads all of it and verifies every checksum.
///
/// # Errors
/// [`Error::Io`]; [`Error::Corrupt`] for a damaged, truncated, extended or foreign file.
pub fn open(path: &Path, verify: bool) -> Result<Embedding> {
    read(&map(path)?, path, verify)
}

/// Parses the file's bytes; `path` is for messages.
pub(crate) fn read(backing: &Backing, path: &Path, verify: bool) -> Result<Embedding> {
    parse(backing, verify).map_err(Error::corrupt(path))
}

fn parse(backing: &Backing, verify: bool) -> std::result::Result<Embedding, String> {
    let sections = Sections::parse(backing, verify)?;
    let meta: Buffer<u64> =
        sections
            .get(Kind::Meta)?
            .ok_or_else(|| match sections.get::<u64>(Kind::GraphMeta) {
                Ok(Some(_)) => "holds a word graph and no embedding",
                _ => "no meta section",
            })?;
    let &[words, dim, metric] = &*meta else {
        return Err("the meta section has the wrong size".into());
    };
    let metric = *usize::try_from(metric)
        .ok()
        .and_then(|m| Metric::ALL.get(m))
        .ok_or_else(|| format!("metric number {metric} is unknown to this version"))?;
    let vocabulary = Vocabulary::of_sections(&sections)?;
    let dim = usize::try_from(dim).map_err(|_| "a dimension beyond this machine")?;
    let vectors: Buffer<f32> = match sections.get(Kind::Vectors)? {
        Some(vectors) => vectors,
        None => {
            let integers: Buffer<i16> = sections.get(Kind::VectorsI16)?.ok_or("no vectors")?;
            let scales: Buffer<f32> = sections.get(Kind::RowScales)?.ok_or("no scales")?;
            if dim == 0 || integers.len() != scales.len().saturating_mul(dim) {
                return Err("the vectors do not fit their scales".into());
            }
            let mut vectors = Vec::with_capacity(integers.len());
            for (row, &scale) in integers.chunks_exact(dim).zip(scales.iter()) {
                vectors.extend(row.iter().map(|&x| f32::from(x) * scale));
            }
            vectors.into()
        }
    };
    if dim == 0
        || words != vocabulary.len() as u64
        || Some(vectors.len()) != vocabulary.len().checked_mul(dim)
    {
        return Err("the vectors do not fit the words".into());
    }
    let lists = lists(&sections, vocabulary.len(), verify)?;
    let mut embedding = Embedding::from_parts(vocabulary, vectors, dim, metric).with_lists(lists);
    if verify {
        embedding.check_vectors().map_err(|e| e.to_string())?;
    }
    embedding.derived.claims = Claims::read(&sections, &embedding, verify)?;
    Ok(embedding)
}

/// Reads the neighbour lists, if the file has them. Their order and ids are checked only together
/// with the checksums: otherwise opening would have to read all of them.
fn lists(
    sections: &Sections,
    words: usize,
    verify: bool,
) -> std::result::Result<Option<NeighborLists>, String> {
    let Some(meta) = sections.get::<u64>(Kind::ListMeta)? else {
        return Ok(None);
    };
    let entries: Buffer<u64> = sections.get(Kind::Lists)?.ok_or("no neighbour lists")?;
    let &[k, id_bits, step] = &*meta else {
        return Err("the neighbour lists' meta section has the wrong size".into());
    };
    let grid = u32::try_from(id_bits)
        .ok()
        .and_then(|b| Grid::from_parts(f64::from_bits(step), b));
    let k = usize::try_from(k).ok();
    let k = k.filter(|k| (1..=words).contains(k));
    let (Some(grid), Some(k)) = (grid, k) else {
        return Err("the neighbour lists' meta section holds impossible values".into());
    };
    if Some(entries.len()) != words.checked_mul(k) || (words as u64 - 1) >> id_bits != 0 {
        return Err("the neighbour lists do not fit the words".into());
    }
    let lists = NeighborLists { grid, k, entries };
    if verify && !(0..words as u32).all(|id| sound(&lists, id, words)) {
        return Err("a neighbour list is out of order".into());
    }
    Ok(Some(lists))
}

fn sound(lists: &NeighborLists, id: u32, words: usize) -> bool {
    let (grid, list) = (lists.grid(), lists.list(id));
    list.windows(2).all(|w| w[0] < w[1]) && list.iter().all(|&e| (grid.id(e) as usize) < words)
}
