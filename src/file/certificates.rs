//! Certificates in a file: what may be claimed of it.

use super::{Kind, Sections};
use crate::buffer::Buffer;
use crate::guarantee::Certificate;
use crate::space::MetricSpace;

/// Certificates as they are stored.
pub(crate) fn certificate_words(certificates: &[Certificate]) -> Vec<u64> {
    let each = certificates.iter().flat_map(|c| {
        let numbers = [c.nominal, c.gamma, c.epsilon].map(f64::to_bits);
        let words = [c.pair.0, c.pair.1, c.output].map(u64::from);
        numbers.into_iter().chain(words).chain([c.vocabulary])
    });
    each.collect()
}

/// The certificates that the file may claim of the space that it holds: without verification none,
/// for flipped bits would be believed.
pub(crate) fn certificates(
    sections: &Sections,
    space: &dyn MetricSpace,
    verify: bool,
) -> std::result::Result<Vec<Certificate>, String> {
    let stored: Option<Buffer<u64>> = sections.get(Kind::Certificates)?;
    let stored = stored.as_deref().unwrap_or(&[]);
    let (each, rest) = stored.as_chunks::<7>();
    let read = |&[nominal, gamma, epsilon, a, b, y, vocabulary]: &[u64; 7]| {
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
        };
        possible.then_some(certificate)
    };
    let read: Option<Vec<Certificate>> = each.iter().map(read).collect();
    let read = read
        .filter(|_| rest.is_empty())
        .ok_or("a certificate holds impossible values")?;
    if !verify || read.is_empty() {
        return Ok(Vec::new());
    }
    let print = space.fingerprint();
    match read.iter().all(|c| c.vocabulary == print) {
        true => Ok(read),
        false => Err("a certificate is of another vocabulary".into()),
    }
}
