//! The card of a channel: the data that a receiver of releases needs to make the best use of them.

use serde_json::{Value, json};

use super::Spec;

/// The version of cards.
pub const CARD: u32 = 1;
/// The version of the tokenizer's rules; raised when these change.
pub const TOKENIZER: u32 = 1;

impl Spec {
    /// The card: a description, which should be complete, without file paths, seeds and settings
    /// that do not affect the law. It includes the version of the tokenizer's rules. It contains no
    /// text.
    pub fn card(&self) -> Value {
        json!({
            "card": CARD,
            "fastdx": env!("CARGO_PKG_VERSION"),
            "tokenizer": TOKENIZER,
            "spec": self.clone().without_files().released(),
        })
    }
}
