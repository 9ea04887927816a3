//! The container of fastdx's files: a header, a table and checksummed sections. Also maps files and
//! replaces them atomically. [`native`](crate::words::embedding::format::native) documents the layout.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;

use bytemuck::{Pod, cast_slice, pod_read_unaligned};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use crate::support::buffer::{Backing, Buffer};
use crate::support::error::{Error, Result};

#[cfg(target_endian = "big")]
compile_error!(
    "fastdx's files are memory-mapped little-endian; big-endian machines are not supported"
);

/// The first eight bytes of every file.
pub const MAGIC: [u8; 8] = *b"\x89FDX\r\n\x1a\n";
const VERSION: u64 = 1;
const ALIGN: usize = 64;
const MAX_SECTIONS: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Kind {
    Meta = 1,
    WordOffsets = 2,
    WordBytes = 3,
    WordSlots = 4,
    Vectors = 5,
    VectorsI16 = 6,
    RowScales = 7,
    ListMeta = 8,
    Lists = 9,
    GraphMeta = 14,
    GraphPairs = 15,
    GraphLengths = 16,
    Certificates = 17,
    CoverMeta = 18,
    CoverReleased = 19,
    CoverStarts = 20,
    CoverWords = 21,
    CoverWeights = 22,
    PriorMeta = 48,
    PriorFrequencies = 49,
    PriorUnigram = 50,
    PriorPairStarts = 51,
    PriorPairWords = 52,
    PriorPairWeights = 53,
    PriorFirst = 54,
    PriorLast = 55,
    PriorTripleStarts = 56,
    PriorTripleWords = 57,
    PriorTripleWeights = 58,
}

/// The checksum in a file's header. It covers the checksums of the sections, so it identifies the
/// contents. 0 for what has no header.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.get(24..32).map_or(0, pod_read_unaligned)
}

fn padding(len: usize) -> usize {
    len.next_multiple_of(ALIGN) - len
}

/// The sections of a file that is to be written.
#[derive(Default)]
pub(crate) struct Parts<'a>(Vec<(Kind, Cow<'a, [u8]>)>);

impl<'a> Parts<'a> {
    pub(crate) fn add<T: Pod>(&mut self, kind: Kind, values: &'a [T]) {
        self.0.push((kind, cast_slice(values).into()));
    }

    /// Adds a copy of numbers that are made for the file.
    pub(crate) fn add_made<T: Pod>(&mut self, kind: Kind, values: &[T]) {
        self.0.push((kind, cast_slice(values).to_vec().into()));
    }

    /// The whole file.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Writing to a Vec cannot fail.
        let _ = self.write(&mut bytes);
        bytes
    }

    /// Writes the file atomically.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        write_atomically(path, |out| self.write(out))
    }

    fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        const ZEROS: [u8; ALIGN] = [0; ALIGN];
        let front = 32 + 32 * self.0.len();
        let mut offset = front + padding(front);
        let mut table: Vec<[u64; 4]> = Vec::new();
        for (kind, bytes) in &self.0 {
            let mut hash = Xxh3Default::new();
            hash.update(bytes);
            hash.update(&ZEROS[..padding(bytes.len())]);
            let (at, len) = (offset as u64, bytes.len() as u64);
            table.push([*kind as u64, at, len, hash.digest()]);
            offset += bytes.len() + padding(bytes.len());
        }
        let count = self.0.len() as u64;
        let header = [
            u64::from_le_bytes(MAGIC),
            count << 32 | VERSION,
            offset as u64,
        ];
        let table = [cast_slice(&table), &ZEROS[..padding(front)]].concat();
        let checksum = xxh3_64(&[cast_slice(&header), &table[..]].concat());
        out.write_all(cast_slice(&header))?;
        out.write_all(&checksum.to_le_bytes())?;
        out.write_all(&table)?;
        for (_, bytes) in &self.0 {
            out.write_all(bytes)?;
            out.write_all(&ZEROS[..padding(bytes.len())])?;
        }
        Ok(())
    }
}

