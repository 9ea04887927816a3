//! The card of a channel: what a receiver of releases must know to make the best of them, as data.

use serde_json::{Value, json};

use super::Spec;

/// The version of cards.
pub const CARD: u32 = 1;
/// The version of the rules by which words are found in texts; raised when these change.
pub const TOKENIZER: u32 = 1;

impl Spec {
    /// The card: the description, which should be complete, without places of files, seeds and what tells
    /// nothing of the law; with the version of the rules by which words are found. No text is in it.
    pub fn card(&self) -> Value {
        json!({
            "card": CARD,
            "fastdx": env!("CARGO_PKG_VERSION"),
            "tokenizer": TOKENIZER,
            "spec": self.clone().without_files().released(),
        })
    }
}
