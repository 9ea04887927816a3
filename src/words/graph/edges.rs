//! Edges of a graph between words, from a file or added one by one.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::support::error::{Error, Result};

/// Words in order of first appearance, and edges between them.
#[derive(Clone, Debug, Default)]
pub struct Edges {
    ids: HashMap<Box<str>, u32>,
    words: Vec<Box<str>>,
    pairs: Vec<(u32, u32)>,
    weights: Vec<f64>,
}

/// The meaning of a third column, which a file cannot tell: "london, city, 120" may be a length or
/// a count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThirdColumn {
    /// There must be none.
    #[default]
    Absent,
    /// The length of every edge.
    Lengths,
    /// How often the pair was seen. Pairs that were seen fewer times than this are left out.
    Counts(u64),
}

impl ThirdColumn {
    /// The meaning that the options `lengths` and `min_count` give it.
    ///
    /// # Errors
    /// [`Error::Parameter`] for both.
    pub fn of(lengths: bool, min_count: Option<u64>) -> Result<Self> {
        match (lengths, min_count) {
            (false, None) => Ok(ThirdColumn::Absent),
            (true, None) => Ok(ThirdColumn::Lengths),
            (false, Some(least)) => Ok(ThirdColumn::Counts(least)),
            (true, Some(least)) => {
                let expected = "left out where the third column holds lengths";
                Err(Error::parameter("min_count", expected, least))
            }
        }
    }
}

impl Edges {
    /// Creates an empty set of edges.
    pub fn new() -> Self {
        Self::default()
    }

    /// The words of all edges, in order of first appearance.
    pub fn words(&self) -> &[Box<str>] {
        &self.words
    }

    /// The edges, as indices into [`words`](Self::words).
    pub fn pairs(&self) -> &[(u32, u32)] {
        &self.pairs
    }

    /// One weight per edge, if the file has weights; else empty.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The index of a word in [`words`](Self::words).
    pub fn id(&self, word: &str) -> Option<u32> {
        self.ids.get(word).copied()
    }

    /// Returns the id of a word, and adds the word to the graph if it is new. A word may have no
    /// edges.
    pub fn word(&mut self, word: &str) -> u32 {
        if let Some(id) = self.id(word) {
            return id;
        }
        let id = self.words.len() as u32;
        self.ids.insert(word.into(), id);
        self.words.push(word.into());
        id
    }

    /// Adds an edge, or returns a message.
    ///
    /// # Errors
    /// A message for an empty word, or a word linked to itself.
    pub fn push(&mut self, u: &str, v: &str) -> std::result::Result<(), String> {
        if u.is_empty() || v.is_empty() {
            return Err("an edge has two words, and one of them is empty".into());
        }
        if u == v {
            return Err("a word is linked to itself".into());
        }
        let pair = (self.word(u), self.word(v));
        self.pairs.push(pair);
        Ok(())
    }

    /// Reads a file with one edge per line: two words and, if `third` says what it holds, a number,
    /// separated by tabs. Empty lines are skipped.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] with the line that is no edge, or whose number is negative or
    /// none.
    pub fn read(path: &Path, third: ThirdColumn) -> Result<Self> {
        let file = std::fs::File::open(path).map_err(Error::io(path))?;
        let mut edges = Self::new();
        for (line, number) in BufReader::new(file).lines().zip(1u64..) {
            let wrong = |reason| Error::Format {
                path: path.to_owned(),
                line: Some(number),
                reason,
                offender: None,
            };
            let line = line.map_err(|e| match e.kind() {
                std::io::ErrorKind::InvalidData => wrong("is not UTF-8".into()),
                _ => Error::io(path)(e),
            })?;
            let line = match number {
                1 => line.trim_start_matches('\u{feff}'),
                _ => &line,
            };
            if line.trim().is_empty() {
                continue;
            }
            let fields: Vec<&str> = line.split('\t').collect();
            let (u, v) = match (&*fields, third) {
                (&[u, v], ThirdColumn::Absent) => (u, v),
                (&[_, _, _], ThirdColumn::Absent) => {
                    let reason = "has a third column, which may hold lengths or counts: say \
                                  lengths for the one, min_count for the other";
                    return Err(wrong(reason.into()));
                }
                (&[u, v, length], ThirdColumn::Lengths) => {
                    let length = length.trim().parse().ok();
                    let length = length.filter(|length: &f64| *length >= 0.0 && length.is_finite());
                    let reason = "the length is not a finite number, at least 0";
                    edges
                        .weights
                        .push(length.ok_or_else(|| wrong(reason.into()))?);
                    (u, v)
                }
                (&[u, v, count], ThirdColumn::Counts(least)) => {
                    let count: Option<u64> = count.trim().parse().ok();
                    let reason = "the count is not a whole number, at least 0";
                    if count.ok_or_else(|| wrong(reason.into()))? < least {
                        continue;
                    }
                    (u, v)
                }
                _ => {
                    let expected = match third {
                        ThirdColumn::Absent => "two words",
                        ThirdColumn::Lengths => "two words and a length",
                        ThirdColumn::Counts(_) => "two words and a count",
                    };
                    return Err(wrong(format!(
                        "an edge has {expected}, separated by tabs; this line has {} fields",
                        fields.len()
                    )));
                }
            };
            edges.push(u, v).map_err(&wrong)?;
        }
        Ok(edges)
    }
}
