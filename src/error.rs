//! Everything that can go wrong, one variant a cause, each naming the offender.

use std::path::PathBuf;

/// Result of every fallible operation of the crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong and with what.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter outside its domain.
    #[error("{name} must be {expected}, got {got}")]
    Parameter {
        /// The parameter as the caller knows it.
        name: &'static str,
        /// What it must be.
        expected: String,
        /// What it was.
        got: String,
    },
    /// A word that is not in the vocabulary.
    #[error("the word {word:?} is not in the vocabulary")]
    UnknownWord {
        /// The word.
        word: String,
    },
    /// A word of a text, or of a list of words, that is not in the vocabulary. The message says
    /// where it stands, never what it is.
    #[error("{place} of {length} characters, is not in the vocabulary")]
    UnknownInText {
        /// Where it stands.
        place: String,
        /// Its characters.
        length: usize,
        /// Of many texts, which it is in, and the byte where it starts there.
        at: Option<(usize, usize)>,
        /// The word.
        word: Hidden,
    },
    /// A word id that is not in the vocabulary.
    #[error("word id {id} at position {position} is out of range for a vocabulary of {len} words")]
    WordId {
        /// The id.
        id: u64,
        /// Where in the input it stood.
        position: usize,
        /// Size of the vocabulary.
        len: usize,
    },
    /// An array of the wrong shape.
    #[error("{what} has shape {got}, expected {expected}")]
    Shape {
        /// Which array.
        what: &'static str,
        /// The shape that was needed.
        expected: String,
        /// The shape that came.
        got: String,
    },
    /// A vector that is no point of the metric space.
    #[error("the vector of {owner} {reason}")]
    Vector {
        /// Whose vector: a word in quotes, or a row number.
        owner: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A word that stands twice in a vocabulary.
    #[error("the word {word:?} is repeated: entries {first} and {second} (counted from 0)")]
    DuplicateWord {
        /// The word.
        word: String,
        /// Where it stood first.
        first: usize,
        /// Where it stood again.
        second: usize,
    },
    /// An input file in a text or foreign format that cannot be read.
    #[error("{}{}: {reason}", path.display(), line.map(|l| format!(", line {l}")).unwrap_or_default())]
    Format {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1, where the format has lines.
        line: Option<u64>,
        /// What is wrong, without the file's content.
        reason: String,
        /// The word or field that is wrong, where there is one.
        offender: Option<Hidden>,
    },
    /// A damaged, truncated, extended or foreign index file.
    #[error("{}: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The operating system gave no entropy, or no threads.
    #[error("the operating system gave no {what}: {reason}")]
    System {
        /// What was asked for.
        what: &'static str,
        /// Its answer.
        reason: String,
    },
    /// A result that would not fit in the memory allowed for it.
    #[error("{what} need {needed} bytes, and {limit} are allowed")]
    TooLarge {
        /// What would be made.
        what: String,
        /// Bytes it takes.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The caller cancelled the work (Ctrl-C).
    #[error("interrupted")]
    Interrupted,
}

/// Private text that an error carries and does not show: neither its message nor its `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(Box<str>);

impl Hidden {
    /// Hides a text.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Hidden(text.into())
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<{} characters>", self.0.chars().count())
    }
}

impl Error {
    /// A parameter outside its domain.
    pub fn parameter(
        name: &'static str,
        expected: impl Into<String>,
        got: impl std::fmt::Display,
    ) -> Self {
        Error::Parameter {
            name,
            expected: expected.into(),
            got: got.to_string(),
        }
    }

    /// The same error of a parameter that the caller knows by another name.
    pub fn renamed(mut self, from: &str, to: &'static str) -> Self {
        if let Error::Parameter { name, .. } = &mut self
            && *name == from
        {
            *name = to;
        }
        self
    }

    /// The same of a text that stood so many texts later than this one knew.
    #[cfg(feature = "python")]
    pub(crate) fn after_texts(mut self, texts: usize) -> Self {
        if let Error::UnknownInText {
            place,
            at: Some((text, _)),
            ..
        } = &mut self
        {
            let later = format!("of text {},", *text + texts);
            *place = place.replacen(&format!("of text {text},"), &later, 1);
            *text += texts;
        }
        self
    }

    pub(crate) fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Error::Io {
            path: path.to_owned(),
            source,
        }
    }
}

/// ε must be positive and finite.
pub(crate) fn check_epsilon(epsilon: f64) -> Result<f64> {
    if epsilon > 0.0 && epsilon.is_finite() {
        Ok(epsilon)
    } else {
        Err(Error::parameter(
            "epsilon",
            "a positive finite number",
            epsilon,
        ))
    }
}
