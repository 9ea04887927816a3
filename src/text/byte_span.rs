//! Assembles text from spans of bytes. Most are short, and copying sixteen bytes is faster than
//! copying the exact number.

/// Some bytes of a text, or of a vocabulary's words.
#[derive(Clone, Copy)]
pub(super) struct ByteSpan<'a> {
    of: &'a [u8],
    start: usize,
    end: usize,
}

impl<'a> ByteSpan<'a> {
    /// The bytes from `start` to `end`; start ≤ end ≤ the length of `of`.
    ///
    /// # Panics
    /// Panics for other positions.
    #[inline]
    pub(super) fn new(of: &'a [u8], start: usize, end: usize) -> Self {
        assert!(start <= end && end <= of.len());
        ByteSpan { of, start, end }
    }

    pub(super) fn whole(of: &'a [u8]) -> Self {
        ByteSpan::new(of, 0, of.len())
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        &self.of[self.start..self.end]
    }

    #[inline]
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        const COPIED: usize = 16;
        let (length, behind) = (self.end - self.start, out.len());
        let source = self
            .of
            .get(self.start..)
            .and_then(<[u8]>::first_chunk::<COPIED>);
        match (source, out.spare_capacity_mut().first_chunk_mut::<COPIED>()) {
            (Some(source), Some(spare)) if length <= COPIED => {
                *spare = source.map(std::mem::MaybeUninit::new);
                // SAFETY: 16 bytes after the end were written, and these are the first of them.
                unsafe { out.set_len(behind + length) };
            }
            _ => out.extend_from_slice(self.bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn spans_stand_one_behind_the_other(
            of in proptest::collection::vec(any::<u8>(), 0..60),
            cuts in proptest::collection::vec((0usize..61, 0usize..30), 0..20), room in 0usize..200
        ) {
            let (mut out, mut expected) = (Vec::with_capacity(room), Vec::new());
            for (start, length) in cuts {
                let start = start.min(of.len());
                let end = (start + length).min(of.len());
                let span = ByteSpan::new(&of, start, end);
                span.append_to(&mut out);
                expected.extend_from_slice(&of[start..end]);
                prop_assert_eq!(span.bytes(), &of[start..end]);
            }
            prop_assert_eq!(out, expected);
        }
    }
}
