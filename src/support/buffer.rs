//! Immutable arrays that live on the heap, in the program, or in a memory-mapped file.

use std::ops::Deref;
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;

/// Backing bytes that several buffers can share.
#[derive(Clone, Debug)]
pub(crate) enum Backing {
    /// A file, mapped read-only.
    Mapped(Arc<Mmap>),
    /// Bytes on the heap, kept 8-byte aligned.
    Heap(Arc<Vec<u64>>, usize),
    /// Bytes of the program itself, which are not copied.
    Program(&'static Aligned<[u8]>),
}

/// Bytes of the program at an address that suits any plain value.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Aligned<T: ?Sized>(pub(crate) T);

impl Backing {
    /// Copies `bytes` to aligned memory.
    pub(crate) fn copy(bytes: &[u8]) -> Self {
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Backing::Heap(Arc::new(words), bytes.len())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Backing::Mapped(map) => map,
            Backing::Heap(words, len) => &bytemuck::cast_slice(words)[..*len],
            Backing::Program(bytes) => &bytes.0,
        }
    }
}

/// An immutable array of plain values.
#[derive(Clone, Debug)]
pub(crate) enum Buffer<T: Pod> {
    /// On the heap.
    Owned(Arc<Vec<T>>),
    /// A range of shared bytes: `start` in bytes, `len` in elements. Alignment was checked.
    Shared {
        backing: Backing,
        start: usize,
        len: usize,
    },
}

impl<T: Pod> Buffer<T> {
    /// A view of `backing[start..end]`; `None` if it is out of range, misaligned or not a whole
    /// number of elements.
    pub(crate) fn view(backing: &Backing, start: usize, end: usize) -> Option<Self> {
        let bytes = backing.bytes().get(start..end)?;
        let values: &[T] = bytemuck::try_cast_slice(bytes).ok()?;
        Some(Buffer::Shared {
            backing: backing.clone(),
            start,
            len: values.len(),
        })
    }
}

impl<T: Pod> From<Vec<T>> for Buffer<T> {
    fn from(values: Vec<T>) -> Self {
        Buffer::Owned(Arc::new(values))
    }
}

impl<T: Pod> Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Buffer::Owned(values) => values,
            Buffer::Shared {
                backing,
                start,
                len,
            } => {
                let end = start + len * std::mem::size_of::<T>();
                bytemuck::cast_slice(&backing.bytes()[*start..end])
            }
        }
    }
}
