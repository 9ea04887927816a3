//! Unpacks gzip data as it arrives (RFC 1952): members one after the other, optionally followed by
//! zeros.

use flate2::{Decompress, FlushDecompress, Status};

/// The data is not gzip, or not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("damaged or truncated gzip data")]
pub struct Damaged;

/// Unpacks gzip data.
#[derive(Debug, Default)]
pub struct Gunzip {
    /// Unpacks the current member.
    member: Option<Decompress>,
    members: usize,
}

/// The largest window that a member can have, as a power of two.
const WINDOW_BITS: u8 = 15;

impl Gunzip {
    /// Unpacks a part of `packed` into `out`, which must have room. Returns the number of bytes
    /// read and written. It makes progress whenever there is input. If all input is read and
    /// nothing was written, it needs more.
    ///
    /// # Errors
    /// [`Damaged`]; everything after it is meaningless.
    pub fn unpack(&mut self, packed: &[u8], out: &mut [u8]) -> Result<(usize, usize), Damaged> {
        let mut skipped = 0;
        if self.member.is_none() {
            if self.members > 0 {
                skipped = packed.iter().take_while(|&&b| b == 0).count();
            }
            if skipped == packed.len() {
                return Ok((skipped, 0));
            }
            self.members += 1;
        }
        let new = || Decompress::new_gzip(WINDOW_BITS);
        let member = self.member.get_or_insert_with(new);
        let (taken, written) = (member.total_in(), member.total_out());
        let packed = &packed[skipped..];
        let status = member.decompress(packed, out, FlushDecompress::None);
        let status = status.map_err(|_| Damaged)?;
        let taken = (member.total_in() - taken) as usize;
        let written = (member.total_out() - written) as usize;
        if status == Status::StreamEnd {
            self.member = None;
        } else if taken == 0 && written == 0 && !packed.is_empty() && !out.is_empty() {
            return Err(Damaged);
        }
        Ok((skipped + taken, written))
    }

    /// Whether the data may end here: there was at least one member, and all are complete.
    pub fn is_complete(&self) -> bool {
        self.members > 0 && self.member.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn packed(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    /// Feeds data in parts of `piece` bytes, and reads `room` bytes at a time.
    fn unpacked(data: &[u8], piece: usize, room: usize) -> Result<Vec<u8>, Damaged> {
        let (mut gunzip, mut plain, mut out) = (Gunzip::default(), Vec::new(), vec![0; room]);
        for mut some in data.chunks(piece) {
            loop {
                let (taken, made) = gunzip.unpack(some, &mut out)?;
                plain.extend_from_slice(&out[..made]);
                some = &some[taken..];
                if made == 0 && some.is_empty() {
                    break;
                }
            }
        }
        gunzip.is_complete().then_some(plain).ok_or(Damaged)
    }

    proptest! {
        #[test]
        fn members_come_back_however_they_are_cut(
            parts in proptest::collection::vec("[ab]{0,40}|[ -~]{0,4000}", 1..5),
            padding in 0usize..40, piece in 1usize..5000, room in 1usize..5000
        ) {
            let mut data: Vec<u8> = parts.iter().flat_map(|part| packed(part.as_bytes())).collect();
            data.resize(data.len() + padding, 0);
            prop_assert_eq!(unpacked(&data, piece, room), Ok(parts.concat().into_bytes()));
        }

        #[test]
        fn truncated_or_changed_data_is_damaged(
            text in "[ -~]{1,2000}", at: prop::sample::Index, bit in 0u32..8, piece in 1usize..500
        ) {
            let mut data = packed(text.as_bytes());
            prop_assert_eq!(unpacked(&data[..at.index(data.len())], piece, 100), Err(Damaged));
            // Bytes 4 to 9 of the header are a time, hints and the system. The last byte before the
            // checksum has unused bits.
            let place = 10 + at.index(data.len() - 10);
            data[place] ^= 1 << bit;
            let got = unpacked(&data, piece, 100);
            let says_nothing = place == data.len() - 9 && got == Ok(text.clone().into_bytes());
            prop_assert!(got == Err(Damaged) || says_nothing);
            data[place] ^= 1 << bit;
            data.push(b'x');
            prop_assert_eq!(unpacked(&data, piece, 100), Err(Damaged));
        }
    }

    #[test]
    fn nothing_and_zeros_are_no_gzip() {
        assert_eq!(unpacked(b"", 1, 1), Err(Damaged));
        assert_eq!(unpacked(&[0; 30], 7, 10), Err(Damaged));
    }

    #[test]
    fn a_long_run_takes_no_more_room_than_is_given() {
        let plain = vec![b'x'; 3 << 20];
        assert_eq!(unpacked(&packed(&plain), usize::MAX, 1000), Ok(plain));
    }
}
