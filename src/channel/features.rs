//! The parts of features of releases: blocks of laws, the rows of a table that words select, and
//! their means.

use super::Channel;
use super::read::{Observed, TextOrTokens, ids_of_each};
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, for_all, install};

/// Laws that are computed together.
const LAWS_PER_BLOCK: usize = 32;
/// Texts whose means are computed together.
const TEXTS_PER_BLOCK: usize = 64;

impl Channel {
    /// The laws of some words' outputs in a release, one law per row. A skipped word's law is the
    /// word itself.
    ///
    /// # Errors
    /// [`Error::WordId`], a law that fails, [`Error::Interrupted`].
    pub fn laws(&self, ids: &[u32], control: &Control) -> Result<Vec<f64>> {
        self.check_one_law()?;
        self.vocabulary().check_ids(ids)?;
        let words = self.words();
        let mut laws = vec![0.0; ids.len() * words];
        let shown = self.shown();
        install(laws.len(), 0, || {
            let parts = laws.chunks_mut(LAWS_PER_BLOCK * words.max(1));
            for_all(parts.zip(ids.chunks(LAWS_PER_BLOCK)), |(rows, ids)| {
                control.check()?;
                let mut rows = rows.chunks_exact_mut(words);
                self.source.each_law(ids, words, |id, law, _, _| {
                    let Some(row) = rows.next() else { return };
                    match shown.binary_search(&id) {
                        Ok(_) => row[id as usize] = 1.0,
                        Err(_) => row.copy_from_slice(law),
                    }
                })
            })
        })??;
        Ok(laws)
    }

    /// The words of many releases as rows of a table that has, for V words: what each output tells, the V
    /// words themselves, and what is known of a word of which nothing is seen. And how many words each has.
    ///
    /// Words of which nothing is seen are left out unless `unknown`. So is a word that is none, as outputs and
    /// punctuation that stand together may read.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a text of words none of which is an output, with its number;
    /// [`Error::Interrupted`].
    pub fn rows_of(
        &self,
        texts: &[&str],
        unknown: bool,
        control: &Control,
    ) -> Result<(Vec<u32>, Vec<u32>)> {
        self.check_one_law()?;
        ids_of_each(texts, control, |text| self.rows(text, unknown))
    }

    fn rows(&self, text: &str, unknown: bool) -> Result<Vec<u32>> {
        let words = self.words() as u32;
        let read = match self.read(TextOrTokens::Text(text.to_owned())) {
            Ok(read) => read,
            Err(error) => {
                let written = self.text.units(text).map(|(range, _)| &text[range]);
                let known: Vec<u32> = written
                    .filter_map(|word| self.vocabulary().id(word))
                    .collect();
                return if known.is_empty() {
                    Err(error)
                } else {
                    Ok(known)
                };
            }
        };
        let row = |seen: &Observed| match *seen {
            Observed::Output(y) => y,
            // The token of a word that the vocabulary lacks is V.
            Observed::Written(token) => words + token,
        };
        let rows = read.observed.iter().map(row);
        let rows: Vec<u32> = rows.filter(|&row| unknown || row < 2 * words).collect();
        match rows.is_empty() && !read.observed.is_empty() {
            true => {
                let expected = "a release of this mechanism";
                Err(Error::parameter("text", expected, "one of unknown words"))
            }
            false => Ok(rows),
        }
    }
}

/// The mean of some rows of a table for each text, texts following each other; zeros for a text without words.
///
/// # Errors
/// [`Error::Shape`] for rows that the table lacks, lengths of others; [`Error::Interrupted`].
pub fn row_means(
    table: &[f64],
    width: usize,
    ids: &[u32],
    lengths: &[u32],
    control: &Control,
) -> Result<Vec<f64>> {
    let rows = table.len().checked_div(width).unwrap_or(0);
    let mut ends = Vec::with_capacity(lengths.len());
    let mut end = 0;
    for &length in lengths {
        end += length as usize;
        ends.push(end);
    }
    if end != ids.len() || (width > 0 && ids.iter().any(|&id| id as usize >= rows)) {
        return Err(Error::Shape {
            what: "ids",
            expected: format!("{end} ids below {rows}"),
            got: format!("{} of others", ids.len()),
        });
    }
    let mut means = vec![0.0; lengths.len() * width];
    if width == 0 {
        return Ok(means);
    }
    install(ids.len() * width, 0, || {
        let parts = means.chunks_mut(TEXTS_PER_BLOCK * width).enumerate();
        for_all(parts, |(part, means)| {
            control.check()?;
            for (mean, text) in means.chunks_exact_mut(width).zip(part * TEXTS_PER_BLOCK..) {
                let length = lengths[text] as usize;
                for &id in &ids[ends[text] - length..ends[text]] {
                    let row = &table[id as usize * width..][..width];
                    mean.iter_mut().zip(row).for_each(|(m, x)| *m += x);
                }
                mean.iter_mut().for_each(|m| *m /= length.max(1) as f64);
            }
            Ok(())
        })
    })??;
    Ok(means)
}
