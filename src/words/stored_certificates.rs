//! Certificates and covers in files, and whether a file may claim them.

use std::sync::Arc;

use crate::cover::Cover;
use crate::guarantee::Certificate;
use crate::support::buffer::Buffer;
use crate::support::file::{Kind, Sections};
use crate::words::space::MetricSpace;

/// The stored form of certificates; the cover is 0 in those of TEM'21.
pub(crate) fn certificate_words(certificates: &[Certificate]) -> Vec<u64> {
    let words = |c: &Certificate| {
        let [nominal, gamma, epsilon] = [c.nominal, c.gamma, c.epsilon].map(f64::to_bits);
        let [a, b, y] = [c.pair.0, c.pair.1, c.output].map(u64::from);
        [nominal, gamma, epsilon, a, b, y, c.vocabulary, c.cover]
    };
    certificates.iter().flat_map(words).collect()
}

/// Returns the certificates that the file may claim for its space. An unverified file may claim
/// none: flipped bits would otherwise be believed.
pub(crate) fn certificates(
    sections: &Sections,
    space: &dyn MetricSpace,
    verified: bool,
) -> std::result::Result<Vec<Certificate>, String> {
    let Some(stored) = sections.get(Kind::Certificates)? else {
        return Ok(Vec::new());
    };
    let stored: Buffer<u64> = stored;
    let (stored, rest) = stored.as_chunks::<8>();
    let read = |&[nominal, gamma, epsilon, a, b, y, vocabulary, cover]: &[u64; 8]| {
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
            cover,
        };
        possible.then_some(certificate)
    };
    let read: Option<Vec<Certificate>> = stored.iter().map(read).collect();
    let read = read
        .filter(|_| rest.is_empty())
        .ok_or("a certificate holds impossible values")?;
    if !verified {
        return Ok(Vec::new());
    }
    let print = space.fingerprint();
    match read.iter().all(|c| c.vocabulary == print) {
        true => Ok(read),
        false => Err("a certificate is of another vocabulary".into()),
    }
}

pub(crate) fn cover(
    sections: &Sections,
    space: &dyn MetricSpace,
) -> std::result::Result<Option<Arc<Cover>>, String> {
    let cover = Cover::of_sections(sections)?;
    match cover.as_ref().map(|cover| cover.check_space(space)) {
        Some(Err(_)) => Err("the cover is one of other words".into()),
        _ => Ok(cover.map(Arc::new)),
    }
}
