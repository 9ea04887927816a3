//! The cover of the recommended policy, kept in data/recommended.cover: to build it takes all
//! distances between 20,000 words, seconds of a processor, and the command would pay them at every
//! start.
//!
//! The file names the recipe it was built from, and its fingerprint includes the words'. For other
//! words or another recipe it is not taken. tools/build_recommended.py makes it anew. A test compares it
//! with the cover that is built.
//!
//! The numbers are little-endian: the fingerprint of the cover, k, the bits of the weight, the least
//! size of a set, and the number of words V, in 64 bits each. Then follow V sizes of sets, 0 for a
//! word that is never released, and the ids of all sets, in 16 bits each.

use std::sync::Arc;

use super::{Build, Cover};
use crate::support::fork::Once;
use crate::words::space::MetricSpace;

/// The cover, once it was read: every mechanism of the process shares it.
static SHARED: Once<Arc<Cover>> = Once::new();
static BYTES: &[u8] = include_bytes!("../../data/recommended.cover");

const HEADER: usize = 5;

/// Returns the kept cover if [`Cover::balanced`] would build it from these words and this recipe,
/// with frequencies by rank.
pub(super) fn cover(
    space: &dyn MetricSpace,
    k: usize,
    weight: f64,
    build: &Build,
) -> Option<Arc<Cover>> {
    let words = space.vocabulary().len();
    let header = BYTES.as_chunks::<8>().0.iter().take(HEADER);
    let header: Vec<u64> = header.map(|&b| u64::from_le_bytes(b)).collect();
    let expected = [
        *header.first()?,
        k as u64,
        weight.to_bits(),
        build.least as u64,
        words as u64,
    ];
    if header != expected || build.approximate {
        return None;
    }
    let mut exclude = build.exclude.clone();
    exclude.sort_unstable();
    exclude.dedup();
    if let Some(shared) = SHARED.get()
        && shared.space == space.fingerprint()
    {
        let all = shared.released.len() + exclude.len() == words;
        return (all && shared.excludes(&exclude)).then(|| shared.clone());
    }
    let numbers = BYTES[8 * HEADER..].as_chunks::<2>().0;
    let (sizes, ids) = numbers.split_at_checked(words)?;
    let of_bytes = |numbers: &[[u8; 2]]| -> Vec<u32> {
        let each = numbers.iter().map(|&b| u16::from_le_bytes(b).into());
        each.collect()
    };
    let (sizes, ids) = (of_bytes(sizes), of_bytes(ids));
    let of = |released: bool| {
        let ids = (0..)
            .zip(&sizes)
            .filter(move |&(_, &size)| (size > 0) == released);
        ids.map(|(id, _)| id)
    };
    if !of(false).eq(exclude) {
        return None;
    }
    let mut starts = vec![0];
    for size in sizes.iter().filter(|&&size| size > 0) {
        starts.push(starts[starts.len() - 1] + size);
    }
    let released = of(true).collect();
    let space = space.fingerprint();
    let cover = Cover::from_parts(words, space, released, starts, ids, Vec::new()).ok()?;
    let is_kept = cover.fingerprint == header[0];
    is_kept.then(|| SHARED.get_or_init(|| Arc::new(cover)).clone())
}

/// Whether this is the kept cover itself.
#[cfg(feature = "python")]
pub(crate) fn is_kept(cover: &Arc<Cover>) -> bool {
    SHARED.get().is_some_and(|kept| Arc::ptr_eq(kept, cover))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vocabulary;
    use crate::cover::Balance;
    use crate::mechanism::tem::recommended::{BALANCE, COVER};
    use crate::support::parallel::Control;
    use crate::words::embedding::Embedding;

    fn offensive(space: &Embedding) -> Vec<u32> {
        let words = crate::cover::offensive();
        words
            .iter()
            .filter_map(|word| space.vocabulary().id(word))
            .collect()
    }

    #[test]
    fn the_kept_cover_is_the_one_that_is_built() {
        let space = Embedding::default_english().expect("built in");
        let build = Build {
            exclude: offensive(&space),
            ..Build::default()
        };
        let kept = cover(&space, COVER, BALANCE, &build).expect("of the recommended policy");
        let balance = Balance::by_rank(space.vocabulary().len(), BALANCE);
        let built = Cover::balanced(&space, COVER, &balance, &build, &Control::new());
        let built = built.expect("a cover");
        assert_eq!(kept.fingerprint(), built.fingerprint());
        assert_eq!((kept.k(), kept.released()), (built.k(), built.released()));
    }

    #[test]
    fn another_recipe_is_not_kept() {
        let space = Embedding::default_english().expect("built in");
        let exclude = offensive(&space);
        let build = |least, exclude: &[u32]| Build {
            least,
            exclude: exclude.to_vec(),
            approximate: false,
        };
        let least = Build::default().least;
        let same = build(least, &exclude);
        assert!(cover(&space, COVER, BALANCE, &same).is_some());
        assert!(cover(&space, COVER + 1, BALANCE, &same).is_none());
        assert!(cover(&space, COVER, BALANCE.next_up(), &same).is_none());
        assert!(cover(&space, COVER, BALANCE, &build(least + 1, &exclude)).is_none());
        assert!(cover(&space, COVER, BALANCE, &build(least, &exclude[1..])).is_none());
        assert!(cover(&space, COVER, BALANCE, &build(least, &[])).is_none());
        let nouns = Embedding::default_nouns().expect("built in");
        assert!(cover(&nouns, COVER, BALANCE, &same).is_none());
        // The same words elsewhere: other sets.
        let mut vectors = space.vectors().to_vec();
        vectors[0] += 1.0;
        let words = space.vocabulary();
        let words = Vocabulary::new((0..words.len() as u32).map(|id| words.word(id)));
        let (words, metric) = (words.expect("distinct"), space.metric());
        let moved = Embedding::new(words, vectors, space.dim(), metric).expect("points");
        assert!(cover(&moved, COVER, BALANCE, &same).is_none());
        // It is read once.
        let again = || cover(&space, COVER, BALANCE, &same).expect("kept");
        assert!(Arc::ptr_eq(&again(), &again()));
    }
}
