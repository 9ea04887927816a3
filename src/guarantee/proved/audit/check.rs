//! Checks a file's contents by computing them again from the words.
//!
//! Checksums find damage, not forgery: the author of a file can add valid checksums to false lists
//! or certificates. A Tem on false lists draws from another law than the one it proves.

use std::path::Path;
use std::sync::Arc;

use super::certify;
use crate::cover::Cover;
use crate::distance::neighbors::{Grid, NeighborLists};
use crate::distance::search::BATCH;
use crate::mechanism::tem::{Tem, Truncation};
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, install, map_all};
use crate::support::random::Randomness;
use crate::words::space::MetricSpace;

/// The contents that were computed again and found correct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Number of words that the index finds: all of them.
    pub words: usize,
    /// Number of words whose lists were computed again.
    pub lists: usize,
    /// Number of certificates that were computed again.
    pub certificates: usize,
}

/// Computes a file's contents again: that its index finds every word, the lists of so many words,
/// drawn at random, and every certificate, including those with its `cover`. `path` is for messages.
///
/// # Errors
/// [`Error::Corrupt`] for false contents, [`Error::Interrupted`].
pub fn check(
    space: &Arc<dyn MetricSpace>,
    cover: Option<&Arc<Cover>>,
    lists: usize,
    path: &Path,
    control: &Control,
) -> Result<Checked> {
    let wrong = |reason: String| Error::Corrupt {
        path: path.to_owned(),
        reason,
    };
    let vocabulary = space.vocabulary();
    let words = vocabulary.len();
    let not_found = (0..words as u32).find(|&id| vocabulary.id(vocabulary.word(id)) != Some(id));
    if let Some(id) = not_found {
        return Err(wrong(format!("its index does not find word {id}")));
    }
    let mut checked = Checked {
        words,
        ..Checked::default()
    };
    if let Some(stored) = space.lists() {
        if stored.grid() != Grid::of(&**space) {
            return Err(wrong("its lists are rounded to another grid".into()));
        }
        let ids: Vec<u32> = match lists >= words {
            true => (0..words as u32).collect(),
            false => {
                let mut rng = Randomness::new(None).next_key()?.stream(0);
                let ids = rand::seq::index::sample(&mut rng, words, lists).into_iter();
                ids.map(|id| id as u32).collect()
            }
        };
        if let Some(id) = first_false(&**space, stored, &ids, control)? {
            let reason = "is not the one that its vectors have";
            return Err(wrong(format!("the list of word {id} {reason}")));
        }
        checked.lists = ids.len();
    }
    for claimed in space.certificates() {
        let truncation = Truncation::Gamma(claimed.gamma);
        let tem = Tem::new(
            space.clone(),
            claimed.nominal,
            truncation,
            Randomness::new(None),
        )?;
        let tem = match cover {
            _ if claimed.cover == 0 => tem,
            Some(cover) if cover.fingerprint() == claimed.cover => {
                tem.with_cover(Some(cover.clone()))?
            }
            _ => {
                return Err(wrong(
                    "a certificate belongs to a cover that the file does not contain".into(),
                ));
            }
        };
        let found = certify(&tem, control)?;
        if found.epsilon > claimed.epsilon * (1.0 + 1e-9) {
            return Err(wrong(format!(
                "a certificate claims ε = {} where {} was computed",
                claimed.epsilon, found.epsilon
            )));
        }
        checked.certificates += 1;
    }
    Ok(checked)
}

/// Returns the first word whose stored list differs from the computed one.
fn first_false(
    space: &dyn MetricSpace,
    lists: &NeighborLists,
    ids: &[u32],
    control: &Control,
) -> Result<Option<u32>> {
    let (grid, k) = (lists.grid(), lists.k());
    let found = install(ids.len(), 1, || {
        map_all(ids.chunks(BATCH), |ids| {
            control.check()?;
            let mut computed = vec![0; ids.len() * k];
            space.neighbors(ids, grid, k, &mut computed);
            control.advance(ids.len());
            let mut each = ids.iter().zip(computed.chunks_exact(k));
            Ok(each
                .find(|(id, list)| lists.list(**id) != *list)
                .map(|(id, _)| *id))
        })
    })??;
    Ok(found.into_iter().flatten().min())
}
