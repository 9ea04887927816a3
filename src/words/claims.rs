//! Certificates of Tems and a cover, which a file stores beside its space, and the check that it may
//! claim them.

use std::sync::Arc;

use crate::cover::Cover;
use crate::guarantee::Certificate;
use crate::support::buffer::Buffer;
use crate::support::file::{Kind, Parts, Sections};
use crate::words::space::MetricSpace;

#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    pub(crate) certificates: Vec<Certificate>,
    pub(crate) cover: Option<Arc<Cover>>,
}

impl Claims {
    /// Adds their sections. The cover is 0 in certificates of TEM'21.
    pub(crate) fn store<'a>(&'a self, parts: &mut Parts<'a>) {
        let words = |c: &Certificate| {
            let [nominal, gamma, epsilon] = [c.nominal, c.gamma, c.epsilon].map(f64::to_bits);
            let [a, b, y] = [c.pair.0, c.pair.1, c.output].map(u64::from);
            [nominal, gamma, epsilon, a, b, y, c.vocabulary, c.cover]
        };
        let certificates: Vec<[u64; 8]> = self.certificates.iter().map(words).collect();
        parts.add_made(Kind::Certificates, &certificates);
        if let Some(cover) = &self.cover {
            cover.store(parts);
        }
    }

    /// Returns what the file may claim for its space. An unverified file may claim no certificate:
    /// flipped bits would otherwise be believed.
    pub(crate) fn read(
        sections: &Sections,
        space: &dyn MetricSpace,
        verified: bool,
    ) -> std::result::Result<Self, String> {
        let cover = Cover::of_sections(sections)?;
        if let Some(Err(_)) = cover.as_ref().map(|cover| cover.check_space(space)) {
            return Err("the cover is one of other words".into());
        }
        let stored: Option<Buffer<u64>> = sections.get(Kind::Certificates)?;
        let (stored, rest) = stored.as_deref().unwrap_or_default().as_chunks::<8>();
        let read: Option<Vec<Certificate>> = stored.iter().map(certificate).collect();
        let mut certificates = read
            .filter(|_| rest.is_empty())
            .ok_or("a certificate holds impossible values")?;
        if !verified {
            certificates.clear();
        }
        let foreign = |c: &Certificate| c.vocabulary != space.fingerprint();
        if certificates.iter().any(foreign) {
            return Err("a certificate is of another vocabulary".into());
        }
        Ok(Claims {
            certificates,
            cover: cover.map(Arc::new),
        })
    }
}

fn certificate(
    &[nominal, gamma, epsilon, a, b, y, vocabulary, cover]: &[u64; 8],
) -> Option<Certificate> {
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
}
