//! Embedding file formats, detected by content, never by name.

pub mod native;
mod npy;
mod text;
mod word2vec;

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use crate::distance::metric::Metric;
use crate::support::buffer::Backing;
use crate::support::error::{Error, Hidden, Result};
use crate::support::file::{MAGIC, map};
use crate::support::names::named;
use crate::support::parallel::Control;
use crate::words::embedding::Embedding;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// fastdx's own format, see [`native`].
    Fastdx,
    /// GloVe text: one word and its numbers per line, no header. Words may hold spaces.
    Glove,
    /// word2vec text or fastText .vec: the same with a first line "V n".
    Word2vecText,
    /// word2vec binary: a line "V n", then for each word the word, a space and n float32.
    Word2vecBinary,
    /// A NumPy array file, and a text file with one word per line.
    Npy,
}

named!(
    Format, "format",
    Format::Fastdx => "fastdx",
    Format::Glove => "glove",
    Format::Word2vecText => "word2vec-text",
    Format::Word2vecBinary => "word2vec-binary",
    Format::Npy => "npy";
    also "fasttext" => Format::Word2vecText
);

/// Options for loading.
#[derive(Clone, Debug)]
pub struct Options {
    /// The format; `None` detects it by content.
    pub format: Option<Format>,
    /// Load only this many words.
    pub limit: Option<usize>,
    /// The metric; `None` takes the file's own, or Euclidean.
    pub metric: Option<Metric>,
    /// For [`Format::Npy`]: the file with one word per line. `None` takes the array's path with the
    /// extension .vocab or .txt.
    pub vocabulary: Option<PathBuf>,
    /// For [`Format::Fastdx`]: verify every checksum.
    pub verify: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            format: None,
            limit: None,
            metric: None,
            vocabulary: None,
            verify: true,
        }
    }
}

/// Words and vectors read from a file in another format.
pub(crate) struct Table {
    pub(crate) words: Vec<String>,
    pub(crate) vectors: Vec<f32>,
    pub(crate) dim: usize,
    /// Line of the first word, if the format has lines.
    pub(crate) first_line: Option<u64>,
}

/// Reads a two-dimensional array of floats from a .npy file. Returns its numbers row by
/// row, the number of rows and of columns.
pub(crate) fn matrix(path: &Path) -> Result<(Vec<f64>, usize, usize)> {
    let backing = map(path)?;
    let matrix = npy::matrix(backing.bytes());
    let (numbers, rows, columns) =
        matrix.map_err(|reason| format_error(path, None, reason, None))?;
    Ok((numbers.collect(), rows, columns))
}

/// Loads an embedding from a file in any [`Format`], plain or gzipped. A gzipped file may unpack to
/// 32 times its own size or 256 MiB, whichever is larger. Of a repeated word the first vector counts, as
/// in gensim and spaCy; also returns the number of words that were left out for that.
///
/// # Errors
/// [`Error::Io`]; [`Error::Format`] with the line for a file that does not follow its format;
/// [`Error::Corrupt`] for a damaged file in fastdx's format; [`Error::Interrupted`].
pub fn load(path: &Path, options: &Options, control: &Control) -> Result<(Embedding, usize)> {
    if options.limit == Some(0) {
        return Err(Error::parameter("limit", "at least 1", 0));
    }
    let mut backing = map(path)?;
    if backing.bytes().starts_with(&[0x1f, 0x8b]) {
        backing = gunzip(path, backing.bytes(), control)?;
    }
    let bytes = without_mark(backing.bytes());
    if bytes.is_empty() {
        return Err(format_error(path, None, "the file is empty", None));
    }
    if let Some(what) = unreadable(bytes) {
        return Err(format_error(path, None, what, None));
    }
    let format = options.format.unwrap_or_else(|| detect(bytes));
    let metric = options.metric.unwrap_or(Metric::Euclidean);
    let limit = options.limit.unwrap_or(usize::MAX);
    let table = match format {
        Format::Fastdx => {
            let embedding = native::read(&backing, path, options.verify)?;
            let embedding = match options.limit {
                Some(limit) if limit < embedding.len() => embedding.first(limit)?,
                _ => embedding,
            };
            let metric = options.metric.unwrap_or(embedding.metric());
            return Ok((embedding.with_metric(metric)?, 0));
        }
        Format::Glove => text::parse(path, bytes, false, limit, control)?,
        Format::Word2vecText => text::parse(path, bytes, true, limit, control)?,
        Format::Word2vecBinary => word2vec::parse(path, bytes, limit)?,
        Format::Npy => npy::parse(path, bytes, options.vocabulary.as_deref(), limit)?,
    };
    table.into_embedding(path, metric)
}

pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

