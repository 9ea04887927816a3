//! Stores covers in files: a file of their own, or sections of an index.

use std::path::Path;

use super::Cover;
use crate::support::buffer::Backing;
use crate::support::error::{Error, Result};
use crate::support::file::{Kind, Parts, Sections, map};

impl Cover {
    /// Adds the sections that it is stored as.
    pub(crate) fn store<'a>(&'a self, parts: &mut Parts<'a>) {
        let meta = [self.words as u64, self.space, self.fingerprint];
        parts.add_made(Kind::CoverMeta, &meta);
        parts.add(Kind::CoverReleased, &self.released);
        parts.add(Kind::CoverStarts, &self.set_starts);
        parts.add(Kind::CoverWords, &self.set_words);
        if !self.weights.is_empty() {
            parts.add(Kind::CoverWeights, &self.weights);
        }
    }

    fn parts(&self) -> Parts<'_> {
        let mut parts = Parts::default();
        self.store(&mut parts);
        parts
    }

    /// Reads the cover in a file's sections, if there is one. It is always checked completely,
    /// because unsorted sets would cause reads out of bounds.
    pub(crate) fn of_sections(sections: &Sections) -> std::result::Result<Option<Self>, String> {
        let Some(meta) = sections.get::<u64>(Kind::CoverMeta)? else {
            return Ok(None);
        };
        let &[words, space, fingerprint] = &*meta else {
            return Err("the cover's meta section has the wrong size".into());
        };
        let ids = |kind| -> std::result::Result<Vec<u32>, String> {
            let ids = sections.get::<u32>(kind)?;
            ids.map(|ids| ids.to_vec())
                .ok_or_else(|| "no sets of the cover".into())
        };
        let weights = sections.get::<f64>(Kind::CoverWeights)?;
        let cover = Self::from_parts(
            usize::try_from(words)
                .ok()
                .filter(|&words| words <= crate::law::MOST_WORDS)
                .ok_or("a cover of impossibly many words")?,
            space,
            ids(Kind::CoverReleased)?,
            ids(Kind::CoverStarts)?,
            ids(Kind::CoverWords)?,
            weights.map_or_else(Vec::new, |weights| weights.to_vec()),
        )?;
        match cover.fingerprint == fingerprint {
            true => Ok(Some(cover)),
            false => Err("the cover is not the one that was saved".into()),
        }
    }

    /// Writes the cover to a file of its own: first to a temporary file beside it, which is then
    /// renamed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn save(&self, path: &Path) -> Result<()> {
        self.parts().save(path)
    }

    /// The bytes that [`save`](Self::save) would write.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.parts().to_bytes()
    }

    /// Reads the cover from a file that [`save`](Self::save) or an index's `save` wrote.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] for a damaged file or one without a cover.
    pub fn open(path: &Path) -> Result<Self> {
        Self::read(&map(path)?, path)
    }

    /// Reads a cover from the bytes that [`to_bytes`](Self::to_bytes) returned.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::read(&Backing::copy(bytes), Path::new("<bytes>"))
    }

    fn read(backing: &Backing, path: &Path) -> Result<Self> {
        let cover = Sections::parse(backing, true)
            .and_then(|sections| Self::of_sections(&sections))
            .and_then(|cover| cover.ok_or_else(|| "holds no cover".into()));
        cover.map_err(Error::corrupt(path))
    }
}
