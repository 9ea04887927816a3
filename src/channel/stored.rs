//! Stores the results of a pass over all laws in a file: normalisers, from which columns are
//! computed.

use std::fs::File;
use std::path::Path;

use super::Channel;
use super::bits::Survey;
use super::source::Source;
use crate::support::error::{Error, Result};
use crate::support::file::{Kind, Sections, map, write_atomically, write_sections};
use crate::support::parallel::Control;

const VERSION: u64 = 1;
/// Number of words whose normalisers are recomputed when a file is read.
const CHECKED: usize = 8;
/// Normalisers are sums of floats whose order depends on the machine.
const TOLERANCE: f64 = 1e-9;

/// The data that the normalisers depend on.
fn key(source: &Source) -> Option<Vec<u64>> {
    match source {
        Source::Tem(tem) => Some(vec![
            tem.space().fingerprint(),
            tem.nominal().to_bits(),
            tem.gamma().to_bits(),
            tem.outputs_fingerprint(),
        ]),
        Source::Remapped(inner, cover, _) => {
            let mut inner = key(inner)?;
            inner.push(cover.fingerprint());
            Some(inner)
        }
        Source::Response(_) | Source::Rows(_) | Source::Estimated(_) => None,
    }
}

fn refused() -> Error {
    let expected =
        "Tem, with a cover and remapped or not: the columns of others need no normalisers";
    Error::parameter("mechanism", expected, "another")
}

impl Channel {
    /// Writes the normalisers of all words, the capacity, and the data that bits need. It takes one
    /// pass over all laws; `control` counts them.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a mechanism whose columns need no normalisers, [`Error::Io`],
    /// [`Error::Interrupted`].
    pub fn save(&self, path: &Path, control: &Control) -> Result<()> {
        self.check_one_law()?;
        let key = key(&self.source).ok_or_else(refused)?;
        let (survey, _) = self.surveyed(&self.prior(None)?, control)?;
        let mut meta = vec![VERSION, self.words() as u64, survey.capacity.to_bits()];
        meta.extend(key);
        let mut sections: Vec<(Kind, &[u8])> = vec![
            (Kind::ChannelMeta, bytemuck::cast_slice(&meta)),
            (Kind::ChannelTotals, bytemuck::cast_slice(&survey.totals)),
            (Kind::ChannelSpreads, bytemuck::cast_slice(&survey.spreads)),
        ];
        if let Some(outputs) = &survey.by_rank {
            sections.push((Kind::ChannelOutputs, bytemuck::cast_slice(outputs)));
        }
        write_atomically(path, |out| write_sections(out, &sections))
    }

    /// Reads a file that [`save`](Self::save) wrote for this mechanism, and recomputes some
    /// normalisers to check it.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] for a damaged file or one without normalisers;
    /// [`Error::Parameter`] for those of another mechanism.
    pub fn open(&self, path: &Path) -> Result<()> {
        self.check_one_law()?;
        let expected = key(&self.source).ok_or_else(refused)?;
        let file = File::open(path).map_err(Error::io(path))?;
        let backing = map(path, &file)?;
        let corrupt = |reason: String| Error::Corrupt {
            path: path.to_owned(),
            reason,
        };
        let sections = Sections::parse(&backing, true).map_err(corrupt)?;
        let meta = sections.get::<u64>(Kind::ChannelMeta).map_err(corrupt)?;
        let Some(&[VERSION, words, capacity, ref key @ ..]) = meta.as_deref() else {
            return Err(corrupt(
                "holds no normalisers that this fastdx knows".into(),
            ));
        };
        let other = || {
            let expected = "normalizers of this mechanism";
            Error::parameter("normalizers", expected, "those of another")
        };
        if key != expected || words != self.words() as u64 {
            return Err(other());
        }
        let numbers = |kind, valid: fn(f64) -> bool| -> Result<Option<Vec<f64>>> {
            let found = sections.get::<f64>(kind).map_err(corrupt)?;
            match found {
                Some(found) if found.len() != self.words() || !found.iter().all(|&x| valid(x)) => {
                    Err(corrupt("its numbers are none".into()))
                }
                found => Ok(found.map(|found| found.to_vec())),
            }
        };
        let missing = || corrupt("a part of the normalisers is missing".into());
        let survey = Survey {
            totals: numbers(Kind::ChannelTotals, |x| x > 0.0 && x.is_finite())?
                .ok_or_else(missing)?,
            spreads: numbers(Kind::ChannelSpreads, f64::is_finite)?.ok_or_else(missing)?,
            by_rank: numbers(Kind::ChannelOutputs, |x| (0.0..=1.0).contains(&x))?,
            capacity: f64::from_bits(capacity),
        };
        let most = (self.words() as f64).log2() + TOLERANCE;
        if !(0.0..=most).contains(&survey.capacity) {
            return Err(corrupt("its capacity is none".into()));
        }
        let ids: Vec<u32> = (0..CHECKED.min(self.words()))
            .map(|at| (at * self.words() / CHECKED.min(self.words())) as u32)
            .collect();
        let mut same = true;
        self.source
            .each_law(&ids, self.words(), |id, _, total, p_ln_p| {
                let near = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * a.abs().max(1.0);
                let id = id as usize;
                same &= (total / survey.totals[id] - 1.0).abs() <= TOLERANCE
                    && near(p_ln_p, survey.spreads[id]);
            })?;
        match same {
            true => {
                self.survey.get_or_init(|| survey);
                Ok(())
            }
            false => Err(other()),
        }
    }
}
