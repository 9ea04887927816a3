//! Certificates in a file, and whether the file may claim them.

use crate::guarantee::Certificate;
use crate::support::buffer::Buffer;
use crate::support::file::{Checks, Kind, Sections};
use crate::words::space::MetricSpace;

/// The stored form of certificates: those of TEM'21, and those with a cover.
pub(crate) fn certificate_words(certificates: &[Certificate]) -> [Vec<u64>; 2] {
    let (mut plain, mut covered) = (Vec::new(), Vec::new());
    for c in certificates {
        let words = match c.cover {
            0 => &mut plain,
            _ => &mut covered,
        };
        words.extend([c.nominal, c.gamma, c.epsilon].map(f64::to_bits));
        words.extend([c.pair.0, c.pair.1, c.output].map(u64::from));
        words.push(c.vocabulary);
        if c.cover != 0 {
            words.push(c.cover);
        }
    }
    [plain, covered]
}

/// The sections of [`certificate_words`], without empty ones.
pub(crate) fn certificate_sections(words: &[Vec<u64>; 2]) -> impl Iterator<Item = (Kind, &[u8])> {
    let kinds = [Kind::Certificates, Kind::CoverCertificates].into_iter();
    let all = kinds.zip(words).filter(|(_, words)| !words.is_empty());
    all.map(|(kind, words)| (kind, bytemuck::cast_slice(words)))
}

/// Returns the certificates that the file may claim for its space. An unverified file may claim
/// none: flipped bits would otherwise be believed.
pub(crate) fn certificates(
    sections: &Sections,
    space: &dyn MetricSpace,
    checks: Checks,
) -> std::result::Result<Vec<Certificate>, String> {
    let stored = |kind| -> std::result::Result<Vec<u64>, String> {
        let stored: Option<Buffer<u64>> = sections.get(kind)?;
        Ok(stored.map_or_else(Vec::new, |words| words.to_vec()))
    };
    let (plain, covered) = (
        stored(Kind::Certificates)?,
        stored(Kind::CoverCertificates)?,
    );
    let (plain, rest) = plain.as_chunks::<7>();
    let (covered, more) = covered.as_chunks::<8>();
    let read = |words: &[u64]| {
        let &[nominal, gamma, epsilon, a, b, y, vocabulary, ..] = words else {
            return None;
        };
        let [nominal, gamma, epsilon] = [nominal, gamma, epsilon].map(f64::from_bits);
        let [a, b, y] = [a, b, y].map(|id| u32::try_from(id).ok());
        let possible = epsilon >= 0.0 && epsilon <= nominal && nominal.is_finite();
        let certificate = Certificate {
            nominal,
            gamma,
            epsilon,
            pair: (a?, b?),
            output: y?,
            vocabulary,
            cover: words.get(7).copied().unwrap_or(0),
        };
        possible.then_some(certificate)
    };
    let plain = plain.iter().map(|words| read(words));
    let covered = covered.iter().map(|words| read(words));
    let read: Option<Vec<Certificate>> = plain.chain(covered).collect();
    let read = read
        .filter(|_| rest.is_empty() && more.is_empty())
        .ok_or("a certificate holds impossible values")?;
    match checks {
        _ if read.is_empty() => return Ok(read),
        Checks::Few => return Ok(Vec::new()),
        Checks::Before => return Ok(read),
        Checks::Every => {}
    }
    let print = space.fingerprint();
    match read.iter().all(|c| c.vocabulary == print) {
        true => Ok(read),
        false => Err("a certificate is of another vocabulary".into()),
    }
}
