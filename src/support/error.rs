//! All errors, one variant per cause, each with the offending value.

use std::path::PathBuf;

/// The result of every fallible operation of the crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The cause of a failure, with the offending value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter outside its domain.
    #[error("{name} must be {expected}, got {got}")]
    Parameter {
        /// The parameter's name, as the caller knows it.
        name: &'static str,
        /// The allowed values.
        expected: String,
        /// The value given.
        got: String,
    },
    /// A word that is not in the vocabulary.
    #[error("the word {word:?} is not in the vocabulary")]
    UnknownWord {
        /// The word.
        word: String,
    },
    /// A word of a text, or of a list of words, that is not in the vocabulary. The message states
    /// its position, never the word.
    #[error("{place} of {length} characters, is not in the vocabulary")]
    UnknownInText {
        /// Its position.
        place: String,
        /// Its number of characters.
        length: usize,
        /// Among many texts: the text's index, and the byte at which the word starts there.
        at: Option<(usize, usize)>,
        /// The word.
        word: Hidden,
    },
    /// A word id that is not in the vocabulary.
    #[error("word id {id} at position {position} is out of range for a vocabulary of {len} words")]
    WordId {
        /// The id.
        id: u64,
        /// Its position in the input.
        position: usize,
        /// Size of the vocabulary.
        len: usize,
    },
    /// An array of the wrong shape.
    #[error("{what} has shape {got}, expected {expected}")]
    Shape {
        /// The name of the array.
        what: &'static str,
        /// The shape that is needed.
        expected: String,
        /// The shape given.
        got: String,
    },
    /// A vector that is no point of the metric space.
    #[error("the vector of {owner} {reason}")]
    Vector {
        /// The owner of the vector: a word in quotes, or a row number.
        owner: String,
        /// The reason.
        reason: String,
    },
    /// A word that occurs twice in a vocabulary.
    #[error("the word {word:?} is repeated: entries {first} and {second} (counted from 0)")]
    DuplicateWord {
        /// The word.
        word: String,
        /// Its first position.
        first: usize,
        /// Its second position.
        second: usize,
    },
    /// An input file in a text or foreign format that cannot be read.
    #[error("{}{}: {reason}", path.display(), line.map(|l| format!(", line {l}")).unwrap_or_default())]
    Format {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1, if the format has lines.
        line: Option<u64>,
        /// The reason, without the file's content.
        reason: String,
        /// The wrong word or field, if there is one.
        offender: Option<Hidden>,
    },
    /// A damaged, truncated, extended or foreign index file.
    #[error("{}: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The reason.
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
    /// The operating system supplied no entropy or no threads.
    #[error("the operating system gave no {what}: {reason}")]
    System {
        /// The resource requested.
        what: &'static str,
        /// Its answer.
        reason: String,
    },
    /// A result that does not fit in the memory allowed for it.
    #[error("{what} need {needed} bytes, and {limit} are allowed")]
    TooLarge {
        /// The result.
        what: String,
        /// The bytes it needs.
        needed: u64,
        /// The bytes allowed.
        limit: u64,
    },
    /// A model of language failed. What it says may hold words, so the message leaves that out.
    #[error("the model of language failed")]
    Model {
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The caller cancelled the work (Ctrl-C).
    #[error("interrupted")]
    Interrupted,
}

/// Private text that an error carries but does not show, neither in its message nor in its `Debug`
/// output.
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

    /// Returns the error with another name for the parameter, the one that the caller knows.
    pub fn renamed(mut self, from: &str, to: &'static str) -> Self {
        if let Error::Parameter { name, .. } = &mut self
            && *name == from
        {
            *name = to;
        }
        self
    }

    /// Returns the error for a text that is this many texts later than recorded.
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

    /// A damaged file, for a reason.
    pub(crate) fn corrupt(path: &std::path::Path) -> impl Fn(String) -> Self + '_ {
        move |reason| Error::Corrupt {
            path: path.to_owned(),
            reason,
        }
    }

    /// The error for `what`, which the operating system refused.
    pub(crate) fn system<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |reason| Error::System {
            what,
            reason: reason.to_string(),
        }
    }

    pub(crate) fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Error::Io {
            path: path.to_owned(),
            source,
        }
    }
}

/// Checks that ε is positive and finite.
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