impl Table {
    /// Keeps the first of equal words; also returns how many others there were.
    fn into_embedding(mut self, path: &Path, metric: Metric) -> Result<(Embedding, usize)> {
        let line = |entry: usize| self.first_line.map(|first| first + entry as u64);
        if let Some((i, reason)) = metric.first_refused(&self.vectors, self.dim) {
            let reason = match line(i) {
                Some(_) => format!("its vector {reason}"),
                None => format!("the vector of word {i} (counted from 0) {reason}"),
            };
            let word = Hidden::new(&*self.words[i]);
            return Err(format_error(path, line(i), reason, Some(word)));
        }
        let mut seen = HashSet::with_capacity(self.words.len());
        let kept: Vec<bool> = self.words.iter().map(|word| seen.insert(&**word)).collect();
        let repeated = kept.iter().filter(|&&kept| !kept).count();
        if repeated > 0 {
            let rows = self.vectors.chunks_exact(self.dim).zip(&kept);
            let rows = rows.filter(|&(_, &kept)| kept).flat_map(|(row, _)| row);
            self.vectors = rows.copied().collect();
            let mut kept = kept.iter();
            self.words.retain(|_| kept.next() == Some(&true));
        }
        let vocabulary = crate::Vocabulary::new(&self.words)
            .map_err(|e| format_error(path, None, e.to_string(), None))?;
        let vectors = self.vectors.into();
        let embedding = Embedding::from_parts(vocabulary, vectors, self.dim, metric);
        Ok((embedding, repeated))
    }
}

fn format_error(
    path: &Path,
    line: Option<u64>,
    reason: impl Into<String>,
    offender: Option<Hidden>,
) -> Error {
    Error::Format {
        path: path.to_owned(),
        line,
        reason: reason.into(),
        offender,
    }
}

/// Bytes that a packed file may always unpack to; beyond that, a multiple of its size is the limit.
/// Numbers hardly compress, and a small file must not take all memory.
const UNPACKED: usize = 256 << 20;
const RATIO: usize = 32;

/// The error of gzip data that ends too soon or was changed.
pub(crate) const DAMAGED: &str = "damaged or truncated gzip data";

fn gunzip(path: &Path, bytes: &[u8], control: &Control) -> Result<Backing> {
    const ROOM: usize = 16 << 20;
    let most = bytes.len().saturating_mul(RATIO).max(UNPACKED);
    let mut members = MultiGzDecoder::new(bytes);
    let (mut plain, mut written) = (Vec::new(), 0);
    loop {
        control.check()?;
        if written == 8 * plain.len() {
            plain.resize(plain.len() + ROOM / 8, 0u64);
        }
        let made = members.read(&mut bytemuck::cast_slice_mut(&mut plain)[written..]);
        let made = made.map_err(|_| format_error(path, None, DAMAGED, None))?;
        written += made;
        if written > most {
            let reason = format!(
                "{} bytes of gzip data hold more than {most}: unpack the file first (gunzip) if that is as it should be",
                bytes.len()
            );
            return Err(format_error(path, None, reason, None));
        }
        if made == 0 {
            return Ok(Backing::Heap(plain.into(), written));
        }
    }
}

/// Names a common vector file format that fastdx does not read, and says what to do instead. No
/// format that fastdx reads starts with these bytes.
fn unreadable(bytes: &[u8]) -> Option<&'static str> {
    const PICKLE: &str = "a Python pickle, as gensim saves its .kv and .model; fastdx reads no pickles, because \
         they can run code: save it with gensim's save_word2vec_format";
    const NPZ: &str = "a NumPy archive (.npz): save the array of vectors alone with numpy.save, \
                       and the words beside it in a text file, one a line";
    const ZIP: &str = "a zip archive: unpack it and give the file that it holds";
    const UTF16: &str = "text in UTF-16: save it in UTF-8";
    const LFS: &str =
        "a pointer of Git LFS, in place of the file itself: fetch it with git lfs pull";
    const FASTTEXT: &str = "a fastText model (.bin): give the vectors in text (.vec)";
    match bytes {
        [0x80, 2..=5, ..] => Some(PICKLE),
        [b'P', b'K', 3, 4, ..] if first_in_archive(bytes).ends_with(b".npy") => Some(NPZ),
        [b'P', b'K', 3, 4, ..] => Some(ZIP),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some(UTF16),
        _ if bytes.starts_with(b"version https://git-lfs.github.com/spec/") => Some(LFS),
        [0xba, 0x16, 0x4f, 0x2f, ..] => Some(FASTTEXT),
        _ => None,
    }
}

fn first_in_archive(bytes: &[u8]) -> &[u8] {
    let length = bytes
        .get(26..28)
        .map_or(0, |b| u16::from_le_bytes([b[0], b[1]]).into());
    bytes.get(30..30 + length).unwrap_or_default()
}

fn detect(bytes: &[u8]) -> Format {
    if bytes.starts_with(&MAGIC) {
        return Format::Fastdx;
    }
    if bytes.starts_with(b"\x93NUMPY") {
        return Format::Npy;
    }
    let Some((words, dim, body)) = header(bytes) else {
        return Format::Glove;
    };
    if word2vec::is_binary(body, dim) {
        return Format::Word2vecBinary;
    }
    // "7 3" may also be the word "7" with a one-number vector, if all lines look like that.
    let one = text::first_line_numbers(body) == Some(1);
    if one && (dim != 1 || text::count_lines(body) != words) {
        return Format::Glove;
    }
    Format::Word2vecText
}

/// Parses the line "V n"; returns the rest of the bytes too.
fn header(bytes: &[u8]) -> Option<(usize, usize, &[u8])> {
    let end = bytes.iter().take(64).position(|&b| b == b'\n')?;
    let line = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut fields = line.split_ascii_whitespace();
    let (words, dim) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    fields
        .next()
        .is_none()
        .then_some((words, dim, &bytes[end + 1..]))
}
