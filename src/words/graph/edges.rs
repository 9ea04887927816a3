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

    /// Reads a file with one edge per line: two words and, if `weighted`, an optional weight,
    /// separated by tabs. Empty lines are skipped.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] with the line that is no edge.
    pub fn read(path: &Path, weighted: bool) -> Result<Self> {
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
            let (u, v, weight) = match *fields {
                [u, v] => (u, v, None),
                [u, v, weight] if weighted => (u, v, Some(weight)),
                _ => {
                    let expected = match weighted {
                        true => "two words, and perhaps a weight",
                        false => "two words",
                    };
                    return Err(wrong(format!(
                        "an edge has {expected}, separated by tabs; this line has {} fields",
                        fields.len()
                    )));
                }
            };
            if (!edges.pairs.is_empty()) && weight.is_some() == edges.weights.is_empty() {
                return Err(wrong("every edge has a weight, or none has".into()));
            }
            edges.push(u, v).map_err(&wrong)?;
            if let Some(weight) = weight {
                let number = weight
                    .trim()
                    .parse()
                    .map_err(|_| wrong("the weight is not a number".into()))?;
                edges.weights.push(number);
            }
        }
        Ok(edges)
    }
}
