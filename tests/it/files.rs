//! fastdx's own file format: written files are read back, and damaged files are refused.

use std::fs;
use std::sync::{Arc, LazyLock};

use crate::common::{embedding, tem};
use fastdx::mechanism::tem::Truncation;
use fastdx::words::embedding::format::{Options, load, native};
use fastdx::{Control, Embedding, Error, Mechanism, Metric};
use proptest::prelude::*;

fn same(a: &Embedding, b: &Embedding) {
    assert_eq!(a.vectors(), b.vectors());
    assert_eq!(a.metric(), b.metric());
    assert_eq!(a.dim(), b.dim());
    assert!(a.vocabulary().iter().eq(b.vocabulary().iter()));
    let mut words = (0..).zip(b.vocabulary().iter());
    assert!(words.all(|(i, w)| b.vocabulary().id(w) == Some(i)));
}

#[test]
fn a_saved_embedding_is_read_back_and_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("e.fdx");
    for metric in Metric::ALL {
        let e = embedding(77, 5, 0.3, metric, 1);
        e.save(&path).unwrap();
        let any = load(&path, &Options::default(), &Control::new());
        for read in [
            native::open(&path, true),
            native::open(&path, false),
            native::from_bytes(&native::to_bytes(&e)),
            any.map(|read| read.0),
        ] {
            same(&e, &read.unwrap());
        }
    }
    let files = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 1, "no temporary file stays");
}

fn refused(bytes: &[u8]) -> bool {
    matches!(native::from_bytes(bytes), Err(Error::Corrupt { .. }))
}

/// A file without lists, and with lists of neighbours.
fn files(words: usize, seed: u64) -> [Vec<u8>; 2] {
    let (control, memory) = (Control::new(), 1 << 30);
    let e = embedding(words, 2, 1.0, Metric::Euclidean, seed);
    let nearest = e.build_lists(words.min(8) - 1, memory, &control).unwrap();
    [&*e, &nearest].map(native::to_bytes)
}

#[test]
fn every_flipped_bit_is_noticed() {
    for bytes in files(4, 3) {
        for i in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[i / 8] ^= 1 << (i % 8);
            assert!(refused(&damaged), "bit {i} of {}", bytes.len() * 8);
        }
    }
}

#[test]
fn every_truncation_and_extension_is_noticed() {
    for bytes in files(4, 3) {
        assert!((0..bytes.len()).all(|len| refused(&bytes[..len])));
        assert!((1..200).all(|more| refused(&[&bytes[..], &vec![0; more]].concat())));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    /// Without verification, a damaged file may give wrong numbers and a wrong law, but nothing is
    /// read out of bounds, and no id is out of range.
    #[test]
    fn damage_without_verification_is_harmless(
        kind in 0usize..2,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("e.fdx");
        static FILES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| files(30, 4));
        let mut bytes = FILES[kind].clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        fs::write(&path, &bytes).unwrap();
        if let Ok(e) = native::open(&path, false) {
            prop_assert_eq!(e.vectors().len(), e.len() * e.dim());
            e.vocabulary().iter().for_each(|w| { e.vocabulary().id(w); });
            let words = e.len() as u32;
            let tem = tem(Arc::new(e), 2.0, Truncation::default(), 1);
            let out = tem.privatize_ids(&(0..words).collect::<Vec<_>>()).unwrap();
            prop_assert!(out.iter().all(|&y| y < words));
        }
    }
}