/// Maps a file. An empty file, or one that cannot be mapped (a pipe), is read instead.
pub(crate) fn map(path: &Path) -> Result<Backing> {
    let mut file = File::open(path).map_err(Error::io(path))?;
    let meta = file.metadata().map_err(Error::io(path))?;
    if meta.is_file() && meta.len() > 0 {
        // SAFETY: the mapping is read-only, and every format is checked while it is read. If
        // another process truncates a mapped file, a read raises SIGBUS; fastdx never truncates a
        // file, it renames.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(Error::io(path))?;
        return Ok(Backing::Mapped(Arc::new(map)));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(Error::io(path))?;
    Ok(Backing::copy(&bytes))
}

/// Calls `write` on a temporary file beside `path`, syncs it and renames it to `path`.
pub(crate) fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<()> {
    // A pipe or device is written to, not replaced.
    let special = |m: std::fs::Metadata| !m.is_file() && !m.is_dir();
    if std::fs::metadata(path).is_ok_and(special) {
        let file = File::options()
            .write(true)
            .open(path)
            .map_err(Error::io(path))?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        return write(&mut out)
            .and_then(|()| out.flush())
            .map_err(Error::io(path));
    }
    // A symbolic link remains a link: its target is replaced.
    let target = std::fs::canonicalize(path);
    let target = target.as_deref().unwrap_or(path);
    let unique = getrandom::u64().map_err(Error::system("entropy"))?;
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{unique:016x}.tmp"));
    let temporary = target.with_file_name(name);
    let attempt = || -> std::io::Result<()> {
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if let Ok(old) = std::fs::metadata(target) {
            // The temporary file never has wider permissions than the file that it replaces.
            use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
            options.mode(old.permissions().mode() & 0o666);
        }
        let file = options.open(&temporary)?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        write(&mut out)?;
        let file = out.into_inner().map_err(|e| e.into_error())?;
        if let Ok(old) = std::fs::metadata(target) {
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()?;
        std::fs::rename(&temporary, target)
    };
    attempt().map_err(|source| {
        let _ = std::fs::remove_file(&temporary);
        Error::io(path)(source)
    })
}

pub(crate) struct Sections<'a> {
    backing: &'a Backing,
    table: Vec<(u64, usize, usize)>,
}

impl<'a> Sections<'a> {
    pub(crate) fn parse(backing: &'a Backing, verify: bool) -> std::result::Result<Self, String> {
        let bytes = backing.bytes();
        if bytes.len() < 32 || bytes[..8] != MAGIC {
            return Err("not a fastdx file".into());
        }
        let [_, version, length, checksum]: [u64; 4] = pod_read_unaligned(&bytes[..32]);
        let (count, version) = ((version >> 32) as usize, version & u64::from(u32::MAX));
        if version != VERSION {
            return Err(format!(
                "format version {version}; this fastdx reads version {VERSION}"
            ));
        }
        if length != bytes.len() as u64 {
            return Err(format!(
                "the file has {} bytes and should have {length}: truncated or extended",
                bytes.len()
            ));
        }
        let front = (32 + 32 * count.min(MAX_SECTIONS)).next_multiple_of(ALIGN);
        if count > MAX_SECTIONS || front > bytes.len() {
            return Err("the section table does not fit the file".into());
        }
        if checksum != xxh3_64(&[&bytes[..24], &bytes[32..front]].concat()) {
            return Err("the header's checksum is wrong: the file is damaged".into());
        }
        let mut table = Vec::new();
        let mut expected = front;
        for entry in bytes[32..32 + 32 * count].chunks_exact(32) {
            let [kind, offset, len, checksum]: [u64; 4] = pod_read_unaligned(entry);
            let end = offset.checked_add(len);
            let Some(end) = end.filter(|&end| end <= length && offset == expected as u64) else {
                return Err(format!("section {kind} lies outside the file"));
            };
            let end = end as usize;
            let padded = end.next_multiple_of(ALIGN).min(bytes.len());
            if verify && xxh3_64(&bytes[expected..padded]) != checksum {
                return Err(format!(
                    "the checksum of section {kind} is wrong: the file is damaged"
                ));
            }
            table.push((kind, expected, end));
            expected = padded;
        }
        if expected != bytes.len() {
            return Err("the file goes on behind its last section".into());
        }
        Ok(Sections { backing, table })
    }

    pub(crate) fn get<T: Pod>(&self, kind: Kind) -> std::result::Result<Option<Buffer<T>>, String> {
        match self.table.iter().find(|entry| entry.0 == kind as u64) {
            None => Ok(None),
            Some(&(kind, start, end)) => Buffer::view(self.backing, start, end)
                .map(Some)
                .ok_or_else(|| format!("section {kind} has a wrong size or alignment")),
        }
    }
}
