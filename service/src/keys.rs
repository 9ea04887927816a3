//! API keys: who may send requests, and which account pays.

use std::path::Path;

use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// Minimum length of a key: shorter ones can be guessed.
const SHORTEST: usize = 16;

/// The keys of a file. Each line has an account, white space and its key; lines that begin with `#`
/// are comments. An account may have several keys.
///
/// Only digests are stored. An offered key is compared with all of them, in a time that depends
/// only on their number.
#[derive(Debug, Default)]
pub struct Keys {
    digests: Vec<[u8; 32]>,
    accounts: Vec<String>,
}

impl Keys {
    /// Reads a file.
    /// An error names the line, never a key.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut keys = Keys::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |what: &str| Err(format!("{}, line {number}: {what}", path.display()));
            let mut fields = line.split_whitespace();
            let (Some(account), Some(key), None) = (fields.next(), fields.next(), fields.next())
            else {
                return wrong("a line is an account and its key");
            };
            if key.len() < SHORTEST {
                return wrong(&format!("a key has at least {SHORTEST} characters"));
            }
            let (digest, account) = (Sha256::digest(key).into(), crate::ledger::account(account));
            let earlier = keys.digests.iter().position(|other| *other == digest);
            if earlier.is_some_and(|at| keys.accounts[at] != account) {
                return wrong("this key is another account's already");
            }
            keys.digests.push(digest);
            keys.accounts.push(account);
        }
        match keys.accounts.is_empty() {
            true => Err(format!("{}: it holds no key", path.display())),
            false => Ok(keys),
        }
    }

    pub fn account(&self, key: &[u8]) -> Option<&str> {
        let offered: [u8; 32] = Sha256::digest(key).into();
        let (mut found, mut at) = (Choice::from(0), 0u64);
        for (i, digest) in (0u64..).zip(&self.digests) {
            let same = digest.ct_eq(&offered);
            at.conditional_assign(&i, same);
            found |= same;
        }
        bool::from(found).then(|| &*self.accounts[at as usize])
    }
}
